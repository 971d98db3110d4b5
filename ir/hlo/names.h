// Names as HLO text spells them: [A-Za-z_][A-Za-z0-9_.-]*, and no word that means something else
// there.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/namespaces.h"

namespace lazuli::hlo {

// `wanted` with every other character replaced by '_'; element types and keywords get a '_' behind.
std::string CleanName(std::string_view wanted);

}  // namespace lazuli::hlo
