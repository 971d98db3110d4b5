#include "ir/evaluator/dynamic_sizes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/evaluator/strided.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

bool IsDynamic(const Shape& shape, std::size_t d) { return (shape.dynamic_dims() >> d & 1) != 0; }

// The array cut, or filled up with zeros, to these dims.
Literal Resized(const Literal& x, absl::Span<const int64_t> dims) {
  if (x.shape().dims() == dims) return x;
  Literal result(Shape(x.shape().dtype(), dims));
  Dims common;
  for (std::size_t d = 0; d < dims.size(); ++d)
    common.push_back(std::min(dims[d], x.shape().dims()[d]));
  CopyStrided(ByteWidth(x.shape().dtype()), common, x.raw(), ByteStrides(x.shape()),
              result.mutable_raw(), ByteStrides(result.shape()));
  return result;
}

template <class Size>  // of dimension d
Literal Padded(const Literal& value, const Shape& declared, Size&& size) {
  if (Compatible(value.shape(), declared)) return value;
  if (declared.IsTuple() && value.tuple().size() == declared.tuple().size()) {
    std::vector<Literal> elements;
    for (std::size_t i = 0; i < value.tuple().size(); ++i)
      elements.push_back(Padded(value.tuple()[i], declared.tuple()[i], size));
    return Literal::Tuple(std::move(elements));
  }
  const Shape& shape = value.shape();
  if (!declared.IsArray() || shape.dtype() != declared.dtype() || shape.rank() != declared.rank())
    return value;
  Dims dims;
  for (std::size_t d = 0; d < shape.dims().size(); ++d) {
    if (shape.dims()[d] > declared.dims()[d]) return value;
    dims.push_back(size(shape, declared, d));
  }
  return Resized(value, dims);
}

// Cuts each array to the smallest size of all arrays of its rank.
void CutTogether(absl::Span<Literal> arrays) {
  for (Literal& array : arrays) {
    Dims dims(array.shape().dims().begin(), array.shape().dims().end());
    for (const Literal& other : arrays) {
      if (other.shape().rank() != array.shape().rank()) continue;
      for (std::size_t d = 0; d < dims.size(); ++d)
        dims[d] = std::min(dims[d], other.shape().dims()[d]);
    }
    array = Resized(array, dims);
  }
}

void CutPairs(Literal& x, Literal& y, const Dims& of_x, const Dims& of_y) {
  Dims x_dims(x.shape().dims().begin(), x.shape().dims().end());
  Dims y_dims(y.shape().dims().begin(), y.shape().dims().end());
  for (std::size_t k = 0; k < of_x.size(); ++k) {
    int64_t& a = x_dims[static_cast<std::size_t>(of_x[k])];
    int64_t& b = y_dims[static_cast<std::size_t>(of_y[k])];
    a = b = std::min(a, b);
  }
  x = Resized(x, x_dims);
  y = Resized(y, y_dims);
}

// An instruction over arrays of other sizes than those that it was written for.
struct Small {
  std::vector<Literal> operands;
  Attrs attrs;
  std::optional<Shape> declared;  // where the shape does not follow from the operands
};

// Where a reshape's result has a bound for a dimension, its size makes up the number of elements.
absl::StatusOr<Shape> ReshapedSmall(const Instruction& instruction, const Literal& x) {
  Shape shape(instruction.shape().dtype(), instruction.shape().dims());
  const Shape &from = instruction.operand(0)->shape(), &to = instruction.shape();
  // Only ones come or go: every other dimension keeps its size.
  std::vector<std::size_t> kept, target;
  for (std::size_t d = 0; d < from.dims().size(); ++d)
    if (from.dims()[d] != 1 || IsDynamic(from, d)) kept.push_back(d);
  for (std::size_t d = 0; d < to.dims().size(); ++d)
    if (to.dims()[d] != 1 || IsDynamic(to, d)) target.push_back(d);
  const bool same =
      kept.size() == target.size() &&
      std::equal(kept.begin(), kept.end(), target.begin(),
                 [&](std::size_t a, std::size_t b) { return from.dims()[a] == to.dims()[b]; });
  if (same) {
    for (std::size_t k = 0; k < kept.size(); ++k)
      shape.set_dim(static_cast<int64_t>(target[k]), x.shape().dims()[kept[k]]);
    return shape;
  }
  int64_t others = 1, unknown = -1;
  for (std::size_t d = 0; d < to.dims().size(); ++d) {
    if (!IsDynamic(to, d)) {
      others *= to.dims()[d];
    } else if (std::exchange(unknown, static_cast<int64_t>(d)) >= 0) {
      return Unimplemented("reshape of ", x.shape(), " (", from, ") to ", to,
                           ", of which several sizes are unknown");
    }
  }
  const int64_t count = x.shape().num_elements();
  if (unknown < 0 || others == 0 || count % others != 0) {
    return InvalidArgument("reshape of ", x.shape(), " (", from, ") to ", to,
                           ": the number of elements does not allow it");
  }
  shape.set_dim(unknown, count / others);
  return shape;
}

