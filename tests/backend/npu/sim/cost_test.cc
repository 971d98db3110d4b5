#include "backend/npu/sim/cost.h"

#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "backend/npu/sim/dram.h"

namespace lazuli::npu {
namespace {

Config With(std::string_view overrides) {
  Config config;
  EXPECT_TRUE(SetKeys(overrides, config).ok()) << overrides;
  return config;
}

void ExpectCost(const Cost& cost, int64_t occupancy, int64_t latency) {
  EXPECT_EQ(cost.occupancy, occupancy);
  EXPECT_EQ(cost.latency, latency);
}

TEST(CostTest, TheArrayOverlapsLoadsAndStreams) {
  const Config config;
  ExpectCost(LoadWeightsCost(config, 32, 32, false), 32, 0);
  ExpectCost(LoadWeightsCost(config, 17, 5, true), 17 + 32, 0);
  ExpectCost(LoadWeightsCost(With("mxu.ldw_rows_per_clk=2"), 17, 5, false), 9, 0);
  ExpectCost(MultiplyCost(config, 100, 32, 32, 1, 100), 100, 62);
  ExpectCost(MultiplyCost(config, 100, 5, 3, 4, 100), 400, 6);
  ExpectCost(MultiplyCost(config, 100, 32, 32, 1, 250), 250, 62);  // the banks are slower
  ExpectCost(OutCost(config, 100, 32), 100, 8);
  ExpectCost(OutCost(config, 100, 33), 200, 8);
  EXPECT_EQ(ClocksPerRow(config, false, F32Mode::kX6), 1);
  EXPECT_EQ(ClocksPerRow(config, true, F32Mode::kNative), 4);
  EXPECT_EQ(ClocksPerRow(config, true, F32Mode::kX3), 3);
}

TEST(CostTest, OtherDataflowsPayFoldByFold) {
  const Config os = With("mxu.dataflow=os"), is = With("mxu.dataflow=is");
  ExpectCost(LoadWeightsCost(os, 32, 32, false), 0, 0);
  ExpectCost(MultiplyCost(os, 100, 20, 32, 1, 0), 4 * (32 + 32 + 32 + 20 - 2), 0);
  ExpectCost(MultiplyCost(With("mxu.dataflow=os,mxu.os_drain=false"), 100, 20, 32, 1, 0),
             4 * (32 + 32 + 20 - 2), 0);
  ExpectCost(MultiplyCost(is, 100, 20, 24, 1, 0), 4 * (32 + 32 + 32 + 24 - 2), 0);
}

TEST(CostTest, VectorUnitsWorkSideBySide) {
  const Config config;
  EXPECT_EQ(InitiationInterval(config, 1000, 0, 0, 1), 1);
  EXPECT_EQ(InitiationInterval(config, 1000, 5, 1, 2), 5);
  EXPECT_EQ(InitiationInterval(config, 1000, 3, 1, 2), 4);
  // Four streams of 128 lanes are 2048 bytes, the banks give 1024 a clock.
  EXPECT_EQ(InitiationInterval(config, 1000, 1, 0, 4), 2);
  EXPECT_EQ(InitiationInterval(config, 64, 1, 0, 4), 1);
  ExpectCost(VectorCost(config, 129, 5), 6 + 2 * 5, 8);
  ExpectCost(ReduceCost(config, 384, 1, 128), 6 + 3 + 7, 8);
  ExpectCost(ReduceCost(config, 384, 1, 9), 6 + 3 + 4, 8);
  ExpectCost(ReduceCost(config, 384, 1, 1), 6 + 3, 8);
  ExpectCost(RandomCost(config, 1000), 6 + 8 * 10, 0);
  ExpectCost(TransposeCost(config, 32, 32), 64, 0);
  ExpectCost(TransposeCost(config, 33, 65), 3 * (33 + 64), 0);
  ExpectCost(CopyCost(config, 65), 4 + 2, 0);
}

TEST(CostTest, LinksCountHopsOnRingsAndTori) {
  const Config ring = With("devices=8"), torus = With("devices=12,link.topology=torus");
  EXPECT_EQ(Hops(ring, 0, 0), 0);
  EXPECT_EQ(Hops(ring, 0, 3), 3);
  EXPECT_EQ(Hops(ring, 1, 7), 2);
  EXPECT_EQ(Hops(torus, 0, 11), 2);  // 3 x 4: one step around each way
  EXPECT_EQ(Hops(torus, 0, 6), 3);
  ExpectCost(LinkCost(ring, 1000, 1), 4 + 20, 500);
  ExpectCost(LinkCost(ring, 1001, 3), 4 + 21, 600);
  ExpectCost(HostCost(ring, 16000), 1000, 1000);
  EXPECT_EQ(LaunchCycles(ring), 5000);
  // Times of the world outside are more cycles of a faster clock.
  ExpectCost(HostCost(With("clock_mhz=2000"), 16000), 2000, 2000);
}

TEST(CostTest, BankConflictsAreTheMostWordsOfABank) {
  std::mt19937 random(1);
  for (const char* set : {"spm.banks=16", "spm.banks=1", "spm.banks=8,spm.bank_bytes=4"}) {
    const Config config = With(set);
    for (int round = 0; round < 40; ++round) {
      std::vector<int64_t> offsets(1 + random() % 40);
      for (int64_t& offset : offsets) offset = static_cast<int64_t>(random() % 3000) - 1000;
      BankConflicts conflicts(config, offsets);
      for (int i = 0; i < 5; ++i) {
        const uint64_t address = 4096 + random() % 10000;
        std::map<int64_t, std::set<int64_t>> words;
        for (const int64_t offset : offsets) {
          const int64_t word = (static_cast<int64_t>(address) + offset) / config.spm.bank_bytes;
          words[word % config.spm.banks].insert(word);
        }
        std::size_t most = 0;
        for (const auto& [bank, of_bank] : words) most = std::max(most, of_bank.size());
        ASSERT_EQ(conflicts.Clocks(address), static_cast<int64_t>(most)) << set;
      }
    }
  }
  EXPECT_EQ(RowClocks(Config(), 0, 1024), 1);
  EXPECT_EQ(RowClocks(Config(), 1, 1024), 2);
  EXPECT_EQ(RowClocks(Config(), 63, 1), 1);
}

int64_t Cycles(int64_t ticks) { return CeilDiv(ticks, kTicksPerCycle); }

TEST(DramTest, FlatMovesWholeBurstsAtItsBandwidth) {
  Dram dram{Config()};  // 25.6 bytes a cycle: 2.5 cycles a burst
  EXPECT_EQ(dram.latency_cycles(), 100);
  EXPECT_EQ(Cycles(dram.Serve(0, 0, 1024)), 40);
  EXPECT_EQ(Cycles(dram.Serve(0, 63, 2)), 45);  // waits for the channel; two bursts
  EXPECT_EQ(Cycles(dram.Serve(100 * kTicksPerCycle, 0, 64)), 103);
  EXPECT_EQ(dram.bytes(), 1024 + 128 + 64);
  EXPECT_EQ(dram.Serve(0, 5, 0), dram.free_at());
}

TEST(DramTest, BankedIsFlatForAStreamAndSlowerForRowsOfOneBank) {
  const Config flat, banked = With("dram.model=banked");
  Dram a(flat), b(banked);
  int64_t flat_end = 0, stream_end = 0;
  for (uint64_t address = 0; address < (1 << 20); address += 1024) {
    flat_end = a.Serve(0, address, 1024);
    stream_end = b.Serve(0, address, 1024);
  }
  EXPECT_EQ(b.row_misses(), (1 << 20) / 2048);
  // Only the first row is opened with nothing under which it could be.
  EXPECT_LE(stream_end - flat_end, 30 * kTicksPerCycle);
  Dram c(banked);
  int64_t end = 0;
  for (uint64_t row = 0; row < 100; ++row) end = c.Serve(0, row * 16 * 2048, 64);
  EXPECT_EQ(c.row_misses(), 100);
  EXPECT_NEAR(static_cast<double>(Cycles(end)), 100 * 32.5, 31);
}

TEST(DramTest, MoreBandwidthIsNeverSlower) {
  std::mt19937 random(3);
  for (const char* model : {"flat", "banked"}) {
    int64_t before = INT64_MAX;
    for (const char* gbs : {"5", "10", "25.6", "100", "600"}) {
      Dram dram(With(std::string("dram.model=") + model + ",dram.gbs=" + gbs));
      random.seed(4);
      int64_t end = 0;
      for (int i = 0; i < 500; ++i) end = dram.Serve(0, random() % (1 << 24), 1 + random() % 1024);
      EXPECT_LE(end, before) << model << " " << gbs;
      before = end;
    }
  }
}

}  // namespace
}  // namespace lazuli::npu
