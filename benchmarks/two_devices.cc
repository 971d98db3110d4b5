// What two CPU devices cost that run at the same time: steps of a network on each, in a thread for
// each and in one thread for both, by turns.
//
//   two_devices [ROUNDS]      run by `./lz bench two_devices`
//
// Goal: together they take no longer than one after the other. The cores are the same, so they
// cannot take much less.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <lazuli/lazuli.h>

namespace lz = lazuli;

constexpr int kSteps = 40;

// Three layers of 512 on a device, and 128 rows of input.
struct Network {
  explicit Network(const lz::Device& device) : x(lz::rand({128, 512}).to(device)) {
    for (int layer = 0; layer < 3; ++layer) {
      weights.push_back((lz::rand({512, 512}) * 0.05).to(device));
      weights.back().set_requires_grad(true);
    }
  }
  void Step() {
    lz::Tensor y = x;
    for (const lz::Tensor& weight : weights) y = lz::tanh(y.matmul(weight));
    lz::mean(y * y).backward();
    for (lz::Tensor& weight : weights) {
      weight = weight.detach() - weight.grad() * 0.01;
      weight.set_requires_grad(true);
    }
    lz::sync();
  }
  void Run() {
    for (int step = 0; step < kSteps; ++step) Step();
    static_cast<void>(lz::sum(weights[0]).item());  // waits
  }

  lz::Tensor x;
  std::vector<lz::Tensor> weights;
};

template <class F>
double Seconds(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::max(1, std::stoi(argv[1])) : 9;
  setenv("CPU_NUM_DEVICES", "2", 1);
  Network first(lz::Device("cpu:0")), second(lz::Device("cpu:1"));
  const auto together = [&] {
    std::thread one([&] { first.Run(); }), other([&] { second.Run(); });
    one.join();
    other.join();
  };
  const auto alone = [&] {
    first.Run();
    second.Run();
  };
  together();
  alone();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double at_once = Seconds(together);
    ratios.push_back(at_once / Seconds(alone));
  }
  std::sort(ratios.begin(), ratios.end());
  std::cout << "at the same time " << ratios[ratios.size() / 2]
            << " of the time one after the other (" << ratios.front() << " to " << ratios.back()
            << ", " << rounds << " rounds of " << kSteps << " steps)\n";
} catch (const lz::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
