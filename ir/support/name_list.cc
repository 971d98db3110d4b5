#include "ir/support/name_list.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

// Characters to insert, drop or change to make one name of the other.
int64_t Distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = std::exchange(row[0], static_cast<int64_t>(i) + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int64_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

constexpr std::size_t kPart = 3;  // letters of a part that says something

// The shortest name that this is a part of, "cpu_fuse" of "fuse"; or else the nearest.
std::string_view Alike(std::string_view name, absl::Span<const std::string_view> known) {
  std::string_view whole;
  for (const std::string_view one : known) {
    const bool holds = name.size() >= kPart && one.find(name) != std::string_view::npos;
    if (holds && (whole.empty() || one.size() < whole.size())) whole = one;
  }
  return whole.empty() ? NearestName(name, known).name : whole;
}

}  // namespace

std::vector<std::string_view> SplitNames(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

Nearest NearestName(std::string_view name, absl::Span<const std::string_view> known) {
  Nearest nearest;
  for (const std::string_view one : known) {
    const int64_t distance = Distance(name, one);
    if (nearest.name.empty() || distance < nearest.distance) nearest = {one, distance};
  }
  return nearest;
}

absl::Status CheckNames(std::string_view where, std::string_view what,
                        absl::Span<const std::string_view> names,
                        absl::Span<const std::string_view> known) {
  for (std::string_view name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = Alike(name, known);
    return InvalidArgument(where, ": there is no ", what, " ", name,
                           nearest.empty() ? "" : Str("; the nearest is ", nearest));
  }
  return absl::OkStatus();
}

}  // namespace lazuli::ir
