// The C++ side of parity_test.py: trains as it does and prints the losses' bits, one per line.
#include <cstdio>
#include <cstring>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

struct Net : lz::nn::Module {
  lz::nn::Conv2d conv1{1, 8, 3}, conv2{8, 16, 3, {.stride = 2, .padding = {1, 0}}};
  lz::nn::Dropout dropout{0.25};
  lz::nn::Linear fc1{1 * 16 * 7 * 6, 32}, fc2{32, 10, {.bias = false}};
  Net() {
    register_modules(
        {{"conv1", conv1}, {"conv2", conv2}, {"dropout", dropout}, {"fc1", fc1}, {"fc2", fc2}});
  }
  lz::Tensor forward(const lz::Tensor& x) const {
    lz::Tensor h = lz::relu(conv2(lz::relu(conv1(x))));
    h = dropout(lz::flatten(h, 1));
    return fc2(lz::gelu(fc1(h)));
  }
};

template <class Optimizer>
void Train(Net& net, Optimizer& opt, lz::data::DataLoader& loader) {
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y) +
                      0.001 * lz::sum(lz::square(net.fc2.weight));
    loss.backward();
    opt.step();
    lz::mark_step();
    const auto value = loss.item<float>();
    unsigned bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    std::printf("%08x\n", bits);
  }
}

int main() {
  lz::manual_seed(7);
  const lz::Tensor x = lz::randn({96, 1, 16, 16});
  const lz::Tensor y = lz::argmax(lz::rand({96, 10}), 1);
  Net net;
  lz::data::DataLoader loader(lz::data::TensorDataset(x, y), {.batch_size = 20, .shuffle = true});
  lz::optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3});
  Train(net, sgd, loader);
  Train(net, sgd, loader);
  lz::optim::Adam adam(net.parameters(), {.lr = 0.01, .betas = {0.8, 0.99}});
  Train(net, adam, loader);
}
