// Recipes against long double libm: error bounds, special values, and the vocabulary they are
// allowed.

#include "ir/recipes/recipes.h"

#include <bit>
#include <functional>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/evaluator/scalar_ops.h"
#include "tests/ir/recipes/ulp.h"

namespace lazuli {
namespace {

namespace recipes = hlo::recipes;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct UnaryRow {
  const char* name;
  float (*f32)(float);
  double (*f64)(double);
  ir::half (*f16)(ir::half);
  ir::bfloat16 (*bf16)(ir::bfloat16);
  double (*exact_f64)(double);  // for f32: wide enough, and quicker
  long double (*exact)(long double);
  double bound;
};

template <class T>
T ExactLogistic(T x) {
  return 1 / (1 + std::exp(-x));
}
template <class T>
T ExactRsqrt(T x) {
  return 1 / std::sqrt(x);
}

#define LAZULI_ROW(name, exact, bound) \
  {#name,                              \
   recipes::name<float>,               \
   recipes::name<double>,              \
   recipes::name<ir::half>,            \
   recipes::name<ir::bfloat16>,        \
   exact,                              \
   exact,                              \
   bound}
const UnaryRow kUnary[] = {
    LAZULI_ROW(Sqrt, std::sqrt, 0.5),       LAZULI_ROW(Rsqrt, ExactRsqrt, 2),
    LAZULI_ROW(Exp, std::exp, 1),           LAZULI_ROW(Expm1, std::expm1, 2),
    LAZULI_ROW(Log, std::log, 1),           LAZULI_ROW(Log1p, std::log1p, 1),
    LAZULI_ROW(Logistic, ExactLogistic, 2), LAZULI_ROW(Tanh, std::tanh, 2),
    LAZULI_ROW(Erf, std::erf, 1),           LAZULI_ROW(Sin, std::sin, 1),
    LAZULI_ROW(Cos, std::cos, 1),           LAZULI_ROW(Tan, std::tan, 3),
    LAZULI_ROW(Cbrt, std::cbrt, 1),         LAZULI_ROW(Atan, std::atan, 2),
    LAZULI_ROW(Asin, std::asin, 1),         LAZULI_ROW(Acos, std::acos, 1),
    LAZULI_ROW(Sinh, std::sinh, 2),         LAZULI_ROW(Cosh, std::cosh, 2),
    LAZULI_ROW(Asinh, std::asinh, 2),       LAZULI_ROW(Acosh, std::acosh, 3),
    LAZULI_ROW(Atanh, std::atanh, 2),
};
#undef LAZULI_ROW

long double Exact(const UnaryRow& row, double x) { return row.exact(x); }
long double Exact(const UnaryRow& row, float x) { return row.exact_f64(x); }

// Largest error over `inputs`, with the input where it happens.
template <class S, class F>
void ExpectWithin(const UnaryRow& row, F&& f, double bound, const std::vector<S>& inputs) {
  double largest = 0;
  S worst = 0;
  for (S x : inputs) {
    const double ulps = Ulps<S>(f(x), Exact(row, x));
    if (ulps > largest) {
      largest = ulps;
      worst = x;
    }
  }
  EXPECT_LE(largest, bound) << row.name << "(" << worst << ") = " << f(worst) << ", exactly "
                            << Exact(row, worst);
}

std::vector<float> SampledF32() {
  std::vector<float> inputs;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099)
    inputs.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return inputs;
}

std::vector<double> SampledF64() {
  std::vector<double> inputs;
  std::mt19937_64 random(7);
  for (int i = 0; i < 50000; ++i) {
    inputs.push_back(std::bit_cast<double>(random()));
    const auto mantissa = static_cast<double>(static_cast<int64_t>(random()));
    inputs.push_back(std::ldexp(mantissa, -67 + i % 12));
  }
  for (double special :
       {0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, -5e-324, 2.3e-308, 1.7e308, kInf, -kInf, kNan})
    inputs.push_back(special);
  return inputs;
}

TEST(RecipesTest, F32StaysWithinItsBounds) {
  const std::vector<float> inputs = SampledF32();
  for (const UnaryRow& row : kUnary) ExpectWithin(row, row.f32, row.bound, inputs);
}

TEST(RecipesTest, F64StaysWithinItsBounds) {
  const std::vector<double> inputs = SampledF64();
  for (const UnaryRow& row : kUnary) ExpectWithin(row, row.f64, row.bound, inputs);
}

// The f32 result is so close that rounding it gives the exact value's rounding almost always, and
// its neighbour otherwise.
template <class T>
void ExpectAll16BitValues(const UnaryRow& row, T (*f)(T)) {
  int wrong = 0;
  for (int bits = 0; bits < (1 << 16); ++bits) {
    const T x = std::bit_cast<T>(static_cast<uint16_t>(bits));
    const float got = static_cast<float>(f(x));
    const auto exact =
        static_cast<float>(row.exact_f64(static_cast<double>(static_cast<float>(x))));
    const float want = static_cast<float>(T(exact));
    const bool same =
        std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
    if (same) continue;
    ++wrong;
    const auto difference = std::bit_cast<int16_t>(f(x)) - std::bit_cast<int16_t>(T(exact));
    EXPECT_LE(std::abs(difference), 1) << row.name << "(" << static_cast<float>(x) << ")";
  }
  EXPECT_LE(wrong, 40) << row.name;
}

TEST(RecipesTest, EveryF16ValueRoundsOnceFromF32) {
  for (const UnaryRow& row : kUnary) ExpectAll16BitValues(row, row.f16);
}
TEST(RecipesTest, EveryBf16ValueRoundsOnceFromF32) {
  for (const UnaryRow& row : kUnary) ExpectAll16BitValues(row, row.bf16);
}

// Pairs of arguments: any bits, moderate numbers, small integers, bases near 1.
template <class S>
std::vector<std::pair<S, S>> Pairs() {
  using I = typename recipes::Ops<S>::Int;
  std::vector<std::pair<S, S>> pairs;
  std::mt19937_64 random(3);
  auto moderate = [&](int scale) {
    return std::ldexp(static_cast<S>(static_cast<int32_t>(random())), scale - 31);
  };
  for (int i = 0; i < 60000; ++i) {
    pairs.push_back(
        {std::bit_cast<S>(static_cast<I>(random())), std::bit_cast<S>(static_cast<I>(random()))});
    pairs.push_back({std::fabs(moderate(i % 8)), moderate(i % 12)});
    pairs.push_back({static_cast<S>(static_cast<int>(random() % 41) - 20),
                     static_cast<S>(static_cast<int>(random() % 41) - 20)});
    pairs.push_back({1 + moderate(-(i % 20)), moderate(i % 24)});
  }
  const double specials[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, kInf, -kInf, kNan};
  for (double x : specials) {
    for (double y : specials) pairs.push_back({static_cast<S>(x), static_cast<S>(y)});
  }
  return pairs;
}

template <class S>
void ExpectPairsWithin(const char* name, S (*f)(S, S),
                       long double (*exact)(long double, long double), double bound) {
  double largest = 0;
  std::pair<S, S> worst;
  for (const auto& [x, y] : Pairs<S>()) {
    const double ulps = Ulps<S>(f(x, y), exact(x, y));
    if (ulps > largest) {
      largest = ulps;
      worst = {x, y};
    }
  }
  EXPECT_LE(largest, bound) << name << "(" << worst.first << ", " << worst.second
                            << ") = " << f(worst.first, worst.second);
}

TEST(RecipesTest, PowerStaysWithinOneUnit) {
  ExpectPairsWithin<float>("power", recipes::Power<float>, std::pow, 1);
  ExpectPairsWithin<double>("power", recipes::Power<double>, std::pow, 1);
}
TEST(RecipesTest, Atan2StaysWithinTwoUnits) {
  ExpectPairsWithin<float>("atan2", recipes::Atan2<float>, std::atan2, 2);
  ExpectPairsWithin<double>("atan2", recipes::Atan2<double>, std::atan2, 2);
}
TEST(RecipesTest, RemainderIsExact) {
  ExpectPairsWithin<float>("remainder", recipes::Remainder<float>, std::fmod, 0);
}

TEST(RecipesTest, PowersOfIntegersAreExact) {
  for (int base = -12; base <= 12; ++base) {
    for (int n = 0; n <= 6; ++n) {
      double exact = 1;
      for (int i = 0; i < n; ++i) exact *= base;
      if (std::fabs(exact) < (1 << 24)) {
        EXPECT_EQ(recipes::Power(static_cast<float>(base), static_cast<float>(n)),
                  static_cast<float>(exact))
            << base << "^" << n;
      }
    }
  }
}

TEST(RecipesTest, RoundingKeepsSignsAndHalves) {
  for (float x : {-2.5f, -1.5f, -0.5f, -0.49999997f, -0.0f, 0.0f, 0.49999997f, 0.5f, 1.5f, 2.5f,
                  8388609.0f, 3e38f}) {
    EXPECT_EQ(Ulps(recipes::RoundNearestAfz(x), std::round(static_cast<long double>(x))), 0) << x;
    EXPECT_EQ(Ulps(recipes::RoundNearestEven(x), std::nearbyint(static_cast<long double>(x))), 0)
        << x;
    EXPECT_EQ(Ulps(recipes::Floor(x), std::floor(static_cast<long double>(x))), 0) << x;
    EXPECT_EQ(Ulps(recipes::Ceil(x), std::ceil(static_cast<long double>(x))), 0) << x;
  }
}

TEST(RecipesTest, SignKeepsZerosAndNan) {
  EXPECT_EQ(recipes::Sign(-3.5f), -1);
  EXPECT_EQ(recipes::Sign(1e-45f), 1);
  EXPECT_TRUE(std::signbit(recipes::Sign(-0.0f)));
  EXPECT_TRUE(std::isnan(recipes::Sign(std::numeric_limits<float>::quiet_NaN())));
}

TEST(RecipesTest, MaximumAndMinimumPropagateNanAndOrderZeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto [x, y] : {std::pair{nan, 1.0f}, {1.0f, nan}, {nan, nan}}) {
    EXPECT_TRUE(std::isnan(recipes::Maximum(x, y)));
    EXPECT_TRUE(std::isnan(recipes::Minimum(x, y)));
  }
  for (auto [x, y] : {std::pair{-0.0f, 0.0f}, {0.0f, -0.0f}}) {
    EXPECT_FALSE(std::signbit(recipes::Maximum(x, y)));
    EXPECT_TRUE(std::signbit(recipes::Minimum(x, y)));
  }
  EXPECT_EQ(recipes::Maximum(-1.0f, 2.0f), 2);
  EXPECT_EQ(recipes::Minimum(-1.0f, 2.0f), -1);
}

