// nn: Module and the layers of C++. A network written in Python derives from Module, as one in C++.
#include "lazuli/nn.h"

#include <pybind11/stl.h>

#include "python/src/bind.h"
#include "python/src/bindings.h"
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

namespace {

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

// What calling a module does: forward(), which a class of Python may have overridden.
PyObject* CallForward(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  static PyObject* name = PyUnicode_InternFromString("forward");
  PyObject* forward = PyObject_GetAttr(self, name);
  if (forward == nullptr) return nullptr;
  PyObject* result = PyObject_Vectorcall(forward, arguments, static_cast<std::size_t>(n), names);
  Py_DECREF(forward);
  return result;
}
// The same for a layer of this very class: recording one op costs less than looking forward() up.
template <class L, auto kForward>
PyObject* CallLayer(PyObject* self, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  if (Py_TYPE(self) != LayerRef<L>::type) return CallForward(self, arguments, n, names);
  return Bound<kForward>::Method(self, arguments, n, names);
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

template <class L>
Tensor Forward(const LayerRef<L>& layer, const Tensor& x, SourceLocation loc) {
  return (*layer).forward(x, loc);
}

void BindModule(py::module_& nn) {
  nn.def("_is_made", &IsMade);
  py::class_<nn::Parameter, Tensor>(nn, "Parameter", py::custom_type_setup(&SetUpUntracked),
                                    "A tensor that a module owns.")
      .def(py::init([](const Tensor& tensor) {
             const Caller caller;
             Tensor leaf = tensor.detach();
             leaf.set_requires_grad(true);
             return nn::Parameter(leaf);
           }),
           py::arg("tensor"));
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
            return self.register_parameter(name, value);
          },
          py::arg("name"), py::arg("value"), "Makes the tensor require a gradient.")
      .def(
          "_register_buffer",
          [](nn::Module& self, const std::string& name, const Tensor& value) {
            const Caller caller;
            return Tensor(self.register_buffer(name, value));
          },
          py::arg("name"), py::arg("value"))
      .def("_unregister", &nn::Module::unregister)
      .def("parameters", &nn::Module::parameters, "All parameters, each once.")
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
#define LAZULI_TENSOR(member, kind)                                     \
  if constexpr (requires(L l) { l.member; })                            \
    type.def_property(                                                  \
        #member, [](const L& l) { return ToPython(Tensor(l.member)); }, \
        [](L& l, const Tensor& value) {                                 \
          const Caller caller;                                          \
          l.unregister(#member);                                        \
          l.member = l.register_##kind(#member, value);                 \
        });
  LAZULI_TENSOR(weight, parameter)
  LAZULI_TENSOR(bias, parameter)
  LAZULI_TENSOR(running_mean, buffer)
  LAZULI_TENSOR(running_var, buffer)
  LAZULI_TENSOR(num_batches_tracked, buffer)
#undef LAZULI_TENSOR
  SetHeldTensors(LayerRef<L>::type, [](const void* object) {
    const L& layer = *static_cast<const L*>(object);
    std::vector<const Tensor*> held;
    const auto add = [&](const auto&... members) { (held.push_back(&members), ...); };
    if constexpr (requires { layer.weight; }) add(layer.weight);
    if constexpr (requires { layer.bias; }) add(layer.bias);
    if constexpr (requires { layer.running_mean; })
      add(layer.running_mean, layer.running_var, layer.num_batches_tracked);
    return held;
  });
}

}  // namespace

