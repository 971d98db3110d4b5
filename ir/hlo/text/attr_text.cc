#include "ir/hlo/text/attr_text.h"

#include <algorithm>

#include "ir/support/str.h"

namespace lazuli::hlo {

#define LAZULI_ENUM_WORDS(type, ...)                            \
  template <>                                                   \
  std::span<const std::string_view> EnumWords<type>() {         \
    static constexpr std::string_view kWords[] = {__VA_ARGS__}; \
    return kWords;                                              \
  }
LAZULI_ENUM_WORDS(ComparisonDirection, "EQ", "NE", "LT", "LE", "GT", "GE")
LAZULI_ENUM_WORDS(ComparisonType, "", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
LAZULI_ENUM_WORDS(FusionKind, "kLoop", "kInput", "kOutput", "kCustom")
LAZULI_ENUM_WORDS(RngAlgorithm, "rng_default", "rng_three_fry", "rng_philox")
LAZULI_ENUM_WORDS(RngDistribution, "rng_uniform", "rng_normal")
LAZULI_ENUM_WORDS(FftType, "FFT", "IFFT", "RFFT", "IRFFT")
LAZULI_ENUM_WORDS(TransposeKind, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
#undef LAZULI_ENUM_WORDS

namespace {

// name=1x2, unless every dimension has the default.
template <class Get>
void AppendWindowMember(std::string& out, const Window& window, std::string_view name,
                        int64_t unless, Get&& get) {
  bool all = true;
  for (const WindowDim& d : window) all = all && get(d) == unless;
  if (all) return;
  if (!out.empty() && out.back() != '{') out += ' ';
  out += name;
  for (std::size_t i = 0; i < window.size(); ++i) {
    out += i == 0 ? '=' : 'x';
    AppendTo(out, get(window[i]));
  }
}

void AppendLabels(std::string& out, int64_t a, char a_char, int64_t b, char b_char,
                  const Dims& spatial) {
  const std::size_t first = out.size();
  out.append(spatial.size() + 2, '?');
  auto put = [&](int64_t at, char c) {
    if (at >= 0 && at < static_cast<int64_t>(spatial.size()) + 2)
      out[first + static_cast<std::size_t>(at)] = c;
  };
  put(a, a_char);
  put(b, b_char);
  for (std::size_t i = 0; i < spatial.size(); ++i) put(spatial[i], static_cast<char>('0' + i));
}

// The positions of a, b and the digits in `text`, each there exactly once.
bool ParseLabels(std::string_view text, char a_char, int64_t* a, char b_char, int64_t* b,
                 Dims* spatial) {
  if (text.size() < 2 || text.size() > 12) return false;
  *a = *b = -1;
  spatial->assign(text.size() - 2, -1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    int64_t* slot = nullptr;
    if (text[i] == a_char) slot = a;
    if (text[i] == b_char) slot = b;
    const auto digit = static_cast<std::size_t>(text[i] - '0');
    if (text[i] >= '0' && digit < spatial->size()) slot = &(*spatial)[digit];
    if (slot == nullptr || *slot != -1) return false;
    *slot = static_cast<int64_t>(i);
  }
  return true;
}

}  // namespace

void AppendValue(std::string& out, form::Plain, const Dims& dims) {
  out += '{';
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ',';
    AppendTo(out, dims[i]);
  }
  out += '}';
}

void AppendValue(std::string& out, form::Quoted, const std::string& text) {
  AppendQuoted(out, text);
}

void AppendValue(std::string& out, form::Domain, const ShardingPtr& entry,
                 const ShardingPtr& exit) {
  out += "{kind=\"sharding\"";
  if (entry) out += Str(", entry=", ToString(*entry));
  if (exit) out += Str(", exit=", ToString(*exit));
  out += '}';
}

void AppendValue(std::string& out, form::Ranges, const Dims& starts, const Dims& limits,
                 const Dims& strides) {
  const bool strided =
      std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s != 1; });
  out += '{';
  for (std::size_t d = 0; d < starts.size(); ++d) {
    out += d > 0 ? ", [" : "[";
    AppendTo(out, starts[d]);
    out += ':';
    AppendTo(out, limits[d]);
    if (strided) out += Str(":", strides[d]);
    out += ']';
  }
  out += '}';
}

void AppendValue(std::string& out, form::Padding, const Dims& low, const Dims& high,
                 const Dims& interior) {
  const bool inside =
      std::any_of(interior.begin(), interior.end(), [](int64_t i) { return i != 0; });
  for (std::size_t d = 0; d < low.size(); ++d) {
    if (d > 0) out += 'x';
    out += Str(low[d], "_", high[d]);
    if (inside) out += Str("_", interior[d]);
  }
}

