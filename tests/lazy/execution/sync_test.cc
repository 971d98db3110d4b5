#include "lazy/execution/sync.h"

#include "ir/hlo/text/parser.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;

std::vector<std::string> OutputsOfLastProgram() {
  const auto module = hlo::ParseModule(LastProgram()->hlo());
  LAZULI_CHECK(module.ok(), Message(module.status()));
  std::vector<std::string> shapes;
  for (const Shape& shape : (*module)->entry()->root()->shape().tuple())
    shapes.push_back(shape.ToString());
  return shapes;
}

TEST(SyncTest, RunsWhatIsAliveInOrderOfCreation) {
  const Tensor x = Of<float>({2}, {1, 2});
  const Tensor first = x + x;
  {
    const Tensor dead = first * first;
  }
  const Tensor wide = BroadcastTo(first, {3, 2});
  const Tensor last = Sum(wide);
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(OutputsOfLastProgram(), ElementsAre("f32[2]", "f32[3,2]", "f32[]"));
  EXPECT_EQ(Context::Current().pending_count(), 0);
}

TEST(SyncTest, AnInPlaceUpdateKeepsThePlaceOfItsStorage) {
  const Tensor x = Of<float>({2}, {1, 2});
  const Tensor w = x + x;
  const Tensor s = Sum(x);
  Assign("add_", w, w + w);
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(OutputsOfLastProgram(), ElementsAre("f32[2]", "f32[]"));
  EXPECT_THAT(Values(w), ElementsAre(4, 8));
}

TEST(SyncTest, NothingPendingRunsNothing) {
  TestDevice();
  ASSERT_TRUE(Sync().ok());
  const Work work;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(work.runs(), 0);
}

TEST(SyncTest, ASecondReadRunsNothing) {
  const Tensor x = Floats({1, 2});
  const Tensor y = x + x;
  (void)Values(y);
  const Work work;
  EXPECT_THAT(Values(y), ElementsAre(2, 4));
  EXPECT_THAT(Values(x), ElementsAre(1, 2));
  EXPECT_EQ(work.runs(), 0);
}

TEST(SyncTest, ACopyOfDataNeedsNoProgram) {
  const Tensor x = Floats({1, 2}), y = Floats({5, 6});
  Assign("copy_", y, x);
  const Work work;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(work.runs(), 0);
  EXPECT_THAT(Values(y), ElementsAre(1, 2));
  Assign("add_", y, y + y);
  EXPECT_THAT(Values(y), ElementsAre(2, 4));
  EXPECT_THAT(Values(x), ElementsAre(1, 2));  // shared memory, not a shared tensor
}

TEST(SyncTest, EachDeviceRunsItsOwnProgram) {
  const Tensor a = Of<float>({2}, {1, 2}, 0), b = Of<float>({2}, {3, 4}, 1);
  const Tensor x = a + a, y = b * b, z = x * a;
  const Work work;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(work.runs(), 2);
  EXPECT_THAT(Values(x), ElementsAre(2, 4));
  EXPECT_THAT(Values(y), ElementsAre(9, 16));
  EXPECT_THAT(Values(z), ElementsAre(2, 8));
}

TEST(SyncTest, ValuesThatNobodyKeepsAreNotComputed) {
  const Tensor x = Floats({1, 2});
  (void)Exp(x);
  const Work work;
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(work.runs(), 0);
}

TEST(SyncTest, ANumberIsReadWithoutARun) {
  const Tensor number(Context::Current().NewStorage(Number(2.5).Slot(DType::kF32), TestDevice()));
  const Work work;
  EXPECT_THAT(Values(number), ElementsAre(2.5));
  EXPECT_EQ(work.runs(), 0);
}

TEST(SyncTest, ObserversSeeTheGraphBeforeItRuns) {
  struct Seen {
    SyncReason reason;
    bool cached;
    std::size_t nodes;
    std::string site;
  };
  std::vector<Seen> seen;
  SetSyncObserver([&](const SyncEvent& e) {
    seen.push_back({e.reason, e.cached, e.trace.nodes.size(), GetSite(e.site).ToString()});
  });
  for (int i = 0; i < 2; ++i) {
    const SiteScope site(ir::InternSite("train.cc", "main", 12));
    const Tensor y = Exp(Of<float>({7}, {1, 2, 3, 4, 5, 6, 7}));
    if (i == 0)
      (void)Values(y);
    else
      ASSERT_TRUE(Sync().ok());
  }
  SetSyncObserver({});
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].reason, SyncReason::kRead);
  EXPECT_FALSE(seen[0].cached);
  EXPECT_EQ(seen[0].nodes, 2u);
  EXPECT_EQ(seen[0].site, "train.cc:12");
  EXPECT_EQ(seen[1].reason, SyncReason::kUser);
  EXPECT_TRUE(seen[1].cached);
}

TEST(SyncTest, ProgramsAreNamedAndKeepTheirText) {
  const Tensor x = Of<float>({11}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  x.storage().set_name("fc.weight");
  const Tensor y = Tanh(x);
  ASSERT_TRUE(Sync().ok());
  const CachedProgramPtr program = LastProgram();
  EXPECT_THAT(program->name(), testing::StartsWith("SyncTensorsGraph."));
  EXPECT_THAT(program->hlo(), testing::HasSubstr("HloModule " + program->name()));
  EXPECT_THAT(program->hlo(), testing::HasSubstr("op_name=\"fc.weight\""));
}

// A write makes new elements; who holds the old ones keeps them.
TEST(SyncTest, ABufferThatWasReadIsTheDevicesOwnAndKeepsItsElements) {
  const Tensor x = Exp(Of<float>({2}, {0, 0}));
  const backend::BufferPtr first = ToBuffer(x), second = ToBuffer(x);
  EXPECT_EQ(first, second);
  const Tensor y = x + 1.0;
  Assign("add_", x, y);
  EXPECT_THAT(Values(x), testing::ElementsAre(2, 2));
  ASSERT_NE(first->host_data(), nullptr);
  EXPECT_EQ(reinterpret_cast<const float*>(first->host_data())[0], 1);
}

}  // namespace
}  // namespace lazuli::lazy
