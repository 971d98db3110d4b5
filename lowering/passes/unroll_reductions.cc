#include "lowering/passes/unroll_reductions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/algorithm/container.h"

#include "ir/evaluator/reduction_order.h"
#include "ir/hlo/monoid.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// What is read, or multiplied, and what is combined for one element.
constexpr int64_t kMaxElements = 64, kMaxTerms = 16;

int64_t SizeOf(const Shape& shape, const Dims& dims) {
  int64_t size = 1;
  for (const int64_t d : dims) size *= shape.dim(d);
  return size;
}

// x at position `term`, in row-major order, of the dimensions `along`, which it loses.
Instruction* TermOf(Rewriter& rewriter, Instruction* x, const Dims& along, int64_t term) {
  const Shape& shape = x->shape();
  hlo::SliceAttrs slice;
  slice.starts.assign(static_cast<std::size_t>(shape.rank()), 0);
  slice.limits.assign(shape.dims().begin(), shape.dims().end());
  slice.strides.assign(static_cast<std::size_t>(shape.rank()), 1);
  Shape part = shape;
  for (std::size_t k = along.size(); k-- > 0;) {
    const int64_t d = along[k], at = term % shape.dim(d);
    term /= shape.dim(d);
    slice.starts[static_cast<std::size_t>(d)] = at;
    slice.limits[static_cast<std::size_t>(d)] = at + 1;
    part.set_dim(d, 1);
  }
  Dims kept;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!absl::c_linear_search(along, d)) kept.push_back(shape.dim(d));
  }
  const bool is_all = part.dims() == shape.dims();
  return rewriter.Reshape(is_all ? x : rewriter.Add(Opcode::kSlice, part, {x}, slice), kept);
}

std::optional<Opcode> SmallMonoid(const Instruction& i) {
  if (i.opcode() != Opcode::kReduce || i.operand_count() != 2 || !i.shape().IsArray()) return {};
  const Shape& x = i.operand(0)->shape();
  const int64_t terms = SizeOf(x, i.attrs_as<hlo::DimensionsAttrs>().dimensions);
  if (x.num_elements() > kMaxElements || terms > kMaxTerms || terms == 0) return {};
  return hlo::MonoidOf(*i.called()[0]);
}

Instruction* UnrolledReduce(Rewriter& rewriter, const Instruction& reduce, Opcode monoid) {
  const Shape& shape = reduce.shape();
  const DType dtype = hlo::AccumulationType(shape.dtype());
  Instruction* const x = rewriter.Convert(reduce.operand(0), dtype);
  const Shape wide(dtype, shape.dims());
  const auto full = [&](Instruction* scalar) { return rewriter.Broadcast(scalar, wide, {}); };
  const auto combine = [&](Instruction* a, Instruction* b) {
    return rewriter.Add(monoid, wide, {a, b});
  };
  Dims along = reduce.attrs_as<hlo::DimensionsAttrs>().dimensions;
  std::sort(along.begin(), along.end());
  const Literal identity = hlo::IdentityOf(monoid, dtype);
  std::array<Instruction*, hlo::kReduceLanes> lanes;
  lanes.fill(full(rewriter.AddConstant(identity.Clone())));
  const int64_t terms = SizeOf(x->shape(), along);
  for (int64_t k = 0; k < terms; ++k) {
    Instruction*& lane = lanes[static_cast<std::size_t>(k % hlo::kReduceLanes)];
    lane = combine(lane, TermOf(rewriter, x, along, k));
  }
  for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] = combine(lanes[l], lanes[l + half]);
  }
  Instruction* const init = reduce.operand(1);
  const bool starts_there =
      init->IsConstant() && dtype == shape.dtype() && init->literal().BitsEqual(identity);
  Instruction* const total =
      starts_there ? lanes[0] : combine(full(rewriter.Convert(init, dtype)), lanes[0]);
  return rewriter.Convert(total, shape.dtype());
}

bool IsSmallDot(const Instruction& i) {
  if (i.opcode() != Opcode::kDot) return false;
  const Shape &x = i.operand(0)->shape(), &y = i.operand(1)->shape();
  const DType dtype = i.shape().dtype();
  const bool sums = (IsFloat(dtype) && ByteWidth(dtype) >= 4) || IsIntegral(dtype);
  const int64_t terms = SizeOf(x, i.attrs_as<hlo::DotAttrs>().lhs_contracting_dims);
  return sums && x.dtype() == dtype && y.dtype() == dtype && terms > 0 && terms <= kMaxTerms &&
         i.shape().num_elements() * terms <= kMaxElements;
}

// Where the dimensions of an operand lie in the result: the batch first, then the others from
// `next` on. Those that are summed over are gone.
Dims PlacesOf(const Shape& operand, const Dims& batch, const Dims& summed, int64_t next) {
  Dims places;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (absl::c_linear_search(summed, d)) continue;
    const auto at = std::find(batch.begin(), batch.end(), d);
    places.push_back(at != batch.end() ? at - batch.begin() : next++);
  }
  return places;
}

}  // namespace

Instruction* UnrolledDot(Rewriter& rewriter, const Instruction& dot) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  Instruction *const x = dot.operand(0), *const y = dot.operand(1);
  const auto batch = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  const Dims of_x = PlacesOf(x->shape(), attrs.lhs_batch_dims, attrs.lhs_contracting_dims, batch);
  const Dims of_y = PlacesOf(y->shape(), attrs.rhs_batch_dims, attrs.rhs_contracting_dims,
                             static_cast<int64_t>(of_x.size()));
  // Terms are numbered in the order of the attributes, which pair the dimensions.
  const int64_t terms = SizeOf(x->shape(), attrs.lhs_contracting_dims);
  Instruction* sum = nullptr;
  for (int64_t k = 0; k < terms; ++k) {
    Instruction* const product = rewriter.Add(
        Opcode::kMultiply, dot.shape(),
        {rewriter.Broadcast(TermOf(rewriter, x, attrs.lhs_contracting_dims, k), dot.shape(), of_x),
         rewriter.Broadcast(TermOf(rewriter, y, attrs.rhs_contracting_dims, k), dot.shape(),
                            of_y)});
    sum = sum == nullptr ? product : rewriter.Add(Opcode::kAdd, dot.shape(), {sum, product});
  }
  return sum;
}

bool UnrollsReduction(const Instruction& i) { return SmallMonoid(i) || IsSmallDot(i); }

bool UnrollReductionsIn(hlo::Computation* computation) {
  Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    rewriter.set_origin(i);
    if (const std::optional<Opcode> monoid = SmallMonoid(*i))
      rewriter.Replace(i, UnrolledReduce(rewriter, *i, *monoid));
    else if (IsSmallDot(*i))
      rewriter.Replace(i, UnrolledDot(rewriter, *i));
  }
  return rewriter.changed();
}

absl::StatusOr<bool> UnrollReductions::Run(hlo::Module& module) {
  return RewriteScheduled(module, UnrollReductionsIn);
}

}  // namespace lazuli::lowering
