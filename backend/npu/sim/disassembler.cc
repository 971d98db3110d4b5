#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

std::string Hex(uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16);
  return Str("0x", std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
}

std::string RawText(const Word& word) { return Str(".word ", Hex(word.high), " ", Hex(word.low)); }

std::string FloatText(float value) {
  if (value != value) return Hex(std::bit_cast<uint32_t>(value));
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return Str(value);
}

std::string ElementText(Type type, const std::byte* at) {
  const uint64_t bits = LoadBits(type, at);
  if (type == Type::kF32) return FloatText(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  const bool is_signed = type == Type::kS8 || type == Type::kS16 || type == Type::kS32;
  return is_signed ? Str(NumberOf(type, bits)) : Hex(bits);
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += Str('\\', c);
    } else if (byte < 32) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += Str("\\x", kHex[byte >> 4], kHex[byte & 15]);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string DramText(const Program& program, const Instruction& in) {
  if ((in.aux & kAuxDram) == 0) return Str("[r", in.rb, "]");
  const uint64_t offset = uint64_t{in.imm} * kDramUnit;
  for (const Symbol& s : program.symbols) {
    const auto bytes = static_cast<uint64_t>(s.bytes());
    if (offset < s.offset || offset >= s.offset + std::max<uint64_t>(bytes, 1)) continue;
    const uint64_t inside = offset - s.offset;
    return Str("$", s.name, "[r", in.rb, inside == 0 ? "" : Str("+", inside), "]");
  }
  return Str("$", Hex(offset), "[r", in.rb, "]");
}

std::string QueuesText(uint32_t mask) {
  if (mask == (1u << kQueues) - 1) return "all";
  std::string text;
  for (int q = 0; q < kQueues; ++q) {
    if (mask >> q & 1) text += Str(text.empty() ? "" : "|", QueueName(static_cast<Queue>(q)));
  }
  return text;
}

// Empty: it is not printed.
std::string OperandText(const Program& program, const Operand& operand, const Instruction& in) {
  const uint32_t value = static_cast<uint32_t>(
      (uint64_t{Get(in, operand.field)} & ((uint64_t{1} << operand.width) - 1) << operand.low) >>
      operand.low);
  if (operand.optional && value == operand.absent) return "";
  switch (operand.kind) {
    case OperandKind::kRegister:
      return Str("r", value);
    case OperandKind::kSource:
      return in.aux & kAuxImmediate ? Str(in.number()) : Str("r", in.rb);
    case OperandKind::kAddress:
      return Str("[r", value, "]");
    case OperandKind::kAddressPlus:
    case OperandKind::kAcc:
      return Str(operand.kind == OperandKind::kAcc ? "acc" : "", "[r", value,
                 in.imm == 0       ? ""
                 : in.number() < 0 ? Str(in.number())
                                   : Str("+", in.number()),
                 "]");
    case OperandKind::kDram:
      return DramText(program, in);
    case OperandKind::kDescriptor:
      return Str("d", value);
    case OperandKind::kVector:
      return Str("p", value);
    case OperandKind::kLabel:
      return Str("L", value);
    case OperandKind::kSemaphore:
      return Str("s", value);
    case OperandKind::kNumber:
      return Str(in.number());
    case OperandKind::kQueues:
      return QueuesText(value);
    case OperandKind::kEnd:
      return "";
    case OperandKind::kCsr:
      return value < CsrNames().size() ? std::string(CsrNames()[value]) : Str(value);
    case OperandKind::kKeyNumber:
      return Str(operand.key, "=", value);
    case OperandKind::kKeyRegister:
      return Str(operand.key, "=r", value);
    case OperandKind::kKeyWord:
    case OperandKind::kWord: {
      const std::string word =
          value < operand.words.size() ? std::string(operand.words[value]) : Str(value);
      return operand.key.empty() ? word : Str(operand.key, "=", word);
    }
  }
  return "";
}

// Whether the text of the word at `pc` assembles to it: it decodes, and what it refers to is there.
// `distance`: LoopDistances().
bool HasText(const Program& program, std::size_t pc, const std::vector<uint32_t>& distance) {
  const auto in = Decode(program.text[pc]);
  if (!in.ok()) return false;
  for (const Operand& operand : Row(*in).operands) {
    if (operand.kind == OperandKind::kLabel && in->imm >= program.text.size()) return false;
    if (operand.kind == OperandKind::kDescriptor && in->desc >= program.descriptors.size())
      return false;
    if (operand.kind == OperandKind::kVector && in->imm >= program.vectors.size()) return false;
    if (operand.kind == OperandKind::kQueues && in->imm == 0) return false;
    if (operand.kind == OperandKind::kEnd && (in->desc == 0 || in->desc != distance[pc]))
      return false;
    if (operand.kind == OperandKind::kDram && (in->aux & kAuxDram) == 0 && in->rb == 0)
      return false;
  }
  if (in->opcode() == Op::kEndl && distance[pc] == 0) return false;
  return true;
}

// For each loop the distance to its endl, for each endl that to its loop; 0 where there is none.
// Words that do not decode are passed.
std::vector<uint32_t> LoopDistances(const Program& program) {
  std::vector<uint32_t> distance(program.text.size(), 0);
  std::vector<std::size_t> open;
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    const auto in = Decode(program.text[pc]);
    if (!in.ok()) continue;
    if (in->opcode() == Op::kLoop) open.push_back(pc);
    if (in->opcode() == Op::kEndl && !open.empty()) {
      const auto loop = Unpack(program.text[open.back()]);
      const std::size_t far = pc - open.back();
      if (loop.desc == far) distance[pc] = distance[open.back()] = static_cast<uint32_t>(far);
      open.pop_back();
    }
  }
  return distance;
}

