// Sequences of different lengths as one tensor: padded, or packed as recurrent layers take them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "lazuli/ops.h"

namespace lazuli::nn::utils::rnn {

// Sequences of different lengths without padding, the longest first.
//
// data() [elements of all sequences, *] has the first element of each sequence, then the second of
// each that has one, and so on; batch_sizes() says how many there are per step. sorted_indices() and
// unsorted_indices() lead from the order of the batch to this order, and back; undefined where these
// are the same. pack_padded_sequence() makes packs.
//
// Layers take the padded form, whose dims do not depend on the lengths. A pack that was made from it
// makes its data when they are asked for, and a step with other lengths compiles nothing. A pack is a
// handle, which several threads must not ask for its data at once.
class LAZULI_API PackedSequence {
 public:
  PackedSequence() = default;
  // Throws Error(kInvalidArgument) unless the sizes are a decreasing sequence of numbers above 0 whose
  // sum is the first dim of data. Reads the sizes, which syncs.
  PackedSequence(const Tensor& data, const Tensor& batch_sizes, const Tensor& sorted_indices = {},
                 const Tensor& unsorted_indices = {}, LAZULI_LOC);
  const Tensor& data(LAZULI_LOC) const;
  const Tensor& batch_sizes(LAZULI_LOC) const;
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }

  // [T, B, *] in the order of data, with zeros beyond the lengths [B], T being the longest.
  const Tensor& padded(LAZULI_LOC) const;
  const std::vector<std::int64_t>& lengths() const;
  // The same sequences with other elements, given as padded() gives these.
  PackedSequence like(const Tensor& padded) const;

  // The same sequences with data of another dtype or on another device.
  PackedSequence to(DType dtype, LAZULI_LOC) const;
  PackedSequence to(const Device& device, LAZULI_LOC) const;
  PackedSequence cpu(LAZULI_LOC) const;
  PackedSequence pin_memory() const { return *this; }
  bool is_cuda() const { return false; }
  bool is_pinned() const { return false; }

 private:
  friend LAZULI_API PackedSequence pack_padded_sequence(const Tensor&, const Tensor&, bool, bool,
                                                        SourceLocation);
  struct Forms;
  const Forms& forms() const;
  std::shared_ptr<Forms> forms_;
  Tensor sorted_indices_, unsorted_indices_;
};

// The permutation that undoes this one; undefined for an undefined one.
LAZULI_API Tensor invert_permutation(const Tensor& permutation, LAZULI_LOC);

// Packs input [T, B, *], or [B, T, *] with batch_first, whose sequences have these lengths [B]. They
// are sorted, the longest first, unless enforce_sorted says that they are already. Reads the lengths,
// which syncs. Throws Error(kInvalidArgument) for lengths that are not in [1, T] or not sorted.
LAZULI_API PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                               bool batch_first = false, bool enforce_sorted = true,
                                               LAZULI_LOC);

// (the padded sequences [T, B, *], or [B, T, *] with batch_first, in the order of the batch, their
// lengths s64[B] on the CPU). T is total_length, or the longest length. Throws Error(kInvalidArgument)
// for a total_length below that.
LAZULI_API std::tuple<Tensor, Tensor> pad_packed_sequence(
    const PackedSequence& sequence, bool batch_first = false, double padding_value = 0,
    std::optional<std::int64_t> total_length = std::nullopt, LAZULI_LOC);

// Sequences [L, *] as one tensor [longest L, B, *], or [B, longest L, *] with batch_first, with the
// value on the padding_side, "right" or "left". Throws Error(kInvalidArgument) for no sequences.
LAZULI_API Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first = false,
                               double padding_value = 0, std::string_view padding_side = "right",
                               LAZULI_LOC);

// Packs sequences [L, *].
LAZULI_API PackedSequence pack_sequence(const std::vector<Tensor>& sequences,
                                        bool enforce_sorted = true, LAZULI_LOC);

}  // namespace lazuli::nn::utils::rnn
