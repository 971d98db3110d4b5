// The networks that the benchmarks train, each on a batch that does not change.
// train_peers.py has the same in PyTorch and JAX.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <lazuli/lazuli.h>

namespace lazuli::bench {

// How most of them are trained.
struct WithMomentum {
  static constexpr std::int64_t kBatch = 64;
  static optim::SGD Optimizer(std::vector<Tensor> parameters) {
    return optim::SGD(std::move(parameters), {.lr = 0.02, .momentum = 0.9});
  }
};

// The demo's.
struct LeNet : nn::Module, WithMomentum {
  nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  nn::Linear fc1{9216, 128}, fc2{128, 10};
  LeNet() { register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}}); }
  Tensor forward(const Tensor& x) const {
    Tensor h = relu(conv2(relu(conv1(x))));
    return fc2(relu(fc1(flatten(max_pool2d(h, 2), 1))));
  }
  static Tensor Input() { return randn({kBatch, 1, 28, 28}); }
};

struct Mlp : nn::Module, WithMomentum {
  nn::Linear fc1{784, 512}, fc2{512, 512}, fc3{512, 10};
  Mlp() { register_modules({{"fc1", fc1}, {"fc2", fc2}, {"fc3", fc3}}); }
  Tensor forward(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  static Tensor Input() { return randn({kBatch, 784}); }
};

// Twice as wide, and twice the batch.
struct WideMlp : nn::Module, WithMomentum {
  static constexpr std::int64_t kBatch = 128;
  nn::Linear fc1{784, 1024}, fc2{1024, 1024}, fc3{1024, 10};
  WideMlp() { register_modules({{"fc1", fc1}, {"fc2", fc2}, {"fc3", fc3}}); }
  Tensor forward(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  static Tensor Input() { return randn({kBatch, 784}); }
};

// Lesson 8's, for CIFAR-10.
struct Cnn : nn::Module {
  static constexpr std::int64_t kBatch = 32;
  nn::Conv2d conv1{3, 32, 3, {.padding = 1}}, conv2{32, 32, 3};
  nn::Conv2d conv3{32, 64, 3, {.padding = 1}}, conv4{64, 64, 3};
  nn::Linear fc1{2304, 512}, fc2{512, 10};
  nn::Dropout drop1{0.25}, drop2{0.25}, drop3{0.5};
  Cnn() {
    register_modules({{"conv1", conv1}, {"conv2", conv2}, {"conv3", conv3}, {"conv4", conv4}});
    register_modules({{"fc1", fc1}, {"fc2", fc2}});
    register_modules({{"drop1", drop1}, {"drop2", drop2}, {"drop3", drop3}});
  }
  Tensor forward(const Tensor& x) {
    Tensor h = drop1(max_pool2d(relu(conv2(relu(conv1(x)))), 2));
    h = drop2(max_pool2d(relu(conv4(relu(conv3(h)))), 2));
    return fc2(drop3(relu(fc1(flatten(h, 1)))));
  }
  static Tensor Input() { return randn({kBatch, 3, 32, 32}); }
  static optim::RMSprop Optimizer(std::vector<Tensor> parameters) {
    return optim::RMSprop(std::move(parameters), {.lr = 1e-4});
  }
};

template <class Net>
class Training {
 public:
  Training() : x_(Net::Input()), y_(zeros({Net::kBatch}, kInt64)) {
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
  decltype(Net::Optimizer({})) opt_ = Net::Optimizer(net_.parameters());
  Tensor x_, y_, loss_;
};

}  // namespace lazuli::bench
