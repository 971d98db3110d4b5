#include "backend/npu/sim/energy.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lazuli::npu
