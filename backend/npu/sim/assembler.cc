#include "backend/npu/sim/assembler.h"

#include <algorithm>
#include <utility>

#include "backend/npu/sim/assembly.h"
#include "ir/support/status.h"

namespace lazuli::npu {

absl::StatusOr<Program> Assembler::Run(std::string_view text, std::string_view file) {
  uint32_t line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    line_ = line;
    if (absl::Status status = TakeLine(text.substr(0, end)); !status.ok())
      return Prefixed(status, Str(file, ":", line, ": "));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  line_ = line;
  if (absl::Status status = Finish(); !status.ok())
    return Prefixed(status, Str(file, ":", line_, ": "));
  return std::move(program_);
}

absl::Status Assembler::TakeLine(std::string_view line) {
  LAZULI_ASSIGN_OR_RETURN(const auto statements, Scan(line));
  for (const auto& tokens : statements) {
    if (!tokens.empty()) LAZULI_RETURN_IF_ERROR(TakeStatement(tokens));
  }
  return absl::OkStatus();
}

absl::Status Assembler::TakeStatement(Tokens tokens) {
  source_line_ = line_;
  while (tokens.size() >= 2 && tokens[0].kind == TokenKind::kName && Is(tokens[1], ":")) {
    if (!labels_.emplace(tokens[0].text, program_.text.size()).second)
      return InvalidArgument("label ", tokens[0].text, " is there twice");
    tokens = tokens.subspan(2);
  }
  if (tokens.size() >= 2 && Is(tokens[0], "@")) {
    const auto line = IntegerOf(tokens[1].text);
    if (!line || *line < 0 || *line > UINT32_MAX)
      return InvalidArgument("@", tokens[1].text, " is not a line");
    source_line_ = static_cast<uint32_t>(*line);
    tokens = tokens.subspan(2);
  }
  if (tokens.empty()) return absl::OkStatus();
  if (tokens[0].kind != TokenKind::kName)
    return InvalidArgument("'", tokens[0].text, "' begins no statement");
  if (in_vector_) return TakeMicro(tokens);
  if (tokens[0].text.starts_with('.')) return TakeDirective(tokens[0].text, tokens.subspan(1));
  return TakeInstruction(tokens);
}

absl::Status Assembler::TakeDirective(std::string_view name, Tokens rest) {
  if (name == ".config") return TakeConfig(rest);
  if (name == ".arg" || name == ".bss" || name == ".const") return TakeSymbol(name, rest);
  if (name == ".desc" || name == ".vdesc") return TakeDescriptor(name == ".vdesc", rest);
  if (name == ".descraw" || name == ".word" || name == ".vraw") return TakeRaw(name, rest);
  if (name == ".vprog") return BeginVector(rest);
  if (name == ".equ") return TakeEqu(rest);
  if (name == ".sem") return TakeFirstTokens(rest);
  if (name == ".hlo" || name == ".meta") return TakeQuoted(name, rest);
  if (name == ".entry") {
    if (rest.size() != 1) return InvalidArgument(".entry takes a label");
    entry_ = {0, rest[0].text, line_};
    return absl::OkStatus();
  }
  if (name == ".nodebug" && rest.empty()) {
    no_debug_ = true;
    return absl::OkStatus();
  }
  return InvalidArgument("there is no directive ", name);
}

absl::Status Assembler::TakeEqu(Tokens rest) {
  if (rest.size() < 2 || rest[0].kind != TokenKind::kName)
    return InvalidArgument(".equ takes a name and a number");
  LAZULI_ASSIGN_OR_RETURN(numbers_[rest[0].text], Number(rest.subspan(1)));
  return absl::OkStatus();
}

// .sem s1 2
absl::Status Assembler::TakeFirstTokens(Tokens rest) {
  const auto s = rest.size() == 2 ? Numbered(rest[0], 's', kSemaphores - 1) : std::nullopt;
  if (!s) return InvalidArgument(".sem takes a semaphore and a number");
  LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(rest.subspan(1)));
  if (value < 0 || value > 255) return InvalidArgument("a semaphore holds 0 to 255");
  program_.semaphores[*s] = static_cast<uint8_t>(value);
  return absl::OkStatus();
}

