// Learning rates of eight steps from 0.5, as PyTorch 2.13 gives them.
#include "lazuli/lr_scheduler.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using optim::SGD;
using Rates = std::vector<double>;

SGD MakeOptimizer() { return SGD({zeros({1}).set_requires_grad(true)}, {.lr = 0.5}); }

void Expect(const SGD& opt, optim::LRScheduler& schedule, const Rates& rates) {
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (i > 0) schedule.step();
    EXPECT_NEAR(opt.lr(), rates[i], 1e-11) << "step " << i;
    EXPECT_EQ(opt.lr(), schedule.lr());
  }
}

TEST(StepLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::StepLR schedule(opt, {.step_size = 3, .gamma = 0.1});
  Expect(opt, schedule, {0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005, 0.005});
}

TEST(MultiStepLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::MultiStepLR schedule(opt, {.milestones = {2, 5}});
  Expect(opt, schedule, {0.5, 0.5, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005});
}

TEST(ExponentialLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::ExponentialLR schedule(opt, 0.9);
  Expect(opt, schedule, {0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245, 0.2657205, 0.23914845});
}

TEST(CosineAnnealingLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::CosineAnnealingLR schedule(opt, {.T_max = 6, .eta_min = 0.1});
  Expect(opt, schedule, {0.5, 0.473205080757, 0.4, 0.3, 0.2, 0.126794919243, 0.1, 0.126794919243});
}

TEST(LinearLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::LinearLR schedule(opt, {.start_factor = 0.25, .total_iters = 4});
  Expect(opt, schedule, {0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.5, 0.5, 0.5});
}

TEST(ConstantLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::ConstantLR schedule(opt, {.factor = 0.25, .total_iters = 3});
  Expect(opt, schedule, {0.125, 0.125, 0.125, 0.5, 0.5, 0.5, 0.5, 0.5});
  EXPECT_ERROR(kInvalidArgument, "ConstantLR: factor is 2, it must be from 0 to 1",
               optim::ConstantLR(opt, {.factor = 2}));
}

TEST(MultiplicativeLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::MultiplicativeLR schedule(opt,
                                   [](std::int64_t t) { return 1 - 0.1 * static_cast<double>(t); });
  Expect(opt, schedule, {0.5, 0.45, 0.36, 0.252, 0.1512, 0.0756, 0.03024, 0.009072});
}

TEST(CosineAnnealingWarmRestartsTest, GivesPyTorchsRates) {
  SGD even = MakeOptimizer();
  optim::CosineAnnealingWarmRestarts each(even, {.T_0 = 3, .eta_min = 0.1});
  Expect(even, each, {0.5, 0.4, 0.2, 0.5, 0.4, 0.2, 0.5, 0.4});
  SGD opt = MakeOptimizer();
  optim::CosineAnnealingWarmRestarts growing(opt, {.T_0 = 2, .T_mult = 2, .eta_min = 0.1});
  Expect(opt, growing, {0.5, 0.3, 0.5, 0.441421356237, 0.3, 0.158578643763, 0.5, 0.484775906502});
}

TEST(CyclicLRTest, GivesPyTorchsRates) {
  using Mode = optim::CyclicLROptions::Mode;
  SGD opt = MakeOptimizer();
  optim::CyclicLR slower(opt,
                         {.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 2, .step_size_down = 3});
  Expect(opt, slower, {0.1, 0.3, 0.5, 0.366666666667, 0.233333333333, 0.1, 0.3, 0.5});
  optim::CyclicLR half(
      opt, {.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 2, .mode = Mode::kTriangular2});
  Expect(opt, half, {0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2});
  optim::CyclicLR decaying(
      opt,
      {.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 2, .mode = Mode::kExpRange, .gamma = 0.9});
  Expect(opt, decaying, {0.1, 0.28, 0.424, 0.2458, 0.1, 0.218098, 0.3125764, 0.19565938});
}

TEST(SWALRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::SWALR cosine(opt, {.swa_lr = 0.05, .anneal_epochs = 4});
  Expect(opt, cosine, {0.5, 0.434099025767, 0.275, 0.115900974233, 0.05, 0.05, 0.05, 0.05});
  opt.set_lr(0.5);
  optim::SWALR line(opt, {.swa_lr = 0.05, .anneal_epochs = 4, .linear = true});
  Expect(opt, line, {0.5, 0.3875, 0.275, 0.1625, 0.05, 0.05, 0.05, 0.05});
  opt.set_lr(0.5);
  optim::SWALR at_once(opt, {.swa_lr = 0.05, .anneal_epochs = 0});
  Expect(opt, at_once, {0.05, 0.05});
}

TEST(ChainedSchedulerTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  const auto warmup = std::make_shared<optim::ConstantLR>(
      opt, optim::ConstantLROptions{.factor = 0.1, .total_iters = 2});
  const auto decay = std::make_shared<optim::ExponentialLR>(opt, 0.9);
  optim::ChainedScheduler schedule(opt, {warmup, decay});
  Expect(opt, schedule, {0.05, 0.045, 0.405, 0.3645, 0.32805, 0.295245, 0.2657205, 0.23914845});
}

TEST(PolynomialLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::PolynomialLR schedule(opt, {.total_iters = 6, .power = 2});
  Expect(opt, schedule,
         {0.5, 0.347222222222, 0.222222222222, 0.125, 0.0555555555556, 0.0138888888889, 0, 0});
}

