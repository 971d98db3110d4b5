#include "backend/npu/compiler/residence.h"

#include <algorithm>
#include <utility>

#include "backend/npu/compiler/builder.h"
#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

struct Uses {
  std::vector<int> operations;
  int block = -1;  // between which branches
  bool fits = true;
  int64_t stored = 0;  // bytes
  int stored_by = -1;
};

template <class Operation, class F>
void ForEachFar(Operation& op, F f) {
  for (auto* place : {&op.to, &op.from[0], &op.from[1], &op.from[2], &op.table, &op.updates}) {
    if (place->space == Space::kDram) f(*place);
  }
}

bool IsPlainCopy(const TileOp& op) {
  const bool copies = op.op == Op::kDmaLd || op.op == Op::kDmaSt;
  const Place& near = op.op == Op::kDmaLd ? op.to : op.from[0];
  return copies && op.far_register == 0 && !op.reads_to && near.space == Space::kSpm;
}

int64_t BytesOf(const TileProgram& program, const TileOp& op) {
  const Descriptor& d = program.descriptors[static_cast<std::size_t>(op.descriptor)];
  return d.elem() * d.elements();
}

std::vector<Uses> UsesOf(const TileProgram& program) {
  std::vector<Uses> uses(program.arrays.size());
  int block = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const TileOp& op = program.ops[i];
    if (IsControl(op) && op.op != Op::kFence) ++block;
    ForEachFar(op, [&](const Place& place) {
      Uses& of = uses[static_cast<std::size_t>(place.object)];
      if (of.operations.empty()) {
        of.block = block;
        of.fits = op.op == Op::kDmaSt;
      }
      of.operations.push_back(static_cast<int>(i));
      of.fits = of.fits && of.block == block && IsPlainCopy(op);
      if (!of.fits || op.op != Op::kDmaSt) return;
      of.stored += BytesOf(program, op);
      const int64_t all = program.arrays[static_cast<std::size_t>(place.object)].bytes();
      // Stores behind that one would have to know where the array is by then.
      of.stored_by = of.stored == all ? static_cast<int>(i) : of.stored > all ? -1 : of.stored_by;
    });
  }
  return uses;
}

}  // namespace

Residence::Residence(const Config& config, const TileProgram& program)
    : config_(config), program_(program) {
  const int64_t room = config.spm_bytes() / 8, unit = std::max<int64_t>(64, config.spm.bank_bytes);
  std::vector<Uses> uses = UsesOf(program);
  std::vector<std::size_t> candidates;
  for (std::size_t a = 0; a < uses.size(); ++a) {
    if (program.arrays[a].kind == SymbolKind::kBss && !uses[a].operations.empty() && uses[a].fits)
      candidates.push_back(a);
  }
  const auto first = [&](std::size_t a) { return uses[a].operations.front(); };
  std::sort(candidates.begin(), candidates.end(),
            [&](std::size_t a, std::size_t b) { return first(a) < first(b); });
  std::vector<std::pair<int, int64_t>> living;  // the last use, bytes
  int64_t taken = 0;
  for (const std::size_t a : candidates) {
    const int64_t bytes = program.arrays[a].bytes(), size = CeilDiv(bytes, unit) * unit;
    std::erase_if(living, [&](const auto& other) {
      const bool ended = other.first < first(a);
      if (ended) taken -= other.second;
      return ended;
    });
    if (taken + size > room) continue;
    taken += size;
    living.emplace_back(uses[a].operations.back(), size);
    kept_.push_back({static_cast<int>(a), bytes, std::move(uses[a].operations), uses[a].stored_by});
  }
}

bool Residence::any() const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [](const ResidentArray& kept) { return kept.until != kept.uses.front(); });
}

TileProgram Residence::Apply() {
  TileProgram result = program_;
  result.ops.clear();
  origin_.clear();
  std::vector<ResidentArray*> kept_of(program_.arrays.size(), nullptr);
  for (ResidentArray& kept : kept_) {
    if (kept.until == kept.uses.front()) continue;
    kept_of[static_cast<std::size_t>(kept.array)] = &kept;
    kept.buffer = static_cast<int>(result.buffers.size());
    result.buffers.push_back(
        {program_.arrays[static_cast<std::size_t>(kept.array)].name, Space::kSpm, kept.bytes, -1});
  }
  int queue = 0;
  const auto queues = static_cast<int>(std::min<int64_t>(config_.dma.load_queues, 2));
  for (std::size_t i = 0; i < program_.ops.size(); ++i) {
    TileOp op = program_.ops[i];
    const ResidentArray* used = nullptr;
    ForEachFar(op, [&](Place& place) {
      const ResidentArray* const kept = kept_of[static_cast<std::size_t>(place.object)];
      if (kept == nullptr || (kept->until >= 0 && static_cast<int>(i) >= kept->until)) return;
      place.space = Space::kSpm;
      place.object = kept->buffer;
      op.op = Op::kDmaCp;
      op.queue = static_cast<Queue>(queue++ % queues);
      used = kept;
    });
    result.ops.push_back(op);
    origin_.push_back(static_cast<int>(i));
    if (used == nullptr || used->until < 0) continue;
    const auto next = std::upper_bound(used->uses.begin(), used->uses.end(), static_cast<int>(i));
    if (next != used->uses.end() && *next == used->until) SpillBehind(*used, i, result);
  }
  return result;
}

// All of it, to its array in DRAM.
void Residence::SpillBehind(const ResidentArray& kept, std::size_t at, TileProgram& program) {
  const TileArray& array = program_.arrays[static_cast<std::size_t>(kept.array)];
  TileBuilder builder(config_, program);
  const int elem = TypeBytes(array.type);
  builder.Store({Space::kDram, kept.array, 0, 0, 0}, {1}, TileBuilder::Spm(kept.buffer), {1},
                {kept.bytes / elem}, elem);
  program.ops.back().origin = program_.ops[at].origin;
  program.ops.back().stage = program_.ops[at].stage;
  origin_.push_back(static_cast<int>(at));
}

bool Residence::Spill(const Shortage& shortage) {
  if (shortage.space != Space::kSpm) return false;
  const int now = origin_[static_cast<std::size_t>(shortage.operation)];
  struct Victim {
    ResidentArray* kept;
    int next;
  };
  std::vector<Victim> victims;
  for (ResidentArray& kept : kept_) {
    if (kept.until >= 0) continue;
    if (kept.uses.front() >= now || kept.uses.back() < now) continue;
    const auto next = std::lower_bound(kept.uses.begin(), kept.uses.end(), now);
    if (*next == now) continue;  // it is what the operation works on
    victims.push_back({&kept, *next});
  }
  std::sort(victims.begin(), victims.end(),
            [](const Victim& a, const Victim& b) { return a.next > b.next; });
  int64_t freed = 0;
  for (const Victim& victim : victims) {
    if (freed >= shortage.bytes) break;
    freed += victim.kept->bytes;
    // Where not all of it is there yet, or it would be stored again, it is DRAM's from the beginning.
    const bool whole = victim.kept->stored_by >= 0 && victim.kept->stored_by < now;
    victim.kept->until = whole ? victim.next : victim.kept->uses.front();
    ++spilled_;
  }
  return freed > 0;
}

}  // namespace lazuli::npu
