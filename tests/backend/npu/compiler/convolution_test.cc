#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

// Convolutions of every kind: a window with random attributes, kept only if there is an output.
class RandomConvolution {
 public:
  explicit RandomConvolution(unsigned seed) : random_(seed) {}

  std::string Text(std::string_view in, std::string_view out) {
    const int64_t rank = Size(3);
    while (!Try(rank, in, out)) {
    }
    return text_;
  }

 private:
  int64_t Size(int64_t most) {
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(most));
  }

  bool Try(int64_t rank, std::string_view in, std::string_view out) {
    const bool grouped = Size(4) == 1, by_batch = Size(2) == 1;
    const int64_t groups = grouped ? Size(4) : 1;
    const int64_t channels = Size(Size(3) == 1 ? 40 : 6),
                  features = groups * Size(Size(3) == 1 ? 40 : 6);
    const int64_t batch = (by_batch ? groups : 1) * Size(3);
    std::string sizes, strides, pads, lhs, rhs, reversal, x, w, y;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t size = Size(rank == 1 ? 30 : 9), k = Size(4), stride = Size(3),
                    dilation = Size(2), base = Size(Size(2)), low = Size(7) - 4, high = Size(7) - 4;
      const int64_t padded = (size - 1) * base + 1 + low + high, reach = (k - 1) * dilation + 1;
      if (padded < reach) return false;
      const std::string_view by = d == 0 ? "" : "x";
      sizes += Str(by, k);
      strides += Str(by, stride);
      pads += Str(by, low, "_", high);
      lhs += Str(by, base);
      rhs += Str(by, dilation);
      reversal += Str(by, Size(3) == 1 ? 1 : 0);
      x += Str(",", size);
      w += Str(k, ",");
      y += Str(",", (padded - reach) / stride + 1);
    }
    const std::string digits = std::string("012").substr(0, static_cast<std::size_t>(rank));
    const bool first = Size(2) == 1;  // channels before or behind the positions
    const int64_t in_features = by_batch ? channels : channels * groups;
    text_ =
        Str("ENTRY e { x = ", in, "[", batch,
            first ? Str(",", in_features, x) : Str(x, ",", in_features), "] parameter(0) w = ", in,
            "[", w, channels, ",", features, "] parameter(1) ROOT y = ", out, "[",
            by_batch ? batch / groups : batch, y, ",", features,
            "] convolution(x, w), window={size=", sizes, " stride=", strides, " pad=", pads,
            " lhs_dilate=", lhs, " rhs_dilate=", rhs, " rhs_reversal=", reversal, "}, dim_labels=b",
            first ? Str("f", digits) : Str(digits, "f"), "_", digits, "io->b", digits, "f, ",
            by_batch ? "batch" : "feature", "_group_count=", groups, " }");
    return true;
  }

  std::mt19937 random_;
  std::string text_;
};

TEST(NpuConvolutionTest, IntegersAreExact) {
  Config small;  // so that everything is cut
  small.spm.kb = 8;
  small.acc.rows = 64;
  RandomConvolution convolution(3);
  const char* const more = std::getenv("LAZULI_NPU_MODULES");
  const int cases = more != nullptr ? std::stoi(more) : 120;
  for (int i = 0; i < cases; ++i) {
    ExpectCompiled(convolution.Text("s8", "s32"), {.config = i % 2 == 0 ? small : Config()});
    if (HasFailure()) return;
  }
}

TEST(NpuConvolutionTest, FloatsAreClose) {
  RandomConvolution convolution(4);
  for (int i = 0; i < 20; ++i)
    ExpectCompiled(convolution.Text("f32", "f32"), {.rtol = 1e-4, .atol = 1e-4});
  for (int i = 0; i < 4; ++i)
    ExpectCompiled(convolution.Text("bf16", "bf16"), {.rtol = 2e-2, .atol = 2e-2});
}

TEST(NpuConvolutionTest, WhatReadsItIsDoneToItsBlocks) {
  Config small;
  small.spm.kb = 32;
  for (const Config& config : {Config(), small}) {
    const auto module = ParseHlo(R"(ENTRY e {
      x = f32[2,3,20,20] parameter(0) w = f32[40,3,3,3] parameter(1) b = f32[40] parameter(2) y = f32[2,40,18,18] parameter(3)
      c = f32[2,40,18,18] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      s = f32[2,40,18,18] broadcast(b), dimensions={1} t = f32[2,40,18,18] add(c, s) z = f32[] constant(0)
      zz = f32[2,40,18,18] broadcast(z), dimensions={} r = f32[2,40,18,18] maximum(t, zz)
      ROOT o = f32[2,40,18,18] add(r, y) })");
    ExpectCompiled(*module, {.rtol = 1e-4, .atol = 1e-4, .config = config});
    CompileReport report;
    ASSERT_TRUE(CompileSimplified(*module, config, &report).ok());
    EXPECT_EQ(report.temporary_bytes, 0);
  }
}

