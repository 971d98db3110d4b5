#include "lowering/passes/block_order.h"

#include <random>
#include <ranges>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Block = BlockOrder::Block;

// Each adds two of the `reach` before it, at random.
void AddRandomGraph(std::mt19937& random, int count, int reach, hlo::Computation* computation) {
  std::vector<Instruction*> made{computation->AddParameter(0, Shape(DType::kF32))};
  for (int k = 0; k < count; ++k) {
    const auto any = [&] {
      const std::size_t back = random() % static_cast<std::size_t>(reach) + 1;
      return made[made.size() - std::min(back, made.size())];
    };
    made.push_back(computation->Add(Opcode::kAdd, Shape(DType::kF32), {any(), any()}));
  }
}

// As LeadsInto, by looking at everything. `from` are the instructions asked about.
bool HasPathThroughOthers(const BlockOrder& order, absl::Span<Instruction* const> from,
                          Block target) {
  std::vector<const Instruction*> pending;
  std::set<const Instruction*> seen;
  const auto push = [&](const Instruction* next) {
    if (seen.insert(next).second) pending.push_back(next);
  };
  for (const Instruction* i : from) {
    for (const Instruction* user : i->users()) {
      if (order.of(user) != target && order.of(user) != order.of(i)) push(user);
    }
  }
  while (!pending.empty()) {
    const Instruction* at = pending.back();
    pending.pop_back();
    if (order.of(at) == target) return true;
    for (const Instruction* user : at->users()) push(user);
    for (const Instruction* member : order.members(order.of(at))) push(member);
  }
  return false;
}

// Merges two of the blocks if that closes no cycle. Whether it does.
bool TryMergeTwo(std::mt19937& random, std::vector<Block>& blocks, BlockOrder& order) {
  const Block a = blocks[random() % blocks.size()], b = blocks[random() % blocks.size()];
  if (a == b) return false;
  const bool may = !HasPathThroughOthers(order, order.members(a), b) &&
                   !HasPathThroughOthers(order, order.members(b), a);
  EXPECT_EQ(order.MayMerge(a, b), may);
  if (!may) return false;
  const std::size_t members = order.members(a).size() + order.members(b).size();
  const Block merged = order.Merge(a, b);
  EXPECT_EQ(order.members(merged).size(), members);
  std::erase(blocks, merged == a ? b : a);
  return true;
}

TEST(BlockOrderTest, FindsEveryPathThatWouldCloseACycle) {
  int joined = 0, refused = 0, merged = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    hlo::Module module("m");
    hlo::Computation* const computation = module.AddComputation("main");
    AddRandomGraph(random, 80, seed % 2 == 0 ? 5 : 60, computation);
    BlockOrder order(*computation);
    std::vector<Block> blocks;
    for (Instruction* i : std::ranges::reverse_view(computation->PostOrder())) {
      bool done = false;
      for (int tries = 0; tries < 4 && !blocks.empty() && !done; ++tries) {
        const Block block = blocks[random() % blocks.size()];
        const bool leads = order.LeadsInto(i, block);
        ASSERT_EQ(leads, HasPathThroughOthers(order, {i}, block)) << "seed " << seed;
        refused += leads ? 1 : 0;
        if (leads || random() % 2 == 0) continue;
        order.Join(i, block);
        done = true;
        ++joined;
      }
      if (!done) blocks.push_back(order.Add(i));
      ASSERT_NE(order.of(i), BlockOrder::kNone);
      if (random() % 12 == 0) merged += TryMergeTwo(random, blocks, order) ? 1 : 0;
    }
  }
  EXPECT_GT(joined, 600);
  EXPECT_GT(refused, 600);
  EXPECT_GT(merged, 100);
}

TEST(BlockOrderTest, WhatStandsFarApartCountsAsLeadingThere) {
  hlo::Module module("m");
  hlo::Computation* const computation = module.AddComputation("main");
  Instruction* const x = computation->AddParameter(0, Shape(DType::kF32));
  for (std::size_t k = 0; k <= BlockOrder::kFar; ++k)
    computation->Add(Opcode::kNegate, Shape(DType::kF32), {x});
  BlockOrder order(*computation);
  Block first = BlockOrder::kNone, last = BlockOrder::kNone;
  for (Instruction* i : std::ranges::reverse_view(computation->PostOrder())) {
    if (i == x) break;
    last = order.Add(i);
    if (first == BlockOrder::kNone) first = last;
  }
  EXPECT_TRUE(order.LeadsInto(x, first));
  EXPECT_FALSE(order.LeadsInto(x, last));
}

}  // namespace
}  // namespace lazuli::lowering
