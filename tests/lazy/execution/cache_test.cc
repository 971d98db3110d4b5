#include "ir/support/flags.h"
#include "lazy/execution/cached_program.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/registry.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    GetProgramCache().Clear();
  }
};

// The two graphs visit the same leaves in the same order; torch_xla 2.9 takes the second for the
// first.
TEST_F(CacheTest, DifferentWiringOfTheSameLeavesMisses) {
  const Tensor a = Of<float>({2, 2}, {1, 2, 3, 4}), b = Of<float>({2, 2}, {5, 6, 7, 8}),
               c = Of<float>({2, 2}, {9, 10, 11, 12});
  const Work work;
  auto transposes = [&] {
    return Tensors{Transpose(a, 0, 1), Transpose(b, 0, 1), Transpose(c, 0, 1)};
  };
  {
    const Tensors outputs = transposes();
    const Tensor r = a * b + c;
    ASSERT_TRUE(Sync().ok());
    EXPECT_THAT(Values(r), ElementsAre(14, 22, 32, 44));
    EXPECT_THAT(Values(outputs[2]), ElementsAre(9, 11, 10, 12));
  }
  {
    const Tensors outputs = transposes();
    const Tensor r = a * c + b;
    ASSERT_TRUE(Sync().ok());
    EXPECT_THAT(Values(r), ElementsAre(14, 26, 40, 56));
  }
  EXPECT_EQ(work.compiles(), 2);
  EXPECT_EQ(work.runs(), 2);
}

TEST_F(CacheTest, SwappedLeavesOfOneShapeHit) {
  const Tensor a = Floats({1, 2}), b = Floats({10, 20});
  const Work work;
  EXPECT_THAT(Values(a - b), ElementsAre(-9, -18));
  EXPECT_THAT(Values(b - a), ElementsAre(9, 18));
  EXPECT_THAT(Values(a - a), ElementsAre(0, 0));  // one parameter: another program
  EXPECT_EQ(work.compiles(), 2);
}

TEST_F(CacheTest, AScalarThatChangesEveryStepCompilesOnce) {
  Tensor x = Floats({1, 2});
  const Work work;
  for (int step = 0; step < 50; ++step) {
    x = Add(Mul(x, Slot(0.5)), Slot(step * 0.25));
    ASSERT_TRUE(Sync().ok());
  }
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(work.runs(), 50);
}

TEST_F(CacheTest, NumbersThatLookSpecialAreNumbersLikeOthers) {
  const Tensor x = Floats({3, -4});
  const Work work;
  EXPECT_THAT(Values(Mul(x, Slot(0.5))), ElementsAre(1.5, -2));
  EXPECT_THAT(Values(Mul(x, Slot(1.0))), ElementsAre(3, -4));
  EXPECT_THAT(Values(Mul(x, Slot(0.0))), ElementsAre(0, -0.0f));
  EXPECT_EQ(work.compiles(), 1);
}

TEST_F(CacheTest, TwoHyperParametersThatBecomeEqualStayTwo) {
  const Tensor x = Floats({8, 16});
  const Work work;
  auto step = [&](double lr, double decay) { return Values(Mul(Mul(x, Slot(lr)), Slot(decay))); };
  EXPECT_THAT(step(0.5, 0.25), ElementsAre(1, 2));
  EXPECT_THAT(step(0.5, 0.5), ElementsAre(2, 4));
  EXPECT_THAT(step(0.25, 0.5), ElementsAre(1, 2));
  EXPECT_EQ(work.compiles(), 1);
}

TEST_F(CacheTest, AnOptimisersUpdateDoesNotRecompileWhenTheRateChanges) {
  Tensor p = Floats({1, 2}), v = Floats({0, 0});
  const Tensor g = Floats({1, 1});
  const Work work;
  for (double lr : {0.1, 0.01, 1.0, 0.0, 0.1}) {
    const Value momentum = Number(0.5).Slot(DType::kF32), rate = Number(-lr).Slot(DType::kF32);
    Assign("mul_", v, Mul(v, momentum));
    Assign("add_", v, v + g);
    Assign("add_", p, Add(p, Mul(v, rate)));
    ASSERT_TRUE(Sync().ok());
  }
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(work.runs(), 5);
}

int64_t ParametersOf(const std::string& hlo) {
  int64_t count = 0;
  for (std::size_t at = hlo.find(" parameter("); at != std::string::npos;
       at = hlo.find(" parameter(", at + 1))
    ++count;
  return count;
}

