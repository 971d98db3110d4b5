// Memory as units see it: addresses, bounds, runs, the strict checks.

#include <algorithm>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

std::string HexText(uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  do {
    digits.insert(digits.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + digits;
}

std::string_view MemoryName(MemoryKind kind) {
  constexpr std::string_view kNames[] = {"SPM", "ACC", "DRAM", "the host window"};
  return kNames[static_cast<std::size_t>(kind)];
}

// The lowest and the highest byte (exclusive) of a walk that begins at 0.
struct Extent {
  __int128 low = 0, high = 0;
};
Extent ExtentOf(const Walk& walk) {
  Extent extent;
  for (int d = 0; d < walk.rank; ++d) {
    const __int128 far = static_cast<__int128>(walk.dim[d] - 1) * walk.stride[d];
    (far < 0 ? extent.low : extent.high) += far;
  }
  extent.high += walk.elem;
  return extent;
}

}  // namespace

bool Engine::Find(Core& core, int64_t address, const Walk& walk, uint32_t reach,
                  MemoryPlace& place) {
  const auto at = static_cast<uint64_t>(address);
  auto nowhere = [&](std::string_view why) {
    return Fail(ErrorCode::kIllegalAddress, Str("address ", HexText(at), ": ", why));
  };
  uint32_t needs = kOwn;
  uint64_t offset = at & 0xffffffff;
  if (at < kAccBase) {
    place.memory = &core.spm;
  } else if (at < kInstructionBase) {
    needs = kAccToo;
    place.memory = &core.acc;
  } else if (at >= kCoresBase && at < kDramBase) {
    needs = kCores;
    const uint64_t other = (at - kCoresBase) >> kCoreShift;
    if (other >= static_cast<uint64_t>(config_.cores))
      return nowhere(Str("there is no core ", other));
    offset = (at - kCoresBase) & ((uint64_t{1} << kCoreShift) - 1);
    place.memory = &CoreOf(core.device, static_cast<int>(other)).spm;
  } else if (at >= kDramBase && at < kPeerBase) {
    needs = kDramToo;
    offset = at - kDramBase;
    place.memory = &devices_[static_cast<std::size_t>(core.device)]->dram;
  } else if (at >= kPeerBase && at < kHostBase) {
    needs = kPeers;
    const uint64_t other = (at - kPeerBase) >> 32;
    if (other >= devices_.size()) return nowhere(Str("there is no device ", other));
    SimulatedDevice& peer = *devices_[other];
    place.memory = &peer.dram;
    if (offset >= kPeerSpm) {
      const uint64_t other_core = (offset - kPeerSpm) >> kPeerSpmShift;
      if (other_core >= peer.cores.size())
        return nowhere(Str("device ", other, " has no core ", other_core));
      offset = (offset - kPeerSpm) & ((uint64_t{1} << kPeerSpmShift) - 1);
      place.memory = &peer.cores[other_core]->spm;
    }
  } else if (at >= kHostBase &&
             at - kHostBase < devices_[static_cast<std::size_t>(core.device)]->host.size()) {
    needs = kHostToo;
    offset = at - kHostBase;
    place.memory = &devices_[static_cast<std::size_t>(core.device)]->host;
  } else {
    return nowhere("nothing that can be read or written lies there");
  }
  if ((needs & reach) == 0)
    return nowhere(Str("this unit does not reach ", MemoryName(place.memory->kind),
                       needs == kOwn || needs >= kCores ? " there" : ""));
  if (offset % static_cast<uint64_t>(walk.elem) != 0)
    return Fail(ErrorCode::kMisaligned, Str("address ", HexText(at), " is not a multiple of ",
                                            walk.elem, ", the size of an element"));
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.stride[d] % walk.elem != 0)
      return Fail(ErrorCode::kMisaligned,
                  Str("stride ", walk.stride[d], " is not a multiple of ", walk.elem));
  }
  const Extent extent = ExtentOf(walk);
  const __int128 low = extent.low + static_cast<__int128>(offset),
                 high = extent.high + static_cast<__int128>(offset);
  if (low < 0 || high > static_cast<__int128>(place.memory->size())) {
    const MemoryKind kind = place.memory->kind;
    const ErrorCode code = low >= 0 && kind == MemoryKind::kSpm   ? ErrorCode::kSpmOverflow
                           : low >= 0 && kind == MemoryKind::kAcc ? ErrorCode::kAccOverflow
                                                                  : ErrorCode::kIllegalAddress;
    auto short_of = [](__int128 v) {
      return static_cast<int64_t>(std::clamp<__int128>(v, INT64_MIN, INT64_MAX));
    };
    return Fail(code, Str("the operand at ", HexText(at), " covers bytes ", short_of(low), " to ",
                          short_of(high) - 1, " of ", MemoryName(kind), ", which has ",
                          place.memory->size()));
  }
  place.offset = offset;
  return true;
}

