// Builds without oneDNN: matrices by Eigen, convolutions by the evaluator.
#include "backend/cpu/runtime/library.h"

#include "backend/cpu/runtime/eigen/matmul.h"

namespace lazuli::backend {

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanMatmul(const MatmulSpec& spec) {
  return PlanEigenMatmul(spec);
}

absl::StatusOr<std::unique_ptr<LibraryCall>> PlanConvolution(const ConvolutionSpec&) {
  return std::unique_ptr<LibraryCall>();
}

ScopedLibraryThreads::ScopedLibraryThreads(int count) : saved_(count) {}
ScopedLibraryThreads::~ScopedLibraryThreads() = default;

}  // namespace lazuli::backend
