// A run in which a check fails takes none of its updates in place: what was updated is as before, also
// where the run had its memory, the error is thrown once, and what follows goes on from there.
#include <thread>

#include "backend/cpu/codegen/kernel.h"
#include "ir/support/flags.h"
#include "lazy/autograd/backward.h"
#include "lazy/autograd/checkpoint.h"
#include "lazy/execution/executor.h"
#include "lazy/tensor/random.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

constexpr char kBadRow[] = "index_select: index 9 is out of range [0, 2)";

class UntakenUpdatesTest : public OnEachClient {
 protected:
  void SetUp() override {
    OnEachClient::SetUp();
    (void)Sync();
    (void)Context::Current().TakeFailure();
  }
  // What a loss is to a step: a result that passes through a check, which fails for `row` 9.
  static Tensor Picked(const Tensor& x, int64_t row) {
    return IndexSelect(x, 0, Of<int64_t>({2}, {row, 0}));
  }
  static void Descend(const Tensor& w, const Tensor& gradient) {
    Assign("sub_", w, w - gradient * 0.5);
  }
  static std::string SyncText() { return std::string(Message(Sync())); }
  // Until what was dispatched has run; the error, if any, is not told.
  static void WaitForRuns() { ASSERT_TRUE(Executor::Wait(Context::Current().last_runs).ok()); }
  Counted donated_{ir::Counter::kDonations};
};

LAZULI_ON_EACH_CLIENT(UntakenUpdatesTest);

TEST_P(UntakenUpdatesTest, WhatTheRunUpdatesIsAsBeforeAlsoIfItsMemoryWasGivenUp) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4}), beside = Floats({5, 6});
  const auto step = [&](int64_t row) {
    Descend(w, Picked(x, row));
    Assign("add_", beside, beside + x);  // of the same step, though not computed from the check
  };
  const Work work;
  step(0);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(2.5, 3.5));
  step(9);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(SyncText(), "");  // once
  EXPECT_THAT(Values(w), ElementsAre(2.5, 3.5));
  EXPECT_THAT(Values(beside), ElementsAre(6, 8));
  step(1);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(1.5, 3));
  EXPECT_THAT(Values(beside), ElementsAre(7, 10));
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(donated_(), 6);
}

TEST_P(UntakenUpdatesTest, TemporariesOfTheFailedOpStillThrowAndOthersDoNot) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const Tensor loss = Picked(x, 9), other = w * 2.0;
  Descend(w, loss);
  const Tensor after = w * 2.0;  // of the value that is not taken
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(Message(ErrorOf([&] { (void)Values(loss); })), kBadRow);
  EXPECT_EQ(Message(ErrorOf([&] { (void)Values(after); })), kBadRow);
  EXPECT_THAT(Values(other), ElementsAre(6, 8));
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
}

TEST_P(UntakenUpdatesTest, AnUpdateSomeSyncsLaterIsNotTakenEither) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4}), count = Floats({0});
  const Tensor loss = Picked(x, 9);
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  const Tensor gradient = loss * 2.0;
  absl::Status status = Sync(/*wait=*/false);
  if (status.ok()) {  // else the check has run already, and the step ends here
    Descend(w, gradient);
    Assign("add_", count, Add(count, Slot(1)));
    status = Sync();
  }
  EXPECT_EQ(Message(status), kBadRow);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  Descend(w, Picked(x, 1));
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(2, 3.5));
}

TEST_P(UntakenUpdatesTest, AnUpdateThatIsPendingWhenTheErrorIsThrownIsDropped) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4}), count = Floats({0});
  const Tensor loss = Picked(x, 9);
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  WaitForRuns();
  Descend(w, loss);
  Assign("add_", count, Add(count, Slot(1)));
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  EXPECT_THAT(Values(count), ElementsAre(0));
  Descend(w, Picked(x, 1));
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(2, 3.5));
}

