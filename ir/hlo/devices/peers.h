// Peers: the devices of one process whose programs have collectives in common.
//
// Devices have numbers, as the groups of collectives have them (ir/hlo/devices/collective.h). A run of a
// program on one of them is a PeerRun. The n-th collective to which a device of a group comes is the n-th
// of the others (ir/support/rendezvous.h), whether they run one program or several. If a run fails, or a
// device does not come within LAZULI_COLLECTIVE_TIMEOUT seconds, the collectives of the same groups fail
// in all runs that were asked for before that; later runs begin anew.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "ir/support/rendezvous.h"

namespace lazuli::hlo {

class Peers {
 public:
  using Clock = ir::Rendezvous::Clock;
  // `platform` names the devices: "cpu" has cpu:0, cpu:1, ...
  Peers(std::string platform, int64_t count);
  int64_t count() const { return count_; }
  const std::string& platform() const { return platform_; }

 private:
  friend class PeerRun;
  const std::string platform_;
  const int64_t count_;
  ir::Rendezvous meetings_;
};

// What a run needs to know of its program's collectives.
struct PeerProgram {
  // By number of a device in the program: its ordinal. Empty: device i is the process's i-th.
  std::vector<int64_t> assignment{};
  // The devices that meet, by ordinal, ascending.
  std::vector<ir::Rendezvous::Members> groups{};

  // None for a program whose values do not depend on the device and that meets nobody.
  static std::optional<PeerProgram> Of(const Module& module, absl::Span<const int64_t> assignment);
};

class PeerRun {
 public:
  // `peers` and `program` must outlive the run, which was asked for at that time.
  PeerRun(Peers& peers, const PeerProgram& program, int64_t ordinal,
          Peers::Clock::time_point asked);
  PeerRun(const PeerRun&) = delete;
  PeerRun& operator=(const PeerRun&) = delete;

  // This device's number in the program; an error if the program has no place for it.
  absl::StatusOr<int64_t> Device() const;
  // Comes to the next meeting of the group's devices with `part`, and returns when all of them have
  // come and the last has called `together` with their parts, in the order of the group.
  absl::Status Meet(const Dims& group, void* part,
                    absl::FunctionRef<void(absl::Span<void* const>)> together);
  // The run has failed: the others do not wait for it.
  void Fail(const absl::Status& why);

 private:
  absl::StatusOr<int64_t> OrdinalOf(int64_t device) const;

  Peers& peers_;
  const PeerProgram& program_;
  const int64_t ordinal_;
  const Peers::Clock::time_point asked_;
};

}  // namespace lazuli::hlo