// The sizes are operands.
absl::StatusOr<Shape> ReshapedTo(const Instruction& instruction, Operands operands) {
  Dims dims;
  for (std::size_t k = 1; k < operands.size(); ++k) {
    const int64_t size = IntegerAt(*operands[k], 0);
    if (size < 0 || size > instruction.shape().dims()[k - 1])
      return InvalidArgument("size ", size, " of dimension ", k - 1, " is not within ",
                             instruction.shape());
    dims.push_back(size);
  }
  Shape shape(instruction.shape().dtype(), dims);
  if (shape.num_elements() != operands[0]->shape().num_elements())
    return InvalidArgument("dynamic-reshape of ", operands[0]->shape(), " to ", shape);
  return shape;
}

// Ends of parts that are all of the bound mean all that is there; of any other dimension a part is
// taken, of the array filled up to the bound.
template <class All>  // of dimension d
void TakeAllOrPad(const Shape& bound, Dims& ends, Literal& x, All&& all) {
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (ends[d] == bound.dims()[d] && all(d)) {
      ends[d] = dims[d];
    } else {
      dims[d] = bound.dims()[d];
    }
  }
  x = Resized(x, dims);
}

absl::StatusOr<Small> SmallOf(const Instruction& instruction, Operands operands) {
  Small small{{}, instruction.attrs(), std::nullopt};
  for (const Literal* operand : operands) small.operands.push_back(*operand);
  Literal& x = small.operands[0];
  const Shape &shape = instruction.shape(), &bound = instruction.operand(0)->shape();
  const auto all = absl::MakeSpan(small.operands);
  const auto any = [](std::size_t) { return true; };
  switch (instruction.opcode()) {
    case Opcode::kConvert:
    case Opcode::kStochasticConvert:
      CutTogether(all);
      small.declared = Shape(shape.dtype(), x.shape().dims());
      break;
    case Opcode::kBitcastConvert:
      if (shape.rank() == x.shape().rank()) small.declared = Shape(shape.dtype(), x.shape().dims());
      break;
    case Opcode::kBroadcast: {
      small.declared = Shape(shape.dtype(), shape.dims());
      const Dims& to = std::get<DimensionsAttrs>(small.attrs).dimensions;
      for (std::size_t d = 0; d < to.size(); ++d)
        small.declared->set_dim(to[d], x.shape().dims()[d]);
      break;
    }
    case Opcode::kReshape: {
      LAZULI_ASSIGN_OR_RETURN(small.declared, ReshapedSmall(instruction, x));
      break;
    }
    case Opcode::kSlice: {
      auto& attrs = std::get<SliceAttrs>(small.attrs);
      TakeAllOrPad(bound, attrs.limits, x,
                   [&](std::size_t d) { return attrs.starts[d] == 0 && attrs.strides[d] == 1; });
      break;
    }
    case Opcode::kDynamicSlice:
      TakeAllOrPad(bound, std::get<DynamicSliceAttrs>(small.attrs).dynamic_slice_sizes, x, any);
      break;
    case Opcode::kGather:
      TakeAllOrPad(bound, std::get<GatherAttrs>(small.attrs).slice_sizes, x, any);
      break;
    case Opcode::kDot: {
      const auto& attrs = std::get<DotAttrs>(small.attrs);
      CutPairs(x, small.operands[1], attrs.lhs_contracting_dims, attrs.rhs_contracting_dims);
      CutPairs(x, small.operands[1], attrs.lhs_batch_dims, attrs.rhs_batch_dims);
      break;
    }
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
      CutTogether(all.first(all.size() / 2));
      break;
    case Opcode::kSort:
    case Opcode::kMap:
      CutTogether(all);
      break;
    default:
      if (Traits(instruction.opcode()).elementwise) CutTogether(all);
  }
  return small;
}

