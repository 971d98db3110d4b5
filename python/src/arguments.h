// How a Python value becomes a C++ argument, one Argument<T> a type, and how results go back.
//
// An Argument has kType (as stubs and messages say it), Load (false: not that type), Pass (what the
// C++ function is given) and Default (the Python object for a default as C++ writes it).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include <pybind11/pybind11.h>

#include "lazuli/device.h"
#include "lazuli/dtype.h"
#include "lazuli/nn.h"
#include "lazuli/tensor.h"
#include "python/src/aggregate.h"
#include "python/src/stl.h"  // before anything asks for a conversion of a container
#include "python/src/tensor_object.h"

namespace lazuli::python {

namespace py = pybind11;

// The tensor a Python object is; null for anything else.
inline const Tensor* AsTensor(PyObject* object) {
  if (!PyObject_TypeCheck(object, tensor_type)) return nullptr;
  auto* instance = reinterpret_cast<py::detail::instance*>(object);
  return static_cast<const Tensor*>(instance->get_value_and_holder().value_ptr());
}
inline bool Is(PyObject* object, PyTypeObject& type) { return PyObject_TypeCheck(object, &type); }

// Numbers: Python's, and NumPy's scalars; throws for an integer beyond 64 bits.
std::optional<Scalar> LoadScalar(PyObject* object);
bool LoadInteger(PyObject* object, std::int64_t& out);
bool LoadReal(PyObject* object, double& out);
// One integer or a sequence of them.
bool LoadIntegers(PyObject* object, std::vector<std::int64_t>& out);
std::vector<std::int64_t> IntegersOf(std::string_view text);  // of a default: {-2, -1}
// A DType, float, int, bool, or another object that numpy.dtype() takes. Names are refused, as in
// PyTorch.
bool LoadDType(PyObject* object, DType& out);
std::optional<DType> DTypeNamed(std::string_view name);  // "float32", or HLO's "f32"
std::string_view PythonName(DType dtype);                // "float32"
// A Device, its name, or None for the default; ToDevice throws TypeError for anything else.
bool LoadDevice(PyObject* object, std::optional<Device>& out);
Device ToDevice(py::handle device, std::string_view op);
bool LoadTensors(PyObject* object, std::vector<Tensor>& out);
std::string_view TextOf(PyObject* str);

template <class T>
struct Argument;

template <class T>
struct StoredArgument {
  using Stored = T;
  static const T& Pass(const T& stored) { return stored; }
};

template <>
struct Argument<Tensor> {
  static constexpr std::string_view kType = "Tensor";
  using Stored = const Tensor*;
  static bool Load(PyObject* object, Stored& out) {
    static const Tensor undefined;
    out = object == Py_None ? &undefined : AsTensor(object);
    return out != nullptr;
  }
  static const Tensor& Pass(Stored stored) { return *stored; }
  static py::object Default(std::string_view) { return py::none(); }  // {}: undefined
};

template <>
struct Argument<Operand> {
  static constexpr std::string_view kType = "Tensor | float | int | bool";
  using Stored = std::optional<Operand>;
  static bool Load(PyObject* object, Stored& out) {
    if (const Tensor* tensor = AsTensor(object)) {
      out.emplace(*tensor);
    } else if (const std::optional<Scalar> number = LoadScalar(object)) {
      out.emplace(*number);
    }
    return out.has_value();
  }
  static const Operand& Pass(const Stored& stored) { return *stored; }
};

template <>
struct Argument<Scalar> {
  static constexpr std::string_view kType = "float | int | bool";
  using Stored = std::optional<Scalar>;
  static bool Load(PyObject* object, Stored& out) { return (out = LoadScalar(object)).has_value(); }
  static const Scalar& Pass(const Stored& stored) { return *stored; }
  static py::object Default(std::string_view text) {  // 1 keeps integers, 1.0 does not
    const double value = std::stod(std::string(text));
    if (text.find_first_of(".e") == text.npos) return py::int_(static_cast<std::int64_t>(value));
    return py::float_(value);
  }
};

template <>
struct Argument<bool> : StoredArgument<bool> {
  static constexpr std::string_view kType = "bool";
  static bool Load(PyObject* object, bool& out) {
    out = object == Py_True;
    return PyBool_Check(object);
  }
  static py::object Default(std::string_view text) { return py::bool_(text == "true"); }
  static py::object ToPython(bool value) { return py::bool_(value); }
};

template <>
struct Argument<Unbiased> : StoredArgument<Unbiased> {
  static constexpr std::string_view kType = "bool";
  static bool Load(PyObject* object, Unbiased& out) {
    out = object == Py_True ? Unbiased::kTrue : Unbiased::kFalse;
    return PyBool_Check(object);
  }
};

template <>
struct Argument<std::int64_t> : StoredArgument<std::int64_t> {
  static constexpr std::string_view kType = "int";
  static bool Load(PyObject* object, std::int64_t& out) { return LoadInteger(object, out); }
  static py::object Default(std::string_view text) {
    return py::int_(std::stol(std::string(text)));
  }
  static py::object ToPython(std::int64_t value) { return py::int_(value); }
};

template <>
struct Argument<std::uint64_t> : StoredArgument<std::uint64_t> {
  static constexpr std::string_view kType = "int";
  static bool Load(PyObject* object, std::uint64_t& out) {
    if (!PyLong_Check(object)) return false;
    out = PyLong_AsUnsignedLongLongMask(object);
    return true;
  }
  static py::object ToPython(std::uint64_t value) { return py::int_(value); }
};

template <>
struct Argument<double> : StoredArgument<double> {
  static constexpr std::string_view kType = "float";
  static bool Load(PyObject* object, double& out) { return LoadReal(object, out); }
  static py::object Default(std::string_view text) {
    return py::float_(std::stod(std::string(text)));
  }
  static py::object ToPython(double value) { return py::float_(value); }
};

template <>
struct Argument<std::string> : StoredArgument<std::string> {
  static constexpr std::string_view kType = "str";
  static bool Load(PyObject* object, std::string& out) {
    if (!PyUnicode_Check(object)) return false;
    out = TextOf(object);
    return true;
  }
  static py::object Default(std::string_view text) {  // "none", with its quotes
    return py::str(text.substr(1, text.size() - 2));
  }
  static py::object ToPython(const std::string& value) { return py::str(value); }
};

template <class List>
struct IntegersArgument : StoredArgument<List> {
  static constexpr std::string_view kType = "int | Sequence[int]";
  static bool Load(PyObject* object, List& out) { return LoadIntegers(object, out); }
  static py::object Default(std::string_view text) {  // {-2, -1}
    return py::tuple(py::cast(IntegersOf(text)));
  }
  static py::object ToPython(const std::vector<std::int64_t>& list) {
    return py::tuple(py::cast(list));
  }
};
template <>
struct Argument<Dims> : IntegersArgument<Dims> {};
// A row of integers, for which no number stands.
struct DimsRow : Dims {
  using Dims::Dims;
};
template <>
struct Argument<DimsRow> : IntegersArgument<DimsRow> {
  static constexpr std::string_view kType = "Sequence[int]";
  static bool Load(PyObject* object, DimsRow& out) {
    return (PyTuple_Check(object) || PyList_Check(object)) && LoadIntegers(object, out);
  }
};
// None stands for no integers.
struct DimsOrNone : Dims {
  using Dims::Dims;
};
template <>
struct Argument<DimsOrNone> : IntegersArgument<DimsOrNone> {
  static constexpr std::string_view kType = "int | Sequence[int] | None";
  static bool Load(PyObject* object, DimsOrNone& out) {
    return object == Py_None || LoadIntegers(object, out);
  }
  static py::object Default(std::string_view) { return py::none(); }
};
template <>
struct Argument<std::vector<std::int64_t>> : IntegersArgument<std::vector<std::int64_t>> {};

template <>
struct Argument<std::vector<double>> : StoredArgument<std::vector<double>> {
  static constexpr std::string_view kType = "float | Sequence[float]";
  static bool Load(PyObject* object, std::vector<double>& out) {  // None is none
    double one = 0;
    if (object == Py_None) return true;
    if (LoadReal(object, one)) {
      out.push_back(one);
      return true;
    }
    if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!LoadReal(PySequence_Fast_GET_ITEM(object, i), one)) return false;
      out.push_back(one);
    }
    return true;
  }
  static py::object Default(std::string_view) { return py::tuple(); }
  static py::object ToPython(const std::vector<double>& values) {
    return py::tuple(py::cast(values));
  }
};

