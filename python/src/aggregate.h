// The fields of a public options struct: names, values and defaults, from the struct alone.
//
// A struct like optim::SGDOptions is the only place that lists its options; keyword arguments in
// Python derive from it. The name of a field is read from how the compiler writes a pointer to it.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lazuli::python {

namespace internal {

// Storage that is never made: only addresses of its fields are taken.
template <class T>
union Unmade {
  T value;
  char nothing;
  constexpr Unmade() : nothing(0) {}
  constexpr ~Unmade() {}
};
template <class T>
inline constexpr Unmade<T> kUnmade{};

// Converts to any field. Not to the struct itself, which a copy would be.
template <class Struct>
struct AnyField {
  template <class T>
    requires(!std::is_same_v<T, Struct>)
  operator T() const;  // NOLINT: never defined, used unevaluated
};

template <class T, std::size_t... I>
constexpr bool MadeOf(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), std::declval<AnyField<T>>())...}; };
}
template <class T, std::size_t kMost = 16>
constexpr std::size_t CountFields() {
  if constexpr (MadeOf<T>(std::make_index_sequence<kMost>()))
    return kMost;
  else if constexpr (kMost == 0)
    return 0;
  else
    return CountFields<T, kMost - 1>();
}

template <class P>
struct Pointer {
  P to;
};
template <auto kPointer>
consteval std::string_view PointerText() {
  return __PRETTY_FUNCTION__;
}
// "... kUnmade<S>.Unmade<S>::value.S::lr)}; ..." of GCC, "... kUnmade.value.lr}]" of Clang.
consteval std::string_view FieldName(std::string_view text) {
  text.remove_prefix(text.rfind("value.") + 6);
  text = text.substr(0, text.find_first_of(")}"));
  const std::size_t scope = text.rfind(':');
  return scope == std::string_view::npos ? text : text.substr(scope + 1);
}

}  // namespace internal

// An options struct: data members with defaults and nothing else.
template <class T>
concept Aggregate =
    std::is_class_v<T> && std::is_aggregate_v<T> && std::is_default_constructible_v<T>;

template <Aggregate T>
inline constexpr std::size_t kFieldCount = internal::CountFields<T>();

// References to the fields, in order.
template <class T>
constexpr auto Fields(T& object) {
  constexpr std::size_t n = kFieldCount<std::remove_const_t<T>>;
  static_assert(n >= 1 && n <= 13, "add a line below");
  // clang-format off
  if constexpr (n == 1) { auto& [a] = object; return std::tie(a); }
  if constexpr (n == 2) { auto& [a, b] = object; return std::tie(a, b); }
  if constexpr (n == 3) { auto& [a, b, c] = object; return std::tie(a, b, c); }
  if constexpr (n == 4) { auto& [a, b, c, d] = object; return std::tie(a, b, c, d); }
  if constexpr (n == 5) { auto& [a, b, c, d, e] = object; return std::tie(a, b, c, d, e); }
  if constexpr (n == 6) { auto& [a, b, c, d, e, f] = object; return std::tie(a, b, c, d, e, f); }
  if constexpr (n == 7) { auto& [a, b, c, d, e, f, g] = object; return std::tie(a, b, c, d, e, f, g); }
  if constexpr (n == 8) { auto& [a, b, c, d, e, f, g, h] = object; return std::tie(a, b, c, d, e, f, g, h); }
  if constexpr (n == 9) { auto& [a, b, c, d, e, f, g, h, i] = object; return std::tie(a, b, c, d, e, f, g, h, i); }
  if constexpr (n == 10) { auto& [a, b, c, d, e, f, g, h, i, j] = object; return std::tie(a, b, c, d, e, f, g, h, i, j); }
  if constexpr (n == 11) { auto& [a, b, c, d, e, f, g, h, i, j, k] = object; return std::tie(a, b, c, d, e, f, g, h, i, j, k); }
  if constexpr (n == 12) { auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l); }
  if constexpr (n == 13) { auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = object; return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m); }
  // clang-format on
}

namespace internal {
template <class T, std::size_t I>
consteval auto FieldPointer() {
  return Pointer{&std::get<I>(Fields(kUnmade<T>.value))};
}
}  // namespace internal

template <Aggregate T>
inline constexpr auto kFieldNames = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<std::string_view, sizeof...(I)>{
      internal::FieldName(internal::PointerText<internal::FieldPointer<T, I>()>())...};
}(std::make_index_sequence<kFieldCount<T>>());

template <Aggregate T, std::size_t I>
using FieldType =
    std::remove_cvref_t<std::tuple_element_t<I, decltype(Fields(std::declval<T&>()))>>;

}  // namespace lazuli::python