std::string DescriptorText(std::size_t index, const Program& program, bool* took_two) {
  const Descriptor& d = program.descriptors[index];
  auto strides = [&d](const std::array<int32_t, 5>& values) {
    return Str("(", Join(std::span(values).first(static_cast<std::size_t>(d.rank())), ","), ")");
  };
  auto dims = [&d] {
    return Str(" dim(", Join(std::span(d.dim).first(static_cast<std::size_t>(d.rank())), ","), ")");
  };
  *took_two = false;
  if (d.rank() >= 1 && d.rank() <= 5) {
    std::string text;
    if (!d.vector()) {
      text = Str(".desc d", index, dims(), " src", strides(d.src), " dst", strides(d.dst), " elem ",
                 d.elem());
    } else if (index + 1 < program.descriptors.size()) {
      const Descriptor& e = program.descriptors[index + 1];
      text = Str(".vdesc d", index, dims());
      const std::array<const std::array<int32_t, 5>*, 3> inputs = {&d.src, &e.src, &e.dst};
      for (int i = 0; i < d.inputs(); ++i)
        text += Str(" ", "abc"[i], ".", TypeName(d.type(i)),
                    strides(*inputs[static_cast<std::size_t>(i)]));
      text += Str(" out.", TypeName(d.type(3)), strides(d.dst));
    }
    // What is not as the assembler makes it is printed raw.
    const auto back = Assemble(Str(text, "\nhalt\n"), "");
    const std::size_t count = d.vector() ? 2 : 1;
    if (!text.empty() && back.ok() && back->descriptors.size() == count &&
        std::equal(back->descriptors.begin(), back->descriptors.end(),
                   program.descriptors.begin() + static_cast<std::ptrdiff_t>(index))) {
      *took_two = count == 2;
      return text;
    }
  }
  std::string raw = ".descraw";
  const auto words = std::bit_cast<std::array<uint32_t, 16>>(d);
  for (uint32_t word : words) raw += Str(" ", Hex(word));
  return raw;
}

std::string VectorText(std::size_t index, const std::vector<uint32_t>& words) {
  const auto program = DecodeVector(words);
  if (!program.ok()) {
    std::string raw = ".vraw";
    for (uint32_t word : words) raw += Str(" ", Hex(word));
    return raw + "\n";
  }
  constexpr std::array<std::string_view, 3> kSuffix = {"", ".s32", ".u32"};
  std::string text = Str(".vprog p", index, "\n");
  for (const MicroInstruction& m : *program) {
    const MicroRow& row = *FindMicro(static_cast<uint32_t>(m.op));
    text += Str("  ", row.mnemonic, kSuffix[static_cast<std::size_t>(m.type)]);
    for (std::size_t i = 0; i < row.operands.size(); ++i) {
      const char letter = row.operands[i];
      text += i == 0 ? " " : ", ";
      if (letter == '#') {
        text += m.type == 0 ? FloatText(std::bit_cast<float>(m.literal)) : Hex(m.literal);
      } else if (letter == 'l') {
        text += Str(m.a);
      } else {
        text += Str("v", letter == 'd' ? m.d : letter == 'a' ? m.a : letter == 'b' ? m.b : m.c);
      }
    }
    text += "\n";
  }
  return text + ".end\n";
}

