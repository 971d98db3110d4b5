// Copies between strided arrays: what every data movement opcode comes down to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

#include "ir/types/literal.h"

namespace lazuli::hlo {

// Copies dims elements of `width` bytes. Strides are in bytes; those of the source may be zero or
// negative.
void CopyStrided(int width, absl::Span<const int64_t> dims, const std::byte* from,
                 absl::Span<const int64_t> from_strides, std::byte* to,
                 absl::Span<const int64_t> to_strides);

// `count` copies of the element of `width` bytes at `value`.
void Fill(int width, const std::byte* value, int64_t count, std::byte* to);

// Bytes between neighbours along each dimension of a row-major array.
Dims ByteStrides(const Shape& shape);

// The literal with its dimensions permuted: result dimension i is dimension permutation[i] of `x`.
Literal Transposed(const Literal& x, absl::Span<const int64_t> permutation);

}  // namespace lazuli::hlo
