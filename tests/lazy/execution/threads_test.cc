// Contexts and threads: graphs belong to contexts, and tensors may go between them.

#include <array>
#include <atomic>
#include <thread>

#include "lazy/autograd/backward.h"
#include "tests/lazy/lazy_test.h"
#include "tests/support/small_stack.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

TEST(ThreadsTest, ThreadsDoNotSeeEachOthersPendingGraphs) {
  TestDevice();
  const Tensor x = Floats({1, 2});
  const Tensor mine = x + x;
  std::thread([] {
    EXPECT_EQ(Context::Current().pending_count(), 0);
    const Tensor theirs = Floats({3, 4}) * 2.0;
    const Work work;
    EXPECT_TRUE(Sync().ok());
    EXPECT_EQ(work.runs(), 1);
    EXPECT_THAT(Values(theirs), ElementsAre(6, 8));
  }).join();
  EXPECT_TRUE(mine.storage().pending());
  EXPECT_EQ(Context::Current().pending_count(), 1);
  EXPECT_THAT(Values(mine), ElementsAre(2, 4));
}

TEST(ThreadsTest, ATensorPendingElsewhereIsSyncedThereFirst) {
  TestDevice();
  const Tensor x = Floats({1, 2});
  const Tensor pending = x + x, other = x * x;
  const Counted foreign(ir::Counter::kSyncForeign);
  std::thread([&] {
    const Tensor y = pending + pending;
    EXPECT_EQ(foreign(), 1);
    EXPECT_EQ(Context::Current().pending_count(), 1);
    EXPECT_THAT(Values(y), ElementsAre(4, 8));
  }).join();
  EXPECT_EQ(foreign(), 1);
  EXPECT_FALSE(pending.storage().pending());
  EXPECT_FALSE(other.storage().pending());  // the whole context was synced
  EXPECT_THAT(Values(pending), ElementsAre(2, 4));
}

TEST(ThreadsTest, AContextOutlivesItsThread) {
  TestDevice();
  Tensor left;
  std::thread([&] { left = Floats({1, 2}) * 3.0; }).join();
  EXPECT_TRUE(left.storage().pending());
  EXPECT_THAT(Values(left), ElementsAre(3, 6));
}

TEST(ThreadsTest, APendingTensorOfAThreadThatEndedIsReleasedWithItsContext) {
  TestDevice();
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  {
    Tensor left;
    std::thread([&] { left = Exp(Floats({1, 2})); }).join();
  }
  EXPECT_EQ(created(), destroyed());
}

// Used twice, data of another context is still one parameter, with one key wherever it was made.
TEST(ThreadsTest, DataOfAnotherContextIsOneParameter) {
  const Tensor w = Floats({1, 2, 3, 4, 5});
  (void)Values(w * w + w);
  const Work work;
  std::thread([&] { EXPECT_THAT(Values(w * w + w), ElementsAre(2, 6, 12, 20, 30)); }).join();
  EXPECT_EQ(work.compiles(), 0);
  EXPECT_EQ(work.runs(), 1);
}

TEST(ThreadsTest, AModelMadeHereTrainsThere) {
  const Tensor w = WithGrad(Floats({1, 2}));
  std::thread([&] {
    for (int step = 0; step < 3; ++step) {
      w.impl()->mutable_autograd().grad = {};
      Backward(Sum(w * w), Tensor(), {});
      const GradModeGuard no_grad(false);
      Assign("sub_", w, w - GradOf(w) * 0.25);
      EXPECT_TRUE(Sync().ok());
    }
  }).join();
  EXPECT_THAT(Values(w), ElementsAre(0.125, 0.25));
}

TEST(ThreadsTest, BackwardMayRunInAnotherThread) {
  const Tensor x = WithGrad(Floats({1, 2}));
  const Value two = Number(2.0).Slot(DType::kF32);
  const Tensor y = Sum(Mul(Mul(x, two), x * 3.0));  // saves a number and a constant
  std::thread([&] {
    Backward(y, Tensor(), {});
    EXPECT_THAT(Values(GradOf(x)), ElementsAre(12, 24));
  }).join();
  EXPECT_THAT(Values(y), ElementsAre(30));
}

TEST(ThreadsTest, ContextsCanBeExchangedOnOneThread) {
  const Tensor x = Floats({1, 2});
  const Tensor outer = x + x;
  IntrusivePtr<Context> saved = Context::Exchange(Context::Create());
  EXPECT_EQ(Context::Current().pending_count(), 0);
  const Tensor inner = x * x;
  const Work work;
  EXPECT_TRUE(Sync().ok());
  EXPECT_EQ(work.runs(), 1);
  Context::Exchange(std::move(saved));
  EXPECT_TRUE(outer.storage().pending());
  EXPECT_FALSE(inner.storage().pending());
  EXPECT_THAT(Values(outer), ElementsAre(2, 4));
}

