// Queues and semaphores: when an instruction starts, when it is done, and whom that wakes.

#include <algorithm>

#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

int MatrixTrack(const Instruction& in) {
  return in.opcode() == Op::kMxLdw   ? kMxWeightsTrack
         : in.opcode() == Op::kMxOut ? kMxOutTrack
                                     : kMxTrack;
}

BankRank RankOf(int queue) {
  return queue == static_cast<int>(Queue::kVx)   ? BankRank::kVector
         : queue == static_cast<int>(Queue::kXl) ? BankRank::kTransposer
                                                 : BankRank::kCopy;
}

bool Overlaps(const AccUse& use, int64_t first, int64_t last) {
  return use.first <= last && first <= use.last;
}

// The last uses one by one, and those before as one. They are in order, so the later one's clock
// knows the earlier one.
void Remember(std::vector<AccUse>& uses, AccUse use) {
  constexpr std::size_t kMost = 128;
  if (uses.size() == kMost) {
    AccUse& oldest = uses[1];
    oldest.first = std::min(oldest.first, uses[0].first);
    oldest.last = std::max(oldest.last, uses[0].last);
    oldest.done = std::max(oldest.done, uses[0].done);
    uses.erase(uses.begin());
  }
  uses.push_back(std::move(use));
}

}  // namespace

bool Engine::Signal(Core& core, int semaphore, int count, const Clock& clock,
                    const Completion& from) {
  int& value = core.semaphores[semaphore];
  value += count;
  if (value > 255)
    return Fail(ErrorCode::kSemOverflow,
                Str("semaphore s", semaphore, " of core ", core.index, " would hold ", value));
  if (strict_ != nullptr) strict_->Put(core.tokens[semaphore], count, clock);
  if (options_.observer != nullptr)
    options_.observer->OnSignal(core.device, core.index, semaphore, value, now_, from.track,
                                from.pc);
  uint32_t& waiters = core.waiters[semaphore];
  for (int q = 0; q < kQueues; ++q) {
    if ((waiters >> q & 1) != 0)
      Push(now_, core.device, core.index, 1 + q, Event::kUnit, static_cast<uint32_t>(q));
  }
  if ((waiters >> static_cast<int>(Queue::kSq) & 1) != 0)
    Push(now_, core.device, core.index, kSequencerUnit, Event::kSequencer, 0);
  waiters = 0;
  return true;
}

void Engine::TakeTokens(Core& core, int semaphore, int count, int track, uint32_t pc) {
  core.semaphores[semaphore] -= count;
  if (strict_ != nullptr) strict_->Take(AgentOf(core, track), core.tokens[semaphore], count);
  if (track == kSequencerTrack) core.clock = nullptr;
  if (options_.observer != nullptr)
    options_.observer->OnWait(core.device, core.index, semaphore, core.semaphores[semaphore], now_,
                              track, pc);
}

bool Engine::TryStart(Core& core, int q) {
  UnitQueue& queue = core.queues[q];
  const bool matrix = q == static_cast<int>(Queue::kMx);
  while (!queue.entries.empty() && !queue.transferring) {
    QueuedInstruction& head = queue.entries.front();
    const int track = matrix ? MatrixTrack(*head.in) : 1 + q;
    const Port& port = core.ports[track];
    // The matrix unit's ports take the next instruction when the one before has begun.
    const int64_t earliest = std::max(head.arrival, matrix ? port.last_start : port.free);
    if (earliest > now_) {
      Push(earliest, core.device, core.index, 1 + q, Event::kUnit, static_cast<uint32_t>(q));
      return true;
    }
    const Instruction& in = *head.in;
    if (!queue.waits_semaphore) queue.ready_since = earliest;
    if (core.semaphores[in.wait_sem] < static_cast<int>(in.wait_val)) {
      queue.waits_semaphore = true;
      core.waiters[in.wait_sem] |= 1u << q;
      return true;
    }
    queue.stall = queue.waits_semaphore ? Stall::kSemaphore : Stall::kNone;
    queue.waits_semaphore = false;
    const QueuedInstruction entry = std::move(head);
    queue.entries.pop_front();
    if (core.state == SequencerState::kQueueFull && core.blocked_on == static_cast<uint32_t>(q)) {
      core.state = SequencerState::kRuns;
      Push(now_, core.device, core.index, kSequencerUnit, Event::kSequencer, 0);
    }
    Blame(core, entry.pc);
    if (strict_ != nullptr) {
      const int agent = AgentOf(core, track);
      strict_->Join(agent, entry.dispatched);
    }
    if (in.wait_val != 0)
      TakeTokens(core, static_cast<int>(in.wait_sem), static_cast<int>(in.wait_val), track,
                 entry.pc);
    if (strict_ != nullptr) strict_->Begin(AgentOf(core, track), entry.pc);
    if (options_.observer != nullptr ? !StartObserved(core, q, entry) : !Start(core, q, entry))
      return false;
    if (options_.stop != nullptr &&
        options_.stop({core.device, core.index, track, entry.pc, now_})) {
      stopped_ = true;
      Push(now_, core.device, core.index, 1 + q, Event::kUnit, static_cast<uint32_t>(q));
      return true;
    }
  }
  return true;
}

