// Donation: a run takes over the memory of what it updates if nobody else holds it. A buffer that
// was given up is empty on every device, so that a wrong donation is a failing read here.
#include <thread>

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DonationTest : public OnEachClient {
 protected:
  Counted donated_{ir::Counter::kDonations};
};

LAZULI_ON_EACH_CLIENT(DonationTest);

void AddTo(const Tensor& target, double v) { Assign("add_", target, Add(target, Slot(v))); }

TEST_P(DonationTest, EachTensorThatIsUpdatedInPlaceGivesUpItsBuffer) {
  const Tensor x = Floats({1, 2}), y = Floats({3, 4});
  AddTo(x, 1);
  AddTo(y, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 2);
  EXPECT_THAT(LastProgram()->hlo(),
              HasSubstr("input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"));
  EXPECT_THAT(Values(x), ElementsAre(2, 3));
  EXPECT_THAT(Values(y), ElementsAre(4, 5));
}

TEST_P(DonationTest, AChainOfUpdatesIsOneDonation) {
  const Tensor x = Floats({1, 2});
  for (int i = 0; i < 5; ++i) AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(x), ElementsAre(6, 7));
}

TEST_P(DonationTest, EveryStepDonatesWhatTheLastOneMade) {
  const Tensor x = Floats({1, 2});
  const Work work;
  for (int step = 0; step < 10; ++step) {
    AddTo(x, 1);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
  }
  EXPECT_THAT(Values(x), ElementsAre(11, 12));
  EXPECT_EQ(donated_(), 10);
  EXPECT_EQ(work.compiles(), 1);
}

TEST_P(DonationTest, InputsThatAreOnlyReadStay) {
  const Tensor x = Floats({1, 2}), y = Floats({3, 4});
  Assign("add_", x, x + y);
  const Tensor z = x * y;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(y), ElementsAre(3, 4));
  EXPECT_THAT(Values(z), ElementsAre(12, 24));
}

TEST_P(DonationTest, AResultOfTheSameShapeIsNoUpdate) {
  const Tensor x = Floats({1, 2});
  const Tensor y = x + x;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values(x), ElementsAre(1, 2));
}

TEST_P(DonationTest, AnOldAliasThatTheUserKeptStaysIntact) {
  const Tensor x = Floats({1, 2}), old = Floats({0, 0});
  Assign("copy_", old, x);  // shares the buffer
  ASSERT_TRUE(Sync().ok());
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values(old), ElementsAre(1, 2));
  EXPECT_THAT(Values(x), ElementsAre(2, 3));
  AddTo(x, 1);  // its buffer is its own now
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(old), ElementsAre(1, 2));
}

// Two parameters in one memory: whoever wrote first would change what the other reads.
TEST_P(DonationTest, ABufferThatTwoUpdatedTensorsShareStays) {
  const Tensor x = Floats({1, 2}), y = Floats({0, 0});
  Assign("copy_", y, x);
  ASSERT_TRUE(Sync().ok());
  AddTo(x, 1);
  AddTo(y, 10);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values(x), ElementsAre(2, 3));
  EXPECT_THAT(Values(y), ElementsAre(11, 12));
}

TEST_P(DonationTest, ADetachedHandleIsTheSameTensor) {
  const Tensor x = Floats({1, 2}), same = Detach(x);
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(same), ElementsAre(2, 3));
}

TEST_P(DonationTest, ACloneIsIntactWhenItIsPendingAndWhenItIsNot) {
  const Tensor x = Floats({1, 2});
  const Tensor pending = Clone(x);
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(pending), ElementsAre(1, 2));
  const Tensor done = Clone(x);
  ASSERT_TRUE(Sync().ok());
  AddTo(x, 1);
  AddTo(pending, 10);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 3);
  EXPECT_THAT(Values(done), ElementsAre(2, 3));
  EXPECT_THAT(Values(pending), ElementsAre(11, 12));
}

TEST_P(DonationTest, ASnapshotIsIntact) {
  const Tensor x = Floats({1, 2});
  const Tensor snapshot(Context::Current().Snapshot(x.storage()));
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values(snapshot), ElementsAre(1, 2));
}

