#include "backend/npu/views.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backend/interpreter/interpreter.h"
#include "backend/npu/npu_buffer.h"
#include "backend/npu/plan.h"
#include "backend/npu/summary.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A product, of which the host makes a sorted copy, watched.
TEST(ViewsTest, OriginsAreOpsAndLines) {
  const auto parts = [](std::string_view origin) {
    const Origin o = Origin::Of(origin);
    return Str(o.op, "|", o.line);
  };
  EXPECT_EQ(parts("dot d aten::mm (a (1)/train.py:41)"), "dot d aten::mm|a (1)/train.py:41");
  EXPECT_EQ(parts("tuple t"), "tuple t|");
  EXPECT_EQ(parts("call f (x)"), "call f (x)|");
  EXPECT_EQ(parts(""), "|");
}

TEST(ViewsTest, ShowWhatRanByOpAndLineAndWhatDidNotAndWhy) {
  interpreter::RegisterInterpreter();
  auto module = hlo::ParseModule(R"(HloModule m
    less { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }
    ENTRY main {
      x = f32[64,64] parameter(0)
      d = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type="aten__mm" op_name="aten__mm" source_file="<train>.py" source_line=5}
      s = f32[64,64] sort(d), dimensions={1}, to_apply=less
      ROOT r = (f32[64,64], f32[64,64]) tuple(d, s)
    })");
  ASSERT_TRUE(module.ok()) << module.status();
  const Config config;
  auto plan = MakePlan(*std::move(module), config, {.op_filter = false});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto folder = std::filesystem::path(testing::TempDir());
  const std::string report = folder / "npu_report.html", trace = folder / "npu_trace.json";
  const auto devices = std::make_shared<NpuDevices>();
  auto card = Card::Create(config, "npu:0");
  ASSERT_TRUE(card.ok()) << card.status();
  devices->cards.push_back(*std::move(card));
  devices->views = std::make_unique<Views>(report, trace);
  const auto executable = MakeNpuExecutable(*std::move(plan), devices, {});

  auto block = AllocateOn(devices->cards[0], 64 * 64 * 4, "x");
  ASSERT_TRUE(block.ok()) << block.status();
  const std::vector<float> values(64 * 64, 0.5F);
  devices->cards[0]->Write(block->place(), std::as_bytes(std::span(values)));
  const std::vector<BufferPtr> buffers = {std::make_shared<NpuBuffer>(
      Shape(DType::kF32, {64, 64}), backend::Device{}, *std::move(block))};
  for (int run = 0; run < 2; ++run) {
    const auto outputs = executable->Execute({.buffers = buffers, .scalars = {}, .donated = {}});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
  }
  devices->views->Write(*devices);

  const std::string page = Contents(report);
  EXPECT_THAT(page,
              AllOf(HasSubstr("<td>dot d aten__mm<td class=text title=\"&lt;train&gt;.py:5\">&lt;"
                              "train&gt;.py:5<td>2<td>"),
                    HasSubstr("<td>100.0 %<td>1.0 M<td>"),  // 2 runs of 2 x 64^3 operations
                    HasSubstr("<circle"),
                    HasSubstr("<td>sort<td>2<td class=text>unsupported-op<td class=text>no unit"),
                    HasSubstr("horowitz45"), Not(HasSubstr("http")), Not(HasSubstr("<script"))));
  EXPECT_THAT(SummaryText(*devices),
              AllOf(HasSubstr("npu:0 (npu1-edge): 2 programs, "),
                    HasSubstr("on the host: 2 sort (unsupported-op); NPU_EXPLAIN=1 says why\n")));

  NpuDevices alone;  // whose host ran nothing
  EXPECT_EQ(SummaryText(alone), "");
  alone.cards = devices->cards;
  EXPECT_THAT(SummaryText(alone), EndsWith(")\n  on the host: nothing\n"));

  // Each cycle has its units: what they did together adds up, and no track did more than there was.
  const UnitsProfile units = devices->views->profile().Units();
  const int64_t cycles = devices->cards[0]->totals().counters.cycles;
  EXPECT_LE(std::accumulate(units.together.begin() + 1, units.together.end(), int64_t{0}), cycles);
  int64_t array = 0;
  for (std::size_t busy = 0; busy < units.together.size(); ++busy)
    array += (busy & 1) != 0 ? units.together[busy] : 0;
  EXPECT_GE(array, units.busy[kMxTrack]);
  for (std::size_t track = 0; track < units.busy.size(); ++track) {
    const auto& stalled = units.stalled[track];
    if (track != kSequencerTrack) {
      EXPECT_EQ(units.busy[track], devices->cards[0]->totals().counters.busy[track]) << track;
    }
    EXPECT_LE(std::accumulate(stalled.begin(), stalled.end(), units.busy[track]), cycles) << track;
  }

  const auto json = nlohmann::json::parse(Contents(trace));
  int products = 0, host_spans = 0;
  double last = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    if (event.at("pid") == 1000) ++host_spans;
    if (event.at("pid") != 0 || event.at("name") != "mx.mm") continue;
    ++products;
    last = event.at("ts");
    EXPECT_EQ(event.at("args").at("hlo"), "dot d aten__mm (<train>.py:5)");
  }
  EXPECT_GT(products, 2);
  EXPECT_GT(host_spans, 2);  // the launches and the host's part
  // The second run begins behind the first one, its transfers and its launch, in microseconds.
  EXPECT_GT(last, 2 * 5);
  EXPECT_THAT(json.dump(), Not(HasSubstr("cut: ")));
}

}  // namespace
}  // namespace lazuli::npu
