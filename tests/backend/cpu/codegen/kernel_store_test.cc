#include "backend/cpu/codegen/kernel_store.h"

#include <gtest/gtest.h>

namespace lazuli::cpu {
namespace {

StoredKernel AKernel() {
  return {.shape = {.items = 1000,
                    .grain = 64,
                    .finish_items = 3,
                    .scratch_bytes = 256,
                    .in_place = {1, 0, 1},
                    .outermost = 10,
                    .by_part = {0, 1, 0},
                    .details = "loop [10,100] x16"},
          .object = std::string("\x7f"
                                "ELF\0\n 1 2",
                                10)};
}

TEST(KernelStoreTest, WhatIsPackedIsUnpacked) {
  const std::optional<StoredKernel> kernel = Unpack(Pack(AKernel()));
  ASSERT_TRUE(kernel.has_value());
  EXPECT_EQ(kernel->shape.items, 1000);
  EXPECT_EQ(kernel->shape.grain, 64);
  EXPECT_EQ(kernel->shape.finish_items, 3);
  EXPECT_EQ(kernel->shape.scratch_bytes, 256);
  EXPECT_EQ(kernel->shape.in_place, (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_EQ(kernel->shape.outermost, 10);
  EXPECT_EQ(kernel->shape.by_part, (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(kernel->shape.details, "loop [10,100] x16");
  EXPECT_EQ(kernel->object, AKernel().object);
}

TEST(KernelStoreTest, AKernelWithoutParametersOrDetails) {
  const std::optional<StoredKernel> kernel = Unpack(Pack({.shape = {}, .object = "code"}));
  ASSERT_TRUE(kernel.has_value());
  EXPECT_TRUE(kernel->shape.in_place.empty());
  EXPECT_EQ(kernel->shape.details, "");
  EXPECT_EQ(kernel->object, "code");
}

TEST(KernelStoreTest, WhatNobodyPackedIsRefused) {
  EXPECT_FALSE(Unpack("").has_value());
  EXPECT_FALSE(Unpack("1 2 3").has_value());
  EXPECT_FALSE(Unpack("1 2 3 4 5 99999999999\n\n").has_value());
  EXPECT_FALSE(Unpack("1 2 3 4 5 2 1\ndetails\ncode").has_value());
  EXPECT_FALSE(Unpack("1 2 3 4 5 1 1 2 1\ndetails\ncode").has_value());
  const std::string whole = Pack(AKernel());
  EXPECT_FALSE(Unpack(whole.substr(0, 20)).has_value());
}

}  // namespace
}  // namespace lazuli::cpu
