// Captures what a thread records as a program that is called, again and again, with other data.
//
// While a Capture lives the thread records into a context of its own, so nothing that was pending is
// part of the program or runs because of it. Parameters are tensors without elements: what is computed
// from them is recorded and cannot be read. All other data and numbers become constants, but for what
// the function writes to: that becomes a parameter behind the others, its new elements a result behind
// the others, which may take its memory. Nothing is written outside: what was written, gradients, and
// what was drawn of generators are as before when the Capture ends.
#pragma once

#include <string>
#include <vector>

#include "lazy/program/program.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/tensor.h"
#include "lowering/emit/emit.h"

namespace lazuli::lazy {

class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Tensor Parameter(const Shape& shape, backend::Device device);
  // The program of these results. `aliases` say which of them may take which parameter's memory.
  absl::StatusOr<ProgramPtr> Finish(absl::Span<const Tensor> results, std::string name,
                                    std::vector<hlo::Alias> aliases = {});

 private:
  absl::StatusOr<lowering::EmitSignature> SignatureOf(const Trace& trace) const;

  IntrusivePtr<Context> context_, outer_;
  Journal journal_;
  std::vector<DataPtr> parameters_;
};

}  // namespace lazuli::lazy
