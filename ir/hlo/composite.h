// Composites: calls that say what their body computes, by a name that a compiler may know.
//
//   c = call(x), to_apply=body, is_composite=true, frontend_attributes={composite.name="mylib.gelu"}
//
// What the body computes is the definition: a compiler that does not know the name inlines it.
#pragma once

#include <string_view>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

void MarkComposite(Instruction& call, std::string_view name);
bool IsComposite(const Instruction& i);

}  // namespace lazuli::hlo
