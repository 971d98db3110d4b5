#include "backend/cpu/runtime/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "backend/cpu/runtime/attention_kernels.h"
#include "backend/cpu/runtime/few_rows.h"
#include "backend/cpu/runtime/few_rows_kernels.h"
#include "backend/cpu/runtime/parts.h"
#include "ir/support/str.h"

namespace lazuli::cpu {
namespace {

// A tile of scores: with 64 columns of a value, all that its loops touch is in the first cache, or
// nearly.
constexpr int64_t kQueryTile = 64, kKeyTile = 128;
// Few queries read keys and values where they lie, so many keys at a time.
constexpr int64_t kDirectKeys = 512;
// Where the batch makes fewer parts than these, its members' rows are cut.
constexpr int64_t kWantedParts = 8;
// Multiplications that are worth a thread.
constexpr double kThreadWork = 1 << 18;
// Rows of the gradient that are computed together: all their weights lie in scratch memory.
constexpr int64_t kFewKeys = 1024;

constexpr int64_t CeilDiv(int64_t x, int64_t by) { return (x + by - 1) / by; }
constexpr int64_t RoundUp(int64_t x, int64_t by) { return CeilDiv(x, by) * by; }

// Scratch memory in pieces that begin where cache lines do.
template <class T>
class ScratchPieces {
 public:
  explicit ScratchPieces(T* begin) : begin_(begin) {}  // null: to count
  T* Take(int64_t count) {
    const int64_t at = std::exchange(taken_, taken_ + RoundUp(count, kLine));
    return begin_ == nullptr ? nullptr : begin_ + at;
  }
  int64_t taken() const { return taken_; }

 private:
  static constexpr int64_t kLine = 64 / sizeof(T);
  T* begin_;
  int64_t taken_ = 0;
};

template <class T>
struct AttentionCut;

// What one worker needs for a part.
template <class T>
struct ForwardScratch {
  ForwardScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin);
  T *query, *sums, *largest, *totals;  // of all rows of the part
  T *keys, *values, *tile;             // of a block of keys
  T *added, *lanes;                    // of few rows
  int64_t elements;
};
template <class T>
struct GradientScratch {
  GradientScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin);
  T *keys_transposed, *values_transposed, *keys;  // of all keys
  T *weights, *slopes;                            // tiles of some rows and all keys
  T *query, *dquery, *dresult;                    // of these rows
  int64_t elements;
};

// How a spec is cut, by its sizes alone, and how much scratch memory that takes, in elements.
template <class T>
struct AttentionCut {
  explicit AttentionCut(const AttentionSpec& spec)
      : lanes(TileLoopsHere<T>().lanes),
        depth(RoundUp(spec.depth, lanes)),
        width(RoundUp(spec.width, lanes)),
        key_blocks(CeilDiv(spec.keys, kKeyTile)) {
    direct = !spec.is_gradient && spec.rows <= kMostRows && spec.value.column == 1 &&
             (spec.key.column == 1 || spec.key.row == 1);
    tile_rows = spec.is_gradient && spec.keys > kFewKeys ? kQueryTile / 2 : kQueryTile;
    const int64_t cuts =
        std::clamp<int64_t>(CeilDiv(kWantedParts, spec.batch), 1, CeilDiv(spec.rows, tile_rows));
    part_rows = cuts == 1 ? spec.rows : RoundUp(CeilDiv(spec.rows, cuts), tile_rows);
    row_parts = CeilDiv(spec.rows, part_rows);
    parts = spec.batch * row_parts;
    const double work = static_cast<double>(spec.batch) * static_cast<double>(spec.rows) *
                        static_cast<double>(spec.keys) *
                        static_cast<double>(spec.depth + spec.width);
    const auto worth = static_cast<int64_t>(std::min(work / kThreadWork, 4096.0)) + 1;
    workers = std::min({parts, worth, spec.threads});
    if (spec.is_gradient) sums = RoundUp(spec.keys * (depth + width), 64);
    per_worker = spec.is_gradient ? GradientScratch<T>(spec, *this, nullptr).elements
                                  : ForwardScratch<T>(spec, *this, nullptr).elements;
  }
  // The sums of a part are those of a worker where they need not be added to others.
  int64_t sum_places() const { return row_parts > 1 ? parts : workers; }
  int64_t elements() const { return workers * per_worker + sum_places() * sums; }

