// What the families of opcodes share. Each function evaluates its opcodes given the operands'
// values, which are row major; the instruction has been verified.
#pragma once

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::hlo {

using Operands = absl::Span<const Literal* const>;

// The matrices of an array of them: its last two dimensions, and how many there are.
struct Matrices {
  int64_t rows = 0, columns = 0, count = 1;
  explicit Matrices(const Shape& shape)
      : rows(shape.dim(shape.rank() - 2)), columns(shape.dim(shape.rank() - 1)) {
    for (int64_t d = 0; d + 2 < shape.rank(); ++d) count *= shape.dim(d);
  }
  int64_t size() const { return rows * columns; }
  int m() const { return static_cast<int>(rows); }  // as LAPACK counts
  int n() const { return static_cast<int>(columns); }
};

// One evaluation: remembers the order of every computation it has run, so that a loop's body is
// ordered once.
class Evaluation {
 public:
  // `traced`: it is the run of a program, whose instructions a profile shows.
  explicit Evaluation(const EvaluateOptions& options = {}, bool traced = false);
  ~Evaluation();
  absl::StatusOr<Literal> Run(const Computation& computation, Operands arguments);
  absl::StatusOr<Literal> Run(const Instruction& instruction, Operands operands);
  const EvaluateOptions& options() const { return options_; }

 private:
  struct ComputationPlan;
  const ComputationPlan& PlanOf(const Computation& computation);
  absl::StatusOr<Literal> RunUnlocated(const Instruction& instruction, Operands operands);

  const EvaluateOptions options_;
  const bool traced_;
  absl::flat_hash_map<const Computation*, std::unique_ptr<ComputationPlan>> plans_;
};

// evaluate_elementwise.cc
absl::StatusOr<Literal> EvaluateElementwise(const Instruction& instruction, Operands operands);
// evaluate_shape.cc
absl::StatusOr<Literal> EvaluateShape(const Instruction& instruction, Operands operands);
// evaluate_index.cc
absl::StatusOr<Literal> EvaluateDynamicSlice(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateDynamicUpdateSlice(const Instruction& instruction,
                                                   Operands operands);
absl::StatusOr<Literal> EvaluateGather(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateScatter(const Instruction& instruction, Operands operands,
                                        Evaluation& evaluation);
// evaluate_dot.cc
absl::StatusOr<Literal> EvaluateDot(const Instruction& instruction, Operands operands);
// evaluate_dot_forms.cc
absl::StatusOr<Literal> EvaluateRaggedDot(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateScaledDot(const Instruction& instruction, Operands operands);
// evaluate_convolution.cc
absl::StatusOr<Literal> EvaluateConvolution(const Instruction& instruction, Operands operands);
// evaluate_reduce.cc
absl::StatusOr<Literal> EvaluateReduce(const Instruction& instruction, Operands operands,
                                       Evaluation& evaluation);
// evaluate_window.cc
absl::StatusOr<Literal> EvaluateReduceWindow(const Instruction& instruction, Operands operands,
                                             Evaluation& evaluation);
absl::StatusOr<Literal> EvaluateSelectAndScatter(const Instruction& instruction, Operands operands,
                                                 Evaluation& evaluation);
// evaluate_sort.cc
absl::StatusOr<Literal> EvaluateSort(const Instruction& instruction, Operands operands,
                                     Evaluation& evaluation);
absl::StatusOr<Literal> EvaluateTopK(const Instruction& instruction, Operands operands);
// Values and s32 indices, of the shapes in the tuple `shape`.
Literal TopKOf(const Literal& x, const TopKAttrs& attrs, const Shape& shape);
absl::StatusOr<Literal> EvaluateMap(const Instruction& instruction, Operands operands,
                                    Evaluation& evaluation);
// evaluate_scan.cc
absl::StatusOr<Literal> EvaluateScan(const Instruction& instruction, Operands operands,
                                     Evaluation& evaluation);
// evaluate_random.cc
absl::StatusOr<Literal> EvaluateRngBitGenerator(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateRng(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateRngGetAndUpdateState(const Instruction& instruction);
// evaluate_linalg.cc
absl::StatusOr<Literal> EvaluateFft(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateCholesky(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateTriangularSolve(const Instruction& instruction, Operands operands);
// evaluate_collective.cc, and what starts a copy
absl::StatusOr<Literal> EvaluateCollective(const Instruction& instruction, Operands operands,
                                           Evaluation& evaluation);
absl::StatusOr<Literal> EvaluateCopyStart(const Instruction& instruction, Operands operands);
absl::StatusOr<Literal> EvaluateDeviceId(const Instruction& instruction, Operands operands,
                                         Evaluation& evaluation);
// evaluate_norm.cc
absl::StatusOr<Literal> EvaluateBatchNorm(const Instruction& instruction, Operands operands);

// Helpers. An instruction over values that are no other instruction's, in a module of its own.
class Lone {
 public:
  Lone(Opcode opcode, const Shape& shape, Operands operands, Attrs attrs,
       absl::Span<Computation* const> called = {});
  const Instruction& operator*() const { return *instruction_; }

 private:
  Module module_{"lone"};
  const Instruction* instruction_;
};
// Element `index` of an integer array. One that int64_t has not is the largest that it has: as a
// position behind the end of every array, as a size larger than any.
int64_t IntegerAt(const Literal& literal, int64_t index);
// Row-major strides in elements.
Dims ElementStrides(absl::Span<const int64_t> dims);
// The literals, or the one literal.
Literal TupleOrOne(std::vector<Literal> results);

}  // namespace lazuli::hlo
