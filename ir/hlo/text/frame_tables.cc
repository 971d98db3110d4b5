#include "ir/hlo/text/frame_tables.h"

#include <algorithm>

namespace lazuli::hlo::internal {
namespace {

template <class T>
const T* At(const std::vector<T>& table, int64_t id) {
  const bool in_range = id >= 1 && id <= static_cast<int64_t>(table.size());
  return in_range ? &table[static_cast<std::size_t>(id - 1)] : nullptr;
}

}  // namespace

void FrameTables::Resolve(int64_t frame, Metadata* metadata) const {
  if (!metadata->source_file.empty()) return;
  const int64_t* location_id = At(frames, frame);
  const Location* location = location_id != nullptr ? At(locations, *location_id) : nullptr;
  const std::string* file = location != nullptr ? At(files, location->file) : nullptr;
  if (file == nullptr) return;
  metadata->source_file = *file;
  metadata->source_line = static_cast<int32_t>(std::clamp<int64_t>(location->line, 0, INT32_MAX));
}

}  // namespace lazuli::hlo::internal
