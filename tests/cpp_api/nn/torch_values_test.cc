// Values and gradients of activations, losses and normalisation, next to those that PyTorch 2.13
// gives for the same call.
#include <functional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace F = nn::functional;
using Floats = std::vector<float>;

void ExpectNear(const Tensor& actual, const Floats& expected) {
  const Floats values = actual.to_vector<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 2e-6f + 2e-6f * std::abs(expected[i])) << "element " << i;
}

Tensor Leaf(const Floats& values, const Dims& dims) {
  return tensor(values, dims).set_requires_grad(true);
}

struct Activation {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  Floats values, gradients;
};

TEST(ActivationsTest, GivePyTorchsValuesAndGradients) {
  const std::vector<Activation> kActivations = {
      {"gelu",
       [](const Tensor& x) { return gelu(x); },
       {-0.0f, -0.00405022502f, -0.158655256f, -0.154268771f, 0.0f, 0.345731229f, 0.841344714f,
        2.99594975f, 6.0f, 30.0f},
       {0.0f, -0.0119456053f, -0.0833154321f, 0.13250491f, 0.5f, 0.86749506f, 1.08331537f,
        1.01194561f, 1.0f, 1.0f}},
      {"gelu_tanh",
       [](const Tensor& x) { return gelu(x, "tanh"); },
       {-0.0f, -0.00363743305f, -0.158807993f, -0.154285997f, 0.0f, 0.345714003f, 0.841192007f,
        2.99636269f, 6.0f, 30.0f},
       {0.0f, -0.0115842968f, -0.0829640925f, 0.13263011f, 0.5f, 0.86736989f, 1.08296406f,
        1.01158428f, 1.0f, 1.0f}},
      {"silu",
       [](const Tensor& x) { return silu(x); },
       {-2.80728695e-12f, -0.142277613f, -0.268941432f, -0.188770339f, 0.0f, 0.311229676f,
        0.731058598f, 2.85772252f, 5.98516464f, 30.0f},
       {-2.71371077e-12f, -0.0881041065f, 0.0723294839f, 0.260038823f, 0.5f, 0.739961207f,
        0.927670538f, 1.08810413f, 1.01232624f, 1.0f}},
      {"leaky_relu",
       [](const Tensor& x) { return leaky_relu(x, 0.1); },
       {-3.0f, -0.300000012f, -0.100000001f, -0.0500000007f, 0.0f, 0.5f, 1.0f, 3.0f, 6.0f, 30.0f},
       {0.100000001f, 0.100000001f, 0.100000001f, 0.100000001f, 0.100000001f, 1.0f, 1.0f, 1.0f,
        1.0f, 1.0f}},
      {"elu",
       [](const Tensor& x) { return elu(x, 1.5); },
       {-1.5f, -1.42531943f, -0.948180795f, -0.590204f, 0.0f, 0.5f, 1.0f, 3.0f, 6.0f, 30.0f},
       {1.40364337e-13f, 0.0746805966f, 0.551819205f, 0.909796f, 1.5f, 1.0f, 1.0f, 1.0f, 1.0f,
        1.0f}},
      {"celu",
       [](const Tensor& x) { return celu(x, 2.0); },
       {-1.9999994f, -1.55373967f, -0.786938667f, -0.442398429f, 0.0f, 0.5f, 1.0f, 3.0f, 6.0f,
        30.0f},
       {3.05902319e-07f, 0.223130167f, 0.606530666f, 0.778800786f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f,
        1.0f}},
      {"selu",
       [](const Tensor& x) { return selu(x); },
       {-1.75809932f, -1.6705687f, -1.11133075f, -0.691758156f, 0.0f, 0.525350511f, 1.05070102f,
        3.15210295f, 6.30420589f, 31.5210304f},
       {1.64516309e-13f, 0.0875306055f, 0.64676863f, 1.06634116f, 1.75809932f, 1.05070102f,
        1.05070102f, 1.05070102f, 1.05070102f, 1.05070102f}},
      {"softplus",
       [](const Tensor& x) { return softplus(x, 2.0, 20.0); },
       {4.37825545e-27f, 0.0012378426f, 0.0634640008f, 0.156630844f, 0.346573591f, 0.656630814f,
        1.06346405f, 3.00123787f, 6.00000286f, 30.0f},
       {8.75651089e-27f, 0.00247262325f, 0.119202919f, 0.268941432f, 0.5f, 0.731058598f,
        0.880797088f, 0.997527361f, 0.999993861f, 1.0f}},
      {"log_sigmoid",
       [](const Tensor& x) { return log_sigmoid(x); },
       {-30.0f, -3.04858732f, -1.31326175f, -0.974076986f, -0.693147182f, -0.474076986f,
        -0.313261688f, -0.048587352f, -0.00247568521f, -9.35762291e-14f},
       {1.0f, 0.952574134f, 0.731058598f, 0.622459292f, 0.5f, 0.377540678f, 0.268941432f,
        0.0474258736f, 0.00247262325f, 9.35762291e-14f}},
      {"hardtanh",
       [](const Tensor& x) { return hardtanh(x, -1.0, 0.5); },
       {-1.0f, -1.0f, -1.0f, -0.5f, 0.0f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f},
       {0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}},
      {"relu6",
       [](const Tensor& x) { return relu6(x); },
       {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.5f, 1.0f, 3.0f, 6.0f, 6.0f},
       {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 1.0f, 0.0f, 0.0f}},
      {"hardsigmoid",
       [](const Tensor& x) { return hardsigmoid(x); },
       {0.0f, 0.0f, 0.333333343f, 0.416666657f, 0.5f, 0.583333313f, 0.666666687f, 1.0f, 1.0f, 1.0f},
       {0.0f, 0.0f, 0.166666672f, 0.166666672f, 0.166666672f, 0.166666672f, 0.166666672f, 0.0f,
        0.0f, 0.0f}},
      {"hardswish",
       [](const Tensor& x) { return hardswish(x); },
       {-0.0f, -0.0f, -0.333333343f, -0.208333328f, 0.0f, 0.291666657f, 0.666666687f, 3.0f, 6.0f,
        30.0f},
       {0.0f, 0.0f, 0.166666657f, 0.333333313f, 0.5f, 0.666666687f, 0.833333373f, 1.0f, 1.0f,
        1.0f}},
      {"mish",
       [](const Tensor& x) { return mish(x); },
       {-2.80728695e-12f, -0.145647466f, -0.30340144f, -0.22074376f, 0.0f, 0.375245243f,
        0.865098357f, 2.98653507f, 5.99992657f, 30.0f},
       {-2.71371098e-12f, -0.0933931246f, 0.0592167303f, 0.289510638f, 0.600000024f, 0.886424422f,
        1.04903626f, 1.02110696f, 1.00013399f, 1.0f}},
      {"softsign",
       [](const Tensor& x) { return softsign(x); },
       {-0.967741907f, -0.75f, -0.5f, -0.333333343f, 0.0f, 0.333333343f, 0.5f, 0.75f, 0.857142866f,
        0.967741907f},
       {0.00104058348f, 0.0625f, 0.25f, 0.444444478f, 1.0f, 0.444444478f, 0.25f, 0.0625f,
        0.0204081684f, 0.00104058348f}},
  };
  for (const Activation& activation : kActivations) {
    SCOPED_TRACE(activation.name);
    const Tensor x = Leaf({-30, -3, -1, -0.5, 0, 0.5, 1, 3, 6, 30}, {10});
    const Tensor y = activation.f(x);
    ExpectNear(y, activation.values);
    sum(y).backward();
    ExpectNear(x.grad(), activation.gradients);
  }
}

