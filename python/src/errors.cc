#include "python/src/errors.h"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <pybind11/pybind11.h>

#include "lazuli/error.h"
#include "python/src/bindings.h"

namespace lazuli::python {
namespace {

// The classes of errors. Each is the builtin class that says what is wrong, and by Error the
// RuntimeError that PyTorch makes of nearly all.
struct ErrorTypes {
  PyObject *error, *invalid_argument, *out_of_range, *unimplemented, *resource_exhausted,
      *not_found, *wrong_type, *wrong_argument, *linalg;
};
ErrorTypes& Types() {
  static ErrorTypes types;
  return types;
}

PyObject* TypeOf(ErrorCode code) {
  const ErrorTypes& types = Types();
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return types.invalid_argument;
    case ErrorCode::kOutOfRange:
      return types.out_of_range;
    case ErrorCode::kUnimplemented:
      return types.unimplemented;
    case ErrorCode::kResourceExhausted:
      return types.resource_exhausted;
    case ErrorCode::kNotFound:
      return types.not_found;
    case ErrorCode::kWrongType:
      return types.wrong_type;
    case ErrorCode::kLinAlg:
      return types.linalg;
    default:
      return types.error;
  }
}

// What messages of C++ advise, and what it is called in Python.
constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
    {"to_vector()", "tolist()"},
    {"under NoGrad", "under no_grad()"},
};

// A message may quote a file, whose bytes are no text. Null with an error of its own.
PyObject* Decoded(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "backslashreplace");
}

void SetPythonError(PyObject* type, std::string_view message) {
  PyObject* text = Decoded(message);
  if (text == nullptr) return;
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

// As SetPythonError, for an error whose attributes `op` and `place` say where it comes from.
void SetPlacedError(const Error& error, std::string_view message) {
  namespace py = pybind11;
  const auto text = py::reinterpret_steal<py::object>(Decoded(message));
  if (!text) return;
  const auto raised =
      py::reinterpret_steal<py::object>(PyObject_CallOneArg(TypeOf(error.code()), text.ptr()));
  if (!raised) return;
  for (const auto& [name, value] :
       {std::pair("op", &error.op()), std::pair("place", &error.place())}) {
    const auto attribute = py::reinterpret_steal<py::object>(Decoded(*value));
    if (!attribute || PyObject_SetAttrString(raised.ptr(), name, attribute.ptr()) != 0) return;
  }
  PyErr_SetObject(TypeOf(error.code()), raised.ptr());
}

// Unless there is one already: that of a signal, which ended a wait.
void SetError(const Error& error) {
  if (PyErr_Occurred() != nullptr) return;
  std::string message = error.what();
  for (const auto& [cpp, python] : kAdvice) {
    const std::size_t at = message.find(cpp);
    if (at != std::string::npos) message.replace(at, cpp.size(), python);
  }
  SetPlacedError(error, message);
}

}  // namespace

