// Archives and files in LibTorch's words; all are in the safetensors format.
//
//   torch::save(net, "net.pt"), torch::load(net, "net.pt")
//   torch::serialize::OutputArchive archive;
//   net->save(archive), archive.write("epoch", torch::IValue(3)), archive.save_to("net.pt");
//
// What a file holds are tensors and texts by name; those of an archive in another one have the
// name that it is written under before theirs: "model.fc.weight".
#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lazuli/device.h"
#include "lazuli/serialize.h"
#include "lazuli/state_dict.h"
#include "lazuli/tensor.h"

namespace lazuli::torch_names {

// A number, a truth or a text that an archive keeps.
class LAZULI_API IValue {
 public:
  IValue() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  IValue(T v) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::is_same_v<T, bool>)
      value_ = v;
    else if constexpr (std::is_integral_v<T>)
      value_ = static_cast<std::int64_t>(v);
    else
      value_ = static_cast<double>(v);
  }
  IValue(std::string v) : value_(std::move(v)) {}    // NOLINT(google-explicit-constructor)
  IValue(const char* v) : IValue(std::string(v)) {}  // NOLINT(google-explicit-constructor)
  bool isNone() const { return std::holds_alternative<std::monostate>(value_); }
  bool isInt() const { return std::holds_alternative<std::int64_t>(value_); }
  bool isDouble() const { return std::holds_alternative<double>(value_); }
  bool isBool() const { return std::holds_alternative<bool>(value_); }
  bool isString() const { return std::holds_alternative<std::string>(value_); }
  // Each throws Error(kInvalidArgument) if it is of another kind.
  std::int64_t toInt() const { return Get<std::int64_t>("an int"); }
  double toDouble() const { return Get<double>("a double"); }
  bool toBool() const { return Get<bool>("a bool"); }
  const std::string& toStringRef() const { return Get<std::string>("a string"); }

  // "int 3": what a file has of it, exactly.
  std::string Text() const;
  static std::optional<IValue> Parse(std::string_view text);

 private:
  template <class T>
  const T& Get(const char* kind) const {
    if (const T* const value = std::get_if<T>(&value_)) return *value;
    throw Error(ErrorCode::kInvalidArgument, "IValue: it is not " + std::string(kind));
  }
  std::variant<std::monostate, std::int64_t, double, bool, std::string> value_;
};

namespace serialize {

class LAZULI_API OutputArchive {
 public:
  OutputArchive() = default;
  explicit OutputArchive(StateDict state) : state_(std::move(state)) {}
  // Each throws Error(kInvalidArgument) for a name that is taken.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false, LAZULI_LOC);
  void write(const std::string& key, const IValue& value, LAZULI_LOC);
  void write(const std::string& key, const OutputArchive& nested, LAZULI_LOC);
  // All of a state beside what there is.
  void write(const StateDict& state, LAZULI_LOC);
  void save_to(const std::string& path, LAZULI_LOC) const { save_safetensors(state_, path, loc); }
  void save_to(std::ostream& stream, LAZULI_LOC) const { save_safetensors(state_, stream, loc); }
  const StateDict& state() const { return state_; }

 private:
  void CheckFree(const std::string& key, SourceLocation loc) const;
  StateDict state_;
};

class LAZULI_API InputArchive {
 public:
  InputArchive() = default;
  explicit InputArchive(StateDict state) : state_(std::move(state)) {}
  void load_from(const std::string& path, const std::optional<Device>& device = std::nullopt,
                 LAZULI_LOC) {
    state_ = load_safetensors(path, device.value_or(Device()), loc);
  }
  void load_from(std::istream& stream, const std::optional<Device>& device = std::nullopt,
                 LAZULI_LOC) {
    state_ = load_safetensors(stream, device.value_or(Device()), loc);
  }
  // Whether there is such a one, which it reads then. A tensor that is defined keeps its place: it
  // takes the elements, which must fit.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false, LAZULI_LOC) const;
  bool try_read(const std::string& key, IValue& value, LAZULI_LOC) const;
  bool try_read(const std::string& key, InputArchive& nested, LAZULI_LOC) const;
  // The same; throws Error(kNotFound) if there is none.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false, LAZULI_LOC) const;
  void read(const std::string& key, IValue& value, LAZULI_LOC) const;
  void read(const std::string& key, InputArchive& nested, LAZULI_LOC) const;
  // Of what is in it, and of the archives in it.
  std::vector<std::string> keys() const;
  const StateDict& state() const { return state_; }

 private:
  void Require(bool found, const std::string& key, SourceLocation loc) const;
  StateDict state_;
};

}  // namespace serialize

// --- files. Of what can be saved: its state, and how it becomes that of a state from `source`.
template <class T>
struct Saving;
template <>
struct LAZULI_API Saving<Tensor> {
  static StateDict State(const Tensor& tensor);
  static void Set(Tensor& tensor, const StateDict& state, const std::string& source,
                  SourceLocation loc);
};
template <>
struct LAZULI_API Saving<std::vector<Tensor>> {
  static StateDict State(const std::vector<Tensor>& tensors);
  static void Set(std::vector<Tensor>& tensors, const StateDict& state, const std::string& source,
                  SourceLocation loc);
};
template <class T>
concept Saved = requires(const T& value) { Saving<T>::State(value); };

template <Saved T>
void save(const T& value, const std::string& path, LAZULI_LOC) {
  save_safetensors(Saving<T>::State(value), path, loc);
}
template <Saved T>
void save(const T& value, std::ostream& stream, LAZULI_LOC) {
  save_safetensors(Saving<T>::State(value), stream, loc);
}
inline void save(const std::vector<Tensor>& tensors, const std::string& path, LAZULI_LOC) {
  save_safetensors(Saving<std::vector<Tensor>>::State(tensors), path, loc);
}
template <Saved T>
void load(T& value, const std::string& path, const std::optional<Device>& device = std::nullopt,
          LAZULI_LOC) {
  Saving<T>::Set(value, load_safetensors(path, device.value_or(Device()), loc), path, loc);
}
template <Saved T>
void load(T& value, std::istream& stream, const std::optional<Device>& device = std::nullopt,
          LAZULI_LOC) {
  Saving<T>::Set(value, load_safetensors(stream, device.value_or(Device()), loc), "the stream",
                 loc);
}

}  // namespace lazuli::torch_names
