#include "tools/npu/area.h"

#include <gtest/gtest.h>

namespace lazuli::npu {
namespace {

TEST(AreaTest, IsTheSumOfWhatAMachineHas) {
  const Area one = AreaOf({});
  double sum = 0;
  for (const AreaPart& part : one.parts) sum += part.mm2;
  EXPECT_DOUBLE_EQ(one.mm2, sum);
  EXPECT_NEAR(one.parts[0].mm2, 1024 * (282 + 137 + 1640 + 4184 + 7700 / 4.0) * 1e-6, 1e-9);
  EXPECT_NEAR(one.parts[2].mm2, 1024 * 1024 * 8 * 0.346 / 0.5 * 1e-6, 1e-9);
  Config config;
  ASSERT_TRUE(SetKeys("cores=3,mxu.f32=x3", config).ok());
  EXPECT_NEAR(AreaOf(config).mm2, 3 * (one.mm2 - 1024 * 1925e-6), 1e-9);
}

}  // namespace
}  // namespace lazuli::npu
