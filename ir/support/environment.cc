#include "ir/support/environment.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/name_list.h"
#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

constexpr ForeignRow kForeignRows[] = {
#define LAZULI_FOREIGN(name, here, why) {name, here, why},
#include "ir/support/foreign.def"
#undef LAZULI_FOREIGN
};

// As many letters from a name that there is as a slip of the keyboard makes.
constexpr int64_t kSlip = 2;
constexpr int64_t kSlipOfOthers = 1;  // in a family that other software has names of, too

constexpr std::string_view kFamilies[] = {"LAZULI_", "PT_XLA_", "XLA_"};
// Names in the families that builds, tests and other software have: prefixes.
constexpr std::string_view kOthers[] = {
    "LAZULI_ACCURACY_", "LAZULI_BENCH",  "LAZULI_CIFAR10_",    "LAZULI_CORPUS",
    "LAZULI_DATA_",     "LAZULI_DEMO",   "LAZULI_DIGITS",      "LAZULI_FUZZ_",
    "LAZULI_INTEGERS",  "LAZULI_JOBS",   "LAZULI_MNIST_",      "LAZULI_NPU_",
    "LAZULI_PARITY_",   "LAZULI_PEERS_", "LAZULI_SCALESIM_",   "LAZULI_START_ONLY",
    "LAZULI_SWEEP",     "LAZULI_TEST_",  "XLA_PYTHON_CLIENT_", "XLA_CLIENT_",
    "XLA_TARGET",       "XLA_BUILD",     "XLA_ARCHIVE_",       "XLA_EXTENSION_",
    "XLA_HTTP_",        "XLA_CACHE_DIR", "XLA_TEST_",
};

bool BeginsWithOneOf(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

// "1" and "true" are one value.
std::string_view Canonical(std::string_view value) {
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (value == yes) return "1";
  for (std::string_view no : {"0", "false", "no", "off"})
    if (value == no) return "0";
  return value;
}

// The names of all flags, and of foreign ones, of variables or of XLA_FLAGS.
std::vector<std::string_view> KnownNames(bool of_xla_flags) {
  std::vector<std::string_view> names;
  for (const FlagRow& row : FlagRows())
    if (row.name.starts_with("--") == of_xla_flags) names.push_back(row.name);
  for (const ForeignRow& row : kForeignRows)
    if (row.name.starts_with("--") == of_xla_flags) names.push_back(row.name);
  return names;
}

// Whether the name is foreign, and what is to be said of its value.
bool IsForeign(std::string_view name, std::string_view value, std::vector<std::string>& warnings) {
  for (const ForeignRow& row : kForeignRows) {
    if (row.name != name) continue;
    if (value == "default") return true;
    if (row.here.empty() || Canonical(value) != Canonical(row.here))
      warnings.push_back(Str(name, " has no effect: ", row.why));
    return true;
  }
  return false;
}

// Null if there is none.
const FlagRow* FindFlag(std::string_view name) {
  for (const FlagRow& row : FlagRows())
    if (row.name == name) return &row;
  return nullptr;
}

// "PJRT_" of "PJRT_DEVICE".
std::string_view FamilyOf(std::string_view name) {
  return name.substr(0, std::min(name.find('_'), name.size() - 1) + 1);
}

// Whether a flag begins as this name does: other software has names of this family, too.
bool HasFlagOfItsFamily(std::string_view name) {
  const std::span<const FlagRow> rows = FlagRows();
  return std::any_of(rows.begin(), rows.end(), [name](const FlagRow& row) {
    return row.name.starts_with(FamilyOf(name)) && !row.name.starts_with("--");
  });
}

// The next word of the text; quotes keep white space together and are dropped.
absl::StatusOr<std::optional<std::string>> NextWord(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  std::string word;
  char quote = 0;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) break;
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else {
      word += c;
    }
  }
  if (quote != 0) return InvalidArgument("XLA_FLAGS: a quote is not closed: ", text);
  text.remove_prefix(i);
  return word;
}

absl::StatusOr<std::string> FileText(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr)
    return NotFound("XLA_FLAGS='", path,
                    "' neither begins with -- nor names a file that can be read");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  std::fclose(file);
  return text;
}

}  // namespace

std::span<const ForeignRow> ForeignRows() { return kForeignRows; }

