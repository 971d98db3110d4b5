// Functions whose results have sizes that depend on elements: nonzero, masked_select, unique, bincount. The host reads what a size
// depends on; positions are then tensors like others, so that gradients and programs need nothing new.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/reduce/reduce.h"
#include "lazy/tensor/engine.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

using Positions64 = std::vector<int64_t>;

// The elements, which the size of a result depends on. The sync is the reason's own, so that a dump and the counter say why the
// graph was cut here.
Literal ReadForSize(const Tensor& x) {
  Add(Counter::kSyncForSize);
  ThrowIfError(GetEngine().Sync(Context::Current(), /*wait=*/false, SyncReason::kSize));
  return ToLiteral(x);
}

Tensor IsNotZero(const Tensor& x) {
  return x.dtype() == DType::kPred ? x : Ne(x, Constant(0, x.dtype()));
}

// Where x is not 0, in row-major order.
Positions64 TruePositions(const Tensor& x) {
  const Literal mask = ReadForSize(IsNotZero(Detach(x)));
  const auto elements = mask.data<bool>();
  Positions64 found;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (elements[i]) found.push_back(static_cast<int64_t>(i));
  }
  return found;
}

Tensor Numbers(const Positions64& values, backend::Device device) {
  const auto n = static_cast<int64_t>(values.size());
  return FromLiteral(Literal::FromValues<int64_t>(Dims{n}, std::span(values)), device);
}

// Row-major positions in dims as one number per dim: [n] to [n, rank].
Tensor Unravelled(const Tensor& flat, absl::Span<const int64_t> dims) {
  Tensors columns;
  const auto number = [&](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  int64_t below = 1;
  for (std::size_t d = dims.size(); d-- > 0; below *= std::max<int64_t>(dims[d], 1)) {
    const Tensor above = below == 1 ? flat : FloorDivide(flat, number(below));
    columns.push_back(d == 0 ? above : Remainder(above, number(std::max<int64_t>(dims[d], 1))));
  }
  std::reverse(columns.begin(), columns.end());
  if (columns.empty()) return FullConstant(Shape(DType::kS64, {flat.dim(0), 0}), 0, flat.device());
  return Stack(columns, 1);
}

// Runs of equal neighbours: where each begins, of `size` elements or slices.
struct Runs {
  Positions64 starts;
  int64_t size;
};

Tensor Values(const Tensor& x, int64_t dim, const Runs& runs) {
  return IndexSelect(x, dim, Numbers(runs.starts, x.device()));
}

Tensor Counts(const Runs& runs, backend::Device device) {
  Positions64 counts;
  for (std::size_t i = 0; i < runs.starts.size(); ++i) {
    const int64_t end = i + 1 < runs.starts.size() ? runs.starts[i + 1] : runs.size;
    counts.push_back(end - runs.starts[i]);
  }
  return Numbers(counts, device);
}

// Which run each of the elements is in.
Tensor RunOfEach(const Runs& runs, backend::Device device) {
  Positions64 of(static_cast<std::size_t>(runs.size), 0);
  for (std::size_t i = 1; i < runs.starts.size(); ++i)
    of[static_cast<std::size_t>(runs.starts[i])] = 1;
  std::partial_sum(of.begin(), of.end(), of.begin());
  return Numbers(of, device);
}

// Of elements [n]. Nothing is like a NaN.
Runs RunsOf(const Tensor& x) {
  const int64_t n = x.dim(0);
  if (n == 0) return {{}, 0};
  const Tensor first = FullConstant(Shape(DType::kPred, {1}), 1, x.device());
  const Tensor changes = Ne(Narrow(x, 0, 1, n - 1), Narrow(x, 0, 0, n - 1));
  return {TruePositions(Cat({{first, changes}}, 0)), n};
}

// The slices [n, m] of x along dim as numbers of the host, which compare as they do.
template <class T>
struct HostRows {
  Literal elements;
  int64_t n, m;

  std::span<const T> row(int64_t i) const {
    return elements.data<T>().subspan(static_cast<std::size_t>(i * m), static_cast<std::size_t>(m));
  }
  bool IsBelow(int64_t a, int64_t b) const {
    const auto x = row(a), y = row(b);
    const auto below = [](T l, T r) { return l < r || (l == l && r != r); };  // NaN is the largest
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), below);
  }
  bool AreEqual(int64_t a, int64_t b) const {
    const auto x = row(a), y = row(b);
    return std::equal(x.begin(), x.end(), y.begin());
  }
};

