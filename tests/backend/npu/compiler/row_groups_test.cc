// Softmaxes and norms whose arrays are larger than the scratchpad: strip by strip of rows, each array once.

#include "backend/npu/compiler/row_groups.h"

#include <random>

#include "absl/strings/str_replace.h"
#include <gmock/gmock.h>

#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

const std::string kReducers =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
    "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n";

const std::string kSoftmax = kReducers + R"(ENTRY e {
  x = f32[6,50,40] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  m = f32[6,50] reduce(x, low), dimensions={2}, to_apply=max
  mb = f32[6,50,40] broadcast(m), dimensions={0,1}
  d = f32[6,50,40] subtract(x, mb)
  e = f32[6,50,40] exponential(d)
  s = f32[6,50] reduce(e, zero), dimensions={2}, to_apply=add
  sb = f32[6,50,40] broadcast(s), dimensions={0,1}
  ROOT r = f32[6,50,40] divide(e, sb) })";

// With what its gradient needs, and a broadcast that others read.
const std::string kNorm = kReducers + R"(ENTRY e {
  x = f32[1,200,48] parameter(0)
  y = f32[1,200,48] parameter(1)
  g = f32[48] parameter(2)
  zero = f32[] constant(0)
  n = f32[] constant(0.0208333)
  nb = f32[1,200] broadcast(n), dimensions={}
  h = f32[1,200,48] add(x, y)
  s = f32[1,200] reduce(h, zero), dimensions={2}, to_apply=add
  mean = f32[1,200] multiply(s, nb)
  mb = f32[1,200,48] broadcast(mean), dimensions={0,1}
  d = f32[1,200,48] subtract(h, mb)
  q = f32[1,200,48] multiply(d, d)
  v = f32[1,200] reduce(q, zero), dimensions={2}, to_apply=add
  v1 = f32[1,200,1] reshape(v)
  r1 = f32[1,200,1] rsqrt(v1)
  r = f32[1,200] reshape(r1)
  rb = f32[1,200,48] broadcast(r), dimensions={0,1}
  u = f32[1,200,48] multiply(d, rb)
  gb = f32[1,200,48] broadcast(g), dimensions={2}
  o = f32[1,200,48] multiply(u, gb)
  rows = f32[48] reduce(o, zero), dimensions={0,1}, to_apply=add
  rb2 = f32[1,200,48] broadcast(r), dimensions={0,1}
  t = f32[48,200,1] transpose(rb2), dimensions={2,1,0}
  ROOT all = (f32[1,200,48], f32[48], f32[1,200,48], f32[1,200], f32[48,200,1]) tuple(o, rows, u, mean, t) })";

Config Tight(int64_t kb) {
  Config config;
  config.spm.kb = kb;
  return config;
}

TEST(NpuRowsTest, ArraysAreReadAndWrittenOnce) {
  Config config = Tight(32);
  config.strict = false;  // the input is what lies there
  CompileReport report;
  const absl::StatusOr<Program> program = CompileSimplified(*ParseHlo(kSoftmax), config, &report);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto machine = Machine::Create(config);
  ASSERT_FALSE((*machine)->Load(*program));
  ASSERT_FALSE((*machine)->Run({}));
  constexpr int64_t kBytes = 6 * 50 * 40 * 4;
  EXPECT_EQ((*machine)->counters(0).dram_read_bytes, kBytes);
  EXPECT_EQ((*machine)->counters(0).dram_write_bytes, kBytes);
  EXPECT_EQ(report.temporary_bytes, 0);
}

