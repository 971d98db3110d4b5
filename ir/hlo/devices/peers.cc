#include "ir/hlo/devices/peers.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include "ir/hlo/devices/collective.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/flags.h"
#include "ir/support/hash.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

bool DependsOnDevice(const Instruction& i) {
  return i.opcode() == Opcode::kReplicaId || i.opcode() == Opcode::kPartitionId ||
         Traits(i.opcode()).exchanges;
}

// Adds the devices that the instruction makes meet. What is malformed is an error where it runs.
void AddMeeting(const Instruction& i, std::set<int64_t>* devices) {
  if (!Traits(i.opcode()).exchanges) return;
  if (IsPermute(i.opcode())) {
    const auto pairs = PairsOf(i);
    if (!pairs.ok()) return;
    for (const auto& [source, target] : *pairs) {
      if (source == target) continue;
      devices->insert(source);
      devices->insert(target);
    }
    return;
  }
  const auto groups = GroupsOf(i);
  if (!groups.ok()) return;
  for (const Dims& group : *groups) {
    if (group.size() > 1) devices->insert(group.begin(), group.end());
  }
}

}  // namespace

std::optional<PeerProgram> PeerProgram::Of(const Module& module,
                                           absl::Span<const int64_t> assignment) {
  PeerProgram program;
  std::set<int64_t> meeting;
  bool depends = false;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      depends = depends || DependsOnDevice(*i);
      AddMeeting(*i, &meeting);
    }
  }
  if (!depends) return std::nullopt;
  program.assignment.assign(assignment.begin(), assignment.end());
  for (const int64_t device : meeting) {
    const auto d = static_cast<std::size_t>(device);
    program.meeting.push_back(d < assignment.size() ? assignment[d] : device);
  }
  std::sort(program.meeting.begin(), program.meeting.end());
  const std::string text =
      ToString(module, {.metadata = false, .large_constants = false, .canonical_names = true});
  program.fingerprint = ir::HashBytes(text.data(), text.size());
  return program;
}

Peers::Peers(std::string platform, int64_t count)
    : platform_(std::move(platform)),
      count_(count),
      meetings_([this](int64_t device) { return Str(platform_, ":", device); }) {}

PeerRun::PeerRun(Peers& peers, const PeerProgram& program, int64_t ordinal,
                 Peers::Clock::time_point asked)
    : peers_(peers), program_(program), ordinal_(ordinal) {
  const std::lock_guard lock(peers_.mutex_);
  int64_t& next = peers_.runs_[{program.fingerprint, ordinal}];
  const auto missed = [&] {
    const auto given_up = peers_.given_up_.find({program.fingerprint, next});
    return given_up != peers_.given_up_.end() && given_up->second < asked;
  };
  while (missed()) ++next;
  run_ = next++;
}

PeerRun::~PeerRun() {
  if (std::binary_search(program_.meeting.begin(), program_.meeting.end(), ordinal_))
    peers_.meetings_.Leave({static_cast<int64_t>(program_.fingerprint), run_}, ordinal_,
                           program_.meeting.size(), end_);
}

void PeerRun::Fail(const absl::Status& why) { end_ = ir::Message(why); }

absl::StatusOr<int64_t> PeerRun::Device() const {
  if (program_.assignment.empty()) return ordinal_;
  const auto at = std::find(program_.assignment.begin(), program_.assignment.end(), ordinal_);
  if (at == program_.assignment.end())
    return InvalidArgument("the device assignment {", Join(program_.assignment, ","),
                           "} does not have device ", ordinal_);
  return at - program_.assignment.begin();
}

absl::StatusOr<int64_t> PeerRun::OrdinalOf(int64_t device) const {
  int64_t ordinal = device;
  if (!program_.assignment.empty()) {
    if (device >= static_cast<int64_t>(program_.assignment.size()))
      return InvalidArgument("device ", device, " takes part; the device assignment {",
                             Join(program_.assignment, ","), "} does not have it");
    ordinal = program_.assignment[static_cast<std::size_t>(device)];
  }
  if (ordinal < 0 || ordinal >= peers_.count())
    return Unimplemented("device ", ordinal, " takes part; this process has ", peers_.count(),
                         peers_.count() == 1 ? " device" : " devices", " of platform ",
                         peers_.platform());
  return ordinal;
}

absl::Status PeerRun::Meet(const Dims& group, void* part,
                           absl::FunctionRef<void(absl::Span<void* const>)> together) {
  std::vector<int64_t> ordinals;
  for (const int64_t device : group) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t ordinal, OrdinalOf(device));
    ordinals.push_back(ordinal);
  }
  ir::Rendezvous::Members members = ordinals;
  std::sort(members.begin(), members.end());
  const auto [why, timed_out] = peers_.meetings_.Meet(
      {.topic = {static_cast<int64_t>(program_.fingerprint), run_},
       .members = members,
       .member = ordinal_,
       .part = part},
      {std::chrono::seconds(ir::flags().collective_timeout()), "LAZULI_COLLECTIVE_TIMEOUT"},
      [&](const ir::Rendezvous::Parts& parts) {
        std::vector<void*> in_order;
        for (const int64_t ordinal : ordinals) in_order.push_back(parts.at(ordinal));
        together(in_order);
      });
  if (why.empty()) return absl::OkStatus();
  if (timed_out) {
    const std::lock_guard lock(peers_.mutex_);
    peers_.given_up_.try_emplace({program_.fingerprint, run_}, Peers::Clock::now());
  }
  return absl::DeadlineExceededError(
      Str("devices ", peers_.meetings_.Names(members), " do not meet: ", why));
}

}  // namespace lazuli::hlo
