// Loops on the device: values, gradients, draws and checks, and how often something is compiled.
#include "lazy/control/loops.h"

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class LoopsTest : public OnEachClient {};

LAZULI_ON_EACH_CLIENT(LoopsTest);

ScanArguments Over(Tensors init, Tensors xs, int64_t count, bool reverse = false) {
  return {.name = "scan",
          .init = std::move(init),
          .xs = std::move(xs),
          .count = count,
          .reverse = reverse,
          .device = TestDevice()};
}

Bound Number(int64_t number) { return {Of<int64_t>({}, {number}), number}; }
Bound InTensor(int64_t number) { return {Of<int64_t>({}, {number}), std::nullopt}; }

Tensors Loop(Bound lower, Bound upper, Tensors init, TracedFunction function) {
  return ForLoop({"fori_loop", std::move(lower), std::move(upper), std::move(init), TestDevice()},
                 function);
}

TEST_P(LoopsTest, AScanIsOneProgramWhoseStepIsTracedOnce) {
  const Tensor xs = Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), outside = Exp(Floats({0, 0}));
  int calls = 0;
  const Work work;
  const Tensors results = Scan(Over({Floats({0, 1})}, {xs}, 4), [&](absl::Span<const Tensor> in) {
    ++calls;
    const Tensor sum = in[0] + in[1] * outside;
    return Tensors{sum, Mul(sum, in[1])};
  });
  EXPECT_THAT(Values(results[0]), ElementsAre(16, 21));
  EXPECT_THAT(Values(results[1]), ElementsAre(1, 6, 12, 28, 45, 78, 112, 168));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(work.runs(), 1);
}

TEST_P(LoopsTest, AReverseScanBeginsAtTheEnd) {
  const Tensor xs = Floats({1, 2, 3});
  const Tensors results =
      Scan(Over({Of<float>({}, {0.f})}, {xs}, 3, true), [](absl::Span<const Tensor> in) {
        const Tensor sum = in[0] + in[1];
        return Tensors{sum, sum};
      });
  EXPECT_THAT(Values(results[1]), ElementsAre(6, 5, 3));
}

// d(sum of all h) of h = tanh(w h + x), beside the same steps without a loop.
TEST_P(LoopsTest, TheGradientOfAScanIsThatOfItsSteps) {
  const auto step = [](const Tensor& h, const Tensor& x, const Tensor& w) {
    return Tanh(w * h + x);
  };
  std::vector<std::vector<float>> of_loop, of_steps;
  for (const bool loop : {true, false}) {
    const Tensor w = WithGrad(Floats({0.5, -0.25})),
                 x = WithGrad(Of<float>({3, 2}, {1, 2, 3, 4, 5, 6})),
                 h0 = WithGrad(Floats({0.1, 0.2})), w2 = w * w, scaled = x * 0.1;
    Tensor sum;
    if (loop) {
      const Tensors all = Scan(Over({h0}, {scaled}, 3), [&](absl::Span<const Tensor> in) {
        const Tensor h = step(in[0], in[1], w2);
        return Tensors{h, h * w};
      });
      sum = Sum(all[1]) + Sum(all[0]);
    } else {
      Tensor h = h0;
      for (int64_t i = 0; i < 3; ++i) {
        h = step(h, Reshape(Narrow(scaled, 0, i, 1), {2}), w2);
        sum = sum.defined() ? sum + Sum(h * w) : Sum(h * w);
      }
      sum = sum + Sum(h);
    }
    Backward(sum, {}, {});
    auto& found = loop ? of_loop : of_steps;
    for (const Tensor& leaf : {w, x, h0}) found.push_back(Values(GradOf(leaf)));
  }
  for (std::size_t i = 0; i < of_loop.size(); ++i)
    EXPECT_THAT(of_loop[i], testing::Pointwise(testing::FloatNear(1e-6), of_steps[i])) << i;
}

TEST_P(LoopsTest, OtherBoundsRunTheSameProgram) {
  const Work work;
  for (const int64_t steps : {3, 0, 10}) {
    for (const bool known : {true, false}) {
      const Tensors sum =
          Loop(known ? Number(0) : InTensor(0), known ? Number(steps) : InTensor(steps),
               {Of<float>({}, {1.f})},
               [](absl::Span<const Tensor> in) { return Tensors{in[1] + To(in[0], DType::kF32)}; });
      EXPECT_THAT(Values(sum[0]), ElementsAre(1 + steps * (steps - 1) / 2));
    }
  }
  EXPECT_EQ(work.compiles(), 1);
}

TEST_P(LoopsTest, ALoopOverNumbersIsDifferentiable) {
  const Tensor x = WithGrad(Floats({1.5, 2}));
  const Tensors power = Loop(Number(0), Number(3), {Floats({1, 1})},
                             [&](absl::Span<const Tensor> in) { return Tensors{in[1] * x}; });
  Backward(Sum(power[0]), {}, {});
  EXPECT_THAT(Values(GradOf(x)), ElementsAre(3 * 2.25, 12));
  const Tensors other = Loop(InTensor(0), Number(3), {Floats({1, 1})},
                             [&](absl::Span<const Tensor> in) { return Tensors{in[1] * x}; });
  EXPECT_THAT(Message(ErrorOf([&] { Backward(Sum(other[0]), {}, {}); })),
              HasSubstr("fori_loop: backward needs the number of steps"));
}

