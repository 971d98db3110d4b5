// Graphs as long as a loop without a barrier makes them: recorded, run in pieces and released in
// bounded stack.

#include "ir/support/flags.h"
#include "lazy/autograd/backward.h"
#include "tests/lazy/lazy_test.h"
#include "tests/support/small_stack.h"

namespace lazuli::lazy {
namespace {

using test::kSanitized;
using test::RunInSmallStack;

// The interpreter evaluates every node: fewer under sanitizers.
constexpr int kNodes = kSanitized ? 100'000 : 1'000'000;

TEST(LongChainTest, AMillionNodesRunInPieces) {
  TestDevice();
  const int64_t limit = ir::flags().max_graph_nodes();
  const Counted nodes(ir::Counter::kNodesRecorded), created(ir::Counter::kCreateTensor),
      destroyed(ir::Counter::kDestroyTensor);
  const Work work;
  RunInSmallStack([&] {
    Tensor x = Floats({0});
    const Value one = Number(1.0).Slot(DType::kF32);
    for (int i = 0; i < kNodes; ++i) x = Add(x, one);
    EXPECT_EQ(Values(x)[0], static_cast<float>(kNodes));
  });
  EXPECT_EQ(nodes(), kNodes);
  EXPECT_EQ(work.runs(), (kNodes + limit) / (limit + 1));
  EXPECT_LE(work.compiles(), 3);  // the full piece, the last one
  EXPECT_EQ(created(), destroyed());
}

TEST(LongChainTest, AnUnusedMillionNodesAreReleasedWithoutARun) {
  TestDevice();
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  const Work work;
  RunInSmallStack([&] {
    // Just below the limit, again and again, so that nothing is cut.
    const int64_t limit = ir::flags().max_graph_nodes();
    for (int64_t done = 0; done < kNodes; done += limit) {
      {
        Tensor x = Floats({0});
        for (int64_t i = 0; i < limit; ++i) x = Neg(x);
      }
      EXPECT_TRUE(Sync().ok());
    }
  });
  EXPECT_EQ(work.runs(), 0);
  EXPECT_EQ(created(), destroyed());
}

TEST(LongChainTest, ATapeOfManyNodesIsWalkedAndReleased) {
  TestDevice();
  const int n = kSanitized ? 20'000 : 200'000;
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  RunInSmallStack([&] {
    const Tensor x = WithGrad(Floats({0.5f}));
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = Neg(y);
    Backward(Sum(y), Tensor(), {});
    EXPECT_EQ(Values(GradOf(x))[0], n % 2 == 0 ? 1 : -1);
  });
  EXPECT_EQ(created(), destroyed());
}

// Every intermediate result is kept for backward: an output of the piece that computes it.
TEST(LongChainTest, ATapeThatNobodyWalksIsReleased) {
  TestDevice();
  const int n = kSanitized ? 20'000 : 200'000;
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  RunInSmallStack([&] {
    const Tensor x = WithGrad(Floats({0.5f}));
    Tensor y = x;
    for (int i = 0; i < n; ++i) y = Mul(y, x);  // saves both operands
  });
  EXPECT_EQ(created(), destroyed());
}

}  // namespace
}  // namespace lazuli::lazy