// .hlo "...", .meta "..."
absl::Status Assembler::TakeQuoted(std::string_view name, Tokens rest) {
  if (rest.size() != 1 || rest[0].kind != TokenKind::kText)
    return InvalidArgument(name, " takes a text in quotes");
  const std::string& text = rest[0].text;
  if (name == ".meta") {
    program_.meta = text;
    return absl::OkStatus();
  }
  const auto found = std::find(program_.origins.begin(), program_.origins.end(), text);
  origin_ = static_cast<uint32_t>(found - program_.origins.begin());
  if (found == program_.origins.end()) program_.origins.push_back(text);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Assembler::Number(Tokens piece) const {
  const bool minus = !piece.empty() && Is(piece[0], "-");
  if (minus) piece = piece.subspan(1);
  if (piece.size() != 1) return InvalidArgument("'", TextOf(piece), "' is not a number");
  const Token& token = piece[0];
  const auto named = numbers_.find(token.text);
  const auto value = named != numbers_.end()            ? named->second
                     : token.kind == TokenKind::kNumber ? IntegerOf(token.text)
                                                        : std::nullopt;
  if (!value) return InvalidArgument("'", token.text, "' is not a number");
  return minus ? static_cast<int64_t>(-static_cast<uint64_t>(*value)) : *value;
}

absl::StatusOr<std::vector<int64_t>> Assembler::List(Tokens tokens, std::size_t& at,
                                                     std::string_view open,
                                                     std::string_view close) const {
  std::vector<int64_t> values;
  if (at >= tokens.size() || !Is(tokens[at], open))
    return InvalidArgument("'", open, "' is missing");
  ++at;
  while (at < tokens.size() && !Is(tokens[at], close)) {
    std::size_t end = at;
    while (end < tokens.size() && !Is(tokens[end], ",") && !Is(tokens[end], close)) ++end;
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(tokens.subspan(at, end - at)));
    values.push_back(value);
    at = end;
    if (at < tokens.size() && Is(tokens[at], ",")) ++at;
  }
  if (at == tokens.size()) return InvalidArgument("'", close, "' is missing");
  ++at;
  return values;
}

void Assembler::Append(Word word) {
  program_.text.push_back(word);
  program_.debug.push_back({source_line_, origin_});
}

absl::Status Assembler::ResolveLabels() {
  if (!entry_.label.empty()) fixups_.push_back({SIZE_MAX, entry_.label, entry_.line});
  for (const Fixup& fixup : fixups_) {
    line_ = fixup.line;
    const auto found = labels_.find(fixup.label);
    if (found == labels_.end()) return InvalidArgument("there is no label ", fixup.label);
    if (found->second >= program_.text.size())
      return InvalidArgument("behind label ", fixup.label, " stands no instruction");
    if (fixup.pc == SIZE_MAX) {
      program_.entry = static_cast<uint32_t>(found->second);
      continue;
    }
    Instruction in = Unpack(program_.text[fixup.pc]);
    in.imm = static_cast<uint32_t>(found->second);
    program_.text[fixup.pc] = Encode(in);
  }
  return absl::OkStatus();
}

absl::Status Assembler::Finish() {
  if (in_vector_) return InvalidArgument(".end is missing behind a vector program");
  if (!loops_.empty()) return InvalidArgument("endl is missing");
  if (program_.text.empty()) return InvalidArgument("there are no instructions");
  LAZULI_RETURN_IF_ERROR(ResolveLabels());
  if (no_debug_) program_.debug.clear();
  line_ = 1;
  LAZULI_ASSIGN_OR_RETURN(const Config config,
                          ReadConfig(program_.config_name, program_.config_overrides));
  program_.config_hash = ProgramHash(config);
  return absl::OkStatus();
}

absl::StatusOr<Program> Assemble(std::string_view text, std::string_view file) {
  return Assembler().Run(text, file);
}

}  // namespace lazuli::npu