TEST(RecipesTest, SubnormalsSurvive) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(recipes::Exp(-103.0f), std::exp(-103.0f));
  EXPECT_EQ(recipes::Exp(-103.5f), tiny);
  EXPECT_EQ(recipes::Tanh(tiny), tiny);
  EXPECT_EQ(recipes::Sin(-tiny), -tiny);
  EXPECT_EQ(recipes::Expm1(tiny), tiny);
  EXPECT_EQ(recipes::Log1p(tiny), tiny);
  EXPECT_EQ(recipes::Logistic(-100.0f), static_cast<float>(ExactLogistic(-100.0)));
  EXPECT_EQ(recipes::Power(2.0f, -149.0f), tiny);
  EXPECT_EQ(recipes::Cbrt(0x1p-147f), 0x1p-49f);
}

// A value type with exactly the vocabulary of vocabulary.h, each a type of its own without
// conversions. It counts.
struct ToyMask {
  bool value;
  friend ToyMask operator&(ToyMask a, ToyMask b) { return {a.value && b.value}; }
  friend ToyMask operator|(ToyMask a, ToyMask b) { return {a.value || b.value}; }
  friend ToyMask operator!(ToyMask a) { return {!a.value}; }
};
template <class I>
struct ToyInt {
  I value;
  friend ToyInt operator+(ToyInt a, ToyInt b) { return {a.value + b.value}; }
  friend ToyInt operator-(ToyInt a, ToyInt b) { return {a.value - b.value}; }
  friend ToyInt operator&(ToyInt a, ToyInt b) { return {a.value & b.value}; }
  friend ToyInt operator|(ToyInt a, ToyInt b) { return {a.value | b.value}; }
  friend ToyInt operator^(ToyInt a, ToyInt b) { return {a.value ^ b.value}; }
  friend ToyMask operator==(ToyInt a, ToyInt b) { return {a.value == b.value}; }
  friend ToyMask operator<(ToyInt a, ToyInt b) { return {a.value < b.value}; }
};
template <class S>
struct Toy {
  S value;
  int* operations;  // shared by all values that come from one input
  static Toy Made(S value, Toy like) {
    ++*like.operations;
    return {value, like.operations};
  }
  friend Toy operator+(Toy a, Toy b) { return Made(a.value + b.value, a); }
  friend Toy operator-(Toy a, Toy b) { return Made(a.value - b.value, a); }
  friend Toy operator*(Toy a, Toy b) { return Made(a.value * b.value, a); }
  friend Toy operator/(Toy a, Toy b) { return Made(a.value / b.value, a); }
  friend Toy operator-(Toy a) { return Made(-a.value, a); }
  friend ToyMask operator==(Toy a, Toy b) { return {a.value == b.value}; }
  friend ToyMask operator!=(Toy a, Toy b) { return {a.value != b.value}; }
  friend ToyMask operator<(Toy a, Toy b) { return {a.value < b.value}; }
  friend ToyMask operator<=(Toy a, Toy b) { return {a.value <= b.value}; }
  friend ToyMask operator>(Toy a, Toy b) { return {a.value > b.value}; }
  friend ToyMask operator>=(Toy a, Toy b) { return {a.value >= b.value}; }
};
int toy_operations = 0;

}  // namespace

