// The report of what ran on the NPU: one page of HTML that needs no network and no script.
//
// Where time and energy went from the top down, lines of the program and ops by unit and energy, a
// roofline with a dot for each op, what units waited for, and what ran on the host and why.
#pragma once

#include <string>

#include "backend/npu/npu_executable.h"
#include "backend/npu/profile.h"

namespace lazuli::npu {

std::string ReportHtml(const NpuDevices& devices, const NpuProfile& profile);

}  // namespace lazuli::npu
