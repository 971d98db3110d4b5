#include "tools/open_saved.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "ir/support/status.h"
#include "ir/support/str.h"
#include "tools/tool.h"

namespace lazuli::tools {

using ir::InvalidArgument;
using ir::OutOfRange;
using ir::Str;

SavedName ParseSavedName(std::string_view name) {
  const std::size_t sharp = name.rfind('#');
  SavedName parsed{std::string(name), -1};
  if (sharp == std::string_view::npos) return parsed;
  const std::string_view number = name.substr(sharp + 1);
  const char* const end = number.data() + number.size();
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(number.data(), end, value);
  if (!number.empty() && error == std::errc() && rest == end)
    parsed = {std::string(name.substr(0, sharp)), value};
  return parsed;
}

absl::StatusOr<SavedFile> OpenSaved(const std::string& file) {
  std::string path = file;
  std::error_code ignored;
  if (file != "-" && !std::filesystem::exists(file, ignored) &&
      std::filesystem::exists(file + ".0", ignored))
    path = file + ".0";
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(path));
  return lazy::ParseSaved(path, text);
}

absl::StatusOr<SavedRecord> FindRecord(const SavedFile& file, int64_t number) {
  const auto count = static_cast<int64_t>(file.records.size());
  if (number < 0 && count > 1)
    return InvalidArgument(file.path, " has ", count, " records: name one as '", file.path,
                           "#0'; list shows them");
  if (number >= count) {
    if (!file.torn.ok() && number == count) return file.torn;
    return OutOfRange(file.path, " has no record ", number, ": they count from 0 and there are ",
                      count);
  }
  return file.records[static_cast<std::size_t>(number < 0 ? 0 : number)];
}

}  // namespace lazuli::tools
