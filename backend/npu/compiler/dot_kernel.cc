#include "backend/npu/compiler/dot_kernel.h"

#include <algorithm>
#include <vector>

#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

// Bytes that cross the DRAM for rows of `run` bytes each.
double Bursts(const Config& config, int64_t rows, int64_t run) {
  return static_cast<double>(rows) *
         static_cast<double>(CeilDiv(run, config.dram.burst) * config.dram.burst);
}

struct DotProblem {
  int64_t m, n, k;
  int64_t a_bytes, w_bytes, out_bytes;
};

double CyclesOf(const Config& config, const ProductTypes& types, const DotProblem& p,
                const DotBlocks& x) {
  const int64_t ms = CeilDiv(p.m, x.mb), ns = CeilDiv(p.n, x.nb), ks = CeilDiv(p.k, x.kb);
  const int64_t tiles =
      CeilDiv(p.n, config.mxu.cols) *
      (p.k / x.kb * CeilDiv(x.kb, config.mxu.rows) + CeilDiv(p.k % x.kb, config.mxu.rows));
  const int64_t load = CeilDiv(config.mxu.rows, config.mxu.ldw_rows_per_clk);
  double array = 0;
  for (int64_t rows : {x.mb, p.m % x.mb})
    if (rows > 0)
      array += static_cast<double>(tiles * (rows == x.mb ? p.m / x.mb : 1)) *
               static_cast<double>(std::max(rows * types.clocks_per_row, load));
  // How often each operand is loaded.
  const int64_t a_times = ks == 1 && (x.rows_outer || ms == 1) ? 1 : ns;
  const int64_t b_times = ks == 1 && (!x.rows_outer || ns == 1) ? 1 : ms;
  const double a = ks == 1 ? Bursts(config, 1, p.m * p.k * p.a_bytes)
                           : Bursts(config, p.m * ks, x.kb * p.a_bytes);
  const double b = ns == 1 ? Bursts(config, 1, p.k * p.n * p.w_bytes)
                           : Bursts(config, p.k * ns, x.nb * p.w_bytes);
  const double c = ns == 1 ? Bursts(config, 1, p.m * p.n * p.out_bytes)
                           : Bursts(config, p.m * ns, x.nb * p.out_bytes);
  const double rate = DramBytesPerCycle(config);
  const double dram =
      (static_cast<double>(a_times) * a + static_cast<double>(b_times) * b + c) / rate;
  // The first blocks are loaded before anything is multiplied, the last is stored behind it.
  const double first =
      (Bursts(config, 1, x.mb * x.kb * p.a_bytes) + Bursts(config, 1, x.kb * x.nb * p.w_bytes)) /
      rate;
  const double last = static_cast<double>(x.mb * x.nb * p.out_bytes) / rate;
  // Transfers beside the array take banks and energy, and a block has a beginning.
  const auto blocks = static_cast<double>(ms * ns * ks);
  return std::max(array + first + last, dram + array / blocks) + dram / 4 + blocks * 50;
}

}  // namespace

DotBlocks SearchDot(const Config& config, const ProductTypes& types, int64_t m, int64_t n,
                    int64_t k) {
  const DotProblem p{
      m, n, k, TypeBytes(types.a_type), TypeBytes(types.w_type), TypeBytes(types.out_type)};
  const int64_t rows = config.mxu.rows, cols = config.mxu.cols;
  // Half of the memories: the other half is for the blocks before and behind.
  const int64_t room = config.spm_bytes() / 2, acc = std::max<int64_t>(1, config.acc.rows / 2);
  // Where not even one tile of the array fits: a part of one.
  DotBlocks best{1, std::min(n, std::max<int64_t>(1, cols / 8)),
                 std::min(k, std::max<int64_t>(1, rows / 8)), true, -1};
  for (int64_t mb = std::min(m, acc); mb >= 1; mb = mb == 1 ? 0 : (mb + 1) / 2) {
    for (int64_t nt = CeilDiv(n, cols); nt >= 1; nt = nt == 1 ? 0 : (nt + 1) / 2) {
      const int64_t nb = std::min(n, nt * cols);
      if (mb * nt > acc || nb > 32767) continue;
      for (int64_t kt = CeilDiv(k, rows); kt >= 1; kt = kt == 1 ? 0 : (kt + 1) / 2) {
        const int64_t kb = std::min(k, kt * rows);
        if (mb * kb * p.a_bytes + kb * nb * p.w_bytes + mb * nb * types.out_bytes() > room)
          continue;
        for (const bool rows_outer : {true, false}) {
          DotBlocks x{mb, nb, kb, rows_outer, 0};
          x.cycles = CyclesOf(config, types, p, x);
          if (best.cycles < 0 || x.cycles < best.cycles) best = x;
        }
      }
    }
  }
  return best;
}

