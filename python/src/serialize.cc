// State as a dict of Python: tensors by name, and what else belongs to it as text under
// "__metadata__", as in a safetensors file.
#include "lazuli/serialize.h"

#include <pybind11/stl.h>

#include "lazuli/nn.h"
#include "lazuli/optim.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"

namespace lazuli::python {
namespace {

constexpr const char* kMetadata = "__metadata__";

std::string Path(const py::object& path) {
  return py::str(py::module_::import("os").attr("fspath")(path));
}

}  // namespace

py::dict ToDict(const StateDict& state) {
  py::dict dict;
  for (const auto& [name, tensor] : state.tensors) dict[py::str(name)] = ToPython(tensor);
  if (!state.metadata.empty()) dict[kMetadata] = py::cast(state.metadata);
  return dict;
}

StateDict FromDict(const py::dict& dict) {
  StateDict state;
  for (const auto& [key, value] : dict) {
    const std::string name = py::str(key);
    if (name == kMetadata)
      state.metadata = value.cast<std::map<std::string, std::string>>();
    else
      state.tensors.emplace(name, ToTensor(value));
  }
  return state;
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
        const StateDict tensors = FromDict(state);
        const std::string file = Path(path);
        const py::gil_scoped_release release;
        save_safetensors(tensors, file);
      },
      py::arg("state"), py::arg("path"),
      "Writes a dict of tensors as a safetensors file, which other libraries read, too.");
  module.def(
      "load_safetensors",
      [](const py::object& path, py::handle device) {
        const Caller caller;
        return ToDict(load_safetensors(Path(path), ToDevice(device, "load_safetensors")));
      },
      py::arg("path"), py::arg("device") = py::none(), "Reads one.");
}

void BindModuleState(py::module_& nn, py::class_<nn::Module>& type) {
  type.def(
      "_load_state_dict",
      [](nn::Module& module, const py::dict& state, bool strict) {
        const Caller caller;
        const LoadReport report = module.load_state_dict(FromDict(state), {.strict = strict});
        return py::make_tuple(report.missing, report.unexpected);
      },
      py::arg("state"), py::arg("strict"));
  nn.def(
      "save",
      [](const nn::Module& module, const py::object& path) {
        const Caller caller;
        nn::save(module, Path(path));
      },
      py::arg("module"), py::arg("path"), "Writes parameters and buffers as a safetensors file.");
  nn.def(
      "load",
      [](nn::Module& module, const py::object& path, bool strict) {
        const Caller caller;
        const LoadReport report = nn::load(module, Path(path), {.strict = strict});
        return py::make_tuple(report.missing, report.unexpected);
      },
      py::arg("module"), py::arg("path"), py::arg("strict") = true,
      "Reads it into parameters and buffers; returns the names that only one side has, which "
      "strict takes for a mistake.");
}

void BindOptimizerState(py::module_& optim, py::class_<optim::Optimizer>& type) {
  type.def(
          "state_dict", [](const optim::Optimizer& o) { return ToDict(o.state_dict()); },
          "What a training run goes on from: tensors such as '3.momentum', options and steps.")
      .def(
          "load_state_dict",
          [](optim::Optimizer& o, const py::dict& state) {
            const Caller caller;
            o.load_state_dict(FromDict(state));
          },
          py::arg("state"), "Nothing changes unless all fits.");
  optim.def(
      "save",
      [](const optim::Optimizer& o, const py::object& path) {
        const Caller caller;
        optim::save(o, Path(path));
      },
      py::arg("optimizer"), py::arg("path"), "Writes state_dict() as a safetensors file.");
  optim.def(
      "load",
      [](optim::Optimizer& o, const py::object& path) {
        const Caller caller;
        optim::load(o, Path(path));
      },
      py::arg("optimizer"), py::arg("path"), "Reads it.");
}

}  // namespace lazuli::python
