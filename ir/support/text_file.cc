#include "ir/support/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

absl::Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ResourceExhausted(std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status MakeFolderOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return FailedPrecondition("cannot make the folder ", folder.string(), ": ", error.message());
}

// A file with this text that was not there; kAlreadyExists if one was.
absl::Status MakeFile(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 && errno == EEXIST)
    return MakeError(absl::StatusCode::kAlreadyExists, path, " is there already");
  if (fd < 0) return FailedPrecondition(std::strerror(errno));
  absl::Status status = WriteAll(fd, text);
  if (::close(fd) != 0 && status.ok()) status = ResourceExhausted(std::strerror(errno));
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

// Of a terminal, a pipe, another device: a file cannot take its place.
absl::Status WriteInto(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return FailedPrecondition("cannot write ", path, ": ", std::strerror(errno));
  const absl::Status status = WriteAll(fd, text);
  ::close(fd);
  return Prefixed(status, Str("cannot write ", path, ": "));
}

}  // namespace

absl::Status WriteTextFile(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  LAZULI_RETURN_IF_ERROR(MakeFolderOf(path));
  std::error_code error;
  // Not a link is replaced, but what it leads to.
  const bool exists = fs::exists(path, error);
  const fs::path file = exists ? fs::canonical(path, error) : fs::path(path);
  if (exists && !fs::is_regular_file(file, error)) return WriteInto(path, text);
  const std::string temporary = Str(file.string(), ".", getpid(), ".tmp");
  errno = 0;
  std::ofstream out(temporary, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) {
    const absl::Status failed =
        FailedPrecondition("cannot write ", path, ": ", std::strerror(errno));
    fs::remove(temporary, error);
    return failed;
  }
  fs::rename(temporary, file, error);
  if (error) {
    const absl::Status failed = FailedPrecondition("cannot write ", path, ": ", error.message());
    fs::remove(temporary, error);
    return failed;
  }
  return absl::OkStatus();
}

absl::Status WriteNewTextFile(const std::string& path, std::string_view text) {
  LAZULI_RETURN_IF_ERROR(MakeFolderOf(path));
  struct stat there{};
  if (::lstat(path.c_str(), &there) == 0)
    return MakeError(absl::StatusCode::kAlreadyExists, path, " is there already");
  const std::string temporary = Str(path, ".", getpid(), ".tmp");
  absl::Status status = MakeFile(temporary, text);
  if (absl::IsAlreadyExists(status)) {  // of a process that had this number and was killed
    ::unlink(temporary.c_str());
    status = MakeFile(temporary, text);
  }
  if (!status.ok()) return Reworded(status, Str("cannot write ", path, ": ", Message(status)));
  const int linked = ::link(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  ::unlink(temporary.c_str());
  if (linked == 0) return absl::OkStatus();
  if (linked == EEXIST)
    return MakeError(absl::StatusCode::kAlreadyExists, path, " is there already");
  // A file system without links: the name is taken at once, the rest follows.
  status = MakeFile(path, text);
  if (status.ok() || absl::IsAlreadyExists(status)) return status;
  return Reworded(status, Str("cannot write ", path, ": ", Message(status)));
}

absl::Status AppendToTextFile(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
  // Those who append wait for each other, so that what is cut off is one's own. What cannot be
  // locked, a pipe say, cannot be cut either.
  struct stat before{};
  const bool cuts =
      ::flock(fd, LOCK_EX) == 0 && ::fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
  const absl::Status status = WriteAll(fd, text);
  if (!status.ok() && cuts && ::ftruncate(fd, before.st_size) != 0) {
  }  // NOLINT: what is left is half a text, and the error says so
  ::close(fd);
  return Prefixed(status, Str("cannot write ", path, ": "));
}

void SayOnce(const absl::Status& status) {
  if (status.ok()) return;
  struct SaidSentences {
    ForkMutex mutex;
    std::set<std::string> sentences;
  };
  SaidSentences& said = Runtime::Get().Of<SaidSentences>();
  const std::lock_guard lock(said.mutex);
  if (!said.sentences.insert(std::string(Message(status))).second) return;
  std::fprintf(stderr, "lazuli: %s\n", std::string(Message(status)).c_str());
}

void ShowDebug(std::string_view text) {
  std::string path = flags().debug_file();
  if (path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  if (const std::size_t at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, Str(getpid()));
  SayOnce(Prefixed(AppendToTextFile(path, text), "LAZULI_DEBUG_FILE: "));
}

}  // namespace lazuli::ir
