// Elementwise opcodes on LLVM values, scalar or vector, with the bits of the evaluator.
//
// In registers pred is i1, integers are themselves, f16 and bf16 are f32 that hold a value of the
// narrow type: every result is rounded to it. A complex number is a struct of its parts, which
// alternate in memory.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "backend/cpu/codegen/recipe_values.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

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

llvm::Type* RegisterType(IrBuilder& b, DType dtype);           // of one element
llvm::Type* MemoryType(IrBuilder& b, DType dtype);             // of one element: pred is i8
llvm::Type* MemoryType(IrBuilder& b, DType dtype, int width);  // of `width` neighbours
llvm::Align MemoryAlign(DType dtype);
llvm::Value* FromMemory(IrBuilder& b, DType dtype, llvm::Value* loaded);
llvm::Value* ToMemory(IrBuilder& b, DType dtype, llvm::Value* value);

// f of a register's value, or of both parts of a complex one.
llvm::Value* ForEachPart(IrBuilder& b, absl::Span<llvm::Value* const> values,
                         absl::FunctionRef<llvm::Value*(absl::Span<llvm::Value* const>)> f);
llvm::Value* MakeComplex(IrBuilder& b, llvm::Value* re, llvm::Value* im);
// Whether two scalars have the same bits.
llvm::Value* SameBits(IrBuilder& b, llvm::Value* x, llvm::Value* y);

// The scalar of a rank-0 literal in register form.
llvm::Constant* ScalarConstant(IrBuilder& b, const Literal& literal);

}  // namespace lazuli::cpu
