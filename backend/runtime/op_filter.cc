#include "backend/runtime/op_filter.h"

#include "ir/support/name_list.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

absl::Status Parse(std::string_view names, std::string_view source,
                   std::set<hlo::Opcode>& opcodes) {
  for (const std::string_view name : SplitNames(names, ",+")) {
    const std::optional<hlo::Opcode> opcode = hlo::ParseOpcode(name);
    if (!opcode)
      return InvalidArgument(source, ": \"", name,
                             "\" is not an HLO opcode; they are in docs/hlo.md");
    opcodes.insert(*opcode);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status OpFilter::Deny(std::string_view names, std::string_view source) {
  if (names.empty()) return absl::OkStatus();
  denied_.source += Str(denied_.source.empty() ? "" : " or ", source);
  return Parse(names, source, denied_.opcodes);
}

absl::Status OpFilter::Allow(std::string_view names, std::string_view source) {
  if (names.empty()) return absl::OkStatus();
  allowed_.source += Str(allowed_.source.empty() ? "" : " or ", source);
  return Parse(names, source, allowed_.opcodes);
}

absl::Status OpFilter::Add(const CompileOptions& options) {
  LAZULI_RETURN_IF_ERROR(Deny(options.denied_ops, "LAZULI_DENY_OPS"));
  return Allow(options.allowed_ops, "LAZULI_ALLOW_OPS");
}

std::string OpFilter::WhyDenied(hlo::Opcode opcode) const {
  if (denied_.opcodes.contains(opcode))
    return Str(hlo::OpcodeText(opcode), " is denied by ", denied_.source);
  if (!allowed_.opcodes.empty() && !allowed_.opcodes.contains(opcode))
    return Str(hlo::OpcodeText(opcode), " is not among what ", allowed_.source, " allows");
  return {};
}

}  // namespace lazuli::backend
