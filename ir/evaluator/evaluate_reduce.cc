// Reductions: monoids in the order of reduction_order.h, anything else strictly in order.

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/monoid_loops.h"
#include "ir/evaluator/reduction_order.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

template <Opcode monoid, class T>
T ReduceBlock(const T* x, int64_t count, T identity) {
  T lanes[kReduceLanes];
  std::fill_n(lanes, kReduceLanes, identity);
  const int64_t whole = count / kReduceLanes * kReduceLanes;
  for (int64_t i = 0; i < whole; i += kReduceLanes) {
    for (int64_t l = 0; l < kReduceLanes; ++l) lanes[l] = Combine<monoid>(lanes[l], x[i + l]);
  }
  for (int64_t i = whole; i < count; ++i)
    lanes[i - whole] = Combine<monoid>(lanes[i - whole], x[i]);
  for (int64_t step = kReduceLanes / 2; step > 0; step /= 2) {
    for (int64_t l = 0; l < step; ++l) lanes[l] = Combine<monoid>(lanes[l], lanes[l + step]);
  }
  return lanes[0];
}

// The tree over blocks 0, 1, ..., whose totals arrive in order: like a binary counter, it holds one
// total of 2^level blocks for each bit that is set in their number.
template <Opcode monoid, class T>
class BlockTree {
 public:
  void Add(T total) {
    int level = 0;
    for (; blocks_ >> level & 1; ++level) total = Combine<monoid>(totals_[level], total);
    totals_[level] = total;
    ++blocks_;
  }
  // Of at least one block.
  T Total() const {
    int level = std::countr_zero(blocks_);
    T total = totals_[level];
    while (blocks_ >> ++level != 0) {
      if (blocks_ >> level & 1) total = Combine<monoid>(totals_[level], total);
    }
    return total;
  }

 private:
  uint64_t blocks_ = 0;
  T totals_[64 - std::bit_width(static_cast<uint64_t>(kReduceBlock) - 1)];
};

template <Opcode monoid, class T>
T ReduceRow(const T* x, int64_t count, T init, T identity) {
  if (count == 0) return init;
  BlockTree<monoid, T> tree;
  for (int64_t i = 0; i < count; i += kReduceBlock)
    tree.Add(ReduceBlock<monoid>(x + i, std::min(count - i, kReduceBlock), identity));
  const T total = tree.Total();
  // By their bits: -0 is not 0 here, and a NaN is itself.
  const bool starts_from_identity = std::memcmp(&init, &identity, sizeof(T)) == 0;  // NOLINT
  return starts_from_identity ? total : Combine<monoid>(init, total);
}

// Dimensions of a reduction's operand that stay, and those that go.
struct ReductionDims {
  Dims kept, reduced;
};
ReductionDims SplitDimensions(const Instruction& instruction) {
  ReductionDims split;
  const Dims& reduced = instruction.attrs_as<DimensionsAttrs>().dimensions;
  for (int64_t d = 0; d < instruction.operand(0)->shape().rank(); ++d) {
    const bool goes = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    (goes ? split.reduced : split.kept).push_back(d);
  }
  return split;
}

Dims Joined(const Dims& a, const Dims& b) {
  Dims result = a;
  result.insert(result.end(), b.begin(), b.end());
  return result;
}

Literal ReduceByMonoid(const Instruction& instruction, Opcode monoid, const Literal& x,
                       const Literal& init) {
  const ReductionDims split = SplitDimensions(instruction);
  const DType dtype = AccumulationType(x.shape().dtype());
  const Literal rows = Transposed(x, Joined(split.kept, split.reduced)).Converted(dtype);
  const Literal start = init.Converted(dtype);
  const Literal identity = IdentityOf(monoid, dtype);
  Shape shape = instruction.shape();
  shape.set_dtype(dtype);
  Literal result = Literal::Uninitialized(shape);
  const int64_t outputs = shape.num_elements();
  const int64_t count = outputs == 0 ? 0 : x.shape().num_elements() / outputs;
  VisitMonoid(monoid, dtype, [&]<Opcode kMonoid, class T>() {
    const T* from = rows.data<T>().data();
    T* to = result.mutable_data<T>().data();
    for (int64_t i = 0; i < outputs; ++i) {
      to[i] =
          ReduceRow<kMonoid, T>(from + i * count, count, start.data<T>()[0], identity.data<T>()[0]);
    }
  });
  return WrappedTo(instruction.shape().dtype(), std::move(result));
}

// All outputs advance together, one reduced element at a time: f runs over arrays.
absl::StatusOr<Literal> ReduceByRegion(const Instruction& instruction, Operands operands,
                                       Evaluation& evaluation) {
  const ReductionDims split = SplitDimensions(instruction);
  const std::size_t n = operands.size() / 2;
  const Shape& first =
      instruction.shape().IsTuple() ? instruction.shape().tuple()[0] : instruction.shape();
  const int64_t outputs = first.num_elements();
  const int64_t count = outputs == 0 ? 0 : operands[0]->shape().num_elements() / outputs;
  std::vector<Literal> columns, results;
  std::vector<const std::byte*> arguments(2 * n);
  std::vector<std::byte*> accumulators(n);
  for (std::size_t k = 0; k < n; ++k) {
    columns.push_back(Transposed(*operands[k], Joined(split.reduced, split.kept)));
    results.push_back(Literal::Uninitialized(Shape(operands[k]->shape().dtype(), first.dims())));
    Fill(ByteWidth(operands[k]->shape().dtype()), operands[n + k]->raw(), outputs,
         results[k].mutable_raw());
    accumulators[k] = results[k].mutable_raw();
    arguments[k] = accumulators[k];
  }
  RegionEvaluator region(*instruction.to_apply(), outputs, evaluation);
  for (int64_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      arguments[n + k] = columns[k].raw() + i * outputs * ByteWidth(columns[k].shape().dtype());
    }
    LAZULI_RETURN_IF_ERROR(region.Run(arguments, accumulators, outputs));
  }
  return instruction.shape().IsTuple() ? Literal::Tuple(std::move(results)) : std::move(results[0]);
}

}  // namespace

absl::StatusOr<Literal> EvaluateReduce(const Instruction& instruction, Operands operands,
                                       Evaluation& evaluation) {
  if (operands.size() == 2) {
    const std::optional<Opcode> monoid = MonoidOf(*instruction.to_apply());
    const DType dtype = operands[0]->shape().dtype();
    if (monoid.has_value() && MonoidTakes(*monoid, dtype))
      return ReduceByMonoid(instruction, *monoid, *operands[0], *operands[1]);
  }
  return ReduceByRegion(instruction, operands, evaluation);
}

}  // namespace lazuli::hlo
