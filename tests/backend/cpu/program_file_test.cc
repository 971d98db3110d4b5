// Compiled programs as bytes: they run without a compile, and what is not theirs is refused.
#include "backend/runtime/program_file.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "backend/cpu/program_kinds.h"
#include "ir/support/metrics.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using testing::HasSubstr;

constexpr char kTwoLayers[] = R"(
  HloModule two_layers
  max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
  ENTRY main {
    x = f32[4,8] parameter(0)
    w = f32[8,8] parameter(1)
    h = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type="aten::mm" source_file="net.py" source_line=7}
    t = f32[4,8] tanh(h)
    low = f32[] constant(-inf)
    m = f32[4] reduce(t, low), dimensions={1}, to_apply=max
    ROOT r = (f32[4,8], f32[4]) tuple(t, m)
  })";

ComputationClient& Client() {
  RegisterCpu();
  return **FindClient("cpu");
}

std::string SavedTwoLayers() { return *(*Client().Compile(ParseHlo(kTwoLayers), {}))->Serialize(); }

TEST(ProgramFileTest, AProgramThatIsReadRunsWithoutACompile) {
  const ExecutablePtr compiled = *Client().Compile(ParseHlo(kTwoLayers), {});
  const std::string bytes = *compiled->Serialize();
  const int64_t kernels = ir::Get(ir::Counter::kKernels);
  const auto read = Client().Deserialize(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ir::Get(ir::Counter::kKernels), kernels);
  EXPECT_EQ((*read)->ToString(), compiled->ToString());
  EXPECT_THAT((*read)->ToString(), HasSubstr(" at net.py:7\n"));
  EXPECT_EQ((*read)->stats().kernels, compiled->stats().kernels);
  EXPECT_EQ((*read)->stats().code_bytes, compiled->stats().code_bytes);
  // Written again, it has the same bytes.
  EXPECT_EQ(*(*read)->Serialize(), bytes);
}

TEST(ProgramFileTest, ADamagedProgramIsRefused) {
  const std::string bytes = SavedTwoLayers();
  for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 97) {
    std::string damaged = bytes;
    damaged[at] ^= 1;
    EXPECT_EQ(Client().Deserialize(damaged).status().code(), absl::StatusCode::kInvalidArgument)
        << at;
    EXPECT_EQ(Client().Deserialize(bytes.substr(0, at)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << at;
  }
  EXPECT_THAT(Client().Deserialize("HloModule m").status().message(),
              HasSubstr("these bytes are not a program of lazuli"));
  EXPECT_THAT(Client().Deserialize(bytes.substr(0, bytes.size() - 1)).status().message(),
              HasSubstr("damaged"));
}

TEST(ProgramFileTest, AProgramForAnotherProcessorIsRefused) {
  ProgramKinds other = CpuProgramKinds();
  other.engine = "LLVM 1 for an abacus";
  const absl::Status status = ReadProgram(SavedTwoLayers(), other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("and this is LLVM 1 for an abacus"));
}

TEST(ProgramFileTest, AKindThatTheBuildLacksIsRefused) {
  ProgramKinds fewer = CpuProgramKinds();
  fewer.thunks.clear();
  EXPECT_FALSE(ReadProgram(SavedTwoLayers(), fewer).ok());
}

}  // namespace
}  // namespace lazuli::cpu
