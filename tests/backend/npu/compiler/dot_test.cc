#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"
#include "tools/npu/layers.h"

namespace lazuli::npu {
namespace {

std::string DotText(int64_t m, int64_t k, int64_t n, std::string_view in, std::string_view out) {
  return Str("ENTRY e { a = ", in, "[", m, ",", k, "] parameter(0) b = ", in, "[", k, ",", n,
             "] parameter(1) ROOT c = ", out, "[", m, ",", n,
             "] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }");
}

// Dots of any dimension numbers: up to two dimensions each that both have, that are summed over, and that one has.
class RandomDot {
 public:
  explicit RandomDot(unsigned seed) : random_(seed) {}

  std::string Text(std::string_view a_type, std::string_view b_type, std::string_view out) {
    Operand a, b;
    std::string result;
    for (const bool batch : {true, false}) {
      for (int64_t d = Below(batch ? 2 : 3); d > 0; --d) {
        const int64_t size = 1 + Below(batch ? 4 : 40);
        Add(a, size, batch ? 'b' : 'c');
        Add(b, size, batch ? 'b' : 'c');
        if (batch) result += Str(result.empty() ? "" : ",", size);
      }
    }
    for (Operand* const of : {&a, &b}) {
      for (int64_t d = Below(3); d > 0; --d) Add(*of, 1 + Below(of->dims.size() > 2 ? 9 : 70), 'f');
      std::shuffle(of->dims.begin(), of->dims.end(), random_);
      for (const Dim& dim : of->dims) {
        if (dim.kind == 'f') result += Str(result.empty() ? "" : ",", dim.size);
      }
    }
    return Str("ENTRY e { a = ", a_type, Sizes(a), " parameter(0) b = ", b_type, Sizes(b),
               " parameter(1) ROOT c = ", out, "[", result,
               "] dot(a, b), lhs_batch_dims=", Places(a, 'b'), ", rhs_batch_dims=", Places(b, 'b'),
               ", lhs_contracting_dims=", Places(a, 'c'), ", rhs_contracting_dims=", Places(b, 'c'),
               " }");
  }

 private:
  struct Dim {
    int64_t size;
    char kind;   // b: batch, c: contracting, f: free
    int number;  // which of its kind
  };
  struct Operand {
    std::vector<Dim> dims;
  };
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  static void Add(Operand& to, int64_t size, char kind) {
    to.dims.push_back({size, kind, static_cast<int>(to.dims.size())});
  }
  static std::string Sizes(const Operand& of) {
    std::string text;
    for (const Dim& dim : of.dims) text += Str(text.empty() ? "" : ",", dim.size);
    return Str("[", text, "]");
  }
  // The dimensions of a kind, in the order in which both operands were given them.
  static std::string Places(const Operand& of, char kind) {
    std::map<int, std::size_t> places;
    for (std::size_t d = 0; d < of.dims.size(); ++d) {
      if (of.dims[d].kind == kind) places[of.dims[d].number] = d;
    }
    std::string text;
    for (const auto& [number, place] : places) text += Str(text.empty() ? "" : ",", place);
    return Str("{", text, "}");
  }

  std::mt19937 random_;
};

// LAZULI_NPU_MODULES: so many of each instead of a sample.
TEST(NpuDotTest, IntegersAreExact) {
  const char* const more = std::getenv("LAZULI_NPU_MODULES");
  const int cases = more != nullptr ? std::stoi(more) : 40;
  std::mt19937 random(1);
  auto size = [&random](int most) {
    return 1 + static_cast<int64_t>(random() % static_cast<unsigned>(most));
  };
  for (int i = 0; i < std::min(cases, 400); ++i) {
    const bool large = i % 8 == 0;
    ExpectCompiled(DotText(size(large ? 300 : 70), size(large ? 400 : 80), size(large ? 300 : 70),
                           i % 2 == 0 ? "s8" : "u8", i % 5 == 4 ? "s8" : "s32"));
    if (HasFailure()) return;
  }
  Config small;  // so that everything is cut
  small.spm.kb = 8;
  small.acc.rows = 64;
  RandomDot dot(2);
  for (int i = 0; i < cases; ++i) {
    const char* const type = i % 4 < 2 ? "s8" : "u8";
    ExpectCompiled(dot.Text(type, type, i % 5 == 4 ? type : "s32"),
                   {.config = i % 2 == 0 ? small : Config()});
    if (HasFailure()) return;
  }
}

TEST(NpuDotTest, DimensionNumbersAreAnyones) {
  ExpectCompiled(R"(ENTRY e {
    a = s8[5,3,7,2,4] parameter(0)
    b = s8[2,7,6,5,3] parameter(1)
    ROOT c = s32[3,5,4,6] dot(a, b), lhs_batch_dims={1,0}, rhs_batch_dims={4,3}, lhs_contracting_dims={2,3},
      rhs_contracting_dims={1,0}
  })");
  ExpectCompiled(R"(ENTRY e {
    a = s8[40,90] parameter(0)
    t = s8[90,40] transpose(a), dimensions={1,0}
    b = s8[50,40] parameter(1)
    ROOT c = s32[90,50] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  })");
  ExpectCompiled(
      "ENTRY e { a = f32[9] parameter(0) b = f32[9] parameter(1) ROOT c = f32[] dot(a, b), "
      "lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
      {.rtol = 1e-5, .atol = 1e-5});
  ExpectCompiled(
      "ENTRY e { a = f32[3,0] parameter(0) b = f32[0,2] parameter(1) ROOT c = f32[3,2] dot(a, b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0} }");
}

