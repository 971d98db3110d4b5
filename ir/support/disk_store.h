// DiskStore: a folder of values found by their keys, shared by processes and kept between them.
//
// The store trusts nothing that lies in the folder. An entry is a hit only if it has the whole key
// that was asked for and a right checksum. An entry appears by a rename, so neither a process that is
// killed nor a full disk leaves half of one. The folder must belong to the user, and nobody else may
// write to it, because the values may be machine code.
//
// Thread-safe. Any number of processes may use one folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class DiskStore {
 public:
  // Makes the folder if it is missing. FailedPrecondition if it belongs to somebody else or others
  // may write to it. Above `byte_limit` the entries that were not used for longest are removed.
  static absl::StatusOr<std::unique_ptr<DiskStore>> Open(std::string folder, int64_t byte_limit);

  // The value of this key, whichever process put it there. None if it is missing or damaged.
  std::optional<std::string> Get(std::string_view key);
  // Stores a value. On an error, for example a full disk, the store is as it was.
  absl::Status Put(std::string_view key, std::string_view value);

  // The bytes of all entries, approximately: other processes write, too.
  int64_t bytes() const { return bytes_; }
  // The file that holds this key's value if there is one.
  std::string PathOf(std::string_view key) const;

 private:
  DiskStore(std::string folder, int64_t byte_limit)
      : folder_(std::move(folder)), byte_limit_(byte_limit) {}
  void Trim();

  const std::string folder_;
  const int64_t byte_limit_;
  std::atomic<int64_t> bytes_{0};  // see bytes()
  std::mutex trim_mu_;
};

}  // namespace lazuli::ir
