// Padding by a number, or by elements at the edges.
#include <algorithm>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

// x with `low` and `high` elements more along d, which are others of x.
Tensor Extended(const Tensor& x, int64_t d, int64_t low, int64_t high, std::string_view mode) {
  const int64_t n = x.dim(d);
  const Tensor at = Arange(low + n + high, DType::kS64, x.device()) - static_cast<double>(low);
  const auto number = [](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  if (mode == "replicate") return IndexSelect(x, d, ClampBetween(at, number(0), number(n - 1)));
  if (mode == "circular") return IndexSelect(x, d, Remainder(at, number(n)));
  // reflect: 3 2 1 0 1 2 3 2 1 0 ...
  const Tensor size = Abs(at);
  return IndexSelect(x, d, Where(Ge(size, number(n)), static_cast<double>(2 * n - 2) - size, size));
}

}  // namespace

Tensor Pad(const Tensor& x, absl::Span<const int64_t> pad, std::string_view mode,
           std::optional<double> value) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (pad.size() % 2 != 0 || pad.size() > 2 * rank) {
    ThrowRecordError("pad", InvalidArgument("takes two numbers for each of the last dims, not (",
                                            Join(pad, ", "), ") of ", x.shape()));
  }
  Dims low(rank, 0), high(rank, 0);
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
    const int64_t n = x.dim(static_cast<int64_t>(rank - 1 - i));
    if (n + pad[2 * i] + pad[2 * i + 1] < 0) {
      ThrowRecordError(
          "pad", InvalidArgument("(", Join(pad, ", "), ") leaves a negative size of ", x.shape()));
    }
  }
  const Dims none(rank, 0);
  if (mode == "constant") {
    const Tensor padded = PadZeros(x, low, high, none);
    if (value.value_or(0) == 0) return padded.impl() == x.impl() ? Clone(x) : padded;
    const Tensor inside = PadZeros(
        FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device()), low, high, none);
    return Where(inside, padded, Constant(*value, x.dtype()));
  }
  if (mode != "reflect" && mode != "replicate" && mode != "circular") {
    ThrowRecordError("pad", Unimplemented("has no mode ", mode,
                                          "; there are constant, reflect, replicate and circular"));
  }
  Tensor y = x;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<int64_t>(d);
    const int64_t n = x.dim(dim), most = mode == "reflect" ? n - 1 : n;
    if (low[d] == 0 && high[d] == 0) continue;
    if (n == 0 || (mode != "replicate" && std::max(low[d], high[d]) > most)) {
      ThrowRecordError("pad", InvalidArgument("padding of (", low[d], ", ", high[d],
                                              ") is too large for dim ", d, " of ", x.shape()));
    }
    // Negative padding cuts elements off.
    const int64_t cut_low = std::max<int64_t>(-low[d], 0),
                  cut_high = std::max<int64_t>(-high[d], 0);
    // A circle closes where it is cut; the others go on as x did.
    if (mode == "circular") y = Narrow(y, dim, cut_low, n - cut_low - cut_high);
    y = Extended(y, dim, std::max<int64_t>(low[d], 0), std::max<int64_t>(high[d], 0), mode);
    if (mode != "circular") y = Narrow(y, dim, cut_low, y.dim(dim) - cut_low - cut_high);
  }
  return y.impl() == x.impl() ? Clone(x) : y;
}

Tensor ConstantPadNd(const Tensor& x, absl::Span<const int64_t> pad, const Number& value) {
  const Tensor padded = Pad(x, pad, "constant", std::nullopt);
  const Tensor ones = FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device());
  return Where(Pad(ones, pad, "constant", std::nullopt), padded, value.AsElement(x.dtype()));
}

}  // namespace lazuli::lazy
