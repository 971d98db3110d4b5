// A training step of the demo's LeNet, batch 64, and what an evaluation costs. train_peers.py
// measures the step next to PyTorch.
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

// The widest layer alone, in an evaluation loop; the argument is the batch.
void BM_Linear(benchmark::State& state) {
  const NoGrad no_grad;
  const nn::Linear layer(9216, 128);
  const Tensor x = randn({state.range(0), 9216});
  Tensor y;
  for (auto _ : state) {
    y = layer(x);
    mark_step();
  }
  sync(/*wait=*/true);
}
BENCHMARK(BM_Linear)->Arg(1)->Arg(64)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace lazuli::bench
