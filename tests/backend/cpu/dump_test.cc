// What --xla_dump_to leaves of a compile for the CPU, and its LLVM IR in place of a kernel's own.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/cpu_client.h"
#include "ir/support/flags.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;

// Its kernel computes x * x.
constexpr std::string_view kSquare = R"(HloModule square
  ENTRY main {
    x = f32[64] parameter(0)
    ROOT y = f32[64] multiply(x, x)
  })";

class DumpTest : public testing::Test {
 protected:
  DumpTest() {
    if (!KernelsAvailable()) return;
    RegisterCpu();
    fs::remove_all(folder_);
    fs::create_directories(edited_);
  }
  ~DumpTest() override {
    for (const std::string flag : {"--xla_dump_to", "LAZULI_OVERRIDE_KERNEL_DIR", "LAZULI_DEBUG"})
      EXPECT_TRUE(ir::SetFlag(flag, flag == "LAZULI_DEBUG" ? "0" : "").ok());
    fs::remove_all(folder_);
  }
  void SetUp() override {
    if (!KernelsAvailable()) GTEST_SKIP() << "there are no kernels";
  }

  // What y is where x is 3.
  static absl::StatusOr<std::vector<float>> Run() {
    const Device device = *FindDevice("cpu");
    LAZULI_ASSIGN_OR_RETURN(
        const ExecutablePtr executable,
        device.client->Compile(ParseHlo(kSquare), *backend::CompileOptions::FromFlags()));
    Literal threes(Shape(DType::kF32, {64}));
    for (int64_t i = 0; i < 64; ++i) threes.SetFromDouble(i, 3);
    const std::vector<BufferPtr> arguments{
        *device.client->FromHost({threes.raw(), &threes.shape()}, {}, device)};
    LAZULI_ASSIGN_OR_RETURN(
        const Buffers results,
        executable->Execute({.buffers = arguments, .scalars = {}, .donated = {}}));
    const Literal y = *device.client->ToHost(*results[0]);
    return std::vector<float>(y.data<float>().begin(), y.data<float>().end());
  }

  static std::string Read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The file of the dump whose name ends like this; the name is also in `name`.
  fs::path Dumped(const std::string& end) const {
    for (const auto& file : fs::directory_iterator(folder_))
      if (file.path().string().ends_with(end)) return file.path();
    return {};
  }
  // Dumps the kernel, and keeps its LLVM IR with an expression replaced.
  fs::path Edit(const std::string& pattern, const std::string& replacement) {
    EXPECT_TRUE(ir::SetFlag("--xla_dump_to", folder_.string()).ok());
    EXPECT_TRUE(Run().ok());
    EXPECT_TRUE(ir::SetFlag("--xla_dump_to", "").ok());
    const fs::path ir = Dumped(".ir-no-opt.ll");
    const fs::path edited = edited_ / ir.filename();
    const std::string text = Read(ir);
    std::ofstream(edited) << std::regex_replace(text, std::regex(pattern), replacement);
    EXPECT_NE(Read(edited), text);
    EXPECT_TRUE(ir::SetFlag("LAZULI_OVERRIDE_KERNEL_DIR", edited_.string()).ok());
    return edited;
  }

  const fs::path folder_ = testing::TempDir() + Str("/cpu_dump.", getpid());
  const fs::path edited_ = folder_ / "edited";
};