// Innermost dims that lie one behind the other are one run. A dim with stride 0 is walked once.
void Engine::RunsOf(const MemoryPlace& place, const Walk& walk, std::vector<ByteRun>& runs) const {
  runs.clear();
  int rank = 0;
  int64_t dim[5], stride[5];
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.dim[d] == 1 || walk.stride[d] == 0) continue;
    dim[rank] = walk.dim[d];
    stride[rank++] = walk.stride[d];
  }
  int64_t bytes = walk.elem;
  while (rank > 0 && stride[rank - 1] == bytes) bytes *= dim[--rank];
  Steps steps(dim, stride, rank);
  do {
    runs.push_back(
        {place.offset + static_cast<uint64_t>(steps.offset()), static_cast<uint64_t>(bytes)});
  } while (steps.Next());
}

bool Engine::Report(const Strict::Finding& finding, const Memory& memory) {
  if (finding.verdict == Strict::Verdict::kFine) return true;
  const std::string where = Str("byte ", HexText(finding.offset), " of ", MemoryName(memory.kind),
                                memory.kind == MemoryKind::kDram
                                    ? Str(" of device ", memory.device)
                                    : Str(" of device ", memory.device, " core ", memory.core));
  if (finding.verdict == Strict::Verdict::kUninitialised)
    return Fail(ErrorCode::kUninitialisedRead, Str(where, " is read, and nothing has written it"));
  const int64_t core = finding.other_agent / kTracks;
  return Fail(ErrorCode::kDataRace,
              Str(where, " is also ", finding.other_writes ? "written" : "read", " by ",
                  TrackName(finding.other_agent % kTracks), " of device ", core / config_.cores,
                  " core ", core % config_.cores, " at pc ", finding.other_pc, " (",
                  InstructionText(program(), checked_->code[finding.other_pc]),
                  "), and no semaphore orders the two"));
}

bool Engine::TouchWalk(const MemoryPlace& place, const Walk& walk, bool write) {
  Memory& memory = *place.memory;
  if (memory.kind == MemoryKind::kDram && options_.damaged_dram >= 0 && !write) {
    RunsOf(place, walk, other_runs_);
    for (const ByteRun& run : other_runs_) {
      const auto damaged = static_cast<uint64_t>(options_.damaged_dram);
      if (run.offset < damaged + 64 && damaged < run.offset + run.bytes)
        return Fail(ErrorCode::kEcc,
                    Str("64 bytes of DRAM at ", HexText(kDramBase + damaged), " cannot be read"));
    }
  }
  if (options_.observer != nullptr) {
    RunsOf(place, walk, other_runs_);
    for (const ByteRun& run : other_runs_)
      options_.observer->OnAccess(
          {memory.kind, memory.device, memory.core, run.offset, run.bytes, write}, now_);
  }
  if (&memory == counted_) words_.Add(place.offset, walk);
  if (strict_ == nullptr || memory.kind == MemoryKind::kHost) return true;
  RunsOf(place, walk, other_runs_);
  for (const ByteRun& run : other_runs_) {
    const auto finding = write ? strict_->Write(memory, run.offset, run.bytes)
                               : strict_->Read(memory, run.offset, run.bytes);
    if (!Report(finding, memory)) return false;
  }
  return true;
}

bool Engine::TouchBytes(const MemoryPlace& place, uint64_t bytes, bool write) {
  const Memory& memory = *place.memory;
  if (options_.observer != nullptr)
    options_.observer->OnAccess(
        {memory.kind, memory.device, memory.core, place.offset, bytes, write}, now_);
  if (strict_ == nullptr) return true;
  return Report(write ? strict_->Write(*place.memory, place.offset, bytes)
                      : strict_->Read(*place.memory, place.offset, bytes),
                *place.memory);
}

}  // namespace lazuli::npu
