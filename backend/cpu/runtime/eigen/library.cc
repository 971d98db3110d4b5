// Builds without oneDNN: matrices by Eigen, convolutions by the evaluator.
#include "backend/cpu/runtime/library.h"

#include "Eigen/Core"

#include "backend/cpu/runtime/eigen/matmul.h"
#include "ir/support/str.h"

namespace lazuli::backend {

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanMatmul(const MatmulSpec& spec, int) {
  return PlanEigenMatmul(spec);
}

absl::StatusOr<ConvolutionPlan> PlanConvolution(const ConvolutionSpec&, int) {
  return ConvolutionPlan();
}

bool LibraryConvolves() { return false; }

std::string LibraryEngine() {
  return Str("Eigen ", EIGEN_WORLD_VERSION, ".", EIGEN_MAJOR_VERSION, ".", EIGEN_MINOR_VERSION);
}

ScopedLibraryThreads::ScopedLibraryThreads(int count) : saved_(count) {}
ScopedLibraryThreads::~ScopedLibraryThreads() = default;

}  // namespace lazuli::backend
