// Instructions that work on each row of their arrays by itself: a softmax, a norm, their gradients.
//
// A row is what has one index of one dim, the group's in each array: elementwise instructions,
// reductions of other dims, and broadcasts of what those make. Where what lies between them would
// not stay in the scratchpad, a group is lowered strip by strip of rows, each as a program of its
// own: of DRAM it then reads what it is given and writes what others read, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/npu/sim/config.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

// What is lowered at once: an instruction, or a group in the order of its members.
struct RowUnit {
  std::vector<const hlo::Instruction*> members;
  std::unordered_map<const hlo::Instruction*, int64_t> dims;  // of a group: where the rows are
  int64_t rows = 0, strip = 0;                                // all of them, and of a strip
  bool is_group() const { return members.size() > 1; }
};

// The computation's instructions, operands before users. What `computed_elsewhere` belongs to no
// group; what is `inlined` has no array of its own.
using InstructionTest = std::function<bool(const hlo::Instruction&)>;
std::vector<RowUnit> RowUnitsOf(const hlo::Computation& computation, const Config& config,
                                const InstructionTest& computed_elsewhere,
                                const InstructionTest& inlined);

// A group's program for some of its rows.
struct RowStrip {
  struct Input {
    const hlo::Instruction* value;  // of the computation that has the group
    int64_t dim;                    // where the rows are; -1: each row has all of it
    int readers;                    // kernels
  };
  std::unique_ptr<hlo::Module> module;
  hlo::Computation* computation = nullptr;       // its root is a tuple of the outputs
  std::vector<Input> inputs;                     // by parameter
  std::vector<const hlo::Instruction*> outputs;  // members that others read, or views of which
  std::vector<const hlo::Instruction*> views;    // members that are those
  std::vector<std::pair<hlo::Instruction*, const hlo::Instruction*>> originals;  // of members
};
RowStrip MakeRowStrip(const RowUnit& group, int64_t rows, const InstructionTest& inlined);

}  // namespace lazuli::npu
