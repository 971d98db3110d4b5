#include "ir/support/runtime.h"

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
  std::vector<std::thread> threads;
  std::vector<Numbers*> parts(8);
  for (Numbers*& part : parts)
    threads.emplace_back([&part] { part = &Runtime::Get().Of<Numbers>(); });
  for (std::thread& thread : threads) thread.join();
  for (const Numbers* part : parts) EXPECT_EQ(part, parts[0]);
}

}  // namespace
}  // namespace lazuli::ir
