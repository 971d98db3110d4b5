// A program of the NPU, and its file: `.npux`, a header with a checksum and the hash of the
// configuration it was made for, then sections. docs/npu.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/isa.h"

namespace lazuli::npu {

// 64 bytes in descriptor memory: a loop nest, outermost level first, and strides in elements. For
// the vector unit two in a row: the first has the dims and the strides of input a and the result,
// the second those of inputs b and c.
struct Descriptor {
  std::array<uint32_t, 5> dim{};
  std::array<int32_t, 5> src{}, dst{};
  // Bits: bytes of an element 4, rank 3, second 1, types of a, b, c and result 4 each, inputs 2.
  uint32_t flags = 0;
  bool operator==(const Descriptor&) const = default;

  int elem() const { return static_cast<int>(flags & 15); }
  int rank() const { return static_cast<int>(flags >> 4 & 7); }
  bool second() const { return (flags >> 7 & 1) != 0; }
  // Of a, b, c and the result.
  Type type(int stream) const { return static_cast<Type>(flags >> (8 + 4 * stream) & 15); }
  int inputs() const { return static_cast<int>(flags >> 24 & 3); }
  bool vector() const { return type(3) != Type::kNone; }
  int64_t elements() const {
    int64_t n = 1;
    for (int d = 0; d < rank(); ++d) n *= dim[static_cast<std::size_t>(d)];
    return n;
  }
};
static_assert(sizeof(Descriptor) == 64);

enum class SymbolKind : uint8_t { kIn, kOut, kInOut, kConst, kBss };

// An array in DRAM with a name.
struct Symbol {
  std::string name;
  SymbolKind kind;
  Type type;
  std::vector<int64_t> dims;
  uint64_t offset = 0;  // from the beginning of DRAM, a multiple of kDramUnit
  int64_t bytes() const;
};

// Whether an array may have this name, in text and in files: letters, digits, '_' and '.', a letter
// or '_' first, at most 255.
bool IsSymbolName(std::string_view text);

// What an instruction was made from.
struct DebugLine {
  uint32_t line = 0;
  uint32_t origin = 0;  // into Program::origins; 0: none
};

struct Program {
  // ReadConfig() of both is what it was made for.
  std::string config_name = "npu1-edge", config_overrides;
  uint64_t config_hash = 0;
  uint32_t entry = 0;
  std::vector<Word> text;
  std::vector<Descriptor> descriptors;
  std::vector<std::vector<uint32_t>> vectors;     // vector programs
  std::vector<Symbol> symbols;                    // in the order of their offsets
  std::vector<std::byte> constants;               // of the kConst symbols, one behind the other
  std::array<uint8_t, kSemaphores> semaphores{};  // what they hold at first
  std::vector<DebugLine> debug;                   // of each instruction, or empty
  std::vector<std::string> origins = {""};        // HLO instructions
  std::string meta;                               // JSON

  const Symbol* Find(std::string_view name) const;
  uint64_t dram_bytes() const;  // behind the last symbol
  // Gives the next place in DRAM.
  void Place(Symbol symbol);
};

std::string ToFile(const Program& program);
// Errors begin with BAD_BINARY: what is wrong with the bytes. Whether instructions make sense is
// the machine's question.
absl::StatusOr<Program> FromFile(std::string_view bytes);

}  // namespace lazuli::npu