TEST(ActivationsTest, TakeIntegersAsFloats) {
  const Tensor x = tensor({-1, 0, 2});
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& t) { return gelu(t); }, [](const Tensor& t) { return elu(t); },
           [](const Tensor& t) { return leaky_relu(t, 0.25); },
           [](const Tensor& t) { return softplus(t); }})
    EXPECT_EQ(f(x).to_vector<float>(), f(x.to(kFloat32)).to_vector<float>());
}

// A slope is a number of the program, not a part of it.
TEST(ActivationsTest, ChangingANumberCompilesNothing) {
  leaky_relu(ones({3}), 0.1).to_vector<float>();
  const std::int64_t before = metrics::counter("UncachedCompile");
  leaky_relu(ones({3}), 0.2).to_vector<float>();
  EXPECT_EQ(metrics::counter("UncachedCompile"), before);
}

TEST(ActivationsTest, PreluHasOneSlopeOrOneAChannel) {
  const Tensor x = tensor<float>({-1, -2, 3, -4}).reshape({2, 2});
  EXPECT_EQ(prelu(x, tensor({0.5f})).to_vector<float>(), (Floats{-0.5, -1, 3, -2}));
  EXPECT_EQ(prelu(x, tensor({0.5f, 0.25f})).to_vector<float>(), (Floats{-0.5, -0.5, 3, -1}));
  EXPECT_ERROR(kInvalidArgument,
               "prelu: weight f32[3] is neither one number nor one for each channel (dim 1) of "
               "f32[2,2]",
               prelu(x, ones({3})));
}

