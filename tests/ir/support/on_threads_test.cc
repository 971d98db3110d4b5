#include "ir/support/on_threads.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

TEST(OnThreadsTest, EachPieceIsDoneOnce) {
  for (const int threads : {-1, 0, 1, 3, 100}) {
    std::vector<std::atomic<int>> done(37);
    OnThreads(done.size(), threads, [&](std::size_t i) { ++done[i]; });
    for (const std::atomic<int>& count : done) EXPECT_EQ(count, 1) << threads;
  }
  OnThreads(0, 4, [](std::size_t) { FAIL(); });
}

TEST(OnThreadsTest, OneThreadIsTheCallersAndGoesInOrder) {
  std::vector<std::size_t> order;
  std::set<std::thread::id> threads;
  OnThreads(5, 1, [&](std::size_t i) {
    order.push_back(i);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

// Two pieces that wait for each other end only if two threads do them.
TEST(OnThreadsTest, PiecesRunAtTheSameTime) {
  std::atomic<int> begun{0};
  OnThreads(2, 2, [&](std::size_t) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
  });
  EXPECT_EQ(begun, 2);
}

}  // namespace
}  // namespace lazuli::ir
