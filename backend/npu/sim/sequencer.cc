// The sequencer: scalar code, and instructions into the units' queues.
//
// It runs ahead of the units in a tight loop and stops for them only where it could see, or be
// seen: a full queue, a fence, a semaphore, a scalar of the scratchpad. There it waits until every
// event before its own time has happened.

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

// Of two numbers, modulo 2^64.
inline int64_t Arithmetic(Op op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return Wrap(x + y);
    case Op::kSub:
      return Wrap(x - y);
    case Op::kMul:
      return Wrap(x * y);
    case Op::kAnd:
      return Wrap(x & y);
    case Op::kOr:
      return Wrap(x | y);
    case Op::kXor:
      return Wrap(x ^ y);
    case Op::kShl:
      return Wrap(x << (y & 63));
    case Op::kShr:
      return Wrap(x >> (y & 63));
    case Op::kSar:
      return a >> (y & 63);
    case Op::kMin:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

inline bool IsTaken(Op op, int64_t a, int64_t b) {
  switch (op) {
    case Op::kBeq:
      return a == b;
    case Op::kBne:
      return a != b;
    case Op::kBlt:
      return a < b;
    default:
      return a >= b;
  }
}

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
      value = StateRegister(core, offset / 8);
    } else {
      return Fail(ErrorCode::kIllegalAddress, "there is no such state register");
    }
    core.regs[in.rd] = value;
    return true;
  }
  const int64_t elem = TypeBytes(in.element());
  const Walk walk{1, {1}, {elem}, elem};
  MemoryPlace place;
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
Engine::Progress Engine::Block(Core& core, SequencerState state, uint32_t on) {
  core.state = state;
  core.blocked_on = on;
  core.blocked_pc = core.pc;
  if (core.blocked_since < 0) core.blocked_since = core.time;
  return kWaits;
}

// Scalar instructions that no slice has shown, up to this cycle.
void Engine::ShowScalars(Core& core, int64_t end) {
  const int64_t scalars = core.instructions - core.shown_instructions;
  if (scalars == 0 || end == core.shown_time) return;  // nothing, or the end of a loop
  options_.observer->OnSlice({core.device, core.index, kSequencerTrack, core.shown_pc,
                              &CodeOf(core)[core.shown_pc], core.shown_time, core.shown_time, end,
                              end, Stall::kNone, 0, scalars});
}

// The instruction at pc, which takes one cycle from now on.
void Engine::ShowSequencer(Core& core, Stall stall) {
  if (options_.observer == nullptr) return;
  const bool waited = core.blocked_since >= 0;
  const int64_t ready = waited ? core.blocked_since : core.time;
  ShowScalars(core, ready);
  options_.observer->OnSlice({core.device, core.index, kSequencerTrack, core.pc,
                              &CodeOf(core)[core.pc], ready, core.time, core.time + 1,
                              core.time + 1, waited ? stall : Stall::kNone, 0});
  core.blocked_since = -1;
  core.shown_time = core.time + 1;
  core.shown_instructions = core.instructions + 1;
  core.shown_pc = core.pc + 1;
}

// Goes into the loop, or behind its end.
bool Engine::EnterLoop(Core& core, const Instruction& in, int64_t count, uint32_t& next) {
  if (count < 1) {
    next = core.pc + in.desc + 1;
    return true;
  }
  if (core.loops.size() == kLoopDepth)
    return Fail(ErrorCode::kIllegalInstruction, Str("loops nest deeper than ", kLoopDepth));
  core.loops.push_back({core.pc + 1, core.pc + in.desc, count, 0, in.rd});
  core.regs[in.rd] = 0;
  return true;
}

bool Engine::EndLoop(Core& core, uint32_t& next) {
  if (core.loops.empty() || core.loops.back().end != core.pc)
    return Fail(ErrorCode::kIllegalInstruction, "endl of a loop that was not entered");
  Core::Loop& loop = core.loops.back();
  if (++loop.i < loop.count) {
    core.regs[loop.reg] = loop.i;
    next = loop.begin;
  } else {
    core.loops.pop_back();
  }
  return true;
}

bool Engine::Return(const Core& core, uint32_t& next) {
  const int64_t to = core.regs[kLinkRegister];
  if (to < 0 || to >= static_cast<int64_t>(CodeOf(core).size()))
    return Fail(ErrorCode::kIllegalAddress, Str("r63 is ", to, ", which is not an instruction"));
  next = static_cast<uint32_t>(to);
  return true;
}

int64_t Engine::StateRegister(const Core& core, std::size_t number) const {
  const int64_t values[] = {core.index,    core.device,     core.time,
                            config_.cores, config_.devices, core.instructions};
  return values[number];
}

void Engine::SetSemaphore(Core& core, const Instruction& in) {
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
}