TEST_P(UntakenUpdatesTest, AStepThatIsUnderWayGoesOnFromWhatWasBefore) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  Descend(w, Picked(x, 9));
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  Descend(w, Picked(x, 1));  // recorded before the error is known
  const absl::Status status = Sync(/*wait=*/false);
  EXPECT_EQ(status.ok() ? SyncText() : std::string(Message(status)), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(2, 3.5));
  EXPECT_EQ(SyncText(), "");
}

// What failed is used again after the error was thrown: that is another error.
TEST_P(UntakenUpdatesTest, AnUpdateByWhatFailedEarlierIsAnErrorAgain) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const Tensor loss = Picked(x, 9);
  EXPECT_EQ(SyncText(), kBadRow);
  Descend(w, loss);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
}

TEST_P(UntakenUpdatesTest, WhatIsOverwrittenByWhatFailedEarlierIsAsBefore) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const Tensor loss = Picked(x, 9);
  EXPECT_EQ(SyncText(), kBadRow);
  Assign("copy_", w, loss);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
}

// What is made and updated in one graph has no old data. Whether the check has run by then makes no
// difference.
TEST_P(UntakenUpdatesTest, ANewTensorThatIsUpdatedByWhatFailedIsAsBefore) {
  const Tensor x = Floats({1, 2});
  for (const bool has_run : {false, true}) {
    const Tensor loss = Picked(x, 9);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
    if (has_run) WaitForRuns();
    const Tensor w = x * 3.0, v = x * 4.0, beside = x * 5.0;
    Assign("add_", w, Add(w, Slot(1)));  // before what failed is read
    Descend(w, loss);
    Assign("copy_", v, loss);
    Assign("add_", beside, beside + x);
    const Tensor after = w * 2.0;
    EXPECT_EQ(SyncText(), kBadRow);
    EXPECT_EQ(SyncText(), "");  // once
    EXPECT_THAT(Values(w), ElementsAre(4, 7));
    EXPECT_THAT(Values(v), ElementsAre(4, 8));
    EXPECT_THAT(Values(beside), ElementsAre(5, 10));
    EXPECT_EQ(Message(ErrorOf([&] { (void)Values(after); })), kBadRow);
    Descend(w, Picked(x, 1));
    EXPECT_EQ(SyncText(), "");
    EXPECT_THAT(Values(w), ElementsAre(3, 6.5));
  }
}

TEST_P(UntakenUpdatesTest, AnUpdateOfANewTensorByWhatFailedEarlierIsAnErrorAgain) {
  const Tensor x = Floats({1, 2});
  const Tensor loss = Picked(x, 9);
  EXPECT_EQ(SyncText(), kBadRow);
  const Tensor w = x * 3.0;
  Descend(w, loss);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(3, 6));
}

TEST_P(UntakenUpdatesTest, ANewTensorThatIsMadeOfWhatFailedHasNothingToGoBackTo) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const Tensor loss = Picked(x, 9);
  EXPECT_EQ(SyncText(), kBadRow);
  const Tensor made = loss * 2.0;
  Descend(made, x);
  Descend(w, x);
  EXPECT_EQ(SyncText(), "");
  EXPECT_EQ(Message(ErrorOf([&] { (void)Values(made); })), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(2.5, 3));
}

TEST_P(UntakenUpdatesTest, ViewsOfANewTensorThatIsUpdatedByWhatFailedFollowIt) {
  const Tensor x = Floats({1, 2});
  for (const bool has_run : {false, true}) {
    const Tensor loss = Picked(x, 9);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
    if (has_run) WaitForRuns();
    const Tensor w = Reshape(Cat({x, x}, 0), {2, 2}) * 2.0;
    const Tensor row = SelectView(w, 0, 1), column = SelectView(w, 1, 0);
    const Tensor whole = ReshapeView(x * 3.0, {2, 1});  // nobody holds what it is a view of
    Descend(row, loss);
    Descend(whole, Reshape(loss, {2, 1}));
    EXPECT_EQ(SyncText(), kBadRow);
    EXPECT_EQ(SyncText(), "");
    EXPECT_THAT(Values(w), ElementsAre(2, 4, 2, 4));
    EXPECT_THAT(Values(row), ElementsAre(2, 4));
    EXPECT_THAT(Values(column), ElementsAre(2, 2));
    EXPECT_THAT(Values(whole), ElementsAre(3, 6));
  }
}

