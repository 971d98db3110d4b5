// Transpose rules of contractions, Fourier transforms and triangular systems.
#include <algorithm>
#include <utility>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/status.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

bool Contains(const ir::Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// --- dot

// One side of a dot: which of its dimensions are what.
struct DotSide {
  const ir::Dims &batch, &contracting;
  ir::Dims free{};
  DotSide(const ir::Dims& b, const ir::Dims& c, int64_t rank) : batch(b), contracting(c) {
    for (int64_t d = 0; d < rank; ++d) {
      if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
    }
  }
};

ir::Dims Range(int64_t begin, std::size_t count) {
  ir::Dims all;
  for (std::size_t k = 0; k < count; ++k) all.push_back(begin + static_cast<int64_t>(k));
  return all;
}

// The cotangent of one operand: the product of the result's with the other operand, over the dimensions
// that only the other has. `ct_free` is where those are in the result.
Op DotCotangent(TransposeStep& s, std::size_t k, const DotSide& mine, const DotSide& other,
                int64_t ct_free) {
  hlo::DotAttrs attrs = s.i.attrs_as<hlo::DotAttrs>();
  attrs.lhs_batch_dims = Range(0, mine.batch.size());
  attrs.rhs_batch_dims = other.batch;
  attrs.lhs_contracting_dims = Range(ct_free, other.free.size());
  attrs.rhs_contracting_dims = other.free;
  const Op ct = s.ct();
  const DType dtype = s.shape(k).dtype();
  const Op product = s.b.Dot(ct, s.b.Convert(s.x(1 - k), ct.dtype()), attrs);
  // It has the batch, what was free here, and what was contracted, in the other's order.
  ir::Dims order(static_cast<std::size_t>(s.shape(k).rank()));
  int64_t at = 0;
  for (const int64_t d : mine.batch) order[static_cast<std::size_t>(d)] = at++;
  for (const int64_t d : mine.free) order[static_cast<std::size_t>(d)] = at++;
  ir::Dims sorted = other.contracting;
  std::sort(sorted.begin(), sorted.end());
  for (const int64_t d : sorted) {
    const auto pair = std::find(other.contracting.begin(), other.contracting.end(), d);
    const int64_t here =
        mine.contracting[static_cast<std::size_t>(pair - other.contracting.begin())];
    order[static_cast<std::size_t>(here)] = at++;
  }
  const bool in_order = std::is_sorted(order.begin(), order.end());
  return s.b.Convert(in_order ? product : s.b.Transpose(product, order), dtype);
}

// --- convolution

int64_t Dilated(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

// Sizes of one spatial dimension before and after dilation.
struct SpatialSizes {
  int64_t input, kernel, output;
  SpatialSizes(const TransposeStep& s, const hlo::ConvolutionAttrs& attrs, std::size_t d) {
    const hlo::WindowDim& dim = attrs.window[d];
    input = Dilated(s.shape(0).dim(attrs.dim_labels.input_spatial[d]), dim.base_dilation);
    kernel = Dilated(s.shape(1).dim(attrs.dim_labels.kernel_spatial[d]), dim.window_dilation);
    output = Dilated(s.i.shape().dim(attrs.dim_labels.output_spatial[d]), dim.stride);
  }
};

// x with its dimension `from`, of groups * n, cut so that the groups come to be the slow part of
// dimension `to`.
Op MoveGroups(Builder& b, Op x, int64_t from, int64_t to, int64_t groups) {
  ir::Dims dims(x.shape().dims().begin(), x.shape().dims().end()), order;
  const ir::Dims before = dims;
  dims[static_cast<std::size_t>(from)] /= groups;
  dims.insert(dims.begin() + from, groups);
  const Op cut = b.Reshape(x, dims);
  // Dimensions of the cut array: `from` are the groups, the others from there on moved up.
  const auto moved = [&](int64_t d) { return d >= from ? d + 1 : d; };
  for (int64_t d = 0; d < static_cast<int64_t>(before.size()); ++d) {
    if (d == to) order.push_back(from);
    order.push_back(moved(d));
  }
  ir::Dims joined = before;
  joined[static_cast<std::size_t>(from)] /= groups;
  joined[static_cast<std::size_t>(to)] *= groups;
  return b.Reshape(b.Transpose(cut, order), joined);
}

// Of the input: the cotangent convolved with the kernel the other way round.
Op InputCotangent(TransposeStep& s, const hlo::ConvolutionAttrs& given) {
  const hlo::ConvDims& labels = given.dim_labels;
  hlo::ConvolutionAttrs attrs = given;
  for (std::size_t d = 0; d < attrs.window.size(); ++d) {
    const SpatialSizes sizes(s, given, d);
    hlo::WindowDim& dim = attrs.window[d];
    dim.pad_low = sizes.kernel - dim.pad_low - 1;
    dim.pad_high = sizes.input + sizes.kernel - 1 - sizes.output - dim.pad_low;
    std::swap(dim.stride, dim.base_dilation);
    dim.reversal = !dim.reversal;
  }
  attrs.dim_labels = {.input_batch = labels.output_batch,
                      .input_feature = labels.output_feature,
                      .input_spatial = labels.output_spatial,
                      .kernel_input_feature = labels.kernel_output_feature,
                      .kernel_output_feature = labels.kernel_input_feature,
                      .kernel_spatial = labels.kernel_spatial,
                      .output_batch = labels.input_batch,
                      .output_feature = labels.input_feature,
                      .output_spatial = labels.input_spatial};
  const int64_t groups = std::max(given.feature_group_count, given.batch_group_count);
  attrs.feature_group_count = groups;
  attrs.batch_group_count = 1;
  Op kernel = s.b.Convert(s.x(1), s.i.shape().dtype());
  if (groups > 1)
    kernel =
        MoveGroups(s.b, kernel, labels.kernel_output_feature, labels.kernel_input_feature, groups);
  const Op product = s.b.Convolution(s.ct(), kernel, attrs);
  if (given.batch_group_count == 1) return product;
  return MoveGroups(s.b, product, labels.input_feature, labels.input_batch, groups);
}

// Of the kernel: the input convolved with the cotangent, batch and features exchanged.
Op KernelCotangent(TransposeStep& s, const hlo::ConvolutionAttrs& given) {
  const hlo::ConvDims& labels = given.dim_labels;
  hlo::ConvolutionAttrs attrs = given;
  ir::Dims reversed;
  for (std::size_t d = 0; d < attrs.window.size(); ++d) {
    const SpatialSizes sizes(s, given, d);
    hlo::WindowDim& dim = attrs.window[d];
    dim.pad_high = sizes.output - sizes.input + sizes.kernel - dim.pad_low - 1;
    dim.size = s.i.shape().dim(labels.output_spatial[d]);
    std::swap(dim.stride, dim.window_dilation);
    if (dim.reversal) reversed.push_back(labels.kernel_spatial[d]);
    dim.reversal = false;
  }
  attrs.dim_labels = {.input_batch = labels.input_feature,
                      .input_feature = labels.input_batch,
                      .input_spatial = labels.input_spatial,
                      .kernel_input_feature = labels.output_batch,
                      .kernel_output_feature = labels.output_feature,
                      .kernel_spatial = labels.output_spatial,
                      .output_batch = labels.kernel_input_feature,
                      .output_feature = labels.kernel_output_feature,
                      .output_spatial = labels.kernel_spatial};
  attrs.feature_group_count = given.batch_group_count;
  attrs.batch_group_count = given.feature_group_count;
  const Op input = s.b.Convert(s.x(0), s.i.shape().dtype());
  const Op product = s.b.Convolution(input, s.ct(), attrs);
  return reversed.empty() ? product : s.b.Reverse(product, reversed);
}

// --- fft

int64_t Product(const ir::Dims& dims) {
  int64_t product = 1;
  for (const int64_t d : dims) product *= d;
  return product;
}

// 1 for coefficients that stand for themselves, 2 for those that stand for their mirror image, too,
// divided by the number of elements.
Op SpectrumWeights(TransposeStep& s, const hlo::FftAttrs& attrs, DType dtype) {
  const Shape shape(DType::kS32, s.shape(0).dims());
  const int64_t length = attrs.fft_length.back();
  const Value k = s.b.Iota(shape, shape.rank() - 1);
  const Value alone = Either(Equal(k, k.Number(0)), Equal(k + k, k.Number(double(length))));
  const Value one = s.b.Full(Shape(dtype, shape.dims()), 1 / double(Product(attrs.fft_length)));
  return Choose(alone, one, one + one).op;
}

}  // namespace

absl::Status TransposeDot(TransposeStep& s) {
  if (s.linear(0) && s.linear(1)) return s.NotLinear();
  const auto& attrs = s.i.attrs_as<hlo::DotAttrs>();
  const DotSide x(attrs.lhs_batch_dims, attrs.lhs_contracting_dims, s.shape(0).rank());
  const DotSide y(attrs.rhs_batch_dims, attrs.rhs_contracting_dims, s.shape(1).rank());
  const auto batch = static_cast<int64_t>(x.batch.size());
  if (s.linear(0))
    s.Give(0, DotCotangent(s, 0, x, y, batch + static_cast<int64_t>(x.free.size())));
  else
    s.Give(1, DotCotangent(s, 1, y, x, batch));
  return absl::OkStatus();
}

absl::Status TransposeConvolution(TransposeStep& s) {
  if (s.linear(0) && s.linear(1)) return s.NotLinear();
  const auto& attrs = s.i.attrs_as<hlo::ConvolutionAttrs>();
  const std::size_t k = s.linear(0) ? 0 : 1;
  const Op made = k == 0 ? InputCotangent(s, attrs) : KernelCotangent(s, attrs);
  s.Give(k, s.b.Convert(made, s.shape(k).dtype()));
  return absl::OkStatus();
}

absl::Status TransposeFft(TransposeStep& s) {
  const auto& attrs = s.i.attrs_as<hlo::FftAttrs>();
  const Op ct = s.ct();
  hlo::FftAttrs other = attrs;
  if (attrs.fft_type == hlo::FftType::kRfft) {
    ir::Dims none(static_cast<std::size_t>(ct.rank()), 0), high = none;
    high.back() = attrs.fft_length.back() - ct.shape().dims().back();
    other.fft_type = hlo::FftType::kFft;
    const Op wide = s.b.Pad(ct, s.b.Scalar(ct.dtype(), 0), none, high, none);
    s.Give(0, RealPart(s.b.Add(Opcode::kFft, {wide}, other)).op);
  } else if (attrs.fft_type == hlo::FftType::kIrfft) {
    other.fft_type = hlo::FftType::kRfft;
    const Value spectrum = s.b.Add(Opcode::kFft, {ct}, other);
    const Op weights = SpectrumWeights(s, attrs, ct.dtype());
    s.Give(0, (Conj(spectrum) * As(weights, spectrum.op.dtype())).op);
  } else {
    s.Give(0, AddLike(s.b, s.i, {ct}));
  }
  return absl::OkStatus();
}

absl::Status TransposeTriangularSolve(TransposeStep& s) {
  if (s.linear(0)) return s.NotLinear();
  auto attrs = s.i.attrs_as<hlo::TriangularSolveAttrs>();
  Op a = s.x(0);
  switch (attrs.transpose_a) {
    case hlo::TransposeKind::kNoTranspose:
      attrs.transpose_a = hlo::TransposeKind::kTranspose;
      break;
    case hlo::TransposeKind::kAdjoint:
      a = Conj(a).op;
      [[fallthrough]];
    case hlo::TransposeKind::kTranspose:
      attrs.transpose_a = hlo::TransposeKind::kNoTranspose;
      break;
  }
  s.Give(1, s.b.Add(Opcode::kTriangularSolve, {a, s.ct()}, attrs));
  return absl::OkStatus();
}

}  // namespace lazuli::lowering
