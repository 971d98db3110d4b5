// Host and device at once, as the trace shows it: spans of two threads that lie over each other.
#include <algorithm>
#include <thread>

#include "ir/support/span.h"
#include "lazy/execution/executor.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

// Outlives the buffers that programs in the cache might hold.
backend::FailingClient& OverlapClient() {
  static auto* client = new backend::FailingClient;
  return *client;
}

class OverlapTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    ASSERT_TRUE(Sync().ok());
    (void)ir::TakeSpans();
    ir::SetTracing(true);
  }
  void TearDown() override { ir::SetTracing(false); }
  static Tensor Make() {
    return FromLiteral(Literal::FromValues<float>({2}, {1.0f, 2.0f}), OverlapClient().device());
  }
  // Waits until the device is in a run; it stays there until released.
  static void AwaitRunning() {
    while (OverlapClient().running == 0) std::this_thread::yield();
  }
  // How many spans of this name lie within a run of the device, on another thread.
  static int64_t DuringRuns(const std::vector<ir::SpanRecord>& spans, std::string_view name) {
    return std::count_if(spans.begin(), spans.end(), [&](const ir::SpanRecord& span) {
      return span.label->name == name &&
             std::any_of(spans.begin(), spans.end(), [&](const ir::SpanRecord& run) {
               return run.label->kind == ir::SpanKind::kRun && run.thread != span.thread &&
                      run.start_ns < span.start_ns &&
                      span.start_ns + span.duration_ns < run.start_ns + run.duration_ns;
             });
    });
  }
};

TEST_F(OverlapTest, TheNextStepIsRecordedAndTracedWhileTheDeviceRuns) {
  Tensor x = Make();
  auto step = [&] {
    Assign("add_", x, Add(x, Slot(1)));
    EXPECT_TRUE(Sync(/*wait=*/false).ok());
  };
  step();
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
  (void)ir::TakeSpans();
  OverlapClient().Hold();
  step();
  AwaitRunning();
  step();  // the second in flight; sync returns though the first has not ended
  OverlapClient().Release();
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_EQ(DuringRuns(ir::TakeSpans(), "trace"), 1);
}

TEST_F(OverlapTest, ANewProgramIsCompiledWhileTheDeviceRuns) {
  const Tensor x = Make();
  OverlapClient().Hold();
  const Tensor y = x + x;
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  AwaitRunning();
  const Tensor z = Exp(x) * Tanh(x);
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  OverlapClient().Release();
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_EQ(DuringRuns(ir::TakeSpans(), "compile"), 1);
}

TEST_F(OverlapTest, ASyncThatWaitsOverlapsWithNothing) {
  const Tensor x = Make();
  for (int i = 0; i < 3; ++i) {
    const Tensor y = x + x;
    ASSERT_TRUE(Sync(/*wait=*/true).ok());
  }
  const std::vector<ir::SpanRecord> spans = ir::TakeSpans();
  EXPECT_EQ(DuringRuns(spans, "trace"), 0);
  EXPECT_EQ(DuringRuns(spans, "compile"), 0);
}

// Two threads fill the two places of a device; the third run of either waits.
TEST_F(OverlapTest, ContextsShareTheTwoPlacesOfADevice) {
  OverlapClient().Hold();
  std::atomic<int> dispatched{0};
  const int before = OverlapClient().runs;
  auto work = [&] {
    const Tensor x = Make();
    for (int i = 0; i < 3; ++i) {
      const Tensor y = x + x;
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
      ++dispatched;
    }
  };
  std::thread first(work), second(work);
  while (dispatched < Executor::kMaxInFlight) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(dispatched, Executor::kMaxInFlight);
  OverlapClient().Release();
  first.join();
  second.join();
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
  while (OverlapClient().runs - before < 6) std::this_thread::yield();
}

// The second run ends only because the first one, of another device, is under way: as participants of
// a collective wait for each other.
TEST_F(OverlapTest, ProgramsOfTwoDevicesRunAtTheSameTime) {
  const Tensor x = Make();
  const Tensor y =
      FromLiteral(Literal::FromValues<float>({2}, {3.0f, 4.0f}), OverlapClient().device(1));
  OverlapClient().Hold();
  const Tensor here = x + x, there = y + y;
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  while (OverlapClient().running < 2) std::this_thread::yield();
  OverlapClient().Release();
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
}

// While a program compiles, other threads use its context as if nothing were.
TEST_F(OverlapTest, OthersRecordReadAndDropWhileAProgramCompiles) {
  const IntrusivePtr<Context> shared(&Context::Current());
  const Tensor x = Make();
  Tensor kept = x * x, dropped = Exp(x), overwritten = Tanh(x);
  OverlapClient().HoldCompiles();
  std::thread others([&] {
    const IntrusivePtr<Context> own = Context::Exchange(shared);
    while (OverlapClient().compiling == 0) std::this_thread::yield();
    dropped = Tensor();
    const Tensor recorded = kept + x;
    Assign("add_", overwritten, Add(overwritten, Slot(1)));
    EXPECT_THAT(Values(x), testing::ElementsAre(1, 2));  // has its elements
    EXPECT_TRUE(recorded.storage().pending());
    OverlapClient().Release();
    EXPECT_THAT(Values(recorded), testing::ElementsAre(2, 6));
    Context::Exchange(own);
  });
  ASSERT_TRUE(Sync(/*wait=*/true).ok());
  others.join();
  EXPECT_THAT(Values(kept), testing::ElementsAre(1, 4));
  EXPECT_THAT(Values(overwritten), testing::ElementsAre(testing::FloatNear(1.76159f, 1e-4f),
                                                        testing::FloatNear(1.96403f, 1e-4f)));
  EXPECT_EQ(shared->pending_count(), 0);
}

}  // namespace
}  // namespace lazuli::lazy
