// What lies at the edges: numbers behind the largest one of a dtype, infinite parts, windows without
// elements.
#include <complex>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backend/clients/client_test.h"

namespace lazuli {
namespace {

using ir::Literal;
using ::testing::ElementsAre;

constexpr const char* kPlatforms[] = {"interpreter", "cpu", "npu"};

TEST(EdgesTest, AnIotaOfFewBitsStartsAgain) {
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform,
                           "ENTRY e { i = s4[10] iota(), iota_dimension=0 "
                           "ROOT y = s32[10] convert(i) }",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->outputs[0].data<int32_t>(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, -8, -7))
        << platform;
  }
}

// (1 + inf i) * (2 + 0.5 i): infinity is not multiplied by a zero that nobody wrote.
TEST(EdgesTest, InfinityIsNotMultipliedByAZeroOfTheLibrary) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform, R"(
        ENTRY e {
          one = f32[1,1] constant({{1}})
          two = f32[1,1] constant({{2}})
          large = f32[1,1] constant({{inf}})
          small = f32[1,1] constant({{0.5}})
          x = c64[1,1] complex(one, large)
          y = c64[1,1] complex(two, small)
          p = c64[1,1] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          re = f32[1,1] real(p)
          im = f32[1,1] imag(p)
          ROOT parts = f32[1,2] concatenate(re, im), dimensions={1}
        })",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->outputs[0].data<float>(), ElementsAre(-kInfinity, kInfinity)) << platform;
  }
}

TEST(EdgesTest, AWindowWithoutElementsGivesTheInitialValue) {
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform, R"(
        smaller { a = s32[] parameter(0) b = s32[] parameter(1) ROOT m = s32[] minimum(a, b) }
        ENTRY e {
          x = s32[1] constant({5})
          init = s32[] constant(9)
          ROOT y = s32[1] reduce-window(x, init), window={size=0 pad=-1_0}, to_apply=smaller
        })",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->outputs[0].data<int32_t>(), ElementsAre(9)) << platform;
  }
}

// A loop over the groups would not end.
TEST(EdgesTest, OfNoFeaturesThereMayBeAnyNumberOfGroups) {
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform, R"(
        ENTRY e {
          x = f32[1,0,5] constant({{}})
          k = f32[0,0,2] constant({})
          ROOT y = f32[1,0,4] convolution(x, k), window={size=2}, dim_labels=bf0_oi0->bf0,
              feature_group_count=9223372036854775806
        })",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->outputs[0].shape().num_elements(), 0) << platform;
  }
}

TEST(EdgesTest, BehindAnOnlyElementAnyNumberOfOthersIsInside) {
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform, R"(
        ENTRY e {
          x = s32[1] constant({7})
          zero = s32[] constant(0)
          ROOT y = s32[3] pad(x, zero), padding=1_1_9223372036854775806
        })",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->outputs[0].data<int32_t>(), ElementsAre(0, 7, 0)) << platform;
  }
}

TEST(EdgesTest, AStepBeyondTheArrayMayBeAny) {
  for (const char* const platform : kPlatforms) {
    const auto run = RunOn(platform, R"(
        ENTRY e {
          x = c64[3] constant({(1,2), (3,4), (5,6)})
          ROOT y = c64[1] slice(x), slice={[1:3:9223372036854775806]}
        })",
                           {}, {.op_filter = false});
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_THAT(run->outputs[0].data<std::complex<float>>(),
                ElementsAre(std::complex<float>(3, 4)))
        << platform;
  }
}

}  // namespace
}  // namespace lazuli
