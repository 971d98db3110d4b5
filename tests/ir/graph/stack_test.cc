#include "ir/graph/stack.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lazuli::ir {
namespace {

SiteId Line(uint32_t line) { return InternSite("/u/train.cc", "void Train(int)", line); }

TEST(StackTest, ASiteKeepsItsLineInAnyScopeAndStack) {
  const ScopeId net = InternScope(kNoScope, "net"), conv = InternScope(net, "conv1");
  EXPECT_EQ(ScopeText(conv), "net/conv1");
  const SiteId inside = InScope(Line(4), conv);
  EXPECT_NE(inside, Line(4));
  EXPECT_EQ(InScope(Line(4), conv), inside);
  EXPECT_EQ(InScope(inside, kNoScope), Line(4));
  EXPECT_EQ(GetSite(inside).ToString(), "train.cc:4");
  EXPECT_EQ(GetSite(WithNote(inside, "hot")).note, "hot");
  EXPECT_EQ(GetSite(WithNote(inside, "hot")).scope, conv);
}

TEST(StackTest, AModuleInsideOfAnotherHasWhatRemainsOfItsPath) {
  const auto scope = [](std::string_view text) { return InternScope(kNoScope, text); };
  EXPECT_EQ(Rebased(scope("block/conv"), scope("block"), scope("Net/block")),
            scope("Net/block/conv"));
  EXPECT_EQ(Rebased(scope("conv"), scope("Net"), scope("Net")), scope("Net/conv"));
  EXPECT_EQ(Rebased(scope("blocks"), scope("block"), scope("block")), scope("block/blocks"));
  EXPECT_EQ(Rebased(scope("conv"), kNoScope, kNoScope), scope("conv"));
}

TEST(StackTest, FramesOfSitesAreTheSitesThatCalled) {
  const FrameWord callers[] = {Line(30), InternSite("/u/main.cc", "int main()", 7)};
  const SiteId site = WithStack(Line(4), InternStack(callers));
  EXPECT_EQ(InternStack(callers), GetSite(site).stack);
  std::vector<std::string> text;
  for (const Site& frame : FramesOf(site)) text.push_back(frame.ToString());
  EXPECT_THAT(text, testing::ElementsAre("train.cc:4", "train.cc:30", "main.cc:7"));
  EXPECT_EQ(FramesOf(Line(4)).size(), 1);
  EXPECT_TRUE(FramesOf(kNoSite).empty());
}

TEST(StackTest, AStackOfAnyDepthIsCut) {
  const std::vector<FrameWord> deep(1000, Line(4));
  EXPECT_EQ(FramesOf(WithStack(Line(5), InternStack(deep))).size(), kMostFrames + 1);
}

TEST(StackTest, NativeStacksAreKeptOncePerPlace) {
  std::vector<SiteId> sites;
  const volatile int count = 2;  // a loop that is unrolled has two places
  for (int i = 0; i < count; ++i) sites.push_back(WithNativeStack(Line(4)));
  EXPECT_EQ(sites[0], sites[1]);
  EXPECT_NE(GetSite(sites[0]).stack, kNoStack);
}

// Frames of one size, called from one place: what tells their stacks apart is where they return to.
[[gnu::noinline]] SiteId Inner() { return WithNativeStack(Line(4)); }
[[gnu::noinline]] SiteId First(int depth) {
  const SiteId site = depth == 0 ? Inner() : First(depth - 1);
  return site + 0;
}
[[gnu::noinline]] SiteId Second(int depth) {
  const SiteId site = depth == 0 ? Inner() : Second(depth - 1);
  return site + 0;
}

TEST(StackTest, StacksThatReturnElsewhereAreOthers) {
  std::vector<StackId> stacks;
  const std::vector<std::pair<SiteId (*)(int), int>> calls = {
      {First, 0}, {Second, 0}, {First, 3}, {Second, 3}};
  for (int round = 0; round < 2; ++round)
    for (const auto& [function, depth] : calls) stacks.push_back(GetSite(function(depth)).stack);
  EXPECT_THAT(std::vector(stacks.begin() + 4, stacks.end()),
              testing::ElementsAreArray(stacks.begin(), stacks.begin() + 4));
  stacks.resize(4);
  std::sort(stacks.begin(), stacks.end());
  EXPECT_EQ(std::unique(stacks.begin(), stacks.end()), stacks.end());
}

TEST(StackTest, NamesOfFunctionsWithoutTheirTypes) {
  EXPECT_EQ(ShortFunctionName("lazuli::Tensor Net::forward(const lazuli::Tensor&, int)"),
            "Net::forward");
  EXPECT_EQ(ShortFunctionName("main"), "main");
  EXPECT_EQ(ShortFunctionName("std::pair<int, long> F<int, long>(int)"), "F");
}

}  // namespace
}  // namespace lazuli::ir
