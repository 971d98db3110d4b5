// NumPy's .npz files: arrays by name in a zip archive, stored or deflated, as literals.
//
// A type that NumPy lacks (bf16, f8*, f4*, s2, s4, u2, u4) is the bits of its elements in the
// unsigned integer type of its width, at least a byte.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/types/literal.h"

struct zip;

namespace lazuli::tools {

class NpzReader {
 public:
  static absl::StatusOr<NpzReader> Open(const std::string& path);

  // Whether there is an array of this name (in the archive: NAME.npy).
  bool Has(std::string_view name) const;
  // The array, which must have this shape. Errors name the file, the array and both shapes.
  absl::StatusOr<ir::Literal> Read(std::string_view name, const ir::Shape& shape) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  NpzReader(std::string path, zip* archive) : path_(std::move(path)), archive_(archive) {}
  absl::StatusOr<std::string> ReadMember(std::string_view name) const;

  std::string path_;
  std::unique_ptr<zip, Close> archive_;
};

// Writes the arrays, and the names of their HLO types as the string array `dtypes`. Nobody sees
// half of a file: it is written under another name first. Folders above it are made.
absl::Status WriteNpz(const std::string& path,
                      const std::vector<std::pair<std::string, ir::Literal>>& arrays);

}  // namespace lazuli::tools