template <>
struct Argument<DType> : StoredArgument<DType> {
  static constexpr std::string_view kType = "DType";
  static bool Load(PyObject* object, DType& out) { return LoadDType(object, out); }
  static py::object Default(std::string_view text) {
    return py::cast(text == "kInt64" ? kInt64 : kFloat32);
  }
};

template <>
struct Argument<Device> {
  static constexpr std::string_view kType = "Device | str | None";
  using Stored = std::optional<Device>;
  static bool Load(PyObject* object, Stored& out) { return LoadDevice(object, out); }
  static const Device& Pass(Stored& stored) { return stored ? *stored : stored.emplace(); }
  static py::object Default(std::string_view) { return py::none(); }
};

template <>
struct Argument<Generator> {
  static constexpr std::string_view kType = "Generator";
  using Stored = const Generator*;
  static bool Load(PyObject* object, Stored& out) {
    if (!py::isinstance<Generator>(object)) return false;
    out = &py::cast<const Generator&>(py::handle(object));
    return true;
  }
  static const Generator& Pass(Stored stored) { return *stored; }
};

// Choices are strings: these, in the order of the enumerators.
template <class E>
inline constexpr std::array<std::string_view, 0> kChoices = {};
template <>
inline constexpr std::array<std::string_view, 3> kChoices<nn::Reduction> = {"none", "mean", "sum"};
[[noreturn]] void ThrowNoChoice(std::string_view got, absl::Span<const std::string_view> choices);

