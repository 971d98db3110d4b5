#include "backend/npu/compiler/vector_convolution.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/npu/compiler/boxes.h"
#include "backend/npu/compiler/vector_kernel.h"
#include "backend/npu/compiler/window_part.h"
#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

using Stream = TileBuilder::Stream;

int64_t Product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

bool MultipliesFloats(const ProductTypes& types) {
  return types.a_type == Type::kF32 || types.a_type == Type::kBf16;
}
Type SumTypeOf(const ProductTypes& types) {
  return MultipliesFloats(types) ? Type::kF32 : Type::kS32;
}

int Multiplied(Expression& e, const std::vector<int>& n, bool floats) {
  const int type = floats ? kFloats : kSigned;
  if (n.size() == 2) return e.Op(Micro::kMul, type, n[0], n[1]);
  if (floats) return e.Op(Micro::kFma, type, n[0], n[1], n[2]);
  return e.Op(Micro::kAdd, type, e.Op(Micro::kMul, type, n[0], n[1]), n[2]);
}

// What streams over a nest take.
double NestCycles(const Config& config, const ProductTypes& types, int64_t n, int64_t streams) {
  const int64_t interval =
      InitiationInterval(config, n, MultipliesFloats(types) ? 1 : 2, 0, streams);
  return static_cast<double>(VectorCost(config, n, interval).occupancy);
}

// More would take longer to compile than anybody waits.
constexpr double kMostPrograms = 8192;

// The slower of both, with what they do not do side by side.
double Together(double vectors, double dram, double boxes) {
  return std::max(vectors, dram) + std::min(vectors, dram) / 4 + boxes * 100;
}

// The nest of results: batch, positions, groups, and the features of one.
class Forward {
 public:
  Forward(const Config& config, const ProductTypes& types, const VectorConvolution& x)
      : config_(config),
        t_(types),
        p_(x.problem),
        channels_(p_.channels() / x.groups),
        features_(p_.features() / x.groups) {
    nest_.assign(p_.y.dims.begin(), p_.y.dims.end() - 1);
    nest_.push_back(x.groups);
    if (features_ > 1) nest_.push_back(features_);
    window_.emplace_back();
    window_.insert(window_.end(), p_.window.begin(), p_.window.end());
    window_.emplace_back();
    taps_ = Product(Dims(p_.w.dims.begin(), p_.w.dims.end() - 1));  // and channels
    boxes_ = Cut();
  }

  double Cycles() const {
    const Counts first = FirstBox();
    double boxes = 1;
    for (std::size_t d = 0; d < nest_.size(); ++d)
      boxes *= static_cast<double>(CeilDiv(nest_[d], first.nest[d]));
    if (taps_ == 0 || boxes * static_cast<double>(taps_) > kMostPrograms) return -1;
    const double vectors =
        boxes * static_cast<double>(taps_) * NestCycles(config_, t_, Product(first.nest), 4);
    const WindowPart part = PartUnder(window_, p_.x, Dims(window_.size(), 0), first.windows);
    Dims out(first.windows);
    out.back() = first.windows.back() / channels_ * features_;
    const double dram =
        boxes * (DramTraffic(config_, p_.x, part.loaded) + DramTraffic(config_, p_.y, out)) +
        DramTraffic(config_, p_.w, p_.w.dims);
    return Together(vectors, dram / DramBytesPerCycle(config_), boxes);
  }

  void Emit(TileBuilder& b, const Epilogue& epilogue) {
    std::vector<std::size_t> order(boxes_.outer());
    std::iota(order.begin(), order.end(), std::size_t{0});
    boxes_.ForEach(order, [&](const Dims& starts, const Dims& counts) {
      b.NextStage();
      Box(starts, counts, b, epilogue);
    });
  }

 private:
  struct Counts {
    Dims nest;
    Dims windows;  // batch, positions, channels
  };

  // Starts or counts of windows.
  Dims WindowsOf(const Dims& nest) const {
    Dims windows(nest.begin(), nest.begin() + static_cast<std::ptrdiff_t>(p_.y.dims.size()));
    windows.back() *= channels_;
    return windows;
  }
  Counts FirstBoxOf(const Boxes& boxes) const {
    Counts counts{boxes.dims, {}};
    for (std::size_t d = 0; d < boxes.outer(); ++d)
      counts.nest[d] = std::min(boxes.step(d), counts.nest[d]);
    counts.windows = WindowsOf(counts.nest);
    return counts;
  }
  Counts FirstBox() const { return FirstBoxOf(boxes_); }

