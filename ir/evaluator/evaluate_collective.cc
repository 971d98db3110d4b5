// Collectives of one participant. This process is device 0, replica 0 of partition 0: what it would
// have to hear from others, or tell them, is Unimplemented.

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/devices/collective.h"

namespace lazuli::hlo {
namespace {

// How many devices this one meets, itself included; 0 if it is in no group.
absl::StatusOr<int64_t> Participants(const Instruction& i) {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Dims> groups, GroupsOf(i));
  for (const Dims& group : groups) {
    if (std::find(group.begin(), group.end(), 0) != group.end())
      return static_cast<int64_t>(group.size());
  }
  return 0;
}

absl::Status Alone(const Instruction& i, int64_t participants) {
  const std::string groups = CollectiveAttribute(i, "replica_groups");
  return Unimplemented(OpcodeText(i.opcode()), " between ", participants,
                       " devices, replica_groups=", groups.empty() ? "{}" : groups,
                       "; this process is one");
}

// Zeros where nobody sends to this device.
absl::StatusOr<Literal> PermutedAlone(const Instruction& i, const Literal& x) {
  LAZULI_ASSIGN_OR_RETURN(const auto pairs, PairsOf(i));
  bool to_itself = false;
  for (const auto& [source, target] : pairs) {
    to_itself |= source == 0 && target == 0;
    if ((source == 0) == (target == 0)) continue;
    return Unimplemented(OpcodeText(i.opcode()), " from device ", source, " to device ", target,
                         ", source_target_pairs=", CollectiveAttribute(i, "source_target_pairs"),
                         "; this process is device 0");
  }
  return to_itself ? x : Literal(x.shape());
}

// Operands: input, output, and where each device's slice of rows begins in the input, how many rows
// are sent, where they go in the receiver's output, how many are received. The only device sends
// all of its slices to itself.
absl::StatusOr<Literal> RaggedAllToAll(Operands operands) {
  const Literal &input = *operands[0], &starts = *operands[2], &sizes = *operands[3],
                &targets = *operands[4];
  Literal output = operands[1]->Clone();
  const int64_t rows = input.shape().dim(0), output_rows = output.shape().dim(0);
  const int64_t row_bytes = ByteStrides(input.shape())[0];
  for (int64_t i = 0; i < starts.shape().num_elements(); ++i) {
    const int64_t start = IntegerAt(starts, i), size = IntegerAt(sizes, i),
                  target = IntegerAt(targets, i);
    if (start < 0 || size < 0 || target < 0 || start > rows - size || target > output_rows - size) {
      return InvalidArgument("slice ", i, " of ", size, " rows from ", start, " to ", target,
                             " is not within ", input.shape(), " and ", output.shape());
    }
    std::memcpy(output.mutable_raw() + target * row_bytes, input.raw() + start * row_bytes,
                static_cast<std::size_t>(size * row_bytes));
  }
  return output;
}

// The value in each place of a start's result that has its shape, zeros in the others (context
// words).
Literal Started(const Shape& shape, const Literal& value) {
  if (Compatible(shape, value.shape())) return value;
  if (!shape.IsTuple()) return Literal(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(Started(element, value));
  return Literal::Tuple(std::move(elements));
}

// What was given, in the shape that is promised.
absl::StatusOr<Literal> AsGiven(const Instruction& i, Operands operands) {
  std::vector<Literal> values;
  for (const Literal* operand : operands) values.push_back(*operand);
  Literal result = TupleOrOne(std::move(values));
  if (Compatible(result.shape(), i.shape())) return result;
  if (i.shape().IsTuple() && operands.size() == 1 && i.shape().tuple().size() == 1)
    return Literal::Tuple({*operands[0]});
  return InvalidArgument(OpcodeText(i.opcode()), " of one device makes ", result.shape(), ", not ",
                         i.shape());
}

// A permutation of arrays, or of one array in place: operands 2 and 3 say where slices begin.
absl::StatusOr<Literal> CollectivePermute(const Instruction& i, Operands operands) {
  if (operands.size() == 4) return Unimplemented(OpcodeText(i.opcode()), " of slices in place");
  std::vector<Literal> values;
  for (const Literal* operand : operands) {
    LAZULI_ASSIGN_OR_RETURN(Literal value, PermutedAlone(i, *operand));
    values.push_back(std::move(value));
  }
  if (i.opcode() == Opcode::kCollectivePermute) return TupleOrOne(std::move(values));
  // ((operands), results, context words), of one operand as of several.
  std::vector<Literal> given;
  for (const Literal* operand : operands) given.push_back(*operand);
  std::vector<Literal> elements{TupleOrOne(std::move(given)), TupleOrOne(std::move(values))};
  const std::vector<Shape>& shapes = i.shape().tuple();
  for (std::size_t k = 2; k < shapes.size(); ++k) elements.emplace_back(shapes[k]);
  return Literal::Tuple(std::move(elements));
}

}  // namespace

absl::StatusOr<Literal> EvaluateCollective(const Instruction& instruction, Operands operands) {
  switch (instruction.opcode()) {
    case Opcode::kCopyStart:
      return Started(instruction.shape(), *operands[0]);
    case Opcode::kCollectivePermute:
    case Opcode::kCollectivePermuteStart:
      return CollectivePermute(instruction, operands);
    default:
      break;
  }
  LAZULI_ASSIGN_OR_RETURN(const int64_t participants, Participants(instruction));
  const bool broadcasts = instruction.opcode() == Opcode::kCollectiveBroadcast;
  if (broadcasts && participants == 0) return Literal(instruction.shape());  // nobody's data
  if (participants != 1) return Alone(instruction, participants);
  switch (instruction.opcode()) {
    case Opcode::kRaggedAllToAll:
      return RaggedAllToAll(operands);
    case Opcode::kAllGatherStart:
      return Started(instruction.shape(), *operands[0]);
    default:
      return AsGiven(instruction, operands);
  }
}

}  // namespace lazuli::hlo
