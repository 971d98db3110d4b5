// Tensor: the class, reading, gradients, conversion and in-place operations. What is a function of
// lazuli/ops.h, too, comes from functions.cc.
#include "lazuli/tensor.h"

#include <pybind11/stl.h>

#include "cpp_api/src/facade.h"
#include "ir/types/dtype.h"
#include "lazuli/autograd.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/numpy.h"

namespace lazuli::python {
namespace {

// --- reading: other Python threads run meanwhile

py::object Item(const Tensor& x) {
  const Caller caller;
  const ir::DType dtype = Unwrap(x.dtype());
  const bool real = ir::IsFloat(dtype);
  std::int64_t integer = 0;
  double number = 0;
  {
    const py::gil_scoped_release release;
    if (real || ir::IsComplex(dtype))
      number = x.item<double>();
    else
      integer = x.item<std::int64_t>();
  }
  if (real) return py::float_(number);
  if (ir::IsComplex(dtype)) return ToNumPy(x).attr("item")();
  if (x.dtype() == kBool) return py::bool_(integer != 0);
  return py::int_(integer);
}

PyObject* Float(PyObject* x) {
  return Guarded([&] { return PyNumber_Float(Item(*AsTensor(x)).ptr()); });
}
PyObject* Int(PyObject* x) {
  return Guarded([&] { return PyNumber_Long(Item(*AsTensor(x)).ptr()); });
}
PyObject* Index(PyObject* x) {
  return Guarded([&] { return PyNumber_Index(Item(*AsTensor(x)).ptr()); });
}
int Bool(PyObject* x) {
  PyObject* item = Guarded([&] { return Item(*AsTensor(x)).release().ptr(); });
  if (item == nullptr) return -1;
  const int truth = PyObject_IsTrue(item);
  Py_DECREF(item);
  return truth;
}
int GetBuffer(PyObject* x, Py_buffer* view, int flags) {
  PyObject* array = Guarded([&] { return ToNumPy(*AsTensor(x)).release().ptr(); });
  if (array == nullptr) return -1;
  const int code = PyObject_GetBuffer(array, view, flags);  // the view keeps the array
  Py_DECREF(array);
  return code;
}

// --- containers

Py_ssize_t Length(PyObject* object) {
  const Tensor& x = *AsTensor(object);
  if (x.dim() > 0) return x.size(0);
  PyErr_SetString(PyExc_TypeError, "len() of a tensor of rank 0");
  return -1;
}
PyObject* Subscript(PyObject* x, PyObject* index) {
  return Guarded([&] {
    const Caller caller;
    return ToPython(GetItem(*AsTensor(x), index)).release().ptr();
  });
}
int AssignSubscript(PyObject* x, PyObject* index, PyObject* value) {
  PyObject* done = Guarded([&]() -> PyObject* {
    if (value == nullptr) ThrowTypeError("elements of a tensor cannot be deleted");
    const Caller caller;
    Tensor target = *AsTensor(x);
    SetItem(target, index, value);
    return Py_None;
  });
  return done == nullptr ? -1 : 0;
}

// --- in place

using InPlace = void(const Tensor& x, const Operand& other);

void CheckedTensor(const Operand& value, const char* name) {
  if (value.tensor() == nullptr) ThrowTypeError(std::string(name) + ": takes a Tensor, no number");
}
#define LAZULI_INPLACE(name)                          \
  void name(const Tensor& x, const Operand& other) {  \
    Tensor target = x;                                \
    if (other.tensor() != nullptr)                    \
      target.name(*other.tensor(), SourceLocation()); \
    else                                              \
      target.name(*other.scalar(), SourceLocation()); \
  }
LAZULI_INPLACE(mul_)
LAZULI_INPLACE(div_)
#undef LAZULI_INPLACE
#define LAZULI_INPLACE(name)                                                             \
  void name(const Tensor& x, const Operand& other, const std::optional<Scalar>& alpha) { \
    Tensor target = x;                                                                   \
    if (alpha) CheckedTensor(other, #name " with alpha");                                \
    if (alpha)                                                                           \
      target.name(*other.tensor(), *alpha, SourceLocation());                            \
    else if (other.tensor() != nullptr)                                                  \
      target.name(*other.tensor(), SourceLocation());                                    \
    else                                                                                 \
      target.name(*other.scalar(), SourceLocation());                                    \
  }
LAZULI_INPLACE(add_)
LAZULI_INPLACE(sub_)
#undef LAZULI_INPLACE
void add_(const Tensor& x, const Operand& other) { add_(x, other, std::nullopt); }
void sub_(const Tensor& x, const Operand& other) { sub_(x, other, std::nullopt); }

template <InPlace* kFunction>
PyObject* InPlaceOperator(PyObject* x, PyObject* y) {
  return Guarded([&]() -> PyObject* {
    Argument<Operand>::Stored other;
    if (!Argument<Operand>::Load(y, other)) Py_RETURN_NOTIMPLEMENTED;
    const Caller caller;
    kFunction(*AsTensor(x), *other);
    return Py_NewRef(x);
  });
}

void SetSlots(PyHeapTypeObject* type) {
  SetOperators(type);
  type->as_number.nb_inplace_add = InPlaceOperator<&add_>;
  type->as_number.nb_inplace_subtract = InPlaceOperator<&sub_>;
  type->as_number.nb_inplace_multiply = InPlaceOperator<&mul_>;
  type->as_number.nb_inplace_true_divide = InPlaceOperator<&div_>;
  type->as_number.nb_float = Float;
  type->as_number.nb_int = Int;
  type->as_number.nb_index = Index;
  type->as_number.nb_bool = Bool;
  type->as_mapping.mp_length = Length;
  type->as_mapping.mp_subscript = Subscript;
  type->as_mapping.mp_ass_subscript = AssignSubscript;
  type->as_buffer.bf_getbuffer = GetBuffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
  type->ht_type.tp_hash = [](PyObject* x) -> Py_hash_t {
    return static_cast<Py_hash_t>(
        reinterpret_cast<std::uintptr_t>(TensorAccess::Impl(*AsTensor(x))) >> 4);
  };
}

// --- methods with a signature of their own

void fill_(const Tensor& x, const Scalar& value) { Tensor(x).fill_(value, SourceLocation()); }
void zero_(const Tensor& x) { Tensor(x).zero_(SourceLocation()); }
void copy_(const Tensor& x, const Tensor& source) { Tensor(x).copy_(source, SourceLocation()); }
void set_data(const Tensor& x, const Tensor& source) {
  Tensor(x).set_data(source, SourceLocation());
}
void requires_grad_(const Tensor& x, const bool& on) { Tensor(x).set_requires_grad(on); }
void set_name(const Tensor& x, const std::string& name) { Tensor(x).set_name(name); }
void backward(const Tensor& x, const Tensor& gradient, const bool& retain_graph,
              const bool& create_graph) {
  x.backward(gradient, {.retain_graph = retain_graph, .create_graph = create_graph});
}
Tensor detach(const Tensor& x) { return x.detach(); }
Tensor clone(const Tensor& x) { return x.clone(); }
Tensor t(const Tensor& x) { return x.t(); }

// Converted to a dtype where there is one, and moved to a device where there is one.
Tensor To(const Tensor& x, py::handle dtype, py::handle device) {
  const Caller caller;
  Tensor result = x;
  DType to;
  if (!dtype.is_none()) {
    if (!LoadDType(dtype.ptr(), to))
      ThrowTypeError("to: dtype must be DType, not " + std::string(Py_TYPE(dtype.ptr())->tp_name));
    result = result.to(to);
  }
  std::optional<Device> where;
  if (!LoadDevice(device.ptr(), where))
    ThrowTypeError("to: device must be Device or str, not " +
                   std::string(Py_TYPE(device.ptr())->tp_name));
  return where ? result.to(*where) : result;
}

py::tuple Shape(const Tensor& x) {
  const Dims dims = x.sizes();
  py::tuple shape(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) shape[i] = py::int_(dims[i]);
  return shape;
}

}  // namespace

void DeclareTensor(py::module_& module) {
  const py::class_<Tensor> type(
      module, "Tensor", py::custom_type_setup(SetSlots),
      "A multi-dimensional array whose operations are recorded and run together at the next "
      "sync.\n\n"
      "Made by lazuli.tensor(), from_numpy(), zeros(), randn() and other functions.");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

void BindTensor(py::module_& module) {
  py::class_<DeferredItem>(module, "DeferredItem",
                           "A number that is still to be computed; item_async() makes it.")
      .def_property_readonly("ready", &DeferredItem::ready, "Whether get() returns at once.")
      .def(
          "get",
          [](const DeferredItem& item) {
            const Caller caller;
            const py::gil_scoped_release release;
            return item.get<double>();
          },
          "The number, as a float; waits for it.");
  py::class_<Tensor> type(
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(tensor_type)));
  type.def(py::init([](const py::args&, const py::kwargs&) -> Tensor {
    ThrowTypeError("Tensor is no constructor; lazuli.tensor(), zeros() and others make tensors");
  }));
  type.def_property_readonly("shape", &Shape, "The size of each dim, as a tuple.")
      .def_property_readonly("dtype", &Tensor::dtype, "The type of the elements.")
      .def_property_readonly("device", &Tensor::device, "Where the tensor lives.")
      .def_property_readonly("ndim", &Tensor::dim, "The number of dims.")
      .def_property_readonly(
          "T", [](const Tensor& x) { return (Caller(), x.t()); },
          "The transpose of a tensor of rank 2.")
      .def("size", &Shape, "The size of each dim, as a tuple.")
      .def("size", &Tensor::size, py::arg("dim"), "The size of a dim.")
      .def("dim", &Tensor::dim, "The number of dims.")
      .def("numel", &Tensor::numel, "The number of elements.")
      .def("item", &Item, "The only element as a Python number; syncs.")
      .def("is_same", &Tensor::is_same, py::arg("other"), "Whether both are handles of one tensor.")
      .def("_to", &To, py::arg("dtype"), py::arg("device"))
      .def(
          "item_async",
          [](const Tensor& x) {
            const Caller caller;
            return x.item_async();
          },
          "The only element once the next sync has run: a DeferredItem.")
      .def_property(
          "name", &Tensor::name, [](Tensor& x, const std::string& name) { x.set_name(name); },
          "A name for dumps: 'conv1.weight'.")
      .def_property(
          "requires_grad", &Tensor::requires_grad,
          [](Tensor& x, bool on) {
            const Caller caller;
            x.set_requires_grad(on);
          },
          "Whether backward() computes a gradient for the tensor.")
      .def_property(
          "grad", [](const Tensor& x) { return ToPython(x.grad()); },
          [](Tensor& x, const std::optional<Tensor>& grad) {
            const Caller caller;
            x.set_grad(grad.value_or(Tensor()));
          },
          "The gradient that backward() left, or None.");

  DefineMethod<&backward>("backward",
                          "(x, gradient = {}, retain_graph = false, create_graph = false)",
                          "Adds the gradients of this scalar to .grad of every leaf that requires "
                          "one. `gradient` replaces "
                          "the implicit 1.");
  DefineMethod<&detach>("detach", "(x)", "The same elements without history; shares memory.");
  DefineMethod<&clone>("clone", "(x)", "A copy with its own memory; gradients flow through.");
  DefineMethod<&t>("t", "(x)", "The transpose of a tensor of rank 2.");
  DefineMethod<&requires_grad_>("requires_grad_", "(x, on = true)", "Sets requires_grad.");
  DefineMethod<&set_name>("set_name", "(x, name)", "Sets the name for dumps.");
  DefineMethod<&fill_>("fill_", "(x, value)", "Every element becomes the number, in place.");
  DefineMethod<&zero_>("zero_", "(x)", "Every element becomes 0, in place.");
  DefineMethod<&copy_>("copy_", "(x, source)", "Takes the elements of source, in place.");
  DefineMethod<&set_data>("set_data", "(x, source)",
                          "Takes elements, dtype and device of source and stays the same tensor.");
  using Scaled = void (*)(const Tensor&, const Operand&, const std::optional<Scalar>&);
  DefineMethod<static_cast<Scaled>(&add_)>("add_", "(x, other, alpha = nullopt)",
                                           "x += alpha * other, in place.");
  DefineMethod<static_cast<Scaled>(&sub_)>("sub_", "(x, other, alpha = nullopt)",
                                           "x -= alpha * other, in place.");
  DefineMethod<&mul_>("mul_", "(x, other)", "x *= other, in place.");
  DefineMethod<&div_>("div_", "(x, other)", "x /= other, in place.");
}

}  // namespace lazuli::python