template <class T>
Runs OrderRows(const HostRows<T>& rows, bool sorted, Positions64& order) {
  order.resize(static_cast<std::size_t>(rows.n));
  std::iota(order.begin(), order.end(), 0);
  if (sorted) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return rows.IsBelow(a, b); });
  }
  Runs runs{{}, rows.n};
  for (int64_t i = 0; i < rows.n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (i == 0 || !rows.AreEqual(order[at - 1], order[at])) runs.starts.push_back(i);
  }
  return runs;
}

// The runs of slices along dim, in order if they are to be; `order`: where they stood.
Runs RunsOfSlices(const Tensor& x, int64_t dim, bool sorted, Positions64& order) {
  const int64_t n = x.dim(dim), m = n == 0 ? 0 : x.shape().num_elements() / n;
  Dims dims;
  dims.push_back(dim);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != dim) dims.push_back(d);
  }
  const DType wide = IsFloat(x.dtype())         ? DType::kF64
                     : x.dtype() == DType::kU64 ? DType::kU64
                                                : DType::kS64;
  const Literal elements = ReadForSize(To(Permute(Detach(x), dims), wide));
  if (wide == DType::kF64) return OrderRows(HostRows<double>{elements, n, m}, sorted, order);
  if (wide == DType::kU64) return OrderRows(HostRows<uint64_t>{elements, n, m}, sorted, order);
  return OrderRows(HostRows<int64_t>{elements, n, m}, sorted, order);
}

using Picked = std::tuple<Tensor, Tensor, Tensor>;

// What unique functions give of `ordered`, whose elements along dim stood at `from` (undefined: where they are).
Picked WithoutRepetition(const Tensor& ordered, const Tensor& from, int64_t dim, const Runs& runs,
                         const Dims& inverse_dims, bool inverse, bool counts) {
  const backend::Device device = ordered.device();
  Picked result{Values(ordered, dim, runs), Tensor(), Tensor()};
  if (inverse) {
    const Tensor run = RunOfEach(runs, device);
    const Tensor there = from.defined() ? IndexCopy(run, 0, from, run) : run;
    std::get<1>(result) = Reshape(there, inverse_dims);
  }
  if (counts) std::get<2>(result) = Counts(runs, device);
  return result;
}

Picked UniqueSlices(std::string_view op, const Tensor& x, int64_t dim, bool sorted, bool inverse,
                    bool counts) {
  const int64_t d = NormalizeDim(op, dim, x.rank());
  if (x.shape().num_elements() == 0 && x.dim(d) > 0)
    ThrowRecordError(op, InvalidArgument("slices of ", x.shape(), " along dim ", d, " are empty"));
  Positions64 order;
  const Runs runs = RunsOfSlices(x, d, sorted, order);
  if (!sorted) return WithoutRepetition(x, Tensor(), d, runs, {x.dim(d)}, inverse, counts);
  const Tensor from = Numbers(order, x.device());
  return WithoutRepetition(IndexSelect(x, d, from), from, d, runs, {x.dim(d)}, inverse, counts);
}

void CheckComparable(std::string_view op, const Tensor& x) {
  if (IsComplex(x.dtype()))
    ThrowRecordError(op, WrongType("takes numbers that have an order, not ", x.shape()));
}

// x with the value behind its elements along dim, as data: a program that takes it does not know what size x had.
Tensor PaddedByHost(const Tensor& x, int64_t dim, const Shape& shape, double value) {
  const Literal read = ToLiteral(x);
  Literal padded = Literal::Full(shape, value);
  std::size_t blocks = 1;
  for (int64_t d = 0; d < dim; ++d) blocks *= static_cast<std::size_t>(x.dim(d));
  const std::size_t from = static_cast<std::size_t>(read.byte_size()) /
                           std::max<std::size_t>(blocks, 1),
                    to = static_cast<std::size_t>(padded.byte_size()) /
                         std::max<std::size_t>(blocks, 1);
  for (std::size_t i = 0; i < blocks && from > 0; ++i) {
    std::memcpy(padded.mutable_raw() + i * to, read.raw() + i * from, from);
  }
  return FromLiteral(padded, x.device());
}

}  // namespace

Tensor Nonzero(const Tensor& x) {
  const FunctionScope function("nonzero");
  return Unravelled(Numbers(TruePositions(x), x.device()), x.shape().dims());
}

Tensor Argwhere(const Tensor& x) { return Nonzero(x); }

