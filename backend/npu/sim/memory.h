// A memory of the machine: mapped, not filled, so that gigabytes cost what is touched. Every byte
// is 0 at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/mman.h>

namespace lazuli::npu {

// Zeroed pages that appear when they are touched.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) data_ = static_cast<std::byte*>(at);
  }
  Mapping(Mapping&& other) noexcept
      : data_(other.data_), bytes_(other.bytes_), owned_(other.owned_) {
    other.data_ = nullptr;
  }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr && owned_) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // The same bytes, which stay the other's.
  static Mapping Of(const Mapping& other) {
    Mapping mapping;
    mapping.data_ = other.data_;
    mapping.bytes_ = other.bytes_;
    mapping.owned_ = false;
    return mapping;
  }

  bool ok() const { return data_ != nullptr || bytes_ == 0; }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool owned_ = true;
};

enum class MemoryKind : uint8_t { kSpm, kAcc, kDram, kHost };

// Bytes, and in strict mode what is known of each: who wrote it last and who has read it since
// (numbers of Strict's log; 0: nobody).
struct Memory {
  MemoryKind kind = MemoryKind::kDram;
  int device = 0, core = 0;
  Mapping bytes, shadow;

  struct Known {
    uint32_t writer, reader;
  };
  std::byte* data() const { return bytes.data(); }
  uint64_t size() const { return bytes.size(); }
  Known* known() const { return reinterpret_cast<Known*>(shadow.data()); }
};

}  // namespace lazuli::npu
