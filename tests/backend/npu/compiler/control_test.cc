#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

TEST(NpuControlTest, LoopsSwapWhatTheyCarry) {
  ExpectCompiled(R"(
    condition { s = (s32[], f32[40], f32[40]) parameter(0) i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(5) ROOT c = pred[] compare(i, n), direction=LT }
    body { s = (s32[], f32[40], f32[40]) parameter(0) i = s32[] get-tuple-element(s), index=0
      a = f32[40] get-tuple-element(s), index=1 b = f32[40] get-tuple-element(s), index=2
      one = s32[] constant(1) j = s32[] add(i, one) c = f32[40] subtract(a, b)
      ROOT t = (s32[], f32[40], f32[40]) tuple(j, b, c) }
    ENTRY e { z = s32[] constant(0) a = f32[40] parameter(0) b = f32[40] parameter(1)
      t = (s32[], f32[40], f32[40]) tuple(z, a, b)
      ROOT w = (s32[], f32[40], f32[40]) while(t), condition=condition, body=body })");
}

// A loop that writes an array row by row changes it where it lies, unless somebody still reads what was there.
TEST(NpuControlTest, UpdatesOfSlicesAreDoneInPlace) {
  const auto loop = [](std::string_view result) {
    return Str(R"(
    condition { s = (s32[], f32[200,64]) parameter(0) i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(50) ROOT c = pred[] compare(i, n), direction=LT }
    body { s = (s32[], f32[200,64]) parameter(0) i = s32[] get-tuple-element(s), index=0
      x = f32[200,64] get-tuple-element(s), index=1 zero = s32[] constant(0) one = s32[] constant(1) j = s32[] add(i, one)
      row = f32[1,64] dynamic-slice(x, i, zero), dynamic_slice_sizes={1,64} twice = f32[1,64] add(row, row)
      y = f32[200,64] dynamic-update-slice(x, twice, j, zero) z = f32[200,64] )",
               result, R"(
      ROOT t = (s32[], f32[200,64]) tuple(j, z) }
    ENTRY e { a = f32[200,64] parameter(0) zero = s32[] constant(0) t = (s32[], f32[200,64]) tuple(zero, a)
      w = (s32[], f32[200,64]) while(t), condition=condition, body=body ROOT r = f32[200,64] get-tuple-element(w), index=1 })");
  };
  const auto cycles = [](const std::string& hlo) {
    const auto module = ParseHlo(hlo);
    const std::vector<Literal> arguments = RandomArguments(*module);
    int64_t count = 0;
    EXPECT_TRUE(RunCompiled(*module, {{&arguments[0]}}, Config(), {}, &count).ok());
    return count;
  };
  const std::string in_place = loop("copy(y)"), copies = loop("maximum(x, y)");
  ExpectCompiled(in_place);
  ExpectCompiled(copies);
  EXPECT_LT(cycles(in_place), 50 * 1000 + 10000);  // all of the array takes 4,000 to copy
  EXPECT_GT(cycles(copies), 50 * 4000);
}

// What one kernel makes for the next stays in the scratchpad if it is small.
TEST(NpuControlTest, SmallTemporariesNeedNoDram) {
  const auto chain = [](int64_t rows) {
    const std::string shape = Str("f32[", rows, ",32]");
    return Str("add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n",
               "ENTRY e { x = ", shape,
               " parameter(0) w = f32[32,32] parameter(1) zero = f32[] constant(0)\n",
               "y = ", shape, " dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
               "z = ", shape, " dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
               "s = f32[32] reduce(z, zero), dimensions={0}, to_apply=add\n", "b = ", shape,
               " broadcast(s), dimensions={1} ROOT r = ", shape, " divide(z, b) }");
  };
  const auto temporaries = [](const std::string& hlo, const Config& config) {
    CompileReport report;
    EXPECT_TRUE(CompileSimplified(*ParseHlo(hlo), config, &report).ok());
    return report.temporary_bytes;
  };
  ExpectCompiled(chain(20), {.rtol = 1e-4, .atol = 1e-4});
  EXPECT_EQ(temporaries(chain(20), Config()), 0);
  EXPECT_GT(temporaries(chain(2000), Config()), 2000 * 32 * 4);
  Config tight;
  tight.spm.kb = 8;
  ExpectCompiled(chain(20), {.rtol = 1e-4, .atol = 1e-4, .config = tight});
}

