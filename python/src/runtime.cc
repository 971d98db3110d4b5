// Dtypes, devices, syncing, gradient mode, random numbers, metrics and dumps.
#include "cpp_api/src/facade.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/parallel_for.h"
#include "ir/types/dtype.h"
#include "lazuli/amp.h"
#include "lazuli/autograd.h"
#include "lazuli/debug.h"
#include "lazuli/execution.h"
#include "lazuli/memory.h"
#include "lazuli/ops.h"
#include "lazy/autograd/backward.h"
#include "lazy/tensor/interruption.h"
#include "python/src/bind.h"
#include "python/src/bindings.h"
#include "python/src/gil.h"
#include "python/src/stl.h"

namespace lazuli::python {
namespace {

void BindDTypes(py::module_& module) {
  py::class_<DType> type(module, "DType", "The type of a tensor's elements.");
  type.def_property_readonly("name", [](DType d) { return std::string(PythonName(d)); })
      .def_property_readonly("itemsize", [](DType d) { return ir::ByteWidth(Unwrap(d)); })
      .def_property_readonly("is_floating_point", [](DType d) { return ir::IsFloat(Unwrap(d)); })
      .def_property_readonly("is_complex", [](DType d) { return ir::IsComplex(Unwrap(d)); })
      .def_property_readonly(
          "is_signed", [](DType d) { return !ir::IsUnsigned(Unwrap(d)) && d != DType::kPred; })
      .def(
          "to_real", [](DType d) { return Wrap(hlo::PartType(Unwrap(d))); },
          "The dtype of the parts of complex numbers.")
      .def(
          "to_complex",
          [](DType d) {
            const ir::DType dtype = Unwrap(d);
            if (ir::IsComplex(dtype)) return d;
            return dtype == ir::DType::kF64 ? DType::kC128 : DType::kC64;
          },
          "The dtype of complex numbers with such parts.")
      .def("__repr__", [](DType d) { return "lazuli." + std::string(PythonName(d)); })
      .def(
          "__eq__",
          [](DType a, py::handle b) { return py::isinstance<DType>(b) && a == py::cast<DType>(b); })
      .def("__hash__", [](DType d) { return static_cast<int>(d); });
#define LAZULI_DTYPE(name, ...) \
  module.attr(std::string(PythonName(DType::name)).c_str()) = py::cast(DType::name);
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
  module.def(
      "dtype_of",
      [](py::handle what) {
        std::optional<DType> found;
        DType dtype;
        if (PyUnicode_Check(what.ptr()))
          found = DTypeNamed(TextOf(what.ptr()));
        else if (LoadDType(what.ptr(), dtype))
          found = dtype;
        if (!found)
          ThrowTypeError("dtype_of: there is no dtype " +
                         (PyUnicode_Check(what.ptr()) || what.is_none()
                              ? std::string(py::str(py::repr(what)))
                              : "of a " + std::string(Py_TYPE(what.ptr())->tp_name)));
        return *found;
      },
      py::arg("what"), "The DType of a name, a numpy.dtype or a Python type.");
  const auto given = [](py::handle what, const char* function) {
    DType dtype;
    if (!LoadDType(what.ptr(), dtype))
      ThrowTypeError(ir::Str(function, ": takes a DType, not ", Py_TYPE(what.ptr())->tp_name));
    return dtype;
  };
  module.def("get_default_dtype", &default_dtype,
             "The dtype of floats that say none: float32, unless it was set.");
  module.def(
      "set_default_dtype",
      [given](py::handle dtype) { set_default_dtype(given(dtype, "set_default_dtype")); },
      py::arg("dtype"), "Sets the dtype of floats that say none, for the process.");
  module.def(
      "promote_types",
      [given](py::handle x, py::handle y) {
        return promote_types(given(x, "promote_types"), given(y, "promote_types"));
      },
      py::arg("type1"), py::arg("type2"), "The dtype that tensors of the two have in common.");
  module.def(
      "can_cast",
      [given](py::handle from, py::handle to) {
        return can_cast(given(from, "can_cast"), given(to, "can_cast"));
      },
      py::arg("from_"), py::arg("to"),
      "Whether what is computed in one dtype may be written to another.");
  module.def(
      "result_type",
      [](py::handle x, py::handle y) {
        const Caller caller;
        Argument<Operand>::Stored l, r;
        for (const auto& [object, stored] : {std::pair(x, &l), std::pair(y, &r)}) {
          if (!Argument<Operand>::Load(object.ptr(), *stored))
            ThrowTypeError(ir::Str("result_type: takes tensors and numbers, not ",
                                   Py_TYPE(object.ptr())->tp_name));
        }
        return result_type(*l, *r);
      },
      py::arg("tensor1"), py::arg("tensor2"), "The dtype that arithmetic of the two would give.");
}

void BindDevices(py::module_& module) {
  py::class_<Device>(module, "Device", "Where tensors live and programs run.")
      .def(py::init<>(),
           "The default device: PJRT_DEVICE, else cpu:0, unless set_device_type said another.")
      .def(py::init<std::string_view>(), py::arg("name"),
           "A device by name: 'cpu', 'interpreter:0'.")
      .def(py::init([](const std::string& type, int index) {
             return Device(type + ":" + std::to_string(index));
           }),
           py::arg("type"), py::arg("index"), "A device by its platform and number: 'cpu', 0.")
      .def_property_readonly("name", &Device::name)
      .def_property_readonly(
          "type", [](const Device& d) { return d.name().substr(0, d.name().find(':')); },
          "The platform: 'cpu' of 'cpu:0'.")
      .def_property_readonly(
          "index",
          [](const Device& d) {
            const std::string name = d.name();
            return std::stol(name.substr(name.find(':') + 1));
          },
          "0 of 'cpu:0'.")
      .def("__repr__", [](const Device& d) { return "Device('" + d.name() + "')"; })
      .def("__str__",
           [](const Device& d) {
             // As PyTorch, whose CPU is one device.
             return d.name() == "cpu:0" ? std::string("cpu") : d.name();
           })
      .def("__eq__",
           [](const Device& a, py::handle b) {
             return py::isinstance<Device>(b) && a == py::cast<Device>(b);
           })
      .def("__hash__", [](const Device& d) { return py::hash(py::str(d.name())); });
  module.def("devices", &devices, "Every device of every platform.");
  module.def("device_type", &device_type, "The platform of the default device: 'cpu', 'npu'.");
  module.def("get_num_threads", &ir::NumThreads,
             "How many threads run a program: LAZULI_NUM_THREADS, or the cores of the machine.");
  module.def("set_device_type", &set_device_type, py::arg("type"),
             "Makes a platform the one on which tensors that say no device are made from now on.");
}

// Signals are handled by Python's main thread, where it runs Python; Ctrl-C raises
// KeyboardInterrupt.
unsigned long main_thread = 0;  // NOLINT(google-runtime-int): as Python has it
bool SignalRaised() {
  if (PyThread_get_thread_ident() != main_thread) return false;
  const AcquiredGil acquire;
  return PyErr_CheckSignals() != 0;
}

// None is an undefined tensor.
std::vector<Tensor> TensorsGiven(const std::vector<std::optional<Tensor>>& tensors) {
  std::vector<Tensor> given;
  for (const std::optional<Tensor>& tensor : tensors) given.push_back(tensor.value_or(Tensor()));
  return given;
}

void BindExecution(py::module_& module) {
  main_thread = py::module_::import("threading")
                    .attr("main_thread")()
                    .attr("ident")
                    .cast<decltype(main_thread)>();
  lazy::SetInterruptCheck(&SignalRaised);
  module.def(
      "mark_step",
      [] {
        const Caller caller;
        const ReleasedGil release;
        mark_step();
      },
      "Runs what this thread has recorded as one program; returns once it is on its way.");
  module.def(
      "sync",
      [](bool wait) {
        const Caller caller;
        const ReleasedGil release;
        sync(wait);
      },
      py::arg("wait") = false, "mark_step(); with wait it returns when the device is done.");
  module.def(
      "set_eager",
      [](bool eager) {
        const Caller caller;
        const ReleasedGil release;
        set_eager(eager);
      },
      py::arg("eager"),
      "Each op runs as soon as it is recorded: slow, but errors are raised where they are made.");
  module.def("is_eager", &is_eager, "Whether set_eager(True) is in force.");
  module.def("clear_cache", &clear_cache,
             "Forgets all compiled programs: the next sync of each graph compiles anew.");
  py::class_<Context>(module, "Context",
                      "A set of pending tensors that syncs together; each thread has its own.")
      .def(py::init<>())
      .def_static("current", &Context::current, "This thread's context.")
      .def("make_current", &Context::make_current, "Makes this the thread's context.");
  module.def(
      "manual_seed",
      [](const py::int_& seed) {  // of any size: its lowest 64 bits
        manual_seed(PyLong_AsUnsignedLongLongMask(seed.ptr()));
      },
      py::arg("seed"), "Seeds the random numbers.");
  module.def("random_seed", &random_seed, "64 random bits; advances as a random op does.");
  module.def("grad_enabled", &grad_enabled, "Whether ops of this thread record history.");
  module.def("_set_grad_enabled", &lazy::SetGradEnabled);
  module.def("_autocast_dtype", &amp::autocast_dtype);
  module.def("_set_autocast_dtype", &amp::set_autocast_dtype);
  module.def(
      "_grad",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
         const std::vector<std::optional<Tensor>>& gradients, bool retain_graph, bool create_graph,
         bool allow_unused, bool is_transposed) {
        const Caller caller;
        py::list list;
        for (Tensor& gradient : grad(outputs, inputs, TensorsGiven(gradients),
                                     {retain_graph, create_graph, allow_unused, is_transposed}))
          list.append(ToPython(std::move(gradient)));
        return list;
      },
      py::arg("outputs"), py::arg("inputs"), py::arg("gradients"), py::arg("retain_graph"),
      py::arg("create_graph"), py::arg("allow_unused"), py::arg("is_transposed") = false,
      "Gradients of outputs for inputs. is_transposed: see GradOptions in lazuli/autograd.h.");
  module.def(
      "_partial_gradients",
      [](const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
         const std::vector<Tensor>& gradients, bool is_transposed) {
        const Caller caller;
        const auto unwrapped = [](const std::vector<Tensor>& tensors) {
          lazy::Tensors all;
          for (const Tensor& tensor : tensors) all.push_back(TensorAccess::Unwrap(tensor));
          return all;
        };
        lazy::Tensors made = lazuli::Call(SourceLocation::current(), [&] {
          return lazy::Grad(unwrapped(outputs), unwrapped(inputs), unwrapped(gradients),
                            {.retain_graph = true,
                             .create_graph = true,
                             .is_transposed = is_transposed,
                             .ends_at_inputs = true},
                            /*allow_unused=*/true);
        });
        py::list list;
        for (lazy::Tensor& gradient : made)
          list.append(gradient.defined() ? ToPython(TensorAccess::Wrap(std::move(gradient)))
                                         : py::none());
        return list;
      },
      py::arg("outputs"), py::arg("inputs"), py::arg("gradients"), py::arg("is_transposed"),
      "Gradients of outputs for inputs as if no input depended on another; None for one that the "
      "outputs do not depend on.");
  module.def("_is_transposed", &lazy::IsTransposed,
             "Whether the innermost backward of this thread is one with is_transposed.");
  module.def(
      "_backward",
      [](const std::vector<Tensor>& outputs, const std::vector<std::optional<Tensor>>& gradients,
         bool retain_graph, bool create_graph) {
        const Caller caller;
        backward(outputs, TensorsGiven(gradients), {retain_graph, create_graph});
      },
      py::arg("outputs"), py::arg("gradients"), py::arg("retain_graph"), py::arg("create_graph"));
  module.def(
      "gradcheck",
      [](const py::function& f, const std::vector<Tensor>& inputs, double eps) {
        const Caller caller;
        const auto call = [&f](const std::vector<Tensor>& arguments) {
          const py::object given = f(ToPython(arguments));
          if (const Tensor* tensor = AsTensor(given.ptr())) return *tensor;
          ThrowTypeError("gradcheck: f must give a Tensor, not " +
                         std::string(Py_TYPE(given.ptr())->tp_name));
        };
        return gradcheck(call, inputs, eps);
      },
      py::arg("f"), py::arg("inputs"), py::arg("eps") = 1e-6,
      "The largest relative difference of backward() from central differences.");
}

// The fields of each, and of the plan in it.
py::dict ProgramMemoryDict(const debug::ProgramMemory& program) {
  py::dict dict;
  dict["name"] = program.name;
  dict["source"] = program.source;
  dict["runs"] = program.runs;
  dict["plan"] = FieldsDict(program.plan);
  return dict;
}

void BindProgramMemory(py::module_& debug) {
  debug.def(
      "memory_plans",
      [](py::handle device) {
        py::list list;
        for (const debug::ProgramMemory& program :
             debug::memory_plans(ToDevice(device, "memory_plans")))
          list.append(ProgramMemoryDict(program));
        return list;
      },
      py::arg("device") = py::none(),
      "The programs of a device with what they occupy, that with the largest peak first.");
  debug.def(
      "memory_arrays",
      [](const std::string& program, py::handle device) {
        py::list list;
        for (const debug::PlannedArray& array :
             debug::memory_arrays(program, ToDevice(device, "memory_arrays")))
          list.append(FieldsDict(array));
        return list;
      },
      py::arg("program") = "", py::arg("device") = py::none(),
      "Leaves, results and scratch of a program, the largest first, with why a result does not "
      "take "
      "a leaf's memory over; '' is the program with the largest peak.");
  debug.def(
      "memory_timeline",
      [](const std::string& program, py::handle device) {
        return debug::memory_timeline(program, ToDevice(device, "memory_timeline"));
      },
      py::arg("program") = "", py::arg("device") = py::none(),
      "Bytes that hold values in each step of a run of the program.");
  debug.def("memory_mark", &debug::memory_mark,
            "A mark of this moment, for live_tensors(); from the first one on tensors are known.");
  debug.def(
      "live_tensors",
      [](std::int64_t since) {
        py::list list;
        for (const debug::LiveTensors& group : debug::live_tensors(since))
          list.append(FieldsDict(group));
        return list;
      },
      py::arg("since") = 0,
      "What was made after a mark and is alive now, by line and shape, the largest sum first.");
  debug.def("live_tensors_text", &debug::live_tensors_text, py::arg("since") = 0,
            "The same as text.");
}

// Where a tensor's pending node comes from.
void BindOrigin(py::module_& debug) {
  debug.def(
      "stack",
      [](const Tensor& tensor) {
        py::list frames;
        for (const debug::Frame& frame : debug::stack(tensor)) frames.append(FieldsDict(frame));
        return frames;
      },
      py::arg("tensor"),
      "The line that recorded a pending tensor, and what called it if that is kept (XLA_IR_DEBUG), "
      "the innermost first, as dicts.");
  debug.def("scope", &debug::scope, py::arg("tensor"),
            "The scope of modules and NameScopes that recorded a pending tensor: 'net/conv1'.");
  debug.def("set_user_metadata", &debug::set_user_metadata, py::arg("tensor"), py::arg("note"),
            "A note on the node that computes a pending tensor: its text has it, and the op_name "
            "of its HLO begins with it.");
  debug.def("user_metadata", &debug::user_metadata, py::arg("tensor"), "That note.");
  debug.def("set_ir_debug", &debug::set_ir_debug, py::arg("on"),
            "Whether what is recorded from now on keeps its whole call stacks, as with "
            "XLA_IR_DEBUG=1.");
}

void BindDebug(py::module_& module) {
  module.def(
      "flags",
      [] {
        py::list all;
        for (const Flag& flag : flags()) all.append(FieldsDict(flag));
        return all;
      },
      "Environment variables and flags of XLA_FLAGS, each with type, value, default and meaning.");
  py::module_ metrics = module.attr("metrics").cast<py::module_>();
  metrics.def("report", &metrics::report, "Counters and timers as text.");
  metrics.def("counter", &metrics::counter, py::arg("name"), "A counter by name.");
  metrics.def("reset", &metrics::reset, "Sets all to 0.");

  py::module_ debug = module.attr("debug").cast<py::module_>();
  const auto pending = [&](const char* name, auto function, const char* doc) {
    debug.def(
        name,
        [function](py::handle tensors) {
          std::vector<Tensor> list;
          if (const Tensor* one = AsTensor(tensors.ptr()))
            list = {*one};
          else if (!LoadTensors(tensors.ptr(), list))
            throw py::type_error("takes a Tensor or a sequence of them");
          return function(list);
        },
        py::arg("tensors"), doc);
  };
  pending("graph_text", &debug::graph_text, "The pending graph of tensors as torch_xla writes it.");
  pending("graph_dot", &debug::graph_dot, "The pending graph of tensors for GraphViz.");
  pending("graph_hlo", &debug::graph_hlo, "The pending graph of tensors as HLO.");
  pending("graph_table", &debug::graph_table,
          "The pending graph of tensors as a table: a row for each node.");
  pending("graph_html", &debug::graph_html,
          "The pending graph of tensors as a page for a browser, which needs no network.");
  BindOrigin(debug);
  debug.def("last_hlo", &debug::last_hlo, "The HLO of the last program of this thread.");
  debug.def("last_optimized_hlo", &debug::last_optimized_hlo,
            "The same after optimisation, with the device's plan.");
  debug.def(
      "last_stats", [] { return FieldsDict(debug::last_stats()); },
      "What the last program costs: kernels, library calls, reorders, memory.");
  debug.def(
      "explain_recompile", [] { return FieldsDict(debug::explain_recompile()); },
      "Why the last program that this thread compiled was not found in the cache: the cause, a "
      "sentence with the line and what to do, and what differs.");
  debug.def(
      "last_memory_plan", [] { return FieldsDict(debug::last_memory_plan()); },
      "What a run of the last program occupies, in bytes.");
  BindProgramMemory(debug);
}

void BindMemory(py::module_& module) {
  module.def(
      "memory_stats",
      [](py::handle device) { return FieldsDict(memory_stats(ToDevice(device, "memory_stats"))); },
      py::arg("device") = py::none(), "Bytes in use, their peak, kept for reuse, and the limit.");
  module.def(
      "memory_report",
      [](py::handle device) { return memory_report(ToDevice(device, "memory_report")); },
      py::arg("device") = py::none(),
      "The programs of the device's platform by their planned peaks, and the plan of the first of "
      "them with its "
      "largest arrays and their lines, as text.");
  module.def("set_memory_limit", &set_memory_limit, py::arg("bytes"),
             "Refuses programs that would need more; 0 means no limit.");
}

}  // namespace

void BindRuntime(py::module_& module) {
  BindDTypes(module);
  BindDevices(module);
  BindExecution(module);
  BindDebug(module);
  BindMemory(module);
}

}  // namespace lazuli::python
