// Dims: a list of integers - sizes, strides. IntList: what a parameter takes that is one.
//
// A number is a list of one, so sum(1) is sum({1}). The list is not copied: it lives as long as the
// call, which is what braces and temporaries do; keep a Dims, not an IntList.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <utility>
#include <vector>

#include "lazuli/export.h"

namespace lazuli {

struct Dims : std::vector<std::int64_t> {
  using vector::vector;
  Dims(std::vector<std::int64_t> v)
      : vector(std::move(v)) {}  // NOLINT(google-explicit-constructor)
  const std::vector<std::int64_t>& vec() const { return *this; }
  // Those from a position on, or so many of them.
  Dims slice(std::size_t from) const {
    return Dims(begin() + static_cast<std::ptrdiff_t>(from), end());
  }
  Dims slice(std::size_t from, std::size_t count) const {
    const auto first = begin() + static_cast<std::ptrdiff_t>(from);
    return Dims(first, first + static_cast<std::ptrdiff_t>(count));
  }
};
LAZULI_API std::ostream& operator<<(std::ostream& os, const Dims& dims);  // "[2, 3]"

class IntList {
 public:
  constexpr IntList() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr IntList(T one)  // NOLINT(google-explicit-constructor)
      : one_(static_cast<std::int64_t>(one)), size_(1) {}
  constexpr IntList(
      std::initializer_list<std::int64_t> list)  // NOLINT(google-explicit-constructor)
      : IntList(std::span<const std::int64_t>(list.begin(), list.size())) {}
  constexpr IntList(const std::vector<std::int64_t>& list)  // NOLINT(google-explicit-constructor)
      : IntList(std::span<const std::int64_t>(list)) {}
  template <std::size_t N>
  constexpr IntList(const std::array<std::int64_t, N>& list)  // NOLINT(google-explicit-constructor)
      : IntList(std::span<const std::int64_t>(list)) {}
  constexpr IntList(std::span<const std::int64_t> list)  // NOLINT(google-explicit-constructor)
      : data_(list.data()), size_(list.size()) {}

  constexpr const std::int64_t* data() const { return data_ != nullptr ? data_ : &one_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const std::int64_t* begin() const { return data(); }
  constexpr const std::int64_t* end() const { return data() + size_; }
  explicit operator Dims() const { return Dims(begin(), end()); }
  constexpr std::int64_t operator[](std::size_t i) const { return data()[i]; }
  std::vector<std::int64_t> vec() const { return {begin(), end()}; }
  friend bool operator==(const IntList& x, const IntList& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

 private:
  const std::int64_t* data_ = nullptr;  // null: the one number
  std::int64_t one_ = 0;
  std::size_t size_ = 0;
};

}  // namespace lazuli
