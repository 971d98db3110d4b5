#include <array>

#include "ir/hlo/opcode.h"

namespace lazuli::lowering {
namespace {

constexpr std::array kOpcodes = {
#define LAZULI_OPCODE(name, ...) hlo::Opcode::name,
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

constexpr std::array kRows = {
#define LAZULI_TRANSFORM_RULES(opcode, ...) hlo::Opcode::opcode,
#include "lowering/transforms/rules.def"
#undef LAZULI_TRANSFORM_RULES
};

static_assert(kRows == kOpcodes, "rules.def has one row per opcode, in the order of opcode.def");

}  // namespace
}  // namespace lazuli::lowering
