// What stops a program, with the place: device, core, instruction, cycle, and a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

enum class ErrorCode : uint8_t {
#define NPU_ERROR(id, name, doc) k##id,
#include "backend/npu/sim/errors.def"
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
