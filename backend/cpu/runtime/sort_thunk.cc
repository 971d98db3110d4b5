#include "backend/cpu/runtime/sort_thunk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "backend/cpu/runtime/sort_keys.h"
#include "backend/cpu/runtime/sort_order.h"
#include "backend/runtime/evaluator_thunk.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;

// --- stable sorts of items by their keys

constexpr int kDigitBits = 11;
constexpr int64_t kRadixFrom = 1024;    // items; below, counting digits costs more than comparing
constexpr int64_t kPartFrom = 1 << 16;  // items of a part that is worth a thread

void RadixSort(Item* items, Item* scratch, int64_t count, int key_bits) {
  Item *from = items, *to = scratch;
  for (int shift = 0; shift < key_bits; shift += kDigitBits) {
    std::array<int64_t, 1 << kDigitBits> starts{};
    constexpr uint64_t kMask = (1 << kDigitBits) - 1;
    for (int64_t i = 0; i < count; ++i) ++starts[(from[i].key >> shift) & kMask];
    if (starts[(from[0].key >> shift) & kMask] == count) continue;  // all have the same digit
    int64_t next = 0;
    for (int64_t& start : starts) next += std::exchange(start, next);
    for (int64_t i = 0; i < count; ++i) to[starts[(from[i].key >> shift) & kMask]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, count, items);
}

bool Less(const Item& a, const Item& b) { return a.key < b.key; }

void SortPart(Item* items, Item* scratch, int64_t count, int key_bits) {
  if (count >= kRadixFrom) return RadixSort(items, scratch, count, key_bits);
  std::stable_sort(items, items + count, Less);
}

// By parts in parallel, which are merged two by two.
void SortLine(Item* items, Item* scratch, int64_t count, int key_bits, int threads) {
  const auto parts = static_cast<int64_t>(std::bit_floor(
      static_cast<uint64_t>(std::clamp<int64_t>(count / kPartFrom, 1, std::max(threads, 1)))));
  const auto bound = [&](int64_t part) { return count * part / parts; };
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      SortPart(items + bound(p), scratch + bound(p), bound(p + 1) - bound(p), key_bits);
  });
  for (int64_t width = 1; width < parts; width *= 2) {
    ParallelFor(parts / (2 * width), 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t first = bound(2 * p * width), middle = bound((2 * p + 1) * width),
                      last = bound((2 * p + 2) * width);
        std::merge(items + first, items + middle, items + middle, items + last, scratch + first,
                   Less);
        std::copy(scratch + first, scratch + last, items + first);
      }
    });
  }
}

// --- the thunk

struct Key {
  SortKey what;
  KeyForm form;
  int64_t scratch = -1;  // where its values are kept; -1: they are the operand's elements
};

// The lines along one dimension of a row-major array.
struct Lines {
  int64_t count = 1, size = 0, inner = 1;
  explicit Lines(const Shape& shape, int64_t dimension) : size(shape.dim(dimension)) {
    for (int64_t d = dimension + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
    count = shape.num_elements() / size;
  }
  // First element of a line; neighbours are `inner` apart.
  int64_t start(int64_t line) const { return line / inner * inner * size + line % inner; }
};

class SortThunk final : public Thunk {
 public:
  SortThunk(const Instruction& sort, std::vector<Key> keys, std::unique_ptr<Thunk> slow,
            const std::vector<BufferId>& operands, const std::vector<BufferId>& results, int groups,
            int64_t items_at, BufferId scratch)
      : Thunk(ThunkInfo::Of("sort", sort), Uses(operands, results, scratch)),
        lines_(sort.operand(0)->shape(), sort.attrs_as<hlo::SortAttrs>().dimension),
        elements_(sort.operand(0)->shape().num_elements()),
        keys_(std::move(keys)),
        slow_(std::move(slow)),
        operands_(operands),
        results_(results),
        groups_(groups),
        items_at_(items_at),
        scratch_(scratch) {
    for (const Instruction* operand : sort.operands())
      widths_.push_back(ByteWidth(operand->shape().dtype()));
  }

  absl::Status Execute(const RunBuffers& run) const override {
    for (const Key& key : keys_) {
      if (key.scratch >= 0) LAZULI_RETURN_IF_ERROR(ComputeKeys(key, run));
    }
    std::atomic<bool> ordered{true};
    if (groups_ == 1) {
      for (int64_t line = 0; line < lines_.count; ++line)
        if (!SortOne(run, line, 0, NumThreads())) ordered = false;
    } else {
      ParallelFor(groups_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const int64_t last = lines_.count * (g + 1) / groups_;
          for (int64_t line = lines_.count * g / groups_; line < last; ++line)
            if (!SortOne(run, line, g, 1)) ordered = false;
        }
      });
    }
    return ordered ? absl::OkStatus() : slow_->Execute(run);
  }
  std::string Details() const override {
    return Str(lines_.count, " lines of ", lines_.size, " by ", keys_.size(),
               keys_.size() == 1 ? " key" : " keys");
  }

  static int64_t ItemBytes(int64_t size) { return 2 * size * static_cast<int64_t>(sizeof(Item)); }

 private:
  static std::vector<BufferUse> Uses(const std::vector<BufferId>& operands,
                                     const std::vector<BufferId>& results, BufferId scratch) {
    std::vector<BufferUse> uses;
    for (BufferId id : operands) uses.push_back({.buffer = id});
    for (BufferId id : results) uses.push_back({.buffer = id, .write = true});
    uses.push_back({.buffer = scratch, .write = true});
    return uses;
  }

  absl::Status ComputeKeys(const Key& key, const RunBuffers& run) const;
  bool SortOne(const RunBuffers& run, int64_t line, int64_t group, int threads) const;
  void Scatter(const RunBuffers& run, int64_t start, const Item* items) const;

  Lines lines_;
  int64_t elements_;
  std::vector<Key> keys_;
  std::unique_ptr<Thunk> slow_;
  std::vector<BufferId> operands_, results_;
  std::vector<int> widths_;  // of the operands' elements
  int groups_;
  int64_t items_at_;  // in the scratch memory
  BufferId scratch_;
};

