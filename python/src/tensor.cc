// Tensor: the class, reading, gradients, conversion and in-place operations. What is a function of
// lazuli/ops.h, too, is a row.
#include "lazuli/tensor.h"

#include <numeric>
#include <vector>

#include "cpp_api/src/facade.h"
#include "ir/types/dtype.h"
#include "lazuli/autograd.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"
#include "python/src/hooks.h"
#include "python/src/numpy.h"
#include "python/src/size.h"
#include "python/src/stl.h"
#include "python/src/tensor_object.h"

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
    const ReleasedGil release;
    if (real || ir::IsComplex(dtype))
      number = x.item<double>();
    else
      integer = x.item<std::int64_t>();
  }
  if (real) return py::float_(number);
  if (ir::IsComplex(dtype)) return ToNumPy(x).attr("item")();
  if (x.dtype() == kBool) return py::bool_(integer != 0);
  if (x.dtype() == DType::kU64) return py::int_(static_cast<std::uint64_t>(integer));
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
    SetItem(target, index, value, /*accumulate=*/false);
    return Py_None;
  });
  return done == nullptr ? -1 : 0;
}

void SetSlots(PyHeapTypeObject* type) {
  SetUpTensorObjects(type);
  SetOperators(type);
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

// += alpha * y
template <Tensor& (Tensor::*kPlain)(const Operand&),
          Tensor& (Tensor::*kScaled)(const Operand&, const Scalar&)>
void Scaled(const Tensor& x, const Operand& y, const std::optional<Scalar>& alpha) {
  Tensor target = x;
  if (alpha)
    (target.*kScaled)(y, *alpha);
  else
    (target.*kPlain)(y);
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
py::object To(const Tensor& x, py::handle dtype, py::handle device) {
  const Caller caller;
  Tensor result = x;
  DType to;
  if (!dtype.is_none()) {
    if (!LoadDType(dtype.ptr(), to))
      ThrowTypeError(
          "to: dtype must be DType, not " +
          std::string(PyType_Check(dtype.ptr()) != 0 ? "type" : Py_TYPE(dtype.ptr())->tp_name));
    result = result.to(to);
  }
  if (!device.is_none()) result = result.to(ToDevice(device, "to"));
  return ToPython(std::move(result));
}

py::tuple Shape(const Tensor& x) { return NewSize(x.sizes()); }

// In place: a number, or a tensor of rank 0.
void FillWith(const Tensor& x, const Operand& value, SourceLocation loc) {
  Tensor target = x;
  if (value.tensor() == nullptr)
    target.fill_(*value.scalar(), loc);
  else
    target.fill_(*value.tensor(), loc);
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
            const ReleasedGil release;
            return item.get<double>();
          },
          "The number, as a float; waits for it.");
  py::class_<HookHandle>(module, "HookHandle", "What register_hook() gives.")
      .def("remove", &HookHandle::remove, "The hook is not called any more.")
      .def("__enter__", [](const HookHandle& handle) { return handle; })
      .def("__exit__", [](HookHandle& handle, const py::args&) { handle.remove(); });
  py::class_<Tensor> type(
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(tensor_type)));
  type.def(
      "__init__",
      [](py::detail::value_and_holder& made, const py::args& data, const py::kwargs& named) {
        const py::object construct = py::module_::import("lazuli._names").attr("construct");
        ConstructTensorObject(made, construct(*data, **named).cast<Tensor>());
      },
      py::detail::is_new_style_constructor());
  type.def_property_readonly("shape", &Shape, "The size of each dim, a tuple.")
      .def_property_readonly("dtype", &Tensor::dtype, "The type of the elements.")
      .def_property_readonly("device", &Tensor::device, "Where the tensor lives.")
      .def_property_readonly("ndim", &Tensor::dim, "The number of dims.")
      .def_property_readonly(
          "T",
          [](const Tensor& x) {
            const Caller caller;
            if (x.dim() <= 2) return x.t();
            std::vector<std::int64_t> dims(static_cast<std::size_t>(x.dim()));
            std::iota(dims.rbegin(), dims.rend(), 0);
            return x.permute(dims);
          },
          "The dims in reverse: the transpose of a tensor of rank 2.")
      .def("size", &Shape, "The size of each dim, a tuple.")
      .def("size", &Tensor::size, py::arg("dim"), "The size of a dim.")
      .def("dim", &Tensor::dim, "The number of dims.")
      .def("numel", &Tensor::numel, "The number of elements.")
      .def(
          "stride", [](const Tensor& x) { return py::tuple(py::cast(x.strides())); },
          "Elements between neighbours along each dim, as a tuple.")
      .def("stride", &Tensor::stride, py::arg("dim"), "Elements between neighbours along a dim.")
      .def("storage_offset", &Tensor::storage_offset,
           "Where in the memory of the tensor that it is a view of the first element lies.")
      .def(
          "is_contiguous", [](const Tensor& x, py::handle) { return x.is_contiguous(); },
          py::arg("memory_format") = py::none(),
          "Whether the elements lie in memory one after the other in row-major order.")
      .def(
          "data_ptr",
          [](const Tensor& x) {
            const Caller caller;
            const ReleasedGil release;
            return reinterpret_cast<std::uintptr_t>(x.const_data_ptr());
          },
          "The address of the first element, until somebody writes; syncs.")
      .def_property_readonly(
          "_base", [](const Tensor& x) { return ToPython(x.base()); },
          "The tensor that this one is a view of, or None.")
      .def("_is_view", &Tensor::is_view, "Whether the tensor is a view.")
      .def_property_readonly("_version", &Tensor::version, "Writes to the memory so far.")
      .def("item", &Item, "The only element as a Python number; syncs.")
      .def("is_same", &Tensor::is_same, py::arg("other"), "Whether both are handles of one tensor.")
      .def(
          "index_put_",
          [](const py::object& self, py::handle indices, py::handle values, bool accumulate) {
            const Caller caller;
            Tensor target = *AsTensor(self.ptr());
            SetItem(target, indices, values, accumulate);
            return self;
          },
          py::arg("indices"), py::arg("values"), py::arg("accumulate") = false,
          "x[indices] = values, in place; x[indices] += values if accumulate, also of positions "
          "that occur more than once.")
      .def(
          "register_hook",
          [](Tensor& x, const py::function& hook) {
            const Caller caller;
            return RegisterHook(x, hook);
          },
          py::arg("hook"),
          "Calls hook(gradient) in each backward that reaches the tensor; a tensor that it returns "
          "takes the gradient's place. The handle's remove() ends that.")
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
  DefineMethod<&Tensor::t_>("t_", "(x)", "In place: the transpose of a tensor of rank 2.");
  DefineMethod<&Tensor::detach_>("detach_", "(x)",
                                 "In place: the history goes, the tensor is a leaf.");
  DefineMethod<&Tensor::fill_diagonal_>(
      "fill_diagonal_", "(x, fill_value, wrap = false)",
      "In place: the elements with one position along all dims become the number; with wrap those "
      "of a matrix that is higher than wide again after each gap of a row.");
  DefineMethod<&t>("t", "(x)", "The transpose of a tensor of rank 2.");
  DefineMethod<&requires_grad_>("requires_grad_", "(x, requires_grad = true)",
                                "Sets requires_grad.");
  DefineMethod<&set_name>("set_name", "(x, name)", "Sets the name for dumps.");
  DefineMethod<&FillWith>("fill_", "(x, value)",
                          "Every element becomes the number, or that of a tensor of rank 0.");
  DefineMethod<&Tensor::zero_>("zero_", "(x)", "Every element becomes 0, in place.");
  DefineMethod<&Tensor::copy_>("copy_", "(x, source)", "Takes the elements of source, in place.");
  DefineMethod<&Tensor::set_data>(
      "set_data", "(x, source)",
      "Takes elements, dtype and device of source and stays the same tensor.");
  DefineMethod<&Scaled<&Tensor::add_, &Tensor::add_>>("add_", "(x, y, alpha = nullopt)",
                                                      "In place: x + alpha * y.");
  DefineMethod<&Scaled<&Tensor::sub_, &Tensor::sub_>>("sub_", "(x, y, alpha = nullopt)",
                                                      "In place: x - alpha * y.");
}

}  // namespace lazuli::python
