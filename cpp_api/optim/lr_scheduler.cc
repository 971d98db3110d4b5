#include "lazuli/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "cpp_api/optim/options.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/host_action.h"
#include "lazuli/internal/text.h"

namespace lazuli::optim {
namespace {

using lazuli::internal::Fail;
using lazuli::internal::NumberText;

void Require(bool holds, const std::string& what, SourceLocation loc) {
  if (!holds) Fail(ErrorCode::kInvalidArgument, what, loc);
}

void CheckCount(const char* scheduler, const char* option, std::int64_t value, SourceLocation loc) {
  Require(value >= 1,
          std::string(scheduler) + ": " + option + " is " + std::to_string(value) +
              ", it must be at least 1",
          loc);
}

// Half a cosine from `from` at 0 to `to` at 1.
double Cosine(double from, double to, double share) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * share));
}
double Line(double from, double to, double share) { return from + (to - from) * share; }

}  // namespace

LRScheduler::LRScheduler(Optimizer& optimizer, SourceLocation loc)
    : optimizer_(optimizer), loc_(loc) {
  for (ParamGroup& group : optimizer.groups_) {
    if (!group.initial_lr_) group.initial_lr_ = group.options().get_lr();
  }
}

double LRScheduler::base(std::size_t group) const {
  const ParamGroup& of = optimizer_.groups_.at(group);
  return of.initial_lr_.value_or(of.options().get_lr());  // that of a group which was added later
}

void LRScheduler::set_step(std::int64_t step, SourceLocation loc) {
  const SiteScope site(loc);
  internal::RefuseReplay("steps a schedule, which a replay would not; step it outside");
  std::vector<double> rates;
  for (std::size_t g = 0; g < optimizer_.groups_.size(); ++g)
    rates.push_back(lr_at(step, g));  // may throw
  steps_ = step;
  for (std::size_t g = 0; g < rates.size(); ++g) {
    ParamGroup& group = optimizer_.groups_[g];
    group.initial_lr_ = base(g);
    group.options().set_lr(rates[g]);
  }
}

StepLR::StepLR(Optimizer& optimizer, const StepLROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("StepLR", "step_size", options.step_size, loc);
  Start();
}
double StepLR::lr_at(std::int64_t step, std::size_t group) const {
  const std::int64_t drops = step / options_.step_size;
  return base(group) * std::pow(options_.gamma, static_cast<double>(drops));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options,
                         SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  Start();
}
double MultiStepLR::lr_at(std::int64_t step, std::size_t group) const {
  const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                    [step](std::int64_t m) { return m <= step; });
  return base(group) * std::pow(options_.gamma, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma, SourceLocation loc)
    : LRScheduler(optimizer, loc), gamma_(gamma) {
  Start();
}
double ExponentialLR::lr_at(std::int64_t step, std::size_t group) const {
  return base(group) * std::pow(gamma_, static_cast<double>(step));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options,
                                     SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("CosineAnnealingLR", "T_max", options.T_max, loc);
  Start();
}
double CosineAnnealingLR::lr_at(std::int64_t step, std::size_t group) const {
  return Cosine(base(group), options_.eta_min,
                static_cast<double>(step) / static_cast<double>(options_.T_max));
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("LinearLR", "total_iters", options.total_iters, loc);
  Require(options.start_factor > 0 && options.start_factor <= 1,
          "LinearLR: start_factor is " + NumberText(options.start_factor) +
              ", it must be above 0 and at most 1",
          loc);
  Require(options.end_factor >= 0 && options.end_factor <= 1,
          "LinearLR: end_factor is " + NumberText(options.end_factor) + ", it must be from 0 to 1",
          loc);
  Start();
}
double LinearLR::lr_at(std::int64_t step, std::size_t group) const {
  const double share = static_cast<double>(std::min(step, options_.total_iters)) /
                       static_cast<double>(options_.total_iters);
  return base(group) * Line(options_.start_factor, options_.end_factor, share);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options,
                           SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("PolynomialLR", "total_iters", options.total_iters, loc);
  Start();
}
double PolynomialLR::lr_at(std::int64_t step, std::size_t group) const {
  const double share = static_cast<double>(std::min(step, options_.total_iters)) /
                       static_cast<double>(options_.total_iters);
  return base(group) * std::pow(1 - share, options_.power);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("OneCycleLR", "total_steps", options.total_steps, loc);
  Require(options.pct_start >= 0 && options.pct_start <= 1,
          "OneCycleLR: pct_start is " + NumberText(options.pct_start) + ", it must be from 0 to 1",
          loc);
  Require(options.div_factor > 0 && options.final_div_factor > 0,
          "OneCycleLR: div_factor and final_div_factor must be above 0", loc);
  Start();
}
double OneCycleLR::lr_at(std::int64_t step, std::size_t /*group*/) const {
  if (step >= options_.total_steps) {
    Fail(ErrorCode::kOutOfRange,
         "OneCycleLR: step " + std::to_string(step) + " is beyond the cycle of " +
             std::to_string(options_.total_steps) + " steps",
         loc());
  }
  const double top = options_.pct_start * static_cast<double>(options_.total_steps) - 1;
  const double last = static_cast<double>(options_.total_steps) - 1;
  const double initial = options_.max_lr / options_.div_factor;
  const auto between = [&](double from, double to, double share) {
    return options_.linear ? Line(from, to, share) : Cosine(from, to, share);
  };
  const auto t = static_cast<double>(step);
  if (t <= top) return between(initial, options_.max_lr, top == 0 ? 1 : t / top);
  const double share = last > top ? (t - top) / (last - top) : 1;
  return between(options_.max_lr, initial / options_.final_div_factor, share);
}

