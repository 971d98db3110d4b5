#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

const Floats kStart = {1.0f, -2.0f, 0.3f, 1e-3f};
// Three gradients, one after the other.
const std::vector<Floats> kGradients = {
    {0.5f, -0.25f, 3.0f, 1e-5f}, {0.1f, 0.7f, -2.0f, 0.0f}, {-0.9f, 0.33f, 0.01f, 4.0f}};

Tensor MakeParameter(const Floats& values) { return tensor(values, {4}).set_requires_grad(true); }

// The parameter after each of the gradients.
template <class Optimizer, class Options>
std::vector<Floats> StatesOf(const Options& options) {
  Tensor p = MakeParameter(kStart);
  Optimizer opt({p}, options);
  std::vector<Floats> states;
  for (const Floats& gradient : kGradients) {
    p.set_grad(tensor(gradient, {4}));
    opt.step();
    mark_step();
    states.push_back(p.template to_vector<float>());
  }
  return states;
}

// PyTorch's SGD, in plain f32 arithmetic.
std::vector<Floats> SgdReference(const optim::SGDOptions& o) {
  const auto f = [](double v) { return static_cast<float>(v); };
  Floats p = kStart, v(4);
  std::vector<Floats> states;
  for (std::size_t step = 0; step < kGradients.size(); ++step) {
    for (std::size_t i = 0; i < 4; ++i) {
      float move = kGradients[step][i];
      if (o.weight_decay != 0) move = move + p[i] * f(o.weight_decay);
      if (o.momentum != 0) {
        v[i] = step == 0 ? move : v[i] * f(o.momentum) + move * f(1 - o.dampening);
        move = o.nesterov ? move + v[i] * f(o.momentum) : v[i];
      }
      p[i] = p[i] + move * f(-o.lr);
    }
    states.push_back(p);
  }
  return states;
}

// PyTorch's Adam, in plain f32 arithmetic with bias corrections in f64.
std::vector<Floats> AdamReference(const optim::AdamOptions& o) {
  const auto f = [](double v) { return static_cast<float>(v); };
  Floats p = kStart, mean(4), mean_square(4);
  std::vector<Floats> states;
  for (std::size_t step = 0; step < kGradients.size(); ++step) {
    const double n = static_cast<double>(step + 1);
    const float step_size = f(-o.lr / (1 - std::pow(o.betas.first, n)));
    const float root = f(std::sqrt(1 - std::pow(o.betas.second, n)));
    for (std::size_t i = 0; i < 4; ++i) {
      float g = kGradients[step][i];
      if (o.weight_decay != 0) g = g + p[i] * f(o.weight_decay);
      mean[i] = mean[i] + (g - mean[i]) * f(1 - o.betas.first);
      mean_square[i] = mean_square[i] * f(o.betas.second) + g * f(1 - o.betas.second) * g;
      p[i] = p[i] + mean[i] * step_size / (std::sqrt(mean_square[i]) / root + f(o.eps));
    }
    states.push_back(p);
  }
  return states;
}

TEST(SgdTest, IsPyTorchsFormulaBitForBit) {
  for (const optim::SGDOptions& options : std::vector<optim::SGDOptions>{
           {.lr = 0.1},
           {.lr = 0.1, .weight_decay = 0.01},
           {.lr = 0.02, .momentum = 0.9},
           {.lr = 0.02, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
           {.lr = 0.02, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}}) {
    EXPECT_EQ(StatesOf<optim::SGD>(options), SgdReference(options))
        << "momentum " << options.momentum << ", dampening " << options.dampening;
  }
}

TEST(AdamTest, IsPyTorchsFormulaBitForBit) {
  for (const optim::AdamOptions& options : std::vector<optim::AdamOptions>{
           {}, {.lr = 0.1, .betas = {0.5, 0.9}, .eps = 1e-3}, {.weight_decay = 0.1}}) {
    EXPECT_EQ(StatesOf<optim::Adam>(options), AdamReference(options)) << "lr " << options.lr;
  }
}

// The last of the states, as PyTorch 2.13 gives it.
void ExpectNear(const std::vector<Floats>& states, const Floats& expected) {
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(states.back()[i], expected[i], 2e-6f) << i;
}

TEST(AdamTest, AmsgradGivesPyTorchsValues) {
  ExpectNear(StatesOf<optim::Adam>(optim::AdamOptions{.lr = 0.1, .amsgrad = true}),
             {0.844713271f, -2.00708461f, 0.174204826f, -0.229659349f});
}

TEST(AdamWTest, GivesPyTorchsValues) {
  ExpectNear(StatesOf<optim::AdamW>(optim::AdamWOptions{.lr = 0.1, .weight_decay = 0.2}),
             {0.791471362f, -1.89247763f, 0.160805866f, -0.224457324f});
}

TEST(RmspropTest, GivesPyTorchsValues) {
  ExpectNear(StatesOf<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.1}),
             {0.675067902f, -2.34994483f, -0.146166772f, -1.98909914f});
  ExpectNear(StatesOf<optim::RMSprop>(optim::RMSpropOptions{
                 .lr = 0.1, .alpha = 0.9, .weight_decay = 0.1, .momentum = 0.9, .centered = true}),
             {0.180886999f, -1.64690804f, -0.258562505f, -0.60198468f});
}

