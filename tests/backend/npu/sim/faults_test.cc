// Every error has a program that raises it, with the right place.
#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/str.h"
#include "tests/backend/npu/sim/run_program.h"

namespace lazuli::npu {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kDescriptors = R"(
.arg a f32[64,64] in
.arg o f32[64,64] out
.desc d dim(4,4) src(4,1) dst(4,1) elem 4
.desc rows dim(4) src(4) dst(4) elem 4
.desc wide dim(600000) src(1) dst(1) elem 4
.desc one dim(1) src(1) dst(1) elem 4
.desc byte dim(4) src(1) dst(1) elem 1
.vdesc v dim(16) a.f32(1) out.f32(1)
.vprog p
  mov v3, v0
.end
)";

Program Text(std::string_view text) { return MustAssemble(Str(kDescriptors, text)); }
Arrays Inputs() { return {{{"a", BytesOf(std::vector<float>(4096, 1.0f))}}}; }

struct Case {
  std::string_view text;
  std::string_view error;
  int64_t pc;
  std::string_view sentence;
  std::string_view keys = "";
};

// Acceptance test 17.
TEST(FaultsTest, EveryErrorHasItsPlaceAndSentence) {
  const Case kCases[] = {
      {"nop\ntrap 7\nhalt", "TRAP", 1, "the program traps with 7"},
      {"nop\njmp again\nagain: jmp again", "WATCHDOG", 2, "1000 cycles", "watchdog=1000"},
      {"nop", "ILLEGAL_ADDRESS", 0, "halt is missing"},
      {".desc endless dim(1000000,1000000) src(0,0) dst(0,0) elem 4\ndma.ld.0 [r0], $a, "
       "endless\nfence all\nhalt",
       "WATCHDOG", 0, "1000000000000 elements take more than 1000000 cycles", "watchdog=1000000"},
      {".vprog q\nadd v3, v0, v1\n.end\nhalt\nvx.run [r0], q, v, a=r0\nhalt", "ILLEGAL_INSTRUCTION",
       1, "reads v1 before it is written; 1 input comes in"},
      {".vprog q\nadd v4, v0, v0\n.end\nvx.run [r0], q, v, a=r0\nhalt", "ILLEGAL_INSTRUCTION", 0,
       "writes no result"},
      {"movi r1, 0x7fffffff\nlds.s32 r2, [r1]\nhalt", "MISALIGNED", 1, "not a multiple of 4"},
      {"movi r1, 0x100000\nlds.s32 r2, [r1]\nhalt", "SPM_OVERFLOW", 1,
       "bytes 1048576 to 1048579 of SPM, which has 1048576"},
      {"lds.s32 r2, [r0]\nhalt", "UNINITIALISED_READ", 0, "nothing has written it"},
      {"movi r1, 0\nmovh r1, 0x02\nlds.s32 r2, [r1]\nhalt", "ILLEGAL_ADDRESS", 2,
       "nothing that can be read"},
      {"movi r1, 0\nmovh r1, 0x10\nlds.s32 r2, [r1]\nhalt", "ILLEGAL_ADDRESS", 2,
       "does not reach DRAM"},
      {"movi r63, 5000\nret", "ILLEGAL_ADDRESS", 1, "r63 is 5000"},
      {"dma.ld.0 [r0], $a, wide\nfence all\nhalt", "SPM_OVERFLOW", 0,
       "the operand at 0x0 covers bytes 0 to 2399999"},
      {"movi r1, 2\ndma.ld.0 [r1], $a, d\nfence all\nhalt", "MISALIGNED", 1,
       "0x2 is not a multiple of 4"},
      {".config npu1-edge spm.kb=4096\nmovi r1, 0x7fffffc0\ndma.ld.0 [r0], $a[r1], wide\nfence "
       "all\nhalt",
       "ILLEGAL_ADDRESS", 1, "of DRAM"},
      {"dma.ld.0 [r0], $o, d\nfence all\nhalt", "UNINITIALISED_READ", 0, "of DRAM of device 0"},
      {"mx.mm.f32 [r0], acc[0], rows\nfence all\nhalt", "UNINITIALISED_READ", 0,
       "mx.ldw and mx.swp come before"},
      {"mx.swp\nfence all\nhalt", "UNINITIALISED_READ", 0, "mx.ldw comes before mx.swp"},
      {"mx.ldw.f32 [r0], k=33, n=4\nfence all\nhalt", "UNSUPPORTED_SHAPE", 0, "k=33, n=4"},
      {"mx.ldw.f32 [r0], k=0, n=4\nfence all\nhalt", "UNSUPPORTED_SHAPE", 0, "k=0"},
      {"dma.ld.0 [r0], $a, d sig s0+1\nmx.ldw.f32 [r0], k=4, n=4 wait s0>=1\nmx.swp\nmx.mm.bf16 "
       "[r0], acc[0], rows\nfence all\nhalt",
       "UNSUPPORTED_DTYPE", 3, "rows of bf16 times weights of f32"},
      {"dma.ld.0 [r0], $a, d sig s0+1\nmx.ldw.f32 [r0], k=4, n=4 wait s0>=1\nmx.swp\nmx.mm.f32 "
       "[r0], acc[2046], rows\nfence all\nhalt",
       "ACC_OVERFLOW", 3, "rows 2046 to 2049 of 2048"},
      {"dma.ld.0 [r0], $a, d, add\nhalt", "UNSUPPORTED_DTYPE", 0, "add and max need"},
      {"dma.ld.0.f32 [r0], $a, byte, max\nhalt", "UNSUPPORTED_DTYPE", 0, "elements of 4 bytes"},
      {".config npu1-edge dma.load_queues=1\ndma.ld.1 [r0], $a, d\nhalt", "ILLEGAL_INSTRUCTION", 0,
       "no queue ld1"},
      {".word 0x0 0xff\nhalt", "ILLEGAL_INSTRUCTION", 0, "there is no opcode 255"},
      {"halt\n.word 0x1 0xf00", "ILLEGAL_INSTRUCTION", 1, "reserved bits are set in"},
      {".word 0x0 0x5842\nhalt", "UNSUPPORTED_DTYPE", 0,
       ".word 0x0 0x5842: mx.mm does not take s16"},
      {"loop r1, 2\nnop\nendl\njmp inside\nloop r2, 2\ninside: nop\nendl\nhalt",
       "ILLEGAL_INSTRUCTION", 6, "not entered"},
      {".descraw 0 4 0 0 0  4 1 0 0 0  4 1 0 0 0  0x24\ndma.ld.0 [r0], $a, d7\nhalt",
       "UNSUPPORTED_SHAPE", 0, "dma.ld.0 [r0], $a[r0], d7: descriptor 7 has a dim of 0"},
      {".descraw 4 4 0 0 0  4 1 0 0 0  4 1 0 0 0  0x23\ndma.ld.0 [r0], $a, d7\nhalt",
       "ILLEGAL_INSTRUCTION", 0, "dma.ld.0 [r0], $a[r0], d7: descriptor 7 has elements of 3 bytes"},
      {"vx.run [r0], p, d, a=r0\nhalt", "ILLEGAL_INSTRUCTION", 0,
       "vx.run [r0], p0, d0: descriptor 0 does not belong to a vector program"},
      {"rng [r0], [r0], n=0\nhalt", "UNSUPPORTED_SHAPE", 0, "there is nothing to make"},
      {"dma.ld.0 [r0], $a, byte, narrow\nhalt", "UNSUPPORTED_DTYPE", 0,
       "narrow and widen convert elements of 4 and 2 bytes, not of 1"},
      {"movi r1, -64\ndma.ld.0 [r0], $a[r1], d\nfence all\nhalt", "ILLEGAL_ADDRESS", 1,
       "an offset of -64 from byte 0 leads out of the DRAM"},
      {"dma.ld.0 [r0], $a, d sig s0+1\nmx.ldw.f32 [r0], k=4, n=4 wait s0>=1\nmx.swp\nmovi r1, "
       "2\nmx.mm.f32 [r1], acc[0], rows\nfence all\nhalt",
       "MISALIGNED", 4, "address 0x2 is not a multiple of 4"},
      {"loop r1, 0x7fffffff\nloop r2, 0x7fffffff\nendl\nendl\nhalt", "WATCHDOG", 2,
       "the program has run for 1000 instructions", "watchdog=1000"},
      // Two units and no semaphore between them.
      {"dma.ld.0 [r0], $a, d sig s0+1\nvx.run [r0], p, v, a=r0\nsem.wait.sq wait s0>=1\nhalt",
       "DATA_RACE", 1, "is also written by ld0"},
      {".hlo \"exponential.4\"\ndma.ld.0 [r0], $a, d\nfence all\nmovi r1, 0x400\nvx.run [r1], p, "
       "v, a=r0\ndma.st.0 $o, [r1], d\nfence all\nhalt",
       "DATA_RACE", 4, "is also written by vx of device 0 core 0 at pc 3 (vx.run"},
      {"dma.ld.0 [r0], $a, d sig s0+1\nvx.run [r0], p, v, a=r0 wait s0>=1\ndma.ld.1 [r0], $a, "
       "d\nfence all\nhalt",
       "DATA_RACE", 2, "no semaphore orders the two"},
      {"dma.ld.0 [r0], $a, d wait s1>=1 sig s2+1\ndma.ld.1 [r0], $a, d wait s2>=1 sig s1+1\nfence "
       "all\nhalt",
       "DEADLOCK", 0,
       "ld0 (pc 0) waits for s1>=1, which holds 0, ld1 (pc 1) waits for s2>=1, which holds 0, "
       "which closes the cycle: ld0"},
      {"sem.wait.vx wait s9>=2\nhalt", "DEADLOCK", 0, "nobody is left to signal it"},
      {"loop r1, 20\nsem.sig.sq sig s3+15\nendl\nhalt", "SEM_OVERFLOW", 1,
       "s3 of core 0 would hold 270"},
      {"sem.sig.vx sig s3+2\nfence all\nhalt", "LEFTOVER_TOKENS", -1,
       "semaphore s3 holds 2 at the end, and was set to 0"},
      {".bss huge f32[600000000]\nhalt", "OOM_DRAM", -1,
       "the arrays take 2400032768 bytes, the DRAM has 2147483648"},
  };
  for (const Case& c : kCases) {
    const Outcome outcome = RunProgram(Text(c.text), c.keys, Inputs());
    EXPECT_EQ(outcome.Error(), c.error) << c.text << "\n" << outcome.FaultText();
    if (!outcome.fault) continue;
    EXPECT_EQ(outcome.fault->pc, c.pc) << c.text << "\n" << outcome.FaultText();
    EXPECT_THAT(outcome.FaultText(), HasSubstr(std::string(c.sentence))) << c.text;
    if (c.text.starts_with(".hlo")) {
      EXPECT_EQ(outcome.fault->origin, "exponential.4");
      EXPECT_EQ(outcome.fault->core, 0);
      EXPECT_THAT(outcome.fault->instruction, HasSubstr("dma.st.0 $o[r0], [r1], d0"));
    }
  }
}

