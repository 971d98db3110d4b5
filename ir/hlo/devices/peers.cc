#include "ir/hlo/devices/peers.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "ir/hlo/devices/collective.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

bool DependsOnDevice(const Instruction& i) {
  return i.opcode() == Opcode::kReplicaId || i.opcode() == Opcode::kPartitionId ||
         Traits(i.opcode()).exchanges;
}

// Adds the groups of devices that the instruction makes meet. What is malformed is an error where it
// runs.
void AddGroups(const Instruction& i, std::set<ir::Rendezvous::Members>* groups) {
  if (!Traits(i.opcode()).exchanges) return;
  if (IsPermute(i.opcode())) {
    const auto pairs = PairsOf(i);
    std::set<int64_t> devices;
    for (const auto& [source, target] : pairs.ok() ? *pairs : DevicePairs()) {
      if (source != target) devices.insert({source, target});
    }
    if (!devices.empty()) groups->emplace(devices.begin(), devices.end());
    return;
  }
  const auto all = GroupsOf(i);
  for (const Dims& group : all.ok() ? *all : std::vector<Dims>()) {
    if (group.size() > 1) groups->emplace(group.begin(), group.end());
  }
}

}  // namespace

std::optional<PeerProgram> PeerProgram::Of(const Module& module,
                                           absl::Span<const int64_t> assignment) {
  PeerProgram program;
  std::set<ir::Rendezvous::Members> groups;
  bool depends = false;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      depends = depends || DependsOnDevice(*i);
      AddGroups(*i, &groups);
    }
  }
  if (!depends) return std::nullopt;
  program.assignment.assign(assignment.begin(), assignment.end());
  for (ir::Rendezvous::Members group : groups) {
    for (int64_t& device : group) {
      const auto d = static_cast<std::size_t>(device);
      if (d < assignment.size()) device = assignment[d];
    }
    std::sort(group.begin(), group.end());
    program.groups.push_back(std::move(group));
  }
  return program;
}

Peers::Peers(std::string platform, int64_t count)
    : platform_(std::move(platform)),
      count_(count),
      meetings_([this](int64_t device) { return Str(platform_, ":", device); }) {}

PeerRun::PeerRun(Peers& peers, const PeerProgram& program, int64_t ordinal,
                 Peers::Clock::time_point asked)
    : peers_(peers),
      program_(program),
      ordinal_(ordinal),
      asked_(std::min(asked, Peers::Clock::now())) {}

void PeerRun::Fail(const absl::Status& why) {
  for (const ir::Rendezvous::Members& group : program_.groups) {
    if (std::binary_search(group.begin(), group.end(), ordinal_))
      peers_.meetings_.Break(
          group, asked_,
          Str(peers_.meetings_.Names({ordinal_}), " has failed: ", ir::Message(why)));
  }
}

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
      {.members = members, .member = ordinal_, .part = part, .since = asked_},
      {std::chrono::seconds(ir::flags().collective_timeout()), "LAZULI_COLLECTIVE_TIMEOUT"},
      [&](const ir::Rendezvous::Parts& parts) {
        std::vector<void*> in_order;
        for (const int64_t ordinal : ordinals) in_order.push_back(parts.at(ordinal));
        together(in_order);
      });
  if (why.empty()) return absl::OkStatus();
  if (timed_out) peers_.meetings_.Break(members, asked_, why);
  return absl::DeadlineExceededError(
      Str("devices ", peers_.meetings_.Names(members), " do not meet: ", why));
}

}  // namespace lazuli::hlo
