#include "backend/npu/sim/config.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const absl::Status& status) { return std::string(Message(status)); }
std::string SetError(std::string_view overrides) {
  Config config;
  return ErrorOf(SetKeys(overrides, config));
}
// Pairs of a text and the error that `read` says of it.
using Errors = std::vector<std::pair<std::string_view, std::string_view>>;
template <class Read>
void ExpectErrors(Read read, const Errors& cases) {
  for (const auto& [text, error] : cases) EXPECT_EQ(read(text), error) << text;
}
std::string FileError(std::string_view toml) {
  return ErrorOf(ParseConfig(toml, "chip.toml").status());
}

TEST(ConfigTest, PresetsAreTheRows) {
  const auto edge = Preset("npu1-edge");
  const auto server = Preset("npu1-server");
  ASSERT_TRUE(edge.ok() && server.ok());
  EXPECT_EQ(*edge, Config());
  EXPECT_EQ(edge->mxu.rows, 32);
  EXPECT_EQ(edge->spm_bytes(), 1 << 20);
  EXPECT_EQ(edge->acc_bytes(), 256 << 10);
  EXPECT_EQ(server->name, "npu1-server");
  EXPECT_EQ(server->cores, 4);
  EXPECT_EQ(server->mxu.ldw_rows_per_clk, 2);
  EXPECT_EQ(server->dram.gbs, 600);
  EXPECT_EQ(server->acc_bytes(), 2 << 20);
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_EQ(KeyText(*edge, key.key), key.edge);
    EXPECT_EQ(KeyText(*server, key.key), key.server);
    EXPECT_TRUE(key.doc.ends_with(".")) << key.key;
  }
  EXPECT_TRUE(Check(*edge).ok());
  EXPECT_TRUE(Check(*server).ok());
  EXPECT_EQ(ErrorOf(Preset("npu2").status()),
            "there is no preset npu2; there are npu1-edge and npu1-server");
}

TEST(ConfigTest, OverridesSetKeysOfEveryType) {
  Config config;
  ASSERT_TRUE(
      SetKeys("mxu.rows=64, spm.kb = 2048,dram.gbs=12.5,strict=false,mxu.dataflow=os,", config)
          .ok());
  EXPECT_EQ(config.mxu.rows, 64);
  EXPECT_EQ(config.spm.kb, 2048);
  EXPECT_EQ(config.dram.gbs, 12.5);
  EXPECT_FALSE(config.strict);
  EXPECT_EQ(config.mxu.dataflow, Dataflow::kOs);
  EXPECT_TRUE(SetKeys("", config).ok());
}

TEST(ConfigTest, BadOverridesSayWhatTheKeyMayBe) {
  ExpectErrors(SetError, {{"mxu.rows=0", "mxu.rows=0: it is 1 to 1024 PEs"},
                          {"mxu.rows=1025", "mxu.rows=1025: it is 1 to 1024 PEs"},
                          {"mxu.rows=3.5", "mxu.rows=3.5: it is 1 to 1024 PEs"},
                          {"mxu.rows=", "mxu.rows=: it is 1 to 1024 PEs"},
                          {"mxu.rows=99999999999999999999",
                           "mxu.rows=99999999999999999999: it is 1 to 1024 PEs"},
                          {"spm.banks=12", "spm.banks=12: it is 1 to 1024 banks (powers of 2)"},
                          {"dram.gbs=nan", "dram.gbs=nan: it is 0.001 to 100000 GB/s"},
                          {"mxu.dataflow=rs", "mxu.dataflow=rs: it is ws, os or is"},
                          {"strict=2", "strict=2: it is false or true"},
                          {"mxu.row=32", "there is no key mxu.row; is it mxu.rows?"},
                          {"cache.kb=32", "there is no key cache.kb; --help-config lists them"},
                          {"mxu.rows", "'mxu.rows' is not of the form key=value"},
                          {"mxu.rows=8,,mxu.cols=8", "'' is not of the form key=value"}});
}

TEST(ConfigTest, KeysHaveToFitEachOther) {
  const auto error = [](std::string_view set) {
    return ErrorOf(ReadConfig("npu1-edge", set).status());
  };
  ExpectErrors(error,
               {{"spm.kb=3,spm.bank_bytes=256",
                 "spm.kb=3 is not a multiple of spm.banks=16 words of spm.bank_bytes=256"},
                {"dram.burst=4096", "dram.burst=4096 is more than dram.row_bytes=2048"},
                {"devices=2,dram.mb=8192",
                 "dram.mb=8192 with devices=2: a device sees 4096 MiB of each of its peers"}});
}

TEST(ConfigTest, FilesBeginWithAPreset) {
  const auto config = ParseConfig(R"(
name = "npu1-server"
cores = 2
[mxu]
rows = 64
dataflow = "is"
[dram]
gbs = 300     # a number may be whole
[compat]
scalesim = true
)",
                                  "chip.toml");
  ASSERT_TRUE(config.ok()) << ErrorOf(config.status());
  EXPECT_EQ(config->name, "npu1-server");
  EXPECT_EQ(config->cores, 2);
  EXPECT_EQ(config->mxu.rows, 64);
  EXPECT_EQ(config->mxu.cols, 128);
  EXPECT_EQ(config->mxu.dataflow, Dataflow::kIs);
  EXPECT_EQ(config->dram.gbs, 300);
  EXPECT_TRUE(config->compat.scalesim);
  const auto own = ParseConfig("name = \"mine\"\nspm.kb = 64\n", "chip.toml");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->name, "mine");
  EXPECT_EQ(own->spm.kb, 64);
  EXPECT_EQ(own->mxu.rows, 32);
}

