// Short-time Fourier transforms: spectra of the frames of signals, and signals from such spectra.
#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/require.h"
#include "lazy/ops/fourier/fourier.h"

namespace lazuli::lazy {
namespace {

// Where frames lie in a signal.
struct Frames {
  int64_t size, hop;
  // Elements that `count` of them take.
  int64_t Extent(int64_t count) const { return size + hop * (count - 1); }
  int64_t CountIn(int64_t length) const { return 1 + (length - size) / hop; }
  // How many hops a frame reaches into. All frames are put together from as many slices of the signal,
  // and are cut into as many slices to be added up; if these are more than kMostSlices, gathering is
  // better.
  int64_t slices() const { return (size + hop - 1) / hop; }
  bool by_slices() const { return slices() <= kMostSlices; }
  static constexpr int64_t kMostSlices = 32;
};

Tensor PadEnd(const Tensor& x, int64_t dim, int64_t low, int64_t high) {
  Dims lows(At(x.rank()), 0), highs(lows);
  lows[At(dim)] = low;
  highs[At(dim)] = high;
  return PadZeros(x, lows, highs, Dims(At(x.rank()), 0));
}

// The positions in the signal of the frames' elements: [count * size].
Tensor Places(const Frames& frames, int64_t count, backend::Device device) {
  const Dims dims{count, frames.size};
  const Tensor first = Positions(dims, 0, device) * static_cast<double>(frames.hop);
  return Reshape(first + Positions(dims, 1, device), {-1});
}

// [b, n] to [b, frames, size].
Tensor Cut(const Tensor& x, const Frames& frames) {
  const int64_t b = x.dim(0), count = frames.CountIn(x.dim(1)), hop = frames.hop;
  if (!frames.by_slices())
    return Reshape(IndexSelect(x, 1, Places(frames, count, x.device())), {b, count, frames.size});
  const int64_t slices = frames.slices(), rows = count + slices - 1;
  const Tensor used = Narrow(x, 1, 0, std::min(x.dim(1), rows * hop));
  const Tensor hops = Reshape(PadEnd(used, 1, 0, rows * hop - used.dim(1)), {b, rows, hop});
  if (slices == 1) return Narrow(hops, 2, 0, frames.size);
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < slices; ++i) {
    const Tensor part = Narrow(hops, 1, i, count);
    parts.push_back(Narrow(part, 2, 0, std::min(hop, frames.size - i * hop)));
  }
  return Cat(parts, 2);
}

// [b, frames, size] to [b, n]: the sums of the frames' elements at each position.
Tensor AddUp(const Tensor& x, const Frames& frames) {
  const int64_t b = x.dim(0), count = x.dim(1), hop = frames.hop, n = frames.Extent(count);
  if (!frames.by_slices()) {
    const Tensor zeros = FullConstant(Shape(x.dtype(), {b, n}), 0, x.device());
    return IndexAdd(zeros, 1, Places(frames, count, x.device()), Reshape(x, {b, -1}));
  }
  const int64_t slices = frames.slices();
  Tensor sum;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t width = std::min(hop, frames.size - i * hop);
    const Tensor part = PadEnd(Narrow(x, 2, i * hop, width), 2, 0, hop - width);
    const Tensor moved = PadEnd(part, 1, i, slices - 1 - i);
    sum = i == 0 ? moved : sum + moved;
  }
  return Narrow(Reshape(sum, {b, -1}), 1, 0, n);
}

struct WindowRequest {
  std::string_view op;
  const Tensor& window;  // perhaps undefined
  int64_t n_fft, win_length;
};

void CheckWindow(const WindowRequest& w) {
  if (w.win_length <= 0 || w.win_length > w.n_fft) {
    ThrowRecordError(w.op, InvalidArgument("expected 0 < win_length <= n_fft = ", w.n_fft,
                                           ", but win_length is ", w.win_length));
  }
  if (w.window.defined() && (w.window.rank() != 1 || w.window.dim(0) != w.win_length)) {
    ThrowRecordError(w.op, InvalidArgument("expected a window of win_length = ", w.win_length,
                                           " elements, not ", w.window.shape()));
  }
}

