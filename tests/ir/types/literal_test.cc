#include "ir/types/literal.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

TEST(LiteralTest, NewMemoryIsZeroAndAligned) {
  for (int i = 0; i < kNumArrayDTypes; ++i) {
    const Literal literal(Shape(static_cast<DType>(i), {3, 5}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(literal.raw()) % 64, 0u);
    for (int64_t k = 0; k < literal.byte_size(); ++k) EXPECT_EQ(literal.raw()[k], std::byte{0});
  }
  EXPECT_NE(Literal(Shape(DType::kF32, {0})).raw(), nullptr);
}

TEST(LiteralTest, LayoutsAreDropped) {
  EXPECT_FALSE(Literal(Shape(DType::kF32, {2, 3}).WithLayout({0, 1})).shape().has_layout());
}

TEST(LiteralTest, CopiesShareAndClonesDoNot) {
  Literal a = Literal::FromValues<int32_t>({2}, {1, 2});
  const Literal shared = a, clone = a.Clone();
  EXPECT_EQ(shared.raw(), a.raw());
  a.mutable_data<int32_t>()[0] = 7;
  EXPECT_EQ(shared.ToString(), "{7, 2}");
  EXPECT_EQ(clone.ToString(), "{1, 2}");
  EXPECT_EQ(a.Reshaped({2, 1}).raw(), a.raw());
  EXPECT_EQ(a.Reshaped({2, 1}).ToString(), "{ { 7 }, { 2 } }");
}

TEST(LiteralTest, ForeignMemoryIsReleasedWithTheLastCopy) {
  float memory[] = {1, 2, 3};
  int released = 0;
  {
    Literal copy;
    {
      const Literal foreign =
          Literal::Foreign(Shape(DType::kF32, {3}), memory, [&] { ++released; });
      EXPECT_EQ(foreign.raw(), reinterpret_cast<std::byte*>(memory));
      copy = Literal::Tuple({foreign});
    }
    EXPECT_EQ(released, 0);
    EXPECT_EQ(copy.tuple()[0].AsDouble(2), 3);
  }
  EXPECT_EQ(released, 1);
}

TEST(LiteralTest, FullConvertsItsValue) {
  EXPECT_EQ(Literal::Full(Shape(DType::kS8, {2}), 300).ToString(), "{127, 127}");
  EXPECT_EQ(Literal::Full(Shape(DType::kPred, {2}), 2).ToString(), "{1, 1}");
  EXPECT_EQ(Literal::Full(Shape(DType::kC64), 1.5).ToString(), "(1.5, 0)");
  EXPECT_EQ(Literal::Full(Shape(DType::kBF16), 0.1).ToString(), "0.1001");
}

TEST(LiteralTest, BitsEqualSeesEveryBit) {
  const Literal zero = Literal::Scalar(0.0f), negative = Literal::Scalar(-0.0f);
  EXPECT_FALSE(zero.BitsEqual(negative));
  EXPECT_TRUE(Literal::Scalar(kNotANumber).BitsEqual(Literal::Scalar(kNotANumber)));
  EXPECT_FALSE(Literal::Scalar(int32_t{0}).BitsEqual(zero));
  EXPECT_FALSE(Literal::Tuple({zero}).BitsEqual(Literal::Tuple({negative})));
  EXPECT_TRUE(Literal().BitsEqual(Literal::Tuple({})));
}

// --- text

TEST(LiteralTextTest, ArraysNestBracesAsXlaPrintsThem) {
  EXPECT_EQ(Literal::FromValues<float>({2}, {1, 2}).ToString(), "{1, 2}");
  EXPECT_EQ(Literal::FromValues<float>({2, 2}, {1, 2, 3, 4}).ToString(), "{ { 1, 2 }, { 3, 4 } }");
  EXPECT_EQ(Literal::FromValues<float>({2, 1, 2, 1}, {1, 2, 3, 4}).ToString(),
            "{ { /*i0=0*/ { /*i1=0*/ { 1 }, { 2 } } }, { /*i0=1*/ { /*i1=0*/ { 3 }, { 4 } } } }");
  EXPECT_EQ(Literal::Scalar(true).ToString(), "true");
  EXPECT_EQ(Literal::FromValues<bool>({2}, {true, false}).ToString(), "{1, 0}");
  EXPECT_EQ(Literal::Tuple({Literal::FromValues<float>({2}, {1, 2}), Literal::Scalar(int32_t{3})})
                .ToString(),
            "( {1, 2}, 3 )");
}

TEST(LiteralTextTest, EmptyArrays) {
  EXPECT_EQ(Literal(Shape(DType::kF32, {0})).ToString(), "{}");
  EXPECT_EQ(Literal(Shape(DType::kF32, {2, 0})).ToString(), "{ {}, {} }");
  EXPECT_EQ(Literal(Shape(DType::kF32, {0, 2})).ToString(), "{  }");
  EXPECT_EQ(Literal(Shape(DType::kF32, {2, 0, 2})).ToString(), "{ {  }, {  } }");
}

TEST(LiteralTextTest, FloatsAreSpelledAsXlaDoesButForNegativeZero) {
  EXPECT_EQ(
      Literal::FromValues<float>({5}, {0.1f, 3.14159274f, 16777216, 123456792, 1e10f}).ToString(),
      "{0.1, 3.14159274, 16777216, 123456792, 1e+10}");
  EXPECT_EQ(Literal::FromValues<float>(
                {6}, {kInfinity, -kInfinity, kNotANumber, -kNotANumber, -0.0f, 1.4e-45f})
                .ToString(),
            "{inf, -inf, nan, -nan, -0.0, 1.4013e-45}");
  EXPECT_EQ(Literal::FromValues<double>({3}, {0.1, 1.0 / 3, 1e15}).ToString(),
            "{0.1, 0.33333333333333331, 1e+15}");
  EXPECT_EQ(Literal::FromValues<half>({3}, {half(1000), half(0.1f), half(2049)}).ToString(),
            "{1000, 0.099976, 2048}");
  EXPECT_EQ(Literal::FromValues<bfloat16>({2}, {bfloat16(1.0078125f), bfloat16(1e30f)}).ToString(),
            "{1.008, 1e+30}");
  EXPECT_EQ(Literal::FromValues<std::complex<float>>({1}, {{1, -2}}).ToString(), "{(1, -2)}");
}

TEST(LiteralTextTest, NaNsShowTheirPayload) {
  Literal literal(Shape(DType::kU32, {3}));
  literal.mutable_data<uint32_t>()[0] = 0x7f800001;
  literal.mutable_data<uint32_t>()[1] = 0xffc00007;
  literal.mutable_data<uint32_t>()[2] = 0xffc00000;
  const Literal floats = Literal::Foreign(Shape(DType::kF32, {3}), literal.raw(), {});
  EXPECT_EQ(floats.ToString(), "{nan(0x1), -nan(0x400007), -nan}");
}

TEST(LiteralTextTest, IntegersOfEveryWidth) {
  EXPECT_EQ(Literal::FromValues<int64_t>({1}, {INT64_MIN}).ToString(), "{-9223372036854775808}");
  EXPECT_EQ(Literal::FromValues<uint64_t>({1}, {UINT64_MAX}).ToString(), "{18446744073709551615}");
  EXPECT_EQ(Literal::FromValues<int8_t>({2}, {-128, 65}).ToString(), "{-128, 65}");
  EXPECT_EQ(Literal::FromValues<uint8_t>({1}, {255}).ToString(), "{255}");
}

// --- conversion

TEST(LiteralConvertTest, FloatsToIntegersSaturateAndNaNIsZero) {
  const Literal x =
      Literal::FromValues<float>({6}, {1.9f, -1.9f, 1e30f, -1e30f, kNotANumber, kInfinity});
  EXPECT_EQ(x.Converted(DType::kS32).ToString(), "{1, -1, 2147483647, -2147483648, 0, 2147483647}");
  EXPECT_EQ(x.Converted(DType::kU8).ToString(), "{1, 0, 255, 0, 0, 255}");
  EXPECT_EQ(x.Converted(DType::kS4).ToString(), "{1, -1, 7, -8, 0, 7}");
  EXPECT_EQ(x.Converted(DType::kU2).ToString(), "{1, 0, 3, 0, 0, 3}");
  EXPECT_EQ(x.Converted(DType::kS64).ToString(),
            "{1, -1, 9223372036854775807, -9223372036854775808, 0, 9223372036854775807}");
  EXPECT_EQ(x.Converted(DType::kU64).ToString(),
            "{1, 0, 18446744073709551615, 0, 0, 18446744073709551615}");
  EXPECT_EQ(x.Converted(DType::kPred).ToString(), "{1, 1, 1, 1, 1, 1}");
}

TEST(LiteralConvertTest, IntegersWrap) {
  const Literal x = Literal::FromValues<int32_t>({4}, {300, -1, 8, 128});
  EXPECT_EQ(x.Converted(DType::kU8).ToString(), "{44, 255, 8, 128}");
  EXPECT_EQ(x.Converted(DType::kS8).ToString(), "{44, -1, 8, -128}");
  EXPECT_EQ(x.Converted(DType::kS4).ToString(), "{-4, -1, -8, 0}");
  EXPECT_EQ(x.Converted(DType::kU64).ToString(), "{300, 18446744073709551615, 8, 128}");
}

TEST(LiteralConvertTest, NarrowFloatsRoundOnce) {
  // Rounded to f32 first, 1 + 2^-11 + 2^-40 would become a tie and then 1.
  const double above_tie = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(Literal::Scalar(above_tie).Converted(DType::kF16).AsDouble(0),
            1 + std::ldexp(1.0, -10));
  const double below_tie = 1 + std::ldexp(3.0, -11) - std::ldexp(1.0, -40);
  EXPECT_EQ(Literal::Scalar(below_tie).Converted(DType::kF16).AsDouble(0),
            1 + std::ldexp(1.0, -10));
  EXPECT_EQ(Literal::Scalar(-(1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)))
                .Converted(DType::kBF16)
                .AsDouble(0),
            -(1 + std::ldexp(1.0, -7)));
  EXPECT_EQ(Literal::Scalar(1e300).Converted(DType::kF16).AsDouble(0),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(Literal::Scalar(std::nan("")).Converted(DType::kBF16).AsDouble(0)));
  EXPECT_EQ(Literal::Scalar(std::ldexp(1.0, -200)).Converted(DType::kF16).AsDouble(0), 0);
}