  // A quarter of the scratchpad, so that the next box is loaded meanwhile.
  Boxes Cut() const {
    int64_t limit = Product(nest_);
    while (true) {
      Boxes boxes = Boxes::Cut(nest_, limit, kNestLevels);
      const Counts first = FirstBoxOf(boxes);
      const int64_t n = Product(first.nest);
      const WindowPart part = PartUnder(window_, p_.x, Dims(window_.size(), 0), first.windows);
      const int64_t weights = taps_ * first.windows.back() / channels_ * features_;
      const int64_t bytes = part.elements() * TypeBytes(t_.a_type) + n * (4 + t_.out_bytes()) +
                            weights * TypeBytes(t_.w_type);
      if (bytes <= config_.spm_bytes() / 4 || limit == 1) return boxes;
      limit = (limit + 1) / 2;
    }
  }

  // Of the box's groups, the features of all taps.
  void LoadWeights(int64_t group, int64_t groups, TileBuilder& b) {
    if (weights_ >= 0 && group == group_ && groups == weight_groups_) return;
    group_ = group;
    weight_groups_ = groups;
    Dims dims = p_.w.dims;
    dims.back() = groups * features_;
    const View near = DenseView(0, t_.w_type, dims);
    weights_ = b.AddBuffer("weights", near.elements() * TypeBytes(t_.w_type));
    b.Load(TileBuilder::Spm(weights_), near.strides,
           TileBuilder::Dram(p_.w, group * features_ * p_.w.strides.back()), p_.w.strides, dims,
           TypeBytes(t_.w_type), 1);
  }

  Stream WeightsOf(int64_t tap, int64_t groups) const {
    Dims strides(nest_.size(), 0);
    strides[p_.y.dims.size() - 1] = features_;
    if (features_ > 1) strides.back() = 1;
    return {{TileBuilder::Spm(weights_, tap * groups * features_ * TypeBytes(t_.w_type)), strides},
            t_.w_type};
  }

  Stream ImageOf(const WindowPart& part, int buffer, absl::Span<const int64_t> tap) const {
    Dims strides(nest_.size(), 0);
    strides[0] = part.strides[0];
    int64_t offset = tap.back();
    for (std::size_t d = 0; d < p_.spatial(); ++d) {
      offset += tap[d] * p_.window[d].window_dilation * part.strides[d + 1];
      strides[d + 1] = part.strides[d + 1] * p_.window[d].stride;
    }
    strides[p_.spatial() + 1] = channels_;
    return {{TileBuilder::Spm(buffer, offset * TypeBytes(t_.a_type)), strides}, t_.a_type};
  }

  void Box(const Dims& starts, const Dims& counts, TileBuilder& b, const Epilogue& epilogue) {
    const bool floats = MultipliesFloats(t_);
    const std::size_t g = p_.y.dims.size() - 1;
    const WindowPart part = PartUnder(window_, p_.x, WindowsOf(starts), WindowsOf(counts));
    const int image = LoadPart(part, p_.x, 0, b);
    LoadWeights(starts[g], counts[g], b);
    const Dims near = DenseView(0, Type::kF32, counts).strides;
    const Stream sums{{TileBuilder::Spm(b.AddBuffer("sums", Product(counts) * 4)), near},
                      SumTypeOf(t_)};
    Stream out = sums;
    if (t_.out_type != sums.type)
      out = {{TileBuilder::Spm(b.AddBuffer("out", Product(counts) * TypeBytes(t_.out_type))), near},
             t_.out_type};
    int64_t number = 0;
    ForEachIndex(
        absl::MakeConstSpan(p_.w.dims).first(p_.w.dims.size() - 1),
        [&](absl::Span<const int64_t> tap) {
          std::vector<Stream> inputs{ImageOf(part, image, tap), WeightsOf(number, counts[g])};
          if (number > 0) inputs.push_back(sums);
          RunOver(
              b, counts, inputs, ++number == taps_ ? out : sums,
              [&](Expression& e, const std::vector<int>& n) { return Multiplied(e, n, floats); });
        });
    Finish(starts, counts, out, b, epilogue);
  }

