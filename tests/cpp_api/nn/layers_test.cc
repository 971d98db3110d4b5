#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

std::vector<float> Values(const Tensor& tensor) { return tensor.to_vector<float>(); }

void Set(Tensor tensor, const std::vector<float>& values) {
  const NoGrad no_grad;
  tensor.copy_(lazuli::tensor(values, tensor.sizes()));
}

// Uniform in +-bound: inside, and not only near the middle.
void ExpectUniform(const Tensor& tensor, double bound) {
  const std::vector<float> values = Values(tensor);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -bound);
  EXPECT_LE(*high, bound);
  EXPECT_LT(*low, -0.8 * bound);
  EXPECT_GT(*high, 0.8 * bound);
}

TEST(LayersTest, LinearIsXTimesWeightTransposedPlusBias) {
  const nn::Linear linear(3, 2);
  EXPECT_EQ(linear.weight.sizes(), (Dims{2, 3}));
  Set(linear.weight, {1, 2, 3, 4, 5, 6});
  Set(linear.bias, {10, 20});
  EXPECT_THAT(Values(linear(tensor({{1.f, 1.f, 1.f}, {1.f, 0.f, -1.f}}))),
              ElementsAre(16, 35, 8, 18));
  EXPECT_EQ(linear(ones({5, 4, 3})).sizes(), (Dims{5, 4, 2}));
}

TEST(LayersTest, LinearWithoutBias) {
  const nn::Linear linear(3, 2, {.bias = false});
  EXPECT_FALSE(linear.bias.defined());
  EXPECT_EQ(linear.parameters().size(), 1u);
  Set(linear.weight, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Values(linear(ones({1, 3}))), ElementsAre(6, 15));
}

TEST(LayersTest, ParametersStartAsPyTorchsDo) {
  manual_seed(3);
  const nn::Linear linear(100, 50);
  ExpectUniform(linear.weight, 0.1);
  ExpectUniform(linear.bias, 0.1);
  const nn::Conv2d conv(4, 64, 5);  // fan in 4 * 5 * 5
  ExpectUniform(conv.weight, 0.1);
  ExpectUniform(conv.bias, 0.1);
  manual_seed(3);
  EXPECT_EQ(Values(nn::Linear(100, 50).weight), Values(linear.weight));
}

TEST(LayersTest, Conv2dCrossCorrelates) {
  const nn::Conv2d conv(1, 1, {2, 2});
  Set(conv.weight, {1, 2, 3, 4});
  Set(conv.bias, {0.5});
  const Tensor x = arange(9, kFloat32).reshape({1, 1, 3, 3});
  EXPECT_THAT(Values(conv(x)), ElementsAre(27.5, 37.5, 57.5, 67.5));
}

TEST(LayersTest, Conv2dTakesStridePaddingDilationAndGroups) {
  const nn::Conv2d conv(4, 6, {3, 5}, {.stride = {1, 2}, .padding = 2, .dilation = 1, .groups = 2});
  EXPECT_EQ(conv.weight.sizes(), (Dims{6, 2, 3, 5}));
  EXPECT_EQ(conv(ones({2, 4, 8, 9})).sizes(), (Dims{2, 6, 10, 5}));
  EXPECT_FALSE(nn::Conv2d(1, 1, 3, {.bias = false}).bias.defined());
}

TEST(LayersTest, BilinearSumsProductsOfTwo) {
  const nn::Bilinear bilinear(2, 3, 1);
  EXPECT_EQ(bilinear.weight.sizes(), (Dims{1, 2, 3}));
  Set(bilinear.weight, {1, 2, 3, 4, 5, 6});
  Set(bilinear.bias, {0.5});
  EXPECT_THAT(Values(bilinear(tensor({{1.f, 2.f}}), tensor({{1.f, 0.f, -1.f}}))[0]),
              ElementsAre(1 - 3 + 2 * (4 - 6) + 0.5f));
  EXPECT_FALSE(nn::Bilinear(2, 3, 4, {.bias = false}).bias.defined());
  ExpectUniform(nn::Bilinear(16, 8, 8).weight, 0.25);
  EXPECT_ERROR(kInvalidArgument, "Bilinear: in2_features is 0, it must be at least 1",
               nn::Bilinear(1, 0, 1));
}

