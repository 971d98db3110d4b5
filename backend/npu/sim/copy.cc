// DMA, link and transposer: everything that moves elements without computing, but for add and max
// on the way.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/engine.h"
#include "backend/npu/sim/numerics.h"
#include "backend/npu/sim/topology.h"
#include "ir/recipes/recipes.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

enum Joining { kCopy, kAdd, kMax };
enum Conversion { kSame, kNarrow, kWiden };

// The walk without its outermost level.
Walk RowOf(const Walk& walk) {
  Walk row = walk;
  --row.rank;
  std::copy(walk.dim + 1, walk.dim + 5, row.dim);
  std::copy(walk.stride + 1, walk.stride + 5, row.stride);
  return row;
}

// The same elements, the smallest stride innermost.
Walk InMemoryOrder(Walk walk) {
  for (int d = 1; d < walk.rank; ++d) {
    for (int i = d; i > 0 && std::abs(walk.stride[i]) > std::abs(walk.stride[i - 1]); --i) {
      std::swap(walk.stride[i], walk.stride[i - 1]);
      std::swap(walk.dim[i], walk.dim[i - 1]);
    }
  }
  return walk;
}

int64_t CountOf(const Walk& walk) {
  int64_t n = 1;
  for (int d = 0; d < walk.rank; ++d) n *= walk.dim[d];
  return n;
}

void JoinElement(const std::byte* from, std::byte* to, int joining, Type type) {
  if (type == Type::kF32) {
    const float old = Loaded<float>(to), value = Loaded<float>(from);
    Stored(to, Canonical(joining == kAdd ? old + value : hlo::recipes::Maximum(old, value)));
  } else {
    const auto old = Loaded<int32_t>(to), value = Loaded<int32_t>(from);
    Stored(to, joining == kAdd
                   ? static_cast<int32_t>(static_cast<uint32_t>(old) + static_cast<uint32_t>(value))
                   : std::max(old, value));
  }
}

void MoveElement(const std::byte* from, std::byte* to, int joining, int conversion, Type type,
                 std::size_t elem) {
  if (conversion == kNarrow) return Stored(to, ToBf16(Loaded<float>(from)));
  if (conversion == kWiden) return Stored(to, FromBf16(Loaded<uint16_t>(from)));
  if (joining != kCopy) return JoinElement(from, to, joining, type);
  std::memmove(to, from, elem);
}

bool IsDram(const MemoryPlace& place) { return place.memory->kind == MemoryKind::kDram; }

}  // namespace

bool Engine::Move(const MemoryPlace& from, const Walk& source, const MemoryPlace& to,
                  const Walk& target, int op, int convert, Type type) {
  const int rank = source.rank;
  int inner = rank;
  int64_t run = source.elem;
  const bool plain = op == kCopy && convert == kSame;
  while (plain && inner > 0 && source.stride[inner - 1] == run && target.stride[inner - 1] == run)
    run *= source.dim[--inner];
  int64_t index[5] = {};
  const std::byte* in = from.at();
  std::byte* out = to.at();
  const int last = plain ? inner - 1 : rank - 1;
  while (true) {
    // The last level that is walked, in a loop of its own.
    const int64_t count = last >= 0 ? source.dim[last] : 1;
    const int64_t in_step = last >= 0 ? source.stride[last] : 0,
                  out_step = last >= 0 ? target.stride[last] : 0;
    if (plain) {
      for (int64_t i = 0; i < count; ++i)
        std::memmove(out + i * out_step, in + i * in_step, static_cast<std::size_t>(run));
    } else {
      for (int64_t i = 0; i < count; ++i)
        MoveElement(in + i * in_step, out + i * out_step, op, convert, type,
                    static_cast<std::size_t>(source.elem));
    }
    int d = last - 1;
    for (; d >= 0; --d) {
      in += source.stride[d];
      out += target.stride[d];
      if (++index[d] < source.dim[d]) break;
      in -= source.stride[d] * source.dim[d];
      out -= target.stride[d] * target.dim[d];
      index[d] = 0;
    }
    if (d < 0) return true;
  }
}

// Where `$rb` or `[rb]` is. A place in an array may lie in front of it or behind, but in the DRAM.
bool Engine::FarAddress(const QueuedInstruction& entry, int64_t& address) {
  address = entry.rb;
  if ((entry.in->aux & kAuxDram) == 0) return true;
  const int64_t array = int64_t{entry.in->imm} * kDramUnit;
  if (entry.rb < -array || entry.rb >= static_cast<int64_t>(kPeerBase - kDramBase) - array)
    return Fail(ErrorCode::kIllegalAddress,
                Str("an offset of ", entry.rb, " from byte ", array, " leads out of the DRAM"));
  address = static_cast<int64_t>(kDramBase) + array + entry.rb;
  return true;
}

