// The executable definition of HLO: interprets modules over literals. Slow, simple, and what every
// backend is compared with.
//
// Values are row major whatever layouts the shapes have. Runs on the caller's thread; uses no
// recursion over the length of a computation and keeps no value longer than it is needed. An error
// names the instruction and where it comes from: "aten::embedding: index 12 is out of range [0, 10)
// (train.py:31)".
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/devices/peers.h"
#include "ir/hlo/host_transfers.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::hlo {

struct EvaluateOptions {
  // What infeed and outfeed use; null: they are errors.
  HostTransfers* transfers = nullptr;
  // The run of which this is a part; null: of device 0, which is alone.
  PeerRun* peers = nullptr;
};

// Value of the entry's root (a tuple literal for a tuple root).
absl::StatusOr<Literal> Evaluate(const Module& module, absl::Span<const Literal* const> arguments,
                                 const EvaluateOptions& options = {});
absl::StatusOr<Literal> Evaluate(const Computation& computation,
                                 absl::Span<const Literal* const> arguments,
                                 const EvaluateOptions& options = {});

// Value of one instruction given its operands' values: the fallback of every device, and constant
// folding. The values must have the operands' shapes.
absl::StatusOr<Literal> EvaluateInstruction(const Instruction& instruction,
                                            absl::Span<const Literal* const> operands,
                                            const EvaluateOptions& options = {});

// Values of the module's result on devices 0, 1, ..., each of which has its own arguments: their
// collectives exchange values. One thread per device.
absl::StatusOr<std::vector<Literal>> EvaluateOnDevices(
    const Module& module, absl::Span<const std::vector<const Literal*>> arguments);

// The error with the instruction's name in front (op_name or op_type of the metadata, else opcode
// and name) and its source line behind: what evaluation and executables report.
absl::Status AtInstruction(const absl::Status& status, const Instruction& instruction);

}  // namespace lazuli::hlo
