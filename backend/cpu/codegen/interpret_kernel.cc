#include "backend/cpu/codegen/interpret_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/evaluator/evaluator.h"
#include "ir/evaluator/strided.h"
#include "ir/support/data_memory.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Steps that a call of a region takes beside its elements.
constexpr int64_t kRegionCall = 40;

int64_t Elements(const Shape& shape) {
  int64_t elements = 0;
  ForEachLeaf(shape, [&](const Shape& leaf) { elements += leaf.num_elements(); });
  return elements;
}

int64_t WindowSize(const Instruction& i) {
  int64_t size = 1;
  for (const hlo::WindowDim& dim : i.attrs_as<hlo::WindowAttrs>().window) size *= dim.size;
  return size;
}

// A region is called once per reduced element of a result, for all results together.
int64_t FoldCost(const Instruction& i) {
  const int64_t results = std::max<int64_t>(1, i.shape().tuple()[0].num_elements());
  const int64_t elements = i.operand(0)->shape().num_elements();
  const auto length = static_cast<int64_t>(i.to_apply()->instructions().size());
  return length * (elements + elements / results * kRegionCall);
}

int64_t StepsOf(const Instruction& i) {
  const int64_t elements = Elements(i.shape());
  switch (i.opcode()) {
    case Opcode::kParameter:
      return i.shape().has_layout() ? elements : 0;
    case Opcode::kConstant:
    case Opcode::kTuple:
      return 0;
    case Opcode::kReduce:
      return i.shape().IsTuple() ? FoldCost(i) : 2 * i.operand(0)->shape().num_elements();
    case Opcode::kReduceWindow:
      return 4 * elements * WindowSize(i);
    case Opcode::kSelectAndScatter:
      return kRegionCall * i.operand(1)->shape().num_elements() * WindowSize(i);
    default:
      return elements * CostOf(i.opcode());
  }
}

Dims StridesInBytes(const Shape& shape) {
  Dims strides = shape.strides();
  for (int64_t& stride : strides) stride *= ByteWidth(shape.dtype());
  return strides;
}

// The elements of an argument, row major: in its own memory where they lie so.
Literal Argument(const Shape& shape, const std::byte* data) {
  if (!shape.has_layout()) return Literal::Foreign(shape, data, {});
  Literal value = Literal::Uninitialized(shape.WithDefaultLayout());
  hlo::CopyStrided(ByteWidth(shape.dtype()), shape.dims(), data, StridesInBytes(shape),
                   value.mutable_raw(), hlo::ByteStrides(value.shape()));
  return value;
}

void Store(const Literal& value, const Shape& shape, std::byte* to) {
  if (value.byte_size() == 0) return;
  if (shape.has_layout()) {
    hlo::CopyStrided(ByteWidth(shape.dtype()), shape.dims(), value.raw(),
                     hlo::ByteStrides(value.shape()), to, StridesInBytes(shape));
  } else {
    std::memcpy(to, value.raw(), static_cast<std::size_t>(value.byte_size()));
  }
}

// The results' leaves, none of which lies in the memory of an argument, where a result may be written.
std::vector<Literal> Detached(const Literal& result, absl::Span<const Literal* const> arguments) {
  std::vector<Literal> leaves = result.shape().IsTuple() ? result.tuple() : std::vector{result};
  for (Literal& leaf : leaves) {
    const bool shared = std::any_of(arguments.begin(), arguments.end(), [&](const Literal* x) {
      return leaf.raw() >= x->raw() && leaf.raw() < x->raw() + x->byte_size();
    });
    if (shared) leaf = leaf.Clone();
  }
  return leaves;
}

}  // namespace

std::optional<int64_t> InterpretationCost(const hlo::Computation& body) {
  int64_t cost = 0;
  for (const auto& i : body.instructions()) {
    if (i->opcode() == Opcode::kWhile) return std::nullopt;
    cost += StepsOf(*i);
  }
  return cost;
}

absl::Status InterpretKernel(const hlo::Computation& body, std::byte* const* args) try {
  std::vector<Literal> values;
  for (const Instruction* parameter : body.parameters())
    values.push_back(Argument(parameter->shape(), *args++));
  std::vector<const Literal*> pointers;
  for (const Literal& value : values) pointers.push_back(&value);
  LAZULI_ASSIGN_OR_RETURN(const Literal result, hlo::Evaluate(body, pointers));
  const std::vector<Literal> leaves = Detached(result, pointers);
  std::size_t next = 0;
  ForEachLeaf(body.root()->shape(),
              [&](const Shape& shape) { Store(leaves[next++], shape, *args++); });
  return absl::OkStatus();
} catch (const ir::NoDataMemory& error) {
  return error.status();
}

}  // namespace lazuli::cpu
