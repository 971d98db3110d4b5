// For every rule of simplify: a program it changes, and one that looks alike but which it must
// leave alone.
#pragma once

#include <string_view>

#include "absl/types/span.h"

namespace lazuli::lowering {

// Bodies of an entry computation that may call add_f32, max_f32, min_f32, mul_f32, add_s32,
// less_f32, twice and half.
struct RuleSample {
  std::string_view rule;
  std::string_view positive;
  std::string_view negative;
};
absl::Span<const RuleSample> RuleSamples();

// The whole text of a module with this body.
inline constexpr std::string_view kSampleCallees = R"(
add_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
max_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
mul_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] multiply(a, b) }
add_s32 { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
less_f32 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
twice { a = f32[] parameter(0)  ROOT c = f32[] add(a, a) }
half { a = f32[] parameter(0)  h = f32[] constant(0.5)  ROOT c = f32[] multiply(a, h) }
)";

}  // namespace lazuli::lowering
