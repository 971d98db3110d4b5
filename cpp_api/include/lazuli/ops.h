// Operations. Shapes broadcast and dtypes promote as PyTorch's do; results are recorded, not
// computed.
//
// Errors: shapes, dtypes or arguments that do not fit throw Error(kInvalidArgument) or
// Error(kOutOfRange) at the call, with the caller's line. Dims may be negative: they count from the
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

// --- elementwise, one operand. Float functions take integers as f32.
LAZULI_API Tensor abs(const Tensor& x, LAZULI_LOC);   // |x|
LAZULI_API Tensor neg(const Tensor& x, LAZULI_LOC);   // -x
LAZULI_API Tensor sign(const Tensor& x, LAZULI_LOC);  // -1, 0, 1
LAZULI_API Tensor floor(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor ceil(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor round(const Tensor& x, LAZULI_LOC);  // halves to even
LAZULI_API Tensor sqrt(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor rsqrt(const Tensor& x, LAZULI_LOC);  // 1 / sqrt(x)
LAZULI_API Tensor exp(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor expm1(const Tensor& x, LAZULI_LOC);  // exp(x) - 1, exact near 0
LAZULI_API Tensor log(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor log1p(const Tensor& x, LAZULI_LOC);    // log(1 + x), exact near 0
LAZULI_API Tensor sigmoid(const Tensor& x, LAZULI_LOC);  // 1 / (1 + exp(-x))
LAZULI_API Tensor tanh(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor sin(const Tensor& x, LAZULI_LOC);          // radians
LAZULI_API Tensor cos(const Tensor& x, LAZULI_LOC);          // radians
LAZULI_API Tensor erf(const Tensor& x, LAZULI_LOC);          // Gauss error function
LAZULI_API Tensor logical_not(const Tensor& x, LAZULI_LOC);  // whether x is 0
LAZULI_API Tensor bitwise_not(const Tensor& x, LAZULI_LOC);  // integers and pred
LAZULI_API Tensor relu(const Tensor& x, LAZULI_LOC);         // max(x, 0)
LAZULI_API Tensor square(const Tensor& x, LAZULI_LOC);       // x * x
LAZULI_API Tensor reciprocal(const Tensor& x, LAZULI_LOC);   // 1 / x

// --- activations: elementwise, but for prelu and glu. Numbers may change without a compilation.
// x times the normal distribution's probability of a value below x; by its approximation with tanh
// if asked for.
LAZULI_API Tensor gelu(const Tensor& x, bool tanh = false, LAZULI_LOC);
LAZULI_API Tensor silu(const Tensor& x, LAZULI_LOC);  // x * sigmoid(x)
LAZULI_API Tensor leaky_relu(const Tensor& x, const Scalar& negative_slope = 0.01,
                             LAZULI_LOC);  // slope * x where x is negative
LAZULI_API Tensor elu(const Tensor& x, const Scalar& alpha = 1.0,
                      LAZULI_LOC);  // alpha * (exp(x) - 1) where x is negative
LAZULI_API Tensor celu(const Tensor& x, const Scalar& alpha = 1.0,
                       LAZULI_LOC);  // alpha * (exp(x / alpha) - 1) where x is negative
LAZULI_API Tensor selu(const Tensor& x, LAZULI_LOC);
// log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.
LAZULI_API Tensor softplus(const Tensor& x, const Scalar& beta = 1.0,
                           const Scalar& threshold = 20.0, LAZULI_LOC);
LAZULI_API Tensor log_sigmoid(const Tensor& x, LAZULI_LOC);
// x limited to [low, high]; unlike clamp's, the gradient at the bounds is 0.
LAZULI_API Tensor hardtanh(const Tensor& x, const Scalar& low = -1.0, const Scalar& high = 1.0,
                           LAZULI_LOC);
LAZULI_API Tensor relu6(const Tensor& x, LAZULI_LOC);        // x limited to [0, 6]
LAZULI_API Tensor hardsigmoid(const Tensor& x, LAZULI_LOC);  // relu6(x + 3) / 6
LAZULI_API Tensor hardswish(const Tensor& x, LAZULI_LOC);    // x * hardsigmoid(x)
LAZULI_API Tensor mish(const Tensor& x, LAZULI_LOC);         // x * tanh(softplus(x))
LAZULI_API Tensor softsign(const Tensor& x, LAZULI_LOC);     // x / (1 + |x|)
// weight * x where x is negative; one weight, or one per channel (dim 1).
LAZULI_API Tensor prelu(const Tensor& x, const Tensor& weight, LAZULI_LOC);
// The first half of x along dim times the sigmoid of the second.
LAZULI_API Tensor glu(const Tensor& x, std::int64_t dim = -1, LAZULI_LOC);

LAZULI_API Tensor isnan(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor isinf(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor isfinite(const Tensor& x, LAZULI_LOC);
// The number where the mask is true; x keeps its dtype.
LAZULI_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value, LAZULI_LOC);

// --- elementwise, two operands (tensor and tensor, or tensor and number)
LAZULI_API Tensor add(const Operand& x, const Operand& y);
LAZULI_API Tensor sub(const Operand& x, const Operand& y);
LAZULI_API Tensor mul(const Operand& x, const Operand& y);
LAZULI_API Tensor div(const Operand& x, const Operand& y);           // true division
LAZULI_API Tensor fmod(const Operand& x, const Operand& y);          // sign of x
LAZULI_API Tensor remainder(const Operand& x, const Operand& y);     // sign of y
LAZULI_API Tensor floor_divide(const Operand& x, const Operand& y);  // rounded down
LAZULI_API Tensor maximum(const Operand& x, const Operand& y);
LAZULI_API Tensor minimum(const Operand& x, const Operand& y);
LAZULI_API Tensor atan2(const Operand& x, const Operand& y);
// Integers stay integers, and wrap, unless the exponent is a float.
LAZULI_API Tensor pow(const Operand& x, const Operand& y);
LAZULI_API Tensor pow(const Tensor& x, const Scalar& exponent,
                      LAZULI_LOC);  // the exponent is part of the program
// Of what is other than 0; they give pred.
LAZULI_API Tensor logical_and(const Operand& x, const Operand& y);
LAZULI_API Tensor logical_or(const Operand& x, const Operand& y);
LAZULI_API Tensor logical_xor(const Operand& x, const Operand& y);
// Of integers and pred.
LAZULI_API Tensor bitwise_and(const Operand& x, const Operand& y);
LAZULI_API Tensor bitwise_or(const Operand& x, const Operand& y);
LAZULI_API Tensor bitwise_xor(const Operand& x, const Operand& y);
// Of integers; a count outside of [0, number of bits) shifts everything out.
LAZULI_API Tensor bitwise_left_shift(const Operand& x, const Operand& y);
LAZULI_API Tensor bitwise_right_shift(const Operand& x, const Operand& y);
LAZULI_API Tensor eq(const Operand& x, const Operand& y);
LAZULI_API Tensor ne(const Operand& x, const Operand& y);
LAZULI_API Tensor lt(const Operand& x, const Operand& y);
LAZULI_API Tensor le(const Operand& x, const Operand& y);
LAZULI_API Tensor gt(const Operand& x, const Operand& y);
LAZULI_API Tensor ge(const Operand& x, const Operand& y);
LAZULI_API Tensor where(const Tensor& condition, const Operand& on_true, const Operand& on_false);
// x limited to [low, high], one of which may be absent.
LAZULI_API Tensor clamp(const Tensor& x, const std::optional<Scalar>& low = std::nullopt,
                        const std::optional<Scalar>& high = std::nullopt, LAZULI_LOC);

inline Tensor operator+(const Operand& x, const Operand& y) { return add(x, y); }
inline Tensor operator-(const Operand& x, const Operand& y) { return sub(x, y); }
inline Tensor operator*(const Operand& x, const Operand& y) { return mul(x, y); }
inline Tensor operator/(const Operand& x, const Operand& y) { return div(x, y); }
inline Tensor operator-(const Operand& x) {
  return x.tensor() != nullptr ? neg(*x.tensor(), x.loc()) : sub(0, x);
}
inline Tensor operator==(const Operand& x, const Operand& y) { return eq(x, y); }
inline Tensor operator!=(const Operand& x, const Operand& y) { return ne(x, y); }
inline Tensor operator<(const Operand& x, const Operand& y) { return lt(x, y); }
inline Tensor operator<=(const Operand& x, const Operand& y) { return le(x, y); }
inline Tensor operator>(const Operand& x, const Operand& y) { return gt(x, y); }
inline Tensor operator>=(const Operand& x, const Operand& y) { return ge(x, y); }

// --- reductions; no dims = all. The reduced dims vanish, or stay as 1 with keepdim. mean, var,
// std, norm and logsumexp take floats; positions are s64, the first of equals; all and any give
// pred.
LAZULI_API Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                      LAZULI_LOC);  // integers to s64
LAZULI_API Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false, LAZULI_LOC);
LAZULI_API Tensor prod(const Tensor& x, const Dims& dims = {}, bool keepdim = false, LAZULI_LOC);
LAZULI_API Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                       LAZULI_LOC);  // NaN if there is one
LAZULI_API Tensor amin(const Tensor& x, const Dims& dims = {}, bool keepdim = false, LAZULI_LOC);
LAZULI_API std::pair<Tensor, Tensor> max(const Tensor& x, std::int64_t dim, bool keepdim = false,
                                         LAZULI_LOC);  // values, indices
LAZULI_API Tensor argmax(const Tensor& x, std::optional<std::int64_t> dim = std::nullopt,
                         bool keepdim = false, LAZULI_LOC);
LAZULI_API std::pair<Tensor, Tensor> min(const Tensor& x, std::int64_t dim, bool keepdim = false,
                                         LAZULI_LOC);  // values, indices
LAZULI_API Tensor argmin(const Tensor& x, std::optional<std::int64_t> dim = std::nullopt,
                         bool keepdim = false, LAZULI_LOC);
// Whether all or some elements are other than 0.
LAZULI_API Tensor all(const Tensor& x, const Dims& dims = {}, bool keepdim = false, LAZULI_LOC);
LAZULI_API Tensor any(const Tensor& x, const Dims& dims = {}, bool keepdim = false, LAZULI_LOC);
// Sum of squares of differences from the mean, divided by the number of elements - correction.
LAZULI_API Tensor var(const Tensor& x, const Dims& dims = {}, std::int64_t correction = 1,
                      bool keepdim = false, LAZULI_LOC);
LAZULI_API Tensor std(const Tensor& x, const Dims& dims = {}, std::int64_t correction = 1,
                      bool keepdim = false, LAZULI_LOC);  // sqrt(var)
LAZULI_API Tensor norm(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                       LAZULI_LOC);  // sqrt of the sum of squares
LAZULI_API Tensor logsumexp(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
                            LAZULI_LOC);  // log of the sum of exp, without overflow

// --- shape, of any dtype. Results have their own memory.
LAZULI_API Tensor reshape(const Tensor& x, const Dims& dims, LAZULI_LOC);  // one dim may be -1
// One dim in place of start_dim to end_dim.
LAZULI_API Tensor flatten(const Tensor& x, std::int64_t start_dim = 0, std::int64_t end_dim = -1,
                          LAZULI_LOC);
// Without a dim of 1, or without all of them; and with a new one.
LAZULI_API Tensor squeeze(const Tensor& x, std::optional<std::int64_t> dim = std::nullopt,
                          LAZULI_LOC);
LAZULI_API Tensor unsqueeze(const Tensor& x, std::int64_t dim, LAZULI_LOC);
LAZULI_API Tensor broadcast_to(const Tensor& x, const Dims& dims, LAZULI_LOC);
// Dims exchanged; and dim i of the result being dim dims[i] of x.
LAZULI_API Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1, LAZULI_LOC);
LAZULI_API Tensor permute(const Tensor& x, const Dims& dims, LAZULI_LOC);
// Elements start to start + length along dim; out of range is Error(kOutOfRange).
LAZULI_API Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length,
                         LAZULI_LOC);
LAZULI_API Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index,
                         LAZULI_LOC);  // without the dim
LAZULI_API Tensor flip(const Tensor& x, const Dims& dims, LAZULI_LOC);
// Joined along a dim that is there, the others being equal, and along a new one.
LAZULI_API Tensor cat(const std::vector<Tensor>& xs, std::int64_t dim = 0, LAZULI_LOC);
LAZULI_API Tensor stack(const std::vector<Tensor>& xs, std::int64_t dim = 0, LAZULI_LOC);
// The slices of x along dim at these positions: integers [n], of which one outside fails the run.
LAZULI_API Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index, LAZULI_LOC);
// The lower or upper triangle of the last two dims, 0 elsewhere; `diagonal` counts upwards.
LAZULI_API Tensor tril(const Tensor& x, std::int64_t diagonal = 0, LAZULI_LOC);
LAZULI_API Tensor triu(const Tensor& x, std::int64_t diagonal = 0, LAZULI_LOC);
// Pieces along dim, of `size` or of a size that gives `chunks`; the last one may be smaller.
LAZULI_API std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0,
                                     LAZULI_LOC);
