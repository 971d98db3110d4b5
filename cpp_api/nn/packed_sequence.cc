#include "lazuli/nn/packed_sequence.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "lazuli/internal/fail.h"

namespace lazuli::nn::utils::rnn {
namespace {

using Numbers = std::vector<std::int64_t>;

[[noreturn]] void Refuse(const std::string& text, SourceLocation loc) {
  lazuli::internal::Fail(ErrorCode::kInvalidArgument, text, loc);
}

Tensor TensorOf(const Numbers& numbers, const Device& device) {
  return from_data(numbers.data(), kInt64, {static_cast<std::int64_t>(numbers.size())}, device);
}

Numbers NumbersOf(const Tensor& tensor) { return tensor.to(kInt64).to_vector<std::int64_t>(); }

// How many of numbers that decrease, the lengths of sequences or the sizes of steps, are above
// 0, 1, ...: the sizes of steps, or the lengths.
Numbers Transposed(const Numbers& numbers) {
  Numbers counts(static_cast<std::size_t>(numbers.front()));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = std::count_if(numbers.begin(), numbers.end(),
                              [&](std::int64_t n) { return n > static_cast<std::int64_t>(i); });
  }
  return counts;
}

// x [T, B, *] with the value beyond the lengths.
Tensor WithPadding(const Tensor& x, const Numbers& lengths, double value) {
  const Tensor steps = arange(x.size(0), kInt64, x.device()).reshape({-1, 1});
  Dims dims{x.size(0), x.size(1)};
  const Tensor goes_on = lt(steps, TensorOf(lengths, x.device()));
  dims.insert(dims.end(), static_cast<std::size_t>(x.dim() - 2), 1);
  return where(goes_on.reshape(dims), x, full_like(x, value));
}

void CheckLengths(const Numbers& lengths, const Tensor& x, bool sorted, SourceLocation loc) {
  const std::string name = "pack_padded_sequence: ";
  if (static_cast<std::int64_t>(lengths.size()) != x.size(1)) {
    Refuse(name + "Expected `len(lengths)` to be equal to batch_size, but got " +
               std::to_string(lengths.size()) + " (batch_size=" + std::to_string(x.size(1)) + ")",
           loc);
  }
  if (lengths.empty()) Refuse(name + "Cannot pack empty tensors.", loc);
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  if (*least <= 0) {
    Refuse(name +
               "Length of all samples has to be greater than 0, but found an element in 'lengths' "
               "that is <= 0",
           loc);
  }
  if (*most > x.size(0)) {
    Refuse(name + "a length of " + std::to_string(*most) + " is above the " +
               std::to_string(x.size(0)) + " steps of the input",
           loc);
  }
  if (sorted && !std::is_sorted(lengths.begin(), lengths.end(), std::greater<>())) {
    Refuse(name +
               "`lengths` must be sorted in decreasing order when `enforce_sorted` is true; pass "
               "enforce_sorted=false to have them sorted",
           loc);
  }
}

// The order in which the lengths decrease.
Numbers OrderOf(const Numbers& lengths) {
  Numbers order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
  });
  return order;
}

Numbers Inverse(const Numbers& permutation) {
  Numbers places(permutation.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    places[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return places;
}

}  // namespace

// Both forms of the elements, of which one is there and the other is made of it when it is needed.
struct PackedSequence::Forms {
  Tensor data, padded, batch_sizes;
  Numbers lengths;

  void MakeData(SourceLocation loc) {
    const SiteScope site(loc);
    const auto batch = static_cast<std::int64_t>(lengths.size());
    Numbers places;  // in the padded form
    for (std::int64_t step = 0; step < lengths.front(); ++step) {
      for (std::int64_t i = 0; i < batch && lengths[static_cast<std::size_t>(i)] > step; ++i)
        places.push_back(step * batch + i);
    }
    data = flatten(padded, 0, 1).index_select(0, TensorOf(places, padded.device()));
  }
  void MakePadded(SourceLocation loc) {
    const SiteScope site(loc);
    Numbers places;  // in data; what ends has the place of another
    std::int64_t place = 0;
    for (const std::int64_t size : Transposed(lengths)) {
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(lengths.size()); ++i)
        places.push_back(place + std::min(i, size - 1));
      place += size;
    }
    const Tensor rows = data.index_select(0, TensorOf(places, data.device()));
    Dims dims{lengths.front(), static_cast<std::int64_t>(lengths.size())};
    for (std::int64_t d = 1; d < data.dim(); ++d) dims.push_back(data.size(d));
    padded = WithPadding(rows.reshape(dims), lengths, 0);
  }
};

PackedSequence::PackedSequence(const Tensor& data, const Tensor& batch_sizes,
                               const Tensor& sorted_indices, const Tensor& unsorted_indices,
                               SourceLocation loc)
    : forms_(std::make_shared<Forms>()),
      sorted_indices_(sorted_indices),
      unsorted_indices_(unsorted_indices.defined() ? unsorted_indices
                                                   : invert_permutation(sorted_indices, loc)) {
  const SiteScope site(loc);
  const Numbers sizes = NumbersOf(batch_sizes);
  if (sizes.empty() || sizes.back() <= 0 ||
      !std::is_sorted(sizes.begin(), sizes.end(), std::greater<>()) ||
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != data.size(0)) {
    Refuse("PackedSequence: batch_sizes must decrease, be above 0 and have the sum " +
               std::to_string(data.size(0)) + ", the first dim of data",
           loc);
  }
  forms_->data = data;
  forms_->batch_sizes = batch_sizes;
  forms_->lengths = Transposed(sizes);
}

