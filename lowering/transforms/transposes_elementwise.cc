// Transpose rules of elementwise instructions and of movement.
#include <algorithm>
#include <utility>

#include "ir/support/status.h"
#include "lowering/transforms/custom_rules.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

ir::Dims DimsOf(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

}  // namespace

absl::Status TransposeSame(TransposeStep& s) {
  s.Give(0, AddLike(s.b, s.i, {s.ct()}));
  return absl::OkStatus();
}

absl::Status TransposePass(TransposeStep& s) {
  for (std::size_t k = 0; k < s.operands[0].size(); ++k) {
    const Op ct = s.cotangents.of(s.results[k].slot);
    if (s.operands[0][k].is_linear() && ct.valid()) s.cotangents.Add(s.operands[0][k].slot, ct);
  }
  return absl::OkStatus();
}

// What is linear has the same derivative everywhere: that at zeros.
absl::Status TransposeCustomCall(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::CustomCallAttrs>();
  if (IsAnnotation(attrs.custom_call_target)) return TransposePass(s);
  const auto rules = FindCustomCallRules(attrs);
  if (rules == nullptr || !rules->cotangent) return s.NotLinear();
  std::vector<Op> operands, results, cotangents;
  std::vector<const LinearPart*> with_tangents;
  for (std::size_t k = 0; k < s.operands.size(); ++k) {
    const std::vector<Shape> shapes = PartsOf(s.shape(k));
    for (std::size_t part = 0; part < shapes.size(); ++part) {
      const LinearPart& operand = s.operands[k][part];
      operands.push_back(operand.is_linear() ? s.b.Full(shapes[part].WithDefaultLayout(), 0)
                                             : operand.known);
      if (HasTangents(shapes[part])) with_tangents.push_back(&operand);
    }
  }
  for (const LinearPart& result : s.results) {
    const Shape& shape = s.cotangents.shape(result.slot);
    results.push_back(s.b.Full(shape.WithDefaultLayout(), 0));
    if (HasTangents(shape)) cotangents.push_back(Conj(s.cotangents.OrZeros(result.slot)).op);
  }
  const std::vector<Op> made = CustomCotangents(s.b, s.i, *rules, operands, results, cotangents);
  for (std::size_t k = 0; k < made.size() && k < with_tangents.size(); ++k) {
    if (with_tangents[k]->is_linear()) s.cotangents.Add(with_tangents[k]->slot, Conj(made[k]).op);
  }
  return absl::OkStatus();
}

absl::Status TransposeNegate(TransposeStep& s) {
  s.Give(0, (-Value(s.ct())).op);
  return absl::OkStatus();
}

absl::Status TransposeReal(TransposeStep& s) {
  const Value ct = s.ct();
  s.Give(0, ir::IsComplex(s.shape(0).dtype()) ? Complex(ct, ct.Number(0)).op : ct.op);
  return absl::OkStatus();
}

absl::Status TransposeImag(TransposeStep& s) {
  const Value ct = s.ct();
  if (ir::IsComplex(s.shape(0).dtype())) s.Give(0, Complex(ct.Number(0), -ct).op);
  return absl::OkStatus();
}

absl::Status TransposeConvert(TransposeStep& s) {
  const DType from = s.shape(0).dtype();
  const Value ct = ir::IsComplex(from) ? Value(s.ct()) : RealPart(s.ct());
  s.Give(0, s.b.Convert(ct.op, from));
  return absl::OkStatus();
}

absl::Status TransposeAdd(TransposeStep& s) {
  s.Give(0, s.ct());
  s.Give(1, s.ct());
  return absl::OkStatus();
}

absl::Status TransposeSubtract(TransposeStep& s) {
  s.Give(0, s.ct());
  if (s.linear(1)) s.Give(1, (-Value(s.ct())).op);
  return absl::OkStatus();
}

absl::Status TransposeMultiply(TransposeStep& s) {
  if (s.linear(0) && s.linear(1)) return s.NotLinear();
  const std::size_t k = s.linear(0) ? 0 : 1;
  s.Give(k, s.b.Times(s.ct(), s.x(1 - k)));
  return absl::OkStatus();
}

absl::Status TransposeDivide(TransposeStep& s) {
  if (s.linear(1)) return s.NotLinear();
  s.Give(0, s.b.DividedBy(s.ct(), s.x(1)));
  return absl::OkStatus();
}

