// Functions of tensors as functions of batches of them.
//
//   // f takes a vector [4] and gives a number; batched takes [8, 4] and gives [8].
//   const auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0].square().sum()}; };
//   std::vector<Tensor> y = lazuli::func::vmap(f, {x});
#pragma once

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

}  // namespace lazuli::func
