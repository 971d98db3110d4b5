// Compiling where the process may take no more memory.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/cpu_client.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

// The process may take so much more than it has.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t more) {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + more, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

TEST(MemoryLimitTest, ACompileThatWouldRunOutOfMemoryIsRefused) {
  if (!KernelsAvailable()) GTEST_SKIP() << "without LLVM a compile takes little memory";
  RegisterCpu();
  const Device device = *FindDevice("cpu");
  const auto compile = [&] {
    return device.client
        ->Compile(ParseHlo(R"(
          ENTRY main {
            x = f32[8] parameter(0)
            ROOT y = f32[8] add(x, x)
          })"),
                  {})
        .status();
  };
  {
    const MemoryLimit limit(rlim_t{100} << 20);
    EXPECT_EQ(compile(),
              absl::ResourceExhaustedError(
                  "compiling for the CPU needs 256 MiB, which the process does not get"));
  }
  EXPECT_EQ(compile(), absl::OkStatus());
}

}  // namespace
}  // namespace lazuli::cpu
