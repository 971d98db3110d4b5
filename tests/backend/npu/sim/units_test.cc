// What each unit does to values: copies, permutations, gathers, vector operations, reductions,
// random bits, several cores.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/npu/sim/numerics.h"
#include "ir/evaluator/random_bits.h"
#include "ir/support/str.h"
#include "tests/backend/npu/sim/run_program.h"

namespace lazuli::npu {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

Outcome RunText(std::string_view text, const Arrays& inputs = {}) {
  Outcome outcome = RunProgram(MustAssemble(text), "", inputs);
  EXPECT_FALSE(outcome.fault) << outcome.FaultText();
  return outcome;
}

std::vector<int32_t> Iota(int n) {
  std::vector<int32_t> values;
  for (int i = 0; i < n; ++i) values.push_back(i);
  return values;
}

TEST(UnitsTest, CopiesPermuteReverseJoinAndConvert) {
  const Outcome outcome =
      RunText(R"(
.arg x s32[2,3,4] in
.arg f f32[4] in
.arg permuted s32[4,2,3] out
.arg reversed s32[24] out
.arg transposed s32[4,6] out
.arg summed s32[4] inout
.arg most f32[4] inout
.arg rounded bf16[4] out
.arg back f32[4] out
.desc all  dim(24) src(1) dst(1) elem 4
.desc perm dim(4,2,3) src(1,12,4) dst(6,3,1) elem 4
.desc rev  dim(24) src(-1) dst(1) elem 4
.desc tr   dim(4,6) src(1,4) dst(6,1) elem 4
.desc four dim(4) src(1) dst(1) elem 4
.desc twos dim(4) src(1) dst(1) elem 2
.desc pad  dim(4) src(1) dst(1) elem 4
movi r1, 0 ; movi r2, 0x100 ; movi r3, 0x200 ; movi r4, 0x300 ; movi r5, 0x400 ; movi r6, 0x500
add r7, r1, 92
dma.ld.0 [r1], $x, all
dma.ld.0 [r5], $f, four
fence all
xl.perm [r2], [r1], perm
xl.rev [r3], [r7], rev
xl.tr [r4], [r1], tr
fence all
dma.st.0 $permuted, [r2], all
dma.st.0 $reversed, [r3], all
dma.st.0 $transposed, [r4], all
dma.st.0.s32 $summed, [r1], four, add
dma.st.0.f32 $most, [r5], four, max
dma.st.0 $rounded, [r5], twos, narrow
fence all
dma.ld.1 [r6], $rounded, twos, widen
fence all
dma.st.0 $back, [r6], four
fence all
halt)",
              {{{"x", BytesOf(Iota(24))},
                {"f", BytesOf(std::vector<float>{1.00390625f, -2, 3.5f, 1e-40f})},
                {"summed", BytesOf(std::vector<int32_t>{10, 20, 30, INT32_MAX})},
                {"most", BytesOf(std::vector<float>{2, -3, std::nanf(""), -0.0f})}}});
  const auto& out = outcome.arrays[0];
  const auto permuted = ValuesOf<int32_t>(out.at("permuted")),
             transposed = ValuesOf<int32_t>(out.at("transposed"));
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 6; ++b) {
      EXPECT_EQ(permuted[static_cast<std::size_t>(a * 6 + b)], b / 3 * 12 + b % 3 * 4 + a);
      EXPECT_EQ(transposed[static_cast<std::size_t>(a * 6 + b)], b * 4 + a);
    }
  }
  auto reversed = Iota(24);
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(ValuesOf<int32_t>(out.at("reversed")), reversed);
  EXPECT_THAT(ValuesOf<int32_t>(out.at("summed")), ElementsAre(10, 21, 32, INT32_MIN + 2));
  const auto most = ValuesOf<float>(out.at("most"));
  EXPECT_EQ(most[0], 2);
  EXPECT_EQ(most[1], -2);
  EXPECT_EQ(std::bit_cast<uint32_t>(most[2]), 0x7fc00000u);
  EXPECT_EQ(most[3], 1e-40f);
  EXPECT_THAT(ValuesOf<uint16_t>(out.at("rounded")),
              ElementsAre(0x3f80, 0xc000, 0x4060, ToBf16(1e-40f)));
  EXPECT_THAT(ValuesOf<float>(out.at("back")),
              ElementsAre(1.0f, -2.0f, 3.5f, FromBf16(ToBf16(1e-40f))));
}

