// Collectives: what the devices of a group exchange. The last device that comes to a collective
// computes the results of all of them from the operands of all.

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/devices/collective.h"
#include "ir/support/data_memory.h"

namespace lazuli::hlo {
namespace {

using Results = std::vector<Literal>;

// One device's part in a collective.
struct Contribution {
  const Instruction* instruction;
  const Dims* group;
  Operands operands;
  absl::Status status;
  Results results{};
};

// A collective of the devices of a group, whose parts are in the group's order.
class CollectiveEvaluation {
 public:
  CollectiveEvaluation(const Instruction& instruction, const Dims& group,
                       absl::Span<Contribution* const> parts, Evaluation& evaluation)
      : i_(instruction), group_(group), parts_(parts), evaluation_(evaluation) {}

  // Sets the results of all parts.
  absl::Status Run();

 private:
  std::size_t count() const { return parts_.size(); }
  const Literal& Given(std::size_t member, std::size_t operand) const {
    return *parts_[member]->operands[operand];
  }
  // The same as a result of `receiver`, which may go on when the member's memory is gone.
  Literal Sent(std::size_t member, std::size_t operand, std::size_t receiver) const {
    const Literal& given = Given(member, operand);
    return member == receiver ? given : given.Clone();
  }
  int64_t DimOrNone() const {
    const Dims& dims = i_.attrs_as<CollectiveAttrs>().dimensions;
    return dims.empty() ? -1 : dims[0];
  }
  void GiveToAll(const Literal& value) {
    for (Contribution* const part : parts_) part->results.push_back(value);
  }

  absl::Status Agree() const;
  absl::StatusOr<Literal> Joined(std::size_t operand);
  absl::StatusOr<Literal> Concatenated(absl::Span<const Literal* const> values, int64_t dim);
  absl::StatusOr<Literal> Slice(const Literal& x, int64_t dim, std::size_t part);
  absl::Status Join(bool scatters);
  absl::Status Gather();
  absl::Status AllToAll();
  absl::Status Permute();
  absl::Status RaggedAllToAll();

  const Instruction& i_;
  const Dims& group_;
  const absl::Span<Contribution* const> parts_;
  Evaluation& evaluation_;
};

bool SameOperands(Operands a, Operands b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Literal* x, const Literal* y) {
    return Compatible(x->shape(), y->shape());
  });
}

// Whether two instructions, which may be of two programs, exchange the same way.
bool SameExchange(const Instruction& a, const Instruction& b) {
  if (a.opcode() != b.opcode() || !Compatible(a.shape(), b.shape())) return false;
  if (!a.called().empty() && !Equal(*a.to_apply(), *b.to_apply())) return false;
  const auto* const left = std::get_if<CollectiveAttrs>(&a.attrs());
  const auto* const right = std::get_if<CollectiveAttrs>(&b.attrs());
  return left == nullptr || right == nullptr || left->dimensions == right->dimensions;
}

// Devices whose programs, loops or branches differ may come with different collectives.
absl::Status CollectiveEvaluation::Agree() const {
  const auto described = [](const Contribution& part) {
    return Str(OpcodeText(part.instruction->opcode()), " %", part.instruction->name(), " of ",
               part.operands.empty() ? Shape() : part.operands[0]->shape(), " in the order {",
               ir::Join(*part.group, ","), "}");
  };
  for (const Contribution* const part : parts_) {
    if (SameExchange(*part->instruction, i_) && *part->group == group_ &&
        SameOperands(part->operands, parts_[0]->operands))
      continue;
    return InvalidArgument("one device is at ", described(*parts_[0]), ", another at ",
                           described(*part));
  }
  return absl::OkStatus();
}

// The operand of all devices, joined by the collective's computation in the group's order.
absl::StatusOr<Literal> CollectiveEvaluation::Joined(std::size_t operand) {
  if (count() == 1) return Given(0, operand);
  constexpr int64_t kLanes = 4096;
  Literal joined = Given(0, operand).Clone();
  const int64_t elements = joined.shape().num_elements(), width = ByteWidth(joined.shape().dtype());
  RegionEvaluator region(*i_.to_apply(), std::min(elements, kLanes), evaluation_);
  for (std::size_t m = 1; m < count(); ++m) {
    for (int64_t at = 0; at < elements; at += kLanes) {
      std::byte* const into = joined.mutable_raw() + at * width;
      const std::byte* const arguments[] = {into, Given(m, operand).raw() + at * width};
      LAZULI_RETURN_IF_ERROR(region.Run(arguments, {into}, std::min(kLanes, elements - at)));
    }
  }
  return joined;
}

