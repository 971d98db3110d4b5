// Modules, options and optimisers as programs for LibTorch write them.
#include <cmath>
#include <memory>
#include <sstream>
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

std::vector<float> Row(const torch::Tensor& x) { return x.flatten().to_vector<float>(); }

TEST(TorchModuleTest, FunctionsTakeOptionsOfTheirOwn) {
  namespace F = torch::nn::functional;
  using testing::FloatNear;
  const torch::Tensor x = torch::arange(12, torch::kFloat).view({2, 3, 2}) / 4;
  EXPECT_THAT(Row(F::layer_norm(x[0][0], F::LayerNormFuncOptions({2})
                                             .weight(torch::tensor({1.0, 2.0}))
                                             .bias(torch::tensor({0.0, 1.0})))),
              ElementsAre(FloatNear(-0.99968f, 1e-5f), FloatNear(2.99936f, 1e-5f)));
  EXPECT_THAT(Row(F::batch_norm(x, torch::zeros(3), torch::ones(3),
                                F::BatchNormFuncOptions().weight(torch::tensor({1.0, 2.0, 3.0})))[0]
                      .slice(0, 0, 2)),
              ElementsAre(0, FloatNear(0.249999f, 1e-6f), FloatNear(0.999995f, 1e-6f),
                          FloatNear(1.499992f, 1e-6f)));
  EXPECT_THAT(Row(F::group_norm(x, F::GroupNormFuncOptions(3).eps(1))[0][0]),
              ElementsAre(FloatNear(-0.124035f, 1e-6f), FloatNear(0.124035f, 1e-6f)));
  EXPECT_THAT(Row(F::embedding(torch::tensor({1, 0}), torch::eye(2),
                               F::EmbeddingFuncOptions().padding_idx(0))),
              ElementsAre(0, 1, 1, 0));
  const torch::Tensor image = torch::arange(4, torch::kFloat).view({1, 1, 2, 2});
  EXPECT_THAT(Row(F::grid_sample(image, torch::tensor({{{{0.0, 0.0}, {1.5, 0.5}}}}),
                                 F::GridSampleFuncOptions()
                                     .mode(torch::kBilinear)
                                     .padding_mode(torch::kBorder)
                                     .align_corners(true))),
              ElementsAre(1.5, 2.5));
  const torch::Tensor a = torch::tensor({{1.0, 2.0}}), b = torch::tensor({{2.0, 0.0}});
  EXPECT_NEAR(F::cosine_similarity(a, b, F::CosineSimilarityFuncOptions().dim(1)).item(), 0.4472136,
              1e-6);
  EXPECT_NEAR(
      F::pairwise_distance(a, b, F::PairwiseDistanceFuncOptions().p(1).keepdim(true)).item(), 3,
      1e-5);
  EXPECT_THAT(Row(F::conv_transpose2d(
                  image, torch::ones({1, 1, 2, 2}),
                  F::ConvTranspose2dFuncOptions().bias(torch::ones(1)).stride(2))[0][0][0]),
              ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(Row(F::conv1d(torch::ones({1, 1, 4}), torch::ones({1, 1, 2}),
                            F::Conv1dFuncOptions().stride(2))),
              ElementsAre(2, 2));
  EXPECT_THAT(Row(F::embedding_bag(
                  torch::tensor({0, 1, 1}), torch::eye(2),
                  F::EmbeddingBagFuncOptions().offsets(torch::tensor({0, 2})).mode("sum"))),
              ElementsAre(1, 1, 0, 1));
  const torch::Tensor p = torch::log_softmax(torch::tensor({{1.0, 2.0}, {3.0, 1.0}}), 1),
                      q = torch::tensor({{0.5, 0.5}, {0.25, 0.75}});
  EXPECT_NEAR(F::kl_div(p, q, F::KLDivFuncOptions(torch::kBatchMean)).item(), 0.5923537, 1e-6);
  EXPECT_NEAR(F::kl_div(p, q, F::KLDivFuncOptions(torch::kMean)).item(), 0.2961769, 1e-6);
  EXPECT_NEAR(
      torch::nn::KLDivLoss(torch::nn::KLDivLossOptions().reduction(torch::kBatchMean))(p, q).item(),
      0.5923537, 1e-6);
}

TEST(TorchModuleTest, PoolingSaysWhereTheLargestStand) {
  const torch::Tensor x = torch::arange(16, torch::kFloat).view({1, 1, 4, 4}).flip(3);
  const auto [largest, where] = torch::nn::MaxPool2d(2)->forward_with_indices(x);
  EXPECT_THAT(Row(largest), ElementsAre(7, 5, 15, 13));
  EXPECT_THAT(Row(where.to(torch::kFloat)), ElementsAre(4, 6, 12, 14));
  const auto [value, place] = torch::nn::MaxPool1d(4)->forward_with_indices(x[0]);
  EXPECT_THAT(Row(value), ElementsAre(3, 7, 11, 15));
  EXPECT_THAT(Row(place.to(torch::kFloat)), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(torch::nn::MaxPool3d(2)
                ->forward_with_indices(torch::ones({1, 1, 2, 2, 2}))
                .second.item()
                .toInt(),
            0);
}

TEST(TorchModuleTest, SimilaritiesAreModules) {
  using namespace torch::nn;  // NOLINT(google-build-using-namespace): as such programs do
  const torch::Tensor a = torch::tensor({{1.0, 2.0}}), b = torch::tensor({{2.0, 0.0}});
  EXPECT_NEAR(CosineSimilarity(CosineSimilarityOptions().dim(1))(a, b).item(), 0.4472136, 1e-6);
  EXPECT_NEAR(PairwiseDistance(PairwiseDistanceOptions().p(1))->forward(a, b).item(), 3, 1e-5);
}

TEST(TorchModuleTest, EmbeddingOfATableThatIsThere) {
  const torch::Tensor table = torch::eye(3);
  const auto frozen = torch::nn::Embedding::from_pretrained(table);
  EXPECT_THAT(Row(frozen(torch::tensor({2}))), ElementsAre(0, 0, 1));
  EXPECT_FALSE(frozen->weight.requires_grad());
  EXPECT_EQ(frozen->options.num_embeddings(), 3);
  EXPECT_TRUE(torch::nn::Embedding::from_pretrained(
                  table, torch::nn::EmbeddingFromPretrainedOptions().freeze(false))
                  ->weight.requires_grad());
  EXPECT_ERROR(kInvalidArgument, "Embedding::from_pretrained: takes a tensor of rank 2, not 1",
               torch::nn::Embedding::from_pretrained(torch::ones(3)));
}

TEST(TorchModuleTest, GumbelSoftmaxDrawsOneOfAll) {
  namespace F = torch::nn::functional;
  torch::manual_seed(1);
  const torch::Tensor logits = torch::zeros({2000, 2}).requires_grad_();
  logits.detach().select(1, 0).fill_(std::log(3.0));  // three to one
  const torch::Tensor hard =
      F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().hard(true).tau(0.5));
  EXPECT_NEAR(hard.select(1, 0).mean().item(), 0.75, 0.04);
  EXPECT_THAT(Row(hard.detach().sum(1).slice(0, 0, 2)), ElementsAre(1, 1));
  (hard * torch::tensor({1.0, 2.0})).sum().backward();
  EXPECT_GT(logits.grad().abs().max().item(), 0);
  EXPECT_NEAR(F::gumbel_softmax(logits)[0].sum().item(), 1, 1e-5);
}

TEST(TorchModuleTest, ListsAndDictionariesOfParameters) {
  struct Holds : torch::nn::Module {
    Holds() {
      list = register_module(
          "list",
          torch::nn::ParameterList(torch::ones({2}, torch::requires_grad()), torch::zeros({3})));
      named = register_module("named", torch::nn::ParameterDict());
      named->insert("a", torch::ones({2, 3}));
    }
    torch::nn::ParameterList list;
    torch::nn::ParameterDict named;
  } net;
  net.list->append(torch::tensor(2.0));
  EXPECT_THAT(net.named_parameters().keys(), ElementsAre("list.0", "list.1", "list.2", "named.a"));
  EXPECT_EQ(net.list->size(), 3U);
  EXPECT_TRUE(net.list[0].requires_grad());
  EXPECT_FALSE(net.list[1].requires_grad());
  EXPECT_TRUE(net.list[1].is_same(net.parameters()[1]));
  for (const torch::Tensor& p : *net.list) EXPECT_TRUE(p.is_leaf());
  EXPECT_TRUE(net.named["a"].is_same(net.parameters()[3]));
  EXPECT_THAT([&] { net.list[3]; }, testing::ThrowsMessage<lazuli::Error>(
                                        "ParameterList: there is no parameter 3, the list has 3"));
  EXPECT_THAT([&] { net.named["b"]; },
              testing::ThrowsMessage<lazuli::Error>("ParameterDict: there is no \"b\""));
  EXPECT_EQ(torch::str(net.named),
            "torch::nn::ParameterDict(\n(a): Parameter containing: [f32 of size [2, 3]]\n)");
  EXPECT_EQ(net.named->pop("a").numel(), 6);
  EXPECT_TRUE(net.named->empty());
  EXPECT_EQ(net.parameters().size(), 3U);
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
  EXPECT_EQ(&net.layers->at<torch::nn::LinearImpl>(1), net.layers[1]->as<torch::nn::Linear>());
  EXPECT_THAT(net.heads->keys(), ElementsAre("drop", "out"));
  EXPECT_EQ(torch::nn::ModuleList(torch::nn::Linear(1, 1), torch::nn::ReLU())->size(), 2U);
  EXPECT_THAT([&] { net.layers[3]; }, testing::ThrowsMessage<lazuli::Error>(
                                          "ModuleList: there is no module 3, the list has 3"));
  EXPECT_THAT([&] { net.heads["in"]; },
              testing::ThrowsMessage<lazuli::Error>("ModuleDict: there is no \"in\""));
  EXPECT_THAT([&] { net.heads->at<torch::nn::LinearImpl>("drop"); },
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

  torch::serialize::OutputArchive saved, model, optimizer;
  net->save(model), adam.save(optimizer);
  saved.write("model", model), saved.write("optimizer", optimizer);
  std::stringstream stream;
  saved.save_to(stream);
  torch::serialize::InputArchive read, part;
  read.load_from(stream);
  Net third(8);
  torch::optim::Adam again(third->parameters(), 0.1);
  read.read("model", part), third->load(part);
  read.read("optimizer", part), again.load(part);
  EXPECT_TRUE(torch::equal(third->forward(x), net->forward(x)));
  EXPECT_EQ(again.lr(), 0.05);
  EXPECT_EQ(net->parameters(false).size(), 1U);  // scale
  EXPECT_EQ(torch::optim::SGD(net->parameters(), torch::optim::SGDOptions(0.5).momentum(0.25)).lr(),
            0.5);
}

TEST(TorchModuleTest, ATransformerIsAnEncoderAndADecoder) {
  using torch::nn::Transformer;
  const Transformer net(torch::nn::TransformerOptions(4, 2)
                            .num_encoder_layers(1)
                            .num_decoder_layers(2)
                            .dim_feedforward(6)
                            .dropout(0));
  net->eval();
  EXPECT_EQ(net->parameters().size(), 52U);
  EXPECT_TRUE(net->named_parameters().contains("decoder.norm.bias"));
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor p : net->parameters())
      p.copy_(((torch::arange(p.numel()) * 1.7).sin() * 0.8).view(p.sizes()));
  }
  const torch::Tensor src = torch::linspace(-1, 1, 12).view({3, 1, 4}),
                      tgt = torch::linspace(0, 1, 8).view({2, 1, 4}).pow(2);
  const auto expect = [](const torch::Tensor& y, const std::vector<float>& expected) {
    EXPECT_THAT(Row(y), testing::Pointwise(testing::FloatNear(2e-4f), expected));
  };
  // PyTorch's numbers.
  expect(net(src, tgt),
         {0, 2.092045f, -0.013106f, -0.714198f, 0, 2.088731f, -0.011568f, -0.722989f});
  expect(net->forward(src, tgt, {}, torch::nn::TransformerImpl::generate_square_subsequent_mask(2)),
         {0, 2.091329f, -0.012770f, -0.716115f, 0, 2.088760f, -0.011581f, -0.722914f});
  const torch::nn::TransformerEncoder encoder(torch::nn::TransformerEncoderOptions(
      torch::nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6), 3));
  EXPECT_EQ(encoder->layers.size(), 3U);
}

