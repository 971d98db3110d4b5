// The arithmetic against the normative scalar model and against f64.
#include "backend/npu/sim/numerics.h"

#include <cmath>
#include <cstdlib>
#include <random>

#include "absl/strings/str_cat.h"
#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/support/str.h"
#include "tests/backend/npu/sim/run_program.h"
#include "tests/support/hlo_test.h"

namespace lazuli::npu {
namespace {

// Mostly numbers around 1, some of every kind of float.
float AnyFloat(std::mt19937_64& random, bool tame) {
  std::normal_distribution<float> normal;
  if (tame || random() % 8 != 0) return normal(random);
  return std::bit_cast<float>(static_cast<uint32_t>(random()));
}

// One tile after the other, as docs/npu.md has it.
float Normative(const std::vector<float>& a, const std::vector<float>& w, std::size_t row,
                std::size_t column, std::size_t k, std::size_t n, std::size_t tile,
                const std::vector<PartPair>& passes, const std::vector<std::vector<float>>& a_parts,
                const std::vector<std::vector<float>>& w_parts) {
  float acc = 0;
  bool first = true;
  for (std::size_t begin = 0; begin < k; begin += tile) {
    for (const PartPair& pass : passes) {
      const auto& x =
          passes.size() == 1 && a_parts.empty() ? a : a_parts[static_cast<std::size_t>(pass.a)];
      const auto& y =
          passes.size() == 1 && w_parts.empty() ? w : w_parts[static_cast<std::size_t>(pass.w)];
      float p = 0;
      for (std::size_t r = begin; r < std::min(k, begin + tile); ++r)
        p = std::fma(x[row * k + r], y[r * n + column], p);
      acc = Canonical(first ? p : acc + p);
      first = false;
    }
  }
  return acc;
}

std::vector<std::vector<float>> Parts(const std::vector<float>& values, int count) {
  std::vector<std::vector<float>> parts;
  std::vector<float> rest = values;
  for (int p = 0; p < count; ++p) {
    parts.emplace_back();
    for (float& r : rest) {
      parts.back().push_back(RoundToBf16(r));
      r = std::isfinite(parts.back().back()) ? r - parts.back().back() : 0;
    }
  }
  return parts;
}

struct Shape2 {
  std::size_t m, k, n;
};

// m x k times k x n in tiles of 32, by a program on the machine.
std::vector<float> OnMachine(const Shape2& s, const std::vector<float>& a,
                             const std::vector<float>& w, std::string_view mode, bool bf16) {
  std::string text = ".arg a f32[" + std::to_string(s.m) + "," + std::to_string(s.k) +
                     "] in\n.arg w f32[" + std::to_string(s.k) + "," + std::to_string(s.n) +
                     "] in\n.arg c f32[" + std::to_string(s.m) + "," + std::to_string(s.n) +
                     "] out\n";
  const std::string type = bf16 ? "bf16" : "f32";
  auto flat = [&](std::string_view name, std::size_t n) {
    text += ".desc " + std::string(name) + " dim(" + std::to_string(n) + ") src(1) dst(1) elem 4\n";
  };
  flat("all_a", s.m * s.k);
  flat("all_w", s.k * s.n);
  flat("all_c", s.m * s.n);
  text += ".desc rows dim(" + std::to_string(s.m) + ") src(" + std::to_string(s.k) +
          ") dst(0) elem " + (bf16 ? "2" : "4") + "\n.desc out dim(" + std::to_string(s.m) + "," +
          std::to_string(s.n) + ") src(1,1) dst(" + std::to_string(s.n) + ",1) elem 4\n";
  text += std::string("movi r1, 0\nmovi r2, 0x40000\nmovi r3, 0x80000\ndma.ld.0 [r1], $a, all_a") +
          (bf16 ? ", narrow" : "") + " sig s0+1\ndma.ld.1 [r2], $w, all_w" +
          (bf16 ? ", narrow" : "") + " sig s1+1\nsem.wait.sq wait s0>=1\nsem.wait.sq wait s1>=1\n";
  for (std::size_t begin = 0; begin < s.k; begin += 32) {
    const std::size_t k = std::min<std::size_t>(32, s.k - begin);
    absl::StrAppend(&text, "mx.ldw.", type, " [r2], k=", k, ", n=", s.n, "\nmx.swp\nmx.mm.", type,
                    " [r1], acc[7], rows, acc=r9", std::string(mode), "\nadd r2, r2, ",
                    k * s.n * (bf16 ? 2 : 4), "\nadd r1, r1, ", k * (bf16 ? 2 : 4),
                    "\nmovi r9, 1\n");
  }
  text +=
      "mx.out.f32 acc[7], [r3], out sig s2+1\ndma.st.0 $c, [r3], all_c wait s2>=1\nfence "
      "all\nhalt\n";
  const Outcome outcome =
      RunProgram(MustAssemble(text), "", {{{"a", BytesOf(a)}, {"w", BytesOf(w)}}});
  EXPECT_FALSE(outcome.fault) << outcome.FaultText();
  return ValuesOf<float>(outcome.arrays.at(0).at("c"));
}

// bf16 keeps 8 bits of a float, so rounding is off by at most 2^-8 of it, and the product of two by
// twice that and a little.
constexpr double kBf16Products = 0x1p-7 + 0x1p-16;

struct Mode {
  std::string_view name, text;
  F32Mode mode;
  bool bf16;
  double bound_per_sum;  // of |error| / sum |a||w| beside rounding in f32
  double roundings;      // how often the f32 bound counts
};

// Acceptance test 3.
TEST(NumericsTest, MatrixUnitIsTheScalarModelBitForBitAndWithinItsBounds) {
  const Mode kModes[] = {{"native", "", F32Mode::kNative, false, 0, 1},
                         {"x1", ", mode=x1", F32Mode::kX1, false, kBf16Products, 1},
                         {"x3", ", mode=x3", F32Mode::kX3, false, 1.2e-5, 3},
                         {"x6", ", mode=x6", F32Mode::kX6, false, 0, 6},
                         {"bf16", "", F32Mode::kNative, true, kBf16Products, 1}};
  std::mt19937_64 random(11);
  for (const Mode& mode : kModes) {
    for (const Shape2& s :
         {Shape2{1, 1, 1}, Shape2{13, 32, 32}, Shape2{7, 33, 5}, Shape2{20, 100, 31}}) {
      for (bool tame : {true, false}) {
        std::vector<float> a(s.m * s.k), w(s.k * s.n);
        for (float& v : a) v = AnyFloat(random, tame);
        for (float& v : w) v = AnyFloat(random, tame);
        const std::vector<float> c = OnMachine(s, a, w, mode.text, mode.bf16);
        ASSERT_EQ(c.size(), s.m * s.n);
        const Passes passes = PassesOf(mode.mode);
        const std::vector<PartPair> pairs(passes.pair, passes.pair + passes.count);
        const bool split = mode.bf16 || mode.mode != F32Mode::kNative;
        const auto a_parts = Parts(a, split ? 3 : 0), w_parts = Parts(w, split ? 3 : 0);
        for (std::size_t i = 0; i < s.m; ++i) {
          for (std::size_t j = 0; j < s.n; ++j) {
            const float expected = Normative(a, w, i, j, s.k, s.n, 32, pairs, a_parts, w_parts);
            ASSERT_EQ(std::bit_cast<uint32_t>(c[i * s.n + j]), std::bit_cast<uint32_t>(expected))
                << mode.name << " " << s.k << " " << i << " " << j;
            if (!tame) continue;
            double exact = 0, sum = 0;
            for (std::size_t r = 0; r < s.k; ++r) {
              exact += static_cast<double>(a[i * s.k + r]) * static_cast<double>(w[r * s.n + j]);
              sum += std::abs(static_cast<double>(a[i * s.k + r]) *
                              static_cast<double>(w[r * s.n + j]));
            }
            const double f32 = (32 + std::ceil(static_cast<double>(s.k) / 32) + 1) * 0x1p-24 * sum;
            EXPECT_LE(std::abs(static_cast<double>(c[i * s.n + j]) - exact),
                      mode.bound_per_sum * sum + mode.roundings * f32)
                << mode.name;
          }
        }
      }
    }
  }
}

// One product of two numbers halfway between two of bf16 comes within 1 % of the bound of products,
// so no smaller one holds for all data. Sums of many normal numbers stay below half of it: errors
// cancel.
TEST(NumericsTest, TheBoundOfBf16IsReachedByOneProductAndNotBySums) {
  const float halfway = 1 + 0x1p-8f;
  const double exact = static_cast<double>(halfway) * static_cast<double>(halfway);
  const float one = OnMachine({1, 1, 1}, {halfway}, {halfway}, "", true)[0];
  EXPECT_EQ(one, 1);
  EXPECT_GT((exact - 1) / exact, 0.99 * kBf16Products);
  EXPECT_LE((exact - 1) / exact, kBf16Products);
  std::mt19937_64 random(12);
  const Shape2 s{32, 64, 32};
  std::vector<float> a(s.m * s.k), w(s.k * s.n);
  for (float& v : a) v = AnyFloat(random, true);
  for (float& v : w) v = AnyFloat(random, true);
  const std::vector<float> c = OnMachine(s, a, w, "", true);
  double worst = 0;
  for (std::size_t i = 0; i < s.m * s.n; ++i) {
    double value = 0, sum = 0;
    for (std::size_t r = 0; r < s.k; ++r) {
      const double product =
          static_cast<double>(a[i / s.n * s.k + r]) * static_cast<double>(w[r * s.n + i % s.n]);
      value += product;
      sum += std::abs(product);
    }
    worst = std::max(worst, std::abs(static_cast<double>(c[i]) - value) / sum);
  }
  EXPECT_LE(worst, 3.95e-3);
  EXPECT_GT(worst, 1e-4);
}

TEST(NumericsTest, ResultsAreTheChainOfTheirOperations) {
  // s32 sums, biased, scaled, activated, to s8 with a zero point; the same sums to f32 and,
  // limited, to u8.
  const Program program = MustAssemble(R"(
.arg x s8[4,3] in
.arg w s8[3,2] in
.const par f32[8] 0.5 0.013 0x00000007 0xffffff00 -3.5 90.25 0 0
.arg q s8[4,2] out
.arg f f32[4,2] out
.arg u u8[4,2] out
.desc dx dim(12) src(1) dst(1) elem 1
.desc dw dim(6) src(1) dst(1) elem 1
.desc dp dim(8) src(1) dst(1) elem 4
.desc rows dim(4) src(3) dst(0) elem 1
.desc o1 dim(4,2) src(2,1) dst(2,1) elem 1
.desc o4 dim(4,2) src(2,1) dst(2,1) elem 4
movi r1, 0 ; movi r2, 0x100 ; movi r3, 0x200 ; movi r4, 0x300 ; movi r5, 0x400 ; movi r6, 0x500
dma.ld.0 [r1], $x, dx
dma.ld.0 [r2], $w, dw
dma.ld.0 [r3], $par, dp
fence all
mx.ldw.s8 [r2], k=3, n=2
mx.swp
mx.mm.s8 [r1], acc[0], rows
mx.out.s8 acc[0], [r4], o1, par=r3, relu, scale=1, bias=1, zp=251
mx.out.f32 acc[0], [r5], o4, from=other
mx.out.u8 acc[0], [r6], o1, par=r3, clamp, scale=1, bias=1, zp=3
fence all
dma.st.0 $q, [r4], o1
dma.st.0 $f, [r5], o4
dma.st.0 $u, [r6], o1
fence all
halt)");
  const std::vector<int8_t> x = {1, 2, 3, -4, 5, -6, 127, -128, 127, 0, 0, 1},
                            w = {3, -5, 7, 11, -13, 127};
  const Outcome outcome = RunProgram(program, "", {{{"x", BytesOf(x)}, {"w", BytesOf(w)}}});
  ASSERT_FALSE(outcome.fault) << outcome.FaultText();
  const float scale[] = {0.5f, 0.013f};
  const int32_t bias[] = {7, -256};
  for (std::size_t m = 0; m < 4; ++m) {
    for (std::size_t n = 0; n < 2; ++n) {
      int32_t sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += x[m * 3 + k] * w[k * 2 + n];
      const float scaled = static_cast<float>(sum + bias[n]) * scale[n];
      const auto quantised = static_cast<int>(std::nearbyint(std::max(scaled, 0.0f))) - 5;
      EXPECT_EQ(ValuesOf<int8_t>(outcome.arrays[0].at("q"))[m * 2 + n],
                std::clamp(quantised, -128, 127));
      EXPECT_EQ(ValuesOf<float>(outcome.arrays[0].at("f"))[m * 2 + n], static_cast<float>(sum));
      const auto limited = static_cast<int>(std::nearbyint(std::clamp(scaled, -3.5f, 90.25f))) + 3;
      EXPECT_EQ(ValuesOf<uint8_t>(outcome.arrays[0].at("u"))[m * 2 + n],
                std::clamp(limited, 0, 255));
    }
  }
}

// The functions of floats: what the vector unit calls them, and what HLO does.
struct Function {
  std::string_view name, hlo;
  int operands = 1;
};
constexpr Function kFunctions[] = {{"rcp", "divide(one, x)"},
                                   {"sqrt", "sqrt(x)"},
                                   {"rsqrt", "rsqrt(x)"},
                                   {"cbrt", "cbrt(x)"},
                                   {"exp", "exponential(x)"},
                                   {"expm1", "exponential-minus-one(x)"},
                                   {"log", "log(x)"},
                                   {"log1p", "log-plus-one(x)"},
                                   {"tanh", "tanh(x)"},
                                   {"logistic", "logistic(x)"},
                                   {"erf", "erf(x)"},
                                   {"sin", "sine(x)"},
                                   {"cos", "cosine(x)"},
                                   {"tan", "tan(x)"},
                                   {"flr", "floor(x)"},
                                   {"rnd", "round-nearest-even(x)"},
                                   {"abs", "abs(x)"},
                                   {"div", "divide(x, y)", 2},
                                   {"rem", "remainder(x, y)", 2},
                                   {"pow", "power(x, y)", 2},
                                   {"atan2", "atan2(x, y)", 2}};

constexpr std::size_t kBatch = 1 << 17;

Program FunctionProgram(const Function& f) {
  return MustAssemble(
      Str(".arg x f32[131072] in\n.arg y f32[131072] in\n.arg z f32[131072] out\n"
          ".desc all dim(131072) src(1) dst(1) elem 4\n.vdesc v dim(131072) a.f32(1) b.f32(1) "
          "out.f32(1)\n"
          ".vprog p\n",
          f.name, " v3, v0", f.operands == 2 ? ", v1" : "",
          "\n.end\nmovi r2, 0x80000\ndma.ld.0 [r1], $x, all\ndma.ld.0 [r2], $y, all\nfence all\n"
          "vx.run [r1], p, v, a=r1, b=r2\nfence all\ndma.st.0 $z, [r1], all\nfence all\nhalt\n"));
}

std::unique_ptr<hlo::Module> FunctionModule(const Function& f) {
  return ParseHlo(
      Str("ENTRY main {\n  x = f32[131072] parameter(0)\n  y = f32[131072] parameter(1)\n"
          "  c = f32[] constant(1)\n  one = f32[131072] broadcast(c), dimensions={}\n  ROOT z = "
          "f32[131072] ",
          f.hlo, "\n}"));
}

// Acceptance test 5: 2^20 floats over the whole range, or with LAZULI_NPU_EXHAUSTIVE=1 all 2^32,
// with as many others for functions of two. That the recipes themselves are within 2 ulp of the
// functions is tests/ir/recipes'.
TEST(NumericsTest, SpecialFunctionsAreTheEvaluatorsBitForBit) {
  const bool whole = std::getenv("LAZULI_NPU_EXHAUSTIVE") != nullptr;
  const uint32_t step = whole ? 1 : 4096;
  std::vector<Program> programs;
  std::vector<std::unique_ptr<hlo::Module>> modules;
  for (const Function& f : kFunctions) {
    programs.push_back(FunctionProgram(f));
    modules.push_back(FunctionModule(f));
  }
  std::vector<float> x(kBatch), y(kBatch);
  for (uint64_t first = 0; first < uint64_t{1} << 32; first += kBatch * step) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const auto bits = static_cast<uint32_t>(first + i * step + i % step);
      x[i] = std::bit_cast<float>(bits);
      y[i] = std::bit_cast<float>(bits * 2654435761u + 12345);
    }
    const Literal a = Literal::FromValues<float>({kBatch}, x),
                  b = Literal::FromValues<float>({kBatch}, y);
    for (std::size_t f = 0; f < std::size(kFunctions); ++f) {
      const Outcome outcome = RunProgram(
          programs[f], "strict=false", {{{"x", BytesOf(x)}, {"y", BytesOf(y)}}}, {.timing = false});
      ASSERT_FALSE(outcome.fault) << outcome.FaultText();
      const auto z = ValuesOf<float>(outcome.arrays[0].at("z"));
      const auto expected = hlo::Evaluate(*modules[f], {&a, &b});
      ASSERT_TRUE(expected.ok()) << expected.status();
      const std::span<const float> values = expected->data<float>();
      std::size_t i = 0;
      while (i < kBatch &&
             std::bit_cast<uint32_t>(z[i]) == std::bit_cast<uint32_t>(Canonical(values[i])))
        ++i;
      ASSERT_EQ(i, kBatch) << kFunctions[f].name << " of " << x[i] << ", " << y[i] << " is " << z[i]
                           << ", not " << values[i];
    }
  }
}

}  // namespace
}  // namespace lazuli::npu
