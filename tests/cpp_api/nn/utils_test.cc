#include <limits>
#include <utility>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using Floats = std::vector<float>;

struct Clipped {
  double order;
  float norm;
  Floats gradients;
};

// PyTorch 2.13's values.
TEST(ClipGradTest, ScalesAllGradientsByTheNormOfAll) {
  for (const Clipped& expected :
       std::vector<Clipped>{{2, 13.0f, {0.461538434f, 0.615384579f, 1.84615374f}},
                            {1, 19.0f, {0.315789431f, 0.421052575f, 1.26315773f}},
                            {3, 12.207056f, {0.491518974f, 0.655358613f, 1.9660759f}},
                            {std::numeric_limits<double>::infinity(),
                             12.0f,
                             {0.49999997f, 0.666666627f, 1.99999988f}}}) {
    Tensor a = zeros({2}), b = zeros({1, 1}), without = zeros({3});
    a.set_grad(tensor({3.0f, 4.0f}));
    b.set_grad(full({1, 1}, 12.0));
    const Tensor norm = nn::utils::clip_grad_norm_({a, without, b}, 2.0, expected.order);
    EXPECT_NEAR(norm.item(), expected.norm, 1e-5);
    Floats gradients = a.grad().to_vector<float>();
    gradients.push_back(b.grad().item<float>());
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(gradients[i], expected.gradients[i], 1e-6);
  }
}

TEST(ClipGradTest, SmallGradientsStayAndAreOneNode) {
  std::vector<Tensor> parameters;
  for (int i = 0; i < 5; ++i) {
    parameters.push_back(zeros({2}));
    parameters.back().set_grad(tensor({0.25f, 0.5f}));
  }
  const std::int64_t before = metrics::counter("graph.nodes_recorded");
  nn::utils::clip_grad_norm_(parameters, 100.0);
  EXPECT_EQ(metrics::counter("graph.nodes_recorded") - before, 1);
  EXPECT_EQ(parameters[4].grad().to_vector<float>(), (Floats{0.25f, 0.5f}));
}

TEST(ClipGradTest, ComplexNumbersCountByTheirSize) {
  const Tensor start = complex(tensor({3.0f, 0.0f}), tensor({4.0f, -12.0f}));
  for (const auto& [order, norm] : std::vector<std::pair<double, float>>{
           {2, 13.0f}, {1, 17.0f}, {std::numeric_limits<double>::infinity(), 12.0f}}) {
    Tensor z = zeros({2}, DType::kC64);
    z.set_grad(start.clone());
    const Tensor total = nn::utils::clip_grad_norm_({z}, 2.0, order);
    EXPECT_EQ(total.dtype(), kFloat32);
    EXPECT_NEAR(total.item(), norm, 1e-5);
    const Floats parts = view_as_real(z.grad()).flatten().to_vector<float>();
    const Floats expected{6 / norm, 8 / norm, 0, -24 / norm};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(parts[i], expected[i], 1e-5);
  }
}

TEST(ClipGradTest, DtypesMayDiffer) {
  Tensor a = zeros({2}), b = zeros({1}, kFloat16), z = zeros({1}, DType::kC128);
  a.set_grad(tensor({3.0f, 4.0f}));
  b.set_grad(full({1}, 12.0, kFloat16));
  z.set_grad(complex(zeros({1}, kFloat64), full({1}, 84.0, kFloat64)));
  EXPECT_NEAR(nn::utils::clip_grad_norm_({a, b, z}, 8.5).item(), 85, 1e-5);
  EXPECT_NEAR(a.grad().to_vector<float>()[1], 0.4f, 1e-6);
  EXPECT_EQ(b.grad().dtype(), kFloat16);
  EXPECT_NEAR(b.grad().to(kFloat32).item(), 1.2f, 1e-3);
  EXPECT_NEAR(imag(z.grad()).item(), 8.4, 1e-6);
}

TEST(ClipGradTest, ValuesAreLimited) {
  Tensor a = zeros({3});
  a.set_grad(tensor({-3.0f, 0.5f, 4.0f}));
  nn::utils::clip_grad_value_({a}, 1.0);
  EXPECT_EQ(a.grad().to_vector<float>(), (Floats{-1, 0.5f, 1}));
}

TEST(ClipGradTest, MistakesAreRefused) {
  Tensor a = zeros({1});
  EXPECT_EQ(nn::utils::clip_grad_norm_({a}, 1.0).item(), 0) << "no gradients";
  a.set_grad(ones({1}));
  EXPECT_ERROR(kInvalidArgument, "clip_grad_norm_: max_norm must be at least 0, is -1.000000",
               nn::utils::clip_grad_norm_({a}, -1.0));
  EXPECT_ERROR(kInvalidArgument, "foreach_clip_norm: the order of the norm must be above 0, is 0",
               nn::utils::clip_grad_norm_({a}, 1.0, 0));
}

TEST(UtilsTest, ParametersAreOneRowAndBack) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}}).set_requires_grad(true), b = tensor({5.f});
  const Tensor row = nn::utils::parameters_to_vector({a, b});
  EXPECT_THAT(row.to_vector<float>(), testing::ElementsAre(1, 2, 3, 4, 5));
  nn::utils::vector_to_parameters(row.detach() * 2, {a, b});
  EXPECT_THAT(a.flatten().to_vector<float>(), testing::ElementsAre(2, 4, 6, 8));
  EXPECT_EQ(b.item(), 10);
  EXPECT_TRUE(a.is_leaf());
  EXPECT_ERROR(kInvalidArgument,
               "vector_to_parameters: the vector is f32[4], the parameters have 5 elements",
               nn::utils::vector_to_parameters(ones({4}), {a, b}));
}

}  // namespace
}  // namespace lazuli