TEST(ActivationsTest, GluHalvesADim) {
  ExpectNear(glu(tensor<float>({1, 2, 0, 100})), {0.5f, 2.0f});
  EXPECT_ERROR(kInvalidArgument, "glu: dim 0 of f32[3] is odd and cannot be halved",
               glu(ones({3})));
}

struct Loss {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> f;
  float value;
  Floats gradient;
};

TEST(LossesTest, GivePyTorchsValuesAndGradients) {
  const std::vector<Loss> kLosses = {
      {"l1_loss",
       [](const Tensor& x, const Tensor& y) { return F::l1_loss(x, y); },
       1.45000005f,
       {0.25f, -0.25f, 0.25f, -0.25f}},
      {"smooth_l1_loss",
       [](const Tensor& x, const Tensor& y) { return F::smooth_l1_loss(x, y, 0.6); },
       1.17083335f,
       {0.208333328f, -0.25f, 0.25f, -0.125f}},
      {"huber_loss",
       [](const Tensor& x, const Tensor& y) {
         return F::huber_loss(x, y, nn::Reduction::kMean, 0.6);
       },
       0.702500105f,
       {0.125f, -0.150000006f, 0.150000006f, -0.075000003f}},
  };
  for (const Loss& loss : kLosses) {
    SCOPED_TRACE(loss.name);
    const Tensor x = Leaf({0.5, -1, 2, 0}, {4});
    const Tensor value = loss.f(x, tensor({0.0f, 1.0f, -1.0f, 0.3f}));
    ExpectNear(value, {loss.value});
    value.backward();
    ExpectNear(x.grad(), loss.gradient);
  }
}

TEST(LossesTest, BinaryCrossEntropyTakesWeights) {
  const Tensor x = Leaf({0.5, -1, 2, 0}, {4}), y = tensor({0.0f, 1.0f, 1.0f, 0.3f});
  const Tensor loss = F::binary_cross_entropy_with_logits(x, y, tensor({1.0f, 2.0f, 0.5f, 1.0f}),
                                                          tensor({3.0f, 1.0f, 0.5f, 2.0f}));
  ExpectNear(loss, {1.13335598f});
  loss.backward();
  ExpectNear(x.grad(), {0.155614838f, -0.365529299f, -0.00745018572f, 0.0124999881f});
}

TEST(LossesTest, BinaryCrossEntropyOfProbabilitiesIsFiniteAtTheEnds) {
  const Tensor p = Leaf({0, 0.25, 0.9, 1}, {4});
  const Tensor loss =
      F::binary_cross_entropy(p, tensor({0.0f, 1.0f, 1.0f, 0.3f}), {}, nn::Reduction::kSum);
  ExpectNear(loss, {71.4916534f});
  loss.backward();
  ExpectNear(p.grad(), {0.0f, -4.0f, -1.11111116f, 6.99999977e+11f});
}

