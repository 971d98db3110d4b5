// Text to program and back.
//
//   .config npu1-edge mxu.rows=16              the preset, and keys
//   .arg a s8[128,256] in                      an array in DRAM: in, out or inout
//   .bss x f32[8]                              an array of the program's own
//   .const c s32[4] 1 2 3 4
//   .desc d dim(128,32) src(256,1) dst(32,1) elem 1
//   .vdesc v dim(4,128) a.f32(128,1) b.f32(0,1) out.f32(128,1)
//   .vprog p ; mul v3, v0, v1 ; .end           a vector program
//   loop: add r1, r1, 1 ; jmp loop             a label, two instructions
//   dma.ld.1 [r3], $a[r4], d wait s0>=1 sig s1+1   # a comment
//
// More directives: .equ NAME NUMBER, .sem sN NUMBER (tokens at first), .entry LABEL, .hlo "..."
// (what the following instructions were made from), .meta "...". `@N` in front of an instruction
// says which line of a source it is from. r0 is always 0.
//
// What is wrong is an error "FILE:LINE: sentence". Disassemble() gives text that assembles to the
// same bytes.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "backend/npu/sim/program.h"

namespace lazuli::npu {

absl::StatusOr<Program> Assemble(std::string_view text, std::string_view file);
std::string Disassemble(const Program& program);
// One instruction as the assembler reads it; labels are L12, descriptors d3.
std::string InstructionText(const Program& program, const Instruction& instruction);
// That of the word at `pc`, or the word itself if it is no instruction.
std::string WordText(const Program& program, std::size_t pc);

}  // namespace lazuli::npu
