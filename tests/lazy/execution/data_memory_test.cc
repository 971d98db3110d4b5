// Memory for data that cannot be had, at every place where a training step asks for some: the step
// fails with a sentence that names the program and the line, and everything else goes on.
#include "ir/support/data_memory.h"

#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"

namespace lazuli::lazy {
namespace {

// A new model with an op of several results, one step of it and the loss after it: records,
// differentiates, updates in place, compiles unless the program is cached, runs, reads.
float Train(std::vector<CachedProgramPtr>* programs = nullptr) {
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

class DataMemoryTest : public OnEachClient {};
LAZULI_ON_EACH_CLIENT(DataMemoryTest);

// What a failure says: which program or op, how much memory, and for what line of the user's.
void ExpectRefusal(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(Message(status)),
              testing::ContainsRegex("out of memory: an? (buffer|array) of [0-9]+ bytes"));
}

// Fails each allocation of Train() in turn; returns how many there are.
int64_t FailEach(bool cold) {
  std::vector<CachedProgramPtr> programs;  // hold the kernels: LLVM takes long
  const float expected = Train(&programs);
  const Counted created(ir::Counter::kCreateTensor), destroyed(ir::Counter::kDestroyTensor);
  int64_t failed = 0;
  for (int64_t n = 0;; ++n) {
    if (cold) GetProgramCache().Clear();
    bool reached = false;
    {
      const ir::ScopedDataFault fault(n);
      try {
        const SiteScope site(ir::InternSite("train.cc", "main", 9));
        EXPECT_EQ(Train(), expected);
      } catch (const ir::NoDataMemory& error) {
        ExpectRefusal(error.status());
        ++failed;
      } catch (const StatusError& error) {
        ExpectRefusal(error.status());
        EXPECT_THAT(error.what(), testing::EndsWith("(train.cc:9)"));
        ++failed;
      }
      reached = fault.happened();
    }
    // A failure that no read has reported yet is the next sync's to report.
    const absl::Status left = Sync();
    if (!left.ok()) ExpectRefusal(left);
    EXPECT_EQ(Context::Current().pending_count(), 0) << n;
    EXPECT_EQ(Train(), expected) << "after the failure of allocation " << n;
    if (!reached) break;
  }
  EXPECT_TRUE(Sync().ok());
  EXPECT_EQ(created(), destroyed());
  return failed;
}

TEST_P(DataMemoryTest, AStepThatCompilesSurvivesTheFailureOfEachAllocation) {
  EXPECT_GT(FailEach(/*cold=*/true), 10);
}

TEST_P(DataMemoryTest, ACachedStepSurvivesTheFailureOfEachAllocation) {
  EXPECT_GT(FailEach(/*cold=*/false), 5);
}

}  // namespace
}  // namespace lazuli::lazy
