#include <algorithm>
#include <array>

#include "lowering/transforms/batch_rules.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {

bool BatchValue::AnyBatched() const {
  return batched || std::any_of(elements.begin(), elements.end(),
                                [](const BatchValue& element) { return element.AnyBatched(); });
}

void BatchValue::AppendFlags(std::vector<bool>& flags) const {
  if (!is_tuple && !op.shape().IsToken()) flags.push_back(batched);
  for (const BatchValue& element : elements) element.AppendFlags(flags);
}

Dims WithFront(int64_t front, absl::Span<const int64_t> dims) {
  Dims all{front};
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

Dims Shifted(absl::Span<const int64_t> positions) {
  Dims shifted;
  for (const int64_t position : positions) shifted.push_back(position + 1);
  return shifted;
}

Shape BatchScope::Batched(const Shape& shape) const {
  if (shape.IsToken()) return shape;
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& element : shape.tuple()) elements.push_back(Batched(element));
    return Shape::Tuple(std::move(elements));
  }
  Shape batched(shape.dtype(), WithFront(size(), shape.dims()));
  if (shape.dynamic_dims() != 0) batched.set_dynamic_dims(shape.dynamic_dims() << 1);
  return batched;
}

namespace {

Shape BatchedWhere(const BatchScope& s, const Shape& shape, const std::vector<bool>& flags,
                   std::size_t* next) {
  if (shape.IsToken()) return shape;
  if (!shape.IsTuple()) return flags[(*next)++] ? s.Batched(shape) : shape.WithDefaultLayout();
  std::vector<Shape> elements;
  for (const Shape& element : shape.tuple())
    elements.push_back(BatchedWhere(s, element, flags, next));
  return Shape::Tuple(std::move(elements));
}

BatchValue BroadcastWhere(BatchScope& s, const BatchValue& value, const std::vector<bool>& flags,
                          std::size_t* next) {
  if (!value.is_tuple && value.op.shape().IsToken()) return value;
  if (!value.is_tuple) return flags[(*next)++] ? BatchScope::Array(s.Full(value)) : value;
  BatchValue result{.is_tuple = true};
  for (const BatchValue& element : value.elements)
    result.elements.push_back(BroadcastWhere(s, element, flags, next));
  return result;
}

}  // namespace

Shape BatchScope::Batched(const Shape& shape, const std::vector<bool>& flags) const {
  std::size_t next = 0;
  return BatchedWhere(*this, shape, flags, &next);
}

Op BatchScope::Full(const BatchValue& value) {
  if (value.batched) return value.op;
  const Shape shape = value.op.shape();  // NOLINT: a copy, for the original moves
  Dims positions;
  for (int64_t d = 0; d < shape.rank(); ++d) positions.push_back(d + 1);
  return b.Broadcast(value.op, WithFront(size(), shape.dims()), positions);
}

BatchValue BatchScope::Broadcast(const BatchValue& value, const std::vector<bool>& flags) {
  std::size_t next = 0;
  return BroadcastWhere(*this, value, flags, &next);
}

Op BatchScope::FullAs(const BatchValue& value, const Shape& batched) {
  const int64_t rank = value.op.rank() - (value.batched ? 1 : 0);
  if (rank != 0 || batched.rank() == 1) return Full(value);
  return b.Broadcast(value.op, batched.dims(), value.batched ? Dims{0} : Dims{});
}

Op BatchScope::Join(const BatchValue& value) {
  if (!value.is_tuple) return value.op;
  std::vector<Op> elements;
  for (const BatchValue& element : value.elements) elements.push_back(Join(element));
  return b.Tuple(elements);
}

BatchValue BatchScope::SplitNext(Op op, const std::vector<bool>& flags, std::size_t* next) {
  const Shape shape = op.shape();  // NOLINT: a copy, for the original moves
  if (shape.IsToken()) return Array(op, false);
  if (!shape.IsTuple()) return Array(op, !flags.empty() && flags[(*next)++]);
  BatchValue value{.is_tuple = true};
  for (std::size_t k = 0; k < shape.tuple().size(); ++k)
    value.elements.push_back(
        SplitNext(b.GetTupleElement(op, static_cast<int64_t>(k)), flags, next));
  return value;
}

BatchValue BatchScope::Split(Op op, const std::vector<bool>& flags) {
  std::size_t next = 0;
  return SplitNext(op, flags, &next);
}

BatchValue BatchScope::Split(Op op, bool batched) {
  if (!op.shape().IsTuple()) return Array(op, batched && !op.shape().IsToken());
  const Shape shape = op.shape();  // NOLINT: a copy, for the original moves
  BatchValue value{.is_tuple = true};
  for (std::size_t k = 0; k < shape.tuple().size(); ++k)
    value.elements.push_back(Split(b.GetTupleElement(op, static_cast<int64_t>(k)), batched));
  return value;
}

std::vector<Op> BatchScope::FullOperands(BatchValues operands) {
  std::vector<Op> full;
  for (const BatchValue& operand : operands) full.push_back(Full(operand));
  return full;
}

BatchValue BatchScope::AddBatched(const hlo::Instruction& i, absl::Span<const Op> operands,
                                  hlo::Attrs attrs) {
  const Shape shape = Batched(i.shape());
  return Split(b.Add(i.opcode(), operands, std::move(attrs), shared_.CopiesOf(i.called()), &shape),
               true);
}

BatchValue BatchScope::AddPlain(const hlo::Instruction& i, absl::Span<const Op> operands) {
  return Split(AddLike(b, i, operands, shared_.CopiesOf(i.called())), false);
}

Op BatchScope::MoveDim(Op x, int64_t from, int64_t to) {
  if (from == to || !b.status().ok()) return x;
  Dims order;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != from) order.push_back(d);
  }
  order.insert(order.begin() + to, from);
  return b.Transpose(x, order);
}

namespace {

constexpr BatchRule kNoRule = nullptr;
#define LAZULI_TRANSFORM_RULES(opcode, tangent, transpose, batch) batch,
constexpr std::array kBatchRules = {
#include "lowering/transforms/rules.def"
};
#undef LAZULI_TRANSFORM_RULES

}  // namespace

BatchRule BatchRuleOf(Opcode opcode) { return kBatchRules[static_cast<std::size_t>(opcode)]; }

}  // namespace lazuli::lowering
