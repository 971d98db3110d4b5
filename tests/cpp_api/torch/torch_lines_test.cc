// Single lines that programs for LibTorch are full of, each with what it gives there.
#include <cmath>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/torch.h>

namespace torch = lazuli::torch_names;

namespace {

using testing::ElementsAre;
using torch::indexing::Slice;

std::vector<float> Numbers(const torch::Tensor& x) {
  return x.to(torch::kFloat32).flatten().to_vector<float>();
}

TEST(TorchLinesTest, OptionsOfTensors) {
  const auto options =
      torch::TensorOptions().dtype(torch::kFloat32).device(torch::kCPU).requires_grad(true);
  EXPECT_TRUE(torch::full({3, 4}, 123.0, options).requires_grad());
  EXPECT_EQ(torch::arange(0, 10, torch::dtype(torch::kInt32)).dtype(), torch::kInt);
  EXPECT_EQ(torch::arange(0, 10, torch::kDouble).dtype(), torch::kFloat64);
  EXPECT_EQ(torch::randn({2, 3}, torch::kDouble).dtype(), torch::kFloat64);
  EXPECT_EQ(torch::zeros_like(torch::ones({2, 2}, torch::kInt)).dtype(), torch::kInt);
  EXPECT_EQ(torch::linspace(0, 1, 5).numel(), 5);
  EXPECT_EQ(torch::eye(3).sum().item<float>(), 3);
  EXPECT_EQ(torch::rand({2, 3}).to(torch::kFloat16).dtype(), torch::kHalf);
  EXPECT_EQ(torch::ones({2, 3}).to(torch::Device(torch::kCPU), torch::kDouble).dtype(),
            torch::kDouble);
  EXPECT_EQ(torch::full({1}, 5, torch::kLong).item<std::int64_t>(), 5);
}

TEST(TorchLinesTest, Indices) {
  const auto x = torch::arange(24).view({2, 3, 4});
  EXPECT_EQ(x.index({0, 1, 2}).item<int>(), 6);
  EXPECT_THAT(Numbers(x.index({"...", 0})), ElementsAre(0, 4, 8, 12, 16, 20));
  EXPECT_THAT(Numbers(x.index({1, Slice(0, 2), 3})), ElementsAre(15, 19));
  EXPECT_THAT(Numbers(x.index({0, 0, Slice(torch::indexing::None, torch::indexing::None, 2)})),
              ElementsAre(0, 2));
  EXPECT_EQ(x.index({Slice(), Slice(0, 1)}).sizes(), (lazuli::Dims{2, 1, 4}));
  EXPECT_THAT(Numbers(x.index({torch::tensor({1}), 0, 0})), ElementsAre(12));
  EXPECT_EQ(x.index({torch::indexing::Ellipsis, torch::indexing::None}).dim(), 4);
  EXPECT_THAT(Numbers(x.index({x > 21})), ElementsAre(22, 23));
  auto y = x.clone();
  y.index_put_({x > 3}, 0);
  EXPECT_EQ(y.sum().item<int>(), 6);
  y.index({0, 0}) = 1;
  EXPECT_EQ(y.sum().item<int>(), 4);
  EXPECT_EQ(x.narrow(2, 1, 2).size(-1), 2);
  EXPECT_THAT(Numbers(x.select(0, 1).index_select(1, torch::tensor({3})).squeeze(1)),
              ElementsAre(15, 19, 23));
  EXPECT_THAT(Numbers(x[1][2].slice(0, 0, 4, 3)), ElementsAre(20, 23));
  EXPECT_THAT(Numbers(x[0].gather(1, torch::tensor({{0}, {1}, {2}}))), ElementsAre(0, 5, 10));
}

TEST(TorchLinesTest, ResultsOfSeveralTensors) {
  const auto x = torch::tensor({{3.0, 1.0}, {2.0, 4.0}});
  const auto [values, places] = x.max(1);
  EXPECT_THAT(Numbers(values), ElementsAre(3, 4));
  EXPECT_EQ(std::get<1>(torch::max(x, 1))[1].item<int>(), 1);
  EXPECT_THAT(Numbers(std::get<0>(x.sort(1, /*descending=*/true))), ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(Numbers(std::get<0>(x.topk(1, 1))), ElementsAre(3, 4));
  const auto parts = x.chunk(2, 1);
  EXPECT_EQ(parts.size(), 2U);
  EXPECT_EQ(torch::cat({parts[0], parts[1]}, 1).sizes(), x.sizes());
  EXPECT_EQ(torch::stack({x, x}).dim(), 3);
  EXPECT_EQ(x.split(1, 0)[1].sizes(), (lazuli::Dims{1, 2}));
  EXPECT_EQ(x.unbind(0).size(), 2U);
  EXPECT_EQ(torch::where(x > 2, x, torch::zeros_like(x)).sum().item<float>(), 7);
  EXPECT_EQ(x.argmax(1, true).sizes(), (lazuli::Dims{2, 1}));
  EXPECT_FLOAT_EQ(x.std().item<float>(), 1.2909944f);
  EXPECT_EQ(x.mean({0, 1}).dim(), 0);
  EXPECT_FLOAT_EQ(x.norm().item<float>(), std::sqrt(30.0f));
}

TEST(TorchLinesTest, Gradients) {
  auto w = torch::ones({2}, torch::requires_grad());
  (w * w).sum().backward();
  w.mutable_grad().mul_(0.5);
  EXPECT_THAT(Numbers(w.grad()), ElementsAre(1, 1));
  w.mutable_grad() = torch::full({2}, 3.0);
  EXPECT_THAT(Numbers(w.grad()), ElementsAre(3, 3));
  w.grad().zero_();
  EXPECT_THAT(Numbers(w.grad()), ElementsAre(0, 0));
  w.mutable_grad() = torch::Tensor();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_ERROR(kInvalidArgument, "set_grad: the gradient is f32[3], the tensor f32[2]",
               w.mutable_grad() = torch::ones(3));
  EXPECT_TRUE(w.grad_fn() == nullptr);
  EXPECT_EQ((w + 1).sum().grad_fn()->name(), "SumBackward0");
  {
    torch::NoGradGuard no_grad;
    w.sub_(0.1);
    w -= 0.1 * torch::ones(2);
  }
  EXPECT_NEAR(w[0].item<float>(), 0.8, 1e-6);
  {
    const torch::InferenceMode guard;
    EXPECT_FALSE((w * 2).requires_grad());
  }
  auto h = w * 2;
  h.register_hook([](const torch::Tensor& grad) { return grad * 10; });
  h.sum().backward();
  EXPECT_THAT(Numbers(w.grad()), ElementsAre(20, 20));
}

TEST(TorchLinesTest, AnItemIsANumberOfItsKind) {
  const auto x = torch::tensor({{1.5}});
  EXPECT_EQ(x.item().toFloat(), 1.5f);
  EXPECT_EQ(x.item().toInt(), 1);
  const double as_double = x.item();
  EXPECT_EQ(as_double, 1.5);
  EXPECT_TRUE(x.item().isFloatingPoint());
  // A double has not all integers, a bool is none.
  const auto large = torch::tensor((std::int64_t{1} << 60) + 1);
  EXPECT_EQ(large.item().toLong(), (std::int64_t{1} << 60) + 1);
  EXPECT_TRUE(large.item().isIntegral(false));
  EXPECT_TRUE((x > 1).item().isBoolean());
  EXPECT_TRUE((x > 1).item().toBool());
  EXPECT_TRUE(torch::complex(x, x).item().isComplex());
  EXPECT_EQ(x.item() + x.item(), 3);
  EXPECT_TRUE(x.item() < large.item());
  EXPECT_EQ(-x.item() * 2, -3);
  EXPECT_EQ((x * x.item()).item(), 2.25);
  EXPECT_EQ(torch::full({2}, x.item()).sum().item(), 3);
  EXPECT_ERROR(kInvalidArgument, "item: f32[2] has 2 elements, not one; use to_vector()",
               torch::ones(2).item());
}

TEST(TorchLinesTest, OtherNames) {
  const auto x = torch::tensor({1.0, 3.0}, torch::requires_grad());
  EXPECT_FALSE(x.tensor_data().requires_grad());
  EXPECT_FLOAT_EQ(x.std(false).item<float>(), 1);
  EXPECT_FLOAT_EQ(x.var(false).item<float>(), 1);
  EXPECT_EQ(x.sum(torch::kDouble).dtype(), torch::kDouble);
  EXPECT_EQ(x.mean(torch::kDouble).item(), 2);
  EXPECT_THAT(Numbers(x.clip(2)), ElementsAre(2, 3));
  EXPECT_THAT(Numbers((x > 2) && (x < 9)), ElementsAre(0, 1));
  EXPECT_THAT(Numbers((x > 2) || (x < 2)), ElementsAre(1, 1));
  const auto y = x.detach();
  EXPECT_FALSE(y.to(torch::kFloat, false, true).is_same(y));
  EXPECT_THAT(Numbers(y.to(torch::kDouble, true)), ElementsAre(1, 3));
  EXPECT_THAT(Numbers(y.to(torch::Device("cpu"), torch::kInt, true, true)), ElementsAre(1, 3));
  EXPECT_THAT([&] { y.cuda(); }, testing::ThrowsMessage<lazuli::Error>(testing::HasSubstr("cuda")));
  auto z = y.clone();
  EXPECT_THAT(Numbers(torch::relu_(torch::sub_(z, 2))), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(z), ElementsAre(0, 1));
  (x * x).sum().backward({}, torch::nullopt, /*create_graph=*/true);
  EXPECT_TRUE(x.grad().requires_grad());
  EXPECT_GE(torch::get_num_threads(), 1);
  torch::GradMode::set_enabled(false);
  EXPECT_FALSE(torch::GradMode::is_enabled());
  EXPECT_FALSE((x * 2).requires_grad());
  torch::GradMode::set_enabled(true);
  EXPECT_TRUE((x * 2).requires_grad());
  try {
    y.view({7});
    FAIL();
  } catch (const lazuli::Error& e) {
    EXPECT_EQ(e.msg(), e.what_without_backtrace());
  }
}

TEST(TorchLinesTest, MemoryWithStrides) {
  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  const auto columns = torch::from_blob(memory.data(), {3, 2}, {1, 3}, torch::kFloat);
  EXPECT_THAT(Numbers(columns), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_TRUE(columns.is_contiguous());
  EXPECT_EQ(torch::from_blob(memory.data(), {0, 2}, {1, 3}).numel(), 0);
  EXPECT_EQ(torch::from_blob(memory.data(), {}, torch::IntArrayRef{}).item(), 0);
  EXPECT_ERROR(kInvalidArgument, "from_blob: 2 sizes, but 1 strides",
               torch::from_blob(memory.data(), {3, 2}, {1}));
  bool freed = false;
  torch::from_blob(memory.data(), {2}, [&](void*) { freed = true; }, torch::kFloat);
  EXPECT_TRUE(freed);
}

TEST(TorchLinesTest, Checks) {
  EXPECT_THAT([] { TORCH_CHECK(1 + 1 == 3, "one and one is ", 2, ", not ", 3); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("one and one is 2, not 3 (torch_lines_test.cc:")));
  EXPECT_THAT([] { AT_ASSERT(false); },
              testing::ThrowsMessage<lazuli::Error>(testing::StartsWith("expected false (")));
  EXPECT_EQ(torch::str("a", 1, '-', 2.5), "a1-2.5");
}

struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t channels, std::int64_t stride) {
    body = register_module(
        "body",
        torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, channels, 3)
                                                    .stride(stride)
                                                    .padding(1)
                                                    .bias(false)),
                              torch::nn::BatchNorm2d(channels),
                              torch::nn::ReLU(torch::nn::ReLUOptions(true))));
  }
  torch::Tensor forward(const torch::Tensor& x) { return body->forward(x); }
  torch::nn::Sequential body{nullptr};
};
TORCH_MODULE(Block);