TEST_F(CacheTest, OneSlotUsedManyTimesIsOneParameter) {
  const Tensor x = Floats({1, 2}), y = Floats({3, 4});
  const Value s = Number(2.0).Slot(DType::kF32);
  const Tensor a = Mul(x, s), b = Mul(y, s), c = Add(a, s);
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(ParametersOf(LastProgram()->hlo()), 3);  // x, y, s
  const Tensor d = Mul(x, Slot(2.0)), e = Mul(y, Slot(2.0));
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(ParametersOf(LastProgram()->hlo()), 4);
}

TEST_F(CacheTest, ANumberExponentIsPartOfTheProgram) {
  const Tensor x = Floats({2, 3});
  const Work work;
  EXPECT_THAT(Values(PowNumber(x, 2.0)), ElementsAre(4, 9));
  EXPECT_THAT(Values(PowNumber(x, 3.0)), ElementsAre(8, 27));
  EXPECT_THAT(Values(PowNumber(x, 2.0)), ElementsAre(4, 9));
  EXPECT_EQ(work.compiles(), 2);
  EXPECT_EQ(work.runs(), 3);
}

TEST_F(CacheTest, ConstantsArePartOfTheProgram) {
  const Tensor x = Floats({2, 3});
  const Work work;
  EXPECT_THAT(Values(x * 2.0), ElementsAre(4, 6));
  EXPECT_THAT(Values(x * 3.0), ElementsAre(6, 9));
  EXPECT_EQ(work.compiles(), 2);
}

TEST_F(CacheTest, ShapesAndDtypesAreKeyedAndDevicesOfAPlatformAreNot) {
  const Work work;
  (void)Values(-Floats({1, 2}));
  (void)Values(-Floats({1, 2, 3}));
  (void)Values<int32_t>(-Of<int32_t>({2}, {1, 2}));
  EXPECT_EQ(work.compiles(), 3);
  (void)Values(-Of<float>({2}, {1, 2}, /*ordinal=*/1));
  EXPECT_EQ(work.compiles(), 3);
}

TEST_F(CacheTest, SourceLinesAreNotKeyed) {
  const Tensor x = Floats({1, 2});
  const Work work;
  {
    const SiteScope site(ir::InternSite("a.cc", "f", 1));
    (void)Values(x + x);
  }
  {
    const SiteScope site(ir::InternSite("b.cc", "g", 2));
    (void)Values(x + x);
  }
  EXPECT_EQ(work.compiles(), 1);
}

// A read is a sync of the whole context, with the key of the barrier.
TEST_F(CacheTest, ReadingTheLossBeforeTheBarrierRunsNothingTwice) {
  Tensor w = Floats({1, 2});
  const Tensor x = Floats({3, 4});
  auto step = [&](bool read) {
    const Tensor loss = Sum(w * x);
    Assign("sub_", w, w - x * 0.5);
    float value = 0;
    if (read) value = Values(loss)[0];
    EXPECT_TRUE(Sync().ok());
    return value;
  };
  const Work work;
  step(/*read=*/false);
  EXPECT_EQ(work.runs(), 1);
  EXPECT_EQ(step(/*read=*/true), -0.5f * 3 + 0 * 4);
  EXPECT_EQ(work.runs(), 2);
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_THAT(Values(w), ElementsAre(-2, -2));
}

// --- the cache by itself

CachedProgramPtr MakeProgram(uint32_t key, uint64_t hash, int64_t bytes) {
  auto module = std::make_unique<hlo::Module>("identity");
  hlo::Computation* const entry = module->AddComputation("identity");
  entry->AddParameter(0, Shape(DType::kF32, {}));
  module->set_entry(entry);
  auto program = std::make_shared<CachedProgram>(std::make_shared<Program>(std::move(module)),
                                                 TestDevice(), backend::CompileOptions());
  program->key = {key};
  program->hash = hash;
  program->bytes = bytes;
  return program;
}

TEST(ProgramCacheTest, EqualHashesOfDifferentKeysAreDifferentPrograms) {
  ProgramCache cache(1 << 20);
  const CachedProgramPtr a = cache.Insert(MakeProgram(1, 77, 100)),
                         b = cache.Insert(MakeProgram(2, 77, 100));
  EXPECT_NE(a, b);
  EXPECT_EQ(cache.Find({1}, 77), a);
  EXPECT_EQ(cache.Find({2}, 77), b);
  EXPECT_EQ(cache.Find({3}, 77), nullptr);
  EXPECT_EQ(cache.Find({1}, 78), nullptr);
}

TEST(ProgramCacheTest, TheFirstOfTwoEqualProgramsStays) {
  ProgramCache cache(1 << 20);
  const CachedProgramPtr first = cache.Insert(MakeProgram(1, 5, 100));
  EXPECT_EQ(cache.Insert(MakeProgram(1, 5, 100)), first);
  EXPECT_EQ(cache.size(), 1);
  EXPECT_EQ(cache.bytes(), 100);
}

