// Operations in place: values, what stays, history, and what is refused.
#include <functional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> FloatsOf(const Tensor& x) { return x.to_vector<float>(); }

// Each form in place beside the function it takes its result from.
struct Form {
  std::string name;
  std::function<Tensor&(Tensor&)> in_place;
  std::function<Tensor(const Tensor&)> function;
};

std::vector<Form> Forms() {
  const Tensor y = tensor({{0.5f, 1.5f}, {2.0f, 3.0f}}), index = tensor<std::int64_t>({1, 0});
  const Tensor mask = y > 1, at = tensor({{std::int64_t{0}, std::int64_t{1}}});
  const Tensor row = tensor({{9.0f, 8.0f}});
  return {
#define LAZULI_FORM(name, ...)                                          \
  {#name, [=](Tensor& x) -> Tensor& { return x.name##_(__VA_ARGS__); }, \
   [=](const Tensor& x) { return name(x __VA_OPT__(, ) __VA_ARGS__); }}
      LAZULI_FORM(add, y),
      LAZULI_FORM(sub, y),
      LAZULI_FORM(mul, 3),
      LAZULI_FORM(div, y),
      LAZULI_FORM(fmod, y),
      LAZULI_FORM(remainder, y),
      LAZULI_FORM(floor_divide, y),
      LAZULI_FORM(pow, 2.0),
      LAZULI_FORM(pow, y),
      LAZULI_FORM(maximum, y),
      LAZULI_FORM(minimum, y),
      LAZULI_FORM(atan2, y),
      LAZULI_FORM(abs),
      LAZULI_FORM(neg),
      LAZULI_FORM(sqrt),
      LAZULI_FORM(exp),
      LAZULI_FORM(log1p),
      LAZULI_FORM(sin),
      LAZULI_FORM(erf),
      LAZULI_FORM(square),
      LAZULI_FORM(reciprocal),
      LAZULI_FORM(sigmoid),
      LAZULI_FORM(tanh),
      LAZULI_FORM(relu),
      LAZULI_FORM(relu6),
      LAZULI_FORM(silu),
      LAZULI_FORM(selu),
      LAZULI_FORM(leaky_relu, 0.2),
      LAZULI_FORM(elu, 0.7),
      LAZULI_FORM(celu, 0.7),
      LAZULI_FORM(hardtanh, 0.5, 2.5),
      LAZULI_FORM(clamp, 0.5, 2.5),
      LAZULI_FORM(masked_fill, mask, 7),
      LAZULI_FORM(tril),
      LAZULI_FORM(triu, 1),
      LAZULI_FORM(cumsum, 1),
      LAZULI_FORM(dropout, 0.0),
      LAZULI_FORM(scatter, 0, at, row),
      LAZULI_FORM(scatter_add, 0, at, row),
      LAZULI_FORM(index_copy, 0, index, y),
      LAZULI_FORM(index_add, 0, index, y),
#undef LAZULI_FORM
  };
}

TEST(InPlaceTest, GivesWhatTheFunctionGives) {
  for (const Form& form : Forms()) {
    const Tensor x = tensor({{0.25f, 1.0f}, {2.0f, 4.0f}});
    Tensor target = x.clone();
    const Tensor alias = target.detach();
    EXPECT_TRUE(form.in_place(target).is_same(target)) << form.name;
    EXPECT_EQ(FloatsOf(target), FloatsOf(form.function(x))) << form.name;
    EXPECT_EQ(FloatsOf(alias), FloatsOf(target)) << form.name;
  }
}

// What a function reads of x is what x was: the write that follows is no mistake.
TEST(InPlaceTest, HasTheGradientOfTheFunction) {
  for (const Form& form : Forms()) {
    Tensor x = tensor({{0.3f, 1.0f}, {2.0f, 4.0f}}).set_requires_grad(true);
    Tensor leaf = x.detach().clone().set_requires_grad(true);
    Tensor target = leaf * 1.0;
    sum(square(form.in_place(target))).backward();
    sum(square(form.function(x * 1.0))).backward();
    ASSERT_EQ(leaf.grad().defined(), x.grad().defined()) << form.name;  // not where all is constant
    if (x.grad().defined()) {
      EXPECT_EQ(FloatsOf(leaf.grad()), FloatsOf(x.grad())) << form.name;
    }
  }
}