  void Finish(const Dims& starts, const Dims& counts, const Stream& out, TileBuilder& b,
              const Epilogue& epilogue) const {
    const std::size_t rank = p_.y.dims.size();
    Dims at(starts.begin(), starts.begin() + static_cast<std::ptrdiff_t>(rank)),
        extents(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank));
    at.back() *= features_;
    extents.back() *= features_;
    const Dims near = DenseView(0, out.type, extents).strides;
    if (epilogue) return epilogue(at, extents, {{out.at.place, near}, out.type});
    int64_t to = 0;
    for (std::size_t d = 0; d < rank; ++d) to += at[d] * p_.y.strides[d];
    b.Store(TileBuilder::Dram(p_.y, to), p_.y.strides, out.at.place, near, extents,
            TypeBytes(out.type));
  }

  const Config& config_;
  const ProductTypes& t_;
  const ConvProblem& p_;
  const int64_t channels_, features_;  // of a group
  Dims nest_;
  hlo::Window window_;  // of x: of one element along batch and channels
  int64_t taps_ = 0;
  Boxes boxes_;
  int weights_ = -1;
  int64_t group_ = 0, weight_groups_ = 0;
};

// Weights of groups that have one channel each: groups are x's batch, what was the batch is its channels, and
// the window is as large as the positions were. The nest of a reduction: groups, window, channels.
class WeightGradient {
 public:
  WeightGradient(const Config& config, const ProductTypes& types, const VectorConvolution& x)
      : config_(config), t_(types), p_(x.problem) {
    nest_ = {x.batch_groups};
    nest_.insert(nest_.end(), p_.w.dims.begin(), p_.w.dims.end() - 1);
    positions_.assign(p_.y.dims.begin() + 1, p_.y.dims.end() - 1);
    window_.emplace_back();
    window_.insert(window_.end(), p_.window.begin(), p_.window.end());
    window_.emplace_back();
    Cut();
  }
  static bool Takes(const VectorConvolution& x) {
    return x.groups == 1 && x.batch_groups > 1 && x.problem.x.dims[0] == x.batch_groups &&
           x.problem.features() == x.batch_groups && x.problem.spatial() + 2 <= kNestLevels;
  }

  double Cycles() const {
    if (channels_ == 0 || Bytes(1, 1) > config_.spm_bytes() / 2) return -1;
    const int64_t positions = Product(positions_);
    const auto boxes =
        static_cast<double>(CeilDiv(nest_[0], groups_) * CeilDiv(nest_.back(), channels_));
    if (boxes * static_cast<double>(positions) > kMostPrograms) return -1;
    const double vectors = boxes * static_cast<double>(positions) *
                           NestCycles(config_, t_, groups_ * Length(channels_), 3);
    Dims weights = p_.w.dims;
    weights[p_.spatial()] = channels_;
    weights.back() = groups_;
    const double dram =
        boxes * (DramTraffic(config_, p_.x, Under(0, groups_, 0, channels_).loaded) +
                 DramTraffic(config_, p_.w, weights));
    return Together(vectors, dram / DramBytesPerCycle(config_), boxes);
  }

  void Emit(TileBuilder& b, const Epilogue& epilogue) const {
    for (int64_t g = 0; g < nest_[0]; g += groups_)
      Groups(g, std::min(groups_, nest_[0] - g), b, epilogue);
  }

 private:
  // Products that are added up to one result.
  int64_t Length(int64_t channels) const {
    return Product(nest_) / nest_[0] / nest_.back() * channels;
  }
  WindowPart Under(int64_t group, int64_t groups, int64_t channel, int64_t channels) const {
    Dims starts(window_.size(), 0), counts{groups};
    starts.front() = group;
    starts.back() = channel;
    counts.insert(counts.end(), positions_.begin(), positions_.end());
    counts.push_back(channels);
    return PartUnder(window_, p_.x, starts, counts);
  }
  int64_t Bytes(int64_t groups, int64_t channels) const {
    return Under(0, groups, 0, channels).elements() * TypeBytes(t_.a_type) +
           groups * Length(channels) * TypeBytes(t_.w_type) +
           groups * Product(positions_) * (8 + t_.out_bytes());
  }
  void Cut() {
    groups_ = nest_[0];
    channels_ = nest_.back();
    const int64_t room = config_.spm_bytes() / 4;
    while (groups_ > 1 && Bytes(groups_, channels_) > room) groups_ = (groups_ + 1) / 2;
    while (channels_ > 1 && Bytes(groups_, channels_) > room) channels_ = (channels_ + 1) / 2;
  }

