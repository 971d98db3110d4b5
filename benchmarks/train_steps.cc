// Lazuli's side of train_peers.py: trains the network named by its argument. Reads a number of
// steps, makes them, prints the seconds they took and the loss; again and again.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "benchmarks/models.h"

namespace {

template <class Net>
int Serve() {
  lazuli::bench::Training<Net> training;
  for (int steps = 0; std::cin >> steps;) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) training.Step();
    lazuli::sync(/*wait=*/true);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::cout << elapsed.count() << ' ' << training.loss() << std::endl;
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view model = argc == 2 ? argv[1] : "";
  if (model == "mlp") return Serve<lazuli::bench::Mlp>();
  if (model == "wide_mlp") return Serve<lazuli::bench::WideMlp>();
  if (model == "lenet") return Serve<lazuli::bench::LeNet>();
  if (model == "cnn") return Serve<lazuli::bench::Cnn>();
  std::cerr << "usage: train_steps mlp|wide_mlp|lenet|cnn\n";
  return EXIT_FAILURE;
}
