#include "ir/support/disk_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/hash.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntrySuffix = ".entry", kTemporarySuffix = ".tmp";
constexpr uint64_t kMagic = 0x31304552'4f54534cull;  // "LSTORE01"
constexpr auto kAbandonedAfter = std::chrono::hours(1);

struct Header {
  uint64_t magic = kMagic;
  uint64_t key_size = 0;
  uint64_t value_size = 0;
  uint64_t checksum = 0;  // of key and value
};

uint64_t Checksum(std::string_view key, std::string_view value) {
  return HashBytes(value.data(), value.size(), HashBytes(key.data(), key.size()));
}

std::string Reason() { return std::strerror(errno); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  bool Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  // Everything up to `size` bytes.
  std::optional<std::string> Read(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t done = 0;
    while (done < size) {
      const ssize_t n = ::read(fd_, bytes.data() + done, size - done);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      done += static_cast<std::size_t>(n);
    }
    return bytes;
  }
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

// The value in the bytes of an entry, if they are whole and belong to the key.
std::optional<std::string> ValueOf(std::string_view entry, std::string_view key) {
  Header header;
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  entry.remove_prefix(sizeof header);
  if (header.magic != kMagic || header.key_size != key.size() || entry.size() < key.size() ||
      header.value_size != entry.size() - key.size())
    return std::nullopt;
  const std::string_view value = entry.substr(key.size());
  if (entry.substr(0, key.size()) != key || header.checksum != Checksum(key, value))
    return std::nullopt;
  return std::string(value);
}

absl::Status CheckPrivate(const std::string& folder) {
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0)
    return NotFound("cannot use the folder ", folder, ": ", Reason());
  if (!S_ISDIR(info.st_mode)) return FailedPrecondition(folder, " is not a folder");
  if (info.st_uid != ::geteuid())
    return FailedPrecondition("the folder ", folder, " belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return FailedPrecondition("others may write to the folder ", folder,
                              "; make it private: chmod 700 ", folder);
  }
  return absl::OkStatus();
}

struct EntryFile {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

// Entries of the folder; what processes that were killed left behind is removed.
std::vector<EntryFile> Entries(const std::string& folder) {
  std::vector<EntryFile> entries;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;  // another process may have removed it meanwhile
    const fs::file_time_type used = it->last_write_time(gone);
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    if (gone) continue;
    if (it->path().extension() == kEntrySuffix) {
      entries.push_back({it->path(), used, bytes});
    } else if (it->path().extension() == kTemporarySuffix && now - used > kAbandonedAfter) {
      fs::remove(it->path(), gone);
    }
  }
  return entries;
}

int64_t TotalBytes(const std::vector<EntryFile>& entries) {
  int64_t total = 0;
  for (const EntryFile& entry : entries) total += entry.bytes;
  return total;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskStore>> DiskStore::Open(std::string folder, int64_t byte_limit) {
  std::error_code error;
  if (!fs::exists(folder, error)) {
    const fs::path parent = fs::path(folder).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return NotFound("cannot make the folder ", folder, ": ", Reason());
  }
  LAZULI_RETURN_IF_ERROR(CheckPrivate(folder));
  std::unique_ptr<DiskStore> store(new DiskStore(std::move(folder), byte_limit));
  store->bytes_ = TotalBytes(Entries(store->folder_));
  return store;
}

std::string DiskStore::PathOf(std::string_view key) const {
  char name[33];
  std::snprintf(name, sizeof name, "%016llx%016llx",
                static_cast<unsigned long long>(HashBytes(key.data(), key.size(), 1)),
                static_cast<unsigned long long>(HashBytes(key.data(), key.size(), 2)));
  return Str(folder_, "/", std::string_view(name), kEntrySuffix);
}

std::optional<std::string> DiskStore::Get(std::string_view key) {
  const std::string path = PathOf(key);
  // A pipe in the place of an entry would be waited for.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info;
  if (!file.ok() || ::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != ::geteuid())
    return std::nullopt;
  const std::optional<std::string> bytes = file.Read(static_cast<std::size_t>(info.st_size));
  if (!bytes) return std::nullopt;
  std::optional<std::string> value = ValueOf(*bytes, key);
  if (value) ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  return value;
}

absl::Status DiskStore::Put(std::string_view key, std::string_view value) {
  static std::atomic<uint64_t> next{0};
  const std::string path = PathOf(key);
  const std::string temporary = Str(path, ".", ::getpid(), ".", next++, kTemporarySuffix);
  const Header header{
      .key_size = key.size(), .value_size = value.size(), .checksum = Checksum(key, value)};
  FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.ok()) return ResourceExhausted("cannot write ", temporary, ": ", Reason());
  const bool written = file.Write({reinterpret_cast<const char*>(&header), sizeof header}) &&
                       file.Write(key) && file.Write(value) && file.Close() &&
                       ::rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const absl::Status status = ResourceExhausted("cannot write ", path, ": ", Reason());
    ::unlink(temporary.c_str());
    return status;
  }
  bytes_ += static_cast<int64_t>(sizeof header + key.size() + value.size());
  if (bytes_ > byte_limit_) Trim();
  return absl::OkStatus();
}

// Down to nine tenths, so that the folder is not read again for every entry from here on.
void DiskStore::Trim() {
  std::lock_guard lock(trim_mu_);
  std::vector<EntryFile> entries = Entries(folder_);
  std::sort(entries.begin(), entries.end(),
            [](const EntryFile& a, const EntryFile& b) { return a.used < b.used; });
  int64_t total = TotalBytes(entries);
  for (const EntryFile& entry : entries) {
    if (total <= byte_limit_ / 10 * 9) break;
    std::error_code error;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
  bytes_ = total;
}

}  // namespace lazuli::ir
