// Quotients and remainders of integers whose divisors are 0, -1 or computed in a way that a code
// generator knows something about: the CPU's kernels give the evaluator's values and do not trap.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/str.h"
#include "tests/backend/clients/client_test.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

using ir::DType;
using ir::Literal;
using ir::Shape;
using ir::Str;

// Long enough for vectors of each width and a rest.
constexpr int64_t kElements = 211;

// Of {p, q}: 0, 1, -1, the width and its neighbours, the extremes, and others.
Literal Numbers(DType dtype, bool shifts) {
  const int bits = ir::Row(dtype).bits;
  const uint64_t ends[] = {0, 1, ~uint64_t{0}, uint64_t{1} << (bits - 1),
                           (uint64_t{1} << (bits - 1)) - 1};
  const auto width = static_cast<uint64_t>(bits);
  const uint64_t amounts[] = {0, 1, width - 1, width, width + 1, 2 * width, ~uint64_t{0}, 3};
  Literal x(Shape(dtype, {kElements}));
  for (int64_t i = 0; i < kElements; ++i) {
    const auto n = static_cast<uint64_t>(i);
    const uint64_t value = shifts       ? amounts[n * 5 % 8]
                           : n % 3 == 0 ? ends[n / 3 % 5]
                                        : n * 0x9E3779B97F4A7C15u >> (n % 61);
    const int unused = 64 - bits;  // narrow types lie sign- or zero-extended in a byte
    const uint64_t bytes =
        ir::IsSigned(dtype) ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused)
                            : value << unused >> unused;
    std::memcpy(x.mutable_raw() + i * ir::ByteWidth(dtype), &bytes,
                static_cast<std::size_t>(ir::ByteWidth(dtype)));
  }
  return x;
}

// Divisors over n, q (amounts of shifts), all ones and zero; t is the type, b that of a mask.
constexpr const char* kDivisors[] = {
    "d = t q()",
    "d = t shift-left(ones, q)",
    "d = t shift-right-logical(ones, q)",
    "d = t shift-right-arithmetic(ones, q)",
    "d = t shift-left(n, q)",
    "s = t shift-left(ones, q) d = t not(s)",
    "s = t shift-left(ones, q) d = t negate(s)",
    "s = t shift-left(one, q) d = t subtract(s, one)",
    "s = t shift-left(one, q) d = t maximum(s, zero)",
    "c = b compare(q, one), direction=LT d = t select(c, one, zero)",
    "c = b compare(q, one), direction=GT d = t select(c, n, zero)",
    "c = b compare(n, q), direction=EQ d = t convert(c)",
    "d = t and(n, one)",
    "d = t remainder(n, q)",
    "d = t divide(q, n)",
    "d = t multiply(q, zero)",
    "d = t popcnt(q)",
    "d = t count-leading-zeros(n)",
    "d = t minimum(n, one)",
    // Guards of the program's own, behind a division by the same number.
    "k = t divide(n, q) c = b compare(q, zero), direction=EQ d = t select(c, one, q)",
    "k = t divide(n, q) m = t remainder(q, n) z = b compare(q, zero), direction=EQ "
    "g = b compare(n, q), direction=GT c = b or(z, g) d = t select(c, one, q)",
    "k = t divide(n, q) z = b compare(q, zero), direction=NE g = b compare(n, zero), direction=NE "
    "c = b and(z, g) d = t select(c, q, one)",
    "d = t subtract(n, n)",
    "f = f convert(q) g = f multiply(f, f) d = t convert(g)",
};

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// The numbers divided by a divisor: quotients and remainders.
std::string ModuleText(const std::string& type, std::string divisor) {
  const std::string shape = Str(type, "[", kElements, "]");
  if (divisor == "d = t q()") divisor = Str("d = t copy(q)");
  divisor = Replaced(divisor, "= t ", Str("= ", shape, " "));
  divisor = Replaced(divisor, "= b ", Str("= pred[", kElements, "] "));
  divisor = Replaced(divisor, "= f ", Str("= f32[", kElements, "] "));
  std::string text =
      Str("ENTRY e {\n n = ", shape, " parameter(0)\n q = ", shape, " parameter(1)\n");
  for (const auto& [name, value] : {std::pair("zero", "0"), std::pair("one", "1")}) {
    text += Str(" ", name, "_ = ", type, "[] constant(", value, ")\n ", name, " = ", shape,
                " broadcast(", name, "_), dimensions={}\n");
  }
  text += Str(" ones_ = ", type, "[] not(zero_)\n ones = ", shape,
              " broadcast(ones_), dimensions={}\n ");
  const bool first = divisor.starts_with("k = ");  // another quotient comes first
  return Str(text, divisor, "\n x = ", shape, " divide(n, d)\n y = ", shape,
             " remainder(n, d)\n ROOT r = (", shape, ", ", shape, ", ", shape, ") tuple(x, y, ",
             first ? "k" : "x", ")\n}\n");
}

class DivisionTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, DivisionTest,
                         testing::Values(DType::kS4, DType::kU4, DType::kS8, DType::kU8,
                                         DType::kS16, DType::kU16, DType::kS32, DType::kU32,
                                         DType::kS64, DType::kU64),
                         [](const auto& info) { return std::string(ir::DTypeText(info.param)); });

TEST_P(DivisionTest, CpuAgreesWithInterpreterWhateverTheDivisor) {
  const DType dtype = GetParam();
  const std::vector<Literal> arguments{Numbers(dtype, false), Numbers(dtype, true)};
  for (const char* const divisor : kDivisors) {
    const std::string hlo = ModuleText(std::string(ir::DTypeText(dtype)), divisor);
    SCOPED_TRACE(hlo);
    const auto expected = RunOn("interpreter", hlo, arguments);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = RunOn("cpu", hlo, arguments);
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (std::size_t i = 0; i < 3; ++i) ExpectSameBits(expected->outputs[i], actual->outputs[i]);
  }
}

}  // namespace
}  // namespace lazuli
