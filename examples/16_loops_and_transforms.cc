// Lesson 16: loops on the device and functions of functions. A pendulum is integrated by one loop, its parameters
// are found by the gradient through that loop, and a batch of pendulums costs one call.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <utility>
#include <vector>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
using lz::Tensor;
using Tensors = std::vector<Tensor>;

namespace {

constexpr std::int64_t kSteps = 200;
constexpr double kStep = 0.02;

// Angles after each step of a pendulum with friction, which starts at rest: [kSteps].
Tensor Swing(const Tensor& start, const Tensor& stiffness, const Tensor& friction) {
  const auto step = [&](const Tensors& state, const Tensors&) {
    const Tensor &angle = state[0], &speed = state[1];
    const Tensor faster = speed - kStep * (stiffness * angle.sin() + friction * speed);
    const Tensor after = angle + kStep * faster;
    return lz::Scanned{.carry = {after, faster}, .results = {after}};
  };
  return lz::scan(step, {start, lz::zeros_like(start)}, {}, {.length = kSteps}).results[0];
}

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(3);
  lz::manual_seed(0);

  // What was measured: another pendulum, with noise.
  const Tensor start = lz::full({}, 1.0);
  const Tensor measured =
      Swing(start, lz::full({}, 4.0), lz::full({}, 0.5)) + 0.01 * lz::randn({kSteps});

  // Gauss-Newton: the Jacobian matrix by forward mode, which a loop has at once.
  const auto swing = [&](const Tensors& p) { return Tensors{Swing(start, p[0], p[1])}; };
  Tensor stiffness = lz::full({}, 3.0), friction = lz::full({}, 0.1);
  for (int i = 0; i < 6; ++i) {
    const Tensor miss = swing({stiffness, friction})[0] - measured;
    const Tensors columns = lz::func::jacfwd(swing, {stiffness, friction})[0];
    const Tensor jacobian = lz::stack(columns, 1);
    const Tensor change =
        lz::linalg::solve(jacobian.t().matmul(jacobian), jacobian.t().matmul(miss));
    stiffness = stiffness - change[0];
    friction = friction - change[1];
    lz::mark_step();
  }
  std::cout << "stiffness " << stiffness.item<float>() << ", friction " << friction.item<float>()
            << "\n";

  // The same slope by reverse mode, through 200 steps.
  const auto loss = [&](const Tensors& p) {
    return (Swing(start, p[0], p[1]) - measured).square().mean();
  };
  const auto [value, slope] = lz::func::value_and_grad(loss, {stiffness, friction});
  std::cout << "mean square " << std::setprecision(5) << value.item<float>() << ", slope "
            << slope[0].abs().item<float>() << "\n";

  // Many starts at once: a function of one start, batched.
  const auto last = [&](const Tensors& p) {
    return Tensors{Swing(p[0], stiffness, friction).abs().amax({0})};
  };
  const Tensor starts = lz::linspace(0.5, 3.0, 6);
  std::cout << "largest angles " << std::setprecision(2);
  for (const float angle : lz::func::vmap(last, {starts})[0].to_vector<float>())
    std::cout << " " << angle;
  std::cout << "\n";
  const bool found =
      std::abs(stiffness.item<float>() - 4) < 0.05 && slope[0].abs().item<float>() < 1e-3;
  return found ? 0 : 1;
}