TEST(TorchModuleTest, StepsWithAClosure) {
  torch::Tensor x = torch::tensor({3.0, -2.0}, torch::requires_grad());
  torch::optim::LBFGS lbfgs(
      {x},
      torch::optim::LBFGSOptions(1).max_iter(20).history_size(10).line_search_fn("strong_wolfe"));
  torch::optim::Optimizer& optimizer = lbfgs;
  const torch::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    auto l = (x * x).sum();
    l.backward();
    return l;
  });
  EXPECT_EQ(loss.item(), 13);
  EXPECT_NEAR(x.abs().max().item(), 0, 1e-5);
  EXPECT_EQ(static_cast<const torch::optim::LBFGSOptions&>(lbfgs.defaults()).max_iter(), 20);
}

TEST(TorchModuleTest, OptionsHaveLibTorchsNames) {
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(1, 2, 5).kernel_size({3, 1}).bias(false));
  EXPECT_EQ(conv->weight.sizes(), (lazuli::Dims{2, 1, 3, 1}));
  EXPECT_FALSE(torch::nn::LayerNorm(torch::nn::LayerNormOptions({4}).elementwise_affine(false))
                   ->weight.defined());
  EXPECT_EQ(torch::nn::PReLU(torch::nn::PReLUOptions().num_parameters(3))->weight.numel(), 3);
  EXPECT_EQ(torch::nn::Hardtanh(torch::nn::HardtanhOptions().min_val(-2).max_val(5))(
                torch::tensor({-3.0, 9.0}))
                .sum()
                .item(),
            3);
  EXPECT_EQ(
      torch::nn::MSELoss(torch::nn::MSELossOptions(torch::kSum))(torch::ones(3), torch::zeros(3))
          .item(),
      3);
}

