// Loops of the elementwise opcodes over raw memory, one function for each opcode and element type,
// found once per use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::hlo {

// Computes `count` elements; every operand has that many. Attributes and types come from the
// instruction.
using Kernel = void (*)(const Instruction& instruction, const std::byte* const* operands,
                        std::byte* result, int64_t count);

// The loop of an elementwise instruction; null if the opcode does not take these types.
Kernel FindKernel(const Instruction& instruction);

// The loop of an opcode with a reference in opcode.def on operands of this type; null if it does
// not take it.
Kernel FindReferenceKernel(Opcode opcode, DType dtype);

// Brings the elements of types narrower than a byte back into their range.
void WrapSubByte(DType dtype, std::byte* values, int64_t count);

}  // namespace lazuli::hlo
