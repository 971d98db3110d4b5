// Runs of one compiled program at the same time, which share what the program keeps between runs.
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "backend/cpu/runtime/library.h"
#include "ir/support/flags.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

TEST(ExecutableTest, RunsAtTheSameTimeEachHaveTheirOwnWeights) {
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const ExecutablePtr executable = *device.client->Compile(ParseHlo(R"(
    ENTRY main {
      x = f32[2,8,9,9] parameter(0)
      w = f32[16,8,3,3] parameter(1)
      c = f32[2,16,7,7] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      f = f32[2,784] reshape(c)
      ROOT d = f32[2,2] dot(f, f), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    })"),
                                                           {});
  const auto filled = [&](const Shape& shape, double value) {
    Literal literal(shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) literal.SetFromDouble(i, value);
    return *device.client->FromHost({literal.raw(), &literal.shape()}, {}, device);
  };
  const BufferPtr x = filled(Shape(DType::kF32, {2, 8, 9, 9}), 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const BufferPtr w = filled(Shape(DType::kF32, {16, 8, 3, 3}), t);
      const std::vector<BufferPtr> arguments{x, w};
      const auto expected = static_cast<float>(784 * 72 * t * 72 * t);
      for (int run = 0; run < 50; ++run) {
        const auto results =
            executable->Execute({.buffers = arguments, .scalars = {}, .donated = {}});
        ASSERT_TRUE(results.ok()) << results.status();
        const Literal values = *device.client->ToHost(*(*results)[0]);
        ASSERT_THAT(values.data<float>(), testing::Each(expected));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Packing a matrix is for speed only.
TEST(ExecutableTest, MatricesArePackedOnlyWhereNoLimitIsSet) {
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const auto scratch = [&](std::string_view limit) {
    EXPECT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", limit).ok());
    return (*device.client->Compile(ParseHlo(R"(
      ENTRY main {
        x = f32[1,256] parameter(0)
        w = f32[256,256] parameter(1)
        ROOT y = f32[1,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      })"),
                                    *CompileOptions::FromFlags()))
        ->stats()
        .temp_bytes;
  };
  EXPECT_LT(scratch("1g"), 256 * 256 * 4);
  if (HasOneDnn()) {
    EXPECT_GE(scratch("0"), 256 * 256 * 4);
  }
}

}  // namespace
}  // namespace lazuli::cpu
