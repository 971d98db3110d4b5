#include "ir/support/environment.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/flags.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

EnvironmentFindings Variables(std::initializer_list<std::string_view> variables) {
  return CheckVariables({variables.begin(), variables.size()});
}

TEST(EnvironmentTest, MisspelledVariablesAreErrorsWithTheNearestName) {
  EXPECT_EQ(Message(Variables({"HOME=/root", "XLA_SAVE_TENSOR_FILE=g"}).error),
            "the environment's XLA_SAVE_TENSOR_FILE is unknown; is it XLA_SAVE_TENSORS_FILE?");
  EXPECT_EQ(Message(Variables({"LAZULI_DEBGU=2"}).error),
            "the environment's LAZULI_DEBGU is unknown; is it LAZULI_DEBUG?");
  EXPECT_EQ(Message(Variables({"PT_XLA_DEBUGLEVEL=1"}).error),
            "the environment's PT_XLA_DEBUGLEVEL is unknown; is it PT_XLA_DEBUG_LEVEL?");
}

TEST(EnvironmentTest, MisspelledVariablesOfSharedFamiliesAreErrors) {
  for (const auto& [wrong, right] : {std::pair{"PJRT_DEVIC", "PJRT_DEVICE"},
                                     {"NPU_CONFG", "NPU_CONFIG"},
                                     {"CPU_NUM_DEVICE", "CPU_NUM_DEVICES"},
                                     {"TF_DUMP_GRAPH_PREFX", "TF_DUMP_GRAPH_PREFIX"}})
    EXPECT_EQ(Message(Variables({wrong}).error),
              Str("the environment's ", wrong, " is unknown; is it ", right, "?"));
  const EnvironmentFindings found = Variables(
      {"GPU_NUM_DEVICES=1", "PJRT_LOCAL_PROCESS_RANK=0", "TF_CPP_MIN_LOG_LEVEL=3", "_=1", "=C"});
  EXPECT_TRUE(found.error.ok()) << found.error;
  EXPECT_THAT(found.warnings, IsEmpty());
}

TEST(EnvironmentTest, OtherUnknownNamesOfTheFamiliesAreSaid) {
  const EnvironmentFindings found = Variables({"LAZULI_DUMP=1", "XLA_MAGIC_CARPET=1"});
  EXPECT_TRUE(found.error.ok());
  ASSERT_EQ(found.warnings.size(), 2u);
  EXPECT_EQ(found.warnings[0],
            "the environment's LAZULI_DUMP is unknown and has no effect; the nearest is "
            "LAZULI_DUMP_DIR");
}

TEST(EnvironmentTest, VariablesOfOthersAreLeftAlone) {
  const EnvironmentFindings found =
      Variables({"XLA_PYTHON_CLIENT_PREALLOCATE=false", "LAZULI_TEST_PYTHON=python", "XLAB=1",
                 "MY_XLA_DEBUG=1", "XLA_TARGET=cpu", "LAZULI_DEBUG=2",
                 "XLA_NO_SPECIAL_SCALARS=true", "XLA_RNG_BIT_GENERATOR=philox"});
  EXPECT_TRUE(found.error.ok()) << found.error;
  EXPECT_THAT(found.warnings, IsEmpty());
}

TEST(EnvironmentTest, VariablesOfTorchXlaWithoutACounterpartSayWhy) {
  EXPECT_THAT(Variables({"XLA_NO_SPECIAL_SCALARS=0", "XLA_LAYOUTS=x"}).warnings,
              ElementsAre("XLA_NO_SPECIAL_SCALARS has no effect: no number is special: each is a "
                          "parameter",
                          "XLA_LAYOUTS has no effect: data lies row by row"));
}

TEST(EnvironmentTest, XlaFlagsAreWordsWithQuotes) {
  const auto flags = ParseXlaFlags("  --xla_cpu_ftz\t--xla_dump_to='/tmp/my dumps' --a=\"b=c\" ");
  ASSERT_TRUE(flags.ok()) << flags.status();
  ASSERT_EQ(flags->size(), 3u);
  EXPECT_EQ((*flags)[0].name, "--xla_cpu_ftz");
  EXPECT_EQ((*flags)[0].value, "true");
  EXPECT_EQ((*flags)[1].value, "/tmp/my dumps");
  EXPECT_EQ((*flags)[2].name, "--a");
  EXPECT_EQ((*flags)[2].value, "b=c");
}

TEST(EnvironmentTest, XlaFlagsMayLieInAFile) {
  const std::string path = testing::TempDir() + "/xla_flags";
  std::ofstream(path) << "--xla_cpu_ftz=false\n--xla_dump_to=/tmp\n";
  const auto flags = ParseXlaFlags(path);
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->size(), 2u);
  std::filesystem::remove(path);
  EXPECT_EQ(Message(ParseXlaFlags(path).status()),
            Str("XLA_FLAGS='", path, "' neither begins with -- nor names a file that can be read"));
}

TEST(EnvironmentTest, BadXlaFlagsAreErrors) {
  EXPECT_EQ(Message(CheckXlaFlags("--xla_disable_hlo_pass=a").error),
            "XLA_FLAGS: there is no flag --xla_disable_hlo_pass; the nearest is "
            "--xla_disable_hlo_passes");
  EXPECT_EQ(Message(CheckXlaFlags("--xla_cpu_ftz /tmp").error),
            "XLA_FLAGS: '/tmp' is not a flag; flags are --name=value");
  EXPECT_EQ(Message(CheckXlaFlags("--xla_cpu_ftz --xla_dump_to").error),
            "XLA_FLAGS: --xla_dump_to needs a value: --xla_dump_to=...");
  EXPECT_EQ(Message(CheckXlaFlags("--xla_dump_to='/tmp").error),
            "XLA_FLAGS: a quote is not closed: --xla_dump_to='/tmp");
}

TEST(EnvironmentTest, XlaFlagsWithoutACounterpartSayWhy) {
  const EnvironmentFindings found = CheckXlaFlags(
      "--xla_cpu_use_thunk_runtime=true --xla_cpu_enable_fast_math=1 --xla_gpu_autotune_level=4");
  EXPECT_TRUE(found.error.ok()) << found.error;
  EXPECT_THAT(found.warnings,
              ElementsAre("--xla_cpu_enable_fast_math has no effect: kernels do not reassociate",
                          "--xla_gpu_autotune_level has no effect: there is no such device"));
}

TEST(EnvironmentTest, NoNameIsBothAFlagAndForeign) {
  for (const ForeignRow& foreign : ForeignRows()) {
    EXPECT_FALSE(foreign.why.empty()) << foreign.name;
    for (const FlagRow& row : FlagRows()) EXPECT_NE(row.name, foreign.name);
  }
}

}  // namespace
}  // namespace lazuli::ir
