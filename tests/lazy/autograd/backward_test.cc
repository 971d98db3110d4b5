#include "lazy/autograd/backward.h"

#include "ir/support/runtime.h"
#include "lazy/ops/program/to_device.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Leaf(std::initializer_list<float> values) { return WithGrad(Floats(values)); }
std::vector<float> Grad(const Tensor& leaf) { return Values(GradOf(leaf)); }
std::string BackwardError(const Tensor& root, const Tensor& gradient = {}) {
  return std::string(Message(ErrorOf([&] { Backward(root, gradient, {}); })));
}

TEST(BackwardTest, AddsUpOverAllPaths) {
  const Tensor x = Leaf({1, 2});
  const Tensor a = x * x, b = a + x, c = a * b;  // x^4 + x^3
  Backward(Sum(c), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(7, 44));
}

TEST(BackwardTest, AccumulatesUntilTheGradientIsDropped) {
  const Tensor x = Leaf({1, 2});
  Backward(Sum(x * x), {}, {});
  Backward(Sum(x * 3.0), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(5, 7));
  x.impl()->mutable_autograd().grad = {};
  Backward(Sum(x), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(1, 1));
}

TEST(BackwardTest, TakesTheGradientOfTheResult) {
  const Tensor x = Leaf({1, 2});
  Backward(x * x, Floats({10, 100}), {});
  EXPECT_THAT(Grad(x), ElementsAre(20, 400));
}

// Each leaf of a sum gets the same gradient; changing one in place must leave the other.
TEST(BackwardTest, GradientsOfTwoLeavesAreTwoTensors) {
  const Tensor x = Leaf({1, 2}), y = Leaf({3, 4}), given = Floats({10, 20});
  Backward(x + y, given, {});
  const Tensor gx = GradOf(x);
  Assign("mul_", gx, gx * 0.5);
  EXPECT_THAT(Grad(x), ElementsAre(5, 10));
  EXPECT_THAT(Grad(y), ElementsAre(10, 20));
  EXPECT_THAT(Values(given), ElementsAre(10, 20));
}

TEST(BackwardTest, OnlyLeavesThatAskGetGradients) {
  const Tensor x = Leaf({1, 2}), constant = Floats({3, 4});
  const Tensor y = x * constant;
  Backward(Sum(y), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(3, 4));
  EXPECT_FALSE(GradOf(constant).defined());
  EXPECT_FALSE(GradOf(y).defined());
}

TEST(BackwardTest, NoGradAndDetachRecordNoHistory) {
  const Tensor x = Leaf({1, 2});
  {
    const GradModeGuard off(false);
    EXPECT_FALSE((x * x).requires_grad());
  }
  EXPECT_FALSE(Detach(x * x).requires_grad());
  EXPECT_TRUE((x * x).requires_grad());
  EXPECT_FALSE(Gt(x, x).requires_grad());  // no floats, no gradient
}

TEST(BackwardTest, WhatHasNoHistoryIsRefused) {
  const Tensor x = Floats({1, 2});
  EXPECT_EQ(BackwardError(Sum(x)),
            "backward: f32[] has no history; it was computed from no tensor that requires a "
            "gradient, or under NoGrad");
  EXPECT_EQ(BackwardError(Tensor()), "backward: the tensor is undefined");
}

TEST(BackwardTest, AResultOfSeveralElementsNeedsAGradient) {
  const Tensor x = Leaf({1, 2});
  EXPECT_EQ(
      BackwardError(x * x),
      "backward: f32[2] is not a scalar; reduce it (sum, mean) or pass the gradient of the result");
  EXPECT_EQ(BackwardError(x * x, Floats({1, 2, 3})),
            "backward: the gradient is f32[3], the tensor f32[2]");
}

TEST(BackwardTest, ASecondBackwardIsRefusedUnlessTheGraphWasKept) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = Sum(x * x);
  Backward(y, {}, {.retain_graph = true});
  Backward(y, {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(4, 8));
  EXPECT_THAT(
      BackwardError(y),
      HasSubstr(
          "were freed by an earlier backward; pass retain_graph to the first one to run it twice"));
}

