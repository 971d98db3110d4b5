// Values that keys of the simulated machine take in turn: what npu-explore sweeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"

namespace lazuli::tools {

inline constexpr std::string_view kSweepHelp =
    R"(An axis is KEY=VALUES; keys joined by + take the same value. VALUES are joined by commas:
  16                      a value, as --set takes it
  16..128                 doubling: 16, 32, 64, 128; the end always belongs to it
  16..128*4               times 4
  16..128+16              in steps of 16
)";

struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<std::string> values;  // texts, each one that every key may have

  // "mxu.rows=16..128", "mxu.rows+mxu.cols=16,32", "mxu.dataflow=ws,os". An error names the key and
  // what it may be.
  static absl::StatusOr<SweepAxis> Parse(std::string_view text);
  std::string name() const;  // "mxu.rows+mxu.cols"
};

// A point of the sweep: an index into the values of each axis. The last axis runs fastest.
using SweepPoint = std::vector<std::size_t>;
// An error if there are more than `most`, or if two axes have a key in common.
absl::StatusOr<std::vector<SweepPoint>> PointsOf(const std::vector<SweepAxis>& axes,
                                                 std::size_t most);
// "mxu.rows=16,spm.kb=256"
std::string KeysOf(const std::vector<SweepAxis>& axes, const SweepPoint& point);

}  // namespace lazuli::tools
