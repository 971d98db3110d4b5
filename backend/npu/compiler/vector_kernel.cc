#include "backend/npu/compiler/vector_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

#include "backend/npu/compiler/boxes.h"
#include "backend/npu/compiler/runs.h"

namespace lazuli::npu {
namespace {

Type WordType(int arithmetic) {
  return arithmetic == kFloats ? Type::kF32 : arithmetic == kUnsigned ? Type::kU32 : Type::kS32;
}

int64_t Start(absl::Span<const int64_t> starts, absl::Span<const int64_t> strides) {
  int64_t offset = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) offset += starts[i] * strides[i];
  return offset;
}

// Strides of a dense copy of the levels that `strides` walks, which lie in it as they do in memory.
Dims CompactStrides(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(strides[a]) > std::abs(strides[b]);
  });
  Dims compact(dims.size(), 0);
  int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    compact[order[i]] = stride;
    stride *= dims[order[i]];
  }
  return compact;
}

int64_t CompactSize(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  int64_t n = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) n *= strides[i] != 0 ? dims[i] : 1;
  return n;
}

}  // namespace

class VectorEmitter {
  // An input's part of a box in the scratchpad.
  struct LoadedPart {
    int buffer = -1;
    int64_t start = -1;  // in the array
    Dims extents, strides;
  };

 public:
  VectorEmitter(VectorKernel kernel, TileBuilder& builder)
      : k_(std::move(kernel)), b_(builder), runs_(Divided(k_)) {}

  void Emit() {
    std::vector<Dims*> strides{&k_.result.strides};
    for (KernelLoad& load : k_.loads) strides.push_back(&load.view.strides);
    CollapseLevels(k_.dims, strides);
    if (k_.dims.empty()) {
      k_.dims = {1};
      for (Dims* s : strides) *s = {1};
    }
    bool reduces = false;
    for (int64_t stride : k_.result.strides) reduces = reduces || stride == 0;
    // What is reduced has one element: its level is gone.
    if (!reduces && k_.reduction < Reduction::kArgMax) k_.reduction = Reduction::kNone;
    loaded_.resize(k_.loads.size());
    const Boxes boxes = Boxes::Cut(k_.dims, Limit(), kNestLevels);
    boxes.ForEach(Order(boxes),
                  [&](const Dims& starts, const Dims& extents) { Box(starts, extents); });
  }

  // Of a BoxKernel: its kernel is used as it is.
  void BoxOf(const Dims& starts, const Dims& extents, const TileBuilder::Stream& made) {
    loaded_.resize(k_.loads.size());
    made_ = &made;
    BoxInStage(starts, extents);
  }
  int64_t bytes() const { return BytesOfElement(); }

 private:
  static std::vector<VectorRun> Divided(const VectorKernel& kernel) {
    const int roots[] = {kernel.root.low, kernel.root.high};
    return DivideIntoRuns(kernel.expression,
                          absl::MakeConstSpan(roots, kernel.root.wide() ? 2 : 1));
  }
  // A half of each element of 64 bits.
  static TileBuilder::Stream Half(TileBuilder::Stream stream, int part) {
    for (int64_t& stride : stream.at.strides) stride *= 2;
    stream.at.place.offset += 4 * part;
    stream.type = Type::kU32;
    return stream;
  }

  bool Reduced(std::size_t level) const {
    return k_.reduction != Reduction::kNone && k_.result.strides[level] == 0;
  }

  int64_t BytesOfElement() const {
    int64_t bytes = 4 * static_cast<int64_t>(runs_.size()) + 4;
    for (const KernelLoad& load : k_.loads) bytes += TypeBytes(load.view.type);
    return bytes;
  }
  // Elements of a box: a quarter of the scratchpad, so that the loads of the next boxes and the
  // stores of those before find room.
  int64_t Limit() const {
    return std::max<int64_t>(1, b_.config().spm_bytes() / 4 / BytesOfElement());
  }

  // Levels that stay, then those that are reduced: one result after the other.
  std::vector<std::size_t> Order(const Boxes& boxes) const {
    std::vector<std::size_t> order;
    for (const bool reduced : {false, true}) {
      for (std::size_t i = 0; i < boxes.outer(); ++i) {
        if (Reduced(i) == reduced) order.push_back(i);
      }
    }
    return order;
  }