// dma.ld, dma.st, dma.cp, dma.h2d, dma.d2h, xl.*: a descriptor's elements from one place to
// another.
bool Engine::Copy(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const Op op = in.opcode();
  const bool near_first = op == Op::kDmaLd || op == Op::kDmaCp || op == Op::kXlTr ||
                          op == Op::kXlPerm || op == Op::kXlRev || op == Op::kDmaD2h;
  const bool transposer = op == Op::kXlTr || op == Op::kXlPerm || op == Op::kXlRev;
  const int joining = transposer || op == Op::kDmaCp || op == Op::kDmaH2d || op == Op::kDmaD2h
                          ? kCopy
                          : static_cast<int>(in.aux & 3);
  const int conversion = op == Op::kDmaLd || op == Op::kDmaSt || op == Op::kDmaCp
                             ? static_cast<int>(in.aux >> 2 & 3)
                             : kSame;
  const int64_t elem = d.elem();
  const Walk source = WalkOf(d, true, conversion == kNarrow ? 4 : conversion == kWiden ? 2 : elem);
  const Walk target = WalkOf(d, false, conversion == kNarrow ? 2 : conversion == kWiden ? 4 : elem);
  int64_t b = 0;
  if (!FarAddress(entry, b)) return false;
  const uint32_t near = kOwn | kAccToo, far = kDramToo | kPeers;
  uint32_t source_reach = near, target_reach = near;
  if (op == Op::kDmaLd) source_reach = far;
  if (op == Op::kDmaSt) target_reach = far;
  if (op == Op::kDmaCp) source_reach = target_reach = near | kCores;
  if (op == Op::kDmaH2d) source_reach = kHostToo, target_reach = kDramToo;
  if (op == Op::kDmaD2h) source_reach = kDramToo, target_reach = kHostToo;
  if (transposer) source_reach = target_reach = kOwn | kAccToo;
  MemoryPlace from, to;
  if (!Find(core, near_first ? b : entry.ra, source, source_reach, from)) return false;
  if (!Find(core, near_first ? entry.ra : b, target, target_reach, to)) return false;
  // The transposer holds a block of rows: it takes whole words, in whatever order elements go
  // through it.
  if (transposer && counted_ != nullptr) {
    words_.Add(from.offset, InMemoryOrder(source));
    words_.Add(to.offset, InMemoryOrder(target));
    counted_ = nullptr;
  }
  if (!TouchWalk(from, source, false)) return false;
  if (joining != kCopy && !TouchWalk(to, target, false)) return false;
  if (!TouchWalk(to, target, true)) return false;
  Move(from, source, to, target, joining, conversion, in.element());

  Counters& counters = CountersOf(core);
  const int64_t n = CountOf(source), read = n * source.elem, written = n * target.elem;
  if (op != Op::kDmaLd || !IsDram(from))
    (IsDram(from) ? counters.dram_read_bytes : counters.spm_read_bytes) += read;
  (IsDram(to) ? counters.dram_write_bytes : counters.spm_write_bytes) += written;
  if (op == Op::kDmaH2d || op == Op::kDmaD2h) {
    counters.host_bytes += read;
    cost = HostCost(config_, read);
  } else if (transposer) {
    const int64_t cols = source.dim[source.rank - 1],
                  rows = source.rank > 1 ? source.dim[source.rank - 2] : 1;
    cost = TransposeCost(config_, rows, cols);
    cost.occupancy *= n / (rows * cols);
  } else if (op == Op::kDmaCp) {
    cost = CopyCost(config_, std::max(read, written));
  } else {
    cost = {config_.dma.issue, CyclesOf(config_, config_.dram.latency_ns)};
    RunsOf(op == Op::kDmaLd ? from : to, op == Op::kDmaLd ? source : target, runs_);
    for (const ByteRun& run : runs_)
      request.runs.emplace_back(run.offset, static_cast<int64_t>(run.bytes));
    // What a stride of 0 repeats comes once.
    if (op == Op::kDmaLd && IsDram(from)) {
      for (const ByteRun& run : runs_) counters.dram_read_bytes += static_cast<int64_t>(run.bytes);
    }
  }
  return true;
}

bool Engine::Fill(Core& core, const QueuedInstruction& entry, Cost& cost) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const Walk target = WalkOf(d, false, d.elem());
  MemoryPlace to;
  if (!Find(core, entry.ra, target, kOwn | kAccToo, to) || !TouchWalk(to, target, true))
    return false;
  std::array<std::byte, 8> pattern{};
  const int64_t value = in.number();
  std::memcpy(pattern.data(), &value, 8);
  Walk source = target;
  for (int64_t& stride : source.stride) stride = 0;
  RunsOf(to, target, runs_);
  for (const ByteRun& run : runs_) {
    for (uint64_t at = run.offset; at < run.offset + run.bytes;
         at += static_cast<uint64_t>(target.elem))
      std::memcpy(to.memory->data() + at, pattern.data(), static_cast<std::size_t>(target.elem));
  }
  const int64_t bytes = CountOf(target) * target.elem;
  CountersOf(core).spm_write_bytes += bytes;
  cost = CopyCost(config_, bytes);
  return true;
}

