// lazuli::func: functions of samples on batches, and modules of them.
#include "lazuli/func.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lazuli/lazuli.h"
#include "tests/support/expect_error.h"

namespace lazuli {
namespace {

using testing::ElementsAre;

std::vector<float> RowMajorFloats(const Tensor& x) { return x.contiguous().to_vector<float>(); }

TEST(FuncTest, VmapGivesWhatEachSampleGives) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}).reshape({3, 2});
  const Tensor w = tensor({2.f, -1.f});
  const auto f = [&](const std::vector<Tensor>& in) {
    return std::vector{(in[0] * w).sum(), in[0] + 1};
  };
  const std::vector<Tensor> y = func::vmap(f, {x});
  EXPECT_THAT(RowMajorFloats(y[0]), ElementsAre(0, 2, 4));
  EXPECT_THAT(RowMajorFloats(y[1]), ElementsAre(2, 3, 4, 5, 6, 7));
  const std::vector<Tensor> z = func::vmap(f, {x.t()}, {.in_dims = {-1}, .out_dims = {0, 1}});
  EXPECT_THAT(RowMajorFloats(z[0]), ElementsAre(0, 2, 4));
  EXPECT_THAT(RowMajorFloats(z[1]), ElementsAre(2, 4, 6, 3, 5, 7));
}

TEST(FuncTest, ArgumentsWithoutADimAreShared) {
  const Tensor x = tensor({1.f, 2.f, 3.f}), y = tensor({10.f, 20.f});
  const std::vector<Tensor> table =
      func::vmap([](const std::vector<Tensor>& in) { return std::vector{in[0] * in[1]}; }, {x, y},
                 {.in_dims = {0, std::nullopt}});
  EXPECT_THAT(RowMajorFloats(table[0]), ElementsAre(10, 20, 20, 40, 30, 60));
}

TEST(FuncTest, RandomNumbersDifferOrAreTheSame) {
  const Tensor x = zeros({2, 50});
  const auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0] + rand({50})}; };
  const auto same = func::vmap(f, {x}, {.randomness = func::Randomness::kSame})[0];
  EXPECT_TRUE(equal(same[0], same[1]));
  const auto other = func::vmap(f, {x}, {.randomness = func::Randomness::kDifferent})[0];
  EXPECT_FALSE(equal(other[0], other[1]));
  EXPECT_THROW(func::vmap(f, {x}), Error);
}

TEST(FuncTest, GradientsReachArgumentsAndTensorsFromOutside) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}).reshape({3, 2}).requires_grad_();
  const Tensor w = tensor({2.f, -1.f}).requires_grad_();
  const Tensor tripled = w * 3;  // has a history outside
  const auto f = [&](const std::vector<Tensor>& in) {
    return std::vector{(in[0] * in[0] * tripled).sum()};
  };
  const Tensor y = func::vmap(f, {x})[0];
  const std::vector<Tensor> gradients = grad({(y * tensor({1.f, 10.f, 100.f})).sum()}, {x, w});
  EXPECT_THAT(RowMajorFloats(gradients[0]), ElementsAre(12, -12, 360, -240, 6000, -3600));
  EXPECT_THAT(RowMajorFloats(gradients[1]), ElementsAre(3 * 2591, 3 * 3764));
}

TEST(FuncTest, GradientsSeeTheNumbersThatWereDrawn) {
  const Tensor x = ones({2, 50}).requires_grad_();
  const auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0] * rand({50})}; };
  const Tensor y = func::vmap(f, {x}, {.randomness = func::Randomness::kDifferent})[0];
  EXPECT_TRUE(equal(grad({y.sum()}, {x})[0], y));
}

TEST(FuncTest, MistakesAreNamed) {
  const auto f = [](const std::vector<Tensor>& in) { return in; };
  EXPECT_ERROR(kInvalidArgument, "vmap: arguments have 2 and 3 samples",
               func::vmap(f, {ones({2}), ones({3})}));
  EXPECT_ERROR(kInvalidArgument, "vmap: dim 1 of argument 0 is out of range for rank 1",
               func::vmap(f, {ones({2})}, {.in_dims = {1}}));
  EXPECT_ERROR(kInvalidArgument, "vmap: no argument counts the samples",
               func::vmap(f, {ones({2})}, {.in_dims = {std::nullopt}}));
  EXPECT_ERROR(kInvalidArgument, "vmap: 2 in_dims for 1 arrays",
               func::vmap(f, {ones({2})}, {.in_dims = {0, 0}}));
}

using List = std::vector<Tensor>;

// sum(sin(x) * y), and its derivatives for x.
Tensor Product(const List& in) { return (in[0].sin() * in[1]).sum(); }

TEST(FuncTest, GradGivesTheGradientsOfTheArgumentsThatAreNamed) {
  const Tensor x = tensor({0.5, -1.0}), y = tensor({2.0, 3.0});
  const List all = func::grad(Product, {x, y});
  ASSERT_EQ(all.size(), 2);
  EXPECT_TRUE(allclose(all[0], x.cos() * y));
  EXPECT_TRUE(allclose(all[1], x.sin()));
  EXPECT_FALSE(all[0].requires_grad());
  EXPECT_FALSE(x.requires_grad());
  const func::ValueAndGrad second = func::value_and_grad(Product, {x, y}, {.argnums = {1}});
  ASSERT_EQ(second.gradients.size(), 1);
  EXPECT_TRUE(allclose(second.gradients[0], x.sin()));
  EXPECT_TRUE(allclose(second.value, (x.sin() * y).sum()));
}

