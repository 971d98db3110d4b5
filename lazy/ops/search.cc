// Where numbers stand among others: binary search, sets, histograms; and positions as numbers per
// dim.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/require.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

Value Whole(int64_t v) { return Constant(static_cast<double>(v), DType::kS64); }

DType TypeOfBoth(std::string_view op, const Tensor& x, const Tensor& y) {
  const absl::StatusOr<DType> common = CommonType(x.shape(), y.shape());
  if (!common.ok()) ThrowRecordError(op, common.status());
  return *common;
}

// The first position in [0, n], in each row of sorted [..., n], whose element is not below each of
// values [..., m], or above it if `right`. Comparisons are PyTorch's, so that NaN goes where it
// does.
Tensor FirstPositions(const Tensor& sorted, const Tensor& values, bool right) {
  const int64_t n = sorted.dim(sorted.rank() - 1);
  const bool one_row = sorted.rank() == 1;
  const Shape shape(DType::kS64, values.shape().dims());
  Tensor low = FullConstant(shape, 0, values.device());
  Tensor high = FullConstant(shape, static_cast<double>(n), values.device());
  for (int step = std::bit_width(static_cast<uint64_t>(n)); step > 0; --step) {
    const Tensor middle = RightShift(low + high, Whole(1));
    const Tensor at = Minimum(middle, Whole(n - 1));
    const Tensor element =
        one_row ? Reshape(IndexSelect(sorted, 0, Reshape(at, {-1})), values.shape().dims())
                : Gather(sorted, -1, at);
    const Tensor after = LogicalNot(right ? Gt(element, values) : Ge(element, values));
    const Tensor open = Lt(low, high);
    low = Where(LogicalAnd(open, after), middle + 1.0, low);
    high = Where(LogicalAnd(open, LogicalNot(after)), middle, high);
  }
  return low;
}

}  // namespace

Tensor Searchsorted(const Tensor& sorted_sequence, const Tensor& x, bool out_int32, bool right,
                    const std::optional<std::string>& side, const Tensor& sorter) {
  static constexpr char kOp[] = "searchsorted";
  if (side && *side != "left" && *side != "right") {
    ThrowRecordError(kOp, InvalidArgument("side can only be 'left' or 'right' but got ", *side));
  }
  if (side && right && *side == "left") {
    ThrowRecordError(kOp, InvalidArgument("side and right can't be set to opposites, got side of "
                                          "left while right was True"));
  }
  if (sorted_sequence.rank() == 0) {
    ThrowRecordError(kOp,
                     InvalidArgument("the sequence must have a dim, is ", sorted_sequence.shape()));
  }
  const auto lead = [](const Tensor& t) {
    return t.shape().dims().first(At(std::max<int64_t>(t.rank() - 1, 0)));
  };
  if (sorted_sequence.rank() != 1 &&
      (sorted_sequence.rank() != x.rank() || lead(sorted_sequence) != lead(x))) {
    ThrowRecordError(kOp,
                     InvalidArgument("the sequence must have one dim, or the dims of x but the "
                                     "last: ",
                                     sorted_sequence.shape(), " and ", x.shape()));
  }
  if (IsComplex(sorted_sequence.dtype()) || IsComplex(x.dtype()))
    ThrowRecordError(kOp, WrongType("takes real numbers, not ", x.shape()));
  if (sorter.defined() && sorter.shape().dims() != sorted_sequence.shape().dims()) {
    ThrowRecordError(kOp, InvalidArgument("the sorter must have the dims of the sequence: ",
                                          sorter.shape(), " and ", sorted_sequence.shape()));
  }
  if (sorter.defined() && sorter.dtype() != DType::kS64)
    ThrowRecordError(kOp, WrongType("the sorter must be of s64, is ", sorter.shape()));
  const FunctionScope function(kOp);
  const DType common = TypeOfBoth(kOp, sorted_sequence, x);
  Tensor sorted = To(Detach(sorted_sequence), common);
  if (sorter.defined() && sorted.shape().num_elements() != 0) sorted = Gather(sorted, -1, sorter);
  const Tensor found =
      FirstPositions(sorted, To(Detach(x), common), right || (side && *side == "right"));
  return out_int32 ? To(found, DType::kS32) : found;
}
Tensor Searchsorted(const Tensor& sorted_sequence, const Number& x, bool out_int32, bool right,
                    const std::optional<std::string>& side, const Tensor& sorter) {
  if (sorted_sequence.rank() != 1) {
    ThrowRecordError("searchsorted",
                     InvalidArgument("x can be a number only for a sequence of one dim, not ",
                                     sorted_sequence.shape()));
  }
  const Value number = x.As(x.TypeBeside(sorted_sequence.dtype()));
  return Searchsorted(sorted_sequence, Full({}, number, sorted_sequence.device()), out_int32, right,
                      side, sorter);
}

