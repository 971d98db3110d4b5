#include "backend/cpu/runtime/gather_thunk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "absl/algorithm/container.h"

#include "backend/cpu/runtime/integer_cell.h"
#include "backend/cpu/runtime/strided_copy.h"
#include "ir/evaluator/monoid_loops.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// What gather and scatter have in common, by other names.
struct IndexedWindows {
  const Shape* operand;  // gather reads it, scatter writes it
  const Shape* indices;
  const Shape* windows;  // gather's result, scatter's updates
  int64_t index_vector_dim;
  Dims index_map;         // the operand's dimension of each component of an index
  Dims window_dims;       // of `windows`
  Dims dropped;           // dimensions of the operand that a window has not
  Dims operand_batching;  // pairs with indices_batching
  Dims indices_batching;
  Dims sizes;  // of a window, one for each dimension of the operand

  bool HasWindowDim(int64_t d) const {
    return !absl::c_linear_search(dropped, d) && !absl::c_linear_search(operand_batching, d);
  }
};

IndexedWindows OfGather(const Instruction& i) {
  const auto& a = i.attrs_as<hlo::GatherAttrs>();
  return {&i.operand(0)->shape(), &i.operand(1)->shape(),  &i.shape(),
          a.index_vector_dim,     a.start_index_map,       a.offset_dims,
          a.collapsed_slice_dims, a.operand_batching_dims, a.start_indices_batching_dims,
          a.slice_sizes};
}

IndexedWindows OfScatter(const Instruction& i) {
  const auto& a = i.attrs_as<hlo::ScatterAttrs>();
  IndexedWindows w{&i.operand(0)->shape(),          &i.operand(1)->shape(),
                   &i.operand(2)->shape(),          a.index_vector_dim,
                   a.scatter_dims_to_operand_dims,  a.update_window_dims,
                   a.inserted_window_dims,          a.input_batching_dims,
                   a.scatter_indices_batching_dims, {}};
  std::size_t next = 0;
  for (int64_t d = 0; d < w.operand->rank(); ++d)
    w.sizes.push_back(w.HasWindowDim(d) ? w.windows->dim(w.window_dims[next++]) : 1);
  return w;
}

Dims ByteStridesOf(const Shape& shape) {
  Dims strides = shape.WithDefaultLayout().strides();
  for (int64_t& stride : strides) stride *= ByteWidth(shape.dtype());
  return strides;
}

// A dimension that indices run over: what one step adds to each position, in bytes.
struct BatchDim {
  int64_t size = 1, index = 0, window = 0, operand = 0;
  LAZULI_ATTRS(size, index, window, operand);
};

// One component of an index: where it stands and what it is worth.
struct Component {
  int64_t index = 0;   // bytes from the index's start
  int64_t last = 0;    // the largest start that keeps the window inside
  int64_t stride = 0;  // bytes of the operand
  LAZULI_ATTRS(index, last, stride);
};

// Contiguous bytes of a window, as offsets from its starts.
struct ContiguousRun {
  int64_t operand = 0, window = 0;
  LAZULI_ATTRS(operand, window);
};

class WindowPlan {
 public:
  static constexpr int64_t kMaxRuns = 1 << 16;

  WindowPlan() = default;
  explicit WindowPlan(const IndexedWindows& w)
      : cell_(w.indices->dtype()), width_(ByteWidth(w.operand->dtype())) {
    PlanBatch(w);
    const Dims operand_strides = ByteStridesOf(*w.operand),
               index_strides = ByteStridesOf(*w.indices);
    for (std::size_t k = 0; k < w.index_map.size(); ++k) {
      const int64_t d = w.index_map[k];
      const int64_t step = w.index_vector_dim < w.indices->rank()
                               ? index_strides[static_cast<std::size_t>(w.index_vector_dim)]
                               : 0;
      components_.push_back({static_cast<int64_t>(k) * step,
                             w.operand->dim(d) - w.sizes[static_cast<std::size_t>(d)],
                             operand_strides[static_cast<std::size_t>(d)]});
    }
    PlanRuns(w, operand_strides);
  }

  LAZULI_ATTRS(cell_, width_, count_, batch_, components_, run_bytes_, runs_, ok_);

  int64_t count() const { return count_; }
  int64_t run_bytes() const { return run_bytes_; }
  int64_t window_bytes() const { return run_bytes_ * static_cast<int64_t>(runs_.size()); }
  const std::vector<ContiguousRun>& runs() const { return runs_; }
  bool ok() const { return ok_; }
  std::string ToString() const {
    return Str(count_, " windows of ", runs_.size(), " x ", run_bytes_, " bytes");
  }

