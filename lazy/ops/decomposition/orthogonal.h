// Orthogonal, or unitary, factors: QR, and the reflectors of Householder that LAPACK keeps them as.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

enum class QrMode : uint8_t { kReduced, kComplete, kTriangle };  // the last one without Q

struct QrOp {
  QrMode mode;
  LAZULI_OP("qr", "aten::linalg_qr", mode);
  static constexpr OpDoc kDoc{
      "Matrices [..., m, n] as Q R. Q has min(m, n) columns; m columns if mode is 1; no elements "
      "if "
      "mode is 2.",
      {"A"}};
  static constexpr Saves kSaves{.outputs = 3};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

struct GeqrfOp {
  LAZULI_OP("geqrf", "aten::geqrf");
  static constexpr OpDoc kDoc{
      "R of A = Q R, with the reflectors of Q below its diagonal, and one factor tau per "
      "reflector.",
      {"A"}};
  std::array<lowering::Op, 2> Lower(lowering::Builder& b, lowering::Op x) const;
};

struct HouseholderProductOp {
  LAZULI_OP("householder_product", "aten::linalg_householder_product");
  static constexpr OpDoc kDoc{
      "The first columns of the product of reflectors 1 - tau v v^H. The vectors v are the columns "
      "of A below its diagonal, with ones on it.",
      {"A", "tau"}};
  static constexpr Saves kSaves{.inputs = 3, .outputs = 1};
  lowering::Op Lower(lowering::Builder& b, lowering::Op a, lowering::Op tau) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
