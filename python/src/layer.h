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

// The class of a layer, whose forward() a program may replace.
class LayerType {
 public:
  void Set(PyTypeObject* type);  // with the forward() that it has now
  PyTypeObject* get() const { return type_; }
  // Whether an object's class is this one, with the forward() that it was made with. Python gives a
  // class another version when it changes.
  bool IsOf(PyObject* object) {
    if (Py_TYPE(object) != type_) return false;
    return (version_ != 0 && type_->tp_version_tag == version_) || HasItsForward();
  }

 private:
  bool HasItsForward();
  PyTypeObject* type_ = nullptr;
  PyObject* forward_ = nullptr;
  unsigned version_ = 0;  // that had it
};

// A layer as the first parameter of its forward().
template <class L>
class LayerRef {
 public:
  explicit LayerRef(const L* layer = nullptr) : layer_(layer) {}
  const L& operator*() const { return *layer_; }
  static inline LayerType type;

 private:
  const L* layer_;
};
template <class L>
struct Argument<LayerRef<L>> : StoredArgument<LayerRef<L>> {
  static constexpr std::string_view kType = "Module";
  static bool Load(PyObject* object, LayerRef<L>& out) {
    if (!Is(object, *LayerRef<L>::type.get())) return false;
    auto* instance = reinterpret_cast<py::detail::instance*>(object);
    out = LayerRef<L>(static_cast<const L*>(instance->get_value_and_holder().value_ptr()));
    return true;
  }
};

// While alive, the thread records inside of the module that the object is.
class ModuleScope {
 public:
  explicit ModuleScope(PyObject* module) : scope_(Enter(module)) {}

 private:
  static NameScope Enter(PyObject* module);
  NameScope scope_;
};

// What calling a module does: forward(), which a class of Python may have overridden.
PyObject* CallForward(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names);
// Whether any module has hooks, which CallForward looks for.
extern bool modules_have_hooks;
// The same for a layer of this very class: recording one op costs less than looking forward() up.
template <class L, auto kForward>
PyObject* CallLayer(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  if (modules_have_hooks || !LayerRef<L>::type.IsOf(self)) [[unlikely]]
    return CallForward(self, arguments, n, names);
  const ModuleScope scope(self);
  return Bound<kForward>::Method(self, arguments, n, names);
}
// Makes the function what calling an object of the type does.
void AddCall(py::handle type, _PyCFunctionFastWithKeywords function);

template <class L>
Tensor Forward(const LayerRef<L>& layer, const Tensor& x, SourceLocation loc) {
  return (*layer).forward(x, loc);
}

// The object of a tensor as that of a parameter.
py::object ParameterObject(const Tensor& tensor);

// A tensor that a layer has itself.
struct LayerTensor {
  const char* name;
  bool is_parameter;  // or a buffer
  TensorMember member;
};
template <class L>
std::vector<LayerTensor> TensorsOf() {
  std::vector<LayerTensor> tensors;
#define LAZULI_TENSOR(name, is_parameter)          \
  if constexpr (requires(L layer) { layer.name; }) \
    tensors.push_back({#name, is_parameter,        \
                       [](void* layer) -> Tensor& { return static_cast<L*>(layer)->name; }});
  LAZULI_TENSOR(weight, true)
  LAZULI_TENSOR(bias, true)
  LAZULI_TENSOR(running_mean, false)
  LAZULI_TENSOR(running_var, false)
  LAZULI_TENSOR(num_batches_tracked, false)
#undef LAZULI_TENSOR
  return tensors;
}

// Defines the tensors as attributes of the type, and _lend(), _clone(), _take_settings().
struct LayerFunctions {
  py::object (*clone)(const void* layer);
  void (*take)(void* layer, const void* other);  // all but the tensors and what is registered
};
void DefineLayer(py::handle type, const std::vector<LayerTensor>& tensors,
                 const LayerFunctions& functions);

// A layer made of (P...), with its parameters as attributes. What is not the layer's own is no template:
// a layer costs half a second of compiling otherwise.
template <class L, class... P>
void BindLayer(py::module_& nn, const char* name, std::string_view parameters, const char* doc) {
  py::class_<L, nn::Module> type(nn, name, WithAttributes());
  DefineConstructor<L, P...>(type, parameters, doc);
  Publish(type, Kind::kMethod,
          Bound<&Forward<L>>::Describe("forward", "(self, x)", "What calling the layer does."),
          &Bound<&Forward<L>>::Method);
  LayerRef<L>::type.Set(reinterpret_cast<PyTypeObject*>(type.ptr()));
  AddCall(type, &CallLayer<L, &Forward<L>>);
  const auto clone = [](const void* layer) {
    const Caller caller;
    return py::cast(std::make_unique<L>(nn::clone(*static_cast<const L*>(layer))));
  };
  const auto take = [](void* layer, const void* other) {
    L& self = *static_cast<L*>(layer);
    L taken = *static_cast<const L*>(other);
    static_cast<nn::Module&>(taken) = self;
    for (const LayerTensor& tensor : TensorsOf<L>()) tensor.member(&taken) = tensor.member(&self);
    self = std::move(taken);
  };
  DefineLayer(type, TensorsOf<L>(), {clone, take});
}

// All of them; generated.
void BindLayers(py::module_& nn);

}  // namespace lazuli::python
