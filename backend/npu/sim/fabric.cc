#include "backend/npu/sim/fabric.h"

#include <algorithm>
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

std::string Names(const std::vector<std::shared_ptr<Card>>& cards,
                  const std::vector<int>& members) {
  std::string names;
  for (const int member : members)
    names += Str(names.empty() ? "" : ", ", cards[static_cast<std::size_t>(member)]->name());
  return names;
}

}  // namespace

Fabric::Fabric(std::vector<std::shared_ptr<Card>> cards) : cards_(std::move(cards)) {}
Fabric::~Fabric() = default;

Fault Fabric::TimedOut(const Part& part, const std::string& sentence) const {
  return {ErrorCode::kLinkTimeout,
          part.device,
          -1,
          -1,
          -1,
          0,
          "",
          "",
          Str(part.what, " of ", Names(cards_, part.members), ": ", sentence)};
}

// The meeting that is the device's next one of the group.
std::shared_ptr<Fabric::Meeting> Fabric::Come(const std::vector<int>& members, int device) {
  Group& group = groups_[members];
  std::shared_ptr<Meeting>& meeting = group.meetings[group.next[device]++];
  if (meeting == nullptr) meeting = std::make_shared<Meeting>();
  return meeting;
}

// Forgets a meeting to which nobody else comes.
void Fabric::Leave(const std::vector<int>& members, const std::shared_ptr<Meeting>& meeting) {
  if (meeting->parts.size() + meeting->missing.size() < members.size()) return;
  std::erase_if(groups_[members].meetings,
                [&](const auto& entry) { return entry.second == meeting; });
}

void Fabric::Miss(const std::vector<int>& members, int device, std::string_view why) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Meeting> meeting = Come(members, device);
  meeting->missing.emplace(device, why);
  Leave(members, meeting);
  changed_.notify_all();
}

std::optional<Fault> Fabric::Run(const Part& part, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<Meeting> meeting = Come(part.members, part.device);
  meeting->parts.emplace(part.device, &part);
  Leave(part.members, meeting);
  changed_.notify_all();
  const auto missed = [&]() -> std::optional<Fault> {
    const auto& [device, why] = *meeting->missing.begin();
    return TimedOut(part,
                    Str(cards_[static_cast<std::size_t>(device)]->name(), " does not come: ", why));
  };
  if (meeting->parts.size() == part.members.size()) {
    meeting->begun = true;
    lock.unlock();
    RunTogether(*meeting);
    lock.lock();
    meeting->over = true;
    changed_.notify_all();
    return meeting->fault;
  }
  const auto settled = [&] {
    return meeting->over || (!meeting->begun && !meeting->missing.empty());
  };
  if (!changed_.wait_for(lock, patience, settled) && !meeting->begun) {
    std::vector<int> absent;
    for (const int member : part.members) {
      if (!meeting->parts.contains(member)) absent.push_back(member);
    }
    const std::string who = Names(cards_, absent);
    meeting->parts.erase(part.device);
    meeting->missing.emplace(part.device, Str("it has waited for ", who));
    changed_.notify_all();
    return TimedOut(part,
                    Str(who, absent.size() == 1 ? " has" : " have", " not come within ",
                        std::chrono::duration<double>(patience).count(), " s (NPU_LINK_TIMEOUT)"));
  }
  changed_.wait(lock, settled);  // it has begun, and takes as long as it takes
  if (meeting->over) return meeting->fault;
  const std::optional<Fault> fault = missed();
  meeting->parts.erase(part.device);
  meeting->missing.emplace(part.device, "it has given up");
  return fault;
}

std::optional<Fault> Fabric::Disagreement(const Meeting& meeting) const {
  const Part& first = *meeting.parts.begin()->second;
  for (const auto& [device, part] : meeting.parts) {
    if (SameProgram(part->program->program, first.program->program)) continue;
    return TimedOut(
        first, Str(cards_[static_cast<std::size_t>(first.device)]->name(), " is at ", first.what,
                   ", ", cards_[static_cast<std::size_t>(device)]->name(), " is at ", part->what));
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

// With all cards held: nobody else runs on them.
void Fabric::RunTogether(Meeting& meeting) {
  const std::lock_guard running(running_);
  std::vector<std::unique_lock<ir::ForkMutex>> held;
  for (const auto& [device, part] : meeting.parts)  // ascending, so that no two wait for each other
    held.emplace_back(cards_[static_cast<std::size_t>(device)]->running_);
  meeting.fault = Disagreement(meeting);
  if (!meeting.fault) meeting.fault = Launch(meeting);
}

std::optional<Fault> Fabric::Launch(const Meeting& meeting) {
  if (const absl::Status status = Build(); !status.ok())
    return Fault{ErrorCode::kOomDram, -1, -1, -1, -1, 0, "", "", std::string(Message(status))};
  double begin = 0;
  std::map<int, int64_t> launches;
  std::vector<Engine::Part> parts;
  for (const auto& [device, part] : meeting.parts) {
    Card& card = *cards_[static_cast<std::size_t>(device)];
    launches[device] = card.CountLaunch();
    begin = std::max(begin, card.totals().seconds());
    parts.push_back({device, part->places});
  }
  const std::shared_ptr<const CheckedProgram>& program = meeting.parts.begin()->second->program;
  auto observers = std::make_unique<Divided>(cards_.size());
  RunOptions options;
  for (const auto& [device, part] : meeting.parts) {
    Card& card = *cards_[static_cast<std::size_t>(device)];
    card.CountWait(begin - card.totals().seconds());
    if (part->observe != nullptr) {
      observers->Add(device, part->observe());
      options.observer = observers.get();
    }
  }
  std::optional<Fault> fault = engine_->Launch(program, parts);
  for (const auto& [device, launch] : launches) {
    if (fault) break;
    fault = cards_[static_cast<std::size_t>(device)]->Damage(
        launch, *program, engine_->devices_[static_cast<std::size_t>(device)]->code, options);
  }
  // The strict checks of cards and links know of bytes each for themselves.
  for (const auto& [device, part] : meeting.parts)
    MarkWritten(*part, /*results=*/false,
                engine_->devices_[static_cast<std::size_t>(device)]->dram);
  if (!fault) fault = engine_->Run(options);
  for (const auto& [device, part] : meeting.parts) {
    Card& card = *cards_[static_cast<std::size_t>(device)];
    MarkWritten(*part, /*results=*/true, card.engine_->devices_[0]->dram);
    card.CountRun(engine_->devices_[static_cast<std::size_t>(device)]->counters);
  }
  return fault;
}

// The arrays that a program finds, or those that it leaves.
void Fabric::MarkWritten(const Part& part, bool results, Memory& memory) const {
  if (!engine_->config_.strict) return;
  const std::vector<Symbol>& symbols = part.program->program.symbols;
  for (std::size_t s = 0; s < part.places.size(); ++s) {
    const SymbolKind kind = symbols[s].kind;
    if (kind == SymbolKind::kInOut || (kind == SymbolKind::kOut) == results)
      Strict::WrittenByHost(memory, part.places[s], static_cast<uint64_t>(symbols[s].bytes()));
  }
}

}  // namespace lazuli::npu
