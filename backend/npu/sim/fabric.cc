#include "backend/npu/sim/fabric.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// What each device does, told to its own observer, as if it were alone.
class Divided final : public Observer {
 public:
  explicit Divided(std::size_t devices) : observers_(devices) {}
  void Add(int device, std::unique_ptr<Observer> observer) {
    observers_[static_cast<std::size_t>(device)] = std::move(observer);
  }

  void OnSlice(const Slice& slice) override {
    Slice shown = slice;
    shown.device = 0;
    if (Observer* const o = Of(slice.device)) o->OnSlice(shown);
  }
  void OnDelay(int device, int core, int track, int64_t end, int64_t done) override {
    if (Observer* const o = Of(device)) o->OnDelay(0, core, track, end, done);
  }
  void OnWork(int device, int core, uint32_t pc, const Counters& work) override {
    if (Observer* const o = Of(device)) o->OnWork(0, core, pc, work);
  }
  void OnSignal(int device, int core, int semaphore, int value, int64_t cycle, int track,
                uint32_t pc) override {
    if (Observer* const o = Of(device)) o->OnSignal(0, core, semaphore, value, cycle, track, pc);
  }
  void OnWait(int device, int core, int semaphore, int value, int64_t cycle, int track,
              uint32_t pc) override {
    if (Observer* const o = Of(device)) o->OnWait(0, core, semaphore, value, cycle, track, pc);
  }
  void OnMark(int device, int core, int64_t number, int64_t cycle) override {
    if (Observer* const o = Of(device)) o->OnMark(0, core, number, cycle);
  }
  void OnAccess(const Access& access, int64_t cycle) override {
    Access shown = access;
    shown.device = 0;
    if (Observer* const o = Of(access.device)) o->OnAccess(shown, cycle);
  }

 private:
  Observer* Of(int device) const { return observers_[static_cast<std::size_t>(device)].get(); }
  std::vector<std::unique_ptr<Observer>> observers_;
};

bool SameProgram(const Program& a, const Program& b) {
  return a.text == b.text && a.constants == b.constants && a.symbols.size() == b.symbols.size();
}

ir::Rendezvous::Members MembersOf(const std::vector<int>& devices) {
  return {devices.begin(), devices.end()};
}

}  // namespace

Fabric::Fabric(std::vector<std::shared_ptr<Card>> cards)
    : cards_(std::move(cards)), meetings_([this](int64_t device) {
        return cards_[static_cast<std::size_t>(device)]->name();
      }) {}
Fabric::~Fabric() = default;

Fault Fabric::TimedOut(const CardPart& part, const std::string& sentence) const {
  return {ErrorCode::kLinkTimeout,
          part.device,
          -1,
          -1,
          -1,
          0,
          "",
          "",
          Str(part.what, " of ", meetings_.Names(MembersOf(part.members)), ": ", sentence)};
}

void Fabric::Miss(const std::vector<int>& members, int device, std::string_view why) {
  meetings_.Miss(MembersOf(members), device, why);
}

std::optional<Fault> Fabric::Run(const CardPart& part, std::chrono::milliseconds patience) {
  // Shared by all: the last to come sets the fault of the first one's part.
  struct ArrivedPart {
    const CardPart* part;
    std::optional<Fault> fault;
  } mine{&part, {}};
  const auto [why, timed_out] =
      meetings_.Meet({.members = MembersOf(part.members), .member = part.device, .part = &mine},
                     {patience, "NPU_LINK_TIMEOUT"}, [this](const ir::Rendezvous::Parts& all) {
                       std::vector<const CardPart*> parts;
                       for (const auto& [device, arrived] : all)
                         parts.push_back(static_cast<const ArrivedPart*>(arrived)->part);
                       const std::optional<Fault> fault = RunTogether(parts);
                       for (const auto& [device, arrived] : all)
                         static_cast<ArrivedPart*>(arrived)->fault = fault;
                     });
  return why.empty() ? mine.fault : TimedOut(part, why);
}

