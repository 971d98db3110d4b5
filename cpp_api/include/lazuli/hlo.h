// HLO modules from outside: load what JAX or torch_xla dumped, look at it, change it, compile and
// run it.
//
//   // Text, or a binary HloModuleProto (.pb).
//   lazuli::HloModule module = lazuli::HloModule::load("jit_step.hlo");
//   lazuli::HloExecutable program = module.compile();  // for the default device
//   std::vector<lazuli::Tensor> outputs = program.run({x, w});
//
// Tensors are the buffers: arguments are synced first, results are device memory that ops go on
// with. Every mistake is an Error; one in the text names line and column. Custom-call targets and
// passes of your own take part by name, in modules and in what tensors record.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lazuli/debug.h"
#include "lazuli/tensor.h"

namespace lazuli {

class HloExecutable;

struct HloPrintOptions {
  bool percent = true;          // %name
  bool layouts = true;          // f32[2,3]{1,0}; false: only those that are not row major
  bool metadata = true;         // op names and source lines
  bool operand_shapes = false;  // add(f32[2]{0} %x, ...), the older style
  bool large_constants = true;  // false: more than ten elements are {...}, which does not read back
};

// The element type and dimensions of an array.
struct HloShape {
  DType dtype = DType::kF32;
  Dims dims;
  bool operator==(const HloShape&) const = default;
};

// That a result may be written where a parameter lies, if run() is given the parameter's memory.
struct HloUpdate {
  std::int64_t result = 0;
  std::int64_t parameter = 0;
};

// One instruction, as text has it: what it is called, what it does, and all of its line.
struct HloInstruction {
  std::string computation;
  std::string name;
  std::string opcode;                 // "multiply"
  std::string shape;                  // "f32[2,3]{1,0}"
  std::vector<std::string> operands;  // names
  std::string text;                   // "%m = f32[2,3]{1,0} multiply(%x, %y)"
};

// A verified module. Copies are independent.
class LAZULI_API HloModule {
 public:
  static HloModule parse(std::string_view text);
  static HloModule from_proto(std::string_view bytes);
  // A file: a serialised HloModuleProto if its name ends in .pb, else text.
  static HloModule load(const std::string& path);
  // What `record` computes, as a program of its parameters: it is called once, with tensors of these
  // shapes that have no elements, and gives the results.
  //
  //   HloModule step = HloModule::trace({{kFloat32, {8, 4}}},
  //                                     [](const auto& p) { return std::vector{relu(p[0])}; });
  //
  // Data of other tensors and numbers are constants of the program; nothing of it can be read while
  // it is traced. A tensor from outside that `record` writes to is one more parameter, behind the others,
  // and its new elements one more result, which may take its memory. The tensor itself, gradients and
  // generators are as before when this returns. What only a run can know, a label out of range, is an error of run() and
  // evaluate(); in the text it is a further s64 result.
  static HloModule trace(
      const std::vector<HloShape>& parameters,
      const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record,
      const std::vector<HloUpdate>& updates = {}, const std::string& name = "traced");
  HloModule(const HloModule& other);
  HloModule(HloModule&&) noexcept;
  HloModule& operator=(HloModule other) noexcept;
  ~HloModule();

  std::string name() const;
  // Of the entry computation: the arrays it takes and gives, those in tuples one by one.
  std::vector<HloShape> parameters() const;
  std::vector<HloShape> results() const;
  // Computations before those that call them, operands before their users.
  std::vector<HloInstruction> instructions() const;

  std::string to_string(const HloPrintOptions& options = {}) const;
  std::string to_proto() const;
  // Same opcodes, shapes, attributes and wiring; names and metadata do not count.
  bool operator==(const HloModule& other) const;
  // Checks every rule again: what parse and passes give has been checked.
  void verify() const;

  // Runs passes by name, in order; whether any changed the module. `lazuli-opt --list-passes` lists
  // them.
  bool run_passes(const std::vector<std::string>& names);
  // Calls `replace` for every instruction; what it returns, if not empty, is read as the right side
  // of that instruction's line: "f32[4] multiply(%x, %x)". Whether anything was replaced.
  bool rewrite(const std::function<std::string(const HloInstruction&)>& replace);

  // Records a call of the module, as one op: the results are pending, as those of any op, and belong to
  // the graph around them. What a check of the module finds is an error of that graph's run, with the
  // line of the call. Gradients flow through it as through any op: by with_gradient()'s module, else by one
  // that is derived (vjp()). Throws where the arguments do not fit, for a module of several devices, and
  // where an argument wants a gradient and an instruction of the module has none.
  std::vector<Tensor> call(const std::vector<Tensor>& arguments,
                           SourceLocation loc = SourceLocation::current()) const;
  // This module, whose calls are differentiated by calls of another one: that takes the parameters of
  // this one, then a cotangent for each result of floats or complex numbers, and gives a cotangent for
  // each such parameter, with its shape. Throws Error(kInvalidArgument) where it does not fit.
  HloModule with_gradient(const HloModule& gradient) const;

