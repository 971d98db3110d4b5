// Convolutions: any dimension labels become batch, positions, channels and features, group by group.

#include <algorithm>
#include <utility>

#include "backend/npu/compiler/convolution_kernel.h"
#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/vector_convolution.h"

namespace lazuli::npu {
namespace {

Dims Order(absl::Span<const int64_t> spatial, int64_t a, int64_t b, bool a_first) {
  Dims order;
  if (a_first) order.push_back(a);
  order.insert(order.end(), spatial.begin(), spatial.end());
  if (!a_first) order.push_back(a);
  order.push_back(b);
  return order;
}

// `count` of one dimension, from `start`.
View Part(const View& view, std::size_t dimension, int64_t start, int64_t count) {
  View part = view;
  part.offset += start * view.strides[dimension];
  part.dims[dimension] = count;
  return part;
}

// A convolution without spatial dims has one, of size 1.
void AddSpatial(ConvProblem& p) {
  if (!p.window.empty()) return;
  p.window.emplace_back();
  p.x.dims.insert(p.x.dims.begin() + 1, 1);
  p.x.strides.insert(p.x.strides.begin() + 1, 0);
  p.w.dims.insert(p.w.dims.begin(), 1);
  p.w.strides.insert(p.w.strides.begin(), 0);
  p.y.dims.insert(p.y.dims.begin() + 1, 1);
  p.y.strides.insert(p.y.strides.begin() + 1, 0);
}

// Positions that a window of one tap strides over are not looked at: they are left out of the view.
void SkipUnread(ConvProblem& p) {
  for (std::size_t d = 0; d < p.window.size(); ++d) {
    hlo::WindowDim& w = p.window[d];
    if (w.stride == 1 || p.w.dims[d] != 1 || w.base_dilation != 1 || w.pad_low != 0 ||
        (p.y.dims[d + 1] - 1) * w.stride >= p.x.dims[d + 1])
      continue;
    p.x.dims[d + 1] = p.y.dims[d + 1];
    p.x.strides[d + 1] *= w.stride;
    w.stride = 1;
  }
}

// How many groups of channels fill the array: a divisor of `groups`. Between them are zeros, which an
// infinity or a NaN of another group would make NaN, so numbers of floating point go one by one.
int64_t GroupsTogether(const Config& config, const ProductTypes& types, int64_t groups,
                       int64_t channels, int64_t features) {
  if (IsFloat(types.a)) return 1;
  int64_t most = std::min(config.mxu.rows / std::max<int64_t>(1, channels),
                          config.mxu.cols / std::max<int64_t>(1, features));
  for (most = std::min(most, groups); most > 1; --most) {
    if (groups % most == 0) return most;
  }
  return 1;
}

}  // namespace

void Lowering::LowerConvolution(const hlo::Instruction& i, const ProductTypes& types,
                                const View& sums, BoxKernel* fused) {
  const auto& attrs = i.attrs_as<hlo::ConvolutionAttrs>();
  const hlo::ConvDims& labels = attrs.dim_labels;
  const hlo::Instruction &input = *i.operand(0), &kernel = *i.operand(1);
  ConvProblem whole;
  whole.window = attrs.window;
  whole.x =
      TransposeView(Converted(ValueOf(input), input.shape().dtype(), types.a),
                    Order(labels.input_spatial, labels.input_batch, labels.input_feature, true));
  whole.w = TransposeView(Converted(ValueOf(kernel), kernel.shape().dtype(), types.w),
                          Order(labels.kernel_spatial, labels.kernel_input_feature,
                                labels.kernel_output_feature, false));
  const Dims order = Order(labels.output_spatial, labels.output_batch, labels.output_feature, true);
  whole.y = TransposeView(sums, order);
  for (std::size_t d = 0; d < whole.window.size(); ++d) {
    if (whole.window[d].reversal) whole.w = ReverseView(whole.w, {static_cast<int64_t>(d)});
  }
  AddSpatial(whole);
  SkipUnread(whole);

  const int64_t groups = attrs.feature_group_count, batch_groups = attrs.batch_group_count;
  const int64_t features = whole.y.dims.back() / (groups * batch_groups);
  const int64_t channels = whole.x.dims.back() / groups, batch = whole.x.dims[0] / batch_groups;
  const int64_t together =
      batch_groups > 1 ? 1 : GroupsTogether(b_.config(), types, groups, channels, features);
  const auto epilogue_from = [&](int64_t feature) {
    Epilogue epilogue;
    if (fused != nullptr)
      epilogue = [&, feature](const Dims& starts, const Dims& extents,
                              const TileBuilder::Stream& block) {
        Dims at(sums.dims.size(), 0), counts(sums.dims.size(), 1);
        TileBuilder::Stream stream{{block.at.place, Dims(sums.dims.size(), 0)}, block.type};
        for (std::size_t d = 0; d < order.size(); ++d) {
          const auto to = static_cast<std::size_t>(order[d]);
          at[to] = starts[d] + (d + 1 == order.size() ? feature : 0);
          counts[to] = extents[d];
          stream.at.strides[to] = block.at.strides[d];
        }
        fused->Run(at, counts, stream);
      };
    return epilogue;
  };
  std::optional<ConvTiles> tiles;
  for (int64_t g = 0; g < groups * batch_groups; g += together) {
    ConvProblem part = whole;
    part.groups = together;
    if (batch_groups > 1)
      part.x = Part(whole.x, 0, g * batch, batch);
    else
      part.x = Part(whole.x, whole.x.dims.size() - 1, g * channels, together * channels);
    part.w = Part(whole.w, whole.w.dims.size() - 1, g * features, together * features);
    part.y = Part(whole.y, whole.y.dims.size() - 1, g * features, together * features);
    if (!tiles) {
      tiles = SearchConvolution(b_.config(), types, part);
      const VectorConvolution all{whole, groups, batch_groups};
      const int64_t parts = groups * batch_groups / together;
      const double vectors = CyclesOnVectors(b_.config(), types, all),
                   array = tiles->cycles * static_cast<double>(parts);
      constexpr double kSurely = 0.8;  // both are estimates
      if (vectors >= 0 && vectors < kSurely * array)
        return EmitOnVectors(all, types, b_, epilogue_from(0));
    }
    EmitConvolution(part, types, *tiles, b_, epilogue_from(g * features));
  }
}

}  // namespace lazuli::npu
