// Branches on the device: the chosen function's values and gradients, one program for all choices.
#include "lazy/control/branches.h"

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class BranchesTest : public OnEachClient {};

LAZULI_ON_EACH_CLIENT(BranchesTest);

BranchArguments Choice(int32_t index, Tensors operands) {
  return {.name = "switch",
          .index = Of<int32_t>({}, {index}),
          .branches = {"branch 0", "branch 1", "branch 2"},
          .operands = std::move(operands),
          .device = TestDevice()};
}

TEST_P(BranchesTest, OneProgramServesAllChoices) {
  const Tensor outside = Exp(Floats({0, 0}));
  const Work work;
  const std::vector<std::vector<float>> wanted{{2, 3}, {1, 4}, {-1, -2}};
  for (int32_t i = 0; i < 3; ++i) {
    const auto add = [&](absl::Span<const Tensor> in) { return Tensors{in[0] + outside}; };
    const auto square = [](absl::Span<const Tensor> in) { return Tensors{in[0] * in[0]}; };
    const auto negate = [](absl::Span<const Tensor> in) { return Tensors{Neg(in[0])}; };
    const Tensors results =
        Branch(Choice(i, {Floats({1, 2})}),
               {TracedFunction(add), TracedFunction(square), TracedFunction(negate)});
    EXPECT_EQ(Values(results[0]), wanted[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(work.compiles(), 2);  // once the tensor from outside is data
}

TEST_P(BranchesTest, TheGradientIsThatOfTheChosenFunction) {
  for (int32_t i = 0; i < 2; ++i) {
    const Tensor x = WithGrad(Floats({1, 2})), w = WithGrad(Floats({3, 4})), v = w * w;
    const auto first = [&](absl::Span<const Tensor> in) { return Tensors{in[0] * v}; };
    const auto second = [&](absl::Span<const Tensor> in) { return Tensors{in[0] + w}; };
    const Tensors results = Branch(Choice(i, {x}), {TracedFunction(first), TracedFunction(second)});
    Backward(Sum(results[0]), {}, {});
    if (i == 0) {
      EXPECT_THAT(Values(GradOf(x)), ElementsAre(9, 16));
      EXPECT_THAT(Values(GradOf(w)), ElementsAre(6, 16));
    } else {
      EXPECT_THAT(Values(GradOf(x)), ElementsAre(1, 1));
      EXPECT_THAT(Values(GradOf(w)), ElementsAre(1, 1));
    }
  }
}

TEST_P(BranchesTest, ACheckIsThatOfTheChosenFunction) {
  const Tensor table = Floats({1, 2, 3}), place = Of<int64_t>({1}, {5});
  const auto looks = [&](absl::Span<const Tensor>) {
    return Tensors{IndexSelect(table, 0, place + 0.0)};
  };
  const auto none = [&](absl::Span<const Tensor>) { return Tensors{Narrow(table, 0, 0, 1)}; };
  const auto choose = [&](int32_t i) {
    return Values(Branch(Choice(i, {}), {TracedFunction(looks), TracedFunction(none)})[0]);
  };
  EXPECT_THAT(choose(1), ElementsAre(1));
  EXPECT_THAT(Message(ErrorOf([&] { (void)choose(0); })), HasSubstr("index 5 is out of range"));
}

TEST_P(BranchesTest, ResultsThatDifferAreRefused) {
  const Tensor x = Floats({1, 2});
  const auto same = [](absl::Span<const Tensor> in) { return Tensors{in[0]}; };
  const auto other = [](absl::Span<const Tensor> in) { return Tensors{Sum(in[0])}; };
  const absl::Status status =
      ErrorOf([&] { Branch(Choice(0, {x}), {TracedFunction(same), TracedFunction(other)}); });
  EXPECT_EQ(
      Message(status),
      "switch: result 0 is f32[2] of branch 0, and f32[] of branch 1; shapes and dtypes must be "
      "the same");
}

}  // namespace
}  // namespace lazuli::lazy
