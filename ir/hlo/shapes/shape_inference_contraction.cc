#include <algorithm>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {
namespace {

// Result type of a contraction: the operands' common one, or what the text declares.
absl::StatusOr<DType> ContractionType(const Inference& in) {
  if (in.declared != nullptr && in.declared->IsArray()) return in.declared->dtype();
  const DType a = in.operand(0).dtype(), b = in.operand(1).dtype();
  if (a != b)
    return in.Error("operands differ in element type: ", in.operand(0), " x ", in.operand(1));
  return a;
}

bool ContainsDim(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Dims of the result: batch, free of x, free of y. `skipped` is a dimension of y that stands for
// none of the result's, or -1.
template <class A>
absl::StatusOr<Dims> DotDims(const Inference& in, const A& attrs, int64_t skipped) {
  const Shape& x = in.operand(0);
  const Shape& y = in.operand(1);
  Dims x_used = attrs.lhs_batch_dims, y_used = attrs.rhs_batch_dims;
  x_used.insert(x_used.end(), attrs.lhs_contracting_dims.begin(), attrs.lhs_contracting_dims.end());
  y_used.insert(y_used.end(), attrs.rhs_contracting_dims.begin(), attrs.rhs_contracting_dims.end());
  LAZULI_RETURN_IF_ERROR(in.CheckDims("lhs batch and contracting dims", x_used, x.rank()));
  LAZULI_RETURN_IF_ERROR(in.CheckDims("rhs batch and contracting dims", y_used, y.rank()));
  const std::size_t batch = attrs.lhs_batch_dims.size();
  if (batch != attrs.rhs_batch_dims.size() || x_used.size() != y_used.size()) {
    return in.Error("operands have different numbers of batch or contracting dims: ", x, " x ", y);
  }
  Dims dims;
  for (std::size_t i = 0; i < x_used.size(); ++i) {
    if (x.dim(x_used[i]) != y.dim(y_used[i])) {
      return in.Error(i < batch ? "batch" : "contracting", " dimensions differ: dimension ",
                      x_used[i], " of ", x, " and dimension ", y_used[i], " of ", y);
    }
    if (i < batch) dims.push_back(x.dim(x_used[i]));
  }
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!ContainsDim(x_used, d)) dims.push_back(x.dim(d));
  }
  for (int64_t d = 0; d < y.rank(); ++d) {
    if (!ContainsDim(y_used, d) && d != skipped) dims.push_back(y.dim(d));
  }
  return dims;
}

// A scale's dimensions divide those of what it scales.
bool Scales(const Shape& scale, const Shape& x) {
  bool fits = scale.rank() == x.rank();
  for (int64_t d = 0; fits && d < x.rank(); ++d)
    fits = scale.dim(d) > 0 ? x.dim(d) % scale.dim(d) == 0 : x.dim(d) == 0;
  return fits || scale.IsScalar();
}

}  // namespace

absl::StatusOr<Shape> InferDot(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_ASSIGN_OR_RETURN(const Dims dims, DotDims(in, in.attrs_as<DotAttrs>(), -1));
  LAZULI_ASSIGN_OR_RETURN(const DType dtype, ContractionType(in));
  return in.Array(dtype, dims);
}

// x and y in blocks that share a scale, then the scales of x and of y.
absl::StatusOr<Shape> InferScaledDot(const Inference& in) {
  LAZULI_ASSIGN_OR_RETURN(Shape result, InferDot(in));
  for (std::size_t i = 0; i < 2; ++i) {
    if (!Scales(in.operand(i + 2), in.operand(i)))
      return in.Error("scale ", in.operand(i + 2), " does not divide ", in.operand(i));
  }
  return result;
}

