// lazuli-run: runs HLO modules on a device, with inputs from .npz files or from a seed.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/client/registry.h"
#include "ir/support/json.h"
#include "ir/support/status.h"
#include "tools/load_module.h"
#include "tools/npz.h"
#include "tools/reproduction.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

namespace fs = std::filesystem;
using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kUsage = R"(usage: lazuli-run FILE... [options]
Compiles and runs each FILE: HLO text, or a serialised HloModuleProto if its name ends in .pb. A folder that an error named
(lazuli-reproduction.*) is run as it was: its device, its inputs by seed, its flags but for those that are set now.

  --device=NAME           cpu, npu or interpreter; without it, what PJRT_DEVICE says (cpu)
  --inputs=IN.npz|FOLDER  the parameters' values p0, p1, ...; of a folder, FOLDER/STEM.in.npz for each FILE
  --seed=N                draw the inputs that no file has (without --inputs: all, from seed 0)
  --output=OUT.npz        write the outputs o0, o1, ... of the one FILE
  --output-dir=DIR        write those of each FILE to DIR/STEM.npz
  --compare=NAME          run on this device, too, and fail where results differ
  --atol=X, --rtol=X      by more than atol + rtol * |value there| (default 1e-5 and 1e-4)
  --repeat=N              run N times; run_ms is the shortest (default 1)
  --report=json           one JSON object a line: file, status, error, compile_ms, run_ms, kernels
  --help                  print this
  --help-env              print the environment variables that it reads

A parameter that is a tuple takes one input for each array in it. What a run sends by outfeed follows the root's
outputs; infeed has nothing to give here, a program that reads it needs lazuli/hlo.h (transfer_to_infeed). Types that NumPy lacks are read and written as their bits in the unsigned integer type of their width; `dtypes` in an
output names the HLO types. A file that fails does not stop the rest; the exit status is 0 if none failed.
)";

struct Options {
  std::vector<std::string> files;
  std::string device, inputs, output, output_dir, compare;
  std::optional<uint64_t> seed;
  double atol = 1e-5, rtol = 1e-4;
  int64_t repeat = 1;
  bool json = false;
  std::optional<Reproduction> reproduction;  // what the one FILE is
};

absl::StatusOr<bool> TakeNumber(std::string_view argument, Options& options) {
  std::string value;
  if (TakeValue(argument, "--seed", &value)) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("--seed", value));
    options.seed = static_cast<uint64_t>(seed);
  } else if (TakeValue(argument, "--atol", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.atol, ParseNumber("--atol", value));
  } else if (TakeValue(argument, "--rtol", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.rtol, ParseNumber("--rtol", value));
  } else if (TakeValue(argument, "--repeat", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.repeat, ParseInteger("--repeat", value));
    if (options.repeat < 1) return InvalidArgument("--repeat=", value, ": at least 1");
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  std::string value;
  for (std::string_view argument : arguments) {
    LAZULI_ASSIGN_OR_RETURN(const bool taken, TakeNumber(argument, options));
    if (taken || TakeValue(argument, "--device", &options.device) ||
        TakeValue(argument, "--inputs", &options.inputs) ||
        TakeValue(argument, "--output", &options.output) ||
        TakeValue(argument, "--output-dir", &options.output_dir) ||
        TakeValue(argument, "--compare", &options.compare)) {
      continue;
    }
    if (TakeValue(argument, "--report", &value)) {
      if (value != "json") return InvalidArgument("--report=", value, ": there is json");
      options.json = true;
    } else if (argument.starts_with("-") && argument != "-") {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else {
      options.files.emplace_back(argument);
    }
  }
  if (options.files.empty()) return InvalidArgument("no file; --help says how to use this");
  if (!options.output.empty() && options.files.size() > 1)
    return InvalidArgument("--output is for one file, ", options.files.size(),
                           " are given; --output-dir takes all");
  if (!options.output.empty() && !options.output_dir.empty())
    return InvalidArgument("--output or --output-dir, not both");
  return options;
}

// A folder in place of a file: the flags of this process become those that it was written with.
absl::Status TakeReproduction(Options& options) {
  for (const std::string& file : options.files) {
    if (!Reproduction::IsOne(file)) continue;
    if (options.files.size() > 1)
      return InvalidArgument(file, " brings its own flags, so it is run alone");
    LAZULI_ASSIGN_OR_RETURN(options.reproduction, Reproduction::Open(file));
    LAZULI_RETURN_IF_ERROR(options.reproduction->SetFlags());
    if (options.device.empty() && std::getenv("PJRT_DEVICE") == nullptr)
      options.device = options.reproduction->device;
    if (!options.seed && options.inputs.empty()) options.seed = options.reproduction->seed;
    options.files[0] = options.reproduction->module;
    break;
  }
  return absl::OkStatus();
}

std::string Stem(const std::string& file) {
  return file == "-" ? "stdin" : fs::path(file).stem().string();
}

// The file that holds the inputs of a module, or empty if there is none and they are to be drawn.
std::string InputsFile(const Options& options, const std::string& file) {
  std::error_code ignored;
  if (!fs::is_directory(options.inputs, ignored)) return options.inputs;
  const fs::path path = fs::path(options.inputs) / Str(Stem(file), ".in.npz");
  return fs::exists(path, ignored) ? path.string() : "";
}

absl::StatusOr<std::vector<Literal>> Inputs(const Options& options, const std::string& file,
                                            const hlo::Module& module) {
  std::optional<NpzReader> reader;
  if (const std::string path = InputsFile(options, file); !path.empty()) {
    LAZULI_ASSIGN_OR_RETURN(NpzReader opened, NpzReader::Open(path));
    reader = std::move(opened);
  }
  std::vector<Literal> inputs;
  for (const Shape& shape : InputShapes(module)) {
    const std::string name = Str("p", inputs.size());
    if (reader && (reader->Has(name) || !options.seed)) {
      LAZULI_ASSIGN_OR_RETURN(Literal value, reader->Read(name, shape));
      inputs.push_back(std::move(value));
    } else {
      inputs.push_back(RandomInput(shape, options.seed.value_or(0), inputs.size()));
    }
  }
  return inputs;
}

absl::Status WriteOutputs(const Options& options, const std::string& file,
                          const std::vector<Literal>& outputs) {
  if (options.output.empty() && options.output_dir.empty()) return absl::OkStatus();
  std::vector<std::pair<std::string, Literal>> arrays;
  for (const Literal& output : outputs) arrays.emplace_back(Str("o", arrays.size()), output);
  const std::string path = options.output.empty()
                               ? (fs::path(options.output_dir) / Str(Stem(file), ".npz")).string()
                               : options.output;
  return WriteNpz(path, arrays);
}

absl::StatusOr<RunResult> RunLoaded(const Options& options, const std::string& file,
                                    std::unique_ptr<hlo::Module> module, backend::Device device,
                                    std::optional<backend::Device> reference) {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Literal> inputs, Inputs(options, file, *module));
  std::unique_ptr<hlo::Module> copy = reference ? module->Clone() : nullptr;
  LAZULI_ASSIGN_OR_RETURN(RunResult result,
                          RunModule(std::move(module), device, inputs, options.repeat));
  if (reference) {
    LAZULI_ASSIGN_OR_RETURN(const RunResult expected,
                            RunModule(std::move(copy), *reference, inputs));
    absl::Status same =
        CompareOutputs(expected.outputs, result.outputs, options.rtol, options.atol);
    if (!same.ok()) return Prefixed(same, Str(device, " differs from ", *reference, ": "));
  }
  LAZULI_RETURN_IF_ERROR(WriteOutputs(options, file, result.outputs));
  return result;
}

