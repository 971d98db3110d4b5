// Tangent rules of reductions, windows, scatters and sorts.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/hlo/monoid.h"
#include "ir/support/status.h"
#include "lowering/transforms/expansions.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/positions.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {
namespace {

bool IsExtreme(std::optional<Opcode> monoid) {
  return monoid == Opcode::kMaximum || monoid == Opcode::kMinimum;
}

// By a computation of the same values whose instructions have rules. The results stay those of the
// instruction.
Duals ByExpansion(TangentStep& s, absl::StatusOr<hlo::Computation*> expansion) {
  if (!expansion.ok()) return s.Error(expansion.status());
  std::vector<Op> tangents;
  for (const Dual& part : Differentiate(s.b, **expansion, s.AllParts())) tangents.push_back(part.t);
  return s.With(tangents);
}

// The mean of the tangents of all elements that are the extreme one.
Duals ExtremeTangent(TangentStep& s) {
  const ir::Dims& reduced = s.i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  ir::Dims kept;
  for (int64_t d = 0; d < s.x(0).rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) kept.push_back(d);
  }
  const Shape shape = s.x(0).shape();  // NOLINT: a copy, for the original moves
  const Value extreme = s.b.Broadcast(s.result(), shape.dims(), kept);
  const Value is_extreme = As(Equal(s.x(0), extreme), shape.dtype()), t = s.t(0);
  const Value count = s.b.Reduce(Opcode::kAdd, is_extreme.op, reduced);
  const Value sum = s.b.Reduce(Opcode::kAdd, (t * is_extreme).op, reduced);
  return s.With((sum / count).op);
}

// Scattered updates that are multiplied with what is there.
Duals ScatteredProductTangent(TangentStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::ScatterAttrs>();
  if (s.active(2) && !attrs.unique_indices)
    return s.Error(Unimplemented(
        "no derivative of scatter by multiply for its updates, unless its indices are unique"));
  Op sum;
  if (s.active(0)) sum = AddLike(s.b, s.i, {s.t(0), s.x(1), s.x(2)});
  if (s.active(2)) {
    const Value there = GatherWhereScattered(s.b, s.x(0), s.x(1), s.x(2).shape(), attrs);
    const Op term =
        s.b.Scatter(s.b.ZerosLike(s.x(0)), s.x(1), (there * s.t(2)).op, attrs, Opcode::kAdd);
    sum = sum.valid() ? s.b.Plus(sum, term) : term;
  }
  return s.With(sum);
}

// The mean of the tangents of the operand's element and of all updates that are the extreme one.
Duals ScatteredExtremeTangent(TangentStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::ScatterAttrs>();
  const DType dtype = s.x(0).dtype();
  const auto here = [&](Op array) {
    return Value(GatherWhereScattered(s.b, array, s.x(1), s.x(2).shape(), attrs));
  };
  const Value zeros = s.b.ZerosLike(s.x(0)), y = s.result();
  const Value kept = As(Equal(s.x(0), y), dtype);
  const Value wins = As(Equal(s.x(2), here(y.op)), dtype);
  const auto scattered = [&](Value updates) {
    return Value(s.b.Scatter(zeros.op, s.x(1), updates.op, attrs, Opcode::kAdd));
  };
  const Value count = kept + scattered(wins);
  const Value sum = kept * s.TangentOrZeros(0) + scattered(wins * s.TangentOrZeros(2));
  return s.With((sum / ZeroAsOne(count)).op);
}

}  // namespace

Duals ReduceTangent(TangentStep& s) {
  if (s.operands.size() == 2) {
    const std::optional<Opcode> monoid = hlo::MonoidOf(*s.i.to_apply());
    if (monoid == Opcode::kAdd) return LinearTangent(s);
    if (IsExtreme(monoid) && !s.active(1)) return ExtremeTangent(s);
  }
  return ByExpansion(s, ExpandReduce(*s.b.module(), s.i));
}

