#include "lazy/execution/dependence.h"

#include <algorithm>
#include <bit>

namespace lazuli::lazy {

Dependence::Dependence(const ir::Trace& trace, absl::Span<const uint32_t> check_nodes)
    : leaves_(trace.data.size()),
      outputs_(trace.roots.size()),
      words_((trace.roots.size() + check_nodes.size() + 63) / 64) {
  std::vector<uint32_t> sources;  // positions in the trace
  for (const ir::Node* leaf : trace.data) sources.push_back(leaf->mark_index);
  sources.insert(sources.end(), check_nodes.begin(), check_nodes.end());
  std::vector<uint32_t> sinks;
  for (const ir::Value& root : trace.roots) sinks.push_back(root.node->mark_index);
  sinks.insert(sinks.end(), check_nodes.begin(), check_nodes.end());
  rows_.resize(sources.size() * words_);
  // What 64 sources reach, in one walk.
  std::vector<uint64_t> reached(trace.nodes.size());
  for (std::size_t first = 0; first < sources.size(); first += 64) {
    const std::size_t count = std::min<std::size_t>(64, sources.size() - first);
    std::fill(reached.begin(), reached.end(), 0);
    for (std::size_t i = 0; i < count; ++i) reached[sources[first + i]] |= uint64_t{1} << i;
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
      for (const ir::Value& operand : trace.nodes[n]->operands())
        reached[n] |= reached[operand.node->mark_index];
    }
    for (std::size_t sink = 0; sink < sinks.size(); ++sink) {
      for (uint64_t bits = reached[sinks[sink]]; bits != 0; bits &= bits - 1) {
        const std::size_t source = first + static_cast<std::size_t>(std::countr_zero(bits));
        rows_[source * words_ + sink / 64] |= uint64_t{1} << (sink % 64);
      }
    }
  }
}

}  // namespace lazuli::lazy
