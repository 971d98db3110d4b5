// Indexing and assignment to what it takes. tests/python compares many more with NumPy.
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;

std::vector<int> Ints(const Tensor& x) { return x.to(DType::kS32).to_vector<int>(); }

class IndexingTest : public testing::Test {
 protected:
  Tensor x_ = arange(24, kFloat32).reshape({2, 3, 4});
  const Tensor rows_ = tensor<std::int64_t>({1, 0}), columns_ = tensor<std::int64_t>({-1, 2});
};

TEST_F(IndexingTest, TakesWhatNumPyTakes) {
  EXPECT_THAT(Ints(index(x_, {1, Ellipsis{}, Slice{1, 4, 2}})),
              ElementsAre(13, 15, 17, 19, 21, 23));
  EXPECT_EQ(index(x_, {Slice{}, NewAxis{}, 0}).sizes(), (Dims{2, 1, 4}));
  EXPECT_THAT(Ints(index(x_, {rows_, 2, columns_})), ElementsAre(23, 10));
  EXPECT_EQ(index(x_, {rows_, Slice{}, columns_}).sizes(), (Dims{2, 3}));
  EXPECT_THAT(Ints(index(x_, {rows_, Slice{}, columns_})), ElementsAre(15, 19, 23, 2, 6, 10));
}

TEST_F(IndexingTest, WithoutPositionsResultsAreViews) {
  const Tensor part = index(x_, {1, NewAxis{}, Slice{0, 3, 2}});
  EXPECT_EQ(part.strides(), (Dims{12, 8, 1}));
  EXPECT_EQ(part.storage_offset(), 12);
  EXPECT_FALSE(part.is_contiguous());
  EXPECT_TRUE(part.base().is_same(x_.base()));
  index(part, {Ellipsis{}, 1}).fill_(-1);
  index(x_, {rows_, 2}).fill_(-7);  // a copy
  EXPECT_THAT(Ints(index(x_, {1})), ElementsAre(12, -1, 14, 15, 16, 17, 18, 19, 20, -1, 22, 23));
  EXPECT_THAT(Ints(part), ElementsAre(12, -1, 14, 15, 20, -1, 22, 23));
}

TEST_F(IndexingTest, BoolsAreNewDimsOfSizeOneAndZero) {
  EXPECT_EQ(index(x_, {true, 1}).sizes(), (Dims{1, 3, 4}));
  EXPECT_EQ(index(x_, {false}).sizes(), (Dims{0, 2, 3, 4}));
  EXPECT_EQ(index(x_, {Slice{}, true, rows_}).sizes(), (Dims{2, 2, 4}));
  index_put_(x_, {true, 1, 2}, 7);
  EXPECT_THAT(Ints(index(x_, {1, 2})), ElementsAre(7, 7, 7, 7));
}

TEST_F(IndexingTest, PutsTensorsOfItsDtypeAtPositions) {
  Tensor x = zeros({3}, kInt64);
  EXPECT_ERROR(
      kInvalidArgument,
      "index_put_: the value f32[] must have the dtype of the tensor, s64[3]; convert it with to()",
      index_put_(x, {tensor<std::int64_t>({1})}, full({}, 1.5)));
  index_put_(x, {tensor({true, false, true})}, full({}, 1.5));
  EXPECT_THAT(Ints(x), ElementsAre(1, 0, 1));
  x.fill_(full({}, 2.5));
  EXPECT_THAT(Ints(x), ElementsAre(2, 2, 2));
}

TEST_F(IndexingTest, PutsAtPositionsTheLastOfEqualOnes) {
  index_put_(x_, {0, tensor<std::int64_t>({2, 2}), Slice{1, 3}},
             tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}));
  EXPECT_THAT(Ints(index(x_, {0, 2})), ElementsAre(8, 3, 4, 11));
  index_put_(x_, {rows_, Slice{}, columns_}, -1);
  EXPECT_THAT(Ints(index(x_, {1, 0})), ElementsAre(12, 13, 14, -1));
}

