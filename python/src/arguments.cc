#include "python/src/arguments.h"

#include <array>
#include <sstream>
#include <string>

#include "cpp_api/src/facade.h"
#include "ir/support/str.h"
#include "python/src/caller.h"
#include "python/src/errors.h"

namespace lazuli::python {
namespace {

// NumPy's base of scalars such as numpy.float32(1).
bool IsNumPyScalar(PyObject* object) {
  static PyObject* type = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
  return PyObject_IsInstance(object, type) == 1;
}

struct DTypeName {
  DType dtype;
  std::string_view name;
};
// torch's names; other dtypes go by HLO's.
constexpr std::array kNames = {
    DTypeName{DType::kPred, "bool"},       DTypeName{DType::kS8, "int8"},
    DTypeName{DType::kS16, "int16"},       DTypeName{DType::kS32, "int32"},
    DTypeName{DType::kS64, "int64"},       DTypeName{DType::kU8, "uint8"},
    DTypeName{DType::kU16, "uint16"},      DTypeName{DType::kU32, "uint32"},
    DTypeName{DType::kU64, "uint64"},      DTypeName{DType::kF16, "float16"},
    DTypeName{DType::kBF16, "bfloat16"},   DTypeName{DType::kF32, "float32"},
    DTypeName{DType::kF64, "float64"},     DTypeName{DType::kC64, "complex64"},
    DTypeName{DType::kC128, "complex128"},
};
constexpr int kDTypes = static_cast<int>(DType::kF4E2M1FN) + 1;

}  // namespace

std::optional<DType> DTypeNamed(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (name == PythonName(dtype) || name == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

std::string_view PythonName(DType dtype) {
  for (const DTypeName& row : kNames) {
    if (row.dtype == dtype) return row.name;
  }
  return to_string(dtype);
}

std::string_view TextOf(PyObject* str) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(str, &size);
  if (data == nullptr) throw py::error_already_set();
  return {data, static_cast<std::size_t>(size)};
}

std::optional<Scalar> LoadScalar(PyObject* object) {
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return Scalar(object == Py_True);
  if (PyLong_Check(object)) {
    int overflow = 0;
    const std::int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return Scalar(value);
    const std::uint64_t large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow > 0 && PyErr_Occurred() == nullptr) return Scalar(large);
    PyErr_Clear();
    PyErr_SetString(
        PyExc_OverflowError,
        "an integer beside a tensor has at most 64 bits; write a larger one as a float");
    throw py::error_already_set();
  }
  if (PyComplex_Check(object))
    return Scalar(
        std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  if (AsTensor(object) != nullptr || !IsNumPyScalar(object)) return std::nullopt;
  const auto item = py::reinterpret_steal<py::object>(PyObject_CallMethod(object, "item", nullptr));
  if (!item) throw py::error_already_set();
  return IsNumPyScalar(item.ptr()) ? std::nullopt : LoadScalar(item.ptr());
}

bool LoadInteger(PyObject* object, std::int64_t& out) {
  if (const Tensor* tensor = AsTensor(object)) {  // an integer, which is read
    if (tensor->dim() != 0 || !ir::IsIntegral(Unwrap(tensor->dtype()))) return false;
    const Caller caller;
    out = tensor->item<std::int64_t>();
    return true;
  }
  if (PyFloat_Check(object) || !PyIndex_Check(object)) return false;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object));
  if (!index) throw py::error_already_set();
  out = PyLong_AsLongLong(index.ptr());
  if (out == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return true;
}

bool LoadReal(PyObject* object, double& out) {
  const std::optional<Scalar> number = LoadScalar(object);
  if (!number || number->is_complex()) return false;
  out = number->value();
  return true;
}

std::vector<std::int64_t> IntegersOf(std::string_view text) {
  std::vector<std::int64_t> integers;
  if (!text.starts_with('{')) return integers;
  std::istringstream words{std::string(text.substr(1, text.size() - 2))};
  for (std::string word; std::getline(words, word, ',');) integers.push_back(std::stoll(word));
  return integers;
}

bool LoadIntegers(PyObject* object, std::vector<std::int64_t>& out) {
  out.clear();
  if (PyBool_Check(object)) return false;
  std::int64_t value = 0;
  if (LoadInteger(object, value)) {
    out.push_back(value);
    return true;
  }
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (!LoadInteger(PySequence_Fast_GET_ITEM(object, i), value)) return false;
    out.push_back(value);
  }
  return true;
}

bool LoadDType(PyObject* object, DType& out) {
  if (py::isinstance<DType>(object)) {
    out = py::cast<DType>(py::handle(object));
    return true;
  }
  if (PyUnicode_Check(object)) return false;  // DTypeNamed() takes names
  std::optional<DType> found;
  if (object != Py_None && !PyNumber_Check(object)) {
    const py::object numpy_dtype = py::module_::import("numpy").attr("dtype");
    const auto dtype =
        py::reinterpret_steal<py::object>(PyObject_CallOneArg(numpy_dtype.ptr(), object));
    if (!dtype)
      PyErr_Clear();
    else
      found = DTypeNamed(TextOf(dtype.attr("name").ptr()));
  }
  if (found) out = *found;
  return found.has_value();
}

bool LoadDevice(PyObject* object, std::optional<Device>& out) {
  if (object == Py_None) return true;
  if (PyUnicode_Check(object)) {
    out = Device(TextOf(object));
    return true;
  }
  if (!py::isinstance<Device>(object)) return false;
  out = py::cast<Device>(py::handle(object));
  return true;
}

Device ToDevice(py::handle device, std::string_view op) {
  std::optional<Device> where;
  if (!LoadDevice(device.ptr(), where)) {
    ThrowTypeError(
        ir::Str(op, ": device must be Device or str, not ", Py_TYPE(device.ptr())->tp_name));
  }
  return where.value_or(Device());
}

void ThrowNoChoice(std::string_view got, absl::Span<const std::string_view> choices) {
  throw py::value_error(
      ir::Str("'", got, "' is not a choice; there are '", ir::Join(choices, "', '"), "'"));
}

bool LoadTensors(PyObject* object, std::vector<Tensor>& out) {
  if (AsTensor(object) != nullptr) return false;  // iterating one would take its rows
  const auto iterator = py::reinterpret_steal<py::object>(PyObject_GetIter(object));
  if (!iterator) {
    PyErr_Clear();
    return false;
  }
  while (PyObject* next = PyIter_Next(iterator.ptr())) {
    const auto item = py::reinterpret_steal<py::object>(next);
    const Tensor* tensor = AsTensor(next);
    if (tensor == nullptr) return false;
    out.push_back(*tensor);
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  return true;
}

}  // namespace lazuli::python
