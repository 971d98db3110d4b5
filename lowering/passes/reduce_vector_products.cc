#include "lowering/passes/reduce_vector_products.h"

#include <algorithm>

#include "lowering/builder/builder.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"
#include "lowering/passes/unroll_reductions.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool Contains(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Whether no dimension is free but those of size 1.
bool IsVector(const Shape& x, const Dims& batch, const Dims& contracting) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (x.dim(d) != 1 && !Contains(batch, d) && !Contains(contracting, d)) return false;
  }
  return true;
}

bool IsDotOfFloats(const Instruction& i) {
  if (i.opcode() != Opcode::kDot) return false;
  const DType dtype = i.shape().dtype();
  return (dtype == DType::kF32 || dtype == DType::kF64) && i.operand(0)->shape().dtype() == dtype &&
         i.operand(1)->shape().dtype() == dtype && i.shape().num_elements() > 0;
}

bool IsOuterProduct(const Instruction& i) {
  const Dims& contracting = i.attrs_as<hlo::DotAttrs>().lhs_contracting_dims;
  return std::all_of(contracting.begin(), contracting.end(),
                     [&](int64_t d) { return i.operand(0)->shape().dim(d) == 1; });
}

bool IsVectorProduct(const Instruction& i) {
  const auto& attrs = i.attrs_as<hlo::DotAttrs>();
  const Shape &x = i.operand(0)->shape(), &y = i.operand(1)->shape();
  return !attrs.lhs_contracting_dims.empty() &&
         std::is_sorted(attrs.lhs_batch_dims.begin(), attrs.lhs_batch_dims.end()) &&
         IsVector(x, attrs.lhs_batch_dims, attrs.lhs_contracting_dims) &&
         IsVector(y, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
}

// The dimension of y that a dimension of x is paired with; -1 for one that is free.
int64_t PartnerOf(const hlo::DotAttrs& attrs, int64_t d) {
  const auto find = [d](const Dims& lhs, const Dims& rhs) -> int64_t {
    const auto at = std::find(lhs.begin(), lhs.end(), d);
    return at == lhs.end() ? -1 : rhs[static_cast<std::size_t>(at - lhs.begin())];
  };
  return std::max(find(attrs.lhs_batch_dims, attrs.rhs_batch_dims),
                  find(attrs.lhs_contracting_dims, attrs.rhs_contracting_dims));
}

// Both with the dimensions of x that are not free, in x's order.
Instruction* Products(Rewriter& rewriter, const Instruction& dot) {
  const auto& attrs = dot.attrs_as<hlo::DotAttrs>();
  Instruction *const x = dot.operand(0), *const y = dot.operand(1);
  Dims dims, order;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const int64_t partner = PartnerOf(attrs, d);
    if (partner < 0) continue;
    dims.push_back(x->shape().dim(d));
    order.push_back(partner);
  }
  for (int64_t d = 0; d < y->shape().rank(); ++d) {
    if (!Contains(order, d)) order.push_back(d);
  }
  const bool sorted = std::is_sorted(order.begin(), order.end());
  Instruction* const aligned = rewriter.Reshape(sorted ? y : rewriter.Transpose(y, order), dims);
  return rewriter.Add(Opcode::kMultiply, Shape(dot.shape().dtype(), dims),
                      {rewriter.Reshape(x, dims), aligned});
}

absl::StatusOr<hlo::Computation*> Sum(hlo::Module& module, DType dtype) {
  Builder b(&module, "add");
  const Op x = b.Parameter(0, Shape(dtype)), y = b.Parameter(1, Shape(dtype));
  return b.Finish(b.Plus(x, y));
}

absl::StatusOr<bool> ReduceIn(hlo::Computation* computation) {
  Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (!IsDotOfFloats(*i)) continue;
    rewriter.set_origin(i);
    if (IsOuterProduct(*i)) {
      // A sum begins with 0, which makes a product of -0 one of 0.
      rewriter.Replace(i, rewriter.Add(Opcode::kAdd, i->shape(),
                                       {UnrolledDot(rewriter, *i), rewriter.Full(i->shape(), 0)}));
      continue;
    }
    if (!IsVectorProduct(*i)) continue;
    Instruction* const products = Products(rewriter, *i);
    const auto& attrs = i->attrs_as<hlo::DotAttrs>();
    Dims reduced, kept;
    for (int64_t d = 0, at = 0; d < i->operand(0)->shape().rank(); ++d) {
      const int64_t partner = PartnerOf(attrs, d);
      if (partner < 0) continue;
      if (Contains(attrs.lhs_contracting_dims, d))
        reduced.push_back(at);
      else
        kept.push_back(i->operand(0)->shape().dim(d));
      ++at;
    }
    LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const sum,
                            Sum(*computation->parent(), i->shape().dtype()));
    Instruction* const zero = rewriter.Scalar(i->shape().dtype(), 0);
    Instruction* const result =
        rewriter.Add(Opcode::kReduce, Shape(i->shape().dtype(), kept), {products, zero},
                     hlo::DimensionsAttrs{reduced}, {sum});
    rewriter.Replace(i, rewriter.Reshape(result, i->shape().dims()));
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> ReduceVectorProducts::Run(hlo::Module& module) {
  return RewriteScheduled(module, ReduceIn);
}

}  // namespace lazuli::lowering
