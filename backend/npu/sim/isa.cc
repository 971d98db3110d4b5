#include "backend/npu/sim/isa.h"

#include <algorithm>
#include <charconv>

#include "ir/support/check.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr std::array<std::string_view, 16> kQueueNames = {"ld0", "ld1", "ld2", "ld3", "st0", "st1",
                                                          "lk0", "lk1", "mx",  "vx",  "xl",  "hd",
                                                          "",    "",    "",    "sq"};
constexpr std::array<std::string_view, 6> kCsrs = {"core",  "device",  "cycle",
                                                   "cores", "devices", "instructions"};

constexpr std::array<std::string_view, 14> kFieldNames = {
#define NPU_X(name, bits) #name,
    NPU_FIELDS(NPU_X)
#undef NPU_X
};
constexpr std::array<int, 14> kFieldBits = {
#define NPU_X(name, bits) bits,
    NPU_FIELDS(NPU_X)
#undef NPU_X
};

int BitsOf(Field field) { return kFieldBits[static_cast<std::size_t>(field)]; }
uint32_t Mask(int low, int width) {
  return static_cast<uint32_t>(((uint64_t{1} << width) - 1) << low);
}

Field FieldFromName(std::string_view name) {
  const auto found = std::find(kFieldNames.begin(), kFieldNames.end(), name);
  LAZULI_CHECK(found != kFieldNames.end(), "isa.def: no field ", name);
  return static_cast<Field>(found - kFieldNames.begin());
}