TEST(InPlaceTest, TheOtherOperandHasItsGradient) {
  Tensor w = tensor({2.0f, 3.0f}).set_requires_grad(true);
  Tensor x = tensor({4.0f, 5.0f});
  sum(x.mul_(w)).backward();
  EXPECT_THAT(FloatsOf(w.grad()), ElementsAre(4, 5));  // what x was
  Tensor y = w * 1.0;
  w.set_grad({});
  sum(y.mul_(y)).backward();
  EXPECT_THAT(FloatsOf(w.grad()), ElementsAre(4, 6));
}

TEST(InPlaceTest, AnEarlierReaderStillNoticesTheWrite) {
  Tensor x = tensor({2.0f, 3.0f}).set_requires_grad(true);
  Tensor y = x * 1.0;
  const Tensor z = sin(y);
  y.exp_();
  try {
    sum(z).backward();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sin: a tensor that backward needs was changed in place"));
  }
}

TEST(InPlaceTest, KeepsDTypeAndDims) {
  Tensor half = tensor({1.0f, 2.0f}).to(DType::kF16);
  EXPECT_EQ(half.add_(tensor({1.0f, 1.0f})).dtype(), DType::kF16);
  Tensor integers = tensor({1, 2});
  EXPECT_ERROR(kInvalidArgument,
               "exp_: the result f32 would be cut to s32[2], which is changed in place",
               integers.exp_());
  EXPECT_ERROR(kInvalidArgument,
               "clamp_: the result f32 would be cut to s32[2], which is changed in place",
               integers.clamp_(0.5));
  EXPECT_ERROR(kInvalidArgument,
               "pow_: the result f32 would be cut to s32[2], which is changed in place",
               integers.pow_(2.0));
  Tensor flags = tensor({true, false});
  EXPECT_ERROR(kInvalidArgument,
               "add_: the result s64 would be cut to pred[2], which is changed in place",
               flags.add_(tensor({std::int64_t{1}, std::int64_t{1}})));
  EXPECT_ERROR(kInvalidArgument,
               "masked_fill_: s32[2,2] does not broadcast to s32[2], which is changed in place",
               integers.masked_fill_(tensor({{true, false}, {true, true}}), 1));
  EXPECT_THAT(integers.to_vector<int>(), ElementsAre(1, 2));
  EXPECT_THAT(flags.logical_not_().to_vector<bool>(), ElementsAre(false, true));
}

// Which is what makes recording one cheap.
TEST(InPlaceTest, WithoutHistoryRecordsTheWriteAndNothingElse) {
  Tensor x = tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}), row = x.select(1, 1), first = x.select(0, 0);
  const Tensor y = tensor({{2.0f, 2.0f}, {2.0f, 2.0f}});
  const auto made = [] { return metrics::counter("CreateXlaTensor"); };
  const std::int64_t before = made();
  x.add_(y).mul_(2).neg_();
  row.abs_().add_(0.5);
  EXPECT_EQ(made(), before);
  EXPECT_THAT(FloatsOf(first), ElementsAre(-6.0f, 8.5f));
  EXPECT_THAT(FloatsOf(x), ElementsAre(-6.0f, 8.5f, -10.0f, 12.5f));
  EXPECT_THAT(FloatsOf(row), ElementsAre(8.5f, 12.5f));
  // With one the values stay, and so does what is saved.
  Tensor w = tensor({1.0f, 2.0f}).set_requires_grad(true), z = row.clone();
  z.mul_(w).mul_(w);
  sum(z).backward();
  EXPECT_THAT(FloatsOf(w.grad()), ElementsAre(17.0f, 50.0f));
}

TEST(InPlaceTest, IsRefusedOfLeavesThatAreTrained) {
  Tensor leaf = tensor({1.0f}).set_requires_grad(true);
  EXPECT_ERROR(
      kFailedPrecondition,
      "relu_: a leaf tensor that requires a gradient is changed in place; do it under NoGrad",
      leaf.relu_());
  const NoGrad off;
  EXPECT_THAT(FloatsOf(leaf.neg_()), ElementsAre(-1));
}

}  // namespace
}  // namespace lazuli
