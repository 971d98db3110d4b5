#include "python/src/rows.h"

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace lazuli::python {
namespace {

constexpr std::size_t kMostParameters = 16;

const Signature& Describe(FunctionRow& row) {
  if (row.signature != nullptr) return *row.signature;
  auto* signature = new Signature;
  Restart(*signature, row.name, row.doc);
  signature->result = row.result;
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
  for (FunctionRow* row : rows) signatures.push_back(&Describe(*row));
  return signatures;
}

py::handle TensorType() { return reinterpret_cast<PyObject*>(tensor_type); }

}  // namespace

PyObject* CallRow(const FunctionRow& row, PyObject* first, PyObject* const* arguments, Py_ssize_t n,
                  PyObject* names) noexcept {
  return Guarded([&] { return Run(row, first, arguments, n, names); });
}

PyObject* CallOverloads(FunctionRows rows, PyObject* first, PyObject* const* arguments,
                        Py_ssize_t n, PyObject* names) noexcept {
  return Guarded([&]() -> PyObject* {
    std::string forms;
    for (const FunctionRow* row : rows) {
      try {
        return Run(*row, first, arguments, n, names);
      } catch (const py::type_error&) {  // of the arguments: what the library refuses is an Error
        forms += (forms.empty() ? "" : " or ") + row->signature->Text(/*types=*/true);
      }
    }
    ThrowTypeError(std::string(rows[0]->name) + ": takes " + forms);
  });
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
