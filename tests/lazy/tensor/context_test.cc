#include "lazy/tensor/context.h"

#include <random>

#include "lazy/tensor/leaves.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

TEST(StorageTest, DetachSharesElementsAndVersions) {
  const Tensor x = Floats({1, 2});
  const Tensor alias = Detach(x);
  EXPECT_EQ(&x.storage(), &alias.storage());
  EXPECT_EQ(x.storage().version(), 0u);
  Assign("add_", alias, alias + alias);
  EXPECT_EQ(x.storage().version(), 1u);
  EXPECT_THAT(Values(x), ElementsAre(2, 4));
  Assign("mul_", x, x * x);
  EXPECT_EQ(alias.storage().version(), 2u);
  EXPECT_THAT(Values(alias), ElementsAre(4, 16));
}

TEST(StorageTest, ASyncDoesNotChangeTheVersion) {
  const Tensor x = Floats({1, 2});
  Assign("add_", x, x + x);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(x.storage().version(), 1u);
}

TEST(StorageTest, WhatWasRecordedBeforeAWriteKeepsTheOldElements) {
  const Tensor x = Floats({1, 2});
  const Tensor before = x * 10.0;
  Assign("add_", x, x + x);
  const Tensor after = x * 10.0;
  EXPECT_THAT(Values(before), ElementsAre(10, 20));
  EXPECT_THAT(Values(after), ElementsAre(20, 40));
}

TEST(StorageTest, ASnapshotIsACopyThatCopiesNothing) {
  const Tensor data = Floats({1, 2}), pending = data + data;
  for (const Tensor& x : {data, pending}) {
    const Tensor copy(Context::Current().Snapshot(x.storage()));
    const Tensor expected = x * 1.0;
    Assign("mul_", x, x * 100.0);
    const std::vector<float> values = Values(copy);
    EXPECT_EQ(values, Values(expected));
    Assign("add_", copy, copy + copy);
    EXPECT_EQ(Values(x)[0], values[0] * 100);
  }
}

TEST(StorageTest, IdsGrowWithCreation) {
  const Tensor a = Floats({1}), b = Floats({2});
  EXPECT_LT(a.storage().id(), b.storage().id());
}

TEST(ContextTest, PendingStoragesComeInOrderOfCreation) {
  const Tensor x = Floats({1, 2});
  const Tensor a = x + x, b = x * x, c = x - x;
  ASSERT_TRUE(Sync().ok());
  Assign("neg", c, -c);
  Assign("neg", a, -a);
  const Tensor d = x / x;
  Context& context = Context::Current();
  const Context::Lock lock(context);
  std::vector<Storage*> pending;
  context.PendingStorages(pending);
  EXPECT_THAT(pending, ElementsAre(&a.storage(), &c.storage(), &d.storage()));
}

TEST(ContextTest, TheLeafOfATensorIsOneNodeUntilTheElementsChange) {
  const Tensor x = Floats({1, 2});
  Context& context = Context::Current();
  auto leaf = [&] {
    const Context::Lock lock(context);
    return context.ValueOf(x.storage(), ir::kNoSite).node;
  };
  const NodePtr first = leaf();
  EXPECT_EQ(first->kind(), ir::NodeKind::kData);
  EXPECT_EQ(leaf(), first);
  Assign("add_", x, x + x);
  ASSERT_TRUE(Sync().ok());
  EXPECT_NE(leaf(), first);
}

// Random programs against a model of what is pending.
TEST(ContextTest, BookkeepingAgreesWithAModel) {
  TestDevice();
  ASSERT_TRUE(Sync().ok());
  std::mt19937 random(7);
  auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  // Detached twins share one entry of `storages`.
  std::vector<std::pair<Tensor, std::size_t>> tensors;
  std::vector<bool> pending;
  std::vector<int> owners;
  auto add = [&](Tensor t, bool is_pending) {
    tensors.emplace_back(std::move(t), pending.size());
    pending.push_back(is_pending);
    owners.push_back(1);
  };
  for (int i = 0; i < 3; ++i) add(Floats({1, 2}), false);
  for (int step = 0; step < 3000; ++step) {
    const std::size_t i = pick(tensors.size()), j = pick(tensors.size());
    const Tensor a = tensors[i].first, b = tensors[j].first;
    switch (pick(8)) {
      case 0:
      case 1:
        add(a + b, true);
        break;
      case 2:
        add(Floats({3, 4}), false);
        break;
      case 3:
        Assign("copy_", a, a * b);
        pending[tensors[i].second] = true;
        break;
      case 4:  // data copied: pending, though without a program
        Assign("copy_", a, b);
        pending[tensors[i].second] = true;
        break;
      case 5:
        tensors.emplace_back(Detach(a), tensors[i].second);
        ++owners[tensors[i].second];
        break;
      case 6:
        if (tensors.size() > 3) {
          if (--owners[tensors[i].second] == 0) pending[tensors[i].second] = false;
          tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
        }
        break;
      default:
        if (pick(10) == 0) {
          ASSERT_TRUE(Sync().ok());
          pending.assign(pending.size(), false);
        }
        break;
    }
    // `a` and `b` may keep a dropped tensor alive until the end of the step.
  }
  int64_t expected = 0;
  for (const bool p : pending) expected += p ? 1 : 0;
  EXPECT_EQ(Context::Current().pending_count(), expected);
  for (const auto& [tensor, storage] : tensors)
    EXPECT_EQ(tensor.storage().pending(), pending[storage]);
  tensors.clear();
  EXPECT_EQ(Context::Current().pending_count(), 0);
}

TEST(SiteScopeTest, TheOutermostLineWinsAndAnOverrideIsUndone) {
  EXPECT_EQ(CurrentSite(), ir::kNoSite);
  {
    const SiteScope outer(5);
    const SiteScope inner(6);
    EXPECT_EQ(CurrentSite(), 5u);
    {
      const SiteOverride other(9);
      EXPECT_EQ(CurrentSite(), 9u);
    }
    EXPECT_EQ(CurrentSite(), 5u);
  }
  EXPECT_EQ(CurrentSite(), ir::kNoSite);
}

}  // namespace
}  // namespace lazuli::lazy
