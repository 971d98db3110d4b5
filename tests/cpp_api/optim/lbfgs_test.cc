// L-BFGS on Rosenbrock's valley; PyTorch 2.13 gives the same numbers.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::FloatNear;
using testing::HasSubstr;

struct Valley {
  Tensor p = tensor({-1.5f, 2.0f}).set_requires_grad(true);
  int calls = 0;
  Tensor Loss(optim::Optimizer& optimizer) {
    ++calls;
    optimizer.zero_grad();
    const Tensor loss = pow(1 - p[0], 2) + 5 * pow(p[1] - pow(p[0], 2), 2);
    loss.backward();
    return loss;
  }
  double Step(optim::LBFGS& optimizer) {
    return optimizer.step([&] { return Loss(optimizer); }).item();
  }
};

struct After {
  double loss;  // before the step
  std::pair<double, double> at;
  int calls;
};

void ExpectSteps(const optim::LBFGSOptions& options, const std::vector<After>& expected) {
  Valley valley;
  optim::LBFGS lbfgs({valley.p}, options);
  for (const After& after : expected) {
    EXPECT_NEAR(valley.Step(lbfgs), after.loss, 1e-3);
    EXPECT_NEAR(valley.p[0].item(), after.at.first, 1e-3);
    EXPECT_NEAR(valley.p[1].item(), after.at.second, 1e-3);
    EXPECT_EQ(valley.calls, after.calls);
  }
}

TEST(LbfgsTest, StepsAsPyTorchs) {
  ExpectSteps({.max_iter = 4, .line_search_fn = "strong_wolfe"},
              {{6.5625, {-1.35807, 1.84836}, 5},
               {5.56057, {-0.12408, -0.41892}, 10},
               {2.20673, {0.33135, -0.08051}, 15}});
  ExpectSteps({.lr = 0.1, .max_iter = 5}, {{6.5625, {-1.38962, 2.00122}, 5},
                                           {5.7349, {-1.30556, 1.88039}, 10},
                                           {5.47031, {-0.73231, 0.83894}, 15}});
  ExpectSteps({.lr = 0.5, .max_iter = 6, .history_size = 2, .line_search_fn = "strong_wolfe"},
              {{6.5625, {-0.81308, 0.35335}, 8},
               {3.76081, {0.38203, 0.02441}, 15},
               {0.45575, {0.93106, 0.84866}, 22}});
  ExpectSteps({.lr = 2, .max_iter = 20, .max_eval = 7, .line_search_fn = "strong_wolfe"},
              {{6.5625, {-1.07045, 1.10759}, 7},
               {4.29408, {0.04329, 0.20286}, 15},
               {1.11727, {0.86095, 0.8347}, 23}});
}

TEST(LbfgsTest, EndsWhereNothingMovesAnyMore) {
  Valley valley;
  optim::LBFGS lbfgs({valley.p}, {.max_iter = 30, .line_search_fn = "strong_wolfe"});
  valley.Step(lbfgs);
  EXPECT_NEAR(valley.p[0].item(), 1, 1e-3);
  EXPECT_LT(valley.calls, 30);
  const int calls = valley.calls;
  valley.Step(lbfgs);
  EXPECT_LE(valley.calls, calls + 2);
}

TEST(LbfgsTest, GoesOnFromItsState) {
  const optim::LBFGSOptions options{.max_iter = 4, .line_search_fn = "strong_wolfe"};
  Valley one, two;
  optim::LBFGS first({one.p}, options);
  one.Step(first);
  two.p.detach().copy_(one.p.detach());
  optim::LBFGS second({two.p}, {});
  const std::string path = testing::TempDir() + "lbfgs.safetensors";
  optim::save(first, path);
  optim::load(second, path);
  EXPECT_EQ(second.options().max_iter, 4);
  EXPECT_EQ(second.options().max_eval, std::nullopt);
  EXPECT_EQ(second.options().line_search_fn, "strong_wolfe");
  EXPECT_EQ(one.Step(first), two.Step(second));
  EXPECT_EQ(one.p.to_vector<float>(), two.p.to_vector<float>());
  Tensor other = ones({3}).set_requires_grad(true);
  optim::LBFGS wrong({other}, options);
  EXPECT_ERROR(kInvalidArgument,
               "LBFGS: the state's history is not of these parameters, or incomplete",
               wrong.load_state_dict(first.state_dict()));
}

TEST(LbfgsTest, RefusesWhatItCannotDo) {
  Valley valley;
  optim::LBFGS lbfgs({valley.p});
  EXPECT_ERROR(kInvalidArgument, "LBFGS: history_size is 0, it must be at least 1",
               optim::LBFGS({valley.p}, {.history_size = 0}));
  EXPECT_ERROR(kInvalidArgument,
               "LBFGS: line_search_fn is 'armijo', it must be none or 'strong_wolfe'",
               optim::LBFGS({valley.p}, {.line_search_fn = "armijo"}));
  valley.p.set_grad(ones({2}));
  EXPECT_ERROR(kInvalidArgument,
               "LBFGS: step() takes a closure, which computes the loss and its gradients",
               lbfgs.step());
  Tensor other = ones({3}).set_requires_grad(true);
  lbfgs.add_param_group({{other}});
  EXPECT_ERROR(kInvalidArgument, "LBFGS: it takes one group of parameters, not 2",
               lbfgs.step([] { return Tensor(); }));
}

}  // namespace
}  // namespace lazuli