// What hands values on, or looks at sizes itself.
bool TakesAnySize(Opcode opcode) {
  switch (opcode) {
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
    case Opcode::kAddDependency:
    case Opcode::kCopy:
    case Opcode::kDomain:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kGetDimensionSize:
    case Opcode::kSetDimensionSize:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool HasDynamicSizes(const Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      const bool sets =
          i->opcode() == Opcode::kSetDimensionSize || i->opcode() == Opcode::kDynamicReshape;
      if (sets && i->shape().dynamic_dims() != 0) return true;
    }
  }
  return false;
}

bool FitsBounds(const Shape& actual, const Shape& declared) {
  if (Compatible(actual, declared)) return true;
  if (actual.dtype() != declared.dtype() || actual.rank() != declared.rank() ||
      actual.tuple().size() != declared.tuple().size())
    return false;
  for (std::size_t d = 0; d < actual.dims().size(); ++d) {
    if (actual.dims()[d] != declared.dims()[d] &&
        (!IsDynamic(declared, d) || actual.dims()[d] > declared.dims()[d]))
      return false;
  }
  for (std::size_t i = 0; i < actual.tuple().size(); ++i) {
    if (!FitsBounds(actual.tuple()[i], declared.tuple()[i])) return false;
  }
  return true;
}

Literal PadToBounds(const Literal& value, const Shape& declared) {
  return Padded(value, declared,
                [](const Shape&, const Shape& bound, std::size_t d) { return bound.dims()[d]; });
}

Literal PadToDeclared(const Literal& value, const Shape& declared) {
  return Padded(value, declared, [](const Shape& actual, const Shape& bound, std::size_t d) {
    return IsDynamic(bound, d) ? actual.dims()[d] : bound.dims()[d];
  });
}

bool HasSmallOperand(const Instruction& instruction, Operands operands) {
  if (TakesAnySize(instruction.opcode())) return false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const Shape& declared = instruction.operands()[k]->shape();
    if (declared.dynamic_dims() != 0 && operands[k]->shape().dims() != declared.dims()) return true;
  }
  return instruction.opcode() == Opcode::kDynamicReshape && instruction.shape().dynamic_dims() != 0;
}

absl::StatusOr<Literal> EvaluateSmall(
    const Instruction& instruction, Operands operands,
    absl::FunctionRef<absl::StatusOr<Literal>(const Instruction&, Operands)> run) {
  if (instruction.opcode() == Opcode::kDynamicReshape) {
    LAZULI_ASSIGN_OR_RETURN(const Shape shape, ReshapedTo(instruction, operands));
    return operands[0]->Reshaped(shape.dims());
  }
  LAZULI_ASSIGN_OR_RETURN(Small small, SmallOf(instruction, operands));
  std::vector<const Literal*> values;
  std::vector<const Shape*> shapes;
  for (const Literal& operand : small.operands) {
    values.push_back(&operand);
    shapes.push_back(&operand.shape());
  }
  LAZULI_ASSIGN_OR_RETURN(
      Shape shape, InferShape(instruction.opcode(), shapes, small.attrs, instruction.called(),
                              small.declared ? &*small.declared : nullptr));
  if (shape.IsArray()) shape.set_dtype(instruction.shape().dtype());  // a dot's may be wider
  const Lone lone(instruction.opcode(), shape, values, small.attrs, instruction.called());
  return run(*lone, values);
}

absl::StatusOr<Literal> WithDimensionSize(const Instruction& instruction, const Literal& x,
                                          int64_t size) {
  const int64_t dimension = instruction.attrs_as<DimensionsAttrs>().dimensions[0];
  const Shape& shape = instruction.shape();
  const bool dynamic = IsDynamic(shape, static_cast<std::size_t>(dimension));
  if (size < 0 || size > shape.dim(dimension) || (!dynamic && size != shape.dim(dimension)))
    return InvalidArgument("size ", size, " of dimension ", dimension, " is not within ", shape);
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims[static_cast<std::size_t>(dimension)] = size;
  return Resized(x, dims);
}

}  // namespace lazuli::hlo
