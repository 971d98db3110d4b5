// Area of a device, for comparing designs: published areas of arithmetic units and of a memory's
// cell, times how many a configuration has.
//
// Like joules (energy.h) it leaves out what no table has: wires, control, DMA, the transposer, links.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"

namespace lazuli::npu {

struct AreaPart {
  std::string_view name;
  double mm2;
};
struct Area {
  std::vector<AreaPart> parts;
  double mm2 = 0;  // the sum of the parts
};
// Of all cores of a device.
Area AreaOf(const Config& config);

// The table, its sources and what is assumed, as Markdown.
std::string AreaPage();

}  // namespace lazuli::npu
