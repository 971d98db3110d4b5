// The canonical form of a graph: 32-bit words that are equal exactly when two graphs compile to the
// same program.
//
// Operands are positions in the post-order, leaves are parameter slots in the order of first visit;
// buffers, numbers, source lines and names are not part of it. A hash of the words finds a cache
// entry, comparing the words decides.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/support/attrs.h"
#include "ir/support/hash.h"
#include "ir/types/shape.h"

namespace lazuli::ir {

// Tells types apart in a key: a hash of the type's name, which is the same in every process.
template <class T>
constexpr uint64_t StableTypeId() {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : std::string_view(__PRETTY_FUNCTION__))
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class KeyWriter {
 public:
  void Clear() { words_.clear(); }
  const std::vector<uint32_t>& words() const { return words_; }
  uint64_t Hash() const { return HashBytes(words_.data(), words_.size() * sizeof(uint32_t)); }

  void Word(uint32_t v) { words_.push_back(v); }
  void Long(uint64_t v) {
    Word(static_cast<uint32_t>(v));
    Word(static_cast<uint32_t>(v >> 32));
  }
  void Text(std::string_view text);
  void Append(const Shape& shape);

  // Any attribute type of an op. Lengths precede elements, presence precedes values, so no two
  // differ only in where one attribute ends.
  template <class T>
  void Append(const T& v) {
    if constexpr (std::is_enum_v<T>) {
      Word(static_cast<uint32_t>(v));
    } else if constexpr (std::is_same_v<T, double>) {
      Long(std::bit_cast<uint64_t>(v));
    } else if constexpr (std::is_same_v<T, float>) {
      Word(std::bit_cast<uint32_t>(v));
    } else if constexpr (std::is_integral_v<T>) {
      if constexpr (sizeof(T) <= 4)
        Word(static_cast<uint32_t>(v));
      else
        Long(static_cast<uint64_t>(v));
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      Text(v);
    } else if constexpr (HasAttrs<T>) {
      v.VisitAttrs([this](std::string_view, const auto& member) { Append(member); });
    } else if constexpr (requires { v.has_value(); }) {
      Word(v.has_value() ? 1 : 0);
      if (v.has_value()) Append(*v);
    } else if constexpr (requires {
                           v.begin();
                           v.end();
                           v.size();
                         }) {
      Word(static_cast<uint32_t>(v.size()));
      for (const auto& e : v) Append(e);
    } else {
      static_assert(!sizeof(T), "an attribute of this type has no canonical form");
    }
  }

 private:
  std::vector<uint32_t> words_;
};

}  // namespace lazuli::ir
