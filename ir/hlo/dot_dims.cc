#include "ir/hlo/dot_dims.h"

#include <algorithm>

namespace lazuli::hlo {

Dims FreeDims(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const auto has = [d](const Dims& dims) {
      return std::find(dims.begin(), dims.end(), d) != dims.end();
    };
    if (!has(batch) && !has(contracting)) free.push_back(d);
  }
  return free;
}

int64_t SizeOf(const Shape& shape, const Dims& dims) {
  int64_t size = 1;
  for (int64_t d : dims) size *= shape.dim(d);
  return size;
}

Dims Concatenated(const Dims& a, const Dims& b, const Dims& c) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

}  // namespace lazuli::hlo
