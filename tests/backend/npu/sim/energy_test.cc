#include "backend/npu/sim/energy.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/area.h"

namespace lazuli::npu {
namespace {

TEST(EnergyTest, IsTheSumOfCountsTimesTheTable) {
  Config config;
  const Energy energy = EnergyOf({.cycles = 1000000,
                                  .macs_int8 = 1000000,
                                  .macs_bf16 = 2000000,
                                  .macs_f32 = 3000000,
                                  .acc_words = 100000,
                                  .spm_bytes = 800000,
                                  .dram_bytes = 80000,
                                  .alu_ops = 10000,
                                  .sfu_ops = 1000,
                                  .link_bytes = 8000},
                                 config);
  EXPECT_EQ(energy.table, "horowitz45");
  double sum = 0;
  for (const EnergyPart& part : energy.parts) sum += part.joules;
  EXPECT_DOUBLE_EQ(energy.joules, sum);
  EXPECT_NEAR(energy.parts[0].joules * 1e6, 0.3 + 4.0 + 13.8, 1e-9);
  EXPECT_NEAR(energy.parts[4].joules * 1e6, 10000 * 1950e-6, 1e-9);
  EXPECT_NEAR(energy.parts[6].joules * 1e6, 50, 1e-9);  // 50 mW for a millisecond
  EXPECT_THAT(EnergyText(energy), ::testing::StartsWith("92.03 uJ (horowitz45): macs 18.1, "));
}

TEST(EnergyTest, ScratchpadsCostByTheSizeOfABank) {
  const auto access = [](const char* keys) {
    Config config;
    EXPECT_TRUE(SetKeys(keys, config).ok());
    return SpmAccessEnergy(config);
  };
  EXPECT_NEAR(access("spm.kb=128"), 10, 1e-9);
  EXPECT_NEAR(access("spm.kb=512"), 20, 1e-9);
  EXPECT_NEAR(access("spm.kb=16384"), 100, 1e-9);
  EXPECT_GT(access("spm.kb=1024"), 20);
  EXPECT_NEAR(access("spm.kb=1024,spm.banks=32"), 20, 1e-9);
}

TEST(EnergyTest, EveryTableSaysWhereItIsFrom) {
  const std::string page = EnergyPage();
  for (const char* name : {"horowitz45", "aladdin40"}) {
    Config config;
    ASSERT_TRUE(SetKeys(std::string("energy.table=") + name, config).ok());
    EXPECT_EQ(EnergyOf({}, config).table, name);
    EXPECT_EQ(EnergyOf({}, config).joules, 0);
    EXPECT_THAT(page, ::testing::HasSubstr(std::string("- `") + name + "`: "));
  }
}

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
