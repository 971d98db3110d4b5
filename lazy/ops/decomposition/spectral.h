// Eigenvalues and singular values of matrices, with the vectors.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct EighOp {
  bool lower, vectors;
  LAZULI_OP("eigh", "aten::linalg_eigh", lower, vectors);
  static constexpr OpDoc kDoc{
      "Eigenvalues in ascending order and eigenvectors of Hermitian matrices, of which only one "
      "triangle is read, and an info per matrix.",
      {"A"}};
  static constexpr Saves kSaves{.outputs = 3};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct EigOp {
  bool vectors;
  LAZULI_OP("eig", "aten::linalg_eig", vectors);
  static constexpr OpDoc kDoc{
      "Eigenvalues and eigenvectors, complex numbers, of square matrices, and an info per matrix.",
      {"A"}};
  static constexpr Saves kSaves{.outputs = 3};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct SvdOp {
  bool full_matrices, vectors;
  LAZULI_OP("svd", "aten::linalg_svd", full_matrices, vectors);
  static constexpr OpDoc kDoc{
      "Matrices as U diag(S) Vh, the singular values S in descending order, and an info per "
      "matrix; "
      "without vectors U and Vh mean nothing.",
      {"A"}};
  static constexpr Saves kSaves{.outputs = 7};
  std::array<lowering::Op, 4> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// The decompositions whose vectors are known up to their phases only, complex factors of absolute
// value 1, so that a loss may not depend on these.
enum class Gauge : uint8_t { kEigh, kEig, kSvd };

struct CheckGaugeOp {
  Gauge gauge;
  LAZULI_OP("check_gauge", "xla::check_gauge", gauge);
  static constexpr OpDoc kDoc{
      "x; the run fails where an element of `phase`, the change of a loss with the phases of "
      "vectors, is not small.",
      {"x", "phase"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op phase) const;
  Tensors Vjp(const Saved&, const Tensor& dy) const { return {dy, Tensor()}; }
};

}  // namespace lazuli::lazy