template <>
inline constexpr std::array<std::string_view, 2> kChoices<nn::init::Fan> = {"fan_in", "fan_out"};
template <>
inline constexpr std::array<std::string_view, 6> kChoices<nn::init::Nonlinearity> = {
    "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"};

template <class E>
  requires std::is_enum_v<E>
struct Argument<E> : StoredArgument<E> {
  static constexpr std::string_view kType = "str";
  static bool Load(PyObject* object, E& out) {
    if (!PyUnicode_Check(object)) return false;
    const std::string_view name = TextOf(object);
    for (std::size_t i = 0; i < kChoices<E>.size(); ++i) {
      if (name != kChoices<E>[i]) continue;
      out = static_cast<E>(i);
      return true;
    }
    ThrowNoChoice(name, kChoices<E>);
  }
  static py::object Default(std::string_view text) {  // Reduction::kMean
    std::string name(text.substr(text.rfind(':') + 2));
    name[0] = static_cast<char>(name[0] | 0x20);
    return py::str(name);
  }
  static py::object ToPython(E value) {
    return py::str(std::string(kChoices<E>[static_cast<std::size_t>(value)]));
  }
};

template <>
struct Argument<std::vector<Tensor>> : StoredArgument<std::vector<Tensor>> {
  static constexpr std::string_view kType = "Iterable[Tensor]";
  static bool Load(PyObject* object, std::vector<Tensor>& out) { return LoadTensors(object, out); }
};

// One number, or a row of one, as functions of rows take it in PyTorch.
struct Size1 {
  explicit Size1(std::int64_t n) : value(n) {}
  std::int64_t value;
  operator std::int64_t() const { return value; }  // NOLINT(google-explicit-constructor)
};
template <class T>
struct Argument<std::optional<T>> : StoredArgument<std::optional<T>> {
  static constexpr std::string_view kType = Argument<T>::kType;
  static bool Load(PyObject* object, std::optional<T>& out) {
    if (object == Py_None) return true;
    if constexpr (std::is_same_v<T, nn::Size2> || std::is_same_v<T, Size1>) {
      if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 0) return true;  // as None
    }
    typename Argument<T>::Stored stored{};
    if (!Argument<T>::Load(object, stored)) return false;
    out = Argument<T>::Pass(stored);
    return true;
  }
  static py::object Default(std::string_view) { return py::none(); }
  static py::object ToPython(const std::optional<T>& value) {
    if (!value) return py::none();
    if constexpr (requires { Argument<T>::ToPython(*value); })
      return Argument<T>::ToPython(*value);
    else
      return py::cast(*value);
  }
};