// What the units of these queues have done is known from here on.
void Engine::PassFence(Core& core, uint32_t queues) {
  ShowSequencer(core, Stall::kFence);
  if (strict_ == nullptr) return;
  const int self = AgentOf(core, kSequencerTrack);
  for (int q = 0; q < kQueues; ++q) {
    if ((queues >> q & 1) == 0) continue;
    strict_->JoinAgent(self, AgentOf(core, 1 + q));
    if (q != static_cast<int>(Queue::kMx)) continue;
    strict_->JoinAgent(self, AgentOf(core, kMxWeightsTrack));
    strict_->JoinAgent(self, AgentOf(core, kMxOutTrack));
  }
  core.clock = nullptr;
}

// sem.wait and sem.sig of the sequencer, whose tokens are there.
bool Engine::PassTokens(Core& core, const Instruction& in) {
  TouchSequencer(core);
  if (in.wait_val != 0)
    TakeTokens(core, static_cast<int>(in.wait_sem), static_cast<int>(in.wait_val), kSequencerTrack,
               core.pc);
  ShowSequencer(core, Stall::kSemaphore);
  if (in.sig_inc == 0) return true;
  Completion from;
  from.device = core.device;
  from.core = core.index;
  from.pc = core.pc;
  from.track = kSequencerTrack;
  const Clock clock =
      strict_ != nullptr ? strict_->Snapshot(AgentOf(core, kSequencerTrack)) : nullptr;
  return Signal(core, static_cast<int>(in.sig_sem), static_cast<int>(in.sig_inc), clock, from);
}

// An instruction that others could see, or that could see others; everything before its cycle has
// happened. kWaits: again later.
Engine::Progress Engine::Meet(Core& core, const Instruction& in) {
  Blame(core, core.pc, core.time);
  switch (in.opcode()) {
    case Op::kTrap:
      Fail(ErrorCode::kTrap, Str("the program traps with ", in.number()));
      return kFails;
    case Op::kLds:
    case Op::kSts:
      return LoadScalar(core, in) ? kDone : kFails;
    case Op::kSemSet:
      SetSemaphore(core, in);
      return kDone;
    case Op::kFence:
      if (!Fenced(core, in.imm)) return Block(core, SequencerState::kFence, in.imm);
      PassFence(core, in.imm);
      return kDone;
    default:
      if (core.semaphores[in.wait_sem] < static_cast<int>(in.wait_val)) {
        core.waiters[in.wait_sem] |= 1u << static_cast<int>(Queue::kSq);
        return Block(core, SequencerState::kSemaphore, 0);
      }
      return PassTokens(core, in) ? kDone : kFails;
  }
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
  const std::vector<Instruction>& code = CodeOf(core);
  for (;;) {
    const uint32_t pc = core.pc;
    if (pc >= code.size()) [[unlikely]] {
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
    const Instruction& in = code[pc];
    const Op op = in.opcode();
    const int64_t source = (in.aux & kAuxImmediate) != 0 ? in.number() : r[in.rb];
    uint32_t next = pc + 1;
    int64_t cost = 1;
    switch (op) {
      case Op::kNop:
        break;
      case Op::kHalt:
        core.state = SequencerState::kHalted;
        last_ = std::max(last_, core.time + 1);
        break;
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
      case Op::kSub:
      case Op::kMul:
      case Op::kAnd:
      case Op::kOr:
      case Op::kXor:
      case Op::kShl:
      case Op::kShr:
      case Op::kSar:
      case Op::kMin:
      case Op::kMax:
        r[in.rd] = Arithmetic(op, r[in.ra], source);
        break;
      case Op::kCsr:
        r[in.rd] = StateRegister(core, in.imm);
        break;
      case Op::kBeq:
      case Op::kBne:
      case Op::kBlt:
      case Op::kBge:
        if (!IsTaken(op, r[in.ra], r[in.rb])) break;
        next = in.imm;
        cost = config_.seq.branch;
        break;
      case Op::kCall:
        r[kLinkRegister] = next;
        [[fallthrough]];
      case Op::kJmp:
        next = in.imm;
        cost = config_.seq.branch;
        break;
      case Op::kRet:
        Blame(core, pc, core.time);
        if (!Return(core, next)) return false;
        cost = config_.seq.branch;
        break;
      case Op::kLoop:
        Blame(core, pc, core.time);
        if (!EnterLoop(core, in, source, next)) return false;
        break;
      case Op::kEndl:
        Blame(core, pc, core.time);
        if (!EndLoop(core, next)) return false;
        cost = 0;
        break;
      default: {
        const bool queued = in.unit() != Queue::kSq;
        if (queued && Enqueue(core, in)) {
          ShowSequencer(core, Stall::kQueueFull);
          break;
        }
        if (!synchronous()) return yield();
        const Progress progress =
            queued ? Block(core, SequencerState::kQueueFull, in.queue) : Meet(core, in);
        if (progress != kDone) return progress == kWaits;
        if (op == Op::kLds || op == Op::kSts) cost = config_.seq.spm;
        break;
      }
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
