// Lesson 14: linear algebra. A polynomial by least squares, its uncertainty, and what a singular matrix says.
#include <iostream>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

int main() {
  lz::manual_seed(0);
  const lz::Tensor x = lz::linspace(-1, 1, 200, lz::kFloat64);
  const lz::Tensor y = 1.0 - 2.0 * x + 3.0 * x * x * x + 0.1 * lz::randn({200}, lz::kFloat64);

  const lz::Tensor powers = lz::linalg::vander(x, 4);  // [200, 4]: 1, x, x^2, x^3
  const lz::Tensor coefficients = std::get<0>(lz::linalg::lstsq(powers, y.unsqueeze(1))).squeeze(1);
  std::cout << "coefficients " << coefficients << "\n";

  // Their covariance is the inverse of powers^T powers, times the variance of the noise.
  const lz::Tensor rest = y - powers.matmul(coefficients);
  const lz::Tensor noise = (rest * rest).sum() / 196.0;
  const lz::Tensor covariance = noise * lz::linalg::inv(powers.t().matmul(powers));
  std::cout << "standard deviations " << covariance.diagonal().sqrt() << "\n";

  // Whether a matrix is singular is found in the run; the error names the line of the call.
  try {
    std::cout << lz::linalg::inv(lz::ones({2, 2}));
  } catch (const lz::Error& error) {
    std::cout << error.what() << "\n";
  }
  return lz::allclose(coefficients, lz::tensor({1.0, -2.0, 0.0, 3.0}), 0.1, 0.1) ? 0 : 1;
}
