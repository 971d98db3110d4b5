#include "ir/types/literal.h"

#include <cstring>

#include "ir/support/data_memory.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

std::shared_ptr<const std::byte> Allocate(int64_t bytes) {
  // Never null, so that an empty array still has a place.
  std::byte* const data = AllocateData(static_cast<std::size_t>(bytes > 0 ? bytes : 1));
  if (data == nullptr) throw NoDataMemory(bytes);  // NOLINT: literals are made in expressions
  return {data, [](const std::byte* p) { FreeData(const_cast<std::byte*>(p)); }};
}

}  // namespace

Literal::Literal(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.tuple()) elements.emplace_back(element);
    *this = Tuple(std::move(elements));
    return;
  }
  *this = Uninitialized(shape);
  if (shape_.IsArray()) std::memset(mutable_raw(), 0, static_cast<std::size_t>(byte_size()));
}

Literal Literal::Uninitialized(const Shape& shape) {
  LAZULI_CHECK(!shape.IsTuple(), "literal of shape ", shape);
  Literal literal;
  literal.shape_ = shape.WithDefaultLayout();
  if (shape.IsArray()) literal.data_ = Allocate(literal.byte_size());
  return literal;
}

Literal Literal::Foreign(const Shape& shape, const void* data, std::function<void()> deleter) {
  LAZULI_CHECK(shape.IsArray(), "foreign memory of shape ", shape);
  Literal literal;
  literal.shape_ = shape.WithDefaultLayout();
  literal.data_ = {static_cast<const std::byte*>(data),
                   [deleter = std::move(deleter)](const std::byte*) {
                     if (deleter) deleter();
                   }};
  return literal;
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  std::vector<Shape> shapes;
  shapes.reserve(elements.size());
  for (const Literal& element : elements) shapes.push_back(element.shape());
  Literal literal;
  literal.shape_ = Shape::Tuple(std::move(shapes));
  literal.tuple_ = std::move(elements);
  return literal;
}

Literal Literal::Clone() const {
  if (shape_.IsTuple()) {
    std::vector<Literal> elements;
    for (const Literal& element : tuple_) elements.push_back(element.Clone());
    return Tuple(std::move(elements));
  }
  Literal copy = Uninitialized(shape_);
  if (shape_.IsArray())
    std::memcpy(copy.mutable_raw(), raw(), static_cast<std::size_t>(byte_size()));
  return copy;
}

Literal Literal::Reshaped(absl::Span<const int64_t> dims) const {
  const Shape shape(shape_.dtype(), dims);
  LAZULI_CHECK(shape_.IsArray() && shape.num_elements() == shape_.num_elements(), shape_,
               " reshaped to ", shape);
  Literal literal = *this;
  literal.shape_ = shape;
  return literal;
}

bool Literal::BitsEqual(const Literal& other) const {
  if (shape_ != other.shape_) return false;
  if (shape_.IsArray())
    return std::memcmp(raw(), other.raw(), static_cast<std::size_t>(byte_size())) == 0;
  for (std::size_t i = 0; i < tuple_.size(); ++i) {
    if (!tuple_[i].BitsEqual(other.tuple_[i])) return false;
  }
  return true;
}

}  // namespace lazuli::ir
