#include "lazy/tensor/random.h"

#include <cmath>
#include <thread>

#include "lazy/ops/random/draws.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

TEST(RandomTest, TheCounterAdvancesByBlocksOfFour) {
  ManualSeed(9);
  EXPECT_EQ(ReservePhilox(0).seed, 9u);
  EXPECT_EQ(ReservePhilox(1).offset, 0u);
  EXPECT_EQ(ReservePhilox(4).offset, 1u);
  EXPECT_EQ(ReservePhilox(5).offset, 2u);
  EXPECT_EQ(ReservePhilox(0).offset, 4u);
  const PhiloxState last = ReservePhilox(1);
  EXPECT_EQ(last.offset, 4u);
  EXPECT_EQ(last.seed, 9u);
  ManualSeed(10);
  EXPECT_EQ(ReservePhilox(1).offset, 0u);
}

TEST(RandomTest, SeedsForTheHostDifferAndRepeat) {
  ManualSeed(1);
  const uint64_t a = RandomSeed(), b = RandomSeed();
  EXPECT_NE(a, b);
  ManualSeed(1);
  EXPECT_EQ(RandomSeed(), a);
  ManualSeed(2);
  EXPECT_NE(RandomSeed(), a);
}

// The top 24 bits of a word as a float, as rand() makes them.
float Unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

std::vector<float> UniformAt(uint64_t seed, uint64_t offset) {
  auto half = [](uint64_t v) {
    return Number(static_cast<int64_t>(v & 0xffffffffu)).Slot(DType::kU32);
  };
  const std::array<Value, 4> slots{half(seed), half(seed >> 32), half(offset), half(offset >> 32)};
  const std::array<Operand, 4> in{slots[0], slots[1], slots[2], slots[3]};
  return Values(RecordOne(UniformOp{{4}, DType::kF32}, in, TestDevice()));
}

// Known answers of Philox 4x32-10 (Random123, kat_vectors): counter 0, key 0, and all ones.
TEST(RandomTest, NumbersAreThoseOfPhilox4x32With10Rounds) {
  EXPECT_THAT(UniformAt(0, 0),
              ElementsAre(Unit(0x6627e8d5), Unit(0xe169c58d), Unit(0xbc57ac4c), Unit(0x9b00dbd8)));
  EXPECT_THAT(UniformAt(~uint64_t{0}, ~uint64_t{0}),
              ElementsAre(Unit(0x408f276d), Unit(0x41c83b0e), Unit(0xa20bc7c6), Unit(0x6d5451fd)));
}

TEST(RandomTest, NumbersDependOnSeedAndOrderNotOnSyncs) {
  auto draw = [](uint64_t seed, bool sync) {
    ManualSeed(seed);
    const Tensor a = Rand({5}, DType::kF32, TestDevice());
    if (sync) {
      EXPECT_TRUE(Sync().ok());
    }
    const Tensor b = Randn({3, 2}, DType::kF32, TestDevice());
    if (sync) {
      EXPECT_TRUE(Sync().ok());
    }
    const Tensor c = Rand({7}, DType::kF32, TestDevice());
    std::vector<float> all = Values(a);
    for (const Tensor& t : {b, c}) {
      for (const float v : Values(t)) all.push_back(v);
    }
    return all;
  };
  const std::vector<float> once = draw(3, false);
  EXPECT_EQ(draw(3, true), once);
  EXPECT_EQ(draw(3, false), once);
  EXPECT_NE(draw(4, false), once);
}

TEST(RandomTest, EveryStepRunsTheSameProgram) {
  const Work work;
  std::vector<float> last;
  for (int step = 0; step < 5; ++step) {
    const std::vector<float> now = Values(Rand({13}, DType::kF32, TestDevice()));
    EXPECT_NE(now, last);
    last = now;
  }
  EXPECT_EQ(work.compiles(), 1);
}

struct Moments {
  double mean = 0, variance = 0, low = 1e9, high = -1e9;
};
Moments MomentsOf(const Tensor& tensor) {
  const Literal values = ToLiteral(To(tensor, DType::kF64));
  Moments m;
  const auto n = static_cast<double>(values.shape().num_elements());
  for (const double v : values.data<double>()) {
    m.mean += v / n;
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : values.data<double>()) m.variance += (v - m.mean) * (v - m.mean) / n;
  return m;
}

TEST(RandomTest, UniformNumbersAreUniformAndBelowOne) {
  ManualSeed(5);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const Moments m = MomentsOf(Rand({100000}, dtype, TestDevice()));
    EXPECT_GE(m.low, 0) << DTypeText(dtype);
    EXPECT_LT(m.high, 1) << DTypeText(dtype);
    EXPECT_NEAR(m.mean, 0.5, 0.006) << DTypeText(dtype);
    EXPECT_NEAR(m.variance, 1.0 / 12, 0.002) << DTypeText(dtype);
  }
}

TEST(RandomTest, DoublesUseMoreThan32Bits) {
  ManualSeed(5);
  int fine = 0;
  for (const double v : Values<double>(Rand({64}, DType::kF64, TestDevice()))) {
    const double scaled = v * 0x1p32;
    fine += scaled != std::floor(scaled) ? 1 : 0;
    EXPECT_EQ(v * 0x1p53, std::floor(v * 0x1p53));
  }
  EXPECT_GT(fine, 60);
}

TEST(RandomTest, NormalNumbersHaveMeanZeroAndDeviationOne) {
  ManualSeed(6);
  const Moments m = MomentsOf(Randn({100000}, DType::kF32, TestDevice()));
  EXPECT_NEAR(m.mean, 0, 0.02);
  EXPECT_NEAR(m.variance, 1, 0.03);
  EXPECT_GT(m.high, 3.5);
  EXPECT_LT(m.low, -3.5);
}

TEST(RandomTest, DropoutZeroesAndScales) {
  ManualSeed(6);
  const Tensor ones = FullConstant(Shape(DType::kF32, {10000}), 1, TestDevice());
  int zeros = 0;
  for (const float v : Values(Dropout(ones, 0.25))) {
    if (v == 0)
      ++zeros;
    else
      ASSERT_FLOAT_EQ(v, 1 / 0.75f);
  }
  EXPECT_NEAR(zeros, 2500, 200);
  EXPECT_THAT(Values(Dropout(Floats({1, 2}), 0.0)), ElementsAre(1, 2));
  EXPECT_THAT(Values(Dropout(Floats({1, 2}), 1.0)), ElementsAre(0, 0));
  (void)Values(Dropout(ones, 0.75));
  const Work work;
  (void)Values(Dropout(ones, 0.5));
  (void)Values(Dropout(ones, 0.1));
  EXPECT_EQ(work.compiles(), 0);  // p is a number like others
}

TEST(RandomTest, TheGeneratorIsSharedByThreads) {
  ManualSeed(8);
  std::vector<uint64_t> offsets(400);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) offsets[t * 100 + i] = ReservePhilox(1).offset;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(offsets.begin(), offsets.end());
  for (std::size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(offsets[i], i);
}

}  // namespace
}  // namespace lazuli::lazy
