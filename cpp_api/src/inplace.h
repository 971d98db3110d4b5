// In-place operations: each gives the tensor the result of the function of its name.
//
// A tensor keeps its dims and dtype: what the function gives must stretch to those dims, and its
// dtype must hold the result; anything else is an error with the tensor as it was.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"

#include "cpp_api/src/facade.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli {

// target := function(target), for the method `op`.
Tensor& InPlace(lazy::FunctionName op, Tensor& target, const SourceLocation& loc,
                absl::FunctionRef<Tensor(const Tensor&)> function);

// The target becomes function(target), a view of it: the same elements under other dims, for the
// method `op`.
Tensor& BecomeView(lazy::FunctionName op, Tensor& target, const SourceLocation& loc,
                   absl::FunctionRef<Tensor(const Tensor&)> function);

// out := result, which out's dtype must hold, or be unless it `casts`, for the function `op`. False:
// out had other dims, and has memory of its own now, as it is resized in PyTorch.
bool AssignOut(std::string_view op, const Tensor& out, const Tensor& result, bool casts = true);
// Throws where out= and an operand share part of their memory; with `apart`, where they share any.
void CheckOutApart(std::string_view op, const Tensor& out, const Tensor& operand, bool apart);

using BinaryFunction = lazy::Tensor (*)(const lazy::Operand&, const lazy::Operand&);
// The function of tensors and numbers; at least one is a tensor.
Tensor Binary(std::string_view op, BinaryFunction function, NumberUse use, const Operand& x,
              const Operand& y);
// How a row takes a number: arithmetic wraps it, but the larger or smaller of two is one of them.
// alpha as the factor of y in a sum with x, which must be of a kind that the sum takes; of bools whether
// y counts.
Scalar FactorIn(std::string_view op, const Operand& x, const Operand& y, const Scalar& alpha);
// The product of two numbers, of Python's kind.
Scalar Product(const Scalar& x, const Scalar& y);

constexpr NumberUse UseOf(lazy::Accepts accepts, hlo::Opcode opcode) {
  using enum hlo::Opcode;
  const bool picks = opcode == kMaximum || opcode == kMinimum;
  return {accepts, picks ? lazy::Overflow::kRefuseAny : lazy::Overflow::kWrap,
          lazy::TakesUnrounded(opcode), opcode != kSubtract};
}
// target := function(target, y), where `infer` gives the shape of the result: what does not fit is
// refused before anything is recorded.
struct BinaryRow {
  BinaryFunction function;
  absl::StatusOr<ir::Shape> (*infer)(const ir::Shape&, const ir::Shape&);
  // lazy::RecordOver() of the op; null where its result has another dtype than its operands.
  bool (*over)(absl::Span<const lazy::Operand> in, const lazy::Tensor& target);
};
Tensor& BinaryInPlace(std::string_view op, const BinaryRow& row, NumberUse use, Tensor& target,
                      const Operand& y);
// The same for the function that records a T.
template <class T>
Tensor& BinaryInPlace(std::string_view op, BinaryFunction function, Tensor& target,
                      const Operand& y, NumberUse use = kArithmetic, bool same_dtype = true) {
  BinaryRow row{function, [](const ir::Shape& a, const ir::Shape& b) { return T{}.Infer(a, b); },
                nullptr};
  if (same_dtype) {
    row.over = [](absl::Span<const lazy::Operand> in, const lazy::Tensor& t) {
      return lazy::RecordOver(T{}, in, t);
    };
  }
  return BinaryInPlace(op, row, use, target, y);
}

}  // namespace lazuli
