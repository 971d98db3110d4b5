// Reductions: their order, windows, sorts.

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/evaluator/reduction_order.h"
#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

using ir::Literal;

std::string Reducer(const std::string& name, const std::string& dtype, const std::string& op) {
  return ir::Str(name, " { a = ", dtype, "[] parameter(0) b = ", dtype,
                 "[] parameter(1) ROOT r = ", dtype, "[] ", op, "(a, b) }\n");
}

// The order of reduction_order.h, written from its text.
float BlockSum(std::span<const float> x) {
  float lanes[8] = {};
  for (std::size_t i = 0; i < x.size(); ++i) lanes[i % 8] += x[i];
  const float four[4] = {lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6],
                         lanes[3] + lanes[7]};
  return (four[0] + four[2]) + (four[1] + four[3]);
}
float OrderedSum(std::span<const float> x, float init) {
  std::vector<float> totals;
  for (std::size_t begin = 0; begin < x.size(); begin += 1024)
    totals.push_back(BlockSum(x.subspan(begin, std::min<std::size_t>(1024, x.size() - begin))));
  while (totals.size() > 1) {
    std::vector<float> pairs;
    for (std::size_t i = 0; i + 1 < totals.size(); i += 2)
      pairs.push_back(totals[i] + totals[i + 1]);
    if (totals.size() % 2 != 0) pairs.push_back(totals.back());
    totals = std::move(pairs);
  }
  return init == 0 ? totals[0] : init + totals[0];
}

TEST(ReduceTest, SumsInTheOrderOfReductionOrder) {
  for (int64_t n : {1, 7, 8, 9, 1000, 1024, 1025, 4096, 5000, 11 * 1024 + 3, 16 * 1024, 47000}) {
    const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {3, n}), static_cast<uint64_t>(n));
    for (float init : {0.0f, 0.25f}) {
      const Literal sums =
          Eval(ir::Str(Reducer("add", "f32", "add"), "ENTRY e { x = f32[3,", n,
                       "] parameter(0) z = f32[] constant(", init,
                       ") ROOT r = f32[3] reduce(x, z), dimensions={1}, to_apply=add }"),
               {x});
      for (std::size_t row = 0; row < 3; ++row) {
        const auto elements =
            x.data<float>().subspan(row * static_cast<std::size_t>(n), static_cast<std::size_t>(n));
        EXPECT_EQ(sums.data<float>()[row], OrderedSum(elements, init))
            << n << " elements from " << init;
      }
    }
  }
}

// The order is a function of the elements' number: columns give the same bits as rows.
TEST(ReduceTest, ColumnsSumAsRowsDo) {
  const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {11500, 2}), 5);
  const std::string add = Reducer("add", "f32", "add");
  const Literal columns = Eval(add +
                                   "ENTRY e { x = f32[11500,2] parameter(0) z = f32[] constant(0) "
                                   "ROOT r = f32[2] reduce(x, z), dimensions={0}, to_apply=add }",
                               {x});
  const Literal rows = Eval(
      add +
          "ENTRY e { x = f32[11500,2] parameter(0) t = f32[2,11500] transpose(x), dimensions={1,0} "
          "z = f32[] constant(0) ROOT r = f32[2] reduce(t, z), dimensions={1}, to_apply=add }",
      {x});
  ExpectSameBits(rows, columns);
}

TEST(ReduceTest, MonoidsOfOtherTypes) {
  EXPECT_EQ(EvalText(Reducer("f", "s32", "maximum") +
                     R"(ENTRY e { x = s32[2,3] constant({{-5, -2, -9}, {4, 8, 1}})
    z = s32[] constant(-2147483648) ROOT r = s32[2] reduce(x, z), dimensions={1}, to_apply=f })"),
            "{-2, 8}");
  EXPECT_EQ(
      EvalText(Reducer("f", "pred", "and") + R"(ENTRY e { x = pred[2,2] constant({{1, 1}, {0, 1}})
    z = pred[] constant(true) ROOT r = pred[2] reduce(x, z), dimensions={1}, to_apply=f })"),
      "{1, 0}");
  EXPECT_EQ(EvalText(Reducer("f", "f32", "minimum") + R"(ENTRY e { x = f32[3] constant({1, nan, 0})
    z = f32[] constant(inf) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=f })"),
            "nan");
}

