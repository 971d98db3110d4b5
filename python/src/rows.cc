#include "python/src/rows.h"

#include <array>
#include <stdexcept>
#include <string>

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

}  // namespace

PyObject* CallRow(const FunctionRow& row, PyObject* first, PyObject* const* arguments, Py_ssize_t n,
                  PyObject* names) noexcept {
  return Guarded([&] {
    std::array<PyObject*, kMostParameters> all{};
    const Slots slots(all.data(), row.signature->parameters.size());
    py::object gathered;
    row.signature->Sort(first, arguments, static_cast<std::size_t>(n), names, slots, gathered);
    return row.call(*row.signature, slots);
  });
}

void BindFunction(FunctionRow& row, _PyCFunctionFastWithKeywords function,
                  const py::module_& module, std::string_view name) {
  py::object owner = module;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    owner = owner.attr(std::string(name.substr(0, dot)).c_str());
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  Publish(owner, Kind::kFunction, Describe(row), function);
}

void BindMethod(FunctionRow& row, _PyCFunctionFastWithKeywords function) {
  Publish(reinterpret_cast<PyObject*>(tensor_type), Kind::kMethod, Describe(row), function);
}

}  // namespace lazuli::python
