// Products that are dots once their operands are brought into form: ragged-dot, of groups of rows,
// and scaled-dot, of blocks that share a scale.

#include <algorithm>

#include "absl/algorithm/container.h"

#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/monoid.h"
#include "ir/hlo/shapes/shape_inference.h"

namespace lazuli::hlo {
namespace {

absl::StatusOr<Literal> Dot(const Literal& x, const Literal& y, const DotAttrs& attrs,
                            DType dtype) {
  LAZULI_ASSIGN_OR_RETURN(Shape shape, InferShape(Opcode::kDot, {&x.shape(), &y.shape()}, attrs));
  shape.set_dtype(dtype);
  const Lone dot(Opcode::kDot, shape, {&x, &y}, attrs);
  return EvaluateDot(*dot, {&x, &y});
}

// Part of an array: `size` positions of one dimension, from `start`.
struct ArraySlice {
  const Literal& whole;
  int64_t dimension, start, size;
  Shape shape() const {
    Shape part(whole.shape().dtype(), whole.shape().dims());
    part.set_dim(dimension, size);
    return part;
  }
  int64_t offset() const {
    return start * ByteStrides(whole.shape())[static_cast<std::size_t>(dimension)];
  }
};

Literal Read(const ArraySlice& slice) {
  Literal result = Literal::Uninitialized(slice.shape());
  CopyStrided(ByteWidth(result.shape().dtype()), result.shape().dims(),
              slice.whole.raw() + slice.offset(), ByteStrides(slice.whole.shape()),
              result.mutable_raw(), ByteStrides(result.shape()));
  return result;
}

void Write(const Literal& value, Literal& whole, int64_t dimension, int64_t start) {
  const ArraySlice slice{whole, dimension, start, value.shape().dim(dimension)};
  CopyStrided(ByteWidth(value.shape().dtype()), value.shape().dims(), value.raw(),
              ByteStrides(value.shape()), whole.mutable_raw() + slice.offset(),
              ByteStrides(whole.shape()));
}

Literal Without(const Literal& x, int64_t dimension) {
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.erase(dims.begin() + dimension);
  return x.Reshaped(dims);
}

int64_t IndexOf(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) - dims.begin();
}

// Where a kept dimension of x lies in a dot's result: behind the batch, among x's others.
int64_t ResultDimension(const RaggedDotAttrs& attrs, int64_t dimension) {
  auto at = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  for (int64_t d = 0; d < dimension; ++d)
    at += !absl::c_linear_search(attrs.lhs_batch_dims, d) &&
          !absl::c_linear_search(attrs.lhs_contracting_dims, d);
  return at;
}

// The dot of one group, whose y no longer has the group's dimension.
DotAttrs OfGroup(const RaggedDotAttrs& attrs) {
  DotAttrs dot{attrs.lhs_batch_dims,
               attrs.lhs_contracting_dims,
               attrs.rhs_batch_dims,
               attrs.rhs_contracting_dims,
               "",
               ""};
  for (Dims* dims : {&dot.rhs_batch_dims, &dot.rhs_contracting_dims}) {
    for (int64_t& d : *dims) {
      if (!attrs.rhs_group_dims.empty() && d > attrs.rhs_group_dims[0]) --d;
    }
  }
  return dot;
}

// What group g of x is multiplied by: its own y, or its part of the only one.
Literal ForGroup(const Literal& y, const RaggedDotAttrs& attrs, int64_t g,
                 const ArraySlice& group) {
  if (!attrs.rhs_group_dims.empty()) {
    const int64_t dimension = attrs.rhs_group_dims[0];
    return Without(Read({y, dimension, g, 1}), dimension);
  }
  const auto k = static_cast<std::size_t>(IndexOf(attrs.lhs_contracting_dims, group.dimension));
  return Read({y, attrs.rhs_contracting_dims[k], group.start, group.size});
}

// x with each element times the scale of its block, in a type for sums.
Literal Scaled(const Literal& x, const Literal& scale, DType dtype) {
  Literal result = x.Converted(dtype);
  const Literal factors = scale.Converted(dtype);
  const Dims strides = ElementStrides(scale.shape().dims());
  int64_t at = 0;
  ForEachIndex(x.shape().dims(), [&](absl::Span<const int64_t> index) {
    int64_t from = 0;
    for (std::size_t d = 0; d < strides.size(); ++d)
      from += index[d] / (x.shape().dims()[d] / scale.shape().dims()[d]) * strides[d];
    result.SetFromDouble(at, result.AsDouble(at) * factors.AsDouble(from));
    ++at;
  });
  return result;
}

}  // namespace

absl::StatusOr<Literal> EvaluateRaggedDot(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<RaggedDotAttrs>();
  const Literal &x = *operands[0], &y = *operands[1], &sizes = *operands[2];
  const int64_t ragged = attrs.lhs_ragged_dims[0], rows = x.shape().dim(ragged);
  const bool contracted = absl::c_linear_search(attrs.lhs_contracting_dims, ragged);
  if (sizes.shape().rank() != 1 || absl::c_linear_search(attrs.lhs_batch_dims, ragged))
    return Unimplemented("groups of a batch, or of each of its elements");
  Literal result(instruction.shape());
  int64_t start = 0;
  for (int64_t g = 0; g < sizes.shape().dim(0); ++g) {
    const int64_t size = IntegerAt(sizes, g);
    if (size < 0 || size > rows - start) {
      return InvalidArgument("group ", g, " of ", size, " from ", start,
                             " is not within dimension ", ragged, " of ", x.shape());
    }
    const ArraySlice group = {x, ragged, start, size};
    LAZULI_ASSIGN_OR_RETURN(const Literal part, Dot(Read(group), ForGroup(y, attrs, g, group),
                                                    OfGroup(attrs), instruction.shape().dtype()));
    if (contracted) {
      Dims dims = {1};
      dims.insert(dims.end(), part.shape().dims().begin(), part.shape().dims().end());
      Write(part.Reshaped(dims), result, 0, g);
    } else {
      Write(part, result, ResultDimension(attrs, ragged), start);
    }
    start += size;
  }
  return result;
}

absl::StatusOr<Literal> EvaluateScaledDot(const Instruction& instruction, Operands operands) {
  const DType dtype = instruction.shape().dtype(), wide = AccumulationType(dtype);
  LAZULI_ASSIGN_OR_RETURN(const Literal result, Dot(Scaled(*operands[0], *operands[2], wide),
                                                    Scaled(*operands[1], *operands[3], wide),
                                                    instruction.attrs_as<DotAttrs>(), wide));
  return result.Converted(dtype);
}

}  // namespace lazuli::hlo
