// Convolutions with every attribute. An element of the result starts from 0 and adds input times
// kernel over the window's positions in row-major order, and at each position over the input
// features of its group; product and sum rounded separately, in f32 for narrower floats. Positions
// in padding or between dilated elements add nothing.

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/scalar_ops.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/monoid.h"
#include "ir/types/permutation.h"

namespace lazuli::hlo {
namespace {

Dims Order(int64_t first, const Dims& middle, int64_t last) {
  Dims order{first};
  order.insert(order.end(), middle.begin(), middle.end());
  order.push_back(last);
  return order;
}
Dims KernelOrder(const ConvDims& dims) {
  Dims order = dims.kernel_spatial;
  order.push_back(dims.kernel_input_feature);
  order.push_back(dims.kernel_output_feature);
  return order;
}

// Input as [batch, spatial..., feature], kernel as [spatial..., input feature, output feature],
// output as the input.
struct Problem {
  const ConvolutionAttrs& attrs;
  absl::Span<const int64_t> input_spatial, output_spatial;
  int64_t input_features, batch_stride;  // of the whole input
  int64_t group_inputs, outputs;         // of the kernel
  int64_t output_batch;
};

// Position in the input (in elements of the flattened spatial dimensions) that window position `w`
// of output position `o` reads; -1 if there is none.
int64_t InputPosition(const Problem& p, absl::Span<const int64_t> o, absl::Span<const int64_t> w) {
  int64_t position = 0;
  for (std::size_t d = 0; d < o.size(); ++d) {
    const WindowDim& window = p.attrs.window[d];
    const int64_t dilated = o[d] * window.stride - window.pad_low + w[d] * window.window_dilation;
    if (dilated < 0 || dilated % window.base_dilation != 0) return -1;
    const int64_t index = dilated / window.base_dilation;
    if (index >= p.input_spatial[d]) return -1;
    position = position * p.input_spatial[d] + index;
  }
  return position;
}

// Adds to the output features of one output position what one window position contributes.
template <class T>
void AddPosition(const Problem& p, int64_t batch, const T* input, const T* kernel, T* output) {
  const int64_t groups = p.attrs.feature_group_count, batch_groups = p.attrs.batch_group_count;
  const int64_t all_groups = groups * batch_groups;
  const int64_t group_outputs = p.outputs / all_groups;
  for (int64_t g = 0; g < all_groups; ++g) {
    // Either the features or the batch are cut into groups; each output group reads its share.
    const T* x = input;
    if (batch_groups > 1) {
      x += (g * p.output_batch + batch) * p.batch_stride;
    } else {
      x += batch * p.batch_stride + g * p.group_inputs;
    }
    T* to = output + g * group_outputs;
    for (int64_t i = 0; i < p.group_inputs; ++i) {
      const T factor = x[i];
      const T* row = kernel + i * p.outputs + g * group_outputs;
      for (int64_t j = 0; j < group_outputs; ++j)
        to[j] = recipes::Add(to[j], recipes::Multiply(factor, row[j]));
    }
  }
}

template <class T>
void Convolve(const Problem& p, const T* input, const T* kernel, T* output) {
  Dims window_dims;
  for (const WindowDim& window : p.attrs.window) window_dims.push_back(window.size);
  for (int64_t batch = 0; batch < p.output_batch; ++batch) {
    ForEachIndex(p.output_spatial, [&](absl::Span<const int64_t> o) {
      ForEachIndex(window_dims, [&](absl::Span<const int64_t> w) {
        const int64_t position = InputPosition(p, o, w);
        if (position < 0) return;
        int64_t kernel_position = 0;
        for (std::size_t d = 0; d < w.size(); ++d) {
          const WindowDim& window = p.attrs.window[d];
          kernel_position =
              kernel_position * window.size + (window.reversal ? window.size - 1 - w[d] : w[d]);
        }
        AddPosition(p, batch, input + position * p.input_features,
                    kernel + kernel_position * p.group_inputs * p.outputs, output);
      });
      output += p.outputs;
    });
  }
}

}  // namespace

absl::StatusOr<Literal> EvaluateConvolution(const Instruction& instruction, Operands operands) {
  // If there are no features, the attributes may ask for any number of groups.
  if (instruction.shape().num_elements() == 0) return Literal(instruction.shape());
  const auto& attrs = instruction.attrs_as<ConvolutionAttrs>();
  const ConvDims& dims = attrs.dim_labels;
  const DType dtype = AccumulationType(instruction.shape().dtype());
  const Literal input =
      Transposed(*operands[0], Order(dims.input_batch, dims.input_spatial, dims.input_feature))
          .Converted(dtype);
  const Literal kernel = Transposed(*operands[1], KernelOrder(dims)).Converted(dtype);
  const Dims output_order = Order(dims.output_batch, dims.output_spatial, dims.output_feature);
  Dims output_dims;
  for (int64_t d : output_order) output_dims.push_back(instruction.shape().dim(d));
  Literal output{Shape(dtype, output_dims)};
  const int64_t rank = input.shape().rank();
  const auto spatial = static_cast<std::size_t>(rank - 2);
  const Problem problem{.attrs = attrs,
                        .input_spatial = input.shape().dims().subspan(1, spatial),
                        .output_spatial = output.shape().dims().subspan(1, spatial),
                        .input_features = input.shape().dim(rank - 1),
                        .batch_stride = ElementStrides(input.shape().dims())[0],
                        .group_inputs = kernel.shape().dim(rank - 2),
                        .outputs = kernel.shape().dim(rank - 1),
                        .output_batch = output.shape().dim(0)};
  VisitDType(dtype, [&]<DType kType>() {
    using T = HostType<kType>;
    if constexpr (!recipes::SmallFloat<T>) {
      Convolve(problem, input.data<T>().data(), kernel.data<T>().data(),
               output.mutable_data<T>().data());
    }
  });
  WrapSubByte(dtype, output.mutable_raw(), output.shape().num_elements());
  return Transposed(output, Inverse(output_order)).Converted(instruction.shape().dtype());
}

}  // namespace lazuli::hlo
