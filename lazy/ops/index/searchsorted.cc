// Where numbers stand among sorted ones (searchsorted, bucketize), and whether they are among others (isin).
#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
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

}  // namespace lazuli::lazy