TEST(TorchLinesTest, SequentialsWithNames) {
  torch::nn::Sequential named({{"conv", torch::nn::Conv2d(1, 2, 3)},
                               {"relu", torch::nn::ReLU()},
                               {"flat", torch::nn::Flatten()}});
  named->push_back("fc", torch::nn::Linear(8, 4));
  EXPECT_EQ(named->named_parameters()[0].first, "conv.weight");
  EXPECT_EQ(named->named_parameters()[2].first, "fc.weight");
  EXPECT_EQ(named->forward(torch::ones({3, 1, 4, 4})).sizes(), (lazuli::Dims{3, 4}));
  EXPECT_EQ(named->at<torch::nn::Conv2dImpl>(0).weight.sizes(), (lazuli::Dims{2, 1, 3, 3}));
  EXPECT_ERROR(kInvalidArgument, "Sequential: module 0 is of another type",
               named->at<torch::nn::LinearImpl>(0));
  torch::nn::Sequential blocks;
  for (int i = 0; i < 2; ++i) blocks->push_back(Block(2, i + 1));
  EXPECT_EQ(blocks->forward(torch::ones({1, 2, 8, 8})).sizes(), (lazuli::Dims{1, 2, 4, 4}));
  const torch::nn::AnyModule any(torch::nn::Linear(3, 2));
  EXPECT_EQ(any.forward(torch::ones({1, 3})).size(1), 2);
  EXPECT_EQ(any.get<torch::nn::LinearImpl>().weight.size(0), 2);
  EXPECT_THAT([&] { any.get<torch::nn::ReLUImpl>(); },
              testing::ThrowsMessage<lazuli::Error>("AnyModule: the module is of another type"));
}

