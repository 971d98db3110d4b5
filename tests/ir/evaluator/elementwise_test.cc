// Elementwise opcodes: integer semantics, conversions, comparisons, selection, small floats,
// complex numbers.

#include <cmath>
#include <complex>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/evaluator/complex_ops.h"
#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

// One instruction on constants: Op("s8[3]", "divide", "s8[3]", {"{1, 2, 3}", "{0, 1, 2}"}).
std::string Op(const std::string& result, const std::string& op, const std::string& operand,
               const std::vector<std::string>& constants, const std::string& attrs = "") {
  std::string text = "ENTRY e {\n", names;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    text += ir::Str("  c", i, " = ", operand, " constant(", constants[i], ")\n");
    names += ir::Str(i ? ", " : "", "c", i);
  }
  return EvalText(ir::Str(text, "  ROOT r = ", result, " ", op, "(", names, ")", attrs, "\n}"));
}

TEST(ElementwiseTest, IntegerDivisionByZeroGivesAllOnes) {
  EXPECT_EQ(Op("s32[4]", "divide", "s32[4]", {"{7, -7, 5, -2147483648}", "{0, 0, 2, -1}"}),
            "{-1, -1, 2, -2147483648}");
  EXPECT_EQ(Op("u8[2]", "divide", "u8[2]", {"{7, 200}", "{0, 3}"}), "{255, 66}");
  EXPECT_EQ(Op("s8[2]", "divide", "s8[2]", {"{-128, -7}", "{-1, 2}"}), "{-128, -3}");
}

TEST(ElementwiseTest, RemainderTakesTheSignOfTheDividend) {
  EXPECT_EQ(Op("s32[4]", "remainder", "s32[4]", {"{7, -7, 5, -2147483648}", "{0, 3, -3, -1}"}),
            "{7, -1, 2, 0}");
  EXPECT_EQ(Op("f32[3]", "remainder", "f32[3]", {"{5.5, -5.5, 1}", "{2, 2, inf}"}),
            "{1.5, -1.5, 1}");
}

TEST(ElementwiseTest, IntegersWrap) {
  EXPECT_EQ(Op("s8[2]", "add", "s8[2]", {"{127, -128}", "{1, -1}"}), "{-128, 127}");
  EXPECT_EQ(
      Op("u64[1]", "multiply", "u64[1]", {"{18446744073709551615}", "{18446744073709551615}"}),
      "{1}");
  EXPECT_EQ(Op("s32[1]", "abs", "s32[1]", {"{-2147483648}"}), "{-2147483648}");
  EXPECT_EQ(Op("s4[3]", "add", "s4[3]", {"{7, -8, 3}", "{1, -1, 2}"}), "{-8, 7, 5}");
  EXPECT_EQ(Op("u4[2]", "subtract", "u4[2]", {"{0, 9}", "{1, 2}"}), "{15, 7}");
}

TEST(ElementwiseTest, ShiftsPastTheWidthGiveZeroOrTheSign) {
  EXPECT_EQ(Op("s32[4]", "shift-left", "s32[4]", {"{1, 1, 1, 1}", "{31, 32, -1, 3}"}),
            "{-2147483648, 0, 0, 8}");
  EXPECT_EQ(Op("s32[3]", "shift-right-arithmetic", "s32[3]", {"{-8, -8, 8}", "{1, 40, 40}"}),
            "{-4, -1, 0}");
  EXPECT_EQ(Op("s32[3]", "shift-right-logical", "s32[3]", {"{-1, -1, 8}", "{28, 32, 1}"}),
            "{15, 0, 4}");
  EXPECT_EQ(Op("s4[2]", "shift-right-logical", "s4[2]", {"{-1, -8}", "{2, 3}"}), "{3, 1}");
}

