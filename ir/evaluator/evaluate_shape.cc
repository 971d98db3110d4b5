// Data movement with static positions: strided copies, and reinterpretation of bytes.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/evaluator/dynamic_sizes.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/pads.h"

namespace lazuli::hlo {
namespace {

Literal Iota(const Instruction& instruction) {
  const Shape& shape = instruction.shape();
  const int64_t dimension = instruction.attrs_as<IotaAttrs>().iota_dimension;
  const int64_t size = shape.dim(dimension);
  Literal counts = Literal::Uninitialized(Shape(DType::kS64, {size}));
  auto values = counts.mutable_data<int64_t>();
  std::iota(values.begin(), values.end(), int64_t{0});
  counts = counts.Converted(shape.dtype());
  Literal result = Literal::Uninitialized(shape);
  Dims from_strides(static_cast<std::size_t>(shape.rank()), 0);
  from_strides[static_cast<std::size_t>(dimension)] = ByteWidth(shape.dtype());
  CopyStrided(ByteWidth(shape.dtype()), shape.dims(), counts.raw(), from_strides,
              result.mutable_raw(), ByteStrides(result.shape()));
  return result;
}

Literal Broadcast(const Instruction& instruction, const Literal& x) {
  const Shape& shape = instruction.shape();
  const Dims& dimensions = instruction.attrs_as<DimensionsAttrs>().dimensions;
  const Dims strides = ByteStrides(x.shape());
  Dims from_strides(static_cast<std::size_t>(shape.rank()), 0);
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    from_strides[static_cast<std::size_t>(dimensions[i])] = strides[i];
  Literal result = Literal::Uninitialized(shape);
  CopyStrided(ByteWidth(shape.dtype()), shape.dims(), x.raw(), from_strides, result.mutable_raw(),
              ByteStrides(result.shape()));
  return result;
}

Literal Reverse(const Instruction& instruction, const Literal& x) {
  Dims strides = ByteStrides(x.shape());
  const std::byte* from = x.raw();
  for (int64_t d : instruction.attrs_as<DimensionsAttrs>().dimensions) {
    int64_t& stride = strides[static_cast<std::size_t>(d)];
    if (x.shape().dim(d) > 0) from += stride * (x.shape().dim(d) - 1);
    stride = -stride;
  }
  Literal result = Literal::Uninitialized(x.shape());
  CopyStrided(ByteWidth(x.shape().dtype()), x.shape().dims(), from, strides, result.mutable_raw(),
              ByteStrides(x.shape()));
  return result;
}

Literal Slice(const Instruction& instruction, const Literal& x) {
  const auto& attrs = instruction.attrs_as<SliceAttrs>();
  Dims strides = ByteStrides(x.shape());
  const std::byte* from = x.raw();
  for (std::size_t d = 0; d < strides.size(); ++d) {
    from += attrs.starts[d] * strides[d];
    strides[d] *= attrs.strides.empty() ? 1 : attrs.strides[d];
  }
  Literal result = Literal::Uninitialized(instruction.shape());
  CopyStrided(ByteWidth(x.shape().dtype()), result.shape().dims(), from, strides,
              result.mutable_raw(), ByteStrides(result.shape()));
  return result;
}

Literal Pad(const Instruction& instruction, const Literal& x, const Literal& value) {
  const auto& attrs = instruction.attrs_as<PadAttrs>();
  const int width = ByteWidth(x.shape().dtype());
  Literal result = Literal::Uninitialized(instruction.shape());
  Fill(width, value.raw(), result.shape().num_elements(), result.mutable_raw());
  Dims counts, from_strides = ByteStrides(x.shape()), to_strides = ByteStrides(result.shape());
  const std::byte* from = x.raw();
  std::byte* to = result.mutable_raw();
  for (std::size_t d = 0; d < from_strides.size(); ++d) {
    const KeptByPad kept(attrs, d, x.shape().dims()[d], result.shape().dims()[d]);
    if (kept.count == 0) return result;
    counts.push_back(kept.count);
    from += kept.first * from_strides[d];
    to += kept.at * to_strides[d];
    to_strides[d] *= kept.step;
  }
  CopyStrided(width, counts, from, from_strides, to, to_strides);
  return result;
}

Literal Concatenate(const Instruction& instruction, Operands operands) {
  const int64_t dimension = instruction.attrs_as<DimensionsAttrs>().dimensions[0];
  Literal result = Literal::Uninitialized(instruction.shape());
  const Dims strides = ByteStrides(result.shape());
  std::byte* to = result.mutable_raw();
  for (const Literal* operand : operands) {
    CopyStrided(ByteWidth(operand->shape().dtype()), operand->shape().dims(), operand->raw(),
                ByteStrides(operand->shape()), to, strides);
    to += operand->shape().dim(dimension) * strides[static_cast<std::size_t>(dimension)];
  }
  return result;
}

// The bytes in the order in which the shape's layout stores them, or back.
Literal InLayout(const Literal& x, const Shape& shape, bool to_layout) {
  const Dims minor_to_major = shape.minor_to_major();
  Dims major_to_minor(minor_to_major.rbegin(), minor_to_major.rend());
  if (to_layout) return Transposed(x, major_to_minor);
  Dims physical, inverse(major_to_minor.size(), 0);
  for (std::size_t i = 0; i < major_to_minor.size(); ++i) {
    physical.push_back(shape.dim(major_to_minor[i]));
    inverse[static_cast<std::size_t>(major_to_minor[i])] = static_cast<int64_t>(i);
  }
  return Transposed(x.Reshaped(physical), inverse);
}

// The same bytes under another shape.
Literal Reinterpreted(const Literal& x, const Shape& shape) {
  Literal result = Literal::Uninitialized(shape);
  std::memcpy(result.mutable_raw(), x.raw(), static_cast<std::size_t>(result.byte_size()));
  return result;
}

Literal Bitcast(const Instruction& instruction, const Literal& x) {
  const Shape& from = instruction.operand(0)->shape();
  const Literal physical = InLayout(x, from, /*to_layout=*/true);
  return InLayout(
      Reinterpreted(physical, Shape(instruction.shape().dtype(), instruction.shape().dims())),
      instruction.shape(), /*to_layout=*/false);
}

// Elements narrower than a byte lie in one each; as bits they are dense, the first in the low bits.
absl::StatusOr<Literal> BitcastConvert(const Instruction& instruction, const Literal& x) {
  const Shape& shape = instruction.shape();
  const int from_bits = Row(x.shape().dtype()).bits, to_bits = Row(shape.dtype()).bits;
  if (from_bits == to_bits || (from_bits >= 8 && to_bits >= 8)) return Reinterpreted(x, shape);
  Literal result(shape);
  const int64_t total = x.shape().num_elements() * from_bits;
  const int from_width = std::min(from_bits, 8), to_width = std::min(to_bits, 8);
  for (int64_t bit = 0; bit < total; ++bit) {
    const auto from = static_cast<int>(x.raw()[bit / from_width]);
    if ((from >> (bit % from_width) & 1) == 0) continue;
    result.mutable_raw()[bit / to_width] |= static_cast<std::byte>(1 << (bit % to_width));
  }
  if (IsSigned(shape.dtype()) && to_bits < 8) {
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const int unused = 8 - to_bits;
      auto shifted = static_cast<int8_t>(static_cast<int>(result.raw()[i]) << unused);
      result.mutable_raw()[i] = static_cast<std::byte>(shifted >> unused);
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<Literal> EvaluateShape(const Instruction& instruction, Operands operands) {
  switch (instruction.opcode()) {
    case Opcode::kIota:
      return Iota(instruction);
    case Opcode::kBroadcast:
      return Broadcast(instruction, *operands[0]);
    case Opcode::kTranspose:
      return Transposed(*operands[0], instruction.attrs_as<DimensionsAttrs>().dimensions);
    case Opcode::kReverse:
      return Reverse(instruction, *operands[0]);
    case Opcode::kReshape:
    case Opcode::kDynamicReshape:
      return operands[0]->Reshaped(instruction.shape().dims());
    case Opcode::kBitcast:
      return Bitcast(instruction, *operands[0]);
    case Opcode::kBitcastConvert:
      return BitcastConvert(instruction, *operands[0]);
    case Opcode::kConcatenate:
      return Concatenate(instruction, operands);
    case Opcode::kSlice:
      return Slice(instruction, *operands[0]);
    case Opcode::kPad:
      return Pad(instruction, *operands[0], *operands[1]);
    case Opcode::kGetDimensionSize:
      return Literal::Scalar(static_cast<int32_t>(
          operands[0]->shape().dim(instruction.attrs_as<DimensionsAttrs>().dimensions[0])));
    case Opcode::kSetDimensionSize:
      return WithDimensionSize(instruction, *operands[0], IntegerAt(*operands[1], 0));
    default:
      return Internal(OpcodeText(instruction.opcode()), " does not move data");
  }
}

}  // namespace lazuli::hlo