// Eight threads with contexts of their own and shared weights, and two that share one context.
TEST(ThreadsTest, ManyThreadsTrainAtOnce) {
  TestDevice();
  const int steps = test::kSanitized ? 10 : 40;
  const Tensor shared = Floats({1, 2, 3, 4});
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  IntrusivePtr<Context> common = Context::Create();
  std::atomic<int> done{0};
  auto train = [&](int seed) {
    const Tensor w = WithGrad(Floats({static_cast<float>(seed), 0, 1, 2}));
    float last = 0;
    for (int step = 0; step < steps; ++step) {
      w.impl()->mutable_autograd().grad = {};
      const Tensor loss = Sum((w - shared) * (w - shared));
      Backward(loss, Tensor(), {});
      {
        const GradModeGuard no_grad(false);
        Assign("add_", w, Add(w, Mul(GradOf(w), Slot(-0.25))));
      }
      if (step % 4 == 3)
        last = Values(loss)[0];
      else
        EXPECT_TRUE(Sync(/*wait=*/step % 4 == 1).ok());
    }
    EXPECT_LT(last, 1e-2f);
    ++done;
  };
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) threads.emplace_back(train, t);
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Context::Exchange(common);
        train(t);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(done, 10);
  common = {};
  EXPECT_TRUE(Sync().ok());
  EXPECT_EQ(created(), destroyed());
}

// Eight threads go round two shared contexts, one of their own, and two devices; what they share is
// read by all and made by none.
TEST(ThreadsTest, ThreadsContextsAndDevicesInEveryCombination) {
  TestDevice();
  const int steps = test::kSanitized ? 24 : 120;
  const std::array shared = {Of<float>({2}, {1, 2}, 0), Of<float>({2}, {1, 2}, 1)};
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  {
    const std::array common = {Context::Create(), Context::Create()};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        const IntrusivePtr<Context> own(&Context::Current());
        std::array sums = {Of<float>({2}, {0, 0}, 0), Of<float>({2}, {0, 0}, 1)};
        for (int step = 0; step < steps; ++step) {
          const int device = (t + step) % 2, where = (t + step / 2) % 3;
          Context::Exchange(where == 2 ? own : common[static_cast<std::size_t>(where)]);
          const Tensor& weights = shared[static_cast<std::size_t>(device)];
          const Tensor& sum = sums[static_cast<std::size_t>(device)];
          Assign("add_", sum, sum + weights * static_cast<double>(t));
          if (step % 5 == 0) {
            EXPECT_GE(Values(sum)[0], 0);
          } else {
            EXPECT_TRUE(Sync(/*wait=*/step % 5 == 1).ok());
          }
        }
        Context::Exchange(own);
        for (const Tensor& sum : sums) {
          const auto half = static_cast<float>(t * steps) / 2;
          EXPECT_THAT(Values(sum), ElementsAre(half, 2 * half));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& context : common) {
      IntrusivePtr<Context> mine = Context::Exchange(context);
      EXPECT_TRUE(Sync().ok());
      Context::Exchange(std::move(mine));
    }
  }
  EXPECT_EQ(created(), destroyed());
}

// A producer hands pending tensors to a consumer, which syncs the producer's context under its
// feet.
TEST(ThreadsTest, AProducerAndAConsumerMeetInPendingTensors) {
  TestDevice();
  const int n = test::kSanitized ? 30 : 200;
  std::vector<Tensor> made(static_cast<std::size_t>(n));
  std::atomic<int> ready{0};
  std::thread producer([&] {
    const Tensor one = Floats({1, 2});
    Tensor x = one;
    for (int i = 0; i < n; ++i) {
      x = x + one;
      made[static_cast<std::size_t>(i)] = x;
      ready.store(i + 1, std::memory_order_release);
    }
  });
  for (int i = 0; i < n; ++i) {
    while (ready.load(std::memory_order_acquire) <= i) std::this_thread::yield();
    const Tensor y = made[static_cast<std::size_t>(i)] * 2.0;
    ASSERT_THAT(Values(y),
                ElementsAre(2.0f * static_cast<float>(i + 2), 4.0f * static_cast<float>(i + 2)));
  }
  producer.join();
}

}  // namespace
}  // namespace lazuli::lazy
