// The assembler's instructions: mnemonic, operands by the table, semaphores.

#include <algorithm>

#include "backend/npu/sim/assembly.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

// "dma.ld.1.f32": the row; queue and type into the instruction.
absl::StatusOr<const InstructionRow*> TakeMnemonic(std::string_view text, Instruction& in) {
  std::string_view name = text;
  const InstructionRow* row = FindRow(name);
  while (row == nullptr) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return InvalidArgument("there is no instruction ", text);
    name = name.substr(0, dot);
    row = FindRow(name);
  }
  in.op = static_cast<uint32_t>(row->op);
  const QueueRange queues = QueuesOf(row->queue);
  in.queue = static_cast<uint32_t>(queues.first);
  bool queue_given = row->queue != QueueKind::kAny;
  std::string_view suffix = text.substr(name.size());
  while (!suffix.empty()) {
    suffix.remove_prefix(1);
    const std::string_view part = suffix.substr(0, suffix.find('.'));
    suffix.remove_prefix(part.size());
    if (const auto queue = QueueFromName(part); queue && row->queue == QueueKind::kAny) {
      in.queue = static_cast<uint32_t>(*queue);
      queue_given = true;
    } else if (part.size() == 1 && IsDigit(part[0]) && part[0] - '0' < queues.count &&
               row->queue != QueueKind::kAny && queues.count > 1) {
      in.queue = static_cast<uint32_t>(queues.first + part[0] - '0');
    } else if (const auto type = TypeFromName(part); type) {
      in.type = static_cast<uint32_t>(*type);
    } else {
      return InvalidArgument("'.", part, "' is not a suffix of ", row->mnemonic);
    }
  }
  if (!queue_given)
    return InvalidArgument(row->mnemonic, " names its queue: ", row->mnemonic, ".mx");
  if (row->types != 0 && in.type == 0 && (row->types & Bit(Type::kNone)) == 0)
    return InvalidArgument(row->mnemonic, " needs an element type: ", row->mnemonic, ".s8");
  return row;
}

void SetBits(const Operand& operand, uint32_t value, Instruction& in) {
  const uint64_t mask = ((uint64_t{1} << operand.width) - 1) << operand.low;
  Set(in, operand.field,
      static_cast<uint32_t>((Get(in, operand.field) & ~mask) |
                            (static_cast<uint64_t>(value) << operand.low & mask)));
}

absl::Status TakeQueues(Tokens piece, Instruction& in) {
  if (piece.size() == 1 && piece[0].text == "all") {
    in.imm = (1u << kQueues) - 1;
    return absl::OkStatus();
  }
  for (std::size_t i = 0; i < piece.size(); i += 2) {
    const auto queue = QueueFromName(piece[i].text);
    if (!queue || *queue == Queue::kSq || (i + 1 < piece.size() && !Is(piece[i + 1], "|")))
      return InvalidArgument("'", TextOf(piece), "' names no queues: all, or like ld0|mx");
    in.imm |= 1u << static_cast<int>(*queue);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Register(Tokens piece) {
  const auto r = piece.size() == 1 ? Numbered(piece[0], 'r', kRegisters - 1) : std::nullopt;
  if (!r) return InvalidArgument("'", TextOf(piece), "' is not a register: r0 to r63");
  return *r;
}

}  // namespace

absl::Status Assembler::TakeInstruction(Tokens tokens) {
  Instruction in;
  LAZULI_ASSIGN_OR_RETURN(const InstructionRow* row, TakeMnemonic(tokens[0].text, in));
  for (const Operand& operand : row->operands) {
    if (operand.absent != 0) SetBits(operand, operand.absent, in);
  }
  Tokens rest = tokens.subspan(1);
  LAZULI_RETURN_IF_ERROR(TakeSemaphores(rest, in));
  std::vector<bool> given(row->operands.size(), false);
  std::size_t position = 0;
  while (!rest.empty()) {
    std::size_t end = 0;
    while (end < rest.size() && !Is(rest[end], ",")) ++end;
    LAZULI_RETURN_IF_ERROR(TakeOperand(*row, rest.subspan(0, end), given, position, in));
    if (end + 1 == rest.size()) return InvalidArgument("an operand is missing behind the comma");
    rest = rest.subspan(std::min(end + 1, rest.size()));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && !row->operands[i].optional && row->operands[i].kind != OperandKind::kEnd)
      return InvalidArgument(row->mnemonic, " takes ", row->operands_text);
  }
  LAZULI_RETURN_IF_ERROR(CheckInstruction(in));
  if (in.opcode() == Op::kLoop) loops_.push_back(program_.text.size());
  if (in.opcode() == Op::kEndl) LAZULI_RETURN_IF_ERROR(CloseLoop());
  Append(Encode(in));
  return absl::OkStatus();
}

