// Averages of parameters, and Muon, with PyTorch 2.13's values.
#include "lazuli/swa.h"

#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

// After three updates from a weight that becomes w * 2 + i before each.
std::vector<float> Averaged(const optim::AveragedModelOptions& options) {
  nn::Linear net(2, 1, {.bias = false});
  const NoGrad no_grad;
  net.weight.copy_(tensor({{1.f, 2.f}}));
  optim::AveragedModel<nn::Linear> average(net, options);
  for (int i = 0; i < 3; ++i) {
    net.weight.mul_(2).add_(i);
    average.update_parameters(net);
  }
  EXPECT_EQ(average.n_averaged.item<int>(), 3);
  EXPECT_EQ(average(ones({1, 2})).sizes(), (Dims{1, 1}));
  EXPECT_EQ(average.named_parameters()[0].first, "module.weight");
  return average.module.weight.to_vector<float>();
}

TEST(AveragedModelTest, GivesPyTorchsMeans) {
  EXPECT_THAT(Averaged({}), Pointwise(FloatNear(1e-6f), {6.3333330f, 11.0f}));
  EXPECT_THAT(Averaged({.decay = 0.9}), Pointwise(FloatNear(1e-6f), {3.27f, 6.05f}));
  const nn::Linear net(2, 1);
  optim::AveragedModel<nn::Linear> average(net, {.decay = 2});
  EXPECT_ERROR(kInvalidArgument, "AveragedModel: decay is 2, it must be from 0 to 1",
               average.update_parameters(net));
}

TEST(AveragedModelTest, BuffersAreTheNewestOrAveraged) {
  for (const bool use_buffers : {false, true}) {
    nn::BatchNorm1d net(1);
    optim::AveragedModel<nn::BatchNorm1d> average(net, {.use_buffers = use_buffers});
    const NoGrad no_grad;
    for (const float mean : {1.f, 5.f}) {
      net.running_mean.fill_(mean);
      average.update_parameters(net);
    }
    EXPECT_EQ(average.module.running_mean.item<float>(), use_buffers ? 3 : 5);
  }
}

std::vector<float> MovedByMuon(const optim::MuonOptions& options) {
  Tensor p = tensor({{1.f, -2.f, .5f}, {.25f, 3.f, -1.f}}).set_requires_grad(true);
  optim::Muon opt({p}, options);
  for (const Tensor& gradient : {tensor({{.5f, -.25f, 1.f}, {2.f, .1f, -.3f}}),
                                 tensor({{-.1f, .2f, .3f}, {.4f, -.5f, .6f}})}) {
    p.set_grad(gradient);
    opt.step();
  }
  return p.to_vector<float>();
}

TEST(MuonTest, MovesAsPyTorchs) {
  EXPECT_THAT(MovedByMuon({.lr = 0.1}),
              Pointwise(FloatNear(1e-6f),
                        {0.980006f, -1.962107f, 0.292581f, 0.110162f, 2.960097f, -0.958127f}));
  EXPECT_THAT(
      MovedByMuon(
          {.lr = 0.1, .weight_decay = 0, .nesterov = false, .adjust_lr_fn = "match_rms_adamw"}),
      Pointwise(FloatNear(1e-6f),
                {0.996211f, -1.992887f, 0.428147f, 0.202233f, 3.002047f, -0.987196f}));
}

TEST(MuonTest, TakesMatricesAlone) {
  Tensor p = zeros({3}).set_requires_grad(true);
  EXPECT_ERROR(kInvalidArgument, "Muon: parameters are matrices, parameter 0 has 1 dims",
               optim::Muon({p}));
  EXPECT_ERROR(kInvalidArgument,
               "Muon: adjust_lr_fn is 'x', it must be 'original' or 'match_rms_adamw'",
               optim::Muon({zeros({1, 1}).set_requires_grad(true)}, {.adjust_lr_fn = "x"}));
}

TEST(MuonTest, GoesOnFromItsState) {
  Tensor p = ones({2, 2}).set_requires_grad(true), q = ones({2, 2}).set_requires_grad(true);
  optim::Muon opt({p}, {.lr = 0.1}), other({q}, {.lr = 0.5});
  const Tensor gradient = tensor({{1.f, 2.f}, {-3.f, 0.5f}});
  p.set_grad(gradient);
  opt.step();
  q.set_data(p.detach().clone());
  other.load_state_dict(opt.state_dict());
  p.set_grad(gradient);
  q.set_grad(gradient);
  opt.step();
  other.step();
  EXPECT_EQ(p.to_vector<float>(), q.to_vector<float>());
  EXPECT_EQ(other.options().ns_coefficients[1], -4.775);
}

}  // namespace
}  // namespace lazuli
