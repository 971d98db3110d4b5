// Compositions of ops: their values, and what they refuse. tests/python compares them with NumPy.
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> Floats(const Tensor& x) { return x.to_vector<float>(); }

class CompositesTest : public testing::Test {
 protected:
  const Tensor x_ = tensor({{1.0f, -2.0f, 3.0f}, {4.0f, 5.0f, -6.0f}});
  const Tensor special_ = tensor({1.0f, std::nanf(""), kInfinity, -kInfinity});
};

TEST_F(CompositesTest, TellNumbersFromWhatIsNone) {
  EXPECT_THAT(isnan(special_).to_vector<bool>(), ElementsAre(false, true, false, false));
  EXPECT_THAT(isinf(special_).to_vector<bool>(), ElementsAre(false, false, true, true));
  EXPECT_THAT(isfinite(special_).to_vector<bool>(), ElementsAre(true, false, false, false));
  EXPECT_THAT(isfinite(tensor({1, 2})).to_vector<bool>(), Each(true));
}

TEST_F(CompositesTest, TruthOfAllOrSome) {
  EXPECT_THAT(all(x_ > -3, {1}).to_vector<bool>(), ElementsAre(true, false));
  EXPECT_THAT(any(x_ > 4, {1}).to_vector<bool>(), ElementsAre(false, true));
  EXPECT_TRUE(all(special_).item<bool>());  // NaN is not 0
  EXPECT_TRUE(all(zeros({0})).item<bool>());
  EXPECT_FALSE(any(zeros({0})).item<bool>());
}

TEST_F(CompositesTest, SmallestElementsAreFirstAndExact) {
  const auto [values, positions] = min(x_, 1);
  EXPECT_THAT(Floats(values), ElementsAre(-2, -6));
  EXPECT_THAT(positions.to_vector<std::int64_t>(), ElementsAre(1, 2));
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(min(tensor({std::int64_t{0}, lowest}), 0).first.item<std::int64_t>(), lowest);
  EXPECT_EQ(argmin(x_).item<int>(), 5);
}

TEST_F(CompositesTest, GradientOfTheSmallestGoesToTheOnePicked) {
  Tensor ties = tensor({2.0f, 1.0f, 1.0f}).set_requires_grad(true);
  min(ties, 0).first.backward();
  EXPECT_THAT(Floats(ties.grad()), ElementsAre(0, 1, 0));
}

TEST_F(CompositesTest, Spread) {
  EXPECT_FLOAT_EQ(var(x_).item<float>(), 17.3666667f);
  EXPECT_THAT(Floats(std(x_, {1}, /*correction=*/0)),
              ElementsAre(FloatNear(2.0548048f, 1e-6f), FloatNear(4.9665548f, 1e-6f)));
  EXPECT_FLOAT_EQ(norm(x_).item<float>(), std::sqrt(91.0f));
  EXPECT_TRUE(std::isnan(var(tensor({1.0f})).item<float>()));  // 0 / 0
}

TEST_F(CompositesTest, LogSumExpDoesNotOverflow) {
  EXPECT_FLOAT_EQ(logsumexp(tensor({1000.0f, 1000.0f})).item<float>(), 1000 + std::log(2.0f));
  EXPECT_EQ(logsumexp(tensor({-kInfinity, -kInfinity})).item<float>(), -kInfinity);
  EXPECT_EQ(logsumexp(tensor({kInfinity, 0.0f})).item<float>(), kInfinity);
}