  // Calls f(operand offset, window offset) for windows [begin, end), in order. Starts are clamped,
  // or windows that do not fit are left out.
  template <bool kClamp, class F>
  void ForEachWindow(const std::byte* indices, int64_t begin, int64_t end, F&& f) const {
    if (batch_.size() != 1 || components_.size() != 1)
      return ForEachOfMany<kClamp>(indices, begin, end, f);
    if (cell_.bytes() == 4 && cell_.is_signed())
      return ForEachOfLine<kClamp, int32_t>(indices, begin, end, f);
    if (cell_.bytes() == 4) return ForEachOfLine<kClamp, uint32_t>(indices, begin, end, f);
    if (cell_.bytes() == 8 && cell_.is_signed())
      return ForEachOfLine<kClamp, int64_t>(indices, begin, end, f);
    ForEachOfMany<kClamp>(indices, begin, end, f);
  }

 private:
  // Indices of one component, evenly spaced.
  template <bool kClamp, class Index, class F>
  void ForEachOfLine(const std::byte* indices, int64_t begin, int64_t end, F&& f) const {
    const BatchDim step = batch_[0];
    const Component c = components_[0];
    indices += c.index;
    for (int64_t n = begin; n < end; ++n) {
      Index start;
      std::memcpy(&start, indices + n * step.index, sizeof start);
      const int64_t clamped = std::clamp<int64_t>(start, 0, c.last);
      if (kClamp || clamped == static_cast<int64_t>(start))
        f(n * step.operand + clamped * c.stride, n * step.window);
    }
  }

  template <bool kClamp, class F>
  void ForEachOfMany(const std::byte* indices, int64_t begin, int64_t end, F&& f) const {
    Dims at(batch_.size(), 0);
    int64_t index = 0, window = 0, operand = 0, rest = begin;
    for (std::size_t d = batch_.size(); d-- > 0;) {
      at[d] = rest % batch_[d].size;
      rest /= batch_[d].size;
      index += at[d] * batch_[d].index;
      window += at[d] * batch_[d].window;
      operand += at[d] * batch_[d].operand;
    }
    for (int64_t n = begin; n < end; ++n) {
      int64_t offset = operand;
      bool fits = true;
      for (const Component& c : components_) {
        const int64_t start = cell_.Read(indices + index + c.index);
        fits = fits && start >= 0 && start <= c.last;
        offset += std::clamp<int64_t>(start, 0, c.last) * c.stride;
      }
      if (kClamp || fits) f(offset, window);
      for (std::size_t d = batch_.size(); d-- > 0;) {
        index += batch_[d].index;
        window += batch_[d].window;
        operand += batch_[d].operand;
        if (++at[d] < batch_[d].size) break;
        at[d] = 0;
        index -= batch_[d].size * batch_[d].index;
        window -= batch_[d].size * batch_[d].window;
        operand -= batch_[d].size * batch_[d].operand;
      }
    }
  }

  void PlanBatch(const IndexedWindows& w);
  void PlanRuns(const IndexedWindows& w, const Dims& operand_strides);

  IntegerCell cell_;
  int64_t width_ = 1;
  int64_t count_ = 1;
  std::vector<BatchDim> batch_;
  std::vector<Component> components_;
  int64_t run_bytes_ = 0;
  std::vector<ContiguousRun> runs_;
  bool ok_ = true;
};

void WindowPlan::PlanBatch(const IndexedWindows& w) {
  const Dims index_strides = ByteStridesOf(*w.indices), operand_strides = ByteStridesOf(*w.operand),
             window_strides = ByteStridesOf(*w.windows);
  int64_t window_dim = 0;
  for (int64_t d = 0; d < w.indices->rank(); ++d) {
    if (d == w.index_vector_dim) continue;
    while (absl::c_linear_search(w.window_dims, window_dim)) ++window_dim;
    BatchDim dim{w.indices->dim(d), index_strides[static_cast<std::size_t>(d)],
                 window_strides[static_cast<std::size_t>(window_dim++)], 0};
    for (std::size_t k = 0; k < w.indices_batching.size(); ++k) {
      if (w.indices_batching[k] == d)
        dim.operand = operand_strides[static_cast<std::size_t>(w.operand_batching[k])];
    }
    count_ *= dim.size;
    if (dim.size == 1) continue;
    if (!batch_.empty()) {  // one dimension where both advance evenly
      BatchDim& outer = batch_.back();
      if (outer.index == dim.index * dim.size && outer.window == dim.window * dim.size &&
          outer.operand == dim.operand * dim.size) {
        dim.size *= outer.size;
        outer = dim;
        continue;
      }
    }
    batch_.push_back(dim);
  }
}

