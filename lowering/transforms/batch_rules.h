// What batch rules (rules.def) work with: values that are batched or not, and the computation that is
// written.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/clone.h"
#include "ir/hlo/module.h"
#include "lowering/builder/builder.h"
#include "lowering/transforms/batch.h"

namespace lazuli::lowering {

// An array, with a leading batch dim or without one; a token, which has none; or a tuple of values.
struct BatchValue {
  Op op = {};
  bool batched = false;
  bool is_tuple = false;
  std::vector<BatchValue> elements = {};

  bool AnyBatched() const;
  // Appends whether each array is batched.
  void AppendFlags(std::vector<bool>& flags) const;
};
using BatchValues = absl::Span<const BatchValue>;

// The new module, and what its computations share.
class BatchModule {
 public:
  BatchModule(hlo::Module& module, int64_t size, BatchOptions options)
      : module_(module), size_(size), options_(options) {}
  hlo::Module& module() { return module_; }
  int64_t size() const { return size_; }
  bool draws_differ() const { return options_.random == BatchRandom::kDifferent; }

  // The copies of computations that are not batched.
  std::vector<hlo::Computation*> CopiesOf(absl::Span<hlo::Computation* const> sources);
  // The batched form of a computation. Flags are in the order of leaves; the results are batched where
  // `wanted` says it and where they depend on what is batched.
  struct Body {
    hlo::Computation* computation = nullptr;
    std::vector<bool> results;
  };
  absl::StatusOr<Body> BodyOf(const hlo::Computation& source, const std::vector<bool>& parameters,
                              const std::vector<bool>& wanted);
  // The error of an instruction, unless it is one of an instruction inside.
  absl::Status Located(const absl::Status& status, const hlo::Instruction& i);

 private:
  using Key = std::pair<const hlo::Computation*, std::pair<std::vector<bool>, std::vector<bool>>>;
  hlo::Module& module_;
  const int64_t size_;
  const BatchOptions options_;
  hlo::Clones copies_;
  std::map<Key, Body> bodies_;
  bool located_ = false;
};

// A computation that is being written.
class BatchScope {
 public:
  BatchScope(BatchModule& shared, Builder& builder) : b(builder), shared_(shared) {}
  Builder& b;
  BatchModule& shared() { return shared_; }
  int64_t size() const { return shared_.size(); }

  // The shape with a batch dim; of a tuple, where the flags say so.
  Shape Batched(const Shape& shape) const;
  Shape Batched(const Shape& shape, const std::vector<bool>& flags) const;
  // The value of an array with a batch dim, which it is given if it has none.
  Op Full(const BatchValue& value);
  BatchValue Broadcast(const BatchValue& value, const std::vector<bool>& flags);
  // [B] or a scalar as an array of batched dims; other arrays as Full.
  Op FullAs(const BatchValue& value, const Shape& batched);
  static BatchValue Array(Op op, bool batched = true) { return {.op = op, .batched = batched}; }
  // A value as one op, tuples as tuples, and the other way round.
  Op Join(const BatchValue& value);
  BatchValue Split(Op op, const std::vector<bool>& flags);
  BatchValue Split(Op op, bool batched);
  std::vector<Op> FullOperands(BatchValues operands);

  // The instruction on operands with batch dims in front; everything it gives has one, too.
  BatchValue AddBatched(const hlo::Instruction& i, absl::Span<const Op> operands, hlo::Attrs attrs);
  // The instruction as it is.
  BatchValue AddPlain(const hlo::Instruction& i, absl::Span<const Op> operands);
  // A dim at another place, the others in order.
  Op MoveDim(Op x, int64_t from, int64_t to);
  // An error of this instruction.
  BatchValue Error(absl::Status status) { return Array(b.Error(std::move(status))); }

 private:
  BatchValue SplitNext(Op op, const std::vector<bool>& flags, std::size_t* next);
  BatchModule& shared_;
};

// Writes the instruction for operands of which at least one is batched, or that draws numbers for each
// sample. Errors go to the scope's builder.
using BatchRule = BatchValue (*)(BatchScope& s, const hlo::Instruction& i, BatchValues operands);
#define LAZULI_BATCH_RULE(name) \
  BatchValue name(BatchScope& s, const hlo::Instruction& i, BatchValues operands)
LAZULI_BATCH_RULE(BatchElementwise);
LAZULI_BATCH_RULE(BatchSameAttrs);  // shape rules look at the last dims alone
LAZULI_BATCH_RULE(BatchDimensions);
LAZULI_BATCH_RULE(BatchBroadcast);
LAZULI_BATCH_RULE(BatchTranspose);
LAZULI_BATCH_RULE(BatchReshape);
LAZULI_BATCH_RULE(BatchSlice);
LAZULI_BATCH_RULE(BatchPad);
LAZULI_BATCH_RULE(BatchDynamicSlice);
LAZULI_BATCH_RULE(BatchDynamicUpdateSlice);
LAZULI_BATCH_RULE(BatchGather);
LAZULI_BATCH_RULE(BatchScatter);
LAZULI_BATCH_RULE(BatchOptBarrier);
LAZULI_BATCH_RULE(BatchAddDependency);
LAZULI_BATCH_RULE(BatchGetDimensionSize);
LAZULI_BATCH_RULE(BatchSetDimensionSize);
LAZULI_BATCH_RULE(BatchDot);
LAZULI_BATCH_RULE(BatchConvolution);
LAZULI_BATCH_RULE(BatchScaledDot);
LAZULI_BATCH_RULE(BatchReduce);
LAZULI_BATCH_RULE(BatchReduceWindow);
LAZULI_BATCH_RULE(BatchSelectAndScatter);
LAZULI_BATCH_RULE(BatchMap);
LAZULI_BATCH_RULE(BatchSort);
LAZULI_BATCH_RULE(BatchWhile);
LAZULI_BATCH_RULE(BatchConditional);
LAZULI_BATCH_RULE(BatchCall);
LAZULI_BATCH_RULE(BatchScan);
LAZULI_BATCH_RULE(BatchRng);
LAZULI_BATCH_RULE(BatchRngBitGenerator);
LAZULI_BATCH_RULE(BatchBatchNorm);
LAZULI_BATCH_RULE(BatchCustomCall);
// The instruction for one sample after the other, in a loop: right for every opcode without side
// effects, and slow.
LAZULI_BATCH_RULE(LoopOverSamples);
#undef LAZULI_BATCH_RULE

// Null if there is none.
BatchRule BatchRuleOf(Opcode opcode);

// Dims with one put in front, and positions of dims behind it.
Dims WithFront(int64_t front, absl::Span<const int64_t> dims);
Dims Shifted(absl::Span<const int64_t> positions);

}  // namespace lazuli::lowering
