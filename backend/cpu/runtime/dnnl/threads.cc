#include <omp.h>

#include "backend/cpu/runtime/library.h"

namespace lazuli::cpu {

// oneDNN runs on OpenMP and asks it for the number of threads both when it plans and when it runs.
ScopedLibraryThreads::ScopedLibraryThreads(int count)
    : saved_(omp_get_max_threads()), changed_(count != saved_) {
  if (changed_) omp_set_num_threads(count);
}
ScopedLibraryThreads::~ScopedLibraryThreads() {
  if (changed_) omp_set_num_threads(saved_);
}

}  // namespace lazuli::cpu
