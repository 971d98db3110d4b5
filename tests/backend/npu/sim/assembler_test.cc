#include "backend/npu/sim/assembler.h"

#include <cstdlib>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

int64_t Count(const char* variable, int64_t sample) {
  const char* text = std::getenv(variable);
  return text == nullptr ? sample : std::strtoll(text, nullptr, 10);
}

// An instruction of the row with random operands: what the table says is possible, and nothing
// else.
Instruction RandomInstruction(const InstructionRow& row, std::mt19937_64& random) {
  auto below = [&random](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  Instruction in;
  in.op = static_cast<uint32_t>(row.op);
  const QueueRange queues = QueuesOf(row.queue);
  do {
    in.queue = static_cast<uint32_t>(queues.first) + below(static_cast<uint32_t>(queues.count));
  } while (QueueName(in.unit()).empty());
  while (row.types != 0 && (row.types >> in.type & 1) == 0) in.type = below(16);
  if (row.used.wait_val != 0 && below(2) != 0) {
    in.wait_val = 1 + below(255);
    in.wait_sem = below(64);
  }
  if (row.used.sig_inc != 0 && below(2) != 0) {
    in.sig_inc = 1 + below(15);
    in.sig_sem = below(64);
  }
  for (const Operand& operand : row.operands) {
    uint32_t value = static_cast<uint32_t>(random());
    if (!operand.words.empty()) value = below(static_cast<uint32_t>(operand.words.size()));
    if (operand.kind == OperandKind::kLabel || operand.kind == OperandKind::kVector ||
        operand.kind == OperandKind::kEnd)
      value = 1;
    if (operand.kind == OperandKind::kDescriptor) value = row.mnemonic.starts_with("vx") ? 1 : 0;
    if (operand.kind == OperandKind::kCsr) value = below(static_cast<uint32_t>(CsrNames().size()));
    if (operand.kind == OperandKind::kQueues) value = 1 + below((1u << kQueues) - 1);
    const uint64_t mask = ((uint64_t{1} << operand.width) - 1) << operand.low;
    Set(in, operand.field,
        static_cast<uint32_t>((Get(in, operand.field) & ~mask) |
                              (uint64_t{value} << operand.low & mask)));
    if (operand.kind == OperandKind::kSource) {
      if (below(2) != 0) {
        in.aux |= kAuxImmediate;
        in.imm = static_cast<uint32_t>(random());
        in.rb = 0;
      }
    } else if (operand.kind == OperandKind::kDram) {
      if (below(2) != 0) {
        in.aux |= kAuxDram;
        in.imm = static_cast<uint32_t>(random());
      } else {
        in.aux &= ~kAuxDram;
        in.rb |= 1;
      }
    } else if (operand.kind == OperandKind::kAddressPlus || operand.kind == OperandKind::kAcc) {
      in.imm = static_cast<uint32_t>(random());
    }
  }
  return in;
}

constexpr std::string_view kFrame = R"(
.arg a f32[4,4] in
.const k f32[3] 1.5 -inf 0x7fc00001
.const i s8[4] -1 2 3 4
.bss x bf16[8]
.sem s5 3
.desc d dim(4,4) src(4,1) dst(1,4) elem 4
.vdesc v dim(2,3) a.f32(3,1) b.bf16(0,1) out.s8(3,1)
.vprog other
  mov v3, v0
.end
.vprog p
  lit v4, -0.5
  lit.s32 v5, 7
  fma v3, v0, v1, v4
  cmp.lt.s32 v3, v3, v5
  idx v6, 1
.end
.meta "{\"tiles\": 2}"
)";

// Acceptance test 16, with the four fuzzers below.
TEST(AssemblerTest, EveryInstructionReadsBackFromItsText) {
  std::mt19937_64 random(1);
  const auto frame = Assemble(Str(kFrame, "nop\nhalt\n"), "frame");
  ASSERT_TRUE(frame.ok()) << frame.status();
  for (const InstructionRow& row : InstructionRows()) {
    for (int i = 0; i < 40; ++i) {
      const Instruction in = RandomInstruction(row, random);
      ASSERT_TRUE(CheckInstruction(in).ok()) << row.mnemonic << ": " << CheckInstruction(in);
      EXPECT_EQ(Unpack(Encode(in)), in);
      Program program = *frame;
      program.text = {Encode(in), Encode(Unpack(frame->text[0]))};
      if (in.opcode() == Op::kLoop)
        program.text[1] = Encode({.op = static_cast<uint32_t>(Op::kEndl), .queue = 15});
      if (in.opcode() == Op::kEndl) continue;
      const std::string text = Disassemble(program);
      const auto back = Assemble(text, "back");
      ASSERT_TRUE(back.ok()) << back.status() << "\n" << text;
      EXPECT_EQ(ToFile(*back), ToFile(program)) << text;
      EXPECT_EQ(text.find(".word"), std::string::npos) << text;
    }
  }
}

