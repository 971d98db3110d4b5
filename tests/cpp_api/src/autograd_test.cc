// What users write about gradients: functions of their own, hooks, checkpoints, modes.
#include "lazuli/autograd.h"

#include <functional>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> Doubles(const Tensor& x) { return x.to_vector<double>(); }
std::string WhatIsThrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
Tensor Leaf(const std::vector<double>& values) {
  return tensor(values, {static_cast<std::int64_t>(values.size())}).set_requires_grad(true);
}

// x^n, written by its own gradient.
struct Power : Function<Power> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, int n) {
    ctx->save_for_backward({x});
    ctx->saved_data["n"] = n;
    return pow(x, n);
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& dys) {
    const int n = std::any_cast<int>(ctx->saved_data["n"]);
    return {dys[0] * n * pow(ctx->get_saved_variables()[0], n - 1), {}};
  }
};

struct SumAndSign : Function<SumAndSign> {
  static std::vector<Tensor> forward(AutogradContext* ctx, const Tensor& x, const Tensor& y) {
    const Tensor s = sign(x);
    ctx->mark_non_differentiable({s});
    return {x + y, s};
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& dys) {
    EXPECT_TRUE(ctx->needs_input_grad(0));
    EXPECT_FALSE(ctx->needs_input_grad(1));
    EXPECT_THAT(Doubles(dys[1]), ElementsAre(0, 0));
    return {dys[0], dys[0]};
  }
};

struct Twofold : Function<Twofold> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>& dys) {
    return {dys[0] * 2, dys[0], dys[0]};
  }
};

TEST(FunctionTest, GradientsOfGradientsComeOfItself) {
  const Tensor x = Leaf({2, 3});
  const Tensor y = Power::apply(x, 3);
  EXPECT_EQ(y.grad_fn()->name(), "PowerBackward");
  const Tensor first = grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(Doubles(first), ElementsAre(12, 27));
  EXPECT_THAT(Doubles(grad({first.sum()}, {x})[0]), ElementsAre(12, 18));
  EXPECT_LT(gradcheck([](const auto& v) { return Power::apply(v[0], 3).sum(); }, {x}), 1e-7);
  EXPECT_LT(gradgradcheck([](const auto& v) { return Power::apply(v[0], 4).sum(); }, {x}), 1e-6);
}

TEST(FunctionTest, ResultsMayHaveNoGradient) {
  const Tensor x = Leaf({2, -3}), y = tensor({1.0, 1.0});
  const std::vector<Tensor> results = SumAndSign::apply(x, y);
  EXPECT_FALSE(results[1].requires_grad());
  (results[0] * 3).sum().backward();
  EXPECT_THAT(Doubles(x.grad()), ElementsAre(3, 3));
}

TEST(FunctionTest, WhatItChangesInPlaceIsItsResult) {
  const Tensor x = Leaf({2, 3}), y = x * 1;
  const Tensor z = Twofold::apply(y);
  EXPECT_TRUE(z.is_same(y));
  EXPECT_THAT(WhatIsThrown([&] { z.sum().backward(); }),
              HasSubstr("function TwofoldBackward returned an incorrect number of gradients "
                        "(expected 1, got 3)"));
  EXPECT_THAT(WhatIsThrown([&] { Twofold::apply(x); }),
              HasSubstr("TwofoldBackward: a leaf tensor that requires a gradient is changed"));
}

TEST(HooksTest, ResultsKeepTheirGradients) {
  const Tensor x = Leaf({1, 2});
  Tensor y = x * 2;
  EXPECT_TRUE(x.is_leaf() && !y.is_leaf() && !y.retains_grad());
  y.retain_grad();
  y.register_hook([](const Tensor& g) { return g * 10; });
  int leaves = 0;
  x.is_leaf();
  Tensor(x).register_post_accumulate_grad_hook([&](const Tensor& leaf) {
    ++leaves;
    EXPECT_THAT(Doubles(leaf.grad()), ElementsAre(20, 20));
  });
  y.sum().backward();
  EXPECT_THAT(Doubles(y.grad()), ElementsAre(10, 10));
  EXPECT_EQ(leaves, 1);
}

