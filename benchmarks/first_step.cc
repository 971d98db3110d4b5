// The first steps of a process that trains LeNet: milliseconds from main to the end of the first
// step, of the second (another program: there is momentum), and of a warm one; then kernels
// compiled. second_process.py runs it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "benchmarks/models.h"

namespace lazuli::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

void Run() {
  const Clock::time_point begin = Clock::now();
  LeNet net;
  optim::SGD opt(net.parameters(), {.lr = 0.02, .momentum = 0.9});
  const Tensor x = LeNet::Input(), y = zeros({LeNet::kBatch}, kInt64);
  const auto step = [&] {
    opt.zero_grad();
    nn::functional::cross_entropy(net.forward(x), y).backward();
    opt.step();
    sync(/*wait=*/true);
  };
  step();
  const double first = Milliseconds(begin);
  std::array<double, 41> warm;
  for (double& ms : warm) {
    const Clock::time_point start = Clock::now();
    step();
    ms = Milliseconds(start);
  }
  const double second = warm[0];
  std::nth_element(warm.begin() + 1, warm.begin() + 21, warm.end());
  std::printf("%.1f %.1f %.1f %lld\n", first, second, warm[21],
              static_cast<long long>(metrics::counter("cpu.kernels_compiled")));
}

}  // namespace
}  // namespace lazuli::bench

int main() { lazuli::bench::Run(); }
