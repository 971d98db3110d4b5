#include "tools/npu/scalesim.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

constexpr int64_t kNone = -1;

// The buffer of an operand: which reads go on to the DRAM.
class ReadBuffer {
 public:
  ReadBuffer(int64_t kb, int64_t addresses)
      : set_(kb * 1024 / 100), seen_(static_cast<std::size_t>(addresses)) {}

  void Read(int64_t cycle, int64_t address) {
    if (first_cycle_ == kNone) first_cycle_ = cycle;
    uint32_t& seen = seen_[static_cast<std::size_t>(address)];
    if (seen == round_) return;
    seen = round_;
    ++reads_;
    if (++held_ < kSets * set_) return;
    held_ = 0;
    ++round_;
  }

  int64_t reads() const { return reads_; }
  // When the DRAM delivers the first line: all of the first half is asked for before the array
  // begins, ten words a cycle.
  int64_t start() const {
    const bool filled = round_ > 1;
    const int64_t sets = filled ? kSets : CeilDiv(std::max<int64_t>(held_, 1), set_);
    const int64_t end = (filled ? first_cycle_ : 0) - 1 - kLatency;
    return end - CeilDiv(sets * set_, kWordsPerCycle) + 1 + kLatency;
  }

 private:
  static constexpr int64_t kSets = 50, kWordsPerCycle = 10, kLatency = 1;

  int64_t set_;                 // words that are fetched together
  std::vector<uint32_t> seen_;  // by address: the round in which it was read last
  uint32_t round_ = 1;
  int64_t held_ = 0, reads_ = 0, first_cycle_ = kNone;
};

// The buffer of results: lines of C words, of which half a buffer is written to the DRAM at a time.
class WriteBuffer {
 public:
  WriteBuffer(int64_t kb, int64_t width)
      : width_(width), size_(kb * 1024), drain_(size_ - (size_ + 1) / 2), free_(size_) {}

  // The cycle in which a line of so many results is taken.
  int64_t Write(int64_t cycle, int64_t words) {
    int64_t now = cycle;
    for (; words > 0; --words) {
      --free_;
      if (++line_ == width_) EndLine();
      if (now < drain_end_) {
        if (free_ <= 0) now = drain_end_;
      } else if (free_ < size_ - drain_) {
        EndLine();
        Drain(now);
      }
    }
    return now;
  }

  void Empty(int64_t cycle) {
    EndLine();
    while (next_ < lines_.size()) {
      Drain(cycle);
      cycle = drain_end_ + 1;
    }
  }

  int64_t writes() const { return writes_; }
  int64_t end() const { return end_; }

 private:
  void EndLine() {
    if (line_ == 0) return;
    lines_.push_back(line_);
    line_ = 0;
  }

  // Writes what half the buffer holds, one line a cycle. Only what is missing in the last line is
  // not counted.
  void Drain(int64_t cycle) {
    const auto to =
        std::min(lines_.size(), next_ + static_cast<std::size_t>(CeilDiv(drain_, width_)));
    const auto count = static_cast<int64_t>(to - next_);
    if (count == 0) return;
    const int64_t words = count * width_ - (width_ - lines_[to - 1]);
    writes_ += words;
    free_ += words;
    next_ = to;
    drain_end_ = cycle + count - 1;
    end_ = std::max(end_, drain_end_);
  }

  int64_t width_, size_, drain_, free_;
  std::vector<int64_t> lines_;  // words in each
  std::size_t next_ = 0;        // the first line that is not written yet
  int64_t line_ = 0;            // words in the line that is being filled
  int64_t drain_end_ = 0, end_ = 0, writes_ = 0;
};

// Where the operands' elements lie; kNone for what stands out of the image.
class LayerOperands {
 public:
  // Where elements lie is asked only if `places`.
  LayerOperands(const Layer& layer, bool places) : layer_(layer) {
    const int64_t out_width =
        CeilDiv(layer.ifmap_width - layer.filter_width + layer.stride_width, layer.stride_width);
    const int64_t out_height = CeilDiv(
        layer.ifmap_height - layer.filter_height + layer.stride_height, layer.stride_height);
    m_ = out_height * out_width;
    if (!places) return;
    for (int64_t m = 0; m < m_; ++m)
      windows_.push_back(
          At(m / out_width * layer.stride_height, m % out_width * layer.stride_width, 0));
    const int64_t row = layer.filter_width * layer.channels;
    for (int64_t k = 0; k < layer.window(); ++k)
      taps_.push_back(At(k / row, k % row / layer.channels, k % layer.channels));
  }

