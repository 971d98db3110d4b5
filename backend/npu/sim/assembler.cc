#include "backend/npu/sim/assembler.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }

enum class TokenKind : uint8_t { kName, kNumber, kText, kMark };
struct Token {
  TokenKind kind;
  std::string text;  // of a number its digits, as written; of a text what is between the quotes
};
using Tokens = std::span<const Token>;

bool Is(const Token& token, std::string_view mark) {
  return token.kind == TokenKind::kMark && token.text == mark;
}

// A quoted text, its escapes undone; `at` is behind the opening quote and ends behind the closing one.
std::optional<std::string> QuotedText(std::string_view line, std::size_t& at) {
  std::string text;
  while (at < line.size() && line[at] != '"') {
    char c = line[at++];
    if (c == '\\' && at < line.size()) {
      c = line[at++];
      if (c == 'n') c = '\n';
      if (c == 'x') {
        unsigned value = 0;
        const std::string_view digits = line.substr(at, 2);
        if (std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ec !=
            std::errc())
          return std::nullopt;
        at += digits.size();
        c = static_cast<char>(value);
      }
    }
    text += c;
  }
  if (at >= line.size()) return std::nullopt;
  ++at;
  return text;
}

// The statements of a line. Numbers take letters along, so that 12ab is one token that is no number.
absl::StatusOr<std::vector<std::vector<Token>>> Scan(std::string_view line) {
  std::vector<std::vector<Token>> statements(1);
  std::size_t at = 0;
  while (at < line.size() && line[at] != '#') {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == ';') {
      statements.emplace_back();
      ++at;
    } else if (c == '"') {
      ++at;
      auto text = QuotedText(line, at);
      if (!text) return InvalidArgument("a text is not closed");
      statements.back().push_back({TokenKind::kText, *std::move(text)});
    } else if (IsDigit(c) || IsNameStart(c)) {
      std::size_t end = at + 1;
      while (end < line.size() && (IsNameChar(line[end]) ||
                                   (IsDigit(c) && (line[end] == '+' || line[end] == '-') &&
                                    (line[end - 1] == 'e') && !line.substr(at).starts_with("0x"))))
        ++end;
      statements.back().push_back({IsDigit(c) ? TokenKind::kNumber : TokenKind::kName,
                                   std::string(line.substr(at, end - at))});
      at = end;
    } else if (std::string_view("[](),=+->:$@|").find(c) != std::string_view::npos) {
      const bool two = line.substr(at).starts_with(">=");
      statements.back().push_back({TokenKind::kMark, std::string(line.substr(at, two ? 2 : 1))});
      at += two ? 2 : 1;
    } else {
      return InvalidArgument("the character '", c, "' means nothing here");
    }
  }
  return statements;
}

std::optional<int64_t> IntegerOf(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return static_cast<int64_t>(value);
}

