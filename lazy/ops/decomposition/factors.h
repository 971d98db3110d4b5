// Triangular factors of matrices, and systems of equations that are solved with them. Matrices are the
// last two dims; the dims before them are a batch. LAPACK's `info` is an s32 per matrix: 0, or the
// place at which it failed.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct CholeskyOp {
  bool upper;
  LAZULI_OP("cholesky", "aten::linalg_cholesky_ex", upper);
  static constexpr OpDoc kDoc{
      "The lower, or upper, triangular factor of Hermitian positive-definite matrices, of which "
      "only "
      "that triangle is read, and an info per matrix.",
      {"A"}};
  static constexpr Saves kSaves = kSaveResult;
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct LuOp {
  LAZULI_OP("lu_factor", "aten::linalg_lu_factor_ex");
  static constexpr OpDoc kDoc{
      "Both triangular factors of matrices in one matrix, whose rows were exchanged with `pivots` "
      "(s32, from 1 on), the pivots, and an info per matrix.",
      {"A"}};
  static constexpr Saves kSaves{.outputs = 3};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct PermutationOp {
  int64_t size;
  LAZULI_OP("permutation", "aten::pivots_to_permutation", size);
  static constexpr OpDoc kDoc{
      "The order of `size` rows (s32) after each was exchanged with the row that its pivot names.",
      {"pivots"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op pivots) const;
};

struct TriangularSolveOp {
  bool left, upper, adjoint, unitriangular;
  LAZULI_OP("solve_triangular", "aten::linalg_solve_triangular", left, upper, adjoint,
            unitriangular);
  static constexpr OpDoc kDoc{
      "A^-1 B, or B A^-1, for triangular matrices A, or their adjoints. Only the triangle of A is "
      "read, and without its diagonal if unitriangular, which counts as ones then.",
      {"A", "B"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op a, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct SolveOp {
  LAZULI_OP("solve", "aten::linalg_solve_ex");
  static constexpr OpDoc kDoc{
      "A^-1 B for matrices A and B of one batch, and the factors, pivots and infos of A, as "
      "lu_factor gives them.",
      {"A", "B"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 7};
  std::array<lowering::Op, 4> Lower(lowering::Builder& b, lowering::Op a, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct DetOp {
  LAZULI_OP("det", "aten::linalg_det");
  static constexpr OpDoc kDoc{
      "Determinants of square matrices, and the factors and pivots that lu_factor gives.", {"A"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 7};
  std::array<lowering::Op, 3> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct SlogdetOp {
  LAZULI_OP("slogdet", "aten::linalg_slogdet");
  static constexpr OpDoc kDoc{
      "Signs and logarithms of the absolute values of determinants, and the factors and pivots "
      "that "
      "lu_factor gives.",
      {"A"}};
  static constexpr Saves kSaves{.inputs = 1, .outputs = 13};
  std::array<lowering::Op, 4> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// X of A X = B, or A^H X = B, from the factors and pivots of A.
Tensor SolveFactored(const Tensor& factors, const Tensor& pivots, const Tensor& b, bool adjoint);

}  // namespace lazuli::lazy
