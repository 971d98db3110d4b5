// The sequencer: scalar code, and instructions into the units' queues.
//
// It runs ahead of the units in a tight loop and stops for them only where it could see, or be seen: a full queue, a fence, a
// semaphore, a scalar of the scratchpad. There it waits until every event before its own time has happened.

#include <algorithm>
#include <cstring>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/engine.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

int64_t Wrap(uint64_t value) { return static_cast<int64_t>(value); }

}  // namespace

bool Engine::Fenced(const Core& core, uint32_t mask) const {
  for (int q = 0; q < kQueues; ++q) {
    if ((mask >> q & 1) == 0) continue;
    const UnitQueue& queue = core.queues[q];
    if (!queue.entries.empty() || queue.transferring || core.ports[1 + q].in_flight > 0)
      return false;
    if (q == static_cast<int>(Queue::kMx) &&
        core.ports[kMxWeightsTrack].in_flight + core.ports[kMxOutTrack].in_flight > 0)
      return false;
  }
  return true;
}

void Engine::TouchSequencer(Core& core) {
  if (strict_ == nullptr) return;
  strict_->Begin(AgentOf(core, kSequencerTrack), core.pc);
  core.clock = nullptr;
}

bool Engine::LoadScalar(Core& core, const Instruction& in) {
  const bool load = in.opcode() == Op::kLds;
  const int64_t address =
      Wrap(static_cast<uint64_t>(core.regs[in.ra]) + static_cast<uint64_t>(in.number()));
  const auto at = static_cast<uint64_t>(address);
  if (load && in.element() == Type::kS64 && at >= kCsrBase && at < kCoresBase) {
    const uint64_t offset = at - kCsrBase;
    if (offset % 8 != 0) return Fail(ErrorCode::kMisaligned, "state registers lie 8 bytes apart");
    int64_t value = 0;
    if (offset >= kCsrSemaphores && offset < kCsrSemaphores + 8 * kSemaphores) {
      value = core.semaphores[(offset - kCsrSemaphores) / 8];
    } else if (offset / 8 < CsrNames().size()) {
      const int64_t values[] = {core.index,    core.device,     core.time,
                                config_.cores, config_.devices, core.instructions};
      value = values[offset / 8];
    } else {
      return Fail(ErrorCode::kIllegalAddress, "there is no such state register");
    }
    core.regs[in.rd] = value;
    return true;
  }
  const int64_t elem = TypeBytes(in.element());
  const Walk walk{1, {1}, {elem}, elem};
  Place place;
  TouchSequencer(core);
  if (!Find(core, address, walk, kOwn, place) || !TouchWalk(place, walk, !load)) return false;
  if (!load) {
    std::memcpy(place.at(), &core.regs[in.rd], static_cast<std::size_t>(elem));
    return true;
  }
  core.regs[in.rd] = NumberOf(in.element(), LoadBits(in.element(), place.at()));
  return true;
}

// Into the queue; false: the queue is full, and the sequencer waits.
bool Engine::Enqueue(Core& core, const Instruction& in) {
  UnitQueue& queue = core.queues[in.queue];
  if (queue.entries.size() >= static_cast<std::size_t>(config_.seq.queue_depth)) return false;
  if (strict_ != nullptr && core.clock == nullptr)
    core.clock = strict_->Snapshot(AgentOf(core, kSequencerTrack));
  const int64_t* const r = core.regs;
  queue.entries.push_back(
      {core.pc, &in, r[in.rd], r[in.ra], r[in.rb], r[in.rc], core.time + 1, core.clock});
  if (queue.entries.size() == 1)
    Push(core.time + 1, core.device, core.index, 1 + static_cast<int>(in.queue), Event::kUnit,
         in.queue);
  return true;
}

// The sequencer stops at its pc, until somebody wakes it.
bool Engine::Block(Core& core, SequencerState state, uint32_t on) {
  core.state = state;
  core.blocked_on = on;
  core.blocked_pc = core.pc;
  if (core.blocked_since < 0) core.blocked_since = core.time;
  return true;
}

// Scalar instructions that no slice has shown, up to this cycle.
void Engine::ShowScalars(Core& core, int64_t end) {
  const int64_t scalars = core.instructions - core.shown_instructions;
  if (scalars == 0 || end == core.shown_time) return;  // nothing, or the end of a loop
  options_.observer->OnSlice({core.device, core.index, kSequencerTrack, core.shown_pc,
                              &code_[core.shown_pc], core.shown_time, core.shown_time, end, end,
                              Stall::kNone, 0, scalars});
}

// The instruction at pc, which takes one cycle from now on.
void Engine::ShowSequencer(Core& core, Stall stall) {
  if (options_.observer == nullptr) return;
  const bool waited = core.blocked_since >= 0;
  const int64_t ready = waited ? core.blocked_since : core.time;
  ShowScalars(core, ready);
  options_.observer->OnSlice({core.device, core.index, kSequencerTrack, core.pc, &code_[core.pc],
                              ready, core.time, core.time + 1, core.time + 1,
                              waited ? stall : Stall::kNone, 0});
  core.blocked_since = -1;
  core.shown_time = core.time + 1;
  core.shown_instructions = core.instructions + 1;
  core.shown_pc = core.pc + 1;
}

