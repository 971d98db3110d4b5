// Prints the HLO of LeNet's steady training step (batch 64, SGD with momentum), as given to the
// compiler.
#include <iostream>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

struct Net : lz::nn::Module {
  lz::nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  lz::nn::Linear fc1{9216, 128}, fc2{128, 10};
  Net() { register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}}); }
  lz::Tensor forward(const lz::Tensor& x) {
    auto h = lz::relu(conv2(lz::relu(conv1(x))));
    h = lz::flatten(lz::max_pool2d(h, 2), 1);
    return fc2(lz::relu(fc1(h)));
  }
};

int main() {
  lz::manual_seed(1);
  Net net;
  lz::optim::SGD opt(net.parameters(), {.lr = 0.02, .momentum = 0.9});
  const lz::Tensor x = lz::randn({64, 1, 28, 28});
  const lz::Tensor y = lz::zeros({64}, lz::kInt64);
  lz::sync(/*wait=*/true);
  for (int step = 0; step < 2; ++step) {  // the second is the steady one: momentum exists
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    lz::sync(/*wait=*/true);
  }
  std::cout << lz::debug::last_hlo();
}