// What was read, or is being written to a file, lies in the buffer itself.
TEST_P(DonationTest, StateSavedBeforeASyncIsIntact) {
  const Tensor x = Floats({1, 2});
  const backend::BufferPtr saved = ToBuffer(x);
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  const Literal elements = *saved->device().client->ToHost(*saved);
  EXPECT_THAT(elements.data<float>(), ElementsAre(1, 2));
  EXPECT_THAT(Values(x), ElementsAre(2, 3));
}

TEST_P(DonationTest, ALiteralThatWasReadIsIntact) {
  const Tensor x = Floats({1, 2});
  AddTo(x, 1);
  const Literal read = ToLiteral(x);
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(read.data<float>(), ElementsAre(2, 3));
  EXPECT_THAT(Values(x), ElementsAre(3, 4));
}

TEST_P(DonationTest, WhatAnotherContextStillComputesWithStays) {
  const Tensor x = Floats({1, 2});
  IntrusivePtr<Context> mine = Context::Exchange(Context::Create());
  const Tensor theirs = x * x;  // pending there, holds the old elements
  IntrusivePtr<Context> other = Context::Exchange(mine);
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  Context::Exchange(other);
  EXPECT_THAT(Values(theirs), ElementsAre(1, 4));
  Context::Exchange(mine);
}

TEST_P(DonationTest, TheTapeKeepsWhatBackwardNeeds) {
  const Tensor w = WithGrad(Floats({1, 2})), state = Floats({5, 5});
  const Tensor loss = Sum(w * w);
  AddTo(state, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  Backward(loss, {}, {});
  EXPECT_THAT(Values(GradOf(w)), ElementsAre(2, 4));
}

TEST_P(DonationTest, TwoTensorsThatUpdateEachOther) {
  const Tensor a = Floats({1, 2}), b = Floats({10, 20});
  Assign("add_", a, a + b);
  Assign("add_", b, b + a);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 2);
  EXPECT_THAT(Values(a), ElementsAre(11, 22));
  EXPECT_THAT(Values(b), ElementsAre(21, 42));
}

TEST_P(DonationTest, ExchangedTensorsKeepBothBuffers) {
  const Tensor a = Floats({1, 2}), b = Floats({3, 4});
  const Tensor old(Context::Current().Snapshot(a.storage()));
  Assign("copy_", a, b);
  Assign("copy_", b, old);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values(a), ElementsAre(3, 4));
  EXPECT_THAT(Values(b), ElementsAre(1, 2));
}

// Whether memory is given up is decided run by run: it is no reason to compile again.
TEST_P(DonationTest, TheProgramIsTheSameWithAndWithoutDonation) {
  const Tensor x = Floats({1, 2, 3});
  const Work work;
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  const Tensor held(Context::Current().Snapshot(x.storage()));
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(donated_(), 2);
  EXPECT_THAT(Values(held), ElementsAre(2, 3, 4));
  EXPECT_THAT(Values(x), ElementsAre(4, 5, 6));
}

// Sums gradients over micro-batches, each synced: w moves by -0.25 of three times x, four times.
void Accumulate(const Tensor& w, bool sync_before_update) {
  const Tensor x = Floats({3, 4});
  for (int step = 0; step < 4; ++step) {
    for (int micro = 0; micro < 3; ++micro) {
      Backward(Sum(w * x), {}, {});
      if (micro < 2 || sync_before_update) {
        ASSERT_TRUE(Sync().ok());
      }
    }
    {
      const GradModeGuard off(false);
      const Tensor g = GradOf(w);
      Assign("add_", w, Add(w, Mul(g, Slot(-0.25))));
      Assign("zero_", g, Mul(g, Slot(0)));
    }
    ASSERT_TRUE(Sync().ok());
  }
  EXPECT_THAT(Values(w), ElementsAre(-8, -10));
}

// Micro-batches, and the last one with the update.
TEST_P(DonationTest, GradientAccumulationCompilesExactlyTwoGraphs) {
  const Tensor w = WithGrad(Floats({1, 2}));
  w.impl()->mutable_autograd().grad = Floats({0, 0});  // as zero_() leaves it
  const Work work;
  Accumulate(w, /*sync_before_update=*/false);
  EXPECT_EQ(work.compiles(), 2);
  EXPECT_EQ(work.runs(), 12);
  EXPECT_EQ(donated_(), 4 * (1 + 1 + 2));  // the gradient each time, the weight with the update
}