TEST(LayersTest, EmbeddingBagReducesRows) {
  const nn::EmbeddingBag sums(3, 2, {.mode = "sum"}), means(3, 2);
  for (const nn::EmbeddingBag* bag : {&sums, &means}) Set(bag->weight, {1, 2, 3, 4, 5, 6});
  const Tensor x = tensor<std::int64_t>({0, 2, 1}), offsets = tensor<std::int64_t>({0, 2});
  EXPECT_THAT(Values(flatten(sums(x, offsets))), ElementsAre(6, 8, 3, 4));
  EXPECT_THAT(Values(flatten(means(x, offsets))), ElementsAre(3, 4, 3, 4));
  EXPECT_THAT(Values(flatten(sums(x.reshape({1, 3})))), ElementsAre(9, 12));
  EXPECT_THAT(Values(flatten(sums(x, offsets, tensor({1.f, 0.f, 2.f})))), ElementsAre(1, 2, 6, 8));
  EXPECT_THAT(Values(nn::EmbeddingBag(3, 2, {.padding_idx = 1}).weight[1]), ElementsAre(0, 0));
  EXPECT_ERROR(kOutOfRange, "EmbeddingBag: padding_idx 3 is out of range for 3 rows",
               nn::EmbeddingBag(3, 2, {.padding_idx = 3}));
}

TEST(LayersTest, ConvolutionsPadByMoreThanZeros) {
  const Tensor x = reshape(arange(9, kFloat32), {1, 1, 3, 3});
  const auto sums = [&](const char* mode) {  // of the first row
    const nn::Conv2d conv(1, 1, {3, 2}, {.padding = 1, .bias = false, .padding_mode = mode});
    Set(conv.weight, std::vector<float>(6, 1));
    return Values(conv(x)[0][0][0]);
  };
  EXPECT_THAT(sums("reflect"), ElementsAre(15, 15, 21, 21));
  EXPECT_THAT(sums("replicate"), ElementsAre(6, 9, 15, 18));
  EXPECT_THAT(sums("circular"), ElementsAre(24, 21, 27, 24));
  EXPECT_THAT(sums("zeros"), ElementsAre(3, 8, 12, 7));
  const nn::Conv2d wide(1, 1, {3, 2},
                        {.padding = {0, 2}, .bias = false, .padding_mode = "replicate"});
  Set(wide.weight, std::vector<float>(6, 1));
  EXPECT_THAT(Values(flatten(wide(x))), ElementsAre(18, 18, 21, 27, 30, 30));
  const nn::Conv2d same(1, 1, 2, {.padding = "same", .bias = false, .padding_mode = "replicate"});
  Set(same.weight, {1, 1, 1, 1});
  EXPECT_THAT(Values(flatten(same(x))), ElementsAre(8, 12, 14, 20, 24, 26, 26, 30, 32));
  const nn::Conv1d row(1, 1, 3, {.padding = 2, .bias = false, .padding_mode = "circular"});
  Set(row.weight, {1, 2, 3});
  EXPECT_THAT(Values(row(arange(3, kFloat32).reshape({1, 1, 3}))[0][0]),
              ElementsAre(5, 5, 8, 5, 5));
  const nn::Conv3d volume(1, 1, 3, {.padding = {1}, .bias = false, .padding_mode = "replicate"});
  Set(volume.weight, std::vector<float>(27, 1));
  EXPECT_THAT(Values(flatten(volume(arange(8, kFloat32).reshape({1, 1, 2, 2, 2})))),
              ElementsAre(63, 72, 81, 90, 99, 108, 117, 126));
  EXPECT_ERROR(kInvalidArgument,
               "Conv2d: padding_mode is 'mirror', it must be 'zeros', 'reflect', 'replicate' or "
               "'circular'",
               nn::Conv2d(1, 1, 2, {.padding_mode = "mirror"}));
}

TEST(LayersTest, DropoutsWriteToTheirInputOnDemand) {
  Tensor x = ones({4, 8, 5});
  EXPECT_TRUE(nn::Dropout(0.5, true)(x).is_same(x));
  EXPECT_THAT(Values(flatten(x)), testing::Contains(0));
  Tensor y = ones({4, 8, 5});
  const Tensor channels = nn::Dropout1d(0.5, true)(y);
  EXPECT_TRUE(channels.is_same(y));
  EXPECT_THAT(Values(sum(y, {2})), Each(testing::AnyOf(0, 10)));
  nn::Dropout idle(0.5, true);
  idle.eval();
  Tensor z = ones({8});
  idle(z);
  EXPECT_THAT(Values(z), Each(1));
}

