// Refusal: why a device does not run an instruction.
#pragma once

#include <string>

namespace lazuli::backend {

struct Refusal {
  std::string code;      // for tables: "unsupported-dtype" (placement.h has them all)
  std::string sentence;  // for people, without its end: "the vector unit has no asinh"
};

}  // namespace lazuli::backend
