// Inside the assembler: what it knows of the text so far, and who takes which statement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/program.h"
#include "backend/npu/sim/tokens.h"

namespace lazuli::npu {

class Assembler {
 public:
  absl::StatusOr<Program> Run(std::string_view text, std::string_view file);

 private:
  // An instruction that names a label, or the entry.
  struct Fixup {
    std::size_t pc;
    std::string label;
    uint32_t line;
  };

  // --- statements (assembler.cc)
  absl::Status TakeLine(std::string_view line);
  absl::Status TakeStatement(Tokens tokens);
  absl::Status TakeDirective(std::string_view name, Tokens rest);
  absl::Status TakeEqu(Tokens rest);
  absl::Status TakeFirstTokens(Tokens rest);
  absl::Status TakeQuoted(std::string_view name, Tokens rest);
  // A number, negated, or a name of .equ.
  absl::StatusOr<int64_t> Number(Tokens piece) const;
  // (1, 2, 3) from `at` on, which ends behind it.
  absl::StatusOr<std::vector<int64_t>> List(Tokens tokens, std::size_t& at, std::string_view open,
                                            std::string_view close) const;
  void Append(Word word);
  absl::Status Finish();
  absl::Status ResolveLabels();

  // --- data: configuration, arrays, descriptors, vector programs (assemble_data.cc)
  absl::Status TakeConfig(Tokens rest);
  absl::Status TakeSymbol(std::string_view directive, Tokens rest);
  absl::Status TakeConstant(const Symbol& symbol, Tokens rest);
  absl::StatusOr<uint64_t> ElementBits(Type type, const Token& token, bool minus);
  absl::Status TakeDescriptor(bool vector, Tokens rest);
  absl::Status BeginVector(Tokens rest);
  absl::Status TakeRaw(std::string_view name, Tokens rest);
  absl::Status TakeMicro(Tokens tokens);
  absl::Status TakeMicroOperand(char letter, Tokens tokens, std::size_t& at,
                                MicroInstruction& micro);

  // --- instructions (assemble_instruction.cc)
  absl::Status TakeInstruction(Tokens tokens);
  absl::Status CloseLoop();
  absl::Status TakeSemaphores(Tokens& rest, Instruction& in);
  absl::Status TakeOperand(const InstructionRow& row, Tokens piece, std::vector<bool>& given,
                           std::size_t& position, Instruction& in);
  absl::Status TakeKeyed(const Operand& operand, Tokens value, Instruction& in);
  absl::Status TakePlaced(const Operand& operand, Tokens piece, Instruction& in);
  absl::Status TakeImmediate(Tokens piece, Instruction& in);
  absl::Status TakeAddress(const Operand& operand, Tokens piece, Instruction& in);
  absl::Status TakeDram(Tokens piece, Instruction& in);

  Program program_;
  uint32_t line_ = 0, source_line_ = 0, origin_ = 0;
  bool in_vector_ = false, no_debug_ = false;
  std::map<std::string, std::size_t> labels_, descriptors_, vectors_;
  std::map<std::string, int64_t> numbers_;  // of .equ
  std::vector<Fixup> fixups_;
  Fixup entry_;
  std::vector<std::size_t> loops_;  // that are open
};

}  // namespace lazuli::npu