TEST_P(LoopsTest, AWhileLoopGoesOnAsLongAsItsConditionHolds) {
  const Tensor limit = Of<float>({}, {100.f});
  const auto more = [&](absl::Span<const Tensor> in) { return Tensors{Lt(in[0], limit)}; };
  const auto next = [](absl::Span<const Tensor> in) {
    return Tensors{in[0] * 2.0, Add(in[1], Constant(1, DType::kS64))};
  };
  const Tensors results = WhileLoop("while_loop", {Of<float>({}, {3.f}), Of<int64_t>({}, {0})},
                                    TestDevice(), more, next);
  EXPECT_THAT(Values(results[0]), ElementsAre(192));
  EXPECT_THAT(Values<int64_t>(results[1]), ElementsAre(6));
  const Tensor w = WithGrad(Of<float>({}, {3.f}));
  const Tensors wanted =
      WhileLoop("while_loop", {w, Of<int64_t>({}, {0})}, TestDevice(), more, next);
  EXPECT_THAT(Message(ErrorOf([&] { Backward(wanted[0], {}, {}); })),
              HasSubstr("backward through a loop needs the number of its steps"));
}

TEST_P(LoopsTest, LoopsNest) {
  const Tensor w = WithGrad(Floats({2, 3}));
  const Tensors results = Scan(Over({Floats({1, 1})}, {}, 2), [&](absl::Span<const Tensor> in) {
    return Loop(Number(0), Number(2), {in[0]},
                [&](absl::Span<const Tensor> inner) { return Tensors{inner[1] * w}; });
  });
  EXPECT_THAT(Values(results[0]), ElementsAre(16, 81));
  Backward(Sum(results[0]), {}, {});
  EXPECT_THAT(Values(GradOf(w)), ElementsAre(32, 108));
}

// Each step draws other numbers, which depend on the generator alone; it moves on by one block.
TEST_P(LoopsTest, StepsDrawTheirOwnNumbers) {
  std::vector<std::vector<float>> all;
  for (const bool syncs : {false, true}) {
    ManualSeed(7);
    const Tensor before = Rand({4}, DType::kF32, TestDevice());
    EXPECT_TRUE(!syncs || Sync().ok());
    const Tensors drawn = Scan(Over({}, {}, 3), [&](absl::Span<const Tensor>) {
      const Tensor first = Rand({2}, DType::kF32, TestDevice());
      return Tensors{Cat({first, Rand({1}, DType::kF32, TestDevice())})};
    });
    EXPECT_EQ(DefaultGenerator().state().offset, 2u);
    all.push_back(Values(drawn[0]));
  }
  EXPECT_EQ(all[0], all[1]);
  std::vector<float> numbers = all[0];
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const Tensors next = Scan(Over({}, {}, 1), [&](absl::Span<const Tensor>) {
    return Tensors{Rand({3}, DType::kF32, TestDevice())};
  });
  EXPECT_NE(Values(next[0])[0], all[0][0]);
}

TEST_P(LoopsTest, AWhileLoopDrawsInConditionAndStep) {
  ManualSeed(1);
  const Tensor zero = Of<float>({}, {0.f});
  const Tensors results = WhileLoop(
      "while_loop", {zero, zero}, TestDevice(),
      [&](absl::Span<const Tensor> in) {
        return Tensors{Lt(in[1] + Rand({}, DType::kF32, TestDevice()), Of<float>({}, {20.f}))};
      },
      [&](absl::Span<const Tensor> in) {
        return Tensors{in[0] + Rand({}, DType::kF32, TestDevice()), in[1] + 1.0};
      });
  EXPECT_GT(Values(results[0])[0], 5);
  EXPECT_LT(Values(results[0])[0], 15);
}

TEST_P(LoopsTest, ACheckOfAStepFailsTheRun) {
  const Tensor table = Floats({1, 2, 3}), places = Of<int64_t>({4}, {0, 2, 7, 9});
  const Tensors results = Scan(Over({}, {places}, 4), [&](absl::Span<const Tensor> in) {
    return Tensors{IndexSelect(table, 0, Reshape(in[0], {1}))};
  });
  const absl::Status status = ErrorOf([&] { (void)Values(results[0]); });
  EXPECT_THAT(Message(status), HasSubstr("index 7 is out of range"));
  EXPECT_THAT(Message(status), HasSubstr("in a call of scan"));
}

TEST_P(LoopsTest, WhatDoesNotFitIsRefused) {
  const Tensor x = Floats({1, 2});
  const absl::Status carried = ErrorOf([&] {
    Scan(Over({x}, {}, 2),
         [](absl::Span<const Tensor> in) { return Tensors{Reshape(in[0], {1, 2})}; });
  });
  EXPECT_EQ(
      Message(carried),
      "scan: carried tensor 0 is f32[2] before a step, and f32[1,2] after it; shape and dtype "
      "must stay the same");
  const absl::Status condition = ErrorOf([&] {
    const auto more = [](absl::Span<const Tensor> in) { return Tensors{Lt(in[0], in[0])}; };
    const auto next = [](absl::Span<const Tensor> in) { return Tensors{in[0]}; };
    WhileLoop("while_loop", {x}, TestDevice(), more, next);
  });
  EXPECT_EQ(Message(condition),
            "while_loop: the condition must return one bool without dims, not pred[2]");
}

}  // namespace
}  // namespace lazuli::lazy
