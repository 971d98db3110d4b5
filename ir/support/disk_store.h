// DiskStore: a folder of values found by their keys, shared by processes and kept between them.
//
// Nothing that lies in the folder is trusted: an entry counts only if its whole key is the one that
// was asked for and its checksum holds; anything else is a miss. Entries appear by rename, so a
// process that is killed, or a disk that is full, leaves no half of one. The folder must be the
// user's own and closed to others, because what is kept there may be machine code.
//
// Thread-safe; any number of processes may use one folder.
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

  // The value that some process put under this key; nothing if there is none or it is damaged.
  std::optional<std::string> Get(std::string_view key);
  // Whole or not at all. On an error (a full disk, say) the store is as it was.
  absl::Status Put(std::string_view key, std::string_view value);

  // Of all entries, about.
  int64_t bytes() const { return bytes_; }
  // Where the value of this key lies if it is there.
  std::string PathOf(std::string_view key) const;

 private:
  DiskStore(std::string folder, int64_t byte_limit)
      : folder_(std::move(folder)), byte_limit_(byte_limit) {}
  void Trim();

  const std::string folder_;
  const int64_t byte_limit_;
  std::atomic<int64_t> bytes_{0};  // about: other processes write, too
  std::mutex trim_mu_;
};

}  // namespace lazuli::ir
