#include "tools/reproduction.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "ir/support/environment.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): as in tool.cc

constexpr std::string_view kDescription = "reproduction.txt";

// They would replace what the failing program has written.
constexpr std::array<std::string_view, 5> kWriters = {
    "LAZULI_DUMP_DIR", "--xla_dump_to", "XLA_FNTRACKER_FILE", "NPU_REPORT", "NPU_TRACE"};

bool IsSetNow(const std::string& flag) {
  return flag.starts_with("--") ? FindXlaFlag(flag) != nullptr
                                : std::getenv(flag.c_str()) != nullptr;
}

// "failed: compile" and the other lines; unknown keys are for people.
absl::Status TakeLine(std::string_view key, std::string_view value, Reproduction& result) {
  if (key == "failed") result.doing = value;
  if (key == "device") result.device = value;
  if (key == "seed") {
    LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("seed", value));
    result.seed = static_cast<uint64_t>(seed);
  }
  if (key != "flag") return absl::OkStatus();
  const std::size_t equals = value.find('=');
  if (equals == std::string_view::npos) return InvalidArgument("no value for the flag ", value);
  result.flags.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  return absl::OkStatus();
}

}  // namespace

bool Reproduction::IsOne(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

absl::StatusOr<Reproduction> Reproduction::Open(const std::string& folder) {
  const std::filesystem::path path(folder);
  Reproduction result;
  result.folder = folder;
  result.module = (path / "module.hlo").string();
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll((path / kDescription).string()));
  LAZULI_ASSIGN_OR_RETURN(result.error, ReadAll((path / "error.txt").string()));
  while (!result.error.empty() && result.error.back() == '\n') result.error.pop_back();
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    const absl::Status status =
        colon == std::string_view::npos
            ? InvalidArgument("no line of a reproduction: ", line)
            : TakeLine(line.substr(0, colon), line.substr(colon + 2), result);
    LAZULI_RETURN_IF_ERROR(
        Prefixed(status, Str((path / kDescription).string(), ":", number, ": ")));
  }
  if (result.device.empty())
    return InvalidArgument((path / kDescription).string(),
                           ": it is cut off, the device is missing");
  return result;
}

absl::Status Reproduction::SetFlags() const {
  for (const auto& [name, value] : flags) {
    if (std::ranges::find(kWriters, name) != kWriters.end() || IsSetNow(name)) continue;
    LAZULI_RETURN_IF_ERROR(Prefixed(SetFlag(name, value), Str(folder, "/", kDescription, ": ")));
  }
  return absl::OkStatus();
}

std::string Reproduction::Verdict(const absl::Status& now) const {
  if (now.ok()) return Str("the failure of ", folder, " does not happen here");
  // Here the message has the file in front, there the line behind.
  std::string_view message = Message(now);
  const std::string prefix = Str(module, ": ");
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  const bool same = error.find(message) != std::string::npos;
  return Str("this is ", same ? "the" : "not the", " failure of ", folder,
             same ? "" : Str(", which was: ", error));
}

}  // namespace lazuli::tools
