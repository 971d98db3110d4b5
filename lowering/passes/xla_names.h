// Names that XLA has for what passes here do, so that --xla_disable_hlo_passes=algsimp means
// something. Several of XLA's may be one of ours.
#pragma once

#include <span>
#include <string_view>

#include "ir/support/namespaces.h"

namespace lazuli::lowering {

struct XlaPassName {
  std::string_view xla, ours;
};
std::span<const XlaPassName> XlaPassNames();

}  // namespace lazuli::lowering
