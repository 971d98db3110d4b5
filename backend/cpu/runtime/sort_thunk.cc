#include "backend/cpu/runtime/sort_thunk.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "backend/cpu/runtime/select_first.h"
#include "backend/cpu/runtime/sort_order.h"
#include "backend/runtime/evaluator_thunk.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// --- stable sorts of items by their keys

constexpr int kDigitBits = 11;
constexpr int64_t kRadixFrom = 1024;    // items; below, counting digits costs more than comparing
constexpr int64_t kPartFrom = 1 << 16;  // items of a part that is worth a thread

uint64_t KeyOf(const Item& item) { return item.key; }
uint64_t KeyOf(PackedItem item) { return item >> 32; }
// Equal keys keep their order.
bool Less(const Item& a, const Item& b) { return a.key < b.key; }
bool Less(PackedItem a, PackedItem b) { return a < b; }

template <class AnyItem>
void RadixSort(AnyItem* items, AnyItem* scratch, int64_t count, int key_bits) {
  AnyItem *from = items, *to = scratch;
  for (int shift = 0; shift < key_bits; shift += kDigitBits) {
    std::array<int64_t, 1 << kDigitBits> starts{};
    constexpr uint64_t kMask = (1 << kDigitBits) - 1;
    for (int64_t i = 0; i < count; ++i) ++starts[(KeyOf(from[i]) >> shift) & kMask];
    if (starts[(KeyOf(from[0]) >> shift) & kMask] == count) continue;  // all have the same digit
    int64_t next = 0;
    for (int64_t& start : starts) next += std::exchange(start, next);
    for (int64_t i = 0; i < count; ++i) to[starts[(KeyOf(from[i]) >> shift) & kMask]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, count, items);
}

template <class AnyItem>
void SortPart(AnyItem* items, AnyItem* scratch, int64_t count, int key_bits) {
  if (count >= kRadixFrom) return RadixSort(items, scratch, count, key_bits);
  const auto less = [](const AnyItem& a, const AnyItem& b) { return Less(a, b); };
  if constexpr (std::is_same_v<AnyItem, PackedItem>)
    std::sort(items, items + count, less);
  else
    std::stable_sort(items, items + count, less);
}

// By parts in parallel, which are merged two by two.
template <class AnyItem>
void SortLine(AnyItem* items, AnyItem* scratch, int64_t count, int key_bits, int threads) {
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
                   [](const AnyItem& a, const AnyItem& b) { return Less(a, b); });
        std::copy(scratch + first, scratch + last, items + first);
      }
    });
  }
}

// --- the thunk

struct Key {
  int64_t operand = 0;  // whose elements it is made of
  KeyForm form;
  int64_t scratch = -1;  // where its values are kept; -1: they are the operand's elements
  // Its entry makes the key of an element; null if the element itself is the key.
  std::shared_ptr<const hlo::Module> expression;
  LAZULI_ATTRS(operand, form, scratch, expression);
};

// The lines along one dimension of a row-major array.
struct Lines {
  int64_t count = 1, size = 0, inner = 1;
  LAZULI_ATTRS(count, size, inner);
  static Lines Of(const Shape& shape, int64_t dimension) {
    Lines lines{.size = shape.dim(dimension)};
    for (int64_t d = dimension + 1; d < shape.rank(); ++d) lines.inner *= shape.dim(d);
    lines.count = shape.num_elements() / lines.size;
    return lines;
  }
  // First element of a line; neighbours are `inner` apart.
  int64_t start(int64_t line) const { return line / inner * inner * size + line % inner; }
};

struct SortSpec {
  Lines lines;
  std::vector<Key> keys;
  int64_t first = 0;         // elements of each line that somebody reads
  std::vector<bool> places;  // by operand: whether its elements are their places in the line
  int64_t groups = 1;        // of lines, which have threads of their own
  int64_t items_at = 0;      // in the scratch memory
  // The sort, for the evaluator, where NaN may leave keys without an order; else null.
  const Instruction* unordered = nullptr;
  std::vector<BufferId> operands, results;
  std::vector<int32_t> widths;  // of the operands' elements
  BufferId scratch = 0;
  LAZULI_ATTRS(lines, keys, first, places, groups, items_at, unordered, operands, results, widths,
               scratch);
  bool packs() const { return keys.size() == 1 && keys[0].form.width <= 4; }
  // Selecting pays where little is wanted.
  bool selects() const { return keys.size() == 1 && first <= lines.size / 8; }
};

