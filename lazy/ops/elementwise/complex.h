// Complex numbers: their parts, and what is made of parts.
//
// Gradients are PyTorch's: of a real loss, the derivative by the real part plus i times that by the
// imaginary part. So a function that is holomorphic multiplies a gradient by the conjugate of its
// derivative.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct RealOp {
  LAZULI_OP("real", "aten::real");
  static constexpr OpDoc kDoc{"The real part of each element.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Unary(lowering::Opcode::kReal, x);
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const { return {To(dy, s.shape().dtype())}; }
};

struct ImagOp {
  LAZULI_OP("imag", "aten::imag");
  static constexpr OpDoc kDoc{"The imaginary part of each element.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const {
    return b.Unary(lowering::Opcode::kImag, x);
  }
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ComplexOp {
  LAZULI_OP("complex", "aten::complex");
  static constexpr OpDoc kDoc{"Complex numbers of real and imaginary parts.", {"real", "imag"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op real, lowering::Op imag) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct ConjOp {
  LAZULI_OP("conj", "aten::conj");
  static constexpr OpDoc kDoc{"The conjugate of each element.", {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

}  // namespace lazuli::lazy
