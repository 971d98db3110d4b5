#include "ir/support/span.h"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/flags.h"
#include "ir/support/span_collector.h"
#include "ir/support/trace_json.h"

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
    TraceSpan outer(SpanKind::kUser, "outer");
    TraceSpan inner(SpanKind::kUser, "inner", 7);
  }
  const auto spans = TakeSpans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].label->name, "outer");
  EXPECT_EQ(spans[1].label->name, "inner");
  EXPECT_EQ(spans[1].value, 7);
  EXPECT_GE(spans[0].start_ns, 0);
  EXPECT_LE(spans[0].start_ns, spans[1].start_ns);
  EXPECT_GE(spans[0].start_ns + spans[0].duration_ns, spans[1].start_ns + spans[1].duration_ns);
  EXPECT_TRUE(TakeSpans().empty());
}

TEST_F(SpanTest, OffRecordsNothing) {
  SetTracing(false);
  {
    TraceSpan span(SpanKind::kUser, "ignored");
    NoteRecorded();
    EndRecorded();
    TraceCounter("ignored", 1);
  }
  EXPECT_TRUE(TakeSpans().empty());
}

TEST_F(SpanTest, SpansOfAnEndedThreadRemain) {
  std::thread([] { TraceSpan span(SpanKind::kUser, "worker"); }).join();
  {
    TraceSpan span(SpanKind::kUser, "main");
  }
  const auto spans = TakeSpans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_NE(spans[0].thread, spans[1].thread);
}

TEST_F(SpanTest, ALabelIsLookedUpOnlyWhileTracing) {
  int asked = 0;
  const auto label = [&]() -> const SpanLabel& {
    ++asked;
    return KeepLabel({.kind = SpanKind::kThunk, .name = "fusion.1", .source = "a.cc:1"});
  };
  {
    const TraceSpan span(label);
  }
  SetTracing(false);
  {
    const TraceSpan span(label);
  }
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(TakeSpans()[0].label, &label());  // equal labels are one
}

TEST_F(SpanTest, WhatIsRecordedIsOneSpanUntilItsSync) {
  for (int i = 0; i < 3; ++i) NoteRecorded();
  EndRecorded();
  EndRecorded();
  const auto spans = TakeSpans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].label->kind, SpanKind::kRecord);
  EXPECT_EQ(spans[0].value, 3);
}

TEST_F(SpanTest, ARingKeepsTheNewestAndCountsTheOthers) {
  ASSERT_TRUE(SetFlag("LAZULI_PROFILE_SPANS", "4").ok());
  std::thread([] {
    for (int i = 0; i < 10; ++i) TraceSpan span(SpanKind::kUser, "many", i);
  }).join();
  ASSERT_TRUE(SetFlag("LAZULI_PROFILE_SPANS", "262144").ok());
  const TakenSpans taken = TakeTrace();
  ASSERT_EQ(taken.spans.size(), 4u);
  EXPECT_EQ(taken.spans[0].value, 6);
  EXPECT_EQ(taken.spans[3].value, 9);
  EXPECT_EQ(taken.tracks[0].lost, 6);
}

TEST_F(SpanTest, CollectorsSeeWhatBeganAfterThem) {
  SetTracing(false);
  auto outer = std::make_unique<SpanCollector>();
  {
    TraceSpan span(SpanKind::kUser, "first");
  }
  auto inner = std::make_unique<SpanCollector>();
  {
    TraceSpan span(SpanKind::kUser, "second");
  }
  ASSERT_EQ(inner->Spans().spans.size(), 1u);
  EXPECT_EQ(inner->Spans().spans[0].label->name, "second");
  inner.reset();
  EXPECT_TRUE(IsTracing());
  EXPECT_EQ(outer->Spans().spans.size(), 2u);
  outer.reset();
  EXPECT_FALSE(IsTracing());
  EXPECT_TRUE(SpanCollector().Spans().spans.empty());
}

TEST_F(SpanTest, ThreadsRecordWhileTheSpansAreTaken) {
  SetTracing(false);
  constexpr int kThreads = 4, kSpans = 500;
  const SpanCollector collector;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kSpans; ++i) TraceSpan span(SpanKind::kUser, "busy");
    });
  }
  while (collector.Spans().spans.size() < kSpans) std::this_thread::yield();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collector.Spans().spans.size(), kThreads * kSpans);
}

const SpanLabel kSaid{.kind = SpanKind::kThunk,
                      .name = "say \"hi\"\n",
                      .detail = "matmul",
                      .op = "aten__mm",
                      .source = "a.cc:1",
                      .flops = 2000,
                      .bytes = 500};
