// What happens when compiling or running goes wrong: who is told, how often, and that life goes on.

#include <climits>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "lazy/execution/executor.h"
#include "lazy/tensor/function_scope.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

// Outlives the buffers that programs in the cache might hold.
backend::FailingClient& FailureClient() {
  static auto* client = new backend::FailingClient;
  return *client;
}

class FailureTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    GetProgramCache().Clear();
    FailureClient().fail_import = FailureClient().fail_compile = FailureClient().fail_run =
        FailureClient().lose_outputs = FailureClient().out_of_memory = false;
    (void)Context::Current().TakeFailure();
  }
  Tensor Make(std::initializer_list<float> values) {
    return FromLiteral(Literal::FromValues<float>({static_cast<int64_t>(values.size())}, values),
                       FailureClient().device());
  }
};

std::string Text(const absl::Status& status) { return std::string(Message(status)); }
std::string ReadError(const Tensor& tensor) {
  return Text(ErrorOf([&] { (void)Values(tensor); }));
}

TEST_F(FailureTest, ACompilerThatGivesUpIsReportedBySyncAndByEachRead) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_compile = true;
  const Tensor y = x + x;
  const absl::Status status = Sync(/*wait=*/false);
  EXPECT_EQ(status.code(), kInternal);
  EXPECT_EQ(Text(status), "the compiler gave up");
  EXPECT_EQ(ReadError(y), "the compiler gave up");
  EXPECT_EQ(ReadError(y), "the compiler gave up");
  EXPECT_EQ(Context::Current().pending_count(), 0);
  FailureClient().fail_compile = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, ARunThatFailsIsReportedOnceBySyncAndByEachReadOfItsOutputs) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_run = true;
  const Tensor y = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());  // dispatched
  EXPECT_EQ(Text(Sync(/*wait=*/true)), "the device caught fire");
  EXPECT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_EQ(ReadError(y), "the device caught fire");
  EXPECT_EQ(ReadError(y), "the device caught fire");
  FailureClient().fail_run = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));  // the inputs live
}

TEST_F(FailureTest, WaitReportsTheRunItStarted) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_run = true;
  const Tensor y = x - x;
  EXPECT_EQ(Text(Sync(/*wait=*/true)), "the device caught fire");
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, AReadThatReportsTheFailureUsesItUp) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_run = true;
  const Tensor y = x - x;
  EXPECT_EQ(ReadError(y), "the device caught fire");
  EXPECT_TRUE(Sync().ok());
}

TEST_F(FailureTest, WhatIsComputedFromFailedTensorsFailsWithTheFirstError) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_run = true;
  const Tensor y = x * x;
  EXPECT_FALSE(Sync().ok());
  FailureClient().fail_run = false;
  const Tensor z = y + x;
  EXPECT_TRUE(Sync().ok());  // it was said once
  EXPECT_EQ(ReadError(z), "the device caught fire");
}

// Five runs, the second of which fails while the others wait for their turn.
TEST_F(FailureTest, AFailedRunFailsWhatIsComputedFromItAndNothingElse) {
  const Tensor x = Make({1, 2});
  const Tensor before = x + x;
  EXPECT_TRUE(Sync().ok());
  FailureClient().fail_run = true;
  const Tensor failed = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  ASSERT_TRUE(Executor::Wait(Context::Current().last_runs).ok());
  FailureClient().fail_run = false;
  EXPECT_EQ(Text(Sync()), "the device caught fire");
  const Tensor dependent = failed + before;
  EXPECT_TRUE(Sync().ok());
  const Tensor beside = before * x;
  EXPECT_TRUE(Sync().ok());
  EXPECT_THAT(Values(before), ElementsAre(2, 4));
  EXPECT_THAT(Values(beside), ElementsAre(2, 8));
  EXPECT_EQ(ReadError(failed), "the device caught fire");
  EXPECT_EQ(ReadError(dependent), "the device caught fire");
  EXPECT_EQ(ReadError(dependent + x), "the device caught fire");
}

