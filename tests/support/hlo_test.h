// HLO in tests: text to modules, and random values for their parameters.
//
//   auto module = ParseHlo("ENTRY main { ROOT p = f32[2] parameter(0) }");
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli {

// The module, verified. Text that does not parse is a mistake in the test: it ends the program with
// the parser's message.
std::unique_ptr<hlo::Module> ParseHlo(std::string_view text);

enum class RandomValues : uint8_t {
  kTame,     // small numbers, most of them no integers
  kSpecial,  // also zeros of both signs, ones, infinities, NaN, the extremes of integers
};

// Values decided by shape and seed.
ir::Literal RandomLiteral(const ir::Shape& shape, uint64_t seed,
                          RandomValues values = RandomValues::kTame);
// One for each parameter of the entry.
std::vector<ir::Literal> RandomArguments(const hlo::Module& module,
                                         RandomValues values = RandomValues::kTame);

// Adds a failure unless both have one shape and the same bits; one NaN is as good as another.
void ExpectSameBits(const ir::Literal& expected, const ir::Literal& actual);
// Adds a failure unless shapes are equal and each element is within atol + rtol * |expected|, or
// both are NaN.
void ExpectClose(const ir::Literal& expected, const ir::Literal& actual, double rtol,
                 double atol = 0);

}  // namespace lazuli
