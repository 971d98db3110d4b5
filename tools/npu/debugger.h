// The debugger of NPU programs: steps, breakpoints, memories, and steps back.
//
// A run is deterministic, so the state n steps before this one is what a new run has after so many
// steps: going back replays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/machine.h"

namespace lazuli::npu {

class Debugger {
 public:
  // A machine with program and inputs in place, made anew for each replay.
  using Maker = std::function<absl::StatusOr<std::unique_ptr<Machine>>()>;
  static absl::StatusOr<std::unique_ptr<Debugger>> Create(Maker maker);

  // Carries out one command and returns what there is to say; "help" lists them.
  std::string Execute(std::string_view command);
  bool quits() const { return quits_; }
  int64_t steps() const { return steps_; }

 private:
  struct Watch {
    std::string where;
    Access bytes;
    bool written = false;  // since the run went on
  };
  struct Watcher;

  explicit Debugger(Maker maker) : maker_(std::move(maker)) {}
  absl::Status Restart();
  // Runs until the step with this number, or with `breaks` until a breakpoint; what happened.
  std::string RunTo(int64_t step, bool breaks);
  std::optional<std::string> Stops(const Step& step);
  // In the memories of the core that is shown; none: nothing lies there.
  std::optional<Access> Find(uint64_t address, uint64_t bytes) const;
  std::span<const std::byte> Memory(const Access& access) const;
  std::string Here() const;
  std::string Registers() const;
  std::string Semaphores() const;
  std::string List(int64_t around) const;
  std::string Show(uint64_t address, int64_t count, std::string_view type) const;
  std::string Line(uint32_t pc) const;

  Maker maker_;
  std::unique_ptr<Machine> machine_;
  std::optional<Fault> fault_;
  int64_t steps_ = 0;
  Step last_{0, 0, 0, 0, 0};
  int device_ = 0, core_ = 0;  // what is shown
  std::set<uint32_t> pcs_;
  std::set<int64_t> marks_;
  std::vector<Watch> watches_;
  bool quits_ = false;
};

}  // namespace lazuli::npu