TEST_P(UntakenUpdatesTest, ProgramsAreTheSameWhetherOrNotAnEarlierCheckHasRun) {
  const Tensor x = Floats({1, 2});
  const Work work;
  for (int step = 0; step < 6; ++step) {
    const Tensor loss = Picked(x, 1);
    EXPECT_TRUE(Sync(/*wait=*/false).ok());
    if (step % 2 == 0) WaitForRuns();
    const Tensor w = x * 3.0;
    Descend(w, loss);
    EXPECT_TRUE(Sync(/*wait=*/false).ok());
    if (step == 0) {
      EXPECT_EQ(work.compiles(), 2);
    }
    EXPECT_THAT(Values(w), ElementsAre(2, 5.5));
  }
  EXPECT_EQ(work.compiles(), 2);
}

// Forward and backward are programs of their own, and both check the same index. The gradient is not
// computed from what failed, since the op is linear.
TEST_P(UntakenUpdatesTest, AGradientsOwnCheckDoesNotThrowTheErrorOfItsForwardAgain) {
  const Tensor x = Floats({1, 2}), w = WithGrad(Floats({3, 4}));
  enum When { kBeforeBackward, kBeforeSync, kAtRead, kLater };
  const auto step = [&](int64_t row, When error) {
    w.impl()->mutable_autograd().grad = Tensor();
    const Tensor loss = Picked(w, row);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
    if (error == kBeforeBackward) WaitForRuns();
    Backward(loss, x, {});
    if (error == kAtRead) {
      EXPECT_EQ(ErrorOf([&] { (void)Values(loss); }).ok(), row == 1);
      if (row != 1) return;
    }
    const GradModeGuard no_grad(false);
    Descend(w, GradOf(w));
    if (error == kBeforeSync) WaitForRuns();
  };
  for (const When error : {kBeforeBackward, kBeforeSync, kAtRead, kLater}) {
    const std::vector<float> before = Values(w);
    step(9, error);
    std::string errors = SyncText();
    for (int i = 0; i < 2; ++i) errors += SyncText();
    EXPECT_EQ(errors, error == kAtRead ? "" : kBadRow) << error;
    EXPECT_EQ(Values(w), before);
    step(1, error);
    EXPECT_EQ(SyncText(), "");
    EXPECT_THAT(Values(w), ElementsAre(before[0] - 1, before[1] - 0.5f)) << error;
  }
}

// A gradient that is computed from what failed is replaced, also if no run has found out.
TEST_P(UntakenUpdatesTest, AGradientThatIsPendingWhenTheErrorIsThrownIsReplaced) {
  const Tensor w = WithGrad(Floats({3, 4}));
  const auto step = [&](int64_t row) {
    const Tensor picked = Picked(w, row);
    const Tensor loss = picked * picked;
    const absl::Status status = Sync(/*wait=*/false);
    WaitForRuns();
    Backward(loss, Floats({1, 1}), {});
    return status;
  };
  EXPECT_TRUE(step(9).ok());
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_TRUE(step(1).ok());
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(GradOf(w)), ElementsAre(6, 8));
}

TEST_P(UntakenUpdatesTest, AnotherContextWhoseUpdatesAreNotTakenIsTold) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  Tensor loss;
  std::thread([&] {
    loss = Picked(x, 9);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
  }).join();
  Descend(w, loss);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
}