std::optional<Fault> Fabric::Disagreement(const std::vector<const CardPart*>& parts) const {
  const CardPart& first = *parts[0];
  for (const CardPart* const part : parts) {
    if (SameProgram(part->program->program, first.program->program)) continue;
    return TimedOut(
        first,
        Str(cards_[static_cast<std::size_t>(first.device)]->name(), " is at ", first.what, ", ",
            cards_[static_cast<std::size_t>(part->device)]->name(), " is at ", part->what));
  }
  return std::nullopt;
}

absl::Status Fabric::Build() {
  if (engine_ != nullptr) return absl::OkStatus();
  Config config = cards_[0]->config();
  config.devices = static_cast<int64_t>(cards_.size());
  auto engine = std::make_unique<Engine>(config);
  std::vector<const Memory*> drams;
  for (const auto& card : cards_) drams.push_back(&card->engine_->devices_[0]->dram);
  LAZULI_RETURN_IF_ERROR(engine->BuildOver(drams));
  engine_ = std::move(engine);
  return absl::OkStatus();
}

// With all cards held: nobody else runs on them. The parts are by ascending device.
std::optional<Fault> Fabric::RunTogether(const std::vector<const CardPart*>& parts) {
  const std::lock_guard running(running_);
  std::vector<std::unique_lock<ir::ForkMutex>> held;
  for (const CardPart* const part : parts)  // ascending, so that no two wait for each other
    held.emplace_back(cards_[static_cast<std::size_t>(part->device)]->running_);
  std::optional<Fault> fault = Disagreement(parts);
  return fault ? fault : Launch(parts);
}

std::optional<Fault> Fabric::Launch(const std::vector<const CardPart*>& all) {
  if (const absl::Status status = Build(); !status.ok())
    return Fault{ErrorCode::kOomDram, -1, -1, -1, -1, 0, "", "", std::string(Message(status))};
  double begin = 0;
  std::map<int, int64_t> launches;
  std::vector<Engine::DeviceArrays> arrays;
  for (const CardPart* const part : all) {
    Card& card = *cards_[static_cast<std::size_t>(part->device)];
    launches[part->device] = card.CountLaunch();
    begin = std::max(begin, card.totals().seconds());
    arrays.push_back({part->device, part->places});
  }
  const std::shared_ptr<const CheckedProgram>& program = all[0]->program;
  auto observers = std::make_unique<Divided>(cards_.size());
  RunOptions options;
  for (const CardPart* const part : all) {
    Card& card = *cards_[static_cast<std::size_t>(part->device)];
    card.CountWait(begin - card.totals().seconds());
    if (part->observe != nullptr) {
      observers->Add(part->device, part->observe());
      options.observer = observers.get();
    }
  }
  std::optional<Fault> fault = engine_->Launch(program, arrays);
  for (const auto& [device, launch] : launches) {
    if (fault) break;
    fault = cards_[static_cast<std::size_t>(device)]->Damage(
        launch, *program, engine_->devices_[static_cast<std::size_t>(device)]->code, options);
  }
  // The strict checks of cards and links know of bytes each for themselves.
  for (const CardPart* const part : all)
    MarkWritten(*part, /*results=*/false,
                engine_->devices_[static_cast<std::size_t>(part->device)]->dram);
  if (!fault) fault = engine_->Run(options);
  for (const CardPart* const part : all) {
    Card& card = *cards_[static_cast<std::size_t>(part->device)];
    MarkWritten(*part, /*results=*/true, card.engine_->devices_[0]->dram);
    card.CountRun(engine_->devices_[static_cast<std::size_t>(part->device)]->counters);
  }
  return fault;
}

// The arrays that a program finds, or those that it leaves.
void Fabric::MarkWritten(const CardPart& part, bool results, Memory& memory) const {
  if (!engine_->config_.strict) return;
  const std::vector<Symbol>& symbols = part.program->program.symbols;
  for (std::size_t s = 0; s < part.places.size(); ++s) {
    const SymbolKind kind = symbols[s].kind;
    if (kind == SymbolKind::kInOut || (kind == SymbolKind::kOut) == results)
      Strict::WrittenByHost(memory, part.places[s], static_cast<uint64_t>(symbols[s].bytes()));
  }
}

}  // namespace lazuli::npu
