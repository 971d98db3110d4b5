// Weights in the layout of a library call: brought there once an update, however often they are
// used.
#include <cstdint>

#include "benchmarks/models.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

std::int64_t Packings() { return metrics::counter("cpu.weight_packings"); }

// Builds without oneDNN have no call for convolutions.
bool LibraryConvolves() {
  const Tensor y = nn::Conv2d(8, 16, 3)(ones({1, 8, 9, 9}));
  sync(/*wait=*/true);
  return debug::last_stats().library_calls > 0;
}

class PackingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LibraryConvolves()) GTEST_SKIP() << "needs oneDNN";
  }

  // The convolution, run `count` times.
  void Evaluate(int count) {
    const NoGrad no_grad;
    for (int i = 0; i < count; ++i) {
      y_ = conv_(x_);
      sync(/*wait=*/true);
    }
  }
  std::vector<float> OnInterpreter() {
    const Device interpreter("interpreter");
    return nn::functional::conv2d(x_.to(interpreter), conv_.weight.to(interpreter))
        .to_vector<float>();
  }
  void ExpectRight() {
    EXPECT_THAT(y_.to_vector<float>(),
                testing::Pointwise(testing::FloatNear(1e-5f), OnInterpreter()));
  }

  nn::Conv2d conv_{8, 16, 3, {.bias = false}};
  Tensor x_ = randn({4, 8, 9, 9}), y_;
};

TEST_F(PackingTest, AnEvaluationLoopPacksOnce) {
  const std::int64_t before = Packings();
  Evaluate(5);
  EXPECT_EQ(Packings() - before, 1);
  ExpectRight();
}

TEST_F(PackingTest, WeightsThatChangedArePackedAgain) {
  Evaluate(2);
  const std::int64_t before = Packings();
  {
    const NoGrad no_grad;
    conv_.weight.mul_(-2.0);  // in the same memory
  }
  sync(/*wait=*/true);
  Evaluate(3);
  EXPECT_EQ(Packings() - before, 1);
  ExpectRight();
  conv_.weight.set_data(randn({16, 8, 3, 3}));
  sync(/*wait=*/true);
  Evaluate(3);
  EXPECT_EQ(Packings() - before, 2);
  ExpectRight();
}

// Two layers of one shape are one program, which keeps what it packed last.
TEST_F(PackingTest, LayersOfOneShapeDoNotTakeEachOthersWeights) {
  const nn::Conv2d first = conv_;
  nn::Conv2d second{8, 16, 3, {.bias = false}};
  for (int i = 0; i < 3; ++i) {
    conv_ = i % 2 == 0 ? first : second;
    Evaluate(2);
    ExpectRight();
  }
}

// Forward of either convolution, and the gradient of what comes in between: their layouts differ.
TEST_F(PackingTest, ATrainingStepPacksOncePerUse) {
  bench::Training<bench::LeNet> training;
  const std::int64_t before = Packings();
  constexpr int kSteps = 4;
  for (int i = 0; i < kSteps; ++i) training.Step();
  sync(/*wait=*/true);
  EXPECT_EQ(Packings() - before, kSteps * 3);
}

}  // namespace
}  // namespace lazuli