namespace {

// A block of an operand in the scratchpad, loaded when another one is asked for.
class BlockCache {
 public:
  BlockCache(const View& view, int64_t pad, TileBuilder& builder)
      : view_(view), pad_(pad), b_(builder) {}
  struct LoadedBlock {
    int buffer;
    int64_t pitch;
  };
  LoadedBlock Get(int64_t row, int64_t rows, int64_t column, int64_t columns) {
    if (row == row_ && column == column_) return block_;
    const int elem = TypeBytes(view_.type);
    // Rows that are written across: neighbours of a column in different banks, where there is room for that.
    const bool across = view_.strides[1] != 1 && rows > 1 && columns > 1 &&
                        rows * pad_ * elem <= b_.config().spm_bytes() / 8;
    const int64_t pitch = across ? columns + pad_ : columns;
    block_ = {b_.AddBuffer("block", rows * pitch * elem), pitch};
    b_.Load(TileBuilder::Spm(block_.buffer), {pitch, 1},
            TileBuilder::Dram(view_, row * view_.strides[0] + column * view_.strides[1]),
            view_.strides, {rows, columns}, elem);
    row_ = row;
    column_ = column;
    return block_;
  }

 private:
  const View& view_;
  int64_t pad_;
  TileBuilder& b_;
  int64_t row_ = -1, column_ = -1;
  LoadedBlock block_{};
};

class DotEmitter {
 public:
  DotEmitter(const View& a, const View& b, const View& c, const ProductTypes& types,
             const DotBlocks& blocks, TileBuilder& builder, const Epilogue& epilogue)
      : c_(c),
        x_(blocks),
        b_(builder),
        types_(types),
        epilogue_(epilogue),
        emit_(builder, types),
        left_(a, 64 / TypeBytes(types.a_type), builder),
        right_(b, 64 / TypeBytes(types.w_type), builder),
        m_(a.dims[0]),
        k_(a.dims[1]),
        n_(b.dims[1]) {}

  void Run() {
    const int64_t outer = x_.rows_outer ? m_ : n_, inner = x_.rows_outer ? n_ : m_;
    const int64_t outer_step = x_.rows_outer ? x_.mb : x_.nb,
                  inner_step = x_.rows_outer ? x_.nb : x_.mb;
    for (int64_t o = 0; o < outer; o += outer_step) {
      for (int64_t i = 0; i < inner; i += inner_step) x_.rows_outer ? Block(o, i) : Block(i, o);
    }
  }

 private:
  void Block(int64_t row, int64_t column) {
    const int64_t rows = std::min(x_.mb, m_ - row), columns = std::min(x_.nb, n_ - column);
    const int64_t cols = b_.config().mxu.cols;
    const std::vector<int> sums = emit_.AddSums(rows, columns);
    for (int64_t k = 0; k < k_; k += x_.kb) {
      const int64_t depth = std::min(x_.kb, k_ - k);
      b_.NextStage();
      const BlockCache::LoadedBlock left = left_.Get(row, rows, k, depth);
      const BlockCache::LoadedBlock right = right_.Get(k, depth, column, columns);
      for (std::size_t s = 0; s < sums.size(); ++s)
        Tile(left, right, rows, depth, static_cast<int64_t>(s) * cols, columns, sums[s], k > 0);
    }
    emit_.Finish(sums, {row, column}, {rows, columns}, c_, epilogue_);
  }

  // All of a k block for one tile of columns.
  void Tile(const BlockCache::LoadedBlock& left, const BlockCache::LoadedBlock& right, int64_t rows,
            int64_t depth, int64_t at, int64_t columns, int sum, bool accumulate) {
    const int64_t n = std::min(b_.config().mxu.cols, columns - at);
    const int a_elem = TypeBytes(types_.a_type), w_elem = TypeBytes(types_.w_type);
    for (int64_t k = 0; k < depth; k += b_.config().mxu.rows) {
      const int64_t deep = std::min(b_.config().mxu.rows, depth - k);
      emit_.Weights(TileBuilder::Spm(right.buffer, (k * right.pitch + at) * w_elem), deep, n,
                    right.pitch);
      emit_.Multiply(TileBuilder::Spm(left.buffer, k * a_elem), {rows}, {left.pitch}, deep, sum,
                     accumulate || k > 0, {}, {0, deep * a_elem});
    }
  }

  const View& c_;
  const DotBlocks& x_;
  TileBuilder& b_;
  const ProductTypes& types_;
  const Epilogue& epilogue_;
  ProductEmitter emit_;
  BlockCache left_, right_;
  int64_t m_, k_, n_;
};

}  // namespace

void EmitDot(const View& a, const View& b, const View& c, const ProductTypes& types,
             const DotBlocks& blocks, TileBuilder& builder, const Epilogue& epilogue) {
  DotEmitter(a, b, c, types, blocks, builder, epilogue).Run();
}

}  // namespace lazuli::npu
