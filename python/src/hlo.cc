// lazuli.hlo: HLO modules to read, change, compile and run. What lazuli/hlo.h has besides, passes
// of the user's and custom calls without an op, is C++'s.
#include "lazuli/hlo.h"

#include <utility>

#include "python/src/aggregate.h"
#include "python/src/arguments.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/caller.h"
#include "python/src/errors.h"
#include "python/src/gil.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

// An aggregate's fields as read-only attributes.
template <class T>
void BindFields(py::class_<T>& type) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (type.def_property_readonly(std::string(kFieldNames<T>[I]).c_str(),
                                [](const T& value) { return std::get<I>(Fields(value)); }),
     ...);
  }(std::make_index_sequence<kFieldCount<T>>());
}

void BindParts(py::module_& hlo) {
  py::class_<HloShape> shape(hlo, "HloShape", "dtype and dims of an array.");
  BindFields(shape);
  shape.def("__eq__", [](const HloShape& a, const HloShape& b) { return a == b; })
      .def("__repr__", [](const HloShape& s) {
        return std::string(to_string(s.dtype)) + std::string(py::str(py::cast(s.dims)));
      });
  py::class_<HloInstruction> instruction(hlo, "HloInstruction", "An instruction as text.");
  BindFields(instruction);
  instruction.def("__repr__", [](const HloInstruction& i) { return i.text; });
}

}  // namespace

HloShape ToShape(py::handle given) {
  if (py::isinstance<HloShape>(given)) return given.cast<HloShape>();
  if (py::isinstance<Tensor>(given)) {
    const auto tensor = given.cast<Tensor>();
    return {tensor.dtype(), tensor.sizes()};
  }
  HloShape shape;
  if (!py::isinstance<py::tuple>(given) || py::len(given) != 2 ||
      !LoadDType(given.cast<py::tuple>()[0].ptr(), shape.dtype))
    ThrowTypeError("trace: a parameter is an HloShape, a tensor or (dtype, dims)");
  shape.dims = given.cast<py::tuple>()[1].cast<Dims>();
  return shape;
}

namespace {

HloModule Trace(const py::iterable& parameters, const py::function& record,
                const std::vector<std::pair<std::int64_t, std::int64_t>>& updates,
                const std::string& name) {
  std::vector<HloShape> shapes;
  for (const py::handle parameter : parameters) shapes.push_back(ToShape(parameter));
  std::vector<HloUpdate> pairs;
  for (const auto& [result, parameter] : updates) pairs.push_back({result, parameter});
  const auto call = [&](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> results;
    for (const py::handle result : py::iterable(record(*py::cast(inputs)))) {
      if (!py::isinstance<Tensor>(result))
        ThrowTypeError("trace: a result is a Tensor, not " +
                       std::string(Py_TYPE(result.ptr())->tp_name));
      results.push_back(result.cast<Tensor>());
    }
    return results;
  };
  return HloModule::trace(shapes, call, pairs, name);
}

void BindExecutable(py::module_& hlo) {
  py::class_<HloExecutable>(hlo, "HloExecutable", "A program; HloModule.compile() makes it.")
      .def(
          "run",
          [](const HloExecutable& executable, const std::vector<Tensor>& arguments,
             const std::vector<std::int64_t>& given_up) {
            const Caller caller;
            const ReleasedGil release;
            return executable.run(arguments, given_up);
          },
          py::arg("arguments"), py::arg("given_up") = py::tuple(),
          "A tensor for each result; takes one for each parameter. Arguments at the positions "
          "given_up have no elements afterwards: results that update them take their memory.")
      .def("to_string", &HloExecutable::to_string,
           "The optimised module, then what the device made of it.")
      .def("__str__", &HloExecutable::to_string)
      .def_property_readonly("device", &HloExecutable::device, "Where it runs.")
      .def(
          "stats", [](const HloExecutable& executable) { return FieldsDict(executable.stats()); },
          "What it costs: kernels, library calls, reorders, memory.");
}

void BindModuleText(py::class_<HloModule>& type) {
  type.def_static("parse", &HloModule::parse, py::arg("text"), "A module of HLO text.")
      .def_static(
          "from_proto",
          [](const py::bytes& bytes) { return HloModule::from_proto(std::string(bytes)); },
          py::arg("bytes"), "A module of a serialised HloModuleProto.")
      .def_static(
          "load", [](const py::object& path) { return HloModule::load(ToPath(path)); },
          py::arg("path"), "A module of a file: a proto if its name ends in .pb, else text.")
      .def_static("trace", &Trace, py::arg("parameters"), py::arg("record"),
                  py::arg("updates") = py::tuple(), py::arg("name") = "traced",
                  "The program of what record(*parameters) computes.\n\nParameters are shapes: "
                  "HloShapes, tensors or (dtype, dims). record is called once, with tensors that "
                  "have no elements, and gives the results, a sequence; data of other tensors and "
                  "numbers become constants. updates are pairs of a result and the parameter whose "
                  "memory it may take, if run() is told to give it up.")
      .def(
          "to_proto", [](const HloModule& m) { return py::bytes(m.to_proto()); },
          "A serialised HloModuleProto.")
      .def(
          "to_string",
          [](const HloModule& m, bool percent, bool layouts, bool metadata, bool operand_shapes,
             bool large_constants) {
            return m.to_string({percent, layouts, metadata, operand_shapes, large_constants});
          },
          py::arg("percent") = true, py::arg("layouts") = true, py::arg("metadata") = true,
          py::arg("operand_shapes") = false, py::arg("large_constants") = true,
          "The module as text.")
      .def("__str__", [](const HloModule& m) { return m.to_string(); })
      .def("__repr__", [](const HloModule& m) { return "HloModule('" + m.name() + "')"; })
      .def("__copy__", [](const HloModule& m) { return m; })
      .def("__deepcopy__", [](const HloModule& m, const py::dict&) { return m; })
      .def(
          "__eq__", [](const HloModule& a, const HloModule& b) { return a == b; },
          "Same opcodes, shapes, attributes and wiring; names and metadata do not count.");
}

}  // namespace