TEST(AdagradTest, GivesPyTorchsValues) {
  ExpectNear(
      StatesOf<optim::Adagrad>(optim::AdagradOptions{
          .lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.5}),
      {0.970819294f, -2.00428033f, 0.250625014f, -0.0810892656f});
}

// What three steps with changing options compile after the first two.
template <class Optimizer, class Change>
std::int64_t CompilationsOfSteadySteps(Optimizer& opt, Change change) {
  std::int64_t before = 0;
  for (int step = 0; step < 5; ++step) {
    if (step == 2) before = metrics::counter("UncachedCompile");
    for (Tensor p : opt.parameters()) p.set_grad(ones(p.sizes()));
    change(step);
    opt.step();
    opt.zero_grad();
    mark_step();
  }
  return metrics::counter("UncachedCompile") - before;
}

TEST(SgdTest, ChangingHyperParametersCompilesNothing) {
  optim::SGD opt({MakeParameter(kStart), MakeParameter(kStart)}, {.momentum = 0.5});
  EXPECT_EQ(CompilationsOfSteadySteps(
                opt, [&](int step) { opt.set_options({.lr = 1.0 / (1 + step), .momentum = 0.9}); }),
            0);
}

TEST(AdamTest, ChangingHyperParametersCompilesNothing) {
  optim::Adam opt({MakeParameter(kStart), MakeParameter(kStart)});
  EXPECT_EQ(CompilationsOfSteadySteps(opt, [&](int step) { opt.set_lr(1.0 / (1 + step)); }), 0);
  EXPECT_EQ(opt.lr(), 0.2);
}

std::size_t CountScalars(const std::string& hlo) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = hlo.find("f32[] parameter(", at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(SgdTest, AHyperParameterIsOneParameterOfTheProgram) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < 5; ++i) parameters.push_back(MakeParameter(kStart));
  optim::SGD opt(parameters, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5});
  CompilationsOfSteadySteps(opt, [](int) {});
  for (Tensor p : parameters) p.set_grad(ones({4}));
  opt.step();
  EXPECT_EQ(CountScalars(debug::graph_hlo(parameters)), 3u) << "lr, momentum, weight decay";
}

// The other algorithms after the third gradient, as PyTorch 2.13 gives them.
TEST(OptimizerTest, TheOtherAlgorithmsGivePyTorchsValues) {
  ExpectNear(StatesOf<optim::NAdam>(optim::NAdamOptions{.lr = 0.1, .weight_decay = 0.1}),
             {0.941014707f, -1.99139488f, 0.243680567f, -0.113049544f});
  ExpectNear(StatesOf<optim::RAdam>(optim::RAdamOptions{.lr = 0.1, .betas = {0.9, 0.5}}),
             {0.935997307f, -2.02795196f, -0.0604583547f, -0.146603242f});
  ExpectNear(StatesOf<optim::Adamax>(optim::AdamaxOptions{.lr = 0.1, .maximize = true}),
             {1.14134753f, -2.02431417f, 0.420180857f, 0.185169026f});
  ExpectNear(StatesOf<optim::Adadelta>(optim::AdadeltaOptions{.lr = 10, .weight_decay = 0.1}),
             {0.991246164f, -2.01371002f, 0.293086588f, -0.0316401087f});
  ExpectNear(StatesOf<optim::ASGD>(optim::ASGDOptions{.lr = 0.1, .lambd = 0.1, .t0 = 1}),
             {1.00034571f, -2.01783347f, 0.192630932f, -0.393133581f});
  ExpectNear(StatesOf<optim::Rprop>(optim::RpropOptions{.lr = 0.1}),
             {0.779999971f, -1.94999993f, 0.150000021f, -0.199000001f});
  ExpectNear(StatesOf<optim::Adafactor>(optim::AdafactorOptions{.lr = 0.5, .weight_decay = 0.1}),
             {0.832324922f, -1.95282376f, 0.0387837701f, -1.15554667f});
  ExpectNear(StatesOf<optim::Lion>(optim::LionOptions{.lr = 0.1, .weight_decay = 0.5}),
             {0.772125f, -1.8195f, 0.1619625f, -0.284392625f});
}

