// Memory that cannot be had, at every place where a training step asks for some: the step fails,
// and the process goes on. Its own program, because it replaces operator new.
//
// Builds with a sanitizer see every object, as the pool of small objects is off there.
#include <atomic>
#include <cstdlib>

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"

namespace {

std::atomic<int64_t> allocations_left{-1};  // until one fails; negative: all succeed

void* Allocate(std::size_t bytes) {
  if (allocations_left.load() >= 0 && allocations_left.fetch_sub(1) == 0) return nullptr;
  return std::malloc(bytes);
}

}  // namespace

#include "tests/support/replace_new.h"

namespace lazuli::lazy {
namespace {

// A new model with an op of several results, one step of it and the loss after it: records,
// differentiates, updates in place, compiles unless the program is cached, runs, reads.
float Train(std::vector<ProgramPtr>* programs = nullptr) {
  const Tensor w = WithGrad(Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Tensor b = WithGrad(Floats({0, 1, 0}));
  const Tensor x = Of<float>({2, 2}, {1, -1, 0.5f, 2}), y = Of<int64_t>({2}, {2, 0});
  const auto loss = [&] {
    const Tensor sums = Matmul(x, w) + Sort(b, 0, /*descending=*/false).first;
    return CrossEntropy(Relu(sums), y, Reduction::kMean);
  };
  Backward(loss(), {}, {});
  {
    const GradModeGuard no_grad(false);
    for (const Tensor& p : {w, b}) Assign("add_", p, Add(p, Mul(GradOf(p), Slot(-0.1))));
  }
  ThrowIfError(Sync(/*wait=*/false));
  if (programs != nullptr) programs->push_back(LastProgram());
  const float after = Values(loss())[0];
  if (programs != nullptr) programs->push_back(LastProgram());
  return after;
}

#if defined(__SANITIZE_THREAD__)
constexpr int64_t kStride = 7;  // a compile takes a second
#else
constexpr int64_t kStride = 1;
#endif

class FaultTest : public OnEachClient {};
LAZULI_ON_EACH_CLIENT(FaultTest);

// Fails each allocation of Train() in turn; returns how many there are.
int64_t FailEach(bool cold) {
  std::vector<ProgramPtr>
      programs;  // hold the kernels: compile_fault_test fails LLVM's allocations
  const float expected = Train(&programs);
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  int64_t failed = 0;
  for (int64_t n = 0;; n += kStride) {
    if (cold) GetProgramCache().Clear();
    allocations_left = n;
    bool threw = false;
    try {
      EXPECT_EQ(Train(), expected);
    } catch (const std::bad_alloc&) {
      threw = true;
    } catch (const StatusError& error) {
      threw = true;
      EXPECT_EQ(error.status().code(), absl::StatusCode::kResourceExhausted) << error.status();
    }
    const bool reached = allocations_left.exchange(-1) < 0;
    failed += threw ? 1 : 0;
    // A failure that no read has reported yet is the next sync's to report.
    const absl::Status left = Sync();
    EXPECT_TRUE(left.ok() || left.code() == absl::StatusCode::kResourceExhausted) << left;
    EXPECT_EQ(Context::Current().pending_count(), 0) << n;
    EXPECT_EQ(Train(), expected) << "after the failure of allocation " << n;
    if (!reached) break;
  }
  EXPECT_TRUE(Sync().ok());
  EXPECT_EQ(created(), destroyed());
  return failed;
}

TEST_P(FaultTest, AStepThatCompilesSurvivesTheFailureOfEachAllocation) {
  EXPECT_GT(FailEach(/*cold=*/true), 300 / kStride);
}

TEST_P(FaultTest, ACachedStepSurvivesTheFailureOfEachAllocation) {
  EXPECT_GT(FailEach(/*cold=*/false), 10 / kStride);
}

}  // namespace
}  // namespace lazuli::lazy
