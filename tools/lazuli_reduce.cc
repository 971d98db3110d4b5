// lazuli-reduce: cuts a module on which two devices disagree down to a small one on which they
// still do.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "tools/load_module.h"
#include "tools/reduce_module.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kUsage = R"(usage: lazuli-reduce FILE [options]
Reads a module (HLO text, or a serialised HloModuleProto if the name ends in .pb) that gives other values on one device
than on another, or fails there, and prints a small part of it that does so, too.

  --device=NAME         the device that is wrong (default cpu)
  --compare=NAME        the device that is right (default interpreter)
  --seed=N              draws the arguments (default 0)
  --atol=X, --rtol=X    values differ by more than atol + rtol * |value there| (default 1e-5 and 1e-4)
  -o OUT                write the result to OUT instead of standard output
  --help                print this
  --help-env            print the environment variables that it reads
)";

struct Options : ReduceOptions {
  std::string file, out;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  std::string value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (TakeValue(argument, "--device", &options.device) ||
        TakeValue(argument, "--compare", &options.compare))
      continue;
    if (TakeValue(argument, "--seed", &value)) {
      LAZULI_ASSIGN_OR_RETURN(options.seed, ParseInteger("--seed", value));
    } else if (TakeValue(argument, "--atol", &value)) {
      LAZULI_ASSIGN_OR_RETURN(options.atol, ParseNumber("--atol", value));
    } else if (TakeValue(argument, "--rtol", &value)) {
      LAZULI_ASSIGN_OR_RETURN(options.rtol, ParseNumber("--rtol", value));
    } else if (argument == "-o") {
      if (++i == arguments.size()) return InvalidArgument("-o needs the name of a file");
      options.out = arguments[i];
    } else if (argument.starts_with("-") && argument != "-") {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else if (!options.file.empty()) {
      return InvalidArgument("two files, ", options.file, " and ", argument, "; one is read");
    } else {
      options.file = argument;
    }
  }
  if (options.file.empty()) return InvalidArgument("no file; --help says how to use this");
  return options;
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const Options options, ParseOptions(arguments));
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> module, LoadModule(options.file));
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReducedText(*module, options, options.file));
  if (!options.out.empty()) return ir::WriteTextFile(options.out, text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("lazuli-reduce", lazuli::tools::Run, argc, argv);
}