TEST(ParamGroupTest, EachHasOptionsOfItsOwn) {
  const Tensor a = MakeParameter(kStart), b = MakeParameter(kStart), c = MakeParameter(kStart);
  optim::SGD opt({{{a}, optim::SGDOptions{.lr = 1}}, {{b}}}, {.lr = 0.5});
  opt.add_param_group({{c}, optim::SGDOptions{.lr = 0.25, .maximize = true}});
  const auto step = [&] {
    for (Tensor p : opt.parameters()) p.set_grad(ones({4}));
    const std::int64_t before = metrics::counter("graph.nodes_recorded");
    opt.step();
    return metrics::counter("graph.nodes_recorded") - before;
  };
  EXPECT_EQ(step(), 3) << "a node for each group";
  EXPECT_EQ(a.to_vector<float>()[0], 0.0f);
  EXPECT_EQ(b.to_vector<float>()[0], 0.5f);
  EXPECT_EQ(c.to_vector<float>()[0], 1.25f);
  const std::int64_t compiled = metrics::counter("UncachedCompile");
  opt.param_groups()[1].options<optim::SGDOptions>().lr = 1;  // the same as the group before
  opt.param_groups()[2].options().set_lr(2);
  step();
  EXPECT_EQ(b.to_vector<float>()[0], -0.5f);
  EXPECT_EQ(c.to_vector<float>()[0], 3.25f);
  EXPECT_EQ(metrics::counter("UncachedCompile"), compiled) << "rates are numbers of the program";
  opt.set_lr(3);
  EXPECT_EQ(opt.options(2).lr, 3);
  EXPECT_ERROR(kInvalidArgument,
               "SGD: parameter 3 is also parameter 1; it would be moved twice a step",
               opt.add_param_group({{b}}));
  EXPECT_ERROR(kInvalidArgument, "SGD: a group has options of another optimiser",
               opt.add_param_group({{ones({1})}, optim::AdamOptions{}}));
  EXPECT_EQ(opt.param_groups().size(), 3u);
}

TEST(ParamGroupTest, TheStateHasTheGroups) {
  const Tensor a = MakeParameter(kStart), b = MakeParameter(kStart);
  optim::AdamW opt({{{a}, optim::AdamWOptions{.lr = 1}}, {{b}}}, {.lr = 0.5});
  for (Tensor p : opt.parameters()) p.set_grad(ones({4}));
  opt.step();
  optim::AdamW other(std::vector<optim::ParamGroup>{{{a.clone()}}, {{b.clone()}}});
  other.load_state_dict(opt.state_dict());
  EXPECT_EQ(other.options(0).lr, 1);
  EXPECT_EQ(other.options(1).lr, 0.5);
  EXPECT_EQ(other.state_dict().metadata, opt.state_dict().metadata);
  optim::AdamW one({a.clone(), b.clone()});
  EXPECT_ERROR(kInvalidArgument, "AdamW: the state is of 2 groups, there are 1",
               one.load_state_dict(opt.state_dict()));
}

TEST(OptimizerTest, AClosureComputesTheLoss) {
  const Tensor p = MakeParameter(kStart);
  optim::SGD opt({p}, {.lr = 0.5});
  const Tensor loss = opt.step([&] {
    opt.zero_grad();
    const Tensor squares = sum(p * p);
    squares.backward();
    return squares;
  });
  EXPECT_NEAR(loss.item<float>(), 5.090001f, 1e-5f);
  EXPECT_EQ(p.to_vector<float>(), Floats(4, 0));
  opt.zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(p.grad().to_vector<float>(), Floats(4, 0));
}