class SortThunk final : public SpecThunk<SortSpec> {
 public:
  SortThunk(ThunkInfo info, std::vector<BufferUse> uses, SortSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)),
        slow_(spec_.unordered == nullptr
                  ? nullptr
                  : MakeEvaluatorThunk(*spec_.unordered, spec_.operands, spec_.results)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    for (const Key& key : spec_.keys) {
      if (key.scratch >= 0) LAZULI_RETURN_IF_ERROR(ComputeKeys(key, run));
    }
    std::atomic<bool> ordered{true};
    if (spec_.groups == 1) {
      for (int64_t line = 0; line < spec_.lines.count; ++line)
        if (!SortOne(run, line, 0, NumThreads())) ordered = false;
    } else {
      ParallelFor(spec_.groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          const int64_t last = spec_.lines.count * (g + 1) / spec_.groups;
          for (int64_t line = spec_.lines.count * g / spec_.groups; line < last; ++line)
            if (!SortOne(run, line, g, 1)) ordered = false;
        }
      });
    }
    return ordered ? absl::OkStatus() : slow_->Execute(run);
  }
  std::string Details() const override {
    return Str(spec_.first < spec_.lines.size ? Str("first ", spec_.first, " of ") : "",
               spec_.lines.count, " lines of ", spec_.lines.size, " by ", spec_.keys.size(),
               spec_.keys.size() == 1 ? " key" : " keys");
  }

  static int64_t ItemBytes(int64_t size) { return 2 * size * static_cast<int64_t>(sizeof(Item)); }

 private:
  absl::Status ComputeKeys(const Key& key, const RunBuffers& run) const;
  bool SortOne(const RunBuffers& run, int64_t line, int64_t group, int threads) const;
  template <class AnyItem>
  bool SortByOneKey(const RunBuffers& run, int64_t start, AnyItem* items, int threads) const;
  bool SortByKeys(const RunBuffers& run, int64_t start, Item* items, int threads) const;
  template <class AnyItem>
  void Scatter(const RunBuffers& run, int64_t start, const AnyItem* items) const;
  // The values of a key from the line's first on.
  const std::byte* ValuesOf(const Key& key, const RunBuffers& run, int64_t start) const {
    return (key.scratch >= 0 ? run.at(spec_.scratch) + key.scratch
                             : run.at(spec_.operands[static_cast<std::size_t>(key.operand)])) +
           start * key.form.width;
  }

  std::unique_ptr<Thunk> slow_;  // null where all keys have an order
};

absl::Status SortThunk::ComputeKeys(const Key& key, const RunBuffers& run) const {
  constexpr int64_t kLanes = 4096;
  const std::byte* from = run.at(spec_.operands[static_cast<std::size_t>(key.operand)]);
  const int width = spec_.widths[static_cast<std::size_t>(key.operand)];
  std::byte* to = run.at(spec_.scratch) + key.scratch;
  std::atomic<bool> failed{false};
  ParallelFor(spec_.lines.count * spec_.lines.size, 4 * kLanes, [&](int64_t begin, int64_t end) {
    hlo::Evaluation evaluation;
    hlo::RegionEvaluator region(*key.expression->entry(), kLanes, evaluation);
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
  const int64_t start = spec_.lines.start(line);
  std::byte* const items =
      run.at(spec_.scratch) + spec_.items_at + group * ItemBytes(spec_.lines.size);
  if (spec_.packs()) return SortByOneKey(run, start, reinterpret_cast<PackedItem*>(items), threads);
  if (spec_.keys.size() == 1)
    return SortByOneKey(run, start, reinterpret_cast<Item*>(items), threads);
  return SortByKeys(run, start, reinterpret_cast<Item*>(items), threads);
}

template <class AnyItem>
bool SortThunk::SortByOneKey(const RunBuffers& run, int64_t start, AnyItem* items,
                             int threads) const {
  const Key& key = spec_.keys[0];
  const int width = key.form.width;
  const int64_t stride = spec_.lines.inner * width, size = spec_.lines.size;
  const std::byte* const values = ValuesOf(key, run, start);
  if (spec_.selects()) {
    if (!SelectFirst(key.form, values, stride, size, spec_.first, items)) return false;
  } else {
    if (!NumberKeys(key.form, values, stride, size, 0, items)) return false;
    SortLine(items, items + size, size, 8 * width, threads);
  }
  Scatter(run, start, items);
  return true;
}

// The least significant key first.
bool SortThunk::SortByKeys(const RunBuffers& run, int64_t start, Item* items, int threads) const {
  std::vector<uint32_t> order(static_cast<std::size_t>(spec_.lines.size));
  std::iota(order.begin(), order.end(), uint32_t{0});
  for (std::size_t k = spec_.keys.size(); k-- > 0;) {
    const Key& key = spec_.keys[k];
    const int width = key.form.width;
    if (!NumberKeys(key.form, ValuesOf(key, run, start), spec_.lines.inner * width, order, items))
      return false;
    SortLine(items, items + spec_.lines.size, spec_.lines.size, 8 * width, threads);
    if (k == 0) break;
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = items[i].place;
  }
  Scatter(run, start, items);
  return true;
}

template <class Word, class AnyItem>
void Reorder(const std::byte* from, std::byte* to, int64_t stride, const AnyItem* items,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * stride * static_cast<int64_t>(sizeof(Word)),
                from + PlaceOf(items[i]) * stride * static_cast<int64_t>(sizeof(Word)),
                sizeof(Word));
  }
}

