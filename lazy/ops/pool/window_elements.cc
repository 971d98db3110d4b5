// The elements of each window, beside each other: what pooling makes of them where no windowed
// reduction of HLO gives it, which are positions, dilations and whole numbers.
#include <limits>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {

Tensor Places(const Tensor& padded, const Pool2dAttrs& a) {
  Tensors places;
  const Pair reach = Reach(a);
  const Dims strides{1, 1, a.stride[0], a.stride[1]};
  for (int64_t i = 0; i < a.kernel[0]; ++i) {
    for (int64_t j = 0; j < a.kernel[1]; ++j) {
      const Dims starts{0, 0, i * a.dilation[0], j * a.dilation[1]};
      Dims limits = DimsOf(padded.shape());
      limits[2] -= reach[0] - 1 - starts[2];
      limits[3] -= reach[1] - 1 - starts[3];
      places.push_back(Unsqueeze(Slice(padded, starts, limits, strides), -1));
    }
  }
  return Cat(places, -1);
}

namespace {

struct Windows {
  Tensor elements;  // padding as zeros
  Tensor inside;    // [1, 1, H', W', kh * kw]: whether each is one of x
};
Windows WindowsOf(const Tensor& x, const Pool2dAttrs& a) {
  const Pair overhang = Overhang(x.shape(), a);
  const Dims low{0, 0, a.padding[0], a.padding[1]}, none(4, 0);
  const Dims high{0, 0, a.padding[0] + overhang[0], a.padding[1] + overhang[1]};
  const Tensor one = FullConstant(Shape(DType::kPred, {1, 1, x.dim(2), x.dim(3)}), 1, x.device());
  return {Places(PadZeros(x, low, high, none), a), Places(PadZeros(one, low, high, none), a)};
}

// The position in its image of each place of the windows: [1, 1, H', W', kh * kw].
Tensor PositionsOf(const Shape& places, const Pool2dAttrs& a, int64_t width,
                   backend::Device device) {
  const Dims dims{1, 1, places.dim(2), places.dim(3), a.kernel[0], a.kernel[1]};
  const auto along = [&](std::size_t i) {
    const auto window = static_cast<int64_t>(i) + 2;
    return Positions(dims, window, device) * static_cast<double>(a.stride[i]) +
           Positions(dims, window + 2, device) * static_cast<double>(a.dilation[i]) -
           static_cast<double>(a.padding[i]);
  };
  return Flatten(along(0) * static_cast<double>(width) + along(1), 4);
}

constexpr int64_t kPlaces[] = {-1};

}  // namespace

Tensor MeanOfIntegers(const Tensor& sum, const Tensor& count, DType dtype) {
  const Tensor size = FloorDivide(Abs(sum), Abs(count));
  return To(size * Sign(sum) * Sign(count), dtype);
}

double LeastOf(DType dtype) {
  if (IsFloat(dtype)) return -std::numeric_limits<double>::infinity();
  return ir::IsSigned(dtype) ? -std::ldexp(1, static_cast<int>(ir::Row(dtype).bits) - 1) : 0;
}

std::pair<Tensor, Tensor> LargestOfWindows(const Tensor& x, const Pool2dAttrs& a) {
  const auto [elements, inside] = WindowsOf(x, a);
  const Tensor ranked = Where(inside, Detach(elements), Constant(LeastOf(x.dtype()), x.dtype()));
  const Tensor largest = Amax(ranked, kPlaces, /*keepdim=*/true);
  const Tensor is_largest = LogicalAnd(LogicalOr(Eq(ranked, largest), Ne(ranked, ranked)), inside);
  const Tensor position = PositionsOf(elements.shape(), a, x.dim(3), x.device());
  const Value beyond = Constant(static_cast<double>(x.dim(2) * x.dim(3)), DType::kS64);
  Tensor at = Amin(Where(is_largest, position, beyond), kPlaces, /*keepdim=*/true);
  if (IsFloat(x.dtype())) {  // of numbers the first, of NaN the last
    const Value none = Constant(-1, DType::kS64);
    const Tensor last = Amax(Where(is_largest, position, none), kPlaces, /*keepdim=*/true);
    at = Where(Ne(largest, largest), last, at);
  }
  const Tensor chosen = LogicalAnd(Eq(position, at), is_largest);
  const Tensor value = Sum(Where(chosen, elements, Constant(0, x.dtype())), kPlaces);
  return {To(value, x.dtype()), Squeeze(at, -1)};
}

Tensor MeansOfIntegerWindows(const Tensor& x, const Pool2dAttrs& a, bool count_padding,
                             std::optional<int64_t> divisor) {
  const auto [elements, inside] = WindowsOf(x, a);
  const Tensor sum = Sum(elements, kPlaces);
  Tensor count = Sum(inside, kPlaces);
  if (divisor) {
    count = FullConstant(count.shape(), static_cast<double>(*divisor), x.device());
  } else if (count_padding) {
    Pool2dAttrs bare = a;
    bare.padding = {0, 0};
    const Shape padded(DType::kPred,
                       {1, 1, x.dim(2) + 2 * a.padding[0], x.dim(3) + 2 * a.padding[1]});
    count = Sum(WindowsOf(FullConstant(padded, 1, x.device()), bare).inside, kPlaces);
  }
  return MeanOfIntegers(sum, count, x.dtype());
}

}  // namespace lazuli::lazy
