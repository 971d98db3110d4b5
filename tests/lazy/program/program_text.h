// Programs of HLO text for the tests of lazy/program.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/hlo/text/parser.h"
#include "lazy/program/program.h"

namespace lazuli::lazy {

inline ProgramPtr ProgramOf(const std::string& text, std::vector<ProgramCheck> checks = {}) {
  auto module = hlo::ParseModule(text);
  LAZULI_CHECK(module.ok(), module.status());
  return std::make_shared<Program>(*std::move(module), std::move(checks));
}

// Doubles two floats; a check fails where the first is above 10.
inline ProgramPtr CheckedDoubling() {
  return ProgramOf(R"(HloModule doubling
ENTRY main {
  x = f32[2] parameter(0)
  y = f32[2] add(x, x)
  first = f32[1] slice(x), slice={[0:1]}
  value = f32[] reshape(first)
  ten = f32[] constant(10)
  above = pred[] compare(value, ten), direction=GT
  found = s64[] convert(value)
  none = s64[] constant(-9223372036854775808)
  check = s64[] select(above, found, none)
  ROOT results = (f32[2], s64[]) tuple(y, check)
}
)",
                   {{.message = {"double", "value ", " is above 10"}, .function = {}}});
}

}  // namespace lazuli::lazy