absl::StatusOr<Literal> CollectiveEvaluation::Concatenated(absl::Span<const Literal* const> values,
                                                           int64_t dim) {
  if (values.size() == 1) return *values[0];
  Dims dims(values[0]->shape().dims().begin(), values[0]->shape().dims().end());
  dims[static_cast<std::size_t>(dim)] *= static_cast<int64_t>(values.size());
  const Lone whole(Opcode::kConcatenate, Shape(values[0]->shape().dtype(), dims), values,
                   DimensionsAttrs{{dim}});
  return evaluation_.Run(*whole, values);
}

// Contribution number `part` of as many equal ones as there are devices.
absl::StatusOr<Literal> CollectiveEvaluation::Slice(const Literal& x, int64_t dim,
                                                    std::size_t part) {
  if (count() == 1) return x;
  const auto d = static_cast<std::size_t>(dim);
  SliceAttrs attrs;
  attrs.limits.assign(x.shape().dims().begin(), x.shape().dims().end());
  attrs.starts.assign(attrs.limits.size(), 0);
  attrs.strides.assign(attrs.limits.size(), 1);
  const int64_t size = attrs.limits[d] / static_cast<int64_t>(count());
  if (size * static_cast<int64_t>(count()) != attrs.limits[d])
    return InvalidArgument("dimension ", dim, " of ", x.shape(), " does not have ", count(),
                           " equal parts");
  attrs.starts[d] = static_cast<int64_t>(part) * size;
  attrs.limits[d] = attrs.starts[d] + size;
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims[d] = size;
  const Literal* const operand = &x;
  const Lone slice(Opcode::kSlice, Shape(x.shape().dtype(), dims), {&operand, 1}, attrs);
  return evaluation_.Run(*slice, {&operand, 1});
}

absl::Status CollectiveEvaluation::Join(bool scatters) {
  for (std::size_t k = 0; k < parts_[0]->operands.size(); ++k) {
    LAZULI_ASSIGN_OR_RETURN(const Literal joined, Joined(k));
    if (!scatters) {
      GiveToAll(joined);
      continue;
    }
    for (std::size_t m = 0; m < count(); ++m) {
      LAZULI_ASSIGN_OR_RETURN(Literal slice, Slice(joined, DimOrNone(), m));
      parts_[m]->results.push_back(std::move(slice));
    }
  }
  return absl::OkStatus();
}

absl::Status CollectiveEvaluation::Gather() {
  for (std::size_t k = 0; k < parts_[0]->operands.size(); ++k) {
    std::vector<const Literal*> all;
    for (std::size_t m = 0; m < count(); ++m) all.push_back(&Given(m, k));
    LAZULI_ASSIGN_OR_RETURN(const Literal whole, Concatenated(all, DimOrNone()));
    GiveToAll(whole);
  }
  return absl::OkStatus();
}

// Member m's part for member r becomes part m of r's result. Parts are the operands, or slices of one
// operand along a dimension.
absl::Status CollectiveEvaluation::AllToAll() {
  if (i_.shape().IsTuple()) {
    if (parts_[0]->operands.size() != count())
      return InvalidArgument("an exchange between ", count(),
                             " devices takes as many operands, not ", parts_[0]->operands.size());
    for (std::size_t r = 0; r < count(); ++r) {
      for (std::size_t m = 0; m < count(); ++m) parts_[r]->results.push_back(Sent(m, r, r));
    }
    return absl::OkStatus();
  }
  for (std::size_t r = 0; r < count(); ++r) {
    Results slices;
    for (std::size_t m = 0; m < count(); ++m) {
      LAZULI_ASSIGN_OR_RETURN(Literal slice, Slice(Given(m, 0), DimOrNone(), r));
      slices.push_back(std::move(slice));
    }
    std::vector<const Literal*> pointers;
    for (const Literal& slice : slices) pointers.push_back(&slice);
    LAZULI_ASSIGN_OR_RETURN(Literal result, Concatenated(pointers, DimOrNone()));
    parts_[r]->results.push_back(std::move(result));
  }
  return absl::OkStatus();
}

// Zeros where no device sends to one.
absl::Status CollectiveEvaluation::Permute() {
  LAZULI_ASSIGN_OR_RETURN(const auto pairs, PairsOf(i_));
  for (std::size_t r = 0; r < count(); ++r) {
    const auto pair = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const auto& p) { return p.second == group_[r]; });
    for (std::size_t k = 0; k < parts_[r]->operands.size(); ++k) {
      if (pair == pairs.end()) {
        parts_[r]->results.emplace_back(Given(r, k).shape());
        continue;
      }
      const auto source = std::find(group_.begin(), group_.end(), pair->first);
      parts_[r]->results.push_back(Sent(static_cast<std::size_t>(source - group_.begin()), k, r));
    }
  }
  return absl::OkStatus();
}