void WindowPlan::PlanRuns(const IndexedWindows& w, const Dims& operand_strides) {
  const Dims window_strides = ByteStridesOf(*w.windows);
  struct StridedDim {
    int64_t size, operand, window;
  };
  std::vector<StridedDim> dims;
  std::size_t next = 0;
  for (int64_t d = 0; d < w.operand->rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    const int64_t window =
        w.HasWindowDim(d) ? window_strides[static_cast<std::size_t>(w.window_dims[next++])] : 0;
    if (w.sizes[i] != 1) dims.push_back({w.sizes[i], operand_strides[i], window});
  }
  run_bytes_ = width_;
  while (!dims.empty() && dims.back().operand == run_bytes_ && dims.back().window == run_bytes_) {
    run_bytes_ *= dims.back().size;
    dims.pop_back();
  }
  int64_t runs = 1;
  for (const StridedDim& dim : dims) runs *= dim.size;
  ok_ = runs <= kMaxRuns;
  if (!ok_) return;
  runs_ = {{0, 0}};
  for (const StridedDim& dim : dims) {
    std::vector<ContiguousRun> longer;
    for (const ContiguousRun& run : runs_) {
      for (int64_t i = 0; i < dim.size; ++i)
        longer.push_back({run.operand + i * dim.operand, run.window + i * dim.window});
    }
    runs_ = std::move(longer);
  }
}

template <class Word>
void CopyWord(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, sizeof(Word));
}

void CopyRun(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes == 4) return CopyWord<uint32_t>(from, to);
  if (bytes == 8) return CopyWord<uint64_t>(from, to);
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// Where a window lies in the operand and among the windows, in bytes.
struct WindowOffsets {
  int64_t operand, window;
};

// Calls f(windows) for windows [begin, end), in order, as many at a time as fit on the stack.
template <bool kClamp, class F>
void ForEachTile(const WindowPlan& plan, const std::byte* indices, int64_t begin, int64_t end,
                 F&& f) {
  constexpr int64_t kAtATime = 256;
  std::array<WindowOffsets, kAtATime> windows;
  for (; begin < end; begin += kAtATime) {
    std::size_t found = 0;
    plan.ForEachWindow<kClamp>(
        indices, begin, std::min(begin + kAtATime, end),
        [&](int64_t operand, int64_t window) { windows[found++] = {operand, window}; });
    f(absl::Span<const WindowOffsets>(windows.data(), found));
  }
}

// Calls f(operand offset, window offset) for each of these runs of each window, run after run: the
// same run of neighbours is likely to lie close together.
template <class F>
void ForEachRun(absl::Span<const WindowOffsets> windows, absl::Span<const ContiguousRun> runs,
                F&& f) {
  for (const ContiguousRun& run : runs) {
    for (const WindowOffsets& w : windows) f(w.operand + run.operand, w.window + run.window);
  }
}

struct GatherSpec {
  WindowPlan plan;
  BufferId operand = 0, indices = 0, result = 0;
  LAZULI_ATTRS(plan, operand, indices, result);
};

class GatherThunk final : public SpecThunk<GatherSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    constexpr int64_t kBytes = 1 << 16;  // that are worth a thread
    const std::byte* const from = run.at(spec_.operand);
    std::byte* const to = run.at(spec_.result);
    const int64_t grain = std::max<int64_t>(1, kBytes / (spec_.plan.window_bytes() + 16));
    const int64_t bytes = spec_.plan.run_bytes();
    ParallelFor(spec_.plan.count(), grain, [&](int64_t begin, int64_t end) {
      ForEachTile<true>(spec_.plan, run.at(spec_.indices), begin, end,
                        [&](absl::Span<const WindowOffsets> windows) {
                          ForEachRun(windows, spec_.plan.runs(),
                                     [&](int64_t source, int64_t target) {
                                       CopyRun(from + source, to + target, bytes);
                                     });
                        });
    });
    return absl::OkStatus();
  }
  std::string Details() const override { return spec_.plan.ToString(); }
};

