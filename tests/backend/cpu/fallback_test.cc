// What a device has no code for is counted, and said or refused as the policy wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/compiler.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using testing::HasSubstr;

std::string Cholesky(int64_t size, int line) {
  const std::string shape = Str("f32[", size, ",", size, "]");
  return Str("ENTRY main { x = ", shape, " parameter(0) ROOT r = ", shape,
             " cholesky(x), lower=true, metadata={op_type=\"aten__linalg_cholesky\" ",
             "source_file=\"train.cc\" source_line=", line, "} }");
}

absl::Status Compile(const std::string& text, Fallback fallback) {
  return CompileModule(ParseHlo(text), {.num_threads = 1, .fallback = fallback}).status();
}

TEST(FallbackTest, ALargeOneIsSaidOncePerOpAndLine) {
  testing::internal::CaptureStderr();
  const int64_t before = CounterValue("fallback");
  EXPECT_TRUE(Compile(Cholesky(128, 7), Fallback::kWarn).ok());
  EXPECT_TRUE(Compile(Cholesky(128, 7), Fallback::kWarn).ok());
  EXPECT_EQ(CounterValue("fallback"), before + 2) << "counted always";
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("aten__linalg_cholesky (train.cc:7) runs in the evaluator on cpu: "));
  EXPECT_EQ(said.find("lazuli:"), said.rfind("lazuli:")) << "once";
}

TEST(FallbackTest, SmallOnesAndAllowedOnesAreSilent) {
  testing::internal::CaptureStderr();
  const int64_t before = CounterValue("fallback");
  EXPECT_TRUE(Compile(Cholesky(4, 8), Fallback::kWarn).ok());
  EXPECT_TRUE(Compile(Cholesky(128, 9), Fallback::kAllow).ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(CounterValue("fallback"), before + 2);
}

TEST(FallbackTest, ErrorRefusesThemWithOpLineAndReason) {
  const absl::Status refused = Compile(Cholesky(4, 10), Fallback::kError);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Message(refused)),
              testing::AllOf(HasSubstr("aten__linalg_cholesky: cpu has no code for cholesky"),
                             HasSubstr("(train.cc:10)"), HasSubstr("LAZULI_FALLBACK=error")));
}

// Grouped convolutions, their gradients and those of f64 have compiled forms.
TEST(FallbackTest, NoConvolutionIsLeft) {
  const std::string module = R"(
    ENTRY main {
      x = f32[2,8,9,9] parameter(0)
      w = f32[16,2,3,3] parameter(1)
      g = f32[2,16,7,7] parameter(2)
      y = f32[2,16,7,7] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01, feature_group_count=4
      d = f32[2,16,3,3] convolution(x, g), window={size=7x7}, dim_labels=fb01_io01->bf01, batch_group_count=4
      a = f64[2,8,9,9] convert(x)
      b = f64[16,2,3,3] convert(w)
      c = f64[2,16,7,7] convolution(a, b), window={size=3x3}, dim_labels=bf01_oi01->bf01, feature_group_count=4
      ROOT r = (f32[2,16,7,7], f32[2,16,3,3], f64[2,16,7,7]) tuple(y, d, c)
    })";
  const absl::Status status = Compile(module, Fallback::kError);
  if (!KernelsAvailable()) GTEST_SKIP() << "the conversions need LLVM";
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace lazuli::cpu