absl::Status Assembler::CloseLoop() {
  if (loops_.empty()) return InvalidArgument("endl without a loop");
  const std::size_t begin = loops_.back(), distance = program_.text.size() - begin;
  loops_.pop_back();
  if (distance > 0xffff) return InvalidArgument("a loop's body has at most 65534 instructions");
  Instruction loop = Unpack(program_.text[begin]);
  loop.desc = static_cast<uint32_t>(distance);
  program_.text[begin] = Encode(loop);
  return absl::OkStatus();
}

// Takes `wait sN>=V` and `sig sN+V` from the end.
absl::Status Assembler::TakeSemaphores(Tokens& rest, Instruction& in) {
  std::size_t begin = rest.size();
  for (std::size_t i = rest.size(); i-- > 0;) {
    if (rest[i].kind == TokenKind::kName && (rest[i].text == "wait" || rest[i].text == "sig"))
      begin = i;
  }
  Tokens tail = rest.subspan(begin);
  rest = rest.subspan(0, begin);
  while (!tail.empty()) {
    const bool wait = tail[0].text == "wait";
    const auto s = tail.size() >= 4 ? Numbered(tail[1], 's', kSemaphores - 1) : std::nullopt;
    if (!s || !Is(tail[2], wait ? ">=" : "+") || (tail[0].text != "wait" && tail[0].text != "sig"))
      return InvalidArgument("semaphores are written: wait s0>=1 sig s1+1");
    std::size_t end = 3;
    while (end < tail.size() && !(tail[end].text == "wait" || tail[end].text == "sig")) ++end;
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(tail.subspan(3, end - 3)));
    const int64_t most = wait ? 255 : 15;
    if (value < 1 || value > most)
      return InvalidArgument(wait ? "a wait takes 1 to " : "a signal adds 1 to ", most);
    (wait ? in.wait_sem : in.sig_sem) = *s;
    (wait ? in.wait_val : in.sig_inc) = static_cast<uint32_t>(value);
    tail = tail.subspan(end);
  }
  return absl::OkStatus();
}

absl::Status Assembler::TakeOperand(const InstructionRow& row, Tokens piece,
                                    std::vector<bool>& given, std::size_t& position,
                                    Instruction& in) {
  if (piece.empty()) return InvalidArgument("an operand is missing");
  const bool keyed = piece.size() >= 2 && piece[0].kind == TokenKind::kName && Is(piece[1], "=");
  for (std::size_t i = 0; i < row.operands.size(); ++i) {
    const Operand& operand = row.operands[i];
    const auto& words = operand.words;
    const bool word = operand.kind == OperandKind::kWord && piece.size() == 1 &&
                      std::find(words.begin(), words.end(), piece[0].text) != words.end();
    if ((keyed && operand.key == piece[0].text) || word) {
      if (given[i]) return InvalidArgument("'", TextOf(piece), "' is there twice");
      given[i] = true;
      return TakeKeyed(operand, keyed ? piece.subspan(2) : piece, in);
    }
  }
  while (position < row.operands.size() && (!row.operands[position].key.empty() ||
                                            row.operands[position].kind == OperandKind::kWord ||
                                            row.operands[position].kind == OperandKind::kEnd))
    ++position;
  if (position == row.operands.size() || keyed)
    return InvalidArgument(row.mnemonic, " has no operand '", TextOf(piece), "'; it takes ",
                           row.operands_text);
  given[position] = true;
  return TakePlaced(row.operands[position++], piece, in);
}

