// A run as a picture in time: an observer that keeps what the units did, and writes it for
// Perfetto.
//
//   Trace trace(program, config);
//   machine->Run({.observer = &trace});
//   WriteTextFile("run.json", trace.Json());      // opens in ui.perfetto.dev and chrome://tracing
//
// A process for each device, a track for each unit of a core, a slice for each instruction; before
// it, if its unit was free and it could not begin, a slice that says why. On the sequencer's track
// scalar instructions that follow each other are one slice. An arrow from the
// instruction that signalled a token to the one that took it. Counters: bytes a second between each
// device and its DRAM, and bytes of each scratchpad that hold something that is still going to be
// read. A cycle is shown as a nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/observer.h"
#include "backend/npu/sim/program.h"

namespace lazuli::ir {
class TraceJson;
}

namespace lazuli::npu {

class Trace final : public Observer {
 public:
  // The program and the configuration outlive this, the machine need not. What comes after so many
  // slices is counted only.
  Trace(const Program& program, const Config& config, std::size_t most_slices = 1000000);
  Trace(const Trace&) = delete;  // slices refer to its instructions
  Trace& operator=(const Trace&) = delete;

  void OnSlice(const Slice& slice) override;
  void OnDelay(int device, int core, int track, int64_t end, int64_t done) override;
  void OnSignal(int device, int core, int semaphore, int value, int64_t cycle, int track,
                uint32_t pc) override;
  void OnWait(int device, int core, int semaphore, int value, int64_t cycle, int track,
              uint32_t pc) override;
  void OnMark(int device, int core, int64_t number, int64_t cycle) override;
  void OnAccess(const Access& access, int64_t cycle) override;

  const std::vector<Slice>& slices() const { return slices_; }
  std::size_t dropped() const { return dropped_; }
  // Slices that an arrow joins, by their places.
  struct Arrow {
    std::size_t from, to;
    int semaphore;
  };
  const std::vector<Arrow>& arrows() const { return arrows_; }

  // Values from a cycle on, until the next one.
  using Series = std::vector<std::pair<int64_t, double>>;
  Series DramGigabytes(int device) const;
  Series LiveSpmBytes(int device, int core) const;

  std::string Json() const;
  // Into a trace of several runs: the first device's process has this number, and the run begins at
  // `begin`. `flows` is the last number of an arrow.
  void AppendTo(TraceJson& json, int process, int64_t begin, int64_t& flows) const;

 private:
  using Unit = std::tuple<int, int, int>;  // device, core, track or semaphore
  struct Mark {
    int device, core;
    int64_t number, cycle;
  };
  // What is known of 64 bytes of a scratchpad: since when they hold what was read last, when that
  // was.
  struct Line {
    int64_t born = -1, read = -1;
  };
  struct Spm {
    std::vector<Line> lines;
    std::map<int64_t, int64_t> changes;  // of the live bytes, by cycle
  };
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  std::string Arguments(const Slice& slice) const;

  const Program& program_;
  const Config& config_;
  std::vector<Instruction> instructions_;  // of the program, by pc
  std::size_t most_slices_, dropped_ = 0;
  std::vector<Slice> slices_;
  std::vector<Arrow> arrows_;
  std::vector<Mark> marks_;
  // Slices that have not signalled yet: by track, and to another core, by the number of the track.
  std::map<Unit, std::deque<std::size_t>> senders_;
  std::map<int, std::deque<std::size_t>> remote_senders_;
  std::map<Unit, std::deque<std::size_t>> tokens_;  // who signalled them, by semaphore
  // Tokens that the next slice of a track has taken, with their semaphore.
  std::map<Unit, std::vector<std::pair<std::size_t, int>>> taken_;
  std::map<Unit, std::size_t> last_;  // slice of a track
  std::map<std::pair<int, int>, Spm> spms_;
};

std::string_view StallText(Stall stall);
// The instruction's mnemonic, or "scalars".
std::string_view SliceName(const Slice& slice);

}  // namespace lazuli::npu
