#include "backend/npu/compiler/boxes.h"

#include <algorithm>

namespace lazuli::npu {

Boxes Boxes::Cut(absl::Span<const int64_t> dims, int64_t limit, std::size_t levels) {
  Boxes boxes{ir::Dims(dims.begin(), dims.end()), dims.size(), 1};
  int64_t inner = 1;
  while (boxes.first > 0 && dims.size() - boxes.first < levels &&
         inner * dims[boxes.first - 1] <= limit)
    inner *= dims[--boxes.first];
  if (boxes.first == 0 || dims.size() - boxes.first == levels || limit / inner < 2) {
    boxes.chunk = boxes.first < dims.size() ? dims[boxes.first] : 1;
    return boxes;
  }
  --boxes.first;
  // Equal parts, in whole lines of the lanes where elements follow each other.
  const int64_t dim = dims[boxes.first], most = limit / inner;
  const int64_t parts = (dim + most - 1) / most;
  boxes.chunk = (dim + parts - 1) / parts;
  constexpr int64_t kLine = 256;
  if (inner == 1 && most >= kLine)
    boxes.chunk = std::min(dim, std::min((boxes.chunk + kLine - 1) / kLine, most / kLine) * kLine);
  return boxes;
}

void Boxes::ForEach(absl::Span<const std::size_t> order,
                    const std::function<void(const ir::Dims&, const ir::Dims&)>& f) const {
  ir::Dims starts(dims.size(), 0), extents(dims);
  for (std::size_t level : order) extents[level] = std::min(step(level), dims[level]);
  while (true) {
    f(starts, extents);
    std::size_t i = order.size();
    for (; i > 0; --i) {
      const std::size_t level = order[i - 1];
      starts[level] += step(level);
      if (starts[level] < dims[level]) {
        extents[level] = std::min(step(level), dims[level] - starts[level]);
        break;
      }
      starts[level] = 0;
      extents[level] = std::min(step(level), dims[level]);
    }
    if (i == 0) return;
  }
}

}  // namespace lazuli::npu
