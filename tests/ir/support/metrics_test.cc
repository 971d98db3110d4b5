#include "ir/support/metrics.h"

#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  void SetUp() override { ResetMetrics(); }
  void TearDown() override { ResetMetrics(); }
};

TEST_F(MetricsTest, CountersAddUpUnderTheirTextName) {
  Add(Counter::kCachedCompile);
  Add(Counter::kCachedCompile, 4);
  EXPECT_EQ(Get(Counter::kCachedCompile), 5);
  EXPECT_EQ(CounterValue("CachedCompile"), 5);
  EXPECT_EQ(CounterValue("no such counter"), -1);
}

TEST_F(MetricsTest, NamedCountersAreSortedAndFoundByName) {
  AddNamed("pass.dce.changed");
  AddNamed("pass.cse.changed", 3);
  EXPECT_EQ(CounterValue("pass.cse.changed"), 3);
  EXPECT_THAT(NamedCounters(),
              ::testing::ElementsAre(std::pair<std::string, int64_t>("pass.cse.changed", 3),
                                     std::pair<std::string, int64_t>("pass.dce.changed", 1)));
}

TEST_F(MetricsTest, CountersOfManyThreadsLoseNothing) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) Add(Counter::kMarkStep);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get(Counter::kMarkStep), 4000);
}

TEST_F(MetricsTest, TimersKeepTheNewestSamples) {
  for (int64_t i = 0; i < 1500; ++i) AddSample(Timer::kCompileTime, i);
  const TimerStats stats = GetStats(Timer::kCompileTime);
  EXPECT_EQ(stats.samples, 1500);
  EXPECT_EQ(stats.total_ns, 1499 * 1500 / 2);
  EXPECT_EQ(std::set<int64_t>(stats.recent_ns.begin(), stats.recent_ns.end()).size(), 1024u);
  EXPECT_EQ(*std::min_element(stats.recent_ns.begin(), stats.recent_ns.end()), 1500 - 1024);
}

TEST_F(MetricsTest, ScopedTimerAddsOneSample) {
  {
    ScopedTimer timer(Timer::kTracing);
  }
  EXPECT_EQ(GetStats(Timer::kTracing).samples, 1);
}

TEST_F(MetricsTest, ReportFloorsEveryUnit) {
  struct Case {
    int64_t ns;
    const char* text;
  };
  for (const Case& c :
       {Case{369401746001, "06m09s401ms746.001us"}, Case{35162, "035.162us"},
        Case{1900000000, "01s900ms000.000us"}, Case{59900000000, "59s900ms000.000us"},
        Case{999999999, "999ms999.999us"}, Case{3600000000000, "01h00m00s000ms000.000us"},
        Case{90000000000000, "01d01h00m00s000ms000.000us"}}) {
    ResetMetrics();
    AddSample(Timer::kCompileTime, c.ns);
    EXPECT_THAT(MetricsReport(), HasSubstr(std::string("  Accumulator: ") + c.text + "\n"));
  }
}

TEST_F(MetricsTest, ReportHasTheFormOfTorchXla) {
  AddSample(Timer::kExecuteTime, 2000);
  Add(Counter::kUncachedCompile, 2);
  AddNamed("xla::mm", 7);
  EXPECT_EQ(MetricsReport(),
            "Metric: ExecuteTime\n"
            "  TotalSamples: 1\n"
            "  Accumulator: 002.000us\n"
            "  Percentiles: 1%=002.000us; 5%=002.000us; 10%=002.000us; 20%=002.000us; "
            "50%=002.000us; 80%=002.000us; "
            "90%=002.000us; 95%=002.000us; 99%=002.000us\n"
            "Counter: UncachedCompile\n"
            "  Value: 2\n"
            "Counter: xla::mm\n"
            "  Value: 7\n");
}

TEST_F(MetricsTest, RatesAppearWhenSamplesSpanTime) {
  AddSample(Timer::kExecuteTime, 2000);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  AddSample(Timer::kExecuteTime, 1000);
  EXPECT_THAT(MetricsReport(), AllOf(HasSubstr("  ValueRate: "), HasSubstr(" / second\n  Rate: "),
                                     HasSubstr("1%=001.000us"), HasSubstr("99%=002.000us")));
}

TEST_F(MetricsTest, RowsWithoutSamplesAreLeftOut) {
  EXPECT_EQ(MetricsReport(), "");
  Add(Counter::kMarkStep);
  EXPECT_THAT(MetricsReport(), Not(HasSubstr("CompileTime")));
}

TEST_F(MetricsTest, EveryRowHasItsOwnNameAndDocumentation) {
  std::set<std::string_view> names;
  for (const auto rows : {CounterRows(), TimerRows()}) {
    for (const MetricRow& row : rows) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      EXPECT_FALSE(row.doc.empty()) << row.name;
    }
  }
}

}  // namespace
}  // namespace lazuli::ir
