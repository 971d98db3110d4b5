// Control flow on the device: loops and branches whose functions are traced once and compiled,
// whatever the elements are.
//
//   // The sum of xs and all partial sums, by one loop in one program.
//   const auto add = [](const Tensor& c, const Tensor& x) { return std::pair(c + x, c + x); };
//   const auto [sum, sums] = lz::scan(add, lz::zeros({}), xs);
//
// A function gets tensors without elements and records what it does with them, and with any tensor
// from outside; nothing can be read inside, and tensors from outside cannot be changed there. It
// may contain other loops and branches. The loop or branch is one op, pending as any other, and
// what a check inside finds is an error of the run.
//
// Random numbers inside come from a generator of the op's own: it takes one block of four numbers
// from the default generator, and they are its seed. Each step draws other numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

using TensorFunction = std::function<Tensor(const Tensor&)>;
using TensorsFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// What body makes of the carried tensors, called for as long as cond, which gives one bool, holds
// for them. The body keeps their shapes and dtypes. It is differentiable in forward mode
// (GradOptions::is_transposed); backward through it is an error: scan() and fori_loop() know the
// number of their steps.
LAZULI_API std::vector<Tensor> while_loop(
    const std::function<Tensor(const std::vector<Tensor>&)>& cond, const TensorsFunction& body,
    const std::vector<Tensor>& init, SourceLocation loc = SourceLocation::current());
LAZULI_API Tensor while_loop(const TensorFunction& cond, const TensorFunction& body,
                             const Tensor& init, SourceLocation loc = SourceLocation::current());

// A bound of a loop: a number, or an integer tensor without dims.
class LAZULI_API LoopBound {
 public:
  LoopBound(std::int64_t number) : number_(number) {}   // NOLINT: implicit
  LoopBound(const Tensor& tensor) : tensor_(tensor) {}  // NOLINT: implicit
  const std::optional<std::int64_t>& number() const { return number_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  std::optional<std::int64_t> number_;
  Tensor tensor_;
};

// What body makes of the carried tensors, called with i, an s64 tensor, and them for each i from
// lower below upper. Other bounds run the same program. Differentiable if both bounds are numbers, and
// the number of steps is then part of the program; else in forward mode.
LAZULI_API std::vector<Tensor> fori_loop(
    const LoopBound& lower, const LoopBound& upper,
    const std::function<std::vector<Tensor>(const Tensor&, const std::vector<Tensor>&)>& body,
    const std::vector<Tensor>& init, SourceLocation loc = SourceLocation::current());
LAZULI_API Tensor fori_loop(const LoopBound& lower, const LoopBound& upper,
                            const std::function<Tensor(const Tensor&, const Tensor&)>& body,
                            const Tensor& init, SourceLocation loc = SourceLocation::current());

// Carried tensors, and what the steps gave besides.
struct Scanned {
  std::vector<Tensor> carry, results;
};
struct ScanOptions {
  std::optional<std::int64_t> length =
      {};                // of the first dim of each of xs; needed if there are none
  bool reverse = false;  // from the last element to the first
  // With `every` = k, backward gets the carried tensors of every k-th step, and computes those between
  // them again. Each step then runs once more, and memory is for length / k + k steps.
  std::int64_t every = 1;
};
// f takes the carried tensors and an element of each of xs along its first dim; it gives the
// carried tensors anew, with their shapes and dtypes, and any further results, which scan() stacks
// along a new first dim. Differentiable: the carried tensors of each step are kept,
// or with `every` of fewer.
LAZULI_API Scanned
scan(const std::function<Scanned(const std::vector<Tensor>&, const std::vector<Tensor>&)>& f,
     const std::vector<Tensor>& init, const std::vector<Tensor>& xs,
     const ScanOptions& options = {}, SourceLocation loc = SourceLocation::current());
LAZULI_API std::pair<Tensor, Tensor> scan(
    const std::function<std::pair<Tensor, Tensor>(const Tensor&, const Tensor&)>& f,
    const Tensor& init, const Tensor& xs, const ScanOptions& options = {},
    SourceLocation loc = SourceLocation::current());

// f of each element of xs along the first dim, stacked: one step after the other.
LAZULI_API std::vector<Tensor> map(const TensorsFunction& f, const std::vector<Tensor>& xs,
                                   SourceLocation loc = SourceLocation::current());
LAZULI_API Tensor map(const TensorFunction& f, const Tensor& xs,
                      SourceLocation loc = SourceLocation::current());

struct AssociativeScanOptions {
  bool reverse = false;
  std::int64_t dim = 0;
};
// All prefixes x0, f(x0, x1), f(f(x0, x1), x2), ... along a dim, of a function for which the
// brackets do not matter and which works on many elements at once: a number of steps that grows
// with the logarithm of the length, each an ordinary op (Blelloch, 1990). It is called with lists
// of equal sizes.
using CombineFunction =
    std::function<std::vector<Tensor>(const std::vector<Tensor>&, const std::vector<Tensor>&)>;
LAZULI_API std::vector<Tensor> associative_scan(const CombineFunction& f,
                                                const std::vector<Tensor>& xs,
                                                const AssociativeScanOptions& options = {},
                                                SourceLocation loc = SourceLocation::current());
LAZULI_API Tensor associative_scan(const std::function<Tensor(const Tensor&, const Tensor&)>& f,
                                   const Tensor& xs, const AssociativeScanOptions& options = {},
                                   SourceLocation loc = SourceLocation::current());

// true_fn of the operands where pred, one bool, is true, else false_fn of them: only one runs. Both
// give results of the same shapes and dtypes. Differentiable.
LAZULI_API std::vector<Tensor> cond(const Tensor& pred, const TensorsFunction& true_fn,
                                    const TensorsFunction& false_fn,
                                    const std::vector<Tensor>& operands,
                                    SourceLocation loc = SourceLocation::current());
LAZULI_API Tensor cond(const Tensor& pred, const TensorFunction& true_fn,
                       const TensorFunction& false_fn, const Tensor& operand,
                       SourceLocation loc = SourceLocation::current());

// The same for any number of functions: branches[index], with an integer without dims that is
// limited to those that there are.
LAZULI_API std::vector<Tensor> switch_case(const Tensor& index,
                                           const std::vector<TensorsFunction>& branches,
                                           const std::vector<Tensor>& operands,
                                           SourceLocation loc = SourceLocation::current());

}  // namespace lazuli
