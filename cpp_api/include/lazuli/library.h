// Ops of your own, and functions of the host inside of programs.
//
//   // sinc is computed by a function of the host, for f32 of any shape.
//   const CustomOp sinc = CustomOp("mylib::sinc", [](const auto& in, const auto&) { return in; })
//       .kernel([](std::string_view, const auto& in, const auto& out) {
//         const auto* x = static_cast<const float*>(in[0].data);
//         auto* y = static_cast<float*>(out[0].data);
//         for (std::int64_t i = 0; i < out[0].dims[0]; ++i)
//           y[i] = x[i] == 0 ? 1 : std::sin(x[i]) / x[i];
//       })
//       .gradient([](const auto& in, const auto& out, const auto& dy, const auto&) {
//         return std::vector{dy[0] * (in[0].cos() - out[0]) / in[0]};
//       });
//   Tensor y = sinc({x})[0];
//
// A call records one node, under the name of the op. In HLO it is a custom-call, on every device:
// the run of a device calls the function on the host. What a function throws is the error of the
// run. docs/custom_ops.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lazuli/hlo.h"

namespace lazuli {

struct CustomOpOptions {
  // The op does something besides computing its results: each recorded call runs, once, even if
  // nobody wants the results, in the order of recording. Otherwise calls may be merged, or dropped.
  bool has_effects = false;
};

// A handle of an op, which lives as long as the process.
class LAZULI_API CustomOp {
 public:
  // The results for these inputs; the text is that of the call.
  using Shapes = std::function<std::vector<HloShape>(const std::vector<HloShape>& inputs,
                                                     const std::string& config)>;
  // Computes the results. Called on the thread of the device, by one run at a time; several devices
  // may call it at the same time.
  using Kernel = CustomCall;
  // The gradients of the inputs, those of floats and complex numbers; undefined ones are zeros.
  // There is a cotangent for each such result, and an undefined tensor for the others. An op with
  // effects is not computed again for its gradient, which then gets no results.
  using Gradient = std::function<std::vector<Tensor>(
      const std::vector<Tensor>& inputs, const std::vector<Tensor>& results,
      const std::vector<Tensor>& cotangents, const std::string& config)>;
  // The results for `size` samples, all with the samples in dim 0, as have the inputs that are
  // batched.
  using Batch = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs,
                                                  const std::vector<bool>& batched,
                                                  std::int64_t size, const std::string& config)>;

  // Defines the op: "library::name". Throws Error(kInvalidArgument) for another form of name, and
  // if there is an op of this name.
  CustomOp(const std::string& name, Shapes shapes, const CustomOpOptions& options = {});
  // The op of this name; throws Error(kNotFound) if there is none.
  static CustomOp find(const std::string& name);

  // Sets what computes the op on devices of the type ("npu"), or on all that have none of their
  // own. Programs that are recorded from now on call it. The same for rules; each throws
  // Error(kInvalidArgument) if the op has one already.
  const CustomOp& kernel(Kernel kernel, const std::string& device_type = "") const;
  // Recorded when a gradient is first wanted, for each combination of shapes. Without it the call
  // of an op with an input that wants a gradient throws Error(kUnimplemented).
  const CustomOp& gradient(Gradient gradient) const;
  // Without it the op is called for one sample after the other; with effects it throws
  // Error(kUnimplemented).
  const CustomOp& batch(Batch batch) const;

  // Records a call. The text is a part of what is compiled, so that it should not change at every
  // call.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const std::string& config = "",
                                 SourceLocation loc = SourceLocation::current()) const;
  const std::string& name() const;

 private:
  struct Impl;
  explicit CustomOp(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// What vmap does with a callback.
enum class CallbackBatch : std::uint8_t {
  kError,
  kSequential,    // calls it for one sample after the other
  kExpandDims,    // calls it once; arrays that are the same for all samples have a dim 0 of size 1
  kBroadcastAll,  // calls it once; they are repeated for each sample
};

struct CallbackOptions {
  std::string name = "callback";  // what the node is called
  bool has_effects = false;       // as for an op
  // Its effects come after those of ordered callbacks recorded before, which a compiler keeps, too.
  bool ordered = false;
  CallbackBatch batch = CallbackBatch::kSequential;
};

// A function of the host: a call records a node that gives results of these shapes. The function
// lives as long as a program that calls it. Programs that call different Callbacks are different: a
// loop that should compile once makes one Callback and calls that.
class LAZULI_API Callback {
 public:
  using Function = std::function<void(const std::vector<CustomCallArray>& arguments,
                                      const std::vector<CustomCallResult>& results)>;
  explicit Callback(Function function, const CallbackOptions& options = {});
  std::vector<Tensor> operator()(const std::vector<HloShape>& results,
                                 const std::vector<Tensor>& arguments,
                                 SourceLocation loc = SourceLocation::current()) const;
  // For a table of callbacks that does not keep them: none once no program calls the callback.
  std::weak_ptr<const void> weak() const;
  static std::optional<Callback> locked(const std::weak_ptr<const void>& weak);

 private:
  struct Impl;
  explicit Callback(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// What the function gives for these tensors, as one call by the name: the graph and HLO show it as
// a composite, and it is written out before a device compiles it. The function is called once, with
// tensors that have no elements; it may use others from outside. Differentiable as the function is.
LAZULI_API std::vector<Tensor> composite(
    const std::string& name,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& arguments, SourceLocation loc = SourceLocation::current());

// The tensors, as values that no compiler merges with equal ones or computes before all of them are
// there. Their gradients pass a barrier, too.
LAZULI_API std::vector<Tensor> optimization_barrier(const std::vector<Tensor>& tensors,
                                                    SourceLocation loc = SourceLocation::current());

// An instruction of HLO that hlo_op() takes.
struct HloOpcode {
  std::string name;                     // "dot"
  std::int64_t operands = 0;            // -1: any number
  std::vector<std::string> attributes;  // those that it cannot do without end in !
};
LAZULI_API std::vector<HloOpcode> hlo_opcodes();
// Names of attributes, and what HLO's text has behind the "=": {{"dimensions", "{1,0}"}}.
using HloAttributes = std::vector<std::pair<std::string, std::string>>;
// The results of one instruction of HLO, as an op of the graph: every opcode that works on arrays,
// calls no computation and does nothing else. `result` is what cannot be inferred, such as the dims
// that broadcast and reshape give. Gradients, tangents and batches follow the rules of
// docs/transform_rules.md.
//
//   hlo_op("dot", {x, y}, {{"lhs_contracting_dims", "{1}"}, {"rhs_contracting_dims", "{0}"}})[0];
LAZULI_API std::vector<Tensor> hlo_op(const std::string& opcode,
                                      const std::vector<Tensor>& operands,
                                      const HloAttributes& attributes = {},
                                      const std::optional<HloShape>& result = {},
                                      SourceLocation loc = SourceLocation::current());

// While it lives, effects that the thread records (callbacks and ops with effects) come after the
// tensors are computed. The graph shows them behind an @, HLO has them as control predecessors.
class LAZULI_API After {
 public:
  explicit After(const std::vector<Tensor>& tensors);
  ~After();
  After(const After&) = delete;
  After& operator=(const After&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lazuli