TEST(BackwardTest, ASavedTensorChangedInPlaceIsNoticed) {
  const Tensor x = Leaf({1, 2}), y = Floats({3, 4});
  Tensor z;
  {
    const SiteScope site(ir::InternSite("train.cc", "main", 8));
    z = Sum(x * y);
  }
  Assign("add_", y, y + y);
  EXPECT_EQ(BackwardError(z),
            "mul: a tensor that backward needs was changed in place after it was used at "
            "train.cc:8 (version 1, saved at 0); "
            "clone() it before changing it");
}

TEST(BackwardTest, AResultChangedInPlaceIsNoticed) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = Exp(x);
  const Tensor z = Sum(y);
  Assign("add_", Detach(y), y + y);
  EXPECT_THAT(BackwardError(z),
              HasSubstr("exp: a tensor that backward needs was changed in place"));
}

TEST(BackwardTest, AnInPlaceOpIsPartOfTheHistory) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = x * 2.0;
  Assign("add_", y, y + x);  // y = 3x
  Backward(Sum(y), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(3, 3));
}

TEST(BackwardTest, ALeafThatWantsAGradientIsNotChangedInPlace) {
  const Tensor x = Leaf({1, 2}), y = Floats({1, 1});
  EXPECT_STATUS(
      kFailedPrecondition,
      "add_: a leaf tensor that requires a gradient is changed in place; do it under NoGrad",
      Assign("add_", x, y));
  const GradModeGuard off(false);
  Assign("add_", x, y);
  EXPECT_THAT(Values(x), ElementsAre(1, 1));
  EXPECT_TRUE(x.requires_grad());
}

TEST(BackwardTest, GradientsOfGradients) {
  const Tensor x = Leaf({2, 3});
  Backward(Sum(PowNumber(x, 3)), {}, {.create_graph = true});
  const Tensor first = GradOf(x);
  EXPECT_THAT(Values(first), ElementsAre(12, 27));
  x.impl()->mutable_autograd().grad = {};
  Backward(Sum(first), {}, {.create_graph = true});
  const Tensor second = GradOf(x);
  EXPECT_THAT(Values(second), ElementsAre(12, 18));
  x.impl()->mutable_autograd().grad = {};
  Backward(Sum(second), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(6, 6));
}

TEST(BackwardTest, GradientNodesHaveTheLineOfTheirForwardOp) {
  const Tensor x = Leaf({1, 2});
  const SiteId forward = ir::InternSite("model.cc", "forward", 7);
  Tensor y;
  {
    const SiteScope site(forward);
    y = Exp(x);
  }
  const SiteScope site(ir::InternSite("train.cc", "main", 41));
  Backward(y, Floats({1, 1}), {});
  const Tensor grad = GradOf(x);
  const Context::Lock lock(Context::Current());
  EXPECT_EQ(Context::Current().PendingValue(grad.storage()).node->site(), forward);
}

// A saved tensor becomes an output only if a sync falls between forward and backward.
TEST(BackwardTest, SavedTensorsAreOutputsOnlyIfASyncComesBetween) {
  const Tensor x = Leaf({1, 2});
  auto outputs = [] {
    const std::string hlo = LastProgram()->hlo();
    const std::size_t root = hlo.rfind("ROOT");
    return std::count(hlo.begin() + static_cast<std::ptrdiff_t>(root),
                      hlo.begin() + static_cast<std::ptrdiff_t>(hlo.find('\n', root)), '%');
  };
  {
    const Tensor loss = Sum(Exp(Exp(x)));
    Backward(loss, {}, {});
    ASSERT_TRUE(Sync().ok());
    EXPECT_EQ(LastProgram()->checks().size(), 0u);
  }
  const auto fused = outputs();
  x.impl()->mutable_autograd().grad = {};
  const Tensor loss = Sum(Exp(Exp(x)));
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(outputs() - fused, 1);  // loss and two saved results, against loss and one gradient
  Backward(loss, {}, {});
  const std::vector<float> late = Grad(x);
  x.impl()->mutable_autograd().grad = {};
  Backward(Sum(Exp(Exp(x))), {}, {});
  EXPECT_EQ(Grad(x), late);
}

