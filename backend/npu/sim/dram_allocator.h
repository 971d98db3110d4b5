// DramAllocator: places for arrays in a device's DRAM. First fit, in units of 64 bytes.
//
// First fit, since what a program asks for comes back in the same sizes and order, step after step.
// Blocks carry a name, so that a refusal says what fills the memory. Not thread-safe: Card is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

class DramAllocator {
 public:
  // `owner` is whose memory it is, for errors: "npu:0".
  DramAllocator(uint64_t bytes, std::string owner);

  // The place of so many bytes; 0 bytes take a unit, too. ResourceExhausted names what asks, how
  // much is free in one piece, and the largest blocks.
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes, std::string_view name);
  // A block that Allocate gave.
  void Free(uint64_t place);

  uint64_t in_use() const { return in_use_; }
  uint64_t peak() const { return peak_; }

 private:
  struct AllocatedBlock {
    uint64_t bytes;
    std::string name;
  };
  absl::Status OutOfMemory(uint64_t bytes, std::string_view name) const;

  uint64_t bytes_;
  std::string owner_;
  std::map<uint64_t, uint64_t> free_;  // place to bytes; no two touch
  std::map<uint64_t, AllocatedBlock> blocks_;
  uint64_t in_use_ = 0, peak_ = 0;
};

}  // namespace lazuli::npu
