#include "lowering/transforms/transpose.h"

#include <algorithm>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"

namespace lazuli::lowering {
namespace {

struct NoTransposeWord {};
absl::Status Reverse(TransposeStep& s, NoTransposeWord /*word*/) { return s.NotLinear(); }
absl::Status Reverse(TransposeStep& s, TransposeRule rule) { return rule(s); }

absl::Status ReverseByTable(TransposeStep& s) {
  constexpr NoTransposeWord kNoRule;
  switch (s.i.opcode()) {
#define LAZULI_TRANSFORM_RULES(opcode, tangent, transpose, batch) \
  case Opcode::opcode:                                            \
    return Reverse(s, transpose);
#include "lowering/transforms/rules.def"
#undef LAZULI_TRANSFORM_RULES
  }
  return absl::OkStatus();
}

// The walk forward: known instructions are copied, of others the order is kept.
class LinearWalk {
 public:
  explicit LinearWalk(Builder& builder) : b(builder), cotangents(builder) {}

  void AddParameters(const hlo::Computation& computation, const Mask& linear) {
    std::size_t part = 0;
    int64_t number = 0;
    for (const hlo::Instruction* parameter : computation.parameters()) {
      for (const Shape& shape : PartsOf(parameter->shape())) {
        if (linear[part++]) {
          inputs.push_back(cotangents.NewSlot(shape));
          map[parameter].push_back({{}, inputs.back()});
        } else {
          map[parameter].push_back({b.Parameter(number++, shape), 0});
        }
      }
    }
  }

  void Add(const hlo::Instruction& i) {
    if (map.Route(i)) return;
    const Builder::MetadataScope scope(b, i.metadata());
    std::vector<std::vector<Op>> values;
    bool depends = false;
    for (const std::vector<LinearPart>& parts : map.OfOperands(i)) {
      values.emplace_back();
      for (const LinearPart& part : parts) {
        values.back().push_back(part.known);
        depends = depends || part.is_linear();
      }
    }
    if (!depends) {
      for (const Op part : AddLikeOfParts(b, i, values)) map[&i].push_back({part, 0});
      return;
    }
    for (const Shape& shape : PartsOf(i.shape()))
      map[&i].push_back({{}, cotangents.NewSlot(shape)});
    linear.push_back(&i);
  }

  absl::Status GoBack() {
    const Constants constants;
    for (std::size_t k = linear.size(); k-- > 0;) {
      const hlo::Instruction& i = *linear[k];
      const Builder::MetadataScope scope(b, i.metadata());
      const std::vector<LinearPart>& results = map.at(&i);
      const bool wanted = std::any_of(results.begin(), results.end(), [&](const LinearPart& part) {
        return cotangents.of(part.slot).valid();
      });
      if (!wanted) continue;
      TransposeStep step{b, i, cotangents, map.OfOperands(i), results, constants};
      LAZULI_RETURN_IF_ERROR(ReverseByTable(step));
      LAZULI_RETURN_IF_ERROR(b.status());
    }
    return absl::OkStatus();
  }

  Builder& b;
  Cotangents cotangents;
  PartMap<LinearPart> map;
  std::vector<std::size_t> inputs;
  std::vector<const hlo::Instruction*> linear;
};

}  // namespace

std::vector<Op> TransposeStep::KnownFrom(std::size_t k) const {
  std::vector<Op> known;
  for (; k < operands.size(); ++k) known.push_back(x(k));
  return known;
}

absl::Status TransposeStep::NotLinear() const {
  return hlo::AtInstruction(
      Unimplemented("no reverse-mode derivative of ", hlo::OpcodeText(i.opcode()),
                    " where its operands have tangents"),
      i);
}

absl::StatusOr<hlo::Computation*> Transpose(hlo::Module& module,
                                            const hlo::Computation& computation, const Mask& linear,
                                            const Mask& results) {
  Builder b(&module, Str(computation.name(), "_transposed"));
  LinearWalk walk(b);
  walk.AddParameters(computation, linear);
  auto number = static_cast<int64_t>(std::count(linear.begin(), linear.end(), false));
  std::vector<Op> given;
  const std::vector<Shape> shapes = PartsOf(computation.root()->shape());
  for (std::size_t k = 0; k < results.size(); ++k)
    given.push_back(results[k] ? b.Parameter(number++, shapes[k]) : Op());
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (i->opcode() != Opcode::kParameter) walk.Add(*i);
    LAZULI_RETURN_IF_ERROR(b.status());
  }
  const std::vector<LinearPart>& root = walk.map.at(computation.root());
  for (std::size_t k = 0; k < root.size(); ++k) {
    if (root[k].is_linear() && given[k].valid()) walk.cotangents.Add(root[k].slot, given[k]);
  }
  LAZULI_RETURN_IF_ERROR(walk.GoBack());
  std::vector<Op> sums;
  for (const std::size_t input : walk.inputs) sums.push_back(walk.cotangents.OrZeros(input));
  return b.Finish(b.Tuple(sums));
}

}  // namespace lazuli::lowering
