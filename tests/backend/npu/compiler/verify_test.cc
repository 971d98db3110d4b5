// The verifier, proved by mutation: what makes a program wrong is found without running it. That
// it has nothing against right ones is what all other tests of the compiler say, whose programs it sees.

#include "backend/npu/compiler/verify.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/isa.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

using testing::HasSubstr;

constexpr char kUnits[] = R"(
  max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
  more { s = (s32[], f32[40,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT p = pred[] compare(i, n), direction=LT }
  body {
    s = (s32[], f32[40,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[40,64] get-tuple-element(s), index=1
    one = s32[] constant(1) next = s32[] add(i, one) row = f32[1,64] dynamic-slice(x, i, one), dynamic_slice_sizes={1,64}
    twice = f32[1,64] add(row, row) y = f32[40,64] dynamic-update-slice(x, twice, next, one) ROOT t = (s32[], f32[40,64]) tuple(next, y) }
  ENTRY e {
    x = f32[2,12,12,3] parameter(0) w = f32[3,3,3,20] parameter(1) v = f32[100,64] parameter(2) low = f32[] constant(-inf)
    c = f32[2,10,10,20] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f
    p = f32[2,5,5,20] reduce-window(c, low), window={size=1x2x2x1 stride=1x2x2x1}, to_apply=max
    flat = f32[10,100] reshape(p) d = f32[10,64] dot(flat, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    four = f32[40,64] concatenate(d, d, d, d), dimensions={0} zero = s32[] constant(0) t = (s32[], f32[40,64]) tuple(zero, four)
    l = (s32[], f32[40,64]) while(t), condition=more, body=body y = f32[40,64] get-tuple-element(l), index=1
    turned = f32[64,40] transpose(y), dimensions={1,0} ROOT r = f32[64,40] exponential(turned) })";

constexpr char kTogether[] = R"(HloModule m, replica_count=3
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
  ENTRY e { x = f32[100] parameter(0) y = f32[100] negate(x) s = f32[100] all-reduce(y), replica_groups={}, to_apply=add
    ROOT r = f32[300] all-gather(s), replica_groups={}, dimensions={0} })";

Config SmallMachine(int64_t devices) {
  Config config;
  config.devices = devices;
  config.spm.kb = 32;
  return config;
}

// Runs f(instruction, pc) on each instruction, and counts what it changed and what of that is found.
struct Found {
  int changed = 0, found = 0;
  std::vector<std::string> missed;
};
template <class F>
Found Mutate(const Program& program, const Config& config, F f) {
  Found result;
  for (std::size_t pc = 0; pc < program.text.size(); ++pc) {
    Instruction in = Unpack(program.text[pc]);
    if (!f(in)) continue;
    Program changed = program;
    changed.text[pc] = Encode(in);
    ++result.changed;
    if (!Verify(changed, config).ok())
      ++result.found;
    else
      result.missed.push_back(Str("pc ", pc));
  }
  return result;
}

TEST(NpuVerifyTest, EveryDroppedWaitAndSignalIsFound) {
  for (const auto& [hlo, devices] : {std::pair{kUnits, 1}, std::pair{kTogether, 3}}) {
    const Config config = SmallMachine(devices);
    const Program program = *CompileSimplified(*ParseHlo(hlo), config);
    ASSERT_TRUE(Verify(program, config).ok()) << Verify(program, config);
    const Found waits = Mutate(program, config, [](Instruction& in) {
      const bool waits = in.wait_val != 0;
      in.wait_val = in.wait_sem = 0;
      return waits;
    });
    const Found signals = Mutate(program, config, [](Instruction& in) {
      const bool signals = in.sig_inc != 0;
      in.sig_inc = in.sig_sem = 0;
      return signals;
    });
    const Found messages = Mutate(program, config, [](Instruction& in) {
      if (in.opcode() != Op::kLnkPut) return false;
      in.aux &= ~(15u << 6);
      return true;
    });
    EXPECT_GT(waits.changed, 50);
    EXPECT_EQ(messages.changed > 0, devices > 1);
    for (const Found& found : {waits, signals, messages})
      EXPECT_EQ(found.found, found.changed) << testing::PrintToString(found.missed);
  }
}

// A fence that is left out (but for one that stands behind another one), and an address that is off: what is there has not been
// written, or is somebody's for whom nobody waits, or is none of the array's. Of a shift into what an earlier tile has left there, and
// of one within a larger array, the program alone does not say that it is wrong.
TEST(NpuVerifyTest, MissingFencesAndShiftedAddressesAreFound) {
  const Config config = SmallMachine(1);
  const Program program = *CompileSimplified(*ParseHlo(kUnits), config);
  const Found fences = Mutate(program, config, [](Instruction& in) {
    if (in.opcode() != Op::kFence) return false;
    in = Unpack(Encode({.op = static_cast<uint32_t>(Op::kNop), .queue = in.queue}));
    return true;
  });
  EXPECT_GT(fences.changed, 5);
  EXPECT_GE(fences.found, fences.changed - 1) << testing::PrintToString(fences.missed);
  struct Shift {
    int32_t bytes;
    double found;  // of all
  };
  for (const auto& [shift, least] : {Shift{-4096, 0.6}, Shift{-64, 0.4}, Shift{64, 0.4},
                                     Shift{4096, 0.7}, Shift{1 << 15, 0.95}}) {
    const Found addresses = Mutate(program, config, [bytes = shift](Instruction& in) {
      if (in.opcode() != Op::kMovi || in.rd <= 15) return false;
      in.imm += static_cast<uint32_t>(bytes);
      return true;
    });
    EXPECT_GE(addresses.found, addresses.changed * least)
        << shift << " " << addresses.found << " of " << addresses.changed;
  }
}

TEST(NpuVerifyTest, ErrorsNamePlaceAndOp) {
  const Config config = SmallMachine(1);
  Program program = *CompileSimplified(
      *ParseHlo("ENTRY e { x = f32[64] parameter(0) ROOT r = f32[64] negate(x) }"), config);
  for (Word& word : program.text) {
    Instruction in = Unpack(word);
    if (in.opcode() == Op::kVxRun) in.wait_val = in.wait_sem = 0;
    word = Encode(in);
  }
  EXPECT_THAT(
      std::string(Message(Verify(program, config))),
      testing::AllOf(HasSubstr("the program is wrong at pc "), HasSubstr("negate r"),
                     HasSubstr("it reads bytes 0 to 255 of the scratchpad without waiting for "
                               "ld0, which writes there")));
}

// One that is updated in place is written, any other is given to be read.
TEST(NpuVerifyTest, OnlyParametersThatResultsReplaceAreWritten) {
  const Config config = SmallMachine(1);
  const auto module = ParseHlo(R"(ENTRY e {
    w = f32[9000] parameter(0) g = f32[9000] parameter(1) v = f32[64,64] parameter(2)
    x = f32[9000] subtract(w, g) t = f32[64,64] transpose(v), dimensions={1,0}
    ROOT r = (f32[9000], f32[64,64]) tuple(x, t) })");
  CompileReport report;
  auto program = Compile(*module, config, &report, {.updates = {{0, 0}, {1, 2}}, .verify = true});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(report.updated, (std::vector<MayReplace>{{0, 0}}));  // v is read behind its first rows
  std::string symbols;
  for (Symbol& symbol : program->symbols) {
    symbols += Str(symbol.name, symbol.kind == SymbolKind::kInOut ? "* " : " ");
    if (symbol.kind == SymbolKind::kInOut) symbol.kind = SymbolKind::kIn;
  }
  EXPECT_EQ(symbols, "p1 p2 p0* r1 ");
  EXPECT_THAT(std::string(Message(Verify(*program, config))),
              HasSubstr("it writes p0, which the program is given to read"));
}

}  // namespace
}  // namespace lazuli::npu