// An error names the file. A module whose arrays do not fit in memory is its file's error, too.
absl::StatusOr<RunResult> RunFile(const Options& options, const std::string& file,
                                  backend::Device device,
                                  std::optional<backend::Device> reference) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, LoadModule(file));
  absl::Status failed;
  try {
    auto result = RunLoaded(options, file, std::move(module), device, reference);
    if (result.ok()) return result;
    failed = result.status();
  } catch (const std::bad_alloc&) {
    failed = ResourceExhausted("out of memory");
  } catch (const std::exception& error) {
    failed = Internal(error.what());
  }
  return Prefixed(failed, Str(file, ": "));
}

std::string JsonLine(const std::string& file, const absl::StatusOr<RunResult>& result) {
  std::string line = "{\"file\": ";
  AppendJsonString(line, file);
  if (result.ok()) {
    return Str(line, ", \"status\": \"ok\", \"error\": null, \"compile_ms\": ", result->compile_ms,
               ", \"run_ms\": ", result->run_ms, ", \"kernels\": ", result->stats.kernels,
               ", \"library_calls\": ", result->stats.library_calls,
               ", \"evaluator_thunks\": ", result->stats.evaluator_thunks,
               ", \"temp_bytes\": ", result->stats.temp_bytes, "}\n");
  }
  line += ", \"status\": \"error\", \"error\": ";
  AppendJsonString(line, Message(result.status()));
  return line + ", \"compile_ms\": null, \"run_ms\": null, \"kernels\": null}\n";
}

std::string TextLine(const std::string& file, const RunResult& result) {
  std::vector<std::string> shapes;
  for (const Literal& output : result.outputs) shapes.push_back(output.shape().ToString());
  return Str(file, ": ", Join(shapes, ", "), "; compiled in ", result.compile_ms, " ms, ran in ",
             result.run_ms, " ms, ", result.stats.kernels, " kernels\n");
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  for (std::string_view argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::cout << kUsage;
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(Options options, ParseOptions(arguments));
  LAZULI_RETURN_IF_ERROR(TakeReproduction(options));
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const backend::Device device, options.device.empty()
                                                            ? backend::DefaultDevice()
                                                            : backend::FindDevice(options.device));
  std::optional<backend::Device> reference;
  if (!options.compare.empty()) {
    LAZULI_ASSIGN_OR_RETURN(reference, backend::FindDevice(options.compare));
  }
  bool failed = false;
  for (const std::string& file : options.files) {
    const absl::StatusOr<RunResult> result = RunFile(options, file, device, reference);
    if (!result.ok()) {
      failed = true;
      std::cerr << "lazuli-run: " << Message(result.status()) << std::endl;
    }
    if (options.reproduction)
      std::cerr << "lazuli-run: " << options.reproduction->Verdict(result.status()) << std::endl;
    if (options.json) {
      std::cout << JsonLine(file, result) << std::flush;
    } else if (result.ok()) {
      std::cout << TextLine(file, *result) << std::flush;
    }
  }
  if (failed) return absl::Status(absl::StatusCode::kUnknown, "");
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("lazuli-run", lazuli::tools::Run, argc, argv);
}
