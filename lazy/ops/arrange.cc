// Tensors that are joined, repeated, rolled and padded.
#include <algorithm>
#include <numeric>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// x with dims of size 1 until it has this rank: in front, but the third one behind [n] and [n, m],
// as PyTorch's atleast_3d has it.
Tensor AtLeast(const Tensor& x, int64_t rank) {
  if (x.rank() >= rank) return x;
  Dims dims = DimsOf(x.shape());
  if (rank == 3 && x.rank() > 0) dims.push_back(1);
  dims.insert(dims.begin(), static_cast<std::size_t>(rank) - dims.size(), 1);
  return Reshape(x, dims);
}
Tensors AtLeast(absl::Span<const Tensor> xs, int64_t rank) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(AtLeast(x, rank));
  return all;
}

// x with `low` and `high` elements more along d, which are others of x.
Tensor Extended(const Tensor& x, int64_t d, int64_t low, int64_t high, std::string_view mode) {
  const int64_t n = x.dim(d);
  const Tensor at = Arange(low + n + high, DType::kS64, x.device()) - static_cast<double>(low);
  const auto number = [](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  if (mode == "replicate") return IndexSelect(x, d, ClampBetween(at, number(0), number(n - 1)));
  if (mode == "circular") return IndexSelect(x, d, Remainder(at, number(n)));
  // reflect: 3 2 1 0 1 2 3 2 1 0 ...
  const Tensor size = Abs(at);
  return IndexSelect(x, d, Where(Ge(size, number(n)), static_cast<double>(2 * n - 2) - size, size));
}

}  // namespace

Tensor Tile(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims counts(std::max<std::size_t>(static_cast<std::size_t>(x.rank()), dims.size()), 1);
  std::copy(dims.begin(), dims.end(), counts.end() - static_cast<std::ptrdiff_t>(dims.size()));
  return Repeat(x, counts);
}

Tensor Roll(const Tensor& x, absl::Span<const int64_t> shifts, absl::Span<const int64_t> dims) {
  if (dims.empty() && shifts.size() == 1) {
    const int64_t first[] = {0};
    return Reshape(Roll(Reshape(x, {-1}), shifts, first), x.shape().dims());
  }
  if (shifts.size() != dims.size() || shifts.empty()) {
    ThrowRecordError("roll", InvalidArgument("shifts and dimensions must align: ", shifts.size(),
                                             " shifts and ", dims.size(), " dims"));
  }
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = NormalizeDim("roll", dims[i], x.rank()), n = x.dim(d);
    if (n == 0) continue;
    const int64_t first = (n - shifts[i] % n) % n;
    if (first == 0) continue;
    const Tensor parts[] = {Narrow(y, d, first, n - first), Narrow(y, d, 0, first)};
    y = Cat(parts, d);
  }
  return y.impl() == x.impl() ? Clone(x) : y;
}

Tensor Rot90(const Tensor& x, int64_t k, absl::Span<const int64_t> dims) {
  const Dims plane = dims.empty() ? Dims{0, 1} : Dims(dims.begin(), dims.end());
  if (plane.size() != 2 || x.rank() < 2) {
    ThrowRecordError("rot90", InvalidArgument("expects two dims of a tensor that has them, not (",
                                              Join(plane, ", "), ") of ", x.shape()));
  }
  const int64_t a = NormalizeDim("rot90", plane[0], x.rank());
  const int64_t b = NormalizeDim("rot90", plane[1], x.rank());
  if (a == b)
    ThrowRecordError("rot90", InvalidArgument("a dim is named twice in (", Join(plane, ", "), ")"));
  const int64_t first[] = {a}, second[] = {b};
  switch (((k % 4) + 4) % 4) {
    case 1:
      return Transpose(Flip(x, second), a, b);
    case 2:
      return Flip(x, plane);
    case 3:
      return Transpose(Flip(x, first), a, b);
    default:
      return Clone(x);
  }
}

Tensor Fliplr(const Tensor& x) {
  if (x.rank() < 2)
    ThrowRecordError("fliplr", InvalidArgument("takes a rank of 2 or more, not ", x.shape()));
  return Flip(x, {1});
}
Tensor Flipud(const Tensor& x) {
  if (x.rank() < 1)
    ThrowRecordError("flipud", InvalidArgument("takes a rank of 1 or more, not ", x.shape()));
  return Flip(x, {0});
}

