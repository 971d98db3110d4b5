// Dimensions of which only a bound is known before a program runs: f32[<=8].
//
// set-dimension-size gives such a dimension its size. The value is then an array of that size: the
// evaluator computes with sizes, never with bounds, so nothing is there that a reduction or a sort
// would have to leave out. A dimension that an instruction declares without "<=" has the declared
// size whatever the operands have; the value is filled up with zeros. So is what leaves a program:
// devices hold arrays of the bound.
//
// Operands of one instruction that have to agree - those of an elementwise opcode, contracting
// dimensions - are cut to the smallest: a constant of the bound's size goes with everything.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "ir/evaluator/internal.h"
#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Whether some dimension gets its size only when the module runs.
bool HasDynamicSizes(const Module& module);

// Whether a value of this shape is one of the declared shape: equal up to layouts, and no larger
// where only a bound is declared.
bool FitsBounds(const Shape& actual, const Shape& declared);

// The value filled up with zeros where the declared shape has more elements: everywhere
// (PadToBounds) or in the dimensions that have a size (PadToDeclared). Any other value stays.
Literal PadToBounds(const Literal& value, const Shape& declared);
Literal PadToDeclared(const Literal& value, const Shape& declared);

// An operand is smaller than its bound.
bool HasSmallOperand(const Instruction& instruction, Operands operands);
// The instruction over arrays of the operands' sizes: its shape and attributes follow from those.
// `run` evaluates it.
absl::StatusOr<Literal> EvaluateSmall(
    const Instruction& instruction, Operands operands,
    absl::FunctionRef<absl::StatusOr<Literal>(const Instruction&, Operands)> run);

// set-dimension-size.
absl::StatusOr<Literal> WithDimensionSize(const Instruction& instruction, const Literal& x,
                                          int64_t size);

}  // namespace lazuli::hlo
