// lazuli/control.h: loops and branches as users write them, on every device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include <lazuli/control.h>
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using test::ErrorOf;
using testing::ElementsAre;
using testing::HasSubstr;
using List = std::vector<Tensor>;

class ControlTest : public testing::TestWithParam<const char*> {
 protected:
  Tensor Floats(const std::vector<float>& values, const Dims& dims) const {
    return tensor(values, dims, Device(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ControlTest, testing::Values("cpu", "interpreter", "npu"));

TEST_P(ControlTest, ScanOfOneTensorAndOfLists) {
  const Tensor xs = Floats({1, 2, 3, 4}, {4}), zero = Floats({0}, {});
  const auto [sum, sums] =
      scan([](const Tensor& c, const Tensor& x) { return std::pair(c + x, c + x); }, zero, xs);
  EXPECT_EQ(sum.item<float>(), 10);
  EXPECT_THAT(sums.to_vector<float>(), ElementsAre(1, 3, 6, 10));
  const Scanned both =
      scan([](const List& c, const List& x) { return Scanned{{c[0] + x[0], c[1] * x[1]}, {c[1]}}; },
           {zero, zero + 1}, {xs, xs}, {.reverse = true});
  EXPECT_EQ(both.carry[1].item<float>(), 24);
  EXPECT_THAT(both.results[0].to_vector<float>(), ElementsAre(24, 12, 4, 1));
}

TEST_P(ControlTest, LoopsAndBranches) {
  const Tensor one = Floats({1}, {});
  EXPECT_EQ(while_loop([](const Tensor& x) { return x < 100; },
                       [](const Tensor& x) { return x * 3; }, one)
                .item<float>(),
            243);
  const Tensor n = Floats({5}, {}).to(kInt64);
  for (const LoopBound& bound : {LoopBound(5), LoopBound(n)}) {
    EXPECT_EQ(fori_loop(
                  0, bound, [](const Tensor& i, const Tensor& x) { return x + i; }, one)
                  .item<float>(),
              11);
  }
  for (const float x : {2.f, -2.f}) {
    const Tensor value = Floats({x}, {});
    EXPECT_EQ(cond(
                  value > 0, [](const Tensor& v) { return v * v; },
                  [](const Tensor& v) { return -v; }, value)
                  .item<float>(),
              x > 0 ? 4 : 2);
  }
  const std::vector<TensorsFunction> branches{[](const List& in) { return List{in[0] + 1}; },
                                              [](const List& in) { return List{in[0] * 10}; }};
  EXPECT_EQ(switch_case(n, branches, {one})[0].item<float>(), 10);
}

TEST_P(ControlTest, MapAndAssociativeScan) {
  const Tensor xs = Floats({1, 2, 3, 4, 5}, {5});
  EXPECT_THAT(map([](const Tensor& x) { return x * x; }, xs).to_vector<float>(),
              ElementsAre(1, 4, 9, 16, 25));
  const auto times = [](const Tensor& a, const Tensor& b) { return a * b; };
  EXPECT_THAT(associative_scan(times, xs).to_vector<float>(), ElementsAre(1, 2, 6, 24, 120));
  EXPECT_THAT(associative_scan(times, xs, {.reverse = true}).to_vector<float>(),
              ElementsAre(120, 120, 60, 20, 5));
}

TEST_P(ControlTest, GradientsReachWhatIsCarriedAndWhatIsUsed) {
  Tensor w = Floats({2}, {}).set_requires_grad(true), x = Floats({3}, {}).set_requires_grad(true);
  const auto [last, all] =
      scan([&](const Tensor& c, const Tensor& v) { return std::pair(c * w + v, c); }, x,
           Floats({1, 1}, {2}));
  last.backward();  // (x w + 1) w + 1
  EXPECT_EQ(x.grad().item<float>(), 4);
  EXPECT_EQ(w.grad().item<float>(), 13);
}

TEST_P(ControlTest, CheckpointsOfAScanGiveItsGradients) {
  const Tensor xs = Floats({0.5, 1, 2, -1, 1, 3, 0.25}, {7});
  const auto slope = [&](std::int64_t every) {
    Tensor w = Floats({1.5}, {}).set_requires_grad(true);
    const auto [last, all] =
        scan([&](const Tensor& c, const Tensor& v) { return std::pair((c * w).sin() + v, c); },
             w * 2, xs, {.every = every});
    return grad({last + all.sum()}, {w})[0].item<float>();
  };
  EXPECT_NEAR(slope(3), slope(1), 1e-5);
  EXPECT_THAT(ErrorOf([&] { slope(0); }), HasSubstr("scan: every must be 1 or more, not 0"));
}

TEST(ControlErrorsTest, NameTheFunctionAndTheLine) {
  const Tensor x = ones({2});
  EXPECT_THAT(
      ErrorOf([&] { fori_loop(0, 2, [](const Tensor&, const Tensor& c) { return c.sum(); }, x); }),
      testing::AllOf(HasSubstr("fori_loop: carried tensor 0 is f32[2] before a step, and f32[]"),
                     HasSubstr("control_test.cc:")));
  EXPECT_THAT(ErrorOf([&] {
                fori_loop(
                    0, 2, [](const Tensor&, const Tensor& c) { return c * c.sum().item<float>(); },
                    x);
              }),
              testing::AllOf(HasSubstr("nothing runs while a function is traced"),
                             HasSubstr("control_test.cc:")));
  EXPECT_THAT(ErrorOf([&] {
                cond(x, [](const List& in) { return in; }, [](const List& in) { return in; }, {x});
              }),
              HasSubstr("cond: the predicate must be one bool, not f32[2]"));
}

}  // namespace
}  // namespace lazuli
