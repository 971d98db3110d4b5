// The vocabulary of ops as functions on tensors: what gradients and composites are written with,
// and what the facade calls.
//
// A number written in an expression here is an HLO constant; a user's number is a slot (number.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lazy/ops/number.h"
#include "lazy/ops/record.h"
#include "lowering/builder/builder.h"

namespace lazuli::lazy {

// --- elementwise (unary.def, binary.def, compare.def)
#define LAZULI_UNARY(struct_name, function, ...) Tensor function(const Operand& x);
#include "lazy/ops/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, ...) \
  Tensor function(const Operand& x, const Operand& y);
#include "lazy/ops/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, ...) \
  Tensor function(const Operand& x, const Operand& y);
#include "lazy/ops/compare.def"
#undef LAZULI_COMPARE

Tensor Remainder(const Operand& x, const Operand& y);    // with the sign of y
Tensor FloorDivide(const Operand& x, const Operand& y);  // rounded down
Tensor Relu(const Tensor& x);
Tensor Clone(const Tensor& x);  // the same elements in memory of its own
Tensor Where(const Operand& condition, const Operand& on_true, const Operand& on_false);
Tensor Clamp(const Tensor& x, const Operand& low, const Operand& high);
// The exponent is structure. Integers stay integers under a whole number, which must not be
// negative.
Tensor PowNumber(const Tensor& x, const Number& exponent);
Tensor To(const Tensor& x, DType dtype);  // x itself if it has the dtype

// A rank-0 constant of the program.
Value Constant(double value, DType dtype);

inline Tensor operator+(const Tensor& x, const Tensor& y) { return Add(x, y); }
inline Tensor operator-(const Tensor& x, const Tensor& y) { return Sub(x, y); }
inline Tensor operator*(const Tensor& x, const Tensor& y) { return Mul(x, y); }
inline Tensor operator/(const Tensor& x, const Tensor& y) { return Div(x, y); }
inline Tensor operator-(const Tensor& x) { return Neg(x); }
inline Tensor operator+(const Tensor& x, double y) { return Add(x, Constant(y, x.dtype())); }
inline Tensor operator-(const Tensor& x, double y) { return Sub(x, Constant(y, x.dtype())); }
inline Tensor operator*(const Tensor& x, double y) { return Mul(x, Constant(y, x.dtype())); }
inline Tensor operator/(const Tensor& x, double y) { return Div(x, Constant(y, x.dtype())); }
inline Tensor operator+(double x, const Tensor& y) { return Add(Constant(x, y.dtype()), y); }
inline Tensor operator-(double x, const Tensor& y) { return Sub(Constant(x, y.dtype()), y); }
inline Tensor operator*(double x, const Tensor& y) { return Mul(Constant(x, y.dtype()), y); }
inline Tensor operator/(double x, const Tensor& y) { return Div(Constant(x, y.dtype()), y); }

// x with integers as f32: what functions of floats compute with.
Tensor Floating(const Tensor& x);

// --- activations. A number operand has x's dtype (Floating(x)'s where integers become floats).
Tensor Gelu(const Tensor& x, bool tanh);
Tensor Silu(const Tensor& x);
Tensor LeakyRelu(const Tensor& x, const Operand& slope);
Tensor Elu(const Tensor& x, const Operand& alpha);
Tensor Celu(const Tensor& x, const Operand& alpha);
Tensor Selu(const Tensor& x);
Tensor Softplus(const Tensor& x, const Operand& beta, const Operand& threshold);
Tensor LogSigmoid(const Tensor& x);
Tensor Hardtanh(const Tensor& x, const Operand& low, const Operand& high);
Tensor Relu6(const Tensor& x);
Tensor Hardsigmoid(const Tensor& x);
Tensor Hardswish(const Tensor& x);
Tensor Mish(const Tensor& x);
Tensor Softsign(const Tensor& x);
Tensor Prelu(const Tensor& x, const Tensor& weight);  // one slope, or one per channel (dim 1)
Tensor Glu(const Tensor& x, int64_t dim);

// --- reductions; empty dims mean all. Integers and pred sum to s64.
Tensor Sum(const Tensor& x, absl::Span<const int64_t> dims = {}, bool keepdim = false);
Tensor Mean(const Tensor& x, absl::Span<const int64_t> dims = {}, bool keepdim = false);
Tensor Prod(const Tensor& x, absl::Span<const int64_t> dims = {}, bool keepdim = false);
Tensor Amax(const Tensor& x, absl::Span<const int64_t> dims = {}, bool keepdim = false);
Tensor Amin(const Tensor& x, absl::Span<const int64_t> dims = {}, bool keepdim = false);
Tensor Var(const Tensor& x, absl::Span<const int64_t> dims, int64_t correction, bool keepdim);
Tensor Std(const Tensor& x, absl::Span<const int64_t> dims, int64_t correction, bool keepdim);
Tensor Norm(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim);
// {largest values along dim, their first indices as s64}.
std::pair<Tensor, Tensor> MaxAlong(const Tensor& x, int64_t dim, bool keepdim);
Tensor ArgMax(const Tensor& x, std::optional<int64_t> dim, bool keepdim);
// g summed over what broadcasting stretched, and converted to the dtype: the gradient of an operand
// of this shape.
Tensor SumToShape(const Tensor& g, const Shape& shape);

// --- shape
Tensor Reshape(const Tensor& x, absl::Span<const int64_t> dims);  // one dim may be -1
Tensor BroadcastTo(const Tensor& x, absl::Span<const int64_t> dims);
Tensor Permute(const Tensor& x, absl::Span<const int64_t> dims);
Tensor Transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor Slice(const Tensor& x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
             absl::Span<const int64_t> strides);
Tensor Narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor PadZeros(const Tensor& x, absl::Span<const int64_t> low, absl::Span<const int64_t> high,
                absl::Span<const int64_t> interior);
Tensor Flip(const Tensor& x, absl::Span<const int64_t> dims);
Tensor Cat(absl::Span<const Tensor> xs, int64_t dim);
Tensor Squeeze(const Tensor& x, std::optional<int64_t> dim);
Tensor Unsqueeze(const Tensor& x, int64_t dim);
Tensor Flatten(const Tensor& x, int64_t start_dim, int64_t end_dim);
Tensor IndexSelect(const Tensor& x, int64_t dim, const Tensor& index);
// Elements at positions along dim, in an index of x's rank; and x with source at such, or added.
Tensor Gather(const Tensor& x, int64_t dim, const Tensor& index);
Tensor Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor ScatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
// x with the slices of source added, or in place of its own, at the positions of a rank-1 index
// along dim.
Tensor IndexAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
Tensor IndexCopy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
// How many true elements precede each; a number of them other than count fails the run.
Tensor MaskPositions(const Tensor& mask, int64_t count);
Tensor CumSum(const Tensor& x, int64_t dim);
// {elements in order along dim, where they stood as s64}; TopK: the first k of them.
std::pair<Tensor, Tensor> Sort(const Tensor& x, int64_t dim, bool descending);
std::pair<Tensor, Tensor> TopK(const Tensor& x, int64_t k, int64_t dim, bool largest);
Tensor Select(const Tensor& x, int64_t dim, int64_t index);  // without the dim
Tensor OneHot(const Tensor& index, int64_t classes, DType dtype);

// --- linear algebra, convolution, pooling
// Sums of products: "bij,bjk->bik". Throws InvalidArgument naming the place in the equation.
Tensor Einsum(std::string_view equation, absl::Span<const Tensor> xs);
Tensor MatMul(const Tensor& x, const Tensor& y);
Tensor Linear(const Tensor& x, const Tensor& weight);  // weight [out, in]
using Pair = std::array<int64_t, 2>;
std::string PairText(const Pair& p);  // "2x3"
struct Conv2dAttrs {
  Pair stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Conv2dAttrs& attrs);
struct Pool2dAttrs {
  Pair kernel, stride, padding{0, 0};
  bool ceil_mode = false;  // windows that lie in x only in part, at its end, count, too
};
Tensor MaxPool2d(const Tensor& x, const Pool2dAttrs& attrs);
// Means of windows; unless count_padding, of the elements in them that are no padding.
Tensor AvgPool2d(const Tensor& x, const Pool2dAttrs& attrs, bool count_padding);
// Means of windows as even as they can be that give this height and width.
Tensor AdaptiveAvgPool2d(const Tensor& x, Pair size);

// [1, C, 1, ...]: the dims of one number a channel, or a class, beside x of rank 2 or more.
Dims ChannelDims(const Shape& x);

// --- normalisation
// To mean 0 and variance 1 over the dims from `axis` on.
Tensor LayerNorm(const Tensor& x, int64_t axis, double eps);
// The same over all dims but the channels (dim 1), with the mean and variance of each channel.
struct Moments {
  Tensor y, mean, variance;
};
Moments BatchNorm(const Tensor& x, double eps);
// The same over groups of channels of each sample.
Tensor GroupNorm(const Tensor& x, int64_t groups, double eps);
// x / sqrt(mean of x^2 + eps) over the dims from `axis` on.
Tensor RmsNorm(const Tensor& x, int64_t axis, double eps);

// --- softmax and losses
Tensor Softmax(const Tensor& x, int64_t dim);
Tensor LogSoftmax(const Tensor& x, int64_t dim);
enum class Reduction : uint8_t { kNone, kMean, kSum };
// logits [N, C, ...] and class indices [N, ...]; a label outside [0, C) fails the run.
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, Reduction reduction);
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, Reduction reduction);
// What else losses over classes take. Cross entropy alone smooths, and takes probabilities, floats
// of the shape of logits, as target.
struct ClassOptions {
  Tensor weight;                        // of each class, [C]; undefined: 1
  std::optional<int64_t> ignore_index;  // a label that does not count
  double label_smoothing = 0;           // in [0, 1]: the share of an even distribution
  bool plain() const { return !weight.defined() && !ignore_index && label_smoothing == 0; }
};
Tensor CrossEntropy(const Tensor& logits, const Tensor& target, const ClassOptions& options,
                    Reduction reduction);
