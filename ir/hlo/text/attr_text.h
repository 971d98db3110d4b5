// How attributes are spelled in HLO text, for printer and parser: words of enums, windows,
// convolution labels, strings.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/hlo/attr_rows.h"
#include "ir/support/str.h"

namespace lazuli::hlo {

// Words of an enum, in the order of its values. An empty word is not printed.
template <class E>
std::span<const std::string_view> EnumWords();
template <>
std::span<const std::string_view> EnumWords<ComparisonDirection>();
template <>
std::span<const std::string_view> EnumWords<ComparisonType>();
template <>
std::span<const std::string_view> EnumWords<FusionKind>();
template <>
std::span<const std::string_view> EnumWords<RngAlgorithm>();
template <>
std::span<const std::string_view> EnumWords<RngDistribution>();
template <>
std::span<const std::string_view> EnumWords<FftType>();
template <>
std::span<const std::string_view> EnumWords<TransposeKind>();

template <class E>
std::string_view EnumText(E value) {
  return EnumWords<E>()[static_cast<std::size_t>(value)];
}
template <class E>
std::optional<E> ParseEnum(std::string_view word) {
  const auto words = EnumWords<E>();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!word.empty() && words[i] == word) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Values as text, by their types and forms.
void AppendValue(std::string& out, form::Plain, const Dims& dims);  // {1,2}
// {size=3x3 stride=2x2 pad=0_1x0_1}; members at their defaults are left out.
void AppendValue(std::string& out, form::Plain, const Window& window);
void AppendValue(std::string& out, form::Plain, const ConvDims& dims);  // b01f_01io->b01f
void AppendValue(std::string& out, form::Quoted, const std::string& text);
void AppendValue(std::string& out, form::Ranges, const Dims& starts, const Dims& limits,
                 const Dims& strides);
void AppendValue(std::string& out, form::Padding, const Dims& low, const Dims& high,
                 const Dims& interior);
// Numbers, and words of enums.
template <class Form, class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>)
void AppendValue(std::string& out, Form, T value) {
  if constexpr (std::is_enum_v<T>) {
    out += EnumText(value);
  } else if constexpr (std::is_same_v<Form, form::Single>) {
    AppendValue(out, form::Plain{}, Dims{value});
  } else {
    AppendTo(out, value);
  }
}
// What has a text of its own: groups, pairs, shapes.
template <class T>
  requires requires(const T& value) { ToString(value); }
void AppendValue(std::string& out, form::Plain, const T& value) {
  out += ToString(value);
}
inline void AppendValue(std::string& out, form::Plain, const Shape& shape) {
  shape.AppendTo(out, Shape::Layouts::kAll);
}
template <class T>
void AppendValue(std::string& out, form::Plain, const std::optional<T>& value) {
  AppendValue(out, form::Plain{}, *value);
}
void AppendValue(std::string& out, form::Domain, const ShardingPtr& entry, const ShardingPtr& exit);
// Text that modules keep as it is: between braces, or a word.
template <class Form>
void AppendValue(std::string& out, Form, const std::string& text) {
  out += Str("{", text, "}");
}
template <const auto& kWords, std::size_t kUnsaid>
void AppendValue(std::string& out, form::WordOf<kWords, kUnsaid>, const std::string& word) {
  out += word;
}

std::optional<ConvDims> ParseConvDims(std::string_view text);

// "text" with C escapes, and back (without the quotes).
void AppendQuoted(std::string& out, std::string_view text);
std::optional<std::string> Unescape(std::string_view text);
// As a quoted label of a graph in dot's language has it.
std::string EscapedLabel(std::string_view text);

// A position among the attributes behind an instruction or a module's name: XLA prints them in this
// order. Names that are not listed come first, being the opcode's own.
int InstructionAttrRank(std::string_view name);
// Whether any instruction may have it, so that it is no attribute of its opcode's family.
bool IsCommonAttribute(std::string_view name);
inline constexpr int kShardingRank = 2;
inline constexpr int kControlPredecessorsRank = 4;
inline constexpr int kMetadataRank = 7;

}  // namespace lazuli::hlo