  int64_t lanes, depth, width;  // of a vector; rounded up to whole vectors
  int64_t key_blocks;
  bool direct = false;
  int64_t tile_rows = 0, part_rows = 0, row_parts = 0, parts = 0, workers = 0;
  int64_t per_worker = 0, sums = 0;
};

template <class T>
ForwardScratch<T>::ForwardScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin) {
  ScratchPieces<T> pieces(begin);
  query = pieces.Take(cut.part_rows * cut.depth);
  sums = pieces.Take(cut.part_rows * cut.width);
  largest = pieces.Take(cut.part_rows);
  totals = pieces.Take(cut.part_rows);
  const bool direct = cut.direct;
  keys = pieces.Take(direct ? 0 : spec.depth * kKeyTile);
  values = pieces.Take(direct ? 0 : cut.width * kKeyTile);
  tile = pieces.Take(direct ? cut.part_rows * kDirectKeys : kQueryTile * kKeyTile);
  added = pieces.Take(direct ? cut.part_rows * cut.width : 0);
  lanes = pieces.Take(direct ? std::max(AddedRowsScratch<T>(spec.rows, kDirectKeys),
                                        AddedRowsScratch<T>(spec.rows, spec.width))
                             : 0);
  elements = pieces.taken();
}

template <class T>
GradientScratch<T>::GradientScratch(const AttentionSpec& spec, const AttentionCut<T>& cut,
                                    T* begin) {
  ScratchPieces<T> pieces(begin);
  const int64_t count = cut.key_blocks * kKeyTile, rows = std::min(cut.tile_rows, cut.part_rows);
  keys_transposed = pieces.Take(count * spec.depth);
  values_transposed = pieces.Take(count * spec.width);
  keys = pieces.Take(count * cut.depth);
  weights = pieces.Take(count * rows);
  slopes = pieces.Take(count * rows);
  query = pieces.Take(rows * cut.depth);
  dquery = pieces.Take(rows * cut.depth);
  dresult = pieces.Take(rows * cut.width);
  elements = pieces.taken();
}

template <class T>
class Attention {
 public:
  Attention(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run, Part part)
      : spec_(spec),
        cut_(cut),
        run_(run),
        loops_(TileLoopsHere<T>()),
        member_(part.index / cut.row_parts),
        first_row_(part.index % cut.row_parts * cut.part_rows),
        rows_(std::min(cut.part_rows, spec.rows - first_row_)) {}

 protected:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();
  static constexpr T kNothing = std::numeric_limits<T>::quiet_NaN();
  // exp of less is 0.
  static constexpr T kVanishes = sizeof(T) == 4 ? 200 : 1600;

  T* At(const AttentionArray& array, int64_t member) const {
    return run_.at<T>(array.buffer) + array.offsets[static_cast<std::size_t>(member)];
  }
  T* WorkerScratch(int64_t worker) const {
    return run_.at<T>(spec_.scratch) + worker * cut_.per_worker;
  }

