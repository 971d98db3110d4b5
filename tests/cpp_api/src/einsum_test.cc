// Einstein sums against loops over all letters, and what is refused.
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;

std::vector<double> Values(const Tensor& x) { return x.to_vector<double>(); }

// The elements of an equation with an arrow and without dots, by its definition.
std::vector<double> ByDefinition(const std::string& equation, const std::vector<Tensor>& xs) {
  std::vector<std::string> terms(1);
  for (const char c : equation) {
    if (c == ',' || c == '-') terms.emplace_back();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) terms.back() += c;
  }
  std::map<char, std::int64_t> sizes, at;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    for (std::size_t d = 0; d < terms[i].size(); ++d)
      sizes[terms[i][d]] = xs[i].size(static_cast<std::int64_t>(d));
  }
  const auto offset = [&](const std::string& letters) {
    std::int64_t o = 0;
    for (const char c : letters) o = o * sizes[c] + at[c];
    return static_cast<std::size_t>(o);
  };
  std::vector<std::vector<double>> elements;
  for (const Tensor& x : xs) elements.push_back(Values(x));
  std::int64_t count = 1, cells = 1;
  for (const auto& [letter, size] : sizes) cells *= size;
  for (const char c : terms.back()) count *= sizes[c];
  std::vector<double> result(static_cast<std::size_t>(count));
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    std::int64_t rest = cell;
    for (const auto& [letter, size] : sizes) {
      at[letter] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (std::size_t i = 0; i < xs.size(); ++i) product *= elements[i][offset(terms[i])];
    result[offset(terms.back())] += product;
  }
  return result;
}

std::vector<Tensor> Random(const std::vector<Dims>& dims) {
  std::vector<Tensor> xs;
  for (const Dims& d : dims) xs.push_back(rand(d, kFloat64));
  return xs;
}

struct Case {
  const char* equation;
  std::vector<Dims> dims;
};
const std::vector<Case>& Cases() {
  static const auto* cases = new std::vector<Case>{
      {"ij->ji", {{2, 3}}},
      {"ij->", {{2, 3}}},
      {"iij->ji", {{3, 3, 2}}},
      {"iiii->i", {{2, 2, 2, 2}}},
      {"ii->", {{3, 3}}},
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,jk->ki", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}},
      {"ibj,jkb->bik", {{3, 2, 4}, {4, 2, 2}}},
      {"i,j->ij", {{2}, {3}}},
      {"ij,ij->ij", {{2, 3}, {2, 3}}},
      {"ijk,jil->kl", {{2, 3, 4}, {3, 2, 2}}},
      {"ij,k->", {{2, 3}, {4}}},
      {"ab,bc,cd->ad", {{2, 3}, {3, 4}, {4, 2}}},
      {"ab,ac,ad->bcd", {{3, 2}, {3, 2}, {3, 3}}},
      {"ii,ij,j->i", {{3, 3}, {3, 2}, {2}}},
      {",i->i", {{}, {3}}},
      {"ij, jk -> ik", {{0, 3}, {3, 2}}},
      {"ij,jk->ik", {{2, 0}, {0, 2}}},
  };
  return *cases;
}

TEST(EinsumTest, IsTheSumOfProducts) {
  for (const Case& c : Cases()) {
    const std::vector<Tensor> xs = Random(c.dims);
    const std::vector<double> expected = ByDefinition(c.equation, xs);
    const std::vector<double> got = Values(einsum(c.equation, xs));
    ASSERT_EQ(got.size(), expected.size()) << c.equation;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-12) << c.equation << " " << i;
  }
}

TEST(EinsumTest, HasGradients) {
  for (const Case& c : Cases()) {
    const auto f = [&](const std::vector<Tensor>& xs) {
      const Tensor y = einsum(c.equation, xs);
      return sum(y * y);
    };
    EXPECT_LT(gradcheck(f, Random(c.dims)), 1e-7) << c.equation;
  }
}

