#include "lazuli/nn/init.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace init = nn::init;

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};
Moments MomentsOf(const Tensor& t) {
  const std::vector<float> v = t.to_vector<float>();
  Moments m;
  const auto n = static_cast<double>(v.size());
  m.mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  for (const float x : v) m.deviation += (x - m.mean) * (x - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  m.low = *std::min_element(v.begin(), v.end());
  m.high = *std::max_element(v.begin(), v.end());
  return m;
}

struct Case {
  const char* name;
  std::function<void(const Tensor&)> set;
  double deviation;
};

// A weight of 200 outputs and 20 inputs over 5 positions: fan in 100, fan out 1000.
TEST(InitTest, DeviationsAreThoseOfTheFormulas) {
  manual_seed(5);
  const std::vector<Case> kCases = {
      {"uniform_", [](const Tensor& t) { init::uniform_(t, -3, 3); }, std::sqrt(3.0)},
      {"normal_", [](const Tensor& t) { init::normal_(t, 0, 0.3); }, 0.3},
      {"xavier_uniform_", [](const Tensor& t) { init::xavier_uniform_(t, 2); },
       2 * std::sqrt(2.0 / 1100)},
      {"xavier_normal_", [](const Tensor& t) { init::xavier_normal_(t); }, std::sqrt(2.0 / 1100)},
      {"kaiming_uniform_", [](const Tensor& t) { init::kaiming_uniform_(t); },
       std::sqrt(2.0 / 100)},
      {"kaiming_normal_",
       [](const Tensor& t) {
         init::kaiming_normal_(t,
                               {.fan = init::Fan::kOut, .nonlinearity = init::Nonlinearity::kTanh});
       },
       5.0 / 3 / std::sqrt(1000.0)},
      // PyTorch: the deviation of a normal distribution cut at one deviation is 0.5396.
      {"trunc_normal_", [](const Tensor& t) { init::trunc_normal_(t, 0, 2, -2, 2); }, 2 * 0.53956},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Tensor t = zeros({200, 20, 5}).set_requires_grad(true);
    c.set(t);
    const Moments m = MomentsOf(t);
    EXPECT_NEAR(m.deviation, c.deviation, 0.03 * c.deviation);
    EXPECT_NEAR(m.mean, 0, 0.03 * c.deviation);
    EXPECT_TRUE(t.requires_grad());
  }
}

TEST(InitTest, BoundsHold) {
  manual_seed(5);
  const Tensor t = zeros({100, 100});
  init::xavier_uniform_(t);
  const double bound = std::sqrt(6.0 / 200);
  EXPECT_GE(MomentsOf(t).low, -bound);
  EXPECT_LE(MomentsOf(t).high, bound);
  init::trunc_normal_(t, 1, 1, 0, 1.5);
  EXPECT_GE(MomentsOf(t).low, 0);
  EXPECT_LE(MomentsOf(t).high, 1.5);
}

TEST(InitTest, ConstantsAndTheIdentity) {
  const Tensor t = ones({2, 3});
  init::eye_(t);
  EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{1, 0, 0, 0, 1, 0}));
  init::constant_(t, 0.5);
  EXPECT_EQ(t.to_vector<float>(), std::vector<float>(6, 0.5f));
  init::zeros_(t);
  EXPECT_EQ(t.to_vector<float>(), std::vector<float>(6, 0.0f));
}

TEST(InitTest, MistakesAreRefused) {
  EXPECT_ERROR(kInvalidArgument, "kaiming_normal_: takes a weight of rank 2 or more, not of rank 1",
               init::kaiming_normal_(ones({3})));
  EXPECT_ERROR(kInvalidArgument, "normal_: the tensor is undefined", init::normal_(Tensor()));
  EXPECT_ERROR(kInvalidArgument, "eye_: takes rank 2, not rank 1", init::eye_(ones({3})));
  EXPECT_ERROR(kOutOfRange, "dirac_: a kernel without elements has no middle",
               init::dirac_(ones({1, 4, 0})));
  Tensor empty = ones({0, 4, 3});
  init::dirac_(empty);
  EXPECT_EQ(empty.numel(), 0);
}

}  // namespace
}  // namespace lazuli
