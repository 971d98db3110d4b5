// What a store of machine code must survive: damage, other processes, strangers and full disks.

#include "ir/support/disk_store.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/support/build_id.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Optional;

constexpr int64_t kLarge = int64_t{1} << 30;

class DiskStoreTest : public testing::Test {
 protected:
  DiskStoreTest() : folder_(MakeFolder()) {}
  ~DiskStoreTest() override { fs::remove_all(folder_); }

  std::unique_ptr<DiskStore> Open(int64_t limit = kLarge) {
    auto store = DiskStore::Open(folder_, limit);
    EXPECT_TRUE(store.ok()) << Message(store.status());
    return *std::move(store);
  }
  int64_t CountFiles() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  const std::string folder_;

 private:
  static std::string MakeFolder() {
    std::string name = testing::TempDir() + "/disk_store_XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    return name;
  }
};

TEST_F(DiskStoreTest, WhatOneStorePutsAnotherGets) {
  ASSERT_TRUE(Open()->Put("key", "value").ok());
  EXPECT_THAT(Open()->Get("key"), Optional(std::string("value")));
  EXPECT_EQ(Open()->Get("other key"), std::nullopt);
}

TEST_F(DiskStoreTest, AnyBytesAndNoBytesAreValues) {
  const std::string bytes("\0\xff\n", 3);
  ASSERT_TRUE(Open()->Put(bytes, "").ok());
  ASSERT_TRUE(Open()->Put("", bytes).ok());
  EXPECT_THAT(Open()->Get(bytes), Optional(std::string()));
  EXPECT_THAT(Open()->Get(""), Optional(bytes));
}

TEST_F(DiskStoreTest, TheNewestValueStays) {
  auto store = Open();
  ASSERT_TRUE(store->Put("key", "old").ok());
  ASSERT_TRUE(store->Put("key", "new").ok());
  EXPECT_THAT(store->Get("key"), Optional(std::string("new")));
  EXPECT_EQ(CountFiles(), 1);
}

