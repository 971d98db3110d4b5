// What a graph's values occupy over time, if its nodes run one after the other in their order.
//
// That is before a device's compiler decides: of a module that was optimised it is near to what runs,
// of a lazy graph it says which values are large and long there.
#pragma once

#include <cstdint>
#include <vector>

#include "lazy/graphs/saved_graph.h"

namespace lazuli::lazy {

// One value with memory of its own: inputs are there from the first node on, results to the last.
struct ValueLifetime {
  uint32_t node = 0;
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;  // nodes
};
// In the order of the nodes. Of HLO those of the entry; tuples and bitcasts are their operands'
// memory.
std::vector<ValueLifetime> LifetimesOf(const SavedGraph& graph);

// The first node while which the most bytes hold values.
struct MemoryPeak {
  uint32_t node = 0;
  int64_t bytes = 0;
};
MemoryPeak PeakOf(const SavedGraph& graph);

}  // namespace lazuli::lazy
