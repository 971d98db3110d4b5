// What fusion says of kernels that are not one.
#include "lowering/passes/fusion_decision.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lowering/passes/fuse.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// The decisions of the pass over the text's module, for a device whose kernels do what is elementwise, and reductions.
std::string DecisionsOf(std::string_view text, std::size_t max_args = 64) {
  const auto module = ParseHlo(text);
  hlo::CompileCapture capture;
  const hlo::ModuleDump dump(*module, "cpu");
  const auto supports = [](const hlo::Instruction& i) {
    return i.IsElementwise() || i.opcode() == hlo::Opcode::kReduce ||
           i.opcode() == hlo::Opcode::kBroadcast;
  };
  Fuse fuse({.device = "cpu", .supports = supports, .supports_loop = {}, .max_args = max_args});
  EXPECT_TRUE(fuse.Run(*module).ok());
  return capture.Joined("fusion.txt");
}

constexpr char kSoftmax[] = R"(
  max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
  ENTRY main {
    x = f32[8,64] parameter(0)
    low = f32[] constant(-inf)
    m = f32[8] reduce(x, low), dimensions={1}, to_apply=max, metadata={op_type="amax" source_file="net.py" source_line=3}
    b = f32[8,64] broadcast(m), dimensions={0}
    ROOT s = f32[8,64] subtract(x, b)
  })";

TEST(FusionDecisionTest, AReductionIsKnownWhenItsLoopHasEnded) {
  const std::string said = DecisionsOf(kSoftmax);
  EXPECT_THAT(said,
              HasSubstr("m (amax at net.py:3) begins a kernel of its own:\n"
                        "  not in the kernel of its users: a reduction is known only when its "
                        "loop has ended\n"));
  EXPECT_THAT(said, HasSubstr("s begins a kernel of its own:\n"
                              "  not in the kernel of its users: it is a result of the program\n"));
}

TEST(FusionDecisionTest, AProductOfTheLibraryEndsAKernel) {
  EXPECT_THAT(
      DecisionsOf(R"(
    ENTRY main {
      x = f32[4,4] parameter(0)
      t = f32[4,4] tanh(x)
      ROOT d = f32[4,4] dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })"),
      HasSubstr("t begins a kernel of its own:\n  not in the kernel of its users: a user is "
                "not in a kernel, but a library call, a copy or a result\n"));
}

TEST(FusionDecisionTest, AKernelHasSoManyArrays) {
  std::string text = "ENTRY main {\n";
  for (int p = 0; p < 6; ++p) text += Str("p", p, " = f32[4] parameter(", p, ")\n");
  text += "sum1 = f32[4] add(p0, p1)\n";
  for (int p = 2; p < 6; ++p) text += Str("sum", p, " = f32[4] add(sum", p - 1, ", p", p, ")\n");
  text += "ROOT r = f32[4] negate(sum5)\n}";
  EXPECT_THAT(DecisionsOf(text, /*max_args=*/5),
              HasSubstr("that kernel would read and write too many arrays"));
  EXPECT_THAT(DecisionsOf(text), Not(HasSubstr("too many")));
}

TEST(FusionDecisionTest, NothingIsSaidWhereNobodyAsks) {
  const auto module = ParseHlo(kSoftmax);
  FusionDecisions decisions;
  decisions.Begins(*module->entry()->root(), {{"not so", FusionDecision::No("it is not asked")}});
  hlo::CompileCapture capture;
  EXPECT_THAT(capture.files(), IsEmpty());
}

}  // namespace
}  // namespace lazuli::lowering
