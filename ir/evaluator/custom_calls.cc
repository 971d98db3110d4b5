#include "ir/evaluator/custom_calls.h"

#include <map>
#include <mutex>

namespace lazuli::hlo {
namespace {

absl::StatusOr<Literal> Sharding(const Instruction&, absl::Span<const Literal* const> operands) {
  if (operands.size() != 1) return InvalidArgument("Sharding takes one operand");
  return *operands[0];
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

struct Registry {
  std::mutex mutex;
  std::map<std::string, CustomCall, std::less<>> calls = {
      {"Sharding", Sharding}, {"lazuli.check_index_range", CheckIndexRangeCall}};
};
Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

}  // namespace

void RegisterCustomCall(std::string_view target, CustomCall call) {
  Registry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  registry.calls.insert_or_assign(std::string(target), std::move(call));
}

CustomCall FindCustomCall(std::string_view target) {
  Registry& registry = TheRegistry();
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
