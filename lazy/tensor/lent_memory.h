// LentMemory: a copy of a storage's elements that the user may write to (Tensor::data_ptr()).
//
// Nobody tells when that happens. So whoever uses the storage compares first: what has changed
// becomes the storage's elements, as by a write. An op that writes to the storage ends that, until
// the memory is asked for again; the memory itself stays as long as the storage.
#pragma once

#include <atomic>

#include "ir/types/literal.h"
#include "lazy/tensor/data_handle.h"

namespace lazuli::lazy {

struct LentMemory {
  Literal elements;  // that are written to
  Literal seen;      // as they were when somebody looked last
  DataPtr data;      // the storage's, which holds what was seen; null for a number

  // Whether the process has any: nearly none does, and then nothing is compared.
  static inline std::atomic<bool> exists{false};
};

}  // namespace lazuli::lazy
