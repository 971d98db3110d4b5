// The end of a run: everybody has halted, or everything that is left waits.

#include <algorithm>

#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// Whether the put, with this address in rb, signals this semaphore of a core of this device.
bool SignalsRemotely(const Instruction& in, int64_t rb, int device, int semaphore) {
  return in.opcode() == Op::kLnkPut && static_cast<int>(in.aux & 63) == semaphore &&
         (in.aux >> 6 & 15) != 0 &&
         static_cast<int>((static_cast<uint64_t>(rb) >> 32) - 0x40) == device;
}

}  // namespace

std::string Engine::NameOf(const Waiter& waiter) const {
  return Str(devices_.size() > 1 ? Str("device ", waiter.device, " ") : "",
             config_.cores > 1 ? Str("core ", waiter.core, " ") : "", TrackName(waiter.track));
}

// Any queue that holds something, else a sequencer that has not halted.
std::optional<Engine::Waiter> Engine::FirstWaiter() const {
  for (const auto& device : devices_) {
    for (const auto& core : device->cores) {
      for (int q = 0; q < kQueues; ++q) {
        if (!core->queues[q].entries.empty()) return Waiter{core->device, core->index, 1 + q};
      }
      if (core->state != SequencerState::kHalted)
        return Waiter{core->device, core->index, kSequencerTrack};
    }
  }
  return std::nullopt;
}

// Who could signal the semaphore: an instruction that is queued, else a sequencer that goes on.
std::optional<Engine::Waiter> Engine::SignallerOf(const Core& core, int semaphore,
                                                  const Waiter& self) const {
  std::optional<Waiter> sequencer;
  for (const auto& device : devices_) {
    for (const auto& other : device->cores) {
      for (int q = 0; q < kQueues; ++q) {
        for (const QueuedInstruction& entry : other->queues[q].entries) {
          const bool own = other.get() == &core && entry.in->sig_inc != 0 &&
                           static_cast<int>(entry.in->sig_sem) == semaphore;
          if (own || SignalsRemotely(*entry.in, entry.rb, core.device, semaphore))
            return Waiter{other->device, other->index, 1 + q};
        }
      }
      const Waiter there{other->device, other->index, kSequencerTrack};
      if (!sequencer && other->state != SequencerState::kHalted && there != self &&
          (other.get() == &core || devices_.size() > 1))
        sequencer = there;
    }
  }
  return sequencer;
}

// What somebody waits for, and who could bring it.
Engine::Wait Engine::WaitOf(const Waiter& waiter) const {
  const Core& core = *devices_[static_cast<std::size_t>(waiter.device)]
                          ->cores[static_cast<std::size_t>(waiter.core)];
  const bool unit = waiter.track != kSequencerTrack;
  Wait wait;
  wait.pc = unit ? core.queues[waiter.track - 1].entries.front().pc : core.blocked_pc;
  if (unit || core.state == SequencerState::kSemaphore) {
    const Instruction& in = CodeOf(core)[wait.pc];
    const auto semaphore = static_cast<int>(in.wait_sem);
    wait.text = Str("waits for s", semaphore, ">=", in.wait_val, ", which holds ",
                    core.semaphores[semaphore]);
    wait.next = SignallerOf(core, semaphore, waiter);
  } else if (core.state == SequencerState::kQueueFull) {
    wait.text =
        Str("waits for room in the queue of ", QueueName(static_cast<Queue>(core.blocked_on)));
    wait.next = Waiter{waiter.device, waiter.core, 1 + static_cast<int>(core.blocked_on)};
  } else if (core.state == SequencerState::kFence) {
    wait.text = "waits at a fence";
    for (int q = 0; q < kQueues && !wait.next; ++q) {
      if ((core.blocked_on >> q & 1) != 0 && !core.queues[q].entries.empty())
        wait.next = Waiter{waiter.device, waiter.core, 1 + q};
    }
  }
  return wait;
}

// Follows what waits for what until it closes. The place is that of the first.
Fault Engine::Deadlock() const {
  Fault fault{ErrorCode::kDeadlock, -1, -1, -1, now_, 0, "", "", ""};
  std::vector<Waiter> path;
  for (std::optional<Waiter> at = FirstWaiter(); at;) {
    const bool again = std::find(path.begin(), path.end(), *at) != path.end();
    fault.sentence +=
        Str(path.empty() ? "" : ", ", again ? "which closes the cycle: " : "", NameOf(*at));
    if (again) return fault;
    const Wait wait = WaitOf(*at);
    fault.sentence += Str(" (pc ", wait.pc, ") ", wait.text);
    if (path.empty()) {
      fault.device = at->device;
      fault.core = at->core;
      Locate(program(), wait.pc, fault);
    }
    path.push_back(*at);
    at = wait.next;
  }
  fault.sentence += ", and nobody is left to signal it";
  return fault;
}

std::optional<Fault> Engine::LeftoverTokens() const {
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

std::optional<Fault> Engine::AtEnd() const {
  if (FirstWaiter()) return Deadlock();
  return strict_ != nullptr ? LeftoverTokens() : std::nullopt;
}

}  // namespace lazuli::npu