TEST(TorchLinesTest, LayersOfOtherRanks) {
  EXPECT_EQ(torch::nn::Conv1d(torch::nn::Conv1dOptions(2, 4, 3).padding(1).stride(2))(
                torch::ones({1, 2, 8}))
                .sizes(),
            (lazuli::Dims{1, 4, 4}));
  EXPECT_EQ(torch::nn::Conv3d(torch::nn::Conv3dOptions(1, 2, {3, 3, 3}).padding(1))(
                torch::ones({1, 1, 4, 4, 4}))
                .sizes(),
            (lazuli::Dims{1, 2, 4, 4, 4}));
  EXPECT_EQ(torch::nn::ConvTranspose2d(
                torch::nn::ConvTranspose2dOptions(4, 2, 4).stride(2).padding(1).bias(false))(
                torch::ones({1, 4, 5, 5}))
                .sizes(),
            (lazuli::Dims{1, 2, 10, 10}));
  EXPECT_EQ(torch::nn::ConvTranspose1d(2, 3, 2)(torch::ones({1, 2, 4})).sizes(),
            (lazuli::Dims{1, 3, 5}));
  EXPECT_EQ(torch::nn::ConvTranspose3d(torch::nn::ConvTranspose3dOptions(1, 1, 2).stride(2))(
                torch::ones({1, 1, 2, 2, 2}))
                .size(4),
            4);
  EXPECT_THAT(Numbers(torch::nn::MaxPool1d(torch::nn::MaxPool1dOptions(2).stride(1))(
                  torch::tensor({{{1.0, 3.0, 2.0}}}))),
              ElementsAre(3, 3));
  EXPECT_THAT(Numbers(torch::nn::AvgPool1d(2)(torch::tensor({{{1.0, 3.0, 2.0, 4.0}}}))),
              ElementsAre(2, 3));
  EXPECT_EQ(torch::nn::AdaptiveMaxPool2d(torch::nn::AdaptiveMaxPool2dOptions({2, 2}))(
                torch::arange(16, torch::kFloat).view({1, 1, 4, 4}))
                .sum()
                .item<float>(),
            5 + 7 + 13 + 15);
  EXPECT_EQ(torch::nn::Upsample(torch::nn::UpsampleOptions()
                                    .scale_factor(std::vector<double>{2, 2})
                                    .mode(torch::kNearest))(torch::ones({1, 1, 2, 2}))
                .sizes(),
            (lazuli::Dims{1, 1, 4, 4}));
  torch::nn::Dropout2d drop(0.5);
  const auto dropped = drop(torch::ones({4, 8, 3, 3}));
  EXPECT_TRUE(
      torch::equal(dropped, dropped.amax({2, 3}, true).expand({4, 8, 3, 3})));  // whole channels
  EXPECT_FALSE(torch::equal(dropped, torch::ones({4, 8, 3, 3})));
  drop->eval();
  EXPECT_TRUE(torch::equal(drop(torch::ones({2, 2, 3, 3})), torch::ones({2, 2, 3, 3})));
  const auto normed = torch::nn::InstanceNorm2d(torch::nn::InstanceNorm2dOptions(3).affine(true))(
      torch::randn({2, 3, 8, 8}));
  EXPECT_TRUE(torch::allclose(normed.mean({2, 3}), torch::zeros({2, 3}), 0, 1e-5));
  EXPECT_ERROR(kInvalidArgument, "InstanceNorm2d: takes 3 or 4 dims, not 2",
               torch::nn::InstanceNorm2d(3)(torch::ones({2, 3})));
  EXPECT_ERROR(kInvalidArgument,
               "ConvTranspose2d: groups = 2 does not divide in_channels = 3 and out_channels = 4",
               torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(3, 4, 1).groups(2)));
}

