#include "backend/npu/sim/checked_program.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "backend/npu/sim/assembler.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// OK, or what is wrong with the descriptor that an instruction names.
absl::Status CheckDescriptor(const Program& program, uint32_t index, const Instruction& in) {
  if (index >= program.descriptors.size()) return InvalidArgument("there is no descriptor ", index);
  const Descriptor& d = program.descriptors[index];
  const bool vector = in.opcode() == Op::kVxRun || in.opcode() == Op::kVxRed;
  if (d.rank() < 1 || d.rank() > (vector ? 4 : 5))
    return OutOfRange("descriptor ", index, " has ", d.rank(), " dims");
  int64_t n = 1;
  for (int i = 0; i < d.rank(); ++i) {
    const int64_t dim = d.dim[static_cast<std::size_t>(i)];
    if (dim == 0)
      return OutOfRange("descriptor ", index,
                        " has a dim of 0: an operand has at least one element");
    if (__builtin_mul_overflow(n, dim, &n) || n > int64_t{1} << 40)
      return OutOfRange("descriptor ", index, " has more elements than any memory");
  }
  if (vector) {
    if (!d.vector() || d.second() || index + 1 >= program.descriptors.size() ||
        !program.descriptors[index + 1].second())
      return InvalidArgument("descriptor ", index, " does not belong to a vector program (.vdesc)");
    for (int s = 0; s < 4; ++s) {
      const Type type = d.type(s);
      if (s < 3 && s >= d.inputs()) continue;
      if (type == Type::kNone || static_cast<std::size_t>(type) >= kTypes.size() ||
          type == Type::kS4 || type == Type::kF16 || type == Type::kS64)
        return Unimplemented(
            "descriptor ", index, ": the vector unit does not stream ",
            static_cast<std::size_t>(type) < kTypes.size() ? TypeName(type) : "such a type");
    }
    return absl::OkStatus();
  }
  if (d.vector()) return InvalidArgument("descriptor ", index, " is one of a vector program");
  const int elem = d.elem();
  if (elem != 1 && elem != 2 && elem != 4 && elem != 8)
    return InvalidArgument("descriptor ", index, " has elements of ", elem, " bytes");
  return absl::OkStatus();
}

// A vector program reads what the streams bring or what it has written for this element: nothing is
// left from others.
absl::Status CheckVector(const std::vector<MicroInstruction>& program, int inputs) {
  uint32_t written = (1u << inputs) - 1;
  for (const MicroInstruction& micro : program) {
    const MicroRow& row = *FindMicro(static_cast<uint32_t>(micro.op));
    for (const char operand : row.operands) {
      const int v = operand == 'a'   ? micro.a
                    : operand == 'b' ? micro.b
                    : operand == 'c' ? micro.c
                                     : -1;
      if (v >= 0 && (written >> v & 1) == 0)
        return InvalidArgument("the vector program reads v", v, " before it is written; ", inputs,
                               inputs == 1 ? " input comes" : " inputs come", " in");
    }
    written |= 1u << micro.d;
  }
  if ((written >> 3 & 1) == 0)
    return InvalidArgument("the vector program writes no result: that is v3");
  return absl::OkStatus();
}

absl::Status CheckOperands(const CheckedProgram& checked, const Config& config, uint32_t pc,
                           ErrorCode* code) {
  const Program& program = checked.program;
  const Instruction& in = checked.code[pc];
  *code = ErrorCode::kIllegalInstruction;
  const int queue = static_cast<int>(in.queue);
  const int64_t most = queue < 4   ? config.dma.load_queues
                       : queue < 6 ? config.dma.store_queues + 4
                                   : config.dma.link_queues + 6;
  if (queue < 8 && queue >= most)
    return InvalidArgument("this machine has no queue ", QueueName(in.unit()));
  for (const Operand& operand : Row(in).operands) {
    if (operand.kind == OperandKind::kLabel && in.imm >= checked.code.size())
      return InvalidArgument("there is no instruction ", in.imm);
    if (operand.kind == OperandKind::kVector && in.imm >= checked.vectors.size())
      return InvalidArgument("there is no vector program ", in.imm);
    if (operand.kind == OperandKind::kDescriptor) {
      const absl::Status status = CheckDescriptor(program, in.desc, in);
      if (absl::IsOutOfRange(status)) *code = ErrorCode::kUnsupportedShape;
      if (absl::IsUnimplemented(status)) *code = ErrorCode::kUnsupportedDtype;
      LAZULI_RETURN_IF_ERROR(status);
    }
  }
  const Op op = in.opcode();
  if (op == Op::kVxRun || op == Op::kVxRed)
    LAZULI_RETURN_IF_ERROR(
        CheckVector(checked.vectors[in.imm], program.descriptors[in.desc].inputs()));
  if (op == Op::kMxMm && program.descriptors[in.desc].rank() > 3) {
    *code = ErrorCode::kUnsupportedShape;
    return InvalidArgument("the rows of mx.mm have up to 3 levels");
  }
  const int joining =
      op == Op::kLnkPut ? static_cast<int>(in.aux >> 13 & 3) : static_cast<int>(in.aux & 3);
  const bool joins =
      (op == Op::kDmaLd || op == Op::kDmaSt || op == Op::kDmaSct || op == Op::kLnkPut) &&
      joining != 0;
  const bool converts =
      (op == Op::kDmaLd || op == Op::kDmaSt || op == Op::kDmaCp) && (in.aux >> 2 & 3) != 0;
  if (joins &&
      (in.element() == Type::kNone || converts || program.descriptors[in.desc].elem() != 4)) {
    *code = ErrorCode::kUnsupportedDtype;
    return InvalidArgument("add and max need .f32 or .s32, elements of 4 bytes and no conversion");
  }
  const int elem = converts ? program.descriptors[in.desc].elem() : 4;
  if (elem != 2 && elem != 4) {
    *code = ErrorCode::kUnsupportedDtype;
    return InvalidArgument("narrow and widen convert elements of 4 and 2 bytes, not of ", elem);
  }
  if (op == Op::kSemSet && in.imm > 255) return InvalidArgument("a semaphore holds 0 to 255");
  return absl::OkStatus();
}

