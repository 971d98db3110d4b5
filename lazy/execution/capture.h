// Captures what a thread records as a program that is called, again and again, with other data.
//
// While a Capture lives the thread records into a context of its own, so nothing that was pending
// is part of the program or runs because of it. Parameters are tensors without elements: what is
// computed from them is recorded and cannot be read. All other data and numbers become constants,
// or further parameters (FromOutside). What the function writes to becomes a parameter behind all
// others, its new elements a result behind the others, which may take its memory. Nothing is
// written outside: what was written, gradients, and what was drawn of generators are as before when
// the Capture ends.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lazy/program/program.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/tensor.h"
#include "lowering/emit/emit.h"

namespace lazuli::lazy {

class Capture {
 public:
  // What tensors from outside are to the program that is captured.
  enum class FromOutside : uint8_t {
    kConstants,   // their elements, for which a context that they are pending in is synced
    kParameters,  // outside(): nothing of them is synced or read, and nothing at all can be read
    kReadOnly,    // the same, and to write to them is an error
  };
  explicit Capture(FromOutside from_outside = FromOutside::kConstants);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Before anything is recorded: gradients inside end at results from outside, instead of walking on
  // into the history that these have there, so that the gradient of each can be asked for.
  void EndHistoriesOutside();
  // Before anything is recorded: random numbers are drawn from a state that is a parameter, so that
  // they may differ from run to run. Other generators than the default one are then an error.
  void DrawFromParameter(backend::Device device);

  Tensor Parameter(const Shape& shape, backend::Device device);
  // Of the parameters made so far those of the next program, in this order; the others are not used
  // by its results.
  void UseParameters(absl::Span<const Tensor> parameters);
  // The program of these results. `aliases` say which of them may take which parameter's memory.
  // May be called again for other results, perhaps of parameters that are new.
  absl::StatusOr<ProgramPtr> Finish(absl::Span<const Tensor> results, std::string name,
                                    std::vector<hlo::Alias> aliases = {});
  // Between the two, the thread records where it did before. What was captured stays, so that more
  // can be computed from it: in the program of results that are recorded after Resume() are the
  // checks from before Suspend(), which are those of the function, and those from then on. Draws go on
  // behind those of the function. What the function does on the host (callbacks) is in such a program
  // only if it is computed in the place of the function's, not beside it.
  enum class OwnEffects : uint8_t { kNot, kAgain };
  void Suspend();
  void Resume(OwnEffects effects);

  // After Finish: the arguments for the parameters behind those of Parameter(), unless outside are
  // constants. First the tensors that the function uses, in order of first use, with their history;
  // one whose elements two tensors share is a parameter for each history. Then the data and numbers
  // that the function made, in the order of the trace: as everywhere, they are not part of what is
  // compiled.
  const Tensors& outside() const { return outside_; }
  // What was drawn of generators stays drawn when the Capture ends: the call of the program uses it.
  void KeepDraws() { keeps_draws_ = true; }

  // The argument that is a state of u32[4] (Outside::Draw), undefined in outside(), and how many
  // blocks the function draws in all; none if it draws nothing.
  struct Draws {
    std::size_t argument;
    int64_t blocks;
  };
  const std::optional<Draws>& draws() const { return draws_; }

 private:
  class Lifted;
  struct Parameters;
  void Leave();
  void AddOutside(const Trace& trace, backend::Device device, Parameters& parameters);
  absl::StatusOr<lowering::EmitSignature> SignatureOf(const Trace& trace, backend::Device device);

  IntrusivePtr<Context> context_, outer_;
  // Hooks of tensors that are saved are for those outside: what is saved inside has no elements.
  std::optional<PackScope> no_pack_hook_;
  std::unique_ptr<Lifted> lifted_;  // null: constants
  Journal journal_;
  std::vector<DataPtr> parameters_;  // of Parameter()
  std::vector<std::pair<StoragePtr, DataPtr>> made_;
  bool is_active_ = true;
  // Of the checks in the context: how many are the function's, and the first one since Resume().
  std::optional<std::size_t> own_checks_;
  std::size_t first_check_ = 0;
  OwnEffects own_effects_ = OwnEffects::kAgain;
  std::optional<Replay> replay_;
  std::vector<DataPtr> written_;
  Tensors outside_;
  bool keeps_draws_ = false;

  std::optional<Draws> draws_;
};

}  // namespace lazuli::lazy
