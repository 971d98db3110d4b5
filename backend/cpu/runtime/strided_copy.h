// StridedCopy: moves an N-dimensional array between any two strided layouts. Planned once, run many
// times, in parallel.
//
// Covers layout changes, transposes, slices, reverses (negative strides) and the pieces of pad and
// concatenate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "ir/support/attrs.h"
#include "ir/types/shape.h"

namespace lazuli::cpu {

// An element of 16 bytes, to be moved as it is.
struct Word16 {
  uint64_t low, high;
};

// Copies memory as it is.
void CopyBytes(const std::byte* source, std::byte* target, int64_t bytes);

class StridedCopy {
 public:
  StridedCopy() = default;
  // Strides in elements of element_bytes (1, 2, 4, 8 or 16) bytes each.
  StridedCopy(int element_bytes, absl::Span<const int64_t> dims,
              absl::Span<const int64_t> source_strides, absl::Span<const int64_t> target_strides);

  void Run(const std::byte* source, std::byte* target) const;
  // Whether the p-th of `parts` equal pieces of the source goes to that of the target.
  bool CanSplit(int64_t parts) const;
  // One of them; what Run does in all.
  void RunPart(const std::byte* source, std::byte* target, int64_t part, int64_t parts) const;
  int64_t bytes() const { return elements_ * element_bytes_; }
  LAZULI_ATTRS(element_bytes_, elements_, dims_, source_strides_, target_strides_);

 private:
  template <class Word>
  void RunRows(const Word* source, Word* target, int64_t begin, int64_t end) const;
  template <class Word>
  void RunTyped(const std::byte* source, std::byte* target) const;

  int element_bytes_ = 1;
  int64_t elements_ = 0;
  // Outermost first, size-1 dims dropped and mergeable neighbours merged; the last has the smallest
  // target stride, and the one before it the smallest source stride of the rest if the last one's
  // is not 1.
  Dims dims_, source_strides_, target_strides_;
};

}  // namespace lazuli::cpu