TEST(TorchLinesTest, FunctionsInARow) {
  const auto x = torch::randn({4, 3}), target = torch::tensor({0, 1, 2, 0});
  const auto log_probs = torch::log_softmax(x, 1);
  EXPECT_FLOAT_EQ(torch::nll_loss(log_probs, target, {}, torch::Reduction::Sum).item<float>(),
                  torch::cross_entropy_loss(x, target, {}, torch::Reduction::Sum).item<float>());
  EXPECT_EQ(
      torch::smooth_l1_loss(torch::ones(2), torch::zeros(2), torch::Reduction::Sum).item<float>(),
      1);
  EXPECT_EQ(torch::one_hot(target, 3).sizes(), (lazuli::Dims{4, 3}));
  EXPECT_EQ(x.mm(x.t()).sizes(), (lazuli::Dims{4, 4}));
  EXPECT_EQ(torch::bmm(torch::ones({2, 3, 4}), torch::ones({2, 4, 5})).sizes(),
            (lazuli::Dims{2, 3, 5}));
  EXPECT_EQ(torch::clamp(x, -0.1, 0.1).abs().max().item<float>() <= 0.1f, true);
  EXPECT_EQ(torch::einsum("ij,kj->ik", {x, x}).sizes(), (lazuli::Dims{4, 4}));
  EXPECT_TRUE(torch::allclose(torch::softmax(x, -1).sum(-1), torch::ones(4)));
  EXPECT_EQ(x.permute({1, 0}).contiguous().view(-1).size(0), 12);
  EXPECT_EQ(torch::nn::functional::relu(x).lt(0).any().item<bool>(), false);
  EXPECT_EQ(x.unsqueeze(0).repeat({2, 1, 1}).sizes(), (lazuli::Dims{2, 4, 3}));
  EXPECT_EQ(x.expand({2, 4, 3}).flatten(1).sizes(), (lazuli::Dims{2, 12}));
  EXPECT_EQ(torch::meshgrid({torch::arange(2), torch::arange(3)}, "ij")[0].sizes(),
            (lazuli::Dims{2, 3}));
  EXPECT_THAT(Numbers(torch::cumsum(torch::ones(3), 0)), ElementsAre(1, 2, 3));
  EXPECT_TRUE(x.isfinite().all().item<bool>());
  EXPECT_TRUE(torch::equal(torch::empty({5}).uniform_(1, 2) >= 1, torch::ones(5, torch::kBool)));
  EXPECT_EQ(torch::ones({3}).data_ptr<float>()[2], 1);
  EXPECT_EQ(torch::randperm(5).sum().item<int>(), 10);
  EXPECT_EQ(torch::multinomial(torch::ones(4), 2).numel(), 2);
  EXPECT_EQ(torch::bernoulli(torch::ones({2})).sum().item<int>(), 2);
}