absl::Status SortThunk::ComputeKeys(const Key& key, const RunBuffers& run) const {
  constexpr int64_t kLanes = 4096;
  const std::byte* from = run.at(operands_[static_cast<std::size_t>(key.what.operand)]);
  const int width = widths_[static_cast<std::size_t>(key.what.operand)];
  std::byte* to = run.at(scratch_) + key.scratch;
  std::atomic<bool> failed{false};
  ParallelFor(elements_, 4 * kLanes, [&](int64_t begin, int64_t end) {
    hlo::Evaluation evaluation;
    hlo::RegionEvaluator region(*key.what.expression->entry(), kLanes, evaluation);
    for (; begin < end; begin += kLanes) {
      const int64_t lanes = std::min(kLanes, end - begin);
      if (!region.Run({from + begin * width}, {to + begin * key.form.width}, lanes).ok())
        failed = true;
    }
  });
  return failed ? Internal("sort: its keys cannot be computed") : absl::OkStatus();
}

// Whether the keys of the line have an order.
bool SortThunk::SortOne(const RunBuffers& run, int64_t line, int64_t group, int threads) const {
  const int64_t start = lines_.start(line);
  auto* items =
      reinterpret_cast<Item*>(run.at(scratch_) + items_at_ + group * ItemBytes(lines_.size));
  Item* const scratch = items + lines_.size;
  std::vector<uint32_t> order;
  for (std::size_t k = keys_.size(); k-- > 0;) {
    const Key& key = keys_[k];
    const std::byte* values = key.scratch >= 0
                                  ? run.at(scratch_) + key.scratch
                                  : run.at(operands_[static_cast<std::size_t>(key.what.operand)]);
    const int width = key.form.width;
    if (!NumberKeys(key.form, values + start * width, lines_.inner * width,
                    order.empty() ? nullptr : order.data(), lines_.size, items))
      return false;
    SortLine(items, scratch, lines_.size, 8 * width, threads);
    if (k == 0) break;
    order.resize(static_cast<std::size_t>(lines_.size));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = items[i].place;
  }
  Scatter(run, start, items);
  return true;
}

template <class Word>
void Reorder(const std::byte* from, std::byte* to, int64_t stride, const Item* items,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride * static_cast<int64_t>(sizeof(Word)),
                from + items[i].place * stride * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
  }
}

void SortThunk::Scatter(const RunBuffers& run, int64_t start, const Item* items) const {
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    const std::byte* from = run.at(operands_[o]) + start * widths_[o];
    std::byte* to = run.at(results_[o]) + start * widths_[o];
    const auto reorder = widths_[o] == 1   ? Reorder<uint8_t>
                         : widths_[o] == 2 ? Reorder<uint16_t>
                         : widths_[o] == 4 ? Reorder<uint32_t>
                         : widths_[o] == 8 ? Reorder<uint64_t>
                                           : Reorder<std::array<uint64_t, 2>>;
    reorder(from, to, lines_.inner, items, lines_.size);
  }
}

}  // namespace

std::unique_ptr<Thunk> MakeSortThunk(const Instruction& sort, const std::vector<BufferId>& operands,
                                     const std::vector<BufferId>& results,
                                     const std::function<BufferId(int64_t)>& new_buffer) {
  const Shape& shape = sort.operand(0)->shape();
  const int64_t size = shape.rank() == 0 ? 0 : shape.dim(sort.attrs_as<hlo::SortAttrs>().dimension);
  if (shape.num_elements() == 0 || size == 0 || size > UINT32_MAX) return nullptr;
  auto matched = MatchSortOrder(*sort.to_apply());
  if (!matched) return nullptr;
  std::vector<Key> keys;
  int64_t bytes = 0;
  for (SortKey& key : *matched) {
    const std::optional<KeyForm> form = FormOf(key.dtype, key.descending, key.total_order);
    if (!form) return nullptr;
    Key& made = keys.emplace_back();
    made.form = *form;
    if (key.expression != nullptr) {
      made.scratch = bytes;
      bytes += (shape.num_elements() * made.form.width + 63) / 64 * 64;
    }
    made.what = std::move(key);
  }
  const int64_t lines = shape.num_elements() / size;
  constexpr int64_t kWorth = 4096;  // elements for a thread
  const auto groups = static_cast<int>(std::clamp<int64_t>(
      std::min(lines, shape.num_elements() / kWorth), 1, std::max(NumThreads(), 1)));
  const BufferId scratch = new_buffer(bytes + groups * SortThunk::ItemBytes(size));
  return std::make_unique<SortThunk>(sort, std::move(keys),
                                     MakeEvaluatorThunk(sort, operands, results), operands, results,
                                     groups, bytes, scratch);
}

}  // namespace lazuli::cpu