TEST_F(IndexingTest, AddsUpEqualPositionsIfAsked) {
  Tensor counts = zeros({3});
  index_put_(counts, {tensor<std::int64_t>({0, 2, 0, 0})}, 1, /*accumulate=*/true);
  EXPECT_THAT(Ints(counts), ElementsAre(3, 0, 1));
  index_put_(counts, {Slice{1, 3}}, 10, /*accumulate=*/true);
  EXPECT_THAT(Ints(counts), ElementsAre(3, 10, 11));
}

TEST_F(IndexingTest, AMaskTakesValuesInOrder) {
  Tensor x = tensor({{1.0f, -2.0f}, {-3.0f, 4.0f}});
  index_put_(x, {x < 0}, tensor({7.0f, 8.0f}));
  EXPECT_THAT(Ints(x), ElementsAre(1, 7, 8, 4));
  index_put_(x, {x > 6}, 0);
  EXPECT_THAT(Ints(x), ElementsAre(1, 0, 0, 4));
  index_put_(x, {tensor({false, true})}, tensor({{5.0f, 6.0f}}));
  EXPECT_THAT(Ints(x), ElementsAre(1, 0, 5, 6));
  index_put_(x, {x > 9}, zeros({0}));
  EXPECT_THAT(Ints(x), ElementsAre(1, 0, 5, 6));
}

TEST_F(IndexingTest, AMaskThatPicksAnotherNumberFailsTheRun) {
  Tensor x = tensor({1.0f, -2.0f, -3.0f});
  EXPECT_ERROR(kOutOfRange, "index_put_: the mask picks 2 elements, the value has 3", {
    index_put_(x, {x < 0}, tensor({7.0f, 8.0f, 9.0f}));
    (void)x.to_string();
  });
}

TEST_F(IndexingTest, GradientsGoToWhatWasPutAndToTheRest) {
  const auto put = [&](const std::vector<Index>& indices, bool accumulate) {
    return [=](const std::vector<Tensor>& in) {
      Tensor x = in[0].clone();
      index_put_(x, indices, in[1], accumulate);
      return sum(square(x) * (x + 1.0));
    };
  };
  const Tensor x = rand({3, 4}, kFloat64), two = rand({2, 4}, kFloat64);
  const Tensor twice = tensor<std::int64_t>({2, 2}), rows = tensor<std::int64_t>({2, 0});
  EXPECT_LT(gradcheck(put({rows}, false), {x, two}), 1e-7);
  EXPECT_LT(gradcheck(put({twice}, false), {x, two}), 1e-7);
  EXPECT_LT(gradcheck(put({twice}, true), {x, two}), 1e-7);
  EXPECT_LT(gradcheck(put({Slice{0, 2}}, false), {x, two}), 1e-7);
  EXPECT_LT(gradcheck(put({rows, Slice{1, 4, 2}}, false), {x, rand({2, 2}, kFloat64)}), 1e-7);
  EXPECT_LT(gradcheck(put({tensor({true, false, true})}, false), {x, two}), 1e-7);
  EXPECT_LT(gradcheck(put({tensor({true, false, true})}, true), {x, two}), 1e-7);
}

TEST_F(IndexingTest, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(kOutOfRange, "index: index 2 is out of range for dim 0 of size 2", index(x_, {2}));
  EXPECT_ERROR(kOutOfRange, "index: 4 indices for a tensor of rank 3", index(x_, {0, 0, 0, 0}));
  EXPECT_ERROR(kOutOfRange, "index: positions must be integers of 32 or 64 bits, are f32[1]",
               index(x_, {tensor({0.5f})}));
  EXPECT_ERROR(kOutOfRange, "index_put_: the mask pred[3] has not the leading dims of f32[2,3,4]",
               index_put_(x_, {tensor({true, false, true})}, 1));
  EXPECT_ERROR(kOutOfRange, "index: the mask pred[2] has not the dims of f32[2,3,4] from dim 1",
               index_put_(x_, {0, tensor({true, false})}, 1));
  Tensor leaf = zeros({2}).set_requires_grad(true);
  EXPECT_ERROR(kFailedPrecondition,
               "index_put_: a view of a leaf tensor that requires a gradient is changed in place; "
               "do it under "
               "NoGrad",
               index_put_(leaf, {0}, 1));
}

}  // namespace
}  // namespace lazuli
