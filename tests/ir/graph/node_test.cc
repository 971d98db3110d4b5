#include "ir/graph/node.h"

#include <thread>

#include "ir/graph/post_order.h"
#include "tests/ir/graph/test_node.h"
#include "tests/support/small_stack.h"

namespace lazuli::ir::test {
namespace {

TEST(NodeTest, IsFreedWithItsLastUser) {
  const int64_t before = live_nodes;
  Value a = Leaf();
  Value sum = Op("add", {a, a});
  EXPECT_EQ(a.node->use_count(), 3u);
  a = {};
  EXPECT_EQ(live_nodes - before, 2);
  sum = {};
  EXPECT_EQ(live_nodes - before, 0);
}

TEST(NodeTest, AMillionNodeChainIsTracedKeyedAndFreedInASmallStack) {
  const int64_t before = live_nodes;
  lazuli::test::RunInSmallStack([&] {
    const int n = lazuli::test::kSanitized ? 100'000 : 1'000'000;
    Value x = Leaf();
    for (int i = 0; i < n; ++i) x = Op("neg", {x});
    Trace trace;
    trace.roots.push_back(x);
    TraceGraph(trace);
    EXPECT_EQ(trace.nodes.size(), static_cast<std::size_t>(n) + 1);
    KeyWriter key;
    AppendGraphKey(trace, key);
    EXPECT_GT(key.words().size(), static_cast<std::size_t>(n));
    trace.Clear();
    x = {};
  });
  EXPECT_EQ(live_nodes, before);
}

TEST(NodeTest, AWideGraphOfSharedNodesIsFreedOnce) {
  const int64_t before = live_nodes;
  {
    Value x = Leaf();
    for (int i = 0; i < 64; ++i) x = Op("add", {x, x});  // 2^64 paths, 65 nodes
    EXPECT_EQ(live_nodes - before, 65);
  }
  EXPECT_EQ(live_nodes, before);
}

TEST(NodeTest, TwoThreadsMayReleaseGraphsThatShareNodes) {
  const int64_t before = live_nodes;
  Value shared = Leaf();
  for (int i = 0; i < 1000; ++i) shared = Op("neg", {shared});
  Value left = shared, right = shared;
  for (int i = 0; i < 1000; ++i) left = Op("neg", {left}), right = Op("abs", {right});
  shared = {};
  std::thread other([&] { left = {}; });
  right = {};
  other.join();
  EXPECT_EQ(live_nodes, before);
}

TEST(SiteTest, IsInternedByFileFunctionAndLine) {
  const SiteId a = InternSite("dir/a.cc", "f", 3);
  EXPECT_EQ(InternSite("dir/a.cc", "f", 3), a);
  EXPECT_EQ(InternSiteCopy(std::string("dir/a.cc"), std::string("f"), 3), a);
  EXPECT_NE(InternSite("dir/a.cc", "f", 4), a);
  EXPECT_NE(InternSite("dir/a.cc", "g", 3), a);
  EXPECT_NE(InternSite("dir/b.cc", "f", 3), a);
  EXPECT_NE(a, kNoSite);
  EXPECT_EQ(GetSite(a).file, "dir/a.cc");
  EXPECT_EQ(GetSite(a).function, "f");
  EXPECT_EQ(GetSite(a).line, 3u);
}

TEST(SiteTest, PrintsTheBaseNameAndTheLine) {
  EXPECT_EQ(GetSite(InternSite("/long/way/train.cc", "main", 41)).ToString(), "train.cc:41");
  EXPECT_EQ(GetSite(InternSite("train.cc", "main", 41)).ToString(), "train.cc:41");
  EXPECT_EQ(GetSite(kNoSite).ToString(), "");
  EXPECT_EQ(GetSite(0xffffffff).ToString(), "");
}

// More sites than the direct-mapped cache of a thread has slots, twice.
TEST(SiteTest, StaysRightWhenTheCacheOfTheThreadOverflows) {
  std::vector<SiteId> first;
  for (uint32_t line = 1; line <= 2000; ++line) first.push_back(InternSite("x.cc", "f", line));
  for (uint32_t line = 1; line <= 2000; ++line) {
    ASSERT_EQ(InternSite("x.cc", "f", line), first[line - 1]);
    ASSERT_EQ(GetSite(first[line - 1]).line, line);
  }
}

}  // namespace
}  // namespace lazuli::ir::test