TEST(TorchLinesTest, OptimisersAndSchedules) {
  const auto w = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD sgd(
      {w}, torch::optim::SGDOptions(1.0).momentum(0.9).weight_decay(1e-4).nesterov(true));
  torch::optim::StepLR schedule(sgd, 2, 0.1);
  schedule.step();
  EXPECT_DOUBLE_EQ(sgd.param_groups()[0].options().get_lr(), 1.0);
  schedule.step();
  EXPECT_DOUBLE_EQ(sgd.param_groups()[0].options().get_lr(), 0.1);
  static_cast<torch::optim::SGDOptions&>(sgd.param_groups()[0].options()).lr(0.5);
  EXPECT_EQ(sgd.lr(), 0.5);
  for (auto& group : sgd.param_groups()) group.options().set_lr(0.25);
  EXPECT_EQ(sgd.lr(), 0.25);
  torch::optim::ReduceLROnPlateauScheduler plateau(
      sgd, torch::optim::ReduceLROnPlateauScheduler::min, 0.5f, 0);
  plateau.step(1.0f);
  plateau.step(2.0f);
  EXPECT_EQ(sgd.lr(), 0.125);
  const torch::optim::AdamW adamw(
      {w}, torch::optim::AdamWOptions(1e-3).betas({0.9, 0.95}).weight_decay(0.1));
  EXPECT_EQ(adamw.lr(), 1e-3);
  const torch::optim::RMSprop rmsprop({w}, torch::optim::RMSpropOptions(1e-2).alpha(0.9));
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{w},
                      std::make_unique<torch::optim::AdamOptions>(0.5));
  EXPECT_EQ(torch::optim::Adam(std::move(groups), torch::optim::AdamOptions(0.1)).lr(), 0.5);
  EXPECT_NEAR(torch::nn::utils::clip_grad_norm_({w}, 1.0).item<float>(), 0, 1e-6);
}