TEST(OneCycleLRTest, GivesPyTorchsRates) {
  SGD opt = MakeOptimizer();
  optim::OneCycleLR schedule(opt, {.max_lr = 1, .total_steps = 8});
  Expect(opt, schedule,
         {0.04, 0.819275104892, 0.971941777388, 0.81174565395, 0.555984014123, 0.283060998209,
          0.0766415938343, 4e-06});
}

TEST(OneCycleLRTest, GoesInLinesIfTold) {
  SGD opt = MakeOptimizer();
  optim::OneCycleLR schedule(opt,
                             {.max_lr = 1, .total_steps = 8, .pct_start = 0.5, .linear = true});
  Expect(opt, schedule, {0.04, 0.36, 0.68, 1, 0.750001, 0.500002, 0.250003, 4e-06});
  const auto beyond = [&] {
    try {
      schedule.step();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  // At the line of the constructor: step() takes none.
  EXPECT_THAT(beyond(),
              testing::HasSubstr("OneCycleLR: step 8 is beyond the cycle of 8 steps (lr_"));
}

TEST(LambdaLRTest, MultipliesTheBase) {
  SGD opt = MakeOptimizer();
  optim::LambdaLR schedule(opt, [](std::int64_t step) { return 1.0 / (1 + step); });
  Expect(opt, schedule, {0.5, 0.25, 0.5 / 3});
}

TEST(SequentialLRTest, RunsOneScheduleAfterTheOther) {
  SGD opt = MakeOptimizer();
  auto warmup = std::make_shared<optim::LinearLR>(
      opt, optim::LinearLROptions{.start_factor = 0.1, .total_iters = 3});
  auto rest = std::make_shared<optim::ExponentialLR>(opt, 0.5);
  optim::SequentialLR schedule(opt, {warmup, rest}, {3});
  Expect(opt, schedule, {0.05, 0.2, 0.35, 0.5, 0.25, 0.125, 0.0625, 0.03125});
}

TEST(ReduceLROnPlateauTest, ReducesWhenTheMetricStalls) {
  SGD opt = MakeOptimizer();
  optim::ReduceLROnPlateau schedule(opt, {.patience = 1, .cooldown = 1});
  Rates rates;
  for (const double metric : {1., 0.9, 0.9, 0.89999, 0.95, 0.9, 0.9, 0.9, 0.2}) {
    schedule.step(metric);
    rates.push_back(opt.lr());
  }
  const Rates expected = {0.5,
                          0.5,
                          0.5,
                          0.05,
                          0.05,
                          0.05,
                          0.005000000000000001,
                          0.005000000000000001,
                          0.005000000000000001};
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12) << i;
  EXPECT_EQ(schedule.best(), 0.2);
}

TEST(ReduceLROnPlateauTest, MayMaximize) {
  SGD opt = MakeOptimizer();
  optim::ReduceLROnPlateau schedule(
      opt, {.maximize = true, .patience = 0, .threshold = 0.5, .relative = false});
  schedule.step(1);
  schedule.step(1.6);
  EXPECT_EQ(opt.lr(), 0.5);
  schedule.step(2);
  EXPECT_NEAR(opt.lr(), 0.05, 1e-12);
}

TEST(LRSchedulerTest, TheBaseIsWhatTheOptimizerStartedWith) {
  SGD opt = MakeOptimizer();
  const optim::LinearLR warmup(opt, {.start_factor = 0.1});
  const optim::ExponentialLR rest(opt, 0.9);
  EXPECT_EQ(opt.lr(), 0.5);
  SGD loaded = MakeOptimizer();
  loaded.set_lr(0.1);
  loaded.load_state_dict(opt.state_dict());
  loaded.set_lr(0.2);
  const optim::ExponentialLR continued(loaded, 0.9);
  EXPECT_EQ(loaded.lr(), 0.5);
}

TEST(LRSchedulerTest, ChangingRatesCompilesNothing) {
  Tensor p = ones({3}).set_requires_grad(true);
  SGD opt({p}, {.lr = 0.5});
  optim::CosineAnnealingLR schedule(opt, {.T_max = 10});
  std::int64_t before = 0;
  for (int step = 0; step < 5; ++step) {
    if (step == 2) before = metrics::counter("UncachedCompile");
    p.set_grad(ones({3}));
    opt.step();
    schedule.step();
    mark_step();
  }
  EXPECT_EQ(metrics::counter("UncachedCompile") - before, 0);
}

TEST(LRSchedulerTest, OptionsOutOfRangeAreErrors) {
  SGD opt = MakeOptimizer();
  EXPECT_ERROR(kInvalidArgument, "StepLR: step_size is 0, it must be at least 1",
               optim::StepLR(opt, {.step_size = 0}));
  EXPECT_ERROR(kInvalidArgument, "LinearLR: start_factor is 0, it must be above 0 and at most 1",
               optim::LinearLR(opt, {.start_factor = 0}));
  EXPECT_ERROR(kInvalidArgument, "SequentialLR: 0 schedules need 0 milestones, there are 1",
               optim::SequentialLR(opt, {}, {3}));
  EXPECT_ERROR(kInvalidArgument, "ReduceLROnPlateau: factor is 1, it must be above 0 and below 1",
               optim::ReduceLROnPlateau(opt, {.factor = 1}));
}

}  // namespace
}  // namespace lazuli
