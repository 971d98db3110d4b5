// What mark_step() costs on the host when the program is in the cache: trace, key, look up, hand
// over. The column ns/node is the time of one call by the nodes of its graph. Goal: 150 ns.
#include <chrono>
#include <cstdint>

#include <benchmark/benchmark.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

// Times mark_step() after each call of `record`, with an idle device.
template <class Record>
void TimeMarkStep(benchmark::State& state, Record record) {
  using Clock = std::chrono::steady_clock;
  record();
  sync(/*wait=*/true);  // compiles
  record();
  sync(/*wait=*/true);
  const std::int64_t before = metrics::counter("graph.nodes_recorded");
  double seconds = 0;
  for (auto _ : state) {
    record();
    const auto start = Clock::now();
    mark_step();
    const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    state.SetIterationTime(elapsed);
    seconds += elapsed;
    sync(/*wait=*/true);
  }
  const auto nodes = static_cast<double>(metrics::counter("graph.nodes_recorded") - before);
  state.counters["nodes"] = nodes / static_cast<double>(state.iterations());
  state.counters["ns/node"] = seconds * 1e9 / nodes;
}

// A chain of `range` elementwise ops.
void BM_SyncChain(benchmark::State& state) {
  const Tensor x = ones({4});
  Tensor y;
  TimeMarkStep(state, [&] {
    y = x;
    for (int i = 0; i < state.range(0); ++i) y = i % 2 == 0 ? relu(y) : y + x;
  });
}
BENCHMARK(BM_SyncChain)->Arg(10)->Arg(1000)->UseManualTime();

// As many ops with a number each: a parameter of the program for every node.
void BM_SyncChainWithNumbers(benchmark::State& state) {
  const Tensor x = ones({4});
  Tensor y;
  TimeMarkStep(state, [&] {
    y = x;
    for (int i = 0; i < state.range(0); ++i) y = y * 0.5;
  });
}
BENCHMARK(BM_SyncChainWithNumbers)->Arg(1000)->UseManualTime();

// A training step: many parameters and outputs, few nodes.
void BM_SyncTrainingStep(benchmark::State& state) {
  nn::Sequential net(nn::Linear(8, 8), nn::ReLU(), nn::Linear(8, 8), nn::ReLU(), nn::Linear(8, 4));
  optim::Adam opt(net.parameters());
  const Tensor x = ones({4, 8}), y = zeros({4}, kInt64);
  TimeMarkStep(state, [&] {
    opt.zero_grad();
    nn::functional::cross_entropy(net(x), y).backward();
    opt.step();
  });
}
BENCHMARK(BM_SyncTrainingStep)->UseManualTime();

}  // namespace
}  // namespace lazuli
