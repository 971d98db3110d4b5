// A training step of the demo's LeNet, batch 64. train_peers.py measures the same next to PyTorch.
#include "benchmarks/models.h"
#include <benchmark/benchmark.h>

namespace lazuli::bench {
namespace {

void BM_LeNetStep(benchmark::State& state) {
  Training<LeNet> training;
  for (auto _ : state) training.Step();
  sync(/*wait=*/true);
  state.counters["planned_memory"] =
      benchmark::Counter(static_cast<double>(debug::last_memory_plan().peak),
                         benchmark::Counter::kDefaults, benchmark::Counter::kIs1024);
}
BENCHMARK(BM_LeNetStep)->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(3);

// Forward only.
void BM_LeNetInference(benchmark::State& state) {
  const NoGrad no_grad;
  const LeNet net;
  const Tensor x = LeNet::Input();
  Tensor y;
  for (auto _ : state) {
    y = net.forward(x);
    mark_step();
  }
  sync(/*wait=*/true);
}
BENCHMARK(BM_LeNetInference)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace lazuli::bench
