// Divides an expression into vector programs: at most three streams in, one out, 32 registers.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/npu/compiler/expression.h"

namespace lazuli::npu {

// A stream of a run: one of the expression's loads, or the result of an earlier run.
struct RunInput {
  bool temporary = false;
  int index = 0;
  auto operator<=>(const RunInput&) const = default;
};

// What one vector program computes.
struct VectorRun {
  std::vector<RunInput> inputs;
  std::vector<uint32_t> words;
  int type = kFloats;  // of the result, which is all 32 bits unless it is the last one
  int micros = 0;
};

// Runs in order; run i makes temporary i, the last ones make the values of `roots`, in their order.
std::vector<VectorRun> DivideIntoRuns(const Expression& expression, absl::Span<const int> roots);
inline std::vector<VectorRun> DivideIntoRuns(const Expression& expression, int root) {
  return DivideIntoRuns(expression, absl::Span<const int>(&root, 1));
}

}  // namespace lazuli::npu