TEST(NpuControlTest, BranchesByNumberAndByPredicate) {
  for (const char* const index : {"-1", "0", "1", "2", "7"}) {
    ExpectCompiled(std::string(R"(
      first { x = f32[9] parameter(0) ROOT y = f32[9] negate(x) }
      second { x = f32[9] parameter(0) ROOT y = f32[9] multiply(x, x) }
      third { x = f32[9] parameter(0) ROOT y = f32[9] exponential(x) }
      ENTRY e { x = f32[9] parameter(0) p = pred[] parameter(1) i = s32[] constant()") +
                   index + R"()
        j = s32[] negate(i) k = s32[] opt-barrier(j) l = s32[] negate(k)
        a = f32[9] conditional(l, x, x, x), branch_computations={first, second, third}
        b = f32[9] conditional(p, x, a), true_computation=first, false_computation=third
        ROOT c = f32[9] add(a, b) })");
  }
}

TEST(NpuControlTest, SlicesAtPlacesThatDataSays) {
  for (const char* const start : {"-3", "0", "2", "5", "99"}) {
    ExpectCompiled(std::string("ENTRY e { x = f32[9,11,4] parameter(0) u = f32[3,2,4] parameter(1) "
                               "a = s64[] constant(") +
                   start +
                   ") i = s64[] opt-barrier(a) b = s32[] constant(4) "
                   "j = s32[] opt-barrier(b) z = s32[] constant(0) zz = s64[] constant(0) "
                   "s = f32[3,2,4] dynamic-slice(x, i, zz, zz), dynamic_slice_sizes={3,2,4} "
                   "v = f32[9,11,4] dynamic-update-slice(x, u, z, j, z) "
                   "ROOT t = (f32[3,2,4], f32[9,11,4]) tuple(s, v) }");
  }
}

TEST(NpuControlTest, BodiesAreAsked) {
  const auto module = ParseHlo(R"(
    condition { s = f64[] parameter(0) ROOT c = pred[] constant(false) }
    body { s = f64[] parameter(0) ROOT r = f64[] negate(s) }
    ENTRY e { s = f64[] parameter(0) ROOT w = f64[] while(s), condition=condition, body=body })");
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "unsupported-dtype");
  EXPECT_EQ(refusal->sentence, "in body: the vector unit does not compute with f64");
}

// The device has no calls: what is called is written out.
TEST(NpuControlTest, CallsThatDoubleWithEachLevelAreTheHosts) {
  std::string text = "level0 { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }\n";
  constexpr int kLevels = 60;
  for (int k = 1; k < kLevels; ++k)
    text += Str("level", k, " { x = f32[4] parameter(0) y = f32[4] call(x), to_apply=level", k - 1,
                " ROOT z = f32[4] call(y), to_apply=level", k - 1, " }\n");
  const auto nest = [&](int level) {
    const auto module = ParseHlo(text + Str("ENTRY e { x = f32[4] parameter(0) ROOT y = f32[4] ",
                                            "call(x), to_apply=level", level, " }"));
    return WhyNot(*module->entry()->root(), Config());
  };
  EXPECT_FALSE(nest(10));
  const auto refusal = nest(kLevels - 1);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "unsupported-op");
  EXPECT_THAT(refusal->sentence,
              testing::HasSubstr("calls that write out to more than 100000 instructions"));
}

TEST(NpuIndexTest, RowsOfATable) {
  ExpectCompiled(R"(ENTRY e { x = f32[20,3,5] parameter(0) i = s64[7,2] parameter(1)
    ROOT y = f32[7,2,3,5] gather(x, i), offset_dims={2,3}, collapsed_slice_dims={0}, start_index_map={0},
      index_vector_dim=2, slice_sizes={1,3,5} })");
  ExpectCompiled(R"(ENTRY e { x = s8[6,9] parameter(0) i = s32[5,2] parameter(1)
    ROOT y = s8[2,5,4] gather(x, i), offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={1,0},
      index_vector_dim=1, slice_sizes={2,4} })");
}

TEST(NpuIndexTest, ScatteredRowsAreJoinedInOrder) {
  ExpectCompiled(R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e { x = f32[4,6] parameter(0) i = s32[9] parameter(1) u = f32[9,6] parameter(2)
      ROOT y = f32[4,6] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add })");
  ExpectCompiled(R"(
    last { a = s8[] parameter(0) ROOT b = s8[] parameter(1) }
    ENTRY e { x = s8[4,6] parameter(0) i = s64[9,2] parameter(1) u = s8[9] parameter(2)
      ROOT y = s8[4,6] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1},
        scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=last })");
}

}  // namespace
}  // namespace lazuli::npu
