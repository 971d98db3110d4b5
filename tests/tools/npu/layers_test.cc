#include "tools/npu/layers.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/cost.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

using ::testing::ElementsAre;

Config Keys(std::string_view overrides) {
  auto config = ReadConfig("npu1-edge", overrides);
  EXPECT_TRUE(config.ok()) << overrides << ": " << Message(config.status());
  return config.ok() ? *config : Config();
}

std::vector<Layer> Topology(std::string_view lines) {
  auto layers = ParseTopology(Str("heading\n", lines), "t.csv");
  EXPECT_TRUE(layers.ok()) << Message(layers.status());
  return layers.ok() ? *std::move(layers) : std::vector<Layer>();
}
LayerReport Estimate(std::string_view line, std::string_view overrides) {
  return EstimateLayer(Topology(line).at(0), Keys(overrides));
}

std::vector<Layer> ExampleLayers(const char* name) {
  std::ifstream in(Str("examples/npu/layers/", name));
  std::ostringstream text;
  text << in.rdbuf();
  auto layers = ParseTopology(text.str(), name);
  EXPECT_TRUE(layers.ok()) << Message(layers.status());
  return layers.ok() ? *std::move(layers) : std::vector<Layer>();
}

std::vector<std::string> Split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// Acceptance test 6: lines that SCALE-Sim 3.0.0 printed, at many sizes of the array and of the
// buffers; its percentages of the first 102 were rounded to four decimals.
TEST(ScaleSimTest, EveryNumberOfEveryLineIsItsOwn) {
  std::ifstream in("tests/tools/npu/testdata/scalesim.txt");
  int lines = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    const auto parts = Split(line, ';');
    ASSERT_EQ(parts.size(), 3u) << line;
    const LayerReport r = Estimate(parts[1], parts[0] + ",compat.scalesim=true");
    const auto expected = Split(parts[2], ',');
    const int64_t counts[] = {
        r.cycles, r.cycles_incl_prefetch, r.stall, r.sram_i, r.sram_f, r.sram_o, r.dram_i, r.dram_f,
        r.dram_o};
    const int count_at[] = {0, 1, 2, 6, 7, 8, 9, 10, 11};
    for (int i = 0; i < 9; ++i)
      ASSERT_EQ(Str(counts[i]), expected.at(count_at[i])) << line << " #" << i;
    const double ratios[] = {r.overall_util, r.map_eff, r.comp_util};
    for (int i = 0; i < 3; ++i) {
      if (++lines <= 3 * 102) {
        ASSERT_NEAR(ratios[i], std::stod(expected.at(3 + i)), 5.1e-5) << line << " #" << i;
      } else {
        ASSERT_EQ(ratios[i], std::stod(expected.at(3 + i))) << line << " #" << i;
      }
    }
  }
  EXPECT_EQ(lines, 3 * 262);
}

TEST(ScaleSimTest, WithoutDramTheRestIsTheSame) {
  const LayerReport all = Estimate("g,33,65,17", "compat.scalesim=true,mxu.dataflow=os");
  const LayerReport quick =
      Estimate("g,33,65,17", "compat.scalesim=true,mxu.dataflow=os,compat.dram=false");
  EXPECT_EQ(all.dram_i, 561);
  EXPECT_EQ(quick.dram_i, 0);
  EXPECT_EQ(quick.cycles, all.cycles);
  EXPECT_EQ(quick.comp_util, all.comp_util);
  EXPECT_EQ(quick.sram_o, all.sram_o);
}

TEST(ScaleSimTest, LargeLayersNeedTheClosedFormsAlone) {
  const auto layers = Topology("g,1,65536,65536\n");
  const auto text = [&](std::string_view more) {
    const auto csv = LayersText(layers, Keys(Str("compat.scalesim=true", more)),
                                {.columns = "layer,cycles,sram_f,dram_f"});
    return csv.ok() ? *csv : std::string(Message(csv.status()));
  };
  EXPECT_EQ(text(",compat.dram=false"), "layer,cycles,sram_f,dram_f\ng,398458879,4294967296,0\n");
  EXPECT_EQ(text(""),
            "layer 'g': accesses to the DRAM are counted for at most 268435456 inputs and weights; "
            "compat.dram=false leaves them out");
}

TEST(TopologyTest, ReadsProductsAndConvolutions) {
  const auto layers = Topology(
      "a, "
      "2,3,4,\r\n\nb,5,6,7\nc,9,8,3,2,4,16,2,\nd,9,8,3,2,4,16,2,1:4,\ne,9,8,3,2,4,16,2,3,1:1,\n");
  ASSERT_EQ(layers.size(), 5u);
  EXPECT_EQ(layers[0].name, "a");
  EXPECT_EQ(layers[0].ofmap_height() * layers[0].ofmap_width(), 2);
  EXPECT_EQ(layers[0].filters, 3);
  EXPECT_EQ(layers[0].window(), 4);
  EXPECT_EQ(layers[1].window(), 7);
  EXPECT_EQ(layers[2].ofmap_height(), 4);
  EXPECT_EQ(layers[2].ofmap_width(), 4);
  EXPECT_EQ(layers[2].window(), 24);
  EXPECT_EQ(layers[3].stride_width, 2);
  EXPECT_EQ(layers[4].stride_width, 3);
}