absl::StatusOr<std::vector<XlaFlag>> ParseXlaFlags(std::string_view text) {
  std::string contents;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] != '-') {
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    LAZULI_ASSIGN_OR_RETURN(contents, FileText(std::string(text.substr(begin, end + 1 - begin))));
    text = contents;
  }
  std::vector<XlaFlag> result;
  while (true) {
    LAZULI_ASSIGN_OR_RETURN(const std::optional<std::string> word, NextWord(text));
    if (!word) return result;
    if (!word->starts_with("--"))
      return InvalidArgument("XLA_FLAGS: '", *word, "' is not a flag; flags are --name=value");
    const std::size_t equals = word->find('=');
    if (equals == std::string::npos) {
      result.push_back({*word, "true", false});
    } else {
      result.push_back({word->substr(0, equals), word->substr(equals + 1), true});
    }
  }
}

namespace {
// Those of XLA_FLAGS; none where its value does not parse. Not read as a flag: this is asked while a
// flag is being read.
std::vector<XlaFlag> GivenXlaFlags() {
  const char* const text = std::getenv("XLA_FLAGS");
  return ParseXlaFlags(text == nullptr ? "" : text).value_or(std::vector<XlaFlag>());
}
}  // namespace

const std::string* FindXlaFlag(std::string_view name) {
  static const auto* const given = new std::vector<XlaFlag>(GivenXlaFlags());
  const std::string* last = nullptr;
  for (const XlaFlag& flag : *given)
    if (flag.name == name) last = &flag.value;
  return last;
}

EnvironmentFindings CheckXlaFlags(std::string_view text) {
  EnvironmentFindings found;
  const absl::StatusOr<std::vector<XlaFlag>> given = ParseXlaFlags(text);
  if (!given.ok()) return {given.status(), {}};
  std::vector<std::string_view> known;
  for (const auto& [name, value, has_value] : *given) {
    const FlagRow* const row = FindFlag(name);
    if (row != nullptr && row->type != FlagType::kBool && !has_value) {
      found.error = InvalidArgument("XLA_FLAGS: ", name, " needs a value: ", name, "=...");
      return found;
    }
    if (row != nullptr || IsForeign(name, value, found.warnings)) continue;
    if (name.starts_with("--xla_gpu_") || name.starts_with("--xla_tpu_")) {
      found.warnings.push_back(Str(name, " has no effect: there is no such device"));
      continue;
    }
    if (known.empty()) known = KnownNames(/*of_xla_flags=*/true);
    found.error = CheckNames("XLA_FLAGS", "flag", {{name}}, known);
    return found;
  }
  return found;
}

EnvironmentFindings CheckVariables(std::span<const std::string_view> variables) {
  EnvironmentFindings found;
  std::vector<std::string_view> known;
  for (const std::string_view variable : variables) {
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string_view name = variable.substr(0, equals);
    const bool ours = BeginsWithOneOf(name, kFamilies);
    if (name.empty() || BeginsWithOneOf(name, kOthers) || !(ours || HasFlagOfItsFamily(name)))
      continue;
    const std::string_view value = variable.substr(std::min(equals + 1, variable.size()));
    if (FindFlag(name) != nullptr || IsForeign(name, value, found.warnings)) continue;
    if (known.empty()) known = KnownNames(/*of_xla_flags=*/false);
    const Nearest nearest = NearestName(name, known);
    if (nearest.distance > (ours ? kSlip : kSlipOfOthers)) {
      if (ours)
        found.warnings.push_back(Str("the environment's ", name,
                                     " is unknown and has no effect; the nearest is ",
                                     nearest.name));
    } else if (found.error.ok()) {
      found.error =
          InvalidArgument("the environment's ", name, " is unknown; is it ", nearest.name, "?");
    }
  }
  return found;
}

absl::Status CheckEnvironment() {
  std::vector<std::string_view> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  EnvironmentFindings found = CheckVariables(variables);
  EnvironmentFindings given = CheckXlaFlags(flags().xla_flags());
  found.warnings.insert(found.warnings.end(), given.warnings.begin(), given.warnings.end());
  for (const std::string& warning : found.warnings)
    std::fprintf(stderr, "lazuli: %s\n", warning.c_str());
  return found.error.ok() ? given.error : found.error;
}

}  // namespace lazuli::ir
