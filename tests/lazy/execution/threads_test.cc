// Contexts and threads: graphs belong to contexts, and tensors may go between them.

#include <array>
#include <atomic>
#include <random>
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

// --- threads that write to one tensor

// Runs f(0), ..., f(n - 1), each in a thread with a context of its own.
template <class F>
void InThreads(int n, F f) {
  std::vector<std::thread> threads;
  for (int t = 0; t < n; ++t) threads.emplace_back([&f, t] { f(t); });
  for (std::thread& thread : threads) thread.join();
}

void AddOne(const Tensor& x) {
  Update("add_", x, [&] { return Add(x, Slot(1)); });
}

TEST(ThreadsTest, WhatThreadsAddToOneTensorIsAllAdded) {
  const int times = test::kSanitized ? 100 : 300;
  const Tensor x = Floats({0, 1});
  InThreads(4, [&](int) {
    for (int k = 0; k < times; ++k) {
      AddOne(x);
      if (k % 7 == 0) (void)Values(x);
    }
  });
  const auto sum = static_cast<float>(4 * times);
  EXPECT_THAT(Values(x), ElementsAre(sum, sum + 1));
}

TEST(ThreadsTest, ThreadsOfOneContextAddToOneTensorToo) {
  const Tensor x = Floats({0, 1});
  const IntrusivePtr<Context> common = Context::Create();
  InThreads(4, [&](int t) {
    Context::Exchange(common);
    for (int k = 0; k < 100; ++k) {
      AddOne(x);
      if ((k + t) % 30 != 0) continue;
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
    }
  });
  EXPECT_THAT(Values(x), ElementsAre(400, 401));
}

// What is overwritten need not be computed, wherever it is pending.
TEST(ThreadsTest, ATensorPendingElsewhereIsOverwrittenWithoutASync) {
  const Tensor x = Floats({1, 2}), y = Floats({3, 4});
  AddOne(x);
  const Counted foreign(ir::Counter::kSyncForeign);
  InThreads(1, [&](int) {
    Assign("copy_", x, y);
    EXPECT_EQ(Context::Current().pending_count(), 1);
  });
  EXPECT_EQ(foreign(), 0);
  EXPECT_EQ(Context::Current().pending_count(), 0);
  EXPECT_THAT(Values(x), ElementsAre(3, 4));
}

// Every element of every tensor is the same number, which only grows; a reader that sees anything
// else saw half a write, or an old one after a new one.
class Shared {
 public:
  explicit Shared(int tensors) {
    for (int i = 0; i < tensors; ++i) tensors_.push_back(WithGrad(Floats({0, 0, 0})));
  }
  std::size_t size() const { return tensors_.size(); }
  const Tensor& operator[](std::size_t i) const { return tensors_[i]; }

 private:
  Tensors tensors_;
};

float CheckedValue(const Tensor& x) {
  const std::vector<float> values = Values(x);
  EXPECT_THAT(values, testing::Each(values[0]));
  return values[0];
}

// What a thread does with shared tensors until its random numbers end. Returns how often it added 1
// to each.
std::vector<int> MixedWork(const Shared& shared, unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<int> added(shared.size());
  std::vector<float> seen(shared.size());
  Tensors kept;
  for (int step = 0; step < steps; ++step) {
    const std::size_t i = random() % shared.size(), j = random() % shared.size();
    const Tensor &x = shared[i], &y = shared[j];
    switch (random() % 8) {
      case 0:
      case 1: {
        const GradModeGuard no_grad(false);
        AddOne(x);
        ++added[i];
        break;
      }
      case 2: {
        const float now = CheckedValue(x);
        EXPECT_GE(now, seen[i]);
        seen[i] = now;
        break;
      }
      case 3:
        kept.push_back(Snapshot(Detach(x)));
        break;
      case 4:
        kept.push_back(Detach(x) + Detach(y));
        break;
      case 5:
        for (; !kept.empty(); kept.pop_back()) EXPECT_GE(CheckedValue(kept.back()), 0);
        break;
      case 6:
        EXPECT_TRUE(Sync(/*wait=*/random() % 2 == 0).ok());
        break;
      default:
        // What the product saved may have changed since; that is an error, and no wrong gradient.
        EXPECT_THAT(ErrorOf([&] { Backward(Sum(x * 2.0), Tensor(), {}); }).code(),
                    testing::AnyOf(absl::StatusCode::kOk, absl::StatusCode::kFailedPrecondition));
        break;
    }
  }
  return added;
}

TEST(ThreadsTest, ThreadsDoEverythingToSharedTensorsAtOnce) {
  TestDevice();
  const int steps = test::kSanitized ? 150 : 800, threads = 4;
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  {
    const Shared shared(3);
    std::vector<std::vector<int>> added(threads);
    InThreads(threads, [&](int t) {
      added[static_cast<std::size_t>(t)] = MixedWork(shared, static_cast<unsigned>(t), steps);
    });
    for (std::size_t i = 0; i < shared.size(); ++i) {
      int sum = 0;
      for (const std::vector<int>& of_thread : added) sum += of_thread[i];
      EXPECT_EQ(CheckedValue(shared[i]), static_cast<float>(sum));
    }
  }
  EXPECT_TRUE(Sync().ok());
  EXPECT_EQ(created(), destroyed());
}

TEST(ThreadsTest, GradientsOfThreadsAddUp) {
  const int times = test::kSanitized ? 20 : 100;
  const Tensor w = WithGrad(Floats({1, 2}));
  InThreads(4, [&](int t) {
    for (int k = 0; k < times; ++k) {
      Backward(Sum(w * static_cast<double>(t)), Tensor(), {});
      if (k % 9 != t) continue;
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
    }
  });
  const auto sum = static_cast<float>(6 * times);
  EXPECT_THAT(Values(GradOf(w)), ElementsAre(sum, sum));
}

}  // namespace
}  // namespace lazuli::lazy
