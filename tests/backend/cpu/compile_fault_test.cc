// Memory that cannot be had, at the places where a compile asks for some, LLVM's among them: the
// compile fails, and the next one, on the same thread and on another, does not.
//
// Each failure happens in a process of its own, which has compiled nothing before: what LLVM does
// once is then under way, too. Its own program, because it replaces malloc. LAZULI_FAULT_STRIDE=1
// fails every allocation in turn, which takes half an hour.
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <string>
#include <thread>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/cpu_client.h"
#include "ir/evaluator/evaluator.h"
#include "tests/support/hlo_test.h"

namespace {

enum class Shortage : uint8_t { kOfOne, kOfAllFromThere };

// What this thread gets.
struct Supply {
  int64_t allocations = -1;  // until one fails; negative: all succeed
  Shortage then = Shortage::kOfOne;
  bool failed = false;
};
thread_local Supply supply;

bool Fails() {
  if (supply.allocations != 0) {
    if (supply.allocations > 0) --supply.allocations;
    return false;
  }
  if (supply.then == Shortage::kOfOne) supply.allocations = -1;
  supply.failed = true;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
// glibc's, by the names that it keeps for this purpose.
void* __libc_malloc(std::size_t);               // NOLINT: reserved, for glibc
void* __libc_calloc(std::size_t, std::size_t);  // NOLINT
void* __libc_realloc(void*, std::size_t);       // NOLINT

void* malloc(std::size_t bytes) { return Fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return Fails() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  return Fails() ? nullptr : __libc_realloc(block, bytes);
}
}

namespace lazuli::cpu {
namespace {

// One kernel each, so that this thread compiles it.
struct ThunkProgram {
  const char* name;
  const char* hlo;
};
void PrintTo(const ThunkProgram& program, std::ostream* out) { *out << program.name; }

constexpr ThunkProgram kPrograms[] = {
    {"Loop", R"(
ENTRY main {
  x = f32[9] parameter(0)
  y = f32[9] exponential(x)
  z = f32[9] tanh(y)
  ROOT w = f32[9] subtract(z, x)
})"},
    {"Reduce", R"(
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[5,9] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[5] reduce(x, zero), dimensions={1}, to_apply=add
})"},
    {"Window", R"(
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
ENTRY main {
  x = f32[6,6] parameter(0)
  low = f32[] constant(-inf)
  ROOT r = f32[3,3] reduce-window(x, low), window={size=2x2 stride=2x2}, to_apply=max
})"},
    {"While", R"(
body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4] cosine(x)
  ROOT t = (s32[], f32[4]) tuple(next, y)
}
condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(i, ten), direction=LT
}
ENTRY main {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
})"},
};

class CompileFaultTest : public testing::TestWithParam<std::tuple<ThunkProgram, Shortage>> {
 protected:
  void SetUp() override {
    if (!KernelsAvailable()) GTEST_SKIP() << "there is no LLVM in this build";
    RegisterCpu();
    device_ = *FindDevice("cpu");
    module_ = ParseHlo(std::get<ThunkProgram>(GetParam()).hlo);
    argument_ = RandomArguments(*module_)[0];
    expected_ = *hlo::Evaluate(*module_, {{&argument_}});
  }

  absl::StatusOr<Literal> CompileAndRun() const {
    const auto executable = device_.client->Compile(module_->Clone(), {});
    if (!executable.ok()) return executable.status();
    const BufferPtr x =
        *device_.client->FromHost({argument_.raw(), &argument_.shape()}, {}, device_);
    const auto results = (*executable)->Execute({.buffers = {&x, 1}, .scalars = {}, .donated = {}});
    if (!results.ok()) return results.status();
    return device_.client->ToHost(*(*results)[0]);
  }

  // Exit status of a process that has memory for n allocations of a compile.
  enum Exit : int { kSurvived = 10, kHadEnough, kWrong };  // a library's exit(1) is none of them
  Exit Fail(int64_t n) const {
    auto module = module_->Clone();
    absl::StatusCode code = absl::StatusCode::kResourceExhausted;
    supply = {.allocations = n, .then = std::get<Shortage>(GetParam())};
    try {
      code = device_.client->Compile(std::move(module), {}).status().code();
    } catch (const std::bad_alloc&) {  // NOLINT: as good
    }
    const bool reached = supply.failed;
    supply = {};
    bool right = code == absl::StatusCode::kResourceExhausted || code == absl::StatusCode::kOk;
    if (!right) std::cerr << "the compile ended with code " << static_cast<int>(code) << '\n';
    const auto again = [&] {
      const auto result = CompileAndRun();
      const bool same = result.ok() && result->BitsEqual(expected_);
      if (!same) std::cerr << "the compile after: " << result.status() << '\n';
      right = right && same;
    };
    again();
    std::thread(again).join();
    if (!right) return kWrong;
    return reached ? kSurvived : kHadEnough;
  }

  static int InProcess(const std::function<int()>& f) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // where a lock is held forever
      _exit(f());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  Device device_;
  std::unique_ptr<hlo::Module> module_;
  Literal argument_, expected_;
};

TEST_P(CompileFaultTest, TheNextCompileSucceeds) {
  const char* const given = std::getenv("LAZULI_FAULT_STRIDE");
  const int64_t stride = given != nullptr ? std::atoll(given) : 197;
  int64_t failed = 0;
  for (int64_t n = 0;; n += stride) {
    const int exit = InProcess([&] { return Fail(n); });
    if (exit == kHadEnough) break;
    EXPECT_EQ(exit, kSurvived) << "allocation " << n;
    ++failed;
  }
  EXPECT_GT(failed * stride, 1000);
}

INSTANTIATE_TEST_SUITE_P(Kernels, CompileFaultTest,
                         testing::Combine(testing::ValuesIn(kPrograms),
                                          testing::Values(Shortage::kOfOne,
                                                          Shortage::kOfAllFromThere)),
                         [](const auto& info) {
                           const bool one = std::get<Shortage>(info.param) == Shortage::kOfOne;
                           return std::string(std::get<ThunkProgram>(info.param).name) +
                                  (one ? "OfOne" : "OfAll");
                         });

}  // namespace
}  // namespace lazuli::cpu