Tensor NonzeroStatic(const Tensor& x, int64_t size, int64_t fill_value) {
  static constexpr char kOp[] = "nonzero_static";
  if (size < 0) ThrowRecordError(kOp, InvalidArgument("size must not be negative, is ", size));
  const FunctionScope function(kOp);
  const Tensor mask = Reshape(IsNotZero(Detach(x)), {-1});
  const auto number = [&](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  const Tensor before = Sub(Cumsum(mask, 0), number(1));
  // What is false or too much goes to one place behind the others, which is cut off.
  const Tensor place = Where(LogicalAnd(mask, Lt(before, number(size))), before, number(size));
  const Tensor nowhere = FullConstant(Shape(DType::kS64, {size + 1}), -1, x.device());
  const Tensor from = Positions({mask.dim(0)}, 0, x.device());
  const Tensor found = Narrow(IndexCopy(nowhere, 0, place, from), 0, 0, size);
  const Tensor rows = Unravelled(found, x.shape().dims());
  return Where(Unsqueeze(Lt(found, number(0)), 1), number(fill_value), rows);
}

Tensors Where(const Tensor& given) {
  const Tensor condition = given.rank() == 0 ? Reshape(given, {1}) : given;
  const Tensor rows = Nonzero(condition);
  Tensors columns;
  for (int64_t d = 0; d < condition.rank(); ++d) columns.push_back(Select(rows, 1, d));
  return columns;
}

Tensor MaskedSelect(const Tensor& x, const Tensor& mask) {
  static constexpr char kOp[] = "masked_select";
  if (mask.dtype() != DType::kPred)
    ThrowRecordError(kOp, InvalidArgument("mask must be of bools, is ", mask.shape()));
  const FunctionScope function(kOp);
  const auto dims = BroadcastDims(x.shape(), mask.shape());
  if (!dims.ok()) ThrowRecordError(kOp, dims.status());
  const Tensor flat = Reshape(BroadcastTo(x, *dims), {-1});
  return IndexSelect(flat, 0, Numbers(TruePositions(BroadcastTo(mask, *dims)), x.device()));
}

Picked Unique(const Tensor& x, bool, bool return_inverse, bool return_counts,
              std::optional<int64_t> dim) {
  static constexpr char kOp[] = "unique";
  CheckComparable(kOp, x);
  const FunctionScope function(kOp);
  if (dim) return UniqueSlices(kOp, x, *dim, /*sorted=*/true, return_inverse, return_counts);
  const bool is_bool = x.dtype() == DType::kPred;
  const Tensor flat = Reshape(is_bool ? To(x, DType::kU8) : x, {-1});
  const auto [ordered, from] = Sort(flat, 0, /*descending=*/false);
  Picked result = WithoutRepetition(ordered, from, 0, RunsOf(ordered), DimsOf(x.shape()),
                                    return_inverse, return_counts);
  if (is_bool) std::get<0>(result) = To(std::get<0>(result), DType::kPred);
  return result;
}

Picked UniqueConsecutive(const Tensor& x, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  static constexpr char kOp[] = "unique_consecutive";
  CheckComparable(kOp, x);
  const FunctionScope function(kOp);
  if (dim) return UniqueSlices(kOp, x, *dim, /*sorted=*/false, return_inverse, return_counts);
  const Tensor flat = Reshape(x, {-1});
  return WithoutRepetition(flat, Tensor(), 0, RunsOf(flat), DimsOf(x.shape()), return_inverse,
                           return_counts);
}

Tensor Bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  static constexpr char kOp[] = "bincount";
  if (x.rank() != 1 || !IsIntegral(x.dtype()))
    ThrowRecordError(kOp, WrongType("takes integers [n], not ", x.shape()));
  if (weights.defined() && weights.shape().dims() != x.shape().dims()) {
    ThrowRecordError(
        kOp, InvalidArgument("weights ", weights.shape(), " must have the dims of x ", x.shape()));
  }
  if (minlength < 0)
    ThrowRecordError(kOp, InvalidArgument("minlength must not be negative, is ", minlength));
  const FunctionScope function(kOp);
  int64_t size = minlength;
  const Tensor index = To(Detach(x), DType::kS64);
  if (x.dim(0) > 0) {
    const Literal range = ReadForSize(Stack({{Amin(index), Amax(index)}}, 0));
    const auto [least, largest] = std::pair(range.data<int64_t>()[0], range.data<int64_t>()[1]);
    if (least < 0)
      ThrowRecordError(kOp, InvalidArgument("takes no negative integers; one is ", least));
    size = std::max(size, largest + 1);
  }
  DType dtype = DType::kS64;
  if (weights.defined()) dtype = weights.dtype() == DType::kF32 ? DType::kF32 : DType::kF64;
  const Tensor none = FullConstant(Shape(dtype, {size}), 0, x.device());
  const Tensor added = weights.defined()
                           ? To(Detach(weights), dtype)
                           : FullConstant(Shape(dtype, x.shape().dims()), 1, x.device());
  return IndexAdd(none, 0, index, added);
}

