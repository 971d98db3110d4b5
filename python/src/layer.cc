#include "python/src/layer.h"

#include "python/src/bindings.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

// The layer of this type that an object is.
void* LayerOf(py::handle self, py::handle type) {
  if (!py::isinstance(self, type)) {
    throw py::type_error(std::string(py::str(type.attr("__name__"))) + " is wanted, not " +
                         Py_TYPE(self.ptr())->tp_name);
  }
  auto* info = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(type.ptr()));
  return reinterpret_cast<py::detail::instance*>(self.ptr())
      ->get_value_and_holder(info)
      .value_ptr();
}

// A tensor of a layer as Python sees it: the same object each time, since programs know parameters
// by their id().
py::object OwnTensor(py::handle layer, PyObject* name, const Tensor& tensor, bool is_parameter) {
  if (!tensor.defined()) return py::none();
  static PyObject* key = PyUnicode_InternFromString("_tensors");
  const py::dict attributes = layer.attr("__dict__");
  PyObject* known = PyDict_GetItemWithError(attributes.ptr(), key);
  const auto tensors = known == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(known);
  if (known == nullptr && PyDict_SetItem(attributes.ptr(), key, tensors.ptr()) != 0)
    throw py::error_already_set();
  if (PyObject* old = PyDict_GetItemWithError(tensors.ptr(), name);
      old != nullptr && AsTensor(old)->is_same(tensor))
    return py::reinterpret_borrow<py::object>(old);
  py::object made = is_parameter ? ParameterObject(tensor) : ToPython(tensor);
  if (PyDict_SetItem(tensors.ptr(), name, made.ptr()) != 0) throw py::error_already_set();
  return made;
}

}  // namespace

py::object ParameterObject(const Tensor& tensor) {
  py::object known = ToPython(tensor);
  if (py::isinstance<nn::Parameter>(known)) return known;
  py::object made = py::cast(nn::Parameter(tensor));
  BecomeTensorObject(made);
  return made;
}

namespace {

void DefineTensor(py::handle type, const LayerTensor& tensor) {
  const auto [text, is_parameter, member] = tensor;
  PyObject* name = PyUnicode_InternFromString(text);
  const py::cpp_function get(
      [=](py::handle self) {
        return OwnTensor(self, name, member(LayerOf(self, type)), is_parameter);
      },
      py::is_method(type));
  const py::cpp_function set(
      [=](py::handle self, const std::optional<Tensor>& value) {
        const Caller caller;
        const Tensor given = value.value_or(Tensor());
        auto& module = self.cast<nn::Module&>();
        if (!given.defined()) module.unregister(text);
        if (!given.defined() || module.replace(text, given))
          member(LayerOf(self, type)) = given;
        else
          member(LayerOf(self, type)) =
              is_parameter ? module.register_parameter(text, given, given.requires_grad())
                           : module.register_buffer(text, given);
        OwnTensor(self, name, member(LayerOf(self, type)), is_parameter);  // and its attributes
      },
      py::is_method(type));
  const py::cpp_function remove(
      [=](py::handle self) {
        self.cast<nn::Module&>().unregister(text);
        member(LayerOf(self, type)) = Tensor();
      },
      py::is_method(type));
  type.attr(text) = py::reinterpret_borrow<py::object>(
      reinterpret_cast<PyObject*>(&PyProperty_Type))(get, set, remove);
}

}  // namespace

void DefineLayer(py::handle type, const std::vector<LayerTensor>& tensors,
                 const LayerFunctions& functions) {
  std::vector<TensorMember> members;
  for (const LayerTensor& tensor : tensors) {
    DefineTensor(type, tensor);
    members.push_back(tensor.member);
  }
  SetHeldTensors(reinterpret_cast<PyTypeObject*>(type.ptr()), members);
  // For as long as a call lasts: a tensor in place of a parameter, which stays registered.
  type.attr("_lend") = py::cpp_function(
      [=](py::handle self, std::string_view name, const std::optional<Tensor>& value) {
        for (const LayerTensor& tensor : tensors) {
          if (tensor.name != name) continue;
          Tensor& place = tensor.member(LayerOf(self, type));
          return ToPython(std::exchange(place, value.value_or(Tensor())));
        }
        throw py::attribute_error(std::string(name));
      },
      py::name("_lend"), py::is_method(type));
  type.attr("_clone") =
      py::cpp_function([=](py::handle self) { return functions.clone(LayerOf(self, type)); },
                       py::name("_clone"), py::is_method(type));
  type.attr("_take_settings") = py::cpp_function(
      [=](py::handle self, py::handle other) {
        functions.take(LayerOf(self, type), LayerOf(other, type));
      },
      py::name("_take_settings"), py::is_method(type));
}

}  // namespace lazuli::python