// A step that fails is done again from what the user kept; the program is the same.
TEST_F(FailureTest, ATrainingLoopGoesOnFromASnapshot) {
  const Tensor w = Make({1, 2});
  auto step = [&] { Assign("add_", w, Add(w, Slot(1))); };
  step();
  ASSERT_TRUE(Sync().ok());
  const Tensor kept(Context::Current().Snapshot(w.storage()));
  const Work work;
  FailureClient().out_of_memory = true;
  step();
  EXPECT_EQ(Sync().code(), absl::StatusCode::kResourceExhausted);
  FailureClient().out_of_memory = false;
  step();  // on what failed
  EXPECT_TRUE(Sync().ok());
  EXPECT_THAT(ReadError(w), testing::HasSubstr("out of memory"));
  Assign("copy_", w, kept);
  for (int i = 0; i < 3; ++i) {
    step();
    ASSERT_TRUE(Sync().ok());
  }
  EXPECT_THAT(Values(w), ElementsAre(5, 6));
  EXPECT_EQ(work.compiles(), 0);
}

TEST_F(FailureTest, AFailureConcernsItsContextOnly) {
  const Tensor x = Make({1, 2});
  FailureClient().fail_run = true;
  const Tensor y = x * x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  ASSERT_TRUE(Executor::Wait(Context::Current().last_runs).ok());
  FailureClient().fail_run = false;
  std::thread([&] {
    const Tensor a = Make({3, 4});
    const Tensor b = a + a;
    EXPECT_TRUE(Sync().ok());
    EXPECT_THAT(Values(b), ElementsAre(6, 8));
  }).join();
  EXPECT_EQ(Text(Sync()), "the device caught fire");
}

TEST_F(FailureTest, AnInPlaceUpdateThatFailsLeavesAFailedTensor) {
  const Tensor w = Make({1, 2});
  FailureClient().fail_run = true;
  Assign("add_", w, w + w);
  EXPECT_FALSE(Sync().ok());
  FailureClient().fail_run = false;
  EXPECT_EQ(ReadError(w), "the device caught fire");
  Assign("copy_", w, Make({5, 6}));
  EXPECT_THAT(Values(w), ElementsAre(5, 6));
}

TEST_F(FailureTest, ADeviceThatLosesResultsIsNotBelieved) {
  const Tensor x = Make({1, 2});
  FailureClient().lose_outputs = true;
  const Tensor y = x / x;
  EXPECT_THAT(Text(Sync()), testing::HasSubstr("gave 0 results, 1 were expected"));
}

TEST_F(FailureTest, RunningOutOfMemoryFailsTheRunNotTheProcess) {
  const Tensor x = Make({1, 2});
  FailureClient().out_of_memory = true;
  const Tensor y = Exp(x);
  const SiteScope site(ir::InternSite("train.cc", "main", 9));  // the line that syncs
  const absl::Status status = Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Text(status),
              testing::EndsWith("out of memory: an array of 1073741824 bytes could not be "
                                "allocated (train.cc:9)"));
  FailureClient().out_of_memory = false;
  EXPECT_THAT(Values(x + x), ElementsAre(2, 4));
}

TEST_F(FailureTest, AnImportThatFailsIsAnError) {
  FailureClient().fail_import = true;
  EXPECT_EQ(Text(ErrorOf([&] { (void)Make({1, 2}); })), "no room");
}

// --- labels out of range: only a run can know

Tensor LossOf(const Tensor& logits, int32_t bad_label) {
  const SiteScope site(ir::InternSite("train.cc", "main", 41));
  return CrossEntropy(logits, Of<int32_t>({2}, {3, bad_label}), Reduction::kMean);
}

TEST_F(FailureTest, ALabelOutOfRangeFailsTheRunWithTheLineOfTheOp) {
  const Tensor logits = FromLiteral(Literal(Shape(DType::kF32, {2, 10})), TestDevice());
  const Tensor w = Floats({1, 2});
  Assign("add_", w, w + w);
  const Tensor loss = LossOf(logits, 12);
  const std::string message = "cross_entropy: label 12 is out of range [0, 10) (train.cc:41)";
  const absl::Status status = Sync();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Text(status), message);
  EXPECT_EQ(ReadError(loss), message);
  EXPECT_EQ(ReadError(loss), message);
  EXPECT_THAT(Values(w), ElementsAre(1, 2));  // the update of this run is not taken
  EXPECT_EQ(ReadError(LossOf(logits, -1)),
            "cross_entropy: label -1 is out of range [0, 10) (train.cc:41)");
  EXPECT_NEAR(Values(LossOf(logits, 9))[0], std::log(10.0), 1e-6);
  EXPECT_TRUE(Sync().ok());
}

