#include "backend/npu/compiler/convolution_kernel.h"

#include <algorithm>
#include <span>
#include <utility>

#include "backend/npu/sim/cost.h"
#include "ir/support/check.h"

namespace lazuli::npu {
namespace {

// Part of the taps and channels.
struct Chunk {
  int64_t tap, taps, channel, channels;
  bool operator==(const Chunk&) const = default;
};

class ConvEmitter {
 public:
  ConvEmitter(const ConvProblem& problem, const ProductTypes& types, const ConvTiles& tiles,
              TileBuilder& builder, const Epilogue& epilogue)
      : p_(problem),
        t_(types),
        x_(tiles),
        b_(builder),
        epilogue_(epilogue),
        emit_(builder, types),
        image_(ImageOf(problem, tiles)),
        elem_(TypeBytes(types.a_type)) {}

  void Run() {
    for (int64_t tap = 0; tap < p_.w.dims[0]; tap += x_.taps) {
      for (int64_t c = 0; c < p_.channels(); c += x_.channels)
        chunks_.push_back({tap, std::min(x_.taps, p_.w.dims[0] - tap), c,
                           std::min(x_.channels, p_.channels() - c)});
    }
    if (!x_.features_outer)
      return ForTiles([&](const Dims& at, const Dims& extents) {
        ForFeatures([&](int64_t f, int64_t count) { Block(at, extents, f, count); });
      });
    ForFeatures([&](int64_t f, int64_t count) {
      ForTiles([&](const Dims& at, const Dims& extents) { Block(at, extents, f, count); });
    });
  }

 private:
  template <class F>
  void ForFeatures(F f) {
    for (int64_t at = 0; at < p_.features(); at += x_.features)
      f(at, std::min(x_.features, p_.features() - at));
  }
  template <class F>
  void ForTiles(F f) {
    Dims at(x_.tile.size(), 0), extents(at);
    while (true) {
      for (std::size_t d = 0; d < at.size(); ++d)
        extents[d] = std::min(x_.tile[d], p_.y.dims[d] - at[d]);
      f(at, extents);
      std::size_t d = at.size();
      while (d > 0 && (at[d - 1] += x_.tile[d - 1]) >= p_.y.dims[d - 1]) at[--d] = 0;
      if (d == 0) return;
    }
  }

  void Block(const Dims& at, const Dims& extents, int64_t feature, int64_t features) {
    const int64_t cols = b_.config().mxu.cols;
    int64_t rows = 1;
    for (int64_t d : extents) rows *= d;
    const std::vector<int> sums = emit_.AddSums(rows, features);
    bool first = true;
    for (const Chunk& chunk : chunks_) {
      b_.NextStage();
      LoadTable(chunk);
      LoadImage(at, extents, chunk);
      LoadWeights(chunk, feature, features);
      for (std::size_t s = 0; s < sums.size(); ++s)
        Products(chunk, extents, static_cast<int64_t>(s) * cols, features, sums[s], !first);
      first = false;
    }
    Dims starts = at, block = extents;
    starts.push_back(feature);
    block.push_back(features);
    emit_.Finish(sums, starts, block, p_.y, epilogue_);
  }

  // Bytes from a window's corner to its elements, in the order of the weights' rows.
  std::vector<int32_t> Offsets(const Chunk& chunk) const {
    Dims dims{chunk.taps};
    for (std::size_t d = 1; d < p_.spatial(); ++d) dims.push_back(p_.w.dims[d]);
    dims.push_back(chunk.channels);
    std::vector<int32_t> offsets;
    ForEachIndex(dims, [&](absl::Span<const int64_t> index) {
      int64_t offset = index.back();
      for (std::size_t d = 0; d < p_.spatial(); ++d)
        offset += index[d] * p_.window[d].window_dilation * image_.strides[d + 1];
      offsets.push_back(static_cast<int32_t>(offset * elem_));
    });
    return offsets;
  }

  void LoadTable(const Chunk& chunk) {
    std::pair<int64_t, int64_t> key{chunk.taps, chunk.channels};
    if (key == table_key_) return;
    table_key_ = key;
    offsets_ = Offsets(chunk);
    const auto count = static_cast<int64_t>(offsets_.size());
    const int array = b_.AddConstant(Type::kS32, {count}, std::as_bytes(std::span(offsets_)));
    table_ = b_.AddBuffer("offsets", 4 * count);
    b_.Load(TileBuilder::Spm(table_), {1}, {Space::kDram, array, 0, 0, 0}, {1}, {count}, 4, 0);
  }

