// What the environment asks for beside the flags that there are: XLA_FLAGS, and variables that look
// like ours and are not.
//
// In our families (LAZULI_*, PT_XLA_*, XLA_*) a name that is one or two letters from a flag's is taken
// for a misspelling, which is an error. In families that other software has names of, too (PJRT_*,
// NPU_*, CPU_*, TF_*), it is one letter. Other unknown names of our families, and names of torch_xla
// and XLA that have no counterpart (ir/support/foreign.def), are said once on standard error and do
// nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// A variable of torch_xla's or a flag of XLA's ("--xla_cpu_use_onednn") that changes nothing here.
struct ForeignRow {
  std::string_view name;
  std::string_view here;  // the value that asks for what lazuli does anyway; empty: none does
  std::string_view why;
};
std::span<const ForeignRow> ForeignRows();

// The flags in a text as XLA reads it: "--name=value" and "--name", apart by white space, with
// quotes around values that have some; or the name of a file with such a text. Later ones win.
struct XlaFlag {
  std::string name;        // "--xla_cpu_ftz"
  std::string value;       // "true" where none is given
  bool has_value = false;  // whether one is
};
absl::StatusOr<std::vector<XlaFlag>> ParseXlaFlags(std::string_view text);

// The value of this flag in the variable XLA_FLAGS, which is read once; null if it has none.
const std::string* FindXlaFlag(std::string_view name);

// What is wrong with the names of variables and flags of XLA_FLAGS, and what is just said.
struct EnvironmentFindings {
  absl::Status error;
  std::vector<std::string> warnings;
};
// `variables` are "NAME=value".
EnvironmentFindings CheckVariables(std::span<const std::string_view> variables);
EnvironmentFindings CheckXlaFlags(std::string_view text);

// Both of them for this process, the warnings written to standard error.
absl::Status CheckEnvironment();

}  // namespace lazuli::ir