absl::Status TransposeComplex(TransposeStep& s) {
  if (s.linear(0)) s.Give(0, RealPart(s.ct()).op);
  if (s.linear(1)) s.Give(1, (-ImagPart(s.ct())).op);
  return absl::OkStatus();
}

absl::Status TransposeSelect(TransposeStep& s) {
  const Value ct = s.ct();
  if (s.linear(1)) s.Give(1, Choose(s.x(0), ct, ct.Number(0)).op);
  if (s.linear(2)) s.Give(2, Choose(s.x(0), ct.Number(0), ct).op);
  return absl::OkStatus();
}

absl::Status TransposeBroadcast(TransposeStep& s) {
  const ir::Dims& dims = s.i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  ir::Dims added, order(dims.size());
  for (int64_t d = 0; d < s.i.shape().rank(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) added.push_back(d);
  }
  Op sum = added.empty() ? s.ct() : s.b.Reduce(Opcode::kAdd, s.ct(), added);
  // Its dimensions are in the order of the result's.
  for (std::size_t k = 0; k < dims.size(); ++k)
    order[k] = std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < dims[k]; });
  if (!std::is_sorted(order.begin(), order.end())) sum = s.b.Transpose(sum, order);
  s.Give(0, sum);
  return absl::OkStatus();
}

absl::Status TransposeTranspose(TransposeStep& s) {
  const ir::Dims& dims = s.i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  ir::Dims inverse(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k)
    inverse[static_cast<std::size_t>(dims[k])] = static_cast<int64_t>(k);
  s.Give(0, s.b.Transpose(s.ct(), inverse));
  return absl::OkStatus();
}

absl::Status TransposeReshape(TransposeStep& s) {
  s.Give(0, s.b.Reshape(s.ct(), s.shape(0).dims()));
  return absl::OkStatus();
}

absl::Status TransposeConcatenate(TransposeStep& s) {
  const auto d = static_cast<std::size_t>(s.i.attrs_as<hlo::DimensionsAttrs>().dimensions[0]);
  const Op ct = s.ct();
  ir::Dims starts(s.i.shape().dims().size(), 0), limits = DimsOf(s.i.shape());
  const ir::Dims strides(starts.size(), 1);
  for (std::size_t k = 0; k < s.operands.size(); ++k) {
    limits[d] = starts[d] + s.shape(k).dims()[d];
    if (s.linear(k)) s.Give(k, s.b.Slice(ct, starts, limits, strides));
    starts[d] = limits[d];
  }
  return absl::OkStatus();
}

absl::Status TransposeSlice(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::SliceAttrs>();
  ir::Dims high, interior;
  for (std::size_t d = 0; d < attrs.starts.size(); ++d) {
    const int64_t count = s.i.shape().dims()[d];
    if (count == 0) return absl::OkStatus();
    interior.push_back(attrs.strides[d] - 1);
    high.push_back(s.shape(0).dims()[d] - attrs.starts[d] - (count - 1) * attrs.strides[d] - 1);
  }
  const Op zero = s.b.Scalar(s.shape(0).dtype(), 0);
  s.Give(0, s.b.Pad(s.ct(), zero, attrs.starts, high, interior));
  return absl::OkStatus();
}

absl::Status TransposePad(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::PadAttrs>();
  const Op ct = s.ct(), zero = s.b.Scalar(s.i.shape().dtype(), 0);
  ir::Dims low, high, none(attrs.low.size(), 0), strides;
  for (std::size_t d = 0; d < attrs.low.size(); ++d) {
    low.push_back(-attrs.low[d]);
    high.push_back(-attrs.high[d]);
    strides.push_back(attrs.interior[d] + 1);
  }
  const Op wide = s.b.Pad(ct, zero, low, high, none);
  const Op inside = s.b.Slice(wide, none, DimsOf(wide.shape()), strides);
  s.Give(0, inside);
  if (!s.linear(1)) return absl::OkStatus();
  ir::Dims all;
  for (int64_t d = 0; d < ct.rank(); ++d) all.push_back(d);
  const Value outside =
      Value(s.b.Reduce(Opcode::kAdd, ct, all)) - Value(s.b.Reduce(Opcode::kAdd, inside, all));
  s.Give(1, outside.op);
  return absl::OkStatus();
}

}  // namespace lazuli::lowering