Tensor Hstack(absl::Span<const Tensor> xs) {
  const Tensors all = AtLeast(xs, 1);
  return Cat(all, !all.empty() && all[0].rank() == 1 ? 0 : 1);
}
Tensor Vstack(absl::Span<const Tensor> xs) { return Cat(AtLeast(xs, 2), 0); }
Tensor Dstack(absl::Span<const Tensor> xs) { return Cat(AtLeast(xs, 3), 2); }
Tensor ColumnStack(absl::Span<const Tensor> xs) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(x.rank() <= 1 ? Reshape(x, {-1, 1}) : x);
  return Cat(all, 1);
}
Tensor BlockDiag(absl::Span<const Tensor> xs) {
  Tensors rows;
  int64_t columns = 0, before = 0;
  for (const Tensor& x : xs) {
    if (x.rank() > 2)
      ThrowRecordError("block_diag", InvalidArgument("takes ranks up to 2, not ", x.shape()));
    columns += x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  }
  for (const Tensor& x : AtLeast(xs, 2)) {
    const int64_t low[] = {0, before}, high[] = {0, columns - before - x.dim(1)}, none[] = {0, 0};
    rows.push_back(PadZeros(x, low, high, none));
    before += x.dim(1);
  }
  return Cat(rows, 0);
}

Tensors BroadcastTensors(absl::Span<const Tensor> xs) {
  Dims dims;
  for (const Tensor& x : xs) {
    absl::StatusOr<Dims> both = BroadcastDims(Shape(x.dtype(), dims), x.shape());
    if (!both.ok()) ThrowRecordError("broadcast_tensors", both.status());
    dims = *std::move(both);
  }
  Tensors stretched;
  for (const Tensor& x : xs) stretched.push_back(BroadcastTo(x, dims));
  return stretched;
}

Tensors Meshgrid(absl::Span<const Tensor> xs, std::string_view indexing) {
  if (indexing != "ij" && indexing != "xy") {
    ThrowRecordError("meshgrid", InvalidArgument("indexing must be ij or xy, is ", indexing));
  }
  if (xs.empty()) ThrowRecordError("meshgrid", InvalidArgument("needs at least one tensor"));
  Dims dims;
  for (const Tensor& x : xs) {
    if (x.rank() > 1)
      ThrowRecordError("meshgrid", InvalidArgument("takes ranks 0 and 1, not ", x.shape()));
    dims.push_back(x.shape().num_elements());
  }
  const bool swap = indexing == "xy" && xs.size() > 1;
  Tensors grids;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Dims own(dims.size(), 1);
    own[i] = dims[i];
    const Tensor grid = BroadcastTo(Reshape(xs[i], own), dims);
    grids.push_back(swap ? Transpose(grid, 0, 1) : grid);
  }
  return grids;
}

Tensor RepeatInterleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                        std::optional<int64_t> output_size) {
  if (repeats < 0) {
    ThrowRecordError("repeat_interleave",
                     InvalidArgument("repeats must not be negative, is ", repeats));
  }
  const Tensor in = dim ? WithDim(x) : Reshape(x, {-1});
  const int64_t d = NormalizeDim("repeat_interleave", dim.value_or(0), in.rank());
  Dims dims = DimsOf(in.shape()), apart = dims;
  apart.insert(apart.begin() + d + 1, repeats);
  dims[static_cast<std::size_t>(d)] *= repeats;
  if (output_size.value_or(dims[static_cast<std::size_t>(d)]) !=
      dims[static_cast<std::size_t>(d)]) {
    ThrowRecordError("repeat_interleave",
                     InvalidArgument("output_size is ", *output_size, ", but there are ",
                                     dims[static_cast<std::size_t>(d)], " elements"));
  }
  return Reshape(BroadcastTo(Unsqueeze(in, d + 1), apart), dims);
}

Tensor DiagEmbed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  if (x.rank() == 0)
    ThrowRecordError("diag_embed", InvalidArgument("takes a tensor with a dim, not ", x.shape()));
  const int64_t a = NormalizeDim("diag_embed", dim1, x.rank() + 1);
  const int64_t b = NormalizeDim("diag_embed", dim2, x.rank() + 1);
  if (a == b) {
    ThrowRecordError(
        "diag_embed",
        InvalidArgument("diagonal dimensions cannot be identical: ", dim1, ", ", dim2));
  }
  const int64_t last = x.rank() - 1, n = x.dim(last) + std::abs(offset);
  // Rows [..., n, 1] and [..., 1, n] beside each other, of which the diagonal stays.
  Dims low(static_cast<std::size_t>(x.rank()), 0), high = low;
  const Dims none = low;
  (offset > 0 ? low : high)[static_cast<std::size_t>(last)] = std::abs(offset);
  const Tensor columns = Unsqueeze(PadZeros(x, low, high, none), -2);
  const Dims plane{n, n};
  const Tensor row = Positions(plane, 0, x.device()), column = Positions(plane, 1, x.device());
  const Tensor on_it = Eq(column, row + static_cast<double>(offset));
  const Tensor embedded = Where(on_it, columns, Constant(0, x.dtype()));
  Dims order;
  for (int64_t d = 0, next = 0; d <= x.rank(); ++d)
    order.push_back(d == a ? x.rank() - 1 : d == b ? x.rank() : next++);
  return Permute(embedded, order);
}

