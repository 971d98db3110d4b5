#include "backend/cpu/narrow_products.h"

#include <algorithm>

#include "backend/cpu/runtime/few_rows.h"
#include "backend/cpu/runtime/library.h"
#include "ir/hlo/dot_dims.h"

namespace lazuli::cpu {
namespace {

// Rows, columns or terms; smaller products are not worth it.
constexpr int64_t kLeast = 16;

int64_t SizeOf(const Shape& shape, const Dims& dims) {
  int64_t size = 1;
  for (int64_t d : dims) size *= shape.dim(d);
  return size;
}

struct Sizes {
  int64_t rows, columns, terms;
  bool few() const { return std::min(rows, columns) <= kMostRows; }
  bool large() const { return terms >= kLeast && std::max(rows, columns) >= kLeast; }
};
Sizes SizesOf(const hlo::Instruction& dot) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  const Shape &a = dot.operand(0)->shape(), &b = dot.operand(1)->shape();
  return {SizeOf(a, hlo::FreeDims(a, attrs.lhs_batch_dims, attrs.lhs_contracting_dims)),
          SizeOf(b, hlo::FreeDims(b, attrs.rhs_batch_dims, attrs.rhs_contracting_dims)),
          SizeOf(a, attrs.lhs_contracting_dims)};
}

}  // namespace

bool MultipliesNarrow(const hlo::Instruction& dot) {
  static const bool has_instructions = MultipliesBf16();
  if (dot.opcode() != hlo::Opcode::kDot || dot.operand(0)->shape().dtype() != DType::kBF16 ||
      dot.operand(1)->shape().dtype() != DType::kBF16)
    return false;
  const Sizes sizes = SizesOf(dot);
  return sizes.large() && (sizes.few() || has_instructions);
}

bool WidensAsItReads(const hlo::Instruction& dot, DType factor) {
  if (!IsReadNarrow(factor) || dot.shape().dtype() != DType::kF32) return false;
  const Sizes sizes = SizesOf(dot);
  return sizes.large() && sizes.few();
}

}  // namespace lazuli::cpu
