// Instructions that make arrays of other arrays' elements, or of none.

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/npu/compiler/lowering.h"
#include "ir/evaluator/kernels.h"
#include "ir/hlo/pads.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {

using hlo::Opcode;

void Lowering::LowerConstant(const hlo::Instruction& i) {
  Views views;
  ForEachLeaf(i.literal(), [&](const Literal& leaf) {
    views.push_back(leaf.shape().num_elements() > 0
                        ? ConstantView(leaf, b_)
                        : DenseView(-1, *TypeOf(leaf.shape().dtype()), leaf.shape().dims()));
  });
  values_[&i] = std::move(views);
}

// A line of numbers, repeated: it is read with a stride of 0 along the other dims.
void Lowering::LowerIota(const hlo::Instruction& i) {
  const int64_t dimension = i.attrs_as<hlo::IotaAttrs>().iota_dimension;
  const DType dtype = i.shape().dtype();
  Literal line = Literal::Uninitialized(Shape(dtype, {i.shape().dim(dimension)}));
  for (int64_t n = 0; n < i.shape().dim(dimension); ++n) {
    std::byte* at = line.mutable_raw() + n * ByteWidth(dtype);
    if (IsIntegral(dtype))
      std::memcpy(at, &n, static_cast<std::size_t>(ByteWidth(dtype)));  // its lower bytes
    else
      line.SetFromDouble(n, static_cast<double>(n));
  }
  hlo::WrapSubByte(dtype, line.mutable_raw(), line.shape().num_elements());
  Set(i, BroadcastView(ConstantView(line, b_), i.shape().dims(), {dimension}));
}

void Lowering::LowerReshape(const hlo::Instruction& i) {
  const View& operand = ValueOf(*i.operand(0));
  std::optional<View> view = ReshapeView(operand, i.shape().dims());
  if (!view) {
    const View copy = Dense(operand);
    view = ReshapeView(copy, i.shape().dims());
  }
  Set(i, *std::move(view));
}

void Lowering::LowerConcatenate(const hlo::Instruction& i) {
  const auto dimension = static_cast<std::size_t>(i.attrs_as<hlo::DimensionsAttrs>().dimensions[0]);
  const View result = NewArray(i);
  int64_t at = 0;
  for (const hlo::Instruction* operand : i.operands()) {
    const View& part = ValueOf(*operand);
    if (part.elements() > 0) {
      View target = result;
      target.dims = part.dims;
      target.offset += at * result.strides[dimension];
      EmitMove(part, target, b_);
    }
    at += operand->shape().dim(static_cast<int64_t>(dimension));
  }
  Set(i, result);
}

// Every element of `target` becomes the scalar.
void Lowering::FillWith(const View& scalar, const View& target) {
  EmitMove(BroadcastView(scalar, target.dims, {}), target, b_);
}

void Lowering::LowerPad(const hlo::Instruction& i) {
  const auto& attrs = i.attrs_as<hlo::PadAttrs>();
  const View result = NewArray(i);
  Set(i, result);
  View part = ValueOf(*i.operand(0)), target = result;
  bool covers = true, empty = part.elements() == 0;
  for (std::size_t d = 0; d < part.dims.size() && !empty; ++d) {
    const hlo::KeptByPad kept(attrs, d, part.dims[d], result.dims[d]);
    empty = kept.count == 0;
    if (empty) break;
    part.offset += kept.first * part.strides[d];
    target.offset += kept.at * target.strides[d];
    target.strides[d] *= kept.step;
    part.dims[d] = target.dims[d] = kept.count;
    covers = covers && kept.count == result.dims[d];
  }
  if (empty || !covers) FillWith(ValueOf(*i.operand(1)), result);
  if (!empty) EmitMove(part, target, b_);
}

}  // namespace lazuli::npu
