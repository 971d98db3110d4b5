#include "ir/evaluator/region.h"

#include <cstring>

#include "absl/container/flat_hash_map.h"

#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {

RegionEvaluator::RegionEvaluator(const Computation& computation, int64_t max_lanes,
                                 Evaluation& evaluation)
    : computation_(computation), evaluation_(evaluation) {
  for (const Instruction* root :
       computation.root()->shape().IsTuple()
           ? std::vector<Instruction*>(computation.root()->operands().begin(),
                                       computation.root()->operands().end())
           : std::vector<Instruction*>{computation.root()})
    widths_.push_back(ByteWidth(root->shape().dtype()));
  straight_ = Prepare(max_lanes);
}

bool RegionEvaluator::Prepare(int64_t max_lanes) {
  absl::flat_hash_map<const Instruction*, int> slots;
  auto add_slot = [&](const Instruction* i, Literal memory) {
    const int slot = static_cast<int>(memory_.size());
    slots[i] = slot;
    addresses_.push_back(memory.shape().IsArray() ? memory.raw() : nullptr);
    memory_.push_back(std::move(memory));
    return slot;
  };
  const Instruction* root = computation_.root();
  parameters_.resize(computation_.parameters().size());
  for (const Instruction* i : computation_.PostOrder()) {
    if (i == root && i->opcode() == Opcode::kTuple) continue;
    if (!i->shape().IsScalar()) return false;
    const DType dtype = i->shape().dtype();
    if (i->opcode() == Opcode::kParameter) {
      parameters_[static_cast<std::size_t>(i->parameter_number())] = add_slot(i, Literal());
      continue;
    }
    Literal memory = Literal::Uninitialized(Shape(dtype, {max_lanes}));
    if (i->opcode() == Opcode::kConstant) {
      Fill(ByteWidth(dtype), i->literal().raw(), max_lanes, memory.mutable_raw());
      add_slot(i, std::move(memory));
      continue;
    }
    const Kernel kernel = i->IsElementwise() ? FindKernel(*i) : nullptr;
    if (kernel == nullptr) return false;
    KernelStep step{i, kernel, {}, add_slot(i, std::move(memory))};
    for (const Instruction* operand : i->operands()) step.operands.push_back(slots.at(operand));
    steps_.push_back(std::move(step));
  }
  if (root->opcode() == Opcode::kTuple) {
    for (const Instruction* element : root->operands()) roots_.push_back(slots.at(element));
  } else {
    roots_.push_back(slots.at(root));
  }
  return true;
}

absl::Status RegionEvaluator::Run(absl::Span<const std::byte* const> arguments,
                                  absl::Span<std::byte* const> results, int64_t lanes) {
  if (!straight_) return Interpret(arguments, results, lanes);
  for (std::size_t p = 0; p < parameters_.size(); ++p)
    addresses_[static_cast<std::size_t>(parameters_[p])] = arguments[p];
  for (const KernelStep& step : steps_) {
    const std::byte* operands[3];
    for (std::size_t k = 0; k < step.operands.size(); ++k)
      operands[k] = addresses_[static_cast<std::size_t>(step.operands[k])];
    step.kernel(*step.instruction, operands,
                memory_[static_cast<std::size_t>(step.result)].mutable_raw(), lanes);
  }
  // A root may be a parameter whose memory is another result's: all are read before one is written.
  const bool direct = roots_.size() == 1;
  for (std::size_t r = 0; r < roots_.size(); ++r) {
    const auto bytes = static_cast<std::size_t>(lanes * widths_[r]);
    const std::byte* from = addresses_[static_cast<std::size_t>(roots_[r])];
    const bool is_parameter = !memory_[static_cast<std::size_t>(roots_[r])].shape().IsArray();
    if (!direct && is_parameter && from != results[r]) {
      std::vector<std::vector<std::byte>> copies;
      for (std::size_t k = 0; k < roots_.size(); ++k) {
        const std::byte* source = addresses_[static_cast<std::size_t>(roots_[k])];
        copies.emplace_back(source, source + lanes * widths_[k]);
      }
      for (std::size_t k = 0; k < roots_.size(); ++k)
        std::memcpy(results[k], copies[k].data(), copies[k].size());
      return absl::OkStatus();
    }
    if (from != results[r]) std::memmove(results[r], from, bytes);
  }
  return absl::OkStatus();
}

absl::Status RegionEvaluator::Interpret(absl::Span<const std::byte* const> arguments,
                                        absl::Span<std::byte* const> results, int64_t lanes) {
  const auto& parameters = computation_.parameters();
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::vector<Literal> values;
    std::vector<const Literal*> pointers;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const DType dtype = parameters[p]->shape().dtype();
      values.push_back(
          Literal::Foreign(Shape(dtype), arguments[p] + lane * ByteWidth(dtype), {}).Clone());
    }
    for (const Literal& value : values) pointers.push_back(&value);
    LAZULI_ASSIGN_OR_RETURN(Literal result, evaluation_.Run(computation_, pointers));
    for (std::size_t r = 0; r < widths_.size(); ++r) {
      const Literal& element = result.shape().IsTuple() ? result.tuple()[r] : result;
      std::memcpy(results[r] + lane * widths_[r], element.raw(),
                  static_cast<std::size_t>(widths_[r]));
    }
  }
  return absl::OkStatus();
}

}  // namespace lazuli::hlo