std::string SymbolText(const Symbol& s, const std::byte* constants) {
  constexpr std::array<std::string_view, 5> kWays = {" in", " out", " inout", "", ""};
  std::string text = Str(s.kind == SymbolKind::kConst ? ".const "
                         : s.kind == SymbolKind::kBss ? ".bss "
                                                      : ".arg ",
                         s.name, " ", TypeName(s.type), "[", Join(s.dims, ","), "]",
                         kWays[static_cast<std::size_t>(s.kind)]);
  if (s.kind == SymbolKind::kConst) {
    const int width = TypeBytes(s.type);
    for (int64_t i = 0; i < s.bytes(); i += width)
      text += Str(" ", ElementText(s.type, constants + i));
  }
  return text + "\n";
}

}  // namespace

std::string InstructionText(const Program& program, const Instruction& in) {
  const InstructionRow* row = FindRow(in.op);
  if (row == nullptr) return Str("opcode ", in.op);
  std::string text(row->mnemonic);
  const QueueRange queues = QueuesOf(row->queue);
  if (row->queue == QueueKind::kAny) {
    text += Str(".", QueueName(in.unit()));
  } else if (queues.count > 1) {
    text += Str(".", static_cast<int>(in.queue) - queues.first);
  }
  if (in.type != 0) text += Str(".", in.type < kTypes.size() ? TypeName(in.element()) : "?");
  bool first = true;
  for (const Operand& operand : row->operands) {
    const std::string one = OperandText(program, operand, in);
    if (one.empty()) continue;
    text += Str(first ? " " : ", ", one);
    first = false;
  }
  if (in.wait_val != 0) text += Str(" wait s", in.wait_sem, ">=", in.wait_val);
  if (in.sig_inc != 0) text += Str(" sig s", in.sig_sem, "+", in.sig_inc);
  return text;
}

std::string WordText(const Program& program, std::size_t pc) {
  const Word& word = program.text[pc];
  return Decode(word).ok() ? InstructionText(program, Unpack(word)) : RawText(word);
}

std::string Disassemble(const Program& program) {
  std::string text =
      Str(".config ", program.config_name, program.config_overrides.empty() ? "" : " ",
          program.config_overrides, "\n");
  std::size_t constant = 0;
  for (const Symbol& s : program.symbols) {
    text += SymbolText(s, program.constants.data() + constant);
    if (s.kind == SymbolKind::kConst) constant += static_cast<std::size_t>(s.bytes());
  }
  for (std::size_t s = 0; s < program.semaphores.size(); ++s) {
    if (program.semaphores[s] != 0)
      text += Str(".sem s", s, " ", static_cast<int>(program.semaphores[s]), "\n");
  }
  for (std::size_t i = 0; i < program.descriptors.size(); ++i) {
    bool took_two = false;
    text += Str(DescriptorText(i, program, &took_two), "\n");
    if (took_two) ++i;
  }
  for (std::size_t i = 0; i < program.vectors.size(); ++i)
    text += VectorText(i, program.vectors[i]);
  if (program.debug.empty()) text += ".nodebug\n";
  if (!program.meta.empty()) text += Str(".meta ", Quoted(program.meta), "\n");

  const std::vector<uint32_t> distance = LoopDistances(program);
  std::vector<bool> target(program.text.size(), false), has_text(program.text.size(), false);
  target[program.entry] = program.entry != 0;
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    has_text[pc] = HasText(program, pc, distance);
    if (!has_text[pc]) continue;
    const Instruction in = Unpack(program.text[pc]);
    for (const Operand& operand : Row(in).operands) {
      if (operand.kind == OperandKind::kLabel) target[in.imm] = true;
    }
  }
  if (program.entry != 0) text += Str(".entry L", program.entry, "\n");
  uint32_t origin = 0;
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    const DebugLine debug = program.debug.empty() ? DebugLine{} : program.debug[pc];
    if (debug.origin != origin) {
      origin = debug.origin;
      text += Str(".hlo ", Quoted(program.origins[origin]), "\n");
    }
    if (target[pc]) text += Str("L", pc, ":\n");
    if (!program.debug.empty()) text += Str("@", debug.line, " ");
    text += Str(has_text[pc] ? InstructionText(program, Unpack(program.text[pc]))
                             : RawText(program.text[pc]),
                "\n");
  }
  return text;
}

}  // namespace lazuli::npu