void AppendValue(std::string& out, form::Plain, const Window& window) {
  out += '{';
  if (window.empty()) return void(out += '}');
  out += "size=";
  for (std::size_t i = 0; i < window.size(); ++i) {
    if (i > 0) out += 'x';
    AppendTo(out, window[i].size);
  }
  AppendWindowMember(out, window, "stride", 1, [](const WindowDim& d) { return d.stride; });
  if (std::any_of(window.begin(), window.end(),
                  [](const WindowDim& d) { return d.pad_low != 0 || d.pad_high != 0; })) {
    for (std::size_t i = 0; i < window.size(); ++i) {
      out += Str(i == 0 ? " pad=" : "x", window[i].pad_low, "_", window[i].pad_high);
    }
  }
  AppendWindowMember(out, window, "lhs_dilate", 1,
                     [](const WindowDim& d) { return d.base_dilation; });
  AppendWindowMember(out, window, "rhs_dilate", 1,
                     [](const WindowDim& d) { return d.window_dilation; });
  AppendWindowMember(out, window, "rhs_reversal", 0,
                     [](const WindowDim& d) { return int64_t{d.reversal}; });
  out += '}';
}

void AppendValue(std::string& out, form::Plain, const ConvDims& dims) {
  AppendLabels(out, dims.input_batch, 'b', dims.input_feature, 'f', dims.input_spatial);
  out += '_';
  AppendLabels(out, dims.kernel_input_feature, 'i', dims.kernel_output_feature, 'o',
               dims.kernel_spatial);
  out += "->";
  AppendLabels(out, dims.output_batch, 'b', dims.output_feature, 'f', dims.output_spatial);
}

std::optional<ConvDims> ParseConvDims(std::string_view text) {
  const std::size_t bar = text.find('_'), arrow = text.find("->");
  if (bar == std::string_view::npos || arrow == std::string_view::npos || arrow < bar)
    return std::nullopt;
  ConvDims dims;
  const bool fits =
      ParseLabels(text.substr(0, bar), 'b', &dims.input_batch, 'f', &dims.input_feature,
                  &dims.input_spatial) &&
      ParseLabels(text.substr(bar + 1, arrow - bar - 1), 'i', &dims.kernel_input_feature, 'o',
                  &dims.kernel_output_feature, &dims.kernel_spatial) &&
      ParseLabels(text.substr(arrow + 2), 'b', &dims.output_batch, 'f', &dims.output_feature,
                  &dims.output_spatial) &&
      dims.input_spatial.size() == dims.kernel_spatial.size() &&
      dims.input_spatial.size() == dims.output_spatial.size();
  if (!fits) return std::nullopt;
  return dims;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\'':
        out += "\\'";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
          out += c;
        } else {  // three octal digits
          const auto byte = static_cast<unsigned char>(c);
          out += {'\\', static_cast<char>('0' + (byte >> 6)),
                  static_cast<char>('0' + ((byte >> 3) & 7)), static_cast<char>('0' + (byte & 7))};
        }
    }
  }
  out += '"';
}

namespace {

// Reads an octal or hexadecimal escape at text[i] (behind the backslash); leaves i at its last
// digit.
std::optional<char> NumericEscape(std::string_view text, std::size_t& i) {
  const bool hex = text[i] == 'x' || text[i] == 'X';
  int value = 0, digits = 0;
  std::size_t at = hex ? i + 1 : i;
  for (; at < text.size() && digits < (hex ? 2 : 3); ++at, ++digits) {
    const char c = text[at];
    int digit = -1;
    if (c >= '0' && c <= (hex ? '9' : '7')) digit = c - '0';
    if (hex && c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (hex && c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (digit < 0) break;
    value = value * (hex ? 16 : 8) + digit;
  }
  if (digits == 0 || value > 255) return std::nullopt;
  i = at - 1;
  return static_cast<char>(value);
}

}  // namespace

std::string EscapedLabel(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    constexpr std::string_view kLetters = "abfnrtv\\?'\"", kValues = "\a\b\f\n\r\t\v\\?'\"";
    if (const std::size_t at = kLetters.find(text[i]); at != std::string_view::npos) {
      out += kValues[at];
      continue;
    }
    const std::optional<char> c = NumericEscape(text, i);
    if (!c) return std::nullopt;
    out += *c;
  }
  return out;
}

int InstructionAttrRank(std::string_view name) {
  constexpr std::pair<std::string_view, int> kRanks[] = {{"parameter_replication", 1},
                                                         {"sharding", kShardingRank},
                                                         {"frontend_attributes", 3},
                                                         {"statistics", 5},
                                                         {"origin", 6},
                                                         {"backend_config", 8}};
  for (const auto& [known, rank] : kRanks) {
    if (name == known) return rank;
  }
  return 0;
}

bool IsCommonAttribute(std::string_view name) {
  return InstructionAttrRank(name) > 0 || name == "result_accuracy";
}

}  // namespace lazuli::hlo