// However many parameters there are.
TEST(OptimizerTest, AStepIsOneNode) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < 7; ++i) parameters.push_back(MakeParameter(kStart));
  optim::SGD sgd(parameters, {.momentum = 0.9});
  optim::AdamW adamw(parameters);
  optim::RMSprop rmsprop(parameters, {.momentum = 0.9, .centered = true});
  optim::Adagrad adagrad(parameters);
  for (optim::Optimizer* opt :
       std::initializer_list<optim::Optimizer*>{&sgd, &adamw, &rmsprop, &adagrad}) {
    for (int step = 0; step < 2; ++step) {
      for (Tensor p : parameters) p.set_grad(ones({4}));
      const std::int64_t before = metrics::counter("graph.nodes_recorded");
      opt->step();
      if (step == 1) {
        EXPECT_EQ(metrics::counter("graph.nodes_recorded") - before, 1);
      }
    }
  }
}

TEST(OptimizerTest, ALoopWithoutSyncRunsAProgramAStep) {
  const auto train = [](bool sync_each) {
    const Tensor p = MakeParameter(kStart), x = tensor(kGradients[0], {4});
    optim::AdamW opt({p}, {.lr = 0.1});
    for (int step = 0; step < 8; ++step) {
      opt.zero_grad();
      sum(p * p * x).backward();
      opt.step();
      if (sync_each) mark_step();
    }
    mark_step();
    return p.to_vector<float>();
  };
  const Floats expected = train(true);
  EXPECT_EQ(train(false), expected);
  const std::int64_t compiled = metrics::counter("UncachedCompile");
  const std::int64_t synced = metrics::counter("sync.update");
  EXPECT_EQ(train(false), expected);
  EXPECT_EQ(metrics::counter("UncachedCompile") - compiled, 0);
  EXPECT_EQ(metrics::counter("sync.update") - synced, 7);
  train(true);
  EXPECT_EQ(metrics::counter("sync.update") - synced, 7) << "a loop that syncs is left alone";
}

// Gradients that are there at some steps only, and parameters of two dtypes.
TEST(OptimizerTest, ParametersThatDifferAreUpdatedApart) {
  const Tensor a = MakeParameter(kStart);
  const Tensor b = tensor(std::vector<double>{1, 2}, {2}).set_requires_grad(true);
  optim::SGD opt({a, b}, {.lr = 1, .momentum = 0.5});
  for (int step = 0; step < 3; ++step) {
    if (step != 1) Tensor(a).set_grad(ones({4}));
    Tensor(b).set_grad(ones({2}, kFloat64));
    opt.step();
    opt.zero_grad();
  }
  EXPECT_EQ(a.to_vector<float>()[0], 1 - 1 - 1.5f);
  EXPECT_EQ(b.to_vector<double>(), (std::vector<double>{1 - 1 - 1.5 - 1.75, 2 - 1 - 1.5 - 1.75}));
}

// A batch keeps its lists between steps: what is not in its place any more must be replaced.
TEST(OptimizerTest, GradientsMayComeAndGo) {
  const auto parameter = [] { return MakeParameter(Floats{0, 0, 0, 0}); };
  const std::vector<Tensor> parameters{parameter(), parameter(), parameter()};
  optim::SGD opt(parameters, {.lr = 1, .momentum = 0.5});
  std::vector<float> velocities(3), expected(3);
  StateDict start;
  for (const std::vector<int>& with_gradient :
       {std::vector<int>{0, 1, 2}, {0, 2}, {1}, {0, 1, 2}, {2}, {0, 1, 2}}) {
    for (const int i : with_gradient) {
      const auto at = static_cast<std::size_t>(i);
      Tensor(parameters[at]).set_grad(full({4}, static_cast<double>(i + 1)));
      velocities[at] = 0.5f * velocities[at] + static_cast<float>(i + 1);
      expected[at] -= velocities[at];
    }
    opt.step();
    opt.zero_grad();
    std::vector<float> got;
    for (const Tensor& p : parameters) got.push_back(p.to_vector<float>()[0]);
    ASSERT_EQ(got, expected);
    if (!start.tensors.empty()) continue;
    start = opt.state_dict();
    for (auto& [name, state] : start.tensors) state = state.clone();
  }
  // The states that a load replaces are used no more.
  opt.load_state_dict(start);
  for (const Tensor& p : parameters) Tensor(p).set_grad(zeros({4}));
  opt.step();
  EXPECT_EQ(parameters[2].to_vector<float>()[0],
            expected[2] - 0.5f * start.tensors.at("2.momentum_buffer").to_vector<float>()[0]);
}

