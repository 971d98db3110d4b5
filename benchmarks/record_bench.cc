// What recording one op costs on the host, with its source site: no device is involved. Each
// iteration records a result and drops the one before. Goal: 150 ns for an elementwise op.
#include <cstddef>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

void SmallTensors(Tensor& x, Tensor& y) {
  x = ones({8, 8});
  y = ones({8, 8});
  sync(/*wait=*/true);
}

// Of that the source line alone: what a call does with it, and with whole stacks (XLA_IR_DEBUG).
void BM_Site(benchmark::State& state) {
  for (auto _ : state) {
    const SiteScope site(SourceLocation::current());
    benchmark::DoNotOptimize(&site);
  }
}
BENCHMARK(BM_Site);

void BM_Stack(benchmark::State& state) {
  debug::set_ir_debug(true);
  BM_Site(state);
  debug::set_ir_debug(false);
}
BENCHMARK(BM_Stack);

void BM_RecordUnary(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = relu(x);
}
BENCHMARK(BM_RecordUnary);

void BM_RecordBinary(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = x + y;
}
BENCHMARK(BM_RecordBinary);

void BM_RecordWithNumber(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = x * 0.5;
}
BENCHMARK(BM_RecordWithNumber);

void BM_RecordBroadcast(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  const Tensor row = ones({8});
  for (auto _ : state) z = x + row;
}
BENCHMARK(BM_RecordBroadcast);

void BM_RecordMatmul(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = matmul(x, y);
}
BENCHMARK(BM_RecordMatmul);

// The same with a tape for backward.
void BM_RecordUnaryWithGrad(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  x.set_requires_grad(true);
  for (auto _ : state) z = relu(x);
}
BENCHMARK(BM_RecordUnaryWithGrad);

void BM_RecordInPlace(benchmark::State& state) {
  Tensor x, y;
  SmallTensors(x, y);
  int recorded = 0;
  for (auto _ : state) {
    x.add_(y);
    if (++recorded % 1000 != 0) continue;
    state.PauseTiming();  // the chain is kept: without this, the limit of a graph's length ends in
                          // a compilation
    sync(/*wait=*/true);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_RecordInPlace);

// Views: of dims, of an index, and a write through one, which is two nodes.
void BM_RecordView(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = x.transpose(0, 1);
}
BENCHMARK(BM_RecordView);

void BM_RecordIndex(benchmark::State& state) {
  Tensor x, y, z;
  SmallTensors(x, y);
  for (auto _ : state) z = x.select(0, 3);
}
BENCHMARK(BM_RecordIndex);

void BM_RecordWriteThroughView(benchmark::State& state) {
  Tensor x, y;
  SmallTensors(x, y);
  Tensor row = x.select(0, 3);
  const Tensor other = ones({8});
  int recorded = 0;
  for (auto _ : state) {
    row.add_(other);
    if (++recorded % 500 != 0) continue;
    state.PauseTiming();
    sync(/*wait=*/true);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_RecordWriteThroughView);

// A whole training step of a dense layer: 2 parameters, cross entropy, SGD with momentum.
void BM_RecordDenseTrainingStep(benchmark::State& state) {
  nn::Linear net(16, 10);
  optim::SGD opt(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  const Tensor x = ones({4, 16}), y = zeros({4}, kInt64);
  for (auto _ : state) {
    opt.zero_grad();
    nn::functional::cross_entropy(net(x), y).backward();
    opt.step();
    state.PauseTiming();
    sync(/*wait=*/true);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_RecordDenseTrainingStep);

// An Adam step over 100 parameters, in one group and in two. Goals: 20 us, 25 us.
void BM_RecordAdamStep(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  std::vector<std::vector<Tensor>> parameters(count);
  for (std::size_t i = 0; i < 100; ++i) {
    Tensor p = ones({8}).set_requires_grad(true);
    p.set_grad(ones({8}));
    parameters[i % count].push_back(std::move(p));
  }
  optim::Adam opt(std::vector<optim::ParamGroup>(parameters.begin(), parameters.end()));
  for (auto _ : state) {
    opt.step();
    state.PauseTiming();
    sync(/*wait=*/true);
    state.ResumeTiming();
  }
}
BENCHMARK(BM_RecordAdamStep)->Arg(1)->Arg(2);

}  // namespace
}  // namespace lazuli
