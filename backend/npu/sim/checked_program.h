// A program that a machine can run: every instruction has been checked and taken apart once, so that
// the units meet only what they can carry out.
//
// Checking takes as long as the program is; whoever runs it often keeps the result. The text says
// where arrays are by the places that the program gives them; `references` says which instruction
// means which array, so that a run can have them anywhere in the DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/fault.h"
#include "backend/npu/sim/isa.h"
#include "backend/npu/sim/program.h"

namespace lazuli::npu {

struct CheckedProgram {
  Program program;
  std::vector<Instruction> code;
  std::vector<std::vector<MicroInstruction>> vectors;
  // An instruction that names a place in DRAM, and the array that begins there; -1: none does.
  struct Reference {
    uint32_t pc;
    int32_t symbol;
  };
  std::vector<Reference> references;
};

// The first thing that is wrong with the program. `checked` has the program in any case.
std::optional<Fault> CheckProgram(const Program& program, const Config& config,
                                  CheckedProgram& checked);

// Fills in the instruction, its line and what it was made from.
void Locate(const Program& program, uint32_t pc, Fault& fault);

}  // namespace lazuli::npu