TEST(OptimizerTest, GoesOnFromItsState) {
  const auto train = [](optim::Optimizer& opt, int from, int to) {
    for (int i = from; i < to; ++i) {
      Tensor(opt.parameters()[0]).set_grad(tensor(kGradients[static_cast<std::size_t>(i)], {4}));
      opt.step();
    }
  };
  const optim::AdamWOptions options{.lr = 0.1, .amsgrad = true};
  const Tensor whole = MakeParameter(kStart), first = MakeParameter(kStart);
  optim::AdamW opt({whole}, options), half({first}, options);
  train(opt, 0, 3);
  train(half, 0, 2);
  const StateDict state = half.state_dict();
  EXPECT_EQ(state.metadata.at("0.step"), "2");
  const Tensor rest = first.detach().clone().set_requires_grad(true);
  optim::AdamW continued({rest});
  continued.load_state_dict(state);
  EXPECT_EQ(continued.lr(), 0.1);
  EXPECT_TRUE(continued.options().amsgrad);
  train(continued, 2, 3);
  EXPECT_EQ(rest.to_vector<float>(), whole.to_vector<float>());
}

TEST(OptimizerTest, StateThatDoesNotFitIsAnErrorAndChangesNothing) {
  const Tensor p = MakeParameter(kStart);
  optim::SGD sgd({p}, {.lr = 0.5, .momentum = 0.9});
  optim::Adam adam({p});
  EXPECT_ERROR(kInvalidArgument, "Adam: the state is of SGD",
               adam.load_state_dict(sgd.state_dict()));
  EXPECT_ERROR(kInvalidArgument, "SGD: the state has no 'optimizer'", sgd.load_state_dict({}));
  const auto with = [&](const char* key, const char* value) {
    StateDict state = sgd.state_dict();
    state.metadata[key] = value;
    return state;
  };
  EXPECT_ERROR(kInvalidArgument, "SGD: the state is of 2 groups, there are 1",
               sgd.load_state_dict(with("groups", "2")));
  EXPECT_ERROR(kInvalidArgument, "SGD: group 0 of the state is of 2 parameters, there are 1",
               sgd.load_state_dict(with("group.0.parameters", "2")));
  EXPECT_ERROR(kInvalidArgument, "SGD: the state's group.0.lr is 'fast'",
               sgd.load_state_dict(with("group.0.lr", "fast")));
  EXPECT_ERROR(kInvalidArgument, "SGD: the state's group.0.nesterov is '1'",
               sgd.load_state_dict(with("group.0.nesterov", "1")));
  EXPECT_ERROR(kInvalidArgument, "SGD: lr is -1, it must be at least 0",
               sgd.load_state_dict(with("group.0.lr", "-1")));
  StateDict other = adam.state_dict();
  other.metadata["0.step"] = "-1";
  EXPECT_ERROR(kInvalidArgument, "Adam: the state's 0.step is not a count",
               adam.load_state_dict(other));
  other = sgd.state_dict();
  other.tensors["0.momentum_buffer"] = ones({3});
  EXPECT_ERROR(
      kInvalidArgument,
      "SGD: the state does not fit: 0.momentum_buffer is f32[3] in the state and f32[4] here",
      sgd.load_state_dict(other));
  EXPECT_EQ(sgd.lr(), 0.5);
}

TEST(OptimizerTest, ParametersWithoutGradientStay) {
  const Tensor moved = MakeParameter(kStart);
  Tensor still = MakeParameter(kStart);
  optim::Adam opt({moved, still}, {.weight_decay = 0.1});
  sum(moved * 2.0).backward();
  opt.step();
  EXPECT_NE(moved.to_vector<float>(), kStart);
  EXPECT_EQ(still.to_vector<float>(), kStart);
  // Its first step is its own first step.
  still.set_grad(tensor(Floats{1, 1, 1, 1}, {4}));
  opt.step();
  EXPECT_NEAR(still.to_vector<float>()[0], kStart[0] - 1e-3f, 1e-6f);
}