namespace usings {
using namespace torch::nn;
using namespace torch::optim;
using namespace torch::indexing;
using torch::data::make_data_loader;

TEST(TorchLinesTest, NamesAreSaidOnce) {
  Sequential net(Linear(2, 3), ReLU(), Linear(LinearOptions(3, 1).bias(false)),
                 Dropout(DropoutOptions().p(0.1)), BatchNorm1d(1),
                 Embedding(EmbeddingOptions(1, 1)));
  SGD sgd(net->parameters(), SGDOptions(0.1));
  EXPECT_EQ(sgd.parameters().size(), 6U);
  init::xavier_uniform_(net->at<LinearImpl>(0).weight);
  init::constant_(net->at<LinearImpl>(0).bias, 0.5);
  EXPECT_EQ(net->at<LinearImpl>(0).bias[2].item<float>(), 0.5);
  EXPECT_EQ(MSELoss(MSELossOptions().reduction(torch::kSum))(torch::ones(2), torch::zeros(2))
                .item<float>(),
            2);
  EXPECT_EQ(functional::softmax(torch::ones({1, 2}), functional::SoftmaxFuncOptions(1))[0][0]
                .item<float>(),
            0.5);
}
}  // namespace usings

TEST(TorchLinesTest, WhatTensorsSayOfThemselves) {
  const auto x = torch::ones({2, 3}, torch::kDouble);
  EXPECT_EQ(x.scalar_type(), torch::kDouble);
  EXPECT_EQ(x.ndimension(), 2);
  EXPECT_EQ(x.element_size() * x.numel(), x.nbytes());
  EXPECT_TRUE(x.is_floating_point() && !x.is_complex() && !x.is_cuda());
  EXPECT_EQ(torch::zeros(2, x.options()).dtype(), torch::kDouble);
  EXPECT_EQ(torch::zeros(2).to(x.options()).dtype(), torch::kDouble);
  EXPECT_EQ(x.toType(torch::kInt).dtype(), torch::kInt);
  EXPECT_TRUE(x.equal(x.clone()) && !x.equal(x + 1));
  EXPECT_EQ(x.sizes().vec(), (std::vector<std::int64_t>{2, 3}));
  EXPECT_TRUE(x.sizes() == torch::IntArrayRef({2, 3}));
  EXPECT_EQ(torch::ones(6).view_as(x).reshape_as(x).sizes(), x.sizes());
  const torch::Device device("cpu:0");
  EXPECT_TRUE(device.is_cpu() && !device.is_cuda() && device.type() == torch::kCPU);
  EXPECT_EQ(device.index(), 0);
  EXPECT_EQ(torch::Scalar(2.5).to<int>(), 2);
  EXPECT_EQ(torch::add(x, 1, 3).sum().item(), 24);  // a number times alpha
  EXPECT_EQ(torch::sub(x, 1.5, 2).dtype(), torch::kDouble);
}

