// Partition: a module cut into regions that one side runs each, device or host, with the arrays that
// pass between them.
//
// Regions are as large as they can be without cycles: walking the entry in topological order, an
// instruction joins the earliest region of its side that comes behind all its operands' regions. So
// what one side can do without waiting for the other is one program.
//
//   a = dot(p0, p1)        region 0, device: (p0, p1) -> (a)
//   s = sort(a)            region 1, host:   (a) -> (s)
//   b = add(a, p0)         region 0
//   r = multiply(s, b)     region 2, device: (s, b) -> (r)
//
// Constants and tuples are copied into every region that uses them. What passes between regions are
// arrays, the leaves of values.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/runtime/placement.h"
#include "backend/runtime/work.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

struct Region {
  bool on_device = false, alone = false;
  std::vector<const hlo::Instruction*> instructions;  // of the original module
  // Its program: a parameter for each input, and a tuple of its outputs.
  std::unique_ptr<hlo::Module> module;
  std::vector<int32_t> inputs, outputs;  // numbers of values
  Work work;
};

struct Partition {
  // Arrays: the leaves of the parameters in order, then what regions give.
  std::vector<Shape> values;
  std::vector<std::string> names;  // of the instructions that they are of
  int32_t parameters = 0;
  std::vector<Region> regions;   // in an order in which they can run
  std::vector<int32_t> results;  // leaves of the entry's root
};

// Which instructions of the device are a region each: those for which it meets other devices.
using AloneFunction = std::function<bool(const hlo::Instruction&)>;

// Of a module of arrays and tuples: what has tokens stays in one piece.
Partition MakePartition(const Placement& placement, const AloneFunction& alone = nullptr);
// One region of the host with all of the module.
Partition WholeOnHost(const hlo::Module& module);

// A line for each instruction: its side and region, and for the host why.
std::string PlacementText(const Placement& placement, const Partition& partition,
                          std::string_view device);

}  // namespace lazuli::backend
