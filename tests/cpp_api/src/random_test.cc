#include "lazuli/random.h"

#include <functional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "lazuli/torch.h"

namespace lazuli {
namespace {

using Draw = std::function<Tensor(const OptionalGenerator&)>;

TEST(RandomTest, FunctionsAndMethodsDrawFromTheGeneratorTheyAreGiven) {
  const Tensor half = full({6}, 0.5), weights = ones({6});
  const std::vector<std::pair<const char*, Draw>> draws = {
      {"rand", [](const auto& g) { return rand({6}, kFloat32, Device(), g); }},
      {"randn",
       [](const auto& g) { return torch_names::randn({6}, g, torch_names::dtype(kFloat64)); }},
      {"randint", [](const auto& g) { return randint(9, {6}, kInt64, Device(), g); }},
      {"randint",
       [](const auto& g) {
         return torch_names::randint(2, 9, {6}, g, torch_names::dtype(kInt32));
       }},
      {"randperm", [](const auto& g) { return randperm(6, kInt64, Device(), g); }},
      {"rand_like", [&](const auto& g) { return half.rand_like(kFloat64, {}, g); }},
      {"randint_like", [&](const auto& g) { return randint_like(half, 2, 5, {}, {}, g); }},
      {"normal", [](const auto& g) { return normal(1, 2, {6}, kFloat32, Device(), g); }},
      {"normal", [&](const auto& g) { return normal(half, weights, g); }},
      {"normal", [&](const auto& g) { return normal(half, 2, g); }},
      {"normal", [&](const auto& g) { return normal(2, half, g); }},
      {"bernoulli", [&](const auto& g) { return half.bernoulli(g); }},
      {"bernoulli", [&](const auto& g) { return half.bernoulli(0.3, g); }},
      {"multinomial", [&](const auto& g) { return weights.multinomial(4, false, g); }},
      {"uniform_", [](const auto& g) { return zeros({6}).uniform_(-1, 3, g); }},
      {"normal_", [](const auto& g) { return zeros({6}).normal_(1, 2, g); }},
      {"log_normal_", [](const auto& g) { return zeros({6}).log_normal_(0, 1, g); }},
      {"exponential_", [](const auto& g) { return zeros({6}).exponential_(2, g); }},
      {"cauchy_", [](const auto& g) { return zeros({6}).cauchy_(0, 1, g); }},
      {"geometric_", [](const auto& g) { return zeros({6}).geometric_(0.25, g); }},
      {"bernoulli_", [](const auto& g) { return zeros({6}).bernoulli_(0.5, g); }},
      {"bernoulli_", [&](const auto& g) { return zeros({6}).bernoulli_(half, g); }},
      {"random_", [](const auto& g) { return zeros({6}).random_(g); }},
      {"random_", [](const auto& g) { return zeros({6}).random_(100, g); }},
      {"random_", [](const auto& g) { return zeros({6}).random_(-9, 100, g); }},
  };
  manual_seed(3);
  Generator own;
  own.manual_seed(3);
  for (const auto& [name, draw] : draws) {
    const Tensor x = draw(own), y = draw({});
    EXPECT_TRUE(equal(x, y)) << name << '\n' << x << '\n' << y;
    EXPECT_TRUE(equal(own.get_state(), get_rng_state())) << name;
  }
  own.manual_seed(4);
  EXPECT_FALSE(equal(rand({6}, kFloat32, Device(), own), rand({6})));
}

TEST(RandomTest, WhatIsDrawnInPlaceIsTheTensorAndIsRefusedBeforeItIsDrawn) {
  manual_seed(5);
  Tensor x = zeros({2, 3});
  const Tensor row = x.select(0, 1);
  const Tensor& same = x.uniform_(2, 3).random_(7, 8);
  EXPECT_EQ(&same, &x);
  EXPECT_EQ(row.to_vector<float>(), (std::vector<float>{7, 7, 7}));
  const Tensor before = get_rng_state();
  Tensor leaf = zeros({3}).set_requires_grad(true), whole = zeros({3}, kInt64);
  EXPECT_THROW(leaf.normal_(), Error);
  EXPECT_THROW(whole.normal_(), Error);
  EXPECT_THROW(x.geometric_(1.5), Error);
  EXPECT_TRUE(equal(get_rng_state(), before));
}

}  // namespace
}  // namespace lazuli
