// What a user believes of training.
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/train.h"

namespace lazuli::test {
namespace {

using testing::HasSubstr;

TEST(TrainingTest, LearnsAndCompilesOnceForEachKindOfStep) {
  manual_seed(1);
  SmallLeNet net;
  optim::SGD opt(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  data::DataLoader train = Digits(1020), test = Digits(120, /*train=*/false);

  const std::int64_t before = Compilations();
  std::vector<float> losses = TrainEpoch(net, opt, train);
  EXPECT_EQ(Compilations() - before, 3) << "the first step, steady ones, the last of 20 images";
  Accuracy(net, test);
  EXPECT_EQ(Compilations() - before, 5) << "evaluation, and its last batch of 20 images";

  for (int epoch = 2; epoch <= 5; ++epoch) losses = TrainEpoch(net, opt, train);
  const double accuracy = Accuracy(net, test);
  EXPECT_EQ(Compilations() - before, 5) << "later epochs compile nothing";
  EXPECT_LT(losses.back(), 0.3);
  EXPECT_GT(accuracy, 0.9);
}

TEST(TrainingTest, AdamLearnsWithDropoutAndCompilesTwoSteps) {
  manual_seed(1);
  nn::Sequential body(nn::Flatten(), nn::Linear(784, 32), nn::ReLU(), nn::Dropout(0.2),
                      nn::Linear(32, 10));
  optim::Adam opt(body.parameters(), {.lr = 3e-3});
  data::DataLoader train = Digits(1000), test = Digits(300, /*train=*/false);
  const std::int64_t before = Compilations();
  for (int epoch = 0; epoch < 4; ++epoch) TrainEpoch(body, opt, train);
  EXPECT_EQ(Compilations() - before, 2) << "random numbers are not constants of the program";
  body.eval();
  EXPECT_GT(Accuracy(body, test), 0.9);
}

TEST(TrainingTest, TheSameSeedGivesTheSameLosses) {
  const auto losses = [](std::uint64_t seed) {
    manual_seed(seed);
    SmallLeNet net;
    optim::Adam opt(net.parameters());
    data::DataLoader train = Digits(300);
    return TrainEpoch(net, opt, train);
  };
  const std::vector<float> first = losses(1);
  EXPECT_EQ(first, losses(1));
  EXPECT_NE(first, losses(2));
}

TEST(TrainingTest, ReadingTheLossFirstIsTheSameStepAndRunsNothingTwice) {
  const auto runs = [] {
    return metrics::counter("UncachedCompile") + metrics::counter("CachedCompile");
  };
  manual_seed(1);
  SmallLeNet net;
  optim::SGD opt(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  data::DataLoader train = Digits(500);
  TrainEpoch(net, opt, train);
  const std::int64_t compiled = Compilations(), ran = runs();
  for (auto& [x, y] : train) {
    opt.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    EXPECT_GT(loss.item(), 0);
    mark_step();
  }
  EXPECT_EQ(Compilations() - compiled, 0);
  EXPECT_EQ(runs() - ran, 10);
}

TEST(TrainingTest, ParametersAndTheirUpdatesAreNamedInTheProgram) {
  manual_seed(1);
  SmallLeNet net;
  optim::SGD opt(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  data::DataLoader train = Digits(150);
  TrainEpoch(net, opt, train);
  const std::string hlo = debug::last_hlo();
  EXPECT_THAT(hlo, HasSubstr("conv1.weight"));
  EXPECT_THAT(hlo, HasSubstr("fc2.bias.momentum"));
}

}  // namespace
}  // namespace lazuli::test