TEST(FuncTest, DerivativesNestInAnyOrder) {
  const Tensor x = tensor({0.5, -1.0}), y = tensor({2.0, 3.0}), v = tensor({1.0, -2.0});
  const Tensor bend = -x.sin() * y;  // the second derivative for x
  const auto slope = [&](const List& in) {
    return func::grad(Product, {in[0], y}, {.argnums = {0}});
  };
  EXPECT_TRUE(allclose(func::jvp(slope, {x}, {v}).tangents[0], bend * v));
  EXPECT_TRUE(allclose(func::vjp(slope, {x}).products({v})[0], bend * v));
  EXPECT_TRUE(allclose(func::jacfwd(slope, {x})[0][0], diag(bend)));
  EXPECT_TRUE(allclose(func::jacrev(slope, {x})[0][0], diag(bend)));
  const func::Blocks blocks = func::hessian(Product, {x, y});
  EXPECT_TRUE(allclose(blocks[0][0], diag(bend)));
  EXPECT_TRUE(allclose(blocks[0][1], diag(x.cos())));
  EXPECT_TRUE(allclose(blocks[1][1], zeros({2, 2}, DType::kF64)));
  const auto third = [&](const List& in) {
    return (func::jvp(slope, {in[0]}, {v}).tangents[0] * v).sum();
  };
  EXPECT_TRUE(allclose(func::grad(third, {x})[0], -x.cos() * y * v * v));
  const Tensor samples = stack({x, x * 2});
  const Tensor batched =
      func::vmap([&](const List& in) { return func::jacfwd(slope, in)[0]; }, {samples})[0];
  EXPECT_TRUE(allclose(batched[1], diag(-(x * 2).sin() * y)));
}

TEST(FuncTest, TensorsFromOutsideStayDifferentiable) {
  const Tensor x = tensor({0.5, -1.0}), w = tensor({2.0, 3.0}).requires_grad_();
  const auto f = [&](const List& in) { return (in[0] * in[0] * w * w).sum(); };
  const Tensor slope = func::grad(f, {x})[0];
  EXPECT_TRUE(allclose(grad({slope.sum()}, {w})[0], 4 * x * w));
  const func::Vjp back = func::vjp([&](const List& in) { return List{in[0] * w}; }, {x});
  EXPECT_TRUE(allclose(grad({back.products({x})[0].sum()}, {w})[0], x));
  const NoGrad none;
  EXPECT_FALSE(func::grad(f, {x})[0].requires_grad());
}

TEST(FuncTest, ForwardModeGoesThroughWhileLoops) {
  const Tensor a = full({}, 2.0, DType::kF64);
  const auto root = [](const List& in) {
    return while_loop([&](const List& v) { return (v[0] * v[0] - in[0]).abs() > 1e-12; },
                      [&](const List& v) { return List{(v[0] + in[0] / v[0]) * 0.5}; }, {in[0]});
  };
  const func::Jvp pushed = func::jvp(root, {a}, {ones_like(a)});
  EXPECT_TRUE(allclose(pushed.results[0], a.sqrt()));
  EXPECT_TRUE(allclose(pushed.tangents[0], 0.5 / a.sqrt()));
  EXPECT_TRUE(allclose(func::jacfwd(root, {a})[0][0], 0.5 / a.sqrt()));
  EXPECT_ERROR(
      kUnimplemented,
      "while_loop: backward through a loop needs the number of its steps, which only a run of this "
      "one tells; use scan, or fori_loop with numbers as bounds",
      func::grad([&](const List& in) { return root(in)[0]; }, {a}));
}

TEST(FuncTest, MistakesOfDerivativesAreNamed) {
  const Tensor x = ones({2});
  EXPECT_ERROR(kInvalidArgument, "grad: the function must return one tensor without dims",
               func::grad([](const List& in) { return in[0] * 2; }, {x}));
  EXPECT_ERROR(kInvalidArgument, "grad: argnums has 2, but there are 1 arguments",
               func::grad([](const List& in) { return in[0].sum(); }, {x}, {.argnums = {2}}));
  EXPECT_ERROR(kInvalidArgument,
               "grad: argument 0 is s64[2]: only floats and complex numbers have derivatives",
               func::grad([](const List& in) { return in[0].sum(); }, {arange(2)}));
  const auto f = [](const List& in) { return in; };
  EXPECT_ERROR(kInvalidArgument, "jvp: tangents 0 does not have the shape of the arguments",
               func::jvp(f, {x}, {ones({3})}));
  EXPECT_ERROR(kInvalidArgument, "vjp: 2 cotangents for 1 results",
               func::vjp(f, {x}).products({x, x}));
}

}  // namespace
}  // namespace lazuli
