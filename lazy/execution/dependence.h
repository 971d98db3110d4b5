// Which results of a program are computed from what may fail: from a data leaf that has no elements
// because an earlier run failed, or through an op whose check fails. All the others stay good.
//
// Known when the program is compiled, as bits: a row a source, a column a result or check.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "ir/graph/post_order.h"

namespace lazuli::lazy {

class Dependence {
 public:
  Dependence() = default;
  // `check_nodes`: the positions in the trace of the nodes that check.
  Dependence(const ir::Trace& trace, absl::Span<const uint32_t> check_nodes);

  // Sources are numbered as the program has them.
  bool OutputOnLeaf(std::size_t output, std::size_t leaf) const { return Bit(leaf, output); }
  bool OutputOnCheck(std::size_t output, std::size_t check) const {
    return Bit(leaves_ + check, output);
  }
  bool CheckOnLeaf(std::size_t check, std::size_t leaf) const {
    return Bit(leaf, outputs_ + check);
  }

 private:
  bool Bit(std::size_t source, std::size_t sink) const {
    return (rows_[source * words_ + sink / 64] >> (sink % 64) & 1) != 0;
  }

  std::size_t leaves_ = 0, outputs_ = 0, words_ = 0;
  std::vector<uint64_t> rows_;
};

}  // namespace lazuli::lazy