TEST(LossesTest, KlDivOfATargetWithZeros) {
  const Tensor x = log_softmax(tensor({{1.f, 2.f, 3.f}, {0.f, 0.f, 1.f}}), 1);
  const Tensor y = tensor({{0.2f, 0.3f, 0.5f}, {0.f, 0.4f, 0.6f}});
  ExpectNear(F::kl_div(x, y, false, nn::Reduction::kSum), {0.356386006f});
  ExpectNear(F::kl_div(x, log(clamp(y, 0.1, 1.0)), true), {0.0468786545f});
}

TEST(LossesTest, MistakesAreRefused) {
  const Tensor x = ones({2});
  EXPECT_ERROR(kWrongType, "l1_loss: takes floats, not s32[2] and s32[2]; convert with to()",
               F::l1_loss(tensor({1, 2}), tensor({1, 2})));
  EXPECT_ERROR(kInvalidArgument, "smooth_l1_loss: beta must be above 0, is -1",
               F::smooth_l1_loss(x, x, -1.0));
  EXPECT_ERROR(kInvalidArgument, "huber_loss: delta must be above 0, is -1",
               F::huber_loss(x, x, nn::Reduction::kMean, -1));
  EXPECT_ERROR(kInvalidArgument,
               "binary_cross_entropy_with_logits: shapes differ: f32[2] and f32[3]",
               F::binary_cross_entropy_with_logits(x, ones({3})));
}

void SetTo(Tensor tensor, const Floats& values) {
  const NoGrad no_grad;
  tensor.copy_(lazuli::tensor(values, tensor.sizes()));
}
Tensor Sines(const Dims& dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return sin(arange(n, kFloat32)).reshape(dims).detach().set_requires_grad(true);
}
Tensor Counted(const Tensor& x) { return arange(x.numel(), kFloat32).reshape(x.sizes()); }

TEST(NormTest, BatchNorm2dTrainsAndEvaluates) {
  nn::BatchNorm2d norm(3, {.momentum = 0.3});
  SetTo(norm.weight, {1, 2, 0.5});
  SetTo(norm.bias, {0, -1, 1});
  const Tensor x = Sines({2, 3, 2, 2});
  const Tensor y = norm(x);
  ExpectNear(
      y, {-0.861763f,    0.836289406f,   0.973160267f, -0.576988876f, -2.3290596f,   -3.07894254f,
          -0.557927132f, 2.91617656f,    1.58887148f,  1.20922482f,   0.580378294f,  0.280490577f,
          -1.9445442f,   -0.0138839148f, 1.13724029f,  0.450490087f,  -0.589417398f, -3.08811808f,
          -2.30748463f,  1.03477263f,    1.53861511f,  1.48843992f,   0.932355821f,  0.381623954f});
  sum(y * Counted(x)).backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  const Floats dx = x.grad().to_vector<float>();
  const Floats expected = {-15.0878696f, -13.1621475f, -11.1516237f, -9.04946709f, -27.7403603f,
                           -23.9823132f, -20.4335976f, -16.9458771f, -4.89433575f, -4.26137543f,
                           -3.64464927f, -3.00649285f, 9.18642902f,  11.0995188f,  13.0549498f,
                           15.1102095f,  16.6689739f,  20.5389404f,  24.1990376f,  27.6951962f,
                           2.99470806f,  3.64913273f,  4.27059841f,  4.89241362f};
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], expected[i], 1e-4);
  const Floats dw = norm.weight.grad().to_vector<float>(),
               dw_expected = {0.215335533f, 0.275996983f, -0.396213055f};
  for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(dw[i], dw_expected[i], 1e-4);
  ExpectNear(norm.bias.grad(), {60.0f, 92.0f, 124.0f});
  ExpectNear(norm.running_mean, {0.128114179f, -0.119571246f, 0.0281997994f});
  ExpectNear(norm.running_var, {0.784192145f, 0.799631655f, 0.898152292f});
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
  norm.eval();
  const Tensor evaluated = norm(x);
  ExpectNear(narrow(narrow(narrow(evaluated, 0, 0, 1), 2, 0, 1), 3, 0, 1),
             {-0.144671574f, -2.42521167f, 1.50709295f});
  EXPECT_EQ(norm.num_batches_tracked.item<std::int64_t>(), 1);
}

