// What lazuli.library makes ops and callbacks of: functions of Python's that runs call, and rules.
#include "lazuli/library.h"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/src/hlo_access.h"
#include "ir/support/blocking.h"
#include "lazy/tensor/engine.h"
#include "lazy/tensor/site_scope.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/held_object.h"
#include "python/src/stl.h"
#include "python/src/tensor_object.h"

namespace lazuli::python {
namespace {

// A wait of a thread that has Python's lock.
void* BeginWait() { return PyGILState_Check() != 0 ? new ReleasedGil : nullptr; }
void EndWait(void* released) { delete static_cast<ReleasedGil*>(released); }

std::vector<Tensor> TensorsIn(py::handle list, const char* what) {
  std::vector<Tensor> tensors;
  for (const py::handle item : py::reinterpret_borrow<py::iterable>(list)) {
    if (item.is_none()) {
      tensors.emplace_back();
      continue;
    }
    const Tensor* const tensor = AsTensor(item.ptr());
    if (tensor == nullptr) ThrowTypeError(std::string(what) + " are tensors");
    tensors.push_back(*tensor);
  }
  return tensors;
}
py::list ListOf(const std::vector<Tensor>& tensors) {
  py::list list;
  for (const Tensor& tensor : tensors)
    list.append(tensor.defined() ? TensorObject(tensor) : py::object(py::none()));
  return list;
}
std::vector<HloShape> ShapesIn(py::handle list) {
  std::vector<HloShape> shapes;
  for (const py::handle shape : py::reinterpret_borrow<py::iterable>(list))
    shapes.push_back(ToShape(shape));
  return shapes;
}

// "ValueError: no such thing (kernel.py:12)": an error of Python's as one of a run.
std::string TextOfError(const py::error_already_set& error) {
  std::string text = py::str(error.type().attr("__name__"));
  const std::string message = py::str(error.value());
  if (!message.empty()) text += ": " + message;
  const py::module_ traceback = py::module_::import("traceback");
  const py::list frames(traceback.attr("extract_tb")(error.trace()));
  if (py::len(frames) > 0) {
    const py::object last = frames[py::len(frames) - 1];
    const py::object file =
        py::module_::import("os").attr("path").attr("basename")(last.attr("filename"));
    text +=
        " (" + std::string(py::str(file)) + ":" + std::string(py::str(last.attr("lineno"))) + ")";
  }
  return text;
}

// What f returns, on a thread of the library's; an error of Python's as one of C++.
template <class F>
auto InPython(F&& f) {
  const AcquiredGil acquire;
  const lazy::SiteOverride none(ir::kNoSite);  // what it records has lines of its own
  std::optional<std::string> wrong;
  try {
    return f();
  } catch (const py::error_already_set& error) {
    wrong = TextOfError(error);
  }
  throw std::runtime_error(*wrong);
}

std::vector<Tensor> CopiesOf(const std::vector<CustomCallArray>& arrays) {
  const Device device = DeviceOfRun();
  std::vector<Tensor> tensors;
  for (const CustomCallArray& array : arrays)
    tensors.push_back(from_data(array.data, array.dtype, array.dims, device));
  return tensors;
}

std::string TextOfArray(DType dtype, const Dims& dims) {
  return std::string(PythonName(dtype)) + std::string(py::str(py::list(py::cast(dims))));
}

// What the function gave as the results that the program has.
void CopyResults(const std::vector<Tensor>& given, const std::vector<CustomCallResult>& results) {
  if (given.size() != results.size()) {
    throw std::runtime_error("it gives " + std::to_string(given.size()) + " results, not " +
                             std::to_string(results.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [dtype, dims, data] = results[i];
    if (!given[i].defined() || given[i].dtype() != dtype || given[i].sizes() != dims) {
      const std::string what =
          given[i].defined() ? TextOfArray(given[i].dtype(), given[i].sizes()) : "None";
      throw std::runtime_error("result " + std::to_string(i) + " is " + what +
                               ", but its shape was said to be " + TextOfArray(dtype, dims));
    }
    const ReleasedGil release;
    const std::vector<std::byte> bytes = given[i].to_bytes();
    std::memcpy(data, bytes.data(), bytes.size());
  }
}

CustomOp::Kernel KernelOf(py::function function) {
  return [held = HoldObject(std::move(function))](std::string_view config,
                                                  const std::vector<CustomCallArray>& inputs,
                                                  const std::vector<CustomCallResult>& results) {
    InPython([&] {
      const py::object made = held->get()(py::str(std::string(config)), ListOf(CopiesOf(inputs)));
      CopyResults(TensorsIn(made, "results"), results);
    });
  };
}

void BindOps(py::module_& library) {
  py::class_<CustomOp>(library, "CustomOp")
      .def(py::init([](const std::string& name, py::function shapes, bool has_effects) {
             return CustomOp(name,
                             [held = HoldObject(std::move(shapes))](
                                 const std::vector<HloShape>& inputs, const std::string& config) {
                               const AcquiredGil acquire;
                               const lazy::SiteOverride none(ir::kNoSite);
                               return ShapesIn(held->get()(config, inputs));
                             },
                             {.has_effects = has_effects});
           }),
           py::arg("name"), py::arg("shapes"), py::arg("has_effects"))
      .def(
          "kernel",
          [](const CustomOp& op, py::function function, const std::string& device_type) {
            op.kernel(KernelOf(std::move(function)), device_type);
          },
          py::arg("function"), py::arg("device_type") = "")
      .def(
          "gradient",
          [](const CustomOp& op, py::function function) {
            op.gradient([held = HoldObject(std::move(function))](
                            const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
                            const std::vector<Tensor>& cotangents, const std::string& config) {
              const AcquiredGil acquire;
              const lazy::SiteOverride none(ir::kNoSite);
              return TensorsIn(
                  held->get()(config, ListOf(inputs), ListOf(results), ListOf(cotangents)),
                  "gradients");
            });
          },
          py::arg("function"))
      .def(
          "batch",
          [](const CustomOp& op, py::function function) {
            op.batch([held = HoldObject(std::move(function))](
                         const std::vector<Tensor>& inputs, const std::vector<bool>& batched,
                         std::int64_t size, const std::string& config) {
              const AcquiredGil acquire;
              const lazy::SiteOverride none(ir::kNoSite);
              return TensorsIn(held->get()(config, ListOf(inputs), batched, size), "results");
            });
          },
          py::arg("function"))
      .def(
          "__call__",
          [](const CustomOp& op, const py::list& inputs, const std::string& config) {
            const Caller caller;
            return ListOf(op(TensorsIn(inputs, "inputs"), config));
          },
          py::arg("inputs"), py::arg("config"));
}

CallbackBatch BatchNamed(const std::optional<std::string>& name) {
  if (!name) return CallbackBatch::kError;
  if (*name == "sequential") return CallbackBatch::kSequential;
  if (*name == "expand_dims") return CallbackBatch::kExpandDims;
  if (*name == "broadcast_all") return CallbackBatch::kBroadcastAll;
  throw py::value_error(
      "vmap_method is 'sequential', 'expand_dims', 'broadcast_all' or None, not '" + *name + "'");
}

void BindCallbacks(py::module_& library) {
  py::class_<Callback>(library, "Callback")
      .def(py::init([](py::function function, const std::string& name, bool has_effects,
                       bool ordered, const std::optional<std::string>& batch) {
             return Callback(
                 [held = HoldObject(std::move(function))](
                     const std::vector<CustomCallArray>& arguments,
                     const std::vector<CustomCallResult>& results) {
                   InPython([&] {
                     const py::object made = held->get()(ListOf(CopiesOf(arguments)));
                     CopyResults(TensorsIn(made, "results"), results);
                   });
                 },
                 {.name = name,
                  .has_effects = has_effects,
                  .ordered = ordered,
                  .batch = BatchNamed(batch)});
           }),
           py::arg("function"), py::arg("name"), py::arg("has_effects"), py::arg("ordered"),
           py::arg("batch"))
      .def(
          "__call__",
          [](const Callback& callback, const py::list& results, const py::list& arguments) {
            const Caller caller;
            return ListOf(callback(ShapesIn(results), TensorsIn(arguments, "arguments")));
          },
          py::arg("results"), py::arg("arguments"))
      // A function that gives the callback for as long as it, or a program that calls it, lives.
      .def("weak", [](const Callback& callback) {
        return py::cpp_function([weak = callback.weak()]() -> std::optional<Callback> {
          return Callback::locked(weak);
        });
      });
}

}  // namespace

void BindLibrary(py::module_& module) {
  ir::SetWaitHooks({&BeginWait, &EndWait});
  // What runs may call Python, which has to be there.
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    const ReleasedGil release;
    lazy::GetEngine().WaitForRuns();
  }));
  py::module_ library = module.def_submodule("_library", "Ops and callbacks over lists.");
  BindOps(library);
  BindCallbacks(library);
  py::class_<HloOpcode>(library, "HloOpcode")
      .def_readonly("name", &HloOpcode::name)
      .def_readonly("operands", &HloOpcode::operands)
      .def_readonly("attributes", &HloOpcode::attributes);
  library.def("hlo_opcodes", &hlo_opcodes);
  library.def(
      "hlo_op",
      [](const std::string& opcode, const py::list& operands, const HloAttributes& attributes,
         const std::optional<py::object>& result) {
        const Caller caller;
        std::optional<HloShape> shape;
        if (result) shape = ToShape(*result);
        return ListOf(hlo_op(opcode, TensorsIn(operands, "operands"), attributes, shape));
      },
      py::arg("opcode"), py::arg("operands"), py::arg("attributes"), py::arg("result"));
  library.def(
      "composite",
      [](const std::string& name, const py::function& function, const py::list& arguments) {
        const Caller caller;
        const auto record = [&](const std::vector<Tensor>& inputs) {
          return TensorsIn(function(ListOf(inputs)), "results");
        };
        return ListOf(composite(name, record, TensorsIn(arguments, "arguments")));
      },
      py::arg("name"), py::arg("function"), py::arg("arguments"));
  library.def(
      "optimization_barrier",
      [](const py::list& tensors) {
        const Caller caller;
        return ListOf(optimization_barrier(TensorsIn(tensors, "operands")));
      },
      py::arg("tensors"));
  py::class_<After>(library, "After").def(py::init<const std::vector<Tensor>&>());
}

}  // namespace lazuli::python
