#include <algorithm>
#include <charconv>
#include <utility>

#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/torch/serialize.h"

namespace lazuli::torch_names {

using internal::Fail;

// --- values
std::string IValue::Text() const {
  if (isNone()) return "none";
  if (isInt()) return "int " + std::to_string(toInt());
  if (isBool()) return toBool() ? "bool true" : "bool false";
  if (isString()) return "string " + toStringRef();
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), toDouble()).ptr;
  return "double " + std::string(digits, end);
}

std::optional<IValue> IValue::Parse(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view kind = text.substr(0, space),
                         value = text.substr(std::min(space + 1, text.size()));
  const auto number = [&](auto v) -> std::optional<IValue> {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), v);
    if (error != std::errc() || end != value.data() + value.size()) return std::nullopt;
    return IValue(v);
  };
  if (text == "none") return IValue();
  if (kind == "int") return number(std::int64_t{0});
  if (kind == "double") return number(0.0);
  if (text == "bool true" || text == "bool false") return IValue(value == "true");
  if (kind == "string") return IValue(std::string(value));
  return std::nullopt;
}

// --- archives
namespace serialize {
namespace {

// What is in an archive that was written under a name.
StateDict Nested(const StateDict& state, const std::string& key) {
  StateDict inner;
  const std::string prefix = key + ".";
  for (const auto& [name, tensor] : state.tensors) {
    if (name.starts_with(prefix)) inner.tensors[name.substr(prefix.size())] = tensor;
  }
  for (const auto& [name, text] : state.metadata) {
    if (name.starts_with(prefix)) inner.metadata[name.substr(prefix.size())] = text;
  }
  return inner;
}

}  // namespace

void OutputArchive::CheckFree(const std::string& key, SourceLocation loc) const {
  if (state_.tensors.contains(key) || state_.metadata.contains(key))
    Fail(ErrorCode::kInvalidArgument, "OutputArchive: there is a \"" + key + "\" already", loc);
}
void OutputArchive::write(const std::string& key, const Tensor& tensor, bool /*is_buffer*/,
                          SourceLocation loc) {
  CheckFree(key, loc);
  if (!tensor.defined())
    Fail(ErrorCode::kInvalidArgument, "OutputArchive: \"" + key + "\" is an undefined tensor", loc);
  state_.tensors[key] = tensor;
}
void OutputArchive::write(const std::string& key, const IValue& value, SourceLocation loc) {
  CheckFree(key, loc);
  state_.metadata[key] = value.Text();
}
void OutputArchive::write(const std::string& key, const OutputArchive& nested, SourceLocation loc) {
  StateDict inner;
  const std::string prefix = key + ".";
  for (const auto& [name, tensor] : nested.state_.tensors) inner.tensors[prefix + name] = tensor;
  for (const auto& [name, text] : nested.state_.metadata) inner.metadata[prefix + name] = text;
  write(inner, loc);
}
void OutputArchive::write(const StateDict& state, SourceLocation loc) {
  for (const auto& [name, tensor] : state.tensors) CheckFree(name, loc);
  for (const auto& [name, text] : state.metadata) CheckFree(name, loc);
  state_.tensors.insert(state.tensors.begin(), state.tensors.end());
  state_.metadata.insert(state.metadata.begin(), state.metadata.end());
}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool /*is_buffer*/,
                            SourceLocation loc) const {
  const auto found = state_.tensors.find(key);
  if (found == state_.tensors.end()) return false;
  if (!tensor.defined()) {
    tensor = found->second;
  } else {
    load_tensors({.tensors = {*found}, .metadata = {}}, {{key, tensor}}, "InputArchive", {}, loc);
  }
  return true;
}
bool InputArchive::try_read(const std::string& key, IValue& value, SourceLocation) const {
  const auto found = state_.metadata.find(key);
  const std::optional<IValue> parsed =
      found == state_.metadata.end() ? std::nullopt : IValue::Parse(found->second);
  if (parsed) value = *parsed;
  return parsed.has_value();
}
bool InputArchive::try_read(const std::string& key, InputArchive& nested, SourceLocation) const {
  StateDict inner = Nested(state_, key);
  if (inner.tensors.empty() && inner.metadata.empty()) return false;
  nested.state_ = std::move(inner);
  return true;
}
void InputArchive::Require(bool found, const std::string& key, SourceLocation loc) const {
  if (found) return;
  std::string names;
  for (const std::string& name : keys()) names += (names.empty() ? "" : ", ") + name;
  Fail(ErrorCode::kNotFound,
       "InputArchive: there is no such \"" + key + "\"; it has " +
           (names.empty() ? "nothing" : names),
       loc);
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer,
                        SourceLocation loc) const {
  Require(try_read(key, tensor, is_buffer, loc), key, loc);
}
void InputArchive::read(const std::string& key, IValue& value, SourceLocation loc) const {
  Require(try_read(key, value, loc), key, loc);
}
void InputArchive::read(const std::string& key, InputArchive& nested, SourceLocation loc) const {
  Require(try_read(key, nested, loc), key, loc);
}
std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    std::string first = name.substr(0, name.find('.'));
    if (std::find(names.begin(), names.end(), first) == names.end())
      names.push_back(std::move(first));
  };
  for (const auto& [name, tensor] : state_.tensors) add(name);
  for (const auto& [name, text] : state_.metadata) add(name);
  return names;
}

}  // namespace serialize

// --- tensors
StateDict Saving<Tensor>::State(const Tensor& tensor) {
  return Saving<std::vector<Tensor>>::State({tensor});
}
StateDict Saving<std::vector<Tensor>>::State(const std::vector<Tensor>& tensors) {
  StateDict state;
  for (std::size_t i = 0; i < tensors.size(); ++i) state.tensors[std::to_string(i)] = tensors[i];
  return state;
}

void Saving<Tensor>::Set(Tensor& tensor, const StateDict& state, const std::string& source,
                         SourceLocation loc) {
  std::vector<Tensor> tensors;
  Saving<std::vector<Tensor>>::Set(tensors, state, source, loc);
  if (tensors.size() != 1) {
    Fail(ErrorCode::kInvalidArgument,
         "load: " + source + " has " + std::to_string(tensors.size()) + " tensors, not one", loc);
  }
  tensor = tensors[0];
}
void Saving<std::vector<Tensor>>::Set(std::vector<Tensor>& tensors, const StateDict& state,
                                      const std::string& source, SourceLocation loc) {
  std::vector<Tensor> read;
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const auto found = state.tensors.find(std::to_string(i));
    if (found == state.tensors.end()) {
      Fail(ErrorCode::kInvalidArgument,
           "load: " + source + " is not a list of tensors: it has no \"" + std::to_string(i) + "\"",
           loc);
    }
    read.push_back(found->second);
  }
  tensors = std::move(read);
}

}  // namespace lazuli::torch_names