TEST(FaultsTest, InjectedFaultsAndForeignPrograms) {
  const Program load = Text("dma.ld.0 [r0], $a, d\nfence all\nhalt");
  EXPECT_EQ(RunProgram(load, "", Inputs(), {.damaged_dram = 0}).Error(), "ECC");
  EXPECT_EQ(RunProgram(load, "", Inputs(), {.damaged_dram = 1 << 20}).Error(), "none");
  const Program put = MustAssemble(Str(".config npu1-edge devices=2\n", kDescriptors, R"(
    movi r1, 0 ; movh r1, 0x41
    csr r2, device
    bne r2, r0, end
    dma.fill.0 [r0], d, 1 sig s0+1
    lnk.put.0 [r1], [r0], d wait s0>=1
end: halt)"));
  EXPECT_EQ(RunProgram(put).Error(), "none");
  const Outcome lost = RunProgram(put, "", {}, {.lose_put = 0});
  EXPECT_EQ(lost.Error(), "LINK_TIMEOUT");
  EXPECT_EQ(lost.fault->pc, 5);
  const Outcome foreign = RunProgram(load, "mxu.rows=16");
  EXPECT_EQ(foreign.Error(), "BAD_BINARY");
  EXPECT_THAT(foreign.FaultText(), HasSubstr("made for another configuration"));
  // Keys that change no result are free.
  EXPECT_EQ(RunProgram(load, "dram.gbs=600,clock_mhz=500", Inputs()).Error(), "none");
}

TEST(FaultsTest, AFailedMachineStaysFailed) {
  auto machine = Machine::Create(Config());
  ASSERT_TRUE(machine.ok());
  ASSERT_FALSE((*machine)->Load(Text("trap 1")));
  const auto first = (*machine)->Run({}), second = (*machine)->Run({});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->ToString(), second->ToString());
  EXPECT_FALSE((*machine)->done());
  // Another program starts from zero.
  ASSERT_FALSE((*machine)->Load(Text("halt")));
  EXPECT_FALSE((*machine)->Run({}));
  EXPECT_TRUE((*machine)->done());
}