// The number N of a name like r12, at most `most`.
std::optional<uint32_t> Numbered(const Token& token, char letter, int most) {
  if (token.kind != TokenKind::kName || token.text.size() < 2 || token.text[0] != letter ||
      !IsDigit(token.text[1]))
    return std::nullopt;
  const auto value = IntegerOf(std::string_view(token.text).substr(1));
  if (!value || *value < 0 || *value > most) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::string TextOf(Tokens tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

class Assembler {
 public:
  absl::StatusOr<Program> Run(std::string_view text, std::string_view file) {
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

 private:
  struct Fixup {
    std::size_t pc;
    std::string label;
    uint32_t line;
  };

  absl::Status TakeLine(std::string_view line) {
    LAZULI_ASSIGN_OR_RETURN(const auto statements, Scan(line));
    for (const auto& tokens : statements) {
      if (!tokens.empty()) LAZULI_RETURN_IF_ERROR(TakeStatement(tokens));
    }
    return absl::OkStatus();
  }

  absl::Status TakeStatement(Tokens tokens) {
    source_line_ = line_;
    while (tokens.size() >= 2 && tokens[0].kind == TokenKind::kName && Is(tokens[1], ":")) {
      if (!labels_.emplace(tokens[0].text, program_.text.size()).second)
        return InvalidArgument("label ", tokens[0].text, " is there twice");
      tokens = tokens.subspan(2);
    }
    if (tokens.size() >= 2 && Is(tokens[0], "@")) {
      const auto line = IntegerOf(tokens[1].text);
      if (!line) return InvalidArgument("@", tokens[1].text, " is no line");
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

  // --- directives

  absl::Status TakeDirective(std::string_view name, Tokens rest) {
    if (name == ".config") return TakeConfig(rest);
    if (name == ".arg" || name == ".bss" || name == ".const") return TakeSymbol(name, rest);
    if (name == ".desc" || name == ".vdesc") return TakeDescriptor(name == ".vdesc", rest);
    if (name == ".descraw" || name == ".word" || name == ".vraw") return TakeRaw(name, rest);
    if (name == ".vprog") {
      if (rest.size() != 1) return InvalidArgument(".vprog takes a name");
      if (!vectors_.emplace(rest[0].text, program_.vectors.size()).second)
        return InvalidArgument("vector program ", rest[0].text, " is there twice");
      program_.vectors.emplace_back();
      in_vector_ = true;
      return absl::OkStatus();
    }
    if (name == ".equ") {
      if (rest.size() < 2 || rest[0].kind != TokenKind::kName)
        return InvalidArgument(".equ takes a name and a number");
      LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(rest.subspan(1)));
      names_[rest[0].text] = value;
      return absl::OkStatus();
    }
    if (name == ".sem") {
      const auto s = rest.size() == 2 ? Numbered(rest[0], 's', kSemaphores - 1) : std::nullopt;
      if (!s) return InvalidArgument(".sem takes a semaphore and a number");
      LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(rest.subspan(1)));
      if (value < 0 || value > 255) return InvalidArgument("a semaphore holds 0 to 255");
      program_.semaphores[*s] = static_cast<uint8_t>(value);
      return absl::OkStatus();
    }
    if (name == ".entry") {
      if (rest.size() != 1) return InvalidArgument(".entry takes a label");
      entry_ = {0, rest[0].text, line_};
      return absl::OkStatus();
    }
    if (name == ".nodebug" && rest.empty()) {
      no_debug_ = true;
      return absl::OkStatus();
    }
    if (name == ".hlo" || name == ".meta") {
      if (rest.size() != 1 || rest[0].kind != TokenKind::kText)
        return InvalidArgument(name, " takes a text in quotes");
      if (name == ".meta") {
        program_.meta = rest[0].text;
      } else {
        const auto found =
            std::find(program_.origins.begin(), program_.origins.end(), rest[0].text);
        origin_ = static_cast<uint32_t>(found - program_.origins.begin());
        if (found == program_.origins.end()) program_.origins.push_back(rest[0].text);
      }
      return absl::OkStatus();
    }
    return InvalidArgument("there is no directive ", name);
  }

  // .config NAME [key=value ...]: keys go on until the statement's end.
  absl::Status TakeConfig(Tokens rest) {
    std::string name, overrides;
    std::size_t i = 0;
    // A preset's name has a dash, which is a mark here.
    while (i < rest.size() && !(i + 1 < rest.size() && Is(rest[i + 1], "="))) {
      if (i > 0 && rest[i].kind == TokenKind::kName && rest[i - 1].kind != TokenKind::kMark) break;
      name += rest[i++].text;
    }
    while (i < rest.size()) {
      if (Is(rest[i], ",")) {
        ++i;
        continue;
      }
      std::string item;
      do {
        item += rest[i++].text;
      } while (i < rest.size() && !Is(rest[i], ",") &&
               !(i + 1 < rest.size() && Is(rest[i + 1], "=")));
      overrides += Str(overrides.empty() ? "" : ",", item);
    }
    if (name == "edge" || name == "server") name = Str("npu1-", name);
    program_.config_name = name;
    program_.config_overrides = overrides;
    return absl::OkStatus();
  }

  absl::Status TakeSymbol(std::string_view directive, Tokens rest) {
    if (rest.size() < 2 || rest[0].kind != TokenKind::kName || rest[1].kind != TokenKind::kName)
      return InvalidArgument(directive, " takes a name and a shape: ", directive, " a f32[4,4]");
    Symbol symbol{rest[0].text, SymbolKind::kBss, Type::kNone, {}};
    if (!IsSymbolName(symbol.name))
      return InvalidArgument("'", symbol.name, "' is no name of an array: letters, digits, _ and .");
    if (program_.Find(symbol.name) != nullptr)
      return InvalidArgument(symbol.name, " is there twice");
    const auto type = TypeFromName(rest[1].text);
    if (!type) return InvalidArgument("there is no element type ", rest[1].text);
    symbol.type = *type;
    std::size_t at = 2;
    if (at < rest.size() && Is(rest[at], "[")) {
      LAZULI_ASSIGN_OR_RETURN(symbol.dims, List(rest, at, "[", "]"));
    }
    int64_t bytes = 8;
    for (int64_t dim : symbol.dims) {
      if (dim < 1) return InvalidArgument(symbol.name, " has no elements: dim ", dim);
      if (__builtin_mul_overflow(bytes, dim, &bytes) || bytes > int64_t{1} << 38)
        return InvalidArgument(symbol.name, " is larger than any DRAM");
    }
    if (program_.dram_bytes() > uint64_t{1} << 38)
      return InvalidArgument("all arrays together are larger than any DRAM");
    rest = rest.subspan(at);
    if (directive == ".arg") {
      const std::string_view way = rest.size() == 1 ? std::string_view(rest[0].text) : "";
      if (way != "in" && way != "out" && way != "inout")
        return InvalidArgument("behind the shape stands in, out or inout");
      symbol.kind = way == "in"    ? SymbolKind::kIn
                    : way == "out" ? SymbolKind::kOut
                                   : SymbolKind::kInOut;
    } else if (directive == ".const") {
      symbol.kind = SymbolKind::kConst;
      LAZULI_RETURN_IF_ERROR(TakeConstant(symbol, rest));
    } else if (!rest.empty()) {
      return InvalidArgument("'", rest[0].text, "' is left over");
    }
    program_.Place(std::move(symbol));
    return absl::OkStatus();
  }

  absl::Status TakeConstant(const Symbol& symbol, Tokens rest) {
    if (symbol.bytes() > int64_t{1} << 28)
      return InvalidArgument("constant ", symbol.name, " is larger than 256 MiB");
    std::vector<uint64_t> values;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (Is(rest[i], ",")) continue;
      const bool minus = Is(rest[i], "-");
      if (minus && ++i == rest.size()) return InvalidArgument("a number is missing");
      LAZULI_ASSIGN_OR_RETURN(const uint64_t bits, ElementBits(symbol.type, rest[i], minus));
      values.push_back(bits);
    }
    const auto n = static_cast<std::size_t>(symbol.bytes());
    const auto width = static_cast<std::size_t>(TypeBytes(symbol.type));
    if (values.size() != 1 && values.size() * width != n)
      return InvalidArgument("constant ", symbol.name, " has ", n / width, " elements, not ",
                             values.size());
    for (std::size_t i = 0; i < n / width; ++i) {
      const uint64_t bits = values[values.size() == 1 ? 0 : i];
      for (std::size_t b = 0; b < width; ++b)
        program_.constants.push_back(static_cast<std::byte>(bits >> (8 * b)));
    }
    return absl::OkStatus();
  }

  // Of a float, hexadecimal digits are its bits.
  absl::StatusOr<uint64_t> ElementBits(Type type, const Token& token, bool minus) {
    const bool is_float = type == Type::kF32 || type == Type::kBf16 || type == Type::kF16;
    if (is_float && !token.text.starts_with("0x")) {
      LAZULI_ASSIGN_OR_RETURN(float value, Float(token));
      if (minus) value = -value;
      if (type == Type::kF16)
        return InvalidArgument("constants of f16 are written as bits (0x3c00)");
      return type == Type::kBf16 ? ToBf16(value) : std::bit_cast<uint32_t>(value);
    }
    const std::array<Token, 1> one = {token};
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(one));
    return static_cast<uint64_t>(minus ? -static_cast<uint64_t>(value)
                                       : static_cast<uint64_t>(value));
  }

  absl::StatusOr<float> Float(const Token& token) {
    if (token.text == "inf") return std::numeric_limits<float>::infinity();
    if (token.text == "nan") return std::numeric_limits<float>::quiet_NaN();
    float value = 0;
    const auto parsed =
        std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != token.text.data() + token.text.size())
      return InvalidArgument("'", token.text, "' is no number");
    return value;
  }

  absl::Status TakeDescriptor(bool vector, Tokens rest) {
    if (rest.empty() || rest[0].kind != TokenKind::kName)
      return InvalidArgument("a descriptor has a name");
    if (!descriptors_.emplace(rest[0].text, program_.descriptors.size()).second)
      return InvalidArgument("descriptor ", rest[0].text, " is there twice");
    Descriptor first, second;
    std::size_t at = 1;
    std::vector<int64_t> dims;
    uint32_t elem = 1, inputs = 0;
    while (at < rest.size()) {
      const std::string what = rest[at++].text;
      if (what == "elem") {
        const auto bytes = at < rest.size() ? IntegerOf(rest[at++].text) : std::nullopt;
        if (!bytes || (*bytes != 1 && *bytes != 2 && *bytes != 4 && *bytes != 8))
          return InvalidArgument("elem is 1, 2, 4 or 8 bytes");
        elem = static_cast<uint32_t>(*bytes);
        continue;
      }
      LAZULI_ASSIGN_OR_RETURN(const std::vector<int64_t> values, List(rest, at, "(", ")"));
      if (what == "dim") {
        dims = values;
        LAZULI_RETURN_IF_ERROR(CheckDims(dims, vector ? 4 : 5));
        continue;
      }
      if (dims.empty()) return InvalidArgument("dim(...) stands before ", what);
      if (values.size() != dims.size())
        return InvalidArgument(what, " has ", values.size(), " strides, dim has ", dims.size());
      for (int64_t v : values) {
        if (v != static_cast<int32_t>(v))
          return InvalidArgument("stride ", v, " has more than 32 bits");
      }
      LAZULI_RETURN_IF_ERROR(vector ? TakeStream(what, values, first, second, inputs)
                                    : TakeStrides(what, values, first));
    }
    if (dims.empty()) return InvalidArgument("a descriptor has dim(...)");
    for (std::size_t i = 0; i < dims.size(); ++i) first.dim[i] = static_cast<uint32_t>(dims[i]);
    first.flags |= static_cast<uint32_t>(dims.size()) << 4;
    if (vector) {
      if (!first.vector()) return InvalidArgument("out.TYPE(...) is missing");
      second.dim = first.dim;
      second.flags = first.flags | 1u << 7 | inputs << 24;
      first.flags |= inputs << 24;
    } else {
      first.flags |= elem;
    }
    program_.descriptors.push_back(first);
    if (vector) program_.descriptors.push_back(second);
    return absl::OkStatus();
  }

  static absl::Status CheckDims(const std::vector<int64_t>& dims, std::size_t most) {
    if (dims.empty() || dims.size() > most)
      return InvalidArgument("a descriptor has 1 to ", most, " dims");
    int64_t n = 1;
    for (int64_t dim : dims) {
      if (dim < 1 || dim > int64_t{1} << 31)
        return InvalidArgument("dim ", dim, ": an operand has at least one element in each dim");
      if (__builtin_mul_overflow(n, dim, &n) || n > int64_t{1} << 40)
        return InvalidArgument("the dims are larger than any memory");
    }
    return absl::OkStatus();
  }

  static absl::Status TakeStrides(std::string_view what, const std::vector<int64_t>& values,
                                  Descriptor& d) {
    if (what != "src" && what != "dst")
      return InvalidArgument("a descriptor has no ", what, ": dim, src, dst and elem");
    auto& strides = what == "src" ? d.src : d.dst;
    for (std::size_t i = 0; i < values.size(); ++i) strides[i] = static_cast<int32_t>(values[i]);
    return absl::OkStatus();
  }

  static absl::Status TakeStream(std::string_view what, const std::vector<int64_t>& values,
                                 Descriptor& first, Descriptor& second, uint32_t& inputs) {
    const std::size_t dot = what.find('.');
    const std::string_view stream = what.substr(0, dot);
    const auto type =
        dot == std::string_view::npos ? std::nullopt : TypeFromName(what.substr(dot + 1));
    const std::size_t index = stream == "a"     ? 0
                              : stream == "b"   ? 1
                              : stream == "c"   ? 2
                              : stream == "out" ? 3
                                                : 4;
    if (!type || index == 4)
      return InvalidArgument("'", what, "' is no stream: a.f32, b.f32, c.f32 or out.f32");
    if (index < 3 && inputs != index) return InvalidArgument("inputs are a, b, c, in this order");
    if (index < 3) ++inputs;
    auto& strides = index == 0   ? first.src
                    : index == 1 ? second.src
                    : index == 2 ? second.dst
                                 : first.dst;
    for (std::size_t i = 0; i < values.size(); ++i) strides[i] = static_cast<int32_t>(values[i]);
    first.flags |= static_cast<uint32_t>(*type) << (8 + 4 * index);
    return absl::OkStatus();
  }

  absl::Status TakeRaw(std::string_view name, Tokens rest) {
    std::vector<uint64_t> values;
    for (const Token& token : rest) {
      const auto value = IntegerOf(token.text);
      if (!value) return InvalidArgument("'", token.text, "' is no number");
      values.push_back(static_cast<uint64_t>(*value));
    }
    if (name == ".word") {
      if (values.size() != 2) return InvalidArgument(".word takes the upper and the lower 64 bits");
      Append({values[1], values[0]});
    } else if (name == ".descraw") {
      if (values.size() != 16) return InvalidArgument(".descraw takes 16 words");
      Descriptor d;
      for (std::size_t i = 0; i < 5; ++i) {
        d.dim[i] = static_cast<uint32_t>(values[i]);
        d.src[i] = static_cast<int32_t>(values[5 + i]);
        d.dst[i] = static_cast<int32_t>(values[10 + i]);
      }
      d.flags = static_cast<uint32_t>(values[15]);
      descriptors_.emplace(Str("d", program_.descriptors.size()), program_.descriptors.size());
      program_.descriptors.push_back(d);
    } else {
      vectors_.emplace(Str("p", program_.vectors.size()), program_.vectors.size());
      program_.vectors.emplace_back();
      for (uint64_t v : values) program_.vectors.back().push_back(static_cast<uint32_t>(v));
    }
    return absl::OkStatus();
  }

  // --- vector programs

  absl::Status TakeMicro(Tokens tokens) {
    std::string_view mnemonic = tokens[0].text;
    if (mnemonic == ".end") {
      in_vector_ = false;
      return absl::OkStatus();
    }
    MicroInstruction micro{Micro::kMov, 0, 0, 0, 0, 0};
    const MicroRow* row = FindMicro(mnemonic);
    if (row == nullptr) {
      const std::size_t dot = mnemonic.rfind('.');
      const std::string_view type = dot == std::string_view::npos ? "" : mnemonic.substr(dot + 1);
      micro.type = type == "s32" ? 1 : type == "u32" ? 2 : 0;
      if (dot != std::string_view::npos && (type == "f32" || micro.type != 0))
        row = FindMicro(mnemonic.substr(0, dot));
    }
    if (row == nullptr) return InvalidArgument("there is no micro-operation ", mnemonic);
    micro.op = row->op;
    std::size_t at = 1;
    for (std::size_t i = 0; i < row->operands.size(); ++i) {
      if (i > 0) {
        if (at >= tokens.size() || !Is(tokens[at], ","))
          return InvalidArgument(mnemonic, " takes ", row->operands.size(), " operands");
        ++at;
      }
      LAZULI_RETURN_IF_ERROR(TakeMicroOperand(row->operands[i], tokens, at, micro));
    }
    if (at != tokens.size()) return InvalidArgument("'", tokens[at].text, "' is left over");
    EncodeVector(micro, program_.vectors.back());
    return DecodeVector(program_.vectors.back()).status();
  }

  absl::Status TakeMicroOperand(char letter, Tokens tokens, std::size_t& at,
                                MicroInstruction& micro) {
    if (at >= tokens.size()) return InvalidArgument("an operand is missing");
    if (letter == '#') {
      const bool minus = Is(tokens[at], "-");
      if (minus && ++at == tokens.size()) return InvalidArgument("a number is missing");
      const Type type = micro.type == 0 ? Type::kF32 : Type::kS32;
      LAZULI_ASSIGN_OR_RETURN(const uint64_t bits, ElementBits(type, tokens[at++], minus));
      micro.literal = static_cast<uint32_t>(bits);
      return absl::OkStatus();
    }
    if (letter == 'l') {
      const auto level = IntegerOf(tokens[at].text);
      if (!level || *level < 0 || *level > 3)
        return InvalidArgument("'", tokens[at].text, "' is no loop level: 0 to 3");
      micro.a = static_cast<int>(*level);
    } else {
      const auto v = Numbered(tokens[at], 'v', 31);
      if (!v) return InvalidArgument("'", tokens[at].text, "' is no vector register: v0 to v31");
      (letter == 'd'   ? micro.d
       : letter == 'a' ? micro.a
       : letter == 'b' ? micro.b
                       : micro.c) = static_cast<int>(*v);
    }
    ++at;
    return absl::OkStatus();
  }

  // --- instructions

  absl::Status TakeInstruction(Tokens tokens) {
    Instruction in;
    LAZULI_ASSIGN_OR_RETURN(const InstructionRow* row, TakeMnemonic(tokens[0].text, in));
    for (const Operand& operand : row->operands) {
      if (operand.absent != 0) SetBits(operand, operand.absent, in);
    }
    Tokens rest = tokens.subspan(1);
    LAZULI_RETURN_IF_ERROR(TakeSemaphores(rest, in));
    std::vector<bool> given(row->operands.size(), false);
    std::size_t position = 0;
    while (!rest.empty()) {
      std::size_t end = 0;
      while (end < rest.size() && !Is(rest[end], ",")) ++end;
      LAZULI_RETURN_IF_ERROR(TakeOperand(*row, rest.subspan(0, end), given, position, in));
      if (end + 1 == rest.size()) return InvalidArgument("an operand is missing behind the comma");
      rest = rest.subspan(std::min(end + 1, rest.size()));
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i] && !row->operands[i].optional && row->operands[i].kind != OperandKind::kEnd)
        return InvalidArgument(row->mnemonic, " takes ", row->operands_text);
    }
    LAZULI_RETURN_IF_ERROR(CheckInstruction(in));
    if (in.opcode() == Op::kLoop) loops_.push_back(program_.text.size());
    if (in.opcode() == Op::kEndl) LAZULI_RETURN_IF_ERROR(CloseLoop());
    Append(Encode(in));
    return absl::OkStatus();
  }

  absl::Status CloseLoop() {
    if (loops_.empty()) return InvalidArgument("endl without a loop");
    const std::size_t begin = loops_.back(), distance = program_.text.size() - begin;
    loops_.pop_back();
    if (distance > 0xffff) return InvalidArgument("a loop's body has at most 65534 instructions");
    Instruction loop = Unpack(program_.text[begin]);
    loop.desc = static_cast<uint32_t>(distance);
    program_.text[begin] = Encode(loop);
    return absl::OkStatus();
  }

  // "dma.ld.1.f32": the row; queue and type into the instruction.
  static absl::StatusOr<const InstructionRow*> TakeMnemonic(std::string_view text,
                                                            Instruction& in) {
    std::string_view name = text;
    const InstructionRow* row = FindRow(name);
    while (row == nullptr) {
      const std::size_t dot = name.rfind('.');
      if (dot == std::string_view::npos) return InvalidArgument("there is no instruction ", text);
      name = name.substr(0, dot);
      row = FindRow(name);
    }
    in.op = static_cast<uint32_t>(row->op);
    const QueueRange queues = QueuesOf(row->queue);
    in.queue = static_cast<uint32_t>(queues.first);
    bool queue_given = row->queue != QueueKind::kAny;
    std::string_view suffix = text.substr(name.size());
    while (!suffix.empty()) {
      suffix.remove_prefix(1);
      const std::string_view part = suffix.substr(0, suffix.find('.'));
      suffix.remove_prefix(part.size());
      if (const auto queue = QueueFromName(part); queue && row->queue == QueueKind::kAny) {
        in.queue = static_cast<uint32_t>(*queue);
        queue_given = true;
      } else if (part.size() == 1 && IsDigit(part[0]) && part[0] - '0' < queues.count &&
                 row->queue != QueueKind::kAny && queues.count > 1) {
        in.queue = static_cast<uint32_t>(queues.first + part[0] - '0');
      } else if (const auto type = TypeFromName(part); type) {
        in.type = static_cast<uint32_t>(*type);
      } else {
        return InvalidArgument("'.", part, "' is no suffix of ", row->mnemonic);
      }
    }
    if (!queue_given)
      return InvalidArgument(row->mnemonic, " names its queue: ", row->mnemonic, ".mx");
    if (row->types != 0 && in.type == 0 && (row->types & Bit(Type::kNone)) == 0)
      return InvalidArgument(row->mnemonic, " needs an element type: ", row->mnemonic, ".s8");
    return row;
  }

  // Takes `wait sN>=V` and `sig sN+V` from the end.
  absl::Status TakeSemaphores(Tokens& rest, Instruction& in) {
    std::size_t begin = rest.size();
    for (std::size_t i = rest.size(); i-- > 0;) {
      if (rest[i].kind == TokenKind::kName && (rest[i].text == "wait" || rest[i].text == "sig"))
        begin = i;
    }
    Tokens tail = rest.subspan(begin);
    rest = rest.subspan(0, begin);
    while (!tail.empty()) {
      const bool wait = tail[0].text == "wait";
      const auto s = tail.size() >= 4 ? Numbered(tail[1], 's', kSemaphores - 1) : std::nullopt;
      if (!s || !Is(tail[2], wait ? ">=" : "+") ||
          (tail[0].text != "wait" && tail[0].text != "sig"))
        return InvalidArgument("semaphores are written: wait s0>=1 sig s1+1");
      std::size_t end = 3;
      while (end < tail.size() && !(tail[end].text == "wait" || tail[end].text == "sig")) ++end;
      LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(tail.subspan(3, end - 3)));
      const int64_t most = wait ? 255 : 15;
      if (value < 1 || value > most)
        return InvalidArgument(wait ? "a wait takes 1 to " : "a signal adds 1 to ", most);
      (wait ? in.wait_sem : in.sig_sem) = *s;
      (wait ? in.wait_val : in.sig_inc) = static_cast<uint32_t>(value);
      tail = tail.subspan(end);
    }
    return absl::OkStatus();
  }

  static void SetBits(const Operand& operand, uint32_t value, Instruction& in) {
    const uint64_t mask = ((uint64_t{1} << operand.width) - 1) << operand.low;
    Set(in, operand.field,
        static_cast<uint32_t>((Get(in, operand.field) & ~mask) |
                              (static_cast<uint64_t>(value) << operand.low & mask)));
  }

  absl::Status TakeOperand(const InstructionRow& row, Tokens piece, std::vector<bool>& given,
                           std::size_t& position, Instruction& in) {
    if (piece.empty()) return InvalidArgument("an operand is missing");
    const bool keyed = piece.size() >= 2 && piece[0].kind == TokenKind::kName && Is(piece[1], "=");
    for (std::size_t i = 0; i < row.operands.size(); ++i) {
      const Operand& operand = row.operands[i];
      const auto& words = operand.words;
      const bool word = operand.kind == OperandKind::kWord && piece.size() == 1 &&
                        std::find(words.begin(), words.end(), piece[0].text) != words.end();
      if ((keyed && operand.key == piece[0].text) || word) {
        if (given[i]) return InvalidArgument("'", TextOf(piece), "' is there twice");
        given[i] = true;
        return TakeKeyed(operand, keyed ? piece.subspan(2) : piece, in);
      }
    }
    while (position < row.operands.size() && (!row.operands[position].key.empty() ||
                                              row.operands[position].kind == OperandKind::kWord ||
                                              row.operands[position].kind == OperandKind::kEnd))
      ++position;
    if (position == row.operands.size() || keyed)
      return InvalidArgument(row.mnemonic, " has no operand '", TextOf(piece), "'; it takes ",
                             row.operands_text);
    given[position] = true;
    return TakePlaced(row.operands[position++], piece, in);
  }

  absl::Status TakeKeyed(const Operand& operand, Tokens value, Instruction& in) {
    if (operand.kind == OperandKind::kWord || operand.kind == OperandKind::kKeyWord) {
      const std::string text = TextOf(value);
      const auto found = std::find(operand.words.begin(), operand.words.end(), text);
      if (found == operand.words.end())
        return InvalidArgument(operand.key, "=", text, ": it is ", Join(operand.words, " or "));
      SetBits(operand, static_cast<uint32_t>(found - operand.words.begin()), in);
      return absl::OkStatus();
    }
    if (operand.kind == OperandKind::kKeyRegister) {
      LAZULI_ASSIGN_OR_RETURN(const uint32_t r, Register(value));
      SetBits(operand, r, in);
      return absl::OkStatus();
    }
    LAZULI_ASSIGN_OR_RETURN(const int64_t number, Number(value));
    if (number < 0 || number >= int64_t{1} << operand.width)
      return InvalidArgument(operand.key, "=", number, " has more than ", operand.width, " bits");
    SetBits(operand, static_cast<uint32_t>(number), in);
    return absl::OkStatus();
  }

  absl::Status TakePlaced(const Operand& operand, Tokens piece, Instruction& in) {
    const std::string& first = piece[0].text;
    switch (operand.kind) {
      case OperandKind::kRegister: {
        LAZULI_ASSIGN_OR_RETURN(const uint32_t r, Register(piece));
        SetBits(operand, r, in);
        return absl::OkStatus();
      }
      case OperandKind::kSource:
        if (const auto r =
                piece.size() == 1 ? Numbered(piece[0], 'r', kRegisters - 1) : std::nullopt) {
          in.rb = *r;
          return absl::OkStatus();
        }
        in.aux |= kAuxImmediate;
        return TakeImmediate(piece, in);
      case OperandKind::kNumber:
        return TakeImmediate(piece, in);
      case OperandKind::kAddress:
      case OperandKind::kAddressPlus:
      case OperandKind::kAcc:
        return TakeAddress(operand, piece, in);
      case OperandKind::kDram:
        return TakeDram(piece, in);
      case OperandKind::kDescriptor: {
        const auto found = descriptors_.find(first);
        if (piece.size() != 1 || found == descriptors_.end())
          return InvalidArgument("there is no descriptor ", TextOf(piece));
        if (found->second > 0xffff)
          return InvalidArgument("a program has at most 65536 descriptors");
        in.desc = static_cast<uint32_t>(found->second);
        return absl::OkStatus();
      }
      case OperandKind::kVector: {
        const auto found = vectors_.find(first);
        if (piece.size() != 1 || found == vectors_.end())
          return InvalidArgument("there is no vector program ", TextOf(piece));
        in.imm = static_cast<uint32_t>(found->second);
        return absl::OkStatus();
      }
      case OperandKind::kLabel:
        if (piece.size() != 1 || piece[0].kind != TokenKind::kName)
          return InvalidArgument("'", TextOf(piece), "' is no label");
        fixups_.push_back({program_.text.size(), first, line_});
        return absl::OkStatus();
      case OperandKind::kSemaphore: {
        const auto s = piece.size() == 1 ? Numbered(piece[0], 's', kSemaphores - 1) : std::nullopt;
        if (!s) return InvalidArgument("'", TextOf(piece), "' is no semaphore: s0 to s63");
        SetBits(operand, *s, in);
        return absl::OkStatus();
      }
      case OperandKind::kQueues:
        return TakeQueues(piece, in);
      case OperandKind::kCsr: {
        const auto names = CsrNames();
        const auto found = std::find(names.begin(), names.end(), TextOf(piece));
        if (found == names.end())
          return InvalidArgument("'", TextOf(piece),
                                 "' is no register of state: ", Join(names, ", "));
        in.imm = static_cast<uint32_t>(found - names.begin());
        return absl::OkStatus();
      }
      default:
        return InvalidArgument("'", TextOf(piece), "' does not belong here");
    }
  }

  absl::Status TakeImmediate(Tokens piece, Instruction& in) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, Number(piece));
    if (value < INT32_MIN || value > UINT32_MAX)
      return InvalidArgument(value, " has more than 32 bits");
    in.imm = static_cast<uint32_t>(value);
    return absl::OkStatus();
  }

  static absl::Status TakeQueues(Tokens piece, Instruction& in) {
    if (piece.size() == 1 && piece[0].text == "all") {
      in.imm = (1u << kQueues) - 1;
      return absl::OkStatus();
    }
    for (std::size_t i = 0; i < piece.size(); i += 2) {
      const auto queue = QueueFromName(piece[i].text);
      if (!queue || *queue == Queue::kSq || (i + 1 < piece.size() && !Is(piece[i + 1], "|")))
        return InvalidArgument("'", TextOf(piece), "' names no queues: all, or like ld0|mx");
      in.imm |= 1u << static_cast<int>(*queue);
    }
    return absl::OkStatus();
  }

  // [r1], [r1+4], [64], acc[r1+4], acc[0].
  absl::Status TakeAddress(const Operand& operand, Tokens piece, Instruction& in) {
    const bool acc = operand.kind == OperandKind::kAcc;
    auto fails = [&] {
      return InvalidArgument("'", TextOf(piece), "' is no address: ", acc ? "acc[r1+2]" : "[r1]");
    };
    if (acc) {
      if (piece[0].text != "acc") return fails();
      piece = piece.subspan(1);
    }
    if (piece.size() < 3 || !Is(piece[0], "[") || !Is(piece.back(), "]")) return fails();
    Tokens inside = piece.subspan(1, piece.size() - 2);
    const auto r = Numbered(inside[0], 'r', kRegisters - 1);
    if (r) {
      SetBits(operand, *r, in);
      inside = inside.subspan(1);
      if (inside.empty()) return absl::OkStatus();
      if (operand.kind == OperandKind::kAddress || (!Is(inside[0], "+") && !Is(inside[0], "-")))
        return fails();
      if (Is(inside[0], "+")) inside = inside.subspan(1);
    } else if (operand.kind == OperandKind::kAddress) {
      return InvalidArgument("'", TextOf(piece), "': this address is in a register");
    }
    return TakeImmediate(inside, in);
  }

  // $name, $name[r4], $name[r4+64], $name[128], $0x400[r4], [r4].
  absl::Status TakeDram(Tokens piece, Instruction& in) {
    auto fails = [&] {
      return InvalidArgument("'", TextOf(piece), "' is no place in DRAM: $name[r4+64] or [r4]");
    };
    int64_t offset = 0;
    Tokens rest = piece;
    if (Is(rest[0], "$")) {
      if (rest.size() < 2) return fails();
      in.aux |= kAuxDram;
      if (const auto raw =
              rest[1].kind == TokenKind::kNumber ? IntegerOf(rest[1].text) : std::nullopt) {
        offset = *raw;
      } else if (const Symbol* symbol = program_.Find(rest[1].text)) {
        offset = static_cast<int64_t>(symbol->offset);
      } else {
        return InvalidArgument("there is no array ", rest[1].text);
      }
      rest = rest.subspan(2);
    }
    if (!rest.empty()) {
      if (rest.size() < 3 || !Is(rest[0], "[") || !Is(rest.back(), "]")) return fails();
      rest = rest.subspan(1, rest.size() - 2);
      if (const auto r = Numbered(rest[0], 'r', kRegisters - 1)) {
        in.rb = *r;
        rest = rest.subspan(1);
        if (!rest.empty() && Is(rest[0], "+")) rest = rest.subspan(1);
      }
      if (!rest.empty()) {
        LAZULI_ASSIGN_OR_RETURN(const int64_t more, Number(rest));
        if (more < 0 || more > int64_t{1} << 38) return fails();
        offset += more;
      }
    }
    if ((in.aux & kAuxDram) == 0) return offset == 0 && in.rb != 0 ? absl::OkStatus() : fails();
    if (offset % kDramUnit != 0)
      return InvalidArgument("offset ", offset, " is no multiple of ", kDramUnit,
                             "; the register may hold any");
    if (offset / kDramUnit > UINT32_MAX) return fails();
    in.imm = static_cast<uint32_t>(offset / kDramUnit);
    return absl::OkStatus();
  }

  static absl::StatusOr<uint32_t> Register(Tokens piece) {
    const auto r = piece.size() == 1 ? Numbered(piece[0], 'r', kRegisters - 1) : std::nullopt;
    if (!r) return InvalidArgument("'", TextOf(piece), "' is no register: r0 to r63");
    return *r;
  }

  // A number, negated, or a name of .equ.
  absl::StatusOr<int64_t> Number(Tokens piece) const {
    const bool minus = !piece.empty() && Is(piece[0], "-");
    if (minus) piece = piece.subspan(1);
    if (piece.size() != 1) return InvalidArgument("'", TextOf(piece), "' is no number");
    if (const auto found = names_.find(piece[0].text); found != names_.end())
      return static_cast<int64_t>(minus ? -static_cast<uint64_t>(found->second)
                                        : static_cast<uint64_t>(found->second));
    const auto value =
        piece[0].kind == TokenKind::kNumber ? IntegerOf(piece[0].text) : std::nullopt;
    if (!value) return InvalidArgument("'", piece[0].text, "' is no number");
    return static_cast<int64_t>(minus ? -static_cast<uint64_t>(*value)
                                      : static_cast<uint64_t>(*value));
  }

  absl::StatusOr<std::vector<int64_t>> List(Tokens tokens, std::size_t& at, std::string_view open,
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

  void Append(Word word) {
    program_.text.push_back(word);
    program_.debug.push_back({source_line_, origin_});
  }

  absl::Status Finish() {
    if (in_vector_) return InvalidArgument(".end is missing behind a vector program");
    if (!loops_.empty()) return InvalidArgument("endl is missing");
    if (program_.text.empty()) return InvalidArgument("there are no instructions");
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
    if (no_debug_) program_.debug.clear();
    line_ = 1;
    LAZULI_ASSIGN_OR_RETURN(const Config config,
                            ReadConfig(program_.config_name, program_.config_overrides));
    program_.config_hash = ProgramHash(config);
    return absl::OkStatus();
  }

  Program program_;
  uint32_t line_ = 0, source_line_ = 0, origin_ = 0;
  bool in_vector_ = false, no_debug_ = false;
  std::map<std::string, std::size_t> labels_, descriptors_, vectors_;
  std::map<std::string, int64_t> names_;
  std::vector<Fixup> fixups_;
  Fixup entry_;
  std::vector<std::size_t> loops_;
};

}  // namespace

absl::StatusOr<Program> Assemble(std::string_view text, std::string_view file) {
  return Assembler().Run(text, file);
}

}  // namespace lazuli::npu
