// TensorAccessor: elements on the host by position, a[i][j].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "lazuli/int_list.h"

namespace lazuli {

// Elements at strides that others own.
template <class T, std::size_t N>
class AccessorView {
 public:
  AccessorView(T* data, const std::int64_t* sizes, const std::int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  T* data() const { return data_; }
  std::int64_t size(std::size_t dim) const { return sizes_[dim]; }
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  // Positions are not checked.
  decltype(auto) operator[](std::int64_t i) const {
    T* const at = data_ + i * strides_[0];
    if constexpr (N == 1)
      return static_cast<T&>(*at);
    else
      return AccessorView<T, N - 1>(at, sizes_ + 1, strides_ + 1);
  }

 private:
  T* data_;
  const std::int64_t *sizes_, *strides_;
};

// The same, which keeps the elements. Copies share them.
template <class T, std::size_t N>
class TensorAccessor {
 public:
  // `owner` keeps the memory at `data`.
  template <class Owner>
  TensorAccessor(T* data, Dims sizes, Dims strides, Owner owner)
      : held_(std::make_shared<const Held<Owner>>(
            Held<Owner>{{std::move(sizes), std::move(strides)}, std::move(owner)})),
        data_(data) {}
  T* data() const { return data_; }
  std::int64_t size(std::size_t dim) const { return held_->sizes[dim]; }
  const Dims& sizes() const { return held_->sizes; }
  std::int64_t stride(std::size_t dim) const { return held_->strides[dim]; }
  const Dims& strides() const { return held_->strides; }
  decltype(auto) operator[](std::int64_t i) const {
    return AccessorView<T, N>(data_, held_->sizes.data(), held_->strides.data())[i];
  }

 private:
  struct Layout {
    Dims sizes, strides;
  };
  template <class Owner>
  struct Held : Layout {
    Owner owner;
  };
  std::shared_ptr<const Layout> held_;
  T* data_;
};

}  // namespace lazuli