// How updates are combined into the operand.
struct Combiner {
  // `bytes` of each run of each window, window after window for each run; null: nobody knows how.
  void (*runs)(absl::Span<const WindowOffsets> windows, absl::Span<const ContiguousRun> runs,
               int64_t bytes, const std::byte* updates, std::byte* operand) = nullptr;
  // All windows of a plan, if each window is one element; null if these have no loop of their own.
  void (*elements)(const WindowPlan& plan, const std::byte* indices, const std::byte* updates,
                   std::byte* operand) = nullptr;
};

// In blocks of a cache line: the compiler turns a loop of a fixed length into vector instructions.
template <Opcode kMonoid, class T>
void CombineRun(const T* __restrict from, T* __restrict to, int64_t count) {
  constexpr int64_t kBlock = 64 / static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k)
      to[i + k] = hlo::Combine<kMonoid, T>(to[i + k], from[i + k]);
  }
  for (; i < count; ++i) to[i] = hlo::Combine<kMonoid, T>(to[i], from[i]);
}

template <Opcode kMonoid, class T>
void CombineRuns(absl::Span<const WindowOffsets> windows, absl::Span<const ContiguousRun> runs,
                 int64_t bytes, const std::byte* updates, std::byte* operand) {
  // The memory of a later window is prefetched. Beyond the first bytes of a run the processor does that
  // by itself.
  constexpr std::size_t kAhead = 16;
  const int64_t prefetched = std::min<int64_t>(bytes, 512);
  const int64_t count = bytes / static_cast<int64_t>(sizeof(T));
  for (const ContiguousRun& run : runs) {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      if (i + kAhead < windows.size()) {
        for (int64_t line = 0; line < prefetched; line += 64) {
          __builtin_prefetch(updates + windows[i + kAhead].window + run.window + line);
          __builtin_prefetch(operand + windows[i + kAhead].operand + run.operand + line, 1);
        }
      }
      CombineRun<kMonoid>(reinterpret_cast<const T*>(updates + windows[i].window + run.window),
                          reinterpret_cast<T*>(operand + windows[i].operand + run.operand), count);
    }
  }
}

template <Opcode kMonoid, class T>
void CombineElements(const WindowPlan& plan, const std::byte* indices, const std::byte* updates,
                     std::byte* operand) {
  plan.ForEachWindow<false>(indices, 0, plan.count(), [&](int64_t target, int64_t source) {
    T& to = *reinterpret_cast<T*>(operand + target);
    to = hlo::Combine<kMonoid, T>(to, *reinterpret_cast<const T*>(updates + source));
  });
}

void TakeRuns(absl::Span<const WindowOffsets> windows, absl::Span<const ContiguousRun> runs,
              int64_t bytes, const std::byte* updates, std::byte* operand) {
  ForEachRun(windows, runs, [&](int64_t target, int64_t source) {
    CopyRun(updates + source, operand + target, bytes);
  });
}

// nullopt: each update takes the place of what was there.
Combiner FindCombiner(std::optional<Opcode> monoid, DType dtype) {
  if (!monoid) return {.runs = TakeRuns};
  return hlo::FindMonoidLoop<Combiner>(*monoid, dtype, []<Opcode kMonoid, class T>() -> Combiner {
    return {CombineRuns<kMonoid, T>, CombineElements<kMonoid, T>};
  });
}

struct ScatterSpec {
  WindowPlan plan;
  std::optional<Opcode> monoid;  // nullopt: see FindCombiner
  DType dtype{};
  int64_t bytes = 0;  // of the operand
  BufferId operand = 0, indices = 0, updates = 0, result = 0;
  LAZULI_ATTRS(plan, monoid, dtype, bytes, operand, indices, updates, result);
};