Tensor Diag(const Tensor& x, int64_t diagonal) {
  if (x.rank() == 1) return DiagEmbed(x, diagonal, -2, -1);
  if (x.rank() != 2)
    ThrowRecordError("diag", InvalidArgument("takes a rank of 1 or 2, not ", x.shape()));
  return Clone(DiagonalView(x, diagonal, 0, 1));
}
Tensor Diagflat(const Tensor& x, int64_t offset) {
  return DiagEmbed(Reshape(x, {-1}), offset, -2, -1);
}

Tensor SumToSize(const Tensor& x, absl::Span<const int64_t> size) {
  const Shape wanted(x.dtype(), size);
  const absl::StatusOr<Dims> dims = BroadcastDims(wanted, x.shape());
  if (!dims.ok() || static_cast<int64_t>(size.size()) > x.rank() || *dims != DimsOf(x.shape())) {
    ThrowRecordError("sum_to_size", InvalidArgument("size {", Join(size, ", "),
                                                    "} is not expandable to size ", x.shape()));
  }
  const bool same = x.rank() > 0 && x.shape().dims() == wanted.dims();
  if (same || IsFloat(x.dtype()) || IsComplex(x.dtype())) return SumToShape(x, wanted);
  return SumToShape(x, Shape(DType::kS64, size));  // as sums of integers are
}

namespace {
// How many elements of a matrix lie at or below the diagonal: row i has
// clamp(offset + 1 + i, 0, columns) of them.
int64_t CountBelow(int64_t rows, int64_t columns, int64_t offset) {
  const auto sum_up_to = [columns](int64_t k) {
    const int64_t rising = std::clamp<int64_t>(k, 0, columns);
    return rising * (rising + 1) / 2 + std::max<int64_t>(k - columns, 0) * columns;
  };
  return sum_up_to(offset + rows) - sum_up_to(offset);
}

// Rows and columns of the elements at or below a diagonal, or at or above it: [2, n].
Tensor TriangleIndices(FunctionName op, int64_t rows, int64_t columns, bool lower,
                       int64_t offset, std::optional<DType> dtype, backend::Device device) {
  if (rows < 0 || columns < 0)
    ThrowRecordError(
        op, InvalidArgument("row and col must not be negative, are ", rows, " and ", columns));
  const FunctionScope function(op);
  offset = std::clamp(offset, -rows, columns);
  const Tensor row = Reshape(Arange(rows, DType::kS64, device), {rows, 1});
  const Tensor column = Arange(columns, DType::kS64, device) - static_cast<double>(offset);
  const Tensor mask = lower ? Le(column, row) : Ge(column, row);
  const int64_t n = lower ? CountBelow(rows, columns, offset)
                          : rows * columns - CountBelow(rows, columns, offset - 1);
  return To(Clone(Transpose(NonzeroStatic(mask, n, 0), 0, 1)), dtype.value_or(DType::kS64));
}
}  // namespace
Tensor TrilIndices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   backend::Device device) {
  return TriangleIndices("tril_indices", row, col, /*lower=*/true, offset, dtype, device);
}
Tensor TriuIndices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                   backend::Device device) {
  return TriangleIndices("triu_indices", row, col, /*lower=*/false, offset, dtype, device);
}