TEST(BackwardTest, ANumberThatWasSavedIsNoOutputAndWorksTwice) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = Mul(Div(x, Slot(4)), x);  // x^2 / 4
  ASSERT_TRUE(Sync().ok());
  Backward(Sum(y), {}, {.create_graph = true});
  ASSERT_TRUE(Sync().ok());
  const Tensor first = GradOf(x);
  EXPECT_THAT(Values(first), ElementsAre(0.5, 1));
  x.impl()->mutable_autograd().grad = {};
  Backward(Sum(first), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(0.5, 0.5));
}

TEST(BackwardTest, ALeafWhoseDataWasReplacedUsesWhatTheForwardPassSaw) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = Sum(x * x);
  x.impl()->set_storage(Floats({10, 20}).impl()->storage());
  Backward(y, {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(2, 4));
}

TEST(BackwardTest, GradientsCrossDevices) {
  const Tensor x = Leaf({1, 2});
  const Tensor there = ToDevice(x * 3.0, TestDevice(1));
  EXPECT_EQ(there.device(), TestDevice(1));
  Backward(Sum(there * there), {}, {});
  EXPECT_EQ(GradOf(x).device(), TestDevice(0));
  EXPECT_THAT(Grad(x), ElementsAre(18, 36));
}

TEST(BackwardTest, SeveralOutputsOfOneOp) {
  const Tensor x = WithGrad(Of<float>({2, 3}, {1, 5, 2, 7, 0, 7}));
  auto [values, indices] = Max(x, 1, false);
  EXPECT_FALSE(indices.requires_grad());
  Backward(Sum(values * Floats({1, 10})), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(0, 1, 0, 10, 0, 0));  // the first of equals
}

TEST(BackwardTest, EqualExtremaShareTheGradient) {
  const Tensor x = Leaf({3, 1, 3});
  Backward(Amax(x), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(0.5, 0, 0.5));
  const Tensor a = Leaf({1, 2}), b = Leaf({1, 3});
  Backward(Sum(Maximum(a, b)), {}, {});
  EXPECT_THAT(Grad(a), ElementsAre(0.5, 0));
  EXPECT_THAT(Grad(b), ElementsAre(0.5, 1));
}

TEST(BackwardTest, TheGradientOfAProductStandsZeros) {
  const Tensor none = Leaf({2, 3, 4}), one = Leaf({2, 0, 4}), two = Leaf({0, 0, 4});
  for (const Tensor& x : {none, one, two}) Backward(Prod(x), {}, {});
  EXPECT_THAT(Grad(none), ElementsAre(12, 8, 6));
  EXPECT_THAT(Grad(one), ElementsAre(0, 8, 0));
  EXPECT_THAT(Grad(two), ElementsAre(0, 0, 0));
}

TEST(BackwardTest, TheGradientOfAPowerStandsZeros) {
  const Tensor x = Leaf({0, 0, 2}), y = Leaf({0, 2, 3});
  Backward(Sum(Pow(x, y)), {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(0, 0, 12));
  EXPECT_THAT(Grad(y), ElementsAre(0, 0, 8 * std::log(2.0f)));
  const Tensor z = Leaf({0, 3});
  Backward(Sum(PowNumber(z, 0)), {}, {});
  EXPECT_THAT(Grad(z), ElementsAre(0, 0));
}

TEST(BackwardTest, GradientsOfMixedDtypesHaveTheTypeOfTheLeaf) {
  const Tensor x = WithGrad(Of<double>({2}, {1, 2})), y = Leaf({3, 4});
  Backward(Sum(x * y), {}, {});
  EXPECT_EQ(GradOf(x).dtype(), DType::kF64);
  EXPECT_EQ(GradOf(y).dtype(), DType::kF32);
  EXPECT_THAT(Grad(y), ElementsAre(1, 2));
}

// --- hooks

TEST(HooksTest, SeeTheWholeGradientOnceAndMayReplaceIt) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = x * 2.0;
  std::vector<std::vector<float>> seen;
  AddHook(y, [&](const Tensor& g) {
    seen.push_back(Values(g));
    return g * 10.0;
  });
  Backward(Sum(y * y) + Sum(y), {}, {});  // 2y + 1, of two users
  EXPECT_THAT(seen, ElementsAre(ElementsAre(5, 9)));
  EXPECT_THAT(Grad(x), ElementsAre(100, 180));
}

