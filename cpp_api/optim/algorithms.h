// The algorithms of the optimisers, which those of C++ and of Python share: what each keeps of a
// parameter, and how it moves a batch of them.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "lazuli/foreach.h"
#include "lazuli/optim.h"

namespace lazuli::optim {

// By PyTorch's names.
struct Algorithm {
  const char* name;
  std::vector<const char*> numbers;  // on the host, counted for each parameter; the first: "step"
  std::vector<const char*> states;   // tensors; undefined until an update makes them
  bool by_rank = false;   // parameters of rank 2 and more are updated apart from the others
  bool matrices = false;  // it takes parameters of rank 2 alone
};

// Parameters of a group that one foreach_* call updates: of one dtype and device, with equal numbers
// and the same states made.
struct Batch {
  std::size_t group = 0;
  std::vector<std::size_t> indices;
  std::vector<std::size_t> before;  // those of the step before
  bool repeats = false;             // indices are the first of `before`
  std::vector<double> numbers;      // before the update, then after it
  TensorList parameters, gradients;
  std::vector<TensorList> states;  // by state; all of one are defined, or none
  bool empty() const { return indices.empty(); }
  void Clear();

  // Adds a parameter; state(s) gives its state s. After EndStep() the lists still hold parameters
  // and states, though no gradients, and where Add() finds the same tensor at its place it leaves it
  // there.
  template <class State>
  void Add(std::size_t index, const Tensor& parameter, Tensor gradient, State state) {
    const std::size_t place = indices.size();
    const auto put = [place](TensorList& list, const Tensor& tensor) {
      if (place == list.size())
        list.push_back(tensor);
      else if (!list[place].is_same(tensor))
        list[place] = tensor;
    };
    repeats = (place == 0 || repeats) && IsNext(index);
    indices.push_back(index);
    put(parameters, parameter);
    gradients.push_back(std::move(gradient));
    for (std::size_t s = 0; s < states.size(); ++s) put(states[s], state(s));
  }
  // Mostly the same parameters are updated step after step, and what they share stays the same. Adds
  // one that comes at the place where it was the last time, if all before it did.
  bool AddAgain(std::size_t index, const Tensor& parameter, Tensor& gradient) {
    if (empty() || !repeats || !IsNext(index)) return false;
    const Tensor& first = parameters[0];
    if (first.dtype() != parameter.dtype() || first.device() != parameter.device()) return false;
    indices.push_back(index);
    gradients.push_back(std::move(gradient));
    return true;
  }
  bool IsNext(std::size_t index) const {
    return indices.size() < before.size() && before[indices.size()] == index;
  }
  void CutToAdded();  // behind the last one of a step
  void EndStep(bool done);
};
// Whether a parameter with these numbers and states belongs to the batch, which is not empty.
// state(s) tells whether its state s is defined.
template <class State>
bool Fits(const Algorithm& algorithm, const Batch& batch, const Tensor& p,
          const std::vector<double>& numbers, State state) {
  if (batch.numbers != numbers || batch.parameters[0].dtype() != p.dtype()) return false;
  for (std::size_t s = 0; s < batch.states.size(); ++s) {
    if (batch.states[s][0].defined() != state(s)) return false;
  }
  if (algorithm.by_rank && (batch.parameters[0].dim() > 1) != (p.dim() > 1)) return false;
  return batch.parameters[0].device() == p.device();
}

// What a step did, for steps that are replayed: copies of its batches, whose gradients are the
// parameters, since only shapes and dtypes of gradients matter to numbers.
inline std::vector<Batch> BatchesOfReplay(const std::vector<Batch>& batches) {
  std::vector<Batch> copies;
  for (const Batch& batch : batches) {
    if (batch.empty()) continue;
    copies.push_back(batch);
    copies.back().gradients = batch.parameters;
  }
  return copies;
}

// For each struct of options: its algorithm; Error(kInvalidArgument) for those out of range; the
// update, which makes states and counts the step in batch.numbers.
#define LAZULI_ALGORITHM(Options)                         \
  const Algorithm& AlgorithmOf(const Options& options);   \
  void Check(const Options& options, SourceLocation loc); \
  void Update(Batch& batch, const Options& options);
LAZULI_ALGORITHM(SGDOptions)
LAZULI_ALGORITHM(AdamOptions)
LAZULI_ALGORITHM(AdamWOptions)
LAZULI_ALGORITHM(NAdamOptions)
LAZULI_ALGORITHM(RAdamOptions)
LAZULI_ALGORITHM(AdamaxOptions)
LAZULI_ALGORITHM(RMSpropOptions)
LAZULI_ALGORITHM(AdagradOptions)
LAZULI_ALGORITHM(AdadeltaOptions)
LAZULI_ALGORITHM(ASGDOptions)
LAZULI_ALGORITHM(RpropOptions)
LAZULI_ALGORITHM(LionOptions)
LAZULI_ALGORITHM(AdafactorOptions)
LAZULI_ALGORITHM(MuonOptions)
LAZULI_ALGORITHM(LBFGSOptions)
#undef LAZULI_ALGORITHM

}  // namespace lazuli::optim
