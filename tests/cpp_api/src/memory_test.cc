// Memory of the CPU: plans, figures and the limit, seen from outside.
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "benchmarks/models.h"
#include <malloc.h>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
std::atomic<bool> fails{false};  // the next allocation of data
}
// The library's calls come here, because a program's symbols go before those of libraries.
extern "C" [[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment,
                                                              std::size_t bytes) noexcept {
  return fails.exchange(false) ? nullptr : memalign(alignment, bytes);
}
#endif

namespace lazuli {
namespace {

using testing::HasSubstr;

constexpr double kFloat = 4;

double Bytes(const std::vector<Tensor>& tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) bytes += kFloat * static_cast<double>(tensor.numel());
  return bytes;
}

// The step holds what it must - weights, gradients, momentum - and, where the gradient of the
// pooling is computed, the activations that backward still needs: the first convolution's, both
// sides of the pooling, and their gradients.
TEST(MemoryTest, AStepOfLeNetPlansLittleMoreThanItMustHold) {
  constexpr auto kBatch = static_cast<double>(bench::LeNet::kBatch);
  bench::Training<bench::LeNet> training;
  training.Step();
  sync(/*wait=*/true);
  const double weights = Bytes(bench::LeNet().parameters());
  const double conv1 = kFloat * kBatch * 32 * 26 * 26, conv2 = kFloat * kBatch * 64 * 24 * 24;
  const double pool = kFloat * kBatch * 64 * 12 * 12;
  const double must = 3 * weights + conv1 + 2 * conv2 + 2 * pool;
  const debug::MemoryPlan plan = debug::last_memory_plan();
  EXPECT_LE(static_cast<double>(plan.peak), 1.2 * must) << memory_report();
  EXPECT_EQ(plan.peak, plan.updated + plan.inputs + plan.outputs + plan.temp);
  EXPECT_EQ(static_cast<double>(plan.updated), 2 * weights);   // with the momentum
  EXPECT_LE(static_cast<double>(plan.outputs), weights + 64);  // the gradients, and the loss
  // The arena has next to no holes.
  EXPECT_LE(static_cast<double>(plan.temp), 1.02 * static_cast<double>(plan.live_temp));
  EXPECT_THAT(memory_report(), HasSubstr("planned peak"));
}

TEST(MemoryTest, FiguresFollowWhatIsAlive) {
  const std::int64_t before = memory_stats().bytes_in_use;
  {
    const Tensor x = ones({256, 1024}) * 2.0;
    sync(/*wait=*/true);
    EXPECT_EQ(memory_stats().bytes_in_use, before + (1 << 20));
    EXPECT_GE(memory_stats().peak_bytes, before + (1 << 20));
  }
  EXPECT_EQ(memory_stats().bytes_in_use, before);
  EXPECT_GE(memory_stats().cached_bytes, 1 << 20);
  EXPECT_EQ(memory_stats().limit_bytes, 0);
}

TEST(MemoryTest, ALimitRefusesAProgramWhichCanBeRunLater) {
  Tensor ballast = ones({1 << 20}) * 2.0;
  const Tensor x = ones({1 << 10}) * 2.0;
  sync(/*wait=*/true);
  set_memory_limit(memory_stats().bytes_in_use + (1 << 20));
  const Tensor y = x.reshape({1 << 10, 1}) * x;  // 4 MiB
  try {
    sync();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(error.what(), testing::MatchesRegex(
                                  ".*: needs 4.0 MiB .0 bytes of scratch, 4.0 MiB of results., but "
                                  ".* .LAZULI_MEMORY_LIMIT. are in use on cpu:0; nothing was run "
                                  ".memory_test.cc:[0-9]+."));
  }
  ballast = Tensor();
  EXPECT_EQ(y.sum().item(), 4.0 * (1 << 20));
  set_memory_limit(0);
  EXPECT_THROW(set_memory_limit(-1), Error);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose malloc is their own
template <class F>
std::string RefusalFor(F&& f) {
  fails = true;
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(MemoryTest, ATransferWithoutMemoryIsAnErrorAtItsLine) {
  const auto words = testing::MatchesRegex(
      "out of memory: an array of [0-9]+ bytes could not be allocated .memory_test.cc:[0-9]+.");
  const Tensor x = tensor({1.0f, 2.0f});
  EXPECT_THAT(RefusalFor([] { (void)tensor({1.0f, 2.0f}); }), words);
  EXPECT_THAT(RefusalFor([&] { (void)x.to_vector<float>(); }), words);
  EXPECT_THAT(x.to_vector<float>(), testing::ElementsAre(1, 2));
}
#endif

// A hook stands for the library's own code: what is not data has no second chance.
TEST(MemoryDeathTest, OtherMemoryThatIsNotThereEndsTheProcessWithASentence) {
  EXPECT_DEATH(
      {
        Tensor x = ones({2}).set_requires_grad(true);
        x.register_hook([](const Tensor&) -> Tensor { throw std::bad_alloc(); });
        x.sum().backward();
      },
      "lazuli: out of memory in a call of the library \\(memory_test.cc:[0-9]+\\); the process "
      "ends");
}

}  // namespace
}  // namespace lazuli
