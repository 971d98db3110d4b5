// HloModuleProto in and out: the binary form of a module that XLA's tools, JAX and torch_xla
// exchange.
//
// Field numbers are those of XLA's public hlo.proto and xla_data.proto. Fields that only concern
// several devices, profiles or debugging beyond source lines are dropped. Never aborts, recurses or
// allocates without bound, whatever the bytes; an error names computation and instruction: "main:
// dot.3: dot: ...". The module that is read is verified.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

absl::StatusOr<std::unique_ptr<Module>> ParseModuleProto(std::string_view bytes);

// An attribute that has no field (one that the parser kept but does not know) is left out.
std::string SerializeModuleProto(const Module& module);

}  // namespace lazuli::hlo