Cost Engine::Timed(Cost cost) {
  if (!options_.timing) return {};
  if (random_ != 0) {  // xorshift64*
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    const uint64_t draw = random_ * 0x2545F4914F6CDD1D;
    cost.occupancy += static_cast<int64_t>(draw >> 56);
    cost.latency += static_cast<int64_t>(draw >> 48 & 0xff);
  }
  return cost;
}

uint32_t Engine::NewCompletion(Completion completion) {
  if (free_completions_.empty()) {
    completions_.push_back(std::move(completion));
    return static_cast<uint32_t>(completions_.size() - 1);
  }
  const uint32_t slot = free_completions_.back();
  free_completions_.pop_back();
  completions_[slot] = std::move(completion);
  return slot;
}

// The instruction's work is known: its port is taken until the end of the slice, and its signal
// follows those before it.
void Engine::Complete(Core& core, const Slice& slice, int64_t latency) {
  Port& port = core.ports[slice.track];
  port.free = slice.end;
  port.latency = latency;
  port.last_start = slice.start;
  port.last_done = std::max(port.last_done, port.free + latency);
  ++port.in_flight;
  Completion completion;
  completion.device = core.device;
  completion.core = core.index;
  completion.track = slice.track;
  completion.pc = slice.pc;
  completion.in = slice.instruction;
  if (strict_ != nullptr && slice.instruction->sig_inc != 0)
    completion.clock = strict_->Snapshot(AgentOf(core, slice.track));
  Counters& counters = CountersOf(core);
  counters.busy[static_cast<std::size_t>(slice.track)] += slice.end - slice.start;
  ++counters.slices;
  if (options_.observer != nullptr) {
    Slice shown = slice;
    shown.done = port.last_done;
    options_.observer->OnSlice(shown);
  }
  completion.due = port.last_done;
  port.completion = NewCompletion(std::move(completion));
  Push(port.last_done, core.device, core.index, slice.track, Event::kDone, port.completion);
}

// Until when an instruction lasts that takes these words; those that wait for it are put off.
int64_t Engine::TakeBanks(Core& core, int track, BankRank rank, int64_t start, int64_t clocks,
                          const BankWords& words) {
  if (!options_.timing || words.empty()) return start + clocks;
  int64_t since = now_;
  for (const UnitQueue& queue : core.queues) {
    if (queue.transferring) since = std::min(since, queue.transfer_start);
  }
  const int64_t end = core.banks.Take(track, rank, start, clocks, words, now_, since, delayed_);
  CountersOf(core).bank_cycles += end - start - clocks;
  for (const Banks::Delay& delay : delayed_) PutOff(core, delay);
  return end;
}

// The last instruction of a track lasts longer. Its event comes at the old time, and finds that.
void Engine::PutOff(Core& core, const Banks::Delay& delay) {
  Port& port = core.ports[delay.track];
  const int64_t later = delay.end - port.free;
  port.free = delay.end;
  port.last_done = std::max(port.last_done, port.free + port.latency);
  completions_[port.completion].due = port.last_done;
  Counters& counters = CountersOf(core);
  counters.bank_cycles += later;
  counters.busy[static_cast<std::size_t>(delay.track)] += later;
  if (options_.observer != nullptr)
    options_.observer->OnDelay(core.device, core.index, delay.track, port.free, port.last_done);
}