  // to[i * to_row + j] = from(i, j), and 0 from `columns` up to to_row.
  void Pack(const T* from, const AttentionArray& array, int64_t rows, int64_t columns, T* to,
            int64_t to_row) const {
    for (int64_t i = 0; i < rows; ++i) {
      T* const row = to + i * to_row;
      if (array.column == 1) {
        std::copy_n(from + i * array.row, columns, row);
      } else {
        for (int64_t j = 0; j < columns; ++j) row[j] = from[i * array.row + j * array.column];
      }
      std::fill(row + columns, row + to_row, T{0});
    }
  }
  // The transpose of up to kKeyTile rows, and 0 beside it up to whole vectors.
  void PackTransposed(const T* from, const AttentionArray& array, int64_t rows, int64_t columns,
                      T* to) const {
    if (array.column == 1) {
      loops_.transpose(from, array.row, rows, columns, to, kKeyTile);
    } else {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < rows; ++i)
          to[j * kKeyTile + i] = from[i * array.row + j * array.column];
      }
    }
    const int64_t whole = RoundUp(rows, cut_.lanes);
    for (int64_t j = 0; j < columns && rows < whole; ++j)
      std::fill(to + j * kKeyTile + rows, to + j * kKeyTile + whole, T{0});
  }

  // Scores of one row for keys [first, first + count), after all steps.
  void StepRow(int64_t member, int64_t row, int64_t first, int64_t count, T* scores) const {
    for (const AttentionStep& step : spec_.steps) {
      const T number = static_cast<T>(step.number);
      switch (step.kind) {
        case AttentionStep::Kind::kScale:
          for (int64_t j = 0; j < count; ++j) scores[j] *= number;
          break;
        case AttentionStep::Kind::kAdd:
          loops_.add(scores,
                     At(step.array, member) + row * step.array.row + first * step.array.column,
                     step.array.column, count);
          break;
        case AttentionStep::Kind::kHide:
          Hide(step, member, row, first, count, number, scores);
          break;
        case AttentionStep::Kind::kCausal:
          HideBehind(step, row, first, count, number, scores);
          break;
      }
    }
  }
  // The slopes of the product, from those of the scores after all steps.
  void StepSlopesRow(int64_t member, int64_t row, int64_t first, int64_t count, T* slopes) const {
    for (auto step = spec_.steps.rbegin(); step != spec_.steps.rend(); ++step) {
      if (step->kind == AttentionStep::Kind::kScale) {
        for (int64_t j = 0; j < count; ++j) slopes[j] *= static_cast<T>(step->number);
      } else if (step->kind == AttentionStep::Kind::kHide) {
        Hide(*step, member, row, first, count, 0, slopes);
      } else if (step->kind == AttentionStep::Kind::kCausal) {
        HideBehind(*step, row, first, count, 0, slopes);
      }
    }
  }

  bool EndsCausally() const {
    return !spec_.steps.empty() && spec_.steps.back().kind == AttentionStep::Kind::kCausal;
  }
  // Whether the last step hides all of these keys from all of these rows.
  bool HidesAll(int64_t row, int64_t rows, int64_t first) const {
    return EndsCausally() && first > row + rows - 1 + spec_.steps.back().shift;
  }
  // Whether a hidden key's weight is 0 for a row with such a score.
  bool Vanishes(T largest) const {
    const double hidden = spec_.steps.back().number;
    return hidden == kNone || static_cast<double>(largest) - hidden > kVanishes;
  }

  const AttentionSpec& spec_;
  const AttentionCut<T>& cut_;
  const RunBuffers& run_;
  const TileLoops<T>& loops_;
  const int64_t member_;  // of the batch, of which this part has some rows
  const int64_t first_row_, rows_;

 private:
  void Hide(const AttentionStep& step, int64_t member, int64_t row, int64_t first, int64_t count,
            T number, T* x) const {
    const uint8_t* mask = run_.at<const uint8_t>(step.array.buffer) +
                          step.array.offsets[static_cast<std::size_t>(member)] +
                          row * step.array.row + first * step.array.column;
    loops_.hide(x, mask, step.array.column, count, step.shown, number);
  }
  static void HideBehind(const AttentionStep& step, int64_t row, int64_t first, int64_t count,
                         T number, T* x) {
    const int64_t seen = std::clamp<int64_t>(row + step.shift + 1 - first, 0, count);
    std::fill(x + seen, x + count, number);
  }
};

