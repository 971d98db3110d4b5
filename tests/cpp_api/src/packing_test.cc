// Weights in the layout of a library call: brought there once per update, however often they are
// used.
#include <array>
#include <cstdint>

#include "benchmarks/models.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

std::int64_t Packings() { return metrics::counter("cpu.weight_packings"); }

// Only oneDNN packs weights.
bool LibraryPacksWeights() {
  const std::int64_t before = Packings();
  const Tensor y = nn::Conv2d(8, 16, 3)(ones({1, 8, 9, 9}));
  sync(/*wait=*/true);
  return Packings() > before;
}

// oneDNN 2.6 has a layout of its own for matrices where its code for AVX-512 runs.
bool LibraryPacksMatrices() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bw") != 0;
#else
  return false;
#endif
}

class PackingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!LibraryPacksWeights()) GTEST_SKIP() << "needs oneDNN";
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

// Matrices are multiplied as they are until packing them pays: in the fifth run that has them.
class MatrixPackingTest : public PackingTest {
 protected:
  void SetUp() override {
    PackingTest::SetUp();
    if (!LibraryPacksMatrices()) GTEST_SKIP() << "needs AVX-512";
  }
  std::vector<float> Product(const Tensor& x) {
    const NoGrad no_grad;
    const Tensor y = linear_(x);
    sync(/*wait=*/true);
    return y.to_vector<float>();
  }
  // Runs the product so often; returns how often it packed. Packed or not, the bits are the same.
  std::int64_t PackingsOf(int runs, const Tensor& x) {
    const std::int64_t before = Packings();
    const std::vector<float> first = Product(x);
    for (int run = 1; run < runs; ++run) EXPECT_EQ(Product(x), first) << "run " << run;
    return Packings() - before;
  }

  nn::Linear linear_{300, 200};
};

TEST_F(MatrixPackingTest, AnEvaluationLoopPacksOnce) {
  const Tensor x = randn({64, 300}), one = randn({1, 300});
  EXPECT_EQ(PackingsOf(4, x), 0);
  EXPECT_EQ(PackingsOf(6, x), 1);
  EXPECT_EQ(PackingsOf(10, one), 0);  // another program, which reads a weight once for its few rows
}

TEST_F(MatrixPackingTest, WeightsThatChangedAreReadAsTheyAreAtFirst) {
  const Tensor x = randn({16, 300});
  EXPECT_EQ(PackingsOf(6, x), 1);
  const std::vector<float> before = Product(x);
  for (int update = 0; update < 3; ++update) {
    {
      const NoGrad no_grad;
      linear_.weight.mul_(2.0);  // in the same memory
      linear_.bias.mul_(2.0);
    }
    sync(/*wait=*/true);
    EXPECT_EQ(PackingsOf(4, x), 0);
  }
  std::vector<float> expected = before;
  for (float& value : expected) value *= 8;
  EXPECT_EQ(PackingsOf(2, x), 1);
  EXPECT_EQ(Product(x), expected);
}

// Cut by rows and by columns, into equal parts or not; a matrix of either order.
TEST_F(MatrixPackingTest, PackedMatricesGiveTheSameBits) {
  const NoGrad no_grad;
  for (const auto [m, k, n] : {std::array{1, 9216, 128},
                               {64, 9216, 128},
                               {3, 129, 1000},
                               {700, 200, 100},
                               {512, 256, 128},
                               {33, 1024, 1024},
                               {100, 512, 17}}) {
    linear_ = nn::Linear(k, n, {.bias = false});
    const int packings = m > 4 && k * n >= 1 << 14 ? 1 : 0;
    EXPECT_EQ(PackingsOf(6, randn({m, k})), packings) << m << ' ' << k << ' ' << n;
    const Tensor x = randn({m, k}), w = randn({k, n});
    sync(/*wait=*/true);
    std::vector<float> first;
    for (int run = 0; run < 6; ++run) {
      const Tensor y = x.matmul(w);
      sync(/*wait=*/true);
      if (run == 0) first = y.to_vector<float>();
      EXPECT_EQ(y.to_vector<float>(), first) << m << ' ' << k << ' ' << n << " run " << run;
    }
  }
}

TEST_F(MatrixPackingTest, ATrainingLoopPacksNone) {
  bench::Mlp net;
  optim::SGD opt(net.parameters(), {.lr = 0.01});
  const std::int64_t before = Packings();
  for (int i = 0; i < 8; ++i) {
    opt.zero_grad();
    const Tensor y = zeros({bench::Mlp::kBatch}, kInt64);
    nn::functional::cross_entropy(net.forward(bench::Mlp::Input()), y).backward();
    opt.step();
    sync(/*wait=*/true);
  }
  EXPECT_EQ(Packings() - before, 0);
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
