// Recurrent layers: their gradients, what is compiled, and their forms.
#include "lazuli/nn/recurrent.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "lazuli/lazuli.h"
#include "tests/support/expect_error.h"

namespace lazuli::nn {
namespace {

using test::ErrorOf;
using testing::HasSubstr;

struct Case {
  const char* cell;
  bool bidirectional, projected, lengths;
};

// The output and the last states of two layers.
std::vector<Tensor> ResultsOf(const Case& c, const Tensor& x, const Module& layer) {
  const Tensor lengths = c.lengths ? tensor({4, 2, 1}) : Tensor();
  if (std::string(c.cell) == "lstm") {
    const auto [y, state] = static_cast<const LSTM&>(layer).forward(x, {}, lengths);
    return {y, std::get<0>(state), std::get<1>(state)};
  }
  const auto [y, last] = std::string(c.cell) == "gru"
                             ? static_cast<const GRU&>(layer).forward(x, {}, lengths)
                             : static_cast<const RNN&>(layer).forward(x, {}, lengths);
  return {y, last};
}

template <class F>
void WithLayer(const Case& c, F&& f) {
  const std::string cell = c.cell;
  if (cell == "lstm") {
    LSTMOptions options;
    options.num_layers = 2, options.bidirectional = c.bidirectional;
    options.proj_size = c.projected ? 2 : 0;
    f(LSTM(3, 4, options));
  } else if (cell == "gru") {
    f(GRU(3, 4, {.num_layers = 2, .bidirectional = c.bidirectional}));
  } else {
    RNNOptions options;
    options.num_layers = 2, options.bidirectional = c.bidirectional;
    if (cell == "relu") options.nonlinearity = init::Nonlinearity::kReLU;
    f(RNN(3, 4, options));
  }
}

class RecurrentGradientTest : public testing::TestWithParam<Case> {};

// A gradient of which a gradient is wanted is recorded step by step; finite differences check that one
// (tests/ops).
TEST_P(RecurrentGradientTest, OfTheLoopIsThatOfRecordedSteps) {
  const Case c = GetParam();
  WithLayer(c, [&](auto layer) {
    layer.to(kFloat64);
    const Tensor x = randn({4, 3, 3}, kFloat64).requires_grad_(true);
    std::vector<Tensor> inputs = layer.parameters();
    inputs.push_back(x);
    const auto gradients = [&](bool create_graph) {
      Tensor sum;
      for (const Tensor& y : ResultsOf(c, x, layer)) {
        const Tensor part = (y * y * y).sum();
        sum = sum.defined() ? sum + part : part;
      }
      return lazuli::grad({sum}, inputs, {}, {.create_graph = create_graph});
    };
    const std::vector<Tensor> loop = gradients(false), steps = gradients(true);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(allclose(loop[i], steps[i].detach(), 1e-12, 1e-12)) << "input " << i;
      EXPECT_GT(loop[i].abs().sum().item<double>(), 0) << "input " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(
    Cells, RecurrentGradientTest,
    testing::Values(Case{"tanh", true, false, true}, Case{"relu", false, false, false},
                    Case{"lstm", false, true, false}, Case{"lstm", true, true, true},
                    Case{"gru", true, false, true}),
    [](const auto& info) {
      return std::string(info.param.cell) + (info.param.bidirectional ? "Bidirectional" : "") +
             (info.param.projected ? "Projected" : "") + (info.param.lengths ? "Lengths" : "");
    });

TEST(RecurrentTest, SequencesOfOtherLengthsNeedNoOtherProgram) {
  const LSTM layer(3, 4);
  const Tensor x = randn({5, 2, 3});
  const auto run = [&](std::int64_t first, std::int64_t second) {
    const auto [y, state] = layer.forward(x, {}, tensor({first, second}));
    return std::make_pair(y.cpu(), std::get<0>(state).cpu());
  };
  (void)run(5, 3);
  (void)run(1, 2);
  const std::int64_t before = metrics::counter("UncachedCompile");
  const auto [y, last] = run(2, 4);
  EXPECT_EQ(metrics::counter("UncachedCompile"), before);
  EXPECT_TRUE(equal(y[1][0], last[0][0]));
  EXPECT_TRUE(equal(y[3][1], last[0][1]));
  EXPECT_TRUE(equal(y[2][0], zeros({4}).cpu()));
}

TEST(RecurrentTest, OneSequenceHasNoBatch) {
  const GRU layer(3, 4, {.num_layers = 2, .batch_first = true});
  const Tensor x = randn({5, 3});
  const auto [y, last] = layer(x);
  const auto [batched, batched_last] = layer(unsqueeze(x, 0));
  EXPECT_TRUE(equal(y, batched[0]));
  EXPECT_TRUE(equal(last, squeeze(batched_last, 1)));
}

TEST(RecurrentTest, CellsTakeTheStepsOfALayer) {
  const LSTM layer(3, 4);
  LSTMCell cell(3, 4);
  const std::vector<Parameter>& w = layer.weights();
  cell.weight_ih = w[0], cell.weight_hh = w[1], cell.bias_ih = w[2], cell.bias_hh = w[3];
  const Tensor x = randn({2, 2, 3});
  const auto [y, state] = layer(x);
  LSTMCell::State now = cell(x[0]);
  now = cell(x[1], now);
  EXPECT_TRUE(allclose(std::get<0>(now), y[1], 1e-6, 1e-6));
  EXPECT_TRUE(allclose(std::get<1>(now), std::get<1>(state)[0], 1e-6, 1e-6));
}

TEST(RecurrentTest, ErrorsNameTheMistake) {
  const LSTM layer(3, 4);
  EXPECT_THAT(ErrorOf([&] { (void)layer(zeros({2, 2, 5})); }),
              HasSubstr("input.size(-1) must be equal to input_size. Expected 3, got 5"));
  EXPECT_THAT(ErrorOf([&] { (void)layer(zeros({0, 2, 3})); }),
              HasSubstr("Expected sequence length to be larger than 0 in RNN"));
  EXPECT_THAT(ErrorOf([&] {
                (void)layer(zeros({2, 2, 3}), LSTM::State(zeros({1, 3, 4}), zeros({1, 3, 4})));
              }),
              HasSubstr("expected hidden[0] of the dims [1, 2, hidden size]"));
  EXPECT_THAT(ErrorOf([&] { (void)layer(zeros({2, 2, 3}, kFloat64)); }),
              HasSubstr("convert one with to()"));
  EXPECT_THAT(ErrorOf([&] { (void)layer.forward(zeros({2, 2, 3}), {}, tensor({1.f, 2.f})); }),
              HasSubstr("lengths must be integers"));
  EXPECT_THAT(ErrorOf([] { (void)LSTM(3, 0); }), HasSubstr("hidden_size must be greater"));
}

}  // namespace
}  // namespace lazuli::nn
