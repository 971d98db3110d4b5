// TensorAccessor: elements on the host by position, a[i][j].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lazuli/int_list.h"

namespace lazuli {

// Elements in row-major order that others own.
template <class T, std::size_t N>
class AccessorView {
 public:
  AccessorView(const T* data, const std::int64_t* sizes) : data_(data), sizes_(sizes) {}
  std::int64_t size(std::size_t dim) const { return sizes_[dim]; }
  // Positions are not checked.
  decltype(auto) operator[](std::int64_t i) const {
    if constexpr (N == 1) {
      return static_cast<const T&>(data_[i]);
    } else {
      std::int64_t stride = 1;
      for (std::size_t d = 1; d < N; ++d) stride *= sizes_[d];
      return AccessorView<T, N - 1>(data_ + i * stride, sizes_ + 1);
    }
  }

 private:
  const T* data_;
  const std::int64_t* sizes_;
};

// The same, and their owner. Copies share them.
template <class T, std::size_t N>
class TensorAccessor {
  static_assert(!std::is_same_v<T, bool>, "read bool elements with to_vector<bool>()");

 public:
  TensorAccessor(std::vector<T> elements, Dims sizes)
      : held_(std::make_shared<const Held>(Held{std::move(elements), std::move(sizes)})) {}
  std::int64_t size(std::size_t dim) const { return held_->sizes[dim]; }
  const Dims& sizes() const { return held_->sizes; }
  decltype(auto) operator[](std::int64_t i) const {
    return AccessorView<T, N>(held_->elements.data(), held_->sizes.data())[i];
  }

 private:
  struct Held {
    std::vector<T> elements;
    Dims sizes;
  };
  std::shared_ptr<const Held> held_;
};

}  // namespace lazuli
