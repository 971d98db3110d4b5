// Attention and the layers of transformers, next to what PyTorch 2.13 gives for the same parameters.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

void ExpectClose(const Tensor& actual, const std::vector<float>& expected) {
  const std::vector<float> values = actual.flatten().to_vector<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 4e-6f) << "element " << i;
}

Tensor Wave(const Dims& dims, double frequency) {
  std::int64_t count = 1;
  for (const std::int64_t n : dims) count *= n;
  return reshape(sin(arange(count).to(kFloat64) * frequency), dims).to(kFloat32);
}
template <class M>
M Filled(M module) {
  const NoGrad no_grad;
  for (Tensor& p : module.parameters()) p.copy_(Wave(p.sizes(), 0.7) * 0.5);
  return module;
}
Tensor Query() { return Wave({3, 2, 4}, 0.3); }
Tensor Memory() { return reshape(cos(arange(16).to(kFloat64) * 0.5), {2, 2, 4}).to(kFloat32); }

TEST(AttentionTest, GivesPyTorchsValuesAndWeights) {
  const nn::MultiheadAttention attention = Filled(nn::MultiheadAttention(4, 2));
  const auto [y, weights] = attention.forward(Query(), Memory(), Memory());
  ExpectClose(y[0], {0.479915f, -0.266050f, 1.121162f, -0.164492f, 0.205658f, 0.114433f, 0.678420f,
                     0.289348f});
  ExpectClose(weights[0], {0.264053f, 0.735947f, 0.582475f, 0.417525f, 0.671430f, 0.328570f});
  const auto without = attention.forward(Query(), Memory(), Memory(), {}, /*need_weights=*/false);
  EXPECT_FALSE(without.second.defined());
  EXPECT_TRUE(allclose(without.first, y, 1e-5, 1e-6));
  EXPECT_EQ(
      attention.forward(Query(), Memory(), Memory(), {}, true, {}, /*average_attn_weights=*/false)
          .second.sizes(),
      (Dims{2, 2, 3, 2}));
}

TEST(AttentionTest, SeesNothingWhereAMaskSaysSo) {
  const nn::MultiheadAttention attention = Filled(nn::MultiheadAttention(4, 2));
  const Tensor mask = tensor({0, 1, 0, 0, 1, 0}).view({3, 2}).to(kBool);
  const auto [y, weights] =
      attention.forward(Query(), Memory(), Memory(), zeros({2, 2}, kBool), true, mask);
  ExpectClose(y[0], {0.411966f, -0.222356f, 1.106773f, -0.181070f, 0.182653f, 0.206948f, 0.527085f,
                     0.482015f});
  ExpectClose(weights[0], {1, 0, 0.582475f, 0.417525f, 0, 1});
  const Tensor lower = attention.forward(Query(), Memory(), Memory(), {}, false, mask).first;
  EXPECT_TRUE(allclose(lower, y, 1e-5, 1e-6));
}

TEST(AttentionTest, WhatSeesNothingGivesNothingAndPassesNoGradient) {
  nn::MultiheadAttention attention = Filled(nn::MultiheadAttention(4, 2));
  const Tensor padding = tensor({0, 1, 1, 1}).view({2, 2}).to(kBool);  // all of the second sample
  const Tensor y = attention.forward(Query(), Memory(), Memory(), padding, false).first;
  EXPECT_TRUE(equal(select(y, 1, 1)[0], attention.out_proj.bias));
  y.sum().backward();
  for (const Tensor& p : attention.parameters()) EXPECT_TRUE(all(isfinite(p.grad())).item<bool>());
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor q = Query().set_requires_grad(true);
  nn::functional::scaled_dot_product_attention(q, Query(), Query(), full({2, 2}, -infinity))
      .sum()
      .backward();
  EXPECT_TRUE(equal(q.grad(), zeros({3, 2, 4})));
}

