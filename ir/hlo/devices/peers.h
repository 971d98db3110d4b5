// Peers: the devices of one process that run a program together, and their collectives.
//
// Devices have numbers, as the groups of collectives have them (ir/hlo/collective.h). A run of a
// program on one of them is a PeerRun. The n-th run of a program on a device belongs to the n-th runs of
// the same program on the others: their collectives meet (ir/support/rendezvous.h). A run that ends,
// well or not, lets go of those who wait for it. A device that does not come is an error after
// LAZULI_COLLECTIVE_TIMEOUT seconds, and runs that it is asked for later do not count as the one that
// it has missed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "ir/support/fork.h"
#include "ir/support/rendezvous.h"

namespace lazuli::hlo {

class Peers {
 public:
  using Clock = std::chrono::steady_clock;
  // `platform` names the devices: "cpu" has cpu:0, cpu:1, ...
  Peers(std::string platform, int64_t count);
  int64_t count() const { return count_; }
  const std::string& platform() const { return platform_; }

 private:
  friend class PeerRun;
  const std::string platform_;
  const int64_t count_;
  ir::Rendezvous meetings_;
  ir::ForkMutex mutex_;
  std::map<std::pair<uint64_t, int64_t>, int64_t> runs_;  // by program and device
  // When the first device gave a run up in which others were missing, by program and run.
  std::map<std::pair<uint64_t, int64_t>, Clock::time_point> given_up_;
};

// What a program's collectives need to know of it before it runs.
struct PeerProgram {
  uint64_t fingerprint = 0;  // the same for all devices that run the program
  // By number of a device in the program: its ordinal. Empty: device i is the process's i-th.
  std::vector<int64_t> assignment{};
  // The ordinals of devices that meet others, ascending; empty if none does.
  std::vector<int64_t> meeting{};

  // Null for a program whose values do not depend on the device and that meets nobody.
  static std::optional<PeerProgram> Of(const Module& module, absl::Span<const int64_t> assignment);
};

class PeerRun {
 public:
  // `peers` and `program` must outlive the run, which was asked for at that time.
  PeerRun(Peers& peers, const PeerProgram& program, int64_t ordinal,
          Peers::Clock::time_point asked);
  ~PeerRun();
  PeerRun(const PeerRun&) = delete;
  PeerRun& operator=(const PeerRun&) = delete;

  // This device's number in the program; an error if the program has no place for it.
  absl::StatusOr<int64_t> Device() const;
  // Comes to the next meeting of the group's devices with `part`, and returns when all of them have
  // come and the last has called `together` with their parts, in the order of the group.
  absl::Status Meet(const Dims& group, void* part,
                    absl::FunctionRef<void(absl::Span<void* const>)> together);
  // The run fails: what the others who wait for it are told.
  void Fail(const absl::Status& why);

 private:
  absl::StatusOr<int64_t> OrdinalOf(int64_t device) const;

  Peers& peers_;
  const PeerProgram& program_;
  const int64_t ordinal_;
  int64_t run_ = 0;
  std::string end_ = "its run of the program is over";
};

}  // namespace lazuli::hlo