LAZULI_API std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0,
                                     LAZULI_LOC);
// Integers [...] to s64 [..., classes]: 1 at each index, 0 elsewhere.
LAZULI_API Tensor one_hot(const Tensor& index, std::int64_t classes, LAZULI_LOC);

// --- positions that are data: integers, and one out of range fails the run
// Elements of x: result[i][j] = x[index[i][j]][j] for dim 0. The index has x's rank, and no more
// elements than x along the other dims.
LAZULI_API Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index, LAZULI_LOC);
// x with source, of the index's dims and x's dtype, at such positions: in place of the elements
// there (the last one where several meet), or added to them.
LAZULI_API Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index,
                          const Tensor& source, LAZULI_LOC);
LAZULI_API Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                              const Tensor& source, LAZULI_LOC);
// The same with the slices of source at the positions along dim of an index [n].
LAZULI_API Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& index,
                             const Tensor& source, LAZULI_LOC);
LAZULI_API Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index,
                            const Tensor& source, LAZULI_LOC);

// --- orders along a dim. Equal elements keep theirs, and NaN is the largest.
LAZULI_API Tensor cumsum(const Tensor& x, std::int64_t dim, LAZULI_LOC);  // integers to s64
// Values, and where they stood (s64).
LAZULI_API std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t dim = -1,
                                          bool descending = false, LAZULI_LOC);