void BindHlo(py::module_& module) {
  py::module_ hlo = module.attr("hlo").cast<py::module_>();
  BindParts(hlo);
  BindExecutable(hlo);
  BindTorch(hlo);
  DefineFunction<&transfer_to_infeed>(hlo, "transfer_to_infeed", "(arrays, device = Device())",
                                      "What an infeed of a program that runs later reads.");
  DefineFunction<&transfer_from_outfeed>(
      hlo, "transfer_from_outfeed", "(device = Device())",
      "The oldest arrays of an outfeed that were not taken yet; none: an empty list.");
  py::class_<HloModule> type(hlo, "HloModule", "A program of HLO.");
  BindModuleText(type);
  type.def_property_readonly("name", &HloModule::name)
      .def_property_readonly("parameters", &HloModule::parameters,
                             "The arrays it takes, those in tuples one by one.")
      .def_property_readonly("results", &HloModule::results, "The arrays it gives.")
      .def_property_readonly("instructions", &HloModule::instructions,
                             "All instructions, operands before their users.")
      .def(
          "compiler_ir",
          [](const HloModule& m, const std::string& stage, py::handle device) -> py::object {
            std::string text;
            const Device on = ToDevice(device, "compiler_ir");
            {
              const ReleasedGil unlocked;
              text = m.compiler_ir(stage, on);
            }
            if (stage == "npux") return py::bytes(text);
            return py::str(text);
          },
          py::arg("stage") = "hlo", py::arg("device") = py::none(),
          "What the module is on its way through a device's compiler: hlo, optimized_hlo,\n"
          "optimized_hlo_dot, fusion (why its kernels are several), llvm (LLVM IR of its "
          "kernels),\n"
          "asm (their assembly, or an NPU's) or npux\n"
          "(bytes: an NPU's program). Another stage raises InvalidArgumentError, one that the "
          "device\n"
          "does not make NotFoundError.")
      .def("verify", &HloModule::verify, "Checks every rule again.")
      .def("run_passes", &HloModule::run_passes, py::arg("names"),
           "Runs passes by name, in order; whether any changed the module.")
      .def(
          "rewrite",
          [](HloModule& m, const py::function& replace) {
            return m.rewrite([&](const HloInstruction& instruction) {
              const py::object given = replace(instruction);
              if (!PyUnicode_Check(given.ptr()))
                ThrowTypeError("rewrite: replace must give a str, not " +
                               std::string(PyType_Check(given.ptr())
                                               ? "type"
                                               : Py_TYPE(given.ptr())->tp_name));
              return std::string(TextOf(given.ptr()));
            });
          },
          py::arg("replace"),
          "Calls replace(instruction) for each; the text it returns, if not empty, is the right "
          "side of the instruction's line from then on. Whether anything was replaced.")
      .def(
          "compile",
          [](const HloModule& m, py::handle device, int num_threads) {
            const Device on = ToDevice(device, "compile");
            const ReleasedGil release;
            return m.compile(on, num_threads);
          },
          py::arg("device") = py::none(), py::arg("num_threads") = 0,
          "Compiles for a device, for as many threads (0: LAZULI_NUM_THREADS); the module stays as "
          "it "
          "is.")
      .def(
          "call",
          [](const HloModule& m, const std::vector<Tensor>& arguments) {
            const Caller caller;
            return m.call(arguments, SourceLocation());
          },
          py::arg("arguments"),
          "Records a call, as one op of the graph around it; the results are pending.")
      .def(
          "vmap", &HloModule::vmap, py::arg("size"), py::arg("in_dims") = py::tuple(),
          py::arg("out_dims") = py::tuple(),
          "This module for a batch of `size` samples: dim in_dims[i] of parameter i counts them, "
          "None for a parameter that is the same for all, and dim out_dims[i] of result i does. () "
          "is dim 0 for all. UnimplementedError, with opcode and line, for what has no rule.")
      .def("with_gradient", &HloModule::with_gradient, py::arg("gradient"),
           "This module, whose calls are differentiated by calls of `gradient`: its parameters are "
           "those of this one, then a cotangent for each result of floats or complex numbers; its "
           "results are a cotangent for each such parameter.")
      .def("jvp", &HloModule::jvp, py::arg("arguments") = std::vector<std::int64_t>(),
           "The derivative in forward mode: takes the parameters, then a tangent for each of the "
           "named ones (none: all floats and complex numbers); gives the results, then their "
           "tangents.")
      .def("vjp", &HloModule::vjp, py::arg("arguments") = std::vector<std::int64_t>(),
           "The derivative in reverse mode: takes the parameters, then a cotangent for each result "
           "of floats or complex numbers; gives a cotangent for each of the named parameters.")
      .def("grad", &HloModule::grad, py::arg("arguments") = std::vector<std::int64_t>{0},
           "The gradient of the first result, one real number, for each of the named parameters.")
      .def("value_and_grad", &HloModule::value_and_grad,
           py::arg("arguments") = std::vector<std::int64_t>{0},
           "The results, then what grad() gives.")
      .def(
          "evaluate",
          [](const HloModule& m, const std::vector<Tensor>& arguments) {
            const Caller caller;
            return m.evaluate(arguments);
          },
          py::arg("arguments"), "The results by definition, without compiling.")
      .def(
          "evaluate_on_devices",
          [](const HloModule& m, const std::vector<std::vector<Tensor>>& arguments) {
            const Caller caller;
            const ReleasedGil release;
            return m.evaluate_on_devices(arguments);
          },
          py::arg("arguments"),
          "A list of results for each device of the program, given a list of arguments for each, "
          "by "
          "definition. Their collectives exchange values.")
      .def(
          "run_on_devices",
          [](const HloModule& m, const std::vector<std::vector<Tensor>>& arguments,
             const std::vector<py::object>& devices) {
            const Caller caller;
            std::vector<Device> on;
            for (const py::object& device : devices)
              on.push_back(ToDevice(device, "run_on_devices"));
            const ReleasedGil release;
            return m.run_on_devices(arguments, on);
          },
          py::arg("arguments"), py::arg("devices") = std::vector<py::object>(),
          "The same, compiled once and run on these devices of one platform, where the arguments "
          "lie; () is the default platform's first ones.");
}

}  // namespace lazuli::python
