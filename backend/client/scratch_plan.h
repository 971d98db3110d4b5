// ScratchPlan: which arrays of a program's scratch memory hold values when, in steps of its run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lazuli::backend {

struct ScratchArray {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;  // steps: that writes it, that uses it last
  std::string name;             // of what writes it: "fusion.12"
  std::string op, source;       // "aten__mm", "train.cc:41"
};

struct ScratchPlan {
  std::vector<std::string> steps;  // names
  std::vector<ScratchArray> arrays;
};

// An Executable that knows its plan.
class HasScratchPlan {
 public:
  virtual ScratchPlan scratch_plan() const = 0;

 protected:
  ~HasScratchPlan() = default;
};

}  // namespace lazuli::backend