TEST_F(CompositesTest, DivisionRoundedDown) {
  const Tensor x = tensor({7, -7, 6, 0});
  EXPECT_THAT(floor_divide(x, 2).to_vector<std::int32_t>(), ElementsAre(3, -4, 3, 0));
  EXPECT_THAT(remainder(x, 2).to_vector<std::int32_t>(), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(remainder(x, -4).to_vector<std::int32_t>(), ElementsAre(-1, -3, -2, 0));
  EXPECT_THAT(Floats(floor_divide(x_, 4.0)), ElementsAre(0, -1, 0, 1, 1, -2));
}

TEST_F(CompositesTest, TrianglesAndPieces) {
  EXPECT_THAT(Floats(tril(x_)), ElementsAre(1, 0, 0, 4, 5, 0));
  EXPECT_THAT(Floats(triu(x_, 1)), ElementsAre(0, -2, 3, 0, 0, -6));
  EXPECT_THAT(Floats(tril(x_, -1)), ElementsAre(0, 0, 0, 4, 0, 0));
  const std::vector<Tensor> pieces = split(x_, 2, 1);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_THAT(Floats(pieces[1]), ElementsAre(3, -6));
  EXPECT_EQ(chunk(x_, 5, -1).size(), 3u);
}

TEST_F(CompositesTest, PositionsThatAreData) {
  const Tensor index = tensor<std::int64_t>({2, 0}).reshape({2, 1});
  EXPECT_THAT(Floats(gather(x_, 1, index)), ElementsAre(3, 4));
  EXPECT_THAT(Floats(scatter_add(x_, 1, index, ones({2, 1}))), ElementsAre(1, -2, 4, 5, 5, -6));
  EXPECT_THAT(Floats(select(x_, -1, -2)), ElementsAre(-2, 5));
}

TEST_F(CompositesTest, Orders) {
  EXPECT_THAT(Floats(cumsum(x_, 1)), ElementsAre(1, -1, 2, 4, 9, 3));
  EXPECT_EQ(cumsum(ones({2}, kInt8), 0).dtype(), kInt64);
  const auto [values, places] = sort(x_);
  EXPECT_THAT(Floats(values), ElementsAre(-2, 1, 3, -6, 4, 5));
  EXPECT_THAT(places.to_vector<std::int64_t>(), ElementsAre(1, 0, 2, 2, 0, 1));
  EXPECT_THAT(argsort(special_, 0, /*descending=*/true).to_vector<std::int64_t>(),
              ElementsAre(1, 2, 0, 3));
  EXPECT_THAT(Floats(topk(x_, 2).first), ElementsAre(3, 1, 5, 4));
  EXPECT_THAT(Floats(topk(x_, 1, 0, /*largest=*/false).first), ElementsAre(1, -2, -6));
}

TEST_F(CompositesTest, AnAbsentBoundDoesNotLimit) {
  EXPECT_THAT(Floats(clamp(x_, 0)), ElementsAre(1, 0, 3, 4, 5, 0));
  EXPECT_THAT(Floats(clamp(x_, std::nullopt, 2)), ElementsAre(1, -2, 2, 2, 2, -6));
  EXPECT_THAT(clamp(tensor({-5, 5}), 0).to_vector<std::int32_t>(), ElementsAre(0, 5));
}

TEST_F(CompositesTest, NumbersInARowAndAtRandom) {
  EXPECT_THAT(Floats(linspace(0, 1, 5)), ElementsAre(0, 0.25f, 0.5f, 0.75f, 1));
  EXPECT_THAT(Floats(linspace(3, 9, 1)), ElementsAre(3));
  for (const std::int64_t n : randint(-1, 2, {100}).to_vector<std::int64_t>()) {
    EXPECT_TRUE(n >= -1 && n < 2) << n;
  }
  EXPECT_EQ(rand_like(x_).sizes(), x_.sizes());
}

TEST_F(CompositesTest, Mistakes) {
  EXPECT_ERROR(kInvalidArgument,
               "gather: index s64[2] must have the rank of f32[2,3] and be no larger but along "
               "dim 0",
               gather(x_, 0, zeros({2}, kInt64)));
  EXPECT_ERROR(kOutOfRange, "select: index 3 is out of range for dim 1 of f32[2,3]",
               select(x_, 1, 3));
  EXPECT_ERROR(kOutOfRange, "topk: k is 4, dim 1 of f32[2,3] has 3 elements", topk(x_, 4));
  EXPECT_ERROR(kInvalidArgument, "clamp: takes a bound", clamp(x_, std::nullopt, std::nullopt));
  EXPECT_ERROR(kInvalidArgument, "split: size must be at least 1, is 0", split(x_, 0));
  EXPECT_ERROR(kInvalidArgument, "chunk: chunks must be at least 1, is -1", chunk(x_, -1));
  EXPECT_ERROR(kInvalidArgument, "tril: takes a matrix, not f32[4]", tril(special_));
  EXPECT_ERROR(kInvalidArgument, "randint: low must be below high, but 2 >= 2", randint(2, 2, {1}));
  EXPECT_ERROR(kInvalidArgument, "linspace: steps must not be negative, is -1", linspace(0, 1, -1));
}

TEST_F(CompositesTest, RepeatExpandAndTakeApart) {
  EXPECT_EQ(x_.repeat({2, 1, 2}).sizes(), (Dims{2, 2, 6}));
  EXPECT_THAT(Floats(tensor({1.0f, 2.0f}).repeat({2, 2})), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_ERROR(kInvalidArgument, "repeat: 1 numbers are too few for f32[2,3]", x_.repeat({2}));
  EXPECT_EQ(x_.expand({4, -1, 3}).sizes(), (Dims{4, 2, 3}));
  EXPECT_EQ(x_.expand_as(zeros({5, 2, 3})).sizes(), (Dims{5, 2, 3}));
  EXPECT_THAT(Floats(x_.unbind(-1).at(2)), ElementsAre(3, -6));
  EXPECT_THAT(Floats(outer(tensor({1.0f, 2.0f}), tensor({3.0f, 4.0f}))), ElementsAre(3, 4, 6, 8));
}

TEST_F(CompositesTest, TheLargestOfAllOfTwoOrAlongADim) {
  EXPECT_EQ(max(x_).item(), 5);
  EXPECT_THAT(Floats(max(x_, -x_)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Floats(x_.max(1).first), ElementsAre(3, 5));
  EXPECT_EQ(x_.min().item(), -6);
}

TEST_F(CompositesTest, AnUndefinedTensorIsNamed) {
  EXPECT_ERROR(kInvalidArgument, "gather: operand 2 is an undefined tensor: index",
               gather(x_, 0, Tensor()));
  EXPECT_ERROR(kInvalidArgument, "isnan: operand 0 is an undefined tensor", isnan(Tensor()));
}

}  // namespace
}  // namespace lazuli