void SetErrorFromException() noexcept {
  try {
    throw;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::type_error& error) {
    SetPythonError(Types().wrong_argument, error.what());
  } catch (const pybind11::value_error& error) {
    SetPythonError(Types().invalid_argument, error.what());
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const Error& error) {
    SetError(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    SetPythonError(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
  }
}

void RegisterErrors(pybind11::module_& module) {
  const auto define = [&](const char* name, std::initializer_list<PyObject*> bases,
                          const char* doc) {
    pybind11::tuple tuple(bases.size());
    for (std::size_t i = 0; PyObject * base : bases)
      tuple[i++] = pybind11::reinterpret_borrow<pybind11::object>(base);
    PyObject* type = PyErr_NewExceptionWithDoc((std::string("lazuli.") + name).c_str(), doc,
                                               tuple.ptr(), /*dict=*/nullptr);
    if (type == nullptr) throw pybind11::error_already_set();
    module.attr(name) = pybind11::reinterpret_borrow<pybind11::object>(type);
    return type;
  };
  ErrorTypes& types = Types();
  types.error = define("Error", {PyExc_RuntimeError},
                       "What the library raises. `op` names the function and `place` the line that "
                       "called it (\"train.py:41\"); \"\" where it is not known.");
  for (const char* name : {"op", "place"}) module.attr("Error").attr(name) = "";
  types.invalid_argument = define("InvalidArgumentError", {types.error, PyExc_ValueError},
                                  "Shapes or values that do not fit.");
  types.out_of_range =
      define("OutOfRangeError", {types.error, PyExc_IndexError}, "An index or a dim out of range.");
  types.unimplemented = define("UnimplementedError", {types.error, PyExc_NotImplementedError},
                               "What the device, or the library, cannot do.");
  types.resource_exhausted = define("ResourceExhaustedError", {types.error, PyExc_MemoryError},
                                    "Memory for data that is not there.");
  types.not_found = define("NotFoundError", {types.error, PyExc_FileNotFoundError},
                           "A file or a device that is not there.");
  types.wrong_type =
      define("WrongTypeError", {types.invalid_argument, PyExc_TypeError, PyExc_NotImplementedError},
             "A dtype that the op does not take.");
  types.wrong_argument = define("WrongArgumentError", {types.error, PyExc_TypeError},
                                "Arguments of other types, names or number than a function has.");
  types.linalg = define("LinAlgError", {types.error},
                        "A matrix for which an algorithm fails: singular, not positive-definite.");
  pybind11::register_exception_translator([](std::exception_ptr exception) {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const Error& error) {
      SetError(error);
    } catch (const pybind11::type_error& error) {
      SetPythonError(Types().wrong_argument, error.what());
    }
  });
}

namespace {

namespace py = pybind11;

// What all functions of pybind11 call, and their names by what Python gives it as `self`.
PyCFunctionWithKeywords call = nullptr;
std::unordered_map<PyObject*, std::string>& Names() {
  static auto* names = new std::unordered_map<PyObject*, std::string>;  // NOLINT: as the functions
  return *names;
}

// The parameters in "    1. (self: lazuli.Tensor, dim: int) -> int" of pybind11's message, each
// overload's, without the object of a method.
std::string Overloads(std::string_view message) {
  std::string text;
  for (int i = 1;; ++i) {
    const std::string number = "\n    " + std::to_string(i) + ". ";
    const std::size_t at = message.find(number);
    if (at == std::string_view::npos) return text;
    std::string_view line = message.substr(at + number.size());
    line = line.substr(0, line.find('\n'));
    line = line.substr(0, line.rfind(" -> "));
    line.remove_prefix(std::min(line.find('('), line.size()));
    if (line.starts_with("(self: ")) {
      const std::size_t comma = line.find(", ");
      line.remove_prefix(comma == std::string_view::npos ? line.size() - 1 : comma + 2);
      text += (i == 1 ? "(" : " or (") + std::string(line);
    } else {
      text += (i == 1 ? "" : " or ") + std::string(line);
    }
  }
}

// Types that say nothing to users, and so are left out.
std::string WithoutOurTypes(std::string text) {
  for (const std::string_view type : {": handle", ": object"}) {
    for (std::size_t at = 0; (at = text.find(type, at)) != std::string::npos;)
      text.erase(at, type.size());
  }
  return text;
}

std::string TypesOf(PyObject* arguments, PyObject* named, bool method) {
  std::string text;
  const auto add = [&](std::string_view name, PyObject* object) {
    text += (text.empty() ? "" : ", ") + std::string(name) + Py_TYPE(object)->tp_name;
  };
  for (Py_ssize_t i = method ? 1 : 0; i < PyTuple_GET_SIZE(arguments); ++i)
    add("", PyTuple_GET_ITEM(arguments, i));
  if (named != nullptr) {
    for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(named))
      add(std::string(py::str(name)) + ": ", value.ptr());
  }
  return "(" + text + ")";
}

PyObject* CallAndReword(PyObject* self, PyObject* arguments, PyObject* named) {
  PyObject* result = call(self, arguments, named);
  if (result != nullptr || PyErr_ExceptionMatches(PyExc_TypeError) == 0) return result;
  const py::error_already_set error;
  const std::string message = py::str(error.value());
  const bool constructor = message.find("incompatible constructor arguments") != std::string::npos;
  if (!constructor && message.find("incompatible function arguments") == std::string::npos) {
    py::error_already_set(error).restore();
    return nullptr;
  }
  const bool method = constructor || message.find("\n    1. (self: ") != std::string::npos;
  PyErr_SetString(Types().wrong_argument,
                  (Names()[self] + ": takes " + WithoutOurTypes(Overloads(message)) + ", not " +
                   TypesOf(arguments, named, method))
                      .c_str());
  return nullptr;
}

void Reword(PyObject* function, const std::string& name) {
  if (PyInstanceMethod_Check(function)) function = PyInstanceMethod_GET_FUNCTION(function);
  if (!PyCFunction_Check(function) || PyCFunction_GET_SELF(function) == nullptr ||
      !PyCapsule_CheckExact(PyCFunction_GET_SELF(function)))
    return;
  PyMethodDef& definition = *reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  GiveSignature(definition);
  constexpr int kFlags = METH_VARARGS | METH_KEYWORDS;
  auto* present =
      reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(definition.ml_meth));
  if ((definition.ml_flags & kFlags) != kFlags || (call != nullptr && present != call)) return;
  call = present;
  definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&CallAndReword));
  Names().emplace(PyCFunction_GET_SELF(function), name);
}

// The name that users know: what begins with an underscore is what Python's part of the package
// calls.
std::string Shown(std::string name) {
  return name.starts_with("_") && !name.starts_with("__") ? name.substr(1) : name;
}

void RewordType(py::handle type) {
  const std::string type_name = py::str(type.attr("__name__"));
  const py::dict members(type.attr("__dict__"));
  for (const auto& [key, member] : members) {
    const std::string name = Shown(py::str(key));
    if (PyObject_TypeCheck(member.ptr(), &PyProperty_Type)) {
      for (const char* part : {"fget", "fset"}) Reword(member.attr(part).ptr(), name);
    } else if (PyObject_TypeCheck(member.ptr(), &PyStaticMethod_Type)) {
      Reword(member.attr("__func__").ptr(), name);
    } else {
      Reword(member.ptr(), name == "__init__" ? type_name : name);
    }
  }
}

}  // namespace

void RewordMismatches(py::handle module) {
  const py::dict members(module.attr("__dict__"));
  for (const auto& [key, member] : members) {
    if (PyType_Check(member.ptr()))
      RewordType(member);
    else
      Reword(member.ptr(), Shown(py::str(key)));
  }
}

void ThrowTypeError(const std::string& message) { throw pybind11::type_error(message); }

}  // namespace lazuli::python
