// What a step of a running training loop costs besides its arithmetic: no memory from the system,
// and no lock for a kernel. Its own program, because it replaces operator new and counts locks.
//
// What oneDNN allocates inside its own functions, some lists of arguments for each call, is counted
// apart.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include "benchmarks/models.h"
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <lazuli/lazuli.h>

namespace {

// Kernels have their code from the first step on. Set before the library reads the flag.
[[maybe_unused]] const int all_compiled = setenv("LAZULI_INTERPRET_OPS", "0", 1);

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0}, in_library{0}, locks{0};
thread_local bool inside_library = false;

void* Allocate(std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed)) ++(inside_library ? in_library : allocations);
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes); }
void* operator new[](std::size_t bytes) { return Allocate(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

// The library's calls come here, because a program's symbols go before those of libraries.
template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

extern "C" [[gnu::visibility("default")]] int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* const lock = Next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  if (counting.load(std::memory_order_relaxed)) ++locks;
  return lock(mutex);
}

extern "C" [[gnu::visibility("default")]] int dnnl_primitive_execute(void* primitive, void* stream,
                                                                     int count, void* arguments) {
  static auto* const execute = Next<int(void*, void*, int, void*)>("dnnl_primitive_execute");
  inside_library = true;
  const int status = execute(primitive, stream, count, arguments);
  inside_library = false;
  return status;
}

extern "C" [[gnu::visibility("default")]] int dnnl_memory_set_data_handle_v2(void* memory,
                                                                             void* handle,
                                                                             void* stream) {
  static auto* const set = Next<int(void*, void*, void*)>("dnnl_memory_set_data_handle_v2");
  inside_library = true;
  const int status = set(memory, handle, stream);
  inside_library = false;
  return status;
}

namespace lazuli {
namespace {

struct Cost {
  std::int64_t allocations, in_library, locks, buffers;
};

// Of `steps` calls of `step` and their runs, once the loop is warm.
template <class Step>
Cost CostOf(int steps, Step step) {
  const auto run = [&](int count) {
    for (int i = 0; i < count; ++i) step();
    sync(/*wait=*/true);
  };
  run(150);  // until what one thread drops comes back to the other
  allocations = in_library = locks = 0;
  const std::int64_t buffers = metrics::counter("buffer.allocations");
  counting = true;
  run(steps);
  counting = false;
  return {allocations, in_library, locks, metrics::counter("buffer.allocations") - buffers};
}

// Plain gradient descent, as a user might write it.
void Descend(std::vector<Tensor>& parameters) {
  const NoGrad no_grad;
  for (Tensor& p : parameters) p.sub_(p.grad(), 0.01);
}

// Least squares: kernels only, no call of a library.
TEST(SteadyStepTest, AStepOfKernelsAllocatesNothing) {
  const Tensor x = randn({32, 8}), y = randn({32});
  std::vector<Tensor> w = {zeros({8}).set_requires_grad(true)};
  const Dims rows{1};
  DeferredItem last;
  const Cost cost = CostOf(50, [&] {
    w[0].set_grad({});
    const Tensor error = (x * w[0]).sum(rows) - y;
    const Tensor loss = (error * error).mean();
    loss.backward();
    Descend(w);
    last = loss.item_async();
    sync(/*wait=*/true);  // the threads take turns, so that each step is like the one before
  });
  EXPECT_EQ(debug::last_stats().library_calls, 0);
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.buffers, 0);
}

template <class Optimizer, class Options>
Cost CostOfLeNetWith(const Options& options) {
  bench::LeNet net;
  Optimizer opt(net.parameters(), options);
  const Tensor x = randn({2, 1, 28, 28}), y = zeros({2}, kInt64);
  constexpr int kSteps = 10;
  const Cost cost = CostOf(kSteps, [&] {
    opt.zero_grad();
    nn::functional::cross_entropy(net.forward(x), y).backward();
    opt.step();
    sync(/*wait=*/true);  // the threads take turns, so that each step is like the one before
  });
  const std::int64_t calls = debug::last_stats().library_calls;
  testing::Test::RecordProperty("library_calls", std::to_string(calls));
  testing::Test::RecordProperty("library_allocations", std::to_string(cost.in_library / kSteps));
  return cost;
}

// Recorded by one thread, run by another and the pool's, with calls of oneDNN.
TEST(SteadyStepTest, LeNetWithMomentumAllocatesNothing) {
  const Cost cost = CostOfLeNetWith<optim::SGD, optim::SGDOptions>({.lr = 0.01, .momentum = 0.9});
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.buffers, 0);
}

TEST(SteadyStepTest, LeNetWithAdamAllocatesNothing) {
  const Cost cost = CostOfLeNetWith<optim::Adam, optim::AdamOptions>({.weight_decay = 1e-3});
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.buffers, 0);
}

TEST(SteadyStepTest, LeNetWithRmspropAllocatesNothing) {
  const Cost cost =
      CostOfLeNetWith<optim::RMSprop, optim::RMSpropOptions>({.momentum = 0.9, .centered = true});
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.buffers, 0);
}

// Reductions cannot be fused: `count` kernels, whose number is no reason for a lock.
TEST(SteadyStepTest, LocksDoNotGrowWithKernels) {
  constexpr int kSteps = 10;
  const auto locks_of = [](int count) {
    const Tensor x = randn({16, 16});
    const Cost cost = CostOf(kSteps, [&] {
      Tensor y = x;
      for (int i = 0; i < count; ++i) y = x * y.sum({1});
      const DeferredItem sum = y.sum().item_async();
      sync(/*wait=*/true);  // the threads take turns, so that each step is like the one before
    });
    EXPECT_GE(debug::last_stats().kernels, count);
    return cost.locks;
  };
  // Who waits for whom, and for how long, differs from run to run.
  EXPECT_NEAR(static_cast<double>(locks_of(4)), static_cast<double>(locks_of(40)), 2 * kSteps);
}

std::int64_t ResidentBytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

TEST(SteadyStepTest, AHundredThousandStepsHoldMemoryFlat) {
  Tensor x = zeros({8});
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      x.add_(1.0);
      const DeferredItem first = x.sum().item_async();
      mark_step();
      if (i % 1000 == 0) (void)first.get();
    }
    sync(/*wait=*/true);
  };
  steps(10000);
  const MemoryStats before = memory_stats();
  const std::int64_t resident = ResidentBytes(), compiled = metrics::counter("UncachedCompile");
  const std::int64_t alive =
      metrics::counter("CreateXlaTensor") - metrics::counter("DestroyXlaTensor");
  steps(90000);
  EXPECT_EQ(memory_stats().bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(memory_stats().cached_bytes, before.cached_bytes);
  EXPECT_EQ(metrics::counter("CreateXlaTensor") - metrics::counter("DestroyXlaTensor"), alive);
  EXPECT_EQ(metrics::counter("UncachedCompile"), compiled);
  EXPECT_LE(ResidentBytes() - resident, 1 << 20);
  EXPECT_EQ(x.sum().item(), 8 * 100000.0);
}

}  // namespace
}  // namespace lazuli
