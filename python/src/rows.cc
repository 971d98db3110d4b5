#include "python/src/rows.h"

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpp_api/src/inplace.h"
#include "ir/support/str.h"
#include "python/src/caller.h"
#include "python/src/torch_function.h"

namespace lazuli::python {
namespace {

constexpr std::size_t kMostParameters = 16;

const Signature& Describe(FunctionRow& row) {
  if (row.signature != nullptr) return *row.signature;
  auto* signature = new Signature;
  Restart(*signature, row.name, row.doc);
  signature->result = row.result;
  signature->takes_out = row.out.taken;
  for (const ParameterRow& p : row.parameters) p.add(*signature, {p.name, p.fallback});
  FindGathered(*signature);
  if (signature->parameters.size() > kMostParameters)
    throw std::logic_error(signature->name + " has more parameters than a call has slots");
  return *(row.signature = signature);
}

PyObject* Run(const FunctionRow& row, PyObject* first, PyObject* const* arguments, Py_ssize_t n,
              PyObject* names) {
  std::array<PyObject*, kMostParameters> all{};
  const Slots slots(all.data(), row.signature->parameters.size());
  py::object gathered;
  row.signature->Sort(first, arguments, static_cast<std::size_t>(n), names, slots, gathered);
  return row.call(*row.signature, slots);
}

// Where out= is among the keyword arguments; -1: it is not.
Py_ssize_t PlaceOfOut(PyObject* names) {
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (TextOf(PyTuple_GET_ITEM(names, i)) == "out") return i;
  }
  return -1;
}

// The tensors among the arguments, and in lists of them.
void AddTensors(PyObject* object, std::vector<Tensor>& tensors) {
  if (const Tensor* tensor = AsTensor(object)) {
    if (tensor->defined()) tensors.push_back(*tensor);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      AddTensors(PySequence_Fast_GET_ITEM(object, i), tensors);
  }
}

// Throws where out=, a tensor or several, shares memory with an argument in a way that the row does
// not allow.
void CheckApart(const FunctionRow& row, PyObject* out, absl::Span<PyObject* const> arguments) {
  std::vector<Tensor> outs, operands;
  AddTensors(out, outs);
  for (PyObject* argument : arguments) AddTensors(argument, operands);
  for (const Tensor& to : outs) {
    for (const Tensor& operand : operands) CheckOutApart(row.name, to, operand, row.out.apart);
  }
}

// out := result, as PyTorch has it, who says so where dims differ.
void Write(const FunctionRow& row, py::handle out, py::handle result) {
  const Tensor* const to = AsTensor(out.ptr());
  if (to == nullptr) {
    ThrowTypeError(std::string(row.name) + ": out must be Tensor, not " +
                   Py_TYPE(out.ptr())->tp_name);
  }
  const bool had_elements = to->numel() != 0;
  if (AssignOut(row.name, *to, *AsTensor(result.ptr()), row.out.casts) || !had_elements) return;
  const std::string said =
      std::string(row.name) + ": out= has other dims than the result, and is resized to them";
  if (PyErr_WarnEx(PyExc_UserWarning, said.c_str(), 1) != 0) throw py::error_already_set();
}

// A call with out=, which the results are written to and which is what the call gives.
PyObject* RunInto(const FunctionRow& row, PyObject* const* arguments, Py_ssize_t n, PyObject* names,
                  Py_ssize_t place) {
  std::vector<PyObject*> others(arguments, arguments + n + PyTuple_GET_SIZE(names));
  PyObject* const out = others[static_cast<std::size_t>(n + place)];
  others.erase(others.begin() + n + place);
  CheckApart(row, out, others);
  py::list kept(py::reinterpret_borrow<py::tuple>(names));
  kept.attr("pop")(place);
  auto result =
      py::reinterpret_steal<py::object>(Run(row, nullptr, others.data(), n, py::tuple(kept).ptr()));
  if (!result) throw py::error_already_set();
  if (out == Py_None) return result.release().ptr();
  const Caller caller;
  if (AsTensor(result.ptr()) != nullptr) {
    Write(row, out, result);
    return Py_NewRef(out);
  }
  const auto results = py::reinterpret_borrow<py::sequence>(result);
  if (PySequence_Check(out) == 0 || AsTensor(out) != nullptr ||
      PySequence_Size(out) != static_cast<Py_ssize_t>(results.size())) {
    ThrowTypeError(std::string(row.name) + ": out must be a tuple of " +
                   std::to_string(results.size()) + " tensors");
  }
  const auto outs = py::reinterpret_borrow<py::sequence>(out);
  for (std::size_t i = 0; i < results.size(); ++i) Write(row, outs[i], results[i]);
  return Py_NewRef(out);
}

PyObject* RunFunction(const FunctionRow& row, PyObject* first, PyObject* const* arguments,
                      Py_ssize_t n, PyObject* names) {
  if (names != nullptr && first == nullptr && row.out.taken) [[unlikely]] {
    const Py_ssize_t place = PlaceOfOut(names);
    if (place >= 0) return RunInto(row, arguments, n, names, place);
  }
  return Run(row, first, arguments, n, names);
}

py::object ModuleOf(const py::module_& module, std::string_view name) {
  py::object owner = module;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    owner = owner.attr(std::string(name.substr(0, dot)).c_str());
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return owner;
}

std::vector<const Signature*> DescribeAll(FunctionRows rows) {
  std::vector<const Signature*> signatures;
  for (FunctionRow* row : rows) {
    Describe(*row);
    row->signature->overloaded = true;
    signatures.push_back(row->signature);
  }
  return signatures;
}

py::handle TensorType() { return reinterpret_cast<PyObject*>(tensor_type); }

}  // namespace

