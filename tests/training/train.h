// What training tests train: a small LeNet on made-up digits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "tests/training/digits.h"
#include <lazuli/lazuli.h>

namespace lazuli::test {

// A folder of 1,100 training and 300 test digits that goes away with the process.
inline const std::string& DigitsFolder() {
  struct Folder {
    Folder()
        : path(std::filesystem::temp_directory_path() /
               ("lazuli_digits." + std::to_string(getpid()))) {
      WriteDigits(path, 1100, 300);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    std::string path;
  };
  static const Folder folder;
  return folder.path;
}

// The first `count` digits in batches of 50.
inline data::DataLoader Digits(std::int64_t count, bool train = true) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return data::DataLoader(data::Subset(data::Mnist(DigitsFolder(), train), std::move(indices)),
                          {.batch_size = 50, .shuffle = train});
}

struct SmallLeNet : nn::Module {
  nn::Conv2d conv1{1, 4, 3}, conv2{4, 8, 3};
  nn::Linear fc1{1152, 32}, fc2{32, 10};
  SmallLeNet() {
    register_modules({{"conv1", conv1}, {"conv2", conv2}, {"fc1", fc1}, {"fc2", fc2}});
  }
  Tensor forward(const Tensor& x) const {
    Tensor h = max_pool2d(relu(conv2(relu(conv1(x)))), 2);
    return fc2(relu(fc1(flatten(h, 1))));
  }
};

// The loss at each step of an epoch, which are read at its end.
template <class Net, class Optimizer>
std::vector<float> TrainEpoch(Net& net, Optimizer& opt, data::DataLoader& loader) {
  std::vector<Tensor> losses;
  for (auto& [x, y] : loader) {
    opt.zero_grad();
    Tensor loss = nn::functional::cross_entropy(net.forward(x), y);
    loss.backward();
    opt.step();
    mark_step();
    losses.push_back(loss.detach());
  }
  std::vector<float> values;
  for (const Tensor& loss : losses) values.push_back(loss.item<float>());
  return values;
}

template <class Net>
double Accuracy(Net& net, data::DataLoader& loader) {
  const NoGrad no_grad;
  std::vector<Tensor> counts;
  for (auto& [x, y] : loader) {
    counts.push_back(sum(argmax(net.forward(x), 1) == y));
    mark_step();
  }
  double correct = 0;
  for (const Tensor& count : counts) correct += count.item();
  return correct / static_cast<double>(loader.dataset().size());
}

inline std::int64_t Compilations() { return metrics::counter("UncachedCompile"); }

}  // namespace lazuli::test
