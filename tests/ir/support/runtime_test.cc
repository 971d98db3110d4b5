#include "ir/support/runtime.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

struct Numbers {
  std::atomic<int> made{0};
};
struct Others {
  int value = 7;
};
// Takes so long to make that several threads make it at once.
struct Slow {
  static inline std::atomic<int> alive{0};
  Slow() {
    alive += 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ~Slow() { alive -= 1; }
};

TEST(RuntimeTest, APartIsMadeOnceAndKeepsItsState) {
  Runtime::Get().Of<Numbers>().made = 5;
  EXPECT_EQ(&Runtime::Get().Of<Numbers>(), &Runtime::Get().Of<Numbers>());
  EXPECT_EQ(Runtime::Get().Of<Numbers>().made, 5);
  EXPECT_EQ(Runtime::Get().Of<Others>().value, 7);
}

TEST(RuntimeTest, AScopeStartsFromNothing) {
  Runtime::Get().Of<Numbers>().made = 5;
  {
    const Runtime::Scope fresh;
    EXPECT_EQ(Runtime::Get().Of<Numbers>().made, 0);
    Runtime::Get().Of<Numbers>().made = 9;
  }
  EXPECT_EQ(Runtime::Get().Of<Numbers>().made, 5);
}

TEST(RuntimeTest, ThreadsThatAskAtOnceGetTheSamePart) {
  const Runtime::Scope fresh;
  const int before = Slow::alive;
  std::vector<std::thread> threads;
  std::vector<Slow*> parts(8);
  for (Slow*& part : parts) threads.emplace_back([&part] { part = &Runtime::Get().Of<Slow>(); });
  for (std::thread& thread : threads) thread.join();
  for (const Slow* part : parts) EXPECT_EQ(part, parts[0]);
  EXPECT_EQ(Slow::alive, before + 1);
}

}  // namespace
}  // namespace lazuli::ir
