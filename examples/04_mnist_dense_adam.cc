// Lesson 4: handwritten digits with one dense layer and Adam, and the program that a training step
// became.
//
//   04_mnist_dense_adam [FOLDER]      MNIST's IDX files are in FOLDER (default: data/mnist)
#include <iostream>
#include <string>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

double Accuracy(const lz::nn::Linear& net, lz::data::DataLoader& loader) {
  const lz::NoGrad no_grad;
  double correct = 0;
  for (auto& [x, y] : loader) {
    correct += lz::sum(lz::argmax(net(lz::flatten(x, 1)), 1) == y).item();
  }
  return correct / static_cast<double>(loader.dataset().size());
}

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "data/mnist";
  lz::manual_seed(1);
  lz::data::DataLoader train(lz::data::Mnist(folder, /*train=*/true),
                             {.batch_size = 100, .shuffle = true, .drop_last = true});
  lz::data::DataLoader test(lz::data::Mnist(folder, /*train=*/false), {.batch_size = 1000});

  lz::nn::Linear net(784, 10);
  lz::optim::Adam opt(net.parameters(), {.lr = 1e-3});
  for (int step = 0; step < 1000;) {
    for (auto& [x, y] : train) {
      opt.zero_grad();
      lz::Tensor loss = lz::nn::functional::cross_entropy(net(lz::flatten(x, 1)), y);
      loss.backward();
      opt.step();
      lz::mark_step();
      if (step % 100 == 0) std::cout << "step " << step << ": loss " << loss.item<float>() << "\n";
      if (++step == 1000) break;
    }
  }
  // The program of the last step: the gradients and Adam's update of both parameters in one.
  const std::string program = lz::debug::last_hlo();
  std::cout << "test accuracy " << 100 * Accuracy(net, test) << " %\n\n" << program;
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
