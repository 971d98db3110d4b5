// Literal: a value on the host - a dense row-major array, or a tuple of literals.
//
// The memory is owned (64-byte aligned; where there is none, NoDataMemory is thrown) or foreign (kept alive by a deleter). Copying a Literal
// shares its memory; Clone() copies it. A literal whose memory is shared must not be written.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/types/shape.h"

namespace lazuli::ir {

class Literal {
 public:
  Literal() = default;                   // the empty tuple
  explicit Literal(const Shape& shape);  // zero-filled; layouts are dropped; tuples recursively
  // Array without zero-filling.
  static Literal Uninitialized(const Shape& shape);
  // Array over memory of somebody else; `deleter` runs when the last copy goes (may be empty).
  static Literal Foreign(const Shape& shape, const void* data, std::function<void()> deleter);
  static Literal Tuple(std::vector<Literal> elements);
  template <class T>
  static Literal Scalar(T value);
  // Array of these values in row-major order; checks the count.
  template <class T>
  static Literal FromValues(absl::Span<const int64_t> dims, std::span<const T> values);
  template <class T>
  static Literal FromValues(std::initializer_list<int64_t> dims, std::initializer_list<T> values);
  // Array of any dtype filled with `value` converted to it.
  static Literal Full(const Shape& shape, double value);

  const Shape& shape() const { return shape_; }
  int64_t byte_size() const { return shape_.byte_size(); }

  const std::byte* raw() const { return data_.get(); }
  std::byte* mutable_raw() { return const_cast<std::byte*>(data_.get()); }
  template <class T>
  std::span<const T> data() const;  // checks that T is the host type of the dtype
  template <class T>
  std::span<T> mutable_data();

  const std::vector<Literal>& tuple() const { return tuple_; }
  std::vector<Literal>& mutable_tuple() { return tuple_; }

  Literal Clone() const;
  // The same elements under other dims of equal count; shares memory.
  Literal Reshaped(absl::Span<const int64_t> dims) const;
  // Element-wise conversion with HLO's `convert` semantics (floats to integers saturate, NaN
  // becomes 0).
  Literal Converted(DType dtype) const;

  // Element `index` (row-major position) as double; complex types give the real part. For tests and
  // printing.
  double AsDouble(int64_t index) const;
  void SetFromDouble(int64_t index, double value);

  bool BitsEqual(const Literal& other) const;  // shapes and bytes

  // HLO text of the value, every element: 3, {1, 2}, { { 1, 2 }, { 3, 4 } }, ( {1}, 2 ). Numbers
  // are spelled as XLA spells them (f32 with 6 digits if they read back, else with 9), but negative
  // zero is -0.0: XLA reads its own -0 as 0.
  std::string ToString() const;
  void AppendTo(std::string& out) const;

 private:
  Shape shape_;
  std::shared_ptr<const std::byte> data_;
  std::vector<Literal> tuple_;
};

// Writes `value`, converted to `dtype` as `convert` does, to one element at `to`.
void StoreAs(DType dtype, double value, void* to);

template <class T>
std::span<const T> Literal::data() const {
  LAZULI_CHECK(shape_.IsArray() && static_cast<int>(sizeof(T)) == ByteWidth(shape_.dtype()),
               "literal is ", shape_);
  return {reinterpret_cast<const T*>(data_.get()), static_cast<std::size_t>(shape_.num_elements())};
}
template <class T>
std::span<T> Literal::mutable_data() {
  auto view = data<T>();
  return {const_cast<T*>(view.data()), view.size()};
}
template <class T>
Literal Literal::Scalar(T value) {
  Literal r = Uninitialized(Shape(DTypeOf<T>()));
  r.mutable_data<T>()[0] = value;
  return r;
}
template <class T>
Literal Literal::FromValues(absl::Span<const int64_t> dims, std::span<const T> values) {
  Literal r = Uninitialized(Shape(DTypeOf<T>(), dims));
  LAZULI_CHECK(static_cast<int64_t>(values.size()) == r.shape().num_elements(), values.size(),
               " values for ", r.shape());
  std::copy(values.begin(), values.end(), r.mutable_data<T>().begin());
  return r;
}
template <class T>
Literal Literal::FromValues(std::initializer_list<int64_t> dims, std::initializer_list<T> values) {
  return FromValues<T>(absl::Span<const int64_t>(dims.begin(), dims.size()),
                       std::span<const T>(values.begin(), values.size()));
}

}  // namespace lazuli::ir
