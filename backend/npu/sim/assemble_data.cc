// The assembler's directives that describe data: configuration, arrays, descriptors, vector
// programs.

#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "backend/npu/sim/assembly.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

absl::StatusOr<float> Float(const Token& token) {
  if (token.text == "inf") return std::numeric_limits<float>::infinity();
  if (token.text == "nan") return std::numeric_limits<float>::quiet_NaN();
  float value = 0;
  const auto parsed =
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != token.text.data() + token.text.size())
    return InvalidArgument("'", token.text, "' is not a number");
  return value;
}

absl::Status CheckDims(const std::vector<int64_t>& dims, std::size_t most) {
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

absl::Status TakeStrides(std::string_view what, const std::vector<int64_t>& values, Descriptor& d) {
  if (what != "src" && what != "dst")
    return InvalidArgument("a descriptor has no ", what, ": dim, src, dst and elem");
  auto& strides = what == "src" ? d.src : d.dst;
  for (std::size_t i = 0; i < values.size(); ++i) strides[i] = static_cast<int32_t>(values[i]);
  return absl::OkStatus();
}

absl::Status TakeStream(std::string_view what, const std::vector<int64_t>& values,
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
    return InvalidArgument("'", what, "' is not a stream: a.f32, b.f32, c.f32 or out.f32");
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

}  // namespace

// .config NAME [key=value ...]: keys go on until the statement's end.
absl::Status Assembler::TakeConfig(Tokens rest) {
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

absl::Status Assembler::TakeSymbol(std::string_view directive, Tokens rest) {
  if (rest.size() < 2 || rest[0].kind != TokenKind::kName || rest[1].kind != TokenKind::kName)
    return InvalidArgument(directive, " takes a name and a shape: ", directive, " a f32[4,4]");
  Symbol symbol{rest[0].text, SymbolKind::kBss, Type::kNone, {}};
  if (!IsSymbolName(symbol.name))
    return InvalidArgument("'", symbol.name,
                           "' is not a name of an array: letters, digits, _ and .");
  if (program_.Find(symbol.name) != nullptr) return InvalidArgument(symbol.name, " is there twice");
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

absl::Status Assembler::TakeConstant(const Symbol& symbol, Tokens rest) {
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
absl::StatusOr<uint64_t> Assembler::ElementBits(Type type, const Token& token, bool minus) {
  const bool is_float = type == Type::kF32 || type == Type::kBf16 || type == Type::kF16;
  if (is_float && !token.text.starts_with("0x")) {
    LAZULI_ASSIGN_OR_RETURN(float value, Float(token));
    if (minus) value = -value;
    if (type == Type::kF16) return InvalidArgument("constants of f16 are written as bits (0x3c00)");
    return type == Type::kBf16 ? ToBf16(value) : std::bit_cast<uint32_t>(value);
  }
  const std::array<Token, 1> one = {token};
  LAZULI_ASSIGN_OR_RETURN(int64_t value, Number(one));
  if (minus) value = static_cast<int64_t>(-static_cast<uint64_t>(value));
  const int bits = 8 * TypeBytes(type);
  if (bits < 64 && (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << bits))
    return InvalidArgument(value, " has more than the ", bits, " bits of ", TypeName(type));
  return static_cast<uint64_t>(value);
}

absl::Status Assembler::TakeDescriptor(bool vector, Tokens rest) {
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
      if (!dims.empty()) return InvalidArgument("dim(...) is there twice");
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

absl::Status Assembler::TakeRaw(std::string_view name, Tokens rest) {
  std::vector<uint64_t> values;
  for (const Token& token : rest) {
    const auto value = IntegerOf(token.text);
    if (!value) return InvalidArgument("'", token.text, "' is not a number");
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

absl::Status Assembler::BeginVector(Tokens rest) {
  if (rest.size() != 1) return InvalidArgument(".vprog takes a name");
  if (!vectors_.emplace(rest[0].text, program_.vectors.size()).second)
    return InvalidArgument("vector program ", rest[0].text, " is there twice");
  program_.vectors.emplace_back();
  in_vector_ = true;
  return absl::OkStatus();
}

absl::Status Assembler::TakeMicro(Tokens tokens) {
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

absl::Status Assembler::TakeMicroOperand(char letter, Tokens tokens, std::size_t& at,
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
      return InvalidArgument("'", tokens[at].text, "' is not a loop level: 0 to 3");
    micro.a = static_cast<int>(*level);
  } else {
    const auto v = Numbered(tokens[at], 'v', 31);
    if (!v) return InvalidArgument("'", tokens[at].text, "' is not a vector register: v0 to v31");
    (letter == 'd'   ? micro.d
     : letter == 'a' ? micro.a
     : letter == 'b' ? micro.b
                     : micro.c) = static_cast<int>(*v);
  }
  ++at;
  return absl::OkStatus();
}

}  // namespace lazuli::npu