// The window with zeros around it up to n_fft; undefined if it is 1 everywhere.
Tensor PaddedWindow(const WindowRequest& w, DType dtype, backend::Device device) {
  if (!w.window.defined() && w.win_length == w.n_fft) return {};
  const Tensor window =
      w.window.defined() ? w.window : FullConstant(Shape(dtype, {w.win_length}), 1, device);
  const int64_t left = (w.n_fft - w.win_length) / 2;
  return PadEnd(window, 0, left, w.n_fft - w.win_length - left);
}

Tensor Windowed(const Tensor& x, const Tensor& window) {
  if (!window.defined()) return x;
  const DType dtype = Promote(x.dtype(), window.dtype()).value_or(x.dtype());
  return To(x, dtype) * To(window, dtype);
}

FftScale ScaleIf(bool normalized, FftScale otherwise) {
  return normalized ? FftScale::kOneByRootN : otherwise;
}

// `complex`: the signal or the window is.
void CheckStft(const Tensor& in, bool complex, bool center, std::optional<bool> onesided,
               std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  constexpr char kOp[] = "stft";
  if (!return_complex && !complex) {
    ThrowRecordError(kOp, InvalidArgument("requires return_complex for real signals and windows"));
  }
  if (center && align_to_window)
    ThrowRecordError(kOp, InvalidArgument("align_to_window is for center = false alone"));
  if (!IsFloat(in.dtype()) && !IsComplex(in.dtype()))
    ThrowRecordError(kOp, WrongType("expected floats or complex numbers, not ", in.shape()));
  if (in.rank() != 1 && in.rank() != 2)
    ThrowRecordError(kOp, InvalidArgument("expected a rank of 1 or 2, not ", in.shape()));
  if (complex && onesided.value_or(false)) {
    ThrowRecordError(
        kOp, InvalidArgument("has no onesided result where the signal or the window is complex"));
  }
}

}  // namespace

Tensor Stft(const Tensor& in, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const Tensor& window, bool center,
            std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  constexpr char kOp[] = "stft";
  const bool complex = IsComplex(in.dtype()) || (window.defined() && IsComplex(window.dtype()));
  CheckStft(in, complex, center, onesided, return_complex, align_to_window);
  const WindowRequest w{kOp, window, n_fft, win_length.value_or(n_fft)};
  const Frames frames{n_fft, hop_length.value_or(n_fft / 4)};
  Tensor x = Transformable(kOp, in.rank() == 1 ? Unsqueeze(in, 0) : in, /*complex=*/false);
  if (center && n_fft > 0) {
    const int64_t pad[] = {n_fft / 2, n_fft / 2};
    x = Pad(x, pad, pad_mode, std::nullopt);
  }
  if (n_fft <= 0 || n_fft > x.dim(1)) {
    ThrowRecordError(kOp,
                     InvalidArgument("expected 0 < n_fft <= ", x.dim(1), ", but n_fft is ", n_fft));
  }
  if (frames.hop <= 0) {
    ThrowRecordError(kOp,
                     InvalidArgument("expected hop_length > 0, but hop_length is ", frames.hop));
  }
  CheckWindow(w);
  if (align_to_window.value_or(false)) {
    const int64_t left = (n_fft - w.win_length) / 2;
    x = PadEnd(x, 1, left, n_fft - w.win_length - left);
  }
  Tensor cut = Windowed(Cut(x, frames), PaddedWindow(w, x.dtype(), x.device()));
  const FftScale scale = ScaleIf(normalized, FftScale::kOne);
  const int64_t last[] = {2};
  const Tensor spectra = !complex && onesided.value_or(true)
                             ? FftR2c(cut, last, scale)
                             : FftC2c(Transformable(kOp, cut, /*complex=*/true), last, scale,
                                      /*forward=*/true);
  Tensor y = Transpose(spectra, 1, 2);
  if (in.rank() == 1) y = Squeeze(y, 0);
  return return_complex.value_or(true) ? y : ViewAsRealCopy(y);
}

namespace {

struct InverseStft {
  WindowRequest window;
  Frames frames;
  bool center, normalized, onesided, return_complex;
  std::optional<int64_t> length;