TEST(AssemblerTest, FilesReadBackAndDamageIsFound) {
  const auto program = Assemble(Str(kFrame, ".hlo \"dot.3\"\nhalt\n"), "frame");
  ASSERT_TRUE(program.ok()) << program.status();
  const std::string file = ToFile(*program);
  const auto back = FromFile(file);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToFile(*back), file);
  EXPECT_EQ(back->origins[back->debug[0].origin], "dot.3");
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const auto status = FromFile(damaged).status();
    EXPECT_THAT(std::string(Message(status)), StartsWith("BAD_BINARY: ")) << "byte " << i;
  }
  EXPECT_THAT(std::string(Message(FromFile("PK\3\4").status())),
              HasSubstr("does not begin with NPUX"));
  EXPECT_THAT(std::string(Message(FromFile(file.substr(0, file.size() - 1)).status())),
              HasSubstr("its header says"));
}

TEST(AssemblerTest, WrongTextIsAnErrorWithItsLine) {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"add r1, r2", "t:1: add takes rd, ra, src"},
      {"nop\nfrob r1", "t:2: there is no instruction frob"},
      {"add r1, r64, 1", "'r64' is not a register"},
      {"movi r1, 0x100000000", "more than 32 bits"},
      {"jmp nowhere", "there is no label nowhere"},
      {"loop r1, 4\nnop", "endl is missing"},
      {"endl", "endl without a loop"},
      {"mx.mm [r1], acc[0], d", "needs an element type"},
      {"mx.mm.s16 [r1], acc[0], d", "there is no descriptor d"},
      {".desc d dim(4) src(1) dst(1) elem 1\nmx.mm.s16 [r1], acc[0], d", "mx.mm does not take s16"},
      {"dma.ld.7 [r1], [r2], d", "'.7' is not a suffix of dma.ld"},
      {"sem.wait wait s0>=1", "sem.wait names its queue"},
      {"nop wait s0>=1", "reserved bits"},
      {"sem.sig.vx sig s1+16", "a signal adds 1 to 15"},
      {".desc d dim(4,0) src(1,1) dst(1,1) elem 1", "at least one element"},
      {".arg a f32[4] sideways", "in, out or inout"},
      {".arg .a f32[4] in", "'.a' is not a name of an array"},
      {".const c s32[3] 1 2", "has 3 elements, not 2"},
      {".const c u8[2] 1 256", "256 has more than the 8 bits of u8"},
      {".const c s8[2] -129 1", "-129 has more than the 8 bits of s8"},
      {".vprog p\nlit.s32 v3, 4294967296\n.end", "4294967296 has more than the 32 bits of s32"},
      {".desc d dim(4) src(1) dim(2) dst(1) elem 1", "dim(...) is there twice"},
      {"@4294967296 halt", "@4294967296 is not a line"},
      {".vprog p\nadd v1, v2", "add takes 3 operands"},
      {".vprog p\nexp.s32 v1, v2\n.end", "exp is f32 only"},
      {".config npu9\nhalt", "npu9"},
      {"movi r1, \"a", "a text is not closed"},
      {"halt ~", "'~' means nothing here"},
      {"", "there are no instructions"},
  };
  for (const auto& [text, message] : kCases) {
    const auto program = Assemble(text, "t");
    ASSERT_FALSE(program.ok()) << text;
    EXPECT_THAT(std::string(Message(program.status())), HasSubstr(std::string(message))) << text;
  }
}

// LAZULI_NPU_FUZZ=10000000 for the whole.
TEST(AssemblerTest, RandomWordsDecodeToWhatEncodesThem) {
  std::mt19937_64 random(2);
  const int64_t count = Count("LAZULI_NPU_FUZZ", 200000);
  int64_t decoded = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word{random(), random()};
    // Half of them near something that is one.
    if (i % 2 == 0) {
      const auto rows = InstructionRows();
      word = Encode(RandomInstruction(rows[random() % rows.size()], random));
      const auto bit = random() % 256;
      if (bit < 64)
        word.low ^= uint64_t{1} << bit;
      else if (bit < 128)
        word.high ^= uint64_t{1} << (bit - 64);
    }
    const auto in = Decode(word);
    if (!in.ok()) continue;
    ++decoded;
    EXPECT_EQ(Encode(*in), word);
  }
  EXPECT_GT(decoded, count / 4);
}