// The sum of products as docs/npu.md states it: tiles of the array's rows, each summed by fma.
std::vector<float> Normative(const Literal& a, const Literal& b, int64_t m, int64_t k, int64_t n,
                             int64_t rows) {
  std::vector<float> sums(static_cast<std::size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float total = 0;
      for (int64_t first = 0; first < k; first += rows) {
        float p = 0;
        for (int64_t r = first; r < std::min(k, first + rows); ++r)
          p = std::fma(a.data<float>()[static_cast<std::size_t>(i * k + r)],
                       b.data<float>()[static_cast<std::size_t>(r * n + j)], p);
        total = first == 0 ? p : total + p;
      }
      sums[static_cast<std::size_t>(i * n + j)] = total;
    }
  }
  return sums;
}

TEST(NpuDotTest, FloatsAreTheNormativeSums) {
  struct Case {
    int64_t m, k, n, spm_kb;
  };
  for (const Case& c : {Case{33, 65, 17, 1024}, Case{100, 700, 90, 1024}, Case{90, 500, 130, 64}}) {
    Config config;
    config.spm.kb = c.spm_kb;
    const auto module = ParseHlo(DotText(c.m, c.k, c.n, "f32", "f32"));
    const std::vector<Literal> arguments = RandomArguments(*module);
    const Literal* const pointers[] = {&arguments[0], &arguments[1]};
    const auto actual = RunCompiled(*module, pointers, config);
    ASSERT_TRUE(actual.ok()) << actual.status();
    const std::vector<float> expected =
        Normative(arguments[0], arguments[1], c.m, c.k, c.n, config.mxu.rows);
    ExpectSameBits(Literal::FromValues<float>({c.m, c.n}, expected), *actual);
  }
}

TEST(NpuDotTest, NarrowFloatsAndPrecisions) {
  ExpectCompiled(DotText(20, 100, 30, "bf16", "f32"), {.rtol = 1e-4, .atol = 1e-4});
  ExpectCompiled(DotText(20, 100, 30, "bf16", "bf16"), {.rtol = 1e-2, .atol = 1e-2});
  ExpectCompiled(DotText(20, 100, 30, "f32", "bf16"), {.rtol = 1e-2, .atol = 1e-2});
}

// Of exact sums, in parts of the sums of absolute products.
TEST(NpuDotTest, PassesOfBf16AreWithinTheirBounds) {
  constexpr int64_t kM = 24, kN = 40;
  for (const int64_t k : {70, 700}) {
    const auto module = ParseHlo(DotText(kM, k, kN, "f32", "f32"));
    const std::vector<Literal> arguments = RandomArguments(*module);
    const Literal* const pointers[] = {&arguments[0], &arguments[1]};
    for (const F32Mode mode : {F32Mode::kNative, F32Mode::kX1, F32Mode::kX3, F32Mode::kX6}) {
      Config config;
      config.mxu.f32 = mode;
      const auto actual = RunCompiled(*module, pointers, config);
      ASSERT_TRUE(actual.ok()) << actual.status();
      const auto tiles = static_cast<double>(CeilDiv(k, config.mxu.rows));
      const double f32 = (static_cast<double>(config.mxu.rows) + tiles + 1) * 0x1p-24;
      const double bound = mode == F32Mode::kNative ? f32
                           : mode == F32Mode::kX1   ? 0x1p-7 + 0x1p-16 + f32
                           : mode == F32Mode::kX3   ? 1.2e-5 + 3 * f32
                                                    : 6 * f32;
      double worst = 0;
      for (int64_t i = 0; i < kM; ++i) {
        for (int64_t j = 0; j < kN; ++j) {
          double sum = 0, size = 0;
          for (int64_t r = 0; r < k; ++r) {
            const double product =
                static_cast<double>(
                    arguments[0].data<float>()[static_cast<std::size_t>(i * k + r)]) *
                arguments[1].data<float>()[static_cast<std::size_t>(r * kN + j)];
            sum += product;
            size += std::abs(product);
          }
          const double is = actual->data<float>()[static_cast<std::size_t>(i * kN + j)];
          worst = std::max(worst, std::abs(is - sum) / size);
        }
      }
      EXPECT_LE(worst, bound) << k << " " << static_cast<int>(mode);
      // Each is what it says, not a better one.
      if (mode == F32Mode::kX1) {
        EXPECT_GT(worst, 1e-4);
      }
      if (mode == F32Mode::kX3) {
        EXPECT_GT(worst, 1e-7);
      }
    }
  }
}

