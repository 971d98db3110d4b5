// Laziness changes when work happens, never what it computes: random programs give the same bits
// with a sync after every op, with syncs at random places and with none, on every device.
//
// LAZULI_FUZZ_PROGRAMS=10000 runs more of them, LAZULI_FUZZ_SEED=... others.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fuzz/program.h"

namespace lazuli::fuzz {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// "" or which two ways of running the program differ, or the error of one.
std::string Difference(const Program& program) try {
  const Device interpreter("interpreter"), cpu("cpu");
  const Outcome expected = Run(program, interpreter, Syncs::kNone);
  if (Run(program, interpreter, Syncs::kAll) != expected)
    return "interpreter, a sync after every op";
  if (Run(program, interpreter, Syncs::kRandom) != expected) return "interpreter, random syncs";
  const Outcome on_cpu = Run(program, cpu, Syncs::kNone);
  if (SameBitsOnEveryDevice(program) && on_cpu != expected) return "cpu against the interpreter";
  if (Run(program, cpu, Syncs::kAll) != on_cpu) return "cpu, a sync after every op";
  if (Run(program, cpu, Syncs::kRandom) != on_cpu) return "cpu, random syncs";
  return "";
} catch (const Error& error) {
  return error.what();
}

// A share of the programs, so that ctest may run shares in parallel.
constexpr int kShares = 4;
constexpr std::uint64_t kPrograms = 240;
constexpr std::size_t kSteps = 12;
class RandomProgramTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shares, RandomProgramTest, testing::Range(0, kShares));

TEST_P(RandomProgramTest, GivesTheSameBitsWhereverSyncsFallOnEveryDevice) {
  const std::uint64_t programs = FromEnvironment("LAZULI_FUZZ_PROGRAMS", kPrograms) / kShares;
  const std::uint64_t first =
      FromEnvironment("LAZULI_FUZZ_SEED", 0) + static_cast<std::uint64_t>(GetParam()) * programs;
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    const Program program = RandomProgram(seed, kSteps);
    if (Difference(program).empty()) continue;
    const Program shortest =
        Minimize(program, [](const Program& shorter) { return !Difference(shorter).empty(); });
    FAIL() << Difference(shortest) << ":\n" << shortest.ToString();
  }
}

// What the programs above are made of: every op, about as often as any other.
TEST(ProgramTest, EveryOpIsDrawn) {
  EXPECT_GE(NumOps(), 25u);
  const std::uint64_t programs = FromEnvironment("LAZULI_FUZZ_PROGRAMS", kPrograms);
  const std::uint64_t first = FromEnvironment("LAZULI_FUZZ_SEED", 0);
  std::vector<std::uint64_t> drawn(NumOps());
  for (std::uint64_t seed = first; seed < first + programs; ++seed) {
    for (const Step& step : RandomProgram(seed, kSteps).steps) ++drawn[step.op];
  }
  for (std::size_t op = 0; op < NumOps(); ++op) {
    std::printf("%6llu  %s\n", static_cast<unsigned long long>(drawn[op]),
                std::string(OpText(op)).c_str());
    EXPECT_GE(drawn[op], programs * kSteps / NumOps() / 2) << OpText(op);
  }
}

TEST(ProgramTest, ProgramsAreDecidedByTheirSeed) {
  EXPECT_EQ(RandomProgram(7, 30).ToString(), RandomProgram(7, 30).ToString());
  EXPECT_NE(RandomProgram(7, 30).ToString(), RandomProgram(8, 30).ToString());
}

// A stand-in for a bug: programs fail that have both an erf and a copy_.
TEST(ProgramTest, MinimizingLeavesTheStepsThatMatter) {
  const auto fails = [](const Program& program) {
    const std::string text = program.ToString();
    return text.find("erf(") != std::string::npos && text.find("copy_(") != std::string::npos;
  };
  std::uint64_t seed = 0;
  while (!fails(RandomProgram(seed, 60))) ++seed;
  const Program shortest = Minimize(RandomProgram(seed, 60), fails);
  EXPECT_TRUE(fails(shortest)) << shortest.ToString();
  EXPECT_EQ(shortest.steps.size(), 2u) << shortest.ToString();
}

}  // namespace
}  // namespace lazuli::fuzz
