#include "lazy/debug/trace_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/support/span.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;

TEST(TraceFileTest, HoldsTheSpansOfBothThreads) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "trace.json";
  ir::SetTracing(true);
  const Tensor sum = Floats({1, 2, 3, 4, 5}) + Floats({5, 4, 3, 2, 1});
  ASSERT_TRUE(Sync().ok());
  ir::SetTracing(false);
  ASSERT_TRUE(WriteTraceFile(path).ok());
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"name\":\"trace\""));
  EXPECT_THAT(text.str(), HasSubstr("\"name\":\"compile\""));
  EXPECT_THAT(text.str(), HasSubstr("\"name\":\"execute\""));
  EXPECT_THAT(text.str(), HasSubstr("\"tid\":0"));
  EXPECT_THAT(text.str(), HasSubstr("\"tid\":1"));
}

TEST(TraceFileTest, AFolderThatIsNotThereIsSaid) {
  const absl::Status status = WriteTraceFile("/nowhere/trace.json");
  EXPECT_EQ(ir::Message(status), "LAZULI_TRACE_FILE: cannot write /nowhere/trace.json");
}

}  // namespace
}  // namespace lazuli::lazy