TEST(ElementwiseTest, IntegerPowersSquareAndWrap) {
  EXPECT_EQ(Op("s32[5]", "power", "s32[5]", {"{3, 2, -1, -1, 5}", "{4, 32, -3, -2, -1}"}),
            "{81, 0, -1, 1, 0}");
}

TEST(ElementwiseTest, BitsAreCounted) {
  EXPECT_EQ(Op("s16[3]", "popcnt", "s16[3]", {"{-1, 0, 5}"}), "{16, 0, 2}");
  EXPECT_EQ(Op("u8[3]", "count-leading-zeros", "u8[3]", {"{0, 1, 128}"}), "{8, 7, 0}");
  EXPECT_EQ(Op("s4[2]", "count-leading-zeros", "s4[2]", {"{1, -1}"}), "{3, 0}");
  EXPECT_EQ(Op("s4[2]", "popcnt", "s4[2]", {"{-1, 6}"}), "{4, 2}");
  EXPECT_EQ(Op("s32[2]", "not", "s32[2]", {"{0, 5}"}), "{-1, -6}");
}

TEST(ElementwiseTest, PredAddsAsOrAndMultipliesAsAnd) {
  EXPECT_EQ(Op("pred[4]", "add", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 1, 1, 1}");
  EXPECT_EQ(Op("pred[4]", "multiply", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 0, 0, 1}");
  EXPECT_EQ(Op("pred[4]", "xor", "pred[4]", {"{0, 0, 1, 1}", "{0, 1, 0, 1}"}), "{0, 1, 1, 0}");
}

TEST(ElementwiseTest, ConversionsSaturateAndWrap) {
  EXPECT_EQ(Op("s8[6]", "convert", "f32[6]", {"{1.9, -1.9, 300, -300, nan, inf}"}),
            "{1, -1, 127, -128, 0, 127}");
  EXPECT_EQ(Op("u8[3]", "convert", "f32[3]", {"{-5, 256, 7.5}"}), "{0, 255, 7}");
  EXPECT_EQ(Op("u8[2]", "convert", "s32[2]", {"{257, -1}"}), "{1, 255}");
  EXPECT_EQ(Op("pred[3]", "convert", "f32[3]", {"{0, 0.5, nan}"}), "{0, 1, 1}");
}

TEST(ElementwiseTest, ComparisonsKnowNanAndTheTotalOrder) {
  const std::string x = "{nan, 0, -0.0, 1}", y = "{nan, -0.0, 0, 2}";
  EXPECT_EQ(Op("pred[4]", "compare", "f32[4]", {x, y}, ", direction=EQ"), "{0, 1, 1, 0}");
  EXPECT_EQ(Op("pred[4]", "compare", "f32[4]", {x, y}, ", direction=NE"), "{1, 0, 0, 1}");
  EXPECT_EQ(Op("pred[4]", "compare", "f32[4]", {x, y}, ", direction=LT, type=TOTALORDER"),
            "{0, 0, 1, 1}");
  EXPECT_EQ(Op("pred[2]", "compare", "u8[2]", {"{200, 1}", "{100, 2}"}, ", direction=GT"),
            "{1, 0}");
  EXPECT_EQ(Op("pred[2]", "compare", "bf16[2]", {"{-1, 3}", "{1, 3}"}, ", direction=GE"), "{0, 1}");
  EXPECT_EQ(Op("pred[2]", "compare", "c64[2]", {"{(1, 2), (1, 2)}", "{(1, 2), (1, 3)}"},
               ", direction=EQ"),
            "{1, 0}");
}

TEST(ElementwiseTest, SelectAndClampTakeScalars) {
  EXPECT_EQ(EvalText(R"(ENTRY e {
    p = pred[] constant(false)
    a = s32[2] constant({1, 2})
    b = s32[2] constant({3, 4})
    ROOT r = s32[2] select(p, a, b) })"),
            "{3, 4}");
  EXPECT_EQ(EvalText(R"(ENTRY e {
    low = f32[] constant(-1)
    x = f32[4] constant({-3, 0.5, 7, nan})
    high = f32[4] constant({1, 1, 2, 1})
    ROOT r = f32[4] clamp(low, x, high) })"),
            "{-1, 0.5, 2, nan}");
}

