// Scans whose step was traced, and their derivatives, which are scans of derivatives of the step.
//
// Backward goes the other way. It uses carried tensors as the steps were given them, which the loop
// keeps if a gradient is wanted and uses them; all else of a step is computed again. What was kept is a
// result of the loop like others, so backward can be differentiated itself. Forward mode carries
// tangents beside the carried tensors, and keeps nothing.
#pragma once

#include <cstdint>
#include <string>

#include "lazy/control/traced.h"

namespace lazuli::lazy {

// The step takes carried tensors, elements, what is given behind these, and tensors from outside. It
// gives the carried tensors anew, then further results.
struct TracedScan {
  std::string name;
  backend::Device device;
  TracingPtr trace;
  Stage step;
  std::size_t carried, over;
  int64_t count;  // of steps
  bool reverse = false;
  int64_t blocks = 0;                    // that a step draws
  std::vector<std::size_t> absent = {};  // of the elements: those that there are none of
  bool is_first = true;                  // no derivative of another one, whose steps draw as many

  std::size_t inputs() const { return carried + over; }
  std::size_t results() const { return step.values.results.size(); }
};

// The tensors that a scan is given. Some of `xs` may be undefined, if the step does not use them.
struct ScanTensors {
  Tensors init, xs, fixed, outside;
};

Tensors RunScan(TracedScan scan, const ScanTensors& given);

}  // namespace lazuli::lazy
