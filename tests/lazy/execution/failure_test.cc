// What happens when compiling or running goes wrong: who is told, how often, and that life goes on.

#include <thread>

#include "lazy/execution/executor.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

// Outlives the buffers that programs in the cache might hold.
backend::FailingClient& Client() {
  static auto* client = new backend::FailingClient;
  return *client;
}

class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    GetProgramCache().Clear();
    Client().fail_import = Client().fail_compile = Client().fail_run = Client().lose_outputs =
        Client().out_of_memory = false;
    (void)Context::Current().TakeFailure();
  }
  Tensor Make(std::initializer_list<float> values) {
    return FromLiteral(Literal::FromValues<float>({static_cast<int64_t>(values.size())}, values),
                       Client().device());
  }
};

std::string Text(const absl::Status& status) { return std::string(Message(status)); }
std::string ReadError(const Tensor& tensor) {
  return Text(ErrorOf([&] { (void)Values(tensor); }));
}

TEST_F(FailureTest, ACompilerThatGivesUpIsReportedBySyncAndByEachRead) {
  const Tensor x = Make({1, 2});
  Client().fail_compile = true;
  const Tensor y = x + x;
  const absl::Status status = Sync(/*wait=*/false);
  EXPECT_EQ(status.code(), kInternal);
  EXPECT_EQ(Text(status), "the compiler gave up");
  EXPECT_EQ(ReadError(y), "the compiler gave up");
  EXPECT_EQ(ReadError(y), "the compiler gave up");
  EXPECT_EQ(Context::Current().pending_count(), 0);
  Client().fail_compile = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, ARunThatFailsIsReportedOnceBySyncAndByEachReadOfItsOutputs) {
  const Tensor x = Make({1, 2});
  Client().fail_run = true;
  const Tensor y = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());  // dispatched
  EXPECT_EQ(Text(Sync(/*wait=*/true)), "the device caught fire");
  EXPECT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_EQ(ReadError(y), "the device caught fire");
  EXPECT_EQ(ReadError(y), "the device caught fire");
  Client().fail_run = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));  // the inputs live
}

TEST_F(FailureTest, WaitReportsTheRunItStarted) {
  const Tensor x = Make({1, 2});
  Client().fail_run = true;
  const Tensor y = x - x;
  EXPECT_EQ(Text(Sync(/*wait=*/true)), "the device caught fire");
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, AReadThatReportsTheFailureUsesItUp) {
  const Tensor x = Make({1, 2});
  Client().fail_run = true;
  const Tensor y = x - x;
  EXPECT_EQ(ReadError(y), "the device caught fire");
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, WhatIsComputedFromFailedTensorsFailsWithTheFirstError) {
  const Tensor x = Make({1, 2});
  Client().fail_run = true;
  const Tensor y = x * x;
  EXPECT_FALSE(Sync().ok());
  Client().fail_run = false;
  const Tensor z = y + x;
  EXPECT_TRUE(Sync().ok());  // it was said once
  EXPECT_EQ(ReadError(z), "the device caught fire");
}

// Five runs, the second of which fails while the others wait for their turn.
TEST_F(FailureTest, AFailedRunFailsWhatIsComputedFromItAndNothingElse) {
  const Tensor x = Make({1, 2});
  const Tensor before = x + x;
  EXPECT_TRUE(Sync().ok());
  Client().fail_run = true;
  const Tensor failed = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  ASSERT_TRUE(Executor::Get().Wait(Context::Current().last_run).ok());
  Client().fail_run = false;
  EXPECT_EQ(Text(Sync()), "the device caught fire");
  const Tensor dependent = failed + before;
  EXPECT_TRUE(Sync().ok());
  const Tensor beside = before * x;
  EXPECT_TRUE(Sync().ok());
  EXPECT_THAT(Values(before), ElementsAre(2, 4));
  EXPECT_THAT(Values(beside), ElementsAre(2, 8));
  EXPECT_EQ(ReadError(failed), "the device caught fire");
  EXPECT_EQ(ReadError(dependent), "the device caught fire");
  EXPECT_EQ(ReadError(dependent + x), "the device caught fire");
}

// A step that fails is done again from what the user kept; the program is the same.
TEST_F(FailureTest, ATrainingLoopGoesOnFromASnapshot) {
  const Tensor w = Make({1, 2});
  auto step = [&] { Assign("add_", w, Add(w, Slot(1))); };
  step();
  ASSERT_TRUE(Sync().ok());
  const Tensor kept(Context::Current().Snapshot(w.storage()));
  const Work work;
  Client().out_of_memory = true;
  step();
  EXPECT_EQ(Sync().code(), absl::StatusCode::kResourceExhausted);
  Client().out_of_memory = false;
  step();  // on what failed
  EXPECT_TRUE(Sync().ok());
  EXPECT_THAT(ReadError(w), testing::HasSubstr("out of memory"));
  Assign("copy_", w, kept);
  for (int i = 0; i < 3; ++i) {
    step();
    ASSERT_TRUE(Sync().ok());
  }
  EXPECT_THAT(Values(w), ElementsAre(5, 6));
  EXPECT_EQ(work.compiles(), 0);
}

TEST_F(FailureTest, AFailureConcernsItsContextOnly) {
  const Tensor x = Make({1, 2});
  Client().fail_run = true;
  const Tensor y = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  ASSERT_TRUE(Executor::Get().Wait(Context::Current().last_run).ok());
  Client().fail_run = false;
  std::thread([&] {
    const Tensor a = Make({3, 4});
    const Tensor b = a + a;
    EXPECT_TRUE(Sync().ok());
    EXPECT_THAT(Values(b), ElementsAre(6, 8));
  }).join();
  EXPECT_EQ(Text(Sync()), "the device caught fire");
}