template <class Word, class AnyItem>
void WritePlaces(std::byte* to, int64_t stride, const AnyItem* items, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<Word>(PlaceOf(items[i]));
    std::memcpy(to + i * stride * static_cast<int64_t>(sizeof(Word)), &place, sizeof(Word));
  }
}

template <class AnyItem>
void SortThunk::Scatter(const RunBuffers& run, int64_t start, const AnyItem* items) const {
  for (std::size_t o = 0; o < spec_.operands.size(); ++o) {
    std::byte* to = run.at(spec_.results[o]) + start * spec_.widths[o];
    if (spec_.places[o]) {
      const auto write =
          spec_.widths[o] == 4 ? WritePlaces<uint32_t, AnyItem> : WritePlaces<uint64_t, AnyItem>;
      write(to, spec_.lines.inner, items, spec_.first);
      continue;
    }
    const std::byte* from = run.at(spec_.operands[o]) + start * spec_.widths[o];
    const auto reorder = spec_.widths[o] == 1   ? Reorder<uint8_t, AnyItem>
                         : spec_.widths[o] == 2 ? Reorder<uint16_t, AnyItem>
                         : spec_.widths[o] == 4 ? Reorder<uint32_t, AnyItem>
                         : spec_.widths[o] == 8 ? Reorder<uint64_t, AnyItem>
                                                : Reorder<std::array<uint64_t, 2>, AnyItem>;
    reorder(from, to, spec_.lines.inner, items, spec_.first);
  }
}

// The keys, and where in the scratch memory those are that are computed; `bytes` of it.
std::optional<std::vector<Key>> PlanKeys(const Instruction& sort, int64_t* bytes) {
  auto matched = MatchSortOrder(*sort.to_apply());
  if (!matched) return std::nullopt;
  std::vector<Key> keys;
  for (SortKey& key : *matched) {
    const std::optional<KeyForm> form =
        FormOf(key.dtype, key.descending, key.total_order, key.nan_is_largest);
    if (!form) return std::nullopt;
    Key& made = keys.emplace_back();
    made.operand = key.operand;
    made.form = *form;
    if (key.expression != nullptr) {
      made.scratch = *bytes;
      *bytes += (sort.operand(0)->shape().num_elements() * made.form.width + 63) / 64 * 64;
    }
    made.expression = std::move(key.expression);
  }
  return keys;
}

bool AlwaysOrdered(absl::Span<const Key> keys) {
  return std::all_of(keys.begin(), keys.end(), [](const Key& key) { return key.form.always(); });
}

// Whether the operand's elements are their places along the dimension, in a type that has all of them.
bool ArePlaces(const Instruction& operand, int64_t dimension) {
  const Instruction* root = &operand;
  if (operand.opcode() == Opcode::kFusion && operand.operand_count() == 0)
    root = operand.to_apply()->root();
  const DType dtype = root->shape().dtype();
  return root->opcode() == Opcode::kIota &&
         root->attrs_as<hlo::IotaAttrs>().iota_dimension == dimension && ir::IsIntegral(dtype) &&
         ByteWidth(dtype) >= 4;
}

