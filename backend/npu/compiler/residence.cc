#include "backend/npu/compiler/residence.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

struct Uses {
  int first = -1, last = -1;  // operations
  int block = -1;             // between which branches
  bool fits = true;
};

template <class F>
void ForEachFar(TileOp& op, F f) {
  for (Place* place : {&op.to, &op.from[0], &op.from[1], &op.from[2], &op.table, &op.updates}) {
    if (place->space == Space::kDram) f(*place);
  }
}

bool IsPlainCopy(const TileOp& op) {
  const bool copies = op.op == Op::kDmaLd || op.op == Op::kDmaSt;
  const Place& near = op.op == Op::kDmaLd ? op.to : op.from[0];
  return copies && op.far_register == 0 && !op.reads_to && near.space == Space::kSpm;
}

std::vector<Uses> UsesOf(TileProgram& program) {
  std::vector<Uses> uses(program.arrays.size());
  int block = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    TileOp& op = program.ops[i];
    if (IsControl(op) && op.op != Op::kFence) ++block;
    ForEachFar(op, [&](const Place& place) {
      Uses& of = uses[static_cast<std::size_t>(place.object)];
      if (of.first < 0) {
        of.first = static_cast<int>(i);
        of.block = block;
        of.fits = op.op == Op::kDmaSt;
      }
      of.last = static_cast<int>(i);
      of.fits = of.fits && of.block == block && IsPlainCopy(op);
    });
  }
  return uses;
}

}  // namespace

bool KeepInScratchpad(const Config& config, TileProgram& program) {
  const int64_t room = config.spm_bytes() / 8, unit = std::max<int64_t>(64, config.spm.bank_bytes);
  const std::vector<Uses> uses = UsesOf(program);
  std::vector<std::size_t> candidates;
  for (std::size_t a = 0; a < uses.size(); ++a) {
    if (program.arrays[a].kind == SymbolKind::kBss && uses[a].first >= 0 && uses[a].fits)
      candidates.push_back(a);
  }
  std::sort(candidates.begin(), candidates.end(),
            [&](std::size_t a, std::size_t b) { return uses[a].first < uses[b].first; });
  std::vector<int> buffer_of(uses.size(), -1);
  std::vector<std::size_t> living;
  int64_t taken = 0;
  bool any = false;
  const auto size_of = [&](std::size_t a) {
    return CeilDiv(program.arrays[a].bytes(), unit) * unit;
  };
  for (const std::size_t a : candidates) {
    std::erase_if(living, [&](std::size_t other) {
      const bool ended = uses[other].last < uses[a].first;
      if (ended) taken -= size_of(other);
      return ended;
    });
    if (taken + size_of(a) > room) continue;
    taken += size_of(a);
    living.push_back(a);
    any = true;
    buffer_of[a] = static_cast<int>(program.buffers.size());
    program.buffers.push_back({program.arrays[a].name, Space::kSpm, program.arrays[a].bytes(), -1});
  }
  if (!any) return false;
  int queue = 0;
  const auto queues = static_cast<int>(std::min<int64_t>(config.dma.load_queues, 2));
  for (TileOp& op : program.ops) {
    ForEachFar(op, [&](Place& place) {
      const int buffer = buffer_of[static_cast<std::size_t>(place.object)];
      if (buffer < 0) return;
      place.space = Space::kSpm;
      place.object = buffer;
      op.op = Op::kDmaCp;
      op.queue = static_cast<Queue>(queue++ % queues);
    });
  }
  return true;
}

}  // namespace lazuli::npu
