#include "ir/support/error_place.h"

#include <gtest/gtest.h>

#include "ir/support/wrong_type.h"

namespace lazuli::ir {
namespace {

TEST(ErrorPlaceTest, OpGoesInFrontAndPlaceBehind) {
  const absl::Status status = AddPlace(InvalidArgument("dims differ"), "matmul", "train.cc:41");
  EXPECT_EQ(Message(status), "matmul: dims differ (train.cc:41)");
  EXPECT_EQ(OpOf(status), "matmul");
  EXPECT_EQ(PlaceOf(status), "train.cc:41");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(AddPlace(absl::OkStatus(), "matmul", "train.cc:41").ok());
}

TEST(ErrorPlaceTest, WhatIsKnownStaysAndWhatIsMissingIsAdded) {
  const absl::Status op = AddPlace(OutOfRange("index 3"), "select", "");
  EXPECT_EQ(Message(op), "select: index 3");
  EXPECT_EQ(PlaceOf(op), "");
  const absl::Status both = AddPlace(op, "caller", "train.cc:41");
  EXPECT_EQ(Message(both), "select: index 3 (train.cc:41)");
  EXPECT_EQ(Message(AddPlace(both, "caller", "other.cc:1")), "select: index 3 (train.cc:41)");
}

// A message may end in words that look like a place: nobody reads it.
TEST(ErrorPlaceTest, AMessageThatEndsLikeAPlaceHasNone) {
  EXPECT_EQ(Message(AddPlace(NotFound("nothing listens (host:80)"), "", "train.cc:41")),
            "nothing listens (host:80) (train.cc:41)");
}

TEST(ErrorPlaceTest, APrefixLosesNothing) {
  const absl::Status status = Prefixed(AddPlace(WrongType("f16"), "sort", "a.py:7"), "compiling: ");
  EXPECT_EQ(Message(status), "compiling: sort: f16 (a.py:7)");
  EXPECT_EQ(OpOf(status), "sort");
  EXPECT_EQ(PlaceOf(status), "a.py:7");
  EXPECT_TRUE(IsWrongType(status));
  EXPECT_EQ(Message(AddPlace(status, "", "b.py:1")), "compiling: sort: f16 (a.py:7)");
}

}  // namespace
}  // namespace lazuli::ir