TEST(LiteralConvertTest, ComplexKeepsTheRealPart) {
  const Literal x = Literal::FromValues<std::complex<float>>({3}, {{1.5f, 2}, {0, 3}, {0, 0}});
  EXPECT_EQ(x.Converted(DType::kF32).ToString(), "{1.5, 0, 0}");
  EXPECT_EQ(x.Converted(DType::kC128).ToString(), "{(1.5, 2), (0, 3), (0, 0)}");
  EXPECT_EQ(x.Converted(DType::kPred).ToString(), "{1, 1, 0}");
  EXPECT_EQ(Literal::Scalar(2.0f).Converted(DType::kC64).ToString(), "(2, 0)");
}

// Small integers are exact in every type that holds them, so any chain of conversions keeps them.
TEST(LiteralConvertTest, EveryPairOfTypesKeepsOne) {
  for (int i = 0; i < kNumArrayDTypes; ++i) {
    for (int k = 0; k < kNumArrayDTypes; ++k) {
      const Literal one = Literal::Full(Shape(static_cast<DType>(i), {3}), 1);
      const Literal converted = one.Converted(static_cast<DType>(k));
      EXPECT_EQ(converted.shape(), Shape(static_cast<DType>(k), {3}));
      for (int64_t n = 0; n < 3; ++n) EXPECT_EQ(converted.AsDouble(n), 1);
    }
  }
}