TEST_F(DumpTest, BuffersThunksIrAndObjectFiles) {
  ASSERT_TRUE(Run().ok());  // kernels that are known already are dumped all the same
  ASSERT_TRUE(ir::SetFlag("--xla_dump_to", folder_.string()).ok());
  ASSERT_TRUE(Run().ok());
  const std::string buffers = Read(Dumped(".cpu_after_optimizations-buffer-assignment.txt"));
  EXPECT_THAT(buffers,
              HasSubstr("BufferAssignment:\n"
                        "allocation 0: size 256, parameter 0, shape |f32[64]| at ShapeIndex {}:\n"
                        " value: <0 x{} @0> (size=256,offset=0): f32[64]\n"
                        "allocation 1: size 256, output shape is |f32[64]|, maybe-live-out:\n"));
  EXPECT_THAT(buffers, HasSubstr("\nTotal bytes used: 512 (512 bytes)\n"));
  EXPECT_THAT(Read(Dumped("-memory-usage-report.txt")),
              HasSubstr(" 256 bytes( 50%);  256 bytes; allocation 0: size 256, parameter 0"));
  EXPECT_THAT(Read(Dumped("-thunks.txt")), HasSubstr("  0 kernel "));
  for (const std::string end : {".ir-no-opt.ll", ".ir-with-opt.ll"})
    EXPECT_THAT(Read(Dumped(end)), HasSubstr("define void @kernel(")) << end;
  EXPECT_EQ(Read(Dumped(".o")).substr(0, 4),
            "\x7f"
            "ELF");
}

TEST_F(DumpTest, NothingOfBuffersUnlessTheyAreWanted) {
  ASSERT_TRUE(ir::SetFlag("--xla_dump_buffer_assignment_analysis", "false").ok());
  ASSERT_TRUE(ir::SetFlag("--xla_dump_to", folder_.string()).ok());
  ASSERT_TRUE(Run().ok());
  ASSERT_TRUE(ir::SetFlag("--xla_dump_buffer_assignment_analysis", "true").ok());
  EXPECT_EQ(Dumped("-buffer-assignment.txt"), "");
  EXPECT_NE(Dumped(".cpu_after_optimizations.txt"), "");
}

TEST_F(DumpTest, EditedIrRunsInPlaceOfTheKernel) {
  EXPECT_THAT(*Run(), Each(9));
  Edit("fmul", "fadd");
  EXPECT_THAT(*Run(), Each(6));
  ASSERT_TRUE(ir::SetFlag("LAZULI_OVERRIDE_KERNEL_DIR", "").ok());
  EXPECT_THAT(*Run(), Each(9));
}

TEST_F(DumpTest, AWrongSignatureIsAnErrorThatSaysBoth) {
  const fs::path edited = Edit("@kernel\\(ptr %0", "@kernel(i32 %unused, ptr %0");
  EXPECT_EQ(ir::Message(Run().status()),
            Str("LAZULI_OVERRIDE_KERNEL_DIR: ", edited.string(),
                ": @kernel is void (i32, ptr, i64, i64), but the kernel is called as void (ptr, "
                "i64, i64)"));
}

TEST_F(DumpTest, AFunctionOfAnotherNameIsAnError) {
  const fs::path edited = Edit("@kernel\\(", "@colonel(");
  EXPECT_EQ(ir::Message(Run().status()),
            Str("LAZULI_OVERRIDE_KERNEL_DIR: ", edited.string(),
                ": it does not define the function @kernel, void (ptr, i64, i64)"));
}

TEST_F(DumpTest, WhatDoesNotParseIsAnErrorWithItsLine) {
  const fs::path edited = Edit("fmul", "fnul");
  EXPECT_THAT(std::string(ir::Message(Run().status())),
              testing::MatchesRegex(Str("LAZULI_OVERRIDE_KERNEL_DIR: ", edited.string(),
                                        ":[0-9]+:[0-9]+: expected instruction opcode")));
}

TEST_F(DumpTest, AFolderThatIsNotThereIsAnError) {
  ASSERT_TRUE(ir::SetFlag("LAZULI_OVERRIDE_KERNEL_DIR", "/nowhere").ok());
  const absl::Status status = Run().status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));  // nothing for a reproduction
  EXPECT_EQ(
      ir::Message(status),
      "LAZULI_OVERRIDE_KERNEL_DIR: cannot read the folder /nowhere: No such file or directory");
}

TEST_F(DumpTest, KernelsAreALevelOfTheirOwn) {
  ASSERT_TRUE(ir::SetFlag("LAZULI_DEBUG", "5,kernels=0").ok());
  Edit("fmul", "fadd");
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(ir::SetFlag("LAZULI_DEBUG", "0,kernels=5").ok());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("define void @kernel("));
}

}  // namespace
}  // namespace lazuli::cpu