  // Derivatives as modules, which can be derived again, compiled and called; docs/transforms.md has the rules.
  // `arguments` are positions among parameters(), of floats or complex numbers. All throw
  // Error(kUnimplemented) with the line of an instruction that has no rule, and Error(kInvalidArgument) for
  // positions without such a parameter.
  //
  // Forward mode: takes the parameters, then a tangent for each of these (none named: for each float and complex
  // parameter); gives the results, then a tangent for each result of floats or complex numbers.
  HloModule jvp(const std::vector<std::int64_t>& arguments = {}) const;
  // Reverse mode: takes the parameters, then a cotangent for each result of floats or complex numbers; gives a
  // cotangent for each of these parameters. Loops must have a number of steps that follows from constants.
  HloModule vjp(const std::vector<std::int64_t>& arguments = {}) const;
  // Of a module whose first result is one real number: takes the parameters, and gives the gradient of that number
  // for each of these, behind the results of the module in the second form. Throws
  // Error(kInvalidArgument) where the first result is something else.
  HloModule grad(const std::vector<std::int64_t>& arguments = {0}) const;
  HloModule value_and_grad(const std::vector<std::int64_t>& arguments = {0}) const;

  // This module for a batch of samples: dim in_dims[i] of parameter i counts them, and dim out_dims[i] of
  // result i does. A negative dim counts from the end, and a parameter without one is the same for all
  // samples; {} is dim 0 for all. Throws Error(kUnimplemented), with opcode and line, for what has no
  // rule, and Error(kInvalidArgument) where dims do not fit.
  HloModule vmap(std::int64_t size, const std::vector<std::optional<std::int64_t>>& in_dims = {},
                 const std::vector<std::int64_t>& out_dims = {}) const;

  // Compiles for a device, for as many threads (0: LAZULI_NUM_THREADS); the module stays as it is.
  HloExecutable compile(const Device& device = Device(), int num_threads = 0) const;
  // What the module is on its way through a device's compiler:
  //   hlo                the module as it is
  //   optimized_hlo      what the device's passes make of it
  //   optimized_hlo_dot  that for GraphViz
  //   fusion             why each of its kernels is one of its own, and not part of another
  //   llvm               LLVM IR of its kernels
  //   asm                assembly of its kernels, or of an NPU's programs
  //   npux               an NPU's program, as its tools read it
  // Throws Error(kInvalidArgument) for another stage, Error(kNotFound) where the device makes none.
  std::string compiler_ir(const std::string& stage, const Device& device = Device()) const;
  // The results by definition: the evaluator, in this thread, without compiling. Slow and exact.
  std::vector<Tensor> evaluate(const std::vector<Tensor>& arguments) const;
  // The results on each of the devices that run the module together, with a list of arguments for each:
  // device i of the program is the i-th. Collectives exchange values between them.
  // evaluate_on_devices: by definition, in a thread per device.
  std::vector<std::vector<Tensor>> evaluate_on_devices(
      const std::vector<std::vector<Tensor>>& arguments) const;
  // run_on_devices: compiled once, on these devices of one platform, where the arguments lie; {} is the
  // default platform's first devices.
  std::vector<std::vector<Tensor>> run_on_devices(const std::vector<std::vector<Tensor>>& arguments,
                                                  const std::vector<Device>& devices = {}) const;

 private:
  struct Impl;
  friend struct HloAccess;
  explicit HloModule(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A compiled module. Copies are handles of the same program; run may be called by several threads.
class LAZULI_API HloExecutable {
 public:
  // An argument for each of parameters(), on the device it was compiled for; a tensor for each of
  // results(). Arguments at the positions `given_up` have no elements afterwards: results that update
  // them take their memory, unless somebody else holds it.
  std::vector<Tensor> run(const std::vector<Tensor>& arguments,
                          const std::vector<std::int64_t>& given_up = {}) const;
  // The optimised module, then what the device made of it.
  std::string to_string() const;
  debug::ProgramStats stats() const;
  Device device() const;

 private:
  struct Impl;
  friend struct HloAccess;
  explicit HloExecutable(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// An array that a custom call reads or writes: row major.
struct CustomCallArray {
  DType dtype;
  Dims dims;
  const void* data;
};
struct CustomCallResult {
  DType dtype;
  Dims dims;
  void* data;  // zeros
};
// `backend_config` is the attribute's text without quotes. Leaves of tuples come one by one. What
// it throws becomes the run's error.
using CustomCall = std::function<void(std::string_view backend_config,
                                      const std::vector<CustomCallArray>& operands,
                                      const std::vector<CustomCallResult>& results)>;
// On every device. Registering a target again replaces it, for modules compiled from then on.
LAZULI_API void register_custom_call(const std::string& target, CustomCall call);

// The host's end of infeed and outfeed: a queue each for a device, first in, first out. A program
// does not wait: what it reads by infeed must have been transferred before it runs (else its run is
// an error, as it is where the arrays differ in shape or dtype), and what it writes by outfeed is
// kept until it is taken. A transfer is the arrays of the shape that the program names, leaves of
// tuples one by one.
LAZULI_API void transfer_to_infeed(const std::vector<Tensor>& arrays,
                                   const Device& device = Device());
// The oldest transfer that was not taken yet; empty if there is none.
LAZULI_API std::vector<Tensor> transfer_from_outfeed(const Device& device = Device());

// Makes a pass of yours known by name: to run_passes, and with `every_program` to every
// compilation, those of recorded tensors included, before the library's own passes. It returns
// whether it changed the module. Throws if there is a pass of this name.
LAZULI_API void register_pass(const std::string& name, const std::string& doc,
                              std::function<bool(HloModule&)> run, bool every_program = false);
// Forgets a pass of yours: programs that it took part in are compiled again without it. Throws
// Error(kNotFound) if none of this name was registered.
LAZULI_API void unregister_pass(const std::string& name);

}  // namespace lazuli
