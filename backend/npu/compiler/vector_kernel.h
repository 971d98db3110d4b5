// Kernels of the vector unit: an expression over streams, strip by strip, perhaps reduced.
//
// The elements are cut into boxes that fit the scratchpad. Of each box the parts of the inputs that
// it needs are loaded (what is broadcast is loaded once, and strides of 0 repeat it), the runs of
// the expression follow each other over the whole box, and the result is stored.
#pragma once

#include <memory>
#include <vector>

#include "backend/npu/compiler/builder.h"
#include "backend/npu/compiler/expression.h"

namespace lazuli::npu {

// As vx.red has them.
enum class Reduction : int8_t { kNone = -1, kSum, kMax, kMin, kProd, kAnd, kOr, kArgMax, kArgMin };

// A stream: the elements of a view, or of those of 64 bits the lower (0) or the upper (1) half.
struct KernelLoad {
  View view;
  int part = -1;
};

struct VectorKernel {
  Dims dims;
  Expression expression;
  ValueNodes root;
  std::vector<KernelLoad> loads;  // of these dims
  View result;                    // of these dims; strides are 0 along what is reduced
  Reduction reduction = Reduction::kNone;
};
void EmitVectorKernel(VectorKernel kernel, TileBuilder& builder);

// A kernel that is done box by box to what somebody else makes in the scratchpad: its first load.
class BoxKernel {
 public:
  BoxKernel(VectorKernel kernel, TileBuilder& builder);
  ~BoxKernel();
  // Its operations come from what the builder's came from when this was made.
  void Run(const Dims& starts, const Dims& extents, const TileBuilder::Stream& made);
  int64_t bytes() const;  // of the scratchpad, for each element of a box

 private:
  TileBuilder& builder_;
  const int origin_;
  std::unique_ptr<class VectorEmitter> emitter_;
};

// Copies elements from one view to another of the same dims and width. Registers of the sequencer hold what is added to the places
// of the arrays, if they are not 0.
void EmitMove(const View& from, const View& to, TileBuilder& builder, int from_register = 0,
              int to_register = 0);

// The micro-operation that joins two results of a reduction.
Micro JoiningMicro(Reduction reduction);

}  // namespace lazuli::npu
