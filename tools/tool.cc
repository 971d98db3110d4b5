#include "tools/tool.h"

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <new>
#include <system_error>

#include "ir/support/flags.h"
#include "ir/support/status.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

template <class T>
absl::StatusOr<T> Parse(std::string_view option, std::string_view text, std::string_view kind) {
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size())
    return InvalidArgument(option, "=", text, ": not ", kind);
  return value;
}

// What --help-env prints: the table of docs/flags.md.
void PrintFlags() {
  for (const FlagRow& row : FlagRows()) {
    std::printf("%s\n",
                Str(row.name, " (", TypeText(row.type),
                    row.default_text.empty() ? "" : Str(", ", row.default_text), ")\n    ", row.doc)
                    .c_str());
  }
}

}  // namespace

bool TakeValue(std::string_view argument, std::string_view name, std::string* value) {
  if (!argument.starts_with(name) || argument.size() <= name.size() || argument[name.size()] != '=')
    return false;
  *value = argument.substr(name.size() + 1);
  return true;
}

absl::StatusOr<int64_t> ParseInteger(std::string_view option, std::string_view text) {
  return Parse<int64_t>(option, text, "a whole number");
}

absl::StatusOr<double> ParseNumber(std::string_view option, std::string_view text) {
  return Parse<double>(option, text, "a number");
}

absl::StatusOr<std::string> ReadAll(const std::string& file) {
  using Iterator = std::istreambuf_iterator<char>;
  if (file == "-") return std::string(Iterator(std::cin), Iterator());
  std::error_code ignored;
  std::ifstream in;
  if (!std::filesystem::is_directory(file, ignored)) in.open(file, std::ios::binary);
  if (!in.is_open()) return NotFound("cannot read ", file);
  std::string text{Iterator(in), Iterator()};
  if (in.bad()) return NotFound("cannot read ", file);
  return text;
}

int ToolMain(std::string_view tool, absl::Status (*run)(const std::vector<std::string_view>&),
             int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help-env") {
    PrintFlags();
    return 0;
  }
  absl::Status status = FlagErrors();
  try {
    if (status.ok()) status = run({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    status = ResourceExhausted("out of memory");
  } catch (const std::exception& error) {
    status = Internal(error.what());
  }
  if (status.ok()) return 0;
  // An empty message: everything has been said.
  if (!Message(status).empty())
    std::fprintf(stderr, "%s\n", Str(tool, ": ", Message(status)).c_str());
  return 1;
}

}  // namespace lazuli::tools