// The program is cached; the line is not part of it.
TEST_F(FailureTest, TheLineIsThatOfTheRunNotOfTheProgram) {
  const Tensor logits = FromLiteral(Literal(Shape(DType::kF32, {2, 5})), TestDevice());
  auto loss_at = [&](uint32_t line, int32_t label) {
    const SiteScope site(ir::InternSite("train.cc", "main", line));
    return NllLoss(logits, Of<int32_t>({2}, {0, label}), Reduction::kSum);
  };
  (void)Values(loss_at(1, 0));
  const Work work;
  EXPECT_EQ(ReadError(loss_at(2, 5)), "nll_loss: label 5 is out of range [0, 5) (train.cc:2)");
  EXPECT_EQ(ReadError(loss_at(3, 7)), "nll_loss: label 7 is out of range [0, 5) (train.cc:3)");
  EXPECT_EQ(work.compiles(), 0);
}

TEST_F(FailureTest, AnIndexOutOfRangeFailsTheRun) {
  const Tensor x = Of<float>({3, 1}, {1, 2, 3});
  EXPECT_THAT(Values(IndexSelect(x, 0, Of<int64_t>({2}, {2, 0}))), ElementsAre(3, 1));
  EXPECT_EQ(ReadError(IndexSelect(x, 0, Of<int64_t>({2}, {2, 3}))),
            "index_select: index 3 is out of range [0, 3)");
}

// --- checks are roots of their own

Tensor BadRows(const Tensor& x) { return IndexSelect(x, 0, Of<int64_t>({1}, {9})); }
constexpr char kBadRows[] = "index_select: index 9 is out of range [0, 2)";

TEST_F(FailureTest, AnOpWhoseResultsAreDeadIsCheckedBySync) {
  const Tensor x = Floats({1, 2});
  (void)BadRows(x);
  EXPECT_EQ(Text(Sync()), kBadRows);
  EXPECT_TRUE(Sync().ok());  // once
  (void)LossOf(FromLiteral(Literal(Shape(DType::kF32, {2, 10})), TestDevice()), 12);
  const Tensor y = x + x;
  EXPECT_EQ(Text(Sync()), "cross_entropy: label 12 is out of range [0, 10) (train.cc:41)");
  EXPECT_THAT(Values(y), ElementsAre(2, 4));
}

TEST_F(FailureTest, OnlyTheCheckOfADeadOpIsComputed) {
  const Tensor logits = FromLiteral(Literal(Shape(DType::kF32, {2, 10})), TestDevice());
  (void)LossOf(Exp(logits), 3);
  EXPECT_TRUE(Sync().ok());
  const std::string hlo = LastProgram()->hlo();
  EXPECT_THAT(hlo, testing::Not(testing::HasSubstr("exponential(")));
  EXPECT_THAT(hlo, testing::HasSubstr("maximum("));
}

TEST_F(FailureTest, DeadOpsOfALoopThatReadsNothingCompileOnce) {
  const Tensor x = Floats({1, 2}), index = Of<int64_t>({2}, {1, 0});
  const Work work;
  for (int step = 0; step < 5; ++step) {
    (void)IndexSelect(x, 0, index);
    EXPECT_TRUE(Sync(/*wait=*/false).ok());
  }
  EXPECT_EQ(work.compiles(), 1);
  EXPECT_EQ(work.runs(), 5);
}

TEST_F(FailureTest, ADeadOpIsCheckedOnItsOwnDevice) {
  const Tensor here = Floats({1, 2});
  {
    const Tensor there = Of<float>({2}, {3, 4}, 1);
    (void)IndexSelect(there, 0, Of<int64_t>({1}, {9}, 1));
  }
  const Tensor sum = here + here;
  EXPECT_EQ(Text(Sync()), kBadRows);
  EXPECT_THAT(Values(sum), ElementsAre(2, 4));
}

