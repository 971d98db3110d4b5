// The compiler of the simulated NPU: a module of HLO to a program.
//
//   LAZULI_ASSIGN_OR_RETURN(const Program program, Compile(*module, config));
//   if (auto fault = machine->Load(program)) ...
//   machine->WriteSymbol(0, "p0", bytes);
//
// Arrays of the program: "p0", "p1", ... are the leaves of the entry's parameters and "r0", "r1", ... those of its result, row
// major whatever layouts the module has, scalars as arrays of one element; leaves without elements have no array, and a result that
// updates a parameter in place has the parameter's. Constants
// (c...) and temporaries (t...) follow. Where an instruction names a place in DRAM, its imm is the offset of the array that it
// accesses (in units of kDramUnit) and its register what is added to it; nothing else holds an address of DRAM. So a program can be bound to
// arrays that lie elsewhere by replacing these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/compiler/update_in_place.h"
#include "backend/npu/sim/config.h"
#include "backend/npu/sim/program.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// What the compiler did.
struct CompileReport {
  int64_t spm_bytes = 0, acc_rows = 0;           // the most that lives at one time
  int64_t temporary_bytes = 0;                   // of DRAM
  int spilled = 0;                               // values that left the scratchpad for lack of room
  std::string tiles;                             // the tile program as text, if it was asked for
  std::vector<const hlo::Instruction*> origins;  // of Program::origins; null: of none
  std::vector<MayReplace> updated;               // the pairs that are one array
};

#ifdef NDEBUG
inline constexpr bool kDebugBuild = false;
#else
inline constexpr bool kDebugBuild = true;
#endif

struct NpuCompileOptions {
  bool keep_tiles = false;
  // Devices run the program that are members of one group of its only collective; else all do.
  bool one_group = false;
  // Results that may lie where parameters do. A pair that does is the parameter's array, in and out.
  std::vector<MayReplace> updates = {};
  bool verify = kDebugBuild;  // Verify() (verify.h) what was made
};

// A program for an entry of whose instructions WhyNot() says nothing; else Unimplemented names the
// first that it refuses. The module is compiled as it is: who has not simplified it pays for that.
absl::StatusOr<Program> Compile(const hlo::Module& module, const Config& config,
                                CompileReport* report = nullptr,
                                const NpuCompileOptions& options = {});

// How an instruction is named in programs, and so in faults: Program::origins.
std::string OriginOf(const hlo::Instruction& instruction);

// Sizes: instructions, descriptors, memories.
std::string ReportText(const CompileReport& report, const Program& program);

}  // namespace lazuli::npu
