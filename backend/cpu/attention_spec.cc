#include "backend/cpu/attention_spec.h"

#include <algorithm>

#include "backend/cpu/passes/attention_pattern.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

class AttentionPlanner {
 public:
  AttentionPlanner(const hlo::Computation& body, const AttentionPattern& pattern,
                   const std::vector<BufferId>& operands, const std::vector<BufferId>& results)
      : body_(body), pattern_(pattern), operands_(operands), results_(results) {}

  AttentionSpec Make(int64_t threads) const {
    AttentionSpec spec{.dtype = pattern_.weights->shape().dtype(),
                       .batch = pattern_.batch(),
                       .rows = pattern_.rows(),
                       .keys = pattern_.keys(),
                       .depth = pattern_.depth,
                       .width = pattern_.width,
                       .query_scale = pattern_.query.scale,
                       .key_scale = pattern_.key.scale,
                       .steps = {},
                       .safe = pattern_.safe,
                       .query = Operand(pattern_.query),
                       .key = Operand(pattern_.key),
                       .value = Operand(pattern_.value),
                       .result = {},
                       .largest = {},
                       .divisor = {},
                       .is_gradient = pattern_.has_gradient(),
                       .dresult = {},
                       .dquery = {},
                       .dkey = {},
                       .dvalue = {},
                       .threads = threads};
    for (const PatternStep& step : pattern_.steps) spec.steps.push_back(Step(step));
    spec.largest = OfRows(pattern_.largest);
    spec.divisor = OfRows(pattern_.divisor);
    const int64_t row = pattern_.row_role, key = pattern_.key_role;
    spec.result = Result(pattern_.result, row);
    if (!spec.is_gradient) return spec;
    spec.dresult = Operand(pattern_.dresult);
    spec.dquery = Result(pattern_.dquery, row);
    spec.dkey = Result(pattern_.dkey, key);
    spec.dvalue = Result(pattern_.dvalue, key);
    return spec;
  }

 private:
  static AttentionArray At(BufferId buffer, const PatternMatrix& matrix) {
    return {.buffer = buffer,
            .dtype = matrix.base->shape().dtype(),
            .offsets = matrix.Offsets(),
            .row = matrix.row,
            .column = matrix.column};
  }
  AttentionArray Operand(const PatternMatrix& matrix) const {
    return At(operands_[static_cast<std::size_t>(matrix.base->parameter_number())], matrix);
  }
  // Of a leaf of the result, or a parameter of the gradient; no array if it is neither.
  BufferId BufferOf(const Instruction* made) const {
    if (made == nullptr) return -1;
    if (made->opcode() == Opcode::kParameter)
      return operands_[static_cast<std::size_t>(made->parameter_number())];
    const Instruction* root = body_.root();
    if (root == made) return results_[0];
    if (root->opcode() != Opcode::kTuple) return -1;
    const auto at = std::find(root->operands().begin(), root->operands().end(), made);
    return at == root->operands().end()
               ? -1
               : results_[static_cast<std::size_t>(at - root->operands().begin())];
  }
  AttentionArray Result(const PatternResult& made, int64_t row_role) const {
    const BufferId buffer = BufferOf(made.made);
    if (buffer < 0) return {};
    AttentionArray array = Array(made.made, buffer, made.roles, row_role);
    array.factor = made.factor;
    return array;
  }
  AttentionArray OfRows(Instruction* array) const {
    const BufferId buffer = BufferOf(array);
    return buffer < 0 ? AttentionArray{}
                      : Array(array, buffer, pattern_.RowRoles(), pattern_.row_role);
  }
  AttentionArray Array(Instruction* array, BufferId buffer, const std::vector<int64_t>& roles,
                       int64_t row_role) const {
    return At(buffer, *pattern_.MatrixOf(WholeView(array), roles, row_role, pattern_.inner_role()));
  }
  AttentionStep Step(const PatternStep& step) const {
    AttentionStep made{.number = step.number, .shown = step.shown};
    switch (step.kind) {
      case PatternStep::Kind::kScale:
        return made;
      case PatternStep::Kind::kAdd:
        made.kind = AttentionStep::Kind::kAdd;
        break;
      case PatternStep::Kind::kHide:
        made.kind = AttentionStep::Kind::kHide;
        break;
    }
    if (const auto shift = CausalShift(pattern_, step)) {
      made.kind = AttentionStep::Kind::kCausal;
      made.shift = *shift;
      return made;
    }
    made.array =
        Operand(*pattern_.MatrixOf(ViewOf(step.array, ViewThrough::kWidening),
                                   pattern_.WeightRoles(), pattern_.row_role, pattern_.key_role));
    return made;
  }

  const hlo::Computation& body_;
  const AttentionPattern& pattern_;
  const std::vector<BufferId>& operands_;
  const std::vector<BufferId>& results_;
};

}  // namespace

std::optional<AttentionSpec> PlanAttention(const hlo::Instruction& fusion,
                                           const std::vector<BufferId>& operands,
                                           const std::vector<BufferId>& results, int64_t threads) {
  const hlo::Computation& body = *fusion.to_apply();
  const auto pattern = MatchAttentionBody(body);
  if (!pattern) return std::nullopt;
  return AttentionPlanner(body, *pattern, operands, results).Make(threads);
}

}  // namespace lazuli::cpu
