#include "ir/evaluator/custom_calls.h"

#include <map>
#include <mutex>
#include <vector>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/lapack_calls.h"
#include "ir/support/runtime.h"

namespace lazuli::hlo {
namespace {

// What a partitioner or a placement pass reads and one device passes through.
constexpr std::string_view kIdentities[] = {
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
};

absl::StatusOr<Literal> Identity(const Instruction& instruction, Operands operands) {
  const auto elements = static_cast<std::size_t>(
      instruction.shape().IsTuple() ? instruction.shape().tuple().size() : std::size_t{1});
  if (operands.size() != elements) {
    return InvalidArgument(instruction.attrs_as<CustomCallAttrs>().custom_call_target, " has ",
                           operands.size(), " operands and ", elements, " results");
  }
  if (!instruction.shape().IsTuple()) return *operands[0];
  std::vector<Literal> results;
  for (const Literal* operand : operands) results.push_back(*operand);
  return Literal::Tuple(std::move(results));
}

absl::StatusOr<Literal> CheckIndexRangeCall(const Instruction&,
                                            absl::Span<const Literal* const> operands) {
  if (operands.size() != 2 || operands[1]->shape() != Shape(DType::kS64)) {
    return InvalidArgument("lazuli.check_index_range takes indices and a limit of type s64[]");
  }
  LAZULI_RETURN_IF_ERROR(CheckIndexRange(*operands[0], operands[1]->data<int64_t>()[0]));
  return *operands[0];
}

template <class T>
absl::Status CheckAll(std::span<const T> indices, int64_t limit) {
  for (T index : indices) {
    if (index < 0 || index >= limit)
      return OutOfRange("index ", index, " is out of range [0, ", limit, ")");
  }
  return absl::OkStatus();
}

// The k largest of each row, and where they stand; k is the size of the result.
absl::StatusOr<Literal> TopK(const Instruction& instruction, Operands operands) {
  const Shape& shape = instruction.shape();
  if (operands.size() != 1 || operands[0]->shape().rank() < 1 || !shape.IsTuple() ||
      shape.tuple().size() != 2 || shape.tuple()[0].rank() != operands[0]->shape().rank()) {
    return InvalidArgument("TopK takes an array and has two results");
  }
  const int64_t last = shape.tuple()[0].rank() - 1;
  return TopKOf(*operands[0], {.k = shape.tuple()[0].dim(last), .largest = true}, shape);
}

struct CustomCallRegistry {
  CustomCallRegistry() {
    for (std::string_view target : kIdentities) calls.emplace(target, Identity);
    for (auto& [target, call] : LapackCalls()) calls.emplace(target, std::move(call));
  }
  std::mutex mutex;
  std::map<std::string, CustomCall, std::less<>> calls = {
      {"lazuli.check_index_range", CheckIndexRangeCall}, {"TopK", TopK}};
};
CustomCallRegistry& TheRegistry() { return Runtime::Get().Of<CustomCallRegistry>(); }

}  // namespace

void RegisterCustomCall(std::string_view target, CustomCall call) {
  CustomCallRegistry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  registry.calls.insert_or_assign(std::string(target), std::move(call));
}

CustomCall FindCustomCall(std::string_view target) {
  CustomCallRegistry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto it = registry.calls.find(target);
  return it == registry.calls.end() ? CustomCall() : it->second;
}

absl::Status CheckIndexRange(const Literal& indices, int64_t limit) {
  switch (indices.shape().dtype()) {
    case DType::kS32:
      return CheckAll(indices.data<int32_t>(), limit);
    case DType::kS64:
      return CheckAll(indices.data<int64_t>(), limit);
    default:
      return InvalidArgument("indices are s32 or s64, not ", DTypeText(indices.shape().dtype()));
  }
}

}  // namespace lazuli::hlo