// How many elements of each line users of the array read: up to the largest limit of slices.
int64_t ElementsRead(const Instruction& array, int64_t dimension) {
  const int64_t all = array.shape().dim(dimension);
  if (array.IsRoot()) return all;
  int64_t read = 0;
  for (const Instruction* user : array.users()) {
    int64_t here = all;
    if (user->opcode() == Opcode::kSlice) {
      here = user->attrs_as<hlo::SliceAttrs>().limits[static_cast<std::size_t>(dimension)];
    } else if (user->opcode() == Opcode::kFusion) {
      here = 0;
      for (int64_t i = 0; i < user->operand_count(); ++i) {
        if (user->operand(i) == &array)
          here = std::max(here,
                          ElementsRead(*user->to_apply()->parameters()[static_cast<std::size_t>(i)],
                                       dimension));
      }
    }
    read = std::max(read, here);
  }
  return read;
}

int64_t ElementsReadOfSort(const Instruction& sort, int64_t dimension) {
  if (sort.shape().IsArray()) return ElementsRead(sort, dimension);
  if (sort.IsRoot()) return sort.operand(0)->shape().dim(dimension);
  int64_t read = 1;
  for (const Instruction* user : sort.users()) {
    read = std::max(read, user->opcode() == Opcode::kGetTupleElement
                              ? ElementsRead(*user, dimension)
                              : sort.operand(0)->shape().dim(dimension));
  }
  return read;
}

}  // namespace

bool SortKnowsPlaces(const Instruction& sort, const Instruction& operand) {
  const Shape& shape = sort.operand(0)->shape();
  int64_t bytes = 0;
  if (shape.rank() == 0 || shape.num_elements() == 0 || shape.num_elements() > UINT32_MAX ||
      !ArePlaces(operand, sort.attrs_as<hlo::SortAttrs>().dimension))
    return false;
  const auto keys = PlanKeys(sort, &bytes);
  return keys && AlwaysOrdered(*keys) &&
         std::none_of(keys->begin(), keys->end(),
                      [&](const Key& key) { return sort.operand(key.operand) == &operand; });
}

ThunkOrReason MakeSortThunk(const Instruction& sort, const std::vector<BufferId>& operands,
                            const std::vector<BufferId>& results,
                            const std::function<BufferId(int64_t)>& new_buffer) {
  const Shape& shape = sort.operand(0)->shape();
  const int64_t dimension = sort.attrs_as<hlo::SortAttrs>().dimension;
  const int64_t size = shape.rank() == 0 ? 0 : shape.dim(dimension);
  if (shape.num_elements() == 0 || size > UINT32_MAX)
    return "it has no elements, or lines of more than 2^32 - 1";
  SortSpec spec;
  spec.lines = Lines::Of(shape, dimension);
  spec.operands = operands;
  spec.results = results;
  auto keys = PlanKeys(sort, &spec.items_at);
  if (!keys) return "its comparator does not compare keys of elements, one after the other";
  spec.keys = *std::move(keys);
  const bool always = AlwaysOrdered(spec.keys);
  spec.first = always ? ElementsReadOfSort(sort, dimension) : size;
  if (!always) spec.unordered = &sort;
  for (const Instruction* operand : sort.operands()) {
    spec.places.push_back(SortKnowsPlaces(sort, *operand));
    spec.widths.push_back(ByteWidth(operand->shape().dtype()));
  }
  constexpr int64_t kWorth = 4096;  // elements for a thread
  spec.groups = std::clamp<int64_t>(std::min(spec.lines.count, shape.num_elements() / kWorth), 1,
                                    std::max(NumThreads(), 1));
  spec.scratch = new_buffer(spec.items_at + spec.groups * SortThunk::ItemBytes(size));
  std::vector<BufferUse> uses;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!spec.places[o]) uses.push_back({.buffer = operands[o]});
  }
  for (BufferId id : results) uses.push_back({.buffer = id, .write = true});
  uses.push_back({.buffer = spec.scratch, .write = true});
  return std::make_unique<SortThunk>(ThunkInfo::Of("sort", sort), std::move(uses), std::move(spec));
}

ThunkKind SortThunkKind() { return ThunkKind::Of<SortThunk>("sort"); }

}  // namespace lazuli::cpu