TEST_F(FailureTest, AnInPlaceUpdateThatFailsLeavesAFailedTensor) {
  const Tensor w = Make({1, 2});
  Client().fail_run = true;
  Assign("add_", w, w + w);
  EXPECT_FALSE(Sync().ok());
  Client().fail_run = false;
  EXPECT_EQ(ReadError(w), "the device caught fire");
  Assign("copy_", w, Make({5, 6}));
  EXPECT_THAT(Values(w), ElementsAre(5, 6));
}

TEST_F(FailureTest, ADeviceThatLosesResultsIsNotBelieved) {
  const Tensor x = Make({1, 2});
  Client().lose_outputs = true;
  const Tensor y = x / x;
  EXPECT_THAT(Text(Sync()), testing::HasSubstr("gave 0 results, 1 were expected"));
}

TEST_F(FailureTest, RunningOutOfMemoryFailsTheRunNotTheProcess) {
  const Tensor x = Make({1, 2});
  Client().out_of_memory = true;
  const Tensor y = Exp(x);
  const SiteScope site(ir::InternSite("train.cc", "main", 9));  // the line that syncs
  const absl::Status status = Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status), testing::EndsWith("out of memory (train.cc:9)"));
  Client().out_of_memory = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));
}

TEST_F(FailureTest, AnImportThatFailsIsAnError) {
  Client().fail_import = true;
  EXPECT_EQ(Text(ErrorOf([&] { (void)Make({1, 2}); })), "no room");
}

// --- labels out of range: only a run can know

Tensor LossOf(const Tensor& logits, int32_t bad_label) {
  const SiteScope site(ir::InternSite("train.cc", "main", 41));
  return CrossEntropy(logits, Of<int32_t>({2}, {3, bad_label}), Reduction::kMean);
}

TEST_F(FailureTest, ALabelOutOfRangeFailsTheRunWithTheLineOfTheOp) {
  const Tensor logits = FromLiteral(Literal(Shape(DType::kF32, {2, 10})), TestDevice());
  const Tensor w = Floats({1, 2});
  Assign("add_", w, w + w);
  const Tensor loss = LossOf(logits, 12);
  const std::string message = "cross_entropy: label 12 is out of range [0, 10) (train.cc:41)";
  const absl::Status status = Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Text(status), message);
  EXPECT_EQ(ReadError(loss), message);
  EXPECT_EQ(ReadError(loss), message);
  EXPECT_EQ(ReadError(w), message);  // the whole run failed
  EXPECT_EQ(ReadError(LossOf(logits, -1)),
            "cross_entropy: label -1 is out of range [0, 10) (train.cc:41)");
  EXPECT_NEAR(Values(LossOf(logits, 9))[0], std::log(10.0), 1e-6);
  EXPECT_TRUE(Sync().ok());
}

// The program is cached; the line is not part of it.
TEST_F(FailureTest, TheLineIsThatOfTheRunNotOfTheProgram) {
  const Tensor logits = FromLiteral(Literal(Shape(DType::kF32, {2, 5})), TestDevice());
  auto loss_at = [&](uint32_t line, int32_t label) {
    const SiteScope site(ir::InternSite("train.cc", "main", line));
    return NllLoss(logits, Of<int32_t>({2}, {0, label}), Reduction::kSum);
  };
  (void)Values(loss_at(1, 0));
  const Work work;
  EXPECT_EQ(ReadError(loss_at(2, 5)), "nll_loss: label 5 is out of range [0, 5) (train.cc:2)");
  EXPECT_EQ(ReadError(loss_at(3, 7)), "nll_loss: label 7 is out of range [0, 5) (train.cc:3)");
  EXPECT_EQ(work.compiles(), 0);
}

TEST_F(FailureTest, AnIndexOutOfRangeFailsTheRun) {
  const Tensor x = Of<float>({3, 1}, {1, 2, 3});
  EXPECT_THAT(Values(IndexSelect(x, 0, Of<int64_t>({2}, {2, 0}))), ElementsAre(3, 1));
  EXPECT_EQ(ReadError(IndexSelect(x, 0, Of<int64_t>({2}, {2, 3}))),
            "index_select: index 3 is out of range [0, 3)");
}

// --- the queue

TEST_F(FailureTest, AtMostTwoRunsAreInFlight) {
  Client().Hold();
  Tensor x = Make({1, 2});
  std::atomic<int> submitted{0};
  const int before = Client().runs;
  std::thread recorder([&] {
    for (int i = 0; i < 4; ++i) {
      x = x + x;
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
      ++submitted;
    }
    EXPECT_THAT(Values(x), ElementsAre(16, 32));
  });
  while (Client().runs == before || submitted < 2) std::this_thread::yield();
  EXPECT_LE(submitted, 2);
  Client().Release();
  recorder.join();
  EXPECT_EQ(Client().runs - before, 4);
}

TEST_F(FailureTest, SyncReturnsBeforeTheDeviceIsDoneAndWaitAfter) {
  const Tensor x = Make({1, 2});
  Client().Hold();
  const Tensor y = x + x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  EXPECT_FALSE(Context::Peek(y.storage()).data->ready());
  Client().Release();
  EXPECT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_TRUE(Context::Peek(y.storage()).data->ready());
}

}  // namespace
}  // namespace lazuli::lazy
