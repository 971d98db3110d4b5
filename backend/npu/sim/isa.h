// The instruction set of the NPU, derived from the rows of isa.def: fields, encoder, decoder, text
// of one instruction.
//
// An instruction is 128 bits. Whoever fills an Instruction and encodes it gets a word that decodes
// to the same; a word with a reserved bit set, an opcode or a type that is none does not decode.
// Programs are assembled and printed by assembler.h.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/types.h"

namespace lazuli::npu {

enum class Op : uint8_t {
#define NPU_INSTRUCTION(id, code, ...) k##id = code,
#include "backend/npu/sim/isa.def"
};

// Where instructions wait. The numbers stand in the instruction's queue field.
enum class Queue : uint8_t {
  kLd0,
  kLd1,
  kLd2,
  kLd3,
  kSt0,
  kSt1,
  kLk0,
  kLk1,
  kMx,
  kVx,
  kXl,
  kHd,
  kSq = 15
};
inline constexpr int kQueues = 12;        // of units; kSq is none
std::string_view QueueName(Queue queue);  // "ld0"
std::optional<Queue> QueueFromName(std::string_view name);

// The kind of queue that a row names.
enum class QueueKind : uint8_t { kSq, kLd, kSt, kLk, kHd, kMx, kVx, kXl, kAny };

// The fields of a word, in its order from bit 0.
#define NPU_FIELDS(X) \
  X(op, 8)            \
  X(queue, 4)         \
  X(type, 4)          \
  X(wait_sem, 6)      \
  X(wait_val, 8)      \
  X(sig_sem, 6) X(sig_inc, 4) X(rd, 6) X(ra, 6) X(rb, 6) X(rc, 6) X(desc, 16) X(aux, 16) X(imm, 32)

enum class Field : uint8_t {
#define NPU_X(name, bits) name,
  NPU_FIELDS(NPU_X)
#undef NPU_X
};

struct Word {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Word&) const = default;
};

// A word taken apart. wait_val 0: no wait; sig_inc 0: no signal.
struct Instruction {
#define NPU_X(name, bits) uint32_t name = 0;
  NPU_FIELDS(NPU_X)
#undef NPU_X
  bool operator==(const Instruction&) const = default;

  Op opcode() const { return static_cast<Op>(op); }
  Type element() const { return static_cast<Type>(type); }
  Queue unit() const { return static_cast<Queue>(queue); }
  int64_t number() const { return static_cast<int32_t>(imm); }
};
uint32_t Get(const Instruction& instruction, Field field);
void Set(Instruction& instruction, Field field, uint32_t value);

// Bits of aux that several rows share.
inline constexpr uint32_t kAuxImmediate = 1;  // src is imm
// $rb: imm counts 64 bytes from the beginning of DRAM.
inline constexpr uint32_t kAuxDram = 1u << 15;
inline constexpr uint32_t kDramUnit = 64;
constexpr uint64_t RoundedToDramUnit(uint64_t bytes) {
  return (bytes + kDramUnit - 1) / kDramUnit * kDramUnit;
}
inline constexpr int kRegisters = 64, kSemaphores = 64, kLoopDepth = 8, kLinkRegister = 63;

enum class OperandKind : uint8_t {
  kRegister,
  kSource,
  kAddress,
  kAddressPlus,
  kDram,
  kAcc,
  kDescriptor,
  kVector,
  kLabel,
  kSemaphore,
  kNumber,
  kQueues,
  kEnd,
  kCsr,
  kKeyNumber,
  kKeyRegister,
  kKeyWord,
  kWord
};

struct Operand {
  OperandKind kind;
  Field field;
  int low, width;  // bits of the field
  bool optional;
  uint32_t absent = 0;   // the value when it is left out
  std::string_view key;  // "k" of k=32
  std::vector<std::string_view> words;
};

// A row of isa.def, its operands parsed.
struct InstructionRow {
  std::string_view id;
  Op op;
  std::string_view mnemonic;
  QueueKind queue;
  std::string_view operands_text;
  uint32_t types;  // Bit(Type)s; 0: it has no type
  std::string_view doc, cycles;
  std::vector<Operand> operands;
  Instruction used;  // ones where an operand of the row, its queue or its type has bits
};
std::span<const InstructionRow> InstructionRows();
const InstructionRow* FindRow(uint32_t op);  // null: no such opcode
const InstructionRow* FindRow(std::string_view mnemonic);
inline const InstructionRow& Row(const Instruction& instruction) {
  return *FindRow(instruction.op);
}

// The first queue of a kind, and how many there can be.
struct QueueRange {
  int first, count;
};
QueueRange QueuesOf(QueueKind kind);

// What decodes can be encoded; the reverse is not checked.
Word Encode(const Instruction& instruction);
// Every field, whatever it says; then CheckInstruction() to see whether it may.
Instruction Unpack(Word word);
// OK, or a sentence: "reserved bits are set in rb".
absl::Status CheckInstruction(const Instruction& instruction);
absl::StatusOr<Instruction> Decode(Word word);

// Names of state registers, by the number in imm.
std::span<const std::string_view> CsrNames();

// The manual's tables of instructions, micro-operations and fields, in Markdown.
std::string InstructionPage();

// Micro-operations of the vector unit.
enum class Micro : uint8_t {
#define NPU_MICRO(id, code, ...) k##id = code,
#include "backend/npu/sim/vector_ops.def"
};
struct MicroRow {
  Micro op;
  std::string_view mnemonic,
      operands;  // letters of the operands: d, a, b, c registers; # literal; l level
  bool sfu;
  std::string_view doc;
};
std::span<const MicroRow> MicroRows();
const MicroRow* FindMicro(uint32_t op);
const MicroRow* FindMicro(std::string_view mnemonic);

struct MicroInstruction {
  Micro op;
  int d, a, b, c, type;  // type: 0 f32, 1 s32, 2 u32
  uint32_t literal = 0;
};
// A vector program taken apart; an error names the word.
absl::StatusOr<std::vector<MicroInstruction>> DecodeVector(std::span<const uint32_t> words);
void EncodeVector(const MicroInstruction& micro, std::vector<uint32_t>& words);

}  // namespace lazuli::npu
