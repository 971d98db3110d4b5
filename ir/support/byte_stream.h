// ByteWriter and ByteReader: values as bytes and back.
//
// They take numbers, enums, text, lists, optional values, and aggregates that list their members
// (LAZULI_ATTRS), to any depth. A class made of them adds what it knows itself by members WriteValue
// and ReadValue for further types.
//
//   ByteWriter out;                        ByteReader in(out.bytes());
//   Write(out, spec);                      Read(in, spec);  // in.ok()
//
// The bytes are for a process of the same build on the same machine: numbers are as memory has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/support/attrs.h"
#include "ir/support/namespaces.h"

namespace lazuli::ir {

class ByteWriter {
 public:
  void Append(const void* data, std::size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads past the end give zeros, and ok() is false from then on.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  void Fetch(void* data, std::size_t bytes) {
    const std::string_view taken = Take(bytes);
    if (ok_ && bytes > 0) std::memcpy(data, taken.data(), bytes);
  }
  // The next bytes, where they lie; empty if there are fewer.
  std::string_view Take(std::size_t bytes) {
    if (bytes > left_.size()) Fail();
    if (!ok_) return {};
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool AtEnd() const { return left_.empty(); }
  std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

namespace internal {

template <class T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
// A list that grows.
template <class T>
concept List = requires(T list) {
  list.begin();
  list.emplace_back();
};
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t n>
inline constexpr bool kIsArray<std::array<T, n>> = true;

}  // namespace internal

template <class Writer, class T>
void Write(Writer& out, const T& value) {
  if constexpr (requires { out.WriteValue(value); }) {
    out.WriteValue(value);
  } else if constexpr (internal::kIsNumber<T>) {
    out.Append(&value, sizeof value);
  } else if constexpr (HasAttrs<T>) {
    static_assert(!std::is_aggregate_v<T> || AllFieldsListed<T>);
    value.VisitAttrs([&](std::string_view, const auto& member) { Write(out, member); });
  } else if constexpr (std::is_same_v<T, std::string>) {
    Write(out, uint64_t{value.size()});
    out.Append(value.data(), value.size());
  } else if constexpr (internal::kIsOptional<T>) {
    Write(out, value.has_value());
    if (value) Write(out, *value);
  } else if constexpr (internal::kIsArray<T>) {
    for (const auto& element : value) Write(out, element);
  } else {
    static_assert(internal::List<T>, "WriteValue of the writer must take this type");
    Write(out, uint64_t{value.size()});
    for (const auto& element : value) Write<Writer, typename T::value_type>(out, element);
  }
}

template <class Reader, class T>
void Read(Reader& in, T& value) {
  if constexpr (requires { in.ReadValue(value); }) {
    in.ReadValue(value);
  } else if constexpr (internal::kIsNumber<T>) {
    in.Fetch(&value, sizeof value);
  } else if constexpr (HasAttrs<T>) {
    value.VisitAttrs([&](std::string_view, auto& member) { Read(in, member); });
  } else if constexpr (std::is_same_v<T, std::string>) {
    uint64_t size = 0;
    Read(in, size);
    value = in.Take(size);
  } else if constexpr (internal::kIsOptional<T>) {
    bool has_value = false;
    Read(in, has_value);
    value.reset();
    if (has_value) Read(in, value.emplace());
  } else if constexpr (internal::kIsArray<T>) {
    for (auto& element : value) Read(in, element);
  } else {
    uint64_t size = 0;
    Read(in, size);
    value.clear();
    for (uint64_t i = 0; i < size && in.ok(); ++i) {
      typename T::value_type element{};  // of vector<bool>, too
      Read(in, element);
      value.push_back(std::move(element));
    }
  }
}

}  // namespace lazuli::ir
