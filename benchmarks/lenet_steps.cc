// Lazuli's side of lenet_peers.py: reads a number of steps, makes them, prints the seconds they
// took; again and again.
#include <chrono>
#include <iostream>

#include "benchmarks/lenet.h"

int main() {
  lazuli::bench::LeNetTraining training(64);
  for (int steps = 0; std::cin >> steps;) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) training.Step();
    lazuli::sync(/*wait=*/true);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    std::cout << elapsed.count() << std::endl;
  }
}