TEST(NpuRowsTest, ASoftmaxOf8192RowsTakesFewCycles) {
  std::string hlo = kSoftmax;
  for (const auto& [from, to] : {std::pair("6,50,40", "64,128,128"), std::pair("6,50", "64,128")})
    absl::StrReplaceAll({{from, to}}, &hlo);
  Config config;
  config.strict = false;
  const absl::StatusOr<Program> program = CompileSimplified(*ParseHlo(hlo), config);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto machine = Machine::Create(config);
  ASSERT_FALSE((*machine)->Load(*program));
  ASSERT_FALSE((*machine)->Run({}));
  EXPECT_LE((*machine)->cycles(), 600'000);  // 990 thousand as four kernels
}

TEST(NpuRowsTest, HaveTheEvaluatorsValues) {
  for (const int64_t kb : {4, 16, 32, 1024}) {
    ExpectCompiled(kSoftmax, {.rtol = 1e-5, .atol = 1e-6, .config = Tight(kb)});
    ExpectCompiled(kNorm, {.rtol = 2e-5, .atol = 1e-4, .config = Tight(kb)});
  }
}

// Elementwise instructions, reductions and broadcasts of both dims at random: groups that others
// go through, end in, or read as a whole.
std::string RandomRows(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return random() % n; };
  const int64_t rows = 20 + static_cast<int64_t>(pick(60)), columns = pick(3) == 0 ? rows : 32;
  const std::string whole = Str("f32[", rows, ",", columns, "]");
  const std::string shapes[] = {whole, Str("f32[", rows, "]"), Str("f32[", columns, "]")};
  std::string text = kReducers + "ENTRY e {\n  zero = f32[] constant(0)\n";
  std::vector<std::string> values[3];
  int next = 0;
  const auto add = [&](int kind, const std::string& expression) {
    const std::string name = Str("v", next++);
    text += Str("  ", name, " = ", shapes[kind], " ", expression, "\n");
    values[kind].push_back(name);
  };
  const auto any = [&](int kind) {
    const auto& of = values[kind];
    return pick(2) == 0 ? of.back() : of[pick(of.size())];
  };
  add(0, "parameter(0)");
  add(0, "parameter(1)");
  add(1, "parameter(2)");
  add(2, "parameter(3)");
  for (int k = 0; k < 24; ++k) {
    const int kind = static_cast<int>(pick(3));
    switch (pick(6)) {
      case 0:
        add(kind, Str("add(", any(kind), ", ", any(kind), ")"));
        break;
      case 1:
        add(kind, Str("tanh(", any(kind), ")"));
        break;
      case 2:
        add(kind, Str("maximum(", any(kind), ", ", any(kind), ")"));
        break;
      case 3:
        add(1,
            Str("reduce(", any(0), ", zero), dimensions={1}, to_apply=", pick(2) ? "max" : "add"));
        break;
      case 4:
        add(2, Str("reduce(", any(0), ", zero), dimensions={0}, to_apply=max"));
        break;
      default:
        const int from = 1 + static_cast<int>(pick(5) == 0);
        add(0, Str("broadcast(", any(from), "), dimensions={", from - 1, "}"));
        add(0, Str("subtract(", any(0), ", ", values[0].back(), ")"));
    }
  }
  return text + Str("  ROOT all = (", whole, ", ", whole, ", ", shapes[1], ", ", shapes[2],
                    ") tuple(", values[0].back(), ", ", any(0), ", ", values[1].back(), ", ",
                    values[2].back(), ")\n}");
}

TEST(NpuRowsTest, RandomProgramsHaveTheEvaluatorsValues) {
  int grouped = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const std::string hlo = RandomRows(seed);
    SCOPED_TRACE(hlo);
    ExpectCompiled(hlo, {.rtol = 1e-4, .atol = 1e-4, .config = Tight(4)});
    if (HasFailure()) return;
    const auto module = ParseHlo(hlo);
    const auto none = [](const hlo::Instruction&) { return false; };
    for (const RowUnit& unit : RowUnitsOf(*module->entry(), Tight(4), none, none))
      grouped += unit.is_group() ? 1 : 0;
  }
  EXPECT_GE(grouped, 20);
}

}  // namespace
}  // namespace lazuli::npu
