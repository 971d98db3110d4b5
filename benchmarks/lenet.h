// The LeNet of the demo, and a step of it on a batch that does not change.
#pragma once

#include <cstdint>

#include <lazuli/lazuli.h>

namespace lazuli::bench {

struct LeNet : nn::Module {
  nn::Conv2d conv1{1, 32, 3}, conv2{32, 64, 3};
  nn::Linear fc1{9216, 128}, fc2{128, 10};
  LeNet() { register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}}); }
  Tensor forward(const Tensor& x) const {
    Tensor h = relu(conv2(relu(conv1(x))));
    return fc2(relu(fc1(flatten(max_pool2d(h, 2), 1))));
  }
};

class LeNetTraining {
 public:
  explicit LeNetTraining(std::int64_t batch)
      : x_(randn({batch, 1, 28, 28})), y_(zeros({batch}, kInt64)) {
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
  LeNet net_;
  optim::SGD opt_{net_.parameters(), {.lr = 0.02, .momentum = 0.9}};
  Tensor x_, y_, loss_;
};

}  // namespace lazuli::bench
