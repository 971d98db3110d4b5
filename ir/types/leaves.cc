#include "ir/types/leaves.h"

#include <utility>

namespace lazuli::ir {

void ForEachLeaf(const Shape& shape, const std::function<void(const Shape&)>& f) {
  if (shape.IsTuple()) {
    for (const Shape& element : shape.tuple()) ForEachLeaf(element, f);
  } else if (shape.IsArray()) {
    f(shape);
  }
}

void ForEachLeaf(const Literal& value, const std::function<void(const Literal&)>& f) {
  if (value.shape().IsArray()) f(value);
  for (const Literal& element : value.tuple()) ForEachLeaf(element, f);
}

std::vector<Shape> LeavesOf(const Shape& shape) {
  std::vector<Shape> leaves;
  ForEachLeaf(shape, [&](const Shape& leaf) { leaves.push_back(leaf); });
  return leaves;
}

int64_t LeafCount(const Shape& shape) {
  int64_t count = 0;
  ForEachLeaf(shape, [&](const Shape&) { ++count; });
  return count;
}

int64_t LeavesBefore(const Shape& tuple, int64_t element) {
  int64_t leaves = 0;
  for (int64_t i = 0; i < element; ++i)
    leaves += LeafCount(tuple.tuple()[static_cast<std::size_t>(i)]);
  return leaves;
}

const Shape* PartAt(const Shape& shape, absl::Span<const int64_t> path) {
  const Shape* part = &shape;
  for (const int64_t index : path) {
    if (index < 0 || index >= static_cast<int64_t>(part->tuple().size())) return nullptr;
    part = &part->tuple()[static_cast<std::size_t>(index)];
  }
  return part;
}

std::optional<int64_t> LeafAt(const Shape& shape, absl::Span<const int64_t> path) {
  const Shape* const leaf = PartAt(shape, path);
  if (leaf == nullptr || !leaf->IsArray()) return std::nullopt;
  int64_t before = 0;
  const Shape* part = &shape;
  for (const int64_t index : path) {
    before += LeavesBefore(*part, index);
    part = &part->tuple()[static_cast<std::size_t>(index)];
  }
  return before;
}

Literal FromLeaves(const Shape& shape, absl::Span<const Literal> leaves, std::size_t* next) {
  if (shape.IsArray()) return leaves[(*next)++];
  if (!shape.IsTuple()) return Literal(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(FromLeaves(element, leaves, next));
  return Literal::Tuple(std::move(elements));
}

}  // namespace lazuli::ir
