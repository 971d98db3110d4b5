#include "lazuli/amp.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "lazuli/lazuli.h"

namespace lazuli {
namespace {

using testing::HasSubstr;

DType DTypeOfProduct() { return matmul(ones({2, 3}), ones({3, 2})).dtype(); }

TEST(AutocastTest, FunctionsChooseTheirDtypesWhileOneLives) {
  EXPECT_EQ(DTypeOfProduct(), kFloat32);
  {
    const amp::Autocast narrow;
    EXPECT_EQ(DTypeOfProduct(), kBFloat16);
    {
      const amp::Autocast half(kFloat16);
      EXPECT_EQ(DTypeOfProduct(), kFloat16);
      const amp::Autocast off(kFloat16, false);
      EXPECT_EQ(DTypeOfProduct(), kFloat32);
    }
    EXPECT_EQ(amp::autocast_dtype(), kBFloat16);
    const Tensor y = matmul(ones({2, 3}), ones({3, 2}));
    EXPECT_EQ(cat({y, ones({2, 2})}).dtype(), kFloat32);
    EXPECT_EQ(cat({y, y}).dtype(), kBFloat16);
    EXPECT_EQ(nn::functional::mse_loss(y, y).dtype(), kFloat32);
    EXPECT_EQ(trace(y).dtype(), kFloat32);
    EXPECT_EQ(softmax(y, -1).dtype(), kBFloat16);
    EXPECT_EQ(matmul(ones({2, 3}, kFloat64), ones({3, 2}, kFloat64)).dtype(), kFloat64);
  }
  EXPECT_EQ(amp::autocast_dtype(), std::nullopt);
  EXPECT_EQ(DTypeOfProduct(), kFloat32);
}

TEST(AutocastTest, LayersAreNarrowAndTheirGradientsAreNot) {
  manual_seed(1);
  nn::Linear layer(4, 3);
  const Tensor x = rand({2, 4});
  Tensor y;
  {
    const amp::Autocast narrow;
    y = layer(x);
    EXPECT_EQ(y.dtype(), kBFloat16);
  }
  const Tensor expected = nn::functional::linear(x.to(kBFloat16), layer.weight.to(kBFloat16),
                                                 layer.bias.to(kBFloat16));
  EXPECT_TRUE(y.eq(expected).all().item<bool>());
  y.sum().backward();
  EXPECT_EQ(layer.weight.grad().dtype(), kFloat32);
}

TEST(AutocastTest, AnotherDtypeIsAnError) {
  try {
    const amp::Autocast wrong(kFloat64);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the dtype must be bfloat16 or float16, not f64"));
  }
  EXPECT_EQ(amp::autocast_dtype(), std::nullopt);
}

TEST(GradScalerTest, LeavesOutStepsThatAreNotFinite) {
  Tensor p = ones({2}).set_requires_grad(true);
  optim::SGD opt({p}, {.lr = 0.5});
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  p.set_grad(full({2}, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(scaler.step(opt));
  scaler.update();
  EXPECT_EQ(p.sum().item<float>(), 2);
  EXPECT_EQ(scaler.get_scale(), 4);
  for (int i = 0; i < 2; ++i) {
    opt.zero_grad();
    scaler.scale((p * p).sum()).backward();
    scaler.unscale_(opt);
    EXPECT_EQ(p.grad().sum().item<float>(), 2 * p.sum().item<float>());
    EXPECT_TRUE(scaler.step(opt));
    scaler.update();
  }
  EXPECT_EQ(p.sum().item<float>(), 0);
  EXPECT_EQ(scaler.get_scale(), 8);
  amp::GradScaler again;
  again.load_state_dict(scaler.state_dict());
  EXPECT_EQ(again.get_scale(), 8);
}

TEST(GradScalerTest, CallsOutOfOrderAndBadOptionsAreErrors) {
  Tensor p = ones({2}).set_requires_grad(true);
  optim::SGD opt({p}, {.lr = 0.5});
  amp::GradScaler scaler;
  p.set_grad(ones({2}));
  EXPECT_THROW(scaler.update(), Error);
  scaler.unscale_(opt);
  try {
    scaler.unscale_(opt);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("GradScaler: unscale_() was called for this optimiser"));
    EXPECT_THAT(error.what(), HasSubstr("amp_test.cc"));
  }
  EXPECT_THROW(amp::GradScaler({.growth_factor = 1}), Error);
  const amp::GradScaler off({.enabled = false});
  EXPECT_EQ(off.scale(p).sum().item<float>(), 2);
}

}  // namespace
}  // namespace lazuli