Duals ReduceWindowTangent(TangentStep& s) {
  if (s.operands.size() == 2) {
    const std::optional<Opcode> monoid = hlo::MonoidOf(*s.i.to_apply());
    if (monoid == Opcode::kAdd) return LinearTangent(s);
    if (IsExtreme(monoid) && !s.active(1)) {
      const Op at = ExtremePositions(s.b, s.x(0), s.i.attrs_as<hlo::WindowAttrs>().window, *monoid);
      return s.With(ElementsAt(s.b, s.t(0), at));
    }
  }
  return ByExpansion(s, ExpandReduceWindow(*s.b.module(), s.i));
}

Duals SelectAndScatterTangent(TangentStep& s) {
  if (hlo::MonoidOf(*s.i.called()[1]) != Opcode::kAdd)
    return s.Error(Unimplemented("no derivative of select-and-scatter that does not add"));
  if (!s.active(1) && !s.active(2)) return s.WithoutTangents();
  return s.With(AddLike(s.b, s.i, {s.x(0), s.TangentOrZeros(1), s.TangentOrZeros(2)}));
}

Duals ScatterTangent(TangentStep& s) {
  if (s.operands.size() != 3)
    return s.Error(Unimplemented("no derivative of scatter of several arrays at once"));
  const hlo::Computation& combine = *s.i.to_apply();
  const std::optional<Opcode> monoid = hlo::MonoidOf(combine);
  if (monoid == Opcode::kAdd || combine.root() == combine.parameters()[1])
    return s.With(AddLike(s.b, s.i, {s.TangentOrZeros(0), s.x(1), s.TangentOrZeros(2)}));
  if (monoid == Opcode::kMultiply) return ScatteredProductTangent(s);
  if (IsExtreme(monoid)) return ScatteredExtremeTangent(s);
  return s.Error(Unimplemented("no derivative of scatter by ", combine.name()));
}

Duals SortTangent(TangentStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::SortAttrs>();
  std::vector<Op> operands;
  for (std::size_t k = 0; k < s.operands.size(); ++k) operands.push_back(s.x(k));
  const Shape positions(DType::kS32, s.x(0).shape().dims());
  operands.push_back(s.b.Iota(positions, attrs.dimension));
  std::vector<Shape> parameters;
  for (const Op operand : operands) {
    for (int twice = 0; twice < 2; ++twice) parameters.emplace_back(operand.dtype());
  }
  hlo::Computation* const comparator =
      s.b.Region(s.i.to_apply()->name(), parameters, [&](Builder& b, absl::Span<const Op> p) {
        return CopyInto(b, *s.i.to_apply(), p.first(p.size() - 2))[0];
      });
  if (comparator == nullptr) return s.WithoutTangents();
  const std::vector<Op> sorted =
      PartsOf(s.b, s.b.Sort(operands, attrs.dimension, attrs.is_stable, comparator));
  Duals all;
  for (std::size_t k = 0; k + 1 < sorted.size(); ++k) {
    const bool active = s.active(k);
    all.push_back(
        {sorted[k], active ? TakeAlong(s.b, s.t(k), sorted.back(), attrs.dimension) : Op()});
  }
  if (all.empty()) return s.WithoutTangents();
  return all;
}

Duals TopkTangent(TangentStep& s) {
  return s.With(TakeAlong(s.b, s.t(0), s.results()[1], s.x(0).rank() - 1));
}

Duals MapTangent(TangentStep& s) { return ByExpansion(s, ExpandMap(*s.b.module(), s.i)); }

Duals BatchNormTangent(TangentStep& s) {
  return ByExpansion(s, ExpandBatchNorm(*s.b.module(), s.i));
}

Duals AllReduceTangent(TangentStep& s) {
  if (hlo::MonoidOf(*s.i.to_apply()) == Opcode::kAdd) return LinearTangent(s);
  return s.Error(
      Unimplemented("no derivative of ", hlo::OpcodeText(s.i.opcode()), " that does not add"));
}

}  // namespace lazuli::lowering