TEST(UnitsTest, RowsAreGatheredAndScatteredInOrder) {
  const Outcome outcome = RunText(
      R"(
.arg table f32[8,3] inout
.arg index s32[4] in
.arg got f32[4,3] out
.desc four dim(4) src(1) dst(1) elem 4
.desc rows dim(4,3) src(3,1) dst(3,1) elem 4
movi r1, 0 ; movi r2, 0x100
dma.ld.0 [r1], $index, four
fence all
dma.gat.0 [r2], $table, [r1], rows
fence all
dma.st.0 $got, [r2], rows
dma.sct.0.f32 $table, [r2], [r1], rows, add
fence all
halt)",
      {{{"table", BytesOf(std::vector<float>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                             12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23})},
        {"index", BytesOf(std::vector<int32_t>{7, 0, 7, 2})}}});
  EXPECT_THAT(ValuesOf<float>(outcome.arrays[0].at("got")),
              ElementsAre(21, 22, 23, 0, 1, 2, 21, 22, 23, 6, 7, 8));
  const auto table = ValuesOf<float>(outcome.arrays[0].at("table"));
  EXPECT_EQ(table[21], 63);  // twice
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table[7], 14);
  EXPECT_EQ(table[3], 3);
}

// Elements of x as s32 through one micro-operation with b = 3.
std::vector<int32_t> Micro32(const std::string& op, const std::vector<int32_t>& x, int32_t b = 3) {
  const Outcome outcome = RunText(
      ".arg x s32[" + std::to_string(x.size()) + "] in\n.arg y s32[" + std::to_string(x.size()) +
          "] out\n.desc all dim(" + std::to_string(x.size()) +
          ") src(1) dst(1) elem 4\n.vdesc v dim(" + std::to_string(x.size()) +
          ") a.s32(1) out.s32(1)\n.vprog p\nlit.s32 v1, " + std::to_string(b) + "\n" + op +
          "\n.end\ndma.ld.0 [r1], $x, all sig s0+1\nvx.run [r1], p, v, a=r1 wait s0>=1 sig s1+1\n"
          "dma.st.0 $y, [r1], all wait s1>=1\nfence all\nhalt",
      {{{"x", BytesOf(x)}}});
  return ValuesOf<int32_t>(outcome.arrays[0].at("y"));
}

