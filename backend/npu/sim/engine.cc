// Events, queues, semaphores, the DRAM's channel: the machine between the sequencer and the units.

#include "backend/npu/sim/engine.h"

#include <algorithm>

#include "backend/npu/sim/assembler.h"
#include "ir/support/float_mode.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr std::array<std::string_view, kTracks> kTrackNames = {
    "seq", "ld0", "ld1", "ld2", "ld3", "st0",  "st1",   "lk0",
    "lk1", "mx",  "vx",  "xl",  "hd",  "mx.w", "mx.out"};
constexpr int kGrantOrder = 0;  // of a device's channel, before its units
constexpr int kSequencerUnit = 31;

int MatrixTrack(const Instruction& in) {
  return in.opcode() == Op::kMxLdw   ? kMxWeightsTrack
         : in.opcode() == Op::kMxOut ? kMxOutTrack
                                     : kMxTrack;
}

bool Overlaps(const AccUse& use, int64_t first, int64_t last) {
  return use.first <= last && first <= use.last;
}

// Keeps the uses that can still matter, and one for all that are older.
void Remember(std::vector<AccUse>& uses, AccUse use) {
  constexpr std::size_t kMost = 128;
  if (uses.size() == kMost) uses.erase(uses.begin());
  uses.push_back(std::move(use));
}

}  // namespace

std::string_view TrackName(int track) { return kTrackNames[static_cast<std::size_t>(track)]; }

bool Engine::Fail(ErrorCode code, std::string sentence) {
  if (fault_) return false;
  Fault fault{code, -1, -1, -1, now_, 0, "", "", std::move(sentence)};
  if (blamed_ != nullptr) {
    fault.device = blamed_->device;
    fault.core = blamed_->index;
    fault.cycle = std::max(now_, blamed_cycle_);
    if (blamed_pc_ < code_.size()) {
      fault.pc = blamed_pc_;
      fault.instruction = InstructionText(program_, code_[blamed_pc_]);
      if (blamed_pc_ < program_.debug.size()) {
        fault.line = program_.debug[blamed_pc_].line;
        fault.origin = program_.origins[program_.debug[blamed_pc_].origin];
      }
    }
  }
  fault_ = std::move(fault);
  return false;
}

void Engine::Push(int64_t time, int device, int core, int unit, Event::Kind kind,
                  uint32_t payload) {
  const auto order = static_cast<uint32_t>(device) << 16 | static_cast<uint32_t>(core) << 8 |
                     static_cast<uint32_t>(unit);
  heap_.push({time, order, serial_++, kind, payload});
}

bool Engine::Dispatch(const Event& event) {
  Device& device = *devices_[event.order >> 16];
  Core& core = *device.cores[event.order >> 8 & 0xff];
  switch (event.kind) {
    case Event::kUnit:
      return TryStart(core, static_cast<int>(event.payload));
    case Event::kDone:
      return Finish(event.payload);
    case Event::kArrive: {
      Completion completion = std::move(completions_[event.payload]);
      free_completions_.push_back(event.payload);
      Blame(core, completion.pc);
      if (completion.lost)
        return Fail(ErrorCode::kLinkTimeout,
                    Str("the message to device ", completion.remote_device, " never arrives"));
      last_ = std::max(last_, now_);
      if (completion.remote_count == 0) return true;
      return Signal(CoreOf(completion.remote_device, completion.remote_core),
                    completion.remote_semaphore, completion.remote_count, completion.clock,
                    completion);
    }
    case Event::kGrant:
      return Grant(device);
    case Event::kSequencer:
      return RunSequencer(core);
  }
  return true;
}

std::optional<Fault> Engine::Run(const RunOptions& options) {
  if (fault_) return fault_;
  if (!loaded_)
    return Fault{ErrorCode::kBadBinary, -1, -1, -1, -1, 0, "", "", "no program has been loaded"};
  const ScopedFloatMode mode;
  options_ = options;
  if (random_ == 0) random_ = options.jitter;
  stopped_ = false;
  while (!heap_.empty() && !stopped_) {
    const Event event = heap_.top();
    heap_.pop();
    if (event.time < now_) {
      Fail(ErrorCode::kSimBug, "time runs backwards");
      break;
    }
    now_ = event.time;
    if (now_ > config_.watchdog) {
      blamed_ = nullptr;
      Fail(ErrorCode::kWatchdog, Str("the program has run for ", config_.watchdog, " cycles"));
      break;
    }
    if (!Dispatch(event)) break;
  }
  if (!fault_ && !stopped_) {
    fault_ = AtEnd();
    finished_ = !fault_;
  }
  for (auto& device : devices_) {
    device->counters.cycles = last_;
    device->counters.dram_burst_bytes = device->channel->bytes();
    device->counters.instructions = 0;
    for (auto& core : device->cores) device->counters.instructions += core->instructions;
  }
  return fault_;
}

