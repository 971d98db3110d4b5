// ArrayRef: a list of values, as LibTorch's functions take them.
//
// It owns its values, where LibTorch's points to those of another list: `IntArrayRef sizes =
// x.sizes()` and `IntArrayRef({2, 3})` stay valid.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "lazuli/int_list.h"

namespace lazuli::torch_names {

template <class T>
class ArrayRef : public std::conditional_t<std::same_as<T, std::int64_t>, Dims, std::vector<T>> {
  using Base = std::conditional_t<std::same_as<T, std::int64_t>, Dims, std::vector<T>>;

 public:
  ArrayRef() = default;
  ArrayRef(const T& one) : Base(std::vector<T>{one}) {}  // NOLINT: implicit, as all below
  ArrayRef(std::initializer_list<T> list) : Base(std::vector<T>(list)) {}
  ArrayRef(std::vector<T> list) : Base(std::move(list)) {}                               // NOLINT
  ArrayRef(std::span<const T> list) : Base(std::vector<T>(list.begin(), list.end())) {}  // NOLINT
  template <std::size_t N>
  ArrayRef(const std::array<T, N>& list)  // NOLINT
      : Base(std::vector<T>(list.begin(), list.end())) {}
  template <std::size_t N>
  ArrayRef(const T (&list)[N]) : Base(std::vector<T>(list, list + N)) {}  // NOLINT
  ArrayRef(const T* data, std::size_t count) : Base(std::vector<T>(data, data + count)) {}
  ArrayRef(const T* begin, const T* end) : Base(std::vector<T>(begin, end)) {}
  std::vector<T> vec() const { return *this; }
  bool equals(const ArrayRef& other) const { return *this == other; }
  // Those from a position on, or so many of them.
  ArrayRef slice(std::size_t from) const { return slice(from, this->size() - from); }
  ArrayRef slice(std::size_t from, std::size_t count) const {
    return ArrayRef(this->data() + from, count);
  }
};
using IntArrayRef = ArrayRef<std::int64_t>;
template <class T>
using OptionalArrayRef = std::optional<std::vector<T>>;
using OptionalIntArrayRef = OptionalArrayRef<std::int64_t>;

}  // namespace lazuli::torch_names