TEST(ConfigTest, BadFilesNameTheLine) {
  ExpectErrors(
      FileError,
      {{"\n[mxu]\nrows = 0\n", "chip.toml:3: mxu.rows=0: it is 1 to 1024 PEs"},
       {"[mxu]\nrows = \"32\"\n", "chip.toml:2: mxu.rows is of type string: it is 1 to 1024 PEs"},
       {"mxu = 32\n", "chip.toml:1: there is no key mxu; --help-config lists them"},
       {"[mxu.rows]\nx = 1\n", "chip.toml:1: mxu.rows is of type table: it is 1 to 1024 PEs"},
       {"[mxu]\ndataflow = \"os,strict=false\"\n",
        "chip.toml:2: mxu.dataflow=os,strict=false: no comma"},
       {"name = 3\n", "chip.toml:1: name is a text"},
       {"[spm]\nbank_bytes = 4096\nkb = 1\n",
        "chip.toml: spm.kb=1 is not a multiple of spm.banks=16 words of spm.bank_bytes=4096"}});
  EXPECT_THAT(FileError("[mxu\nrows = 3\n"), HasSubstr("chip.toml:1: "));
}

TEST(ConfigTest, NamesAreArraysInFiles) {
  const auto deny = [](std::string_view value) {
    const auto config = ParseConfig(Str("[filter]\ndeny = ", value, "\n"), "chip.toml");
    return config.ok() ? config->filter.deny : std::string(Message(config.status()));
  };
  EXPECT_EQ(Config().filter.deny, "sort+fft");
  EXPECT_EQ(deny("[\"sort\", \"all-to-all\"]"), "sort+all-to-all");
  EXPECT_EQ(deny("[]"), "");
  EXPECT_EQ(deny("\"dot\""), "dot");
  EXPECT_EQ(deny("[1, 2]"), "chip.toml:2: filter.deny is of type array: it is names joined by +");
  EXPECT_EQ(deny("[\"a b\"]"), "chip.toml:2: filter.deny=a b: it is names joined by +");
  EXPECT_EQ(SetError("filter.deny=sort++fft"), "filter.deny=sort++fft: it is names joined by +");
  EXPECT_EQ(SetError("filter.deny=sort+dot,filter.min_flops=0"), "");
}

TEST(ConfigTest, AWrittenFileReadsBack) {
  auto config = ReadConfig(
      "npu1-server", "mxu.f32=x3,dram.gbs=0.1,filter.deny=dot+add,link.topology=torus,watchdog=7");
  ASSERT_TRUE(config.ok());
  const auto again = ParseConfig(ToToml(*config), "again.toml");
  ASSERT_TRUE(again.ok()) << ErrorOf(again.status());
  EXPECT_EQ(*again, *config);
}

TEST(ConfigTest, TheHashIsOfWhatAProgramIsMadeFor) {
  const uint64_t edge = ProgramHash(Config());
  // Written into program files: a change of this number makes all of them foreign.
  EXPECT_EQ(edge, 0x89782afe30414f23ull);
  for (const ConfigKey& key : ConfigKeys()) {
    Config config;
    const std::string other =
        key.type == ConfigType::kNames  ? "dot"
        : key.type == ConfigType::kBool ? (key.edge == "true" ? "false" : "true")
        : key.type == ConfigType::kChoice
            ? key.choices.ends_with(key.edge)
                  ? std::string(key.choices.substr(0, key.choices.find('|')))
                  : std::string(key.choices.substr(key.choices.rfind('|') + 1))
        : key.edge == Str(static_cast<int64_t>(key.max)) ? Str(static_cast<int64_t>(key.min))
        : key.unit.starts_with("2^n")                    ? Str(2 * std::stoll(key.edge))
                                                         : Str(std::stoll(key.edge) + 1);
    ASSERT_TRUE(SetKeys(key.key + "=" + other, config).ok()) << key.key << "=" << other;
    EXPECT_EQ(ProgramHash(config) != edge, key.scope == ConfigScope::kProgram) << key.key;
  }
}

TEST(ConfigTest, TheEnvironmentNamesItself) {
  const std::string path = ::testing::TempDir() + "/npu_config_test.toml";
  std::ofstream(path) << "[mxu]\nrows = 16\n";
  ASSERT_TRUE(SetFlag("NPU_CONFIG", path).ok());
  ASSERT_TRUE(SetFlag("NPU_SET", "mxu.cols=8").ok());
  const auto config = ConfigFromEnvironment();
  ASSERT_TRUE(config.ok()) << ErrorOf(config.status());
  EXPECT_EQ(config->mxu.rows, 16);
  EXPECT_EQ(config->mxu.cols, 8);
  ASSERT_TRUE(SetFlag("NPU_SET", "mxu.cols=0").ok());
  EXPECT_EQ(ErrorOf(ConfigFromEnvironment().status()), "NPU_SET: mxu.cols=0: it is 1 to 1024 PEs");
  ASSERT_TRUE(SetFlag("NPU_SET", "").ok());
  ASSERT_TRUE(SetFlag("NPU_CONFIG", "nowhere.toml").ok());
  EXPECT_EQ(ErrorOf(ConfigFromEnvironment().status()),
            "NPU_CONFIG: 'nowhere.toml' is neither a preset (npu1-edge, npu1-server) nor a file "
            "that can be read");
  ASSERT_TRUE(SetFlag("NPU_CONFIG", "npu1-edge").ok());
}

TEST(ConfigTest, HelpAndPageListEveryKey) {
  const std::string page = ConfigPage(), help = ConfigHelp();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_THAT(page, HasSubstr("| `" + key.key + "` | " + key.Range() + " | " + key.edge));
    EXPECT_THAT(help, HasSubstr("  " + key.key + " = " + key.edge));
  }
}

}  // namespace
}  // namespace lazuli::npu
