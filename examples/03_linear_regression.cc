// Lesson 3: a module, a loss and an optimiser. Fits y = 3 a - 2 b + 0.5 from noisy samples.
#include <cmath>
#include <iostream>
#include <vector>

#include <lazuli/lazuli.h>

namespace lz = lazuli;
namespace F = lazuli::nn::functional;

int main() {
  lz::manual_seed(1);
  lz::Tensor x = lz::randn({256, 2});
  lz::Tensor y = x.matmul(lz::tensor({{3.0f}, {-2.0f}})) + 0.5 + 0.01 * lz::randn({256, 1});

  lz::nn::Linear line(2, 1);
  lz::optim::SGD opt(line.parameters(), {.lr = 0.1});
  for (int step = 0; step < 100; ++step) {
    opt.zero_grad();
    lz::Tensor loss = F::mse_loss(line(x), y);
    loss.backward();
    opt.step();
    lz::mark_step();
    // The learning rate is an input of the compiled program: changing it costs nothing.
    opt.set_lr(opt.lr() * 0.99);
    if (step % 20 == 0) std::cout << "step " << step << ": loss " << loss.item<float>() << "\n";
  }
  const std::vector<float> w = line.weight.to_vector<float>();
  const float b = line.bias.item<float>();
  std::cout << "y = " << w[0] << " a + " << w[1] << " b + " << b << "\n";

  const auto near = [](float value, float wanted) { return std::abs(value - wanted) < 0.02f; };
  return near(w[0], 3) && near(w[1], -2) && near(b, 0.5) ? 0 : 1;
}