TEST(ElementwiseTest, ReducePrecisionRoundsToNearestEven) {
  const std::string attrs = ", exponent_bits=5, mantissa_bits=10";
  EXPECT_EQ(
      Op("f32[4]", "reduce-precision", "f32[4]", {"{1.0004883, 70000, 1e-10, -1e-10}"}, attrs),
      "{1, inf, 0, -0.0}");
  EXPECT_EQ(Op("f32[2]", "reduce-precision", "f32[2]", {"{nan, 1.0014648}"}, attrs),
            "{nan, 1.00195312}");
}

TEST(ElementwiseTest, SmallFloatsComputeInF32) {
  EXPECT_EQ(Op("bf16[2]", "add", "bf16[2]", {"{256, 1}", "{1, 2}"}), "{256, 3}");
  EXPECT_EQ(Op("f16[2]", "multiply", "f16[2]", {"{300, 3}", "{300, 0.5}"}), "{inf, 1.5}");
  EXPECT_EQ(Op("f8e4m3fn[2]", "add", "f8e4m3fn[2]", {"{16, 1}", "{1, 1}"}), "{16, 2}");
  EXPECT_EQ(Op("pred[2]", "is-finite", "f16[2]", {"{inf, 1}"}), "{0, 1}");
}

TEST(ElementwiseTest, ComplexArithmetic) {
  EXPECT_EQ(Op("c64[1]", "multiply", "c64[1]", {"{(1, 2)}", "{(3, 4)}"}), "{(-5, 10)}");
  EXPECT_EQ(Op("c64[1]", "divide", "c64[1]", {"{(-5, 10)}", "{(3, 4)}"}), "{(1, 2)}");
  EXPECT_EQ(Op("f32[1]", "abs", "c64[1]", {"{(3, 4)}"}), "{5}");
  EXPECT_EQ(Op("f32[1]", "imag", "c64[1]", {"{(3, 4)}"}), "{4}");
  EXPECT_EQ(Op("c64[1]", "complex", "f32[1]", {"{3}", "{4}"}), "{(3, 4)}");
}

// Every complex recipe against the standard library, on a grid away from branch cuts.
TEST(ElementwiseTest, ComplexFunctionsAgreeWithTheStandardLibrary) {
  namespace recipes = hlo::recipes;
  using C = std::complex<double>;
  auto expect = [](const char* name, C z, C got, C want) {
    EXPECT_LE(std::abs(got - want), 1e-13 * (1 + std::abs(want)))
        << name << z << ": " << got << ", not " << want;
  };
  for (double re : {-2.5, -0.75, -0.1, 0.3, 1.5, 3.0}) {
    for (double im : {-1.75, -0.4, 0.2, 0.9, 2.25}) {
      const C z(re, im);
#define LAZULI_SAME(name, want) expect(#name, z, recipes::name(z), want(z))
      LAZULI_SAME(Exp, std::exp);
      LAZULI_SAME(Log, std::log);
      LAZULI_SAME(Sqrt, std::sqrt);
      LAZULI_SAME(Sin, std::sin);
      LAZULI_SAME(Cos, std::cos);
      LAZULI_SAME(Tan, std::tan);
      LAZULI_SAME(Tanh, std::tanh);
      LAZULI_SAME(Sinh, std::sinh);
      LAZULI_SAME(Cosh, std::cosh);
      LAZULI_SAME(Asin, std::asin);
      LAZULI_SAME(Acos, std::acos);
      LAZULI_SAME(Atan, std::atan);
      LAZULI_SAME(Asinh, std::asinh);
      LAZULI_SAME(Acosh, std::acosh);
      LAZULI_SAME(Atanh, std::atanh);
#undef LAZULI_SAME
      expect("Expm1", z, recipes::Expm1(z), std::exp(z) - 1.0);
      expect("Log1p", z, recipes::Log1p(z), std::log(1.0 + z));
      expect("Logistic", z, recipes::Logistic(z), 1.0 / (1.0 + std::exp(-z)));
      expect("Rsqrt", z, recipes::Rsqrt(z), 1.0 / std::sqrt(z));
      expect("Power", z, recipes::Power(z, C(1.5, -0.5)), std::pow(z, C(1.5, -0.5)));
    }
  }
}