TEST(OptimizerTest, ComplexParametersMoveAsPairsOfReals) {
  const auto moved = [](auto make) {
    Tensor pairs = tensor(Floats{1, -2, 0.5f, 3}, {2, 2});
    Tensor numbers = view_as_complex(pairs.clone()).clone();
    const auto of_pairs = make(pairs), of_numbers = make(numbers);
    for (int i = 0; i < 4; ++i) {
      const Tensor gradient = tensor(Floats{1, -1, 2.0f * static_cast<float>(i), -0.5f}, {2, 2});
      pairs.set_grad(gradient);
      numbers.set_grad(view_as_complex(gradient.clone()).clone());
      of_pairs->step();
      of_numbers->step();
    }
    EXPECT_EQ(view_as_real(numbers).flatten().to_vector<float>(),
              pairs.flatten().to_vector<float>());
  };
  moved([](const Tensor& p) {
    return std::make_unique<optim::Adam>(std::vector<Tensor>{p},
                                         optim::AdamOptions{.lr = 0.1, .amsgrad = true});
  });
  moved([](const Tensor& p) {
    return std::make_unique<optim::Adagrad>(
        std::vector<Tensor>{p}, optim::AdagradOptions{.lr = 0.1, .initial_accumulator_value = 0.5});
  });
  moved([](const Tensor& p) {
    return std::make_unique<optim::RMSprop>(std::vector<Tensor>{p},
                                            optim::RMSpropOptions{.lr = 0.1, .centered = true});
  });
  moved([](const Tensor& p) {
    return std::make_unique<optim::Rprop>(std::vector<Tensor>{p}, optim::RpropOptions{.lr = 0.1});
  });
  Tensor z = zeros({2, 2}, DType::kC64);
  z.set_grad(ones({2, 2}, DType::kC64));
  EXPECT_ERROR(kInvalidArgument, "Muon: takes no complex parameters", optim::Muon({z}).step());
  EXPECT_ERROR(kWrongType, "foreach_update: Adafactor takes no complex parameters",
               optim::Adafactor({z}).step());
}

TEST(OptimizerTest, ZeroGradDropsGradients) {
  const Tensor p = MakeParameter(kStart);
  optim::SGD opt({p}, {.lr = 1});
  sum(p).backward();
  opt.zero_grad();
  EXPECT_FALSE(p.grad().defined());
  opt.step();
  EXPECT_EQ(p.to_vector<float>(), kStart);
}

TEST(OptimizerTest, StepsRecordNoHistory) {
  const Tensor p = MakeParameter(kStart);
  optim::SGD opt({p}, {.lr = 0.1, .momentum = 0.9});
  for (int i = 0; i < 2; ++i) {
    sum(p).backward();
    opt.step();
    EXPECT_FALSE(opt.momentum_buffers()[0].requires_grad());
    opt.zero_grad();
  }
  sum(p).backward();  // p is still a leaf
  EXPECT_EQ(p.grad().to_vector<float>(), Floats(4, 1.0f));
}

TEST(OptimizerTest, StateIsNamedAfterItsParameter) {
  nn::Linear linear(2, 2);
  optim::SGD opt(linear.parameters(), {.momentum = 0.9});
  sum(linear(ones({1, 2}))).backward();
  opt.step();
  EXPECT_EQ(opt.momentum_buffers()[1].name(), "bias.momentum_buffer");
}

TEST(OptimizerTest, StepsCarryTheLineOfTheCall) {
  Tensor p = MakeParameter(kStart);
  optim::SGD opt({p}, {.lr = 0.1});
  p.set_grad(ones({4}));
  opt.step();
  const std::string place = test::Place();
  const std::string line = place.substr(0, place.find(':') + 1) +
                           std::to_string(std::stoi(place.substr(place.find(':') + 1)) - 1);
  EXPECT_THAT(debug::graph_text({p}), HasSubstr(line));
}

