// Pools beside the usual ones, and losses of distances and of classes by how frequent they are, with
// PyTorch 2.13's values.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;
namespace F = nn::functional;
using Floats = std::vector<float>;

Floats Elements(const Tensor& x) { return x.to(kFloat32).flatten().to_vector<float>(); }
Tensor Row(std::int64_t n, const IntList& dims) { return arange(n, kFloat32).view(dims); }
void ExpectValues(const Tensor& x, const Floats& values) {
  EXPECT_THAT(Elements(x), Pointwise(FloatNear(1e-5f), values));
}

TEST(LpPoolTest, GivesPyTorchsNorms) {
  const Tensor x = tensor({1.f, -2.f, 3.f, 0.5f, 4.f, -1.f}).view({1, 1, 6});
  ExpectValues(F::lp_pool1d(x, 2, 3, 2), {3.7416575f, 5.0249376f});
  ExpectValues(F::lp_pool1d(x.abs(), 3, 2, std::nullopt, true),
               {2.0800838f, 3.0046225f, 4.0207257f});
  const Tensor image = Row(16, {1, 1, 4, 4});
  ExpectValues(F::lp_pool2d(image, 2, 2), {6.480741f, 9.899495f, 21.400934f, 25.337719f});
  ExpectValues(F::lp_pool2d(image, 1.5, {2, 3}, 1),
               {11.2444449f, 14.1844997f, 23.6656971f, 26.8981686f, 36.6718483f, 39.9444885f});
  ExpectValues(F::lp_pool3d(Row(16, {1, 1, 2, 2, 4}), 2, 2), {22.3606796f, 27.2029400f});
  ExpectValues(nn::LPPool1d(2, 3, 2)(x), {3.7416575f, 5.0249376f});
  ExpectValues(nn::LPPool2d(2, 2)(image), {6.480741f, 9.899495f, 21.400934f, 25.337719f});
  ExpectValues(nn::LPPool3d(2, 2)(Row(16, {1, 1, 2, 2, 4})), {22.3606796f, 27.2029400f});
}

TEST(MaxUnpoolTest, PutsBackWhereItStood) {
  const Tensor x = tensor(Floats{1, 5, 2, 0, 3, 4, 8, 6, 7, 0, 1, 2, 9, 3, 3, 10}, {1, 1, 4, 4});
  const auto [y, places] = max_pool2d_with_indices(x, 2);
  EXPECT_THAT(Elements(F::max_unpool2d(y, places, 2)),
              ElementsAre(0, 5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0, 0, 10));
  EXPECT_THAT(Elements(F::max_unpool2d(y, places, 2, std::nullopt, 0, {4, 5})),
              ElementsAre(0, 5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0, 0, 10, 0, 0, 0, 0));
  EXPECT_EQ(nn::MaxUnpool2d(2)(y, places, {4, 5}).sizes(), (Dims{1, 1, 4, 5}));
  const Tensor row = tensor({1.f, -2.f, 3.f, 0.5f, 4.f, -1.f}).view({1, 1, 6});
  const auto [z, at] = max_pool1d_with_indices(row, 2);
  EXPECT_THAT(Elements(nn::MaxUnpool1d(2)(z, at)), ElementsAre(1, 0, 3, 0, 4, 0));
  EXPECT_THAT(Elements(F::max_unpool1d(z, at, 2, std::nullopt, 0, {1, 1, 7})),
              ElementsAre(1, 0, 3, 0, 4, 0, 0));
  const auto [v, in] = max_pool3d_with_indices(Row(16, {1, 1, 2, 2, 4}), {1, 2, 2});
  EXPECT_THAT(Elements(nn::MaxUnpool3d(IntList{1, 2, 2})(v, in)),
              ElementsAre(0, 0, 0, 0, 0, 5, 0, 7, 0, 0, 0, 0, 0, 13, 0, 15));
  EXPECT_ERROR(kInvalidArgument,
               "max_unpool2d: invalid output_size (9, 9): about 4 is meant for dim 0",
               F::max_unpool2d(y, places, 2, std::nullopt, 0, {9, 9}));
  EXPECT_ERROR(kInvalidArgument,
               "max_unpool2d: x f32[1,1,2,2] and indices s64[1,1,3] must have the same dims",
               F::max_unpool2d(y, at, 2));
}

TEST(MaxUnpoolTest, GradientGoesToWhatStays) {
  Tensor x = ones({1, 1, 2}).set_requires_grad(true);
  const Tensor y = F::max_unpool1d(x, tensor(std::vector<std::int64_t>{1, 2}, {1, 1, 2}), 2);
  (y * tensor({1.f, 2.f, 3.f, 4.f})).sum().backward();
  EXPECT_THAT(Elements(x.grad()), ElementsAre(2, 3));
}

