// Dot and convolution against definitions written as loops, and their gradients' forms.

#include "gtest/gtest.h"

#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

using ir::Literal;

TEST(DotTest, MatrixProduct) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    a = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
    b = f32[3,2] constant({{1, 0}, {0, 1}, {2, 2}})
    ROOT r = f32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} })"),
            "{ { 7, 8 }, { 16, 17 } }");
}

TEST(DotTest, BatchAndSeveralContractions) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    a = s32[2,2,2] constant({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})
    b = s32[2,2,2] constant({{{1, 0}, {0, 1}}, {{2, 0}, {0, 2}}})
    ROOT r = s32[2,2,2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} })"),
            "{ { { 1, 2 }, { 3, 4 } }, { { 10, 12 }, { 14, 16 } } }");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    a = s32[2,2] constant({{1, 2}, {3, 4}})
    b = s32[2,2] constant({{1, 10}, {100, 1000}})
    ROOT r = s32[] dot(a, b), lhs_contracting_dims={0,1}, rhs_contracting_dims={1,0} })"),
            "4231");
}

TEST(DotTest, AccumulatesInAWiderType) {
  EXPECT_EQ(
      EvalText(R"(ENTRY e { a = s8[3] constant({100, 100, 100}) b = s8[3] constant({100, 100, 100})
    ROOT r = s32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} })"),
      "30000");
  EXPECT_EQ(EvalText(R"(ENTRY e { a = bf16[3] constant({256, 1, 1}) b = bf16[3] constant({1, 1, 1})
    ROOT r = bf16[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} })"),
            "258");
  EXPECT_EQ(
      EvalText(
          R"(ENTRY e { a = c64[2] constant({(0, 1), (1, 0)}) b = c64[2] constant({(0, 1), (2, 0)})
    ROOT r = c64[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0} })"),
      "(1, 0)");
}

TEST(DotTest, OuterProductAndEmptyContraction) {
  EXPECT_EQ(EvalText("ENTRY e { a = s32[2] constant({1, 2}) b = s32[2] constant({3, 4}) ROOT r = "
                     "s32[2,2] dot(a, b) }"),
            "{ { 3, 4 }, { 6, 8 } }");
  EXPECT_EQ(EvalText(R"(ENTRY e { a = f32[2,0] constant({{}, {}}) b = f32[0,1] constant({})
    ROOT r = f32[2,1] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} })"),
            "{ { 0 }, { 0 } }");
}

TEST(ConvolutionTest, OneDimension) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[1,1,4] constant({{{1, 2, 3, 4}}})
    k = f32[1,1,3] constant({{{1, 10, 100}}})
    ROOT r = f32[1,1,4] convolution(x, k), window={size=3 pad=1_1}, dim_labels=bf0_oi0->bf0 })"),
            "{ { { 210, 321, 432, 43 } } }");
}

TEST(ConvolutionTest, ReversalStrideAndDilations) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[1,1,4] constant({{{1, 2, 3, 4}}})
    k = f32[1,1,3] constant({{{1, 10, 100}}})
    ROOT r = f32[1,1,2] convolution(x, k), window={size=3 stride=2 pad=1_1 rhs_reversal=1}, dim_labels=bf0_oi0->bf0 })"),
            "{ { { 12, 234 } } }");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[1,1,3] constant({{{1, 2, 3}}})
    k = f32[1,1,2] constant({{{1, 10}}})
    ROOT r = f32[1,1,4] convolution(x, k), window={size=2 lhs_dilate=2}, dim_labels=bf0_oi0->bf0 })"),
            "{ { { 1, 20, 2, 30 } } }");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[1,1,5] constant({{{1, 2, 3, 4, 5}}})
    k = f32[1,1,2] constant({{{1, 10}}})
    ROOT r = f32[1,1,3] convolution(x, k), window={size=2 rhs_dilate=2}, dim_labels=bf0_oi0->bf0 })"),
            "{ { { 31, 42, 53 } } }");
}

TEST(ConvolutionTest, FeatureGroupsAndBatchGroups) {
  // Two input features, each with its own kernel.
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[1,2,2] constant({{{1, 2}, {3, 4}}})
    k = f32[2,1,1] constant({{{10}}, {{100}}})
    ROOT r = f32[1,2,2] convolution(x, k), window={size=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2 })"),
            "{ { { 10, 20 }, { 300, 400 } } }");
  // The batch is cut in two; each half makes its own output feature.
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[2,1,2] constant({{{1, 2}}, {{3, 4}}})
    k = f32[2,1,1] constant({{{10}}, {{100}}})
    ROOT r = f32[1,2,2] convolution(x, k), window={size=1}, dim_labels=bf0_oi0->bf0, batch_group_count=2 })"),
            "{ { { 10, 20 }, { 300, 400 } } }");
}

