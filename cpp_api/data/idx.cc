#include "cpp_api/data/idx.h"

#include <cstdio>
#include <iterator>
#include <string>

#include "cpp_api/data/read_file.h"
#include "lazuli/internal/fail.h"

namespace lazuli::data {
namespace {

using lazuli::internal::Fail;

std::uint32_t BigEndian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | p[3];
}

std::string Hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

}  // namespace

IdxFile ReadIdx(const std::string& path, int rank, SourceLocation loc) {
  const auto damaged = [&](const std::string& what) {
    Fail(ErrorCode::kInvalidArgument, path + " " + what + "; get it again by tools/fetch_mnist.sh",
         loc);
  };
  IdxFile file{.dims = {},
               .bytes = ReadFile(
                   path, "tools/fetch_mnist.sh gets MNIST and prints the folder it is in", loc)};
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(rank);
  if (file.bytes.size() < header) {
    damaged("is truncated: it has " + std::to_string(file.bytes.size()) + " bytes, its header " +
            std::to_string(header));
  }
  if (file.bytes[0] == 0x1f && file.bytes[1] == 0x8b) {
    damaged("is still compressed by gzip");
  }
  const std::uint32_t wanted = 0x0800u | static_cast<std::uint32_t>(rank);  // 8: unsigned bytes
  if (BigEndian(file.bytes.data()) != wanted) {
    damaged("is not an IDX file of bytes with " + std::to_string(rank) + " dims: it begins with " +
            Hex(BigEndian(file.bytes.data())) + " instead of " + Hex(wanted));
  }
  unsigned __int128 promised = 1;
  for (int i = 0; i < rank; ++i) {
    file.dims.push_back(BigEndian(file.bytes.data() + 4 + 4 * i));
    promised *= file.dims.back();
  }
  const std::size_t present = file.bytes.size() - header;
  if (promised != present) {
    std::string dims;
    for (const std::uint32_t d : file.dims) dims += (dims.empty() ? "" : " x ") + std::to_string(d);
    damaged(std::string(present < promised ? "is truncated" : "is too long") + ": it has " +
            std::to_string(present) + " bytes of data, its header says " + dims);
  }
  file.bytes.erase(file.bytes.begin(), file.bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return file;
}

}  // namespace lazuli::data