TEST_F(DiskStoreTest, AFlippedBitAnywhereIsAMiss) {
  auto store = Open();
  ASSERT_TRUE(store->Put("key", "some value").ok());
  const std::string path = store->PathOf("key");
  std::ostringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  for (std::size_t bit = 0; bit < whole.str().size() * 8; ++bit) {
    std::string damaged = whole.str();
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    ASSERT_EQ(store->Get("key"), std::nullopt) << "bit " << bit;
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << whole.str();
  EXPECT_THAT(store->Get("key"), Optional(std::string("some value")));
}

TEST_F(DiskStoreTest, ATruncatedEntryIsAMiss) {
  auto store = Open();
  ASSERT_TRUE(store->Put("key", "some value").ok());
  for (auto size = fs::file_size(store->PathOf("key")); size-- > 0;) {
    fs::resize_file(store->PathOf("key"), size);
    ASSERT_EQ(store->Get("key"), std::nullopt) << size;
  }
}

TEST_F(DiskStoreTest, AnEntryOfAnotherKeyUnderThisNameIsAMiss) {
  auto store = Open();
  ASSERT_TRUE(store->Put("first", "1").ok());
  fs::copy_file(store->PathOf("first"), store->PathOf("other"));
  EXPECT_EQ(store->Get("other"), std::nullopt);
}

TEST_F(DiskStoreTest, ALinkIsNotFollowed) {
  auto store = Open();
  ASSERT_TRUE(store->Put("key", "value").ok());
  fs::rename(store->PathOf("key"), folder_ + "/moved");
  fs::create_symlink(folder_ + "/moved", store->PathOf("key"));
  EXPECT_EQ(store->Get("key"), std::nullopt);
}

TEST_F(DiskStoreTest, APipeInPlaceOfAnEntryIsAMissAndIsReplaced) {
  ASSERT_TRUE(Open()->Put("key", "value").ok());
  const fs::path entry = fs::directory_iterator(folder_)->path();
  fs::remove(entry);
  ASSERT_EQ(::mkfifo(entry.c_str(), 0600), 0);
  alarm(20);  // a read that waits ends the test
  EXPECT_EQ(Open()->Get("key"), std::nullopt);
  ASSERT_TRUE(Open()->Put("key", "other").ok());
  EXPECT_THAT(Open()->Get("key"), Optional(std::string("other")));
  alarm(0);
}

TEST_F(DiskStoreTest, AFolderThatOthersMayWriteToIsRefused) {
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(
      Message(DiskStore::Open(folder_, kLarge).status()),
      "others may write to the folder " + folder_ + "; make it private: chmod 700 " + folder_);
}

TEST_F(DiskStoreTest, AFolderThatIsMissingIsMadePrivate) {
  const std::string folder = folder_ + "/a/b";
  ASSERT_TRUE(DiskStore::Open(folder, kLarge).ok());
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
}

TEST_F(DiskStoreTest, AFileInPlaceOfTheFolderIsRefused) {
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_EQ(Message(DiskStore::Open(folder_ + "/file", kLarge).status()),
            folder_ + "/file is not a folder");
  EXPECT_THAT(std::string(Message(DiskStore::Open(folder_ + "/file/below", kLarge).status())),
              HasSubstr("cannot make the folder"));
}

TEST_F(DiskStoreTest, AboveTheLimitTheLongestUnusedGoFirst) {
  const std::string value(1000, 'v');
  auto store = Open(/*limit=*/10000);
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(store->Put(Str("key", i), value).ok());
    fs::last_write_time(store->PathOf(Str("key", i)),
                        fs::file_time_type::clock::now() - std::chrono::seconds(100 - i));
  }
  ASSERT_TRUE(store->Get("key0").has_value());  // now the newest
  ASSERT_TRUE(store->Put("key9", value).ok());  // too many
  EXPECT_TRUE(store->Get("key0").has_value());
  EXPECT_FALSE(store->Get("key1").has_value());
  EXPECT_TRUE(store->Get("key8").has_value());
  EXPECT_TRUE(store->Get("key9").has_value());
}

TEST_F(DiskStoreTest, WhatKilledProcessesLeftIsRemovedAfterAnHour) {
  std::ofstream(folder_ + "/old.entry.1.2.tmp") << "half";
  std::ofstream(folder_ + "/new.entry.1.2.tmp") << "half";
  fs::last_write_time(folder_ + "/old.entry.1.2.tmp",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  Open();
  EXPECT_FALSE(fs::exists(folder_ + "/old.entry.1.2.tmp"));
  EXPECT_TRUE(fs::exists(folder_ + "/new.entry.1.2.tmp"));
}

TEST_F(DiskStoreTest, AFullDiskLeavesTheStoreAsItWas) {
  auto store = Open();
  ASSERT_TRUE(store->Put("key", "value").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100;  // bytes a file may have: writing more fails as on a full disk
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = store->Put("key", std::string(1000, 'v'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("cannot write"));
  EXPECT_THAT(store->Get("key"), Optional(std::string("value")));
  EXPECT_EQ(CountFiles(), 1);
}

// Writers that are killed at any moment, while others read: every value that is found is whole.
TEST_F(DiskStoreTest, KilledWritersLeaveNoHalfOfAnEntry) {
  auto store = Open();
  int64_t found = 0;
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
        (void)store->Put("key", std::string(100000, c));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const std::optional<std::string> value = store->Get("key");
    if (!value) continue;
    ++found;
    ASSERT_EQ(*value, std::string(100000, (*value)[0]));
  }
  EXPECT_GT(found, 0);
}

TEST(BuildIdTest, IsTheLinkersHash) { EXPECT_THAT(BuildId(), MatchesRegex("[0-9a-f]{40}")); }

}  // namespace
}  // namespace lazuli::ir
