#include "ir/types/shape.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

TEST(ShapeTest, PrintsAsHlo) {
  EXPECT_EQ(Shape(DType::kF32).ToString(true), "f32[]");
  EXPECT_EQ(Shape(DType::kF32, {2, 3}).ToString(), "f32[2,3]");
  EXPECT_EQ(Shape(DType::kF32, {2, 3}).ToString(true), "f32[2,3]{1,0}");
  EXPECT_EQ(Shape(DType::kS8, {2, 3}).WithLayout({0, 1}).ToString(true), "s8[2,3]{0,1}");
  EXPECT_EQ(Shape::Token().ToString(true), "token[]");
  EXPECT_EQ(Shape().ToString(), "()");
  EXPECT_EQ(
      Shape::Tuple({Shape(DType::kPred), Shape::Tuple({Shape(DType::kU64, {4})})}).ToString(true),
      "(pred[], (u64[4]{0}))");
  Shape dynamic(DType::kF32, {4, 5});
  dynamic.set_dynamic_dims(2);
  EXPECT_EQ(dynamic.ToString(), "f32[4,<=5]");
}

TEST(ShapeTest, SizesCountElementsAndBytes) {
  EXPECT_EQ(Shape(DType::kF64, {2, 3}).byte_size(), 48);
  EXPECT_EQ(Shape(DType::kS4, {10}).byte_size(), 10);  // one element a byte
  EXPECT_EQ(Shape(DType::kF32, {2, 0, 3}).num_elements(), 0);
  EXPECT_EQ(Shape(DType::kF32).num_elements(), 1);
  EXPECT_EQ(Shape::Tuple({Shape(DType::kF32, {2}), Shape(DType::kPred)}).byte_size(), 9);
  EXPECT_EQ(Shape::Token().byte_size(), 0);
}

TEST(ShapeTest, MakeRefusesWhatNoMemoryHolds) {
  EXPECT_EQ(Shape::Make(DType::kF32, {2, 3})->ToString(), "f32[2,3]");
  EXPECT_EQ(Message(Shape::Make(DType::kF32, {2, -1}).status()),
            "dimension -1 of f32[2,-1] is negative");
  EXPECT_EQ(Message(Shape::Make(DType::kF32, {1000000, 1000000}).status()),
            "f32[1000000,1000000] is larger than 1099511627776 bytes");
  EXPECT_EQ(Message(Shape::Make(DType::kS8, {int64_t{1} << 62, 4, 0}).status()),
            "s8[4611686018427387904,4,0] is larger than 1099511627776 bytes");
  EXPECT_EQ(Message(Shape::Make(DType::kF32, Dims(65, 1)).status()), "rank 65 is larger than 64");
  EXPECT_TRUE(Shape::Make(DType::kS8, {int64_t{1} << 40}).ok());
}

TEST(ShapeTest, RowMajorLayoutIsNoLayout) {
  const Shape plain(DType::kF32, {2, 3, 4});
  EXPECT_EQ(plain.WithLayout({2, 1, 0}), plain);
  EXPECT_FALSE(plain.WithLayout({2, 1, 0}).has_layout());
  const Shape other = plain.WithLayout({0, 1, 2});
  EXPECT_TRUE(other.has_layout());
  EXPECT_NE(other, plain);
  EXPECT_TRUE(Compatible(other, plain));
  EXPECT_EQ(other.WithDefaultLayout(), plain);
  EXPECT_EQ(Shape::Tuple({other}).WithDefaultLayout(), Shape::Tuple({plain}));
}

TEST(ShapeTest, CopiesAreIndependent) {
  Shape a = Shape(DType::kF32, {2, 3}).WithLayout({0, 1});
  Shape b = a;
  b.set_dim(0, 7);
  b = b.WithDefaultLayout();
  EXPECT_EQ(a.ToString(true), "f32[2,3]{0,1}");
  EXPECT_EQ(b.ToString(true), "f32[7,3]{1,0}");
  a = *&a;
  EXPECT_EQ(a.ToString(true), "f32[2,3]{0,1}");
}

TEST(ShapeTest, EqualityComparesEverything) {
  const Shape a(DType::kF32, {2, 3});
  EXPECT_NE(a, Shape(DType::kF64, {2, 3}));
  EXPECT_NE(a, Shape(DType::kF32, {3, 2}));
  EXPECT_NE(a, Shape(DType::kF32, {2, 3, 1}));
  EXPECT_NE(Shape::Tuple({a}), a);
  EXPECT_NE(Shape::Tuple({a, a}), Shape::Tuple({a}));
  EXPECT_FALSE(Compatible(Shape::Tuple({a, a}), Shape::Tuple({a})));
  EXPECT_TRUE(SameDims(a, Shape(DType::kS8, {2, 3})));
}

// Over every layout of small shapes: strides enumerate each place of the array exactly once, the
// most minor dimension first.
TEST(ShapeTest, StridesOfEveryLayoutAreABijection) {
  for (const Dims& dims :
       {Dims{}, Dims{5}, Dims{2, 3}, Dims{3, 1, 2}, Dims{2, 3, 4, 2}, Dims{1, 1, 2, 1}}) {
    Dims order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      const Shape shape = Shape(DType::kF32, dims).WithLayout(order);
      EXPECT_EQ(shape.minor_to_major(), order);
      const Dims strides = shape.strides();
      if (!order.empty()) {
        EXPECT_EQ(strides[static_cast<std::size_t>(order[0])], 1);
      }
      std::set<int64_t> places;
      ForEachIndex(shape.dims(), [&](absl::Span<const int64_t> index) {
        places.insert(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
      });
      EXPECT_EQ(static_cast<int64_t>(places.size()), shape.num_elements());
      EXPECT_EQ(*places.begin(), 0);
      EXPECT_EQ(*places.rbegin(), shape.num_elements() - 1);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(ShapeTest, NhwcLayoutOfNchw) {
  const Shape shape = Shape(DType::kF32, {2, 3, 5, 7}).WithLayout({1, 3, 2, 0});
  EXPECT_EQ(shape.strides(), (Dims{105, 1, 21, 3}));
}

TEST(ForEachIndexTest, IsRowMajorAndSkipsEmptyShapes) {
  std::string visited;
  ForEachIndex({2, 2},
               [&](absl::Span<const int64_t> index) { visited += Str(index[0], index[1], " "); });
  EXPECT_EQ(visited, "00 01 10 11 ");
  ForEachIndex({2, 0}, [&](absl::Span<const int64_t>) { FAIL(); });
  int scalars = 0;
  ForEachIndex({}, [&](absl::Span<const int64_t>) { ++scalars; });
  EXPECT_EQ(scalars, 1);
}

}  // namespace
}  // namespace lazuli::ir
