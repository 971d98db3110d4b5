// State as a dict of Python: tensors by name, and what else belongs to it as text under
// "__metadata__", as in a safetensors file.
#include "lazuli/serialize.h"

#include "ir/support/str.h"
#include "lazuli/nn.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

constexpr const char* kMetadata = "__metadata__";

std::map<std::string, std::string> ToMetadata(std::string_view op, py::handle value) {
  std::map<std::string, std::string> metadata;
  const auto refuse = [&](std::string_view what) {
    throw py::value_error(ir::Str(op, ": '", kMetadata,
                                  "' is the name of the texts about the tensors, a dict of str ",
                                  "to str, and ", what));
  };
  if (!PyDict_Check(value.ptr()))
    refuse(ir::Str("cannot be that of a ", Py_TYPE(value.ptr())->tp_name));
  for (const auto& [name, text] : py::reinterpret_borrow<py::dict>(value)) {
    if (!PyUnicode_Check(name.ptr()) || !PyUnicode_Check(text.ptr()))
      refuse(ir::Str("its ", py::repr(name).cast<std::string>(), " is of type ",
                     Py_TYPE(text.ptr())->tp_name));
    metadata.emplace(TextOf(name.ptr()), TextOf(text.ptr()));
  }
  return metadata;
}

// A tensor, or numbers that lazuli.tensor() takes.
Tensor ToNamed(std::string_view op, const std::string& name, py::handle value) {
  if (const Tensor* tensor = AsTensor(value.ptr())) return *tensor;
  try {
    return ToTensor(value);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    throw py::type_error(ir::Str(op, ": '", name, "' must be a Tensor or an array, not ",
                                 Py_TYPE(value.ptr())->tp_name));
  }
}

}  // namespace

py::dict ToDict(const StateDict& state) {
  py::dict dict;
  for (const auto& [name, tensor] : state.tensors) dict[py::str(name)] = ToPython(tensor);
  if (!state.metadata.empty()) dict[kMetadata] = py::cast(state.metadata);
  return dict;
}

StateDict FromDict(std::string_view op, const py::dict& dict) {
  StateDict state;
  for (const auto& [key, value] : dict) {
    if (!PyUnicode_Check(key.ptr()))
      ThrowTypeError(ir::Str(op, ": names must be str, not ", Py_TYPE(key.ptr())->tp_name));
    const std::string name(TextOf(key.ptr()));
    if (name == kMetadata)
      state.metadata = ToMetadata(op, value);
    else
      state.tensors.emplace(name, ToNamed(op, name, value));
  }
  return state;
}

std::string ToPath(py::handle path) {
  return py::bytes(py::module_::import("os").attr("fsencode")(path));
}

Tensor ToTensor(py::handle values) {
  if (const Tensor* tensor = AsTensor(values.ptr())) return *tensor;
  return py::module_::import("lazuli").attr("tensor")(values).cast<Tensor>();
}

void BindSerialize(py::module_& module) {
  module.def(
      "save_safetensors",
      [](const py::dict& state, const py::object& path) {
        const Caller caller;
        const StateDict tensors = FromDict("save_safetensors", state);
        const std::string file = ToPath(path);
        const ReleasedGil release;
        save_safetensors(tensors, file);
      },
      py::arg("state"), py::arg("path"),
      "Writes a dict of tensors as a safetensors file, which other libraries read, too.");
  module.def(
      "load_safetensors",
      [](const py::object& path, py::handle device) {
        const Caller caller;
        return ToDict(load_safetensors(ToPath(path), ToDevice(device, "load_safetensors")));
      },
      py::arg("path"), py::arg("device") = py::none(), "Reads one.");
}

void BindModuleState(py::module_& nn, py::class_<nn::Module>& type) {
  type.def(
      "_load_state_dict",
      [](nn::Module& module, const py::dict& state, bool strict) {
        const Caller caller;
        const LoadReport report =
            module.load_state_dict(FromDict("load_state_dict", state), {.strict = strict});
        return py::make_tuple(report.missing, report.unexpected);
      },
      py::arg("state"), py::arg("strict"));
  nn.def(
      "save",
      [](const nn::Module& module, const py::object& path) {
        const Caller caller;
        nn::save(module, ToPath(path));
      },
      py::arg("module"), py::arg("path"), "Writes parameters and buffers as a safetensors file.");
  nn.def(
      "load",
      [](nn::Module& module, const py::object& path, bool strict) {
        const Caller caller;
        const LoadReport report = nn::load(module, ToPath(path), {.strict = strict});
        return py::make_tuple(report.missing, report.unexpected);
      },
      py::arg("module"), py::arg("path"), py::arg("strict") = true,
      "Reads it into parameters and buffers; returns the names that only one side has, which "
      "strict takes for a mistake.");
}

}  // namespace lazuli::python
