// Builder: writes HLO with inferred shapes, as straight-line code.
//
//   lowering::Op y = b.Maximum(x, b.ZerosLike(x));
//
// The first error is kept and everything after it is a no-op on poisoned values, so lowerings
// contain no error handling; Finish() (or status()) reports it. In shapes-only mode nothing is
// built and nothing allocated (after warm-up, up to rank 6, tuples excepted): Op still has its
// shape, which is how an op's shape inference derives from its own lowering.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "ir/hlo/shapes/shape_inference.h"

namespace lazuli::lowering {

using hlo::Opcode;
class Builder;

// A value under construction: 16 bytes, cheap to copy, valid while its builder lives.
class Op {
 public:
  Op() = default;
  const Shape& shape() const;  // stays valid while the builder lives and is not Reset
  DType dtype() const { return shape().dtype(); }
  int64_t rank() const { return shape().rank(); }
  Builder* builder() const { return builder_; }
  hlo::Instruction* instruction() const;  // null in shapes-only mode or after an error
  bool valid() const { return builder_ != nullptr; }

 private:
  friend class Builder;
  Op(Builder* builder, int32_t index) : builder_(builder), index_(index) {}
  Builder* builder_ = nullptr;
  int32_t index_ = -1;
};

using Ops = absl::InlinedVector<Op, 4>;

class Builder {
 public:
  enum class Mode : uint8_t { kBuild, kShapesOnly };

  // Builds the computation `name` of `module` (which the caller owns).
  Builder(hlo::Module* module, std::string_view name);
  // Shapes-only.
  explicit Builder(Mode shapes_only);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  // Forgets everything but keeps memory, so a thread can reuse one shapes-only builder.
  void Reset();

  bool shapes_only() const { return module_ == nullptr; }
  const absl::Status& status() const { return status_; }
  Op Error(absl::Status status);  // keeps the first; returns a poisoned Op (shape f32[])

  hlo::Module* module() const { return module_; }
  hlo::Computation* computation() const { return computation_; }
  absl::StatusOr<hlo::Computation*> Finish(Op root);  // sets the root

  // --- metadata: instructions get the current scope's; nested scopes restore the outer one.
  class MetadataScope {
   public:
    MetadataScope(Builder& builder, hlo::Metadata metadata);
    ~MetadataScope();
    MetadataScope(const MetadataScope&) = delete;
    MetadataScope& operator=(const MetadataScope&) = delete;

   private:
    Builder& builder_;
    hlo::Metadata saved_;
  };
  void SetOneShotMetadata(hlo::Metadata metadata);  // for the next instruction only

  // --- any instruction, with an inferred (or declared) shape
  Op Add(Opcode opcode, absl::Span<const Op> operands, hlo::Attrs attrs = hlo::NoAttrs{},
         absl::Span<hlo::Computation* const> called = {}, const Shape* declared = nullptr);

  // --- leaves
  Op Parameter(int64_t number, const Shape& shape, std::string_view name = {});
  Op Constant(Literal value);
  Op Scalar(DType dtype, double value);       // rank-0 constant
  Op Full(const Shape& shape, double value);  // broadcast constant
  Op Iota(const Shape& shape, int64_t dimension);
  Op ZerosLike(Op x) { return Full(x.shape(), 0); }

  // --- elementwise: operands already have equal dims (see BroadcastTogether)
  Op Unary(Opcode opcode, Op x) { return Add(opcode, {x}); }
  Op Binary(Opcode opcode, Op x, Op y) { return Add(opcode, {x, y}); }
  Op Plus(Op x, Op y) { return Binary(Opcode::kAdd, x, y); }
  Op Minus(Op x, Op y) { return Binary(Opcode::kSubtract, x, y); }
  Op Times(Op x, Op y) { return Binary(Opcode::kMultiply, x, y); }
  Op DividedBy(Op x, Op y) { return Binary(Opcode::kDivide, x, y); }
  Op Maximum(Op x, Op y) { return Binary(Opcode::kMaximum, x, y); }
  Op Minimum(Op x, Op y) { return Binary(Opcode::kMinimum, x, y); }
  Op Compare(hlo::ComparisonDirection direction, Op x, Op y);
  Op Select(Op pred, Op on_true, Op on_false) {
    return Add(Opcode::kSelect, {pred, on_true, on_false});
  }
  Op Clamp(Op low, Op x, Op high) { return Add(Opcode::kClamp, {low, x, high}); }
  Op Convert(Op x, DType dtype);  // x itself if it has the dtype

