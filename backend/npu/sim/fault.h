// What stops a program, with the place: device, core, instruction, cycle, and a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

// NPU_ERROR(id, name, doc)
#define NPU_ERRORS(NPU_ERROR)                                                                     \
  NPU_ERROR(BadBinary, "BAD_BINARY",                                                              \
            "The file is damaged, foreign, or made for another configuration.")                   \
  NPU_ERROR(IllegalInstruction, "ILLEGAL_INSTRUCTION",                                            \
            "A reserved bit, an opcode, operand or target that is none.")                         \
  NPU_ERROR(IllegalAddress, "ILLEGAL_ADDRESS",                                                    \
            "Nothing lies there, or this unit cannot reach it.")                                  \
  NPU_ERROR(Misaligned, "MISALIGNED", "The address is no multiple of the element's size.")        \
  NPU_ERROR(SpmOverflow, "SPM_OVERFLOW", "An operand ends behind the scratchpad.")                \
  NPU_ERROR(AccOverflow, "ACC_OVERFLOW", "An operand ends behind the accumulators.")              \
  NPU_ERROR(UnsupportedDtype, "UNSUPPORTED_DTYPE",                                                \
            "The instruction does not compute with this element type.")                           \
  NPU_ERROR(UnsupportedShape, "UNSUPPORTED_SHAPE",                                                \
            "An operand without elements, or one that does not fit the unit.")                    \
  NPU_ERROR(UninitialisedRead, "UNINITIALISED_READ",                                              \
            "Bytes are read that nobody has written (strict).")                                   \
  NPU_ERROR(DataRace, "DATA_RACE",                                                                \
            "Two units touch the same bytes, one writes, and no semaphore orders them (strict).") \
  NPU_ERROR(Deadlock, "DEADLOCK", "Everything that is left waits; the message has the cycle.")    \
  NPU_ERROR(SemOverflow, "SEM_OVERFLOW", "A semaphore would hold more than 255.")                 \
  NPU_ERROR(LeftoverTokens, "LEFTOVER_TOKENS",                                                    \
            "A program ends and a semaphore does not hold what it was set to (strict).")          \
  NPU_ERROR(Watchdog, "WATCHDOG",                                                                 \
            "The program runs longer than the configuration's watchdog allows.")                  \
  NPU_ERROR(Trap, "TRAP", "The program says so.")                                                 \
  NPU_ERROR(OomDram, "OOM_DRAM", "The program's arrays do not fit the DRAM.")                     \
  NPU_ERROR(LinkTimeout, "LINK_TIMEOUT", "A message between devices is lost (injected).")         \
  NPU_ERROR(Ecc, "ECC", "Bytes of DRAM are damaged (injected).")                                  \
  NPU_ERROR(SimBug, "SIM_BUG", "The simulator contradicts itself.")

enum class ErrorCode : uint8_t {
#define NPU_ERROR(id, name, doc) k##id,
  NPU_ERRORS(NPU_ERROR)
#undef NPU_ERROR
};
std::string_view ErrorName(ErrorCode code);

struct Fault {
  ErrorCode code;
  int device = -1, core = -1;  // -1: of none
  int64_t pc = -1, cycle = -1;
  uint32_t line = 0;        // of the source
  std::string instruction;  // as the assembler reads it
  std::string origin;       // the HLO instruction
  std::string sentence;

  // "DATA_RACE at device 0, core 0, pc 7, cycle 120 (line 12, dot.3): mx.mm...: sentence"
  std::string ToString() const;
};
absl::Status ToStatus(const Fault& fault);

// The errors as a table of Markdown.
std::string ErrorPage();

}  // namespace lazuli::npu