// NHWC with HWIO against loops.
TEST(ConvolutionTest, TwoDimensionsAgreeWithLoops) {
  const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {2, 5, 6, 3}), 1);
  const Literal k = RandomLiteral(ir::Shape(ir::DType::kF32, {3, 2, 3, 4}), 2);
  const Literal y = Eval(R"(ENTRY e { x = f32[2,5,6,3] parameter(0) k = f32[3,2,3,4] parameter(1)
    ROOT r = f32[2,3,6,4] convolution(x, k), window={size=3x2 stride=2x1 pad=1_1x0_1}, dim_labels=b01f_01io->b01f })",
                         {x, k});
  Literal want{y.shape()};
  ir::ForEachIndex(y.shape().dims(), [&](absl::Span<const int64_t> o) {
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        const int64_t row = o[1] * 2 - 1 + i, column = o[2] + j;
        if (row < 0 || row >= 5 || column >= 6) continue;
        for (int64_t f = 0; f < 3; ++f)
          sum += x.AsDouble(((o[0] * 5 + row) * 6 + column) * 3 + f) *
                 k.AsDouble(((i * 2 + j) * 3 + f) * 4 + o[3]);
      }
    }
    want.SetFromDouble(((o[0] * 3 + o[1]) * 6 + o[2]) * 4 + o[3], sum);
  });
  ExpectClose(want, y, 1e-5, 1e-5);
}

// Any dim_labels is the same convolution of transposed arrays.
TEST(ConvolutionTest, LabelsPermuteDimensions) {
  const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {2, 3, 5, 4}), 1);
  const Literal k = RandomLiteral(ir::Shape(ir::DType::kF32, {6, 3, 2, 2}), 2);
  const Literal direct =
      Eval(R"(ENTRY e { x = f32[2,3,5,4] parameter(0) k = f32[6,3,2,2] parameter(1)
    ROOT r = f32[2,6,4,3] convolution(x, k), window={size=2x2}, dim_labels=bf01_oi01->bf01 })",
           {x, k});
  const Literal permuted =
      Eval(R"(ENTRY e { x = f32[2,3,5,4] parameter(0) k = f32[6,3,2,2] parameter(1)
    xt = f32[5,2,4,3] transpose(x), dimensions={2,0,3,1}
    kt = f32[3,2,6,2] transpose(k), dimensions={1,2,0,3}
    c = f32[6,4,2,3] convolution(xt, kt), window={size=2x2}, dim_labels=0b1f_i0o1->f0b1
    ROOT r = f32[2,6,4,3] transpose(c), dimensions={2,0,1,3} })",
           {x, k});
  ExpectSameBits(direct, permuted);
}

TEST(LinearAlgebraTest, CholeskyAndTriangularSolve) {
  EXPECT_EQ(EvalText("ENTRY e { a = f32[2,2] constant({{4, 99}, {2, 5}}) ROOT r = f32[2,2] "
                     "cholesky(a), lower=true }"),
            "{ { 2, 0 }, { 1, 2 } }");
  EXPECT_EQ(
      EvalText(
          "ENTRY e { a = f32[2,2] constant({{4, 2}, {99, 5}}) ROOT r = f32[2,2] cholesky(a) }"),
      "{ { 2, 1 }, { 0, 2 } }");
  const std::string system =
      "ENTRY e { a = f32[2,2] constant({{2, 99}, {1, 4}}) b = f32[2,1] constant({{2}, {9}}) "
      "ROOT r = f32[2,1] triangular-solve(a, b), left_side=true, lower=true";
  EXPECT_EQ(EvalText(system + " }"), "{ { 1 }, { 2 } }");
  EXPECT_EQ(EvalText(system + ", transpose_a=TRANSPOSE }"), "{ { -0.125 }, { 2.25 } }");
  EXPECT_EQ(EvalText(system + ", unit_diagonal=true }"), "{ { 2 }, { 7 } }");
  EXPECT_EQ(
      EvalText("ENTRY e { a = f32[2,2] constant({{2, 1}, {99, 4}}) b = f32[1,2] constant({{2, 9}}) "
               "ROOT r = f32[1,2] triangular-solve(a, b) }"),
      "{ { 1, 2 } }");
}