  // --- shape
  Op Broadcast(Op x, absl::Span<const int64_t> dims, absl::Span<const int64_t> dimensions);
  // NumPy broadcasting: trailing dims align, size 1 stretches. An error names both shapes.
  Op BroadcastTo(Op x, absl::Span<const int64_t> dims);
  std::pair<Op, Op> BroadcastTogether(Op x, Op y);
  Op Reshape(Op x, absl::Span<const int64_t> dims);  // x itself if it has the dims
  Op Transpose(Op x, absl::Span<const int64_t> permutation);
  Op Reverse(Op x, absl::Span<const int64_t> dimensions);
  Op Slice(Op x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
           absl::Span<const int64_t> strides);
  Op DynamicSlice(Op x, absl::Span<const Op> starts, absl::Span<const int64_t> sizes);
  Op DynamicUpdateSlice(Op x, Op update, absl::Span<const Op> starts);
  Op Concatenate(absl::Span<const Op> xs, int64_t dimension);
  Op Pad(Op x, Op value, absl::Span<const int64_t> low, absl::Span<const int64_t> high,
         absl::Span<const int64_t> interior);
  Op Gather(Op x, Op indices, hlo::GatherAttrs attrs) {
    return Add(Opcode::kGather, {x, indices}, std::move(attrs));
  }
  // `combiner` is a binary opcode, or kCopy: the update replaces what was there.
  Op Scatter(Op x, Op indices, Op updates, hlo::ScatterAttrs attrs, Opcode combiner);

  // --- contraction, windows, reduction
  Op Dot(Op x, Op y, hlo::DotAttrs attrs) { return Add(Opcode::kDot, {x, y}, std::move(attrs)); }
  Op Convolution(Op x, Op kernel, hlo::ConvolutionAttrs attrs);
  // Reduction by a binary opcode (add, maximum, ...) from its identity.
  Op Reduce(Opcode monoid, Op x, absl::Span<const int64_t> dimensions);
  Op Reduce(absl::Span<const Op> xs, absl::Span<const Op> inits, hlo::Computation* reducer,
            absl::Span<const int64_t> dimensions);
  Op ReduceWindow(Opcode monoid, Op x, hlo::Window window);
  // The gradient of max pooling: each element of source added where its window has its maximum, the
  // first of equal ones, the last NaN.
  Op SelectAndScatter(Op x, Op source, hlo::Window window);
  Op Sort(absl::Span<const Op> xs, int64_t dimension, bool stable, hlo::Computation* comparator);

  // --- tuples and regions
  Op Tuple(absl::Span<const Op> xs);
  Op GetTupleElement(Op x, int64_t index);
  Op While(Op init, hlo::Computation* condition, hlo::Computation* body);
  Op Call(hlo::Computation* callee, absl::Span<const Op> operands);
  // {new state, bits} of rng-bit-generator; state u64[2], bits of an unsigned dtype.
  std::pair<Op, Op> RngBitGenerator(hlo::RngAlgorithm algorithm, Op state, const Shape& bits);
  // The computation `(a, b) -> opcode(a, b)` on scalars of dtype, made once a module; (a, b) -> b
  // for kCopy. Null in shapes-only mode.
  hlo::Computation* ScalarComputation(Opcode opcode, DType dtype);
  // A nested computation written by `body` over parameters of these shapes. Null in shapes-only
  // mode (body still runs for its shape).
  hlo::Computation* Region(std::string_view name, absl::Span<const Shape> parameters,
                           absl::FunctionRef<Op(Builder&, absl::Span<const Op>)> body);

 private:
  friend class Op;
  struct Entry {
    Shape shape;
    hlo::Instruction* instruction = nullptr;
  };
  Op Push(Shape shape, hlo::Instruction* instruction);
  const Entry& entry(Op op) const { return entries_[static_cast<std::size_t>(op.index_)]; }
  bool Owns(Op op) const {
    return op.builder_ == this && op.index_ >= 0 && static_cast<std::size_t>(op.index_) < used_;
  }
  Op Poisoned() { return Op(this, -1); }
  hlo::Instruction* WithMetadata(hlo::Instruction* instruction);
  // A shape from dims that somebody else chose; an error is kept.
  bool MakeShape(DType dtype, absl::Span<const int64_t> dims, Shape* shape);
  hlo::Computation* ComparisonComputation(hlo::ComparisonDirection direction, DType dtype);
  hlo::Computation* BinaryComputation(std::string_view name, Opcode opcode, DType dtype,
                                      hlo::Attrs attrs);
  // Regions that an instruction is given: none in shapes-only mode.
  absl::Span<hlo::Computation* const> Called(absl::Span<hlo::Computation* const> called) const {
    return shapes_only() ? absl::Span<hlo::Computation* const>() : called;
  }

  hlo::Module* module_ = nullptr;
  hlo::Computation* computation_ = nullptr;
  std::deque<Entry>
      entries_;  // a deque: shape() hands out references that must survive the next instruction
  std::size_t used_ = 0;
  absl::Status status_;
  hlo::Metadata metadata_;
  hlo::Metadata one_shot_;
  bool has_one_shot_ = false;
  std::unique_ptr<Builder> nested_;  // runs the bodies of regions in shapes-only mode
};

}  // namespace lazuli::lowering