LAZULI_API Tensor argsort(const Tensor& x, std::int64_t dim = -1, bool descending = false,
                          LAZULI_LOC);
// The k largest or smallest, in order.
LAZULI_API std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t dim = -1,
                                          bool largest = true, LAZULI_LOC);

// --- linear algebra and neural networks
// [..., n, k] and [..., k, m] to [..., n, m]; leading dims broadcast, rank 1 is a vector.
LAZULI_API Tensor matmul(const Tensor& x, const Tensor& y, LAZULI_LOC);
// Sums of products by Einstein's convention, "bij,bjk->bik": a letter a dim; those not after the
// arrow are summed over; one that an operand has twice is its diagonal; "..." are leading dims that
// broadcast. Without the arrow the letters that occur once remain, in order of the alphabet.
LAZULI_API Tensor einsum(const std::string& equation, const std::vector<Tensor>& xs, LAZULI_LOC);
// x [..., in], weight [out, in], bias [out] or undefined, to [..., out].
LAZULI_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                         LAZULI_LOC);
struct Conv2dOptions {
  std::pair<std::int64_t, std::int64_t> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
// x [N, C, H, W], weight [O, C / groups, kh, kw], bias [O] or undefined, to [N, O, H', W'] with
// H' = (H + 2 padding - dilation (kh - 1) - 1) / stride + 1, rounded down.
LAZULI_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                         const Conv2dOptions& options = {}, LAZULI_LOC);
// Two numbers, for height and width; one number stands for both.
struct Size2 {
  Size2(int both) : height(both), width(both) {}           // NOLINT(google-explicit-constructor)
  Size2(std::int64_t both) : height(both), width(both) {}  // NOLINT(google-explicit-constructor)
  Size2(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  std::int64_t height, width;
};
// Windows of x [N, C, H, W] to [N, C, H', W']; stride 0 = kernel; padding is at most half of it.
// ceil_mode: windows that begin in x or the padding before it, but do not end there, count, too.
// The largest element; padding never wins.
LAZULI_API Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride = 0, Size2 padding = 0,
                             bool ceil_mode = false, LAZULI_LOC);
