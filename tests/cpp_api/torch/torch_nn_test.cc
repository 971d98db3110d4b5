// Modules, options and optimisers as programs for LibTorch write them.
#include <memory>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

namespace {

using testing::ElementsAre;

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t hidden)
      : first(register_module("first", torch::nn::Linear(2, hidden))),
        second(register_module(
            "second", torch::nn::Linear(torch::nn::LinearOptions(hidden, 1).bias(false)))) {
    scale = register_parameter("scale", torch::ones(1));
    steps = register_buffer("steps", torch::zeros(1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return second->forward(torch::relu(first(x))) * scale;
  }
  torch::nn::Linear first, second;
  torch::Tensor scale, steps;
};
TORCH_MODULE(Net);

struct Late : torch::nn::Module {
  Late() { fc = register_module("fc", torch::nn::Linear(2, 1)); }
  torch::Tensor forward(const torch::Tensor& x) { return fc->forward(x); }
  torch::nn::Linear fc{nullptr};
};

TEST(TorchModuleTest, IsHeldSharedAndNamed) {
  Net net(3);
  const Net same = net;
  EXPECT_EQ(&*same, &*net);
  EXPECT_THAT(net->named_parameters().keys(),
              ElementsAre("scale", "first.weight", "first.bias", "second.weight"));
  EXPECT_EQ(net->named_parameters()["second.weight"].sizes(), (lazuli::Dims{1, 3}));
  EXPECT_TRUE(net->named_buffers().contains("steps"));
  for (auto& p : net->named_parameters()) EXPECT_TRUE(p.value().requires_grad()) << p.key();
  EXPECT_THAT([&] { net->named_parameters()["third"]; },
              testing::ThrowsMessage<lazuli::Error>("OrderedDict: there is no \"third\""));
  const auto late = std::make_shared<Late>();
  EXPECT_EQ(late->forward(torch::ones({4, 2})).sizes(), (lazuli::Dims{4, 1}));
  const torch::nn::Linear empty{nullptr};
  EXPECT_TRUE(empty.is_empty());
  EXPECT_THAT([&] { empty->forward(torch::ones(2)); },
              testing::ThrowsMessage<lazuli::Error>("a module holder that is empty is used"));
}

TEST(TorchModuleTest, OptionsAreBuilt) {
  const torch::nn::Conv2d conv(
      torch::nn::Conv2dOptions(1, 4, 3).stride(2).padding({1, 0}).bias(false));
  EXPECT_EQ(conv(torch::ones({1, 1, 8, 8})).sizes(), (lazuli::Dims{1, 4, 4, 3}));
  EXPECT_FALSE(conv->bias.defined());
  const torch::nn::BatchNorm2d norm(torch::nn::BatchNormOptions(4).affine(false));
  EXPECT_FALSE(norm->weight.defined());
  EXPECT_EQ(
      torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions({2, 2}).stride(1))(torch::ones({1, 1, 4, 4}))
          .sizes(),
      (lazuli::Dims{1, 1, 3, 3}));
  EXPECT_THAT(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.5))(
                  torch::tensor({-2.0, 2.0}))
                  .to_vector<float>(),
              ElementsAre(-1, 2));
  EXPECT_EQ(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4}).eps(1e-3))->weight.sizes(),
            (lazuli::Dims{4}));
}

TEST(TorchModuleTest, FunctionsTakeOptions) {
  namespace F = torch::nn::functional;
  const torch::Tensor x = torch::arange(16, torch::kFloat).reshape({1, 1, 4, 4});
  EXPECT_EQ(
      F::conv2d(x, torch::ones({2, 1, 3, 3}), F::Conv2dFuncOptions().stride(2).padding({1, 0}))
          .sizes(),
      (lazuli::Dims{1, 2, 2, 1}));
  EXPECT_THAT(
      F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride({2, 1})).flatten().to_vector<float>(),
      ElementsAre(5, 6, 7, 13, 14, 15));
  EXPECT_EQ(F::max_pool2d(x, {2, 2}).numel(), F::max_pool2d(x, 2).numel());
  EXPECT_THAT(F::avg_pool2d(x, F::AvgPool2dFuncOptions(4).divisor_override(8)).to_vector<float>(),
              ElementsAre(15));
  EXPECT_TRUE(torch::equal(F::dropout(x, F::DropoutFuncOptions().p(0.5)), x));
  EXPECT_FALSE(torch::equal(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(true)), x));
  const torch::Tensor row = torch::tensor({-1.0, 2.0});
  EXPECT_THAT(F::pad(row, F::PadFuncOptions({1, 0}).mode(torch::kReflect)).to_vector<float>(),
              ElementsAre(2, -1, 2));
  EXPECT_THAT(F::normalize(row, F::NormalizeFuncOptions().p(1).dim(0)).to_vector<float>(),
              ElementsAre(testing::FloatEq(-1.0f / 3), testing::FloatEq(2.0f / 3)));
  EXPECT_EQ(F::interpolate(x, F::InterpolateFuncOptions()
                                  .scale_factor(std::vector<double>{2, 2})
                                  .mode(torch::kBilinear)
                                  .align_corners(true))[0][0][7][7]
                .item<float>(),
            15);
  EXPECT_EQ(F::mse_loss(row, torch::zeros(2), F::MSELossFuncOptions(torch::kSum)).item(), 5);
  const torch::Tensor classes = torch::tensor({0, 1}), logits = torch::zeros({2, 2});
  EXPECT_THAT(F::cross_entropy(logits, classes,
                               F::CrossEntropyFuncOptions().ignore_index(1).reduction(torch::kNone))
                  .to_vector<float>(),
              ElementsAre(testing::FloatNear(0.6931472f, 1e-6f), 0));
  torch::Tensor y = row.clone();
  F::leaky_relu(y, F::LeakyReLUFuncOptions().negative_slope(0.5).inplace(true));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(-0.5, 2));
}

