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

}  // namespace
}  // namespace lazuli