TEST(TorchModuleTest, PaddingLayers) {
  const torch::Tensor x = torch::arange(4, torch::kFloat).view({1, 1, 2, 2});
  const auto row = [](const torch::Tensor& y) { return y.flatten().to_vector<float>(); };
  EXPECT_THAT(row(torch::nn::ReplicationPad2d(torch::nn::ReplicationPad2dOptions({1, 0, 0, 0}))(x)),
              ElementsAre(0, 0, 1, 2, 2, 3));
  EXPECT_THAT(row(torch::nn::ReflectionPad1d(1)(x[0])), ElementsAre(1, 0, 1, 0, 3, 2, 3, 2));
  EXPECT_THAT(row(torch::nn::ZeroPad2d(torch::nn::ZeroPad2dOptions({0, 1, 0, 0}))(x)),
              ElementsAre(0, 1, 0, 2, 3, 0));
  EXPECT_EQ(torch::nn::ConstantPad2d(torch::nn::ConstantPad2dOptions(1, 3.5))(x).sum().item(), 48);
  EXPECT_THAT(row(torch::nn::CircularPad2d(torch::nn::CircularPad2dOptions({1, 0, 0, 0}))(x)),
              ElementsAre(1, 0, 1, 3, 2, 3));
  EXPECT_THAT([] { torch::nn::ZeroPad2d({1, 2}); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("padding: takes one number or 4, not 2")));
}

