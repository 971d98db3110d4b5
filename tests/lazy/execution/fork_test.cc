// Processes that fork after they used the library: both go on, on every device.

#include "tests/support/fork.h"

#include <atomic>
#include <thread>

#include "ir/support/fork.h"
#include "lazy/autograd/backward.h"
#include "tests/lazy/execution/each_client.h"
#include "tests/lazy/execution/failing_client.h"

namespace lazuli::lazy {
namespace {

using test::InChild;
using testing::ElementsAre;

class ForkTest : public OnEachClient {};
LAZULI_ON_EACH_CLIENT(ForkTest);

bool Is(const Tensor& x, const std::vector<float>& values) { return Values(x) == values; }

TEST_P(ForkTest, TheChildReadsRecordsComputesAndSyncs) {
  const Tensor x = Floats({1, 2});
  ASSERT_TRUE(Is(x + x, {2, 4}));
  const Tensor pending = x * 3.0;
  const auto work = [&] {
    const Tensor w = WithGrad(Floats({1, 1}));
    Backward(Sum(w * x), Tensor(), {});
    Assign("add_", x, x + pending);
    return Is(pending, {3, 6}) && Is(x, {4, 8}) && Is(GradOf(w), {1, 2}) &&
           Sync(/*wait=*/true).ok();
  };
  EXPECT_TRUE(InChild(work));
  EXPECT_TRUE(InChild([&] { return InChild(work) && work(); }));
  EXPECT_TRUE(Is(x, {1, 2}));  // its own, still
  EXPECT_TRUE(work());
}

TEST_P(ForkTest, AChildThatDoesNothingMayExit) {
  ASSERT_TRUE(Is(Floats({1}) * 2.0, {2}));
  EXPECT_EXIT(std::exit(3), testing::ExitedWithCode(3), "");
}

// Another thread records, compiles and runs all the while.
TEST_P(ForkTest, WhileOtherThreadsWork) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer's allocator does not hold its locks while the process forks: a "
                  "child may wait for one that a thread had";
#endif
  const Tensor x = Floats({1, 2});
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread other([&] {
    Tensor y = Floats({1, 2});
    for (int i = 0; !stop; ++i) {
      y = y + x;
      const bool good = i % 20 == 0 ? !Values(y).empty() : i % 3 != 0 || Sync(/*wait=*/false).ok();
      EXPECT_TRUE(good);
      ++rounds;
    }
  });
  while (rounds < 5) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(InChild([&] { return Is(x * 2.0, {2, 4}) && Is(x + x + x, {3, 6}); })) << i;
    const int before = rounds;
    while (rounds < before + 3) std::this_thread::yield();
  }
  stop = true;
  other.join();
}

// A run in flight is waited for, so its results are there in both.
TEST_P(ForkTest, WhileARunIsInFlight) {
  if (TestClient()->platform() != "interpreter") GTEST_SKIP();
  static auto* client = new backend::FailingClient;
  const Tensor x = FromLiteral(Literal::FromValues<float>({2}, {1, 2}), client->device());
  client->Hold();
  const Tensor y = x + x;
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    client->Release();
  });
  EXPECT_TRUE(InChild([&] { return Is(y, {2, 4}) && Is(y * y, {4, 16}); }));
  release.join();
  EXPECT_THAT(Values(y), ElementsAre(2, 4));
}

// One that is not over in time makes the child say so, at once and for good; the parent goes on.
TEST_P(ForkTest, WhileARunIsInFlightThatTakesLonger) {
  if (TestClient()->platform() != "interpreter") GTEST_SKIP();
  static auto* client = new backend::FailingClient;
  const Tensor x = FromLiteral(Literal::FromValues<float>({2}, {1, 2}), client->device());
  client->Hold();
  const Tensor y = x + x;
  ASSERT_TRUE(Sync(/*wait=*/false).ok());
  ir::SetForkPatience(std::chrono::milliseconds(50));
  EXPECT_TRUE(InChild([&] {
    const auto says = [](const absl::Status& status) {
      return Message(status).find("this process was forked while a thread was at work") !=
             std::string::npos;
    };
    return says(ErrorOf([&] { (void)Values(y); })) && says(ErrorOf([&] { (void)Values(x * x); })) &&
           says(Sync());
  }));
  ir::SetForkPatience(std::chrono::seconds(10));
  client->Release();
  EXPECT_THAT(Values(y), ElementsAre(2, 4));
}

}  // namespace
}  // namespace lazuli::lazy
