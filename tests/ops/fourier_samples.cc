// Fourier transforms, beside the sums that define them.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "lazy/ops/fourier/fourier.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

using Number = std::complex<double>;

double FactorOf(FftScale scale, double n) {
  return scale == FftScale::kOne ? 1 : scale == FftScale::kOneByN ? 1 / n : 1 / std::sqrt(n);
}

// The sums over dims of x times exp(sign 2 pi i j k / n), where n is a signal's size along each dim;
// of half a spectrum its real part, the last dim's second half being conjugates.
Literal Sums(const Literal& x, const Shape& result, const Dims& signal, const Dims& dims, int sign,
             FftScale scale, bool mirrored) {
  const Literal numbers = x.Converted(DType::kC128);
  double size = 1;
  for (int64_t d : dims) size *= static_cast<double>(signal[static_cast<std::size_t>(d)]);
  Literal sums(Shape(DType::kC128, result.dims()));
  const auto last = static_cast<std::size_t>(dims.back());
  ForEachIndex(result.dims(), [&](const Index& to) {
    Number sum = 0;
    ForEachIndex(x.shape().dims(), [&](const Index& from) {
      double turns = 0;
      for (std::size_t d = 0; d < to.size(); ++d) {
        if (std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) == dims.end()) {
          if (from[d] != to[d]) return;
        } else {
          turns += static_cast<double>(from[d] * to[d]) / static_cast<double>(signal[d]);
        }
      }
      const Number term =
          numbers.data<Number>()[static_cast<std::size_t>(Offset(x.shape().dims(), from))] *
          std::polar(1.0, sign * 2 * std::numbers::pi * turns);
      const bool twice = mirrored && from[last] != 0 && 2 * from[last] != signal[last];
      sum += mirrored ? Number(term.real()) * (twice ? 2.0 : 1.0) : term;
    });
    sums.mutable_data<Number>()[static_cast<std::size_t>(Offset(result.dims(), to))] =
        sum * FactorOf(scale, size);
  });
  return sums.Converted(result.dtype());
}

Dims DimsOfLiteral(const Literal& x) {
  return Dims(x.shape().dims().begin(), x.shape().dims().end());
}

}  // namespace

void AddFourierSamples(Table& table) {
  table.Op<FftC2cOp>()
      .AddEdge({{1}, FftScale::kOne, true}, {Random(DType::kC64, {2, 6})})
      .AddEdge({{0}, FftScale::kOneByN, false}, {Random(DType::kC128, {5, 2})})
      .AddEdge({{0, 2}, FftScale::kOneByRootN, true}, {Random(DType::kC128, {3, 2, 4})})
      .AddEdge({{0, 1, 2, 3}, FftScale::kOne, false}, {Random(DType::kC64, {2, 3, 2, 2})})
      .AddEdge({{0}, FftScale::kOneByRootN, false}, {Random(DType::kC64, {37})})
      .AddEdge({{1}, FftScale::kOne, true}, {Random(DType::kC64, {0, 4})})
      .DeviceTolerance(1e-5)
      .ReferenceTolerance(1e-5, 1e-5)
      .Reference([](const FftC2cOp& op, const Literals& in) {
        return Sums(in[0], in[0].shape(), DimsOfLiteral(in[0]), op.dims, op.forward ? -1 : 1,
                    op.scale, /*mirrored=*/false);
      })
      .Error("fft_c2c: fft: operand f32[4] is not complex", {Random(DType::kF32, {4})},
             [](const Tensors& x) { FftC2c(x[0], {0}, FftScale::kOne, true); });
  table.Op<FftR2cOp>()
      .Add({{1}, FftScale::kOne}, {Random(DType::kF64, {2, 6})})
      .Add({{0}, FftScale::kOneByN}, {Random(DType::kF64, {5, 2})})
      .Add({{2, 0}, FftScale::kOneByRootN}, {Random(DType::kF64, {4, 2, 3})})
      .AddEdge({{3, 1, 0, 2}, FftScale::kOneByRootN}, {Random(DType::kF32, {2, 3, 2, 2})})
      .AddEdge({{0}, FftScale::kOne}, {Random(DType::kF32, {1})})
      .AddEdge({{1}, FftScale::kOne}, {Random(DType::kF64, {0, 4})})
      .DeviceTolerance(1e-5)
      .ReferenceTolerance(1e-5, 1e-5)
      .Reference([](const FftR2cOp& op, const Literals& in) {
        Dims dims = DimsOfLiteral(in[0]);
        auto& halved = dims[static_cast<std::size_t>(op.dims.back())];
        halved = halved / 2 + 1;
        const DType dtype = in[0].shape().dtype() == DType::kF64 ? DType::kC128 : DType::kC64;
        return Sums(in[0], Shape(dtype, dims), DimsOfLiteral(in[0]), op.dims, -1, op.scale,
                    /*mirrored=*/false);
      })
      .Error("fft_r2c: fft: operand c64[4] is not f32 or f64", {Random(DType::kC64, {4})},
             [](const Tensors& x) { FftR2c(x[0], {0}, FftScale::kOne); });
  table.Op<FftC2rOp>()
      .AddEdge({{1}, FftScale::kOne, 6}, {Random(DType::kC64, {2, 4})})
      .AddEdge({{0}, FftScale::kOneByN, 5}, {Random(DType::kC128, {3, 2})})
      .AddEdge({{2, 0}, FftScale::kOneByRootN, 4}, {Random(DType::kC128, {3, 2, 3})})
      .AddEdge({{3, 1, 0, 2}, FftScale::kOneByRootN, 3}, {Random(DType::kC64, {2, 3, 2, 2})})
      .AddEdge({{0}, FftScale::kOne, 1}, {Random(DType::kC64, {1})})
      .AddEdge({{1}, FftScale::kOne, 4}, {Random(DType::kC128, {0, 3})})
      .DeviceTolerance(1e-5)
      .ReferenceTolerance(1e-5, 1e-5)
      .Reference([](const FftC2rOp& op, const Literals& in) {
        Dims signal = DimsOfLiteral(in[0]);
        signal[static_cast<std::size_t>(op.dims.back())] = op.last_size;
        const DType dtype = in[0].shape().dtype() == DType::kC128 ? DType::kF64 : DType::kF32;
        return Sums(in[0], Shape(dtype, signal), signal, op.dims, 1, op.scale, /*mirrored=*/true);
      })
      .Error("fft_c2r: fft: fft_length={8} does not fit c64[4]", {Random(DType::kC64, {4})},
             [](const Tensors& x) { FftC2r(x[0], {0}, FftScale::kOne, 8); });
}

}  // namespace lazuli::lazy::test