  void Groups(int64_t group, int64_t groups, TileBuilder& b, const Epilogue& epilogue) const {
    Dims results{groups};  // behind each group its positions
    results.insert(results.end(), positions_.begin(), positions_.end());
    const auto buffer = [&](std::string_view name, Type type) {
      return Stream{{TileBuilder::Spm(b.AddBuffer(name, Product(results) * TypeBytes(type))),
                     DenseView(0, type, results).strides},
                    type};
    };
    const bool floats = MultipliesFloats(t_);
    Stream sums = buffer("sums", SumTypeOf(t_));
    for (int64_t c = 0; c < nest_.back(); c += channels_) {
      b.NextStage();
      const Stream part = c == 0 ? sums : buffer("part", sums.type);
      Reduce(group, groups, c, std::min(channels_, nest_.back() - c), part, b);
      if (c > 0)
        RunOver(b, results, {sums, part}, sums, [&](Expression& e, const std::vector<int>& n) {
          return e.Op(Micro::kAdd, floats ? kFloats : kSigned, n[0], n[1]);
        });
    }
    if (t_.out_type != sums.type) {
      const Stream out = buffer("out", t_.out_type);
      RunOver(b, results, {sums}, out, [](Expression&, const std::vector<int>& n) { return n[0]; });
      sums = out;
    }
    // As y has them: one image, positions, features.
    Dims starts(p_.y.dims.size(), 0), extents{1}, near{0};
    starts.back() = group;
    extents.insert(extents.end(), positions_.begin(), positions_.end());
    extents.push_back(groups);
    near.insert(near.end(), sums.at.strides.begin() + 1, sums.at.strides.end());
    near.push_back(sums.at.strides[0]);
    if (epilogue) return epilogue(starts, extents, {{sums.at.place, near}, sums.type});
    b.Store(TileBuilder::Dram(p_.y, group * p_.y.strides.back()), p_.y.strides, sums.at.place, near,
            extents, TypeBytes(sums.type));
  }

  // Of some channels, a result for each group and position.
  void Reduce(int64_t group, int64_t groups, int64_t channel, int64_t channels, const Stream& to,
              TileBuilder& b) const {
    const WindowPart part = Under(group, groups, channel, channels);
    const int image = LoadPart(part, p_.x, 0, b);
    Dims dims = p_.w.dims;
    dims[p_.spatial()] = channels;
    dims.back() = groups;
    const View near = DenseView(0, t_.w_type, dims);
    const int weights = b.AddBuffer("weights", near.elements() * TypeBytes(t_.w_type));
    b.Load(
        TileBuilder::Spm(weights), near.strides,
        TileBuilder::Dram(p_.w, group * p_.w.strides.back() + channel * p_.w.strides[p_.spatial()]),
        p_.w.strides, dims, TypeBytes(t_.w_type), 1);
    Dims counts{groups}, image_strides{part.strides[0]}, weight_strides{near.strides.back()};
    for (std::size_t d = 0; d < p_.spatial(); ++d) {
      counts.push_back(dims[d]);
      image_strides.push_back(part.strides[d + 1] * p_.window[d].window_dilation);
      weight_strides.push_back(near.strides[d]);
    }
    counts.push_back(channels);
    image_strides.push_back(1);
    weight_strides.push_back(near.strides[p_.spatial()]);
    ForEachIndex(positions_, [&](absl::Span<const int64_t> position) {
      int64_t from = 0, at = 0;
      for (std::size_t d = 0; d < position.size(); ++d) {
        from += position[d] * p_.window[d].stride * part.strides[d + 1];
        at += position[d] * to.at.strides[d + 1];
      }
      Stream result{{to.at.place, Dims(counts.size(), 0)}, to.type};
      result.at.place.offset += at * TypeBytes(to.type);
      result.at.strides[0] = to.at.strides[0];
      RunOver(
          b, counts,
          {{{TileBuilder::Spm(image, from * TypeBytes(t_.a_type)), image_strides}, t_.a_type},
           {{TileBuilder::Spm(weights), weight_strides}, t_.w_type}},
          result,
          [&](Expression& e, const std::vector<int>& n) {
            return Multiplied(e, n, MultipliesFloats(t_));
          },
          static_cast<int>(Reduction::kSum));
    });
  }

  const Config& config_;
  const ProductTypes& t_;
  const ConvProblem& p_;
  Dims nest_, positions_;
  hlo::Window window_;
  int64_t groups_ = 1, channels_ = 1;  // of a box
};

}  // namespace

double CyclesOnVectors(const Config& config, const ProductTypes& types,
                       const VectorConvolution& x) {
  if (x.batch_groups == 1) return Forward(config, types, x).Cycles();
  return WeightGradient::Takes(x) ? WeightGradient(config, types, x).Cycles() : -1;
}

void EmitOnVectors(const VectorConvolution& x, const ProductTypes& types, TileBuilder& builder,
                   const Epilogue& epilogue) {
  if (x.batch_groups == 1)
    Forward(builder.config(), types, x).Emit(builder, epilogue);
  else
    WeightGradient(builder.config(), types, x).Emit(builder, epilogue);
}

}  // namespace lazuli::npu
