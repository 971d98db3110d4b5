#include "backend/npu/compiler/window_part.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "backend/npu/compiler/runs.h"
#include "backend/npu/sim/cost.h"

namespace lazuli::npu {

int64_t WindowPart::elements() const {
  return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
}

WindowPart PartUnder(const hlo::Window& window, const View& x, const Dims& starts,
                     const Dims& counts) {
  WindowPart part;
  for (std::size_t d = 0; d < window.size(); ++d)
    part.extents.push_back((counts[d] - 1) * window[d].stride +
                           (window[d].size - 1) * window[d].window_dilation + 1);
  part.strides = DenseView(0, x.type, part.extents).strides;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const hlo::WindowDim& w = window[d];
    // In positions of the dilated array.
    const int64_t low = starts[d] * w.stride - w.pad_low, high = low + part.extents[d] - 1;
    const int64_t first = CeilDiv(std::max<int64_t>(low, 0), w.base_dilation);
    const int64_t last = high < 0 ? -1 : std::min(x.dims[d] - 1, high / w.base_dilation);
    part.empty = part.empty || last < first;
    part.holes = part.holes || w.base_dilation > 1 || first > low || last < high;
    part.loaded.push_back(last - first + 1);
    part.near.push_back(part.strides[d] * w.base_dilation);
    part.far.push_back(x.strides[d]);
    part.from += first * x.strides[d];
    part.to += (first * w.base_dilation - low) * part.strides[d];
  }
  return part;
}

int LoadPart(const WindowPart& part, const View& x, uint32_t padding, TileBuilder& builder) {
  const int elem = TypeBytes(x.type);
  const int buffer = builder.AddBuffer("part", part.elements() * elem);
  if (part.holes)
    builder.Fill(TileBuilder::Spm(buffer), part.elements(), elem, static_cast<int32_t>(padding), 0);
  if (!part.empty)
    builder.Load(TileBuilder::Spm(buffer, part.to * elem), part.near,
                 TileBuilder::Dram(x, part.from), part.far, part.loaded, elem, 0);
  return buffer;
}

void RunOver(TileBuilder& builder, const Dims& counts, std::vector<TileBuilder::Stream> inputs,
             TileBuilder::Stream out, const Expression& expression, int root, int reduction) {
  const std::vector<VectorRun> runs = DivideIntoRuns(expression, root);
  // Streams that the program does not read are none of its inputs.
  std::vector<TileBuilder::Stream> used;
  for (const RunInput& source : runs.at(0).inputs)
    used.push_back(inputs[static_cast<std::size_t>(source.index)]);
  Dims dims = counts;
  std::vector<Dims*> strides{&out.at.strides};
  for (TileBuilder::Stream& input : used) strides.push_back(&input.at.strides);
  CollapseLevels(dims, strides);
  if (dims.empty()) {
    dims = {1};
    for (Dims* s : strides) *s = {0};
  }
  uint32_t levels = 0;
  for (std::size_t d = 0; reduction >= 0 && d < dims.size(); ++d)
    levels |= static_cast<uint32_t>(out.at.strides[d] == 0) << d;
  builder.Vector(runs[0].words, dims, used, out, reduction, levels);
}

}  // namespace lazuli::npu