template <class S>
struct hlo::recipes::Ops<Toy<S>> {
  using Scalar = S;
  using Base = Ops<S>;
  using Int = ToyInt<typename Base::Int>;
  using Mask = ToyMask;
  using V = Toy<S>;
  static V Constant(V like, S value) { return {value, like.operations}; }
  static Int IntConstant(V like, int64_t value) { return {Base::IntConstant(like.value, value)}; }
  static V Fma(V a, V b, V c) { return V::Made(std::fma(a.value, b.value, c.value), a); }
  static V Sqrt(V x) { return V::Made(std::sqrt(x.value), x); }
  static V Floor(V x) { return V::Made(std::floor(x.value), x); }
  static V RoundEven(V x) { return V::Made(std::nearbyint(x.value), x); }
  static V Fmod(V x, V y) { return V::Made(std::fmod(x.value, y.value), x); }
  static V Select(Mask m, V yes, V no) { return V::Made(m.value ? yes.value : no.value, yes); }
  static Int SelectInt(Mask m, Int yes, Int no) { return m.value ? yes : no; }
  static Int ToBits(V x) { return {Base::ToBits(x.value)}; }
  static V FromBits(Int x) { return {Base::FromBits(x.value), &toy_operations}; }
  static Int ShiftLeft(Int x, int n) { return {Base::ShiftLeft(x.value, n)}; }
  static Int ShiftRight(Int x, int n) { return {Base::ShiftRight(x.value, n)}; }
  static Int ShiftRightArithmetic(Int x, int n) { return {Base::ShiftRightArithmetic(x.value, n)}; }
};