// The ragged dimension of x consists of groups of the given sizes. Each has its own y, if x keeps
// the dimension, or its own result, if it is contracted.
absl::StatusOr<Shape> InferRaggedDot(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const auto& attrs = in.attrs_as<RaggedDotAttrs>();
  const Shape &x = in.operand(0), &y = in.operand(1), &sizes = in.operand(2);
  LAZULI_RETURN_IF_ERROR(in.CheckDims("lhs_ragged_dims", attrs.lhs_ragged_dims, x.rank()));
  LAZULI_RETURN_IF_ERROR(in.CheckDims("rhs_group_dims", attrs.rhs_group_dims, y.rank()));
  if (attrs.lhs_ragged_dims.size() != 1 || !IsIntegral(sizes.dtype()) || sizes.rank() < 1) {
    return in.Error("lhs_ragged_dims={", Join(attrs.lhs_ragged_dims, ","), "} and sizes ", sizes,
                    " are not one dimension and integers");
  }
  const int64_t ragged = attrs.lhs_ragged_dims[0], groups = sizes.dim(sizes.rank() - 1);
  const bool contracted = ContainsDim(attrs.lhs_contracting_dims, ragged);
  const bool kept = !contracted && !ContainsDim(attrs.lhs_batch_dims, ragged);
  if (attrs.rhs_group_dims.size() != (kept ? 1U : 0U) ||
      (kept && y.dim(attrs.rhs_group_dims[0]) != groups)) {
    return in.Error("rhs_group_dims={", Join(attrs.rhs_group_dims, ","), "} of ", y,
                    " are not those of ", groups, " groups of dimension ", ragged, " of ", x);
  }
  LAZULI_ASSIGN_OR_RETURN(Dims dims,
                          DotDims(in, attrs, kept ? attrs.rhs_group_dims[0] : int64_t{-1}));
  if (contracted) dims.insert(dims.begin(), groups);
  LAZULI_ASSIGN_OR_RETURN(const DType dtype, ContractionType(in));
  return in.Array(dtype, dims);
}