TEST(HooksTest, ALeafsAreCalledWithTheSumOfOneBackward) {
  const Tensor x = Leaf({1, 2});
  int calls = 0;
  const HookHandle handle = AddHook(x, [&](const Tensor& g) {
    ++calls;
    return g * 10.0;
  });
  Backward(Sum(x * 3.0) + Sum(x), {}, {});
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(Grad(x), ElementsAre(40, 40));
  RemoveHook(handle);
  RemoveHook(handle);
  Backward(Sum(x), {}, {});
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(Grad(x), ElementsAre(41, 41));
}

TEST(HooksTest, GoOneAfterTheOtherAndMayRemoveThemselves) {
  const Tensor x = Leaf({1});
  HookHandle first;
  first = AddHook(x, [&](const Tensor& g) {
    RemoveHook(first);
    return g + 1.0;
  });
  AddHook(x, [](const Tensor& g) { return g * 2.0; });
  AddHook(x, [](const Tensor&) { return Tensor(); });  // only looks
  Backward(x, {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(4));
  Backward(x, {}, {});
  EXPECT_THAT(Grad(x), ElementsAre(6));
}

TEST(HooksTest, AreRefusedWhereThereIsNothingToSee) {
  EXPECT_STATUS(kFailedPrecondition,
                "register_hook: f32[2] requires no gradient, so there is none to see",
                AddHook(Floats({1, 2}), [](const Tensor& g) { return g; }));
  const Tensor x = Leaf({1, 2});
  AddHook(x, [](const Tensor&) { return Floats({1}); });
  EXPECT_EQ(BackwardError(Sum(x)),
            "register_hook: the hook gave f32[1] in place of the gradient f32[2]");
}

TEST(HooksTest, OfATensorThatIsWrittenToSeeTheGradientOfWhatItWas) {
  const Tensor x = Leaf({1});
  const Tensor y = x * 2.0;
  std::vector<float> seen;
  AddHook(y, [&](const Tensor& g) {
    seen = Values(g);
    return Tensor();
  });
  Assign("add_", y, y + y);
  Backward(y, {}, {});
  EXPECT_THAT(seen, ElementsAre(2));
}

// --- Grad

Tensors GradsOf(const Tensor& output, const Tensors& inputs, BackwardOptions options = {},
                bool allow_unused = false) {
  return Grad(absl::MakeConstSpan(&output, 1), inputs, {}, options, allow_unused);
}
std::string GradError(const Tensor& output, const Tensors& inputs) {
  return std::string(Message(ErrorOf([&] { (void)GradsOf(output, inputs); })));
}

TEST(GradTest, OfLeavesAndResultsLeavesTheirGradAlone) {
  const Tensor x = Leaf({1, 2}), w = Leaf({3, 4});
  const Tensor y = x * w;
  const Tensors grads = GradsOf(Sum(y * y) + Sum(x), {x, y, w, x});
  EXPECT_THAT(Values(grads[0]), ElementsAre(2 * 3 * 3 + 1, 2 * 8 * 4 + 1));
  EXPECT_THAT(Values(grads[1]), ElementsAre(6, 16));
  EXPECT_THAT(Values(grads[2]), ElementsAre(6, 32));
  EXPECT_THAT(Values(grads[3]), ElementsAre(19, 65));
  EXPECT_FALSE(GradOf(x).defined());
  EXPECT_FALSE(GradOf(w).defined());
}

TEST(GradTest, OfSeveralOutputsIsTheSum) {
  const Tensor x = Leaf({1, 2});
  const Tensors outputs{x * x, Sum(x)};
  const Tensors grads = Grad(outputs, Tensors{x}, Tensors{Floats({1, 10}), Tensor()}, {}, false);
  EXPECT_THAT(Values(grads[0]), ElementsAre(3, 41));
}

TEST(GradTest, OfAnOutputItselfIsWhatWasGiven) {
  const Tensor x = Leaf({1});
  const Tensor y = Exp(x);
  EXPECT_THAT(Values(GradsOf(y, {y})[0]), ElementsAre(1));
  EXPECT_THAT(Values(GradsOf(x, {x})[0]), ElementsAre(1));
}

TEST(GradTest, FreesOnlyWhatLiesBetween) {
  const Tensor x = Leaf({1, 2});
  const Tensor y = Exp(x), z = Sum(y * y);
  (void)GradsOf(z, {y});
  EXPECT_THAT(BackwardError(z), HasSubstr("mul saved were freed by an earlier backward"));
  Backward(Sum(y), {}, {});  // exp has not run
  EXPECT_TRUE(GradOf(x).defined());
}

TEST(GradTest, GoesOnWithAHistory) {
  const Tensor x = Leaf({2, 3});
  const Tensor first = GradsOf(Sum(PowNumber(x, 3)), {x}, {.create_graph = true})[0];
  EXPECT_THAT(Values(first), ElementsAre(12, 27));
  EXPECT_THAT(Values(GradsOf(Sum(first), {x})[0]), ElementsAre(12, 18));
}

// The gradient of x + 0 with respect to x is what was given, and so are its gradients.
TEST(GradTest, AGradientThatArrivesUnchangedLeadsToTheOneThatWasGiven) {
  const Tensor x = Leaf({1, 2}), given = Leaf({3, 4});
  const Tensor first = lazy::Grad({x + 0.0}, {x}, {given}, {.create_graph = true}, false)[0];
  EXPECT_NE(first.impl(), given.impl());
  ASSERT_TRUE(first.requires_grad());
  EXPECT_THAT(Values(GradsOf(Sum(first * first), {given}, {})[0]), ElementsAre(6, 8));
  Backward(x + 0.0, given, {.create_graph = true});
  EXPECT_THAT(Values(GradsOf(Sum(GradOf(x) * 5.0), {given}, {})[0]), ElementsAre(5, 5));
}

TEST(GradTest, HooksComeFirst) {
  const Tensor x = Leaf({1});
  const Tensor y = x * 2.0;
  AddHook(x, [](const Tensor& g) { return g * 10.0; });
  AddHook(y, [](const Tensor& g) { return g + 1.0; });
  const Tensors grads = GradsOf(y * 3.0, {x, y});
  EXPECT_THAT(Values(grads[0]), ElementsAre(80));
  EXPECT_THAT(Values(grads[1]), ElementsAre(4));
}

TEST(GradTest, OfAnInputThatPassesNoGradientIsZero) {
  const Tensor x = Leaf({1, 2});
  EXPECT_THAT(Values(GradsOf(Sum(Sign(x)), {x})[0]), ElementsAre(0, 0));
}

TEST(GradTest, RefusesInputsWithoutOne) {
  const Tensor x = Leaf({1, 2}), unused = Leaf({1});
  EXPECT_EQ(GradError(Sum(x), {x, Floats({1})}), "grad: input 1, f32[1], requires no gradient");
  EXPECT_EQ(GradError(Sum(x), {x, unused}),
            "grad: the outputs do not depend on input 1, f32[1]; allow_unused leaves its gradient "
            "undefined");
  EXPECT_FALSE(GradsOf(Sum(x), {unused}, {}, /*allow_unused=*/true)[0].defined());
  EXPECT_EQ(
      GradError(x * x, {x}),
      "grad: f32[2] is not a scalar; reduce it (sum, mean) or pass the gradient of the result");
  EXPECT_EQ(
      Message(ErrorOf([&] { (void)Grad(Tensors{Sum(x)}, Tensors{x}, Tensors{x, x}, {}, false); })),
      "grad: there are 2 gradients for 1 tensors");
}

TEST(BackwardTest, AnomalyModeIsTheRuntimes) {
  {
    const ir::Runtime::Scope fresh;
    SetAnomalyMode({.enabled = true, .check_nan = true});
    EXPECT_TRUE(GetAnomalyMode().enabled);
  }
  EXPECT_FALSE(GetAnomalyMode().enabled);
}

}  // namespace
}  // namespace lazuli::lazy