template <class T>
class AttentionForward : Attention<T> {
  using Base = Attention<T>;
  using Base::cut_, Base::loops_, Base::spec_, Base::At, Base::kNone, Base::kNothing;
  using Base::member_, Base::first_row_, Base::rows_;

 public:
  AttentionForward(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run,
                   Part part)
      : Base(spec, cut, run, part), s_(spec, cut, this->WorkerScratch(part.worker)) {}

  void Run() {
    Base::Pack(At(spec_.query, member_) + first_row_ * spec_.query.row, spec_.query, rows_,
               spec_.depth, s_.query, cut_.depth);
    loops_.scale(s_.query, rows_ * cut_.depth, static_cast<T>(spec_.query_scale * spec_.key_scale));
    std::fill_n(s_.sums, rows_ * cut_.width, T{0});
    std::fill_n(s_.largest, rows_, kNone);
    std::fill_n(s_.totals, rows_, T{0});
    cut_.direct ? RunDirect() : RunTiles();
    for (int64_t i = 0; i < rows_; ++i) Finish(i);
  }

 private:
  void RunTiles() {
    const bool packs_values = spec_.value.column != 1 || cut_.width != spec_.width;
    for (int64_t first = 0; first < spec_.keys; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, spec_.keys - first);
      const T* value = At(spec_.value, member_) + first * spec_.value.row;
      bool is_packed = false;
      for (int64_t row = 0; row < rows_; row += kQueryTile) {
        const int64_t rows = std::min(kQueryTile, rows_ - row);
        if (Skips(row, rows, first, count, value)) continue;
        if (!is_packed) {
          Base::PackTransposed(At(spec_.key, member_) + first * spec_.key.row, spec_.key, count,
                               spec_.depth, s_.keys);
          if (packs_values)
            Base::Pack(value, spec_.value, count, spec_.width, s_.values, cut_.width);
          is_packed = true;
        }
        loops_.multiply({.a = s_.query + row * cut_.depth,
                         .a_row = cut_.depth,
                         .a_column = 1,
                         .b = s_.keys,
                         .b_row = kKeyTile,
                         .c = s_.tile,
                         .c_row = kKeyTile,
                         .rows = rows,
                         .k = spec_.depth,
                         .columns = RoundUp(count, cut_.lanes),
                         .adds = false});
        for (int64_t i = 0; i < rows; ++i) Weigh(row + i, first, count, s_.tile + i * kKeyTile);
        loops_.multiply({.a = s_.tile,
                         .a_row = kKeyTile,
                         .a_column = 1,
                         .b = packs_values ? s_.values : value,
                         .b_row = packs_values ? cut_.width : spec_.value.row,
                         .c = s_.sums + row * cut_.width,
                         .c_row = cut_.width,
                         .rows = rows,
                         .k = count,
                         .columns = cut_.width,
                         .adds = true});
      }
    }
  }

  // What few rows see is read once, where it lies.
  void RunDirect() {
    for (int64_t first = 0; first < spec_.keys; first += kDirectKeys) {
      const int64_t count = std::min(kDirectKeys, spec_.keys - first);
      const FewRows<T> scores{.a = s_.query,
                              .a_row = cut_.depth,
                              .a_column = 1,
                              .b = At(spec_.key, member_) + first * spec_.key.row,
                              .b_row = spec_.key.column,
                              .b_column = spec_.key.row,
                              .c = s_.tile,
                              .c_row = kDirectKeys,
                              .c_column = 1,
                              .rows = rows_,
                              .k = spec_.depth,
                              .begin = 0,
                              .end = count};
      spec_.key.column == 1 ? MultiplyDots(scores) : AddScaledRows(scores, s_.lanes);
      for (int64_t i = 0; i < rows_; ++i) Weigh(i, first, count, s_.tile + i * kDirectKeys);
      AddScaledRows(FewRows<T>{.a = s_.tile,
                               .a_row = kDirectKeys,
                               .a_column = 1,
                               .b = At(spec_.value, member_) + first * spec_.value.row,
                               .b_row = spec_.value.row,
                               .b_column = 1,
                               .c = s_.added,
                               .c_row = cut_.width,
                               .c_column = 1,
                               .rows = rows_,
                               .k = count,
                               .begin = 0,
                               .end = spec_.width},
                    s_.lanes);
      for (int64_t i = 0; i < rows_; ++i)
        loops_.add(s_.sums + i * cut_.width, s_.added + i * cut_.width, 1, spec_.width);
    }
  }

  bool Skips(int64_t row, int64_t rows, int64_t first, int64_t count, const T* value) {
    if (!Base::HidesAll(first_row_ + row, rows, first)) return false;
    for (int64_t i = row; i < row + rows; ++i)
      if (!Base::Vanishes(s_.largest[i])) return false;
    return IsFinite(value, count);
  }
  bool IsFinite(const T* value, int64_t count) {
    if (value == checked_) return finite_;
    checked_ = value;
    finite_ = spec_.value.column == 1;
    for (int64_t j = 0; j < count && finite_; ++j)
      finite_ = loops_.finite(value + j * spec_.value.row, spec_.width);
    return finite_;
  }

  // Scores become exponentials; what there was of the row is scaled to the same shift.
  void Weigh(int64_t row, int64_t first, int64_t count, T* scores) {
    Base::StepRow(member_, first_row_ + row, first, count, scores);
    const int64_t whole = RoundUp(count, cut_.lanes);
    std::fill(scores + count, scores + whole, kNone);
    const T before = s_.largest[row], most = std::max(before, loops_.largest(scores, whole));
    if (before != kNone && most > before) {
      const T factor = std::exp(before - most);
      loops_.scale(s_.sums + row * cut_.width, cut_.width, factor);
      s_.totals[row] *= factor;
    }
    s_.largest[row] = most;
    s_.totals[row] += loops_.exponentials(scores, whole, most == kNone ? 0 : most);
  }

  void Finish(int64_t row) {
    const bool none = s_.largest[row] == kNone && s_.totals[row] == 0;
    T largest = s_.largest[row], divisor = s_.totals[row];
    if (none) {
      largest = spec_.safe ? 0 : kNone;
      divisor = spec_.safe ? 1 : kNothing;
    } else if (std::isnan(divisor)) {
      largest = kNothing;
    }
    const int64_t at = first_row_ + row;
    if (spec_.largest.buffer >= 0) At(spec_.largest, member_)[at * spec_.largest.row] = largest;
    if (spec_.divisor.buffer >= 0) At(spec_.divisor, member_)[at * spec_.divisor.row] = divisor;
    const T* sums = s_.sums + row * cut_.width;
    T* const result = At(spec_.result, member_) + at * spec_.result.row;
    for (int64_t j = 0; j < spec_.width; ++j) result[j * spec_.result.column] = sums[j] / divisor;
  }

  const ForwardScratch<T> s_;
  const T* checked_ = nullptr;  // the block of values that is known to be finite, or not
  bool finite_ = false;
};

