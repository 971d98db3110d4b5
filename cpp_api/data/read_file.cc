#include "cpp_api/data/read_file.h"

#include <fstream>

#include "lazuli/internal/fail.h"

namespace lazuli::data {

using lazuli::internal::Fail;

std::vector<std::uint8_t> ReadFile(const std::string& path, const std::string& hint,
                                   SourceLocation loc) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff length = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  // A folder opens, too, but has no length.
  if (length < 0 || length > (std::streamoff{1} << 40)) {
    Fail(ErrorCode::kNotFound, "cannot read " + path + "; " + hint, loc);
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(length));
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), length)) {
    Fail(ErrorCode::kNotFound, "reading " + path + " failed", loc);
  }
  return bytes;
}

}  // namespace lazuli::data
