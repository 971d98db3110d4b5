// Memory: what a program plans, and the limit that refuses it before it runs.
#include "ir/support/bytes_text.h"
#include "ir/support/flags.h"
#include "lazy/execution/executor.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Role = MemoryPlan::Role;

class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    TestDevice();
    ASSERT_TRUE(Sync().ok());
    GetProgramCache().Clear();
  }
  void TearDown() override { SetLimit(0); }
  static void SetLimit(int64_t bytes) {
    ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", ir::Str(bytes)).ok());
  }
  static int64_t InUse() { return TestDevice().client->memory_stats(TestDevice())->bytes_in_use; }
};

Tensor Zeros(int64_t count) {
  return FromLiteral(Literal(Shape(DType::kF32, {count})), TestDevice());
}

TEST_F(MemoryTest, APlanSaysWhatEachArrayIsFor) {
  const Tensor w = Zeros(1000), x = Zeros(100);
  w.storage().set_name("fc.weight");
  Tensor y;
  {
    const SiteScope site(ir::InternSite("train.cc", "main", 7));
    y = Add(x, Slot(1));
    Assign("add_", w, w + w);
  }
  ASSERT_TRUE(Sync().ok());
  const MemoryPlan& plan = LastProgram()->memory;
  EXPECT_EQ(plan.bytes(Role::kUpdated), 4000);
  EXPECT_EQ(plan.bytes(Role::kInput), 400);
  EXPECT_EQ(plan.bytes(Role::kResult), 400);
  EXPECT_EQ(plan.count(Role::kResult), 1);
  EXPECT_EQ(plan.argument_bytes(), 4400);
  EXPECT_EQ(plan.peak_bytes(), 4400 + plan.output_bytes + plan.temp_bytes);
  for (const MemoryPlan::Array& array : plan.arrays) {
    EXPECT_EQ(array.name, array.role == Role::kUpdated ? "fc.weight" : "train.cc:7");
  }
}

TEST_F(MemoryTest, AProgramOverTheLimitIsRefusedAndStaysPending) {
  const Tensor x = Zeros(1000), ballast = Zeros(2000);
  Tensor big = Zeros(3000);
  SetLimit(InUse() + 1000);
  const SiteScope site(ir::InternSite("train.cc", "main", 9));
  const Tensor y = Add(x, Slot(1));
  const Work work;
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = Sync();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(Message(status)),
                testing::MatchesRegex(
                    "SyncTensorsGraph.[0-9]+: needs 3.9 KiB .0 bytes of scratch, 3.9 KiB of "
                    "results., but .* .LAZULI_MEMORY_LIMIT. are in use on interpreter:0; nothing "
                    "was run .train.cc:9."));
    EXPECT_EQ(Context::Current().pending_count(), 1);
    EXPECT_TRUE(y.storage().pending());
  }
  EXPECT_EQ(ErrorOf([&] { (void)Values(y); }).code(), absl::StatusCode::kResourceExhausted);
  big = {};  // makes room
  EXPECT_EQ(Values(y), std::vector<float>(1000, 1));
  EXPECT_EQ(work.compiles(), 1);
}

TEST_F(MemoryTest, WhatIsTakenOverNeedsNoRoom) {
  const Tensor x = Zeros(1000);
  Assign("add_", x, Add(x, Slot(1)));
  ASSERT_TRUE(Sync().ok());
  const MemoryPlan& plan = LastProgram()->memory;
  SetLimit(InUse() + plan.output_bytes + plan.temp_bytes);
  for (int step = 0; step < 5; ++step) {
    Assign("add_", x, Add(x, Slot(1)));
    ASSERT_TRUE(Sync(/*wait=*/false).ok()) << step;
  }
  const Tensor kept(Context::Current().Snapshot(x.storage()));
  Assign("add_", x, Add(x, Slot(1)));
  EXPECT_THAT(std::string(Message(Sync())), HasSubstr("of results), but"));
}

TEST_F(MemoryTest, AnImportOverTheLimitIsRefused) {
  SetLimit(InUse() + 1000);
  const Tensor fits = Zeros(200);
  EXPECT_EQ(Message(ErrorOf([] { (void)Zeros(100); })),
            "out of memory: an array of 400 bytes does not fit within LAZULI_MEMORY_LIMIT");
}

TEST_F(MemoryTest, TextOfBytes) {
  EXPECT_EQ(BytesText(0), "0 bytes");
  EXPECT_EQ(BytesText(1023), "1023 bytes");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{3} << 40), "3.0 TiB");
}

}  // namespace
}  // namespace lazuli::lazy
