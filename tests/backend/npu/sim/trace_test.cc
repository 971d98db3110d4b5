#include "backend/npu/sim/trace.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/machine.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

using Json = nlohmann::json;

// Two loads of a tile, each multiplied by weights, one buffer for each: the second load waits for
// the first product.
constexpr std::string_view kProgram = R"(
.arg a s8[64,32] in
.arg w s8[32,32] in
.arg c s32[64,32] out
.desc tile dim(32,32) src(32,1) dst(32,1) elem 1
.desc rows dim(32) src(32) dst(0) elem 1
.desc result dim(64,32) src(32,1) dst(32,1) elem 4
  sem.set s0, 1
  movi r2, 0x1000
  movi r3, 0x2000
  dma.ld.0 [r2], $w, tile sig s2+1
  mx.ldw.s8 [r2], k=32, n=32 wait s2>=1
  mx.swp
  movi r4, 0
  dma.ld.0 [r1], $a[r4], tile wait s0>=1 sig s1+1
  mx.mm.s8 [r1], acc[0], rows wait s1>=1 sig s0+1
  movi r4, 1024
  dma.ld.0 [r1], $a[r4], tile wait s0>=1 sig s1+1
  mx.mm.s8 [r1], acc[32], rows wait s1>=1 sig s0+1
  mark 7
  mx.out.s32 acc[0], [r3], result sig s3+1
  dma.st.0 $c, [r3], result wait s3>=1
  halt
)";

struct Recorded {
  Program program;
  Config config;
  std::unique_ptr<Trace> trace;  // refers to both
};
std::unique_ptr<Recorded> Record(std::string_view text, std::size_t most = 1000) {
  auto run = std::make_unique<Recorded>();
  auto program = Assemble(text, "t.s");
  EXPECT_TRUE(program.ok()) << Message(program.status());
  run->program = *std::move(program);
  run->trace = std::make_unique<Trace>(run->program, run->config, most);
  auto machine = Machine::Create(run->config);
  EXPECT_TRUE(machine.ok());
  auto fault = (*machine)->Load(run->program);
  EXPECT_FALSE(fault) << fault->ToString();
  for (const char* name : {"a", "w"}) {
    const std::vector<std::byte> zeros(run->program.Find(name)->bytes());
    EXPECT_TRUE((*machine)->WriteSymbol(0, name, zeros).ok());
  }
  RunOptions options;
  options.observer = run->trace.get();
  fault = (*machine)->Run(options);
  EXPECT_FALSE(fault) << fault->ToString();
  return run;
}

TEST(TraceTest, HasASliceForEachInstructionOfAUnit) {
  const auto run = Record(kProgram);
  std::map<std::string, int> count;
  for (const Slice& slice : run->trace->slices()) {
    if (slice.track != kSequencerTrack) ++count[std::string(SliceName(slice))];
    EXPECT_LE(slice.ready, slice.start);
    EXPECT_LE(slice.start, slice.end);
    EXPECT_LE(slice.end, slice.done);
  }
  EXPECT_EQ(count["dma.ld"], 3);
  EXPECT_EQ(count["mx.mm"], 2);
  EXPECT_EQ(count["mx.ldw"], 1);
  EXPECT_EQ(count["mx.out"], 1);
  EXPECT_EQ(count["dma.st"], 1);
}

TEST(TraceTest, ArrowsLeadFromWhoSignalledToWhoWaited) {
  const auto run = Record(kProgram);
  std::vector<std::string> arrows;
  for (const Trace::Arrow& arrow : run->trace->arrows()) {
    const Slice &from = run->trace->slices()[arrow.from], &to = run->trace->slices()[arrow.to];
    EXPECT_LE(from.done, to.start);
    arrows.push_back(Str(Row(*from.instruction).mnemonic, "@", from.pc, " s", arrow.semaphore, " ",
                         Row(*to.instruction).mnemonic, "@", to.pc));
  }
  // The first load takes the token that sem.set made, which nobody signalled.
  EXPECT_THAT(arrows, ::testing::UnorderedElementsAre(
                          "dma.ld@3 s2 mx.ldw@4", "dma.ld@7 s1 mx.mm@8", "mx.mm@8 s0 dma.ld@10",
                          "dma.ld@10 s1 mx.mm@11", "mx.out@13 s3 dma.st@14"));
}

