// NumPy is used as any Python package, through its array interface: no header of its, so one build
// serves every version.
#include "python/src/numpy.h"

#include <cstddef>
#include <memory>
#include <optional>

#include "cpp_api/src/facade.h"
#include "lazy/tensor/context.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/dlpack.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/graveyard.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

// NumPy's types are ours by name; it has none for the 4- and 8-bit floats and bfloat16.
bool NumPyHas(DType dtype) {
  return dtype != DType::kBF16 && PythonName(dtype) != to_string(dtype);
}

py::object NumPy(const char* name) { return py::module_::import("numpy").attr(name); }

// Memory that NumPy reads through __array_interface__ and that lives as long as this.
struct Memory {
  DType dtype;
  Dims dims;
  std::optional<Dims> strides;  // in bytes; none: one after the other
  const void* data;
  std::shared_ptr<const void> owner;

  py::dict Interface() const {
    py::dict interface;
    interface["version"] = 3;
    interface["typestr"] = NumPy("dtype")(std::string(PythonName(dtype))).attr("str");
    interface["shape"] = py::tuple(py::cast(dims));
    if (strides) interface["strides"] = py::tuple(py::cast(*strides));
    interface["data"] = py::make_tuple(reinterpret_cast<std::uintptr_t>(data), /*read_only=*/true);
    return interface;
  }
};

// The array's own memory as a tensor of the device, which keeps the array. Copied only if the
// device cannot use it.
Tensor Import(ArrayView array, backend::Device device) {
  PyObject* owner = array.array.release().ptr();
  return CallTensor(SourceLocation::current(), [&] {
    const ir::Shape shape(Unwrap(array.dtype), array.dims);
    auto buffer = lazy::ValueOrThrow(device.client->FromHost(
        {array.data, &shape}, [owner] { Graveyard::Get().Bury(owner); }, device));
    return lazy::Tensor(lazy::Context::Current().NewStorage(
        ir::MakeIntrusive<lazy::DataHandle>(std::move(buffer))));
  });
}

Tensor FromNumPy(const py::object& object, const py::object& device, bool copy) {
  const Caller caller;
  if (!py::isinstance(object, NumPy("ndarray")))
    ThrowTypeError("from_numpy: takes a numpy.ndarray, not " +
                   std::string(Py_TYPE(object.ptr())->tp_name));
  const Device where = ToDevice(device, "from_numpy");
  ArrayView view = ViewArray(copy ? object.attr("copy")("C") : object, "from_numpy");
  return Import(std::move(view), DeviceAccess::Unwrap(where));
}

// What NumPy has no type for, as DLPack's capsule.
py::object Export(const Tensor& x) {
  const Caller caller;
  auto copy = std::make_shared<ir::Literal>(
      Call(SourceLocation::current(), [&] { return lazy::ToLiteral(TensorAccess::Unwrap(x)); }));
  return ToDLPack(copy->shape(), copy->raw(), copy);
}

Tensor ImportDLPack(const py::object& capsule) {
  const Caller caller;
  const ir::Literal literal = FromDLPack(capsule);
  return CallTensor(SourceLocation::current(),
                    [&] { return lazy::FromLiteral(literal, DeviceAccess::Unwrap(Device())); });
}

}  // namespace

ArrayView ViewArray(const py::object& object, const char* op) {
  const py::object native = object.attr("dtype").attr("newbyteorder")("=");
  ArrayView view;
  view.array = NumPy("require")(object, native, py::make_tuple("C", "A"));
  const std::string name = py::str(native.attr("name"));
  if (!LoadDType(native.ptr(), view.dtype))
    ThrowTypeError(std::string(op) + ": there is no tensor of " + name);
  view.dims = view.array.attr("shape").cast<Dims>();
  view.bytes = view.array.attr("nbytes").cast<std::size_t>();
  const py::dict interface = view.array.attr("__array_interface__");
  view.data =
      reinterpret_cast<const void*>(interface["data"].cast<py::tuple>()[0].cast<std::uintptr_t>());
  return view;
}

py::object MakeArray(DType dtype, Dims dims, const void* data, std::shared_ptr<const void> owner,
                     std::optional<Dims> strides) {
  for (const std::int64_t n : dims) {
    if (n == 0) return NumPy("empty")(dims, std::string(PythonName(dtype)));
  }
  return NumPy("asarray")(
      Memory{dtype, std::move(dims), std::move(strides), data, std::move(owner)});
}

py::object ToNumPy(const Tensor& x) {
  const Caller caller;
  if (!NumPyHas(x.dtype())) {
    throw Error(ErrorCode::kUnimplemented, "numpy: has no " + std::string(to_string(x.dtype())) +
                                               "; convert it by to(lazuli.float32) (" +
                                               SiteScope::place() + ")");
  }
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  std::optional<Dims> strides;
  {
    const ReleasedGil release;
    Call(SourceLocation::current(), [&] {
      const lazy::Tensor tensor = TensorAccess::Unwrap(x);
      const lazy::View* const view = tensor.storage().view();
      // A view of the base's memory, which has the elements.
      const backend::BufferPtr buffer =
          lazy::ToBuffer(view == nullptr ? tensor : lazy::Tensor(view->base()));
      data = buffer->host_data();
      owner = buffer;
      if (data != nullptr && view != nullptr) {
        const std::int64_t bytes = ir::ByteWidth(tensor.dtype());
        data = static_cast<const std::byte*>(data) + view->offset() * bytes;
        strides.emplace();
        for (const std::int64_t stride : view->strides()) strides->push_back(stride * bytes);
      }
      if (data != nullptr) return;
      auto copy = std::make_shared<ir::Literal>(lazy::ToLiteral(TensorAccess::Unwrap(x)));
      data = copy->raw();
      owner = std::move(copy);
    });
  }
  return MakeArray(x.dtype(), x.sizes(), data, std::move(owner), std::move(strides));
}

void BindNumPy(py::module_& module) {
  py::class_<Memory>(module, "_Memory")
      .def_property_readonly("__array_interface__", &Memory::Interface);
  auto type = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(tensor_type));
  py::class_<Tensor> tensor(type);
  tensor.def(
      "numpy", &ToNumPy,
      "The elements as a read-only array, which shares the device's memory where that is the "
      "host's; syncs.");
  // NumPy then leaves `array * tensor` to the tensor, which says what to do, instead of making an
  // array of tensors.
  type.attr("__array_ufunc__") = py::none();
  module.def("_from_numpy", &FromNumPy);
  module.def("_from_dlpack", &ImportDLPack);
  module.def("_to_dlpack", &Export);
  py::module_::import("atexit").attr("register")(
      py::cpp_function([] { Graveyard::Get().Close(); }));
}

}  // namespace lazuli::python