TEST(LayersTest, MaxPool2dStepsByItsKernelUnlessTold) {
  const Tensor x = arange(16, kFloat32).reshape({1, 1, 4, 4});
  EXPECT_THAT(Values(nn::MaxPool2d(2)(x)), ElementsAre(5, 7, 13, 15));
  EXPECT_EQ(nn::MaxPool2d(2, {.stride = 1})(x).sizes(), (Dims{1, 1, 3, 3}));
}

TEST(LayersTest, ActivationsAreTheFunctionsOfTheirNames) {
  const Tensor x = tensor({-1.0f, 0.0f, 2.0f});
  EXPECT_EQ(Values(nn::ReLU()(x)), Values(relu(x)));
  EXPECT_EQ(Values(nn::Tanh()(x)), Values(tanh(x)));
  EXPECT_EQ(Values(nn::Sigmoid()(x)), Values(sigmoid(x)));
  EXPECT_EQ(Values(nn::GELU()(x)), Values(gelu(x)));
}

TEST(LayersTest, FlattenKeepsTheBatch) {
  EXPECT_EQ(nn::Flatten()(ones({2, 3, 4})).sizes(), (Dims{2, 12}));
  EXPECT_EQ(nn::Flatten(0, 1)(ones({2, 3, 4})).sizes(), (Dims{6, 4}));
}

TEST(LayersTest, DropoutScalesInTrainingAndDoesNothingInEvaluation) {
  manual_seed(1);
  nn::Dropout dropout(0.25);
  const std::vector<float> y = Values(dropout(ones({4000})));
  EXPECT_THAT(y, Each(testing::AnyOf(0.0f, FloatNear(1 / 0.75f, 1e-6f))));
  EXPECT_NEAR(std::count(y.begin(), y.end(), 0.0f), 1000, 120);
  dropout.eval();
  EXPECT_THAT(Values(dropout(ones({4}))), Each(1.0f));
}

TEST(LayersTest, BatchNormCompilesOneProgramForTrainingAndOneForEvaluation) {
  nn::BatchNorm2d norm(2);
  const Tensor x = tensor(std::vector<float>(2 * 2 * 3 * 3, 0.5f), {2, 2, 3, 3});
  mark_step();
  const std::int64_t before = metrics::counter("UncachedCompile");
  for (int epoch = 0; epoch < 3; ++epoch) {
    norm.train();
    for (int step = 0; step < 2; ++step) {
      norm(x);
      mark_step();
    }
    norm.eval();
    const Tensor y = norm(x);
    mark_step();
  }
  EXPECT_EQ(metrics::counter("UncachedCompile") - before, 2);
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 6);
}

TEST(LayersTest, RunningStatisticsWithoutMomentumAreMeansOverBatches) {
  const nn::BatchNorm3d norm(1, {.momentum = std::nullopt, .bias = false});
  EXPECT_FALSE(norm.bias.defined());
  for (const float last : {2.0f, 8.0f}) norm(tensor({0.0f, last}).reshape({1, 1, 1, 1, 2}));
  EXPECT_THAT(Values(norm.running_mean), ElementsAre(2.5));
  EXPECT_THAT(Values(norm.running_var), ElementsAre(17));
  EXPECT_FALSE(nn::GroupNorm(1, 2, {.bias = false}).bias.defined());
}

TEST(LayersTest, SequentialCallsOneAfterTheOther) {
  nn::Sequential net(
      nn::Linear(3, 4), nn::ReLU(), [](const Tensor& x) { return x * 2.0; }, nn::Linear(4, 1));
  EXPECT_EQ(net.size(), 4u);
  EXPECT_EQ(net.parameters().size(), 4u);
  EXPECT_EQ(net.named_parameters()[2].first, "3.weight");
  const Tensor x = ones({2, 3});
  EXPECT_EQ(Values(net(x)), Values(net[3](net[1](net[0](x)) * 2.0)));
  EXPECT_TRUE(net[0].get<nn::Linear>()->weight.is_same(net.parameters()[0]));
  EXPECT_EQ(net[0].get<nn::ReLU>(), nullptr);
}

