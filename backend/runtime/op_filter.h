// OpFilter: which opcodes a device takes, by configuration and environment.
//
// Two lists of HLO opcodes: those that are denied, and those that are allowed, where an empty list
// allows all. A device joins what its own configuration says with CompileOptions, which come from
// LAZULI_DENY_OPS and LAZULI_ALLOW_OPS. What is turned away goes to the host (placement.h).
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "backend/client/client.h"
#include "ir/hlo/opcode.h"

namespace lazuli::backend {

class OpFilter {
 public:
  // Names of opcodes joined by "," or "+". `source` is whose they are, for errors and reasons:
  // "LAZULI_DENY_OPS".
  absl::Status Deny(std::string_view names, std::string_view source);
  absl::Status Allow(std::string_view names, std::string_view source);
  // What the options say, in addition.
  absl::Status Add(const CompileOptions& options);

  bool empty() const { return denied_.opcodes.empty() && allowed_.opcodes.empty(); }
  // Why the opcode is turned away; empty if it is not.
  std::string WhyDenied(hlo::Opcode opcode) const;

 private:
  struct OpcodeList {
    std::set<hlo::Opcode> opcodes;
    std::string source;
  };
  OpcodeList denied_, allowed_;
};

}  // namespace lazuli::backend
