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
#include <optional>
#include <vector>

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

}  // namespace lazuli::func