ConstantLR::ConstantLR(Optimizer& optimizer, const ConstantLROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  Require(options.factor >= 0 && options.factor <= 1,
          "ConstantLR: factor is " + NumberText(options.factor) + ", it must be from 0 to 1", loc);
  Start();
}
double ConstantLR::lr_at(std::int64_t step, std::size_t group) const {
  return base(group) * (step < options_.total_iters ? options_.factor : 1);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    Optimizer& optimizer, const CosineAnnealingWarmRestartsOptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("CosineAnnealingWarmRestarts", "T_0", options.T_0, loc);
  CheckCount("CosineAnnealingWarmRestarts", "T_mult", options.T_mult, loc);
  Start();
}
double CosineAnnealingWarmRestarts::lr_at(std::int64_t step, std::size_t group) const {
  std::int64_t length = options_.T_0;
  if (options_.T_mult == 1) step %= length;
  for (; step >= length; length *= options_.T_mult) step -= length;
  return Cosine(base(group), options_.eta_min,
                static_cast<double>(step) / static_cast<double>(length));
}

CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicLROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  CheckCount("CyclicLR", "step_size_up", options.step_size_up, loc);
  if (options.step_size_down)
    CheckCount("CyclicLR", "step_size_down", *options.step_size_down, loc);
  Start();
}
double CyclicLR::lr_at(std::int64_t step, std::size_t /*group*/) const {
  const auto up = static_cast<double>(options_.step_size_up);
  const auto down = static_cast<double>(options_.step_size_down.value_or(options_.step_size_up));
  const auto t = static_cast<double>(step);
  const double cycle = std::floor(t / (up + down)), within = t - cycle * (up + down);
  double height = (options_.max_lr - options_.base_lr) *
                  (within <= up ? within / up : (up + down - within) / down);
  if (options_.mode == CyclicLROptions::Mode::kTriangular2) height *= std::pow(0.5, cycle);
  if (options_.mode == CyclicLROptions::Mode::kExpRange) height *= std::pow(options_.gamma, t);
  return options_.base_lr + height;
}