TEST(LayersTest, SequentialTakesModulesOfUsersAndOtherSequentials) {
  struct Twice : nn::Module {
    nn::Linear inner{2, 2};
    Twice() { register_module("inner", inner); }
    Tensor forward(const Tensor& x) const { return inner(inner(x)); }
  };
  nn::Sequential net(Twice(), nn::Sequential(nn::Linear(2, 1), nn::Tanh()));
  EXPECT_EQ(net.named_parameters()[0].first, "0.inner.weight");
  EXPECT_EQ(net.named_parameters()[2].first, "1.0.weight");
  EXPECT_EQ(net(ones({5, 2})).sizes(), (Dims{5, 1}));
  net.eval();
  EXPECT_FALSE(net[1].is_training());
}

TEST(LayersTest, WrongArgumentsAreErrorsWithTheCallersLine) {
  EXPECT_ERROR(kInvalidArgument, "Linear: in_features is 0, it must be at least 1",
               nn::Linear(0, 3));
  EXPECT_ERROR(kInvalidArgument, "Linear: out_features is -1, it must be at least 1",
               nn::Linear(3, -1));
  EXPECT_ERROR(kInvalidArgument, "Conv2d: the kernel's width is 0, it must be at least 1",
               nn::Conv2d(1, 2, {3, 0}));
  EXPECT_ERROR(kInvalidArgument,
               "Conv2d: groups = 2 does not divide in_channels = 3 and out_channels = 4",
               nn::Conv2d(3, 4, 3, {.groups = 2}));
  EXPECT_ERROR(kInvalidArgument, "MaxPool2d: the kernel's height is 0, it must be at least 1",
               nn::MaxPool2d(0));
  EXPECT_ERROR(kInvalidArgument, "Dropout: p is 1.5, it must be a probability from 0 to 1",
               nn::Dropout(1.5));
  EXPECT_ERROR(kOutOfRange, "Sequential: there is no module 1, the size is 1",
               nn::Sequential(nn::ReLU()).at(1));
}

TEST(LayersTest, WrongInputsAreErrorsWithTheCallersLine) {
  struct Net : nn::Module {
    nn::Linear fc1{9216, 128};
    Net() { register_module("fc1", fc1); }
  } net;
  const Tensor x = ones({64, 12544});
  EXPECT_ERROR(kInvalidArgument,
               "linear: the last dim of x must be 9216, as fc1.weight is f32[128,9216], but x is "
               "f32[64,12544]",
               net.fc1(x));
  nn::Sequential deep(nn::Flatten(), nn::Sequential(net.fc1));
  std::string message;
  try {
    deep(x);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr("(layers_test.cc:")) << "the line of deep(x), not of Sequential";
  EXPECT_ERROR(kInvalidArgument, "linear: operand 0 is an undefined tensor", net.fc1(Tensor()));
}

TEST(LossesTest, MseLossReduces) {
  using enum nn::Reduction;
  const Tensor x = tensor({1.0f, 2.0f, 4.0f}), y = tensor({1.0f, 0.0f, 1.0f});
  EXPECT_FLOAT_EQ(nn::functional::mse_loss(x, y).item<float>(), 13.0f / 3);
  EXPECT_EQ(nn::functional::mse_loss(x, y, kSum).item<float>(), 13);
  EXPECT_THAT(Values(nn::functional::mse_loss(x, y, kNone)), ElementsAre(0, 4, 9));
}

TEST(LossesTest, CrossEntropyIsTheNegativeLogProbabilityOfTheTarget) {
  using enum nn::Reduction;
  const Tensor logits = tensor({{1.0f, 2.0f, 3.0f}, {0.0f, 0.0f, 0.0f}});
  const Tensor target = tensor<std::int64_t>({2, 0});
  const float first = std::log(std::exp(-2.0f) + std::exp(-1.0f) + 1), second = std::log(3.0f);
  EXPECT_THAT(Values(nn::functional::cross_entropy(logits, target, {}, {}, kNone)),
              ElementsAre(FloatNear(first, 1e-6f), FloatNear(second, 1e-6f)));
  EXPECT_NEAR(nn::functional::cross_entropy(logits, target).item(), (first + second) / 2, 1e-6);
  EXPECT_NEAR(nn::functional::nll_loss(log_softmax(logits, 1), target, {}, {}, kSum).item(),
              first + second, 1e-6);
}

}  // namespace
}  // namespace lazuli
