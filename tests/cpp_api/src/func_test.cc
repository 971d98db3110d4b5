// lazuli::func: functions of samples on batches, and modules of them.
#include "lazuli/func.h"

#include <cmath>
#include <set>

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

TEST(FuncTest, ChunksOfABatchAreTheBatch) {
  const Tensor x = arange(10).to(kFloat32).reshape({5, 2});
  const auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0].sum() + rand({})}; };
  const auto made = [&](std::int64_t chunk, func::Randomness randomness) {
    manual_seed(3);
    const Tensor y = func::vmap(f, {x}, {.randomness = randomness, .chunk_size = chunk})[0];
    return RowMajorFloats(y - x.sum({1}));
  };
  const std::vector<float> same = made(2, func::Randomness::kSame);
  EXPECT_THAT(same, testing::Each(testing::FloatNear(same[0], 1e-5)));
  EXPECT_NEAR(same[0], made(7, func::Randomness::kSame)[0], 1e-5);
  const std::vector<float> other = made(2, func::Randomness::kDifferent);
  EXPECT_GT(std::set<float>(other.begin(), other.end()).size(), 4U);
  EXPECT_THAT(test::ErrorOf([&] { made(0, func::Randomness::kSame); }),
              testing::HasSubstr("vmap: chunk_size must be 1 or more, not 0"));
}

TEST(FuncTest, LinearizedFunctionsRunOnce) {
  int calls = 0;
  const auto f = [&](const std::vector<Tensor>& in) {
    ++calls;
    return std::vector{in[0].sin() * in[1], in[1] * 2};
  };
  const Tensor x = tensor({0.5f, 1.f}), y = tensor({2.f, 3.f});
  const func::Linearized made = func::linearize(f, {x, y});
  for (const float size : {1.f, -2.f}) {
    const std::vector<Tensor> tangents{full({2}, size), tensor({0.f, 1.f})};
    const std::vector<Tensor> pushed = made.products(tangents);
    const func::Jvp wanted = func::jvp(f, {x, y}, tangents);
    EXPECT_TRUE(allclose(pushed[0], wanted.tangents[0]));
    EXPECT_THAT(RowMajorFloats(pushed[1]), ElementsAre(0, 2));
  }
  EXPECT_EQ(calls, 3);
  EXPECT_THROW(made.products({x}), Error);
}

// log(1 + exp(x)), whose derivative is not a number for large x as it is written.
std::vector<Tensor> Softplus(const std::vector<Tensor>& in) { return {(in[0].exp() + 1).log()}; }

TEST(FuncTest, ARuleForTangentsServesAllModes) {
  int calls = 0;
  const TensorsFunction f = func::custom_jvp(
      Softplus, [&](const std::vector<Tensor>& in, const std::vector<Tensor>& tangents) {
        ++calls;
        return func::Jvp{Softplus(in), {in[0].sigmoid() * tangents[0]}};
      });
  const auto of = [&](const std::vector<Tensor>& in) { return f(in)[0].sum(); };
  const Tensor x = tensor({0.f, 100.f}), one = ones({2});
  EXPECT_THAT(RowMajorFloats(func::grad(of, {x})[0]), ElementsAre(0.5, 1));
  EXPECT_THAT(RowMajorFloats(func::jvp(f, {x}, {one}).tangents[0]), ElementsAre(0.5, 1));
  EXPECT_THAT(RowMajorFloats(func::hessian(of, {x})[0][0]), ElementsAre(0.25, 0, 0, 0));
  const auto slope = [&](const std::vector<Tensor>& in) { return func::grad(of, in); };
  EXPECT_THAT(RowMajorFloats(func::vmap(slope, {x})[0]), ElementsAre(0.5, 1));
  EXPECT_GT(calls, 0);
}

