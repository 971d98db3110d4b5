#include "lazy/debug/save_tensors.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// The records of what `f` syncs.
template <class F>
std::vector<std::string> RecordsOf(const std::string& format, F&& f) {
  TestDevice();
  std::vector<std::string> records;
  SetSyncObserver([&](const SyncEvent& event) {
    absl::StatusOr<std::string> record = SaveTensorsRecord(event, format);
    records.push_back(record.ok() ? *record : std::string(Message(record.status())));
  });
  f();
  SetSyncObserver({});
  return records;
}

Tensor Doubled(const Tensor& x) {
  const SiteScope site(ir::InternSite("train.cc", "int main()", 8));
  return x + x;
}

TEST(SaveTensorsTest, ARecordHasTorchXlasLayout) {
  const Tensor x = Floats({1, 2});
  const auto records = RecordsOf("text", [&] {
    const Tensor y = Doubled(x);
    const SiteScope site(ir::InternSite("train.cc", "int main()", 9));
    ASSERT_TRUE(Sync().ok());
  });
  ASSERT_EQ(records.size(), 1u);
  const std::regex layout(
      "\\[ScheduleSyncTensorsGraph\\]\n"
      "TensorsGraphInfo:\n"
      "  main \\(train.cc:9\\)\n"
      "\n"
      "Root Hashes: \\([0-9a-f]+\\)\n"
      "\n"
      "## BEGIN_GRAPH\n"
      "IR \\{\n"
      "  %0 = f32\\[2\\]\\{0\\} xla::device_data\\(\\), location=main@train.cc:8, "
      "parameter=p0.1, device=INTERPRETER:0\n"
      "  %1 = f32\\[2\\]\\{0\\} aten::add\\(%0, %0\\), location=main@train.cc:8, "
      "device=INTERPRETER:0, ROOT=0\n"
      "\\}\n"
      "\n"
      "Graph Hash: [0-9a-f]+\n"
      "\n"
      "## END_GRAPH\n"
      "\n");
  EXPECT_TRUE(std::regex_match(records[0], layout)) << records[0];
}

std::string LineAfter(const std::string& text, const std::string& start) {
  const std::size_t at = text.find(start);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(SaveTensorsTest, HashesFollowTheGraph) {
  const Tensor x = Floats({1, 2}), y = Floats({3, 4});
  const auto records = RecordsOf("text", [&] {
    (void)Values(x + x);
    (void)Values(y + y);
    (void)Values(x * x);
  });
  ASSERT_EQ(records.size(), 3u);
  for (const std::string start : {"Root Hashes: ", "Graph Hash: "}) {
    EXPECT_EQ(LineAfter(records[0], start), LineAfter(records[1], start));
    EXPECT_NE(LineAfter(records[0], start), LineAfter(records[2], start));
  }
  EXPECT_THAT(records[0], HasSubstr("  read ("));
}

TEST(SaveTensorsTest, EveryRootHasItsHash) {
  const Tensor x = Floats({1, 2});
  const auto records = RecordsOf("text", [&] {
    const Tensor a = x + x, b = x * x, c = x + x;
    ASSERT_TRUE(Sync().ok());
  });
  std::smatch hashes;
  ASSERT_TRUE(std::regex_search(records.at(0), hashes,
                                std::regex("Root Hashes: \\((\\w+), (\\w+), (\\w+)\\)")));
  EXPECT_EQ(hashes[1], hashes[3]);
  EXPECT_NE(hashes[1], hashes[2]);
}

TEST(SaveTensorsTest, TheHloOfARecordIsWhatIsCompiled) {
  const Tensor x = Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto records = RecordsOf("hlo", [&] { (void)Values(Softmax(x, 1)); });
  const std::string& record = records.at(0);
  const std::size_t begin = record.find("## BEGIN_GRAPH\n") + 15,
                    end = record.find("\nGraph Hash: ");
  const auto module = hlo::ParseModule(record.substr(begin, end - begin));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT((*module)->name(), testing::StartsWith("IrToHlo."));
  // But for the module's name it is the text that went to the compiler.
  auto unnamed = [](const std::string& text) {
    return std::regex_replace(text, std::regex("(IrToHlo|SyncTensorsGraph)\\.\\d+"), "NAME");
  };
  EXPECT_EQ(unnamed((*module)->ToString()), unnamed(LastProgram()->hlo()));
}

TEST(SaveTensorsTest, DotIsAFormatAndOthersAreRefused) {
  const Tensor x = Floats({1, 2});
  EXPECT_THAT(RecordsOf("dot", [&] { (void)Values(-x); }).at(0),
              HasSubstr("## BEGIN_GRAPH\ndigraph G {\n"));
  EXPECT_EQ(RecordsOf("json", [&] { (void)Values(-x); }).at(0),
            "XLA_SAVE_TENSORS_FMT: 'json' is not text, dot, hlo or html");
}

// The observer that the flag installs; it stays for the rest of the process.
TEST(SaveTensorsTest, TheFlagAppendsEverySyncToAFileOfTheDevice) {
  TestDevice();
  const std::string path = testing::TempDir() + "/save_tensors_test";
  std::remove((path + ".0").c_str());
  std::remove((path + ".1").c_str());
  ASSERT_TRUE(ir::SetFlag("XLA_SAVE_TENSORS_FILE", path).ok());
  InitializeSaveTensors();
  (void)Values(Floats({1, 2}) + Floats({3, 4}));
  (void)Values(-Floats({1, 2}));
  (void)Values(-Of<float>({1}, {1}, /*ordinal=*/1));
  ASSERT_TRUE(ir::SetFlag("XLA_SAVE_TENSORS_FILE", "").ok());
  std::stringstream text;
  text << std::ifstream(path + ".0").rdbuf();
  const std::string all = text.str();
  EXPECT_EQ(std::count(all.begin(), all.end(), '['), 2 + 5);  // two records, five shapes
  EXPECT_TRUE(std::filesystem::exists(path + ".1"));
  std::remove((path + ".0").c_str());
  std::remove((path + ".1").c_str());
}

}  // namespace
}  // namespace lazuli::lazy