TEST_P(DonationTest, TheFirstGradientAndAnUpdateApartAreOneGraphMoreEach) {
  const Work first;
  Accumulate(WithGrad(Floats({1, 2})), /*sync_before_update=*/false);
  EXPECT_EQ(first.compiles(), 3);  // the first gradient is added to none
  const Work apart;
  Accumulate(WithGrad(Floats({1, 2})), /*sync_before_update=*/true);
  EXPECT_EQ(apart.compiles(), 1);  // the update; the others are known
}

// A number is no buffer: tensors that hold the same one never share memory.
TEST_P(DonationTest, TensorsMadeOfOneNumberAreUpdatedApart) {
  const StoragePtr number =
      Context::Current().NewStorage(Number(2.0).Slot(DType::kF32), TestDevice());
  const Tensor a(number), b(Context::Current().Snapshot(*number));
  ASSERT_TRUE(Sync().ok());
  AddTo(a, 1);
  ASSERT_TRUE(Sync().ok());
  AddTo(b, 10);
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(Values(a), ElementsAre(3));
  EXPECT_THAT(Values(b), ElementsAre(12));
}

TEST_P(DonationTest, EachDeviceGivesUpItsOwn) {
  const Tensor here = Floats({1, 2}), there = Of<float>({2}, {3, 4}, /*ordinal=*/1);
  AddTo(here, 1);
  AddTo(there, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 2);
  EXPECT_THAT(Values(here), ElementsAre(2, 3));
  EXPECT_THAT(Values(there), ElementsAre(4, 5));
}

TEST_P(DonationTest, ASyncWithNothingToDoGivesNothingUp) {
  const Tensor x = Floats({1, 2});
  AddTo(x, 1);
  ASSERT_TRUE(Sync().ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 1);
  EXPECT_THAT(Values(x), ElementsAre(2, 3));
}

TEST_P(DonationTest, AnUpdateOfAnotherShapeOrTypeIsNone) {
  const Tensor x = Floats({1, 2});
  const Tensor doubled = To(x, DType::kF64), column = Reshape(x, {2, 1});
  x.impl()->set_storage(doubled.impl()->storage());  // as set_data() does
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(donated_(), 0);
  EXPECT_THAT(Values<double>(x), ElementsAre(1, 2));
  EXPECT_THAT(Values(column), ElementsAre(1, 2));
}

TEST_P(DonationTest, ARunInFlightHasItsInputsForItself) {
  backend::FailingClient client;
  {
    const Tensor x = FromLiteral(Literal::FromValues<float>({2}, {1.0f, 2.0f}), client.device());
    client.Hold();
    for (int step = 0; step < 2; ++step) {
      AddTo(x, 1);
      ASSERT_TRUE(Sync(/*wait=*/false).ok());
    }
    client.Release();
    EXPECT_THAT(Values(x), ElementsAre(3, 4));
    EXPECT_EQ(donated_(), 2);
  }
  GetProgramCache().Clear();
  ASSERT_TRUE(Sync().ok());
}

// A weight that gave its memory to a result has its old elements in it, whatever failed.
TEST_P(DonationTest, AFailedCheckLeavesWhatGaveItsMemoryUpIntact) {
  const Tensor w = Floats({1, 2}), spoilt = Floats({3, 4}), logits = Of<float>({1, 2}, {0, 0});
  const Tensor loss = CrossEntropy(logits, Of<int32_t>({1}, {7}), Reduction::kMean);
  AddTo(w, 1);
  Assign("add_", spoilt, spoilt + loss);
  EXPECT_FALSE(Sync().ok());
  EXPECT_EQ(donated_(), 2);
  for (int reads = 0; reads < 2; ++reads) {
    EXPECT_EQ(ErrorOf([&] { (void)Values(loss); }).code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(Values(spoilt), ElementsAre(3, 4));
  }
  EXPECT_THAT(Values(w), ElementsAre(1, 2));
  EXPECT_THAT(Values(logits), ElementsAre(0, 0));
  Assign("copy_", spoilt, Floats({5, 6}));
  AddTo(spoilt, 1);
  EXPECT_THAT(Values(spoilt), ElementsAre(6, 7));
}

}  // namespace
}  // namespace lazuli::lazy
