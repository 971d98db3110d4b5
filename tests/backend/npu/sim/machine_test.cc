#include "backend/npu/sim/machine.h"

#include <cstring>

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

}  // namespace
}  // namespace lazuli::npu
