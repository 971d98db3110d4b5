#include <algorithm>
#include <string>

#include "lazuli/amp.h"
#include "lazuli/autograd.h"
#include "lazuli/debug.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/host_action.h"

namespace lazuli::amp {
namespace {

[[noreturn]] void Refuse(const std::string& why, const SourceLocation& loc) {
  lazuli::internal::Fail(ErrorCode::kInvalidArgument, "GradScaler: " + why, loc);
}

bool AllAreFinite(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> finite;
  for (const Tensor& x : tensors) finite.push_back(isfinite(x).all());  // all, before one is read
  return std::all_of(finite.begin(), finite.end(), [](const Tensor& x) { return x.item<bool>(); });
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options, SourceLocation loc)
    : options_(options), scale_(options.init_scale) {
  if (!options.enabled) return;
  if (!(options.growth_factor > 1)) Refuse("growth_factor must be above 1", loc);
  if (!(options.backoff_factor > 0 && options.backoff_factor < 1))
    Refuse("backoff_factor must be between 0 and 1", loc);
}

Tensor GradScaler::scale(const Tensor& loss, SourceLocation loc) const {
  return options_.enabled ? mul(Operand(loss, loc), Operand(scale_, loc)) : loss;
}

void GradScaler::unscale_(optim::Optimizer& optimizer, SourceLocation loc) {
  if (!options_.enabled) return;
  if (finite_.contains(&optimizer))
    Refuse("unscale_() was called for this optimiser since the last update()", loc);
  const SiteScope site(loc);
  const NoGrad no_grad;
  std::vector<Tensor> gradients;
  for (const Tensor& p : optimizer.parameters()) {
    if (p.grad().defined()) gradients.push_back(p.grad());
  }
  for (Tensor& gradient : gradients) gradient.mul_(1 / scale_);
  finite_[&optimizer] = AllAreFinite(gradients);
}

bool GradScaler::step(optim::Optimizer& optimizer, SourceLocation loc) {
  if (options_.enabled && !finite_.contains(&optimizer)) unscale_(optimizer, loc);
  const bool finite = !options_.enabled || finite_[&optimizer];
  if (finite) optimizer.step(loc);
  return finite;
}

void GradScaler::update(std::optional<double> new_scale, SourceLocation loc) {
  internal::RefuseReplay("updates a GradScaler, which a replay would not; update it outside");
  if (!options_.enabled) return;
  if (finite_.empty()) Refuse("no optimiser was stepped since the last update()", loc);
  const bool good = std::all_of(finite_.begin(), finite_.end(), [](auto& of) { return of.second; });
  finite_.clear();
  if (new_scale) {
    scale_ = *new_scale;
  } else if (!good) {
    scale_ *= options_.backoff_factor;
    good_steps_ = 0;
  } else if (++good_steps_ == options_.growth_interval) {
    scale_ *= options_.growth_factor;
    good_steps_ = 0;
  }
}

StateDict GradScaler::state_dict() const {
  StateDict state;
  if (!options_.enabled) return state;
  state.tensors["scale"] = full({}, scale_, kFloat64);
  state.tensors["_growth_tracker"] = full({}, good_steps_, kInt64);
  return state;
}

void GradScaler::load_state_dict(const StateDict& state, SourceLocation loc) {
  if (!options_.enabled) return;
  for (const char* const name : {"scale", "_growth_tracker"}) {
    if (!state.contains(name)) Refuse("the state has no " + std::string(name), loc);
  }
  scale_ = state.tensors.at("scale").item<double>();
  good_steps_ = state.tensors.at("_growth_tracker").item<std::int64_t>();
}

}  // namespace lazuli::amp
