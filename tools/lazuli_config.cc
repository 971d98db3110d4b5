// lazuli_config: how to build against an installed lazuli, and whether this machine runs it well.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "backend/client/registry.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/build_id.h"
#include "ir/support/disk_store.h"
#include "ir/support/flags.h"
#include "ir/support/parallel_for.h"
#include "ir/support/status.h"
#include "lazy/program/launcher.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

namespace fs = std::filesystem;
using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kUsage = R"(usage: lazuli_config OPTION
  --doctor    what this build and this machine are, and what is missing; exit status 1 if something does not work
  --version   of the library
  --prefix    where it is installed
  --cmakedir  for CMake: cmake -D lazuli_DIR=$(lazuli_config --cmakedir)
  --cflags    for a compiler: c++ $(lazuli_config --cflags) main.cc $(lazuli_config --libs)
  --libs
  --help      print this
  --help-env  print the environment variables that it reads
)";

// The parent of the folder of this program.
std::string Prefix() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? "/usr/local" : program.parent_path().parent_path().string();
}

void Row(std::string_view title, std::string_view text) {
  std::printf("%-13s %s\n", std::string(title).c_str(), std::string(text).c_str());
}

// The value of the first line "key : value" of a file, or nothing.
std::string ValueIn(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (line.compare(0, key.size(), key) != 0 || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// Which instruction sets that the kernels use this processor has.
std::string Features() {
  const std::string flags = Str(" ", ValueIn("/proc/cpuinfo", "flags"), " ");
  std::string text;
  for (const char* feature : {"sse4_1", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl",
                              "avx512_bf16", "avx512_vnni", "amx_bf16"}) {
    const bool has = flags.find(Str(" ", feature, " ")) != std::string::npos;
    text += Str(text.empty() ? "" : " ", has ? "" : "-", feature);
  }
  return text;
}

std::string Mebibytes(int64_t bytes) { return Str(bytes / (1 << 20), " MiB"); }

// Compiles and runs a product and an activation, and compares one element.
absl::Status SelfTest(backend::Device device) {
  constexpr char kModule[] = R"(HloModule self_test
    ENTRY main {
      x = f32[2,2] parameter(0)
      d = f32[2,2] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = f32[2,2] negate(d)
    })";
  LAZULI_ASSIGN_OR_RETURN(auto module, hlo::ParseModule(kModule));
  lazy::Launcher launcher(std::make_shared<lazy::Program>(std::move(module)), device, {});
  LAZULI_RETURN_IF_ERROR(launcher.Compile());
  const Literal x = Literal::FromValues<float>({2, 2}, {1, 2, 3, 4});
  LAZULI_ASSIGN_OR_RETURN(auto buffer,
                          device.client->FromHost({x.raw(), &x.shape()}, nullptr, device));
  const std::vector<backend::BufferPtr> buffers = {buffer};
  LAZULI_ASSIGN_OR_RETURN(auto outputs,
                          launcher.Run({.buffers = buffers, .scalars = {}, .donated = {}}));
  LAZULI_ASSIGN_OR_RETURN(const Literal result, device.client->ToHost(*outputs[0]));
  const auto values = result.data<float>();
  if (values[0] != -7 || values[3] != -22)
    return Internal("-(x x)[0,0] is ", values[0], ", not -7: values are wrong");
  return absl::OkStatus();
}

// One row a device; false if one does not work.
bool ShowDevices() {
  bool works = true;
  for (const std::string& platform : backend::RegisteredPlatforms()) {
    const auto client = backend::FindClient(platform);
    if (!client.ok()) {
      Row(platform, Str("does not start: ", Message(client.status())));
      works = false;
      continue;
    }
    for (const backend::Device& device : (*client)->devices()) {
      const absl::Status test = SelfTest(device);
      works = works && test.ok();
      Row(device.ToString(), Str(Join((*client)->engines(), "; "), "; self-test ",
                                 test.ok() ? std::string_view("passed") : Message(test)));
    }
  }
  const auto device = backend::DefaultDevice();
  Row("default", device.ok() ? device->ToString() : std::string(Message(device.status())));
  return works && device.ok();
}

bool ShowKernelStore() {
  const std::string& folder = flags().persistent_cache_path();
  if (folder.empty()) {
    Row("kernels", "compiled anew by each process; XLA_PERSISTENT_CACHE_PATH=FOLDER keeps them");
    return true;
  }
  const auto store = DiskStore::Open(folder, flags().persistent_cache_bytes());
  Row("kernels", store.ok() ? Str("kept in ", folder, ": ", Mebibytes((*store)->bytes()),
                                  " of at most ", Mebibytes(flags().persistent_cache_bytes()))
                            : Str("not kept: ", Message(store.status())));
  return store.ok();
}

void ShowEnvironment() {
  for (const FlagRow& row : FlagRows()) {
    if (const char* value = std::getenv(std::string(row.name).c_str()); value != nullptr)
      Row("environment", Str(row.name, "=", std::string_view(value)));
  }
}

bool Doctor() {
  Row("lazuli", Str(LAZULI_VERSION, ", ", LAZULI_BUILD_TYPE, ", build ", BuildId()));
  Row("compiler", Str("C++ ", __VERSION__));
  Row("processor", ValueIn("/proc/cpuinfo", "model name"));
  Row("features", Str(Features(), "  (-: missing)"));
  Row("threads", Str(NumThreads(), " for kernels, of ", ::sysconf(_SC_NPROCESSORS_ONLN)));
  Row("memory", Mebibytes(::sysconf(_SC_PHYS_PAGES) / 1024 * ::sysconf(_SC_PAGE_SIZE) * 1024));
  ShowEnvironment();
  bool works = true;
  if (const absl::Status bad = FlagErrors(); !bad.ok()) {
    Row("environment", Message(bad));
    works = false;
  }
  works = ShowDevices() && works;
  works = ShowKernelStore() && works;
  Row("verdict", works ? "everything works" : "something does not work: see above");
  return works;
}

absl::Status Run(const std::vector<std::string_view>& arguments) {
  const std::string_view option = arguments.size() == 1 ? arguments[0] : "";
  const std::string prefix = Prefix(), lib = Str(prefix, "/", LAZULI_LIB_DIR);
  std::string answer;
  if (option == "--version") {
    answer = LAZULI_VERSION;
  } else if (option == "--prefix") {
    answer = prefix;
  } else if (option == "--cmakedir") {
    answer = Str(lib, "/cmake/lazuli");
  } else if (option == "--cflags") {
    answer = Str("-std=c++20 -I", prefix, "/", LAZULI_INCLUDE_DIR);
  } else if (option == "--libs") {
    answer = Str("-L", lib, " -Wl,-rpath,", lib, " -llazuli");
  } else if (option == "--help") {
    answer = kUsage.substr(0, kUsage.size() - 1);
  } else {
    return InvalidArgument(
        "takes one of --doctor, --version, --prefix, --cmakedir, --cflags, "
        "--libs, --help");
  }
  std::printf("%s\n", answer.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  lazuli::tools::RegisterPlatforms();
  // The doctor reports a bad environment itself, and what it tries on a device is nobody's program.
  if (argc == 2 && std::string_view(argv[1]) == "--doctor") {
    setenv("NPU_SUMMARY", "0", /*replace=*/0);
    return lazuli::tools::Doctor() ? 0 : 1;
  }
  return lazuli::tools::ToolMain("lazuli_config", lazuli::tools::Run, argc, argv);
}