Tensor Pad(const Tensor& x, absl::Span<const int64_t> pad, std::string_view mode,
           std::optional<double> value) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (pad.size() % 2 != 0 || pad.size() > 2 * rank) {
    ThrowRecordError("pad", InvalidArgument("takes two numbers for each of the last dims, not (",
                                            Join(pad, ", "), ") of ", x.shape()));
  }
  Dims low(rank, 0), high(rank, 0);
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    low[rank - 1 - i] = pad[2 * i];
    high[rank - 1 - i] = pad[2 * i + 1];
    const int64_t n = x.dim(static_cast<int64_t>(rank - 1 - i));
    if (n + pad[2 * i] + pad[2 * i + 1] < 0) {
      ThrowRecordError(
          "pad", InvalidArgument("(", Join(pad, ", "), ") leaves a negative size of ", x.shape()));
    }
  }
  const Dims none(rank, 0);
  if (mode == "constant") {
    const Tensor padded = PadZeros(x, low, high, none);
    if (value.value_or(0) == 0) return padded.impl() == x.impl() ? Clone(x) : padded;
    const Tensor inside = PadZeros(
        FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device()), low, high, none);
    return Where(inside, padded, Constant(*value, x.dtype()));
  }
  if (mode != "reflect" && mode != "replicate" && mode != "circular") {
    ThrowRecordError("pad", Unimplemented("has no mode ", mode,
                                          "; there are constant, reflect, replicate and circular"));
  }
  Tensor y = x;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<int64_t>(d);
    const int64_t n = x.dim(dim), most = mode == "reflect" ? n - 1 : n;
    if (low[d] == 0 && high[d] == 0) continue;
    if (n == 0 || (mode != "replicate" && std::max(low[d], high[d]) > most)) {
      ThrowRecordError("pad", InvalidArgument("padding of (", low[d], ", ", high[d],
                                              ") is too large for dim ", d, " of ", x.shape()));
    }
    // What is cut off is no padding.
    const int64_t cut_low = std::max<int64_t>(-low[d], 0),
                  cut_high = std::max<int64_t>(-high[d], 0);
    // A circle closes where it is cut; the others go on as x did.
    if (mode == "circular") y = Narrow(y, dim, cut_low, n - cut_low - cut_high);
    y = Extended(y, dim, std::max<int64_t>(low[d], 0), std::max<int64_t>(high[d], 0), mode);
    if (mode != "circular") y = Narrow(y, dim, cut_low, y.dim(dim) - cut_low - cut_high);
  }
  return y.impl() == x.impl() ? Clone(x) : y;
}

Tensor ConstantPadNd(const Tensor& x, absl::Span<const int64_t> pad, const Number& value) {
  const Tensor padded = Pad(x, pad, "constant", std::nullopt);
  const Tensor ones = FullConstant(Shape(DType::kPred, x.shape().dims()), 1, x.device());
  return Where(Pad(ones, pad, "constant", std::nullopt), padded, value.As(x.dtype()));
}

namespace {
int64_t Elements(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (const int64_t size : dims) n *= size;
  return n;
}
}  // namespace

Tensor PixelShuffle(const Tensor& x, int64_t factor) {
  constexpr int64_t kMost = int64_t{1} << 20;  // no channels are divided by the square of more
  const int64_t r = x.rank();
  if (r < 3 || factor < 1 || factor > kMost || x.dim(r - 3) % (factor * factor) != 0) {
    ThrowRecordError("pixel_shuffle",
                     InvalidArgument("takes [..., C * r^2, H, W] for the factor r, not ", x.shape(),
                                     " for ", factor));
  }
  const int64_t c = x.dim(r - 3) / (factor * factor), h = x.dim(r - 2), w = x.dim(r - 1);
  Dims lead(x.shape().dims().begin(), x.shape().dims().end() - 3);
  const Tensor apart =
      Permute(Reshape(x, {Elements(lead), c, factor, factor, h, w}), {0, 1, 4, 2, 5, 3});
  lead.insert(lead.end(), {c, h * factor, w * factor});
  return Reshape(apart, lead);
}
Tensor PixelUnshuffle(const Tensor& x, int64_t factor) {
  const int64_t r = x.rank();
  if (r < 3 || factor < 1 || x.dim(r - 2) % factor != 0 || x.dim(r - 1) % factor != 0) {
    ThrowRecordError("pixel_unshuffle",
                     InvalidArgument("takes [..., C, H * r, W * r] for the factor r, not ",
                                     x.shape(), " for ", factor));
  }
  const int64_t c = x.dim(r - 3), h = x.dim(r - 2) / factor, w = x.dim(r - 1) / factor;
  Dims lead(x.shape().dims().begin(), x.shape().dims().end() - 3);
  const Tensor apart =
      Permute(Reshape(x, {Elements(lead), c, h, factor, w, factor}), {0, 1, 3, 5, 2, 4});
  lead.insert(lead.end(), {c * factor * factor, h, w});
  return Reshape(apart, lead);
}
Tensor ChannelShuffle(const Tensor& x, int64_t groups) {
  if (x.rank() < 3 || groups < 1 || x.dim(1) % groups != 0) {
    ThrowRecordError("channel_shuffle",
                     InvalidArgument("takes [N, C, ...] with groups that divide C, not ", x.shape(),
                                     " and ", groups));
  }
  const Tensor apart = Reshape(x, {x.dim(0), groups, x.dim(1) / groups, -1});
  return Reshape(Transpose(apart, 1, 2), x.shape().dims());
}

}  // namespace lazuli::lazy