Tensor NllLoss(const Tensor& log_probs, const Tensor& target, const ClassOptions& options,
               Reduction reduction);
Tensor MseLoss(const Tensor& x, const Tensor& y, Reduction reduction);
// Targets in [0, 1]; weights are undefined or broadcast.
Tensor BceWithLogits(const Tensor& logits, const Tensor& target, const Tensor& weight,
                     const Tensor& pos_weight, Reduction reduction);
Tensor BinaryCrossEntropy(const Tensor& x, const Tensor& target, const Tensor& weight,
                          Reduction reduction);
Tensor L1Loss(const Tensor& x, const Tensor& y, Reduction reduction);
Tensor SmoothL1Loss(const Tensor& x, const Tensor& y, const Operand& beta, Reduction reduction);
Tensor HuberLoss(const Tensor& x, const Tensor& y, const Operand& delta, Reduction reduction);
Tensor KlDiv(const Tensor& log_probs, const Tensor& target, bool log_target, Reduction reduction);

// --- creation and random numbers
Tensor Full(absl::Span<const int64_t> dims, const Value& value,
            backend::Device device);  // value: a number's slot
Tensor FullConstant(const Shape& shape, double value,
                    backend::Device device);  // the value is part of the program
Tensor Arange(int64_t count, DType dtype, backend::Device device);  // 0, 1, ..., count - 1
// s64 array of these dims whose elements are their position along dim.
Tensor Positions(absl::Span<const int64_t> dims, int64_t dim, backend::Device device);
Tensor Rand(absl::Span<const int64_t> dims, DType dtype,
            backend::Device device);  // uniform in [0, 1)
Tensor Randn(absl::Span<const int64_t> dims, DType dtype,
             backend::Device device);  // standard normal
// Integers in [low, high); and those below count in a random order.
Tensor RandomIntegers(int64_t low, int64_t high, absl::Span<const int64_t> dims, DType dtype,
                      backend::Device device);
Tensor RandomPermutation(int64_t count, DType dtype, backend::Device device);
Tensor Dropout(const Tensor& x, const Number& p);

// Indices in at least 32 bits, so that sizes are numbers of their type.
lowering::Op WideIndex(lowering::Op index);

// --- dims of users: negative ones count from the end; throws OutOfRange naming op and dim.
int64_t NormalizeDim(std::string_view op, int64_t dim, int64_t rank);
Dims NormalizeDims(std::string_view op, absl::Span<const int64_t> dims,
                   int64_t rank);  // empty = all

}  // namespace lazuli::lazy