// The mean, with padding as zeros or, unless count_include_pad, left out.
LAZULI_API Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride = 0, Size2 padding = 0,
                             bool ceil_mode = false, bool count_include_pad = true, LAZULI_LOC);
// Means of windows that give this height and width, whatever x has.
LAZULI_API Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size, LAZULI_LOC);
// exp(x) over its sum along dim, stable; and the logarithm of that.
LAZULI_API Tensor softmax(const Tensor& x, std::int64_t dim, LAZULI_LOC);
LAZULI_API Tensor log_softmax(const Tensor& x, std::int64_t dim, LAZULI_LOC);
// Zeroes each element with probability p and scales the rest by 1 / (1 - p).
LAZULI_API Tensor dropout(const Tensor& x, double p, LAZULI_LOC);

// --- creation. No dim may be negative.
LAZULI_API Tensor zeros(const Dims& dims, DType dtype = kFloat32, const Device& device = Device(),
                        LAZULI_LOC);
LAZULI_API Tensor ones(const Dims& dims, DType dtype = kFloat32, const Device& device = Device(),
                       LAZULI_LOC);
LAZULI_API Tensor full(const Dims& dims, const Scalar& value, DType dtype = kFloat32,
                       const Device& device = Device(), LAZULI_LOC);
LAZULI_API Tensor zeros_like(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor ones_like(const Tensor& x, LAZULI_LOC);
LAZULI_API Tensor arange(const Scalar& end, DType dtype = kInt64, const Device& device = Device(),
                         LAZULI_LOC);
// `steps` numbers from start to end.
LAZULI_API Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps,
                           DType dtype = kFloat32, const Device& device = Device(), LAZULI_LOC);