TEST(TorchModuleTest, AppliesAFunctionToAllModules) {
  struct Deeper : torch::nn::Module {
    Deeper() {
      body = register_module(
          "body", torch::nn::Sequential(torch::nn::Linear(2, 2), torch::nn::ReLU(), Net(3)));
      norm = register_module("norm", torch::nn::BatchNorm1d(1));
    }
    torch::nn::Sequential body;
    torch::nn::BatchNorm1d norm{nullptr};
  } net;
  EXPECT_THAT(net.named_modules().keys(), ElementsAre("", "body", "body.0", "body.1", "body.2",
                                                      "body.2.first", "body.2.second", "norm"));
  int linear = 0;
  net.apply([&](torch::nn::Module& module) {
    const torch::NoGradGuard no_grad;
    if (auto* const layer = module.as<torch::nn::Linear>()) {
      torch::nn::init::constant_(layer->weight, 0.5);
      ++linear;
    }
    if (auto* const layer = module.as<torch::nn::BatchNorm1d>()) layer->bias.fill_(2);
  });
  EXPECT_EQ(linear, 3);
  EXPECT_EQ(net.named_parameters()["body.2.second.weight"].sum().item(), 1.5);
  EXPECT_EQ(net.norm->bias.item(), 2);
  EXPECT_EQ(net.body[2]->as<Net>()->second->weight.sum().item(), 1.5);
  EXPECT_EQ(net.body->ptr(0)->parameters().size(), 2U);
  EXPECT_EQ(net.modules(/*include_self=*/false).size(), 7U);
  net.unregister_module("norm");
  EXPECT_EQ(net.children().size(), 1U);
  EXPECT_THAT([&] { net.unregister_module("norm"); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("unregister_module: there is no \"norm\" (torch_nn_test")));
}

TEST(TorchModuleTest, ModulesAreFoundByTheirClass) {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::BatchNorm1d(3), Net(3));
  int norms = 0;
  for (const auto& module : net->modules(/*include_self=*/false)) {
    if (dynamic_cast<torch::nn::BatchNorm1dImpl*>(module.get()) != nullptr) ++norms;
    if (const auto linear = std::dynamic_pointer_cast<torch::nn::LinearImpl>(module))
      torch::nn::init::constant_(linear->weight, 2);
  }
  EXPECT_EQ(norms, 1);
  EXPECT_EQ(net[0]->as<torch::nn::Linear>()->weight.sum().item(), 12);
  const torch::nn::Module& constant = *net;
  EXPECT_EQ(constant.as<torch::nn::Sequential>(), net.get());
  EXPECT_EQ(constant.as<torch::nn::Linear>(), nullptr);
  std::vector<std::string> names;
  net->apply([&](const std::string& name, torch::nn::Module&) { names.push_back(name); });
  EXPECT_THAT(names, ElementsAre("", "0", "1", "2", "2.first", "2.second"));
  int modules = 0;
  net->apply([&](const torch::nn::Module&) { ++modules; });
  EXPECT_EQ(modules, 6);
  for (auto& p : net->named_parameters())
    if (p.key() == "2.scale") p.value().detach().fill_(7);
  EXPECT_EQ(net->at<NetImpl>(2).scale.item(), 7);
  EXPECT_EQ(net->ptr<NetImpl>(2)->scale.item(), 7);
}

