// Learning rates that change as training goes on. A scheduler sets its optimiser's at once and at
// each step():
//
//   lazuli::optim::CosineAnnealingLR schedule(opt, {.T_max = 30});
//   for (int epoch = 0; epoch < 30; ++epoch) {
//     train(opt);
//     schedule.step();
//   }
//
// What a step is, an epoch or a batch, is up to the loop. Schedules are functions of the step t,
// with PyTorch's values and names of options, and of the base of each group of parameters: its
// learning rate before its first scheduler.
// The optimiser must outlive its scheduler. Changing a learning rate compiles nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lazuli/optim.h"

namespace lazuli::optim {

class LAZULI_API LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  void step(LAZULI_LOC) { set_step(steps_ + 1, loc); }
  std::int64_t steps() const { return steps_; }
  // Goes to a step: what continues a saved run.
  void set_step(std::int64_t step, LAZULI_LOC);
  // The learning rate at a step, of one of the optimiser's groups of parameters.
  virtual double lr_at(std::int64_t step, std::size_t group = 0) const = 0;
  double lr() const { return lr_at(steps_); }

 protected:
  LRScheduler(Optimizer& optimizer, SourceLocation loc);
  // Sets the learning rate of step 0: called at the end of constructors.
  void Start() { set_step(0, loc_); }
  // The learning rate of the group before its first scheduler.
  double base(std::size_t group) const;
  SourceLocation loc() const { return loc_; }  // of the constructor's call, for errors

 private:
  Optimizer& optimizer_;
  std::int64_t steps_ = 0;
  SourceLocation loc_;
};

// base * gamma^(t / step_size), rounded down.
struct StepLROptions {
  std::int64_t step_size = 1;  // >= 1
  double gamma = 0.1;
};
class LAZULI_API StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const StepLROptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  StepLROptions options_;
};

// base * gamma^(number of milestones up to t).
struct MultiStepLROptions {
  std::vector<std::int64_t> milestones;
  double gamma = 0.1;
};
class LAZULI_API MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, const MultiStepLROptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  MultiStepLROptions options_;
};

// base * gamma^t.
class LAZULI_API ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  double gamma_;
};

// From the base along half a cosine to `eta_min` at step `T_max`, and back.
struct CosineAnnealingLROptions {
  std::int64_t T_max = 1;  // >= 1
  double eta_min = 0;
};
class LAZULI_API CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  CosineAnnealingLROptions options_;
};

// base times a factor that goes in a line from `start_factor` to `end_factor` over `total_iters` and
// stays there: a warmup by default.
struct LinearLROptions {
  double start_factor = 1.0 / 3, end_factor = 1;  // start_factor in (0, 1], end_factor in [0, 1]
  std::int64_t total_iters = 5;                   // >= 1
};
class LAZULI_API LinearLR final : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, const LinearLROptions& options = {}, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  LinearLROptions options_;
};

// base * (1 - t / total_iters)^power, 0 from step `total_iters` on.
struct PolynomialLROptions {
  std::int64_t total_iters = 5;  // >= 1
  double power = 1;
};
class LAZULI_API PolynomialLR final : public LRScheduler {
 public:
  PolynomialLR(Optimizer& optimizer, const PolynomialLROptions& options = {}, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  PolynomialLROptions options_;
};

// One cycle of `total_steps` (Smith and Topin, 2017): from max_lr / div_factor up to max_lr for
// the share `pct_start` of the steps, then down to max_lr / div_factor / final_div_factor. The
// optimiser's own learning rate does not matter.
struct OneCycleLROptions {
  double max_lr = 0.1;
  std::int64_t total_steps = 1;  // >= 1
  double pct_start = 0.3;        // in [0, 1]
  double div_factor = 25, final_div_factor = 1e4;
  bool linear = false;  // in lines; else along cosines
};
class LAZULI_API OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options, LAZULI_LOC);
  // Throws Error(kOutOfRange) beyond the last step.
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  OneCycleLROptions options_;
};

// base * factor, and base from step `total_iters` on.
struct ConstantLROptions {
  double factor = 1.0 / 3;  // in [0, 1]
  std::int64_t total_iters = 5;
};
class LAZULI_API ConstantLR final : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, const ConstantLROptions& options = {}, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  ConstantLROptions options_;
};