TEST(EinsumTest, WithoutAnArrowLettersThatOccurOnceRemainInOrder) {
  const Tensor x = rand({2, 3}, kFloat64), y = rand({3, 4}, kFloat64);
  EXPECT_EQ(Values(einsum("ba", {x})), Values(x.t()));
  EXPECT_EQ(Values(einsum("ij,jk", {x, y})), Values(matmul(x, y)));
  EXPECT_EQ(einsum("ij,jh", {x, y}).sizes(), (Dims{4, 2}));
  EXPECT_EQ(einsum("...j,jk", {rand({5, 3}, kFloat64), y}).sizes(), (Dims{5, 4}));
}

TEST(EinsumTest, DotsAreDimsThatBroadcast) {
  const Tensor x = rand({2, 1, 3, 4}, kFloat64), y = rand({5, 4, 2}, kFloat64);
  const Tensor difference = einsum("...ij,...jk->...ik", {x, y}) - matmul(x, y);
  EXPECT_LT(difference.abs().max().item(), 1e-15);  // products of other layouts may round otherwise
  EXPECT_EQ(einsum("i...->...i", {x}).sizes(), (Dims{1, 3, 4, 2}));
  EXPECT_EQ(einsum("i...->i", {x}).sizes(), (Dims{2}));  // left out: summed over
  const Tensor row = rand({1, 3}, kFloat64), all = rand({4, 3}, kFloat64);
  EXPECT_EQ(Values(einsum("ij,ij->ij", {row, all})), Values(row * all));
}

TEST(EinsumTest, KeepsIntegersWhichTheSumOfOneOperandWidens) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  EXPECT_THAT(einsum("ij,jk->ik", {x, x}).to_vector<int>(), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(einsum("ii", {x}).to_vector<std::int64_t>(), ElementsAre(5));
}

TEST(EinsumTest, OnePairIsOneProduct) {
  sync(true);
  const Tensor x = rand({4, 8, 16}), y = rand({4, 16, 8});
  sync(true);
  const Tensor z = einsum("bij,bjk->bik", {x, y});
  const std::string graph = debug::graph_text({z});
  EXPECT_NE(graph.find("aten::matmul"), std::string::npos) << graph;
  EXPECT_EQ(graph.find("aten::permute"), std::string::npos) << graph;
}

TEST(EinsumTest, NamesThePlaceInTheEquation) {
  const Tensor m = rand({2, 3});
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"ij,jk->ix\", position 8: 'x' is of no operand",
                 einsum("ij,jk->ix", {m, m}));
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"ij->ii\", position 5: 'i' is in the result twice",
                 einsum("ij->ii", {m}));
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"i1\", position 1: '1' has no meaning here",
                 einsum("i1", {m}));
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"i->j->k\", position 4: a second \"->\"",
                 einsum("i->j->k", {m}));
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"...i...\", position 4: a second \"...\"",
                 einsum("...i...", {m}));
  EXPECT_REFUSED(kInvalidArgument, "einsum: \"ij-ji\", position 2: '-' has no meaning here",
                 einsum("ij-ji", {m}));
  EXPECT_REFUSED(kInvalidArgument,
                 "einsum: \"ij,j\", position 0: there are 2 operands, but 1 tensors",
                 einsum("ij,j", {m}));
  EXPECT_REFUSED(kInvalidArgument,
                 "einsum: \"ij,jkl\", position 3: operand 1, f32[2,3], has rank 2 and the letters "
                 "\"jkl\"",
                 einsum("ij,jkl", {m, m}));
  EXPECT_REFUSED(kInvalidArgument,
                 "einsum: \"ij,jk\", position 3: 'j' is 2 in operand 1, f32[2,3], and 3 before",
                 einsum("ij,jk", {m, m}));
  EXPECT_REFUSED(kInvalidArgument,
                 "einsum: \"ii\", position 0: 'i' is 3 in operand 0, f32[2,3], and 2 before",
                 einsum("ii", {m}));
}

}  // namespace
}  // namespace lazuli
