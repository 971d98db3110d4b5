// Losses over classes with weights, ignored and smoothed labels, and probabilities: values and
// gradients next to those that PyTorch 2.13 gives for the same call.
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace F = nn::functional;
using enum nn::Reduction;
using Floats = std::vector<float>;

Tensor Labels(const std::vector<std::int64_t>& labels) {
  return tensor(labels, {static_cast<std::int64_t>(labels.size())});
}

TEST(ClassLossTest, GivesPyTorchsValuesAndGradients) {
  const Tensor y = Labels({2, 0, 1, 2}), w = tensor({0.5f, 2.0f, 1.0f});
  const Tensor p =
      tensor({{0.2f, 0.3f, 0.5f}, {1.0f, 0.0f, 0.0f}, {0.1f, 0.9f, 0.0f}, {0.25f, 0.25f, 0.5f}});
  const struct {
    const char* name;
    std::function<Tensor(const Tensor&)> f;
    float value;
    Floats gradient;
  } kLosses[] = {
      {"weight",
       [&](const Tensor& x) { return F::cross_entropy(x, y, w); },
       0.603455603f,
       {0.0389534198f, 0.00869168248f, -0.0476451069f, -0.0584192947f, 0.0390350558f, 0.019384237f,
        0.216824695f, -0.227619752f, 0.010795068f, 0.0567097403f, 0.0513130948f, -0.108022839f}},
      {"weight, sum",
       [&](const Tensor& x) { return F::cross_entropy(x, y, w, {}, kSum); },
       2.71555018f,
       {0.175290391f, 0.0391125716f, -0.214402974f, -0.262886822f, 0.175657749f, 0.0872290656f,
        0.975711107f, -1.02428889f, 0.0485778041f, 0.25519383f, 0.23090893f, -0.48610276f}},
      {"ignored, no class",
       [&](const Tensor& x) { return F::cross_entropy(x, Labels({2, -100, 1, -100}), {}, -100); },
       0.479523599f,
       {0.0876451954f, 0.0195562858f, -0.107201487f, 0.0f, 0.0f, 0.0f, 0.243927777f, -0.256072223f,
        0.012144451f, 0.0f, 0.0f, 0.0f}},
      {"ignored, a class",
       [&](const Tensor& x) { return F::cross_entropy(x, y, {}, 2); },
       0.731903195f,
       {0.0f, 0.0f, 0.0f, -0.262886822f, 0.175657749f, 0.0872290656f, 0.243927777f, -0.256072223f,
        0.012144451f, 0.0f, 0.0f, 0.0f}},
      {"smoothed",
       [&](const Tensor& x) { return F::cross_entropy(x, y, {}, {}, kMean, 0.1); },
       0.678545713f,
       {0.0354892649f, 0.00144480914f, -0.0369340777f, -0.114776745f, 0.0794955418f, 0.0352812f,
        0.113630556f, -0.111369446f, -0.00226110825f, 0.0554651245f, 0.0493938997f, -0.104859024f}},
      {"all",
       [&](const Tensor& x) { return F::cross_entropy(x, y, w, 0, kMean, 0.1); },
       0.671955287f,
       {0.040386308f, -0.00672555575f, -0.0336607583f, 0.0f, 0.0f, 0.0f, 0.229597449f,
        -0.232902557f, 0.00330509827f, 0.0606950969f, 0.0420226865f, -0.102717787f}},
      {"probabilities",
       [&](const Tensor& x) { return F::cross_entropy(x, p, w, {}, kMean, 0.1); },
       1.34477866f,
       {0.0257743783f, -0.13996549f, 0.114191122f, -0.0494845919f, 0.0331030339f, 0.0163815711f,
        0.201882303f, -0.204367682f, 0.00248534721f, 0.0397474207f, -0.0639830008f, 0.0242355708f}},
      {"nll_loss",
       [&](const Tensor& x) { return F::nll_loss(x, y, w, 1); },
       -1.22000003f,
       {0.0f, 0.0f, -0.4f, -0.2f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, -0.4f}},
  };
  for (const auto& loss : kLosses) {
    SCOPED_TRACE(loss.name);
    const Tensor x =
        tensor({{0.5f, -1.0f, 2.0f}, {0.3f, 0.0f, -0.7f}, {1.0f, 1.0f, -2.0f}, {0.2f, 0.1f, 0.9f}})
            .set_requires_grad(true);
    const Tensor value = loss.f(x);
    EXPECT_NEAR(value.item(), loss.value, 2e-6);
    value.backward();
    EXPECT_THAT(x.grad().to_vector<float>(),
                testing::Pointwise(testing::FloatNear(2e-6f), loss.gradient));
  }
}

