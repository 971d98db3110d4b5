#include "ir/support/span.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

class SpanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TakeSpans();
    SetTracing(true);
  }
  void TearDown() override { SetTracing(false); }
};

TEST_F(SpanTest, NestedSpansAreOrderedByStart) {
  {
    TraceSpan outer("outer");
    TraceSpan inner("inner");
  }
  const auto spans = TakeSpans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "outer");
  EXPECT_EQ(spans[1].name, "inner");
  EXPECT_GE(spans[0].start_ns, 0);
  EXPECT_LE(spans[0].start_ns, spans[1].start_ns);
  EXPECT_GE(spans[0].start_ns + spans[0].duration_ns, spans[1].start_ns + spans[1].duration_ns);
  EXPECT_TRUE(TakeSpans().empty());
}

TEST_F(SpanTest, OffRecordsNothing) {
  SetTracing(false);
  {
    TraceSpan span("ignored");
  }
  EXPECT_TRUE(TakeSpans().empty());
}

TEST_F(SpanTest, SpansOfAnEndedThreadRemain) {
  std::thread([] { TraceSpan span("worker"); }).join();
  {
    TraceSpan span("main");
  }
  const auto spans = TakeSpans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_NE(spans[0].thread, spans[1].thread);
}

TEST(ChromeTraceTest, WritesOneCompleteEventASpan) {
  EXPECT_EQ(ChromeTrace({{"say \"hi\"\n", 3, 1234567, 1005}}),
            "{\"traceEvents\":[\n"
            "{\"ph\":\"X\",\"pid\":1,\"tid\":3,\"name\":\"say "
            "\\\"hi\\\"\\n\",\"ts\":1234.567,\"dur\":1.005}\n"
            "],\"displayTimeUnit\":\"ms\"}\n");
}

}  // namespace
}  // namespace lazuli::ir