LAZULI_API Tensor eye(std::int64_t n, DType dtype = kFloat32, const Device& device = Device(),
                      LAZULI_LOC);
// A rank-0 constant of the program: changing it recompiles, but the compiler may use its value.
LAZULI_API Tensor constant(double value, DType dtype = kFloat32, const Device& device = Device(),
                           LAZULI_LOC);

// --- random numbers: Philox 4x32-10, the same on every device and wherever a sync falls
LAZULI_API void manual_seed(std::uint64_t seed);
LAZULI_API std::uint64_t
random_seed();  // 64 random bits for generators on the host; advances as a random op does
LAZULI_API Tensor rand(const Dims& dims, DType dtype = kFloat32, const Device& device = Device(),
                       LAZULI_LOC);  // [0, 1)
LAZULI_API Tensor randn(const Dims& dims, DType dtype = kFloat32, const Device& device = Device(),
                        LAZULI_LOC);                        // normal
LAZULI_API Tensor rand_like(const Tensor& x, LAZULI_LOC);   // rand of x's dims, dtype, device
LAZULI_API Tensor randn_like(const Tensor& x, LAZULI_LOC);  // likewise
LAZULI_API Tensor randint(std::int64_t low, std::int64_t high, const Dims& dims,
                          DType dtype = kInt64, const Device& device = Device(),
                          LAZULI_LOC);  // [low, high), which the dtype must hold
// The integers below n in a random order.
LAZULI_API Tensor randperm(std::int64_t n, DType dtype = kInt64, const Device& device = Device(),
                           LAZULI_LOC);

}  // namespace lazuli
