// Attributes at random: each use of an opcode is refused by its shape rule with a sentence, or it gives
// the interpreter's values on the CPU and, where the filter of small programs is off, on the NPU.
//
// LAZULI_FUZZ_PROGRAMS and LAZULI_FUZZ_SEED: how many uses of each opcode, and from which seed on.
// LAZULI_FUZZ_LAST=FILE gets each module before it runs. Where out-of-bounds accesses are looked for,
// this runs in a build of the preset asan-cpu, in which the CPU's own kernels check theirs, too.
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/runtime/work.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "tests/backend/clients/client_test.h"
#include "tests/backend/clients/random_uses.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

using hlo::Opcode;
using ir::DType;
using ir::Str;

uint64_t Number(const char* name, uint64_t otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

// What is worth running: extremes that a rule accepts may ask for any amount of work.
bool IsSmall(const hlo::Instruction& use) {
  constexpr int64_t kMostElements = 1 << 14, kMostTaps = 1 << 10;
  constexpr double kMostFlops = 1e6;
  bool small = backend::WorkOf(use).flops < kMostFlops;
  const auto look = [&](const ir::Shape& shape) {
    ir::ForEachLeaf(shape, [&](const ir::Shape& leaf) {
      small = small && (!leaf.IsArray() || leaf.num_elements() <= kMostElements);
    });
  };
  look(use.shape());
  for (const hlo::Instruction* operand : use.operands()) look(operand->shape());
  int64_t taps = 1;
  const auto look_at = [&](const hlo::Window& window) {
    for (const hlo::WindowDim& d : window)
      taps = std::min(taps * std::min(d.size, kMostTaps + 1), kMostTaps + 1);
  };
  if (const auto* attrs = std::get_if<hlo::WindowAttrs>(&use.attrs())) look_at(attrs->window);
  if (const auto* attrs = std::get_if<hlo::ConvolutionAttrs>(&use.attrs())) look_at(attrs->window);
  return small && taps <= kMostTaps;
}

// Sums have an order of their own in each library, and in all of the NPU's units.
double ToleranceOf(const hlo::Instruction& use, bool on_npu) {
  bool sums = false;
  switch (use.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kRaggedDot:
    case Opcode::kFft:
      sums = true;
      break;
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
    case Opcode::kScatter:
      sums = on_npu;
      break;
    default:
      break;
  }
  if (!sums) return 0;
  double tolerance = 0;
  ir::ForEachLeaf(use.shape(), [&](const ir::Shape& leaf) {
    if (ir::IsIntegral(leaf.dtype()) || leaf.dtype() == DType::kPred) return;
    tolerance = std::max(tolerance, ir::Row(leaf.dtype()).bits < 32 ? 3e-2 : 1e-4);
  });
  return tolerance;
}

class AttributeFuzz {
 public:
  // Of every other seed values are special ones.
  explicit AttributeFuzz(uint64_t seed)
      : uses_(seed), values_(seed % 2 == 0 ? RandomValues::kTame : RandomValues::kSpecial) {}

  void Try(Opcode opcode) {
    const auto use = uses_.Next(opcode);
    if (!use) return;
    if (const absl::Status refused = WhyRefused(*use); !refused.ok()) {
      ++refused_;
      EXPECT_THAT(ir::Message(refused), testing::StartsWith(Str(hlo::OpcodeText(opcode), ": ")));
      return;
    }
    const auto module = ModuleOf({&*use, 1});
    if (!IsSmall(*module->entry()->root())) return;
    ++accepted_;
    Run(*module);
  }
  int refused() const { return refused_; }
  int accepted() const { return accepted_; }

 private:
  void Run(const hlo::Module& module) {
    const std::string text = hlo::ToString(module);
    if (const char* last = std::getenv("LAZULI_FUZZ_LAST"); last != nullptr)
      std::ofstream(last) << text;
    SCOPED_TRACE(text);
    ASSERT_TRUE(hlo::Verify(module).ok()) << hlo::Verify(module);
    const auto read = hlo::ParseModule(text);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(hlo::ToString(**read), text);
    const Opcode opcode = module.entry()->root()->opcode();
    // A loop that begins at the least number of all goes on for long, and which parts of a spectrum
    // an infinity reaches depends on the algorithm.
    const bool tame = opcode == Opcode::kWhile || opcode == Opcode::kFft;
    const RandomValues values = tame ? RandomValues::kTame : values_;
    const auto arguments = RandomArguments(module, values);
    const auto expected = RunOn("interpreter", text, arguments);
    for (const char* const platform : {"cpu", "npu"}) {
      // The NPU's units multiply the zeros of padding (docs/npu.md).
      if (platform == std::string_view("npu") && values == RandomValues::kSpecial &&
          opcode == Opcode::kConvolution)
        continue;
      SCOPED_TRACE(platform);
      const auto actual = RunOn(platform, text, arguments, {.op_filter = false});
      ASSERT_EQ(actual.ok(), expected.ok()) << actual.status() << "\n" << expected.status();
      if (!expected.ok()) continue;
      const double tolerance =
          ToleranceOf(*module.entry()->root(), platform == std::string_view("npu"));
      ASSERT_EQ(actual->outputs.size(), expected->outputs.size());
      for (std::size_t i = 0; i < expected->outputs.size(); ++i) {
        if (tolerance > 0)
          ExpectClose(expected->outputs[i], actual->outputs[i], tolerance, tolerance);
        else
          ExpectSameBits(expected->outputs[i], actual->outputs[i]);
      }
    }
  }

  RandomUses uses_;
  RandomValues values_;
  int refused_ = 0, accepted_ = 0;
};

// A share of the opcodes, so that ctest may run shares in parallel.
constexpr int kFuzzShares = 4;
class AttributeFuzzTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shares, AttributeFuzzTest, testing::Range(0, kFuzzShares));

TEST_P(AttributeFuzzTest, UsesAreRefusedOrGiveTheInterpretersValues) {
  const uint64_t seed = Number("LAZULI_FUZZ_SEED", 1), count = Number("LAZULI_FUZZ_PROGRAMS", 6);
  int refused = 0, accepted = 0;
  for (uint64_t n = seed; n < seed + count; ++n) {
    for (int opcode = GetParam(); opcode < hlo::NumOpcodes(); opcode += kFuzzShares) {
      if (IsLeftOut(static_cast<Opcode>(opcode))) continue;
      SCOPED_TRACE(Str("LAZULI_FUZZ_SEED=", n));
      AttributeFuzz fuzz(n * 1001 + static_cast<uint64_t>(opcode));
      fuzz.Try(static_cast<Opcode>(opcode));
      refused += fuzz.refused();
      accepted += fuzz.accepted();
      if (HasFailure()) return;
    }
  }
  RecordProperty("refused", refused);
  RecordProperty("accepted", accepted);
  EXPECT_GT(refused, 0);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace lazuli
