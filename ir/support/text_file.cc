#include "ir/support/text_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

#include "ir/support/status.h"

namespace lazuli::ir {

absl::Status WriteTextFile(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error)
    return FailedPrecondition("cannot make the folder ", folder.string(), ": ", error.message());

  const std::string temporary = Str(path, ".", getpid(), ".tmp");
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
  fs::rename(temporary, path, error);
  if (error) {
    const absl::Status failed = FailedPrecondition("cannot write ", path, ": ", error.message());
    fs::remove(temporary, error);
    return failed;
  }
  return absl::OkStatus();
}

}  // namespace lazuli::ir