void BindNn(py::module_& module) {
  py::module_ nn = module.attr("nn").cast<py::module_>();
  BindModule(nn);
  using Int = std::int64_t;
  BindLayer<nn::Linear, Int, Int, nn::LinearOptions>(
      nn, "Linear", "(in_features, out_features, options = {})",
      "x weight^T + bias: [..., in_features] to [..., out_features].");
  BindLayer<nn::Conv2d, Int, Int, nn::Size2, nn::Conv2dOptions>(
      nn, "Conv2d", "(in_channels, out_channels, kernel, options = {})",
      "Cross-correlation: [N, in_channels, H, W] to [N, out_channels, H', W'].");
  BindLayer<nn::MaxPool2d, nn::Size2, nn::MaxPool2dOptions>(
      nn, "MaxPool2d", "(kernel, options = {})",
      "The largest of each window: [N, C, H, W] to [N, C, H', W']; stride 0 is the kernel's size.");
  BindLayer<nn::AvgPool2d, nn::Size2, nn::AvgPool2dOptions>(
      nn, "AvgPool2d", "(kernel, options = {})",
      "The mean of each window: [N, C, H, W] to [N, C, H', W']; stride 0 is the kernel's size.");
  BindLayer<nn::AdaptiveAvgPool2d, nn::Size2>(
      nn, "AdaptiveAvgPool2d", "(size)", "The mean of windows that give this height and width.");
  constexpr const char* kBatchNorm =
      "Each channel to mean 0 and variance 1, times weight plus bias; in training by the batch's "
      "own statistics, in evaluation by the running ones.";
  BindLayer<nn::BatchNorm1d, Int, nn::BatchNormOptions>(nn, "BatchNorm1d",
                                                        "(channels, options = {})", kBatchNorm);
  BindLayer<nn::BatchNorm2d, Int, nn::BatchNormOptions>(nn, "BatchNorm2d",
                                                        "(channels, options = {})", kBatchNorm);
  BindLayer<nn::LayerNorm, Dims, nn::LayerNormOptions>(
      nn, "LayerNorm", "(normalized_shape, options = {})",
      "To mean 0 and variance 1 over the last dims, times weight plus bias.");
  BindLayer<nn::GroupNorm, Int, Int, nn::GroupNormOptions>(
      nn, "GroupNorm", "(groups, channels, options = {})",
      "As LayerNorm over groups of channels of x [N, C, ...].");
  BindLayer<nn::RMSNorm, Dims, double>(
      nn, "RMSNorm", "(normalized_shape, eps = 1e-5)",
      "x / sqrt(mean of x^2 + eps) over the last dims, times weight.");
  BindLayer<nn::Embedding, Int, Int, nn::EmbeddingOptions>(
      nn, "Embedding", "(rows, dim, options = {})",
      "Rows of a table: integers [...] to [..., dim]; the row padding_idx is 0 and stays so.");
  BindLayer<nn::Flatten, Int, Int>(nn, "Flatten", "(start_dim = 1, end_dim = -1)",
                                   "One dim in place of dims start_dim to end_dim.");
  BindLayer<nn::Dropout, double>(
      nn, "Dropout", "(p = 0.5)",
      "In training, zeroes each element with probability p and scales the rest by 1 / (1 - p).");
  BindLayer<nn::ReLU>(nn, "ReLU", "()", "relu().");
  BindLayer<nn::Tanh>(nn, "Tanh", "()", "tanh().");
  BindLayer<nn::Sigmoid>(nn, "Sigmoid", "()", "sigmoid().");
#define LAZULI_ACTIVATION(name, doc) BindLayer<nn::name>(nn, #name, "()", doc)
  LAZULI_ACTIVATION(SiLU, "silu().");
  LAZULI_ACTIVATION(SELU, "selu().");
  LAZULI_ACTIVATION(LogSigmoid, "log_sigmoid().");
  LAZULI_ACTIVATION(ReLU6, "relu6().");
  LAZULI_ACTIVATION(Hardsigmoid, "hardsigmoid().");
  LAZULI_ACTIVATION(Hardswish, "hardswish().");
  LAZULI_ACTIVATION(Mish, "mish().");
  LAZULI_ACTIVATION(Softsign, "softsign().");
  LAZULI_ACTIVATION(Identity, "x.");
#undef LAZULI_ACTIVATION
  BindLayer<nn::GELU, bool>(nn, "GELU", "(tanh = false)", "gelu().");
  BindLayer<nn::LeakyReLU, double>(nn, "LeakyReLU", "(negative_slope = 0.01)", "leaky_relu().");
  BindLayer<nn::ELU, double>(nn, "ELU", "(alpha = 1)", "elu().");
  BindLayer<nn::Softplus, double, double>(nn, "Softplus", "(beta = 1, threshold = 20)",
                                          "softplus().");
  BindLayer<nn::Hardtanh, double, double>(nn, "Hardtanh", "(low = -1, high = 1)", "hardtanh().");
  BindLayer<nn::PReLU, Int, double>(nn, "PReLU", "(channels = 1, init = 0.25)",
                                    "A slope that is learned: one, or one a channel.");
  BindLayer<nn::Softmax, Int>(nn, "Softmax", "(dim)", "softmax().");
  BindLayer<nn::LogSoftmax, Int>(nn, "LogSoftmax", "(dim)", "log_softmax().");
}

}  // namespace lazuli::python