// Operands: input, output, and where each device's slices of rows begin in the input, how many rows
// are sent, where they go in the receiver's output, how many are received.
absl::Status CollectiveEvaluation::RaggedAllToAll() {
  Results outputs;
  for (std::size_t m = 0; m < count(); ++m) outputs.push_back(Given(m, 1).Clone());
  for (std::size_t m = 0; m < count(); ++m) {
    const Literal &input = Given(m, 0), &starts = Given(m, 2), &sizes = Given(m, 3),
                  &targets = Given(m, 4);
    const int64_t rows = input.shape().dim(0), row_bytes = ByteStrides(input.shape())[0],
                  slices = starts.shape().num_elements();
    if (slices % static_cast<int64_t>(count()) != 0)
      return InvalidArgument(slices, " slices are not the same number for each of ", count(),
                             " devices");
    for (int64_t i = 0; i < slices; ++i) {
      Literal& output =
          outputs[static_cast<std::size_t>(i * static_cast<int64_t>(count()) / slices)];
      const int64_t start = IntegerAt(starts, i), size = IntegerAt(sizes, i),
                    target = IntegerAt(targets, i), output_rows = output.shape().dim(0);
      if (start < 0 || size < 0 || target < 0 || start > rows - size ||
          target > output_rows - size) {
        return InvalidArgument("slice ", i, " of ", size, " rows from ", start, " to ", target,
                               " is not within ", input.shape(), " and ", output.shape());
      }
      std::memcpy(output.mutable_raw() + target * row_bytes, input.raw() + start * row_bytes,
                  static_cast<std::size_t>(size * row_bytes));
    }
  }
  for (std::size_t m = 0; m < count(); ++m) parts_[m]->results.push_back(std::move(outputs[m]));
  return absl::OkStatus();
}

absl::Status CollectiveEvaluation::Run() try {
  LAZULI_RETURN_IF_ERROR(Agree());
  switch (i_.opcode()) {
    case Opcode::kAllReduce:
    case Opcode::kAllReduceStart:
      return Join(/*scatters=*/false);
    case Opcode::kReduceScatter:
      return Join(/*scatters=*/true);
    case Opcode::kAllGather:
    case Opcode::kAllGatherStart:
      return Gather();
    case Opcode::kAllToAll:
      return AllToAll();
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      return Permute();
    case Opcode::kCollectiveBroadcast:
      for (std::size_t r = 0; r < count(); ++r) {
        for (std::size_t k = 0; k < parts_[0]->operands.size(); ++k)
          parts_[r]->results.push_back(Sent(0, k, r));
      }
      return absl::OkStatus();
    case Opcode::kRaggedAllToAll:
      return RaggedAllToAll();
    default:
      if (count() > 1)
        return Unimplemented(OpcodeText(i_.opcode()), " between ", count(), " devices");
      for (const Literal* const operand : parts_[0]->operands) GiveToAll(*operand);
      return absl::OkStatus();
  }
} catch (const ir::NoDataMemory& error) {
  return error.status();
}

std::string GroupsText(const Instruction& i) {
  const std::string_view name = IsPermute(i.opcode()) ? "source_target_pairs" : "replica_groups";
  const std::string groups = CollectiveAttribute(i, name);
  return Str(name, "=", groups.empty() ? "{}" : groups);
}

// The devices that exchange with this one, itself among them; it alone if nobody does; none where a
// broadcast does not reach it.
absl::StatusOr<Dims> GroupOf(const Instruction& i, int64_t device) {
  if (IsPermute(i.opcode())) {
    LAZULI_ASSIGN_OR_RETURN(const auto pairs, PairsOf(i));
    Dims devices;
    for (const auto& [source, target] : pairs) {
      if (source != target) devices.insert(devices.end(), {source, target});
    }
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return std::find(devices.begin(), devices.end(), device) == devices.end() ? Dims{device}
                                                                              : devices;
  }
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Dims> groups, GroupsOf(i));
  for (const Dims& group : groups) {
    if (std::find(group.begin(), group.end(), device) != group.end()) return group;
  }
  if (i.opcode() == Opcode::kCollectiveBroadcast) return Dims();
  return InvalidArgument("device ", device, " is in none of the groups, ", GroupsText(i));
}