Tensor Bucketize(const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) {
  if (boundaries.rank() != 1) {
    ThrowRecordError("bucketize",
                     InvalidArgument("boundaries must have one dim, are ", boundaries.shape()));
  }
  return Searchsorted(boundaries, x, out_int32, right, std::nullopt, Tensor());
}
Tensor Bucketize(const Number& x, const Tensor& boundaries, bool out_int32, bool right) {
  const Value number = x.As(x.TypeBeside(boundaries.dtype()));
  return Bucketize(Full({}, number, boundaries.device()), boundaries, out_int32, right);
}

Tensor Isin(const Tensor& elements, const Tensor& test_elements, bool /*assume_unique*/,
            bool invert) {
  static constexpr char kOp[] = "isin";
  constexpr int64_t kFew = 16;  // fewer comparisons than a search takes
  for (const Tensor* t : {&elements, &test_elements}) {
    if (t->dtype() == DType::kPred || IsComplex(t->dtype()))
      ThrowRecordError(kOp, InvalidArgument("takes integers or floats, not ", t->shape()));
  }
  const FunctionScope function(kOp);
  const DType common = TypeOfBoth(kOp, elements, test_elements);
  const Tensor x = To(Detach(elements), common);
  const Tensor set = Reshape(To(Detach(test_elements), common), {-1});
  const int64_t n = set.dim(0);
  Tensor found;
  if (n == 0) {
    found = FullConstant(Shape(DType::kPred, x.shape().dims()), 0, x.device());
  } else if (n <= kFew) {
    found = Any(Eq(Unsqueeze(x, -1), set), {-1});
  } else {
    const Tensor sorted = Sort(set, 0).first;
    const Tensor at = Minimum(FirstPositions(sorted, x, /*right=*/false), Whole(n - 1));
    found = Eq(Reshape(IndexSelect(sorted, 0, Reshape(at, {-1})), x.shape().dims()), x);
  }
  return invert ? LogicalNot(found) : found;
}
Tensor Isin(const Tensor& elements, const Number& test_element, bool assume_unique, bool invert) {
  const Value number = test_element.As(test_element.TypeBeside(elements.dtype()));
  return Isin(elements, Full({}, number, elements.device()), assume_unique, invert);
}
Tensor Isin(const Number& element, const Tensor& test_elements, bool assume_unique, bool invert) {
  const Value number = element.As(element.TypeBeside(test_elements.dtype()));
  return Isin(Full({}, number, test_elements.device()), test_elements, assume_unique, invert);
}

Tensor Histc(const Tensor& in, int64_t bins, const Number& low, const Number& high) {
  static constexpr char kOp[] = "histc";
  if (!IsFloat(in.dtype()))
    ThrowRecordError(kOp, Unimplemented("is not implemented for ", in.shape()));
  if (bins <= 0) ThrowRecordError(kOp, InvalidArgument("bins must be > 0, is ", bins));
  const double first = low.as_double(), last = high.as_double();
  if (!std::isfinite(first) || !std::isfinite(last))
    ThrowRecordError(kOp, InvalidArgument("range of [", first, ", ", last, "] is not finite"));
  if (first > last) ThrowRecordError(kOp, InvalidArgument("max must be larger than min"));
  const FunctionScope function(kOp);
  const Tensor x = Reshape(Detach(in), {-1});
  Tensor from = Full({}, low.As(x.dtype()), x.device());
  Tensor to = Full({}, high.As(x.dtype()), x.device());
  Tensor same;  // whether all of x is one number, which lies in the middle then
  if (first == last) {
    if (x.dim(0) > 0) {
      const Tensor finite = RequireAll(x, Requirement::kFiniteRange, Isfinite(x));
      std::tie(from, to) = std::pair(Amin(finite), Amax(finite));
    }
    same = Eq(from, to);
    from = from - To(same, x.dtype());
    to = to + To(same, x.dtype());
  }
  const auto count = static_cast<double>(bins);
  Tensor place = (x - from) * count / (to - from);
  // A huge number is not moved by 1.
  if (same.defined()) place = Where(same, Constant(count / 2, place.dtype()), place);
  const Tensor inside = LogicalAnd(Ge(x, from), Le(x, to));
  const Tensor safe = Where(inside, place, Constant(0, place.dtype()));
  const Tensor at = Minimum(To(safe, DType::kS64), Whole(bins - 1));
  const Tensor none = FullConstant(Shape(DType::kS64, {bins}), 0, x.device());
  return To(IndexAdd(none, 0, at, To(inside, DType::kS64)), x.dtype());
}

