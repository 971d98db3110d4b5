// Opcodes of HLO: one row each in opcode.def, from which enum, text, arity and properties derive.
//
// Code asks for a property (`Traits(op).elementwise`), never for membership in a hand-kept list of
// opcodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/types/dtype.h"

namespace lazuli::hlo {

// The name is the PascalCase of the HLO text: kAdd, kGetTupleElement, kExponential,
// kRoundNearestAfz.
enum class Opcode : uint8_t {
#define LAZULI_OPCODE(name, ...) name,
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

// Which alternative of hlo::Attrs an instruction of the opcode carries (attrs.h).
enum class AttrsKind : uint8_t;

struct OpcodeTraits {
  std::string_view text;
  int8_t arity;       // -1: any number of operands
  bool elementwise;   // result element i depends on elements i of the operands only
  bool commutative;   // binary and f(a, b) == f(b, a)
  bool side_effects;  // must not be removed, merged or reordered
  bool barrier;       // must not be merged, but goes where nobody reads it
  bool exchanges;     // with other devices, which run the same program
  int8_t regions;     // called computations; -1: any number
  AttrsKind attrs;
  uint8_t categories;  // set of DTypeCategory that operands may have; see Accepts
};
const OpcodeTraits& Traits(Opcode opcode);
inline std::string_view OpcodeText(Opcode opcode) { return Traits(opcode).text; }
std::optional<Opcode> ParseOpcode(std::string_view text);
int NumOpcodes();
// Whether operands of an elementwise opcode may have this type, and in words which ones may.
bool Accepts(Opcode opcode, DType dtype);
std::string_view AcceptedTypes(Opcode opcode);

}  // namespace lazuli::hlo
