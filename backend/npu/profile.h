// NpuProfile: what the NPU's runs did, by HLO op and line of the user's program, and what the units
// did together.
//
// An op's time is what its instructions occupied the units; units work side by side, so these do not
// add up to the run's cycles, and a share of 100 % of the busiest unit is the best that there is.
// What adds up is each cycle's set of busy units.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
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

// "dot dot.3 aten::mm (train.py:41)": what it is, and the line, which may be empty.
struct Origin {
  std::string_view op, line;
  static Origin Of(std::string_view origin);
};

struct OpProfile {
  std::string origin;
  int64_t launches = 0;
  Counters work;                           // without cycles
  std::array<int64_t, kTracks> busy{};     // cycles, by track
  std::array<int64_t, kStalls> stalled{};  // of all units together, by Stall
};

// Of a unit with several queues or ports, the one that was busy longest.
int64_t BusyOf(const std::array<int64_t, kTracks>& busy, UnitKind kind);
int64_t LongestBusy(const OpProfile& op);

// Of all cores together.
struct UnitsProfile {
  // Cycles in which exactly the units of the index were busy: bit u is unit kind u.
  std::array<int64_t, std::size_t{1} << kUnitKinds> together{};
  std::array<int64_t, kTracks> busy{};
  std::array<std::array<int64_t, kStalls>, kTracks> stalled{};  // cycles, by track and Stall
  UnitsProfile& operator+=(const UnitsProfile& other);
};

class NpuProfile {
 public:
  // Of one launch: an observer that adds what it saw when the run is over.
  class Launch final : public Observer {
   public:
    Launch(NpuProfile& profile, const Program& program)
        : profile_(profile), program_(program), ops_(program.origins.size()) {}
    ~Launch() override;
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;
    void OnSlice(const Slice& slice) override;
    void OnDelay(int device, int core, int track, int64_t end, int64_t done) override;
    void OnWork(int device, int core, uint32_t pc, const Counters& work) override;

   private:
    struct Span {
      int64_t start, end;
      UnitKind kind;
    };
    OpProfile& OpOf(uint32_t pc);
    void CountTogether();
    NpuProfile& profile_;
    const Program& program_;
    std::vector<OpProfile> ops_;  // by origin
    UnitsProfile units_;
    std::vector<Span> spans_;
    // Of a core's track: its last slice's span and pc.
    std::map<std::pair<int, int>, std::pair<std::size_t, uint32_t>> last_;
  };

  // The one that occupied some unit longest comes first.
  std::vector<OpProfile> Ops() const;
  UnitsProfile Units() const;

 private:
  void Add(const Program& program, const std::vector<OpProfile>& ops, const UnitsProfile& units);

  mutable ir::ForkMutex mutex_;
  std::map<std::string, OpProfile> ops_;
  UnitsProfile units_;
};

}  // namespace lazuli::npu