template <class T>
class AttentionGradient : Attention<T> {
  using Base = Attention<T>;
  using Base::cut_, Base::loops_, Base::spec_, Base::At;
  using Base::member_, Base::first_row_, Base::rows_;

 public:
  AttentionGradient(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run,
                    Part part)
      : Base(spec, cut, run, part),
        keys_(cut.key_blocks * kKeyTile),
        sums_(Sums(cut.row_parts > 1 ? part.index : part.worker)),
        s_(spec, cut, this->WorkerScratch(part.worker)) {}

  void Run() {
    std::fill_n(sums_, cut_.sums, T{0});
    PackKeys();
    for (int64_t row = 0; row < rows_; row += cut_.tile_rows)
      RunRows(first_row_ + row, std::min(cut_.tile_rows, rows_ - row));
    if (cut_.row_parts == 1) Write(sums_);
  }
  // Adds up the sums of the member's parts, in order.
  void AddParts() {
    T* const all = Sums(member_ * cut_.row_parts);
    for (int64_t part = 1; part < cut_.row_parts; ++part) {
      const T* more = all + part * cut_.sums;
      for (int64_t i = 0; i < cut_.sums; ++i) all[i] += more[i];
    }
    Write(all);
  }

 private:
  // The inverse of Pack, times the factor, if somebody wants the array.
  void Unpack(const T* from, int64_t from_row, int64_t rows, int64_t columns, T factor,
              const AttentionArray& array, int64_t first_row) const {
    if (array.buffer < 0) return;
    T* const to = At(array, member_) + first_row * array.row;
    for (int64_t i = 0; i < rows; ++i) {
      const T* row = from + i * from_row;
      for (int64_t j = 0; j < columns; ++j) to[i * array.row + j * array.column] = row[j] * factor;
    }
  }
  T* Sums(int64_t place) const { return this->WorkerScratch(cut_.workers) + place * cut_.sums; }
  void Write(const T* sums) const {
    Unpack(sums, cut_.depth, spec_.keys, spec_.depth, static_cast<T>(1 / spec_.key_scale),
           spec_.dkey, 0);
    Unpack(sums + spec_.keys * cut_.depth, cut_.width, spec_.keys, spec_.width, 1, spec_.dvalue, 0);
  }

