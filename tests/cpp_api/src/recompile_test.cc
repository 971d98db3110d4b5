#include <functional>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lazuli/lazuli.h"

namespace lazuli {
namespace {

using testing::HasSubstr;

// What one step records and keeps; the step is the same code each time.
using Step = std::function<std::vector<Tensor>(int step)>;

// Two or more steps, each with a sync at one line; says why the last had to compile. Lines of this
// file are LINE.
debug::Recompile WhyAfter(int steps, const Step& step) {
  debug::Recompile why;
  for (int i = 0; i < steps; ++i) {
    const std::vector<Tensor> kept = step(i);
    sync(/*wait=*/true);
    why = debug::explain_recompile();
  }
  why.sentence = std::regex_replace(why.sentence, std::regex("recompile_test\\.cc:\\d+"), "LINE");
  return why;
}

// An input of the program, with no graph of its own.
Tensor Input(const Dims& dims, DType dtype = kFloat32) {
  const NoGrad off;
  Tensor x = zeros(dims, dtype);
  sync(/*wait=*/true);
  return x;
}

struct Cause {
  const char* cause;
  const char* sentence;
  Step step;
};

std::vector<Cause> Zoo() {
  // Of sizes that occur nowhere else, so that no other test compiled these programs.
  const Tensor a = Input({3, 5, 7}), b = Input({3, 5, 7}), c = Input({3, 5, 7});
  const auto one = [](const Tensor& x) { return std::vector<Tensor>{x}; };
  return {
      {"batch", "batch 64 -> 37 at LINE: the last batch is smaller; drop_last or pad it to 64",
       [one](int i) { return one(exp(Input({i == 0 ? 64 : 37, 11}))); }},
      {"batch", "batch 13 -> 17 at LINE: batches differ; pad them to one size, or to a few",
       [one](int i) { return one(sin(Input({i == 0 ? 13 : 17, 11}))); }},
      {"shape",
       "dimension 1 of f32[3,29] 23 -> 29 at LINE: lengths differ; pad them to one, or to a few",
       [one](int i) { return one(cos(Input({3, i == 0 ? 23 : 29}))); }},
      {"shape", "shape f32[3,31] -> f32[5,37] at LINE: pad it to one shape, or to a few",
       [one](int i) { return one(tan(i == 0 ? Input({3, 31}) : Input({5, 37}))); }},
      {"shape", "shape f32[41] -> f32[41,1] at LINE: give it one shape, by reshape or unsqueeze",
       [one](int i) { return one(sinh(i == 0 ? Input({41}) : Input({41, 1}))); }},
      {"dtype", "dtype f32 -> f64 at LINE: convert it once, before the loop",
       [one](int i) { return one(cosh(Input({43}, i == 0 ? kFloat32 : kFloat64))); }},
      {"attribute",
       "exponent of aten::pow 3 -> 5 at LINE: an exponent is part of the program; a tensor of one "
       "element is an input",
       [=](int i) { return one(pow(a, i == 0 ? 3.0 : 5.0)); }},
      {"attribute",
       "value of prim::Constant 0.25 -> 0.75 at LINE: constants are part of the program; a plain "
       "number or a tensor is an input",
       [=](int i) { return one(a - constant(i == 0 ? 0.25 : 0.75)); }},
      {"attribute",
       "dim of aten::cumsum 1 -> 2 at LINE: attributes are part of the program; use one value, or "
       "a few",
       [=](int i) { return one(cumsum(a, i == 0 ? 1 : 2)); }},
      {"number",
       "a number of prim::Constant an input -> an attribute at LINE: a number that is part of the "
       "program makes a program for each value; give a tensor",
       [=](int i) { return one(i == 0 ? a + 0.5 : a + constant(0.5)); }},
      {"number", "an input a number -> a tensor at LINE: give the same kind in every step",
       [=](int i) { return one(i == 0 ? a * 2.0 : a * b); }},
      {"operation",
       "operation aten::tanh -> aten::sigmoid at LINE: the line records another operation; where() "
       "chooses without another program",
       [=](int i) { return one(i == 0 ? tanh(a) : sigmoid(a)); }},
      {"more nodes",
       "number of aten::floor 0 -> 1 at LINE: code that did not run before; compute both branches "
       "and choose by where",
       [=](int i) {
         Tensor x = log1p(a);
         if (i == 1) x = floor(x);
         return one(expm1(x));
       }},
      {"fewer nodes",
       "number of aten::ceil 1 -> 0 at LINE: code that runs no longer; compute both branches and "
       "choose by where",
       [=](int i) {
         Tensor x = log2(a);
         if (i == 0) x = ceil(x);
         return one(exp2(x));
       }},
      {"more nodes",
       "number of aten::sin 2 -> 3 at LINE: a loop is unrolled into the program; run it equally "
       "often, or sync in it",
       [=](int i) {
         Tensor x = a;
         for (int k = 0; k < i + 2; ++k) x = sin(x);
         return one(x);
       }},
      {"wiring",
       "operand 1 of aten::sub %1 xla::device_data at LINE -> %3 xla::device_data at LINE "
       "at LINE: the same operations on other operands are another program",
       [=](int i) {
         const Tensor all = maximum(minimum(a, b), c);
         const Tensor& other = i == 0 ? b : c;
         return std::vector<Tensor>{all, a - other};
       }},
      {"wiring",
       "number of inputs of the program 2 -> 1 at LINE: one tensor in two places is one "
       "input, two tensors are two (aten::hypot)",
       [=](int i) { return one(hypot(a, i == 0 ? b : a)); }},
      {"results",
       "number of results 1 -> 2 at LINE: the result of aten::neg is kept now; drop it "
       "before the sync, or keep it always",
       [=](int i) {
         std::vector<Tensor> kept{-a};
         kept.push_back(abs(kept[0]));
         if (i == 0) kept.erase(kept.begin());
         return kept;
       }},
      {"fewer nodes",
       "number of aten::rsqrt 1 -> 0 at LINE: code that runs no longer, or a sync comes after it "
       "and "
       "makes its result an input",
       [=](int i) {
         const Tensor x = rsqrt(a);
         if (i == 1) sync(/*wait=*/true);
         return one(erf(x) + b * log10(c) - minimum(c, b));
       }},
      {"leaf",
       "what aten::full gives computed in the graph -> data that was there at LINE: a sync or "
       "read "
       "falls at another place, or state is made in the first step; it is one compile more unless "
       "it alternates",
       [=](int i) { return one(expm1(i == 0 ? zeros({3, 5, 7}) : b) * log10(c) - erfc(c)); }},
      {"options",
       "option platform cpu -> interpreter at LINE: programs are compiled for one set "
       "of options; set them before the first step",
       [=](int i) {
         const Tensor x = i == 0 ? a : a.to(Device("interpreter:0"));
         return one(erfc(x));
       }},
  };
}

TEST(RecompileTest, EachCauseHasItsSentence) {
  for (const Cause& cause : Zoo()) {
    const debug::Recompile why = WhyAfter(2, cause.step);
    EXPECT_EQ(why.sentence, cause.sentence);
    EXPECT_EQ(why.cause, cause.cause) << why.sentence;
    EXPECT_THAT(why.site, HasSubstr("recompile_test.cc:"));
    EXPECT_THAT(why.nearest, HasSubstr("SyncTensorsGraph."));
  }
}

// The first step makes the weights and the optimiser's state, the second one finds them.
TEST(RecompileTest, TheSecondStepOfALoopFindsStateThatTheFirstMade) {
  const Tensor x = Input({5, 61});
  // The second time the line has another loop's programs.
  for (const bool amsgrad : {false, true}) {
    nn::Linear layer(61, 7);
    const int made_at = __LINE__ - 1;
    optim::Adam adam(layer.parameters(), {.amsgrad = amsgrad});
    debug::Recompile why;
    for (int i = 0; i < 2; ++i) {
      adam.zero_grad();
      layer(x).square().mean().backward();
      adam.step();
      sync(/*wait=*/true);
      why = debug::explain_recompile();
    }
    EXPECT_EQ(why.cause, "leaf") << why.sentence;
    EXPECT_THAT(why.sentence, HasSubstr("computed in the graph -> data that was there"));
    EXPECT_THAT(why.site, HasSubstr("recompile_test.cc:" + std::to_string(made_at)));
  }
}

TEST(RecompileTest, TheSecondStepOfMomentumFindsMoreOperands) {
  const Tensor x = Input({5, 67});
  nn::Linear layer(67, 7);
  optim::SGD sgd(layer.parameters(), {.lr = 0.1, .momentum = 0.9});
  sync(/*wait=*/true);
  debug::Recompile why;
  for (int i = 0; i < 2; ++i) {
    sgd.zero_grad();
    layer(x).square().mean().backward();
    sgd.step();
    sync(/*wait=*/true);
    why = debug::explain_recompile();
  }
  EXPECT_THAT(why.sentence, HasSubstr("number of operands of aten::_foreach_sgd"));
  EXPECT_THAT(why.sentence, HasSubstr("state that the first step makes"));
}

// A helper's line runs graphs that have nothing to do with each other.
TEST(RecompileTest, AProgramThatHasNothingInCommonIsNotCompared) {
  const auto helper = [] {
    sync(/*wait=*/true);
    return debug::explain_recompile().sentence;
  };
  const Tensor x = Input({71, 3});
  const Tensor product = x.matmul(x.t());
  const std::string before = helper();
  Tensor y = x;
  for (int k = 0; k < 6; ++k) y = atan(y) + cosh(y);
  EXPECT_EQ(helper(), before);  // there is no new explanation
}

// Of several programs of a line the nearest is the one that the sentence is about.
TEST(RecompileTest, TheNearestProgramIsCompared) {
  const debug::Recompile why = WhyAfter(3, [](int i) {
    const Tensor x = Input({i == 2 ? 47 : 53, 19});
    Tensor y = i == 1 ? exp(x) : sin(x);
    for (int k = 0; k < 8; ++k) y = i == 1 ? y * y : y + y;
    return std::vector<Tensor>{y};
  });
  EXPECT_EQ(why.sentence,
            "batch 53 -> 47 at LINE: the last batch is smaller; drop_last or pad it to 53");
  EXPECT_EQ(why.before + why.after, "5347");
}

TEST(RecompileTest, ALoopThatCompilesEachTimeIsSaidOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 24; ++i) {
    const std::vector<float> values(static_cast<std::size_t>(59 * (i + 2)));
    const Tensor x = from_data(values.data(), kFloat32, {59, i + 2});
    const Tensor y = cosh(x);
    sync(/*wait=*/true);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, testing::MatchesRegex(
                        "lazuli: 8 recompiles in a row \\(recompile_test\\.cc:[0-9]+\\), the last: "
                        "dimension 1 of f32\\[59,[0-9]+\\] [0-9]+ -> [0-9]+ at .*\n"));
}

}  // namespace
}  // namespace lazuli
