// Elementwise opcodes on LLVM values, scalar or vector, with the bits of the evaluator.
//
// In registers pred is i1, integers are themselves, f16 and bf16 are f32 that hold a value of the
// narrow type: every result is rounded to it.
#pragma once

#include "absl/types/span.h"

#include "backend/cpu/codegen/recipe_values.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

// Whether EmitElement takes the instruction: its opcode, attributes and element types. Asked before
// anything is emitted.
bool SupportsElement(const hlo::Instruction& instruction);
// Whether values of the dtype can be loaded, stored and held at all.
bool SupportsRegister(DType dtype);

// The instruction's value, given those of its operands, which agree in width.
llvm::Value* EmitElement(IrBuilder& b, const hlo::Instruction& instruction,
                         absl::Span<llvm::Value* const> operands);

// op(x, y) for a monoid's opcode.
llvm::Value* EmitBinary(IrBuilder& b, hlo::Opcode opcode, DType dtype, llvm::Value* x,
                        llvm::Value* y);

// The f32 rounded to f16 or bf16; other dtypes' values as they are.
llvm::Value* RoundToNarrow(IrBuilder& b, DType dtype, llvm::Value* x);

llvm::Type* RegisterType(IrBuilder& b, DType dtype);  // of one element
llvm::Type* MemoryType(IrBuilder& b, DType dtype);    // of one element: pred is i8
llvm::Value* FromMemory(IrBuilder& b, DType dtype, llvm::Value* loaded);
llvm::Value* ToMemory(IrBuilder& b, DType dtype, llvm::Value* value);

// The scalar of a rank-0 literal in register form.
llvm::Constant* ScalarConstant(IrBuilder& b, const Literal& literal);

}  // namespace lazuli::backend
