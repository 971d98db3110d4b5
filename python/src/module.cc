// The extension module lazuli._C. The package lazuli adds what is more naturally said in Python.
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "cpp_api/src/facade.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/errors.h"
#include "python/src/rows.h"
#include "python/src/size.h"
#include "python/src/stl.h"

PYBIND11_MODULE(_C, module) {
  namespace python = lazuli::python;
  namespace py = pybind11;
  lazuli::Initialize();
  python::RegisterErrors(module);
  py::module_ nn = module.def_submodule("nn");
  std::vector<py::module_> modules = {
      module,
      nn,
      nn.def_submodule("functional"),
      nn.def_submodule("init", "Starting values of parameters, in place and without history."),
      nn.def_submodule("utils", "What training loops do to gradients."),
      module.def_submodule("fft", "Fourier transforms, by the names that they have in PyTorch."),
      module.def_submodule("linalg", "Linear algebra, by the names that it has in PyTorch."),
      module.def_submodule("special", "Special functions, by the names that they have in PyTorch."),
      module.def_submodule("distributed", "What devices do together."),
      module.def_submodule("optim"),
      module.def_submodule("data"),
      module.def_submodule("hlo", "HLO modules to read, change, compile and run."),
      module.def_submodule("metrics", "Counters and timers."),
      module.def_submodule("debug", "Graphs and programs as text."),
      module.def_submodule("profiler", "Where the time goes.")};
  // What is defined says that it lives where users find it: in lazuli.nn, not in lazuli._C.nn.
  std::vector<std::string> names;
  for (py::module_& m : modules) {
    names.push_back(py::str(m.attr("__name__")));
    m.attr("__name__") = "lazuli" + names.back().substr(names[0].size());
  }
  python::BindSize(module);
  python::DeclareTensor(module);
  python::BindRuntime(module);
  python::BindProfiler(module);
  python::BindRows(module);
  python::BindTensor(module);  // after the rows: add_() and sub_() are more than theirs
  python::BindAutograd(module);
  python::BindRandom(module);
  python::BindNumPy(module);
  python::BindSerialize(module);
  python::BindNn(module);
  python::BindOptim(module);
  python::BindData(module);
  python::BindHlo(module);
  python::BindControl(module);
  python::BindFunc(module);
  python::BindJit(module);
  python::BindLibrary(module);
  for (py::module_& m : modules) python::RewordMismatches(m);
  for (std::size_t i = 0; i < modules.size(); ++i) modules[i].attr("__name__") = names[i];
  module.def("_set_own_files", &python::SetOwnFiles);
  module.def("_definitions", &python::Definitions);
  module.def("_own_names", &python::OwnNames);
}
