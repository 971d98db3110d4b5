// Data movement: static, dynamic, gather and scatter.

#include "gtest/gtest.h"

#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

TEST(MovementTest, BroadcastMapsOperandDimensions) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[2] constant({1, 2})
    ROOT r = s32[2,3] broadcast(c), dimensions={0} })"),
            "{ { 1, 1, 1 }, { 2, 2, 2 } }");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[2] constant({1, 2})
    ROOT r = s32[3,2] broadcast(c), dimensions={1} })"),
            "{ { 1, 2 }, { 1, 2 }, { 1, 2 } }");
}

TEST(MovementTest, TransposeReshapeReverse) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
    t = s32[3,2] transpose(c), dimensions={1,0}
    v = s32[3,2] reverse(t), dimensions={0}
    ROOT r = s32[6] reshape(v) })"),
            "{3, 6, 2, 5, 1, 4}");
}

TEST(MovementTest, IotaCountsAlongItsDimension) {
  EXPECT_EQ(EvalText("ENTRY e { ROOT r = f32[2,3] iota(), iota_dimension=1 }"),
            "{ { 0, 1, 2 }, { 0, 1, 2 } }");
  EXPECT_EQ(EvalText("ENTRY e { ROOT r = u8[2,2] iota(), iota_dimension=0 }"),
            "{ { 0, 0 }, { 1, 1 } }");
}

TEST(MovementTest, SliceWithStrides) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[7] iota(), iota_dimension=0
    ROOT r = s32[3] slice(c), slice={[1:6:2]} })"),
            "{1, 3, 5}");
}

TEST(MovementTest, PadAddsAndRemoves) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[3] constant({1, 2, 3})
    z = s32[] constant(0)
    ROOT r = s32[8] pad(c, z), padding=1_2_1 })"),
            "{0, 1, 0, 2, 0, 3, 0, 0}");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[4] constant({1, 2, 3, 4})
    z = s32[] constant(9)
    ROOT r = s32[4] pad(c, z), padding=-1_-2_1 })"),
            "{9, 2, 9, 3}");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[2] constant({1, 2})
    z = s32[] constant(9)
    ROOT r = s32[1] pad(c, z), padding=3_-4 })"),
            "{9}");
}

TEST(MovementTest, ConcatenateAlongAnyDimension) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    a = s32[2,1] constant({{1}, {2}})
    b = s32[2,2] constant({{3, 4}, {5, 6}})
    ROOT r = s32[2,3] concatenate(a, b), dimensions={1} })"),
            "{ { 1, 3, 4 }, { 2, 5, 6 } }");
}

TEST(MovementTest, BitcastConvertChangesWidth) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = f32[2] constant({1, 2})
    ROOT r = u16[2,2] bitcast-convert(c) })"),
            "{ { 0, 16256 }, { 0, 16384 } }");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = u8[2] constant({18, 255})
    ROOT r = s4[2,2] bitcast-convert(c) })"),
            "{ { 2, 1 }, { -1, -1 } }");
}

TEST(MovementTest, BitcastReadsAndWritesLayouts) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
    t = s32[2,3]{0,1} copy(c)
    ROOT r = s32[6] bitcast(t) })"),
            "{1, 4, 2, 5, 3, 6}");
}

TEST(MovementTest, DynamicSlicesClampTheirStarts) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[5] iota(), iota_dimension=0
    i = s32[] constant(9)
    ROOT r = s32[2] dynamic-slice(c, i), dynamic_slice_sizes={2} })"),
            "{3, 4}");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    c = s32[4] iota(), iota_dimension=0
    u = s32[2] constant({8, 9})
    i = s32[] constant(-3)
    ROOT r = s32[4] dynamic-update-slice(c, u, i) })"),
            "{8, 9, 2, 3}");
}

TEST(MovementTest, GatherRowsAndClamp) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = s32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})
    i = s32[2] constant({2, 7})
    ROOT r = s32[2,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
      index_vector_dim=1, slice_sizes={1,2} })"),
            "{ { 5, 6 }, { 5, 6 } }");
}

TEST(MovementTest, GatherWithBatchingDimensions) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = s32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
    i = s64[2,1] constant({{2}, {0}})
    ROOT r = s32[2] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1},
      operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1} })"),
            "{3, 4}");
}

constexpr char kAdder[] =
    "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }\n";

TEST(MovementTest, ScatterAddsInOrderAndSkipsWhatDoesNotFit) {
  EXPECT_EQ(EvalText(ir::Str(kAdder, R"(ENTRY e {
    x = s32[3,2] constant({{0, 0}, {0, 0}, {0, 0}})
    i = s32[4] constant({2, 0, 2, 3})
    u = s32[4,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}})
    ROOT r = s32[3,2] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add })")),
            "{ { 3, 4 }, { 0, 0 }, { 6, 8 } }");
}

TEST(MovementTest, ScatterReplacesWithTheLast) {
  EXPECT_EQ(EvalText(R"(
  second { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
  ENTRY e {
    x = f32[3] constant({1, 2, 3})
    i = s32[2,1] constant({{1}, {1}})
    u = f32[2] constant({8, 9})
    ROOT r = f32[3] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=second })"),
            "{1, 9, 3}");
}

TEST(MovementTest, EmptyArraysStayEmpty) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[0,3] constant({})
    y = f32[3,0] transpose(x), dimensions={1,0}
    ROOT r = f32[0] reshape(y) })"),
            "{}");
}

}  // namespace
}  // namespace lazuli
