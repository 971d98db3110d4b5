// Indexing as NumPy's: x.index({1, "...", Slice{2, 8, 2}, positions}) is x[1, ..., 2:8:2, positions].
//
// Integers and slices take of a dim each; NewAxis makes one of size 1; one Ellipsis stands for all
// dims that nothing else does, as does the end. Tensors of integers pick positions, together: their
// dims, broadcast, stand where the first of them does if they are side by side, else in front.
// Negative positions count from the end; one out of range is Error(kOutOfRange) where it is a
// number, and fails the run where it is data. Without such tensors the result is a view.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "lazuli/tensor.h"

namespace lazuli {

struct Slice {
  std::optional<std::int64_t> start, stop;
  std::int64_t step = 1;  // positive
};
struct NewAxis {};
struct Ellipsis {};
struct LAZULI_API Index : std::variant<std::int64_t, Slice, NewAxis, Ellipsis, Tensor, bool> {
  using variant::variant;
  Index(std::nullopt_t) : variant(NewAxis()) {}  // NOLINT(google-explicit-constructor)
  Index(const char* ellipsis, LAZULI_LOC);       // NOLINT: implicit. "..."; throws of others
};

// A tensor of pred stands for the positions where it is true along each of its dims, which are read:
// how many there are is a dim of the result. One of rank 0, or a bool, takes no dim: it is a new one
// of size 1, or 0.
LAZULI_API Tensor index(const Tensor& x, const std::vector<Index>& indices, LAZULI_LOC);

// x[indices] = value, which broadcasts, a number or of any dtype; or += of all that meet at a
// position, if accumulate (else the last one stays). With positions, or a mask that picks several
// of its elements, a value that is a tensor has x's dtype. A mask alone, a tensor of pred with the
// leading dims of x, may stand for the positions where it is true: the value has as many, or one for
// all.
LAZULI_API Tensor& index_put_(Tensor& x, const std::vector<Index>& indices, const Operand& value,
                              bool accumulate = false);

}  // namespace lazuli
