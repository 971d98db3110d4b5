// Builds without oneDNN: all library calls are Eigen's.
#include "backend/cpu/runtime/library.h"

#include "Eigen/Core"

#include "backend/cpu/runtime/eigen/matmul.h"
#include "backend/cpu/runtime/few_rows.h"
#include "ir/support/str.h"

namespace lazuli::cpu {

absl::StatusOr<LibraryPlan> PlanMatmul(const MatmulSpec& spec, int threads) {
  if (std::unique_ptr<LibraryCall> call = PlanFewRows(spec, threads))
    return LibraryPlan{std::move(call), nullptr};
  return LibraryPlan{PlanEigenMatmul(spec), nullptr};
}

absl::StatusOr<LibraryPlan> PlanConvolution(const ConvolutionSpec&, int) { return LibraryPlan(); }

bool HasOneDnn() { return false; }
bool MultipliesBf16() { return false; }

std::string LibraryEngine() {
  return Str("Eigen ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".", EIGEN_MINOR_VERSION);
}

ScopedLibraryThreads::ScopedLibraryThreads(int count) : saved_(count), changed_(false) {}
ScopedLibraryThreads::~ScopedLibraryThreads() = default;

}  // namespace lazuli::cpu