TEST(TopologyTest, DepthwiseIsALayerForEachChannel) {
  const auto layers = Topology("DP1,5,5,3,3,3,1,1,\n");
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[2].name, "DP1Channel_2");
  EXPECT_EQ(layers[2].window(), 9);
}

TEST(TopologyTest, WhatIsWrongNamesTheLine) {
  const auto error = [](std::string_view lines) {
    return std::string(Message(ParseTopology(Str("heading\n", lines), "t.csv").status()));
  };
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"", "t.csv: no layers; the first line is a heading, each other one a layer"},
      {"a,1,2,\n",
       "t.csv:2: a layer is a name and 3 numbers (M, N, K), or a name and 7 or 8 numbers (a "
       "convolution); here are 2"},
      {"a,1,2,3,\nb,1,x,3,\n", "t.csv:3: N is 'x': it is a whole number"},
      {"a,1,2,0,\n", "t.csv:2: K is 0: it is 1 to 2147483647"},
      {"a,1,2,-3,\n", "t.csv:2: K is -3: it is 1 to 2147483647"},
      {"a,1,2,99999999999999999999,\n",
       "t.csv:2: K is '99999999999999999999': it is a whole number"},
      {"c,9,9,3,3,4,8,0,\n", "t.csv:2: stride is 0: it is 1 to 2147483647"},
      {"c,2,9,3,3,4,8,1,\n", "t.csv:2: the filter of layer 'c' is larger than its image"}};
  for (const auto& [lines, message] : kCases) EXPECT_EQ(error(lines), message) << lines;
  EXPECT_EQ(error("DP1,1,1,1,1,65537,1,1,\n"),
            "t.csv:2: layer 'DP1' has 65537 channels, each a layer: at most 65536");
  EXPECT_THAT(error("a,2000000000,2000000000,2000000000,\n"), ::testing::HasSubstr("is too large"));
}

// Acceptance test 8. ONNXim: F tiles take (2R-1) + (F-1) max(M,R,4) + (R+C-2) + max(M,4); the R-1
// is its first load.
TEST(NativeLayersTest, DifferFromOnnximByItsFirstLoad) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const int64_t rows = 1 + random() % 64, cols = 1 + random() % 64;
    const int64_t m = 4 + random() % 300, n = 1 + random() % 300, k = 1 + random() % 300;
    const int64_t tiles = CeilDiv(k, rows) * CeilDiv(n, cols);
    const int64_t onnxim = (2 * rows - 1) + (tiles - 1) * std::max({m, rows, int64_t{4}}) +
                           (rows + cols - 2) + std::max<int64_t>(m, 4);
    const LayerReport r =
        Estimate(Str("g,", m, ",", n, ",", k), Str("mxu.rows=", rows, ",mxu.cols=", cols));
    ASSERT_EQ(onnxim - r.cycles, rows - 1)
        << rows << "x" << cols << " " << m << "," << n << "," << k;
  }
}

// Acceptance test 9.
TEST(NativeLayersTest, LieBetweenTheIdealAndScaleSim) {
  for (const char* file : {"gemm.csv", "transformer.csv", "resnet18.csv", "lenet5.csv"}) {
    for (const Layer& layer : ExampleLayers(file)) {
      const LayerReport native = EstimateLayer(layer, Config());
      const LayerReport scalesim =
          EstimateLayer(layer, Keys("compat.scalesim=true,compat.dram=false"));
      EXPECT_EQ(native.macs, scalesim.macs) << layer.name;
      EXPECT_GE(native.cycles * 1024, native.macs) << layer.name;
      // What SCALE-Sim reports is the number of its last clock, which begins at 0.
      EXPECT_LE(native.cycles, scalesim.cycles + 1) << layer.name;
      EXPECT_GE(native.cycles_incl_prefetch, native.cycles + native.stall) << layer.name;
      EXPECT_LE(native.overall_util, native.map_eff) << layer.name;
    }
  }
}

int64_t Total(const std::vector<Layer>& layers, const Config& config) {
  int64_t cycles = 0;
  for (const Layer& layer : layers) cycles += EstimateLayer(layer, config).cycles;
  return cycles;
}

