// What a call of a compiled function costs on the host when it is replayed, and what recording the same
// costs, with an idle device. Goals: 3 us for ten ops, 50 us for a training step of 2,600.
#include <chrono>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

// Times calls, after which the device runs dry. `nodes`: of one call that is recorded.
template <class Call>
void Time(benchmark::State& state, Call call) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 5; ++i) {
    call();
    sync(/*wait=*/true);
  }
  for (auto _ : state) {
    const auto start = Clock::now();
    call();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    sync(/*wait=*/true);
  }
}

Tensor TenOps(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 5; ++i) y = relu(y + x);
  return y;
}

void BM_RecordTenOps(benchmark::State& state) {
  const Tensor x = ones({4});
  Tensor y;
  Time(state, [&] {
    y = TenOps(x);
    mark_step();
  });
}
BENCHMARK(BM_RecordTenOps)->UseManualTime();

void BM_ReplayTenOps(benchmark::State& state) {
  const Tensor x = ones({4});
  const auto f = compile(TenOps);
  Tensor y;
  Time(state, [&] { y = f(x); });
  state.counters["replays"] = static_cast<double>(f.replays());
}
BENCHMARK(BM_ReplayTenOps)->UseManualTime();

// A chain of linear layers with a product of all activations each, so that there are many nodes.
struct Deep {
  static constexpr int kLayers = 20, kOps = 38;
  std::vector<nn::Linear> layers;
  std::vector<Tensor> parameters;
  Deep() {
    for (int i = 0; i < kLayers; ++i) {
      layers.emplace_back(4, 4);
      for (const Tensor& p : layers.back().parameters()) parameters.push_back(p);
    }
  }
  Tensor Loss(const Tensor& x) const {
    Tensor y = x;
    for (const nn::Linear& layer : layers) {
      y = layer.forward(y);
      for (int i = 0; i < kOps; ++i) y = tanh(y) + x;
    }
    return y.square().mean();
  }
};

template <bool kReplays>
void BM_TrainingStep(benchmark::State& state) {
  Deep net;
  optim::Adam opt(net.parameters);
  const Tensor x = ones({2, 4});
  const auto step = [&](const Tensor& in) {
    opt.zero_grad();
    Tensor loss = net.Loss(in);
    loss.backward();
    opt.step();
    return loss.detach();
  };
  const std::int64_t before = metrics::counter("graph.nodes_recorded");
  step(x);
  mark_step();
  state.counters["nodes"] = static_cast<double>(metrics::counter("graph.nodes_recorded") - before);
  const auto f = compile(step);
  Tensor loss;
  Time(state, [&] {
    if constexpr (kReplays) {
      loss = f(x);
    } else {
      loss = step(x);
      mark_step();
    }
  });
  if (kReplays) state.counters["replays"] = static_cast<double>(f.replays());
}
BENCHMARK(BM_TrainingStep<false>)->Name("BM_RecordTrainingStep")->UseManualTime();
BENCHMARK(BM_TrainingStep<true>)->Name("BM_ReplayTrainingStep")->UseManualTime();

}  // namespace
}  // namespace lazuli
