#include "ir/hlo/stack_frames.h"

#include <algorithm>

#include "ir/hlo/module.h"
#include "ir/support/str.h"

namespace lazuli::hlo {
namespace {

constexpr std::size_t kMostFrames = 1000;

template <class T>
const T* At(const std::vector<T>& table, int64_t id) {
  const bool in_range = id >= 1 && id <= static_cast<int64_t>(table.size());
  return in_range ? &table[static_cast<std::size_t>(id - 1)] : nullptr;
}

// The number of a row that is added unless it is there.
template <class T>
int64_t RowOf(absl::flat_hash_map<std::string, int64_t>& numbers, std::vector<T>& table,
              const std::string& key, T row) {
  const auto [it, added] = numbers.try_emplace(key, static_cast<int64_t>(table.size()) + 1);
  if (added) table.push_back(std::move(row));
  return it->second;
}

}  // namespace

void StackFrames::Resolve(int64_t frame, Metadata* metadata) const {
  const Frame* const found = At(frames, frame);
  if (found == nullptr) return;
  metadata->stack_frame = static_cast<int32_t>(std::min<int64_t>(frame, INT32_MAX));
  if (!metadata->source_file.empty()) return;
  const Location* const location = At(locations, found->location);
  const std::string* const file = location != nullptr ? At(files, location->file) : nullptr;
  if (file == nullptr) return;
  metadata->source_file = *file;
  metadata->source_line = static_cast<int32_t>(std::clamp<int64_t>(location->line, 0, INT32_MAX));
}

std::vector<std::string> StackFrames::Text(int64_t frame) const {
  std::vector<std::string> text;
  for (const Frame* at = At(frames, frame); at != nullptr && text.size() < kMostFrames;
       at = At(frames, at->parent)) {
    const Location* const location = At(locations, at->location);
    if (location == nullptr) continue;
    const std::string* const file = At(files, location->file);
    const std::string* const function = At(functions, location->function);
    text.push_back(Str(function != nullptr ? *function : "?", " (", file != nullptr ? *file : "?",
                       ":", location->line, ")"));
  }
  return text;
}

int64_t StackFramesBuilder::Add(std::string_view file, std::string_view function, int64_t line,
                                int64_t parent) {
  const int64_t file_id = RowOf(files_, tables_.files, std::string(file), std::string(file));
  const int64_t function_id =
      RowOf(functions_, tables_.functions, std::string(function), std::string(function));
  const int64_t location_id =
      RowOf(locations_, tables_.locations, Str(file_id, ",", function_id, ",", line),
            StackFrames::Location{file_id, function_id, line});
  return RowOf(frames_, tables_.frames, Str(location_id, ",", parent),
               StackFrames::Frame{location_id, parent});
}

}  // namespace lazuli::hlo
