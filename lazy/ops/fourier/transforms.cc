// The functions of torch.fft: sizes, dims and norms as users give them, and the order of spectra.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/fourier/fourier.h"

namespace lazuli::lazy {
namespace {

using NormName = std::optional<std::string>;

// What a user asks for.
struct Request {
  std::string_view op;
  std::optional<Dims> s, dim;
  const NormName& norm;
};

FftScale ScaleOf(const Request& r, bool forward) {
  const std::string_view norm = r.norm ? std::string_view(*r.norm) : "backward";
  if (norm == "ortho") return FftScale::kOneByRootN;
  if (norm == "backward") return forward ? FftScale::kOne : FftScale::kOneByN;
  if (norm == "forward") return forward ? FftScale::kOneByN : FftScale::kOne;
  ThrowRecordError(
      r.op, InvalidArgument("norm \"", norm, "\" is not \"forward\", \"backward\" or \"ortho\""));
}

int64_t CheckedSize(std::string_view op, int64_t n) {
  if (n >= 1) return n;
  ThrowRecordError(op, InvalidArgument("invalid number of data points (", n, ")"));
}

Request AlongOne(std::string_view op, const Tensor& x, std::optional<int64_t> n, int64_t dim,
                 const NormName& norm) {
  Request r{op, std::nullopt, Dims{NormalizeDim(op, dim, x.rank())}, norm};
  if (n) r.s = Dims{CheckedSize(op, *n)};
  return r;
}

Request AlongTwo(std::string_view op, const std::optional<Dims>& s, absl::Span<const int64_t> dim,
                 const NormName& norm) {
  if (dim.empty()) ThrowRecordError(op, InvalidArgument("dim must not be empty"));
  return {op, s, Dims(dim.begin(), dim.end()), norm};
}

Dims DimsOfRequest(const Request& r, const Tensor& x) {
  Dims dims;
  if (r.dim) {
    for (int64_t d : *r.dim) dims.push_back(NormalizeDim(r.op, d, x.rank()));
    if (r.s && r.s->size() != dims.size()) {
      ThrowRecordError(r.op, InvalidArgument("dim and s must have the same length, not (",
                                             Join(*r.dim, ", "), ") and (", Join(*r.s, ", "), ")"));
    }
    Dims sorted(dims);
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      ThrowRecordError(r.op,
                       InvalidArgument("dims must be unique, are (", Join(*r.dim, ", "), ")"));
    }
    return dims;
  }
  const int64_t count = r.s ? static_cast<int64_t>(r.s->size()) : x.rank();
  if (count > x.rank()) {
    ThrowRecordError(r.op, InvalidArgument("got s with ", count, " sizes for ", x.shape()));
  }
  for (int64_t d = x.rank() - count; d < x.rank(); ++d) dims.push_back(d);
  return dims;
}

// The dims of a request, and the sizes along them: those given, or x's.
struct TransformExtent {
  Dims dims, sizes;
};

// `halved`: x has the first half of a spectrum along the last of the dims, and the size there is that
// of the signal.
TransformExtent ExtentOf(const Request& r, const Tensor& x, bool halved = false) {
  TransformExtent e{DimsOfRequest(r, x), {}};
  for (std::size_t i = 0; i < e.dims.size(); ++i) {
    const int64_t own = x.dim(e.dims[i]);
    const bool is_half = halved && i + 1 == e.dims.size();
    const bool given = r.s && (*r.s)[i] != -1;
    e.sizes.push_back(CheckedSize(r.op, given ? (*r.s)[i] : is_half ? 2 * (own - 1) : own));
  }
  return e;
}

void CheckSome(const Request& r, const TransformExtent& e) {
  if (e.dims.empty())
    ThrowRecordError(r.op, InvalidArgument("must transform at least one dim of x"));
}

// x cut or padded with zeros at the end of the dims.
Tensor Resize(const Tensor& x, const Dims& dims, const Dims& sizes) {
  Tensor y = x;
  Dims none(At(x.rank()), 0), high(none);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t own = x.dim(dims[i]);
    if (sizes[i] < own) y = Narrow(y, dims[i], 0, sizes[i]);
    high[At(dims[i])] = std::max<int64_t>(sizes[i] - own, 0);
  }
  return PadZeros(y, none, high, none);
}

Tensor ComplexTransform(const Request& r, const Tensor& x, bool forward) {
  const FftScale scale = ScaleOf(r, forward);
  const Tensor z = Transformable(r.op, x, /*complex=*/true);
  TransformExtent e = ExtentOf(r, z);
  const Tensor resized = Resize(z, e.dims, e.sizes);
  std::sort(e.dims.begin(), e.dims.end());
  return e.dims.empty() && z.impl() == x.impl() ? Clone(x)
                                                : FftC2c(resized, e.dims, scale, forward);
}

// `forward` false: the conjugates, which are the spectrum of the other direction.
Tensor RealTransform(const Request& r, const Tensor& x, bool forward) {
  if (IsComplex(x.dtype()))
    ThrowRecordError(r.op, WrongType("expects a real input, not ", x.shape()));
  const FftScale scale = ScaleOf(r, forward);
  const Tensor signal = Transformable(r.op, x, /*complex=*/false);
  const TransformExtent e = ExtentOf(r, signal);
  CheckSome(r, e);
  const Tensor y = FftR2c(Resize(signal, e.dims, e.sizes), e.dims, scale);
  return forward ? y : Conj(y);
}