  void Box(const Dims& starts, const Dims& extents) {
    b_.NextStage();
    BoxInStage(starts, extents);
  }
  void BoxInStage(const Dims& starts, const Dims& extents) {
    std::vector<TileBuilder::Stream> streams, temporaries;
    for (std::size_t l = 0; l < k_.loads.size(); ++l)
      streams.push_back(l == 0 && made_ != nullptr ? *made_ : Load(l, starts, extents));
    TileBuilder::Stream whole{};  // a result of 64 bits
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      std::vector<TileBuilder::Stream> inputs;
      for (const RunInput& source : runs_[r].inputs)
        inputs.push_back(
            (source.temporary ? temporaries : streams)[static_cast<std::size_t>(source.index)]);
      const std::size_t left = runs_.size() - r;
      if (left == 1 && !k_.root.wide()) return Result(runs_[r], inputs, starts, extents);
      const Type type = WordType(runs_[r].type);
      const bool half = k_.root.wide() && left <= 2;
      if (half && left == 2) whole = {Dense(extents, Type::kS64, "out"), Type::kS64};
      const TileBuilder::Stream out = half ? Half(whole, left == 2 ? 0 : 1)
                                           : TileBuilder::Stream{Dense(extents, type, "t"), type};
      Vector(runs_[r].words, extents, inputs, out);
      temporaries.push_back(out);
    }
    b_.Store(TileBuilder::Dram(k_.result, Start(starts, k_.result.strides)), k_.result.strides,
             whole.at.place, whole.at.strides, extents, TypeBytes(whole.type));
  }

  Walked Dense(const Dims& extents, Type type, std::string_view name) {
    Dims strides = CompactStrides(extents, Dims(DenseView(0, type, extents).strides));
    return {TileBuilder::Spm(b_.AddBuffer(name, CompactSize(extents, strides) * TypeBytes(type))),
            strides};
  }

  TileBuilder::Stream Load(std::size_t l, const Dims& starts, const Dims& extents) {
    const View& view = k_.loads[l].view;
    const int part = k_.loads[l].part;
    // The halves of an element come together: the lower one's stream is the one before.
    LoadedPart& loaded = loaded_[part == 1 ? l - 1 : l];
    const int64_t start = Start(starts, view.strides);
    Dims moving = extents;
    for (std::size_t i = 0; i < moving.size(); ++i)
      moving[i] = view.strides[i] == 0 ? 1 : extents[i];
    if (loaded.buffer < 0 || loaded.start != start || loaded.extents != moving) {
      loaded = {-1, start, moving, CompactStrides(moving, view.strides)};
      const int elem = TypeBytes(view.type);
      loaded.buffer = b_.AddBuffer("in", CompactSize(moving, loaded.strides) * elem);
      b_.Load(TileBuilder::Spm(loaded.buffer), loaded.strides, TileBuilder::Dram(view, start),
              view.strides, moving, elem);
    }
    const TileBuilder::Stream stream{{TileBuilder::Spm(loaded.buffer), loaded.strides}, view.type};
    return part < 0 ? stream : Half(stream, part);
  }

  // Levels of 1 cost nothing and are left out.
  void Vector(const std::vector<uint32_t>& words, const Dims& extents,
              std::vector<TileBuilder::Stream> inputs, TileBuilder::Stream out,
              Reduction reduction = Reduction::kNone) {
    Dims dims = extents;
    std::vector<Dims*> strides{&out.at.strides};
    for (TileBuilder::Stream& input : inputs) strides.push_back(&input.at.strides);
    CollapseLevels(dims, strides);
    if (dims.empty()) {
      dims = {1};
      for (Dims* s : strides) *s = {0};
    }
    uint32_t levels = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (reduction != Reduction::kNone && out.at.strides[i] == 0) levels |= 1u << i;
    }
    if (levels == 0 && reduction < Reduction::kArgMax) reduction = Reduction::kNone;
    b_.Vector(words, dims, inputs, out, static_cast<int>(reduction), levels);
  }

  void Result(const VectorRun& run, const std::vector<TileBuilder::Stream>& inputs,
              const Dims& starts, const Dims& extents) {
    Dims kept = extents;
    bool first = true, last = true;  // of the boxes that make these results
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (!Reduced(i)) continue;
      kept[i] = 1;
      first = first && starts[i] == 0;
      last = last && starts[i] + extents[i] == k_.dims[i];
    }
    const bool parts = !first || !last;
    const Type word = WordType(run.type), type = k_.result.type;
    TileBuilder::Stream out{Dense(kept, parts ? word : type, "out"), parts ? word : type};
    Vector(run.words, extents, inputs, out, k_.reduction);
    if (parts) {
      if (!first) Join(kept, out, word);
      if (first) sum_ = out;
      if (!last) return;
      out = sum_;
      if (word != type) {
        out = {Dense(kept, type, "out"), type};
        Vector(Program([](Expression&, int x, int) { return x; }, word), kept, {sum_}, out);
      }
    }
    b_.Store(TileBuilder::Dram(k_.result, Start(starts, k_.result.strides)), k_.result.strides,
             out.at.place, out.at.strides, kept, TypeBytes(type));
  }

  template <class F>
  static std::vector<uint32_t> Program(F f, Type word) {
    Expression e;
    const int x = e.Load(0, word), y = e.Load(1, word);
    const int root = f(e, x, y);
    return DivideIntoRuns(e, root).at(0).words;
  }

  void Join(const Dims& kept, const TileBuilder::Stream& part, Type word) {
    const int type = word == Type::kF32 ? kFloats : word == Type::kU32 ? kUnsigned : kSigned;
    TileBuilder::Stream joined{Dense(kept, word, "sum"), word};
    Vector(Program([&](Expression& e, int x,
                       int y) { return e.Op(JoiningMicro(k_.reduction), type, x, y); },
                   word),
           kept, {sum_, part}, joined);
    sum_ = joined;
  }

  VectorKernel k_;
  TileBuilder& b_;
  std::vector<VectorRun> runs_;
  std::vector<LoadedPart> loaded_;
  TileBuilder::Stream sum_{};
  const TileBuilder::Stream* made_ = nullptr;
};