// The results in the shape that is promised: of a start ((operands), results, context words).
absl::StatusOr<Literal> InPromisedShape(const Instruction& i, Operands operands, Results results) {
  const bool one = !i.shape().IsTuple() || i.shape().tuple().size() != 1;
  if (i.opcode() != Opcode::kAllGatherStart && i.opcode() != Opcode::kCollectivePermuteStart) {
    Literal result = one ? TupleOrOne(std::move(results)) : Literal::Tuple(std::move(results));
    if (Compatible(result.shape(), i.shape())) return result;
    return InvalidArgument(OpcodeText(i.opcode()), " makes ", result.shape(), ", not ", i.shape());
  }
  Results given;
  for (const Literal* const operand : operands) given.push_back(*operand);
  const std::vector<Shape>& shapes = i.shape().tuple();
  const auto packed = [](const Shape& shape, Results values) {
    return shape.IsTuple() ? Literal::Tuple(std::move(values)) : TupleOrOne(std::move(values));
  };
  Results elements{packed(shapes[0], std::move(given)), packed(shapes[1], std::move(results))};
  for (std::size_t k = 2; k < shapes.size(); ++k) elements.emplace_back(shapes[k]);
  return Literal::Tuple(std::move(elements));
}

// The exchange of a group that this device is in.
absl::Status RunTogether(const Instruction& i, const Dims& group, Evaluation& evaluation,
                         Contribution& mine) {
  const auto together = [&](absl::Span<Contribution* const> parts) {
    const absl::Status status = CollectiveEvaluation(i, group, parts, evaluation).Run();
    for (Contribution* const part : parts) part->status = status;
  };
  PeerRun* const peers = evaluation.options().peers;
  if (group.size() == 1) {
    Contribution* const alone = &mine;
    together({&alone, 1});
    return mine.status;
  }
  if (peers == nullptr)
    return Unimplemented(OpcodeText(i.opcode()), " between ", group.size(), " devices, ",
                         GroupsText(i), "; this program runs on one");
  LAZULI_RETURN_IF_ERROR(peers->Meet(group, &mine, [&](absl::Span<void* const> all) {
    std::vector<Contribution*> parts;
    for (void* const part : all) parts.push_back(static_cast<Contribution*>(part));
    together(parts);
  }));
  return mine.status;
}

absl::StatusOr<int64_t> DeviceOf(const Evaluation& evaluation) {
  PeerRun* const peers = evaluation.options().peers;
  if (peers == nullptr) return 0;
  return peers->Device();
}

}  // namespace

absl::StatusOr<Literal> EvaluateCollective(const Instruction& instruction, Operands operands,
                                           Evaluation& evaluation) {
  if (IsPermute(instruction.opcode()) && operands.size() == 4)
    return Unimplemented(OpcodeText(instruction.opcode()), " of slices in place");
  LAZULI_ASSIGN_OR_RETURN(const int64_t device, DeviceOf(evaluation));
  LAZULI_ASSIGN_OR_RETURN(const Dims group, GroupOf(instruction, device));
  if (group.empty()) return Literal(instruction.shape());  // nobody's data
  Contribution mine{
      .instruction = &instruction, .group = &group, .operands = operands, .status = {}};
  LAZULI_RETURN_IF_ERROR(RunTogether(instruction, group, evaluation, mine));
  return InPromisedShape(instruction, operands, std::move(mine.results));
}

// The value in each place of the result that has its shape, zeros in the others (context words).
absl::StatusOr<Literal> EvaluateCopyStart(const Instruction& instruction, Operands operands) {
  const auto started = [&](const auto& self, const Shape& shape) -> Literal {
    if (Compatible(shape, operands[0]->shape())) return *operands[0];
    if (!shape.IsTuple()) return Literal(shape);
    Results elements;
    for (const Shape& element : shape.tuple()) elements.push_back(self(self, element));
    return Literal::Tuple(std::move(elements));
  };
  return started(started, instruction.shape());
}

absl::StatusOr<Literal> EvaluateDeviceId(const Instruction& instruction, Operands,
                                         Evaluation& evaluation) {
  LAZULI_ASSIGN_OR_RETURN(const int64_t device, DeviceOf(evaluation));
  const int64_t partitions = instruction.parent()->parent()->num_partitions();
  const bool replica = instruction.opcode() == Opcode::kReplicaId;
  return Literal::Scalar(
      static_cast<uint32_t>(replica ? device / partitions : device % partitions));
}

}  // namespace lazuli::hlo
