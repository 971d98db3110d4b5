// Makes a program of a tile program whose buffers have places and whose units have tokens.
//
// Operations become instructions one by one. Addresses and offsets go through registers, which are
// read when an instruction is put into its queue: a value that a register still holds is not loaded
// again.
//
// Scalar code is operations of the sequencer. They use registers 1 to kScalarRegisters, which
// addresses do not. A branch goes to the operation sq Op::kNop with its label.
#pragma once

#include "absl/status/statusor.h"

#include "backend/npu/compiler/tile_ir.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

inline constexpr int kScalarRegisters = 15;

absl::StatusOr<Program> Emit(const Config& config, const TileProgram& tiles);

}  // namespace lazuli::npu