// The sequencer's track has no gaps: scalars in a row, what goes to a queue, and why that waited.
TEST(TraceTest, TheSequencerShowsWhatItDoesAndWaitsFor) {
  const auto run = Record(R"(
.arg a s8[64] in
.arg w s8[64] in
.desc all dim(64) src(1) dst(1) elem 1
  movi r2, 4096
  loop r3, 24
    dma.ld.0 [r1], $a, all
  endl
  fence ld0
  sem.sig.sq sig s1+1
  sem.wait.vx wait s1>=1 sig s2+1
  sem.wait.sq wait s2>=1
  halt
)");
  std::vector<std::string> shown;
  std::vector<Stall> stalls;
  int64_t end = 0;
  for (const Slice& slice : run->trace->slices()) {
    if (slice.track != kSequencerTrack) continue;
    EXPECT_EQ(slice.ready, end) << slice.pc;
    end = slice.end;
    if (slice.stall != Stall::kNone && (stalls.empty() || stalls.back() != slice.stall))
      stalls.push_back(slice.stall);
    if (shown.empty() || slice.instruction->opcode() != Op::kDmaLd)
      shown.push_back(Str(SliceName(slice), "@", slice.pc, " ", slice.scalars));
  }
  EXPECT_THAT(shown, ::testing::ElementsAre("scalars@0 2", "fence@4 0", "sem.sig@5 0",
                                            "sem.wait@6 0", "sem.wait@7 0", "scalars@8 1"));
  // A queue holds 16, and a load takes seven cycles.
  EXPECT_THAT(stalls, ::testing::ElementsAre(Stall::kQueueFull, Stall::kFence, Stall::kSemaphore));
  std::vector<std::string> arrows;
  for (const Trace::Arrow& arrow : run->trace->arrows())
    arrows.push_back(Str(TrackName(run->trace->slices()[arrow.from].track), " s", arrow.semaphore,
                         " ", TrackName(run->trace->slices()[arrow.to].track)));
  EXPECT_THAT(arrows, ::testing::UnorderedElementsAre("seq s1 vx", "vx s2 seq"));
}

TEST(TraceTest, CountersAreOfWhatMovesAndWhatIsStillRead) {
  const auto run = Record(kProgram);
  double area = 0;
  int64_t before = 0;
  double value = 0;
  for (const auto& [cycle, next] : run->trace->DramGigabytes(0)) {
    area += value * static_cast<double>(cycle - before);  // bytes, at a cycle a nanosecond
    before = cycle;
    value = next;
  }
  EXPECT_EQ(value, 0);
  EXPECT_NEAR(area, 3 * 1024 + 64 * 32 * 4, 1e-6);
  double most = 0;
  for (const auto& [cycle, bytes] : run->trace->LiveSpmBytes(0, 0)) most = std::max(most, bytes);
  EXPECT_EQ(run->trace->LiveSpmBytes(0, 0).back().second, 0);
  EXPECT_GE(most, 64 * 32 * 4);
  EXPECT_LE(most, 64 * 32 * 4 + 2 * 1024);
}

TEST(TraceTest, JsonIsWhatViewersRead) {
  const auto run = Record(kProgram);
  const Json json = Json::parse(run->trace->Json());
  std::map<std::string, int> phases;
  std::map<std::pair<int, int>, double> end;
  bool waits = false, mark = false;
  for (const Json& event : json["traceEvents"]) {
    const std::string phase = event["ph"];
    ++phases[phase];
    if (phase == "i") mark = event["name"] == "mark 7";
    if (phase != "X") continue;
    // Slices of a track do not overlap.
    const std::pair<int, int> track{event["pid"], event["tid"]};
    EXPECT_GE(event["ts"].get<double>() + 1e-9, end[track]) << event;
    end[track] = event["ts"].get<double>() + event["dur"].get<double>();
    waits |= event["name"] == "wait: semaphore";
  }
  EXPECT_TRUE(waits);
  EXPECT_TRUE(mark);
  EXPECT_EQ(phases["s"], 5);
  EXPECT_EQ(phases["f"], 5);
  EXPECT_GT(phases["C"], 10);
}

TEST(TraceTest, SaysWhatItLeavesOut) {
  const auto run = Record(kProgram, 3);
  EXPECT_EQ(run->trace->slices().size(), 3u);
  EXPECT_EQ(run->trace->dropped(), 20u);
  EXPECT_THAT(run->trace->Json(), ::testing::HasSubstr("20 more slices are not shown"));
}

}  // namespace
}  // namespace lazuli::npu