TEST(LinearAlgebraTest, FourierTransformsInvert) {
  EXPECT_EQ(EvalText(R"(ENTRY e { x = f32[4] constant({1, 2, 3, 4})
    ROOT r = c64[3] fft(x), fft_type=RFFT, fft_length={4} })"),
            "{(10, 0), (-2, 2), (-2, 0)}");
  for (int n : {3, 4, 5, 6, 8, 12}) {
    const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {2, n}), 1);
    const Literal back =
        Eval(ir::Str("ENTRY e { x = f32[2,", n, "] parameter(0) f = c64[2,", n / 2 + 1,
                     "] fft(x), fft_type=RFFT, fft_length={", n, "} ROOT r = f32[2,", n,
                     "] fft(f), fft_type=IRFFT, fft_length={", n, "} }"),
             {x});
    ExpectClose(x, back, 1e-6, 1e-6);
  }
}

TEST(NormTest, BatchNormTrainingAndGradient) {
  EXPECT_EQ(
      EvalText(
          R"(ENTRY e { x = f32[4,1] constant({{1}, {3}, {1}, {3}}) s = f32[1] constant({2}) o = f32[1] constant({5})
    ROOT r = (f32[4,1], f32[1], f32[1]) batch-norm-training(x, s, o), epsilon=0, feature_index=1 })"),
      "( { { 3 }, { 7 }, { 3 }, { 7 } }, {2}, {1} )");
  EXPECT_EQ(
      EvalText(R"(ENTRY e { x = f32[4,1] constant({{1}, {3}, {1}, {3}}) s = f32[1] constant({2})
    m = f32[1] constant({2}) v = f32[1] constant({1}) g = f32[4,1] constant({{1}, {0}, {0}, {0}})
    ROOT r = (f32[4,1], f32[1], f32[1]) batch-norm-grad(x, s, m, v, g), epsilon=0, feature_index=1 })"),
      "( { { 1 }, { 0 }, { -1 }, { 0 } }, {-1}, {1} )");
}

// XLA:CPU has neither; the values follow from what the opcodes say.
TEST(ContractionTest, RaggedDotMultipliesEachGroupOfRowsByItsMatrix) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[4,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}})
    y = f32[3,2,1] constant({{{1}, {10}}, {{inf}, {nan}}, {{2}, {-1}}})
    g = s32[3] constant({2, 0, 1})
    ROOT r = f32[4,1] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} })"),
            "{ { 21 }, { 43 }, { 4 }, { 0 } }")
      << "rows beyond the groups are zero, and a group meets no other's matrix";
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f32[2,1,3] constant({{{1, 2, 3}}, {{4, 5, 6}}})
    y = f32[2,3,2] constant({{{1, 0}, {0, 1}, {1, 1}}, {{1, 0}, {0, 1}, {2, 2}}})
    g = s64[2] constant({1, 2})
    ROOT r = f32[2,2,1,2] ragged-dot(x, y, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={2} })"),
            EvalText("ENTRY e { ROOT c = f32[2,2,1,2] constant({{{{1, 0}}, {{4, 0}}}, {{{3, 5}}, "
                     "{{12, 17}}}}) }"));
  EXPECT_EQ(ErrorOf(R"(ENTRY e {
    x = f32[4,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}})
    y = f32[2,2,1] constant({{{1}, {10}}, {{2}, {-1}}})
    g = s32[2] constant({3, 2})
    ROOT r = f32[4,1] ragged-dot(x, y, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} })"),
            "ragged-dot %r: group 1 of 2 from 3 is not within dimension 0 of f32[4,2]");
}

TEST(ContractionTest, ScaledDotScalesBlocks) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    x = f8e4m3fn[1,4] constant({{1, 2, 3, 4}})
    y = f8e4m3fn[4,2] constant({{1, 2}, {1, 2}, {1, 2}, {1, 2}})
    a = f8e8m0fnu[1,2] constant({{0.5, 16}})
    b = f8e8m0fnu[1,2] constant({{1, 4}})
    ROOT r = f32[1,2] scaled-dot(x, y, a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} })"),
            "{ { 113.5, 908 } }");
}

}  // namespace
}  // namespace lazuli