TEST(UnitsTest, IntegersOfTheVectorUnit) {
  const std::vector<int32_t> x = {0, 5, -7, INT32_MIN};
  EXPECT_THAT(Micro32("add.s32 v3, v0, v1", x), ElementsAre(3, 8, -4, INT32_MIN + 3));
  EXPECT_THAT(Micro32("sub.s32 v3, v0, v1", x), ElementsAre(-3, 2, -10, INT32_MAX - 2));
  EXPECT_THAT(Micro32("mul.s32 v3, v0, v1", x), ElementsAre(0, 15, -21, INT32_MIN));
  EXPECT_THAT(Micro32("div.s32 v3, v0, v1", x), ElementsAre(0, 1, -2, -715827882));
  EXPECT_THAT(Micro32("div.s32 v3, v0, v1", x, 0), ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(Micro32("div.s32 v3, v0, v1", x, -1), ElementsAre(0, -5, 7, INT32_MIN));
  EXPECT_THAT(Micro32("rem.s32 v3, v0, v1", x), ElementsAre(0, 2, -1, -2));
  EXPECT_THAT(Micro32("rem.s32 v3, v0, v1", x, 0), ElementsAreArray(x));
  EXPECT_THAT(Micro32("max.s32 v3, v0, v1", x), ElementsAre(3, 5, 3, 3));
  EXPECT_THAT(Micro32("max.u32 v3, v0, v1", x), ElementsAre(3, 5, -7, INT32_MIN));
  EXPECT_THAT(Micro32("min.s32 v3, v0, v1", x), ElementsAre(0, 3, -7, INT32_MIN));
  EXPECT_THAT(Micro32("shl.s32 v3, v0, v1", x), ElementsAre(0, 40, -56, 0));
  EXPECT_THAT(Micro32("shl.s32 v3, v0, v1", x, 32), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Micro32("shr.s32 v3, v0, v1", x), ElementsAre(0, 0, -1, INT32_MIN / 8));
  EXPECT_THAT(Micro32("shr.s32 v3, v0, v1", x, 99), ElementsAre(0, 0, -1, -1));
  EXPECT_THAT(Micro32("shr.u32 v3, v0, v1", x), ElementsAre(0, 0, 0x1fffffff, 0x10000000));
  EXPECT_THAT(Micro32("and v3, v0, v1", x), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(Micro32("xor v3, v0, v1", x), ElementsAre(3, 6, -6, INT32_MIN + 3));
  EXPECT_THAT(Micro32("abs.s32 v3, v0", x), ElementsAre(0, 5, 7, INT32_MIN));
  EXPECT_THAT(Micro32("neg.s32 v3, v0", x), ElementsAre(0, -5, 7, INT32_MIN));
  EXPECT_THAT(Micro32("sgn.s32 v3, v0", x), ElementsAre(0, 1, -1, -1));
  EXPECT_THAT(Micro32("cmp.lt.s32 v3, v0, v1", x), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(Micro32("cmp.lt.u32 v3, v0, v1", x), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(Micro32("cmp.ge.s32 v4, v0, v1\nsel v3, v4, v0, v1", x), ElementsAre(3, 5, 3, 3));
  EXPECT_THAT(Micro32("idx v3, 0", x), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Micro32("tof.s32 v3, v0\ntoi.s32 v3, v3", x), ElementsAreArray(x));
  EXPECT_THAT(Micro32("lit v4, 3e9\ntoi.s32 v3, v4", x),
              ElementsAre(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX));
  EXPECT_THAT(Micro32("lit v4, nan\ntoi.s32 v3, v4", x), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(Micro32("lit v4, 3e9\ntoi.u32 v3, v4", x),
              ElementsAre(-1294967296, -1294967296, -1294967296, -1294967296));
}

TEST(UnitsTest, ReductionsOfEveryKindAndAnyLevels) {
  std::mt19937_64 random(7);
  std::vector<float> x(3 * 5 * 70);
  for (float& v : x) v = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64.0f;
  x[200] = x[210];  // a tie
  const std::pair<std::string, std::string> kOps[] = {{"sum", "f32"},    {"max", "f32"},
                                                      {"min", "f32"},    {"prod", "f32"},
                                                      {"argmax", "s32"}, {"argmin", "s32"}};
  for (const auto& [op, type] : kOps) {
    for (int levels = 1; levels < 8; ++levels) {
      int64_t results = 1;
      const int64_t dims[] = {3, 5, 70};
      int64_t stride[3] = {0, 0, 0};
      for (int l = 2; l >= 0; --l) {
        if (levels >> l & 1) continue;
        stride[l] = results;
        results *= dims[l];
      }
      const Outcome outcome = RunText(
          Str(".arg x f32[1050] in\n.arg y ", type, "[", results,
              "] out\n.desc all dim(1050) src(1) dst(1) elem 4\n.desc res dim(", results,
              ") src(1) dst(1) elem 4\n.vdesc v dim(3,5,70) a.f32(350,70,1) out.", type, "(",
              stride[0], ",", stride[1], ",", stride[2],
              ")\n.vprog p\nmov v3, v0\n.end\nmovi r2, 0x2000\ndma.ld.0 [r1], $x, all sig s0+1\n"
              "vx.red [r2], p, v, a=r1, op=",
              op, ", levels=", levels,
              " wait s0>=1 sig s1+1\ndma.st.0 $y, [r2], res wait s1>=1\nfence all\nhalt"),
          {{{"x", BytesOf(x)}}});
      for (int64_t result = 0; result < results; ++result) {
        std::vector<float> sequence;
        for (int64_t e = 0; e < 1050; ++e) {
          const int64_t index[] = {e / 350, e / 70 % 5, e % 70};
          if (index[0] * stride[0] + index[1] * stride[1] + index[2] * stride[2] == result)
            sequence.push_back(x[static_cast<std::size_t>(e)]);
        }
        std::vector<float> lanes;  // lane l takes elements l, l + 128, ...
        for (std::size_t i = 0; i < sequence.size(); ++i) {
          auto join = [op = op](float a, float b) {
            return op == "sum"    ? a + b
                   : op == "prod" ? a * b
                   : op == "max"  ? std::max(a, b)
                                  : std::min(a, b);
          };
          if (i < 128)
            lanes.push_back(sequence[i]);
          else
            lanes[i % 128] = join(lanes[i % 128], sequence[i]);
          if (i + 1 < sequence.size()) continue;
          for (std::size_t w = 64; w > 0; w /= 2) {
            for (std::size_t l = 0; l < w && l + w < lanes.size(); ++l)
              lanes[l] = join(lanes[l], lanes[l + w]);
          }
        }
        const auto at = static_cast<std::size_t>(result);
        if (type == "f32") {
          ASSERT_EQ(ValuesOf<float>(outcome.arrays[0].at("y"))[at], lanes[0])
              << op << " " << levels;
        } else {
          const auto best = op == "argmax" ? std::max_element(sequence.begin(), sequence.end())
                                           : std::min_element(sequence.begin(), sequence.end());
          ASSERT_EQ(ValuesOf<int32_t>(outcome.arrays[0].at("y"))[at], best - sequence.begin())
              << op << " " << levels;
        }
      }
    }
  }
}

// A level keeps its number when a reduction walks it last.
TEST(UnitsTest, LevelsOfAReductionKeepTheirNumbers) {
  const Outcome outcome = RunText(R"(
.arg y s32[5] out
.desc five dim(5) src(1) dst(1) elem 4
.vdesc v dim(3,5) out.s32(0,1)
.vprog p
idx v4, 0
idx v5, 1
lit.s32 v6, 100
mul.s32 v4, v4, v6
add.s32 v3, v4, v5
.end
vx.red [r1], p, v, op=sum, levels=1 sig s0+1
dma.st.0 $y, [r1], five wait s0>=1
fence all
halt)");
  EXPECT_THAT(ValuesOf<int32_t>(outcome.arrays[0].at("y")), ElementsAre(300, 303, 306, 309, 312));
}

TEST(UnitsTest, RandomBitsAreThoseOfTheCiphers) {
  const Outcome outcome =
      RunText(R"(
.arg state u32[6] inout
.arg bits u32[10] out
.desc six dim(6) src(1) dst(1) elem 4
.desc ten dim(10) src(1) dst(1) elem 4
movi r2, 0x100
dma.ld.0 [r1], $state, six
fence all
rng [r2], [r1], n=10
fence all
dma.st.0 $bits, [r2], ten
dma.st.0 $state, [r1], six
fence all
halt)",
              {{{"state", BytesOf(std::vector<uint32_t>{1, 2, 0xffffffff, 4, 5, 6})}}});
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t low = 0x4ffffffffu + i;
    const auto block = hlo::Philox4x32(
        std::array<uint32_t, 4>{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), 5, 6},
        {1, 2});
    expected.insert(expected.end(), block.begin(), block.end());
  }
  expected.resize(10);
  EXPECT_EQ(ValuesOf<uint32_t>(outcome.arrays[0].at("bits")), expected);
  EXPECT_THAT(ValuesOf<uint32_t>(outcome.arrays[0].at("state")), ElementsAre(1, 2, 2, 5, 5, 6));
}

TEST(UnitsTest, ScalarsStateAndTheHostWindow) {
  const Outcome outcome = RunText(R"(
.arg x s32[4] inout
.desc four dim(4) src(1) dst(1) elem 4
movi r1, -2
sts.s8 [0x10], r1 ; lds.u8 r2, [0x10] ; lds.s8 r3, [0x10]
sts.s64 [0x18], r1 ; lds.s16 r4, [0x18] ; lds.u32 r5, [0x18]
movi r6, 0 ; movh r6, 0x03
sem.set s7, 9
lds.s64 r7, [r6+0x1038]            # what s7 holds
lds.s64 r8, [r6+24]                # cores
add r9, r2, r3 ; add r9, r9, r4     # 254 - 2 - 2
add r9, r9, r7 ; add r9, r9, r8     # + 9 + 1
sub r10, r5, 0xfffffff0
sts.s32 [0x20], r9 ; sts.s32 [0x24], r10 ; sts.s32 [0x28], r0 ; sts.s32 [0x2c], r1
movi r11, 0x20
sem.sig.sq sig s1+1
dma.st.0 $x, [r11], four wait s1>=1 sig s2+1
sem.wait.hd wait s2>=1
movi r12, 0 ; movh r12, 0x80        # the host window
dma.d2h [r12], $x, four
dma.h2d $x[r0], [r12], four
fence all
halt)",
                                  {{{"x", BytesOf(std::vector<int32_t>{0, 0, 0, 0})}}});
  EXPECT_THAT(ValuesOf<int32_t>(outcome.arrays[0].at("x")), ElementsAre(260, 14, 0, -2));
  EXPECT_EQ(outcome.counters[0].host_bytes, 32);
}

// Two cores: each doubles half of x; core 1 hands its half to core 0's scratchpad, and says so
// through a put to the own device.
TEST(UnitsTest, CoresShareADevice) {
  const std::string text = R"(
.config npu1-edge cores=2
.arg x f32[64] in
.arg y f32[64] out
.desc half dim(32) src(1) dst(1) elem 4
.desc whole dim(64) src(1) dst(1) elem 4
.vdesc v dim(32) a.f32(1) out.f32(1)
.vprog p
add v3, v0, v0
.end
csr r1, core
shl r2, r1, 7
dma.ld.0 [r0], $x[r2], half sig s0+1
vx.run [r0], p, v, a=r0 wait s0>=1 sig s1+1
bne r1, r0, second
sem.wait.st0 wait s1>=1
dma.st.0 $y, [r0], whole wait s3>=1
fence all
halt
second: movi r3, 0xf00 ; shl r3, r3, 20 ; add r3, r3, 128
movi r4, 0x40 ; shl r4, r4, 32 ; add r3, r3, r4
lnk.put.0 [r3], [r0], half, rsem=3, rinc=1, rcore=0 wait s1>=1
fence all
halt
)";
  std::vector<float> x, doubled;
  for (int i = 0; i < 64; ++i) {
    x.push_back(static_cast<float>(i));
    doubled.push_back(static_cast<float>(2 * i));
  }
  EXPECT_EQ(ValuesOf<float>(RunText(text, {{{"x", BytesOf(x)}}}).arrays[0].at("y")), doubled);
  std::string racy = text;
  racy.replace(racy.find(" wait s3>=1"), 11, "");
  const Outcome outcome = RunProgram(MustAssemble(racy), "", {{{"x", BytesOf(x)}}});
  EXPECT_TRUE(outcome.Error() == "UNINITIALISED_READ" || outcome.Error() == "DATA_RACE")
      << outcome.FaultText();
}