// Random programs of valid instructions: a fault or an end, never a crash or a hang.
// LAZULI_NPU_FUZZ for more.
TEST(FaultsTest, RandomProgramsEnd) {
  std::mt19937_64 random(5);
  const char* more = std::getenv("LAZULI_NPU_FUZZ");
  const int64_t count = more == nullptr ? 400 : std::strtoll(more, nullptr, 10) / 16;
  auto machine = Machine::Create([] {
    Config config;
    EXPECT_TRUE(SetKeys("spm.kb=16,acc.rows=64,dram.mb=1,watchdog=20000", config).ok());
    return config;
  }());
  ASSERT_TRUE(machine.ok());
  const Program frame = Text("halt");
  std::map<std::string_view, int> seen;
  for (int64_t i = 0; i < count; ++i) {
    Program program = frame;
    program.config_hash = ProgramHash((*machine)->config());
    program.symbols.resize(1);
    program.text.clear();
    const auto rows = InstructionRows();
    for (int k = 0; k < 16; ++k) {
      const InstructionRow& row = rows[random() % rows.size()];
      if (row.op == Op::kLoop || row.op == Op::kEndl || row.op == Op::kTrap) continue;
      if (row.op == Op::kCsr) continue;  // that reads the cycle
      Instruction in;
      for (int tries = 0; tries < 50; ++tries) {
        in = {};
        in.op = static_cast<uint32_t>(row.op);
        in.queue = static_cast<uint32_t>(QueuesOf(row.queue).first);
        while (row.types != 0 && (row.types >> in.type & 1) == 0)
          in.type = static_cast<uint32_t>(random() % 12);
        for (const Operand& operand : row.operands) {
          uint32_t value = static_cast<uint32_t>(random() % 9);
          if (operand.kind == OperandKind::kLabel) value = static_cast<uint32_t>(random() % 16);
          if (operand.kind == OperandKind::kVector) value = 0;
          if (operand.kind == OperandKind::kDescriptor)
            value = row.mnemonic.starts_with("vx") ? 5 : static_cast<uint32_t>(random() % 5);
          if (operand.width < 4) value &= (1u << operand.width) - 1;
          Set(in, operand.field, Get(in, operand.field) | value << operand.low);
        }
        if (row.op == Op::kSemSet) in.imm &= 15;
        if (in.queue != 15 && random() % 3 == 0) in.sig_inc = 1;
        if (in.queue != 15 && random() % 4 == 0) in.wait_val = 1;
        if (CheckInstruction(in).ok()) break;
      }
      program.text.push_back(Encode(in));
    }
    program.text.push_back(frame.text[0]);
    program.debug.clear();
    const auto run = [&](const RunOptions& options) {
      auto fault = (*machine)->Load(program);
      return fault ? fault : (*machine)->Run(options);
    };
    const auto fault = run({.jitter = static_cast<uint64_t>(i % 3)});
    ++seen[fault ? ErrorName(fault->code) : "none"];
    ASSERT_FALSE(fault && fault->code == ErrorCode::kSimBug) << fault->ToString();
    if (fault) continue;
    // What ends without a race computes the same without cycles.
    const Counters& counters = (*machine)->counters(0);
    for (const int64_t busy : counters.busy) ASSERT_LE(busy, counters.cycles);
    const auto spm = (*machine)->spm(0, 0);
    const std::vector<std::byte> timed(spm.begin(), spm.end());
    const auto again = run({.timing = false});
    ASSERT_FALSE(again) << again->ToString();
    const auto functional = (*machine)->spm(0, 0);
    ASSERT_TRUE(std::equal(timed.begin(), timed.end(), functional.begin(), functional.end()))
        << Disassemble(program);
  }
  EXPECT_GE(seen.size(), 5u);
  EXPECT_GE(seen["none"], count / 100);
}

}  // namespace
}  // namespace lazuli::npu