TEST_F(FailureTest, OfSeveralFailedChecksTheOneRecordedFirstIsReported) {
  const Tensor x = Floats({1, 2});
  const Tensor last = IndexSelect(x, 0, Of<int64_t>({1}, {5}));
  (void)BadRows(x);  // dead: behind the others in the graph
  const Tensor both = IndexSelect(last, 0, Of<int64_t>({1}, {7}));
  const std::string first = "index_select: index 5 is out of range [0, 2)";
  EXPECT_EQ(Text(Sync()), first);
  EXPECT_EQ(ReadError(last), first);
  EXPECT_EQ(ReadError(both), first);
}

TEST_F(FailureTest, WhatIsComputedBesideAFailedTensorKeepsItsValue) {
  const Tensor x = Floats({1, 2}), w = Floats({5, 6});
  const Tensor bad = BadRows(x);
  EXPECT_EQ(Text(Sync()), kBadRows);
  const Tensor worse = bad + x;
  Assign("add_", w, w + x);
  const Tensor rows = IndexSelect(x, 0, To(bad, DType::kS64));  // no second error
  EXPECT_TRUE(Sync().ok());
  EXPECT_THAT(Values(w), ElementsAre(6, 8));
  EXPECT_EQ(ReadError(worse), kBadRows);
  EXPECT_EQ(ReadError(rows), kBadRows);
}

TEST_F(FailureTest, TheOutermostFunctionIsNamed) {
  const Tensor x = Floats({1, 2});
  {
    const FunctionScope outer("embedding");
    const FunctionScope inner("index");
    (void)BadRows(x);
  }
  EXPECT_EQ(Text(Sync()), "embedding: index 9 is out of range [0, 2)");
  (void)BadRows(x);
  EXPECT_EQ(Text(Sync()), kBadRows);
}

// The name is read long after the function has returned, when its stack was used again.
TEST_F(FailureTest, EveryFunctionIsNamedByItsCheck) {
  const Tensor far = Of<int64_t>({2}, {0, 7}), wide = Of<int64_t>({2, 3}, {0, 7, 0, 0, 0, 0});
  const Tensor x = Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), two = Floats({1, 2});
  const std::vector<std::pair<std::string, std::function<Tensor()>>> calls = {
      {"put: index 7 is out of range [0, 6)", [&] { return Put(x, far, two, false); }},
      {"scatter_reduce: index 7 is out of range [0, 2)",
       [&] { return ScatterReduce(x, 0, wide, x, "amax", true); }},
      {"scatter_reduce: index 7 is out of range [0, 2)",
       [&] { return ScatterReduce(x, 0, wide, x, "sum", true); }},
      {"index_reduce: index 7 is out of range [0, 2)",
       [&] { return IndexReduce(x, 0, far, x, "mean", true); }},
      {"multilabel_margin_loss: index 7 is out of range [0, 2)",
       [&] { return MultilabelMarginLoss(two, far, Reduction::kMean); }},
      {"masked_scatter: index 5 is out of range [0, 2)",
       [&] { return MaskedScatter(x, Gt(x, Constant(0, DType::kF32)), two); }},
  };
  ASSERT_TRUE(Sync().ok());
  for (const auto& [message, call] : calls) {
    (void)call();
    EXPECT_EQ(Text(Sync()), message);
  }
}

// A random graph with checks at random places.
struct RandomGraph {
  Tensors values;            // each f32[3]; undefined where the result is dead
  std::vector<bool> spoilt;  // whether it passes through the check that fails
  // What a value was before its first update behind a check, which is what it is if a check fails.
  struct Kept {
    Tensor value;
    bool spoilt;
  };
  std::map<std::size_t, Kept> kept;
  bool has_checks = false;
  bool fails = false;
};