  void PackKeys() {
    const T* key = At(spec_.key, member_);
    const T* value = At(spec_.value, member_);
    for (int64_t first = 0; first < spec_.keys; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, spec_.keys - first);
      Base::PackTransposed(key + first * spec_.key.row, spec_.key, count, spec_.depth,
                           s_.keys_transposed + first * spec_.depth);
      Base::PackTransposed(value + first * spec_.value.row, spec_.value, count, spec_.width,
                           s_.values_transposed + first * spec_.width);
    }
    packs_keys_ = spec_.key.column != 1 || cut_.depth != spec_.depth;
    if (packs_keys_) Base::Pack(key, spec_.key, spec_.keys, spec_.depth, s_.keys, cut_.depth);
    finite_ = Base::EndsCausally() && AllFinite(key, spec_.key, spec_.depth) &&
              AllFinite(value, spec_.value, spec_.width);
  }

  bool AllFinite(const T* from, const AttentionArray& array, int64_t columns) const {
    bool finite = array.column == 1;
    for (int64_t j = 0; j < spec_.keys && finite; ++j)
      finite = loops_.finite(from + j * array.row, columns);
    return finite;
  }

  void RunRows(int64_t row, int64_t rows) {
    Base::Pack(At(spec_.query, member_) + row * spec_.query.row, spec_.query, rows, spec_.depth,
               s_.query, cut_.depth);
    loops_.scale(s_.query, rows * cut_.depth, static_cast<T>(spec_.query_scale * spec_.key_scale));
    Base::Pack(At(spec_.dresult, member_) + row * spec_.dresult.row, spec_.dresult, rows,
               spec_.width, s_.dresult, cut_.width);
    const int64_t end = EndOfKeys(row, rows);
    for (int64_t first = 0; first < end; first += kKeyTile) {
      const int64_t columns = RoundUp(std::min(kKeyTile, end - first), cut_.lanes);
      MultiplyRows(s_.query, cut_.depth, rows, s_.keys_transposed + first * spec_.depth,
                   spec_.depth, columns, s_.weights + first * rows);
      MultiplyRows(s_.dresult, cut_.width, rows, s_.values_transposed + first * spec_.width,
                   spec_.width, columns, s_.slopes + first * rows);
    }
    for (int64_t i = 0; i < rows; ++i) RunRow(row, i, rows, end);
    AddProducts(rows, end);
    Unpack(s_.dquery, cut_.depth, rows, spec_.depth, static_cast<T>(spec_.key_scale), spec_.dquery,
           row);
  }

  // The keys from which on all are hidden from these rows, without a trace.
  int64_t EndOfKeys(int64_t row, int64_t rows) const {
    if (!finite_ || !loops_.finite(s_.query, rows * cut_.depth) ||
        !loops_.finite(s_.dresult, rows * cut_.width))
      return spec_.keys;
    int64_t first = 0;
    while (first < spec_.keys && !Base::HidesAll(row, rows, first)) first += kKeyTile;
    if (first >= spec_.keys) return spec_.keys;
    for (int64_t i = row; i < row + rows; ++i) {
      const T largest = Largest(i), sum = Divisor(i);
      if (!Base::Vanishes(largest) || !std::isfinite(largest) || !std::isfinite(sum))
        return spec_.keys;
    }
    return first;
  }
  T Largest(int64_t row) const { return At(spec_.largest, member_)[row * spec_.largest.row]; }
  T Divisor(int64_t row) const { return At(spec_.divisor, member_)[row * spec_.divisor.row]; }

  void MultiplyRows(const T* a, int64_t a_row, int64_t rows, const T* b, int64_t k, int64_t columns,
                    T* c) const {
    loops_.multiply({.a = a,
                     .a_row = a_row,
                     .a_column = 1,
                     .b = b,
                     .b_row = kKeyTile,
                     .c = c,
                     .c_row = kKeyTile,
                     .rows = rows,
                     .k = k,
                     .columns = columns,
                     .adds = false});
  }

  // Scores become weights, and slopes of weights those of scores.
  void RunRow(int64_t first_row, int64_t i, int64_t rows, int64_t end) {
    const int64_t row = first_row + i;
    const T largest = Largest(row), factor = 1 / Divisor(row);
    T mean = 0;
    ForTiles(end, [&](int64_t first, int64_t count, int64_t whole) {
      T* const weights = s_.weights + first * rows + i * kKeyTile;
      T* const slopes = s_.slopes + first * rows + i * kKeyTile;
      Base::StepRow(member_, row, first, count, weights);
      std::fill(weights + count, weights + whole, Base::kNone);
      mean += loops_.weights(weights, slopes, whole, largest, factor);
    });
    ForTiles(end, [&](int64_t first, int64_t count, int64_t whole) {
      T* const slopes = s_.slopes + first * rows + i * kKeyTile;
      loops_.slopes(s_.weights + first * rows + i * kKeyTile, slopes, whole, mean);
      Base::StepSlopesRow(member_, row, first, count, slopes);
    });
  }
  template <class Body>
  void ForTiles(int64_t end, Body&& body) const {
    for (int64_t first = 0; first < end; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, end - first);
      body(first, count, RoundUp(count, cut_.lanes));
    }
  }

  void AddProducts(int64_t rows, int64_t end) const {
    T* const dkey = sums_;
    T* const dvalue = sums_ + spec_.keys * cut_.depth;
    std::fill_n(s_.dquery, rows * cut_.depth, T{0});
    ForTiles(end, [&](int64_t first, int64_t count, int64_t) {
      TileProduct<T> product{.a = s_.weights + first * rows,
                             .a_row = 1,
                             .a_column = kKeyTile,
                             .b = s_.dresult,
                             .b_row = cut_.width,
                             .c = dvalue + first * cut_.width,
                             .c_row = cut_.width,
                             .rows = count,
                             .k = rows,
                             .columns = cut_.width,
                             .adds = true};
      loops_.multiply(product);
      product.a = s_.slopes + first * rows;
      product.b = s_.query;
      product.c = dkey + first * cut_.depth;
      product.b_row = product.c_row = product.columns = cut_.depth;
      loops_.multiply(product);
      product.a_row = kKeyTile;
      product.a_column = 1;
      product.b = packs_keys_ ? s_.keys + first * cut_.depth
                              : At(spec_.key, member_) + first * spec_.key.row;
      product.b_row = packs_keys_ ? cut_.depth : spec_.key.row;
      product.c = s_.dquery;
      product.rows = rows;
      product.k = count;
      loops_.multiply(product);
    });
  }

  const int64_t keys_;  // rounded up to whole blocks
  T* const sums_;       // dkey and dvalue of this part
  const GradientScratch<T> s_;
  bool packs_keys_ = false, finite_ = false;
};

