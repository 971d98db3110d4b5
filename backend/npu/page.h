// What pages of HTML about the NPU share: text in HTML, and numbers as people read them.
#pragma once

#include <string>
#include <string_view>

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

// With &, <, > and quotes as entities.
std::string Escaped(std::string_view text);
std::string Fixed(double value, int digits);
// "5.44 ms", "0.2 us": three digits; the summary's way.
std::string Scaled(double value, std::string_view unit);
// "12.3 M".
std::string Large(double value);

}  // namespace lazuli::npu