struct AddsImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& y) { return ++calls, x + y; }
  int calls = 0;
};
TORCH_MODULE(Adds);
struct Halves : torch::nn::Module {
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    return {x.slice(0, 0, 1), x.slice(0, 1, 2)};
  }
};

TEST(TorchModuleTest, SequentialsPassOnWhatTheyAreGiven) {
  const Adds adds;
  torch::nn::Sequential net(adds, torch::nn::ReLU(), std::make_shared<Halves>());
  const torch::Tensor x = torch::tensor({1.0, -3.0});
  const auto [first, second] =
      net->forward<std::tuple<torch::Tensor, torch::Tensor>>(x, torch::tensor({1.0, 1.0}));
  EXPECT_EQ(first.item(), 2);
  EXPECT_EQ(second.item(), 0);
  EXPECT_EQ(adds->calls, 1);  // the module itself, and no copy of it
  torch::Tensor y = torch::ones(2);
  const torch::nn::Sequential layers{torch::nn::ReLU(), torch::nn::Tanh()};
  for (auto& module : *layers) y = module.forward<>(y);
  EXPECT_NEAR(y[0].item(), 0.7615942, 1e-6);
  EXPECT_ERROR(kInvalidArgument, "AnyModule: forward() of AddsImpl does not take 1 tensor",
               net->forward(x));
  EXPECT_ERROR(kInvalidArgument, "AnyModule: forward() returns another type",
               torch::nn::AnyModule(Halves()).forward(x));
  EXPECT_ERROR(kFailedPrecondition, "an AnyModule that is empty is used",
               torch::nn::AnyModule().forward(x));
}

TEST(TorchModuleTest, AParameterIsReplacedInItsModule) {
  torch::nn::Linear layer(2, 1);
  layer->weight = torch::ones({1, 2});
  layer->bias = torch::zeros(1);
  EXPECT_EQ(layer(torch::tensor({{3.0, 4.0}})).item(), 7);
}

TEST(TorchModuleTest, LayersMayBeLazulis) {
  struct Mixed : torch::nn::Module {
    Mixed() {
      own = register_module("own", lazuli::nn::Linear(2, 2));
      attention = register_module("attention", torch::nn::MultiheadAttention(2, 1));
    }
    lazuli::nn::Linear own{1, 1};
    torch::nn::MultiheadAttention attention{nullptr};
  } net;
  EXPECT_EQ(net.parameters().size(), 6U);
  EXPECT_NE(net.children()[0]->as<lazuli::nn::Linear>(), nullptr);
  EXPECT_EQ(net.children()[1]->as<torch::nn::MultiheadAttention>(), net.attention.get());
}

TEST(TorchModuleTest, FunctionsOfLossesAndDropoutsHaveLibTorchsOptions) {
  namespace F = torch::nn::functional;
  const torch::Tensor p = torch::tensor({0.5, 0.25}), y = torch::tensor({1.0, 0.0});
  EXPECT_NEAR(
      F::binary_cross_entropy(p, y, F::BinaryCrossEntropyFuncOptions().reduction(torch::kSum))
          .item(),
      0.9808293, 1e-6);
  EXPECT_NEAR(
      F::binary_cross_entropy_with_logits(
          torch::zeros(2), y,
          F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(torch::tensor({3.0, 1.0})))
          .item(),
      1.3862944, 1e-6);
  torch::Tensor x = torch::ones({1, 4, 2});
  EXPECT_TRUE(F::dropout2d(x, F::Dropout2dFuncOptions().p(0.5)).is_same(x) ||
              torch::equal(F::dropout2d(x, F::Dropout2dFuncOptions().p(0.5)), x));
  EXPECT_EQ(
      F::alpha_dropout(x, F::AlphaDropoutFuncOptions().p(1).training(true).inplace(true)).sizes(),
      x.sizes());
  EXPECT_NEAR(F::instance_norm(torch::tensor({{{1.0, 3.0}}}),
                               F::InstanceNormFuncOptions().weight(torch::tensor({2.0})))[0][0][1]
                  .item(),
              2, 1e-4);
}