absl::Status Assembler::TakeKeyed(const Operand& operand, Tokens value, Instruction& in) {
  if (operand.kind == OperandKind::kWord || operand.kind == OperandKind::kKeyWord) {
    const std::string text = TextOf(value);
    const auto found = std::find(operand.words.begin(), operand.words.end(), text);
    if (found == operand.words.end())
      return InvalidArgument(operand.key, "=", text, ": it is ", Join(operand.words, " or "));
    SetBits(operand, static_cast<uint32_t>(found - operand.words.begin()), in);
    return absl::OkStatus();
  }
  if (operand.kind == OperandKind::kKeyRegister) {
    LAZULI_ASSIGN_OR_RETURN(const uint32_t r, Register(value));
    SetBits(operand, r, in);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const int64_t number, Number(value));
  if (number < 0 || number >= int64_t{1} << operand.width)
    return InvalidArgument(operand.key, "=", number, " has more than ", operand.width, " bits");
  SetBits(operand, static_cast<uint32_t>(number), in);
  return absl::OkStatus();
}

absl::Status Assembler::TakePlaced(const Operand& operand, Tokens piece, Instruction& in) {
  const std::string& first = piece[0].text;
  switch (operand.kind) {
    case OperandKind::kRegister: {
      LAZULI_ASSIGN_OR_RETURN(const uint32_t r, Register(piece));
      SetBits(operand, r, in);
      return absl::OkStatus();
    }
    case OperandKind::kSource:
      if (const auto r =
              piece.size() == 1 ? Numbered(piece[0], 'r', kRegisters - 1) : std::nullopt) {
        in.rb = *r;
        return absl::OkStatus();
      }
      in.aux |= kAuxImmediate;
      return TakeImmediate(piece, in);
    case OperandKind::kNumber:
      return TakeImmediate(piece, in);
    case OperandKind::kAddress:
    case OperandKind::kAddressPlus:
    case OperandKind::kAcc:
      return TakeAddress(operand, piece, in);
    case OperandKind::kDram:
      return TakeDram(piece, in);
    case OperandKind::kDescriptor: {
      const auto found = descriptors_.find(first);
      if (piece.size() != 1 || found == descriptors_.end())
        return InvalidArgument("there is no descriptor ", TextOf(piece));
      if (found->second > 0xffff) return InvalidArgument("a program has at most 65536 descriptors");
      in.desc = static_cast<uint32_t>(found->second);
      return absl::OkStatus();
    }
    case OperandKind::kVector: {
      const auto found = vectors_.find(first);
      if (piece.size() != 1 || found == vectors_.end())
        return InvalidArgument("there is no vector program ", TextOf(piece));
      in.imm = static_cast<uint32_t>(found->second);
      return absl::OkStatus();
    }
    case OperandKind::kLabel:
      if (piece.size() != 1 || piece[0].kind != TokenKind::kName)
        return InvalidArgument("'", TextOf(piece), "' is not a label");
      fixups_.push_back({program_.text.size(), first, line_});
      return absl::OkStatus();
    case OperandKind::kSemaphore: {
      const auto s = piece.size() == 1 ? Numbered(piece[0], 's', kSemaphores - 1) : std::nullopt;
      if (!s) return InvalidArgument("'", TextOf(piece), "' is not a semaphore: s0 to s63");
      SetBits(operand, *s, in);
      return absl::OkStatus();
    }
    case OperandKind::kQueues:
      return TakeQueues(piece, in);
    case OperandKind::kCsr: {
      const auto names = CsrNames();
      const auto found = std::find(names.begin(), names.end(), TextOf(piece));
      if (found == names.end())
        return InvalidArgument("'", TextOf(piece),
                               "' is not a register of state: ", Join(names, ", "));
      in.imm = static_cast<uint32_t>(found - names.begin());
      return absl::OkStatus();
    }
    default:
      return InvalidArgument("'", TextOf(piece), "' does not belong here");
  }
}

