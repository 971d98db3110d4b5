#include "backend/npu/sim/program.h"

#include <algorithm>
#include <cstring>

#include <zlib.h>

#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

constexpr std::string_view kMagic = "NPUX";
constexpr uint32_t kVersion = 1;
constexpr std::size_t kHeader = 40, kCrcAt = 32, kTableEntry = 16;
// Of a symbol: what DRAM's part of the memory map holds at most.
constexpr int64_t kMostBytes = int64_t{1} << 38;

class Out {
 public:
  void U32(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  void U64(uint64_t value) {
    U32(static_cast<uint32_t>(value));
    U32(static_cast<uint32_t>(value >> 32));
  }
  void Text(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  void Raw(std::string_view bytes) { bytes_ += bytes; }
  std::string Take() { return std::move(bytes_); }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

// Reads what may be anything; after an end before its time everything is 0 and ok() is false.
class In {
 public:
  explicit In(std::string_view bytes) : bytes_(bytes) {}
  uint32_t U32() {
    const std::string_view four = Raw(4);
    uint32_t value = 0;
    for (std::size_t i = four.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(four[i]);
    return value;
  }
  uint64_t U64() {
    const uint64_t low = U32();
    return low | static_cast<uint64_t>(U32()) << 32;
  }
  std::string_view Raw(std::size_t count) {
    if (count > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  std::string_view Text() { return Raw(U32()); }
  std::size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

template <class... T>
absl::Status Bad(const T&... parts) {
  return InvalidArgument("BAD_BINARY: ", parts...);
}

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string DescriptorBytes(const std::vector<Descriptor>& descriptors) {
  Out out;
  for (const Descriptor& d : descriptors) {
    for (uint32_t v : d.dim) out.U32(v);
    for (int32_t v : d.src) out.U32(static_cast<uint32_t>(v));
    for (int32_t v : d.dst) out.U32(static_cast<uint32_t>(v));
    out.U32(d.flags);
  }
  return out.Take();
}

std::string SymbolBytes(const std::vector<Symbol>& symbols) {
  Out out;
  for (const Symbol& s : symbols) {
    out.Text(s.name);
    out.U32(static_cast<uint32_t>(s.kind) | static_cast<uint32_t>(s.type) << 8 |
            static_cast<uint32_t>(s.dims.size()) << 16);
    for (int64_t dim : s.dims) out.U64(static_cast<uint64_t>(dim));
    out.U64(s.offset);
  }
  return out.Take();
}

bool ReadDescriptors(In in, Program& program) {
  while (in.ok() && in.left() > 0) {
    Descriptor d;
    for (uint32_t& v : d.dim) v = in.U32();
    for (int32_t& v : d.src) v = static_cast<int32_t>(in.U32());
    for (int32_t& v : d.dst) v = static_cast<int32_t>(in.U32());
    d.flags = in.U32();
    program.descriptors.push_back(d);
  }
  return in.done();
}

bool ReadSymbols(In in, Program& program) {
  while (in.ok() && in.left() > 0) {
    Symbol s;
    s.name = in.Text();
    if (!IsSymbolName(s.name) || program.Find(s.name) != nullptr) return false;
    const uint32_t kinds = in.U32();
    s.kind = static_cast<SymbolKind>(kinds & 0xff);
    s.type = static_cast<Type>(kinds >> 8 & 0xff);
    if ((kinds & 0xff) > static_cast<uint32_t>(SymbolKind::kBss) ||
        (kinds >> 8 & 0xff) >= kTypes.size() || s.type == Type::kNone)
      return false;
    int64_t left = kMostBytes;
    for (uint32_t d = 0; d < kinds >> 16 && in.ok(); ++d) {
      s.dims.push_back(static_cast<int64_t>(in.U64()));
      if (s.dims.back() < 1 || s.dims.back() > left) return false;
      left /= s.dims.back();
    }
    const uint64_t place = program.dram_bytes();
    s.offset = in.U64();
    // Where the assembler would have put it: then nothing overlaps and nothing wraps.
    if (!in.ok() || s.offset != place || place > static_cast<uint64_t>(kMostBytes)) return false;
    program.symbols.push_back(std::move(s));
  }
  return in.done();
}

bool ReadSection(std::string_view name, In in, Program& program) {
  if (name == "config") {
    program.config_name = in.Text();
    program.config_overrides = in.Text();
  } else if (name == "text") {
    if (in.left() % 16 != 0) return false;
    while (in.left() > 0) {
      const uint64_t low = in.U64();
      program.text.push_back({low, in.U64()});
    }
  } else if (name == "desc") {
    return ReadDescriptors(in, program);
  } else if (name == "vprog") {
    while (in.ok() && in.left() > 0) {
      const uint32_t count = in.U32();
      In words(in.Raw(std::size_t{count} * 4));
      program.vectors.emplace_back();
      while (words.left() > 0) program.vectors.back().push_back(words.U32());
    }
  } else if (name == "args") {
    return ReadSymbols(in, program);
  } else if (name == "const") {
    const std::string_view raw = in.Raw(in.left());
    program.constants.resize(raw.size());
    if (!raw.empty()) std::memcpy(program.constants.data(), raw.data(), raw.size());
  } else if (name == "sem") {
    for (uint8_t& value : program.semaphores) value = static_cast<uint8_t>(in.U32());
  } else if (name == "debug") {
    while (in.ok() && in.left() > 0) {
      const uint32_t line = in.U32();
      program.debug.push_back({line, in.U32()});
    }
  } else if (name == "origins") {
    while (in.ok() && in.left() > 0) program.origins.emplace_back(in.Text());
  } else if (name == "meta") {
    program.meta = in.Raw(in.left());
  } else {
    return false;
  }
  return in.done();
}

absl::Status CheckSections(const Program& program) {
  if (program.entry >= program.text.size()) return Bad("the entry is not an instruction");
  if (!program.debug.empty() && program.debug.size() != program.text.size())
    return Bad("section debug does not fit section text");
  for (const DebugLine& line : program.debug) {
    if (line.origin >= program.origins.size())
      return Bad("section debug names an origin that does not exist");
  }
  int64_t constants = 0;
  for (const Symbol& s : program.symbols) {
    if (s.kind == SymbolKind::kConst) constants += s.bytes();
    if (constants > static_cast<int64_t>(program.constants.size())) break;
  }
  if (constants != static_cast<int64_t>(program.constants.size()))
    return Bad("section const does not fit its symbols");
  return absl::OkStatus();
}

}  // namespace

bool IsSymbolName(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() < 256 && letter(text[0]) &&
         std::all_of(
             text.begin(), text.end(),
             [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

int64_t Symbol::bytes() const {
  int64_t n = type == Type::kS4 ? 1 : TypeBytes(type);
  for (int64_t dim : dims) n *= dim;
  return type == Type::kS4 ? (n + 1) / 2 : n;
}

const Symbol* Program::Find(std::string_view name) const {
  for (const Symbol& s : symbols) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

uint64_t Program::dram_bytes() const {
  if (symbols.empty()) return 0;
  return RoundedToDramUnit(symbols.back().offset + static_cast<uint64_t>(symbols.back().bytes()));
}

void Program::Place(Symbol symbol) {
  symbol.offset = dram_bytes();
  symbols.push_back(std::move(symbol));
}

std::string ToFile(const Program& program) {
  std::vector<std::pair<std::string_view, std::string>> sections;
  auto add = [&sections](std::string_view name, std::string bytes) {
    if (!bytes.empty()) sections.emplace_back(name, std::move(bytes));
  };
  Out config, text, vectors, semaphores, debug, origins;
  config.Text(program.config_name);
  config.Text(program.config_overrides);
  add("config", config.Take());
  for (Word word : program.text) {
    text.U64(word.low);
    text.U64(word.high);
  }
  add("text", text.Take());
  add("desc", DescriptorBytes(program.descriptors));
  for (const auto& words : program.vectors) {
    vectors.U32(static_cast<uint32_t>(words.size()));
    for (uint32_t word : words) vectors.U32(word);
  }
  add("vprog", vectors.Take());
  add("args", SymbolBytes(program.symbols));
  add("const", std::string(reinterpret_cast<const char*>(program.constants.data()),
                           program.constants.size()));
  if (std::any_of(program.semaphores.begin(), program.semaphores.end(),
                  [](uint8_t v) { return v != 0; })) {
    for (uint8_t value : program.semaphores) semaphores.U32(value);
  }
  add("sem", semaphores.Take());
  for (const DebugLine& line : program.debug) {
    debug.U32(line.line);
    debug.U32(line.origin);
  }
  add("debug", debug.Take());
  for (std::size_t i = 1; i < program.origins.size(); ++i) origins.Text(program.origins[i]);
  add("origins", origins.Take());
  add("meta", program.meta);

  Out out;
  out.Raw(kMagic);
  out.U32(kVersion);
  out.U64(program.config_hash);
  out.U32(program.entry);
  out.U32(static_cast<uint32_t>(sections.size()));
  std::size_t at = kHeader + sections.size() * kTableEntry;
  std::size_t total = at;
  for (const auto& [name, bytes] : sections) total += bytes.size();
  out.U64(total);
  out.U32(0);  // the checksum of everything with this 0
  out.U32(0);
  for (const auto& [name, bytes] : sections) {
    std::string padded(name);
    padded.resize(8);
    out.Raw(padded);
    out.U32(static_cast<uint32_t>(at));
    out.U32(static_cast<uint32_t>(bytes.size()));
    at += bytes.size();
  }
  for (const auto& [name, bytes] : sections) out.Raw(bytes);
  const uint32_t crc = Crc(out.bytes());
  for (std::size_t i = 0; i < 4; ++i) out.bytes()[kCrcAt + i] = static_cast<char>(crc >> (8 * i));
  return out.Take();
}

absl::StatusOr<Program> FromFile(std::string_view bytes) {
  In in(bytes);
  if (in.Raw(4) != kMagic)
    return Bad("this is not a program of the NPU (it does not begin with NPUX)");
  if (const uint32_t version = in.U32(); version != kVersion)
    return Bad("version ", version, "; this machine reads ", kVersion);
  Program program;
  program.config_hash = in.U64();
  program.entry = in.U32();
  const uint32_t count = in.U32();
  const uint64_t total = in.U64();
  const uint32_t crc = in.U32();
  if (in.U32() != 0 || !in.ok()) return Bad("the header is damaged");
  if (total != bytes.size())
    return Bad("the file has ", bytes.size(), " bytes, its header says ", total);
  std::string zeroed(bytes);
  std::memset(zeroed.data() + kCrcAt, 0, 4);
  if (Crc(zeroed) != crc) return Bad("the checksum is wrong");
  if (std::size_t{count} * kTableEntry > in.left()) return Bad("the section table is damaged");
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view name = in.Raw(8);
    name = name.substr(0, std::min(name.find('\0'), name.size()));
    const uint32_t at = in.U32(), size = in.U32();
    if (at > bytes.size() || size > bytes.size() - at)
      return Bad("section ", name, " ends behind the file");
    if (!ReadSection(name, In(bytes.substr(at, size)), program))
      return Bad("section ", name, " is damaged");
  }
  LAZULI_RETURN_IF_ERROR(CheckSections(program));
  return program;
}

}  // namespace lazuli::npu