// Infinite and NaN parts are the same, the others within some last digits of the size.
template <class T>
bool IsClose(std::complex<T> got, std::complex<T> want) {
  const auto same = [](T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  if (same(got.real(), want.real()) && same(got.imag(), want.imag())) return true;
  const auto close = [&](T a, T b) {
    const T size = std::isfinite(std::abs(want)) ? std::abs(want) : std::abs(b);
    return same(a, b) || std::abs(a - b) <= 40 * std::numeric_limits<T>::epsilon() * size +
                                                std::numeric_limits<T>::min();
  };
  return close(got.real(), want.real()) && close(got.imag(), want.imag());
}

template <class T>
void ExpectCsEdges(T large) {
  namespace recipes = hlo::recipes;
  using C = std::complex<T>;
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const T parts[] = {T(0),      T(-0.0), T(1),   T(-2), T(0.5), T(1e30),
                     T(-1e-30), large,   -large, kInf,  -kInf};
  for (const T re : parts) {
    for (const T im : parts) {
      const C z(re, im);
#define LAZULI_SAME(name, want) \
  EXPECT_TRUE(IsClose(recipes::name(z), want(z))) << #name << z << recipes::name(z) << want(z)
      LAZULI_SAME(Exp, std::exp);
      LAZULI_SAME(Asin, std::asin);
      LAZULI_SAME(Acos, std::acos);
      LAZULI_SAME(Asinh, std::asinh);
      LAZULI_SAME(Acosh, std::acosh);
      LAZULI_SAME(Atan, std::atan);
      LAZULI_SAME(Atanh, std::atanh);
      // An infinite angle leaves one part that C gives a value, or none.
      if (!std::isinf(re)) {
        LAZULI_SAME(Tan, std::tan);
      }
      if (!std::isinf(im)) {
        LAZULI_SAME(Tanh, std::tanh);
      }
      if (std::isinf(re) && std::isinf(im)) continue;
      LAZULI_SAME(Sin, std::sin);
      LAZULI_SAME(Cos, std::cos);
      LAZULI_SAME(Sinh, std::sinh);
      LAZULI_SAME(Cosh, std::cosh);
#undef LAZULI_SAME
    }
  }
}

TEST(RecipesTest, ComplexFunctionsAreCsWherePartsAreZeroHugeOrInfinite) {
  ExpectCsEdges<float>(100);
  ExpectCsEdges<double>(720);
}

TEST(RecipesTest, ComplexAnglesFarFromZeroAreNoNaN) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  using C = std::complex<double>;
  for (const C z : {C(1e8, 3), C(-1e12, 1e11), C(2, 1e9), C(1e200, -1e200), C(-1e300, 0.0),
                    C(kInf, 1), C(-kInf, -2), C(3, kInf), C(-1, -kInf), C(-kInf, kInf)}) {
    const C atanh = hlo::recipes::Atanh(z), want = std::atanh(z);
    EXPECT_LE(std::abs(atanh.real() - want.real()), 1e-15 * std::abs(want.real())) << z << atanh;
    EXPECT_LE(std::abs(atanh.imag() - want.imag()), 1e-15) << z << atanh;
    EXPECT_LE(std::abs(hlo::recipes::Atan(z) - std::atan(z)), 1e-15) << z;
  }
}

}  // namespace
}  // namespace lazuli