// The first check from op `bad` on fails.
RandomGraph RecordRandom(unsigned seed, int bad) {
  constexpr int kOps = 24;
  std::mt19937 random(seed);
  RandomGraph graph{{Floats({1, 2, 3}), Floats({4, 5, 6})}, {false, false}, {}};
  auto& [values, spoilt, kept, has_checks, fails] = graph;
  for (int op = 0; op < kOps; ++op) {
    const std::size_t i = random() % values.size(), j = random() % values.size();
    bool spoils = spoilt[i];
    switch (random() % 4) {
      case 0:
        values.push_back(values[i] + values[j]);
        spoils = spoils || spoilt[j];
        break;
      case 1:
        values.push_back(values[i] * 0.5);
        break;
      case 2:
        if (has_checks && !kept.contains(i)) kept[i] = {values[i] * 1.0, spoilt[i]};
        Assign("sub_", values[i], values[i] - values[j] * 0.5);
        spoilt[i] = spoils || spoilt[j];
        continue;
      default: {
        const bool here = op >= bad && !fails;
        has_checks = true;
        fails = fails || here;
        spoils = spoils || here;
        values.push_back(IndexSelect(values[i], 0, Of<int64_t>({3}, {2, here ? 3 : 0, 1})));
        break;
      }
    }
    spoilt.push_back(spoils);
  }
  for (std::size_t i = 2; i < values.size(); ++i) {
    if (random() % 3 == 0) values[i] = Tensor();
  }
  return graph;
}

// LAZULI_FUZZ_PROGRAMS=10000 tries more of them.
TEST_F(FailureTest, WhatDoesNotPassThroughAFailedCheckHasTheValuesOfARunWithoutIt) {
  const char* const given = std::getenv("LAZULI_FUZZ_PROGRAMS");
  const unsigned programs = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 60;
  int failed = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const RandomGraph good = RecordRandom(seed, INT_MAX);
    ASSERT_TRUE(Sync().ok());
    const RandomGraph bad = RecordRandom(seed, static_cast<int>(seed % 24));
    const std::string expected =
        bad.fails ? "index_select: index 3 is out of range [0, 3)" : std::string();
    ASSERT_EQ(Text(Sync()), expected);
    failed += bad.fails ? 1 : 0;
    for (std::size_t i = 0; i < bad.values.size(); ++i) {
      if (!bad.values[i].defined()) continue;
      if (bad.fails && i < 2) {  // updated in place, if at all
        EXPECT_EQ(Values(bad.values[i]),
                  i == 0 ? std::vector<float>({1, 2, 3}) : std::vector<float>({4, 5, 6}));
        continue;
      }
      const auto kept = good.kept.find(i);
      const bool is_old = bad.fails && kept != good.kept.end();
      if (is_old ? bad.kept.at(i).spoilt : bad.spoilt[i])
        EXPECT_EQ(ReadError(bad.values[i]), expected) << i;
      else
        EXPECT_EQ(Values(bad.values[i]), Values(is_old ? kept->second.value : good.values[i])) << i;
    }
  }
  EXPECT_GT(failed, static_cast<int>(programs / 4));
}

// --- the queue

TEST_F(FailureTest, AtMostTwoRunsAreInFlight) {
  FailureClient().Hold();
  Tensor x = Make({1, 2});
  std::atomic<int> submitted{0};
  const int before = FailureClient().runs;
  std::thread recorder([&] {
    for (int i = 0; i < 4; ++i) {
      x = x + x;
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
      ++submitted;
    }
    EXPECT_THAT(Values(x), ElementsAre(16, 32));
  });
  while (FailureClient().runs == before || submitted < 2) std::this_thread::yield();
  EXPECT_LE(submitted, 2);
  FailureClient().Release();
  recorder.join();
  EXPECT_EQ(FailureClient().runs - before, 4);
}

TEST_F(FailureTest, SyncReturnsBeforeTheDeviceIsDoneAndWaitAfter) {
  const Tensor x = Make({1, 2});
  FailureClient().Hold();
  const Tensor y = x + x;
  EXPECT_TRUE(Sync(/*wait=*/false).ok());
  EXPECT_FALSE(Context::Peek(y.storage()).data->ready());
  FailureClient().Release();
  EXPECT_TRUE(Sync(/*wait=*/true).ok());
  EXPECT_TRUE(Context::Peek(y.storage()).data->ready());
}

}  // namespace
}  // namespace lazuli::lazy
