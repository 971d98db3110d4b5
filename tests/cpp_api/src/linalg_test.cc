// Decompositions in C++: values, failures that a run finds, and the info instead of them.
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

std::vector<double> DoublesOf(const Tensor& x) { return x.to_vector<double>(); }

Tensor TwoByTwo(std::initializer_list<double> values) { return tensor(values).reshape({2, 2}); }

auto AreNearly(const std::vector<double>& values) {
  return Pointwise(testing::DoubleNear(1e-12), values);
}

TEST(LinalgTest, DecompositionsOfASmallMatrix) {
  const Tensor A = TwoByTwo({4, 2, 2, 5});
  EXPECT_THAT(DoublesOf(linalg::cholesky(A)), AreNearly({2, 0, 1, 2}));
  EXPECT_THAT(DoublesOf(linalg::inv(A)), AreNearly({5 / 16.0, -1 / 8.0, -1 / 8.0, 1 / 4.0}));
  EXPECT_THAT(DoublesOf(linalg::det(A)), AreNearly({16}));
  EXPECT_THAT(DoublesOf(linalg::eigvalsh(TwoByTwo({2, 1, 1, 2}))), AreNearly({1, 3}));
  EXPECT_THAT(DoublesOf(linalg::svdvals(TwoByTwo({0, 3, -2, 0}))), AreNearly({3, 2}));
  const auto [P, L, U] = linalg::lu(TwoByTwo({1, 2, 2, 8}));
  EXPECT_THAT(DoublesOf(P), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(DoublesOf(L), AreNearly({1, 0, 0.5, 1}));
  EXPECT_THAT(DoublesOf(U), AreNearly({2, 8, 0, -2}));
  EXPECT_THAT(DoublesOf(linalg::solve(A, tensor({8.0, 9.0}))), AreNearly({11 / 8.0, 5 / 4.0}));
  EXPECT_THAT(DoublesOf(linalg::matrix_exp(TwoByTwo({0, 1, 0, 0}))), AreNearly({1, 1, 0, 1}));
}

TEST(LinalgTest, AFailureIsAnErrorOfTheReadWithTheLineOfTheCall) {
  const Tensor x = ones({2, 2});
  EXPECT_ERROR(kLinAlg,
               "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed "
               "because the input matrix is singular.",
               (void)linalg::inv(x).to_vector<float>());
  const Tensor batch = stack({eye(2), x});
  EXPECT_ERROR(
      kLinAlg,
      "linalg.cholesky: (Batch element 1): The factorization could not be completed because "
      "the input is not positive-definite (the leading minor of order 2 is not "
      "positive-definite).",
      (void)linalg::cholesky(batch).to_vector<float>());
  EXPECT_THAT(linalg::inv_ex(batch).second.to_vector<std::int32_t>(), ElementsAre(0, 2));
}

TEST(LinalgTest, MistakesInArgumentsAreErrorsOfTheCall) {
  EXPECT_ERROR(kInvalidArgument,
               "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices",
               (void)linalg::inv(ones({2, 3})));
  EXPECT_ERROR(kWrongType,
               "linalg.inv: Expected a floating point or complex tensor as input. Got s64[2,2]",
               (void)linalg::inv(ones({2, 2}, DType::kS64)));
  EXPECT_ERROR(kWrongType, "linalg.qr: Low precision dtypes not supported. Got f16[2,2]",
               (void)linalg::qr(ones({2, 2}, DType::kF16)));
  EXPECT_ERROR(kInvalidArgument,
               "linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
               (void)linalg::solve(ones({2, 2}), ones({3, 1})));
}

TEST(LinalgTest, AGradientGoesThroughAnInverse) {
  const Tensor x = TwoByTwo({4, 2, 2, 5}).set_requires_grad(true);
  linalg::inv(x).sum().backward();
  // -A^-T 1 A^-T.
  EXPECT_THAT(DoublesOf(x.grad()), AreNearly({-9 / 256.0, -6 / 256.0, -6 / 256.0, -4 / 256.0}));
}

}  // namespace
}  // namespace lazuli
