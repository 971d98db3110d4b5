// Custom calls that the evaluator brings along: identities, TopK, linear algebra.
#include <limits>

#include <gtest/gtest.h>

#include "ir/evaluator/custom_calls.h"
#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

using ir::Literal;

Literal Matrix(std::initializer_list<float> values) {
  return Literal::FromValues<float>({2, 2}, values);
}

bool HasLapack() { return static_cast<bool>(hlo::FindCustomCall("lapack_spotrf_ffi")); }

TEST(CustomCallTest, ShardingAndItsLikeAreIdentities) {
  EXPECT_EQ(EvalText(R"(ENTRY e { p = s32[2] constant({1, 2})
    ROOT c = s32[2] custom-call(p), custom_call_target="Sharding", sharding={replicated} })"),
            "{1, 2}");
  EXPECT_EQ(EvalText(R"(ENTRY e { p = s32[2] constant({1, 2})
    ROOT c = (s32[2], s32[2]) custom-call(p, p), custom_call_target="xla.sdy.LocalToGlobalShape" })"),
            "( {1, 2}, {1, 2} )");
}

TEST(CustomCallTest, TopKTakesTheFirstOfEqualValues) {
  EXPECT_EQ(EvalText(R"(ENTRY e { p = f32[2,4] constant({ {3, 1, 3, 2}, {-1, -2, -3, -0.5} })
    ROOT c = (f32[2,2], s32[2,2]) custom-call(p), custom_call_target="TopK" })"),
            "( { { 3, 3 }, { -0.5, -1 } }, { { 0, 2 }, { 3, 0 } } )");
}

TEST(CustomCallTest, CholeskyReportsWhereItFails) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  constexpr std::string_view kText = R"(ENTRY e { p = f32[2,2] parameter(0)
    ROOT c = (f32[2,2]{0,1}, s32[]) custom-call(p), custom_call_target="lapack_spotrf_ffi",
      backend_config={uplo = 76 : ui8} })";
  EXPECT_EQ(EvalText(kText, {Matrix({4, 9, 2, 5})}), "( { { 2, 9 }, { 1, 2 } }, 0 )");
  EXPECT_EQ(Eval(kText, {Matrix({4, 0, 2, 1})}).tuple()[1].ToString(), "2");
}

TEST(CustomCallTest, LuPivotsCountFromOne) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  EXPECT_EQ(EvalText(R"(ENTRY e { p = f32[2,2] parameter(0)
    ROOT c = (f32[2,2], s32[2], s32[]) custom-call(p), custom_call_target="lapack_sgetrf_ffi" })",
                     {Matrix({1, 2, 2, 8})}),
            "( { { 2, 8 }, { 0.5, -2 } }, {2, 2}, 0 )");
}

TEST(CustomCallTest, TriangularSolveReadsItsAttributes) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  constexpr std::string_view kBegin =
      R"(ENTRY e { a = f32[2,2] parameter(0) b = f32[2,2] parameter(1)
    ROOT c = f32[2,2] custom-call(a, b), custom_call_target="lapack_strsm_ffi", backend_config=)";
  const auto solve = [&](std::string_view config) {
    return EvalText(ir::Str(kBegin, config, " }"), {Matrix({2, 1, 4, 8}), Matrix({2, 4, 12, 16})});
  };
  EXPECT_EQ(solve("{diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}"),
            "{ { 1, 2 }, { 1, 1 } }");
  EXPECT_EQ(solve("{diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 76 : ui8}"),
            "{ { -2, -2 }, { 1.5, 2 } }");
  EXPECT_EQ(solve("{diag = 85 : ui8, side = 82 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}"),
            "{ { 2, 2 }, { 12, 4 } }");
}

TEST(CustomCallTest, TorchsEighGivesVectorsThenValues) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  const Literal result = Eval(R"(ENTRY e { p = f32[2,2] parameter(0)
    ROOT c = (f32[2,2], f32[2]) custom-call(p), custom_call_target="Eigh", backend_config="1,1,100,0.000001" })",
                              {Matrix({3, 0, 0, 1})});
  EXPECT_EQ(result.tuple()[1].ToString(), "{1, 3}");
}