// Windows are combined in their order, which is the order in which equal places get their updates.
// Threads share each window, not the windows: one has some of the runs, or some bytes of the only
// run, of all of them.
class ScatterThunk final : public SpecThunk<ScatterSpec> {
 public:
  ScatterThunk(ThunkInfo info, std::vector<BufferUse> uses, ScatterSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)),
        combiner_(FindCombiner(spec_.monoid, spec_.dtype)),
        elements_(combiner_.elements != nullptr && spec_.plan.runs().size() == 1 &&
                  spec_.plan.run_bytes() == ByteWidth(spec_.dtype)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    std::byte* const to = run.at(spec_.result);
    if (to != run.at(spec_.operand)) CopyBytes(run.at(spec_.operand), to, spec_.bytes);
    if (elements_) {
      combiner_.elements(spec_.plan, run.at(spec_.indices), run.at(spec_.updates), to);
      return absl::OkStatus();
    }
    constexpr int64_t kWork = 1 << 16;  // bytes that are worth a thread
    const auto& runs = spec_.plan.runs();
    if (runs.size() > 1) {
      const int64_t grain = kWork / (spec_.plan.count() * spec_.plan.run_bytes()) + 1;
      ParallelFor(std::ssize(runs), grain, [&](int64_t begin, int64_t end) {
        const auto size = static_cast<std::size_t>(end - begin);
        Combine(run, absl::MakeSpan(runs).subspan(static_cast<std::size_t>(begin), size),
                spec_.plan.run_bytes());
      });
      return absl::OkStatus();
    }
    constexpr int64_t kLine = 64;  // bytes of a cache line: threads seldom write to the same one
    const int64_t grain = kWork / (spec_.plan.count() * kLine) + 1;
    ParallelFor(
        (spec_.plan.run_bytes() + kLine - 1) / kLine, grain, [&](int64_t begin, int64_t end) {
          const ContiguousRun piece{begin * kLine, begin * kLine};
          Combine(run, {&piece, 1}, std::min(end * kLine, spec_.plan.run_bytes()) - begin * kLine);
        });
    return absl::OkStatus();
  }
  std::string Details() const override { return spec_.plan.ToString(); }

 private:
  // `bytes` of each of these runs, of all windows.
  void Combine(const RunBuffers& run, absl::Span<const ContiguousRun> runs, int64_t bytes) const {
    ForEachTile<false>(spec_.plan, run.at(spec_.indices), 0, spec_.plan.count(),
                       [&](absl::Span<const WindowOffsets> windows) {
                         combiner_.runs(windows, runs, bytes, run.at(spec_.updates),
                                        run.at(spec_.result));
                       });
  }

  Combiner combiner_;
  bool elements_;  // each window is one element
};

}  // namespace

namespace {
constexpr char kTooManyPieces[] = "its windows fall into too many pieces of memory";
}

ThunkOrReason MakeGatherThunk(const Instruction& gather, const std::vector<BufferId>& operands,
                              BufferId result) {
  if (gather.shape().num_elements() == 0) return "it has no elements";
  WindowPlan plan(OfGather(gather));
  if (!plan.ok()) return kTooManyPieces;
  return std::make_unique<GatherThunk>(
      ThunkInfo::Of("gather", gather),
      std::vector<BufferUse>{
          {.buffer = operands[0]}, {.buffer = operands[1]}, {.buffer = result, .write = true}},
      GatherSpec{.plan = std::move(plan),
                 .operand = operands[0],
                 .indices = operands[1],
                 .result = result});
}

ThunkKind GatherThunkKind() { return ThunkKind::Of<GatherThunk>("gather"); }

ThunkOrReason MakeScatterThunk(const Instruction& scatter, const std::vector<BufferId>& operands,
                               BufferId result) {
  if (operands.size() != 3) return "it updates several arrays";
  if (scatter.operand(2)->shape().num_elements() == 0 || scatter.shape().num_elements() == 0)
    return "it has no elements";  // no window fits, not even at 0
  const hlo::Computation& reducer = *scatter.to_apply();
  const bool takes = reducer.root() == reducer.parameters()[1];
  const std::optional<Opcode> monoid = takes ? std::nullopt : hlo::MonoidOf(reducer);
  if (!takes && !monoid) return "its reducer is not one operation";
  const DType dtype = scatter.shape().dtype();
  WindowPlan plan(OfScatter(scatter));
  if (FindCombiner(monoid, dtype).runs == nullptr)
    return "its reducer has no loop for elements of this type";
  if (!plan.ok()) return kTooManyPieces;
  if (operands[0] == operands[2] || operands[0] == operands[1])
    return "it updates an array by the same array";
  const int64_t width = ByteWidth(dtype);
  return std::make_unique<ScatterThunk>(
      ThunkInfo::Of("scatter", scatter),
      std::vector<BufferUse>{{.buffer = operands[0], .in_place = width},
                             {.buffer = operands[1]},
                             {.buffer = operands[2]},
                             {.buffer = result, .write = true, .in_place = width}},
      ScatterSpec{.plan = std::move(plan),
                  .monoid = monoid,
                  .dtype = dtype,
                  .bytes = scatter.shape().byte_size(),
                  .operand = operands[0],
                  .indices = operands[1],
                  .updates = operands[2],
                  .result = result});
}

ThunkKind ScatterThunkKind() { return ThunkKind::Of<ScatterThunk>("scatter"); }

}  // namespace lazuli::cpu
