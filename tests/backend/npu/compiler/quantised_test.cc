// Networks of 8 bits as they are deployed: sums of products, a bias and a scale for each channel, rounded to the next even number,
// clamped, pooled and added to. The evaluator's bits.

#include <cstdlib>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

class RandomQuantised {
 public:
  explicit RandomQuantised(unsigned seed) : random_(seed) {}

  // A convolution, what is done to its sums, and a pool or another array that is added.
  std::string Text() {
    const int64_t batch = Upto(3), side = 4 + Upto(8), channels = Upto(20), features = Upto(40),
                  window = Upto(3), stride = Upto(2), out = (side - window) / stride + 1;
    const bool is_signed = Upto(2) == 1, rectified = Upto(2) == 1;
    const char* const type = is_signed ? "s8" : "u8";
    const int low = rectified ? 0 : is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    const std::string dims = Str("[", batch, ",", out, ",", out, ",", features, "]");
    text_ = Str("max { a = ", type, "[] parameter(0) b = ", type, "[] parameter(1) ROOT c = ", type,
                "[] maximum(a, b) }\nENTRY e {\n");
    Line(Str("x = ", type, "[", batch, ",", side, ",", side, ",", channels, "] parameter(0)"));
    Line(Str("w = ", type, "[", window, ",", window, ",", channels, ",", features,
             "] parameter(1)"));
    Line(Str("bias = s32[", features, "] parameter(2)"));
    Line(Str("scale = f32[", features, "] parameter(3)"));
    Line(Str("other = ", type, dims, " parameter(4)"));
    Line(Str("sums = s32", dims, " convolution(x, w), window={size=", window, "x", window,
             " stride=", stride, "x", stride, "}, dim_labels=b01f_01io->b01f"));
    Line(Str("biases = s32", dims, " broadcast(bias), dimensions={3}"));
    Line(Str("biased = s32", dims, " add(sums, biases)"));
    Line(Str("real = f32", dims, " convert(biased)"));
    Line(Str("scales = f32", dims, " broadcast(scale), dimensions={3}"));
    Line(Str("scaled = f32", dims, " multiply(real, scales)"));
    Line(Str("round = f32", dims, " round-nearest-even(scaled)"));
    Constant("zero", dims, static_cast<int>(Upto(20)) - 10);
    Constant("low", dims, low);
    Constant("high", dims, high);
    Line(Str("moved = f32", dims, " add(round, zeros)"));
    Line(Str("within = f32", dims, " clamp(lows, moved, highs)"));
    Line(Str("small = ", type, dims, " convert(within)"));
    if (out >= 2 && Upto(2) == 1)
      Pool(type, batch, out, features, low);
    else
      Line(Str("ROOT r = ", type, dims, " add(small, other)"));
    return text_ + "}\n";
  }

 private:
  int64_t Upto(int64_t most) {
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(most));
  }
  void Line(const std::string& line) { text_ += "  " + line + "\n"; }
  void Constant(const std::string& name, const std::string& dims, int value) {
    Line(Str(name, " = f32[] constant(", value, ")"));
    Line(Str(name, "s = f32", dims, " broadcast(", name, "), dimensions={}"));
  }
  void Pool(const char* type, int64_t batch, int64_t out, int64_t features, int low) {
    Line(Str("least = ", type, "[] constant(", low, ")"));
    Line(Str("ROOT r = ", type, "[", batch, ",", out / 2, ",", out / 2, ",", features,
             "] reduce-window(small, least), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max"));
  }

  std::mt19937 random_;
  std::string text_;
};

// LAZULI_NPU_MODULES: so many instead of a sample.
TEST(NpuQuantisedTest, LayersAreTheEvaluatorsToTheBit) {
  const char* const more = std::getenv("LAZULI_NPU_MODULES");
  const int cases = more != nullptr ? std::stoi(more) : 30;
  Config small;
  small.spm.kb = 16;
  small.acc.rows = 64;
  RandomQuantised layer(5);
  for (int i = 0; i < cases; ++i) {
    ExpectCompiled(layer.Text(), {.config = i % 2 == 0 ? small : Config()});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lazuli::npu