TEST(OptimizerTest, OptionsOutOfRangeAreErrors) {
  const std::vector<Tensor> p = {MakeParameter(kStart)};
  EXPECT_ERROR(kInvalidArgument, "SGD: lr is -1, it must be at least 0", optim::SGD(p, {.lr = -1}));
  EXPECT_ERROR(kInvalidArgument, "SGD: lr is nan, it must be at least 0",
               optim::SGD(p, {.lr = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_ERROR(kInvalidArgument, "SGD: momentum is -0.9, it must be at least 0",
               optim::SGD(p, {.momentum = -0.9}));
  EXPECT_ERROR(kInvalidArgument, "SGD: weight_decay is -2, it must be at least 0",
               optim::SGD(p, {.weight_decay = -2}));
  EXPECT_ERROR(kInvalidArgument,
               "SGD: nesterov needs a momentum above 0 and a dampening of 0, but momentum is 0 and "
               "dampening is 0",
               optim::SGD(p, {.nesterov = true}));
  EXPECT_ERROR(kInvalidArgument, "Adam: lr is -1, it must be at least 0",
               optim::Adam(p, {.lr = -1}));
  EXPECT_ERROR(kInvalidArgument, "Adam: betas.first is 1, it must be at least 0 and below 1",
               optim::Adam(p, {.betas = {1, 0.9}}));
  EXPECT_ERROR(kInvalidArgument, "Adam: betas.second is -0.1, it must be at least 0 and below 1",
               optim::Adam(p, {.betas = {0.9, -0.1}}));
  EXPECT_ERROR(kInvalidArgument, "Adam: eps is -1, it must be at least 0",
               optim::Adam(p, {.eps = -1}));
  EXPECT_ERROR(kInvalidArgument, "Adam: weight_decay is -1, it must be at least 0",
               optim::Adam(p, {.weight_decay = -1}));
  optim::SGD opt(p);
  EXPECT_ERROR(kInvalidArgument, "SGD: lr is -3, it must be at least 0", opt.set_lr(-3));
  EXPECT_EQ(opt.lr(), 1e-3) << "unchanged";
}

TEST(OptimizerTest, UselessParametersAreErrors) {
  const Tensor p = MakeParameter(kStart);
  EXPECT_ERROR(kInvalidArgument,
               "SGD: there are no parameters; does the model register its modules?",
               optim::SGD(std::vector<Tensor>(), {.lr = 1}));
  EXPECT_ERROR(kInvalidArgument, "Adam: parameter 1 is undefined", optim::Adam({p, Tensor()}));
  EXPECT_ERROR(kInvalidArgument,
               "SGD: parameter 1 is also parameter 0; it would be moved twice a step",
               optim::SGD({p, p}));
}

// Two dtypes are two updates, the second of which is refused.
TEST(OptimizerTest, AStepThatIsRefusedChangesNothing) {
  Tensor p = MakeParameter(kStart);
  Tensor q = ones({2}, kFloat64).set_requires_grad(true);
  optim::Adam opt({p, q});
  const auto set_gradients = [&] {
    p.set_grad(ones({4}));
    q.set_grad(ones(q.sizes(), kFloat64));
  };
  set_gradients();
  opt.step();
  const Floats before = p.to_vector<float>();
  const auto state = opt.state_dict();
  q.set_data(ones({3}, kFloat64));
  set_gradients();
  EXPECT_ERROR(
      kInvalidArgument,
      "foreach_adam: mean 0 is f64[2], its parameter f64[3] and the first one f64[3]: dims "
      "and dtypes must agree",
      opt.step());
  EXPECT_EQ(p.to_vector<float>(), before);
  EXPECT_EQ(opt.state_dict().metadata, state.metadata);  // the counts of steps among it
  q.set_data(ones({2}, kFloat64));
  set_gradients();
  opt.step();
  EXPECT_NE(p.to_vector<float>(), before);
  EXPECT_EQ(opt.state_dict().metadata.at("1.step"), "2");
}

TEST(OptimizerTest, AStepThatIsRefusedIsNotCounted) {
  Tensor p = MakeParameter(kStart);
  optim::Adam opt({p});
  p.set_grad(ones({4}));
  opt.step();
  p.set_data(ones({3}));
  p.set_grad(ones({3}));
  EXPECT_THROW(opt.step(), Error);
  EXPECT_EQ(opt.state_dict().metadata.at("0.step"), "1");
}

}  // namespace
}  // namespace lazuli
