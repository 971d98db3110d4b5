// Arithmetic opcodes on integers and pred: the bits of ir/evaluator/scalar_ops.h, without branches
// or traps.
#pragma once

#include "backend/cpu/codegen/recipe_values.h"
#include "ir/hlo/opcode.h"
#include "ir/types/dtype.h"

namespace lazuli::cpu {

bool SupportsInteger(hlo::Opcode opcode, DType dtype);
// y is ignored by opcodes of one operand.
llvm::Value* EmitInteger(IrBuilder& b, hlo::Opcode opcode, DType dtype, llvm::Value* x,
                         llvm::Value* y);

}  // namespace lazuli::cpu
