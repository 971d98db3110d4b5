// Graphs whose number of paths grows much faster than their number of instructions, as HLO: what
// walks operands or users without a note of where it was does not come to an end on them.
#pragma once

#include <string>
#include <vector>

namespace lazuli {

struct GraphShape {
  std::string name;
  std::string hlo;
};

// One computation of about `size` levels.
std::vector<GraphShape> FlatGraphs(int size);
// `levels` computations that each reach the next one along two ways. Those that `run_twice` run it
// along both: 2^levels runs, where nothing shares them.
struct NestedGraph : GraphShape {
  bool runs_twice;
};
std::vector<NestedGraph> NestedGraphs(int levels);

}  // namespace lazuli
