// nn: Module. A network written in Python derives from it, as one in C++.
#include "lazuli/nn.h"

#include "python/src/bindings.h"
#include "python/src/cycles.h"
#include "python/src/hooks.h"
#include "python/src/layer.h"
#include "python/src/stl.h"

namespace lazuli::python {

bool modules_have_hooks = false;

namespace {

// What calls a module with its hooks, once there are any, and whether there are some of all modules.
PyObject* hooked_call = nullptr;
bool hooks_everywhere = false;

bool HasHooks(PyObject* module) {
  if (hooks_everywhere) return true;
  static PyObject* name = PyUnicode_InternFromString("_hooks");
  PyObject** attributes = _PyObject_GetDictPtr(module);
  return attributes != nullptr && *attributes != nullptr && PyDict_Contains(*attributes, name) == 1;
}

PyObject* CallHooked(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  std::vector<PyObject*> all{self};
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  all.insert(all.end(), arguments, arguments + n + named);
  return PyObject_Vectorcall(hooked_call, all.data(), static_cast<std::size_t>(n + 1), names);
}

py::list NamedList(const std::vector<std::pair<std::string, Tensor>>& named) {
  py::list list;
  for (const auto& [name, tensor] : named) list.append(py::make_tuple(name, ToPython(tensor)));
  return list;
}

// Whether __init__ of the base has run: what is in the object before is no module yet.
bool IsMade(py::handle module) {
  auto* instance = reinterpret_cast<py::detail::instance*>(module.ptr());
  return instance->get_value_and_holder().holder_constructed();
}

void BindModule(py::module_& nn) {
  nn.def("_is_made", &IsMade);
  nn.def(
      "_use_hooks",
      [](const py::function& call, bool everywhere) {
        if (hooked_call == nullptr) hooked_call = py::object(call).release().ptr();
        modules_have_hooks = true;
        hooks_everywhere = hooks_everywhere || everywhere;
      },
      py::arg("call"), py::arg("everywhere"));
  py::class_<nn::Parameter, Tensor>(nn, "Parameter",
                                    py::custom_type_setup(&SetUpDerivedTensorObjects),
                                    "A tensor that a module owns.")
      .def(
          "__init__",
          [](py::detail::value_and_holder& made, const std::optional<Tensor>& data,
             bool requires_grad) {
            const Caller caller;
            Tensor leaf = data ? data->detach() : empty({0});
            leaf.set_requires_grad(requires_grad);
            ConstructTensorObject(made, nn::Parameter(leaf));
          },
          py::detail::is_new_style_constructor(), py::arg("data") = py::none(),
          py::arg("requires_grad") = true);
  py::class_<nn::Module> type(
      nn, "Module", WithAttributes(),
      "What owns parameters and other modules. A network derives from it, makes its "
      "layers in __init__ after super().__init__(), and has a forward().");
  type.def(py::init<>())
      .def(
          "register_module",
          [](nn::Module& self, const std::string& name, const nn::Module& module) {
            const Caller caller;
            self.register_module(name, module);
          },
          py::arg("name"), py::arg("module"))
      .def(
          "register_parameter",
          [](nn::Module& self, const std::string& name, const Tensor& value) {
            const Caller caller;
            return ParameterObject(self.register_parameter(name, value, value.requires_grad()));
          },
          py::arg("name"), py::arg("value"))
      .def(
          "_register_buffer",
          [](nn::Module& self, const std::string& name, const Tensor& value) {
            const Caller caller;
            return ToPython(self.register_buffer(name, value));
          },
          py::arg("name"), py::arg("value"))
      .def("_unregister", &nn::Module::unregister)
      .def(
          "named_parameters", [](const nn::Module& m) { return NamedList(m.named_parameters()); },
          "Pairs of dotted names and parameters: 'conv1.weight'.")
      .def(
          "named_buffers", [](const nn::Module& m) { return NamedList(m.named_buffers()); },
          "Pairs of dotted names and buffers.")
      .def("num_parameters", &nn::Module::num_parameters, "Elements of all parameters.")
      .def_property_readonly("training", &nn::Module::is_training)
      .def(
          "zero_grad",
          [](nn::Module& m) {
            const Caller caller;
            m.zero_grad();
          },
          "Drops the gradients of all parameters.")
      .def("_train", &nn::Module::train)
      .def("_to", [](nn::Module& m, const Device& device) {
        const Caller caller;
        m.to(device);
      });
  AddCall(type, &CallForward);
  BindModuleState(nn, type);
}

}  // namespace

NameScope ModuleScope::Enter(PyObject* module) {
  auto* const instance = reinterpret_cast<py::detail::instance*>(module);
  // Every module of C++ derives from nn::Module alone, so they have one address.
  const void* const held = instance->get_value_and_holder().value_ptr();
  if (held == nullptr) return NameScope("");  // its class has not called super().__init__()
  const std::string_view name = Py_TYPE(module)->tp_name;
  return static_cast<const nn::Module*>(held)->enter(name.substr(name.rfind('.') + 1));
}

namespace {

PyObject* ForwardOf(PyTypeObject* type) {  // borrowed; a lookup gives the class a version
  static PyObject* name = PyUnicode_InternFromString("forward");
  Py_XDECREF(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  return PyDict_GetItem(type->tp_dict, name);
}

}  // namespace

void LayerType::Set(PyTypeObject* type) {
  type_ = type;
  forward_ = ForwardOf(type);
}
bool LayerType::HasItsForward() {
  if (ForwardOf(type_) != forward_) return false;
  version_ = type_->tp_version_tag;
  return true;
}

PyObject* CallForward(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  const ModuleScope scope(self);
  if (modules_have_hooks && HasHooks(self)) [[unlikely]]
    return CallHooked(self, arguments, n, names);
  static PyObject* name = PyUnicode_InternFromString("forward");
  PyObject* forward = PyObject_GetAttr(self, name);
  if (forward == nullptr) return nullptr;
  PyObject* result = PyObject_Vectorcall(forward, arguments, static_cast<std::size_t>(n), names);
  Py_DECREF(forward);
  return result;
}
void AddCall(py::handle type, _PyCFunctionFastWithKeywords function) {
  static constexpr const char* kDoc =
      "__call__(self, *args: Any, **kwargs: Any) -> Any\n\nCalls forward().";
  auto* definition = new PyMethodDef{
      "__call__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
      METH_FASTCALL | METH_KEYWORDS, kDoc};  // as long as the type, which is for ever
  type.attr("__call__") = py::reinterpret_steal<py::object>(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), definition));
}

void BindNn(py::module_& module) {
  py::module_ nn = module.attr("nn").cast<py::module_>();
  BindModule(nn);
  BindLayers(nn);
}

}  // namespace lazuli::python