struct CopiedImpl : torch::nn::Cloneable<CopiedImpl> {
  CopiedImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(2, 1));
    scale = register_parameter("scale", torch::ones(1));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc(x) * scale; }
  torch::nn::Linear fc{nullptr};
  torch::Tensor scale;
};

TEST(TorchModuleTest, ClonesHaveParametersOfTheirOwn) {
  const auto net = std::make_shared<CopiedImpl>();
  const auto copy = net->clone();
  const torch::Tensor x = torch::ones({1, 2}), before = net->forward(x);
  EXPECT_TRUE(torch::equal(copy->forward(x), before));
  {
    const torch::NoGradGuard no_grad;
    copy->scale.fill_(0);
    copy->fc->weight.fill_(7);
  }
  EXPECT_EQ(copy->forward(x).item(), 0);
  EXPECT_TRUE(torch::equal(net->forward(x), before));
  const Net original(3);
  EXPECT_FALSE(lazuli::nn::clone(*original).first->weight.is_same(original->first->weight));
}

TEST(TorchModuleTest, ModulesChangeTheirDType) {
  const Net net(3);
  net->to(torch::kDouble);
  EXPECT_EQ(net->scale.dtype(), torch::kDouble);
  net->to(torch::kCPU, torch::kFloat);
  EXPECT_EQ(net->buffers()[0].scalar_type(), torch::kFloat);
  EXPECT_THAT([&] { net->to(torch::kLong); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("to: modules take a dtype of floats, not s64")));
}

TEST(TorchModuleTest, FunctionsTakeOptionsOfTheirLayers) {
  namespace F = torch::nn::functional;
  const torch::Tensor x = torch::tensor({-2.0, 4.0});
  EXPECT_EQ(F::hardtanh(x, F::HardtanhFuncOptions().min_val(-1).max_val(2)).sum().item(), 1);
  EXPECT_EQ(F::l1_loss(x, torch::zeros(2), F::L1LossFuncOptions(torch::kSum)).item(), 6);
  torch::Tensor y = x.clone();
  F::relu(y, F::ReLUFuncOptions().inplace(true));
  EXPECT_EQ(y.sum().item(), 4);
  EXPECT_EQ(torch::nn::Functional([](const torch::Tensor& t) { return t * 2; })(x).sum().item(), 4);
}

TEST(TorchModuleTest, DictionariesChangeInOrder) {
  torch::OrderedDict<std::string, int> dict{{"a", 1}, {"b", 2}};
  dict.insert("c", 3);
  dict["a"] = 4;
  EXPECT_EQ(dict[0].value(), 4);
  EXPECT_EQ(dict.front().key(), "a");
  EXPECT_EQ(dict.pop("b"), 2);
  EXPECT_EQ(dict.keys(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(dict.values(), (std::vector<int>{4, 3}));
  EXPECT_THAT([&] { dict.insert("a", 1); },
              testing::ThrowsMessage<lazuli::Error>("OrderedDict: \"a\" is there already"));
  EXPECT_THAT([&] { dict[7]; },
              testing::ThrowsMessage<lazuli::Error>("OrderedDict: there is no item 7, it has 2"));
  torch::OrderedDict<std::string, torch::Tensor> parameters = Net(3)->named_parameters();
  EXPECT_TRUE(parameters.contains("first.weight"));
  parameters.erase("first.weight");
  EXPECT_FALSE(parameters.contains("first.weight"));
}

TEST(TorchModuleTest, LayersAreClonedResetAndKept) {
  torch::manual_seed(1);
  torch::nn::Linear layer(2, 3);
  const std::shared_ptr<torch::nn::LinearImpl> copy = layer->clone();
  EXPECT_TRUE(torch::equal(copy->weight, layer->weight));
  const torch::Tensor weight = layer->weight;
  layer->reset_parameters();
  EXPECT_TRUE(weight.is_same(layer->weight));
  EXPECT_FALSE(torch::equal(copy->weight, layer->weight));
  torch::serialize::OutputArchive out;
  layer->save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  copy->load(in);
  EXPECT_TRUE(torch::equal(copy->weight, layer->weight));
  EXPECT_EQ(layer->name(), "torch::nn::Linear(in_features=2, out_features=3, bias=true)");
  EXPECT_EQ(layer->named_parameters().keys(), (std::vector<std::string>{"weight", "bias"}));
  torch::nn::BatchNorm1d norm(2);
  norm->forward(torch::rand({4, 2}));
  norm->reset_running_stats();
  EXPECT_EQ(norm->running_mean.sum().item<float>(), 0);
  EXPECT_EQ(norm->running_var.sum().item<float>(), 2);
}

TEST(TorchModuleTest, SequentialsAreCloned) {
  torch::nn::Sequential net({{"fc", torch::nn::Linear(2, 2)}, {"act", torch::nn::ReLU()}});
  const auto copy = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(net->clone());
  const torch::Tensor x = torch::ones({1, 2}), before = net->forward(x);
  EXPECT_TRUE(torch::equal(copy->forward(x), before));
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor p : copy->parameters()) p.fill_(7);
  }
  EXPECT_EQ(copy->forward(x).sum().item<float>(), 42);
  EXPECT_EQ(copy->ptr(0)->as<torch::nn::Linear>()->weight.sum().item<float>(), 28);
  EXPECT_TRUE(torch::equal(net->forward(x), before));
  const torch::nn::AnyModule any(torch::nn::Linear(2, 2));
  EXPECT_FALSE(any.is_empty());
  EXPECT_TRUE(torch::nn::AnyModule().is_empty());
  EXPECT_TRUE(torch::equal(any.clone().forward(x), any.forward<torch::Tensor>(x)));
}