TEST(NormTest, LayerNorm) {
  nn::LayerNorm norm(3);
  SetTo(norm.weight, {1, 2, 0.5});
  SetTo(norm.bias, {0, -1, 1});
  const Tensor x = Sines({2, 3});
  const Tensor y = norm(x);
  ExpectNear(y, {-1.41099918f, 0.24700892f, 1.39374745f, 1.39296067f, -1.97020936f, 0.546072006f});
  sum(y * Counted(x)).backward();
  const Floats dx = x.grad().to_vector<float>(),
               expected = {-0.104220174f, 1.39545226f, -1.29123223f,
                           -1.22262144f,  6.65367174f, -5.43105221f};
  for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], expected[i], 2e-5);
}

TEST(NormTest, GroupNormAndRmsNorm) {
  const Tensor x = Sines({1, 4, 2});
  ExpectNear(nn::GroupNorm(2, 4)(x), {-1.16434193f, 0.907154262f, 1.07412648f, -0.816938818f,
                                      -0.677387297f, -1.00162733f, 0.0884280056f, 1.59058666f});
  ExpectNear(nn::RMSNorm({2})(x), {0.0f, 1.41419363f, 1.39746726f, 0.216882378f, -0.876130164f,
                                   -1.11012125f, -0.553474665f, 1.30137885f});
}

TEST(NormTest, MistakesAreRefused) {
  EXPECT_ERROR(kInvalidArgument, "BatchNorm2d: takes rank 4, not 2",
               nn::BatchNorm2d(3)(ones({2, 3})));
  EXPECT_ERROR(kInvalidArgument, "BatchNorm1d: takes rank 2 or 3, not 1",
               nn::BatchNorm1d(3)(ones({3})));
  EXPECT_ERROR(kInvalidArgument, "batch_norm: running_mean is f32[3], its dims must be (4)",
               nn::BatchNorm1d(3)(ones({2, 4})));
  EXPECT_ERROR(kInvalidArgument,
               "batch_norm: training needs more than one value a channel, x is f32[1,3]",
               nn::BatchNorm1d(3)(ones({1, 3})));
  EXPECT_ERROR(kInvalidArgument, "layer_norm: x is f32[2,4], its last dims must be (3)",
               nn::LayerNorm(3)(ones({2, 4})));
  EXPECT_ERROR(kInvalidArgument, "GroupNorm: 3 groups do not divide 4 channels",
               nn::GroupNorm(3, 4));
  EXPECT_ERROR(kInvalidArgument, "LayerNorm: a dim is 0, it must be at least 1", nn::LayerNorm(0));
}

TEST(PoolingTest, AvgPool2dLeavesPaddingOutIfTold) {
  const Tensor x = Sines({1, 1, 4, 5});
  const Tensor y =
      nn::AvgPool2d({2, 3}, {.stride = {2, 1}, .padding = {1, 1}, .count_include_pad = false})(x);
  EXPECT_EQ(y.sizes(), (Dims{1, 1, 3, 5}));
  ExpectNear(y, {0.420735478f, 0.583589494f, 0.63062948f, 0.0978716388f, -0.307841241f,
                 -0.695587754f, -0.443656236f, 0.0417555273f, 0.488777488f, 0.703062773f,
                 0.181192279f, -0.19967097f, -0.66676265f, -0.520835817f, -0.300555021f});
  sum(y * y).backward();
  ExpectNear(x.grad(), {0.809795141f,  1.23021483f,   0.87472713f,   0.177826166f, -0.242593482f,
                        -0.495679289f, -0.48176077f,  0.0289589167f, 0.528375745f, 0.514457226f,
                        -0.495679289f, -0.48176077f,  0.0289589167f, 0.528375745f, 0.514457226f,
                        0.0480782986f, -0.396430135f, -0.924846292f, -1.0922873f,  -0.647778869f});
}

