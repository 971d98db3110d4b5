// The networks that the benchmarks train, each on a batch of 64 that does not change.
// train_peers.py has the same in PyTorch and JAX.
#pragma once

#include <cstdint>

#include <lazuli/lazuli.h>

namespace lazuli::bench {

constexpr std::int64_t kBatch = 64;

// The demo's.
struct LeNet : nn::Module {
  nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  nn::Linear fc1{9216, 128}, fc2{128, 10};
  LeNet() { register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}}); }
  Tensor forward(const Tensor& x) const {
    Tensor h = relu(conv2(relu(conv1(x))));
    return fc2(relu(fc1(flatten(max_pool2d(h, 2), 1))));
  }
  static Tensor Input() { return randn({kBatch, 1, 28, 28}); }
};

struct Mlp : nn::Module {
  nn::Linear fc1{784, 512}, fc2{512, 512}, fc3{512, 10};
  Mlp() { register_modules({{"fc1", fc1}, {"fc2", fc2}, {"fc3", fc3}}); }
  Tensor forward(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  static Tensor Input() { return randn({kBatch, 784}); }
};

template <class Net>
class Training {
 public:
  Training() : x_(Net::Input()), y_(zeros({kBatch}, kInt64)) {
    Step();
    Step();  // the first has no momentum: another program
    sync(/*wait=*/true);
  }
  void Step() {
    opt_.zero_grad();
    loss_ = nn::functional::cross_entropy(net_.forward(x_), y_);
    loss_.backward();
    opt_.step();
    mark_step();
  }
  float loss() const { return loss_.item<float>(); }

 private:
  Net net_;
  optim::SGD opt_{net_.parameters(), {.lr = 0.02, .momentum = 0.9}};
  Tensor x_, y_, loss_;
};

}  // namespace lazuli::bench