const PackedSequence::Forms& PackedSequence::forms() const {
  if (!forms_) throw Error(ErrorCode::kFailedPrecondition, "PackedSequence: it has no sequences");
  return *forms_;
}

const Tensor& PackedSequence::data(SourceLocation loc) const {
  if (!forms().data.defined()) forms_->MakeData(loc);
  return forms_->data;
}

const Tensor& PackedSequence::batch_sizes(SourceLocation loc) const {
  if (!forms().batch_sizes.defined()) {
    const SiteScope site(loc);
    forms_->batch_sizes = TensorOf(Transposed(forms_->lengths), Device(kCPU));
  }
  return forms_->batch_sizes;
}

const Tensor& PackedSequence::padded(SourceLocation loc) const {
  if (!forms().padded.defined()) forms_->MakePadded(loc);
  return forms_->padded;
}

const std::vector<std::int64_t>& PackedSequence::lengths() const { return forms().lengths; }

PackedSequence PackedSequence::like(const Tensor& padded) const {
  PackedSequence made = *this;
  made.forms_ = std::make_shared<Forms>();
  made.forms_->padded = padded;
  made.forms_->batch_sizes = forms().batch_sizes;
  made.forms_->lengths = forms().lengths;
  return made;
}

PackedSequence PackedSequence::to(DType dtype, SourceLocation loc) const {
  return like(padded(loc).to(dtype, loc));
}

PackedSequence PackedSequence::to(const Device& device, SourceLocation loc) const {
  PackedSequence made = like(padded(loc).to(device, loc));
  for (Tensor* indices : {&made.sorted_indices_, &made.unsorted_indices_}) {
    if (indices->defined()) *indices = indices->to(device, loc);
  }
  return made;
}

PackedSequence PackedSequence::cpu(SourceLocation loc) const { return to(Device(kCPU), loc); }

Tensor invert_permutation(const Tensor& permutation, SourceLocation loc) {
  return permutation.defined() ? argsort(permutation, -1, false, true, loc) : Tensor();
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first,
                                    bool enforce_sorted, SourceLocation loc) {
  const SiteScope site(loc);
  if (input.dim() < 2)
    Refuse("pack_padded_sequence: the input must have steps and sequences, two dims", loc);
  Tensor x = batch_first ? transpose(input, 0, 1) : input;
  Numbers numbers = NumbersOf(lengths);
  CheckLengths(numbers, x, enforce_sorted, loc);
  PackedSequence made;
  made.forms_ = std::make_shared<PackedSequence::Forms>();
  if (!enforce_sorted) {
    const Numbers order = OrderOf(numbers);
    made.sorted_indices_ = TensorOf(order, input.device());
    made.unsorted_indices_ = TensorOf(Inverse(order), input.device());
    x = x.index_select(1, made.sorted_indices_);
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
  }
  made.forms_->padded = WithPadding(x.narrow(0, 0, numbers.front()), numbers, 0);
  made.forms_->lengths = std::move(numbers);
  return made;
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<std::int64_t> total_length,
                                               SourceLocation loc) {
  const SiteScope site(loc);
  Tensor x = sequence.padded(loc);
  const std::int64_t steps = x.size(0);
  if (total_length && *total_length < steps) {
    Refuse(
        "pad_packed_sequence: Expected total_length to be at least the length of the longest "
        "sequence in input, but got total_length=" +
            std::to_string(*total_length) + " and max sequence length being " +
            std::to_string(steps),
        loc);
  }
  if (total_length && *total_length > steps) {
    Dims around(static_cast<std::size_t>(2 * x.dim()));
    around.back() = *total_length - steps;
    x = pad(x, around);
  }
  if (padding_value != 0) x = WithPadding(x, sequence.lengths(), padding_value);
  Tensor lengths = TensorOf(sequence.lengths(), Device(kCPU));
  if (const Tensor& order = sequence.unsorted_indices(); order.defined()) {
    x = x.index_select(1, order);
    lengths = lengths.index_select(0, order.cpu());
  }
  return {batch_first ? transpose(x, 0, 1) : x, lengths};
}

Tensor pad_sequence(const std::vector<Tensor>& sequences, bool batch_first, double padding_value,
                    std::string_view padding_side, SourceLocation loc) {
  const SiteScope site(loc);
  if (sequences.empty()) Refuse("pad_sequence: received an empty list of sequences", loc);
  if (padding_side != "right" && padding_side != "left")
    Refuse("pad_sequence: padding_side must be right or left, is " + std::string(padding_side),
           loc);
  std::int64_t longest = 0;
  for (const Tensor& x : sequences) longest = std::max(longest, x.size(0));
  std::vector<Tensor> rows;
  for (const Tensor& x : sequences) {
    Dims around(static_cast<std::size_t>(2 * x.dim()));
    around[around.size() - (padding_side == "right" ? 1 : 2)] = longest - x.size(0);
    rows.push_back(pad(x, around, "constant", padding_value));
  }
  return stack(rows, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(const std::vector<Tensor>& sequences, bool enforce_sorted,
                             SourceLocation loc) {
  const SiteScope site(loc);
  Numbers lengths;
  for (const Tensor& x : sequences) lengths.push_back(x.size(0));
  return pack_padded_sequence(pad_sequence(sequences, false, 0, "right", loc),
                              TensorOf(lengths, Device(kCPU)), false, enforce_sorted, loc);
}

}  // namespace lazuli::nn::utils::rnn