Tensor OneHot(const Tensor& index, int64_t classes) {
  static constexpr char kOp[] = "one_hot";
  if (classes != -1) return OneHot(index, classes, DType::kS64);
  if (index.shape().num_elements() == 0)
    ThrowRecordError(kOp, InvalidArgument("no index of ", index.shape(), " says how many classes"));
  if (!IsIntegral(index.dtype()))
    ThrowRecordError(kOp, InvalidArgument("takes integers, not ", index.shape()));
  const FunctionScope function(kOp);
  const Literal largest = ReadForSize(To(Amax(Detach(index)), DType::kS64));
  return OneHot(index, std::max<int64_t>(largest.data<int64_t>()[0] + 1, 1), DType::kS64);
}

Tensor RepeatInterleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  static constexpr char kOp[] = "repeat_interleave";
  if (repeats.rank() != 1 || !IsIntegral(repeats.dtype()))
    ThrowRecordError(kOp, InvalidArgument("repeats must be integers [n], are ", repeats.shape()));
  const FunctionScope function(kOp);
  const Tensor counts = To(Detach(repeats), DType::kS64);
  int64_t size = output_size.value_or(0);
  if (!output_size && counts.dim(0) > 0) {
    const Literal range = ReadForSize(Stack({{Amin(counts), Sum(counts)}}, 0));
    if (range.data<int64_t>()[0] < 0)
      ThrowRecordError(kOp, InvalidArgument("repeats can not be negative"));
    size = range.data<int64_t>()[1];
  }
  // Position j is of the first element whose copies, and those before it, are more than j.
  const Tensor none = FullConstant(Shape(DType::kS64, {size + 1}), 0, repeats.device());
  const Tensor one = FullConstant(counts.shape(), 1, repeats.device());
  const Tensor ends = IndexAdd(none, 0, Cumsum(counts, 0), one);
  return Narrow(Cumsum(ends, 0), 0, 0, size);
}

Tensor RepeatInterleave(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                        std::optional<int64_t> output_size) {
  constexpr char kOp[] = "repeat_interleave";
  const Tensor in = dim ? WithDim(x) : Reshape(x, {-1});
  const int64_t d = NormalizeDim(kOp, dim.value_or(0), in.rank());
  const bool one = repeats.rank() == 0 || (repeats.rank() == 1 && repeats.dim(0) == 1);
  if (!one && (repeats.rank() != 1 || repeats.dim(0) != in.dim(d))) {
    ThrowRecordError(kOp, InvalidArgument("repeats ", repeats.shape(),
                                          " must have one number, or one for each of dim ", d,
                                          " of ", in.shape()));
  }
  const Tensor counts = one ? BroadcastTo(Reshape(repeats, {1}), {{in.dim(d)}}) : repeats;
  return IndexSelect(in, d, RepeatInterleave(counts, output_size));
}

Tensor PadToBucket(const Tensor& x, int64_t dim, absl::Span<const int64_t> buckets,
                   const Number& value) {
  static constexpr char kOp[] = "pad_to_bucket";
  const int64_t d = NormalizeDim(kOp, dim, x.rank());
  const int64_t n = x.dim(d);
  int64_t size = 1;
  while (size < n) size *= 2;
  std::optional<int64_t> bucket;
  for (const int64_t b : buckets) {
    if (b >= n) bucket = std::min(b, bucket.value_or(b));
  }
  size = bucket.value_or(size);
  if (size == n) return x;
  const FunctionScope function(kOp);
  const Value fill = value.As(x.dtype());  // refuses what does not fit
  Dims dims = DimsOf(x.shape());
  dims[At(d)] = size;
  const absl::StatusOr<Shape> padded = Shape::Make(x.dtype(), dims);
  if (!padded.ok()) ThrowRecordError(kOp, padded.status());
  if (!x.requires_grad() || !GradEnabled()) return PaddedByHost(x, d, *padded, value.as_double());
  dims[At(d)] = size - n;
  return Cat({{x, Full(dims, fill, x.device())}}, d);
}

}  // namespace lazuli::lazy