TEST(TorchModuleTest, FunctionalsTakeOptions) {
  namespace F = torch::nn::functional;
  const torch::Tensor x = torch::tensor({-1.0, 2.0});
  const torch::nn::Functional elu(F::elu, F::ELUFuncOptions().alpha(0.5));
  EXPECT_NEAR(elu(x)[0].item<float>(), 0.5 * std::expm1(-1.0), 1e-6);
  const torch::nn::Functional leaky(F::leaky_relu, F::LeakyReLUFuncOptions().negative_slope(0.1));
  EXPECT_NEAR(leaky->forward(x)[0].item<float>(), -0.1, 1e-6);
  torch::nn::Sequential net(torch::nn::Functional(F::softmax, F::SoftmaxFuncOptions(0)));
  EXPECT_NEAR(net->forward(x).sum().item<float>(), 1, 1e-6);
}

TEST(TorchModuleTest, PoolsAreUndoneAndDrawn) {
  namespace F = torch::nn::functional;
  const torch::Tensor x = torch::arange(16, torch::kFloat).view({1, 1, 4, 4});
  const torch::nn::MaxPool2d pool(torch::nn::MaxPool2dOptions(2));
  const auto [y, places] = pool->forward_with_indices(x);
  torch::nn::MaxUnpool2d unpool(torch::nn::MaxUnpool2dOptions(2).stride(2).padding(0));
  EXPECT_EQ(unpool(y, places).sum().item<float>(), 40);
  EXPECT_EQ(unpool->forward(y, places, std::vector<int64_t>{5, 5}).size(3), 5);
  EXPECT_EQ(F::max_unpool2d(y, places, F::MaxUnpool2dFuncOptions(2)).sum().item<float>(), 40);
  EXPECT_NEAR(F::lp_pool2d(x, F::LPPool2dFuncOptions(2, 2).stride(2))[0][0][0][0].item<float>(),
              6.480741, 1e-5);
  EXPECT_EQ(torch::nn::LPPool1d(torch::nn::LPPool1dOptions(2, 3).stride(2))(x[0]).size(2), 1);
  torch::nn::FractionalMaxPool2d drawn(
      torch::nn::FractionalMaxPool2dOptions(2).output_ratio(0.5)._random_samples(
          torch::zeros({1, 1, 2})));
  EXPECT_EQ(drawn(x).sum().item<float>(), 40);
  EXPECT_EQ(std::get<1>(drawn->forward_with_indices(x)).sum().item<int>(), 40);
  EXPECT_EQ(
      F::fractional_max_pool2d(x, F::FractionalMaxPool2dFuncOptions(2).output_size({2, 2})).size(3),
      2);
  const torch::Tensor slope =
      F::rrelu(-torch::ones(1), F::RReLUFuncOptions().lower(0.1).upper(0.3).training(false));
  EXPECT_NEAR(slope.item<float>(), -0.2, 1e-6);
}

TEST(TorchModuleTest, LossesOfDistancesAndOfRareClasses) {
  namespace F = torch::nn::functional;
  const auto l1 = [](const torch::Tensor& x, const torch::Tensor& y) {
    return (x - y).abs().sum(-1);
  };
  const torch::Tensor a = torch::tensor({{1.0, 2.0}}), p = torch::tensor({{1.0, 1.0}}),
                      n = torch::tensor({{2.0, 2.5}});
  torch::nn::TripletMarginWithDistanceLoss loss(
      torch::nn::TripletMarginWithDistanceLossOptions().distance_function(l1).margin(2).swap(true));
  EXPECT_EQ(loss(a, p, n).item<float>(), 1.5);
  EXPECT_EQ(F::triplet_margin_with_distance_loss(
                a, p, n, F::TripletMarginWithDistanceLossFuncOptions().distance_function(l1))
                .item<float>(),
            0.5);
  const torch::nn::AdaptiveLogSoftmaxWithLoss softmax(
      torch::nn::AdaptiveLogSoftmaxWithLossOptions(8, 10, {4, 6}).div_value(2.));
  const torch::nn::ASMoutput out = softmax(torch::rand({3, 8}), torch::tensor({1, 5, 9}));
  EXPECT_FLOAT_EQ(out.loss.item<float>(), -out.output.mean().item<float>());
  EXPECT_EQ(softmax->options.n_classes(), 10);
}

