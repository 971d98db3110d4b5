// Profile: what the NPU's runs did, by HLO op and line of the user's program.
//
// An op's time is what its instructions occupied the units; units work side by side, so these do not
// add up to the run's cycles, and a share of 100 % of the busiest unit is the best that there is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/observer.h"
#include "backend/npu/sim/program.h"
#include "ir/support/fork.h"

namespace lazuli::npu {

// Units as people think of them.
enum class UnitKind : uint8_t { kArray, kVector, kTransposer, kDma, kSequencer };
inline constexpr std::size_t kUnitKinds = 5;
std::string_view UnitName(UnitKind kind);
UnitKind UnitOf(int track);

inline constexpr std::size_t kStalls = 5;

struct OpProfile {
  std::string origin;  // "dot dot.3 aten::mm (train.py:41)"
  int64_t launches = 0;
  Counters work;                           // without cycles
  std::array<int64_t, kTracks> busy{};     // cycles, by track
  std::array<int64_t, kStalls> stalled{};  // of all units together, by Stall
};

// Of a unit with several queues or ports, the one that was busy longest.
int64_t BusyOf(const std::array<int64_t, kTracks>& busy, UnitKind kind);
int64_t LongestBusy(const OpProfile& op);

class Profile {
 public:
  // Of one launch: an observer that adds what it saw when the run is over.
  class Launch final : public Observer {
   public:
    Launch(Profile& profile, const Program& program)
        : profile_(profile), program_(program), ops_(program.origins.size()) {}
    ~Launch() override { profile_.Add(program_, ops_); }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;
    void OnSlice(const Slice& slice) override;
    void OnWork(int device, int core, uint32_t pc, const Counters& work) override;

   private:
    OpProfile& OpOf(uint32_t pc);
    Profile& profile_;
    const Program& program_;
    std::vector<OpProfile> ops_;  // by origin
  };

  // The one that occupied some unit longest comes first.
  std::vector<OpProfile> Ops() const;

 private:
  void Add(const Program& program, const std::vector<OpProfile>& ops);

  mutable ir::ForkMutex mutex_;
  std::map<std::string, OpProfile> ops_;
};

}  // namespace lazuli::npu
