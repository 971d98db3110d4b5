// Views between recording and results: what a write through one costs, what a sync computes of them,
// whose memory they are.
#include <thread>

#include "lazy/autograd/backward.h"
#include "lazy/ops/shape/strided.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ViewTest : public OnEachClient {};

LAZULI_ON_EACH_CLIENT(ViewTest);

void AddThrough(const Tensor& target, double v) {
  Update("add_", target, [&] { return Add(target, Slot(v)); });
}
Tensor RowOf(const Tensor& x, int64_t i) { return SelectView(x, 0, i); }
Tensor Matrix() { return Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}); }

TEST_P(ViewTest, WritesAreSeenByBaseAndViewsInEagerOrder) {
  const Tensor x = Matrix(), row = RowOf(x, 1), column = SelectView(x, 1, 0);
  AddThrough(row, 10);
  AddThrough(column, 100);
  ASSERT_TRUE(Sync().ok());
  AddThrough(x, 1000);
  EXPECT_THAT(Values(row), ElementsAre(1113, 1014));
  EXPECT_THAT(Values(column), ElementsAre(1101, 1113, 1105));
  EXPECT_THAT(Values(x), ElementsAre(1101, 1002, 1113, 1014, 1105, 1006));
}

TEST_P(ViewTest, AnUnwrittenViewIsAValueLikeOthers) {
  const Tensor x = Matrix();
  const Tensor y = RowOf(x, 1) + RowOf(x, 2);
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(LastProgram()->hlo(), HasSubstr("slice("));
  EXPECT_THAT(LastProgram()->hlo(), Not(HasSubstr("dynamic-update-slice")));
  EXPECT_THAT(Values(y), ElementsAre(8, 10));
}

TEST_P(ViewTest, AWriteCostsAsMuchThroughAChainOfViews) {
  const auto nodes = [](int depth) {
    Tensor view = Matrix();
    for (int i = 0; i < depth; ++i) view = TransposeView(view, 0, 1);
    const Counted recorded(ir::Counter::kNodesRecorded);
    AddThrough(view, 1);
    return recorded();
  };
  EXPECT_EQ(nodes(1), 2);
  EXPECT_EQ(nodes(1001), 2);
}

TEST_P(ViewTest, ManyViewsAndWritesAreLinear) {
  constexpr int kWrites = 20'000;
  const Tensor x = Matrix();
  std::vector<Tensor> views;
  for (int i = 0; i < 1000; ++i) views.push_back(RowOf(x, i % 3));
  ASSERT_TRUE(Sync().ok());
  const Counted recorded(ir::Counter::kNodesRecorded);
  for (int i = 0; i < kWrites; ++i) AddThrough(views[static_cast<std::size_t>(i % 1000)], 1);
  EXPECT_LE(recorded(), 3 * kWrites);  // what the view holds now, the sum, the base
  EXPECT_THAT(Values(RowOf(x, 0)), ElementsAre(1 + kWrites / 1000 * 334, 2 + kWrites / 1000 * 334));
}

TEST_P(ViewTest, AStepThatWritesThroughViewsCompilesOnceAndKeepsItsMemory) {
  const Tensor x = Matrix();
  ASSERT_TRUE(Sync().ok());
  const Counted donated(ir::Counter::kDonations);
  const Work work;
  for (int step = 0; step < 5; ++step) {
    AddThrough(RowOf(x, 1), 1);
    ASSERT_TRUE(Sync(/*wait=*/false).ok());
  }
  EXPECT_THAT(Values(x), ElementsAre(1, 2, 8, 9, 5, 6));
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(donated(), 5);
}

TEST_P(ViewTest, AStaleViewIsNoResult) {
  const Tensor x = Matrix(), row = RowOf(x, 0);
  AddThrough(x, 1);
  ASSERT_TRUE(Sync().ok());
  EXPECT_FALSE(row.storage().pending());
  EXPECT_THAT(LastProgram()->hlo(), HasSubstr("->(f32[3,2]{1,0})"));
  EXPECT_THAT(Values(row), ElementsAre(2, 3));
}

TEST_P(ViewTest, ABaseThatLivesOnInOneViewOfAllOfItIsNoResult) {
  StoragePtr flat;  // what backward would keep
  {
    const Tensor sum = Matrix() + Matrix();
    flat = ReshapeView(TransposeView(sum, 0, 1), {2, 3}).impl()->storage();
  }
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(LastProgram()->hlo(), HasSubstr("->(f32[2,3]{1,0})"));
  const Tensor row = RowOf(Tensor(flat), 1);
  AddThrough(row, 1);
  EXPECT_THAT(Values(row), ElementsAre(5, 9, 13));
  EXPECT_THAT(Values(Tensor(flat)), ElementsAre(2, 6, 10, 5, 9, 13));
  EXPECT_THAT(Values(Tensor(flat->view()->base())), ElementsAre(2, 5, 6, 9, 10, 13));
}

TEST_P(ViewTest, AViewIsWrittenToFromAnotherContext) {
  const Tensor x = Matrix(), row = RowOf(x, 1);
  AddThrough(row, 1);
  std::thread([&] {
    AddThrough(row, 10);
    AddThrough(x, 100);
    EXPECT_THAT(Values(row), ElementsAre(114, 115));
  }).join();
  EXPECT_THAT(Values(row), ElementsAre(114, 115));
  AddThrough(row, 1000);
  EXPECT_THAT(Values(x), ElementsAre(101, 102, 1114, 1115, 105, 106));
}

TEST_P(ViewTest, HistoryFollowsAWriteThroughAView) {
  const Tensor w = WithGrad(Matrix());
  const Tensor x = Mul(w, Slot(2)), row = RowOf(x, 1), other = RowOf(x, 1);
  Assign("mul_", row, Mul(row, Slot(3)));
  Backward(Sum(Mul(other, other), {}, false), {}, {});
  EXPECT_THAT(Values(GradOf(w)), ElementsAre(0, 0, 216, 288, 0, 0));
}

TEST_P(ViewTest, WhatHistoryCannotFollowIsAnError) {
  const Tensor w = WithGrad(Matrix()), row = RowOf(w, 0);
  EXPECT_STATUS(kFailedPrecondition,
                "add_: a view of a leaf tensor that requires a gradient is changed in place; do it "
                "under NoGrad",
                CheckAssignable("add_", row));
  const Tensor x = Mul(w, Slot(2));
  const Tensor y = Mul(x, x);
  AddThrough(RowOf(x, 0), 1);
  EXPECT_THAT(std::string(ErrorOf([&] { Backward(Sum(y, {}, false), {}, {}); }).message()),
              HasSubstr("a tensor that backward needs was changed in place"));
}

TEST_P(ViewTest, ElementsThatShareAPlaceAreNotWrittenTo) {
  const Tensor wide = ExpandView(Matrix(), {4, 3, 2});
  EXPECT_STATUS(kFailedPrecondition,
                "add_: f32[4,3,2] is expanded: several of its elements are one place in memory, "
                "which is changed in place; clone() it",
                CheckAssignable("add_", wide));
}

}  // namespace
}  // namespace lazuli::lazy