template <class T>
absl::Status RunAttention(const AttentionSpec& spec, const RunBuffers& run) {
  const AttentionCut<T> cut(spec);
  if (!spec.is_gradient) {
    return ForEachPart(cut.parts, cut.workers, [&](Part part) {
      AttentionForward<T>(spec, cut, run, part).Run();
      return absl::OkStatus();
    });
  }
  LAZULI_RETURN_IF_ERROR(ForEachPart(cut.parts, cut.workers, [&](Part part) {
    AttentionGradient<T>(spec, cut, run, part).Run();
    return absl::OkStatus();
  }));
  if (cut.row_parts == 1) return absl::OkStatus();
  return ForEachPart(spec.batch, std::min(cut.workers, spec.batch), [&](Part part) {
    AttentionGradient<T>(spec, cut, run, {part.index * cut.row_parts, cut.parts, part.worker})
        .AddParts();
    return absl::OkStatus();
  });
}

class AttentionThunk final : public SpecThunk<AttentionSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    return spec_.dtype == DType::kF32 ? RunAttention<float>(spec_, run)
                                      : RunAttention<double>(spec_, run);
  }
  std::string Details() const override {
    const bool direct = spec_.dtype == DType::kF32 ? AttentionCut<float>(spec_).direct
                                                   : AttentionCut<double>(spec_).direct;
    return Str(spec_.is_gradient ? "gradient, " : "", spec_.batch, " x ", spec_.rows, " x ",
               spec_.keys, ", depth ", spec_.depth, direct ? ", few rows" : "");
  }
};