std::vector<std::string_view> SplitText(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

int ToInt(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "aux2.8", "imm", "imm0.16!1": the field, its bits, what holds where it is left out.
void ParseFieldText(std::string_view text, Operand& operand) {
  if (const std::size_t bang = text.find('!'); bang != std::string_view::npos) {
    operand.absent = static_cast<uint32_t>(ToInt(text.substr(bang + 1)));
    text = text.substr(0, bang);
  }
  const std::size_t digit = std::min(text.find_first_of("0123456789"), text.size());
  operand.field = FieldFromName(text.substr(0, digit));
  operand.low = 0;
  operand.width = BitsOf(operand.field);
  if (digit == text.size()) return;
  const std::size_t dot = text.find('.');
  operand.low = ToInt(text.substr(digit, dot - digit));
  operand.width = ToInt(text.substr(dot + 1));
}

struct FixedOperand {
  std::string_view text;
  OperandKind kind;
  Field field;
};
constexpr FixedOperand kFixed[] = {{"src", OperandKind::kSource, Field::rb},
                                   {"desc", OperandKind::kDescriptor, Field::desc},
                                   {"prog", OperandKind::kVector, Field::imm},
                                   {"label", OperandKind::kLabel, Field::imm},
                                   {"imm", OperandKind::kNumber, Field::imm},
                                   {"queues", OperandKind::kQueues, Field::imm},
                                   {"end", OperandKind::kEnd, Field::desc},
                                   {"csr", OperandKind::kCsr, Field::imm},
                                   {"rd", OperandKind::kRegister, Field::rd},
                                   {"ra", OperandKind::kRegister, Field::ra},
                                   {"rb", OperandKind::kRegister, Field::rb},
                                   {"rc", OperandKind::kRegister, Field::rc},
                                   {"[ra+]", OperandKind::kAddressPlus, Field::ra},
                                   {"$rb", OperandKind::kDram, Field::rb},
                                   {"acc[rb]", OperandKind::kAcc, Field::rb},
                                   {"s:rd", OperandKind::kSemaphore, Field::rd}};

Operand ParseOperandText(std::string_view text) {
  Operand operand{};
  if (text.starts_with('?')) {
    operand.optional = true;
    text.remove_prefix(1);
  }
  for (const FixedOperand& fixed : kFixed) {
    if (fixed.text != text) continue;
    operand.kind = fixed.kind;
    operand.field = fixed.field;
    operand.width = BitsOf(fixed.field);
    return operand;
  }
  if (text.starts_with('[')) {
    operand.kind = OperandKind::kAddress;
    ParseFieldText(text.substr(1, text.size() - 2), operand);
    return operand;
  }
  if (const std::size_t equals = text.find('='); equals != std::string_view::npos) {
    operand.key = text.substr(0, equals);
    text.remove_prefix(equals + 1);
  }
  const std::size_t colon = std::min(text.find(':'), text.size());
  ParseFieldText(text.substr(0, colon), operand);
  if (colon < text.size()) {
    operand.words = SplitText(text.substr(colon + 1), '|');
    operand.kind = operand.key.empty() ? OperandKind::kWord : OperandKind::kKeyWord;
  } else {
    operand.kind = operand.field >= Field::rd && operand.field <= Field::rc
                       ? OperandKind::kKeyRegister
                       : OperandKind::kKeyNumber;
  }
  return operand;
}

void MarkUsed(const Operand& operand, Instruction& used) {
  auto mark = [&used](Field field, uint32_t mask) { Set(used, field, Get(used, field) | mask); };
  mark(operand.field, Mask(operand.low, operand.width));
  switch (operand.kind) {
    case OperandKind::kSource:
      mark(Field::aux, kAuxImmediate);
      mark(Field::imm, ~0u);
      break;
    case OperandKind::kDram:
      mark(Field::aux, kAuxDram);
      mark(Field::imm, ~0u);
      break;
    case OperandKind::kAddressPlus:
    case OperandKind::kAcc:
      mark(Field::imm, ~0u);
      break;
    default:
      break;
  }
}

InstructionRow MakeRow(std::string_view id, Op op, std::string_view mnemonic, QueueKind queue,
                       std::string_view operands, uint32_t types, std::string_view doc,
                       std::string_view cycles) {
  InstructionRow row{id, op, mnemonic, queue, operands, types, doc, cycles, {}, {}};
  for (std::string_view text : SplitText(operands, ','))
    row.operands.push_back(ParseOperandText(text));
  row.used.op = 0xff;
  row.used.queue = 0xf;
  if (types != 0) row.used.type = 0xf;
  if (queue != QueueKind::kSq) {
    row.used.wait_sem = row.used.sig_sem = 0x3f;
    row.used.wait_val = 0xff;
    row.used.sig_inc = 0xf;
  }
  for (const Operand& operand : row.operands) MarkUsed(operand, row.used);
  return row;
}

const std::vector<InstructionRow>& Rows() {
  static const std::vector<InstructionRow>& rows = *new std::vector<InstructionRow>{
#define NPU_INSTRUCTION(id, code, mnemonic, queue, operands, types, doc, cycles) \
  MakeRow(#id, Op::k##id, mnemonic, QueueKind::queue, operands, types, doc, cycles),
#include "backend/npu/sim/isa.def"
  };
  return rows;
}

constexpr MicroRow kMicroRows[] = {
#define NPU_MICRO(id, code, mnemonic, operands, sfu, doc) \
  {Micro::k##id, mnemonic, operands, sfu, doc},
#include "backend/npu/sim/vector_ops.def"
};

absl::Status CheckWords(const InstructionRow& row, const Instruction& in) {
  for (const Operand& operand : row.operands) {
    const uint32_t value =
        (Get(in, operand.field) & Mask(operand.low, operand.width)) >> operand.low;
    if (!operand.words.empty() && value >= operand.words.size())
      return InvalidArgument("reserved bits are set in ",
                             kFieldNames[static_cast<std::size_t>(operand.field)]);
    if (operand.kind == OperandKind::kCsr && value >= kCsrs.size())
      return InvalidArgument("there is no state register ", value);
    if (operand.kind == OperandKind::kQueues && value >> kQueues != 0)
      return InvalidArgument("there is no such queue");
    if (operand.kind == OperandKind::kSource && (in.aux & kAuxImmediate ? in.rb : in.imm) != 0)
      return InvalidArgument("reserved bits are set in ", in.aux & kAuxImmediate ? "rb" : "imm");
    if (operand.kind == OperandKind::kDram && (in.aux & kAuxDram) == 0 && in.imm != 0)
      return InvalidArgument("reserved bits are set in imm");
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view QueueName(Queue queue) { return kQueueNames[static_cast<std::size_t>(queue)]; }

std::optional<Queue> QueueFromName(std::string_view name) {
  for (std::size_t i = 0; i < kQueueNames.size(); ++i) {
    if (!name.empty() && kQueueNames[i] == name) return static_cast<Queue>(i);
  }
  return std::nullopt;
}

QueueRange QueuesOf(QueueKind kind) {
  switch (kind) {
    case QueueKind::kLd:
      return {0, 4};
    case QueueKind::kSt:
      return {4, 2};
    case QueueKind::kLk:
      return {6, 2};
    case QueueKind::kMx:
      return {8, 1};
    case QueueKind::kVx:
      return {9, 1};
    case QueueKind::kXl:
      return {10, 1};
    case QueueKind::kHd:
      return {11, 1};
    case QueueKind::kSq:
      return {15, 1};
    case QueueKind::kAny:
      break;
  }
  return {0, 16};
}

uint32_t Get(const Instruction& in, Field field) {
  switch (field) {
#define NPU_X(name, bits) \
  case Field::name:       \
    return in.name;
    NPU_FIELDS(NPU_X)
#undef NPU_X
  }
  return 0;
}

void Set(Instruction& in, Field field, uint32_t value) {
  switch (field) {
#define NPU_X(name, bits) \
  case Field::name:       \
    in.name = value;      \
    break;
    NPU_FIELDS(NPU_X)
#undef NPU_X
  }
}

std::span<const InstructionRow> InstructionRows() { return Rows(); }

const InstructionRow* FindRow(uint32_t op) {
  static const std::array<const InstructionRow*, 256> by_code = [] {
    std::array<const InstructionRow*, 256> table{};
    for (const InstructionRow& row : Rows()) table[static_cast<std::size_t>(row.op)] = &row;
    return table;
  }();
  return op < 256 ? by_code[op] : nullptr;
}

const InstructionRow* FindRow(std::string_view mnemonic) {
  for (const InstructionRow& row : Rows()) {
    if (row.mnemonic == mnemonic) return &row;
  }
  return nullptr;
}

Word Encode(const Instruction& in) {
  unsigned __int128 word = 0;
  int at = 0;
#define NPU_X(name, bits)                                                \
  word |= static_cast<unsigned __int128>(in.name & Mask(0, bits)) << at; \
  at += bits;
  NPU_FIELDS(NPU_X)
#undef NPU_X
  return {static_cast<uint64_t>(word), static_cast<uint64_t>(word >> 64)};
}

Instruction Unpack(Word word) {
  const unsigned __int128 all = static_cast<unsigned __int128>(word.high) << 64 | word.low;
  Instruction in;
  int at = 0;
#define NPU_X(name, bits)                                     \
  in.name = static_cast<uint32_t>(all >> at) & Mask(0, bits); \
  at += bits;
  NPU_FIELDS(NPU_X)
#undef NPU_X
  return in;
}

absl::Status CheckInstruction(const Instruction& in) {
  const InstructionRow* row = FindRow(in.op);
  if (row == nullptr) return InvalidArgument("there is no opcode ", in.op);
  for (std::size_t i = 0; i < kFieldNames.size(); ++i) {
    const auto field = static_cast<Field>(i);
    if ((Get(in, field) & ~Get(row->used, field)) != 0)
      return InvalidArgument("reserved bits are set in ", kFieldNames[i]);
  }
  const QueueRange queues = QueuesOf(row->queue);
  const auto queue = static_cast<int>(in.queue);
  if (queue < queues.first || queue >= queues.first + queues.count || QueueName(in.unit()).empty())
    return InvalidArgument(row->mnemonic, " does not go to queue ", in.queue);
  if ((in.wait_val == 0 && in.wait_sem != 0) || (in.sig_inc == 0 && in.sig_sem != 0))
    return InvalidArgument("reserved bits are set in ",
                           in.wait_val == 0 && in.wait_sem != 0 ? "wait_sem" : "sig_sem");
  if (row->types != 0 && (in.type >= kTypes.size() || (row->types >> in.type & 1) == 0))
    return Unimplemented(row->mnemonic, " does not take ",
                         in.type < kTypes.size() ? kTypes[in.type].name : "such a type");
  return CheckWords(*row, in);
}

absl::StatusOr<Instruction> Decode(Word word) {
  const Instruction in = Unpack(word);
  LAZULI_RETURN_IF_ERROR(CheckInstruction(in));
  return in;
}

std::span<const std::string_view> CsrNames() { return kCsrs; }

std::span<const MicroRow> MicroRows() { return kMicroRows; }
const MicroRow* FindMicro(uint32_t op) {
  for (const MicroRow& row : kMicroRows) {
    if (static_cast<uint32_t>(row.op) == op) return &row;
  }
  return nullptr;
}
const MicroRow* FindMicro(std::string_view mnemonic) {
  for (const MicroRow& row : kMicroRows) {
    if (row.mnemonic == mnemonic) return &row;
  }
  return nullptr;
}

absl::StatusOr<std::vector<MicroInstruction>> DecodeVector(std::span<const uint32_t> words) {
  std::vector<MicroInstruction> program;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const uint32_t word = words[i];
    const MicroRow* row = FindMicro(word & 0xff);
    if (row == nullptr)
      return InvalidArgument("word ", i, ": there is no micro-operation ", word & 0xff);
    auto part = [word](int low, int bits) {
      return static_cast<int>(word >> low & ((1u << bits) - 1));
    };
    MicroInstruction micro{row->op, part(8, 5), part(13, 5), part(18, 5), part(23, 5), part(28, 4)};
    auto uses = [row](char operand) {
      return row->operands.find(operand) != std::string_view::npos;
    };
    if ((!uses('a') && !uses('l') && micro.a != 0) || (!uses('b') && micro.b != 0) ||
        (!uses('c') && micro.c != 0) || micro.type > 2)
      return InvalidArgument("word ", i, ": reserved bits are set in ", row->mnemonic);
    if (uses('l') && micro.a > 3)
      return InvalidArgument("word ", i, ": there is no loop level ", micro.a);
    const bool sfu_type = row->sfu && micro.op != Micro::kDiv && micro.op != Micro::kRem;
    if (micro.type != 0 && (sfu_type || micro.op == Micro::kFma || micro.op == Micro::kFlr ||
                            micro.op == Micro::kRnd || micro.op == Micro::kBf))
      return Unimplemented("word ", i, ": ", row->mnemonic, " is f32 only");
    if (uses('#')) {
      if (++i == words.size()) return InvalidArgument("word ", i, ": the literal is missing");
      micro.literal = words[i];
    }
    program.push_back(micro);
  }
  return program;
}

void EncodeVector(const MicroInstruction& micro, std::vector<uint32_t>& words) {
  words.push_back(static_cast<uint32_t>(micro.op) | static_cast<uint32_t>(micro.d) << 8 |
                  static_cast<uint32_t>(micro.a) << 13 | static_cast<uint32_t>(micro.b) << 18 |
                  static_cast<uint32_t>(micro.c) << 23 | static_cast<uint32_t>(micro.type) << 28);
  if (micro.op == Micro::kLit) words.push_back(micro.literal);
}

std::string InstructionPage() {
  std::string page = "| field |";
  for (std::string_view name : kFieldNames) page += Str(" ", name, " |");
  page += "\n|---|";
  for (std::size_t i = 0; i < kFieldNames.size(); ++i) page += "---|";
  page += "\n| bits |";
  for (int bits : kFieldBits) page += Str(" ", bits, " |");
  page +=
      "\n\n| code | instruction | queue | types | what it does | cycles "
      "|\n|---|---|---|---|---|---|\n";
  auto escaped = [](std::string_view text) {
    std::string out;
    for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
    return out;
  };
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::array<std::string_view, 9> kKinds = {"sq", "ld", "st", "lk", "hd",
                                                      "mx", "vx", "xl", "any"};
  for (const InstructionRow& row : Rows()) {
    const auto code = static_cast<std::size_t>(row.op);
    std::string types;
    for (std::size_t t = 1; t < kTypes.size(); ++t) {
      if (row.types >> t & 1) types += Str(types.empty() ? "" : " ", kTypes[t].name);
    }
    page += Str("| ", kHex[code >> 4], kHex[code & 15], " | `", row.mnemonic,
                row.operands.empty() ? "" : " ", escaped(row.operands_text), "` | ",
                kKinds[static_cast<std::size_t>(row.queue)], " | ", types, " | ", escaped(row.doc),
                " | ", row.cycles, " |\n");
  }
  page += "\n| code | micro-operation | unit | what it does |\n|---|---|---|---|\n";
  for (const MicroRow& row : kMicroRows) {
    const auto code = static_cast<std::size_t>(row.op);
    std::string operands;
    for (char c : row.operands)
      operands += Str(operands.empty() ? "" : ", ", c == '#'   ? "number"
                                                    : c == 'l' ? "level"
                                                               : std::string(1, c));
    page += Str("| ", kHex[code >> 4], kHex[code & 15], " | `", row.mnemonic, " ", operands, "` | ",
                row.sfu ? "SFU" : "ALU", " | ", escaped(row.doc), " |\n");
  }
  return page;
}

}  // namespace lazuli::npu