namespace {

template <class S>
void ExpectToyAgrees() {
  std::mt19937_64 random(1);
  auto bits = [](auto x) { return recipes::Ops<S>::ToBits(x); };
  for (int i = 0; i < 300; ++i) {
    const S x = i % 2 ? std::bit_cast<S>(static_cast<typename recipes::Ops<S>::Int>(random()))
                      : static_cast<S>(static_cast<int32_t>(random())) / S(1 << 29);
    const S y = static_cast<S>(static_cast<int32_t>(random())) / S(1 << 28);
    const Toy<S> tx{x, &toy_operations}, ty{y, &toy_operations};
    auto same = [&](const char* name, S scalar, Toy<S> toy) {
      EXPECT_TRUE(bits(scalar) == bits(toy.value) || (std::isnan(scalar) && std::isnan(toy.value)))
          << name << " " << x << " " << y;
    };
#define LAZULI_SAME(name) same(#name, recipes::name(x), recipes::name(tx))
    LAZULI_SAME(Abs);
    LAZULI_SAME(Negate);
    LAZULI_SAME(Sign);
    LAZULI_SAME(Ceil);
    LAZULI_SAME(Floor);
    LAZULI_SAME(RoundNearestAfz);
    LAZULI_SAME(RoundNearestEven);
    LAZULI_SAME(Sqrt);
    LAZULI_SAME(Rsqrt);
    LAZULI_SAME(Cbrt);
    LAZULI_SAME(Exp);
    LAZULI_SAME(Expm1);
    LAZULI_SAME(Log);
    LAZULI_SAME(Log1p);
    LAZULI_SAME(Logistic);
    LAZULI_SAME(Tanh);
    LAZULI_SAME(Sin);
    LAZULI_SAME(Cos);
    LAZULI_SAME(Tan);
    LAZULI_SAME(Erf);
    LAZULI_SAME(Asin);
    LAZULI_SAME(Acos);
    LAZULI_SAME(Atan);
    LAZULI_SAME(Asinh);
    LAZULI_SAME(Acosh);
    LAZULI_SAME(Atanh);
    LAZULI_SAME(Sinh);
    LAZULI_SAME(Cosh);
#undef LAZULI_SAME
#define LAZULI_SAME(name) same(#name, recipes::name(x, y), recipes::name(tx, ty))
    LAZULI_SAME(Add);
    LAZULI_SAME(Subtract);
    LAZULI_SAME(Multiply);
    LAZULI_SAME(Divide);
    LAZULI_SAME(Remainder);
    LAZULI_SAME(Maximum);
    LAZULI_SAME(Minimum);
    LAZULI_SAME(Power);
    LAZULI_SAME(Atan2);
#undef LAZULI_SAME
    EXPECT_EQ(recipes::IsFinite(x), recipes::IsFinite(tx).value);
  }
}

TEST(RecipesTest, NeedNothingBeyondTheirVocabulary) {
  ExpectToyAgrees<float>();
  ExpectToyAgrees<double>();
}

// What vectorised loops pay: operations on values (constants and bit operations not counted).
TEST(RecipesTest, ExpIsShort) {
  toy_operations = 0;
  recipes::Exp(Toy<float>{1.5f, &toy_operations});
  EXPECT_LE(toy_operations, 20);
}

}  // namespace
}  // namespace lazuli
