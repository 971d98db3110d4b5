// Which tiles a convolution is cut into: all shapes that fit, by what they cost.

#include <algorithm>
#include <cstdlib>

#include "backend/npu/compiler/convolution_kernel.h"
#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

class ConvTileSearch {
 public:
  ConvTileSearch(const Config& config, const ProductTypes& types, const ConvProblem& problem)
      : config_(config), types_(types), p_(problem) {}

  ConvTiles Run() {
    Dims tile(p_.y.dims.begin(), p_.y.dims.end() - 1);
    best_ = {Dims(tile.size(), 1), 1, p_.groups > 1 ? p_.channels() : 1, Columns(1), false, -1};
    for (bool more = true; more;) {
      ForTile(tile);
      more = false;  // the outermost dimension that has more than one is halved
      for (int64_t& d : tile) {
        if (d == 1) continue;
        d = (d + 1) / 2;
        more = true;
        break;
      }
    }
    return best_;
  }

 private:
  int64_t Columns(int64_t tiles) const { return std::min(p_.features(), tiles * config_.mxu.cols); }
  static int64_t Half(int64_t n) { return n == 1 ? 0 : (n + 1) / 2; }

  void ForTile(const Dims& tile) {
    int64_t rows = 1;
    for (int64_t d : tile) rows *= d;
    for (int64_t nt = CeilDiv(p_.features(), config_.mxu.cols); nt >= 1; nt = Half(nt)) {
      if (rows * nt > std::max<int64_t>(1, config_.acc.rows / 2) || Columns(nt) > 32767) continue;
      for (int64_t taps = p_.w.dims[0]; taps >= 1; taps = Half(taps)) {
        // Channels of other groups are zeros in the weights: all or none.
        for (int64_t c = p_.channels(); c >= 1; c = p_.groups > 1 ? 0 : Half(c))
          ForChunk({tile, taps, c, Columns(nt), false, 0}, rows);
      }
    }
  }

  void ForChunk(ConvTiles x, int64_t rows) {
    int64_t depth = x.taps * x.channels;
    for (std::size_t d = 1; d < p_.spatial(); ++d) depth *= p_.w.dims[d];
    const int64_t image = ImageOf(p_, x).elements() * TypeBytes(types_.a_type),
                  weights = depth * x.features * TypeBytes(types_.w_type),
                  out = rows * x.features * types_.out_bytes();
    if (image + weights + out + 4 * depth > config_.spm_bytes() / 2 - 1024) return;
    for (const bool features_outer : {false, true}) {
      x.features_outer = features_outer;
      x.cycles = CyclesOf(x, rows, depth);
      if (best_.cycles < 0 || x.cycles < best_.cycles) best_ = x;
    }
  }

  double CyclesOf(const ConvTiles& x, int64_t rows, int64_t depth) const {
    int64_t blocks = 1;
    double all_rows = 1;
    for (std::size_t d = 0; d < x.tile.size(); ++d) {
      blocks *= CeilDiv(p_.y.dims[d], x.tile[d]);
      all_rows *= static_cast<double>(p_.y.dims[d]);
    }
    const int64_t columns = CeilDiv(p_.features(), x.features),
                  chunks = CeilDiv(p_.w.dims[0], x.taps) * CeilDiv(p_.channels(), x.channels);
    const double depth_tiles =
        static_cast<double>(chunks * CeilDiv(depth, config_.mxu.rows)) * Fraction(x);
    const double ldw = static_cast<double>(CeilDiv(config_.mxu.rows, config_.mxu.ldw_rows_per_clk));
    const double stream =
        all_rows / static_cast<double>(blocks) * static_cast<double>(types_.clocks_per_row);
    const double array = depth_tiles *
                         static_cast<double>(CeilDiv(p_.features(), config_.mxu.cols) * blocks) *
                         std::max(stream, ldw);

    Dims image = ImageOf(p_, x).extents;
    for (std::size_t d = 0; d < p_.spatial(); ++d)
      image[d + 1] = std::min(p_.x.dims[d + 1], CeilDiv(image[d + 1], p_.window[d].base_dilation));
    Dims weights = p_.w.dims;
    weights[0] = x.taps;
    weights[p_.spatial()] = std::min(x.channels, weights[p_.spatial()]);
    weights.back() = std::min(x.features, weights.back());
    Dims out = x.tile;
    out.push_back(x.features);
    const double image_bytes = DramTraffic(config_, p_.x, image),
                 weight_bytes = DramTraffic(config_, p_.w, weights),
                 out_bytes = DramTraffic(config_, p_.y, out);
    const bool one_chunk = chunks == 1;
    const double image_times = static_cast<double>(
        blocks * chunks * (one_chunk && (!x.features_outer || blocks == 1) ? 1 : columns));
    const double weight_times = static_cast<double>(
        columns * chunks * (one_chunk && (x.features_outer || columns == 1) ? 1 : blocks));
    const double rate = DramBytesPerCycle(config_);
    const double dram = (image_times * image_bytes + weight_times * weight_bytes +
                         static_cast<double>(blocks * columns) * out_bytes) /
                        rate;
    const double ends = (image_bytes + weight_bytes + out_bytes) / rate;
    return std::max(array + ends, dram + array / static_cast<double>(blocks * columns * chunks)) +
           dram / 4 + static_cast<double>(blocks * columns * chunks) * 100 +
           static_cast<double>(rows);
  }

  // Chunks at the ends are smaller.
  double Fraction(const ConvTiles& x) const {
    auto part = [](int64_t whole, int64_t step) {
      return static_cast<double>(whole) / static_cast<double>(CeilDiv(whole, step) * step);
    };
    return part(p_.w.dims[0], x.taps) * part(p_.channels(), x.channels);
  }

  const Config& config_;
  const ProductTypes& types_;
  const ConvProblem& p_;
  ConvTiles best_;
};

}  // namespace

double DramTraffic(const Config& config, const View& view, const Dims& extents) {
  Dims dims = extents, strides = view.strides;
  for (std::size_t d = 1; d < dims.size(); ++d) {
    for (std::size_t i = d; i > 0 && std::abs(strides[i]) > std::abs(strides[i - 1]); --i) {
      std::swap(strides[i], strides[i - 1]);
      std::swap(dims[i], dims[i - 1]);
    }
  }
  int64_t run = 1, runs = 1;
  bool joined = true;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == 1) continue;
    joined = joined && strides[i] == run;
    (joined ? run : runs) *= dims[i];
  }
  const int64_t burst = config.dram.burst;
  return static_cast<double>(runs) *
         static_cast<double>(CeilDiv(run * TypeBytes(view.type), burst) * burst);
}

int64_t ImageShape::elements() const {
  int64_t n = 1;
  for (int64_t d : extents) n *= d;
  return n;
}

ImageShape ImageOf(const ConvProblem& problem, const ConvTiles& tiles) {
  ImageShape image;
  image.extents.push_back(tiles.tile[0]);
  for (std::size_t d = 0; d < problem.spatial(); ++d) {
    const hlo::WindowDim& window = problem.window[d];
    const int64_t taps = d == 0 ? tiles.taps : problem.w.dims[d];
    image.extents.push_back((tiles.tile[d + 1] - 1) * window.stride +
                            (taps - 1) * window.window_dilation + 1);
  }
  image.extents.push_back(tiles.channels);
  image.strides = DenseView(0, Type::kU8, image.extents).strides;
  return image;
}

ConvTiles SearchConvolution(const Config& config, const ProductTypes& types,
                            const ConvProblem& problem) {
  return ConvTileSearch(config, types, problem).Run();
}

}  // namespace lazuli::npu