  int64_t m() const { return m_; }
  int64_t n() const { return layer_.filters; }
  int64_t k() const { return layer_.window(); }

  int64_t Ifmap(int64_t m, int64_t k) const {
    const ImagePosition& window = windows_[static_cast<std::size_t>(m)];
    const ImagePosition& tap = taps_[static_cast<std::size_t>(k)];
    if (window.row + tap.row >= layer_.ifmap_height ||
        window.column + tap.column >= layer_.ifmap_width)
      return kNone;
    return int64_t{window.address} + tap.address;
  }
  int64_t Filter(int64_t k, int64_t n) const { return n * this->k() + k; }

 private:
  struct ImagePosition {
    int32_t row, column, address;
  };
  // Of an image of at most kMostElements; windows that stand out of it lie little behind.
  ImagePosition At(int64_t row, int64_t column, int64_t channel) const {
    const int64_t address = (row * layer_.ifmap_width + column) * layer_.channels + channel;
    return {static_cast<int32_t>(row), static_cast<int32_t>(column), static_cast<int32_t>(address)};
  }

  const Layer& layer_;
  int64_t m_ = 0;
  std::vector<ImagePosition> windows_, taps_;
};

// One fold after the other, each line of requests in its cycle, as the buffers see them.
class LayerSimulation {
 public:
  LayerSimulation(const Layer& layer, const Config& config)
      : config_(config),
        dataflow_(config.mxu.dataflow),
        operands_(layer, config.compat.dram),
        rows_(config.mxu.rows),
        cols_(config.mxu.cols),
        ifmap_(config.compat.ifmap_kb, config.compat.dram ? layer.inputs() : 0),
        filter_(config.compat.filter_kb, config.compat.dram ? layer.weights() : 0),
        ofmap_(config.compat.ofmap_kb, cols_) {
    const int64_t m = operands_.m(), n = operands_.n(), k = operands_.k();
    switch (dataflow_) {
      case Dataflow::kOs:
        sr_ = m, sc_ = n, t_ = k;
        break;
      case Dataflow::kWs:
        sr_ = k, sc_ = n, t_ = m;
        break;
      case Dataflow::kIs:
        sr_ = k, sc_ = m, t_ = n;
        break;
    }
    period_ = FoldCycles(dataflow_, rows_, cols_, t_, false);
  }

  LayerReport Report() {
    LayerReport report{.m = operands_.m(), .n = operands_.n(), .k = operands_.k()};
    report.macs = report.m * report.n * report.k;
    double map_eff = 0, comp_util = 0;
    int64_t folds = 0;
    for (int64_t column = 0; column < sc_; column += cols_) {
      for (int64_t row = 0; row < sr_; row += rows_, ++folds) {
        height_ = std::min(rows_, sr_ - row);
        width_ = std::min(cols_, sc_ - column);
        const auto area = static_cast<double>(rows_ * cols_);
        const int64_t clocks = dataflow_ == Dataflow::kOs ? period_ : period_ + cols_ - 1;
        map_eff += static_cast<double>(height_ * width_) / area;
        comp_util += static_cast<double>(height_ * width_ * t_) /
                     static_cast<double>(rows_ * cols_ * clocks);
        CountSram(report);
        if (config_.compat.dram) Fold(folds * period_, row, column);
      }
    }
    report.cycles = folds * period_ - 1 + stall_;
    report.stall = stall_;
    ofmap_.Empty(report.cycles);
    report.overall_util =
        static_cast<double>(report.macs * 100) / static_cast<double>(report.cycles * rows_ * cols_);
    report.map_eff = map_eff / static_cast<double>(folds) * 100;
    report.comp_util = comp_util / static_cast<double>(folds) * 100;
    if (!config_.compat.dram) return report;
    report.dram_i = ifmap_.reads();
    report.dram_f = filter_.reads();
    report.dram_o = ofmap_.writes();
    report.cycles_incl_prefetch = ofmap_.end() - std::min(ifmap_.start(), filter_.start());
    return report;
  }