TEST(TorchModuleTest, SequentialTakesHoldersAndFunctions) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::relu, torch::nn::ReLU(),
                            torch::nn::Functional(torch::log_softmax, 1, std::nullopt), Net(3));
  EXPECT_EQ(net->size(), 5U);
  EXPECT_EQ(net->parameters().size(), 6U);  // those of holders, too
  net->push_back(torch::nn::Dropout(0.5));
  net->eval();
  EXPECT_FALSE(net->is_training());
}

struct Deep : torch::nn::Module {
  Deep() {
    for (int i = 0; i < 3; ++i) layers->push_back(torch::nn::Linear(2, 2));
    layers = register_module("layers", layers);
    heads = register_module("heads", heads);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& layer : *layers) x = layer->as<torch::nn::Linear>()->forward(x);
    return heads["out"]->as<torch::nn::Linear>()->forward(x);
  }
  torch::nn::ModuleList layers;
  torch::nn::ModuleDict heads{
      {{"drop", torch::nn::Dropout(0.5)}, {"out", torch::nn::Linear(2, 1)}}};
};

TEST(TorchModuleTest, ListsAndDictionariesRegisterTheirModules) {
  Deep net;
  EXPECT_THAT(
      net.named_parameters().keys(),
      ElementsAre("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
                  "layers.2.weight", "layers.2.bias", "heads.out.weight", "heads.out.bias"));
  EXPECT_EQ(net.forward(torch::ones({4, 2})).sizes(), (lazuli::Dims{4, 1}));
  net.eval();
  EXPECT_FALSE(net.heads["drop"]->is_training());
  EXPECT_EQ(net.layers[0]->as<torch::nn::Dropout>(), nullptr);
  EXPECT_EQ(&net.layers->at<lazuli::nn::Linear>(1), net.layers[1]->as<torch::nn::Linear>());
  EXPECT_THAT(net.heads->keys(), ElementsAre("drop", "out"));
  EXPECT_EQ(torch::nn::ModuleList(torch::nn::Linear(1, 1), torch::nn::ReLU())->size(), 2U);
  EXPECT_THAT([&] { net.layers[3]; }, testing::ThrowsMessage<lazuli::Error>(
                                          "ModuleList: there is no module 3, the list has 3"));
  EXPECT_THAT([&] { net.heads["in"]; },
              testing::ThrowsMessage<lazuli::Error>("ModuleDict: there is no \"in\""));
  EXPECT_THAT([&] { net.heads->at<lazuli::nn::Linear>("drop"); },
              testing::ThrowsMessage<lazuli::Error>("ModuleDict: \"drop\" is of another type"));
}

TEST(TorchModuleTest, LossesAreModules) {
  const torch::Tensor x = torch::tensor({1.0, 3.0}), y = torch::zeros(2);
  EXPECT_EQ(torch::nn::MSELoss()(x, y).item(), 5);
  EXPECT_EQ(torch::nn::MSELoss(torch::nn::MSELossOptions().reduction(torch::kSum))(x, y).item(),
            10);
  const torch::Tensor logits = torch::zeros({2, 4});
  EXPECT_NEAR(torch::nn::CrossEntropyLoss()->forward(logits, torch::tensor({0, 3})).item(),
              1.386294, 1e-5);
}

TEST(TorchModuleTest, TrainsAndTravels) {
  torch::manual_seed(0);
  Net net(8), other(8);
  torch::optim::Adam adam(net->parameters(),
                          torch::optim::AdamOptions(0.05).betas(std::make_tuple(0.5, 0.9)));
  const torch::Tensor x = torch::randn({32, 2}), y = x.sum(1, true);
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    const torch::Tensor loss = adam.step([&] {
      adam.zero_grad();
      const torch::Tensor l = torch::mse_loss(net->forward(x), y);
      l.backward();
      return l;
    });
    lazuli::mark_step();
    last = loss.item();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 10);
  const std::string path = testing::TempDir() + "torch_net.safetensors";
  torch::save(net, path);
  torch::load(other, path);
  EXPECT_TRUE(torch::equal(other->forward(x), net->forward(x)));
  EXPECT_EQ(torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.5).momentum(0.25)).lr(),
            0.5);
}

}  // namespace
