#include "backend/cpu/dot_spec.h"

#include <algorithm>

#include "backend/cpu/runtime/few_rows.h"
#include "ir/hlo/dot_dims.h"

namespace lazuli::cpu {
namespace {

struct MergedDims {
  int64_t size = 1;
  int64_t stride = 0;  // of the merged dimension
  bool merges = true;
};

// Dimensions, in this order, as one.
MergedDims Merge(const Shape& shape, const Dims& dims) {
  const Dims strides = shape.strides();
  MergedDims merged;
  bool first = true;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const int64_t size = shape.dim(dims[i]);
    const int64_t stride = strides[static_cast<std::size_t>(dims[i])];
    if (size == 1) continue;
    if (first) {
      merged.stride = stride;
      first = false;
    } else if (stride != merged.stride * merged.size) {
      merged.merges = false;
    }
    merged.size *= size;
  }
  return merged;
}

// Strides of {batch, first, second} of an operand; plans a copy where a group does not merge or no
// stride is 1.
std::array<int64_t, 3> Strides(const Shape& shape, const std::array<Dims, 3>& groups,
                               std::optional<StridedCopy>& pack) {
  const MergedDims batch = Merge(shape, groups[0]), first = Merge(shape, groups[1]),
                   second = Merge(shape, groups[2]);
  const bool unit = first.stride == 1 || second.stride == 1 ||
                    (first.size == 1 && second.size == 1) || first.size == 1 || second.size == 1;
  if (batch.merges && first.merges && second.merges && unit) {
    return {batch.stride,
            first.size == 1 ? second.size * std::max<int64_t>(second.stride, 1) : first.stride,
            second.size == 1 ? 1 : second.stride};
  }
  Dims dims, from, to;
  int64_t stride = shape.num_elements();
  const Dims strides = shape.strides();
  for (const Dims& group : groups) {
    for (int64_t d : group) {
      dims.push_back(shape.dim(d));
      from.push_back(strides[static_cast<std::size_t>(d)]);
      stride /= shape.dim(d);
      to.push_back(stride);
    }
  }
  pack = StridedCopy(ByteWidth(shape.dtype()), dims, from, to);
  return {first.size * second.size, second.size, 1};
}

}  // namespace

std::optional<DotPlan> PlanDot(const hlo::Instruction& dot) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  const Shape& a = dot.operand(0)->shape();
  const Shape& b = dot.operand(1)->shape();
  const DType dtype = dot.shape().dtype();
  if (!TakesFactor(dtype, a.dtype()) || !TakesFactor(dtype, b.dtype())) return std::nullopt;
  if (dot.shape().has_layout()) return std::nullopt;
  if (a.num_elements() == 0 || b.num_elements() == 0) return std::nullopt;
  const Dims m = hlo::FreeDims(a, attrs.lhs_batch_dims, attrs.lhs_contracting_dims);
  const Dims n = hlo::FreeDims(b, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  DotPlan plan;
  MatmulSpec& spec = plan.spec;
  spec.dtype = dtype;
  spec.a_dtype = a.dtype();
  spec.b_dtype = b.dtype();
  spec.batch = Merge(a, attrs.lhs_batch_dims).size;
  spec.m = Merge(a, m).size;
  spec.k = Merge(a, attrs.lhs_contracting_dims).size;
  spec.n = Merge(b, n).size;
  spec.a_strides = Strides(a, {attrs.lhs_batch_dims, m, attrs.lhs_contracting_dims}, plan.pack[0]);
  spec.b_strides = Strides(b, {attrs.rhs_batch_dims, attrs.rhs_contracting_dims, n}, plan.pack[1]);
  spec.c_strides = {spec.m * spec.n, spec.n, 1};
  return plan;
}

}  // namespace lazuli::cpu
