// BlockOrder: instructions in blocks that stay free of cycles, and whether a path would close one.
//
// A block is a group that will be one instruction, or an instruction alone. Instructions come users
// first. Blocks are kept in an order in which each stands before what it reads, so a question about
// two of them looks only at what stands in between; an instruction that joins a block moves what
// has to come before it. Used by Fuse.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#include "ir/hlo/dense_map.h"
#include "ir/hlo/module.h"

namespace lazuli::lowering {

class BlockOrder {
 public:
  using Block = uint32_t;
  static constexpr Block kNone = UINT32_MAX;
  // What stands further apart is not looked at: it would wait in memory for very long, and every
  // question takes bounded time.
  static constexpr std::size_t kFar = 4096;

  explicit BlockOrder(const hlo::Computation& computation) : block_of_(computation) {}

  // The instruction's users have been added, or joined a block; it has not.
  Block Add(hlo::Instruction* i);
  // The instruction must not lead into the block.
  void Join(hlo::Instruction* i, Block block);
  // Whether a path from `i`, not yet in a block, through other blocks leads into this one. What
  // enters a block leaves it everywhere. True as well for blocks that stand far away.
  bool LeadsInto(const hlo::Instruction* i, Block block);
  // Whether the two can be one: no path leads from one through a third into the other. False as
  // well for blocks that stand far apart.
  bool MayMerge(Block a, Block b);
  // Gives the block that has the members of both; the other one is empty from now on. They may be
  // merged.
  Block Merge(Block a, Block b);

  Block of(const hlo::Instruction* i) const { return block_of_[i] - 1; }
  absl::Span<hlo::Instruction* const> members(Block block) const { return members_[block]; }

 private:
  void Ask(const hlo::Instruction* i);
  void AskAbout(Block block);
  void BeginQuestion(const hlo::Instruction* about);
  void MarkUsers(const hlo::Instruction* i);
  void FollowDownTo(Block block);
  // What leads from there goes before the block.
  void MoveReachedBefore(Block block);
  bool IsReached(Block block) const { return reached_[block] >= asked_; }

  hlo::DenseMap<uint32_t> block_of_;  // block + 1; 0: none yet
  std::vector<absl::InlinedVector<hlo::Instruction*, 1>> members_;
  std::vector<Block> order_;
  std::vector<uint32_t> rank_;  // in order_, by block

  // The question being answered. reached_[b] is `asked_` for a block that reads `about_`, one more
  // for one that reads what leads from there. Ranks from `followed_` on have been followed.
  const hlo::Instruction* about_ = nullptr;  // null: a block
  uint64_t asked_ = 0;
  std::vector<uint64_t> reached_;
  std::size_t followed_ = 0;
};

}  // namespace lazuli::lowering