 private:
  void CountSram(LayerReport& report) const {
    switch (dataflow_) {
      case Dataflow::kOs:
        report.sram_i += height_ * t_;
        report.sram_f += width_ * t_;
        report.sram_o += height_ * width_ + rows_ + cols_;
        break;
      case Dataflow::kWs:
        report.sram_i += height_ * t_;
        report.sram_f += height_ * width_;
        report.sram_o += width_ * t_;
        break;
      case Dataflow::kIs:
        report.sram_i += height_ * width_;
        report.sram_f += height_ * t_;
        report.sram_o += width_ * t_;
        break;
    }
  }

  // Element i of what streams into row `lane` of the array, or into column `lane` (os: weights).
  int64_t Streamed(int64_t lane, int64_t i) const {
    return dataflow_ == Dataflow::kOs   ? operands_.Ifmap(lane, i)
           : dataflow_ == Dataflow::kWs ? operands_.Ifmap(i, lane)
                                        : operands_.Filter(lane, i);
  }

  void Fold(int64_t begin, int64_t row, int64_t column) {
    const bool os = dataflow_ == Dataflow::kOs;
    ReadBuffer& stream = dataflow_ == Dataflow::kIs ? filter_ : ifmap_;
    ReadBuffer& still = dataflow_ == Dataflow::kIs ? ifmap_ : filter_;
    const int64_t load = os ? 0 : rows_;  // clocks before the first row of the stream
    for (int64_t clock = 0; clock < period_; ++clock) {
      const int64_t cycle = begin + clock + stall_;
      if (clock < load) {
        // The last row enters first; rows that no operand fills come before it.
        const int64_t i = rows_ - 1 - clock;
        if (i < height_) {
          for (int64_t j = 0; j < width_; ++j) {
            const int64_t address = dataflow_ == Dataflow::kWs
                                        ? operands_.Filter(row + i, column + j)
                                        : operands_.Ifmap(column + j, row + i);
            if (address != kNone) still.Read(cycle, address);
          }
        }
      } else {
        ReadSkewed(stream, cycle, clock - load, height_,
                   [&](int64_t lane, int64_t i) { return Streamed(row + lane, i); });
        if (os) {
          ReadSkewed(filter_, cycle, clock, width_,
                     [&](int64_t lane, int64_t i) { return operands_.Filter(i, column + lane); });
        }
      }
      const int64_t written = ofmap_.Write(cycle, Results(clock));
      stall_ += written - cycle;
    }
  }

  // One line of a stream that reaches lane j j clocks after lane 0.
  template <class Address>
  void ReadSkewed(ReadBuffer& buffer, int64_t cycle, int64_t clock, int64_t lanes,
                  const Address& address) {
    const int64_t first = std::max<int64_t>(0, clock - t_ + 1);
    const int64_t last = std::min(lanes - 1, clock);
    for (int64_t lane = first; lane <= last; ++lane) {
      const int64_t where = address(lane, clock - lane);
      if (where != kNone) buffer.Read(cycle, where);
    }
  }

  // Results that leave the array in a clock of a fold, each column one clock after the one before.
  int64_t Results(int64_t clock) const {
    const bool os = dataflow_ == Dataflow::kOs;
    // Rows leave from the last one on (os), which is there after T clocks; rows that no operand
    // fills come first.
    const int64_t begin = os ? t_ - 1 + rows_ - height_ : 2 * rows_ - 1;
    const int64_t length = os ? height_ : t_;
    const int64_t since = clock - begin;
    return std::max<int64_t>(
        0, std::min(width_ - 1, since) - std::max<int64_t>(0, since - length + 1) + 1);
  }

  const Config& config_;
  Dataflow dataflow_;
  LayerOperands operands_;
  int64_t rows_, cols_;
  ReadBuffer ifmap_, filter_;
  WriteBuffer ofmap_;
  int64_t sr_ = 0, sc_ = 0, t_ = 0, period_ = 0;
  int64_t height_ = 0, width_ = 0;  // of the fold
  int64_t stall_ = 0;
};

}  // namespace

LayerReport ScaleSimLayer(const Layer& layer, const Config& config) {
  return LayerSimulation(layer, config).Report();
}

}  // namespace lazuli::npu
