#include "lowering/passes/block_order.h"

#include <algorithm>
#include <utility>

namespace lazuli::lowering {

using hlo::Instruction;

BlockOrder::Block BlockOrder::Add(Instruction* i) {
  const auto block = static_cast<Block>(members_.size());
  members_.push_back({i});
  rank_.push_back(static_cast<uint32_t>(order_.size()));
  order_.push_back(block);
  reached_.push_back(0);
  block_of_[i] = block + 1;
  return block;
}

void BlockOrder::BeginQuestion(const Instruction* about) {
  about_ = about;
  asked_ += 2;
  followed_ = order_.size();
}

void BlockOrder::MarkUsers(const Instruction* i) {
  for (const Instruction* user : i->users()) {
    if (of(user) != of(i)) reached_[of(user)] = asked_;
  }
}

void BlockOrder::Ask(const Instruction* i) {
  if (about_ == i) return;
  BeginQuestion(i);
  MarkUsers(i);
}

void BlockOrder::AskAbout(Block block) {
  BeginQuestion(nullptr);
  for (const Instruction* member : members_[block]) MarkUsers(member);
}

void BlockOrder::FollowDownTo(Block block) {
  while (followed_ > rank_[block] + 1) {
    const Block at = order_[--followed_];
    if (!IsReached(at)) continue;
    for (const Instruction* member : members_[at]) {
      for (const Instruction* user : member->users()) {
        if (of(user) != at) reached_[of(user)] = asked_ + 1;
      }
    }
  }
}

bool BlockOrder::LeadsInto(const Instruction* i, Block block) {
  if (order_.size() - rank_[block] > kFar) return true;
  Ask(i);
  FollowDownTo(block);
  return reached_[block] == asked_ + 1;
}

void BlockOrder::MoveReachedBefore(Block block) {
  const auto begin = order_.begin() + rank_[block];
  std::stable_partition(begin, order_.end(), [&](Block b) { return b != block && IsReached(b); });
  for (auto rank = static_cast<uint32_t>(begin - order_.begin()); rank < order_.size(); ++rank)
    rank_[order_[rank]] = rank;
}

bool BlockOrder::MayMerge(Block a, Block b) {
  if (rank_[a] > rank_[b]) std::swap(a, b);  // b may lead into a, not a into b
  if (rank_[b] - rank_[a] > kFar) return false;
  AskAbout(b);
  FollowDownTo(a);
  return reached_[a] != asked_ + 1;
}

BlockOrder::Block BlockOrder::Merge(Block a, Block b) {
  if (rank_[a] > rank_[b]) std::swap(a, b);
  AskAbout(b);
  FollowDownTo(a);
  MoveReachedBefore(a);
  for (Instruction* member : members_[b]) block_of_[member] = a + 1;
  members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
  members_[b].clear();
  return a;
}

void BlockOrder::Join(Instruction* i, Block block) {
  const auto inside = [&](const Instruction* user) { return of(user) == block; };
  if (!std::all_of(i->users().begin(), i->users().end(), inside)) {
    Ask(i);
    FollowDownTo(block);
    MoveReachedBefore(block);  // which is now among what they read
  }
  members_[block].push_back(i);
  block_of_[i] = block + 1;
  about_ = nullptr;
}

}  // namespace lazuli::lowering