TEST(FractionalMaxPoolTest, TakesPyTorchsWindows) {
  const auto [y, places] =
      F::fractional_max_pool2d(Row(25, {1, 1, 5, 5}).fmod(7), 2, OptionalSize2(3), {}, true,
                               tensor({{0.3f, 0.8f}}).view({1, 1, 2}));
  EXPECT_THAT(Elements(y), ElementsAre(6, 6, 4, 6, 6, 6, 6, 3, 5));
  EXPECT_THAT(Elements(places), ElementsAre(6, 6, 4, 6, 6, 13, 20, 17, 19));
  const auto [z, at] = F::fractional_max_pool3d(Row(48, {1, 1, 3, 4, 4}).fmod(7), 2, {}, {0.5},
                                                true, tensor({{0.3f, 0.8f, 0.5f}}).view({1, 1, 3}));
  EXPECT_THAT(Elements(z), ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(Elements(at), ElementsAre(20, 34, 41, 27));
  EXPECT_EQ(nn::FractionalMaxPool2d(2, std::nullopt, {0.5})(ones({2, 3, 8, 8})).sizes(),
            (Dims{2, 3, 4, 4}));
  EXPECT_EQ(nn::FractionalMaxPool3d(2, 3)(ones({3, 8, 8, 8})).sizes(), (Dims{3, 3, 3, 3}));
  EXPECT_ERROR(kInvalidArgument, "fractional_max_pool2d: takes either output_size or output_ratio",
               F::fractional_max_pool2d(ones({1, 1, 4, 4}), 2));
}

TEST(RReLUTest, DrawsSlopesInTraining) {
  EXPECT_THAT(Elements(rrelu(tensor({-2.f, 3.f}), 0.1, 0.3)),
              Pointwise(FloatNear(1e-6f), {-0.4f, 3.f}));
  manual_seed(1);
  nn::RReLU layer(0.1, 0.3);
  const Floats drawn = Elements(layer(full({1000}, -1.0)));
  const auto [low, high] = std::minmax_element(drawn.begin(), drawn.end());
  EXPECT_GE(*low, -0.3f);
  EXPECT_LT(*low, -0.29f);
  EXPECT_LE(*high, -0.1f);
  EXPECT_GT(*high, -0.11f);
  layer.eval();
  EXPECT_THAT(Elements(layer(tensor({-2.f, 3.f}))), Pointwise(FloatNear(1e-6f), {-0.4f, 3.f}));
  Tensor x = tensor({-2.f, 3.f});
  nn::RReLU written(0.1, 0.3, true);
  written.eval();
  written(x);
  EXPECT_THAT(Elements(x), Pointwise(FloatNear(1e-6f), {-0.4f, 3.f}));
  EXPECT_ERROR(kInvalidArgument, "rrelu: lower must not be above upper, are 0.5 and 0.3",
               rrelu(x, 0.5, 0.3));
}

TEST(TripletMarginWithDistanceTest, GivesPyTorchsLosses) {
  const Tensor a = tensor({{1.f, 2.f}, {0.f, -1.f}}), p = tensor({{1.f, 1.f}, {.5f, -1.f}}),
               n = tensor({{2.f, 2.5f}, {0.f, 0.f}});
  EXPECT_NEAR(F::triplet_margin_with_distance_loss(a, p, n).item<float>(), 0.69098413f, 1e-5);
  const auto l1 = [](const Tensor& x, const Tensor& y) { return (x - y).abs().sum(-1); };
  EXPECT_THAT(
      Elements(F::triplet_margin_with_distance_loss(a, p, n, l1, 2, true, nn::Reduction::kNone)),
      ElementsAre(1.5f, 1.5f));
  EXPECT_ERROR(kInvalidArgument, "triplet_margin_with_distance_loss: margin must be above 0, is -1",
               F::triplet_margin_with_distance_loss(a, p, n, {}, -1));
}

TEST(AdaptiveLogSoftmaxTest, GivesPyTorchsLogProbabilities) {
  const nn::AdaptiveLogSoftmaxWithLoss layer(4, 6, {2, 4}, {.div_value = 2});
  std::vector<std::string> names;
  for (auto [name, parameter] : layer.named_parameters()) {
    names.push_back(name);
    const NoGrad no_grad;
    parameter.copy_((arange(parameter.numel(), kFloat32) * 0.1 - 0.3).view(parameter.sizes()));
  }
  EXPECT_THAT(names, ElementsAre("head.weight", "tail.0.0.weight", "tail.0.1.weight",
                                 "tail.1.0.weight", "tail.1.1.weight"));
  const Tensor x = tensor({{1.f, 0.f, -1.f, .5f}, {.2f, .3f, .4f, .5f}, {-1.f, 2.f, 0.f, 1.f}});
  const auto [output, loss] = layer(x, tensor(std::vector<std::int64_t>{0, 3, 5}, {3}));
  ExpectValues(output, {-1.7111541f, -1.9636585f, -1.2531612f});
  EXPECT_NEAR(loss.item<float>(), 1.6426579f, 1e-5);
  EXPECT_THAT(layer.predict(x).to_vector<std::int64_t>(), ElementsAre(1, 4, 4));
  ExpectValues(layer.log_prob(x)[0],
               {-1.7111541f, -1.5111542f, -1.9845014f, -2.0245013f, -1.7943511f, -1.8143511f});
  EXPECT_NEAR(layer(x[1], full({}, 3, kInt64)).loss.item<float>(), 1.9636585f, 1e-5);
  EXPECT_ERROR(kInvalidArgument,
               "AdaptiveLogSoftmaxWithLoss: the cutoffs must rise from 1 on and stay below the "
               "number of classes",
               nn::AdaptiveLogSoftmaxWithLoss(4, 6, {4, 2}));
}

}  // namespace
}  // namespace lazuli