// Loops close as they open, and no branch goes from one body into another.
absl::Status CheckLoops(const std::vector<Instruction>& code, uint32_t* pc) {
  std::vector<uint32_t> open, body(code.size() + 1, 0);
  uint32_t count = 0;
  for (*pc = 0; *pc < code.size(); ++*pc) {
    const Instruction& in = code[*pc];
    if (in.opcode() == Op::kLoop) {
      const uint64_t end = uint64_t{*pc} + in.desc;
      if (in.desc == 0 || end >= code.size() || code[end].opcode() != Op::kEndl)
        return InvalidArgument("the loop has no endl");
      if (!open.empty() && end >= open.back())
        return InvalidArgument("the loop ends outside the one around it");
      if (open.size() == kLoopDepth) return InvalidArgument("loops nest deeper than ", kLoopDepth);
      body[*pc] = open.empty() ? 0 : body[*pc];
      open.push_back(static_cast<uint32_t>(end));
      ++count;
    } else if (in.opcode() == Op::kEndl) {
      if (open.empty() || open.back() != *pc) return InvalidArgument("endl without a loop");
      open.pop_back();
    }
  }
  return absl::OkStatus();
}

// Which array each `$name` of the text is of. The text says so by the array's place; an array
// without bytes shares its place with the next one, and is never meant.
void FindArrays(CheckedProgram& checked) {
  std::vector<std::pair<uint64_t, uint32_t>> arrays;  // by place
  for (uint32_t s = 0; s < checked.program.symbols.size(); ++s) {
    const Symbol& symbol = checked.program.symbols[s];
    if (symbol.bytes() > 0) arrays.emplace_back(symbol.offset, s);
  }
  std::sort(arrays.begin(), arrays.end());
  for (uint32_t pc = 0; pc < checked.code.size(); ++pc) {
    const Instruction& in = checked.code[pc];
    const auto& operands = Row(in).operands;
    const bool far = std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
      return operand.kind == OperandKind::kDram;
    });
    if (!far || (in.aux & kAuxDram) == 0) continue;
    const uint64_t place = uint64_t{in.imm} * kDramUnit;
    auto array = std::lower_bound(arrays.begin(), arrays.end(), std::pair{place, uint32_t{0}});
    const bool found = array != arrays.end() && array->first == place;
    checked.references.push_back({pc, found ? static_cast<int32_t>(array->second) : -1});
  }
}

}  // namespace

void Locate(const Program& program, uint32_t pc, Fault& fault) {
  if (pc >= program.text.size()) return;
  fault.pc = pc;
  fault.instruction = WordText(program, pc);
  if (pc >= program.debug.size()) return;
  fault.line = program.debug[pc].line;
  fault.origin = program.origins[program.debug[pc].origin];
}

std::optional<Fault> CheckProgram(const Program& program, const Config& config,
                                  CheckedProgram& checked) {
  checked = {program, {}, {}, {}};
  auto fault = [&](ErrorCode code, int64_t pc, std::string_view sentence) {
    Fault f{code, 0, 0, -1, 0, 0, "", "", std::string(sentence)};
    if (pc >= 0) Locate(program, static_cast<uint32_t>(pc), f);
    return std::optional<Fault>(std::move(f));
  };
  if (program.config_hash != ProgramHash(config))
    return fault(ErrorCode::kBadBinary, -1,
                 Str("the program is made for another configuration (", program.config_name,
                     program.config_overrides.empty() ? "" : ", ", program.config_overrides,
                     "), this machine is ", config.name));
  if (program.text.empty() || program.entry >= program.text.size())
    return fault(ErrorCode::kBadBinary, -1, "the program has no instructions");
  if (program.dram_bytes() > static_cast<uint64_t>(config.dram_bytes()))
    return fault(ErrorCode::kOomDram, -1,
                 Str("the arrays take ", program.dram_bytes(), " bytes, the DRAM has ",
                     config.dram_bytes()));
  checked.vectors.clear();
  for (std::size_t i = 0; i < program.vectors.size(); ++i) {
    auto vector = DecodeVector(program.vectors[i]);
    if (!vector.ok())
      return fault(absl::IsUnimplemented(vector.status()) ? ErrorCode::kUnsupportedDtype
                                                          : ErrorCode::kIllegalInstruction,
                   -1, Str("vector program ", i, ", ", Message(vector.status())));
    checked.vectors.push_back(*std::move(vector));
  }
  checked.code.clear();
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    checked.code.push_back(Unpack(program.text[pc]));
    if (const absl::Status status = CheckInstruction(checked.code.back()); !status.ok())
      return fault(absl::IsUnimplemented(status) ? ErrorCode::kUnsupportedDtype
                                                 : ErrorCode::kIllegalInstruction,
                   static_cast<int64_t>(pc), Message(status));
  }
  for (uint32_t pc = 0; pc < checked.code.size(); ++pc) {
    ErrorCode code{};
    if (const absl::Status status = CheckOperands(checked, config, pc, &code); !status.ok())
      return fault(code, pc, Message(status));
  }
  uint32_t pc = 0;
  if (const absl::Status status = CheckLoops(checked.code, &pc); !status.ok())
    return fault(ErrorCode::kIllegalInstruction, pc, Message(status));
  FindArrays(checked);
  return std::nullopt;
}

}  // namespace lazuli::npu