bool Engine::Indexed(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const bool gather = in.opcode() == Op::kDmaGat;
  const Walk source = WalkOf(d, true, d.elem()), target = WalkOf(d, false, d.elem());
  const int64_t rows = source.dim[0];
  int64_t far = 0;
  if (!FarAddress(entry, far)) return false;
  const Walk list{1, {rows}, {4}, 4};
  MemoryPlace indices, near;
  if (!Find(core, entry.rc, list, kOwn, indices) || !TouchWalk(indices, list, false)) return false;
  if (!Find(core, entry.ra, gather ? target : source, kOwn | kAccToo, near) ||
      !TouchWalk(near, gather ? target : source, gather))
    return false;
  const Walk source_row = RowOf(source), target_row = RowOf(target);
  const int64_t far_stride = gather ? source.stride[0] : target.stride[0],
                near_stride = gather ? target.stride[0] : source.stride[0];
  const int joining = gather ? kCopy : static_cast<int>(in.aux & 3);
  std::vector<int32_t> index(static_cast<std::size_t>(rows));
  std::memcpy(index.data(), indices.at(), index.size() * 4);
  for (int64_t i = 0; i < rows; ++i) {
    MemoryPlace row;
    if (!Find(core, far + index[static_cast<std::size_t>(i)] * far_stride,
              gather ? source_row : target_row, kDramToo | kPeers, row))
      return false;
    if ((gather || joining != kCopy) && !TouchWalk(row, gather ? source_row : target_row, false))
      return false;
    if (!gather && !TouchWalk(row, target_row, true)) return false;
    const MemoryPlace here{near.memory, near.offset + static_cast<uint64_t>(i * near_stride)};
    if (gather) {
      Move(row, source_row, here, target_row, kCopy, kSame, Type::kNone);
    } else {
      Move(here, source_row, row, target_row, joining, kSame, in.element());
    }
    RunsOf(row, gather ? source_row : target_row, runs_);
    for (const ByteRun& run : runs_)
      request.runs.emplace_back(run.offset, static_cast<int64_t>(run.bytes));
  }
  const int64_t bytes = CountOf(source) * source.elem;
  Counters& counters = CountersOf(core);
  (gather ? counters.dram_read_bytes : counters.dram_write_bytes) += bytes;
  (gather ? counters.spm_write_bytes : counters.spm_read_bytes) += bytes;
  cost = {config_.dma.issue, CyclesOf(config_, config_.dram.latency_ns)};
  return true;
}

bool Engine::Put(Core& core, const QueuedInstruction& entry, Cost& cost, Completion& completion) {
  const Instruction& in = *entry.in;
  const Descriptor& d = program().descriptors[in.desc];
  const Walk source = WalkOf(d, true, d.elem()), target = WalkOf(d, false, d.elem());
  const auto address = static_cast<uint64_t>(entry.rb);
  if (address < kPeerBase || address >= kHostBase)
    return Fail(ErrorCode::kIllegalAddress,
                "lnk.put writes to the window of a device (0x4000000000 and on)");
  const auto peer = static_cast<int>((address - kPeerBase) >> 32);
  MemoryPlace from, to;
  if (!Find(core, entry.ra, source, kOwn | kAccToo | kDramToo, from) ||
      !Find(core, entry.rb, target, kPeers, to))
    return false;
  const int joining = static_cast<int>(in.aux >> 13 & 3);
  if (!TouchWalk(from, source, false)) return false;
  if (joining != kCopy && !TouchWalk(to, target, false)) return false;
  if (!TouchWalk(to, target, true)) return false;
  Move(from, source, to, target, joining, kSame, in.element());

  const int64_t bytes = CountOf(source) * source.elem;
  CountersOf(core).link_bytes += bytes;
  completion.remote_device = peer;
  completion.remote_semaphore = static_cast<int>(in.aux & 63);
  completion.remote_count = static_cast<int>(in.aux >> 6 & 15);
  completion.remote_core = static_cast<int>(in.aux >> 10 & 7);
  if (completion.remote_core >= config_.cores)
    return Fail(ErrorCode::kIllegalInstruction,
                Str("rcore=", completion.remote_core, ": a device has ", config_.cores, " cores"));
  completion.lost = puts_++ == options_.lose_put;
  // Every link on the way is taken for the whole message, each a hop later than the one before.
  const Cost link = LinkCost(config_, bytes, 1);
  const int64_t length = link.occupancy - config_.dma.issue,
                passing = CyclesOf(config_, config_.link.hop_ns);
  int64_t begin = now_ + config_.dma.issue, sent = begin + length, arrived = sent;
  for (int at = core.device, hops = 0; at != peer && options_.timing; ++hops) {
    const Hop hop = NextHop(config_, at, peer);
    int64_t& free = devices_[static_cast<std::size_t>(at)]->links_free[hop.direction];
    begin = std::max(begin, free);
    free = begin + length;
    if (hops == 0) sent = free;
    arrived = free + link.latency;
    begin += passing;
    at = hop.device;
  }
  cost = {sent - now_, 0};
  completion.latency = arrived - sent;
  return true;
}

}  // namespace lazuli::npu