const SpanLabel kQueued{.kind = SpanKind::kQueue, .name = "queue"};
const SpanLabel kRan{.kind = SpanKind::kRun, .name = "program"};

TEST(AppendSpansTest, WritesTracksSlicesArrowsAndRunsInFlight) {
  TraceJson json;
  AppendSpans(
      {.spans = {{&kQueued, 0, 1000, 500, 9},
                 {&kRan, 3, 2000, 3000, 9},
                 {&kSaid, 3, 2500, 1000, 0}},
       .tracks = {{.thread = 0, .name = ""}, {.thread = 3, .name = "cpu:0", .device = true}}},
      5, json);
  EXPECT_EQ(
      std::move(json).Finish(),
      "{\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"pid\":5,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"host\"}},\n"
      "{\"ph\":\"M\",\"pid\":5,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"thread "
      "0\"}},\n"
      "{\"ph\":\"M\",\"pid\":5,\"tid\":0,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":0}"
      "},\n"
      "{\"ph\":\"M\",\"pid\":6,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"cpu:0\"}},"
      "\n"
      "{\"ph\":\"M\",\"pid\":6,\"tid\":6,\"name\":\"thread_name\",\"args\":{\"name\":\"cpu:0\"}},\n"
      "{\"ph\":\"M\",\"pid\":6,\"tid\":6,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":6}"
      "},\n"
      "{\"ph\":\"X\",\"pid\":5,\"tid\":0,\"name\":\"queue\",\"ts\":1.000,\"dur\":0.500,"
      "\"args\":{\"kind\":\"queue\",\"run\":9}},\n"
      "{\"ph\":\"X\",\"pid\":6,\"tid\":6,\"name\":\"program\",\"ts\":2.000,\"dur\":3.000,"
      "\"args\":{\"kind\":\"run\",\"run\":9}},\n"
      "{\"ph\":\"X\",\"pid\":6,\"tid\":6,\"name\":\"say \\\"hi\\\"\\n\",\"ts\":2.500,\"dur\":1.000,"
      "\"args\":{\"kind\":\"thunk\",\"detail\":\"matmul\",\"op\":\"aten__mm\",\"source\":\"a.cc:"
      "1\","
      "\"flops\":2000,\"bytes\":500,\"Gflop/s\":2,\"GB/s\":0.5}},\n"
      "{\"ph\":\"s\",\"pid\":5,\"tid\":0,\"name\":\"run\",\"ts\":1.000,\"cat\":\"flow\",\"id\":9},"
      "\n"
      "{\"ph\":\"f\",\"pid\":6,\"tid\":6,\"name\":\"run\",\"ts\":2.000,\"cat\":\"flow\",\"id\":9,"
      "\"bp\":\"e\"},\n"
      "{\"ph\":\"C\",\"pid\":6,\"tid\":0,\"name\":\"runs in "
      "flight\",\"ts\":1.500,\"args\":{\"value\":1}},\n"
      "{\"ph\":\"C\",\"pid\":6,\"tid\":0,\"name\":\"runs in "
      "flight\",\"ts\":5.000,\"args\":{\"value\":0}}\n"
      "],\"displayTimeUnit\":\"ms\"}\n");
}

TEST(AppendSpansTest, ThreadsOfOneNameThatFollowEachOtherShareALane) {
  TraceJson json;
  AppendSpans({.spans = {{&kSaid, 1, 0, 10, 0},
                         {&kSaid, 2, 5, 10, 0},
                         {&kSaid, 3, 20, 10, 0},
                         {&kSaid, 4, 20, 10, 0}},
               .tracks = {{.thread = 1, .name = "data loader"},
                          {.thread = 2, .name = "data loader"},
                          {.thread = 3, .name = "data loader"},
                          {.thread = 4, .name = ""}}},
              5, json);
  const std::string text = std::move(json).Finish();
  const auto count = [&](const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++n;
    return n;
  };
  EXPECT_EQ(count("\"name\":\"thread_name\",\"args\":{\"name\":\"data loader\"}"), 2U);
  EXPECT_EQ(count("\"ph\":\"X\",\"pid\":5,\"tid\":2,"), 2U);  // of threads 1 and 3
  EXPECT_EQ(count("\"ph\":\"X\",\"pid\":5,\"tid\":4,"), 1U);
  EXPECT_EQ(count("\"ph\":\"X\",\"pid\":5,\"tid\":8,"), 1U);
}

}  // namespace
}  // namespace lazuli::ir