// As CosineAnnealingLR, but from the base anew after `T_0` steps, and each time after `T_mult` times
// as many (Loshchilov and Hutter, 2017).
struct CosineAnnealingWarmRestartsOptions {
  std::int64_t T_0 = 1;     // >= 1
  std::int64_t T_mult = 1;  // >= 1
  double eta_min = 0;
};
class LAZULI_API CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer,
                              const CosineAnnealingWarmRestartsOptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  CosineAnnealingWarmRestartsOptions options_;
};

// Up and down in lines between `base_lr` and `max_lr` (Smith, 2017). The optimiser's own learning
// rate does not matter, and its momentum stays.
struct CyclicLROptions {
  // Whether the height stays, is half as large in each cycle, or is times gamma^t.
  enum class Mode : std::uint8_t { kTriangular, kTriangular2, kExpRange };
  double base_lr = 1e-3, max_lr = 1e-2;
  std::int64_t step_size_up = 2000;                 // >= 1, the steps of the way up,
  std::optional<std::int64_t> step_size_down = {};  // and down; none: as many
  Mode mode = Mode::kTriangular;
  double gamma = 1;
};
class LAZULI_API CyclicLR final : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const CyclicLROptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  CyclicLROptions options_;
};

// To a rate for averaging weights (swa.h), and then on with it; from the rates that the optimiser has
// when it is made.
struct SWALROptions {
  double swa_lr = 0.05;
  std::int64_t anneal_epochs = 10;  // >= 0
  bool linear = false;              // in a line; else along a cosine
};
class LAZULI_API SWALR final : public LRScheduler {
 public:
  SWALR(Optimizer& optimizer, const SWALROptions& options, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  SWALROptions options_;
  std::vector<double> from_;  // of each group
};

// base * factor(1) * ... * factor(t).
class LAZULI_API MultiplicativeLR final : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  std::function<double(std::int64_t)> factor_;
};

// base * factor(t).
class LAZULI_API LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(std::int64_t)> factor, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override {
    return base(group) * factor_(step);
  }

 private:
  std::function<double(std::int64_t)> factor_;
};

// One schedule after the other: schedule i + 1 begins, at its step 0, at milestone i. Made of
// schedules of the same optimiser.
//
//   auto warmup = std::make_shared<LinearLR>(
//       opt, LinearLROptions{.start_factor = 0.1, .total_iters = 5});
//   auto rest = std::make_shared<ExponentialLR>(opt, 0.9);
class LAZULI_API SequentialLR final : public LRScheduler {
 public:
  using Schedules = std::vector<std::shared_ptr<const LRScheduler>>;
  SequentialLR(Optimizer& optimizer, Schedules schedules, std::vector<std::int64_t> milestones,
               LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  Schedules schedules_;
  std::vector<std::int64_t> milestones_;
};

// Schedules of the same optimiser at once: base times the share of the base that each gives.
class LAZULI_API ChainedScheduler final : public LRScheduler {
 public:
  using Schedules = SequentialLR::Schedules;
  ChainedScheduler(Optimizer& optimizer, Schedules schedules, LAZULI_LOC);
  double lr_at(std::int64_t step, std::size_t group = 0) const override;

 private:
  Schedules schedules_;
};

// Multiplies the learning rate by `factor` once a metric has not improved for more than `patience`
// steps. No LRScheduler: its step() takes the metric.
struct ReduceLROnPlateauOptions {
  bool maximize = false;  // whether a larger metric is better
  double factor = 0.1;    // below 1
  std::int64_t patience = 10;
  double threshold = 1e-4;    // what counts as an improvement
  bool relative = true;       // the threshold is a share of the best metric
  std::int64_t cooldown = 0;  // steps after a reduction that are not counted
  double min_lr = 0;
  double eps = 1e-8;  // smaller changes of the learning rate are left out
};
class LAZULI_API ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {},
                             LAZULI_LOC);
  void step(double metric);
  double best() const { return best_; }

 private:
  bool IsBetter(double metric) const;
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  std::int64_t bad_steps_ = 0, cooldown_left_ = 0;
};

}  // namespace lazuli::optim
