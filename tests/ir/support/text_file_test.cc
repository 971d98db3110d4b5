// What files are written to: never in the place of a device, a pipe or a link.
#include "ir/support/text_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TextFileTest : public testing::Test {
 protected:
  TextFileTest() { fs::create_directories(folder_); }
  ~TextFileTest() override { fs::remove_all(folder_); }
  std::string Path(std::string_view name) const { return Str(folder_.string(), "/", name); }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::ptrdiff_t Files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  const fs::path folder_ = testing::TempDir() + Str("/text_file.", getpid());
};

TEST_F(TextFileTest, MakesFoldersAndReplacesFiles) {
  EXPECT_TRUE(WriteTextFile(Path("a/b.txt"), "one").ok());
  EXPECT_TRUE(WriteTextFile(Path("a/b.txt"), "two").ok());
  EXPECT_EQ(Read(Path("a/b.txt")), "two");
}

TEST_F(TextFileTest, AFolderIsAnErrorAndStays) {
  const absl::Status status = WriteTextFile(folder_.string(), "text");
  EXPECT_THAT(Message(status), HasSubstr("cannot write " + folder_.string() + ": Is a directory"));
  EXPECT_TRUE(fs::is_directory(folder_));
}

TEST_F(TextFileTest, APipeIsWrittenToAndStays) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(WriteTextFile(pipe, "text").ok());
  std::string text(16, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(reader, text.data(), 16))));
  ::close(reader);
  EXPECT_EQ(text, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(Files(), 1);
}

TEST_F(TextFileTest, WhatALinkLeadsToIsReplaced) {
  ASSERT_TRUE(WriteTextFile(Path("file"), "old").ok());
  fs::create_symlink("file", Path("link"));
  EXPECT_TRUE(WriteTextFile(Path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(Read(Path("file")), "new");
  fs::create_symlink("/dev/full", Path("full"));
  EXPECT_THAT(Message(WriteTextFile(Path("full"), "text")),
              HasSubstr("full: No space left on device"));
  EXPECT_TRUE(fs::is_symlink(Path("full")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(Files(), 3);
}

}  // namespace
}  // namespace lazuli::ir
