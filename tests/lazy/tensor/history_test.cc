#include "lazy/tensor/history.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "ir/support/runtime.h"

namespace lazuli::lazy {
namespace {

// Records what a program does, one character a node, and notes where it is cut. Pending tensors: as
// many as the character is far from '.', which marks the end of an iteration.
class Program {
 public:
  explicit Program(int64_t limit) : history_(limit) {}
  void Record(std::string_view nodes) {
    for (const char node : nodes) {
      text_ += node;
      history_.Add(static_cast<uint32_t>(node), 10 + (node - '.'));
      if (history_.due() && history_.CutHere()) Sync();
    }
  }
  void Sync() {
    history_.Clear();
    pieces_.push_back(text_);
    text_.clear();
  }
  const std::vector<std::string>& pieces() const { return pieces_; }
  std::set<std::string> distinct(std::size_t from = 0) const {
    return {pieces_.begin() + static_cast<std::ptrdiff_t>(from), pieces_.end()};
  }

 private:
  History history_;
  std::string text_;
  std::vector<std::string> pieces_;
};

TEST(HistoryTest, ALoopIsCutAtTheEndOfAnIteration) {
  for (const std::string_view iteration : {".", "a.", "abc.", "abcabcd.", "abababababababc."}) {
    SCOPED_TRACE(iteration);
    Program program(100);
    for (int k = 0; k < 1000; ++k) program.Record(iteration);
    ASSERT_GT(program.pieces().size(), 5u);
    EXPECT_EQ(program.distinct().size(), 1u);
    for (const std::string& piece : program.pieces()) {
      EXPECT_EQ(piece.back(), '.');
      EXPECT_GT(piece.size(), 100u);
      EXPECT_LE(piece.size(), 100u + iteration.size());
    }
  }
}

TEST(HistoryTest, WhatComesBeforeTheLoopDoesNotMatterForLong) {
  Program program(100);
  program.Record("preparations of a model that do not repeat in any way");
  for (int k = 0; k < 1000; ++k) program.Record("abcdefg.");
  EXPECT_EQ(program.distinct(1).size(), 1u);
}

TEST(HistoryTest, AnIterationLongerThanTheLimitIsCutWhenItHasRepeated) {
  std::string iteration;
  for (int k = 0; k < 299; ++k) iteration += static_cast<char>('A' + (k * k * k / 7) % 61);
  iteration += '.';
  Program program(100);
  for (int k = 0; k < 50; ++k) program.Record(iteration);
  ASSERT_GT(program.pieces().size(), 5u);
  EXPECT_EQ(program.distinct().size(), 1u);
  EXPECT_EQ(program.pieces()[0].size() % iteration.size(), 0u);
}

// Where several places are as good, the next graph begins where this one did.
TEST(HistoryTest, PlacesThatAreAsGoodDoNotTakeTurns) {
  Program program(100);
  program.Record("preparations");
  for (int k = 0; k < 1000; ++k) program.Record("a.b.c.d.efghi");
  EXPECT_EQ(program.distinct(1).size(), 1u);
}

// A read every seven iterations: the same pieces from read to read.
TEST(HistoryTest, SyncsOfTheProgramStartAnew) {
  Program program(100);
  for (int k = 0; k < 700; ++k) {
    program.Record("abcdefghijklmnopqrs.");
    if (k % 7 == 6) program.Sync();
  }
  EXPECT_EQ(program.distinct().size(), 2u);
}

TEST(HistoryTest, AGraphThatDoesNotRepeatIsCutAtLast) {
  Program program(100);
  std::string nodes;
  for (uint32_t k = 0, random = 1; k < 20'000; ++k) {
    random = random * 1664525 + 1013904223;
    nodes += static_cast<char>('.' + (random >> 26));
  }
  program.Record(nodes);
  ASSERT_EQ(program.pieces().size(), 20'000u / 1601);
  for (const std::string& piece : program.pieces()) EXPECT_EQ(piece.size(), 1601u);
}

TEST(HistoryTest, ALoopInAnIterationIsNotTakenForIt) {
  Program program(500);
  std::string iteration;
  for (int k = 0; k < 30; ++k) iteration += "uvwxyz";
  iteration += "BACKWARD.";
  for (int k = 0; k < 300; ++k) program.Record(iteration);
  EXPECT_EQ(program.distinct().size(), 1u);
  for (const std::string& piece : program.pieces()) EXPECT_EQ(piece.back(), '.');
}

// If the iteration is too long to be seen twice, between two turns of the loop in it: of the places
// where a piece may begin there are as many as turns.
TEST(HistoryTest, ALongIterationIsCutInTheLoopInIt) {
  Program program(100);
  std::string iteration;
  for (int k = 0; k < 30; ++k) iteration += "uvwxyz";
  iteration += "BACKWARD.";
  for (int k = 0; k < 3000; ++k) program.Record(iteration);
  EXPECT_LE(program.distinct().size(), 30u);
}

TEST(HistoryTest, WithoutALimitEveryNodeIsCut) {
  Program program(0);
  program.Record("abc");
  EXPECT_EQ(program.pieces(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST(HistoryTest, AHugeLimitIsTakenAsItIs) {
  const int64_t limit = 100'000;
  History history(limit);
  for (int64_t k = 0; k < limit; ++k) history.Add(7, 1);
  EXPECT_FALSE(history.due());
  history.Add(7, 1);
  EXPECT_TRUE(history.due());
  EXPECT_TRUE(history.CutHere());
}

TEST(HistoryTest, ALoopThatChangesIsLookedAtAgain) {
  Program program(100);
  for (int k = 0; k < 12; ++k) program.Record("abcdefg.");
  for (int k = 0; k < 500; ++k) program.Record("hijklmnopqrstuvw.");
  ASSERT_GT(program.pieces().size(), 5u);
  EXPECT_EQ(program.distinct(1).size(), 1u);
}

TEST(HistoryTest, EagerModeIsTheRuntimes) {
  ASSERT_FALSE(History::eager());
  {
    const ir::Runtime::Scope fresh;
    History::SetEager(true);
    EXPECT_TRUE(History::eager());
  }
  EXPECT_FALSE(History::eager());
}

}  // namespace
}  // namespace lazuli::lazy