TEST(ReduceTest, Bf16AccumulatesInF32) {
  EXPECT_EQ(EvalText(Reducer("f", "bf16", "add") + R"(ENTRY e { o = bf16[] constant(1)
    x = bf16[1000] broadcast(o), dimensions={} z = bf16[] constant(0)
    ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=f })"),
            "1000");
}

// Added one after the other, ones end at 2^24.
TEST(ReduceTest, LongSumsKeepTheirDigits) {
  for (const char* dtype : {"f32", "bf16"}) {
    const Literal sum = Eval(ir::Str(
        Reducer("f", dtype, "add"), "ENTRY e { o = ", dtype, "[] constant(1) x = ", dtype,
        "[17039360] broadcast(o), dimensions={} z = ", dtype, "[] constant(0) ROOT r = ", dtype,
        "[] reduce(x, z), dimensions={0}, to_apply=f }"));
    EXPECT_EQ(sum.AsDouble(0), 17039360) << dtype;
  }
}

TEST(ReduceTest, OfNothingIsTheInitialValue) {
  EXPECT_EQ(EvalText(Reducer("f", "f32", "add") +
                     R"(ENTRY e { x = f32[2,0] constant({{}, {}}) z = f32[] constant(3)
    ROOT r = f32[2] reduce(x, z), dimensions={1}, to_apply=f })"),
            "{3, 3}");
}

constexpr char kArgMax[] = R"(
  argmax {
    a = f32[] parameter(0)
    i = s32[] parameter(1)
    b = f32[] parameter(2)
    j = s32[] parameter(3)
    ge = pred[] compare(a, b), direction=GE
    v = f32[] select(ge, a, b)
    k = s32[] select(ge, i, j)
    ROOT t = (f32[], s32[]) tuple(v, k)
  }
  ENTRY e {
    x = f32[2,4] constant({{3, 9, 9, 1}, {-1, -7, -3, -1}})
    n = s32[2,4] iota(), iota_dimension=1
    m = f32[] constant(-inf)
    z = s32[] constant(0)
    ROOT r = (f32[2], s32[2]) reduce(x, n, m, z), dimensions={1}, to_apply=argmax
  })";

TEST(ReduceTest, SeveralOperandsFoldTogether) {
  EXPECT_EQ(EvalText(kArgMax), "( {9, -1}, {1, 0} )");
}

// A reducer that is no monoid folds strictly from the initial value.
TEST(ReduceTest, OtherReducersFoldInOrder) {
  EXPECT_EQ(EvalText(R"(
    f { a = f32[] parameter(0) b = f32[] parameter(1) h = f32[] constant(10) m = f32[] multiply(a, h) ROOT r = f32[] add(m, b) }
    ENTRY e { x = f32[3] constant({1, 2, 3}) z = f32[] constant(7) ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=f })"),
            "7123");
}

// A reducer with a call in it cannot run as array loops.
TEST(ReduceTest, ReducersMayCall) {
  EXPECT_EQ(EvalText(Reducer("g", "f32", "add") + R"(
    f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] call(a, b), to_apply=g }
    ENTRY e { x = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}}) z = f32[] constant(0)
    ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=f })"),
            "{5, 7, 9}");
}

TEST(ReduceWindowTest, MaxPoolWithPaddingAndStride) {
  EXPECT_EQ(EvalText(Reducer("f", "f32", "maximum") + R"(ENTRY e {
    x = f32[4,4] constant({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}}) z = f32[] constant(-inf)
    ROOT r = f32[2,2] reduce-window(x, z), window={size=3x3 stride=2x2 pad=1_0x1_0}, to_apply=f })"),
            "{ { 6, 8 }, { 14, 16 } }");
}

