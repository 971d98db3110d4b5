// Sort, top-k and map.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"
#include "ir/types/permutation.h"

namespace lazuli::hlo {
namespace {

// Merges bottom-up; stable. Any comparator terminates, also one that is no order.
template <class Less>
void MergeSort(std::vector<int64_t>& items, std::vector<int64_t>& scratch, Less&& less) {
  const std::size_t n = items.size();
  for (std::size_t width = 1; width < n; width *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      std::size_t left = begin, right = middle;
      for (std::size_t to = begin; to < end; ++to) {
        const bool take_right = right < end && (left >= middle || less(items[right], items[left]));
        scratch[to] = items[take_right ? right++ : left++];
      }
    }
    items.swap(scratch);
  }
}

// The array with dimension `d` moved last, and back.
Dims LastOrder(int64_t rank, int64_t d) {
  Dims order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != d) order.push_back(i);
  }
  order.push_back(d);
  return order;
}

// result[i] = from[order[i]]
void Permute(int width, const std::byte* from, absl::Span<const int64_t> order, std::byte* to) {
  for (std::size_t i = 0; i < order.size(); ++i)
    std::copy_n(from + order[i] * width, width, to + static_cast<int64_t>(i) * width);
}

}  // namespace

absl::StatusOr<Literal> EvaluateSort(const Instruction& instruction, Operands operands,
                                     Evaluation& evaluation) {
  const int64_t dimension = instruction.attrs_as<SortAttrs>().dimension;
  const Dims order = LastOrder(operands[0]->shape().rank(), dimension);
  const int64_t size = operands[0]->shape().dim(dimension);
  const int64_t rows = size == 0 ? 0 : operands[0]->shape().num_elements() / size;
  std::vector<Literal> keys, sorted;
  for (const Literal* operand : operands) {
    keys.push_back(Transposed(*operand, order));
    sorted.push_back(Literal::Uninitialized(keys.back().shape()));
  }
  RegionEvaluator compare(*instruction.to_apply(), 1, evaluation);
  std::vector<const std::byte*> arguments(2 * operands.size());
  std::vector<int64_t> items(static_cast<std::size_t>(size)), scratch(items.size());
  absl::Status status;
  for (int64_t row = 0; row < rows; ++row) {
    std::iota(items.begin(), items.end(), int64_t{0});
    auto less = [&](int64_t a, int64_t b) {
      for (std::size_t k = 0; k < keys.size(); ++k) {
        const int width = ByteWidth(keys[k].shape().dtype());
        arguments[2 * k] = keys[k].raw() + (row * size + a) * width;
        arguments[2 * k + 1] = keys[k].raw() + (row * size + b) * width;
      }
      bool result = false;
      if (status.ok()) status = compare.Run(arguments, {reinterpret_cast<std::byte*>(&result)}, 1);
      return result;
    };
    MergeSort(items, scratch, less);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const int width = ByteWidth(keys[k].shape().dtype());
      Permute(width, keys[k].raw() + row * size * width, items,
              sorted[k].mutable_raw() + row * size * width);
    }
  }
  LAZULI_RETURN_IF_ERROR(status);
  for (Literal& result : sorted) result = Transposed(result, Inverse(order));
  return TupleOrOne(std::move(sorted));
}

// The k largest (or smallest) along the last dimension, in order; of equal ones the first. Floats
// in their total order.
Literal TopKOf(const Literal& x, const TopKAttrs& attrs, const Shape& shape) {
  const int64_t size = x.shape().dim(x.shape().rank() - 1);
  const int64_t rows = size == 0 ? 0 : x.shape().num_elements() / size;
  const int width = ByteWidth(x.shape().dtype());
  // Keys whose integer order is the order of the values.
  const bool is_float = IsFloat(x.shape().dtype());
  Literal wide = x.Converted(is_float                        ? DType::kF64
                             : IsUnsigned(x.shape().dtype()) ? DType::kU64
                                                             : DType::kS64);
  std::vector<int64_t> keys(static_cast<std::size_t>(x.shape().num_elements()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::memcpy(&keys[i], wide.raw() + i * 8, 8);
    if (is_float && keys[i] < 0) keys[i] ^= INT64_MAX;
    if (IsUnsigned(x.shape().dtype())) keys[i] ^= INT64_MIN;
  }
  Literal values = Literal::Uninitialized(shape.tuple()[0]);
  Literal indices = Literal::Uninitialized(shape.tuple()[1]);
  std::vector<int64_t> items(static_cast<std::size_t>(size)), scratch(items.size());
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t* key = keys.data() + row * size;
    std::iota(items.begin(), items.end(), int64_t{0});
    MergeSort(items, scratch, [&](int64_t a, int64_t b) {
      return attrs.largest ? key[a] > key[b] : key[a] < key[b];
    });
    for (int64_t i = 0; i < attrs.k; ++i) {
      const int64_t item = items[static_cast<std::size_t>(i)];
      std::copy_n(x.raw() + (row * size + item) * width, width,
                  values.mutable_raw() + (row * attrs.k + i) * width);
      indices.SetFromDouble(row * attrs.k + i, static_cast<double>(item));
    }
  }
  return Literal::Tuple({std::move(values), std::move(indices)});
}

absl::StatusOr<Literal> EvaluateTopK(const Instruction& instruction, Operands operands) {
  return TopKOf(*operands[0], instruction.attrs_as<TopKAttrs>(), instruction.shape());
}

absl::StatusOr<Literal> EvaluateMap(const Instruction& instruction, Operands operands,
                                    Evaluation& evaluation) {
  const int64_t count = instruction.shape().num_elements();
  Literal result = Literal::Uninitialized(instruction.shape());
  std::vector<const std::byte*> arguments;
  for (const Literal* operand : operands) arguments.push_back(operand->raw());
  RegionEvaluator region(*instruction.to_apply(), count, evaluation);
  LAZULI_RETURN_IF_ERROR(region.Run(arguments, {result.mutable_raw()}, count));
  return result;
}

}  // namespace lazuli::hlo
