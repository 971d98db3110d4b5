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

#include "ir/hlo/host_transfers.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::hlo {

// Value of the entry's root (a tuple literal for a tuple root). Infeed and outfeed use `transfers`;
// without any they are errors.
absl::StatusOr<Literal> Evaluate(const Module& module, absl::Span<const Literal* const> arguments,
                                 HostTransfers* transfers = nullptr);
absl::StatusOr<Literal> Evaluate(const Computation& computation,
                                 absl::Span<const Literal* const> arguments,
                                 HostTransfers* transfers = nullptr);

// Value of one instruction given its operands' values: the fallback of every device, and constant
// folding. The values must have the operands' shapes.
absl::StatusOr<Literal> EvaluateInstruction(const Instruction& instruction,
                                            absl::Span<const Literal* const> operands,
                                            HostTransfers* transfers = nullptr);

// The error with the instruction's name in front (op_name or op_type of the metadata, else opcode
// and name) and its source line behind: what evaluation and executables report.
absl::Status AtInstruction(const absl::Status& status, const Instruction& instruction);

}  // namespace lazuli::hlo