TEST_P(UntakenUpdatesTest, NumbersThatBackwardDrawsOnceMoreAreNotDrawsOfTheStep) {
  ManualSeed(5);
  const Tensor x = Floats({1, 2}), w = WithGrad(Floats({3, 4}));
  const auto noisy = [](absl::Span<const Tensor> in) {
    return Tensors{in[0] * Rand({2}, DType::kF32, TestDevice(), DefaultGenerator()) * in[0]};
  };
  const auto step = [&](int64_t row) {
    w.impl()->mutable_autograd().grad = Tensor();
    const Tensor once = Checkpoint(noisy, {w}, /*keep_random=*/true)[0];
    const Tensor twice = Checkpoint(noisy, {once}, /*keep_random=*/true)[0];
    Backward(twice, Picked(x, row), {});
    const GradModeGuard no_grad(false);
    Descend(w, GradOf(w));
  };
  step(1);
  EXPECT_EQ(SyncText(), "");
  const PhiloxState before = DefaultGenerator().state();
  step(9);
  EXPECT_NE(DefaultGenerator().state(), before);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(DefaultGenerator().state(), before);
}

// Each program of a step gives back what it drew, the last one first.
TEST_P(UntakenUpdatesTest, NumbersThatSeveralProgramsOfTheStepDrewAreDrawnAgain) {
  ManualSeed(5);
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const auto noise = [] { return Rand({2}, DType::kF32, TestDevice(), DefaultGenerator()); };
  for (const bool has_run : {false, true}) {
    const PhiloxState before = DefaultGenerator().state();
    const Tensor loss = Picked(x, 9) * noise();
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
    if (has_run) WaitForRuns();
    Descend(w, loss * noise());
    EXPECT_EQ(SyncText(), kBadRow);
    EXPECT_EQ(DefaultGenerator().state(), before);
  }
}

TEST_P(UntakenUpdatesTest, AWriteIntoALargeArrayIsNotMade) {
  const Tensor x = Floats({1, 2}), table = Of<float>({3, 1}, {1, 2, 3});
  const Tensor rows = Of<int64_t>({1}, {1}), far = Of<int64_t>({1}, {3});
  const Tensor value = Of<float>({1, 1}, {7});
  Assign("index_copy_", table, IndexCopy(table, 0, far, value));
  const Tensor read = table * 2.0;
  EXPECT_THAT(SyncText(), StartsWith("index_copy: index 3 is out of range"));
  EXPECT_THAT(Values(table), ElementsAre(1, 2, 3));
  EXPECT_FALSE(ErrorOf([&] { (void)Values(read); }).ok());
  (void)Picked(x, 9);
  Assign("index_copy_", table, IndexCopy(table, 0, rows, value));
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(table), ElementsAre(1, 2, 3));
  Assign("index_copy_", table, IndexCopy(table, 0, rows, value));
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(table), ElementsAre(1, 7, 3));
}

TEST_P(UntakenUpdatesTest, WhatIsOverwrittenWithoutBeingReadIsAsBefore) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4}), v = Floats({5, 6});
  Assign("copy_", w, Picked(x, 9));
  Assign("copy_", v, x * 2.0);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  EXPECT_THAT(Values(v), ElementsAre(5, 6));
}

TEST_P(UntakenUpdatesTest, ViewsFollowWhatTheyAreViewsOf) {
  const Tensor x = Floats({1, 2}), w = Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor row = SelectView(w, 0, 1), column = SelectView(w, 1, 0);
  ASSERT_TRUE(Sync().ok());
  Descend(row, Picked(x, 9));
  const Tensor other = SelectView(w, 0, 1);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Values(row), ElementsAre(3, 4));
  EXPECT_THAT(Values(column), ElementsAre(1, 3));
  EXPECT_THAT(Values(other), ElementsAre(3, 4));
  Descend(row, Picked(x, 1));
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(1, 2, 2, 3.5));
  EXPECT_THAT(Values(column), ElementsAre(1, 2));
}

TEST_P(UntakenUpdatesTest, AViewOfAllOfWhatNobodyHoldsIsAsBefore) {
  const Tensor x = Floats({1, 2});
  const Tensor w = ReshapeView(Floats({3, 4}), {2, 1});
  ASSERT_TRUE(Sync().ok());
  Descend(w, Reshape(Picked(x, 9), {2, 1}));
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  const Tensor loss = Picked(x, 9);
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  WaitForRuns();
  Descend(w, Reshape(loss, {2, 1}));
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  Descend(w, Reshape(Picked(x, 1), {2, 1}));
  EXPECT_EQ(SyncText(), "");
  EXPECT_THAT(Values(w), ElementsAre(2, 3.5));
}

