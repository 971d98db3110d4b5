#include "lowering/transforms/parts.h"

#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"

namespace lazuli::lowering {
namespace {

void AppendParts(const Shape& shape, std::vector<Shape>& parts) {
  if (!shape.IsTuple()) return parts.push_back(shape);
  for (const Shape& element : shape.tuple()) AppendParts(element, parts);
}

void AppendParts(Builder& b, Op value, std::vector<Op>& parts) {
  const Shape shape = value.shape();  // NOLINT: a copy, for the original moves
  if (!shape.IsTuple()) return parts.push_back(value);
  for (std::size_t i = 0; i < shape.tuple().size(); ++i)
    AppendParts(b, b.GetTupleElement(value, static_cast<int64_t>(i)), parts);
}

}  // namespace

std::vector<Shape> PartsOf(const Shape& shape) {
  std::vector<Shape> parts;
  AppendParts(shape, parts);
  return parts;
}

std::size_t PartCount(const Shape& shape) {
  if (!shape.IsTuple()) return 1;
  std::size_t count = 0;
  for (const Shape& element : shape.tuple()) count += PartCount(element);
  return count;
}

std::size_t PartsBefore(const Shape& tuple, int64_t element) {
  std::size_t count = 0;
  for (int64_t i = 0; i < element; ++i)
    count += PartCount(tuple.tuple()[static_cast<std::size_t>(i)]);
  return count;
}

std::vector<Op> PartsOf(Builder& b, Op value) {
  std::vector<Op> parts;
  AppendParts(b, value, parts);
  return parts;
}

Op FromParts(Builder& b, const Shape& shape, absl::Span<const Op>& parts) {
  if (!shape.IsTuple()) {
    const Op part = parts.front();
    parts.remove_prefix(1);
    return part;
  }
  std::vector<Op> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(FromParts(b, element, parts));
  return b.Tuple(elements);
}

Mask Union(Mask x, const Mask& y) {
  for (std::size_t k = 0; k < y.size(); ++k) x[k] = x[k] || y[k];
  return x;
}

bool HasTangents(const Shape& shape) {
  return ir::IsFloat(shape.dtype()) || ir::IsComplex(shape.dtype());
}

Op AddLike(Builder& b, const hlo::Instruction& i, absl::Span<const Op> operands) {
  return AddLike(b, i, operands, i.called());
}

Op AddLike(Builder& b, const hlo::Instruction& i, absl::Span<const Op> operands,
           absl::Span<hlo::Computation* const> called) {
  const Op added = b.Add(i.opcode(), operands, i.attrs(), called, &i.shape());
  if (hlo::Instruction* made = added.instruction(); made != nullptr) {
    made->set_sharding(i.sharding());
    made->mutable_extra_attrs() = i.extra_attrs();
  }
  return added;
}

std::vector<Op> AddLikeOfParts(Builder& b, const hlo::Instruction& i,
                               absl::Span<const std::vector<Op>> operands) {
  std::vector<Op> whole;
  for (int64_t k = 0; k < i.operand_count(); ++k)
    whole.push_back(WholeOf(b, i.operand(k)->shape(), operands[static_cast<std::size_t>(k)]));
  std::vector<Op> parts = PartsOf(b, AddLike(b, i, whole));
  parts.resize(PartCount(i.shape()), parts.empty() ? Op() : parts[0]);  // after an error
  return parts;
}

std::vector<Op> CopyInto(Builder& b, const hlo::Computation& computation,
                         absl::Span<const Op> parameters) {
  PartMap<Op> map;
  map.AddParameters(computation, parameters);
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (i->opcode() == Opcode::kParameter || map.Route(*i)) continue;
    const Builder::MetadataScope scope(b, i->metadata());
    map[i] = AddLikeOfParts(b, *i, map.OfOperands(*i));
  }
  return map.at(computation.root());
}

std::vector<Op> CopyElementwise(Builder& b, const hlo::Computation& scalar,
                                absl::Span<const Op> parameters, absl::Span<const int64_t> dims) {
  PartMap<Op> map;
  map.AddParameters(scalar, parameters);
  for (const hlo::Instruction* i : scalar.PostOrder()) {
    if (i->opcode() == Opcode::kParameter || map.Route(*i)) continue;
    std::vector<Op> operands;
    for (const hlo::Instruction* operand : i->operands()) {
      const std::vector<Op>& parts = map.at(operand);
      operands.insert(operands.end(), parts.begin(), parts.end());
    }
    const Shape shape(i->shape().dtype(), dims);
    if (i->IsConstant()) {
      map[i] = {b.Broadcast(b.Constant(i->literal()), dims, {})};
    } else if (i->opcode() == Opcode::kCall || i->opcode() == Opcode::kFusion) {
      map[i] = CopyElementwise(b, *i->to_apply(), operands, dims);
    } else if (i->IsElementwise()) {
      map[i] = {b.Add(i->opcode(), operands, i->attrs(), {}, &shape)};
    } else {
      return {PartCount(scalar.root()->shape()),
              b.Error(hlo::AtInstruction(
                  Unimplemented("no derivative of a computation on scalars with ",
                                hlo::OpcodeText(i->opcode()), ", which is not elementwise"),
                  *i))};
    }
  }
  return map.at(scalar.root());
}

}  // namespace lazuli::lowering
