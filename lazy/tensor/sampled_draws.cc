#include "lazy/tensor/sampled_draws.h"

#include <utility>

#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

thread_local int64_t draws_for = 1;
thread_local bool draws_are_refused = false;

}  // namespace

SampledDraws::SampledDraws(Kind kind, int64_t samples)
    : outer_(std::exchange(draws_for, kind == Kind::kDifferent ? draws_for * samples : draws_for)),
      outer_refuses_(
          std::exchange(draws_are_refused, draws_are_refused || kind == Kind::kRefused)) {}

SampledDraws::~SampledDraws() {
  draws_for = outer_;
  draws_are_refused = outer_refuses_;
}

int64_t SampledDraws::NumbersFor(int64_t one_sample) {
  if (draws_are_refused) {
    throw StatusError(ir::FailedPrecondition(
        "vmap: called random operation while in randomness error mode. Please either use the "
        "'same' or 'different' randomness flags on vmap or perform the randomness operation out of "
        "vmap"));
  }
  return one_sample * draws_for;
}

}  // namespace lazuli::lazy
