// The event heap: what happens next, and what went wrong.

#include "backend/npu/sim/engine.h"

#include <algorithm>

#include "ir/support/float_mode.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr std::array<std::string_view, kTracks> kTrackNames = {
    "seq", "ld0", "ld1", "ld2", "ld3", "st0",  "st1",   "lk0",
    "lk1", "mx",  "vx",  "xl",  "hd",  "mx.w", "mx.out"};

constexpr std::array kSums = {
    &Counters::cycles,           &Counters::instructions,    &Counters::slices,
    &Counters::macs_int,         &Counters::macs_bf16,       &Counters::macs_f32,
    &Counters::acc_words,        &Counters::spm_read_bytes,  &Counters::spm_write_bytes,
    &Counters::bank_cycles,      &Counters::dram_read_bytes, &Counters::dram_write_bytes,
    &Counters::dram_burst_bytes, &Counters::alu_ops,         &Counters::sfu_ops,
    &Counters::link_bytes,       &Counters::host_bytes};

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
  for (const auto member : kSums) this->*member += other.*member;
  for (std::size_t t = 0; t < busy.size(); ++t) busy[t] += other.busy[t];
  return *this;
}

Counters& Counters::operator-=(const Counters& other) {
  for (const auto member : kSums) this->*member -= other.*member;
  for (std::size_t t = 0; t < busy.size(); ++t) busy[t] -= other.busy[t];
  return *this;
}

std::string_view TrackName(int track) { return kTrackNames[static_cast<std::size_t>(track)]; }

bool Engine::Fail(ErrorCode code, std::string sentence) {
  if (fault_) return false;
  Fault fault{code, -1, -1, -1, now_, 0, "", "", std::move(sentence)};
  if (blamed_ != nullptr) {
    fault.device = blamed_->device;
    fault.core = blamed_->index;
    fault.cycle = std::max(now_, blamed_cycle_);
    Locate(program(), blamed_pc_, fault);
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
  SimulatedDevice& device = *devices_[event.order >> 16];
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

}  // namespace lazuli::npu
