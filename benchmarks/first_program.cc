// The program of the README. compile_time.py compiles it as a user would, and starts it up to where
// training begins.
#include <cstdlib>

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
  if (std::getenv("LAZULI_START_ONLY") != nullptr) return 0;
  lz::data::DataLoader loader(lz::data::Mnist("data/mnist", /*train=*/true),
                              {.batch_size = 64, .shuffle = true});
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    lz::mark_step();
  }
}