SWALR::SWALR(Optimizer& optimizer, const SWALROptions& options, SourceLocation loc)
    : LRScheduler(optimizer, loc), options_(options) {
  Require(options.anneal_epochs >= 0,
          "SWALR: anneal_epochs is " + std::to_string(options.anneal_epochs) +
              ", it must be at least 0",
          loc);
  for (const ParamGroup& group : optimizer.param_groups())
    from_.push_back(group.options().get_lr());
  Start();
}
double SWALR::lr_at(std::int64_t step, std::size_t group) const {
  const double share =
      options_.anneal_epochs == 0
          ? 1
          : std::min(1.0, static_cast<double>(step) / static_cast<double>(options_.anneal_epochs));
  const double from = group < from_.size() ? from_[group] : base(group);
  return options_.linear ? Line(from, options_.swa_lr, share)
                         : Cosine(from, options_.swa_lr, share);
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor,
                                   SourceLocation loc)
    : LRScheduler(optimizer, loc), factor_(std::move(factor)) {
  Require(static_cast<bool>(factor_), "MultiplicativeLR: the function is empty", loc);
  Start();
}
double MultiplicativeLR::lr_at(std::int64_t step, std::size_t group) const {
  double lr = base(group);
  for (std::int64_t t = 1; t <= step; ++t) lr *= factor_(t);
  return lr;
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor,
                   SourceLocation loc)
    : LRScheduler(optimizer, loc), factor_(std::move(factor)) {
  Require(static_cast<bool>(factor_), "LambdaLR: the function is empty", loc);
  Start();
}

SequentialLR::SequentialLR(Optimizer& optimizer, Schedules schedules,
                           std::vector<std::int64_t> milestones, SourceLocation loc)
    : LRScheduler(optimizer, loc),
      schedules_(std::move(schedules)),
      milestones_(std::move(milestones)) {
  Require(!schedules_.empty() && milestones_.size() + 1 == schedules_.size(),
          "SequentialLR: " + std::to_string(schedules_.size()) + " schedules need " +
              std::to_string(schedules_.empty() ? 0 : schedules_.size() - 1) +
              " milestones, there are " + std::to_string(milestones_.size()),
          loc);
  Require(std::is_sorted(milestones_.begin(), milestones_.end()),
          "SequentialLR: the milestones do not rise", loc);
  Start();
}
double SequentialLR::lr_at(std::int64_t step, std::size_t group) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
  const auto i = static_cast<std::size_t>(next - milestones_.begin());
  return schedules_[i]->lr_at(i == 0 ? step : step - milestones_[i - 1], group);
}

ChainedScheduler::ChainedScheduler(Optimizer& optimizer, Schedules schedules, SourceLocation loc)
    : LRScheduler(optimizer, loc), schedules_(std::move(schedules)) {
  Require(!schedules_.empty(), "ChainedScheduler: there are no schedules", loc);
  Start();
}
double ChainedScheduler::lr_at(std::int64_t step, std::size_t group) const {
  const double whole = base(group);
  double lr = whole;
  for (const auto& schedule : schedules_)
    lr *= whole == 0 ? 0 : schedule->lr_at(step, group) / whole;
  return lr;
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options,
                                     SourceLocation loc)
    : optimizer_(optimizer),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::infinity()) {
  Require(options.factor > 0 && options.factor < 1,
          "ReduceLROnPlateau: factor is " + NumberText(options.factor) +
              ", it must be above 0 and below 1",
          loc);
}

bool ReduceLROnPlateau::IsBetter(double metric) const {
  const double sign = options_.maximize ? 1 : -1;
  if (!options_.relative) return sign * metric > sign * best_ + options_.threshold;
  return sign * metric > sign * best_ * (1 + sign * options_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  internal::RefuseReplay("steps a schedule, which a replay would not; step it outside");
  if (IsBetter(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ <= options_.patience) return;
  for (ParamGroup& group : optimizer_.param_groups()) {
    const double lr = group.options().get_lr();
    const double reduced = std::max(lr * options_.factor, options_.min_lr);
    if (lr - reduced > options_.eps) group.options().set_lr(reduced);
  }
  cooldown_left_ = options_.cooldown;
  bad_steps_ = 0;
}

}  // namespace lazuli::optim
