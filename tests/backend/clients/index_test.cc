// Positions that no array has, as data: starts are moved so that the window fits, windows of a
// scatter that do not fit are left out. Unsigned numbers of 2^63 and more lie behind every array.
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/str.h"
#include "tests/backend/clients/client_test.h"

namespace lazuli {
namespace {

using ir::Literal;
using ir::Shape;
using ir::Str;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr std::string_view kAdd =
    "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }\n";

// Text of a type, and a number of it that is behind every array.
struct Unsigned {
  const char* type;
  uint64_t most;
};
constexpr Unsigned kTypes[] = {{"u8", 255},
                               {"u16", 65535},
                               {"u32", std::numeric_limits<uint32_t>::max()},
                               {"u32", uint64_t{1} << 31},
                               {"u64", std::numeric_limits<uint64_t>::max()},
                               {"u64", uint64_t{1} << 63},
                               {"u64", (uint64_t{1} << 63) + 1}};

Literal Counting(int64_t count) {
  Literal x(Shape(ir::DType::kS32, {count}));
  for (int64_t i = 0; i < count; ++i) x.SetFromDouble(i, static_cast<double>(i));
  return x;
}

// The elements of the only result; the index is a constant of the program or computed when it runs.
void ExpectElements(const std::string& module, const std::vector<Literal>& parameters,
                    const std::vector<int32_t>& expected) {
  for (const char* const platform : {"interpreter", "cpu", "npu"}) {
    for (const char* const passes : {"", "simplification"}) {
      SCOPED_TRACE(Str(platform, " without passes: ", passes, "\n", module));
      const auto run =
          RunOn(platform, module, parameters, {.disabled_passes = passes, .op_filter = false});
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_THAT(run->outputs[0].data<int32_t>(), ElementsAreArray(expected));
    }
  }
}

TEST(IndexTest, UnsignedStartsOfSlicesAreClampedToTheEnd) {
  for (const Unsigned& u : kTypes) {
    const std::string start = Str("i = ", u.type, "[] constant(", u.most, ")\n");
    ExpectElements(Str("ENTRY e { x = s32[6] parameter(0) ", start,
                       "ROOT r = s32[2] dynamic-slice(x, i), dynamic_slice_sizes={2} }"),
                   {Counting(6)}, {4, 5});
    ExpectElements(Str("ENTRY e { x = s32[4] parameter(0) y = s32[1] parameter(1) ", start,
                       "ROOT r = s32[4] dynamic-update-slice(x, y, i) }"),
                   {Counting(4), Literal::Full(Shape(ir::DType::kS32, {1}), 7)}, {0, 1, 2, 7});
    // In a loop with its users.
    ExpectElements(Str("ENTRY e { x = s32[6] parameter(0) ", start,
                       "d = s32[2] dynamic-slice(x, i), dynamic_slice_sizes={2} "
                       "ROOT r = s32[2] add(d, d) }"),
                   {Counting(6)}, {8, 10});
  }
}

TEST(IndexTest, UnsignedIndicesOfGathersAreClampedToTheEnd) {
  for (const Unsigned& u : kTypes) {
    const std::string indices = Str("i = ", u.type, "[3,1] constant({{1}, {", u.most, "}, {0}})\n");
    const std::string gather = Str(
        "ENTRY e { x = s32[6] parameter(0) ", indices,
        "g = s32[3] gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1}\n");
    ExpectElements(gather + "ROOT r = s32[3] copy(g) }", {Counting(6)}, {1, 5, 0});
    ExpectElements(gather + "ROOT r = s32[3] add(g, g) }", {Counting(6)}, {2, 10, 0});
    // Of two components.
    ExpectElements(Str("ENTRY e { x = s32[6] parameter(0) y = s32[2,3] reshape(x) i = ", u.type,
                       "[2,2] constant({{0, ", u.most, "}, {", u.most, ", 0}})\n",
                       "ROOT g = s32[2] gather(y, i), offset_dims={}, collapsed_slice_dims={0,1}, "
                       "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1} }"),
                   {Counting(6)}, {2, 3});
  }
}

TEST(IndexTest, ScattersLeaveOutWhatUnsignedIndicesPutBehindTheEnd) {
  for (const Unsigned& u : kTypes) {
    ExpectElements(Str(kAdd, "ENTRY e { x = s32[6] parameter(0) i = ", u.type,
                       "[3,1] constant({{1}, {", u.most, "}, {0}}) u = s32[3] constant({10, 20, ",
                       "30})\nROOT r = s32[6] scatter(x, i, u), update_window_dims={}, "
                       "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                       "index_vector_dim=1, to_apply=add }"),
                   {Counting(6)}, {30, 11, 2, 3, 4, 5});
  }
}

TEST(IndexTest, NegativeStartsAreClampedToTheBeginning) {
  for (const char* const type : {"s8", "s16", "s32", "s64"}) {
    ExpectElements(Str("ENTRY e { x = s32[6] parameter(0) i = ", type,
                       "[] constant(-1)\nROOT r = s32[2] dynamic-slice(x, i), "
                       "dynamic_slice_sizes={2} }"),
                   {Counting(6)}, {0, 1});
  }
}

}  // namespace
}  // namespace lazuli
