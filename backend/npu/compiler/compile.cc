#include "backend/npu/compiler/compile.h"

#include <utility>
#include <vector>

#include "backend/npu/compiler/allocate.h"
#include "backend/npu/compiler/emit.h"
#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/prefetch.h"
#include "backend/npu/compiler/residence.h"
#include "backend/npu/compiler/supported.h"
#include "backend/npu/compiler/synchronise.h"
#include "backend/npu/compiler/verify.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

absl::Status CheckSupported(const hlo::Module& module, const Config& config) {
  for (const hlo::Instruction* i : module.entry()->PostOrder()) {
    if (const std::optional<Refusal> refusal = WhyNot(*i, config))
      return Unimplemented(refusal->code, ": ", OriginOf(*i), ": ", refusal->sentence);
  }
  return absl::OkStatus();
}

// With loads as early as there is room for.
absl::Status PlaceEarly(const Config& config, TileProgram& tiles, Occupancy& occupancy,
                        Shortage* shortage = nullptr) {
  TileProgram early = tiles;
  PrefetchLoads(early);
  if (Allocate(config, early, &occupancy).ok()) {
    tiles = std::move(early);
    return absl::OkStatus();
  }
  return Allocate(config, tiles, &occupancy, shortage);
}

// With small temporaries in the scratchpad, as long as there is room for them.
absl::Status PlaceBuffers(const Config& config, TileProgram& tiles, Occupancy& occupancy,
                          int& spilled) {
  Residence residence(config, tiles);
  while (residence.any()) {
    TileProgram kept = residence.Apply();
    Shortage shortage;
    if (PlaceEarly(config, kept, occupancy, &shortage).ok()) {
      tiles = std::move(kept);
      spilled = residence.spilled();
      return absl::OkStatus();
    }
    if (!residence.Spill(shortage)) break;
  }
  return PlaceEarly(config, tiles, occupancy);
}

// Kernels plan with a part of the scratchpad each. Should that ever not fit together, all of them do
// with less.
absl::Status MakeTiles(const hlo::Computation& entry, const Config& config,
                       const NpuCompileOptions& options, TileProgram& tiles, Occupancy& occupancy,
                       CompileReport& report) {
  absl::Status status;
  for (Config planned = config; planned.spm.kb >= 1; planned.spm.kb /= 2) {
    tiles = {};
    TileBuilder builder(planned, tiles);
    LAZULI_RETURN_IF_ERROR(Lowering(builder, options.one_group).LowerEntry(entry));
    report.updated = UpdateInPlace(tiles, options.updates);
    status = PlaceBuffers(config, tiles, occupancy, report.spilled);
    if (!absl::IsResourceExhausted(status)) return status;
  }
  return status;
}

int64_t TemporaryBytes(const Program& program) {
  int64_t bytes = 0;
  for (const Symbol& symbol : program.symbols) {
    if (symbol.kind == SymbolKind::kBss) bytes += symbol.bytes();
  }
  return bytes;
}

}  // namespace

absl::StatusOr<Program> Compile(const hlo::Module& module, const Config& config,
                                CompileReport* report, const NpuCompileOptions& options) {
  LAZULI_RETURN_IF_ERROR(CheckSupported(module, config));
  TileProgram tiles;
  Occupancy occupancy;
  CompileReport unasked;
  if (report == nullptr) report = &unasked;
  LAZULI_RETURN_IF_ERROR(MakeTiles(*module.entry(), config, options, tiles, occupancy, *report));
  LAZULI_RETURN_IF_ERROR(Synchronise(tiles));
  report->spm_bytes = occupancy.spm_bytes;
  report->acc_rows = occupancy.acc_rows;
  report->origins = tiles.instructions;
  if (options.keep_tiles) report->tiles = tiles.ToString();
  absl::StatusOr<Program> program = Emit(config, tiles);
  if (program.ok()) report->temporary_bytes = TemporaryBytes(*program);
  if (program.ok() && options.verify) LAZULI_RETURN_IF_ERROR(Verify(*program, config));
  return program;
}

std::string ReportText(const CompileReport& report, const Program& program) {
  return Str("instructions ", program.text.size(), "\ndescriptors ", program.descriptors.size(),
             "\nvector programs ", program.vectors.size(), "\nscratchpad ", report.spm_bytes,
             " bytes at most\naccumulators ", report.acc_rows, " rows at most\nspilled ",
             report.spilled, " values\ntemporaries ", report.temporary_bytes,
             " bytes of DRAM\nconstants ", program.constants.size(), " bytes\n");
}

}  // namespace lazuli::npu