TEST(NativeLayersTest, Resnet18IsWhatTheDesignEstimated) {
  const auto layers = ExampleLayers("resnet18.csv");
  ASSERT_EQ(layers.size(), 21u);
  EXPECT_EQ(Total(layers, Config()), 1799575);
  const char* server = "mxu.rows=128,mxu.cols=128,acc.rows=4096,mxu.ldw_rows_per_clk=";
  EXPECT_EQ(Total(layers, Keys(Str(server, 1))), 215900);
  EXPECT_EQ(Total(layers, Keys(Str(server, 2))), 180124);
  EXPECT_EQ(Total(layers, Keys(Str(server, 4))), 170855);
}

TEST(NativeLayersTest, OtherDataflowsAreTheirFolds) {
  EXPECT_EQ(Estimate("g,100,70,50", "mxu.dataflow=os").cycles, 4 * 3 * (3 * 32 + 50 - 2));
  EXPECT_EQ(Estimate("g,100,70,50", "mxu.dataflow=os,mxu.os_drain=false").cycles,
            4 * 3 * (2 * 32 + 50 - 2));
  // Inputs lie still, weights stream: 2 x 4 tiles, 70 rows each.
  EXPECT_EQ(Estimate("g,100,70,50", "mxu.dataflow=is").cycles, 32 + 8 * 70 + 62);
  // Without a shadow plane a tile is what SCALE-Sim says.
  EXPECT_EQ(Estimate("g,100,70,50", "mxu.shadow_planes=0").cycles, 6 * (3 * 32 + 100 - 2));
  // More rows than accumulators: two blocks of 2000.
  EXPECT_EQ(Estimate("g,4000,32,64", "").cycles, 32 + 2 * 4000 + 62);
}

TEST(NativeLayersTest, TrafficIsOnceWhatFitsAndMoreWhatDoesNot) {
  const LayerReport fits = Estimate("c,57,57,3,3,64,128,2", "");
  EXPECT_EQ(fits.dram_i, 57 * 57 * 64);
  EXPECT_EQ(fits.dram_f, 9 * 64 * 128);
  EXPECT_EQ(fits.dram_o, 28 * 28 * 128);
  EXPECT_EQ(fits.sram_i, 28 * 28 * 9 * 64 * 4);
  // Of an image of 10 x 10, a stride of 4 leaves out columns and rows.
  EXPECT_EQ(Estimate("c,10,10,1,1,2,3,4", "").dram_i, 3 * 3 * 2);
  const LayerReport large = Estimate("g,4096,4096,4096", "");
  EXPECT_GT(large.dram_i + large.dram_f, 2 * 4096 * 4096);
  EXPECT_EQ(large.dram_o, 4096 * 4096);
  // More scratchpad is never more traffic.
  int64_t before = INT64_MAX;
  for (const char* kb : {"64", "256", "1024", "8192", "65536"}) {
    const LayerReport r = Estimate("g,4096,4096,4096", Str("spm.kb=", kb));
    EXPECT_LE(r.dram_i + r.dram_f, before) << kb;
    before = r.dram_i + r.dram_f;
  }
  EXPECT_EQ(before, 2 * 4096 * 4096);
}

std::string Text(std::string_view lines, const LayersFormat& format) {
  const auto text = LayersText(Topology(lines), Config(), format);
  return text.ok() ? *text : std::string(Message(text.status()));
}

TEST(LayersTextTest, HasAHeadingAndALineForEachLayer) {
  EXPECT_EQ(Text("g,1,1024,1024\n", {}),
            "layer,M,N,K,macs,cycles,cycles_incl_prefetch,stall,overall_util,map_eff,comp_util,"
            "sram_i,sram_f,sram_o,dram_i,dram_f,dram_o\n"
            "g,1,1024,1024,1048576,32831,41259,8167,3.1190033809509305,100,3.1190033809509305,"
            "32768,1048576,1024,1024,1048576,1024\n");
}

TEST(LayersTextTest, ShowsColumnsAlignedAndSummed) {
  EXPECT_EQ(Text("g,1,1024,1024\nlonger,128,128,128\n",
                 {.columns = "layer,M,cycles,overall_util,map_eff,energy_uj",
                  .aligned = true,
                  .total = true}),
            "layer     M  cycles  overall_util  map_eff  energy_uj(horowitz45)\n"
            "g         1   32831          3.12   100.00                 262.86\n"
            "longer  128    2142         95.61   100.00                  14.40\n"
            "total         34973          8.78\n");
  EXPECT_EQ(
      Text("g,1,1,1\n", {.columns = "layer,cycle"}),
      "there is no column cycle; there are layer, M, N, K, macs, cycles, "
      "cycles_incl_prefetch, stall, overall_util, map_eff, comp_util, sram_i, sram_f, sram_o, "
      "dram_i, dram_f, dram_o, energy_uj");
}

}  // namespace
}  // namespace lazuli::npu