TEST(FuncTest, ARuleForCotangentsIsUsedAndDifferentiated) {
  const TensorsFunction f =
      func::custom_vjp([](const std::vector<Tensor>& in) { return std::vector{in[0] * in[1]}; },
                       [](const std::vector<Tensor>& in) {
                         return func::WithResiduals{{in[0] * in[1]}, {in[0] * 3, in[1]}};
                       },
                       [](const std::vector<Tensor>& kept, const std::vector<Tensor>& dy) {
                         return std::vector{dy[0] * kept[0] * kept[1], Tensor()};
                       });
  const auto of = [&](const std::vector<Tensor>& in) { return f(in)[0].sum(); };
  const Tensor x = tensor({1.f, 2.f}), y = tensor({5.f, 7.f});
  const std::vector<Tensor> gradients = func::grad(of, {x, y});
  EXPECT_THAT(RowMajorFloats(gradients[0]), ElementsAre(15, 42));  // 3 x y
  EXPECT_THAT(RowMajorFloats(gradients[1]), ElementsAre(0, 0));
  EXPECT_THAT(RowMajorFloats(func::hessian(of, {x, y})[0][0]), ElementsAre(15, 0, 0, 21));
  EXPECT_THAT(
      test::ErrorOf([&] {
        func::grad(
            [&](const std::vector<Tensor>& in) {
              return func::custom_vjp(
                         Softplus,
                         [](const std::vector<Tensor>& in) { return func::WithResiduals{in, {}}; },
                         [](const auto&, const auto&) { return std::vector<Tensor>{}; })(in)[0]
                  .sum();
            },
            {x});
      }),
      testing::HasSubstr("custom_vjp: the rule returns 0 gradients instead of 1"));
}

TEST(FuncTest, WhatIsStoppedOrComputedAgain) {
  const auto stopped = [](const std::vector<Tensor>& in) {
    return (func::stop_gradient(in)[0] * in[0]).sum();
  };
  const Tensor x = tensor({1.f, 2.f});
  EXPECT_THAT(RowMajorFloats(func::grad(stopped, {x})[0]), ElementsAre(1, 2));
  int calls = 0;
  const TensorsFunction again = func::remat([&](const std::vector<Tensor>& in) {
    ++calls;
    return std::vector{in[0].sin().sin()};
  });
  const auto of = [&](const std::vector<Tensor>& in) { return again(in)[0].sum(); };
  EXPECT_NEAR(func::grad(of, {x})[0][0].item<float>(), std::cos(std::sin(1.0)) * std::cos(1.0),
              1e-6);
  EXPECT_EQ(calls, 2);
  auto twice = func::jit([](const Tensor& t) { return t * 2; });
  for (int i = 0; i < 4; ++i) EXPECT_THAT(RowMajorFloats(twice(x)), ElementsAre(2, 4));
  EXPECT_GT(twice.replays(), 0);
}

TEST(FuncTest, AModuleIsAFunctionOfItsTensors) {
  manual_seed(0);
  const nn::Sequential net(nn::Linear(2, 3), nn::Tanh(), nn::Linear(3, 1));
  const auto own = net.named_parameters();
  std::vector<Tensor> values;
  for (const auto& [name, parameter] : own) values.push_back(parameter.detach().clone());
  const auto of = [&](const std::vector<Tensor>& in) {
    func::NamedTensors tensors;
    for (std::size_t k = 0; k < own.size(); ++k) tensors.emplace_back(own[k].first, in[k]);
    return func::functional_call(net, tensors, in.back()).sum();
  };
  const Tensor x = tensor({1.f, -2.f, 0.5f, 3.f}).reshape({2, 2});
  net.forward(x).sum().backward();
  std::vector<Tensor> arguments = values;
  arguments.push_back(x);
  const std::vector<Tensor> gradients = func::grad(of, arguments);
  for (std::size_t k = 0; k < own.size(); ++k)
    EXPECT_TRUE(allclose(gradients[k], own[k].second.grad())) << own[k].first;
  values[0] = values[0].requires_grad_();  // a leaf of the caller's
  arguments[0] = values[0];
  of(arguments).backward();
  EXPECT_TRUE(allclose(values[0].grad(), own[0].second.grad()));
  EXPECT_TRUE(own[0].second.requires_grad());
  EXPECT_TRUE(own[0].second.is_leaf());
  const auto each = [&](const std::vector<Tensor>& in) { return func::grad(of, in); };
  func::VmapOptions options;
  options.in_dims.assign(arguments.size(), std::nullopt);
  options.in_dims.back() = 0;
  const Tensor rows =
      func::vmap(each, {values[0], values[1], values[2], values[3], x.unsqueeze(1)}, options)[0];
  EXPECT_TRUE(allclose(rows.sum({0}), gradients[0]));
  EXPECT_THAT(test::ErrorOf([&] { func::functional_call(net, {{"no.weight", x}}, x); }),
              testing::HasSubstr("the module has no parameter or buffer \"no.weight\""));
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