  // The input positions under the windows of a tile, zeros where there are none.
  void LoadImage(const Dims& at, const Dims& extents, const Chunk& chunk) {
    if (!image_at_.empty() && image_at_ == at && image_chunk_ == chunk) return;
    image_at_ = at;
    image_chunk_ = chunk;
    buffer_ = b_.AddBuffer("image", image_.elements() * elem_);
    Dims dims{extents[0]}, near{image_.strides[0]};
    int64_t from = at[0] * p_.x.strides[0] + chunk.channel * p_.x.strides.back(), to = 0;
    bool holes = false, empty = false;
    for (std::size_t d = 0; d < p_.spatial(); ++d) {
      const hlo::WindowDim& w = p_.window[d];
      const int64_t taps = d == 0 ? chunk.taps : p_.w.dims[d], tap = d == 0 ? chunk.tap : 0;
      // In positions of the dilated input.
      const int64_t low = at[d + 1] * w.stride - w.pad_low + tap * w.window_dilation;
      const int64_t high = low + (extents[d + 1] - 1) * w.stride + (taps - 1) * w.window_dilation;
      const int64_t first = CeilDiv(std::max<int64_t>(low, 0), w.base_dilation);
      const int64_t last = high < 0 ? -1 : std::min(p_.x.dims[d + 1] - 1, high / w.base_dilation);
      empty = empty || last < first;
      holes = holes || w.base_dilation > 1 || first > low || last < high;
      dims.push_back(last - first + 1);
      near.push_back(image_.strides[d + 1] * w.base_dilation);
      from += first * p_.x.strides[d + 1];
      to += (first * w.base_dilation - low) * image_.strides[d + 1];
    }
    dims.push_back(chunk.channels);
    near.push_back(1);
    if (holes) b_.Fill(TileBuilder::Spm(buffer_), image_.elements(), elem_, 0, 0);
    if (empty) return;
    b_.Load(TileBuilder::Spm(buffer_, to * elem_), near, TileBuilder::Dram(p_.x, from),
            p_.x.strides, dims, elem_, 0);
  }

  void LoadWeights(const Chunk& chunk, int64_t feature, int64_t features) {
    if (weights_ >= 0 && weights_chunk_ == chunk && weights_feature_ == feature) return;
    weights_chunk_ = chunk;
    weights_feature_ = feature;
    const int elem = TypeBytes(t_.w_type);
    Dims dims = p_.w.dims;
    dims[0] = chunk.taps;
    dims[p_.spatial()] = chunk.channels;
    dims.back() = features;
    const Dims near = DenseView(0, t_.w_type, dims).strides;
    weights_ = b_.AddBuffer("weights", near[0] * dims[0] * elem);
    int64_t from = chunk.tap * p_.w.strides[0] + feature * p_.w.strides.back();
    if (p_.groups == 1) {
      from += chunk.channel * p_.w.strides[p_.spatial()];
      return b_.Load(TileBuilder::Spm(weights_), near, TileBuilder::Dram(p_.w, from), p_.w.strides,
                     dims, elem, 1);
    }
    // A group's channels meet its features only.
    const int64_t channels = p_.channels() / p_.groups, outputs = p_.features() / p_.groups;
    b_.Fill(TileBuilder::Spm(weights_), near[0] * dims[0], elem, 0, 1);
    dims[p_.spatial()] = channels;
    dims.back() = outputs;
    for (int64_t g = 0; g < p_.groups; ++g)
      b_.Load(TileBuilder::Spm(weights_, (g * channels * near[p_.spatial()] + g * outputs) * elem),
              near, TileBuilder::Dram(p_.w, from + g * outputs * p_.w.strides.back()), p_.w.strides,
              dims, elem, 1);
  }

  // All of a chunk for one tile of features.
  void Products(const Chunk& chunk, const Dims& extents, int64_t at, int64_t features, int sum,
                bool accumulate) {
    const int64_t n = std::min(b_.config().mxu.cols, features - at);
    const auto depth = static_cast<int64_t>(offsets_.size());
    LAZULI_CHECK(table_key_ == std::pair(chunk.taps, chunk.channels), "the table is the chunk's");
    Dims strides{image_.strides[0]};
    for (std::size_t d = 0; d < p_.spatial(); ++d)
      strides.push_back(image_.strides[d + 1] * p_.window[d].stride);
    for (int64_t k = 0; k < depth; k += b_.config().mxu.rows) {
      const int64_t deep = std::min(b_.config().mxu.rows, depth - k);
      emit_.Weights(TileBuilder::Spm(weights_, (k * features + at) * TypeBytes(t_.w_type)), deep, n,
                    features);
      const auto begin = offsets_.begin() + k, end = begin + deep;
      const auto [low, high] = std::minmax_element(begin, end);
      bool run = true;
      for (auto o = begin; o != end; ++o) run = run && *o == *begin + (o - begin) * elem_;
      if (run) {
        emit_.Multiply(TileBuilder::Spm(buffer_, *begin), extents, strides, deep, sum,
                       accumulate || k > 0, {}, {0, deep * elem_});
      } else {
        emit_.Multiply(TileBuilder::Spm(buffer_), extents, strides, deep, sum, accumulate || k > 0,
                       TileBuilder::Spm(table_, 4 * k), {*low, *high + elem_});
      }
    }
  }

  const ConvProblem& p_;
  const ProductTypes& t_;
  const ConvTiles& x_;
  TileBuilder& b_;
  const Epilogue& epilogue_;
  ProductEmitter emit_;
  ImageShape image_;
  int elem_;
  std::vector<Chunk> chunks_;
  std::vector<int32_t> offsets_;
  std::pair<int64_t, int64_t> table_key_{-1, -1};
  int table_ = -1, buffer_ = -1, weights_ = -1;
  Dims image_at_;
  Chunk image_chunk_{}, weights_chunk_{};
  int64_t weights_feature_ = -1;
};

}  // namespace

void EmitConvolution(const ConvProblem& problem, const ProductTypes& types, const ConvTiles& tiles,
                     TileBuilder& builder, const Epilogue& epilogue) {
  ConvEmitter(problem, types, tiles, builder, epilogue).Run();
}

}  // namespace lazuli::npu
