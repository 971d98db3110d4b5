#include "lowering/transforms/split.h"

#include <algorithm>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/support/status.h"
#include "lowering/transforms/splitter.h"

namespace lazuli::lowering {

Op Splitter::InLinear(Op known) {
  const hlo::Instruction* const i = known.instruction();
  if (i == nullptr) return linear.Error(this->known.status());
  if (const auto there = in_linear_.find(i); there != in_linear_.end()) return there->second;
  Op made;
  if (i->opcode() == Opcode::kConstant || i->opcode() == Opcode::kIota) {
    made = AddLike(linear, *i, {});
  } else if (const auto operand =
                 i->opcode() == Opcode::kBroadcast ? made_.find(i->operand(0)) : made_.end();
             operand != made_.end()) {
    made = AddLike(linear, *i, {InLinear(operand->second)});
  } else {
    made = linear.Parameter(next_parameter_++, known.shape());
    residuals_.push_back(known);
  }
  return in_linear_[i] = made;
}

SplitPart Splitter::Known(Op known) {
  if (known.instruction() != nullptr) made_[known.instruction()] = known;
  return {known, {}};
}

std::vector<SplitPart> Splitter::Known(absl::Span<const Op> parts) {
  std::vector<SplitPart> all;
  for (const Op part : parts) all.push_back(Known(part));
  return all;
}

absl::Status Splitter::Add(const hlo::Instruction& i) {
  if (map_.Route(i)) return absl::OkStatus();
  const Builder::MetadataScope known_scope(known, i.metadata());
  const Builder::MetadataScope linear_scope(linear, i.metadata());
  const std::vector<std::vector<SplitPart>> operands = map_.OfOperands(i);
  std::vector<std::vector<Op>> values;
  bool depends = false;
  for (const std::vector<SplitPart>& parts : operands) {
    for (const SplitPart& part : parts) depends = depends || part.is_linear();
  }
  if (depends && i.opcode() == Opcode::kWhile) {
    LAZULI_ASSIGN_OR_RETURN(map_[&i], SplitWhile(i, operands[0]));
    return absl::OkStatus();
  }
  if (depends && i.opcode() == Opcode::kConditional) {
    LAZULI_ASSIGN_OR_RETURN(map_[&i], SplitConditional(i, operands));
    return absl::OkStatus();
  }
  for (const std::vector<SplitPart>& parts : operands) {
    values.emplace_back();
    for (const SplitPart& part : parts)
      values.back().push_back(depends ? InLinear(part) : part.known);
  }
  const std::vector<Op> results = AddLikeOfParts(depends ? linear : known, i, values);
  if (!depends) {
    map_[&i] = Known(results);
  } else {
    for (const Op result : results) map_[&i].push_back({{}, result});
  }
  return absl::OkStatus();
}

void Splitter::AddParameters(const hlo::Computation& computation, const Mask& is_linear,
                             absl::Span<const std::optional<Literal>> constants) {
  std::size_t part = 0;
  int64_t known_number = 0;
  for (const hlo::Instruction* parameter : computation.parameters()) {
    for (const Shape& shape : PartsOf(parameter->shape())) {
      if (is_linear[part]) {
        map_[parameter].push_back({{}, linear.Parameter(next_parameter_++, shape)});
      } else {
        map_[parameter].push_back(Known(known.Parameter(known_number++, shape)));
        const Op made = map_[parameter].back().known;
        parameter_parts_[made.instruction()] = part;
        if (part < constants.size() && constants[part])
          this->constants.Learn(made, *constants[part]);
      }
      ++part;
    }
  }
}

absl::StatusOr<SplitComputation> Splitter::Finish(const hlo::Computation& computation,
                                                  const Mask& linear_results) {
  std::vector<Op> known_parts, linear_parts;
  const std::vector<SplitPart>& root = map_.at(computation.root());
  for (std::size_t k = 0; k < root.size(); ++k) {
    if (linear_results[k])
      linear_parts.push_back(InLinear(root[k]));
    else
      known_parts.push_back(root[k].known);
  }
  SplitComputation made;
  for (const Op residual : residuals_) {
    made.residuals.push_back(residual.shape());
    const auto parameter = parameter_parts_.find(residual.instruction());
    const bool is_parameter = parameter != parameter_parts_.end();
    made.parameter_of.push_back(is_parameter ? std::optional(parameter->second) : std::nullopt);
    if (!is_parameter) known_parts.push_back(residual);
  }
  LAZULI_ASSIGN_OR_RETURN(made.known, known.Finish(known.Tuple(known_parts)));
  LAZULI_ASSIGN_OR_RETURN(made.linear, linear.Finish(linear.Tuple(linear_parts)));
  return made;
}

absl::StatusOr<SplitComputation> Split(hlo::Module& module, const hlo::Computation& computation,
                                       const Mask& linear, const Mask& linear_results,
                                       absl::Span<const std::optional<Literal>> constants) {
  Builder known_builder(&module, Str(computation.name(), "_known"));
  Builder linear_builder(&module, Str(computation.name(), "_linear"));
  Splitter splitter(known_builder, linear_builder);
  splitter.AddParameters(computation, linear, constants);
  for (const hlo::Instruction* i : computation.PostOrder()) {
    if (i->opcode() == Opcode::kParameter) continue;
    LAZULI_RETURN_IF_ERROR(splitter.Add(*i));
    LAZULI_RETURN_IF_ERROR(known_builder.status());
    LAZULI_RETURN_IF_ERROR(linear_builder.status());
  }
  return splitter.Finish(computation, linear_results);
}

}  // namespace lazuli::lowering