// Two numbers; one stands for both where they are sizes.
template <>
struct Argument<nn::Size2> {
  static constexpr std::string_view kType = "int | tuple[int, int]";
  using Stored = std::optional<nn::Size2>;
  static bool Load(PyObject* object, Stored& out) {
    std::vector<std::int64_t> values;
    if (!LoadIntegers(object, values) || values.empty() || values.size() > 2) return false;
    out.emplace(values.front(), values.back());
    return true;
  }
  static const nn::Size2& Pass(const Stored& stored) { return *stored; }
  static py::object Default(std::string_view text) {
    return py::int_(std::stol(std::string(text)));
  }
  static py::object ToPython(const nn::Size2& value) {
    if (value.height == value.width) return py::int_(value.height);
    return py::make_tuple(value.height, value.width);
  }
};
template <>
struct Argument<Size1> {
  static constexpr std::string_view kType = "int | tuple[int]";
  using Stored = std::optional<Size1>;
  static bool Load(PyObject* object, Stored& out) {
    std::vector<std::int64_t> values;
    if (!LoadIntegers(object, values) || values.size() != 1) return false;
    out.emplace(values.front());
    return true;
  }
  static Size1 Pass(const Stored& stored) { return *stored; }
  static py::object Default(std::string_view text) {
    return py::int_(std::stol(std::string(text)));
  }
};
template <>
struct Argument<OptionalSize2> : StoredArgument<OptionalSize2> {
  static constexpr std::string_view kType = "int | tuple[int, int]";
  static bool Load(PyObject* object, OptionalSize2& out) {
    return Argument<std::optional<nn::Size2>>::Load(object, out);
  }
  static py::object Default(std::string_view) { return py::none(); }
  static py::object ToPython(const OptionalSize2& value) {
    return value ? Argument<nn::Size2>::ToPython(*value) : py::none();
  }
};
template <>
struct Argument<Padding> {
  static constexpr std::string_view kType = "int | tuple[int, int] | str";
  using Stored = std::optional<Padding>;
  static bool Load(PyObject* object, Stored& out) {
    std::optional<nn::Size2> size;
    if (PyUnicode_Check(object))
      out.emplace(std::string(TextOf(object)).c_str());
    else if (Argument<nn::Size2>::Load(object, size))
      out.emplace(*size);
    return out.has_value();
  }
  static const Padding& Pass(const Stored& stored) { return *stored; }
  static py::object Default(std::string_view text) { return Argument<nn::Size2>::Default(text); }
  static py::object ToPython(const Padding& value) {
    if (value.same) return py::str("same");
    return Argument<nn::Size2>::ToPython(value);
  }
};
template <>
struct Argument<std::pair<std::int64_t, std::int64_t>>
    : StoredArgument<std::pair<std::int64_t, std::int64_t>> {
  static constexpr std::string_view kType = "int | tuple[int, int]";
  static bool Load(PyObject* object, std::pair<std::int64_t, std::int64_t>& out) {
    std::vector<std::int64_t> values;
    if (!LoadIntegers(object, values) || values.empty() || values.size() > 2) return false;
    out = {values.front(), values.back()};
    return true;
  }
  static py::object ToPython(const std::pair<std::int64_t, std::int64_t>& value) {
    return Argument<nn::Size2>::ToPython(nn::Size2(value.first, value.second));
  }
};
template <>
struct Argument<std::pair<double, double>> : StoredArgument<std::pair<double, double>> {
  static constexpr std::string_view kType = "tuple[float, float]";
  static bool Load(PyObject* object, std::pair<double, double>& out) {
    return (PyTuple_Check(object) || PyList_Check(object)) &&
           PySequence_Fast_GET_SIZE(object) == 2 &&
           LoadReal(PySequence_Fast_GET_ITEM(object, 0), out.first) &&
           LoadReal(PySequence_Fast_GET_ITEM(object, 1), out.second);
  }
  static py::object ToPython(const std::pair<double, double>& value) {
    return py::make_tuple(value.first, value.second);
  }
};

// --- results; an undefined tensor is None

inline py::object ToPython(Tensor tensor) {
  return tensor.defined() ? TensorObject(std::move(tensor)) : py::none();
}
inline py::object ToPython(std::pair<Tensor, Tensor> pair) {
  return py::make_tuple(ToPython(std::move(pair.first)), ToPython(std::move(pair.second)));
}
inline py::object ToPython(std::vector<Tensor> tensors) {
  py::tuple tuple(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) tuple[i] = ToPython(std::move(tensors[i]));
  return tuple;
}
// Results of which some may be undefined: those that are there, or the only one.
inline py::object ThoseDefined(std::tuple<Tensor, Tensor, Tensor> results) {
  py::list list;
  std::apply(
      [&](auto&... each) {
        ((each.defined() ? list.append(ToPython(std::move(each))) : void()), ...);
      },
      results);
  return list.size() == 1 ? py::object(list[0]) : py::object(py::tuple(list));
}
inline py::object ThoseDefined(std::pair<Tensor, Tensor> results) {
  return ThoseDefined(
      std::tuple<Tensor, Tensor, Tensor>(std::move(results.first), std::move(results.second), {}));
}
inline py::object ToPython(double number) { return py::float_(number); }
inline py::object ToPython(py::object object) { return object; }

}  // namespace lazuli::python