std::vector<BufferUse> UsesOf(const AttentionSpec& spec) {
  std::vector<BufferUse> uses;
  const auto add = [&](BufferId buffer, bool write) {
    if (buffer < 0) return;
    for (const BufferUse& use : uses)
      if (use.buffer == buffer && use.write == write) return;
    uses.push_back({.buffer = buffer, .write = write});
  };
  for (const AttentionArray* array : {&spec.query, &spec.key, &spec.value, &spec.dresult})
    add(array->buffer, false);
  for (const AttentionStep& step : spec.steps) add(step.array.buffer, false);
  for (const AttentionArray* array : {&spec.largest, &spec.divisor})
    add(array->buffer, !spec.is_gradient);
  for (const AttentionArray* array : {&spec.result, &spec.dquery, &spec.dkey, &spec.dvalue})
    add(array->buffer, true);
  add(spec.scratch, true);
  return uses;
}

}  // namespace

int64_t AttentionScratch(const AttentionSpec& spec) {
  return spec.dtype == DType::kF32 ? AttentionCut<float>(spec).elements() * 4
                                   : AttentionCut<double>(spec).elements() * 8;
}

std::unique_ptr<Thunk> MakeAttentionThunk(const hlo::Instruction& instruction, AttentionSpec spec) {
  std::vector<BufferUse> uses = UsesOf(spec);
  return std::make_unique<AttentionThunk>(ThunkInfo::Of("attention", instruction), std::move(uses),
                                          std::move(spec));
}

ThunkKind AttentionThunkKind() { return ThunkKind::Of<AttentionThunk>("attention"); }

}  // namespace lazuli::cpu
