#include "ir/types/leaves.h"

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

// (f32[2], (s32[], token[]), (), pred[3])
Shape Nested() {
  return Shape::Tuple({Shape(DType::kF32, {2}), Shape::Tuple({Shape(DType::kS32), Shape::Token()}),
                       Shape::Tuple({}), Shape(DType::kPred, {3})});
}

TEST(LeavesTest, AreTheArraysDepthFirst) {
  std::string leaves;
  ForEachLeaf(Nested(), [&](const Shape& leaf) { leaves += leaf.ToString() + " "; });
  EXPECT_EQ(leaves, "f32[2] s32[] pred[3] ");
  EXPECT_EQ(LeafCount(Nested()), 3);
  EXPECT_EQ(LeavesOf(Shape(DType::kF32, {4})), std::vector{Shape(DType::kF32, {4})});
}

TEST(LeavesTest, PathsLeadToThem) {
  EXPECT_EQ(LeafAt(Nested(), {0}), 0);
  EXPECT_EQ(LeafAt(Nested(), {1, 0}), 1);
  EXPECT_EQ(LeafAt(Nested(), {3}), 2);
  EXPECT_EQ(LeafAt(Shape(DType::kF32, {4}), {}), 0);
  EXPECT_EQ(LeafAt(Nested(), {}), std::nullopt) << "a tuple";
  EXPECT_EQ(LeafAt(Nested(), {1, 1}), std::nullopt) << "a token";
  EXPECT_EQ(LeafAt(Nested(), {4}), std::nullopt);
  EXPECT_EQ(LeafAt(Nested(), {0, 0}), std::nullopt);
  EXPECT_EQ(PartAt(Nested(), {1})->ToString(), "(s32[], token[])");
}

TEST(LeavesTest, MakeTheValueAgain) {
  const std::vector<Literal> leaves = {
      Literal::Scalar<int32_t>(9), Literal::FromValues<float>({2}, {1, 2}),
      Literal::Scalar<int32_t>(7), Literal(Shape(DType::kPred, {3}))};
  std::size_t next = 1;
  const Literal value = FromLeaves(Nested(), leaves, &next);
  EXPECT_EQ(next, 4U);
  EXPECT_EQ(value.shape(), Nested());
  EXPECT_EQ(value.tuple()[0].AsDouble(1), 2);
  EXPECT_EQ(value.tuple()[1].tuple()[0].AsDouble(0), 7);
}

}  // namespace
}  // namespace lazuli::ir