bool Engine::RunSequencer(Core& core) {
  if (core.state == SequencerState::kHalted) return true;
  core.state = SequencerState::kRuns;
  core.time = std::max(core.time, now_);
  int64_t* const r = core.regs;
  const bool stepping = options_.stop != nullptr;
  const int64_t watchdog = config_.watchdog;
  auto yield = [&] {
    Push(core.time, core.device, core.index, kSequencerUnit, Event::kSequencer, 0);
    return true;
  };
  // Whether everything before now has happened.
  auto synchronous = [&] {
    if (core.time > now_) {
      if (!heap_.empty() && heap_.top().time <= core.time) return false;
      now_ = core.time;
    }
    return true;
  };
  for (;;) {
    const uint32_t pc = core.pc;
    if (pc >= code_.size()) [[unlikely]] {
      Blame(core, pc - 1, core.time);
      return Fail(ErrorCode::kIllegalAddress,
                  "the program runs on behind its last instruction: halt is missing");
    }
    if (core.time > watchdog || core.instructions > watchdog) [[unlikely]] {
      Blame(core, pc, core.time);
      return Fail(ErrorCode::kWatchdog, Str("the program has run for ", watchdog,
                                            core.time > watchdog ? " cycles" : " instructions"));
    }
    if (stepping && !synchronous()) return yield();
    const Instruction& in = code_[pc];
    const int64_t source = (in.aux & kAuxImmediate) != 0 ? in.number() : r[in.rb];
    const auto ua = static_cast<uint64_t>(r[in.ra]), us = static_cast<uint64_t>(source);
    uint32_t next = pc + 1;
    int64_t cost = 1;
    auto branch = [&](bool taken) {
      if (!taken) return;
      next = in.imm;
      cost = config_.seq.branch;
    };
    auto is_fine = [](bool fine) { return fine; };
    switch (in.opcode()) {
      case Op::kNop:
        break;
      case Op::kHalt:
        core.state = SequencerState::kHalted;
        last_ = std::max(last_, core.time + 1);
        break;
      case Op::kTrap:
        Blame(core, pc, core.time);
        if (!synchronous()) return yield();
        return Fail(ErrorCode::kTrap, Str("the program traps with ", in.number()));
      case Op::kMark:
        if (options_.observer != nullptr)
          options_.observer->OnMark(core.device, core.index, in.number(), core.time);
        break;
      case Op::kMovi:
        r[in.rd] = in.number();
        break;
      case Op::kMovh:
        r[in.rd] = Wrap((static_cast<uint64_t>(r[in.rd]) & 0xffffffff) |
                        static_cast<uint64_t>(in.imm) << 32);
        break;
      case Op::kMov:
        r[in.rd] = r[in.ra];
        break;
      case Op::kAdd:
        r[in.rd] = Wrap(ua + us);
        break;
      case Op::kSub:
        r[in.rd] = Wrap(ua - us);
        break;
      case Op::kMul:
        r[in.rd] = Wrap(ua * us);
        break;
      case Op::kAnd:
        r[in.rd] = Wrap(ua & us);
        break;
      case Op::kOr:
        r[in.rd] = Wrap(ua | us);
        break;
      case Op::kXor:
        r[in.rd] = Wrap(ua ^ us);
        break;
      case Op::kShl:
        r[in.rd] = Wrap(ua << (us & 63));
        break;
      case Op::kShr:
        r[in.rd] = Wrap(ua >> (us & 63));
        break;
      case Op::kSar:
        r[in.rd] = r[in.ra] >> (us & 63);
        break;
      case Op::kMin:
        r[in.rd] = std::min(r[in.ra], source);
        break;
      case Op::kMax:
        r[in.rd] = std::max(r[in.ra], source);
        break;
      case Op::kLds:
      case Op::kSts:
        if (!synchronous()) return yield();
        Blame(core, pc, core.time);
        if (!is_fine(LoadScalar(core, in))) return false;
        cost = config_.seq.spm;
        break;
      case Op::kCsr: {
        const int64_t values[] = {core.index,    core.device,     core.time,
                                  config_.cores, config_.devices, core.instructions};
        r[in.rd] = values[in.imm];
        break;
      }
      case Op::kBeq:
        branch(r[in.ra] == r[in.rb]);
        break;
      case Op::kBne:
        branch(r[in.ra] != r[in.rb]);
        break;
      case Op::kBlt:
        branch(r[in.ra] < r[in.rb]);
        break;
      case Op::kBge:
        branch(r[in.ra] >= r[in.rb]);
        break;
      case Op::kJmp:
        branch(true);
        break;
      case Op::kCall:
        r[kLinkRegister] = next;
        branch(true);
        break;
      case Op::kRet:
        if (r[kLinkRegister] < 0 || r[kLinkRegister] >= static_cast<int64_t>(code_.size())) {
          Blame(core, pc, core.time);
          return Fail(ErrorCode::kIllegalAddress,
                      Str("r63 is ", r[kLinkRegister], ", which is no instruction"));
        }
        next = static_cast<uint32_t>(r[kLinkRegister]);
        cost = config_.seq.branch;
        break;
      case Op::kLoop:
        if (source < 1) {
          next = pc + in.desc + 1;
          break;
        }
        if (core.loops.size() == kLoopDepth) {
          Blame(core, pc, core.time);
          return Fail(ErrorCode::kIllegalInstruction, Str("loops nest deeper than ", kLoopDepth));
        }
        core.loops.push_back({pc + 1, pc + in.desc, source, 0, in.rd});
        r[in.rd] = 0;
        break;
      case Op::kEndl: {
        if (core.loops.empty() || core.loops.back().end != pc) {
          Blame(core, pc, core.time);
          return Fail(ErrorCode::kIllegalInstruction, "endl of a loop that was not entered");
        }
        Core::Loop& loop = core.loops.back();
        cost = 0;
        if (++loop.i < loop.count) {
          r[loop.reg] = loop.i;
          next = loop.begin;
        } else {
          core.loops.pop_back();
        }
        break;
      }
      case Op::kSemSet:
        if (!synchronous()) return yield();
        core.semaphores[in.rd] = core.baseline[in.rd] = static_cast<int>(in.imm);
        if (strict_ != nullptr) {
          core.tokens[in.rd].tokens.clear();
          strict_->Put(core.tokens[in.rd], static_cast<int>(in.imm),
                       strict_->Snapshot(AgentOf(core, kSequencerTrack)));
        }
        for (int q = 0; q < kQueues; ++q) {
          if ((core.waiters[in.rd] >> q & 1) != 0)
            Push(core.time, core.device, core.index, 1 + q, Event::kUnit, static_cast<uint32_t>(q));
        }
        core.waiters[in.rd] = 0;
        break;
      case Op::kFence:
        if (!synchronous()) return yield();
        if (!Fenced(core, in.imm)) return Block(core, SequencerState::kFence, in.imm);
        ShowSequencer(core, Stall::kFence);
        if (strict_ != nullptr) {
          for (int q = 0; q < kQueues; ++q) {
            if ((in.imm >> q & 1) == 0) continue;
            strict_->JoinAgent(AgentOf(core, kSequencerTrack), AgentOf(core, 1 + q));
            if (q != static_cast<int>(Queue::kMx)) continue;
            strict_->JoinAgent(AgentOf(core, kSequencerTrack), AgentOf(core, kMxWeightsTrack));
            strict_->JoinAgent(AgentOf(core, kSequencerTrack), AgentOf(core, kMxOutTrack));
          }
          core.clock = nullptr;
        }
        break;
      case Op::kSemWait:
      case Op::kSemSig:
        if (in.unit() == Queue::kSq) {
          if (!synchronous()) return yield();
          if (core.semaphores[in.wait_sem] < static_cast<int>(in.wait_val)) {
            core.waiters[in.wait_sem] |= 1u << static_cast<int>(Queue::kSq);
            return Block(core, SequencerState::kSemaphore, 0);
          }
          Blame(core, pc, core.time);
          TouchSequencer(core);
          if (in.wait_val != 0)
            TakeTokens(core, static_cast<int>(in.wait_sem), static_cast<int>(in.wait_val),
                       kSequencerTrack, pc);
          ShowSequencer(core, Stall::kSemaphore);
          if (in.sig_inc != 0) {
            Completion from;
            from.device = core.device;
            from.core = core.index;
            from.pc = pc;
            from.track = kSequencerTrack;
            const Clock clock =
                strict_ != nullptr ? strict_->Snapshot(AgentOf(core, kSequencerTrack)) : nullptr;
            if (!Signal(core, static_cast<int>(in.sig_sem), static_cast<int>(in.sig_inc), clock,
                        from))
              return false;
          }
          break;
        }
        [[fallthrough]];
      default:
        if (!Enqueue(core, in)) {
          if (!synchronous()) return yield();
          return Block(core, SequencerState::kQueueFull, in.queue);
        }
        ShowSequencer(core, Stall::kQueueFull);
        break;
    }
    r[0] = 0;
    core.pc = next;
    core.time += cost;
    ++core.instructions;
    if (stepping && options_.stop({core.device, core.index, kSequencerTrack, pc, core.time - cost}))
        [[unlikely]] {
      stopped_ = true;
      if (core.state != SequencerState::kHalted) yield();
      return true;
    }
    if (core.state == SequencerState::kHalted) {
      if (options_.observer != nullptr) ShowScalars(core, core.time);
      return true;
    }
  }
}

}  // namespace lazuli::npu