TEST(TorchLinesTest, MemoryFormatsAreTakenAndSayNothing) {
  const torch::Tensor x = torch::rand({2, 3, 4, 5});
  constexpr auto kLast = torch::MemoryFormat::ChannelsLast;
  EXPECT_TRUE(x.contiguous(kLast).is_contiguous(kLast));
  EXPECT_TRUE(x.to(kLast).is_same(x));
  EXPECT_EQ(x.transpose(1, 2).contiguous(kLast).strides(), (lazuli::Dims{60, 15, 5, 1}));
  EXPECT_EQ(x.suggest_memory_format(), torch::MemoryFormat::Contiguous);
  EXPECT_TRUE(torch::equal(x.clone(torch::MemoryFormat::Preserve), x));
  const auto options = torch::dtype(torch::kDouble).memory_format(kLast);
  EXPECT_EQ(torch::empty_like(x, options, kLast).dtype(), torch::kDouble);
  EXPECT_EQ(torch::empty({2, 3}, options, torch::MemoryFormat::Contiguous).dtype(), torch::kDouble);
  std::ostringstream text;
  text << kLast << ' ' << torch::MemoryFormat::Preserve;
  EXPECT_EQ(text.str(), "ChannelsLast Preserve");
}

TEST(TorchLinesTest, TensorsNameTheirTypes) {
  const torch::Tensor x = torch::rand({2, 3});
  std::ostringstream text;
  text << x.type() << ' ' << x.layout() << ' ' << torch::zeros(1, torch::kLong).toString();
  EXPECT_EQ(text.str(), "CPUFloatType Strided CPULongType");
  EXPECT_TRUE(x.type() == torch::ones(1).type());
  EXPECT_FALSE(x.type() == torch::ones(1, torch::kDouble).type());
  testing::internal::CaptureStderr();
  x.print();
  torch::Tensor().print();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[CPUFloatType [2, 3]]\n[UndefinedTensor]\n");
  EXPECT_TRUE(x.is_cpu() && x.is_signed() && !torch::ones(1, torch::kByte).is_signed());
  EXPECT_TRUE(x.is_alias_of(x[0]));
  EXPECT_FALSE(x.is_alias_of(x.clone()));
  EXPECT_EQ(x.get_device(), -1);
  EXPECT_TRUE(torch::ones(1).is_nonzero());
  EXPECT_EQ(x.numpy_T().sizes(), (lazuli::Dims{3, 2}));
  EXPECT_EQ(torch::ones({4, 2, 3}).mT().sizes(), (lazuli::Dims{4, 3, 2}));
  EXPECT_EQ(x.new_zeros({2}, x.options().dtype(torch::kInt)).dtype(), torch::kInt);
  EXPECT_EQ(x.new_ones(3, torch::dtype(torch::kDouble)).dtype(), torch::kDouble);
  EXPECT_EQ(x.sizes().slice(1), (lazuli::Dims{3}));
  torch::Tensor gone = x;
  gone.reset();
  EXPECT_FALSE(gone.defined());
}

TEST(TorchLinesTest, DispatchesOnTypes) {
  const auto size = [](const torch::Tensor& x) {
    return AT_DISPATCH_ALL_TYPES(x.scalar_type(), "size", [&] { return sizeof(scalar_t); });
  };
  EXPECT_EQ(size(torch::ones(1)), 4U);
  EXPECT_EQ(size(torch::ones(1, torch::kLong)), 8U);
  const auto first = [](const torch::Tensor& x) {
    double sum = 0;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "first", ([&] {
                                 const auto a = x.accessor<scalar_t, 1>();
                                 for (int64_t i = 0; i < x.size(0); ++i) sum += a[i];
                               }));
    return sum;
  };
  EXPECT_EQ(first(torch::full({3}, 2.0)), 6);
  EXPECT_THAT([&] { first(torch::ones(1, torch::kInt)); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("first is not implemented for s32")));
}

