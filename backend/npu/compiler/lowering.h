// HLO to tile programs, one instruction after the other.
//
// A value is views of arrays in DRAM, one for each leaf. Changes of index are views of their
// operand's. An elementwise instruction that only another one reads is computed there, as part of
// its expression; the others are kernels, which lower_*.cc make, a family of opcodes each.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"

#include "backend/npu/compiler/builder.h"
#include "backend/npu/compiler/index_form.h"
#include "backend/npu/compiler/product.h"
#include "backend/npu/compiler/row_groups.h"
#include "backend/npu/compiler/vector_kernel.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

class Lowering {
 public:
  // one_group: NpuCompileOptions has it.
  Lowering(TileBuilder& builder, bool one_group) : b_(builder), one_group_(one_group) {}

  // The entry: parameters are arrays p..., results r....
  absl::Status LowerEntry(const hlo::Computation& entry);

 private:
  friend class ExpressionOf;
  using Views = std::vector<View>;

  friend class Opcodes;  // supported.cc: which of these is whose
  absl::Status LowerBody(const hlo::Computation& computation);
  int InliningDepth(const hlo::Instruction& i) const;
  // One after the other, or strip by strip (row_groups.h).
  absl::Status LowerOne(const hlo::Instruction& i);
  absl::Status LowerRows(const RowUnit& group);
  absl::Status LowerStrip(const RowUnit& group, RowStrip& strip, int64_t start, int64_t rows);
  // The instruction's row says how.
  absl::Status Lower(const hlo::Instruction& i);
  void LowerTuple(const hlo::Instruction& i);
  void LowerTupleElement(const hlo::Instruction& i);
  void LowerBarrier(const hlo::Instruction& i) { values_[&i] = Views(values_.at(i.operand(0))); }
  // As a view of the operand.
  void LowerView(const hlo::Instruction& i);
  void LowerCopy(const hlo::Instruction& i);
  // Each lowers instructions of a family, whose operands have values.
  void LowerElementwise(const hlo::Instruction& i);
  void LowerConstant(const hlo::Instruction& i);
  void LowerIota(const hlo::Instruction& i);
  void LowerReshape(const hlo::Instruction& i);
  void LowerConcatenate(const hlo::Instruction& i);
  void LowerPad(const hlo::Instruction& i);
  void LowerReduce(const hlo::Instruction& i);
  void LowerFold(const hlo::Instruction& i);
  void FoldKernels(const hlo::Computation& region, const std::vector<Views>& rounds,
                   const Views& init, const Views& results);
  // With what is fused into it: a kernel whose first load is the product.
  // A dot or convolution; `fused` is done to its blocks before they are stored.
  void LowerProduct(const hlo::Instruction& i, BoxKernel* fused);
  void LowerProductAlone(const hlo::Instruction& i) { LowerProduct(i, nullptr); }
  void LowerDot(const hlo::Instruction& i, const ProductTypes& types, const View& sums,
                BoxKernel* fused);
  void LowerConvolution(const hlo::Instruction& i, const ProductTypes& types, const View& sums,
                        BoxKernel* fused);
  void LowerDeferred(const hlo::Instruction& i);
  const hlo::Instruction* FusedProduct(const hlo::Instruction& root) const;
  void LowerReduceWindow(const hlo::Instruction& i);
  void LowerSelectAndScatter(const hlo::Instruction& i);

  absl::Status LowerWhile(const hlo::Instruction& i);
  absl::Status LowerConditional(const hlo::Instruction& i);
  absl::Status LowerCall(const hlo::Instruction& i);
  void LowerDynamicSlice(const hlo::Instruction& i);
  void LowerDynamicUpdateSlice(const hlo::Instruction& i);
  bool MayOverwrite(const View& view, const hlo::Instruction& by) const;
  void LowerGather(const hlo::Instruction& i);
  void LowerScatter(const hlo::Instruction& i);
  void LowerRandomBits(const hlo::Instruction& i);
  absl::Status LowerCollective(const hlo::Instruction& i);
  absl::Status LowerAllToAllOfTuple(const hlo::Instruction& i,
                                    const std::vector<std::vector<int>>& groups);
  void EmitExchange(const hlo::Instruction& i, const View& from, const View& to, int64_t n,
                    const std::vector<std::vector<int>>& groups);
  void EmitRandomWords(const View& state, const View& next, const View& words, int64_t count,
                       bool threefry);

  View Distances(const IndexForm& form, const View& indices, DType dtype, const View& operand,
                 const Dims& window, int64_t outside);
  // 0, 1, 2, ... along a dimension.
  View CountingView(int64_t count, const Dims& dims, int64_t dimension);
  void MoveRows(bool gather, const View& array, const Dims& window, const View& distances,
                const View& windows, const Dims& window_dims, uint32_t joining, Type type);

  Views LowerCalled(const hlo::Computation& computation, absl::Span<const Views> arguments,
                    absl::Status& status);
  Views NewArrays(const Shape& shape);
  void Assign(Views from, const Views& to);
  // Into registers of the sequencer. Everything is idle behind it.
  void LoadScalars(absl::Span<const View> scalars, absl::Span<const int> registers);
  static constexpr int kOffset = 4;  // a register
  void ComputeOffset(const View& array, absl::Span<hlo::Instruction* const> starts,
                     absl::Span<const int64_t> sizes);

  const View& ValueOf(const hlo::Instruction& i) { return values_.at(&i)[0]; }
  void Set(const hlo::Instruction& i, View view) { values_[&i] = {std::move(view)}; }
  // A new array for the value of an array instruction: the program's result if it is one.
  View NewArray(const hlo::Instruction& i);
  View Temporary(Type type, absl::Span<const int64_t> dims);
  // The view as a dense array; a copy if it is none.
  View Dense(const View& view);
  void FillWith(const View& scalar, const View& target);
  void FillWithZero(const View& target, DType dtype);
  // The elements as another type: the view itself if it is that.
  View Converted(const View& view, DType from, DType to);
  void ConvertInto(const View& view, DType from, const View& result, DType to);
  // Dims in this order, joined to dims of these sizes; a copy if strides do not allow that.
  View AsMatrices(const View& view, absl::Span<const int64_t> order,
                  absl::Span<const int64_t> sizes);

  TileBuilder& b_;
  const bool one_group_;
  std::unordered_map<const hlo::Instruction*, Views> values_;
  std::unordered_map<const hlo::Instruction*, int> inlined_;  // with their depth
  // Products that their only reader takes in, or makes before it.
  std::unordered_set<const hlo::Instruction*> deferred_;
  std::unordered_map<const hlo::Instruction*, View> results_;  // where instructions are made
  std::unordered_set<const hlo::Instruction*> read_by_rows_;   // by groups: they have arrays
  // The program for some rows of a group that is being lowered, and whose its instructions are.
  std::unordered_map<const hlo::Instruction*, const hlo::Instruction*> originals_;
  int link_flags_ = -1;  // a buffer into which other devices write: it lives as long as the program
};

// Collects the streams of a kernel and the expression over them.
class KernelMaker {
 public:
  KernelMaker(const TileProgram& program, absl::Span<const int64_t> dims) : program_(program) {
    kernel.dims.assign(dims.begin(), dims.end());
  }
  // The elements of a view of the kernel's dims.
  ValueNodes Stream(const View& view);
  VectorKernel kernel;

 private:
  // The stream's number.
  int Load(const View& view, int part);
  const TileProgram& program_;
};

// The elements of a literal array that is not empty, as a constant of the program.
View ConstantView(const Literal& literal, TileBuilder& builder);

}  // namespace lazuli::npu