// From half a spectrum, which a forward transform takes as the conjugates of one.
Tensor HalfTransform(const Request& r, const Tensor& x, bool forward) {
  const FftScale scale = ScaleOf(r, forward);
  const Tensor z = Transformable(r.op, x, /*complex=*/true);
  TransformExtent e = ExtentOf(r, z, /*halved=*/true);
  CheckSome(r, e);
  const int64_t last_size = e.sizes.back();
  e.sizes.back() = last_size / 2 + 1;
  const Tensor half = Resize(z, e.dims, e.sizes);
  return FftC2r(forward ? Conj(half) : half, e.dims, scale, last_size);
}

Tensor Rolled(std::string_view op, const Tensor& x, const std::optional<Dims>& dim, int64_t more) {
  Dims dims, shifts;
  if (dim) {
    for (int64_t d : *dim) dims.push_back(NormalizeDim(op, d, x.rank()));
  } else {
    for (int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  }
  if (dims.empty()) ThrowRecordError(op, InvalidArgument("has no dims to shift in ", x.shape()));
  for (int64_t d : dims) shifts.push_back((x.dim(d) + more) / 2);
  return Roll(x, shifts, dims);
}

DType FrequencyType(std::string_view op, std::optional<DType> dtype) {
  const DType type = dtype.value_or(DefaultFloat());
  if (IsFloat(type)) return type;
  ThrowRecordError(op, WrongType("requires a floating point dtype, not ", DTypeText(type)));
}

Tensor Frequencies(const Tensor& places, double n, double d) {
  return InWide(places, [&](const Tensor& wide) { return wide * (1.0 / (n * d)); });
}

}  // namespace

#define LAZULI_FFT_ONE(Name, name, Kind, forward)                                             \
  Tensor Name(const Tensor& x, std::optional<int64_t> n, int64_t dim, const NormName& norm) { \
    return Kind(AlongOne("fft." name, x, n, dim, norm), x, forward);                          \
  }
#define LAZULI_FFT_TWO(Name, name, Kind, forward)                                           \
  Tensor Name(const Tensor& x, const std::optional<Dims>& s, absl::Span<const int64_t> dim, \
              const NormName& norm) {                                                       \
    return Kind(AlongTwo("fft." name, s, dim, norm), x, forward);                           \
  }
#define LAZULI_FFT_ALL(Name, name, Kind, forward)                                            \
  Tensor Name(const Tensor& x, const std::optional<Dims>& s, const std::optional<Dims>& dim, \
              const NormName& norm) {                                                        \
    return Kind(Request{"fft." name, s, dim, norm}, x, forward);                             \
  }
#define LAZULI_FFT(Name, name, Kind, forward)      \
  LAZULI_FFT_ONE(Name, name, Kind, forward)        \
  LAZULI_FFT_TWO(Name##2, name "2", Kind, forward) \
  LAZULI_FFT_ALL(Name##n, name "n", Kind, forward)
LAZULI_FFT(Fft, "fft", ComplexTransform, true)
LAZULI_FFT(Ifft, "ifft", ComplexTransform, false)
LAZULI_FFT(Rfft, "rfft", RealTransform, true)
LAZULI_FFT(Irfft, "irfft", HalfTransform, false)
LAZULI_FFT(Hfft, "hfft", HalfTransform, true)
LAZULI_FFT(Ihfft, "ihfft", RealTransform, false)
#undef LAZULI_FFT
#undef LAZULI_FFT_ALL
#undef LAZULI_FFT_TWO
#undef LAZULI_FFT_ONE

Tensor Fftfreq(int64_t n, double d, std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "fft.fftfreq";
  const DType type = FrequencyType(kOp, dtype);
  if (n < 0) ThrowRecordError(kOp, InvalidArgument("n must not be negative, is ", n));
  const Tensor places = Arange(n, type, device);
  const int64_t positive = (n + 1) / 2;
  const Tensor parts[] = {Narrow(places, 0, 0, positive),
                          Narrow(places, 0, positive, n - positive) - static_cast<double>(n)};
  return Frequencies(Cat(parts), static_cast<double>(n), d);
}

Tensor Rfftfreq(int64_t n, double d, std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "fft.rfftfreq";
  const DType type = FrequencyType(kOp, dtype);
  const int64_t count = n / 2 + 1;
  if (count < 0) ThrowRecordError(kOp, InvalidArgument("n must not be negative, is ", n));
  return Frequencies(Arange(count, type, device), static_cast<double>(n), d);
}

Tensor Fftshift(const Tensor& x, const std::optional<Dims>& dim) {
  return Rolled("fft.fftshift", x, dim, 0);
}
Tensor Ifftshift(const Tensor& x, const std::optional<Dims>& dim) {
  return Rolled("fft.ifftshift", x, dim, 1);
}

}  // namespace lazuli::lazy
