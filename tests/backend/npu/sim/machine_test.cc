#include "backend/npu/sim/machine.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/assembler.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::ElementsAre;

TEST(MachineTest, ScalarCodeCountsItsCycles) {
  const auto program =
      Assemble("movi r1, 5\nmovi r2, 0\nloop r3, r1\nadd r2, r2, r3\nendl\nhalt\n", "t");
  ASSERT_TRUE(program.ok()) << program.status();
  auto machine = Machine::Create(Config());
  ASSERT_TRUE(machine.ok());
  ASSERT_FALSE((*machine)->Load(*program).has_value());
  const auto fault = (*machine)->Run({});
  ASSERT_FALSE(fault.has_value()) << fault->ToString();
  EXPECT_EQ((*machine)->reg(0, 0, 2), 10);
  EXPECT_EQ((*machine)->cycles(), 2 + 1 + 5 + 1);
}

TEST(MachineTest, DelaysEndWithTheProgramTheyWereDrawnFor) {
  const auto program = Assemble(
      ".desc d dim(64) src(1) dst(1) elem 4\ndma.fill.0 [r1], d, 1\nfence all\nhalt\n", "t");
  ASSERT_TRUE(program.ok()) << program.status();
  auto machine = Machine::Create(Config());
  ASSERT_TRUE(machine.ok());
  const auto cycles = [&](uint64_t jitter) {
    EXPECT_FALSE((*machine)->Load(*program).has_value());
    EXPECT_FALSE((*machine)->Run({.jitter = jitter}).has_value());
    return (*machine)->cycles();
  };
  const int64_t plain = cycles(0), delayed = cycles(7);
  EXPECT_GT(delayed, plain);
  EXPECT_EQ(cycles(7), delayed);
  EXPECT_EQ(cycles(0), plain);
}

TEST(MachineTest, ArraysThatDoNotFitAreNeitherWrittenNorRead) {
  const auto program = Assemble(".arg x f32[1000000] in\nhalt\n", "t");
  ASSERT_TRUE(program.ok()) << program.status();
  Config config;
  config.dram.mb = 1;
  auto machine = Machine::Create(config);
  ASSERT_TRUE(machine.ok());
  const auto fault = (*machine)->Load(*program);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, ErrorCode::kOomDram);
  const std::vector<std::byte> bytes(4000000);
  const std::string error = "x does not fit the DRAM";
  EXPECT_EQ(Message((*machine)->WriteSymbol(0, "x", bytes)), error);
  EXPECT_EQ(Message((*machine)->ReadSymbol(0, "x").status()), error);
}

}  // namespace
}  // namespace lazuli::npu
