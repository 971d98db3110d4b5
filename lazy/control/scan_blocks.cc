#include "lazy/control/scan_blocks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

// Where the state of the draws is among the tensors from outside.
std::optional<std::size_t> StateOf(const TracedScan& scan) {
  const Tensors& outside = scan.step.outside;
  for (std::size_t i = 0; i < outside.size(); ++i)
    if (!outside[i].defined()) return i;
  return std::nullopt;
}

// The states behind the draws of 0, `every`, 2 `every`, ... steps of a state of WithState(), whose
// last two words are 0: u32[count, 4].
Tensor StatesOfBlocks(const TracedScan& scan, const Tensor& state, int64_t every, int64_t count) {
  const auto number = [](int64_t value) {
    return Constant(static_cast<double>(value), DType::kS64);
  };
  const Tensor offsets = Reshape(
      Mul(Arange(count, DType::kS64, scan.device), number(every * scan.blocks)), {count, 1});
  const Tensor seeds = BroadcastTo(Narrow(state, 0, 0, 2), {count, 2});
  const Tensor low = To(BitwiseAnd(offsets, number(0xffffffff)), DType::kU32);
  const Tensor high = To(RightShift(offsets, number(32)), DType::kU32);
  return Cat({seeds, low, high}, 1);
}

Dims WithFront(std::initializer_list<int64_t> front, absl::Span<const int64_t> rest) {
  Dims dims(front.begin(), front.end());
  dims.insert(dims.end(), rest.begin(), rest.end());
  return dims;
}

// A scan in blocks of equal length, and one shorter block if the steps do not fill the last one.
class Blocks {
 public:
  Blocks(const TracedScan& scan, const ScanTensors& given, int64_t every)
      : scan_(scan),
        given_(given),
        every_(every),
        whole_(scan.count / every),
        state_(StateOf(scan)) {
    if (state_) states_ = StatesOfBlocks(scan, given.outside[*state_], every, whole_ + 1);
  }

  // The carried tensors behind all whole blocks, then the further results of their steps.
  Tensors Whole(const Tensors& init) const {
    ScanTensors all{.init = init, .xs = {}, .fixed = {}, .outside = {}};
    std::vector<TracedParameter> parameters;
    for (const Tensor& carried : init) parameters.push_back({carried.shape(), true});
    for (const Tensor& x : given_.xs) {
      const absl::Span<const int64_t> element = x.shape().dims().subspan(1);
      all.xs.push_back(
          Reshape(Narrow(x, 0, 0, whole_ * every_), WithFront({whole_, every_}, element)));
      parameters.push_back({Shape(x.dtype(), WithFront({every_}, element)), WantsGradient({x})});
    }
    if (state_) {
      all.xs.push_back(Narrow(states_, 0, 0, whole_));
      parameters.push_back({Shape(DType::kU32, {4})});
    }
    const auto trace = std::make_shared<Tracing>(
        scan_.name, parameters, scan_.device, [&](absl::Span<const Tensor> in) {
          const absl::Span<const Tensor> xs = in.subspan(scan_.carried, scan_.over);
          return Steps({in.begin(), in.begin() + scan_.carried}, {xs.begin(), xs.end()},
                       state_ ? in.back() : Tensor(), every_);
        });
    all.outside = WithState(trace->function().outside, scan_.device);
    TracedScan blocks = scan_;
    blocks.trace = trace;
    blocks.step = trace->function();
    blocks.over = all.xs.size();
    blocks.count = whole_;
    blocks.blocks = trace->function().blocks;
    Tensors results = RunScan(blocks, all);
    for (std::size_t i = scan_.carried; i < results.size(); ++i) {
      results[i] =
          Reshape(results[i], WithFront({whole_ * every_}, results[i].shape().dims().subspan(2)));
    }
    return results;
  }
  // The same for the steps behind the whole blocks.
  Tensors Rest(const Tensors& init) const {
    const int64_t first = whole_ * every_, count = scan_.count - first;
    Tensors xs;
    for (const Tensor& x : given_.xs) xs.push_back(Narrow(x, 0, first, count));
    return Steps(init, xs, state_ ? Select(states_, 0, whole_) : Tensor(), count);
  }
  bool HasRest() const { return whole_ * every_ < scan_.count; }

 private:
  Tensors Steps(const Tensors& init, const Tensors& xs, const Tensor& state, int64_t count) const {
    TracedScan steps = scan_;
    steps.count = count;
    ScanTensors given{.init = init, .xs = xs, .fixed = {}, .outside = given_.outside};
    if (state_) given.outside[*state_] = state;
    return RunScan(steps, given);
  }

  const TracedScan& scan_;
  const ScanTensors& given_;
  int64_t every_, whole_;
  std::optional<std::size_t> state_;
  Tensor states_;
};

}  // namespace

Tensors RunScanInBlocks(const TracedScan& scan, const ScanTensors& given, int64_t every) {
  const Blocks blocks(scan, given, std::min(every, scan.count));
  if (!blocks.HasRest()) return blocks.Whole(given.init);
  const auto carried = [&](const Tensors& results) {
    return Tensors(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(scan.carried));
  };
  Tensors whole, rest;
  if (scan.reverse) {
    rest = blocks.Rest(given.init);
    whole = blocks.Whole(carried(rest));
  } else {
    whole = blocks.Whole(given.init);
    rest = blocks.Rest(carried(whole));
  }
  Tensors results = carried(scan.reverse ? whole : rest);
  for (std::size_t i = scan.carried; i < whole.size(); ++i)
    results.push_back(Cat({whole[i], rest[i]}, 0));
  return results;
}

}  // namespace lazuli::lazy