BoxKernel::BoxKernel(VectorKernel kernel, TileBuilder& builder)
    : builder_(builder),
      origin_(builder.origin()),
      emitter_(std::make_unique<VectorEmitter>(std::move(kernel), builder)) {}
BoxKernel::~BoxKernel() = default;
void BoxKernel::Run(const Dims& starts, const Dims& extents, const TileBuilder::Stream& made) {
  const int around = builder_.origin();
  builder_.SetOrigin(origin_);
  emitter_->BoxOf(starts, extents, made);
  builder_.SetOrigin(around);
}
int64_t BoxKernel::bytes() const { return emitter_->bytes(); }

Micro JoiningMicro(Reduction reduction) {
  constexpr Micro kMicros[] = {Micro::kAdd, Micro::kMax, Micro::kMin,
                               Micro::kMul, Micro::kAnd, Micro::kOr};
  return kMicros[static_cast<std::size_t>(reduction)];
}

void EmitVectorKernel(VectorKernel kernel, TileBuilder& builder) {
  VectorEmitter(std::move(kernel), builder).Emit();
}

void EmitMove(const View& from, const View& to, TileBuilder& builder, int from_register,
              int to_register) {
  if (from.elements() == 0) return;
  Dims dims = from.dims, source = from.strides, target = to.strides;
  Dims* const both[] = {&source, &target};
  CollapseLevels(dims, both);
  if (dims.empty()) dims = {1}, source = {1}, target = {1};
  const int elem = TypeBytes(from.type);
  const Boxes boxes = Boxes::Cut(dims, builder.config().spm_bytes() / 4 / elem, 5);
  std::vector<std::size_t> order(boxes.outer());
  std::iota(order.begin(), order.end(), std::size_t{0});
  boxes.ForEach(order, [&](const Dims& starts, const Dims& extents) {
    builder.NextStage();
    // In the scratchpad as it will lie behind: DRAM is read and written in the runs it has.
    const Dims near = CompactStrides(extents, target);
    const int buffer =
        builder.AddBuffer("move", CompactSize(extents, Dims(extents.size(), 1)) * elem);
    builder.SetFarRegister(from_register);
    builder.Load(TileBuilder::Spm(buffer), near, TileBuilder::Dram(from, Start(starts, source)),
                 source, extents, elem);
    builder.SetFarRegister(to_register);
    builder.Store(TileBuilder::Dram(to, Start(starts, target)), target, TileBuilder::Spm(buffer),
                  near, extents, elem);
    builder.SetFarRegister(0);
  });
}

}  // namespace lazuli::npu