TEST(LiteralConvertTest, LongArraysConvertEveryElement) {
  Literal x(Shape(DType::kS32, {2000}));
  for (int32_t i = 0; i < 2000; ++i) x.mutable_data<int32_t>()[static_cast<std::size_t>(i)] = i;
  const Literal y = x.Converted(DType::kF64);
  for (int64_t i = 0; i < 2000; ++i) EXPECT_EQ(y.data<double>()[static_cast<std::size_t>(i)], i);
}

TEST(LiteralTest, ElementsAsDoubles) {
  Literal x(Shape(DType::kF8E4M3FN, {2}));
  x.SetFromDouble(1, 1.1);
  EXPECT_EQ(x.AsDouble(0), 0);
  EXPECT_EQ(x.AsDouble(1), 1.125);
}

TEST(LiteralDeathTest, WrongTypeOrCountIsRefused) {
  const Literal x = Literal::FromValues<float>({2}, {1, 2});
  EXPECT_DEATH((void)x.data<double>(), "literal is f32\\[2\\]");
  EXPECT_DEATH((Literal::FromValues<float>({3}, {1, 2})), "2 values for f32\\[3\\]");
  EXPECT_DEATH((void)x.Reshaped({3}), "f32\\[2\\] reshaped to f32\\[3\\]");
}

}  // namespace
}  // namespace lazuli::ir