// A layer of MobileNet's, 1.8 M products, and the gradients of its input and its weights: the array would multiply zeros, for 229
// thousand cycles and more. Both arrays of 800 kB cross the DRAM in 63 thousand.
TEST(NpuConvolutionTest, DepthwiseConvolutionsRunOnTheVectorUnit) {
  Config config, small;
  small.spm.kb = 64;
  const char* const forward =
      "x = f32[1,56,56,64] parameter(0) w = f32[3,3,1,64] parameter(1) ROOT y = f32[1,56,56,64] "
      "convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, "
      "feature_group_count=64";
  const char* const input_gradient =
      "x = f32[1,56,56,64] parameter(0) w = f32[3,3,64,1] parameter(1) t = f32[3,3,1,64] "
      "transpose(w), dimensions={0,1,3,2} ROOT y = f32[1,56,56,64] convolution(x, t), "
      "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01io->b01f, "
      "feature_group_count=64";
  const char* const weight_gradient =
      "x = f32[1,56,56,64] parameter(0) d = f32[1,56,56,64] parameter(1) ROOT y = f32[3,3,1,64] "
      "convolution(x, d), window={size=56x56 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, "
      "batch_group_count=64";
  struct Case {
    const char* body;
    int64_t most;  // cycles
  };
  for (const auto& [body, most] :
       {Case{forward, 105'000}, Case{input_gradient, 105'000}, Case{weight_gradient, 150'000}}) {
    SCOPED_TRACE(body);
    const auto module = ParseHlo(Str("ENTRY e { ", body, " }"));
    for (const Config& of : {config, small})
      ExpectCompiled(*module, {.rtol = 1e-4, .atol = 1e-3, .config = of});
    const auto program = CompileSimplified(*module, config);
    ASSERT_TRUE(program.ok()) << program.status();
    auto machine = *Machine::Create(config);
    ASSERT_FALSE(machine->Load(*program));
    const std::vector<Literal> arguments = RandomArguments(*module);
    for (std::size_t p = 0; p < 2; ++p)
      ASSERT_TRUE(machine
                      ->WriteSymbol(
                          0, Str("p", p),
                          {arguments[p].raw(), static_cast<std::size_t>(arguments[p].byte_size())})
                      .ok());
    ASSERT_FALSE(machine->Run({}));
    EXPECT_EQ(machine->counters(0).macs_f32, 0);
    EXPECT_LE(machine->cycles(), most);
    RecordProperty("cycles", static_cast<int>(machine->cycles()));
  }
}

// The layers of ResNet-18 for one image, of 8 bits: SCALE-Sim's best dataflow takes 2.13 M cycles for the same. Vela 5.2.0
// estimates 2,770,869 for an Ethos-U85-1024, which has as many multipliers, and 157,291 for a layer of 3 x 3 x 64.
TEST(NpuConvolutionTest, Resnet18TakesFewCycles) {
  Config config;
  config.strict = false;  // for time; the same programs are checked above
  std::ifstream file("examples/npu/layers/resnet18.csv");
  std::map<std::string, int64_t> known;
  int64_t total = 0, layers = 0, layer1 = 0;
  std::string line;
  for (std::getline(file, line); std::getline(file, line); ++layers) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::string name;
    int64_t height = 0, width = 0, kh = 0, kw = 0, channels = 0, features = 0, stride = 0;
    words >> name >> height >> width >> kh >> kw >> channels >> features >> stride;
    const std::string text =
        Str("ENTRY e { x = s8[1,", height, ",", width, ",", channels, "] parameter(0) w = s8[", kh,
            ",", kw, ",", channels, ",", features, "] parameter(1) ROOT y = s32[1,",
            (height - kh) / stride + 1, ",", (width - kw) / stride + 1, ",", features,
            "] convolution(x, w), window={size=", kh, "x", kw, " stride=", stride, "x", stride,
            "}, dim_labels=b01f_01io->b01f }");
    int64_t& cycles = known[text];
    if (cycles == 0) {
      const auto module = ParseHlo(text);
      const std::vector<Literal> arguments = RandomArguments(*module);
      const Literal* const pointers[] = {&arguments[0], &arguments[1]};
      ASSERT_TRUE(RunCompiled(*module, pointers, config, {}, &cycles).ok()) << name;
    }
    total += cycles;
    if (name == "layer1.0.conv1") layer1 = cycles;
  }
  EXPECT_EQ(layers, 21);
  EXPECT_LE(total, 2'050'000);
  constexpr double kVelaNetwork = 2770869, kVelaLayer = 157291;
  EXPECT_GT(static_cast<double>(total) / kVelaNetwork, 0.55);
  EXPECT_LT(static_cast<double>(total) / kVelaNetwork, 0.9);
  EXPECT_GT(static_cast<double>(layer1) / kVelaLayer, 0.35);
  EXPECT_LT(static_cast<double>(layer1) / kVelaLayer, 1.05);
  EXPECT_GE(total, 1'799'575);  // the array's cycles alone
}

}  // namespace
}  // namespace lazuli::npu
