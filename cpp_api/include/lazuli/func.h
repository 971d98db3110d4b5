// Transforms of functions of tensors: batches of them, and their derivatives.
//
//   // f takes a vector [4] and gives a number; batched takes [8, 4] and gives [8].
//   const auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0].square().sum()}; };
//   std::vector<Tensor> y = lazuli::func::vmap(f, {x});
//
//   // The gradient of a function that gives a number, and products with its second derivatives.
//   const auto g = [](const std::vector<Tensor>& in) { return (in[0].sin() * in[1]).sum(); };
//   std::vector<Tensor> dg = lazuli::func::grad(g, {a, b});
//   const auto slope = [&](const std::vector<Tensor>& in) { return lazuli::func::grad(g, in); };
//   std::vector<Tensor> product = lazuli::func::jvp(slope, {a, b}, {da, db}).tangents;
//
// Transforms nest in any order. An argument that is differentiated cannot be changed in place. A tensor
// that a function uses without getting it is a constant for its transform, and stays differentiable
// for what is around it. Each throws Error(kInvalidArgument) where arguments or results do not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lazuli/compile.h"
#include "lazuli/control.h"
#include "lazuli/tensor.h"

namespace lazuli::func {

// What random functions do inside of a function that is batched.
enum class Randomness : std::uint8_t {
  kError,      // they throw
  kDifferent,  // each sample draws numbers of its own
  kSame,       // all samples draw the same numbers
};

struct VmapOptions {
  // The dim of each argument that counts the samples; an argument without one is the same for all of
  // them. {}: dim 0 of all arguments. Negative dims count from the end.
  std::vector<std::optional<std::int64_t>> in_dims = {};
  // Where this dim is in each result. {}: dim 0 of all.
  std::vector<std::int64_t> out_dims = {};
  Randomness randomness = Randomness::kError;
  std::optional<std::int64_t> chunk_size = {};  // at most so many samples at a time; {}: all
};

// What f computes for each sample, recorded as one operation for all. f is called once, with tensors of
// one sample that have no elements; nothing in it can be read. Tensors that it uses from outside are the
// same for all samples, and cannot be written to. Gradients flow to the arguments and to the tensors from
// outside, as through HloModule::call().
//
// Throws Error(kInvalidArgument) where dims or sizes do not fit, and Error(kUnimplemented) for an operation
// that has no rule for batches, or none for gradients where one is wanted.
LAZULI_API std::vector<Tensor> vmap(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
    const std::vector<Tensor>& arguments, const VmapOptions& options = {},
    SourceLocation loc = SourceLocation::current());

struct DerivativeOptions {
  // The positions of the arguments that are differentiated, in rising order; {}: all.
  std::vector<std::size_t> argnums = {};
};

// The gradients of f, which gives one tensor without dims: one for each argument that is
// differentiated.
LAZULI_API std::vector<Tensor> grad(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                    const std::vector<Tensor>& arguments,
                                    const DerivativeOptions& options = {},
                                    SourceLocation loc = SourceLocation::current());
struct ValueAndGrad {
  Tensor value;
  std::vector<Tensor> gradients;
};
LAZULI_API ValueAndGrad value_and_grad(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                       const std::vector<Tensor>& arguments,
                                       const DerivativeOptions& options = {},
                                       SourceLocation loc = SourceLocation::current());

// f(primals), and the function that gives products of cotangents, one for each result, with the
// Jacobian matrix. f runs once, however often that is called.
struct Vjp {
  std::vector<Tensor> results;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> products;
};
LAZULI_API Vjp vjp(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                   const std::vector<Tensor>& primals,
                   SourceLocation loc = SourceLocation::current());

// f(primals), and the products of the Jacobian matrix with tangents, one for each primal. Loops go
// forward, so that of while_loop() has this derivative.
struct Jvp {
  std::vector<Tensor> results, tangents;
};
LAZULI_API Jvp jvp(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                   const std::vector<Tensor>& primals, const std::vector<Tensor>& tangents,
                   SourceLocation loc = SourceLocation::current());

// f(primals), and the function that gives products of the Jacobian matrix with tangents, one for
// each primal. f runs once, however often that is called.
struct Linearized {
  std::vector<Tensor> results;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> products;
};
LAZULI_API Linearized
linearize(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
          const std::vector<Tensor>& primals, SourceLocation loc = SourceLocation::current());

// The Jacobian matrices of f, [*result.shape, *argument.shape], by result and argument: jacrev() by
// a backward pass for each element of the results, jacfwd() by one in forward mode for each element of the
// arguments. The passes run as one batch unless the matrices keep a history.
using Blocks = std::vector<std::vector<Tensor>>;
LAZULI_API Blocks jacrev(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& arguments,
                         const DerivativeOptions& options = {},
                         SourceLocation loc = SourceLocation::current());
LAZULI_API Blocks jacfwd(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f,
                         const std::vector<Tensor>& arguments,
                         const DerivativeOptions& options = {},
                         SourceLocation loc = SourceLocation::current());

// The second derivatives of f, which gives one tensor without dims: [*x.shape, *y.shape] by arguments
// x and y.
LAZULI_API Blocks hessian(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                          const std::vector<Tensor>& arguments,
                          const DerivativeOptions& options = {},
                          SourceLocation loc = SourceLocation::current());

// A function whose products with tangents are those of a rule, which gives the results and their
// tangents for the arguments and theirs. The rule is linear in the tangents; gradients are its transpose.
// Derivatives of any order and in any mode come from it, for what it computes is differentiated, too.
using JvpRule =
    std::function<Jvp(const std::vector<Tensor>& primals, const std::vector<Tensor>& tangents)>;
LAZULI_API TensorsFunction custom_jvp(TensorsFunction f, JvpRule rule,
                                      SourceLocation loc = SourceLocation::current());

// The same with a rule for products with cotangents: `forward` runs in the place of f where a gradient is
// wanted, and also gives what `backward` needs; that returns a gradient for each argument, undefined
// ones being zeros.
struct WithResiduals {
  std::vector<Tensor> results, residuals;
};
using VjpForward = std::function<WithResiduals(const std::vector<Tensor>& arguments)>;
using VjpBackward = std::function<std::vector<Tensor>(const std::vector<Tensor>& residuals,
                                                      const std::vector<Tensor>& cotangents)>;
LAZULI_API TensorsFunction custom_vjp(TensorsFunction f, VjpForward forward, VjpBackward backward,
                                      SourceLocation loc = SourceLocation::current());

// The tensors without their history: to derivatives they are constants.
LAZULI_API std::vector<Tensor> stop_gradient(const std::vector<Tensor>& tensors,
                                             SourceLocation loc = SourceLocation::current());

// The function that keeps only its arguments for its gradient, which computes the rest again
// (lazuli::checkpoint).
LAZULI_API TensorsFunction remat(TensorsFunction f, SourceLocation loc = SourceLocation::current());

namespace internal {
// While it lives, a tensor has the elements and the history of another one.
class LAZULI_API Lent {
 public:
  Lent(const Tensor& place, const Tensor& value, SourceLocation loc);
  ~Lent();
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
LAZULI_API void RefuseName(const std::string& name, const SourceLocation& loc);
}  // namespace internal

// What the module gives for these arguments with other tensors, by name, in the place of its parameters
// and buffers: a function of them, for the transforms above. The module itself has the tensors while
// it is called, so no other thread may use it meanwhile. Throws Error(kInvalidArgument) for a name that
// the module does not have.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
template <class M, class... A>
auto functional_call(const M& module, const NamedTensors& tensors, const A&... arguments) {
  const SourceLocation loc = SourceLocation::current();
  NamedTensors there = module.named_parameters();
  const NamedTensors buffers = module.named_buffers();
  there.insert(there.end(), buffers.begin(), buffers.end());
  std::vector<std::unique_ptr<internal::Lent>> lent;
  for (const auto& [name, value] : tensors) {
    const Tensor* place = nullptr;
    for (const auto& [known, tensor] : there)
      if (known == name) place = &tensor;
    if (place == nullptr) internal::RefuseName(name, loc);
    lent.push_back(std::make_unique<internal::Lent>(*place, value, loc));
  }
  if constexpr (std::is_invocable_v<const M&, const A&...>)
    return module(arguments...);
  else
    return module.forward(arguments...);
}

// lazuli::compile(): the function, whose calls are replayed.
template <class F>
Compiled<F> jit(F function, const CompileOptions& options = {},
                SourceLocation loc = SourceLocation::current()) {
  return compile(std::move(function), options, loc);
}

}  // namespace lazuli::func
