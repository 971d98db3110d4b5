#include "backend/npu/sim/card.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/assembler.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::HasSubstr;

// y = 2 * x of 64 elements.
constexpr std::string_view kDouble = R"(
.arg x f32[64] in
.arg y f32[64] out
.desc d dim(64) src(1) dst(1) elem 4
.vdesc v dim(64) a.f32(1) out.f32(1)
.vprog twice
add v3, v0, v0
.end
.hlo "multiply.3"
movi r1, 0x1000
movi r2, 0x2000
dma.ld.0 [r1], $x, d  sig s0+1
vx.run [r2], twice, v, a=r1  wait s0>=1 sig s1+1
dma.st.0 $y, [r2], d  wait s1>=1
fence all
halt
)";

std::shared_ptr<const CheckedProgram> Checked(std::string_view text) {
  const auto program = Assemble(text, "t");
  EXPECT_TRUE(program.ok()) << program.status();
  auto checked = std::make_shared<CheckedProgram>();
  const auto fault = CheckProgram(*program, Config(), *checked);
  EXPECT_FALSE(fault.has_value()) << fault->ToString();
  return checked;
}

std::unique_ptr<Card> MakeCard() {
  auto card = Card::Create(Config(), "npu:0");
  EXPECT_TRUE(card.ok()) << card.status();
  return *std::move(card);
}

float First(const Card& card, uint64_t place) {
  float value = 0;
  std::memcpy(&value, card.at(place), 4);
  return value;
}

uint64_t Place(Card& card, std::string_view name, float value) {
  const std::vector<float> values(64, value);
  const auto place = card.Allocate(256, name);
  EXPECT_TRUE(place.ok()) << place.status();
  card.Write(*place, std::as_bytes(std::span(values)));
  return *place;
}

TEST(DramAllocatorTest, TakesTheFirstGapAndJoinsWhatIsFreed) {
  DramAllocator dram(1024, "npu:0");
  EXPECT_EQ(*dram.Allocate(1, "a"), 0);
  EXPECT_EQ(*dram.Allocate(65, "b"), 64);
  EXPECT_EQ(*dram.Allocate(0, "c"), 192);
  EXPECT_EQ(*dram.Allocate(768, "d"), 256);
  EXPECT_EQ(dram.in_use(), 1024);
  dram.Free(0);
  dram.Free(192);
  EXPECT_EQ(
      Message(dram.Allocate(128, "weights").status()),
      "npu:0: out of memory: 128 bytes for weights do not fit the simulated DRAM of 1024 "
      "bytes, of which 896 are in use and 64 are free in one piece; it holds 768 bytes of 1 x "
      "d, 128 bytes of 1 x b");
  dram.Free(64);
  EXPECT_EQ(*dram.Allocate(256, "e"), 0);
  EXPECT_EQ(dram.peak(), 1024);
}

TEST(CardTest, KeepsItsMemoryAndCountsOnFromLaunchToLaunch) {
  const auto card = MakeCard();
  const auto twice = Checked(kDouble);
  const uint64_t x = Place(*card, "x", 3);
  const uint64_t y = *card->Allocate(256, "y"), z = *card->Allocate(256, "z");
  Counters first, second;
  ASSERT_FALSE(card->Launch(twice, std::vector{x, y}, {}, &first).has_value());
  const auto fault = card->Launch(twice, std::vector{y, z}, {}, &second);
  ASSERT_FALSE(fault.has_value()) << fault->ToString();
  EXPECT_EQ(First(*card, x), 3);
  EXPECT_EQ(First(*card, y), 6);
  EXPECT_EQ(First(*card, z), 12);
  EXPECT_EQ(first, second);  // no launch starts warmer than another one

  const CardTotals totals = card->totals();
  EXPECT_EQ(totals.launches, 2);
  EXPECT_EQ(totals.load_bytes, 256);
  EXPECT_EQ(totals.counters.cycles, 2 * first.cycles);
  EXPECT_DOUBLE_EQ(totals.launch_seconds, 10e-6);
  EXPECT_DOUBLE_EQ(totals.transfer_seconds, 1e-6 + 256 / 16e9);
  EXPECT_DOUBLE_EQ(totals.run_seconds, 2e-9 * static_cast<double>(first.cycles));
}

TEST(CardTest, AProgramMayNotReadWhatAnEarlierOwnerOfTheMemoryLeft) {
  const auto card = MakeCard();
  const auto twice = Checked(kDouble);
  const uint64_t y = *card->Allocate(256, "y");
  card->Free(Place(*card, "old", 3));
  const uint64_t x = *card->Allocate(256, "x");
  const auto fault = card->Launch(twice, std::vector{x, y}, {});
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->code, ErrorCode::kUninitialisedRead);
}

TEST(CardTest, AnInjectedFaultHasAPlaceAndTheNextLaunchRuns) {
  const auto card = MakeCard();
  const auto twice = Checked(kDouble);
  const uint64_t x = Place(*card, "x", 3), y = *card->Allocate(256, "y");
  const auto inject = [&](std::string_view text) {
    const auto injection = Injection::Parse(text);
    EXPECT_TRUE(injection.ok()) << injection.status();
    card->Inject(*injection);
    const auto fault = card->Launch(twice, std::vector{x, y}, {});
    return fault ? fault->ToString() : "";
  };
  EXPECT_THAT(inject("trap:0"), HasSubstr("TRAP at device 0, core 0, pc 2"));
  EXPECT_EQ(inject("trap:0"), "");
  EXPECT_EQ(First(*card, y), 6);
  EXPECT_THAT(inject("memory:2"), HasSubstr("ECC at device 0, core 0, pc 2"));
  EXPECT_THAT(inject("memory:3"), HasSubstr("multiply.3"));
  EXPECT_THAT(inject("link:4"), HasSubstr("LINK_TIMEOUT at device 0"));
  EXPECT_EQ(
      Message(Injection::Parse("trap").status()),
      "\"trap\" is not a fault to inject: one reads trap:N, memory:N or link:N, with the number "
      "of a launch, counted from 0");
}

}  // namespace
}  // namespace lazuli::npu
