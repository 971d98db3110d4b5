// What docs/npu.md promises of programs, on compiled ones: its numbers 11 to 15.

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backend/npu/sim/trace.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"
#include "tests/backend/npu/sim/invariants.h"

namespace lazuli::npu {
namespace {

// A convolution with bias and relu, a pool, a dot and a softmax: every unit has work.
constexpr char kNet[] = R"(
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
  max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
  ENTRY e {
    x = f32[2,12,12,3] parameter(0) w = f32[3,3,3,20] parameter(1) bias = f32[20] parameter(2)
    v = f32[500,10] parameter(3) zero = f32[] constant(0) low = f32[] constant(-inf)
    c = f32[2,10,10,20] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f
    spread = f32[2,10,10,20] broadcast(bias), dimensions={3} s = f32[2,10,10,20] add(c, spread)
    zeros = f32[2,10,10,20] broadcast(zero), dimensions={} r = f32[2,10,10,20] maximum(s, zeros)
    pool = f32[2,5,5,20] reduce-window(r, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
    flat = f32[2,500] reshape(pool) y = f32[2,10] dot(flat, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    most = f32[2] reduce(y, low), dimensions={1}, to_apply=max m = f32[2,10] broadcast(most), dimensions={0}
    d = f32[2,10] subtract(y, m) ex = f32[2,10] exponential(d) sum = f32[2] reduce(ex, zero), dimensions={1}, to_apply=add
    t = f32[2,10] broadcast(sum), dimensions={0} ROOT p = f32[2,10] divide(ex, t) })";

Config Small() {
  Config config;
  config.spm.kb = 16;
  config.acc.rows = 64;
  return config;
}

struct Ran {
  std::vector<std::byte> result;
  int64_t cycles = 0;
  Counters counters;
  std::optional<Fault> fault;
};
Ran RunProgram(const Program& program, const hlo::Module& module, const Config& config,
               const RunOptions& options) {
  auto machine = *Machine::Create(config);
  Ran ran;
  ran.fault = machine->Load(program);
  const std::vector<Literal> arguments = RandomArguments(module);
  for (std::size_t p = 0; p < arguments.size() && !ran.fault; ++p)
    EXPECT_TRUE(
        machine
            ->WriteSymbol(0, Str("p", p),
                          {arguments[p].raw(), static_cast<std::size_t>(arguments[p].byte_size())})
            .ok());
  if (!ran.fault) ran.fault = machine->Run(options);
  if (ran.fault) return ran;
  ran.result = *machine->ReadSymbol(0, "r0");
  ran.cycles = machine->cycles();
  ran.counters = machine->counters(0);
  return ran;
}

// What the observer was told, in its order.
struct Hash : Observer {
  uint64_t value = 0;
  void Add(int64_t x) { value = (value ^ static_cast<uint64_t>(x)) * 0x100000001b3; }
  void OnSlice(const Slice& s) override {
    for (const int64_t x : {int64_t{s.track}, int64_t{s.pc}, s.ready, s.start, s.end, s.done})
      Add(x);
  }
  void OnSignal(int, int, int semaphore, int value, int64_t cycle, int, uint32_t) override {
    for (const int64_t x : {int64_t{semaphore}, int64_t{value}, cycle}) Add(x);
  }
};

TEST(NpuPromisesTest, ProgramsAndRunsAreTheSameOnAnyThread) {
  struct Seen {
    std::string file;
    uint64_t hash = 0;
    Ran ran;
  };
  std::vector<std::vector<Seen>> seen(8);
  std::vector<std::thread> threads;
  for (std::vector<Seen>& runs : seen) {
    threads.emplace_back([&runs] {
      for (int i = 0; i < 3; ++i) {
        const auto module = ParseHlo(kNet);
        const Program program = *CompileSimplified(*module, Small());
        Hash hash;
        Ran ran = RunProgram(program, *module, Small(), {.observer = &hash});
        runs.push_back({ToFile(program), hash.value, std::move(ran)});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Seen& first = seen[0][0];
  EXPECT_FALSE(first.ran.fault);
  EXPECT_NE(first.hash, 0U);
  for (const auto& runs : seen) {
    for (const Seen& run : runs) {
      EXPECT_EQ(run.file, first.file);
      EXPECT_EQ(run.ran.result, first.ran.result);
      EXPECT_EQ(run.ran.cycles, first.ran.cycles);
      EXPECT_EQ(run.ran.counters, first.ran.counters);
      EXPECT_EQ(run.hash, first.hash);
    }
  }
}

TEST(NpuPromisesTest, ResultsDoNotDependOnTiming) {
  const auto module = ParseHlo(kNet);
  const Program program = *CompileSimplified(*module, Small());
  const Ran timed = RunProgram(program, *module, Small(), {});
  ASSERT_FALSE(timed.fault) << timed.fault->sentence;
  const Ran functional = RunProgram(program, *module, Small(), {.timing = false});
  ASSERT_FALSE(functional.fault) << functional.fault->sentence;
  EXPECT_EQ(timed.result, functional.result);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Ran delayed = RunProgram(program, *module, Small(), {.jitter = seed});
    ASSERT_FALSE(delayed.fault) << seed << ": " << delayed.fault->sentence;
    EXPECT_EQ(timed.result, delayed.result);
  }
}

TEST(NpuPromisesTest, EveryTokenIsNeeded) {
  const auto module = ParseHlo(kNet);
  const Program program = *CompileSimplified(*module, Small());
  int dropped = 0;
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    const Instruction in = Unpack(program.text[pc]);
    for (const bool wait : {true, false}) {
      if ((wait ? in.wait_val : in.sig_inc) == 0 || pc % 7 != 0) continue;
      Instruction without = in;
      (wait ? without.wait_val : without.sig_inc) = 0;
      (wait ? without.wait_sem : without.sig_sem) = 0;
      Program mutant = program;
      mutant.text[pc] = Encode(without);
      EXPECT_TRUE(RunProgram(mutant, *module, Small(), {}).fault) << pc;
      ++dropped;
    }
  }
  EXPECT_GE(dropped, 30);
}

// The program is the same; the machine has more of something.
TEST(NpuPromisesTest, MoreBandwidthOrBanksSlowNothing) {
  const auto module = ParseHlo(kNet);
  const Program program = *CompileSimplified(*module, Small());
  const auto with = [](std::string_view key, std::string_view value) {
    Config config = Small();
    EXPECT_TRUE(SetKeys(Str(key, "=", value), config).ok()) << key;
    return config;
  };
  const std::vector<std::vector<std::string_view>> sweeps = {
      {"dram.gbs", "6.4", "25.6", "102.4", "400"},
      {"dram.latency_ns", "400", "100", "10"},
      {"spm.banks", "1", "4", "16", "64"},
      {"spm.bank_bytes", "16", "64", "256"},
      {"vpu.sfu_rate", "16", "4", "1"},
      {"mxu.ldw_rows_per_clk", "1", "4"},
      {"mxu.f32_clk_per_row", "4", "1"},
      {"seq.queue_depth", "2", "16", "64"}};
  for (const auto& sweep : sweeps) {
    int64_t before = INT64_MAX;
    std::vector<std::byte> result;
    for (std::size_t k = 1; k < sweep.size(); ++k) {
      const Ran ran = RunProgram(program, *module, with(sweep[0], sweep[k]), {});
      ASSERT_FALSE(ran.fault) << sweep[0] << " " << ran.fault->sentence;
      // Two queues share the DRAM: what one gains may cost the other one.
      if (before != INT64_MAX) {
        EXPECT_LE(ran.cycles, before + before / 100) << sweep[0] << "=" << sweep[k];
        EXPECT_EQ(ran.result, result) << sweep[0];
      }
      before = ran.cycles;
      result = ran.result;
    }
  }
}

TEST(NpuPromisesTest, CountersAreWithinWhatTheProgramNeeds) {
  const auto module = ParseHlo(kNet);
  CompileReport report;
  const Program program = *CompileSimplified(*module, Config(), &report);
  Trace trace(program, Config());
  const Ran ran = RunProgram(program, *module, Config(), {.observer = &trace});
  ASSERT_FALSE(ran.fault);
  double most = 0;
  for (const auto& [cycle, bytes] : trace.LiveSpmBytes(0, 0)) most = std::max(most, bytes);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, static_cast<double>(report.spm_bytes));
  EXPECT_LE(report.spm_bytes, Config().spm_bytes());
  EXPECT_EQ(ran.counters.macs_f32, 2 * 100 * 27 * 20 + 2 * 500 * 10);
  ExpectInvariants(program, Config(), ran.counters, ran.cycles, true);
}

}  // namespace
}  // namespace lazuli::npu