bool Engine::Finish(uint32_t slot) {
  if (const Completion& waiting = completions_[slot]; waiting.due > now_) {
    Push(waiting.due, waiting.device, waiting.core, waiting.track, Event::kDone, slot);
    return true;
  }
  const Completion completion = std::move(completions_[slot]);
  free_completions_.push_back(slot);
  Core& core = CoreOf(completion.device, completion.core);
  --core.ports[completion.track].in_flight;
  last_ = std::max(last_, now_);
  Blame(core, completion.pc);
  const Instruction& in = *completion.in;
  if (in.sig_inc != 0 && !Signal(core, static_cast<int>(in.sig_sem), static_cast<int>(in.sig_inc),
                                 completion.clock, completion))
    return false;
  if (core.state == SequencerState::kFence && Fenced(core, core.blocked_on)) {
    core.state = SequencerState::kRuns;
    Push(now_, core.device, core.index, kSequencerUnit, Event::kSequencer, 0);
  }
  return true;
}

// What takes longer than the watchdog allows on the fastest unit is not begun.
bool Engine::FitsWatchdog(const Instruction& in) {
  const int64_t fastest = std::max({config_.vpu.lanes, config_.mxu.cols, config_.spm.bank_bytes});
  for (const Operand& operand : Row(in).operands) {
    if (operand.kind != OperandKind::kDescriptor) continue;
    const int64_t elements = program().descriptors[in.desc].elements();
    if (elements / fastest > config_.watchdog)
      return Fail(ErrorCode::kWatchdog,
                  Str("its ", elements, " elements take more than ", config_.watchdog, " cycles"));
  }
  return true;
}

// Does the work of an instruction of any unit but the matrix unit.
bool Engine::Execute(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request,
                     Completion& remote) {
  switch (entry.in->opcode()) {
    case Op::kDmaLd:
    case Op::kDmaSt:
    case Op::kDmaCp:
    case Op::kDmaH2d:
    case Op::kDmaD2h:
    case Op::kXlTr:
    case Op::kXlPerm:
    case Op::kXlRev:
      return Copy(core, entry, cost, request);
    case Op::kDmaFill:
      return Fill(core, entry, cost);
    case Op::kDmaGat:
    case Op::kDmaSct:
      return Indexed(core, entry, cost, request);
    case Op::kLnkPut:
      return Put(core, entry, cost, remote);
    case Op::kVxRun:
    case Op::kVxRed:
      return Vector(core, entry, cost);
    case Op::kRng:
      return Random(core, entry, cost);
    default:  // sem.wait, sem.sig
      cost = {1, 0};
      return true;
  }
}

// With what it counts told to the observer.
bool Engine::StartObserved(Core& core, int q, const QueuedInstruction& entry) {
  const Counters before = CountersOf(core);
  if (!Start(core, q, entry)) return false;
  Counters work = CountersOf(core);
  work -= before;
  work.slices = work.bank_cycles = 0;
  work.busy.fill(0);
  options_.observer->OnWork(core.device, core.index, entry.pc, work);
  return true;
}

bool Engine::Start(Core& core, int q, const QueuedInstruction& entry) {
  UnitQueue& queue = core.queues[q];
  if (!FitsWatchdog(*entry.in)) return false;
  counted_ = options_.timing ? &core.spm : nullptr;
  words_.Clear();
  if (q == static_cast<int>(Queue::kMx) && Row(*entry.in).queue == QueueKind::kMx)
    return StartMatrix(core, queue, entry);
  const int track = 1 + q;
  Cost cost;
  DramRequest request;
  Completion remote;
  if (!Execute(core, entry, cost, request, remote)) return false;
  cost = Timed(cost);
  Slice slice{core.device, core.index,        track, entry.pc,
              entry.in,    queue.ready_since, now_,  now_ + cost.occupancy,
              0,           queue.stall,       0};
  for (const auto& [offset, bytes] : request.runs) slice.bytes += bytes;
  if (remote.remote_device >= 0) {
    Send(core, slice, std::move(remote));
  } else if (!request.runs.empty() && options_.timing) {
    Transfer(core, q, slice, cost.latency, std::move(request));
    return true;
  } else {
    slice.end = TakeBanks(core, track, RankOf(q), now_, cost.occupancy, words_);
  }
  Complete(core, slice, cost.latency);
  return true;
}