TEST(BackwardTest, OnlyToTheseInputs) {
  const Tensor x = Leaf({1, 2}), w = Leaf({3, 4});
  const Tensor y = x * w;
  backward({y.sum()}, {}, {y, w});
  EXPECT_THAT(Doubles(w.grad()), ElementsAre(1, 2));
  EXPECT_THAT(Doubles(y.grad()), ElementsAre(1, 1));
  EXPECT_FALSE(x.grad().defined());
}

TEST(CheckpointTest, RunsAgainBehindABarrier) {
  const Tensor x = Leaf({0.1, 0.2, 0.3}), w = Leaf({1, 2, 3});
  sync();
  const auto f = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{tanh(in[0] * w) * rand({3}, kFloat64)};
  };
  const auto tanhs = [&](bool checkpointed) {
    manual_seed(1);
    const Tensor y = checkpointed ? checkpoint(f, {x})[0] : f({x})[0];
    const std::vector<Tensor> gradients = grad({y.sum()}, {x, w});
    sync();
    const std::string hlo = debug::last_optimized_hlo();
    std::size_t count = 0;
    for (std::size_t at = hlo.find(" tanh("); at != std::string::npos;
         at = hlo.find(" tanh(", at + 1))
      ++count;
    return std::pair(count, std::vector{Doubles(y), Doubles(gradients[0]), Doubles(gradients[1])});
  };
  const auto plain = tanhs(false), again = tanhs(true);
  EXPECT_EQ(again.first, plain.first + 1);  // the compiler has not made one of the two
  EXPECT_EQ(again.second, plain.second);
}

TEST(CheckpointTest, AFunctionThatSavesOtherwiseTheSecondTimeIsRefused) {
  const Tensor x = Leaf({1, 2});
  int calls = 0;
  const Tensor y = checkpoint(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{++calls == 1 ? exp(in[0]) : exp(sin(in[0]))};
      },
      {x})[0];
  EXPECT_THAT(WhatIsThrown([&] { y.sum().backward(); }),
              HasSubstr("checkpoint: the function saved 1 tensors for backward, and 2 when it ran "
                        "again"));
}

TEST(SavedTensorsHooksTest, BackwardGetsWhatIsUnpacked) {
  const Tensor x = Leaf({1, 2}), w = Leaf({3, 4});
  Tensor y;
  {
    const SavedTensorsHooks hooks([](const Tensor& t) { return std::any(t * 10); },
                                  [](const std::any& t) { return std::any_cast<Tensor>(t); });
    y = x * w;
  }
  y.sum().backward();
  EXPECT_THAT(Doubles(x.grad()), ElementsAre(30, 40));
}

TEST(ModesTest, WhatInferenceModeMadeIsNeverSaved) {
  Tensor y;
  {
    const InferenceMode on;
    y = tensor({1.0, 2.0}) * 2;
  }
  EXPECT_TRUE(y.is_inference() && !InferenceMode::is_enabled());
  const Tensor x = Leaf({1, 2});
  EXPECT_FALSE((x + y).is_inference());
  EXPECT_THAT(WhatIsThrown([&] { x* y; }),
              HasSubstr("a tensor made in inference mode cannot be saved for backward"));
  EXPECT_THAT(Doubles(x * y.clone()), ElementsAre(2, 8));
}

TEST(ModesTest, AnomaliesNameTheForwardLine) {
  const Tensor x = Leaf({0, 4});
  const DetectAnomaly on;
  sqrt(x).sum().backward();  // infinite is no NaN
  const int line = __LINE__ + 1;
  const Tensor y = sqrt(x);
  const std::string message = WhatIsThrown([&] { (y * 0).sum().backward(); });
  EXPECT_THAT(message, HasSubstr("Function 'SqrtBackward0' returned nan values in its 0th output"));
  EXPECT_THAT(message, HasSubstr("autograd_test.cc:" + std::to_string(line)));
}

}  // namespace
}  // namespace lazuli