TEST(PoolingTest, CeilModeCountsWindowsThatEndBeyond) {
  const Tensor x = Sines({1, 1, 4, 5});
  const Tensor largest = nn::MaxPool2d(2, {.ceil_mode = true})(x);
  EXPECT_EQ(largest.sizes(), (Dims{1, 1, 2, 3}));
  ExpectNear(largest,
             {0.841470957f, 0.989358246f, 0.412118495f, 0.650287867f, 0.420167029f, 0.990607381f});
  sum(largest * largest).backward();
  ExpectNear(
      x.grad(),
      {0, 1.68294191f,  0,           0,           0, 0, 0, 0, 1.97871649f, 0.824236989f, 0, 0,
       0, 0.840334058f, 1.98121476f, 1.30057573f, 0, 0, 0, 0});
}

TEST(PoolingTest, CeilModeMeansOfPaddingEndWithIt) {
  const Tensor x = Sines({1, 1, 4, 5});
  nn::AvgPool2dOptions options{.stride = 2, .padding = {1, 1}, .ceil_mode = true};
  const Tensor all = nn::AvgPool2d({3, 2}, options)(x);
  EXPECT_EQ(all.sizes(), (Dims{1, 1, 3, 3}));
  ExpectNear(all, {-0.159820721f, 0.354723245f, 0.13096571f, -0.142109588f, -0.401382118f,
                   0.368523508f, 0.162571967f, -0.31232518f, -0.15027751f});
  options.count_include_pad = false;
  const Tensor inside = nn::AvgPool2d({3, 2}, options)(x);
  ExpectNear(inside, {-0.479462147f, 0.532084882f, 0.196448565f, -0.284219176f, -0.401382118f,
                      0.368523508f, 0.650287867f, -0.624650359f, -0.300555021f});
  sum(inside * inside).backward();
  ExpectNear(x.grad(), {-0.479462147f, 0.266042441f,  0.266042441f,  0.0982242823f, 0.0982242823f,
                        -0.668941617f, 0.132248402f,  0.132248402f,  0.221065462f,  0.221065462f,
                        -0.189479455f, -0.133794039f, -0.133794039f, 0.122841172f,  0.122841172f,
                        1.11109626f,   -0.758444428f, -0.758444428f, -0.177713841f, -0.177713841f});
}

TEST(PoolingTest, CeilModeWhereAllWindowsAreWholeIsTheSameProgram) {
  const Tensor x = Sines({1, 1, 4, 4});
  EXPECT_EQ(debug::graph_text({max_pool2d(x, 2, 2, 0, 1, /*ceil_mode=*/true)}),
            debug::graph_text({max_pool2d(x, 2)}));
}

TEST(PoolingTest, AdaptiveAvgPool2dGivesAnySize) {
  const Tensor x = Sines({1, 1, 4, 5});
  ExpectNear(nn::AdaptiveAvgPool2d({3, 2})(x), {0.194902539f, 0.392013043f, -0.443656236f,
                                                0.488777488f, -0.446599513f, -0.11471767f});
  ExpectNear(nn::AdaptiveAvgPool2d(1)(x), {mean(x).item<float>()});
}

TEST(EmbeddingTest, TakesRowsAndKeepsThePaddingRow) {
  nn::Embedding table(4, 2, {.padding_idx = 1});
  EXPECT_EQ(narrow(table.weight, 0, 1, 1).to_vector<float>(), (Floats{0, 0}));
  SetTo(table.weight, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = table(tensor({{3, 1}, {0, 3}}));
  EXPECT_EQ(y.sizes(), (Dims{2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{7, 8, 3, 4, 1, 2, 7, 8}));
  sum(y).backward();
  EXPECT_EQ(table.weight.grad().to_vector<float>(), (Floats{1, 1, 0, 0, 0, 0, 2, 2}));
  EXPECT_ERROR(kOutOfRange, "Embedding: padding_idx 4 is out of range for 4 rows",
               nn::Embedding(4, 2, {.padding_idx = 4}));
}

}  // namespace
}  // namespace lazuli
