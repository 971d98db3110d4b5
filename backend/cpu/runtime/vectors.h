// The compiler's vectors of any number of lanes. A source that passes them to functions which are not
// inlined needs the option -Wno-psabi.
#pragma once

namespace lazuli::cpu {

template <class T, int kLanes>
struct VectorOf {
  using Type [[gnu::vector_size(kLanes * sizeof(T))]] = T;
};
template <class T, int kLanes>
using Vector = typename VectorOf<T, kLanes>::Type;

}  // namespace lazuli::cpu