// --- semaphores

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

// --- queues

bool Engine::TryStart(Core& core, int q) {
  UnitQueue& queue = core.queues[q];
  const bool matrix = q == static_cast<int>(Queue::kMx);
  while (!queue.entries.empty() && !queue.transferring) {
    Entry& head = queue.entries.front();
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
    const Entry entry = std::move(head);
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
    if (!Start(core, q, entry)) return false;
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

// The instruction's work is known: its port is taken, and its signal follows those before it.
void Engine::Complete(Core& core, int track, const Entry& entry, int64_t start, Cost cost,
                      Stall stall, int64_t ready, int64_t bytes) {
  Port& port = core.ports[track];
  port.free = start + cost.occupancy;
  port.last_start = start;
  port.last_done = std::max(port.last_done, port.free + cost.latency);
  ++port.in_flight;
  Completion completion;
  completion.device = core.device;
  completion.core = core.index;
  completion.track = track;
  completion.pc = entry.pc;
  completion.in = entry.in;
  if (strict_ != nullptr && entry.in->sig_inc != 0)
    completion.clock = strict_->Snapshot(AgentOf(core, track));
  Counters& counters = CountersOf(core);
  counters.busy[static_cast<std::size_t>(track)] += cost.occupancy;
  ++counters.slices;
  if (options_.observer != nullptr)
    options_.observer->OnSlice({core.device, core.index, track, entry.pc, entry.in, ready, start,
                                port.free, port.last_done, stall, bytes});
  const uint32_t slot = NewCompletion(std::move(completion));
  Push(port.last_done, core.device, core.index, track, Event::kDone, slot);
}

bool Engine::Finish(uint32_t slot) {
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

bool Engine::Start(Core& core, int q, Entry entry) {
  UnitQueue& queue = core.queues[q];
  const Stall stall = queue.stall;
  const int64_t ready = queue.ready_since;
  Device& device = *devices_[static_cast<std::size_t>(core.device)];
  Cost cost;
  DramRequest request;
  Completion remote;
  // What takes longer than the watchdog allows on the fastest unit is not begun.
  const int64_t fastest = std::max({config_.vpu.lanes, config_.mxu.cols, config_.spm.bank_bytes});
  for (const Operand& operand : Row(*entry.in).operands) {
    if (operand.kind == OperandKind::kDescriptor &&
        program_.descriptors[entry.in->desc].elements() / fastest > config_.watchdog)
      return Fail(ErrorCode::kWatchdog,
                  Str("its ", program_.descriptors[entry.in->desc].elements(),
                      " elements take more than ", config_.watchdog, " cycles"));
  }
  switch (entry.in->opcode()) {
    case Op::kDmaLd:
    case Op::kDmaSt:
    case Op::kDmaCp:
    case Op::kDmaH2d:
    case Op::kDmaD2h:
    case Op::kXlTr:
    case Op::kXlPerm:
    case Op::kXlRev:
      if (!Copy(core, entry, cost, &request, remote)) return false;
      break;
    case Op::kDmaFill:
      if (!Fill(core, entry, cost)) return false;
      break;
    case Op::kDmaGat:
    case Op::kDmaSct:
      if (!Indexed(core, entry, cost, &request)) return false;
      break;
    case Op::kLnkPut:
      if (!Put(core, entry, cost, remote)) return false;
      break;
    case Op::kVxRun:
    case Op::kVxRed:
      if (!Vector(core, entry, cost)) return false;
      break;
    case Op::kRng:
      if (!Random(core, entry, cost)) return false;
      break;
    case Op::kMxLdw:
    case Op::kMxSwp:
    case Op::kMxMm:
    case Op::kMxOut:
      return StartMatrix(core, queue, entry);
    default:  // sem.wait, sem.sig
      cost = {1, 0};
      break;
  }
  const int track = 1 + q;
  int64_t bytes = 0;
  for (const auto& run : request.runs) bytes += run.second;
  if (remote.remote_device >= 0) {
    cost = Timed(cost);
    const int64_t arrival = now_ + cost.occupancy + (options_.timing ? remote.latency : 0);
    // Messages of a queue arrive in order.
    Port& port = core.ports[track];
    remote.remote_time = std::max(arrival, port.last_done);
    remote.device = core.device;
    remote.core = core.index;
    remote.track = track;
    remote.pc = entry.pc;
    if (strict_ != nullptr) remote.clock = strict_->Snapshot(AgentOf(core, track));
    const int64_t at = remote.remote_time;
    const uint32_t slot = NewCompletion(std::move(remote));
    Push(at, core.device, core.index, track, Event::kArrive, slot);
  } else if (!request.runs.empty() && options_.timing) {
    cost = Timed(cost);
    request.core = core.index;
    request.queue = q;
    Completion waiting;
    waiting.pc = entry.pc;
    waiting.in = entry.in;
    waiting.latency = cost.latency;
    waiting.slice = {core.device,           core.index, track, entry.pc, entry.in, ready, now_,
                     now_ + cost.occupancy, 0,          stall, bytes};
    if (strict_ != nullptr) waiting.clock = strict_->Snapshot(AgentOf(core, track));
    request.completion = NewCompletion(std::move(waiting));
    queue.transferring = true;
    device.requests.push_back(std::move(request));
    Push(now_ + cost.occupancy, core.device, 0, kGrantOrder, Event::kGrant, 0);
    return true;
  } else {
    cost = Timed(cost);
  }
  Complete(core, track, entry, now_, cost, stall, ready, bytes);
  return true;
}

// What the matrix unit's ports do is known when they take an instruction: planes and accumulators order it by themselves.
bool Engine::StartMatrix(Core& core, UnitQueue& queue, Entry& entry) {
  const int track = MatrixTrack(*entry.in), agent = AgentOf(core, track);
  Port& port = core.ports[track];
  int64_t start = std::max(now_, port.free);
  Cost cost;
  AccUse use{0, -1, 0, nullptr};
  auto after = [&](int64_t time, const Clock& clock) {
    start = std::max(start, time);
    if (strict_ != nullptr) strict_->Join(agent, clock);
  };
  switch (entry.in->opcode()) {
    case Op::kMxLdw:
      after(core.swapped, core.swap_clock);
      // Weights shift through all rows, so with one plane the last sums have to be out.
      if (config_.mxu.shadow_planes == 0) start = std::max(start, core.ports[kMxTrack].last_done);
      if (!LoadWeights(core, entry, cost)) return false;
      cost = Timed(cost);
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
      cost = Timed(cost);
      for (const AccUse& other : core.acc_reads) {
        if (Overlaps(other, use.first, use.last)) after(other.done, other.clock);
      }
      use.done = start + cost.occupancy + cost.latency;
      if (strict_ != nullptr) use.clock = strict_->Snapshot(agent);
      Remember(core.acc_writes, use);
      break;
    }
    default: {
      if (!Results(core, entry, cost, use)) return false;
      cost = Timed(cost);
      for (const AccUse& other : core.acc_writes) {
        if (Overlaps(other, use.first, use.last)) after(other.done, other.clock);
      }
      use.done = start + cost.occupancy;
      if (strict_ != nullptr) use.clock = strict_->Snapshot(agent);
      Remember(core.acc_reads, use);
      break;
    }
  }
  const Stall stall = start > now_ ? Stall::kPort : queue.stall;
  Complete(core, track, entry, start, cost, stall, queue.ready_since, 0);
  return true;
}

// --- the DRAM's channel: grants, round robin over the queues of all cores

bool Engine::Grant(Device& device) {
  const int64_t now = now_ * kTicksPerCycle;
  auto wake = [&] {
    if (device.granting) return;
    device.granting = true;
    Push(CeilDiv(device.channel->free_at(), kTicksPerCycle), device.index, 0, kGrantOrder,
         Event::kGrant, 0);
  };
  if (device.requests.empty()) {
    device.granting = false;
    return true;
  }
  if (device.channel->free_at() > now) {
    wake();
    return true;
  }
  device.granting = false;
  // The next one behind the last that was served, of those that have been issued.
  std::size_t chosen = device.requests.size();
  int best = 0;
  const auto slots = static_cast<int>(config_.cores) * kQueues;
  for (std::size_t i = 0; i < device.requests.size(); ++i) {
    const DramRequest& request = device.requests[i];
    if (completions_[request.completion].slice.end > now_) continue;
    const int slot = request.core * kQueues + request.queue;
    const int distance = (slot - device.last_served - 1 + 2 * slots) % slots;
    if (chosen == device.requests.size() || distance < best) {
      chosen = i;
      best = distance;
    }
  }
  if (chosen == device.requests.size())
    return true;  // each has an event of its own when it is issued
  DramRequest& request = device.requests[chosen];
  device.last_served = request.core * kQueues + request.queue;
  // The channel goes on in the cycle in which it became free.
  const int64_t free = device.channel->free_at();
  int64_t at = free > now - kTicksPerCycle ? free : now;
  int64_t left = config_.dma.grant;
  while (left > 0 && request.at < request.runs.size()) {
    const auto& [offset, bytes] = request.runs[request.at];
    int64_t piece = std::min(left, bytes - request.served);
    // What is cut is cut between bursts.
    const int64_t over =
        static_cast<int64_t>((offset + static_cast<uint64_t>(request.served + piece)) %
                             static_cast<uint64_t>(config_.dram.burst));
    if (request.served + piece < bytes && over < piece) piece -= over;
    at = device.channel->Serve(at, offset + static_cast<uint64_t>(request.served), piece);
    request.served += piece;
    left -= CeilDiv(piece, config_.dram.burst) * config_.dram.burst;
    if (request.served == bytes) {
      ++request.at;
      request.served = 0;
    }
  }
  if (request.at == request.runs.size()) {
    const int64_t end = CeilDiv(at, kTicksPerCycle);
    const Completion waiting = std::move(completions_[request.completion]);
    free_completions_.push_back(static_cast<uint32_t>(request.completion));
    Core& core = *device.cores[static_cast<std::size_t>(request.core)];
    const int q = request.queue;
    device.requests.erase(device.requests.begin() + static_cast<std::ptrdiff_t>(chosen));
    Port& port = core.ports[1 + q];
    port.free = end;
    port.last_start = waiting.slice.start;
    port.last_done = std::max(port.last_done, end + waiting.latency);
    ++port.in_flight;
    core.queues[q].transferring = false;
    Completion done = waiting;
    done.device = core.device;
    done.core = core.index;
    done.track = 1 + q;
    Counters& counters = device.counters;
    counters.busy[1 + static_cast<std::size_t>(q)] += end - waiting.slice.start;
    ++counters.slices;
    if (options_.observer != nullptr) {
      Slice slice = waiting.slice;
      slice.end = end;
      slice.done = port.last_done;
      options_.observer->OnSlice(slice);
    }
    const int64_t done_at = port.last_done;
    Push(done_at, core.device, core.index, 1 + q, Event::kDone, NewCompletion(std::move(done)));
    Push(end, core.device, core.index, 1 + q, Event::kUnit, static_cast<uint32_t>(q));
  }
  if (!device.requests.empty()) wake();
  return true;
}

// --- the end

// Everything that is left waits. Follows what waits for what until it closes.
std::string Engine::WaitCycle(Fault& fault) {
  struct Node {
    int device, core, track;
    bool operator==(const Node&) const = default;
  };
  auto name = [this](const Node& n) {
    return Str(devices_.size() > 1 ? Str("device ", n.device, " ") : "",
               config_.cores > 1 ? Str("core ", n.core, " ") : "", TrackName(n.track));
  };
  // Who could signal the semaphore: an instruction that is queued, else a sequencer that goes on.
  auto signaller = [this](const Core& core, int semaphore,
                          const Node& self) -> std::optional<Node> {
    std::optional<Node> found;
    for (const auto& device : devices_) {
      for (const auto& other : device->cores) {
        for (int q = 0; q < kQueues; ++q) {
          for (const Entry& entry : other->queues[q].entries) {
            const Instruction& in = *entry.in;
            const bool local = other.get() == &core && in.sig_inc != 0 &&
                               static_cast<int>(in.sig_sem) == semaphore;
            const bool remote =
                in.opcode() == Op::kLnkPut && static_cast<int>(in.aux & 63) == semaphore &&
                (in.aux >> 6 & 15) != 0 &&
                static_cast<int>((static_cast<uint64_t>(entry.rb) >> 32) - 0x40) == core.device;
            if (local || remote) return Node{other->device, other->index, 1 + q};
          }
        }
        if (!found && other->state != SequencerState::kHalted &&
            !(Node{other->device, other->index, kSequencerTrack} == self) &&
            (other.get() == &core || devices_.size() > 1))
          found = Node{other->device, other->index, kSequencerTrack};
      }
    }
    return found;
  };
  std::optional<Node> at;
  for (const auto& device : devices_) {
    for (const auto& core : device->cores) {
      for (int q = 0; q < kQueues && !at; ++q) {
        if (!core->queues[q].entries.empty()) at = Node{core->device, core->index, 1 + q};
      }
      if (!at && core->state != SequencerState::kHalted)
        at = Node{core->device, core->index, kSequencerTrack};
    }
  }
  if (!at) return "nothing is left";
  std::vector<Node> path;
  std::string text;
  while (true) {
    const bool again = std::find(path.begin(), path.end(), *at) != path.end();
    text += Str(path.empty() ? "" : ", ", again ? "which closes the cycle: " : "", name(*at));
    if (again) return text;
    path.push_back(*at);
    const Core& core = CoreOf(at->device, at->core);
    std::optional<Node> next;
    uint32_t pc = core.blocked_pc;
    int semaphore = -1;
    if (at->track != kSequencerTrack) {
      const Entry& head = core.queues[at->track - 1].entries.front();
      pc = head.pc;
      semaphore = static_cast<int>(head.in->wait_sem);
      text += Str(" (pc ", pc, ") waits for s", semaphore, ">=", head.in->wait_val,
                  ", which holds ", core.semaphores[semaphore]);
    } else if (core.state == SequencerState::kQueueFull) {
      text += Str(" (pc ", pc, ") waits for room in the queue of ",
                  QueueName(static_cast<Queue>(core.blocked_on)));
      next = Node{at->device, at->core, 1 + static_cast<int>(core.blocked_on)};
    } else if (core.state == SequencerState::kFence) {
      text += Str(" (pc ", pc, ") waits at a fence");
      for (int q = 0; q < kQueues && !next; ++q) {
        if ((core.blocked_on >> q & 1) != 0 && !core.queues[q].entries.empty())
          next = Node{at->device, at->core, 1 + q};
      }
    } else if (core.state == SequencerState::kSemaphore) {
      semaphore = static_cast<int>(code_[pc].wait_sem);
      text += Str(" (pc ", pc, ") waits for s", semaphore, ">=", code_[pc].wait_val,
                  ", which holds ", core.semaphores[semaphore]);
    }
    if (path.size() == 1) {
      fault.device = at->device;
      fault.core = at->core;
      fault.pc = pc;
    }
    if (semaphore >= 0) next = signaller(core, semaphore, *at);
    if (!next) return text + ", and nobody is left to signal it";
    at = next;
  }
}

std::optional<Fault> Engine::AtEnd() {
  bool waits = false;
  for (const auto& device : devices_) {
    for (const auto& core : device->cores) {
      waits = waits || core->state != SequencerState::kHalted;
      for (const UnitQueue& queue : core->queues) waits = waits || !queue.entries.empty();
    }
  }
  if (waits) {
    Fault fault{ErrorCode::kDeadlock, -1, -1, -1, now_, 0, "", "", ""};
    fault.sentence = WaitCycle(fault);
    if (fault.pc >= 0) {
      const auto pc = static_cast<std::size_t>(fault.pc);
      fault.instruction = InstructionText(program_, code_[pc]);
      if (pc < program_.debug.size()) {
        fault.line = program_.debug[pc].line;
        fault.origin = program_.origins[program_.debug[pc].origin];
      }
    }
    return fault;
  }
  if (strict_ == nullptr) return std::nullopt;
  for (const auto& device : devices_) {
    for (const auto& core : device->cores) {
      for (int s = 0; s < kSemaphores; ++s) {
        if (core->semaphores[s] == core->baseline[s]) continue;
        return Fault{ErrorCode::kLeftoverTokens,
                     core->device,
                     core->index,
                     -1,
                     last_,
                     0,
                     "",
                     "",
                     Str("semaphore s", s, " holds ", core->semaphores[s],
                         " at the end, and was set to ", core->baseline[s])};
      }
    }
  }
  return std::nullopt;
}

}  // namespace lazuli::npu