// docs/npu.md: the array's peak is rows * cols products a cycle.
TEST(NpuDotTest, CyclesAreNearTheIdeal) {
  struct Case {
    int64_t m, n, k;
    double most;  // of the ideal: products, or bytes of the DRAM
  };
  for (const Case& c :
       {Case{128, 768, 256, 1.25}, Case{512, 512, 512, 1.2}, Case{1, 1024, 1024, 1.25}}) {
    const auto module = ParseHlo(DotText(c.m, c.k, c.n, "s8", "s32"));
    const std::vector<Literal> arguments = RandomArguments(*module);
    const Literal* const pointers[] = {&arguments[0], &arguments[1]};
    int64_t cycles = 0;
    ASSERT_TRUE(RunCompiled(*module, pointers, Config(), {}, &cycles).ok());
    const double array = static_cast<double>(c.m * c.n * c.k) / 1024;
    const double dram = static_cast<double>(c.m * c.k + c.k * c.n + 4 * c.m * c.n) / 25.6;
    EXPECT_LE(static_cast<double>(cycles), c.most * std::max(array, dram))
        << c.m << "x" << c.n << "x" << c.k;
  }
}

// A product that waits for its weights: larger blocks of them leave more to do behind the last one.
TEST(NpuDotTest, ALargerScratchpadIsNotSlower) {
  const auto module = ParseHlo(DotText(1, 768, 3072, "f32", "f32"));
  const std::vector<Literal> arguments = RandomArguments(*module);
  const Literal* const pointers[] = {&arguments[0], &arguments[1]};
  int64_t before = 0;
  for (const int64_t kb : {512, 2048, 4096}) {
    Config config;
    config.spm.kb = kb;
    config.strict = false;
    int64_t cycles = 0;
    ASSERT_TRUE(RunCompiled(*module, pointers, config, {}, &cycles).ok());
    if (before > 0) {
      EXPECT_LE(cycles, before) << kb;
    }
    before = cycles;
  }
}

// As docs/npu.md compares them: SCALE-Sim never loads weights under a product.
TEST(NpuDotTest, ListsOfProductsLieBetweenTheIdealAndScaleSim) {
  Config config, scalesim;
  config.strict = false;  // for time; products are checked above
  ASSERT_TRUE(SetKeys("compat.scalesim=true,compat.dram=false,mxu.dataflow=ws", scalesim).ok());
  for (const char* const list : {"gemm", "transformer"}) {
    SCOPED_TRACE(list);
    std::ifstream file(Str("examples/npu/layers/", list, ".csv"));
    std::ostringstream text;
    text << file.rdbuf();
    const auto layers = ParseTopology(text.str(), list);
    ASSERT_TRUE(layers.ok()) << layers.status();
    int64_t total = 0, reference = 0;
    for (const Layer& layer : *layers) {
      const LayerReport report = EstimateLayer(layer, scalesim);
      const auto module = ParseHlo(
          Str("ENTRY e { x = s8[", report.m, ",", report.k, "] parameter(0) w = s8[", report.k, ",",
              report.n, "] parameter(1) ROOT y = s32[", report.m, ",", report.n,
              "] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"));
      const auto program = CompileSimplified(*module, config);
      ASSERT_TRUE(program.ok()) << program.status();
      auto machine = *Machine::Create(config);
      ASSERT_FALSE(machine->Load(*program));
      ASSERT_FALSE(machine->Run({}));
      const int64_t array = machine->counters(0).busy[kMxTrack];
      EXPECT_EQ(machine->counters(0).macs_int, report.macs) << layer.name;
      EXPECT_GE(array * config.mxu.rows * config.mxu.cols, report.macs) << layer.name;
      EXPECT_LE(array, report.cycles) << layer.name;
      total += machine->cycles();
      reference += report.cycles;
    }
    EXPECT_LE(total, reference);  // with all that crosses the DRAM, which the reference leaves out
  }
}

}  // namespace
}  // namespace lazuli::npu