absl::Status Assembler::TakeImmediate(Tokens piece, Instruction& in) {
  LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(piece));
  if (value < INT32_MIN || value > UINT32_MAX)
    return InvalidArgument(value, " has more than 32 bits");
  in.imm = static_cast<uint32_t>(value);
  return absl::OkStatus();
}

// [r1], [r1+4], [64], acc[r1+4], acc[0].
absl::Status Assembler::TakeAddress(const Operand& operand, Tokens piece, Instruction& in) {
  const bool acc = operand.kind == OperandKind::kAcc;
  auto fails = [&] {
    return InvalidArgument("'", TextOf(piece), "' is not an address: ", acc ? "acc[r1+2]" : "[r1]");
  };
  if (acc) {
    if (piece[0].text != "acc") return fails();
    piece = piece.subspan(1);
  }
  if (piece.size() < 3 || !Is(piece[0], "[") || !Is(piece.back(), "]")) return fails();
  Tokens inside = piece.subspan(1, piece.size() - 2);
  const auto r = Numbered(inside[0], 'r', kRegisters - 1);
  if (r) {
    SetBits(operand, *r, in);
    inside = inside.subspan(1);
    if (inside.empty()) return absl::OkStatus();
    if (operand.kind == OperandKind::kAddress || (!Is(inside[0], "+") && !Is(inside[0], "-")))
      return fails();
    if (Is(inside[0], "+")) inside = inside.subspan(1);
  } else if (operand.kind == OperandKind::kAddress) {
    return InvalidArgument("'", TextOf(piece), "': this address is in a register");
  }
  return TakeImmediate(inside, in);
}

// $name, $name[r4], $name[r4+64], $name[128], $0x400[r4], [r4].
absl::Status Assembler::TakeDram(Tokens piece, Instruction& in) {
  auto fails = [&] {
    return InvalidArgument("'", TextOf(piece), "' is not a place in DRAM: $name[r4+64] or [r4]");
  };
  int64_t offset = 0;
  Tokens rest = piece;
  if (Is(rest[0], "$")) {
    if (rest.size() < 2) return fails();
    in.aux |= kAuxDram;
    if (const auto raw =
            rest[1].kind == TokenKind::kNumber ? IntegerOf(rest[1].text) : std::nullopt) {
      offset = *raw;
    } else if (const Symbol* symbol = program_.Find(rest[1].text)) {
      offset = static_cast<int64_t>(symbol->offset);
    } else {
      return InvalidArgument("there is no array ", rest[1].text);
    }
    rest = rest.subspan(2);
  }
  if (!rest.empty()) {
    if (rest.size() < 3 || !Is(rest[0], "[") || !Is(rest.back(), "]")) return fails();
    rest = rest.subspan(1, rest.size() - 2);
    if (const auto r = Numbered(rest[0], 'r', kRegisters - 1)) {
      in.rb = *r;
      rest = rest.subspan(1);
      if (!rest.empty() && Is(rest[0], "+")) rest = rest.subspan(1);
    }
    if (!rest.empty()) {
      LAZULI_ASSIGN_OR_RETURN(const int64_t more, Number(rest));
      if (more < 0 || more > int64_t{1} << 38) return fails();
      offset += more;
    }
  }
  if ((in.aux & kAuxDram) == 0) return offset == 0 && in.rb != 0 ? absl::OkStatus() : fails();
  if (offset % kDramUnit != 0)
    return InvalidArgument("offset ", offset, " is not a multiple of ", kDramUnit,
                           "; the register may hold any");
  if (offset / kDramUnit > UINT32_MAX) return fails();
  in.imm = static_cast<uint32_t>(offset / kDramUnit);
  return absl::OkStatus();
}

}  // namespace lazuli::npu
