// Tangent rules of calls, branches and loops: tangents join what they pass.
#include <algorithm>
#include <string_view>
#include <utility>

#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {
namespace {

Mask ActiveParts(absl::Span<const Dual> parts) {
  Mask mask;
  for (const Dual& part : parts) mask.push_back(part.active());
  return mask;
}

// Values, then the tangents of those that `active` names, zeros where they are absent.
std::vector<Op> ValuesThenTangents(Builder& b, absl::Span<const Dual> parts, const Mask& active) {
  std::vector<Op> all;
  for (const Dual& part : parts) all.push_back(part.x);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (active[k]) all.push_back(parts[k].active() ? parts[k].t : b.ZerosLike(parts[k].x));
  }
  return all;
}

// The inverse.
Duals FromValuesThenTangents(absl::Span<const Op> all, const Mask& active) {
  Duals parts;
  std::size_t next = active.size();
  for (std::size_t k = 0; k < active.size(); ++k)
    parts.push_back({all[k], active[k] && next < all.size() ? all[next++] : Op()});
  return parts;
}

std::vector<Shape> ShapesOf(absl::Span<const Op> values) {
  std::vector<Shape> shapes;
  for (const Op value : values) shapes.push_back(value.shape());
  return shapes;
}

// A computation of one tuple: values, then the tangents that `in` names. Its result has the tangents
// that `out` names, and any other that turns out not to be zero.
struct DerivedBody {
  hlo::Computation* computation;
  Mask active;  // the parts of its result whose tangents are not zero
};
DerivedBody Derive(Builder& b, const hlo::Computation& original, const Shape& parameter,
                   const Mask& in, const Mask& out) {
  Mask active;
  hlo::Computation* const made =
      b.Region(original.name(), {parameter}, [&](Builder& r, absl::Span<const Op> p) {
        const Duals parts =
            Differentiate(r, original, FromValuesThenTangents(PartsOf(r, p[0]), in));
        active = ActiveParts(parts);
        return r.Tuple(ValuesThenTangents(r, parts, Union(out, active)));
      });
  return {made, std::move(active)};
}

}  // namespace

Duals CallTangent(TangentStep& s) { return Differentiate(s.b, *s.i.to_apply(), s.AllParts()); }

Duals WhileTangent(TangentStep& s) {
  const Duals& begin = s.operands[0];
  Mask active = ActiveParts(begin);
  // Tangents reach further parts of the state in later steps; a part that has one keeps it.
  for (;;) {
    const std::vector<Op> state = ValuesThenTangents(s.b, begin, active);
    const Shape shape = Shape::Tuple(ShapesOf(state));
    const DerivedBody body = Derive(s.b, *s.i.called()[1], shape, active, active);
    if (body.computation == nullptr) return s.WithoutTangents();
    const Mask more = Union(active, body.active);
    if (more != active) {
      active = more;
      continue;
    }
    hlo::Computation* const condition =
        s.b.Region(s.i.called()[0]->name(), {shape}, [&](Builder& r, absl::Span<const Op> p) {
          const std::vector<Op> parts = PartsOf(r, p[0]);
          return CopyInto(r, *s.i.called()[0], absl::MakeConstSpan(parts).first(begin.size()))[0];
        });
    if (condition == nullptr) return s.WithoutTangents();
    const Op end = s.b.While(s.b.Tuple(state), condition, body.computation);
    return FromValuesThenTangents(PartsOf(s.b, end), active);
  }
}

Duals ConditionalTangent(TangentStep& s) {
  const std::size_t branches = s.i.called().size();
  Mask out(PartCount(s.i.shape()), false);
  // The first round finds out which results have a tangent in any branch.
  for (const bool last : {false, true}) {
    std::vector<Op> operands{s.x(0)};
    std::vector<hlo::Computation*> derived;
    Mask found = out;
    for (std::size_t k = 0; k < branches; ++k) {
      const Duals& given = s.operands[k + 1];
      const Mask in = ActiveParts(given);
      operands.push_back(s.b.Tuple(ValuesThenTangents(s.b, given, in)));
      const DerivedBody branch = Derive(s.b, *s.i.called()[k], operands.back().shape(), in, out);
      if (branch.computation == nullptr) return s.WithoutTangents();
      derived.push_back(branch.computation);
      found = Union(std::move(found), branch.active);
    }
    if (last) {
      const Op results = s.b.Add(Opcode::kConditional, operands, s.i.attrs(), derived);
      return FromValuesThenTangents(PartsOf(s.b, results), out);
    }
    out = found;
  }
  return s.WithoutTangents();
}

}  // namespace lazuli::lowering