TEST(ReduceWindowTest, CumulativeSum) {
  EXPECT_EQ(EvalText(Reducer("f", "s32", "add") +
                     R"(ENTRY e { x = s32[5] constant({1, 2, 3, 4, 5}) z = s32[] constant(0)
    ROOT r = s32[5] reduce-window(x, z), window={size=5 pad=4_0}, to_apply=f })"),
            "{1, 3, 6, 10, 15}");
}

// The order of cumulative.h, written from its text.
float Fold(std::span<const float> x) {
  float sum = x[0];
  for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
  return sum;
}
float Carry(std::span<const float> totals) {
  const std::size_t full = totals.size() / 128 * 128;
  std::vector<float> groups;
  for (std::size_t i = 0; i < full; i += 128) groups.push_back(Fold(totals.subspan(i, 128)));
  if (full == 0) return Fold(totals);
  const float above = Carry(groups);
  return full == totals.size() ? above : above + Fold(totals.subspan(full));
}
std::vector<float> OrderedPrefixes(std::span<const float> x, float init) {
  std::vector<float> result, totals;
  for (std::size_t begin = 0; begin < x.size(); begin += 128) {
    float local = begin == 0 ? init + x[0] : x[begin];
    for (std::size_t i = begin; i < std::min(begin + 128, x.size()); ++i) {
      if (i > begin) local += x[i];
      result.push_back(begin == 0 ? local : Carry(totals) + local);
    }
    totals.push_back(local);
  }
  return result;
}

TEST(ReduceWindowTest, CumulativeSumsInTheOrderOfCumulative) {
  for (int64_t n : {2, 127, 128, 129, 1000, 128 * 128 + 128, 40000}) {
    const Literal x = RandomLiteral(ir::Shape(ir::DType::kF32, {n, 3}), static_cast<uint64_t>(n));
    const auto sums = [&](std::string_view pads) {
      return Eval(ir::Str(Reducer("add", "f32", "add"), "ENTRY e { x = f32[", n,
                          ",3] parameter(0) z = f32[] constant(0.25) ROOT r = f32[", n,
                          ",3] reduce-window(x, z), window={size=", n, "x1 pad=", pads,
                          "x0_0}, to_apply=add }"),
                  {x});
    };
    const Literal forward = sums(ir::Str(n - 1, "_0")), backward = sums(ir::Str("0_", n - 1));
    for (std::size_t column = 0; column < 3; ++column) {
      const auto along = [&](const Literal& values) {
        std::vector<float> line;
        for (int64_t i = 0; i < n; ++i)
          line.push_back(values.data<float>()[static_cast<std::size_t>(i) * 3 + column]);
        return line;
      };
      std::vector<float> line = along(x);
      EXPECT_EQ(along(forward), OrderedPrefixes(line, 0.25f)) << n;
      std::reverse(line.begin(), line.end());
      std::vector<float> expected = OrderedPrefixes(line, 0.25f);
      std::reverse(expected.begin(), expected.end());
      EXPECT_EQ(along(backward), expected) << n << " backward";
    }
  }
}

// Sums of 16 bits are made in f32, and of a line as of lines.
TEST(ReduceWindowTest, CumulativeSumsOfNarrowFloatsKeepTheirDigits) {
  for (const auto& [dtype, n] : {std::pair("f16", 2112), {"bf16", 384}, {"f8e4m3fn", 384}}) {
    for (const int lines : {1, 3}) {
      const std::string shape = ir::Str(dtype, "[", n, ",", lines, "]");
      EXPECT_EQ(EvalText(ir::Str(
                    Reducer("f", dtype, "add"), "ENTRY e { o = ", dtype,
                    "[] constant(1) x = ", shape, " broadcast(o), dimensions={} z = ", dtype,
                    "[] constant(0) w = ", shape, " reduce-window(x, z), window={size=", n,
                    "x1 pad=", n - 1, "_0x0_0}, to_apply=f s = ", dtype, "[1,1] slice(w), slice={[",
                    n - 1, ":", n, "], [0:1]} ROOT r = ", dtype, "[] reshape(s) }")),
                std::to_string(n))
          << dtype;
    }
  }
}

