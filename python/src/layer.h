// Layers of C++ as classes of Python. tools/generate_functions.py writes the calls of BindLayer from
// the rows of cpp_api/nn/layers.txt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lazuli/nn.h"
#include "python/src/bind.h"
#include "python/src/cycles.h"
#include "python/src/hooks.h"

namespace lazuli::python {

// A layer as the first parameter of its forward().
template <class L>
class LayerRef {
 public:
  explicit LayerRef(const L* layer = nullptr) : layer_(layer) {}
  const L& operator*() const { return *layer_; }
  static inline PyTypeObject* type = nullptr;

 private:
  const L* layer_;
};
template <class L>
struct Argument<LayerRef<L>> : StoredArgument<LayerRef<L>> {
  static constexpr std::string_view kType = "Module";
  static bool Load(PyObject* object, LayerRef<L>& out) {
    if (!Is(object, *LayerRef<L>::type)) return false;
    auto* instance = reinterpret_cast<py::detail::instance*>(object);
    out = LayerRef<L>(static_cast<const L*>(instance->get_value_and_holder().value_ptr()));
    return true;
  }
};

// What calling a module does: forward(), which a class of Python may have overridden.
PyObject* CallForward(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names);
// Whether any module has hooks, which CallForward looks for.
extern bool modules_have_hooks;
// The same for a layer of this very class: recording one op costs less than looking forward() up.
template <class L, auto kForward>
PyObject* CallLayer(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  if (modules_have_hooks || Py_TYPE(self) != LayerRef<L>::type) [[unlikely]]
    return CallForward(self, arguments, n, names);
  return Bound<kForward>::Method(self, arguments, n, names);
}
// Makes the function what calling an object of the type does.
void AddCall(py::handle type, _PyCFunctionFastWithKeywords function);

// A tensor of a layer as Python sees it: the same object each time, since programs know parameters
// by their id().
py::object OwnTensor(const py::object& layer, PyObject* name, const Tensor& tensor, bool parameter);
constexpr bool IsParameter(std::string_view kind) { return kind == "parameter"; }

template <class L>
Tensor Forward(const LayerRef<L>& layer, const Tensor& x, SourceLocation loc) {
  return (*layer).forward(x, loc);
}

// Calls f(name, tensor) for the tensors that a layer has itself.
template <class L, class F>
void ForEachTensor(L& layer, F&& f) {
  if constexpr (requires { layer.weight; }) f("weight", layer.weight);
  if constexpr (requires { layer.bias; }) f("bias", layer.bias);
  if constexpr (requires { layer.running_mean; }) {
    f("running_mean", layer.running_mean);
    f("running_var", layer.running_var);
    f("num_batches_tracked", layer.num_batches_tracked);
  }
}

// A layer made of (P...), with its parameters as attributes.
template <class L, class... P>
void BindLayer(py::module_& nn, const char* name, std::string_view parameters, const char* doc) {
  py::class_<L, nn::Module> type(nn, name, WithAttributes());
  DefineConstructor<L, P...>(type, parameters, doc);
  LayerRef<L>::type = reinterpret_cast<PyTypeObject*>(type.ptr());
  Publish(type, Kind::kMethod,
          Bound<&Forward<L>>::Describe("forward", "(self, x)", "What calling the layer does."),
          &Bound<&Forward<L>>::Method);
  AddCall(type, &CallLayer<L, &Forward<L>>);
  type.def("_clone", [](const L& layer) {
    const Caller caller;
    return std::make_unique<L>(nn::clone(layer));
  });
#define LAZULI_TENSOR(member, kind)                                                       \
  if constexpr (requires(L l) { l.member; })                                              \
    type.def_property(                                                                    \
        #member,                                                                          \
        [](const py::object& self) {                                                      \
          static PyObject* name = PyUnicode_InternFromString(#member);                    \
          return OwnTensor(self, name, self.cast<const L&>().member, IsParameter(#kind)); \
        },                                                                                \
        [](L& l, const Tensor& value) {                                                   \
          const Caller caller;                                                            \
          l.unregister(#member);                                                          \
          l.member = l.register_##kind(#member, value);                                   \
        });
  LAZULI_TENSOR(weight, parameter)
  LAZULI_TENSOR(bias, parameter)
  LAZULI_TENSOR(running_mean, buffer)
  LAZULI_TENSOR(running_var, buffer)
  LAZULI_TENSOR(num_batches_tracked, buffer)
#undef LAZULI_TENSOR
  // For as long as a call lasts: a tensor in place of a parameter, which stays registered.
  type.def("_lend", [](L& l, std::string_view name, const std::optional<Tensor>& value) {
    Tensor* place = nullptr;
    ForEachTensor(l, [&](std::string_view own, Tensor& tensor) {
      if (own == name) place = &tensor;
    });
    if (place == nullptr) throw py::attribute_error(std::string(name));
    const Tensor before = std::exchange(*place, value.value_or(Tensor()));
    return before.defined() ? ToPython(before) : py::none();
  });
  SetHeldTensors(LayerRef<L>::type, [](const void* object) {
    const L& layer = *static_cast<const L*>(object);
    std::vector<const Tensor*> held;
    ForEachTensor(layer, [&](std::string_view, const Tensor& tensor) { held.push_back(&tensor); });
    return held;
  });
}

// All of them; generated.
void BindLayers(py::module_& nn);

}  // namespace lazuli::python