TEST_P(UntakenUpdatesTest, NumbersThatTheStepDrewAreDrawnAgain) {
  ManualSeed(5);
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  Generator own;
  const auto step = [&](int64_t row) {
    Descend(w, Picked(x, row) * Rand({2}, DType::kF32, TestDevice(), DefaultGenerator()) *
                   Rand({2}, DType::kF32, TestDevice(), own));
  };
  step(1);
  EXPECT_EQ(SyncText(), "");
  const PhiloxState before = DefaultGenerator().state(), before_own = own.state();
  step(9);
  EXPECT_NE(DefaultGenerator().state(), before);
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(DefaultGenerator().state(), before);
  EXPECT_EQ(own.state(), before_own);
  step(9);
  own.ManualSeed(8);  // what is set since stays
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(own.state(), (PhiloxState{8, 0}));
}

TEST_P(UntakenUpdatesTest, AnErrorThatAnotherThreadHasReadIsNotThrownAgain) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const Tensor loss = Picked(x, 9);
  Descend(w, loss);
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  std::thread([&] { EXPECT_EQ(Message(ErrorOf([&] { (void)Values(loss); })), kBadRow); }).join();
  EXPECT_THAT(Values(w), ElementsAre(3, 4));
  EXPECT_EQ(SyncText(), "");
}

// What keeps the old elements is a selection in kernels that are there anyway; one kernel of a single
// element says whether all checks hold.
TEST_P(UntakenUpdatesTest, AStepThatDoesNotFailCostsAScalarAndNoMemory) {
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), labels = Of<int64_t>({2}, {1, 0});
  const Tensor w = WithGrad(Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Tensor momentum = Of<float>({3, 2}, {0, 0, 0, 0, 0, 0});
  const auto stats = [&](const char* aliasing) {
    EXPECT_TRUE(ir::SetFlag("XLA_ENABLE_PARAM_ALIASING", aliasing).ok());
    w.impl()->mutable_autograd().grad = Tensor();
    Backward(CrossEntropy(Matmul(x, w), labels, Reduction::kMean), Tensor(), {});
    {
      const GradModeGuard no_grad(false);
      Assign("mul_", momentum, momentum * 0.9 + GradOf(w));
      Assign("sub_", w, w - momentum * 0.1);
    }
    EXPECT_EQ(SyncText(), "");
    return LastProgram()->launcher.executable()->stats();
  };
  const backend::ExecutableStats guarded = stats("1"), plain = stats("0");
  EXPECT_EQ(LastProgram()->checks().size(), 2u);
  EXPECT_TRUE(ir::SetFlag("XLA_ENABLE_PARAM_ALIASING", "1").ok());
  if (TestClient()->platform() != "cpu") return;
  EXPECT_LE(guarded.kernels, plain.kernels + 1);
  EXPECT_EQ(guarded.library_calls, plain.library_calls);
  // The evaluator, which stands in for kernels, has an array for each op.
  if (cpu::KernelsAvailable()) {
    EXPECT_LE(guarded.temp_bytes, plain.temp_bytes);
  }
}

TEST_P(UntakenUpdatesTest, WhateverHappenedOfTheGraphIsItsOutcome) {
  const Tensor x = Floats({1, 2}), w = Floats({3, 4});
  const auto outcome = [] {
    const Context::Lock lock(Context::Current());
    return Context::Current().outcome();
  };
  const GraphOutcomePtr good = outcome();
  Descend(w, Picked(x, 1));
  EXPECT_EQ(good->state(), GraphOutcome::State::kUnknown);
  EXPECT_EQ(SyncText(), "");
  EXPECT_EQ(good->state(), GraphOutcome::State::kTaken);
  const GraphOutcomePtr bad = outcome();
  Descend(w, Picked(x, 9));
  EXPECT_EQ(SyncText(), kBadRow);
  EXPECT_EQ(bad->state(), GraphOutcome::State::kNotTaken);
}

}  // namespace
}  // namespace lazuli::lazy
