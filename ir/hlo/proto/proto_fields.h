// Rows that read and write a protobuf message: a function names each field once, with its number
// and the member that holds it, and runs with a FieldReader or a FieldWriter.
//
//   template <class V>
//   void Rows(V& v, typename V::template Ref<WindowDim> d) {
//     v.Int(1, d.size);
//     v.Int(2, d.stride);
//   }
//
// A reader is made for each field that comes along, and the row with its number takes it; fields
// without a row are skipped. What is malformed is noted (the first counts) and ends the reading;
// protozero itself throws where bytes are cut off.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "ir/support/str.h"
#include "ir/types/shape.h"

namespace lazuli::hlo::internal {

using Tag = uint32_t;

// The first mistake of a text of bytes.
struct ProtoError {
  std::string message;
  template <class... T>
  void Note(const T&... parts) {
    if (message.empty()) message = Str(parts...);
  }
  bool ok() const { return message.empty(); }
};

class FieldReader {
 public:
  template <class T>
  using Ref = T&;
  FieldReader(protozero::pbf_reader& in, ProtoError& error) : in_(in), error_(error) {}
  // Calls rows(reader) for every field of a message.
  template <class F>
  static void ReadAll(protozero::pbf_reader in, ProtoError& error, F&& rows) {
    while (error.ok() && in.next()) {
      FieldReader field(in, error);
      rows(field);
      if (!field.taken_) in.skip();
    }
  }

  bool taken() const { return taken_; }
  ProtoError& error() { return error_; }

  // Whether this is the field, in this encoding: then the caller reads it from in().
  bool At(Tag tag, protozero::pbf_wire_type type) {
    if (taken_ || in_.tag() != tag) return false;
    if (in_.wire_type() != type) return WrongType(type);
    return taken_ = true;
  }
  bool AtMessage(Tag tag) { return At(tag, protozero::pbf_wire_type::length_delimited); }
  bool AtAny(Tag tag) { return !taken_ && in_.tag() == tag && (taken_ = true); }
  protozero::pbf_reader& in() { return in_; }

  void Int(Tag tag, int64_t& value) {
    if (At(tag, protozero::pbf_wire_type::varint)) value = in_.get_int64();
  }
  void Bool(Tag tag, bool& value) {
    if (At(tag, protozero::pbf_wire_type::varint)) value = in_.get_uint64() != 0;
  }
  void Float(Tag tag, float& value) {
    if (At(tag, protozero::pbf_wire_type::fixed32)) value = in_.get_float();
  }
  void Double(Tag tag, double& value) {
    if (At(tag, protozero::pbf_wire_type::fixed64)) value = in_.get_double();
  }
  void Text(Tag tag, std::string& value) {
    if (AtMessage(tag)) value = in_.get_string();
  }
  // A repeated integer, packed or not.
  void Ints(Tag tag, Dims& values) {
    ForEachInt(tag, [&](int64_t value) { values.push_back(value); });
  }
  // One that has a single element.
  void Only(Tag tag, int64_t& value) {
    ForEachInt(tag, [&](int64_t v) { value = v; });
  }
  template <class F>
  void ForEachInt(Tag tag, F&& f) {
    if (taken_ || in_.tag() != tag) return;
    if (in_.wire_type() == protozero::pbf_wire_type::varint) {
      taken_ = true;
      f(in_.get_int64());
    } else if (AtMessage(tag)) {
      for (int64_t value : in_.get_packed_int64()) f(value);
    }
  }
  template <class F>
  void Message(Tag tag, F&& rows) {
    if (AtMessage(tag)) ReadAll(in_.get_message(), error_, rows);
  }
  // A repeated message; rows(reader, element).
  template <class List, class F>
  void Messages(Tag tag, List& list, F&& rows) {
    if (!AtMessage(tag)) return;
    auto& element = list.emplace_back();
    ReadAll(in_.get_message(), error_, [&](FieldReader& v) { rows(v, element); });
  }
  // A repeated message of integers 1, 2, ..., one list for each of them.
  template <std::size_t n>
  void Columns(Tag tag, std::array<Dims*, n> columns) {
    if (!AtMessage(tag)) return;
    for (Dims* column : columns) column->push_back(0);
    ReadAll(in_.get_message(), error_, [&](FieldReader& v) {
      for (std::size_t i = 0; i < n; ++i) v.Int(static_cast<Tag>(i + 1), columns[i]->back());
    });
  }
  // An enum by its number, which is `first` for the first value.
  template <class E>
  void Enum(Tag tag, E& value, int64_t count, int64_t first = 0) {
    int64_t number = first;
    const bool was = taken_;
    Int(tag, number);
    if (taken_ == was) return;
    if (number < first || number >= first + count)
      return error_.Note("field ", tag, ": there is no value ", number);
    value = static_cast<E>(number - first);
  }
  // A string that is one of these words.
  template <class E>
  void Word(Tag tag, E& value, std::span<const std::string_view> words) {
    if (!AtMessage(tag)) return;
    const std::string word = in_.get_string();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == word) return void(value = static_cast<E>(i));
    }
    error_.Note("field ", tag, ": there is no value '", word, "'");
  }

 private:
  bool WrongType(protozero::pbf_wire_type expected);  // notes it; false

  protozero::pbf_reader& in_;
  ProtoError& error_;
  bool taken_ = false;
};

class FieldWriter {
 public:
  template <class T>
  using Ref = const T&;
  explicit FieldWriter(protozero::pbf_writer& out) : out_(out) {}
  protozero::pbf_writer& out() { return out_; }

  void Int(Tag tag, int64_t value) { out_.add_int64(tag, value); }
  void Bool(Tag tag, bool value) {
    if (value) out_.add_bool(tag, value);
  }
  void Float(Tag tag, float value) { out_.add_float(tag, value); }
  void Double(Tag tag, double value) { out_.add_double(tag, value); }
  void Text(Tag tag, const std::string& value) {
    if (!value.empty()) out_.add_bytes(tag, value);
  }
  void Ints(Tag tag, const Dims& values) {
    out_.add_packed_int64(tag, values.begin(), values.end());
  }
  void Only(Tag tag, int64_t value) { Ints(tag, {value}); }
  template <class F>
  void Message(Tag tag, F&& rows) {
    protozero::pbf_writer message(out_, tag);
    FieldWriter v(message);
    rows(v);
  }
  template <class List, class F>
  void Messages(Tag tag, const List& list, F&& rows) {
    for (const auto& element : list) {
      std::string bytes;  // an element without fields is one, too; a nested writer would drop it
      protozero::pbf_writer message(bytes);
      FieldWriter v(message);
      rows(v, element);
      out_.add_message(tag, bytes);
    }
  }
  template <std::size_t n>
  void Columns(Tag tag, std::array<const Dims*, n> columns) {
    for (std::size_t row = 0; row < columns[0]->size(); ++row) {
      Message(tag, [&](FieldWriter& v) {
        for (std::size_t i = 0; i < n; ++i) v.Int(static_cast<Tag>(i + 1), (*columns[i])[row]);
      });
    }
  }
  template <class E>
  void Enum(Tag tag, E value, int64_t, int64_t first = 0) {
    Int(tag, static_cast<int64_t>(value) + first);
  }
  template <class E>
  void Word(Tag tag, E value, std::span<const std::string_view> words) {
    Text(tag, std::string(words[static_cast<std::size_t>(value)]));
  }

 private:
  protozero::pbf_writer& out_;
};

}  // namespace lazuli::hlo::internal