TEST(TorchLinesTest, FunctionsOfNamespacesHaveNamesOutside) {
  const torch::Tensor x = torch::tensor({{3.0, 0.0}, {0.0, 4.0}});
  EXPECT_FLOAT_EQ(torch::linalg_norm(x).item<float>(), 5);
  EXPECT_FLOAT_EQ(torch::linalg_multi_dot({x, x, x})[1][1].item<float>(), 64);
  EXPECT_FLOAT_EQ(torch::special_expit(torch::zeros(1)).item<float>(), 0.5);
  EXPECT_NEAR(torch::pairwise_distance(x[0], x[1]).item<float>(), 5, 1e-5);
  EXPECT_NEAR(torch::cosine_similarity(x, x)[0].item<float>(), 1, 1e-6);
}

TEST(TorchLinesTest, HooksNeedNoResult) {
  auto x = torch::ones(2, torch::requires_grad());
  std::vector<float> seen;
  x.register_hook([&](const torch::Tensor& grad) { seen = Numbers(grad); });
  (x * 3).sum().backward();
  EXPECT_THAT(seen, ElementsAre(3, 3));
  EXPECT_THAT(Numbers(x.grad()), ElementsAre(3, 3));
}

TEST(TorchLinesTest, GeneratorsAndSpans) {
  const auto generator = torch::make_generator<torch::CPUGeneratorImpl>(42);
  const auto same = torch::make_generator<torch::CPUGeneratorImpl>(42);
  EXPECT_TRUE(torch::equal(torch::rand({4}, generator), torch::rand({4}, same)));
  const std::vector<float> numbers{1, 2};
  EXPECT_THAT(Numbers(torch::tensor(torch::ArrayRef<float>(numbers))), ElementsAre(1, 2));
  EXPECT_EQ(torch::get_default_dtype(), torch::kFloat);
  TORCH_CHECK_GE(2, 1);
  EXPECT_THAT([] { TORCH_CHECK_VALUE(false, "no ", 3); },
              testing::ThrowsMessage<lazuli::Error>(testing::StartsWith("no 3")));
}

struct Base : torch::nn::Module {
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};
struct Twice : Base {
  torch::Tensor forward(const torch::Tensor& x) override { return x * 2; }
};
struct Outer : torch::nn::Module {
  Outer() { inner = register_module("inner", std::shared_ptr<Base>(std::make_shared<Twice>())); }
  std::shared_ptr<Base> inner;
};

TEST(TorchLinesTest, ProgramsHaveABaseOfTheirOwn) {
  Outer outer;
  outer.to(torch::kCPU, /*non_blocking=*/true);
  EXPECT_EQ(outer.inner->forward(torch::ones(1)).item<float>(), 2);
  for (const auto& child : outer.named_children()) EXPECT_EQ(child.key(), "inner");
}

TEST(TorchLinesTest, InitialisesMatrices) {
  torch::manual_seed(0);
  for (const auto& dims : {lazuli::Dims{3, 5}, lazuli::Dims{6, 2}, lazuli::Dims{4, 2, 2}}) {
    torch::Tensor w = torch::empty(dims);
    torch::nn::init::orthogonal_(w, 2);
    const torch::Tensor rows = w.view({dims[0], -1});
    const torch::Tensor products =
        rows.size(0) <= rows.size(1) ? rows.mm(rows.t()) : rows.t().mm(rows);
    EXPECT_TRUE(torch::allclose(products, torch::eye(products.size(0)) * 4, 1e-5, 1e-5));
  }
  torch::Tensor kernel = torch::empty({2, 2, 3});
  torch::nn::init::dirac_(kernel);
  EXPECT_THAT(Numbers(kernel), ElementsAre(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0));
  torch::Tensor sparse = torch::empty({5, 4});
  torch::nn::init::sparse_(sparse, 0.5);
  EXPECT_THAT(Numbers((sparse == 0).sum(0)), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT([] { torch::nn::init::dirac_(torch::empty({2, 2})); },
              testing::ThrowsMessage<lazuli::Error>(
                  testing::StartsWith("dirac_: takes rank 3 to 5, not rank 2")));
  torch::Tensor w = torch::empty({4, 4});
  torch::nn::init::kaiming_normal_(w, 0, torch::kFanOut, torch::kReLU);
  EXPECT_LT(w.abs().max().item(), 10);
}

}  // namespace
