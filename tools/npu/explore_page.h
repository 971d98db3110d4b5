// What npu-explore found, as CSV and as a page of HTML that needs no network.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "tools/npu/sweep.h"
#include "tools/npu/workload.h"

namespace lazuli::tools {

// Columns that a machine is judged by; of all of them less is better, but for array_util.
struct ExploreColumn {
  std::string_view name, meaning;
  double (*value)(const npu::Config&, const Measurement&);
  bool less_is_better = true;
};
std::span<const ExploreColumn> ExploreColumns();
// An error lists the columns.
absl::StatusOr<std::size_t> FindExploreColumn(std::string_view name);

struct ExplorePoint {
  SweepPoint point;
  npu::Config config;
  absl::Status status{};  // not OK: nothing was measured
  Measurement measured{};
  bool front = false;  // no other point is better in one objective and no worse in the other
};

struct Exploration {
  std::string title, machine;  // what was measured; the configuration that the axes change
  std::vector<SweepAxis> axes;
  std::vector<ExplorePoint> points;
  std::size_t x = 0, y = 0;  // objectives: columns

  // The objectives if nobody names any: time against area, or energy if no axis changes the area.
  void ChooseObjectives();
  void FindFront();
};

std::string ExploreCsv(const Exploration& exploration);
std::string ExplorePage(const Exploration& exploration);

}  // namespace lazuli::tools