TEST(ProgramCacheTest, TheLeastRecentlyUsedGoesWhenBytesRunOut) {
  ProgramCache cache(300);
  const Counted evicted(ir::Counter::kCacheEvictions);
  for (uint32_t k = 1; k <= 3; ++k)
    cache.Insert(MakeProgram(k, 9, 100));  // one bucket, to test its upkeep
  EXPECT_NE(cache.Find({1}, 9), nullptr);  // now 2 is the oldest
  cache.Insert(MakeProgram(4, 9, 100));
  EXPECT_EQ(evicted(), 1);
  EXPECT_EQ(cache.Find({2}, 9), nullptr);
  EXPECT_EQ(cache.WhyMissing(*MakeProgram(2, 9, 100)).Sentence(),
            "dropped from the cache: the programs are larger than LAZULI_COMPILATION_CACHE_BYTES "
            "(300), raise it");
  EXPECT_NE(cache.Find({1}, 9), nullptr);
  EXPECT_NE(cache.Find({3}, 9), nullptr);
  cache.Insert(MakeProgram(5, 10, 250));
  EXPECT_EQ(cache.size(), 1);
  EXPECT_EQ(cache.bytes(), 250);
  EXPECT_EQ(evicted(), 4);
}

TEST(ProgramCacheTest, TheNewestStaysEvenIfItIsTooLarge) {
  ProgramCache cache(100);
  const CachedProgramPtr big = cache.Insert(MakeProgram(1, 1, 1000));
  EXPECT_EQ(cache.Find({1}, 1), big);
  cache.Clear();
  EXPECT_EQ(cache.size(), 0);
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(cache.Find({1}, 1), nullptr);
}

// Whatever changes what a compile makes tells programs apart.
TEST_F(CacheTest, OptionsOfACompileAreInTheKey) {
  TestDevice();
  const Tensor x = Floats({1, 2});
  const auto compiles = [&] {
    const Counted compiled(ir::Counter::kUncachedCompile);
    const Tensor y = Exp(x) + Tanh(x) * Tanh(x);
    EXPECT_TRUE(Sync().ok());
    return compiled();
  };
  EXPECT_EQ(compiles(), 1);
  EXPECT_EQ(compiles(), 0);
  const std::pair<std::string_view, std::string_view> changes[] = {
      {"LAZULI_DISABLE_PASSES", "cse"},
      {"LAZULI_DISABLE_RULES", "add-zero"},
      {"LAZULI_MEMORY_LIMIT", "1g"},
      {"XLA_USE_32BIT_LONG", "1"},
      {"XLA_USE_BF16", "1"},
      {"XLA_DOWNCAST_BF16", "1"},
      {"LAZULI_FALLBACK", "allow"}};
  for (const auto& [flag, value] : changes) {
    const std::string_view before = flag == "LAZULI_FALLBACK" ? "warn"
                                    : flag == "LAZULI_MEMORY_LIMIT" || flag.starts_with("XLA") ? "0"
                                                                                               : "";
    ASSERT_TRUE(ir::SetFlag(flag, value).ok());
    EXPECT_EQ(compiles(), 1) << flag;
    ASSERT_TRUE(ir::SetFlag(flag, before).ok());
    EXPECT_EQ(compiles(), 0) << flag << " as before";
  }
  ASSERT_TRUE(ir::SetFlag("LAZULI_FALLBACK", "perhaps").ok());
  {
    const Tensor y = Exp(x);
    EXPECT_THAT(std::string(ir::Message(Sync())), testing::HasSubstr("error, warn or allow"));
  }
  ASSERT_TRUE(ir::SetFlag("LAZULI_FALLBACK", "warn").ok());
}

TEST_F(CacheTest, APassOfEveryProgramIsInTheKey) {
  TestDevice();
  const Tensor x = Floats({1, 2});
  const auto compiles = [&] {
    const Counted compiled(ir::Counter::kUncachedCompile);
    const Tensor y = Exp(x) * Tanh(x);
    EXPECT_TRUE(Sync().ok());
    return compiled();
  };
  EXPECT_EQ(compiles(), 1);
  EXPECT_EQ(compiles(), 0);
  ASSERT_TRUE(lowering::AddPass({.name = "of_cache_test",
                                 .doc = "",
                                 .make = [] { return std::make_unique<lowering::Dce>(); },
                                 .every_program = true})
                  .ok());
  EXPECT_EQ(compiles(), 1);
  EXPECT_EQ(compiles(), 0);
}

}  // namespace
}  // namespace lazuli::lazy