TEST(TorchModuleTest, OptimisersShowTheirState) {
  const torch::nn::Linear layer(2, 1);
  torch::optim::Adam adam(layer->parameters(), 1e-3);
  EXPECT_TRUE(adam.state().empty());
  layer(torch::ones({1, 2})).sum().backward();
  adam.step();
  EXPECT_EQ(adam.size(), 2U);
  const auto all = adam.state();
  EXPECT_EQ(all.size(), 2U);
  const auto& state = static_cast<const torch::optim::AdamParamState&>(
      *all.at(layer->weight.unsafeGetTensorImpl()));
  EXPECT_EQ(state.step(), 1);
  EXPECT_NEAR(state.exp_avg()[0][0].item<float>(), 0.1, 1e-6);
  EXPECT_FALSE(state.max_exp_avg_sq().defined());
}

TEST(TorchModuleTest, TransformersAreHeld) {
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).activation(torch::kGELU));
  torch::nn::TransformerEncoder encoder(layer, 2);
  EXPECT_EQ(encoder(torch::ones({3, 1, 8})).sizes(), (lazuli::Dims{3, 1, 8}));
  torch::nn::MultiheadAttention attention(
      torch::nn::MultiheadAttentionOptions(8, 2).dropout(0.5).bias(false));
  const torch::Tensor x = torch::ones({3, 1, 8});
  EXPECT_EQ(std::get<1>(attention(x, x, x)).sizes(), (lazuli::Dims{1, 3, 3}));
}

TEST(TorchModuleTest, RecurrentLayersAreHeld) {
  struct Net : torch::nn::Module {
    torch::nn::LSTM lstm{nullptr};
    Net() {
      lstm = register_module(
          "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).num_layers(2).batch_first(true)));
    }
  } net;
  EXPECT_EQ(net.named_parameters()[4].key(), "lstm.weight_ih_l1");
  const torch::Tensor x = torch::randn({2, 5, 3});
  auto [y, state] = net.lstm(x);
  EXPECT_EQ(y.sizes(), (lazuli::Dims{2, 5, 4}));
  EXPECT_EQ(std::get<1>(state).sizes(), (lazuli::Dims{2, 2, 4}));
  std::tie(y, state) = net.lstm->forward(x, state);
  torch::nn::RNN relu(torch::nn::RNNOptions(3, 4).nonlinearity(torch::kReLU).bias(false));
  EXPECT_GE(std::get<0>(relu->forward(x)).min().item<float>(), 0);
  torch::nn::GRUCell cell(3, 4);
  EXPECT_EQ(cell(x[0]).sizes(), (lazuli::Dims{5, 4}));
}

TEST(TorchModuleTest, RecurrentLayersTakePackedSequences) {
  namespace rnn = torch::nn::utils::rnn;
  torch::nn::GRU gru(torch::nn::GRUOptions(3, 4).batch_first(true));
  const torch::Tensor x = torch::randn({2, 5, 3});
  const rnn::PackedSequence packed = rnn::pack_padded_sequence(
      x, torch::tensor({2, 5}), /*batch_first=*/true, /*enforce_sorted=*/false);
  EXPECT_EQ(packed.data().sizes(), (lazuli::Dims{7, 3}));
  auto [y, last] = gru->forward_with_packed_input(packed);
  auto [padded, lengths] = rnn::pad_packed_sequence(y, /*batch_first=*/true);
  EXPECT_EQ(padded.sizes(), (lazuli::Dims{2, 5, 4}));
  EXPECT_THAT(lengths.to_vector<std::int64_t>(), testing::ElementsAre(2, 5));
  EXPECT_TRUE(torch::equal(padded[0][1], last[0][0]));
  torch::nn::LSTM lstm(3, 4);
  std::tuple<torch::Tensor, torch::Tensor> state;
  std::tie(y, state) = lstm->forward_with_packed_input(packed);
  EXPECT_EQ(std::get<1>(state).sizes(), (lazuli::Dims{1, 2, 4}));
}

}  // namespace