namespace {

absl::Status CheckLabels(const Inference& in, std::string_view what, int64_t a, int64_t b,
                         const Dims& spatial, const Shape* shape) {
  Dims all = spatial;
  all.push_back(a);
  all.push_back(b);
  if (shape != nullptr && shape->rank() != static_cast<int64_t>(all.size())) {
    return in.Error("dim_labels name ", all.size(), " dimensions of the ", what, " ", *shape);
  }
  return in.CheckDims(what, all, static_cast<int64_t>(all.size()));
}

absl::Status CheckFeatures(const Inference& in) {
  const Shape& x = in.operand(0);
  const Shape& kernel = in.operand(1);
  const auto& attrs = in.attrs_as<ConvolutionAttrs>();
  const ConvDims& labels = attrs.dim_labels;
  const int64_t groups = attrs.feature_group_count, batch_groups = attrs.batch_group_count;
  if (groups < 1 || batch_groups < 1 || (groups > 1 && batch_groups > 1)) {
    return in.Error("feature_group_count=", groups, " and batch_group_count=", batch_groups,
                    ": both are positive and one of them is 1");
  }
  const int64_t features = x.dim(labels.input_feature);
  const int64_t kernel_in = kernel.dim(labels.kernel_input_feature);
  const int64_t kernel_out = kernel.dim(labels.kernel_output_feature);
  if (features % groups != 0 || features / groups != kernel_in) {
    return in.Error("input ", x, " has ", features, " features in ", groups, " groups, kernel ",
                    kernel, " takes ", kernel_in);
  }
  if (kernel_out % groups != 0)
    return in.Error(kernel_out, " output features do not divide into ", groups, " groups");
  if (x.dim(labels.input_batch) % batch_groups != 0 || kernel_out % batch_groups != 0) {
    return in.Error("batch ", x.dim(labels.input_batch), " and output features ", kernel_out,
                    " do not divide into ", batch_groups, " batch groups");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> InferConvolution(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Shape& kernel = in.operand(1);
  const auto& attrs = in.attrs_as<ConvolutionAttrs>();
  const ConvDims& labels = attrs.dim_labels;
  const std::size_t spatial = attrs.window.size();
  if (labels.input_spatial.size() != spatial || labels.kernel_spatial.size() != spatial ||
      labels.output_spatial.size() != spatial) {
    return in.Error("dim_labels name other than the window's ", spatial, " spatial dimensions");
  }
  LAZULI_RETURN_IF_ERROR(
      CheckLabels(in, "input", labels.input_batch, labels.input_feature, labels.input_spatial, &x));
  LAZULI_RETURN_IF_ERROR(CheckLabels(in, "kernel", labels.kernel_input_feature,
                                     labels.kernel_output_feature, labels.kernel_spatial, &kernel));
  LAZULI_RETURN_IF_ERROR(CheckLabels(in, "output", labels.output_batch, labels.output_feature,
                                     labels.output_spatial, nullptr));
  LAZULI_RETURN_IF_ERROR(CheckFeatures(in));
  LAZULI_RETURN_IF_ERROR(CheckWindow(in, attrs.window));
  Dims dims(spatial + 2);
  dims[static_cast<std::size_t>(labels.output_batch)] =
      x.dim(labels.input_batch) / attrs.batch_group_count;
  dims[static_cast<std::size_t>(labels.output_feature)] = kernel.dim(labels.kernel_output_feature);
  for (std::size_t i = 0; i < spatial; ++i) {
    const WindowDim& window = attrs.window[i];
    if (window.size != kernel.dim(labels.kernel_spatial[i])) {
      return in.Error("window size ", window.size, " is not that of kernel ", kernel);
    }
    dims[static_cast<std::size_t>(labels.output_spatial[i])] =
        WindowedSize(x.dim(labels.input_spatial[i]), window);
  }
  LAZULI_ASSIGN_OR_RETURN(const DType dtype, ContractionType(in));
  return in.Array(dtype, dims);
}

absl::StatusOr<Shape> InferFft(const Inference& in) {
  const Shape& x = in.operand(0);
  const auto& [type, length] = in.attrs_as<FftAttrs>();
  const auto n = static_cast<int64_t>(length.size());
  if (!x.IsArray() || n < 1 || n > 3 || n > x.rank()) {
    return in.Error("fft_length={", Join(length, ","), "} does not fit ", x);
  }
  const bool real_in = type == FftType::kRfft, real_out = type == FftType::kIrfft;
  const bool fits =
      real_in ? x.dtype() == DType::kF32 || x.dtype() == DType::kF64 : IsComplex(x.dtype());
  if (!fits) return in.Error("operand ", x, real_in ? " is not f32 or f64" : " is not complex");
  for (int64_t i = 0; i < n; ++i) {
    const int64_t size = x.dim(x.rank() - n + i);
    const int64_t wanted = length[static_cast<std::size_t>(i)];
    const bool halved = real_out && i == n - 1;
    // Of a real signal of nothing one may give nothing, or the one number of the general rule.
    const bool fits_half = size == wanted / 2 + 1 || size == SpectrumSize(wanted);
    if (wanted < 0 || (halved ? !fits_half : size != wanted)) {
      return in.Error("fft_length={", Join(length, ","), "} does not fit ", x);
    }
  }
  Shape result = WithoutLayout(x);
  if (real_in) {
    result.set_dtype(x.dtype() == DType::kF32 ? DType::kC64 : DType::kC128);
    result.set_dim(x.rank() - 1, SpectrumSize(length.back()));
  } else if (real_out) {
    result.set_dtype(PartType(x.dtype()));
    result.set_dim(x.rank() - 1, length.back());
  }
  return result;
}

absl::StatusOr<Shape> InferCholesky(const Inference& in) {
  const Shape& a = in.operand(0);
  if (!a.IsArray() || !Accepts(in.opcode, a.dtype()) || a.rank() < 2 ||
      a.dim(a.rank() - 1) != a.dim(a.rank() - 2)) {
    return in.Error("operand ", a, " is not a batch of square floating-point or complex matrices");
  }
  return WithoutLayout(a);
}

absl::StatusOr<Shape> InferTriangularSolve(const Inference& in) {
  const Shape& a = in.operand(0);
  const Shape& b = in.operand(1);
  LAZULI_RETURN_IF_ERROR(InferCholesky(in).status());
  bool fits = b.dtype() == a.dtype() && b.rank() == a.rank();
  for (int64_t d = 0; fits && d + 2 < a.rank(); ++d) fits = a.dim(d) == b.dim(d);
  const bool left = in.attrs_as<TriangularSolveAttrs>().left_side;
  if (fits) fits = b.dim(b.rank() - (left ? 2 : 1)) == a.dim(a.rank() - 1);
  if (!fits) return in.Error("right-hand side ", b, " does not fit ", a);
  return WithoutLayout(b);
}

}  // namespace lazuli::hlo::internal