// A message is under way to another device. Those of a queue arrive in order.
void Engine::Send(Core& core, const Slice& slice, Completion message) {
  message.device = core.device;
  message.core = core.index;
  message.track = slice.track;
  message.pc = slice.pc;
  if (strict_ != nullptr) message.clock = strict_->Snapshot(AgentOf(core, slice.track));
  const int64_t arrival = slice.end + (options_.timing ? message.latency : 0);
  const int64_t at = std::max(arrival, core.ports[slice.track].last_done);
  Push(at, core.device, core.index, slice.track, Event::kArrive, NewCompletion(std::move(message)));
}

// The queue waits until the channel has served the request, which begins when the copy is issued.
void Engine::Transfer(Core& core, int q, const Slice& slice, int64_t latency, DramRequest request) {
  request.core = core.index;
  request.queue = q;
  request.pc = slice.pc;
  request.in = slice.instruction;
  request.ready = slice.ready;
  request.start = slice.start;
  request.issued = slice.end;
  request.latency = latency;
  request.bytes = slice.bytes;
  request.stall = slice.stall;
  request.words = words_;
  core.queues[q].transferring = true;
  core.queues[q].transfer_start = slice.start;
  devices_[static_cast<std::size_t>(core.device)]->requests.push_back(std::move(request));
  Push(slice.end, core.device, 0, kGrantOrder, Event::kGrant, 0);
}

// What the matrix unit's ports do is known when they take an instruction: planes and accumulators
// order it by themselves.
bool Engine::StartMatrix(Core& core, const UnitQueue& queue, const QueuedInstruction& entry) {
  const int track = MatrixTrack(*entry.in), agent = AgentOf(core, track);
  Port& port = core.ports[track];
  int64_t start = std::max(now_, port.free);
  Cost cost;
  AccUse use{0, -1, 0, nullptr};
  auto after = [&](int64_t time, const Clock& clock) {
    start = std::max(start, time);
    if (strict_ != nullptr) strict_->Join(agent, clock);
  };
  // The start is known.
  auto take_banks = [&] {
    cost = Timed(cost);
    cost.occupancy =
        TakeBanks(core, track, BankRank::kMatrix, start, cost.occupancy, words_) - start;
  };
  switch (entry.in->opcode()) {
    case Op::kMxLdw:
      after(core.swapped, core.swap_clock);
      // Weights shift through all rows, so with one plane the last sums have to be out.
      if (config_.mxu.shadow_planes == 0) start = std::max(start, core.ports[kMxTrack].last_done);
      if (!LoadWeights(core, entry, cost)) return false;
      take_banks();
      core.shadow_done = start + cost.occupancy + cost.latency;
      break;
    case Op::kMxSwp:
      if (core.shadow.type == Type::kNone)
        return Fail(ErrorCode::kUninitialisedRead,
                    "the shadow plane has no weights: mx.ldw comes before mx.swp");
      start = std::max(start, core.shadow_done);
      if (strict_ != nullptr) strict_->JoinAgent(agent, AgentOf(core, kMxWeightsTrack));
      std::swap(core.shadow, core.active);
      core.shadow.type = Type::kNone;
      core.swapped = start;
      if (strict_ != nullptr) core.swap_clock = strict_->Snapshot(agent);
      break;
    case Op::kMxMm: {
      if (!Multiply(core, entry, cost, use)) return false;
      for (const AccUse& other : core.acc_reads) {
        if (Overlaps(other, use.first, use.last)) after(other.done, other.clock);
      }
      take_banks();
      use.done = start + cost.occupancy + cost.latency;
      if (strict_ != nullptr) use.clock = strict_->Snapshot(agent);
      Remember(core.acc_writes, use);
      break;
    }
    default: {
      if (!Results(core, entry, cost, use)) return false;
      for (const AccUse& other : core.acc_writes) {
        if (Overlaps(other, use.first, use.last)) after(other.done, other.clock);
      }
      take_banks();
      use.done = start + cost.occupancy;
      if (strict_ != nullptr) use.clock = strict_->Snapshot(agent);
      Remember(core.acc_reads, use);
      break;
    }
  }
  const Stall stall = start > now_ ? Stall::kPort : queue.stall;
  Complete(core,
           {core.device, core.index, track, entry.pc, entry.in, queue.ready_since, start,
            start + cost.occupancy, 0, stall, 0},
           cost.latency);
  return true;
}

}  // namespace lazuli::npu