PyObject* CallRow(const FunctionRow& row, PyObject* first, PyObject* const* arguments, Py_ssize_t n,
                  PyObject* names) noexcept {
  return Guarded([&]() -> PyObject* {
    try {
      return RunFunction(row, first, arguments, n, names);
    } catch (const py::type_error&) {
      PyObject* const result = AskTorchFunction(row.name, first, arguments, n, names);
      if (result == nullptr) throw;
      return result;
    }
  });
}

PyObject* CallOverloads(FunctionRows rows, PyObject* first, PyObject* const* arguments,
                        Py_ssize_t n, PyObject* names) noexcept {
  return Guarded([&]() -> PyObject* {
    const auto run = [&](std::string* forms) -> std::optional<PyObject*> {
      for (const FunctionRow* row : rows) {
        try {
          return RunFunction(*row, first, arguments, n, names);
        } catch (const py::type_error&) {  // of the arguments: what the library refuses is an Error
          if (forms == nullptr) continue;
          *forms += (forms->empty() ? "" : " or ") + row->signature->Text(/*types=*/true);
        }
      }
      return std::nullopt;
    };
    if (const auto result = run(nullptr)) return *result;
    if (PyObject* const result = AskTorchFunction(rows[0]->name, first, arguments, n, names))
      return result;
    const NoneFits none_fits;
    std::string forms;
    if (const auto result = run(&forms)) return *result;
    ThrowTypeError(std::string(rows[0]->name) + ": takes " + forms);
  });
}

namespace {
// As PyTorch writes it: a line for each.
PyObject* TextOfNamed(PyObject* self) {
  try {
    std::string text = std::string(Py_TYPE(self)->tp_name) + "(";
    const py::tuple names(py::type::of(self).attr("__match_args__"));
    for (std::size_t i = 0; i < names.size(); ++i) {
      PyObject* value = PyStructSequence_GetItem(self, static_cast<Py_ssize_t>(i));
      text += ir::Str(i == 0 ? "\n" : ",\n", std::string(py::str(names[i])), "=",
                      std::string(py::repr(value)));
    }
    return py::str(text + ")").release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
}
}  // namespace

PyTypeObject* NamedTuple(const char* function, std::initializer_list<const char*> fields) {
  // Read when the type is made, and kept by it.
  auto* rows = new PyStructSequence_Field[fields.size() + 1]();  // NOLINT: as long as the process
  for (std::size_t i = 0; const char* field : fields) rows[i++].name = field;
  auto* name = new std::string(std::string("lazuli.return_types.") + function);
  PyStructSequence_Desc description{name->c_str(), nullptr, rows, static_cast<int>(fields.size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (type == nullptr) throw py::error_already_set();
  type->tp_repr = &TextOfNamed;
  return type;
}

void BindFunction(FunctionRow& row, _PyCFunctionFastWithKeywords function,
                  const py::module_& module, std::string_view name) {
  Publish(ModuleOf(module, name), Kind::kFunction, Describe(row), function);
}
void BindFunction(FunctionRows rows, _PyCFunctionFastWithKeywords function,
                  const py::module_& module, std::string_view name) {
  PublishOverloads(ModuleOf(module, name), Kind::kFunction, DescribeAll(rows), function);
}

void BindMethod(FunctionRow& row, _PyCFunctionFastWithKeywords function) {
  Publish(TensorType(), Kind::kMethod, Describe(row), function);
}
void BindMethod(FunctionRows rows, _PyCFunctionFastWithKeywords function) {
  PublishOverloads(TensorType(), Kind::kMethod, DescribeAll(rows), function);
}

}  // namespace lazuli::python
