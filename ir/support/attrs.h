// Reflection over an aggregate's data members, listed once: LAZULI_ATTRS(dim, keepdim).
//
// From the list derive printing, equality, cache keys and (for ops) Python signatures.
// FieldCount<T>() counts the members independently, so that a static_assert at the point of use
// catches a member that was not listed.
//
//   struct Transpose { std::vector<int64_t> permutation; LAZULI_ATTRS(permutation); };
//   static_assert(AllFieldsListed<Transpose>);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/support/namespaces.h"

// A recursive FOR_EACH built on __VA_OPT__; good for 64 members.
#define LAZULI_PARENS ()
#define LAZULI_EXPAND(...) \
  LAZULI_EXPAND3(LAZULI_EXPAND3(LAZULI_EXPAND3(LAZULI_EXPAND3(__VA_ARGS__))))
#define LAZULI_EXPAND3(...) \
  LAZULI_EXPAND2(LAZULI_EXPAND2(LAZULI_EXPAND2(LAZULI_EXPAND2(__VA_ARGS__))))
#define LAZULI_EXPAND2(...) \
  LAZULI_EXPAND1(LAZULI_EXPAND1(LAZULI_EXPAND1(LAZULI_EXPAND1(__VA_ARGS__))))
#define LAZULI_EXPAND1(...) __VA_ARGS__
#define LAZULI_FOR_EACH(macro, ...) __VA_OPT__(LAZULI_EXPAND(LAZULI_FOR_EACH_(macro, __VA_ARGS__)))
#define LAZULI_FOR_EACH_(macro, first, ...) \
  macro(first) __VA_OPT__(LAZULI_FOR_EACH_AGAIN LAZULI_PARENS(macro, __VA_ARGS__))
#define LAZULI_FOR_EACH_AGAIN() LAZULI_FOR_EACH_
#define LAZULI_VISIT_MEMBER(member) visit(std::string_view(#member), member);
#define LAZULI_COUNT_MEMBER(member) +1

#define LAZULI_ATTRS(...)                                   \
  template <class Visitor>                                  \
  void VisitAttrs([[maybe_unused]] Visitor&& visit) const { \
    LAZULI_FOR_EACH(LAZULI_VISIT_MEMBER, __VA_ARGS__)       \
  }                                                         \
  template <class Visitor>                                  \
  void VisitAttrs([[maybe_unused]] Visitor&& visit) {       \
    LAZULI_FOR_EACH(LAZULI_VISIT_MEMBER, __VA_ARGS__)       \
  }                                                         \
  static constexpr std::size_t kAttrCount = 0 LAZULI_FOR_EACH(LAZULI_COUNT_MEMBER, __VA_ARGS__)

namespace lazuli::ir {

namespace internal {
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT: never defined, used unevaluated
};
}  // namespace internal

// Number of data members of aggregate T.
template <class T, class... A>
constexpr std::size_t FieldCount() {
  if constexpr (requires { T{A{}..., internal::AnyField{}}; }) {
    return FieldCount<T, A..., internal::AnyField>();
  } else {
    return sizeof...(A);
  }
}

template <class T>
inline constexpr bool AllFieldsListed = FieldCount<T>() == T::kAttrCount;

template <class T>
concept HasAttrs = requires { T::kAttrCount; };

}  // namespace lazuli::ir
