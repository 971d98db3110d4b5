// Lesson 5: LeNet. A network is a struct of layers and a forward(); mnist_lenet.cc is the same with
// reporting.
//
//   05_lenet [FOLDER]      MNIST's IDX files are in FOLDER (default: data/mnist)
#include <iostream>
#include <string>

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

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  lz::manual_seed(1);
  Net net;
  lz::optim::SGD opt(net.parameters(), {.lr = 0.02, .momentum = 0.9});
  lz::data::DataLoader loader(lz::data::Mnist(folder, /*train=*/true),
                              {.batch_size = 64, .shuffle = true});
  int step = 0;
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    lz::Tensor loss = lz::nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    lz::mark_step();
    if (++step % 50 == 1) std::cout << "step " << step << ": loss " << loss.item<float>() << "\n";
  }
  // The first step, those like it, and the shorter batch at the end: three programs.
  std::cout << step << " steps, " << lz::metrics::counter("UncachedCompile") << " compilations\n";
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