TEST(AssemblerTest, RandomTextNeverCrashes) {
  std::mt19937_64 random(3);
  const std::string good = Str(kFrame, R"(
loop r10, 8
  dma.ld.1 [r3], $a[r4+64], d, widen wait s0>=1 sig s1+1
  mx.ldw.f32 [r3], k=4, n=4, t
  mx.mm.f32 [r1], acc[r2+4], d, acc=r11, koff=r5, mode=x3
  vx.red [r1], p, v, a=r2, b=r3, op=max, levels=2
endl
L: fence ld0|mx ; csr r4, cycle ; lds.s32 r1, [r2-4]
beq r1, r2, L
halt
)");
  ASSERT_TRUE(Assemble(good, "good").ok()) << Assemble(good, "good").status();
  const std::string_view kPieces[] = {"[",
                                      "]",
                                      "(",
                                      ")",
                                      ",",
                                      "=",
                                      "$",
                                      "@",
                                      ";",
                                      ":",
                                      ".",
                                      "\"",
                                      "\n",
                                      "r1",
                                      "s0>=1",
                                      " wait ",
                                      " sig ",
                                      "-",
                                      "0x",
                                      "1e9",
                                      ".s8",
                                      "loop",
                                      "99999999999999999999"};
  for (int64_t i = 0; i < Count("LAZULI_NPU_FUZZ", 3000) / 10 + 1000; ++i) {
    std::string text = good;
    for (int k = 0; k < 4; ++k) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, random() % 8);
          break;
        case 1:
          text.insert(at, kPieces[random() % std::size(kPieces)]);
          break;
        default:
          text[at] = static_cast<char>(random());
          break;
      }
    }
    const auto program = Assemble(text, "fuzz");
    if (!program.ok()) continue;
    const std::string printed = Disassemble(*program);
    const auto back = Assemble(printed, "back");
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << printed;
    EXPECT_EQ(ToFile(*back), ToFile(*program)) << printed;
  }
}

// Files that are damaged on purpose, with a checksum that fits: refused, or programs that can be
// printed.
TEST(AssemblerTest, ForgedFilesAreRefusedOrPrintable) {
  std::mt19937_64 random(6);
  const auto frame = Assemble(
      Str(kFrame, ".hlo \"dot.3\"\nloop r1, 4\ndma.ld.0 [r1], $a, d\nendl\nhalt\n"), "frame");
  ASSERT_TRUE(frame.ok()) << frame.status();
  const std::string file = ToFile(*frame);
  int accepted = 0;
  for (int64_t i = 0; i < Count("LAZULI_NPU_FUZZ", 20000) / 10; ++i) {
    std::string forged = file;
    for (uint64_t k = 0; k <= random() % 3; ++k)
      forged[random() % forged.size()] = static_cast<char>(random());
    std::memset(forged.data() + 32, 0, 4);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(forged.data()), forged.size());
    for (std::size_t b = 0; b < 4; ++b) forged[32 + b] = static_cast<char>(crc >> (8 * b));
    const auto program = FromFile(forged);
    if (!program.ok()) {
      EXPECT_THAT(std::string(Message(program.status())), StartsWith("BAD_BINARY: "));
      continue;
    }
    ++accepted;
    EXPECT_FALSE(Disassemble(*program).empty());
  }
  EXPECT_GT(accepted, 100);
}

// Any file with a right frame: whatever its words say, its text assembles to the same bytes.
TEST(AssemblerTest, RandomProgramsReadBackFromTheirText) {
  std::mt19937_64 random(4);
  const auto frame = Assemble(Str(kFrame, "halt\n"), "frame");
  ASSERT_TRUE(frame.ok());
  for (int i = 0; i < 300; ++i) {
    Program program = *frame;
    program.text.clear();
    program.debug.clear();
    for (int k = 0; k < 12; ++k) {
      const auto rows = InstructionRows();
      Word word = Encode(RandomInstruction(rows[random() % rows.size()], random));
      if (random() % 4 == 0) word.low ^= uint64_t{1} << random() % 64;
      program.text.push_back(word);
      program.debug.push_back({static_cast<uint32_t>(random() % 100), 0});
    }
    program.descriptors[random() % 3].flags ^= 1u << random() % 32;
    program.vectors[1][random() % program.vectors[1].size()] ^= 1u << random() % 32;
    const std::string text = Disassemble(program);
    const auto back = Assemble(text, "back");
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << text;
    EXPECT_EQ(ToFile(*back), ToFile(program)) << text;
  }
}

}  // namespace
}  // namespace lazuli::npu
