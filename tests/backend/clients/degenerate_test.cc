// Every opcode over arrays of rank 0, of no elements and of one gives the same values on the CPU as
// on the interpreter, and on the NPU, where it takes programs however small.
//
// Of each opcode two element types and some uses are tried, which LAZULI_FUZZ_SEED=N chooses;
// LAZULI_SWEEP=all tries all, and the CPU without simplifications, too, which keep much from its
// kernels.
// LAZULI_FUZZ_LAST=FILE gets each module before it runs.
#include <cstdlib>
#include <fstream>
#include <string_view>

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"
#include "ir/types/leaves.h"
#include "tests/backend/clients/client_test.h"
#include "tests/backend/clients/degenerate_uses.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

using hlo::Opcode;
using ir::DType;

constexpr std::size_t kUsesInModule = 48;

bool WholeSweep() {
  const char* const sweep = std::getenv("LAZULI_SWEEP");
  return sweep != nullptr && std::string_view(sweep) == "all";
}

std::size_t Seed() {
  const char* const text = std::getenv("LAZULI_FUZZ_SEED");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

std::vector<DType> AllDTypes() {
  return {
#define LAZULI_DTYPE(name, ...) DType::name,
#include "ir/types/dtype.def"
#undef LAZULI_DTYPE
  };
}

// Types for which the opcode has uses: f32 if it is one and another, or all.
std::vector<DType> DTypesFor(Opcode opcode) {
  std::vector<DType> types;
  for (DType dtype : AllDTypes()) {
    if (!DegenerateUses(opcode, dtype).empty()) types.push_back(dtype);
  }
  if (WholeSweep() || types.size() <= 2) return types;
  const DType drawn = types[(static_cast<std::size_t>(opcode) * 7 + Seed()) % types.size()];
  const auto f32 = std::find(types.begin(), types.end(), DType::kF32);
  const DType usual = f32 == types.end() ? types.back() : *f32;
  if (drawn == usual) return {usual};
  return {usual, drawn};
}

// Sums of products have an order of their own in each library.
double ToleranceOf(Opcode opcode, DType dtype) {
  const bool sums_products = opcode == Opcode::kDot || opcode == Opcode::kConvolution ||
                             opcode == Opcode::kRaggedDot || opcode == Opcode::kFft;
  if (!sums_products || ir::IsIntegral(dtype)) return 0;
  return ir::Row(dtype).bits < 32 ? 2e-2 : 1e-5;
}

// All sums have, on the NPU.
double NpuToleranceOf(Opcode opcode, DType dtype) {
  const bool sums = opcode == Opcode::kReduce || opcode == Opcode::kReduceWindow ||
                    opcode == Opcode::kSelectAndScatter || opcode == Opcode::kScatter;
  if (!sums || ir::IsIntegral(dtype)) return ToleranceOf(opcode, dtype);
  return ir::Row(dtype).bits < 32 ? 2e-2 : 1e-5;
}

void ExpectAlike(const std::vector<ir::Literal>& expected, const std::vector<ir::Literal>& actual,
                 const std::vector<std::string>& lines, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(lines[i]);
    if (tolerance > 0) {
      ExpectClose(expected[i], actual[i], tolerance, tolerance);
    } else {
      ExpectSameBits(expected[i], actual[i]);
    }
  }
}

// One line for each leaf of the outputs.
std::vector<std::string> LinesOfLeaves(absl::Span<const DegenerateUse> uses,
                                       const hlo::Module& module,
                                       const std::vector<std::string>& lines) {
  std::vector<std::string> result;
  const ir::Shape& root = module.entry()->root()->shape();
  for (std::size_t k = 0; k < uses.size(); ++k) {
    const ir::Shape& shape = uses.size() == 1 ? root : root.tuple()[k];
    result.insert(result.end(), static_cast<std::size_t>(ir::LeafCount(shape)), lines[k]);
  }
  return result;
}

void TryUses(absl::Span<const DegenerateUse> uses, DType dtype) {
  const double tolerance = ToleranceOf(uses[0].opcode, dtype);
  std::vector<std::string> lines;
  const auto module = ModuleOf(uses, &lines);
  const std::string text = hlo::ToString(*module);
  if (const char* last = std::getenv("LAZULI_FUZZ_LAST"); last != nullptr)
    std::ofstream(last) << text;
  ASSERT_TRUE(hlo::Verify(*module).ok()) << hlo::Verify(*module) << "\n" << text;
  const auto arguments = RandomArguments(*module);
  const auto expected = RunOn("interpreter", text, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status() << "\n" << text;
  const auto leaf_lines = LinesOfLeaves(uses, *module, lines);
  {
    SCOPED_TRACE("npu");
    const auto actual = RunOn("npu", text, arguments, {.op_filter = false});
    ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << text;
    ExpectAlike(expected->outputs, actual->outputs, leaf_lines,
                NpuToleranceOf(uses[0].opcode, dtype));
  }
  for (const char* const passes : {"", "simplification"}) {
    if (*passes != '\0' && !WholeSweep()) continue;
    SCOPED_TRACE(std::string("without passes: ") + passes);
    ASSERT_TRUE(ir::SetFlag("LAZULI_DISABLE_PASSES", passes).ok());
    const auto actual = RunOn("cpu", text, arguments);
    ASSERT_TRUE(ir::SetFlag("LAZULI_DISABLE_PASSES", "").ok());
    ASSERT_TRUE(actual.ok()) << actual.status() << "\n" << text;
    ExpectAlike(expected->outputs, actual->outputs, leaf_lines, tolerance);
  }
}

// All uses, or about as many of them as fit in a module.
std::vector<DegenerateUse> Drawn(std::vector<DegenerateUse> uses) {
  if (WholeSweep()) return uses;
  const std::size_t stride = (uses.size() + kUsesInModule - 1) / kUsesInModule;
  std::vector<DegenerateUse> drawn;
  for (std::size_t i = Seed() % std::max<std::size_t>(stride, 1); i < uses.size(); i += stride)
    drawn.push_back(std::move(uses[i]));
  return drawn;
}

void TryOpcode(Opcode opcode) {
  SCOPED_TRACE(hlo::OpcodeText(opcode));
  const std::vector<DType> dtypes = DTypesFor(opcode);
  EXPECT_EQ(dtypes.empty(), IsLeftOut(opcode));
  for (DType dtype : dtypes) {
    const auto uses = Drawn(DegenerateUses(opcode, dtype));
    for (std::size_t first = 0; first < uses.size(); first += kUsesInModule) {
      TryUses(absl::MakeConstSpan(uses).subspan(first, kUsesInModule), dtype);
    }
  }
}

// A share of the opcodes, so that ctest may run shares in parallel.
constexpr int kShares = 6;
class DegenerateTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shares, DegenerateTest, testing::Range(0, kShares));

TEST_P(DegenerateTest, DevicesAgreeWithInterpreter) {
  for (int opcode = GetParam(); opcode < hlo::NumOpcodes(); opcode += kShares)
    TryOpcode(static_cast<Opcode>(opcode));
}

}  // namespace
}  // namespace lazuli
