// Loop nests over the elements of an operand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/npu/sim/program.h"

namespace lazuli::npu {

// Outermost level first, strides in bytes.
struct Walk {
  int rank = 0;
  int64_t dim[5] = {}, stride[5] = {};
  int64_t elem = 1;
};

// The source or the target of a descriptor's elements.
inline Walk WalkOf(const Descriptor& d, bool source, int64_t elem) {
  Walk walk;
  walk.rank = d.rank();
  walk.elem = elem;
  for (int i = 0; i < walk.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    walk.dim[i] = d.dim[at];
    walk.stride[i] = int64_t{(source ? d.src : d.dst)[at]} * elem;
  }
  return walk;
}

// Goes through the first levels of a nest.
class Steps {
 public:
  Steps(const int64_t* dim, const int64_t* stride, int levels)
      : dim_(dim), stride_(stride), levels_(levels) {}
  int64_t offset() const { return offset_; }
  // False behind the last one; then it begins again.
  bool Next() {
    for (int l = levels_ - 1; l >= 0; --l) {
      offset_ += stride_[l];
      if (++index_[l] < dim_[l]) return true;
      offset_ -= stride_[l] * dim_[l];
      index_[l] = 0;
    }
    return false;
  }

 private:
  const int64_t* dim_;
  const int64_t* stride_;
  int levels_;
  int64_t index_[5] = {}, offset_ = 0;
};

}  // namespace lazuli::npu