Tensors UnravelIndex(const Tensor& indices, absl::Span<const int64_t> shape) {
  constexpr char kOp[] = "unravel_index";
  if (!IsIntegral(indices.dtype()))
    ThrowRecordError(kOp, WrongType("takes integers, not ", indices.shape()));
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; })) {
    ThrowRecordError(
        kOp, InvalidArgument("shape cannot have negative values, is (", Join(shape, ", "), ")"));
  }
  Tensors places;
  const Tensor wide = To(indices, DType::kS64);
  int64_t below = 1;
  for (std::size_t d = shape.size(); d-- > 0; below *= shape[d]) {
    const auto number = [&](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
    const Tensor above = below <= 1 ? wide : FloorDivide(wide, number(below));
    places.push_back(shape[d] == 0 ? above : Remainder(above, number(shape[d])));
  }
  std::reverse(places.begin(), places.end());
  return places;
}

// --- rows of elements

Tensor CartesianProd(absl::Span<const Tensor> xs) {
  constexpr char kOp[] = "cartesian_prod";
  if (xs.empty()) ThrowRecordError(kOp, InvalidArgument("needs at least one tensor"));
  for (const Tensor& x : xs) {
    if (x.rank() != 1) ThrowRecordError(kOp, InvalidArgument("takes rows [n], not ", x.shape()));
  }
  if (xs.size() == 1) return xs[0];
  Tensors columns;
  for (const Tensor& grid : Meshgrid(xs, "ij")) columns.push_back(Reshape(grid, {-1}));
  return Stack(columns, 1);
}

Tensor Combinations(const Tensor& x, int64_t r, bool with_replacement) {
  static constexpr char kOp[] = "combinations";
  if (x.rank() != 1) ThrowRecordError(kOp, InvalidArgument("takes a row [n], not ", x.shape()));
  if (r < 0) ThrowRecordError(kOp, InvalidArgument("r must not be negative, is ", r));
  constexpr int64_t kMost = 32;  // dims of the grid that they are chosen from
  if (r > kMost) ThrowRecordError(kOp, InvalidArgument("r must be at most ", kMost, ", is ", r));
  const int64_t n = x.dim(0);
  const Shape none(x.dtype(), {0});
  const int64_t from = with_replacement ? n + r - 1 : n;  // r of so many
  if (r == 0) return FullConstant(none, 0, x.device());
  if (from < r) return Reshape(BroadcastTo(Unsqueeze(Narrow(x, 0, 0, 0), 1), {0, r}), {0, r});
  double size = 1;
  int64_t count = 1;
  for (int64_t i = 0; i < r; ++i) {
    size *= static_cast<double>(n);
    if (size > 0x1p40)
      ThrowRecordError(kOp, InvalidArgument(x.shape(), " has too many combinations of ", r));
    count = count * (from - i) / (i + 1);
  }
  const FunctionScope function(kOp);
  const Dims dims(At(r), n);
  Tensor mask = FullConstant(Shape(DType::kPred, dims), 1, x.device());
  for (int64_t d = 0; d + 1 < r; ++d) {
    const Tensor one = Positions(dims, d, x.device()), next = Positions(dims, d + 1, x.device());
    mask = LogicalAnd(mask, with_replacement ? Le(one, next) : Lt(one, next));
  }
  const Tensor rows = NonzeroStatic(mask, count, 0);
  return Reshape(IndexSelect(x, 0, Reshape(rows, {-1})), {count, r});
}

}  // namespace lazuli::lazy