// A window that is far larger than the input takes the time of the input.
TEST(ReduceWindowTest, AWindowFarLargerThanTheInput) {
  const auto sums = [](std::string_view window) {
    return EvalText(ir::Str(Reducer("f", "s32", "add"),
                            "ENTRY e { x = s32[4] constant({1, 2, 3, 4}) z = s32[] constant(0) ",
                            "ROOT r = s32[3] reduce-window(x, z), window={", window,
                            "}, to_apply=f }"));
  };
  EXPECT_EQ(sums("size=1000000000000 pad=999999999998_0"), "{3, 6, 10}");
  EXPECT_EQ(sums("size=1000000000000 pad=1_999999999997"), "{10, 10, 9}");
  EXPECT_EQ(sums("size=1000000000000 pad=1_999999999997 rhs_reversal=1"), "{10, 10, 9}");
}

TEST(ReduceWindowTest, Dilations) {
  // Base dilation puts holes between elements, window dilation between the positions that are read.
  EXPECT_EQ(EvalText(Reducer("f", "s32", "add") +
                     R"(ENTRY e { x = s32[3] constant({1, 2, 4}) z = s32[] constant(0)
    ROOT r = s32[4] reduce-window(x, z), window={size=2 lhs_dilate=2}, to_apply=f })"),
            "{1, 2, 2, 4}");
  EXPECT_EQ(EvalText(Reducer("f", "s32", "add") +
                     R"(ENTRY e { x = s32[5] constant({1, 2, 4, 8, 16}) z = s32[] constant(0)
    ROOT r = s32[3] reduce-window(x, z), window={size=2 rhs_dilate=2}, to_apply=f })"),
            "{5, 10, 20}");
}

TEST(SelectAndScatterTest, GradientGoesToTheFirstMaximum) {
  EXPECT_EQ(EvalText(Reducer("add", "f32", "add") + R"(
    ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
    ENTRY e { x = f32[5] constant({1, 7, 7, 2, 3}) s = f32[2] constant({10, 20}) z = f32[] constant(0)
    ROOT r = f32[5] select-and-scatter(x, s, z), window={size=3 stride=2}, select=ge, scatter=add })"),
            "{0, 10, 20, 0, 0}");
}

TEST(SortTest, SortsAlongADimensionAndCarriesValues) {
  EXPECT_EQ(EvalText(R"(
    lt { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
         ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = f32[3,2] constant({{3, 1}, {1, 1}, {2, 0}}) n = s32[3,2] iota(), iota_dimension=0
    ROOT r = (f32[3,2], s32[3,2]) sort(x, n), dimensions={0}, is_stable=true, to_apply=lt })"),
            "( { { 1, 0 }, { 2, 1 }, { 3, 1 } }, { { 1, 2 }, { 2, 0 }, { 0, 1 } } )");
}

TEST(SortTest, AnyComparatorTerminates) {
  EXPECT_EQ(EvalText(R"(
    always { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] constant(true) }
    ENTRY e { x = f32[4] constant({3, nan, 1, 2}) s = f32[4] sort(x), dimensions={0}, to_apply=always
      ROOT r = f32[4] sort(s), dimensions={0}, to_apply=always })"),
            "{3, nan, 1, 2}");
}

TEST(TopKTest, TakesTheFirstOfEqualOnes) {
  EXPECT_EQ(EvalText(R"(ENTRY e { x = f32[2,4] constant({{1, 5, 5, 2}, {-1, -0.0, 0, -9}})
    ROOT r = (f32[2,2], s32[2,2]) topk(x), k=2, largest=true })"),
            "( { { 5, 5 }, { 0, -0.0 } }, { { 1, 2 }, { 2, 1 } } )");
}

}  // namespace
}  // namespace lazuli
