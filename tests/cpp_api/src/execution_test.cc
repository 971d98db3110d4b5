// When recorded work runs: deferred reads, waiting, contexts, failed runs.
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;

std::int64_t Runs() {
  return metrics::counter("UncachedCompile") + metrics::counter("CachedCompile");
}

TEST(ExecutionTest, ADeferredReadRunsNothingByItself) {
  const Tensor x = tensor({1.f, 2.f});
  const std::int64_t runs = Runs();
  const DeferredItem sum = (x * x).sum().item_async();
  EXPECT_FALSE(sum.ready());
  EXPECT_EQ(Runs(), runs);
  sync(/*wait=*/true);
  EXPECT_EQ(Runs(), runs + 1);
  EXPECT_TRUE(sum.ready());
  EXPECT_EQ(sum.get(), 5);
  EXPECT_EQ(sum.get<int>(), 5);
  EXPECT_EQ(Runs(), runs + 1);
}

TEST(ExecutionTest, EagerOpsRunWhenTheyAreRecorded) {
  const Tensor x = tensor({1.f, 2.f});
  const Tensor pending = x + x;
  std::int64_t runs = Runs();
  set_eager(true);
  EXPECT_TRUE(is_eager());
  EXPECT_EQ(Runs(), runs + 1);  // what was pending
  runs = Runs();
  const Tensor y = (x * x) - x;
  EXPECT_EQ(Runs(), runs + 2);
  set_eager(false);
  EXPECT_FALSE(is_eager());
  runs = Runs();
  const Tensor z = (x * x) - y;
  EXPECT_EQ(Runs(), runs);
  EXPECT_THAT(z.to_vector<float>(), ElementsAre(1, 2));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 2));
}

TEST(ExecutionTest, AClearedCacheCompilesAnew) {
  const Tensor x = tensor({1.f, 2.f, 3.f});
  const auto step = [&] { return (x * x * x).sum().item(); };
  EXPECT_EQ(step(), 36);
  std::int64_t compiles = metrics::counter("UncachedCompile");
  EXPECT_EQ(step(), 36);
  EXPECT_EQ(metrics::counter("UncachedCompile"), compiles);
  clear_cache();
  EXPECT_EQ(step(), 36);
  EXPECT_EQ(metrics::counter("UncachedCompile"), compiles + 1);
}

TEST(ExecutionTest, ADeferredReadIsTheValueAtItsCall) {
  Tensor x = tensor({1.f});
  const DeferredItem before = x.item_async();
  x.add_(1.0);
  const DeferredItem between = x.item_async();
  x.add_(1.0);
  EXPECT_EQ(before.get(), 1);
  EXPECT_EQ(between.get(), 2);
  EXPECT_EQ(x.item(), 3);
}

TEST(ExecutionTest, ADeferredReadThatNobodySyncedSyncs) {
  const DeferredItem sum = tensor({1.f, 2.f}).sum().item_async();
  EXPECT_EQ(sum.get(), 3);
  EXPECT_FALSE(DeferredItem().defined());
  EXPECT_FALSE(DeferredItem().ready());
}

TEST(ExecutionTest, DeferredReadsOfAStepLoopCompileOnce) {
  Tensor w = tensor({1.f, 2.f});
  std::vector<double> seen;
  DeferredItem last;
  sync(/*wait=*/true);
  const std::int64_t compiled = metrics::counter("UncachedCompile");
  for (int step = 0; step < 6; ++step) {
    w.add_(1.0);
    const DeferredItem sum = w.sum().item_async();
    mark_step();
    if (last.defined()) seen.push_back(last.get());
    last = sum;
  }
  EXPECT_THAT(seen, ElementsAre(5, 7, 9, 11, 13));
  EXPECT_EQ(last.get(), 15);
  EXPECT_EQ(metrics::counter("UncachedCompile"), compiled + 1);
}

TEST(ExecutionTest, ADeferredReadOfSeveralElementsIsRefused) {
  const Tensor x = tensor({1.f, 2.f});
  EXPECT_ERROR(kInvalidArgument, "item_async: f32[2] has 2 elements, not one; use to_vector()",
               (void)x.item_async());
  EXPECT_ERROR(kInvalidArgument, "item_async: the tensor is undefined",
               (void)Tensor().item_async());
}

TEST(ExecutionTest, ADeferredReadOfAFailedRunThrowsItsError) {
  const Tensor logits = tensor({{1.f, 2.f}}), labels = tensor<std::int64_t>({5});
  sync();
  const DeferredItem loss = nn::functional::cross_entropy(logits, labels).item_async();
  mark_step();
  for (int read = 0; read < 2; ++read) {
    try {
      (void)loss.get();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_THAT(error.what(), testing::HasSubstr("label 5 is out of range [0, 2)"));
    }
  }
  EXPECT_THAT(logits.to_vector<float>(), ElementsAre(1, 2));
}

TEST(ExecutionTest, ReadingTheLossBeforeMarkStepRunsNothingTwice) {
  Tensor w = tensor({1.f, 2.f}).set_requires_grad(true);
  auto step = [&] {
    const Tensor loss = (w * w).sum();
    w.set_grad({});
    loss.backward();
    {
      const NoGrad no_grad;
      w.sub_(w.grad(), 0.25);
    }
    return loss;
  };
  (void)step();
  sync(/*wait=*/true);
  const std::int64_t runs = Runs();
  const Tensor loss = step();
  (void)loss.item();
  EXPECT_EQ(Runs(), runs + 1);
  mark_step();
  EXPECT_EQ(Runs(), runs + 1);
}

TEST(ExecutionTest, ContextsKeepTwoHalfBuiltProgramsApart) {
  const Tensor x = tensor({1.f, 2.f});
  const Context mine = Context::current(), other;
  const Tensor here = x * 2.0;
  other.make_current();
  const Tensor there = x * 3.0;
  const std::int64_t runs = Runs();
  sync(/*wait=*/true);
  EXPECT_EQ(Runs(), runs + 1);
  mine.make_current();
  EXPECT_THAT(here.to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(there.to_vector<float>(), ElementsAre(3, 6));
}

}  // namespace
}  // namespace lazuli