TEST(CustomCallTest, IterationsOnInfinityEndWithNan) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  // LAPACK's own iteration for singular values does not end on this matrix.
  EXPECT_EQ(EvalText(R"(ENTRY e {
    r = f64[8,3] constant({ {-1, -2, 1}, {0, 2, -2}, {3, 3, 1}, {0.5, 2, 3}, {1, 2, -3},
                            {inf, 3, 0}, {-1, -3, 0}, {-3, -3, -2} })
    p = c128[8,3] convert(r)
    c = (c128[8,3], f64[3], c128[8,3], c128[3,3], s32[]) custom-call(p),
      custom_call_target="lapack_zgesdd_ffi", backend_config={mode = 83 : ui8}
    s = f64[3] get-tuple-element(c), index=1
    i = s32[] get-tuple-element(c), index=4
    ROOT t = (f64[3], s32[]) tuple(s, i) })"),
            "( {nan, nan, nan}, 0 )");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto run = [](std::string_view results, std::string_view name, const Literal& matrix) {
    return Eval(ir::Str("ENTRY e { p = f32[2,2] parameter(0) ROOT c = (", results,
                        ") custom-call(p), custom_call_target=\"", name, "\" }"),
                {matrix})
        .ToString();
  };
  const Literal lower = Matrix({1, 0, kInfinity, 3}), upper = Matrix({1, kInfinity, 0, 3});
  EXPECT_EQ(run("f32[2,2], f32[2], s32[]", "lapack_ssyevd_ffi", lower),
            "( { { nan, nan }, { nan, nan } }, {nan, nan}, 0 )");
  EXPECT_EQ(run("f32[2,2], f32[2], s32[]", "lapack_ssyevd_ffi", upper),
            "( { { 1, 0 }, { 0, 1 } }, {1, 3}, 0 )");
  EXPECT_EQ(run("f32[2,2], f32[2]", "Eigh", lower),
            "( { { nan, nan }, { nan, nan } }, {nan, nan} )");
  EXPECT_EQ(run("f32[2], f32[2], c64[2,2], c64[2,2], s32[]", "lapack_sgeev_ffi", lower),
            "( {nan, nan}, {nan, nan}, { { (0, 0), (0, 0) }, { (0, 0), (0, 0) } }, "
            "{ { (0, 0), (0, 0) }, { (0, 0), (0, 0) } }, 0 )");
  EXPECT_EQ(run("f32[2,2], f32[2,2], f32[2], f32[2], s32[], s32[]", "lapack_sgees_ffi", lower),
            "( { { nan, nan }, { nan, nan } }, { { nan, nan }, { nan, nan } }, {nan, nan}, "
            "{nan, nan}, 0, 0 )");
}

TEST(CustomCallTest, WrongOperandsAreRefused) {
  if (!HasLapack()) GTEST_SKIP() << "built without LAPACK";
  EXPECT_EQ(ErrorOf(R"(ENTRY e { p = f64[2,2] parameter(0)
    ROOT c = (f64[2,2], s32[]) custom-call(p), custom_call_target="lapack_spotrf_ffi" })",
                    {Literal(ir::Shape(ir::DType::kF64, {2, 2}))}),
            "custom-call %c: lapack_spotrf_ffi of f64[2,2]: not a matrix of f32");
  EXPECT_EQ(ErrorOf(R"(ENTRY e { p = f32[2,2] parameter(0)
    ROOT c = f32[2,2] custom-call(p), custom_call_target="lapack_spotrf_ffi" })",
                    {Matrix({1, 0, 0, 1})}),
            "custom-call %c: lapack_spotrf_ffi takes 1 operands and has 2 results");
}

}  // namespace
}  // namespace lazuli