TEST(ClassLossTest, NoneGivesEachElementAndZeroWhereALabelDoesNotCount) {
  const Tensor log_probs = tensor({{-1.0f, -2.0f}, {-3.0f, -4.0f}});
  const Tensor y = tensor<std::int64_t>({0, 1}), w = tensor({5.0f, 7.0f});
  EXPECT_THAT(F::nll_loss(log_probs, y, w, 1, kNone).to_vector<float>(),
              testing::ElementsAre(5, 0));
  EXPECT_THAT(F::nll_loss(log_probs, y, w, {}, kNone).to_vector<float>(),
              testing::ElementsAre(5, 28));
}

TEST(ClassLossTest, MinusOneHundredDoesNotCountUnlessAnotherLabelIsGiven) {
  const Tensor x = tensor({{-1.0f, -2.0f}, {-3.0f, -4.0f}}).set_requires_grad(true);
  const Tensor loss = F::nll_loss(x, Labels({-100, 1}));
  EXPECT_EQ(loss.item(), 4);
  loss.backward();
  EXPECT_THAT(x.grad().flatten().to_vector<float>(), testing::ElementsAre(0, 0, 0, -1));
  EXPECT_EQ(F::cross_entropy(x, Labels({-100, -100}), {}, {}, kSum).item(), 0);
  EXPECT_TRUE(std::isnan(F::cross_entropy(x, Labels({-100, -100})).item()));
}

TEST(ClassLossTest, AMeanOfNothingIsNotANumber) {
  EXPECT_TRUE(std::isnan(F::cross_entropy(zeros({4, 3}), Labels({1, 1, 1, 1}), {}, 1).item()));
}

TEST(ClassLossTest, LabelsAreCheckedWhereTheyCount) {
  EXPECT_ERROR(kOutOfRange, "cross_entropy: label -100 is out of range [0, 3)",
               F::cross_entropy(zeros({4, 3}), Labels({0, 1, -100, 2}), {}, 1).item());
  EXPECT_ERROR(kOutOfRange, "cross_entropy: label 3 is out of range [0, 3)",
               F::cross_entropy(zeros({4, 3}), Labels({0, 3, -100, 2}), {}, -100).item());
}

TEST(ClassLossTest, LabelsOfANarrowTypeMayIgnoreANumberThatItLacks) {
  const Tensor y = tensor<std::uint8_t>({0, 1, 2, 2});
  const Tensor x = randn({4, 3});
  EXPECT_EQ(F::cross_entropy(x, y, {}, -254).item(), F::cross_entropy(x, y).item());
}

TEST(ClassLossTest, MistakesAreRefused) {
  const Tensor x = zeros({4, 3}), y = Labels({0, 1, 2, 0});
  EXPECT_ERROR(kInvalidArgument,
               "cross_entropy: weight must hold one number a class, f32[3], is f32[4]",
               F::cross_entropy(x, y, ones({4})));
  EXPECT_ERROR(kInvalidArgument, "nll_loss: weight must hold one number a class, f32[3], is s64[4]",
               F::nll_loss(x, y, y));
  EXPECT_ERROR(kInvalidArgument, "cross_entropy: label_smoothing must be in [0, 1], is 1.5",
               F::cross_entropy(x, y, {}, {}, kMean, 1.5));
  EXPECT_ERROR(kInvalidArgument,
               "cross_entropy: ignore_index goes with class indices, not with probabilities, "
               "f32[4,3]",
               F::cross_entropy(x, x, {}, 1));
}

}  // namespace
}  // namespace lazuli