TEST(AttentionTest, TakesNoSamplesAndNoKeys) {
  const nn::MultiheadAttention attention = Filled(nn::MultiheadAttention(4, 2));
  for (const bool weights : {true, false}) {
    const auto none = attention.forward(zeros({3, 0, 4}), zeros({2, 0, 4}), zeros({2, 0, 4}), {},
                                        weights, zeros({0, 3, 2}, kBool));
    EXPECT_EQ(none.first.sizes(), (Dims{3, 0, 4}));
    const auto keyless =
        attention.forward(Query(), zeros({0, 2, 4}), zeros({0, 2, 4}), {}, weights);
    EXPECT_TRUE(equal(keyless.first[0][0], attention.out_proj.bias));
  }
}

TEST(AttentionTest, TakesSequencesFirstOrBatchesFirst) {
  const nn::MultiheadAttention by_length = Filled(nn::MultiheadAttention(4, 2));
  const nn::MultiheadAttention by_batch =
      Filled(nn::MultiheadAttention(4, 2, {.batch_first = true}));
  const Tensor x = Query(), swapped = transpose(x, 0, 1);
  EXPECT_TRUE(allclose(transpose(by_batch.forward(swapped, swapped, swapped).first, 0, 1),
                       by_length.forward(x, x, x).first, 1e-5, 1e-6));
}

TEST(AttentionTest, RefusesHeadsThatDoNotDivide) {
  EXPECT_ERROR(kInvalidArgument, "MultiheadAttention: embed_dim 5 must be divisible by num_heads 2",
               nn::MultiheadAttention(5, 2));
  EXPECT_ERROR(
      kInvalidArgument,
      "MultiheadAttention: embed_dim and num_heads must be greater than 0, got embed_dim=4 "
      "and num_heads=0 instead",
      nn::MultiheadAttention(4, 0));
}

TEST(TransformerTest, LayersGivePyTorchsValues) {
  const auto encoder = [](const nn::TransformerLayerOptions& options) {
    return Filled(nn::TransformerEncoderLayer(4, 2, options)).forward(Query())[0];
  };
  const auto decoder = [](const nn::TransformerLayerOptions& options) {
    return Filled(nn::TransformerDecoderLayer(4, 2, options)).forward(Query(), Memory())[0];
  };
  nn::TransformerLayerOptions options{.dim_feedforward = 8, .dropout = 0};
  ExpectClose(encoder(options),
              {0, 0.152711f, 1.335892f, 0.083042f, 0, 0.275001f, 1.275936f, -0.075343f});
  ExpectClose(decoder(options),
              {0, 0.211124f, 1.310334f, -0.008735f, 0, 0.251078f, 1.296606f, -0.038370f});
  options.activation = [](const Tensor& x, SourceLocation loc) { return gelu(x, "none", loc); };
  ExpectClose(encoder(options),
              {0, 0.140875f, 1.343615f, 0.133813f, 0, 0.259735f, 1.300601f, -0.026373f});
  options = {.dim_feedforward = 8, .dropout = 0, .norm_first = true};
  ExpectClose(encoder(options), {1.084021f, 0.520880f, 2.053777f, 0.417136f, 1.940842f, 1.306018f,
                                 2.471313f, 0.633437f});
  ExpectClose(decoder(options), {1.557527f, 0.272239f, 3.197915f, 0.284823f, 2.266622f, 1.304480f,
                                 3.224392f, 0.820301f});
}

TEST(TransformerTest, StacksAreCopiesWithPyTorchsNames) {
  const nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 8});
  const nn::TransformerEncoder stack(layer, 2);
  std::vector<std::string> names;
  for (const auto& [name, parameter] : stack.named_parameters()) names.push_back(name);
  ASSERT_EQ(names.size(), 24U);
  EXPECT_EQ(names[0], "layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names[23], "layers.1.norm2.bias");
  EXPECT_FALSE(stack.parameters()[0].is_same(layer.parameters()[0]));
  EXPECT_TRUE(equal(stack.parameters()[12], layer.parameters()[0]));
  stack.forward(Query()).sum().backward();
  EXPECT_TRUE(stack.parameters()[0].grad().defined());
  EXPECT_FALSE(layer.parameters()[0].grad().defined());
  EXPECT_EQ(nn::TransformerDecoder(nn::TransformerDecoderLayer(4, 2), 3)
                .forward(Query(), Memory())
                .sizes(),
            (Dims{3, 2, 4}));
}

}  // namespace
}  // namespace lazuli
