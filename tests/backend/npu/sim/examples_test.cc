// The lessons of examples/npu: values to the last bit, cycles, and what holds for every program.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/numerics.h"
#include "backend/npu/sim/trace.h"
#include "ir/recipes/recipes.h"
#include "ir/support/str.h"
#include "tests/backend/npu/sim/invariants.h"
#include "tests/backend/npu/sim/run_program.h"

namespace lazuli::npu {
namespace {

std::vector<float> Floats(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(static_cast<int64_t>(random() % 2000001) - 1000000) /
                     250000.0f);
  return values;
}

std::vector<int8_t> Bytes8(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int8_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<int8_t>(random()));
  return values;
}

struct Example {
  std::string name, text;
  Arrays inputs;
};

// Of the first device.
template <class T>
std::vector<T> Input(const Example& example, const std::string& name) {
  return ValuesOf<T>(example.inputs[0].at(name));
}
template <class T>
std::vector<T> Output(const Outcome& outcome, const std::string& name) {
  return ValuesOf<T>(outcome.arrays[0].at(name));
}

Example Matmul() {
  return {"matmul",
          ExampleText("01_matmul.s"),
          {{{"a", BytesOf(Bytes8(128 * 256, 1))}, {"b", BytesOf(Bytes8(256 * 32, 2))}}}};
}
Example Convolution() {
  return {"convolution",
          ExampleText("02_convolution.s"),
          {{{"x", BytesOf(Floats(400, 3))}, {"w", BytesOf(Floats(288, 4))}}}};
}
Example Softmax() {
  return {"softmax", ExampleText("03_softmax.s"), {{{"x", BytesOf(Floats(1600, 5))}}}};
}
Example While() { return {"while", ExampleText("04_while.s"), {{{"x", BytesOf(Floats(64, 6))}}}}; }
Example AllReduce(int p) {
  std::string text = ExampleText("05_all_reduce.s");
  auto replace = [&text](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("devices=4", "devices=" + std::to_string(p));
  replace(".equ N 4096", ".equ N " + std::to_string(1024 * p));
  Example example{"all_reduce", text, {}};
  for (int d = 0; d < p; ++d)
    example.inputs.push_back({{"x", BytesOf(Floats(1024 * p, 100 + static_cast<uint64_t>(d)))}});
  return example;
}
std::vector<Example> AllExamples() {
  return {Matmul(), Convolution(), Softmax(), While(), AllReduce(4)};
}

Outcome RunExample(const Example& example, std::string_view overrides = "",
                   const RunOptions& options = {}) {
  Outcome outcome = RunProgram(MustAssemble(example.text), overrides, example.inputs, options);
  EXPECT_FALSE(outcome.fault) << example.name << ": " << outcome.FaultText();
  return outcome;
}

TEST(NpuExamplesTest, MatmulMultipliesInTheCyclesItSays) {
  const Example example = Matmul();
  const Outcome outcome = RunExample(example);
  const auto a = Input<int8_t>(example, "a"), b = Input<int8_t>(example, "b");
  const auto c = Output<int32_t>(outcome, "c");
  for (std::size_t m = 0; m < 128; ++m) {
    for (std::size_t n = 0; n < 32; ++n) {
      int32_t sum = 0;
      for (std::size_t k = 0; k < 256; ++k) sum += a[m * 256 + k] * b[k * 32 + n];
      ASSERT_EQ(c[m * 32 + n], sum) << m << " " << n;
    }
  }
  EXPECT_EQ(outcome.cycles, 4092);
  EXPECT_EQ(outcome.counters[0].macs_int, 128 * 256 * 32);
  EXPECT_EQ(outcome.counters[0].busy[kMxTrack], 8 * 128);
}

// The normative order: each group of taps is a sum of its own from +0 by fma, and the groups are
// added.
TEST(NpuExamplesTest, ConvolutionFollowsTheNormativeOrder) {
  const Example example = Convolution();
  const Outcome outcome = RunExample(example);
  const auto x = Input<float>(example, "x"), w = Input<float>(example, "w");
  const auto y = Output<float>(outcome, "y");
  for (std::size_t oh = 0; oh < 8; ++oh) {
    for (std::size_t ow = 0; ow < 8; ++ow) {
      for (std::size_t co = 0; co < 8; ++co) {
        float acc = 0;
        for (std::size_t group = 0; group < 2; ++group) {
          float p = 0;
          for (std::size_t t = group * 18; t < group * 18 + 18; ++t) {
            const std::size_t kh = t / 12, kw = t / 4 % 3, ci = t % 4;
            p = std::fma(x[((oh + kh) * 10 + ow + kw) * 4 + ci], w[t * 8 + co], p);
          }
          acc = group == 0 ? p : acc + p;
        }
        ASSERT_EQ(std::bit_cast<uint32_t>(y[(oh * 8 + ow) * 8 + co]),
                  std::bit_cast<uint32_t>(std::max(acc, 0.0f)))
            << oh << " " << ow;
      }
    }
  }
  EXPECT_EQ(outcome.cycles, 1018);
}

TEST(NpuExamplesTest, SoftmaxIsTheRecipesBitForBit) {
  const Example example = Softmax();
  const Outcome outcome = RunExample(example);
  const auto x = Input<float>(example, "x"), y = Output<float>(outcome, "y");
  for (std::size_t row = 0; row < 16; ++row) {
    float most = x[row * 100];
    for (std::size_t i = 1; i < 100; ++i) most = std::max(most, x[row * 100 + i]);
    std::vector<float> lanes;
    for (std::size_t i = 0; i < 100; ++i)
      lanes.push_back(hlo::recipes::Exp(x[row * 100 + i] - most));
    const std::vector<float> exps = lanes;
    for (std::size_t width = 64; width > 0; width /= 2) {
      for (std::size_t l = 0; l < width && l + width < 100; ++l) lanes[l] += lanes[l + width];
    }
    for (std::size_t i = 0; i < 100; ++i)
      ASSERT_EQ(y[row * 100 + i], exps[i] / lanes[0]) << row << " " << i;
  }
  EXPECT_EQ(outcome.cycles, 915);
}

TEST(NpuExamplesTest, WhileCountsItsRounds) {
  Example example = While();
  for (float most : {0.5f, 1.0f, 3.9f, 1000.0f}) {
    std::vector<float> x(64, 0.25f);
    x[17] = -most;
    example.inputs[0]["x"] = BytesOf(x);
    const Outcome outcome = RunExample(example);
    int rounds = 0;
    for (float v = most; v >= 1; v /= 2) ++rounds;
    EXPECT_EQ(Output<int32_t>(outcome, "rounds")[0], rounds);
    EXPECT_EQ(Output<float>(outcome, "x")[17], -std::ldexp(most, -rounds));
    if (rounds == 2) {
      EXPECT_EQ(outcome.cycles, 353);
    }
  }
}

// Acceptance test 18. Values in the order of the ring, cycles as the closed form says: load, 2 (p -
// 1) messages, p - 1 additions, store.
TEST(NpuExamplesTest, AllReduceOfTwoToSixteenDevices) {
  for (int p = 2; p <= 16; ++p) {
    const Example example = AllReduce(p);
    const Outcome outcome = RunExample(example);
    const auto devices = static_cast<std::size_t>(p);
    for (std::size_t chunk = 0; chunk < devices; ++chunk) {
      for (std::size_t i = chunk * 1024; i < chunk * 1024 + 1024; i += 37) {
        auto x = [&](std::size_t d) {
          return ValuesOf<float>(example.inputs[d % devices].at("x"))[i];
        };
        float sum = x(chunk);
        for (std::size_t d = 1; d < devices; ++d) sum = sum + x(chunk + d);
        for (std::size_t d = 0; d < devices; ++d)
          ASSERT_EQ(ValuesOf<float>(outcome.arrays[d].at("x"))[i], sum)
              << p << " " << d << " " << i;
        if (p > 4) i += 400;
      }
    }
    const Config config;
    const auto steps = static_cast<double>(2 * (p - 1));
    const Cost message = LinkCost(config, 4096, 1),
               addition = VectorCost(config, 1024, InitiationInterval(config, 1024, 1, 0, 3));
    const double copy = static_cast<double>(config.dma.issue) + 4096.0 * p / 25.6 + 100;
    const double form = 2 * copy + steps * static_cast<double>(message.total()) +
                        steps / 2 * static_cast<double>(addition.total());
    EXPECT_NEAR(static_cast<double>(outcome.cycles), form, 0.02 * form) << p;
  }
}

// Acceptance test 11. Tokens balance and nothing races in every run: RunExample expects no fault.
TEST(NpuExamplesTest, InvariantsOfEveryProgram) {
  for (const Example& example : AllExamples()) {
    const Program program = MustAssemble(example.text);
    const auto config = *ReadConfig(program.config_name, program.config_overrides);
    SCOPED_TRACE(example.name);
    Trace trace(program, config);
    const Outcome outcome = RunExample(example, "", {.observer = &trace});
    for (int device = 0; device < config.devices; ++device) {
      const Counters& c = outcome.counters[static_cast<std::size_t>(device)];
      ExpectInvariants(program, config, c, outcome.cycles, true);
      double most = 0;
      for (const auto& [cycle, bytes] : trace.LiveSpmBytes(device, 0)) most = std::max(most, bytes);
      EXPECT_GT(most, 0) << example.name;
      EXPECT_LE(most, static_cast<double>(config.spm_bytes())) << example.name;
    }
  }
}

// The example made for another value of keys that programs are made for.
Program Remade(const Example& example, const std::string& keys) {
  Program program = MustAssemble(example.text);
  program.config_overrides += Str(program.config_overrides.empty() ? "" : ",", keys);
  program.config_hash = ProgramHash(*ReadConfig(program.config_name, program.config_overrides));
  return program;
}

// Acceptance test 12. Several queues share the channel, so what one gains may cost another: by at
// most 1 %, and here it never does.
TEST(NpuExamplesTest, MoreBandwidthLanesOrBanksSlowNothing) {
  std::vector<std::string> anomalies;
  for (const Example& example : AllExamples()) {
    for (const char* sweep :
         {"dram.gbs=12.8 dram.gbs=25.6 dram.gbs=51.2 dram.gbs=400",
          "spm.banks=1 spm.banks=4 spm.banks=8 spm.banks=16 spm.banks=64",
          "spm.bank_bytes=16 spm.bank_bytes=64 spm.bank_bytes=256",
          "vpu.lanes=8 vpu.lanes=32 vpu.lanes=128 vpu.lanes=1024",
          "dma.load_queues=2 dma.load_queues=4", "vpu.sfu_rate=16 vpu.sfu_rate=4 vpu.sfu_rate=1",
          "mxu.ldw_rows_per_clk=1 mxu.ldw_rows_per_clk=4", "seq.queue_depth=2 seq.queue_depth=16",
          "dram.latency_ns=400 dram.latency_ns=100 dram.latency_ns=10",
          "link.gbs=10 link.gbs=50 link.gbs=200"}) {
      std::istringstream keys{std::string(sweep)};
      int64_t before = INT64_MAX;
      for (std::string key; keys >> key;) {
        const Outcome outcome = RunProgram(Remade(example, key), "", example.inputs);
        ASSERT_FALSE(outcome.fault) << example.name << " " << key << outcome.FaultText();
        if (outcome.cycles > before)
          anomalies.push_back(Str(example.name, " ", key, ": ", before, " to ", outcome.cycles));
        if (before != INT64_MAX) {
          EXPECT_LE(outcome.cycles, before + before / 100);
        }
        before = outcome.cycles;
      }
    }
  }
  EXPECT_THAT(anomalies, ::testing::IsEmpty());
}

// A program without DRAM counts the same cycles at any clock.
TEST(NpuExamplesTest, TheClockIsTheUnitOfTime) {
  const Program program = MustAssemble(R"(
.desc w dim(1024) src(1) dst(1) elem 1
.desc rows dim(100) src(1) dst(0) elem 1
.desc out dim(100,32) src(32,1) dst(32,1) elem 4
.vdesc v dim(3200) a.s32(1) out.f32(1)
.vprog p
  tof.s32 v3, v0
  exp v3, v3
.end
movi r2, 0x4000
dma.fill.0 [r1], w, 1 sig s0+1
mx.ldw.s8 [r1], k=32, n=32 wait s0>=1
mx.swp
mx.mm.s8 [r1], acc[0], rows
mx.out.s32 acc[0], [r2], out sig s1+1
vx.run [r2], p, v, a=r2 wait s1>=1
fence all
halt)");
  const Outcome slow = RunProgram(program), fast = RunProgram(program, "clock_mhz=2000");
  ASSERT_FALSE(slow.fault) << slow.FaultText();
  EXPECT_EQ(slow.cycles, fast.cycles);
  EXPECT_EQ(slow.counters, fast.counters);
}

struct Hash : Observer {
  uint64_t value = 0;
  void Add(int64_t x) { value = (value ^ static_cast<uint64_t>(x)) * 0x100000001b3; }
  void OnSlice(const Slice& s) override {
    for (int64_t x : {int64_t{s.device}, int64_t{s.core}, int64_t{s.track}, int64_t{s.pc}, s.ready,
                      s.start, s.end, s.done})
      Add(x);
  }
  void OnSignal(int d, int c, int s, int v, int64_t cycle, int, uint32_t) override {
    for (int64_t x : {int64_t{d}, int64_t{c}, int64_t{s}, int64_t{v}, cycle}) Add(x);
  }
};

// Acceptance test 13: 24 runs of each lesson, on eight threads of the host at once. The hashes are
// those of any compiler.
TEST(NpuExamplesTest, RunsAreTheSameOnAnyThread) {
  const std::map<std::string, uint64_t> kHashes = {{"matmul", 0x76b6777f5ce1fc88},
                                                   {"convolution", 0x37d2d64a01e3c75b},
                                                   {"softmax", 0x9bbfcff1ac661fef},
                                                   {"while", 0x80fdf4e22a10bab8},
                                                   {"all_reduce", 0xf46c245cfe04185c}};
  struct Seen {
    uint64_t hash;
    Outcome outcome;
  };
  for (const Example& example : AllExamples()) {
    std::vector<std::vector<Seen>> seen(8);
    std::vector<std::thread> threads;
    for (std::vector<Seen>& runs : seen) {
      threads.emplace_back([&runs, &example] {
        for (int i = 0; i < 3; ++i) {
          Hash hash;
          Outcome outcome = RunExample(example, "", {.observer = &hash});
          runs.push_back({hash.value, std::move(outcome)});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Outcome& first = seen[0][0].outcome;
    for (const auto& runs : seen) {
      for (const Seen& run : runs) {
        EXPECT_EQ(run.outcome.arrays, first.arrays) << example.name;
        EXPECT_EQ(run.outcome.cycles, first.cycles) << example.name;
        EXPECT_EQ(run.outcome.counters, first.counters) << example.name;
        EXPECT_EQ(run.hash, kHashes.at(example.name)) << example.name;
      }
    }
  }
}

// Acceptance test 14.
TEST(NpuExamplesTest, ResultsDoNotDependOnTiming) {
  for (const Example& example : AllExamples()) {
    const Outcome timed = RunExample(example);
    EXPECT_EQ(RunExample(example, "", {.timing = false}).arrays, timed.arrays) << example.name;
    const Outcome lax = RunExample(example, "strict=false");
    EXPECT_EQ(lax.arrays, timed.arrays) << example.name;
    EXPECT_EQ(lax.cycles, timed.cycles) << example.name;
    EXPECT_EQ(RunExample(example, "dram.model=banked").arrays, timed.arrays) << example.name;
    for (uint64_t seed = 1; seed <= 20; ++seed)
      EXPECT_EQ(RunExample(example, "", {.jitter = seed}).arrays, timed.arrays) << example.name;
  }
}

// Acceptance test 15. One wait or signal less: found, or harmless, which then has to be shown by
// the same results under other delays.
TEST(NpuExamplesTest, ADroppedWaitOrSignalIsFound) {
  int mutants = 0, found = 0;
  for (const Example& example : AllExamples()) {
    const Program program = MustAssemble(example.text);
    const Outcome right = RunExample(example);
    for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
      for (int which = 0; which < 3; ++which) {
        Instruction in = Unpack(program.text[pc]);
        const Instruction whole = in;
        if (which == 0) in.wait_val = in.wait_sem = 0;
        if (which == 1) in.sig_inc = in.sig_sem = 0;
        if (which == 2 && in.opcode() == Op::kLnkPut) in.aux &= ~0x3ffu;
        if (in == whole) continue;
        Program mutant = program;
        mutant.text[pc] = Encode(in);
        ++mutants;
        const Outcome outcome = RunProgram(mutant, "", example.inputs);
        if (outcome.fault) {
          ++found;
          continue;
        }
        ADD_FAILURE() << example.name << " without " << (which == 0 ? "the wait" : "the signal")
                      << " of pc " << pc << " still runs, with "
                      << (outcome.arrays == right.arrays ? "the same" : "other") << " results";
      }
    }
  }
  EXPECT_GE(mutants, 35);
  EXPECT_EQ(found, mutants);
}

}  // namespace
}  // namespace lazuli::npu