// Two queues share the channel in turn; a third that waits for nothing of theirs is not held up by
// their tokens.
TEST(UnitsTest, QueuesOverlapAndShareTheChannel) {
  const std::string head =
      ".arg a f32[4096] in\n.arg b f32[4096] in\n.desc all dim(4096) src(1) dst(1) elem 4\nmovi "
      "r2, 0x4000\n";
  const Arrays inputs = {{{"a", Bytes(16384)}, {"b", Bytes(16384)}}};
  const int64_t one = RunText(head + "dma.ld.0 [r0], $a, all\nfence all\nhalt", inputs).cycles;
  const int64_t same =
      RunText(head + "dma.ld.0 [r0], $a, all\ndma.ld.0 [r2], $b, all\nfence all\nhalt", inputs)
          .cycles;
  const int64_t two =
      RunText(head + "dma.ld.0 [r0], $a, all\ndma.ld.1 [r2], $b, all\nfence all\nhalt", inputs)
          .cycles;
  EXPECT_EQ(one, 1 + 1 + 4 + 640 + 100 + 1 + 1);
  EXPECT_NEAR(static_cast<double>(same), static_cast<double>(one) + 644, 2);
  EXPECT_NEAR(static_cast<double>(two), static_cast<double>(one) + 640, 2);
}

}  // namespace
}  // namespace lazuli::npu
