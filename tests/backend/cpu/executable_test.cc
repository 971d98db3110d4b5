// Runs of one compiled program at the same time, which share what the program keeps between runs.
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "backend/cpu/runtime/library.h"
#include "ir/support/data_memory.h"
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
        x = f32[16,256] parameter(0)
        w = f32[256,256] parameter(1)
        ROOT y = f32[16,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      })"),
                                    *CompileOptions::FromFlags()))
        ->stats()
        .temp_bytes;
  };
  EXPECT_LT(scratch("1g"), 256 * 256 * 4);
  // On some processors the library would run other code of a packed matrix: then none is packed.
  const MatmulSpec spec{.m = 16,
                        .n = 256,
                        .k = 256,
                        .a_strides = {16 * 256, 256, 1},
                        .b_strides = {256 * 256, 256, 1},
                        .c_strides = {16 * 256, 256, 1},
                        .b_stays = true};
  const auto plan = *PlanMatmul(spec, CompileOptions::FromFlags()->num_threads);
  EXPECT_EQ(scratch("0") >= 256 * 256 * 4, plan.packing != nullptr);
}

// Two writes to an array, one after the other, and a sum.
class WritesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RegisterCpu();
    device_ = *FindDevice("cpu");
  }
  ExecutablePtr Compile(std::string_view read) {
    return *device_.client->Compile(
        ParseHlo(ir::Str(R"(HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }
          add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
          ENTRY main {
            x = f32[1000] parameter(0)
            i = s32[] parameter(1)
            zero = f32[] constant(0)
            u = f32[2] constant({5, 6})
            v = f32[1] constant({7})
            first = f32[1000] dynamic-update-slice(x, u, i)
            second = f32[1000] dynamic-update-slice(first, v, i)
            sum = f32[] reduce()",
                         read, R"(, zero), dimensions={0}, to_apply=add
            ROOT t = (f32[], f32[1000]) tuple(sum, second)
          })")),
        {});
  }
  // Runs with x of ones at `data`. The elements from 3 on, the sum, and where the result lies.
  void Run(Executable& executable, std::vector<float>& data, bool writable, bool donated) {
    const Shape shape(DType::kF32, {1000});
    const Literal three = Literal::Scalar(int32_t{3});
    const std::vector<BufferPtr> arguments{
        *device_.client->FromHost(
            {data.data(), &shape, writable}, [] {}, device_),
        *device_.client->FromHost({three.raw(), &three.shape()}, {}, device_)};
    const std::vector<uint8_t> given_up{static_cast<uint8_t>(donated), 0};
    const auto results =
        *executable.Execute({.buffers = arguments, .scalars = {}, .donated = given_up});
    in_place_ = results[1]->host_data() == reinterpret_cast<const std::byte*>(data.data());
    const Literal values = *device_.client->ToHost(*results[1]);
    written_.assign(values.data<float>().begin() + 3, values.data<float>().begin() + 6);
    sum_ = device_.client->ToHost(*results[0])->data<float>()[0];
  }

  Device device_;
  std::vector<float> written_;
  float sum_ = 0;
  bool in_place_ = false;
};

TEST_F(WritesTest, WhatLiesBetweenLiesInTheResultsMemory) {
  const ExecutablePtr executable = Compile("second");
  EXPECT_LT(executable->stats().temp_bytes, 1000);
  for (const bool writable : {false, true}) {
    for (const bool donated : {false, true}) {
      std::vector<float> data(1000, 1);
      Run(*executable, data, writable, donated);
      EXPECT_THAT(written_, testing::ElementsAre(7, 6, 1));
      EXPECT_EQ(sum_, 1011);
      // Imported memory is written to where it was lent for that, and a run may have it.
      EXPECT_EQ(in_place_, writable && donated);
      EXPECT_EQ(data[3], in_place_ ? 7 : 1);
    }
  }
}

TEST_F(WritesTest, NotWhereTheOldElementsAreStillRead) {
  const ExecutablePtr executable = Compile("x");
  std::vector<float> data(1000, 1);
  Run(*executable, data, /*writable=*/true, /*donated=*/true);
  EXPECT_THAT(written_, testing::ElementsAre(7, 6, 1));
  EXPECT_EQ(sum_, 1000);
}

// The arena, the packed weights, the results: a run that does not get one of them says so, and the
// next one is right.
TEST(ExecutableTest, ARunWithoutMemoryForItsDataChangesNothing) {
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const auto ones = [&](const Shape& shape) {
    const Literal literal = Literal::Full(shape, 1);
    return *device.client->FromHost({literal.raw(), &literal.shape()}, {}, device);
  };
  const std::vector<BufferPtr> arguments{ones(Shape(DType::kF32, {2, 8, 9, 9})),
                                         ones(Shape(DType::kF32, {16, 8, 3, 3}))};
  int refused = 0;
  for (bool reached = true; reached;) {
    const ExecutablePtr executable = *device.client->Compile(ParseHlo(R"(
      ENTRY main {
        x = f32[2,8,9,9] parameter(0)
        w = f32[16,8,3,3] parameter(1)
        ROOT c = f32[2,16,7,7] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      })"),
                                                             {});
    const auto run = [&] {
      return executable->Execute({.buffers = arguments, .scalars = {}, .donated = {}});
    };
    {
      const ir::ScopedDataFault fault(refused);
      const auto results = run();
      reached = fault.happened();
      EXPECT_EQ(results.ok(), !reached);
      if (!results.ok()) {
        EXPECT_EQ(results.status().code(), absl::StatusCode::kResourceExhausted);
        EXPECT_THAT(std::string(ir::Message(results.status())),
                    testing::HasSubstr("out of memory: a"));
      }
    }
    if (reached) ++refused;
    const auto results = run();
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_THAT(device.client->ToHost(*(*results)[0])->data<float>(), testing::Each(72));
  }
  EXPECT_GE(refused, HasOneDnn() ? 3 : 2);
}

// Code generation makes literals, too.
TEST(ExecutableTest, ACompileWithoutMemoryForLiteralsIsRefused) {
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const auto compile = [&]() -> absl::Status {
    try {
      return device.client
          ->Compile(ParseHlo(R"(
            max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
            ENTRY main {
              x = f32[5,9] parameter(0)
              low = f32[] constant(-inf)
              ROOT r = f32[5] reduce(x, low), dimensions={1}, to_apply=max
            })"),
                    {})
          .status();
    } catch (const ir::NoDataMemory& error) {
      return error.status();
    }
  };
  ASSERT_TRUE(compile().ok());
  int refused = 0;
  for (bool reached = true; reached; ++refused) {
    {
      const ir::ScopedDataFault fault(refused);
      const absl::Status status = compile();
      reached = fault.happened();
      EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
    }
    EXPECT_TRUE(compile().ok());
  }
  EXPECT_GT(refused, 1);
}

}  // namespace
}  // namespace lazuli::cpu
