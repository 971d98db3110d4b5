#include "backend/npu/compiler/view.h"

#include <algorithm>

namespace lazuli::npu {
namespace {

std::size_t At(int64_t i) { return static_cast<std::size_t>(i); }

// Strides of `dims` new dims that together are one run of `count` elements `stride` apart.
void SplitRun(absl::Span<const int64_t> dims, int64_t stride, Dims& strides) {
  Dims reversed;
  for (std::size_t i = dims.size(); i-- > 0;) {
    reversed.push_back(stride);
    stride *= dims[i];
  }
  strides.insert(strides.end(), reversed.rbegin(), reversed.rend());
}

}  // namespace

int64_t View::elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool View::Repeats() const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) return true;
  }
  return false;
}

bool View::Dense() const {
  int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != stride) return false;
    stride *= dims[i];
  }
  return offset == 0;
}

View DenseView(int array, Type type, absl::Span<const int64_t> dims) {
  View view{array, type, 0, Dims(dims.begin(), dims.end()), {}};
  SplitRun(dims, 1, view.strides);
  return view;
}

View BroadcastView(const View& view, absl::Span<const int64_t> dims,
                   absl::Span<const int64_t> dimensions) {
  View result{view.array, view.type, view.offset, Dims(dims.begin(), dims.end()),
              Dims(dims.size(), 0)};
  for (std::size_t i = 0; i < dimensions.size(); ++i)
    result.strides[At(dimensions[i])] = view.dims[i] == 1 ? 0 : view.strides[i];
  return result;
}

View TransposeView(const View& view, absl::Span<const int64_t> permutation) {
  View result{view.array, view.type, view.offset, {}, {}};
  for (int64_t p : permutation) {
    result.dims.push_back(view.dims[At(p)]);
    result.strides.push_back(view.strides[At(p)]);
  }
  return result;
}

View SliceView(const View& view, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
               absl::Span<const int64_t> steps) {
  View result = view;
  for (std::size_t i = 0; i < view.dims.size(); ++i) {
    const int64_t step = steps.empty() ? 1 : steps[i];
    result.offset += starts[i] * view.strides[i];
    const int64_t length = std::max<int64_t>(0, limits[i] - starts[i]);
    result.dims[i] = length == 0 ? 0 : (length - 1) / step + 1;
    if (result.dims[i] > 1) result.strides[i] *= step;  // a step beyond the array may be any
  }
  return result;
}

View ReverseView(const View& view, absl::Span<const int64_t> dimensions) {
  View result = view;
  for (int64_t d : dimensions) {
    result.offset += (view.dims[At(d)] - 1) * view.strides[At(d)];
    result.strides[At(d)] = -view.strides[At(d)];
  }
  return result;
}

std::optional<View> ReshapeView(const View& view, absl::Span<const int64_t> dims) {
  View result{view.array, view.type, view.offset, Dims(dims.begin(), dims.end()), {}};
  if (view.elements() <= 1) {
    result.strides.assign(dims.size(), 0);
    return result;
  }
  // Runs: old dims whose elements follow each other, without dims of 1.
  std::size_t next = 0;
  for (std::size_t i = 0; i < view.dims.size(); ++i) {
    if (view.dims[i] == 1) continue;
    int64_t count = view.dims[i], stride = view.strides[i];
    std::size_t j = i + 1;
    for (; j < view.dims.size(); ++j) {
      if (view.dims[j] == 1) continue;
      if (stride != view.strides[j] * view.dims[j]) break;
      count *= view.dims[j];
      stride = view.strides[j];
    }
    i = j - 1;
    int64_t covered = 1;
    const std::size_t first = next;
    while (next < dims.size() && (covered < count || dims[next] == 1)) covered *= dims[next++];
    if (covered != count) return std::nullopt;
    SplitRun(dims.subspan(first, next - first), stride, result.strides);
  }
  while (result.strides.size() < dims.size()) result.strides.push_back(0);
  return result;
}

std::optional<View> ViewOf(const hlo::Instruction& instruction, const View& operand) {
  using hlo::Opcode;
  switch (instruction.opcode()) {
    case Opcode::kBroadcast:
      return BroadcastView(operand, instruction.shape().dims(),
                           instruction.attrs_as<hlo::DimensionsAttrs>().dimensions);
    case Opcode::kTranspose:
      return TransposeView(operand, instruction.attrs_as<hlo::DimensionsAttrs>().dimensions);
    case Opcode::kReverse:
      return ReverseView(operand, instruction.attrs_as<hlo::DimensionsAttrs>().dimensions);
    case Opcode::kSlice: {
      const auto& attrs = instruction.attrs_as<hlo::SliceAttrs>();
      return SliceView(operand, attrs.starts, attrs.limits, attrs.strides);
    }
    case Opcode::kReshape:
      return ReshapeView(operand, instruction.shape().dims());
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
      return operand;
    default:
      return std::nullopt;
  }
}

Reach ReachOf(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  Reach reach;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int64_t far = (dims[i] - 1) * strides[i];
    (far < 0 ? reach.low : reach.high) += far;
  }
  return reach;
}

}  // namespace lazuli::npu