  void Check(const Tensor& x) const;
  // The part of the signal that is wanted.
  int64_t start() const { return center ? frames.size / 2 : 0; }
  int64_t end(int64_t whole) const {
    return std::min(whole, length ? start() + *length : center ? whole - frames.size / 2 : whole);
  }
  // Signals [b, n] from spectra [b, frames, frequencies].
  Tensor Signals(const Tensor& spectra) const;
};

void InverseStft::Check(const Tensor& x) const {
  const std::string_view op = window.op;
  if (!IsComplex(x.dtype())) {
    ThrowRecordError(op, WrongType("requires complex numbers, as stft gives them with "
                                   "return_complex=True, not ",
                                   x.shape()));
  }
  if ((x.rank() != 2 && x.rank() != 3) || x.shape().num_elements() == 0) {
    ThrowRecordError(op, InvalidArgument("expected spectra [frequencies, frames] or "
                                         "[b, frequencies, frames], not ",
                                         x.shape()));
  }
  const int64_t wanted = onesided ? window.n_fft / 2 + 1 : window.n_fft;
  if (x.dim(x.rank() - 2) != wanted) {
    ThrowRecordError(op,
                     InvalidArgument("expected ", wanted, " frequencies for n_fft = ", window.n_fft,
                                     " and onesided = ", onesided, ", not ", x.shape()));
  }
  if (frames.hop <= 0 || frames.hop > window.win_length) {
    ThrowRecordError(op, InvalidArgument("expected 0 < hop_length <= win_length = ",
                                         window.win_length, ", but hop_length is ", frames.hop));
  }
  CheckWindow(window);
  if (return_complex && onesided) {
    ThrowRecordError(op, InvalidArgument("has no complex result of onesided spectra"));
  }
  if (!return_complex && window.window.defined() && IsComplex(window.window.dtype()))
    ThrowRecordError(op, WrongType("a complex window needs return_complex=True"));
  if (end(frames.Extent(x.dim(x.rank() - 1))) <= start()) {
    ThrowRecordError(
        op, InvalidArgument("these arguments leave no element of the signals of ", x.shape()));
  }
}

Tensor InverseStft::Signals(const Tensor& spectra) const {
  const int64_t last[] = {2}, n = frames.size, count = spectra.dim(1);
  const FftScale scale = ScaleIf(normalized, FftScale::kOneByN);
  const Tensor parts =
      return_complex
          ? FftC2c(spectra, last, scale, /*forward=*/false)
          : FftC2r(onesided ? spectra : Narrow(spectra, 2, 0, n / 2 + 1), last, scale, n);
  const Tensor padded = PaddedWindow(window, DType::kF32, spectra.device());
  const int64_t whole = frames.Extent(count), stop = end(whole);
  const auto wanted = [&](const Tensor& x) { return Narrow(x, 1, start(), stop - start()); };
  const Tensor sum = wanted(AddUp(Windowed(parts, padded), frames));
  const Tensor w =
      padded.defined() ? padded : FullConstant(Shape(DType::kF32, {n}), 1, sum.device());
  const Tensor squares = To(w, Promote(w.dtype(), DType::kF32).value_or(w.dtype()));
  const Tensor envelope =
      wanted(AddUp(BroadcastTo(Reshape(squares * squares, {1, 1, n}), {1, count, n}), frames));
  const Tensor good = Ge(Abs(Detach(envelope)), Constant(1e-11, hlo::PartType(envelope.dtype())));
  const Tensor checked = RequireAll(To(envelope, sum.dtype()), Requirement::kWindowsMeet, good);
  return sum / checked;
}

}  // namespace

Tensor Istft(const Tensor& x, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const Tensor& window, bool center, bool normalized,
             std::optional<bool> onesided, std::optional<int64_t> length, bool return_complex) {
  const bool half = onesided.value_or(x.rank() >= 2 && x.dim(x.rank() - 2) != n_fft);
  const InverseStft inverse{{"istft", window, n_fft, win_length.value_or(n_fft)},
                            {n_fft, hop_length.value_or(n_fft / 4)},
                            center,
                            normalized,
                            half,
                            return_complex,
                            length};
  inverse.Check(x);
  const Tensor spectra = Transpose(x.rank() == 2 ? Unsqueeze(x, 0) : x, 1, 2);
  Tensor y = inverse.Signals(spectra);
  if (length && *length > y.dim(1)) y = PadEnd(y, 1, 0, *length - y.dim(1));
  return x.rank() == 2 ? Squeeze(y, 0) : y;
}

}  // namespace lazuli::lazy
