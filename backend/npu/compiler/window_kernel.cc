#include "backend/npu/compiler/window_kernel.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/npu/compiler/boxes.h"
#include "backend/npu/compiler/region.h"
#include "backend/npu/compiler/window_part.h"
#include "backend/npu/sim/cost.h"

namespace lazuli::npu {
namespace {

int ArithmeticOf(Type type) {
  return type == Type::kF32 || type == Type::kBf16 ? kFloats
         : type == Type::kU32                      ? kUnsigned
                                                   : kSigned;
}
Type WordOf(Type type) {
  const int arithmetic = ArithmeticOf(type);
  return arithmetic == kFloats ? Type::kF32 : arithmetic == kUnsigned ? Type::kU32 : Type::kS32;
}

// What both kernels do with boxes of windows.
class WindowEmitter {
 public:
  WindowEmitter(const WindowKernel& kernel, TileBuilder& builder)
      : k_(kernel),
        b_(builder),
        type_(kernel.x.type),
        word_(WordOf(kernel.x.type)),
        arithmetic_(ArithmeticOf(kernel.x.type)) {}

 protected:
  using Stream = TileBuilder::Stream;

  Stream Buffer(std::string_view name, const Dims& counts, Type type) {
    const View dense = DenseView(0, type, counts);
    return {
        {TileBuilder::Spm(b_.AddBuffer(name, dense.elements() * TypeBytes(type))), dense.strides},
        type};
  }
  // One tap of all windows.
  Stream Tap(const WindowPart& part, int buffer, absl::Span<const int64_t> tap, Type type) const {
    int64_t offset = 0;
    Dims strides;
    for (std::size_t d = 0; d < tap.size(); ++d) {
      offset += tap[d] * k_.window[d].window_dilation * part.strides[d];
      strides.push_back(part.strides[d] * k_.window[d].stride);
    }
    return {{TileBuilder::Spm(buffer, offset * TypeBytes(type)), strides}, type};
  }
  Stream Scalar(const View& view) {
    const int buffer = b_.AddBuffer("scalar", TypeBytes(view.type));
    b_.Load(TileBuilder::Spm(buffer), {1}, TileBuilder::Dram(view, 0), {1}, {1},
            TypeBytes(view.type));
    return {{TileBuilder::Spm(buffer), Dims(k_.window.size(), 0)}, view.type};
  }
  int LoadPart(const WindowPart& part, uint32_t padding) {
    return npu::LoadPart(part, k_.x, padding, b_);
  }

  template <class F>
  void Run(const Dims& counts, std::vector<Stream> inputs, Stream out, F f) {
    RunOver(b_, counts, std::move(inputs), std::move(out), f);
  }

  template <class F>
  void ForEachTap(F f) {
    Dims sizes;
    for (const hlo::WindowDim& w : k_.window) sizes.push_back(w.size);
    ForEachIndex(sizes, f);
  }

  const WindowKernel& k_;
  TileBuilder& b_;
  Type type_, word_;
  int arithmetic_;
};

class ReduceWindowEmitter : public WindowEmitter {
 public:
  using WindowEmitter::WindowEmitter;

  void Emit(Reduction reduction, uint32_t identity, bool init_is_identity) {
    const Micro joins = JoiningMicro(reduction);
    const Boxes boxes = Cut();
    std::vector<std::size_t> order(boxes.outer());
    std::iota(order.begin(), order.end(), std::size_t{0});
    boxes.ForEach(order, [&](const Dims& starts, const Dims& counts) {
      b_.NextStage();
      const WindowPart part = PartUnder(k_.window, k_.x, starts, counts);
      const int buffer = LoadPart(part, identity);
      std::vector<Stream> streams;
      if (!init_is_identity) streams.push_back(Scalar(k_.init));
      ForEachTap(
          [&](absl::Span<const int64_t> tap) { streams.push_back(Tap(part, buffer, tap, type_)); });
      const Stream out = Join(streams, counts, joins);
      int64_t to = 0;
      for (std::size_t d = 0; d < starts.size(); ++d) to += starts[d] * k_.result.strides[d];
      b_.Store(TileBuilder::Dram(k_.result, to), k_.result.strides, out.at.place, out.at.strides,
               counts, TypeBytes(type_));
    });
  }

 private:
  Boxes Cut() const {
    const int64_t room = b_.config().spm_bytes() / 4;
    int64_t limit = k_.result.elements();
    while (true) {
      const Boxes boxes = Boxes::Cut(k_.result.dims, limit, kNestLevels);
      Dims counts = boxes.dims, starts(counts.size(), 0);
      for (std::size_t d = 0; d < boxes.outer(); ++d)
        counts[d] = std::min(boxes.step(d), counts[d]);
      int64_t windows = 1;
      for (int64_t c : counts) windows *= c;
      const int64_t part = PartUnder(k_.window, k_.x, starts, counts).elements() * TypeBytes(type_);
      if (part + 8 * windows <= room || limit == 1) return boxes;
      limit = (limit + 1) / 2;
    }
  }

  // In order, two more with each run.
  Stream Join(const std::vector<Stream>& streams, const Dims& counts, Micro joins) {
    Stream sum = streams[0];
    std::size_t next = 1;
    do {
      std::vector<Stream> inputs{sum};
      while (next < streams.size() && inputs.size() < 3) inputs.push_back(streams[next++]);
      const bool last = next == streams.size();
      sum = Buffer(last ? "out" : "join", counts, last ? type_ : word_);
      Run(counts, inputs, sum, [&](Expression& e, const std::vector<int>& nodes) {
        int total = nodes[0];
        for (std::size_t n = 1; n < nodes.size(); ++n)
          total = e.Op(joins, arithmetic_, total, nodes[n]);
        return total;
      });
    } while (next < streams.size());
    return sum;
  }
};

// Boxes of windows that share no element with others.
Boxes SeparateBoxes(const hlo::Window& window, const Dims& windows, int64_t room, int64_t bytes,
                    bool* fits) {
  int64_t limit = std::accumulate(windows.begin(), windows.end(), int64_t{1}, std::multiplies<>());
  while (true) {
    const Boxes boxes = Boxes::Cut(windows, limit, kNestLevels);
    Dims counts = windows;
    bool separate = true;
    for (std::size_t d = 0; d < boxes.outer(); ++d) {
      counts[d] = std::min(boxes.step(d), windows[d]);
      const bool overlap = (window[d].size - 1) * window[d].window_dilation >= window[d].stride;
      separate = separate && (counts[d] == windows[d] || !overlap);
    }
    int64_t elements = 1;
    for (std::size_t d = 0; d < counts.size(); ++d)
      elements *=
          (counts[d] - 1) * window[d].stride + (window[d].size - 1) * window[d].window_dilation + 1;
    if (elements * bytes <= room || limit == 1 || !separate) {
      *fits = separate && elements * bytes <= 2 * room;
      return boxes;
    }
    limit = (limit + 1) / 2;
  }
}

constexpr int64_t kScatterBytes =
    4 * 6;  // of an element: itself, its place, the result and temporaries

class ScatterEmitter : public WindowEmitter {
 public:
  using WindowEmitter::WindowEmitter;

  void Emit(const View& source, const hlo::Computation& keeps, Micro joins) {
    bool fits = false;
    Boxes boxes;
    for (int64_t room = b_.config().spm_bytes() / 3; !fits; room *= 2)
      boxes = SeparateBoxes(k_.window, source.dims, room, kScatterBytes, &fits);
    std::vector<std::size_t> order(boxes.outer());
    std::iota(order.begin(), order.end(), std::size_t{0});
    boxes.ForEach(order, [&](const Dims& starts, const Dims& counts) {
      b_.NextStage();
      const WindowPart part = PartUnder(k_.window, k_.x, starts, counts);
      if (part.empty) return;
      const Stream chosen = Choose(part, counts, keeps);
      Scatter(part, starts, counts, chosen, source, joins);
    });
  }

 private:
  // Of each window which tap it is.
  Stream Choose(const WindowPart& part, const Dims& counts, const hlo::Computation& keeps) {
    const int buffer = LoadPart(part, 0), valid = part.holes ? LoadValid(part) : -1;
    Stream best{}, chosen{};
    int32_t number = 0;
    ForEachTap([&](absl::Span<const int64_t> tap) {
      const Stream candidate = Tap(part, buffer, tap, type_);
      auto literal = [&number](Expression& e) {
        return e.Literal(static_cast<uint32_t>(number), kSigned);
      };
      if (number == 0) {
        best = candidate;
        chosen = Buffer("chosen", counts, Type::kS32);
        std::vector<Stream> inputs;
        if (valid >= 0) inputs.push_back(Tap(part, valid, tap, Type::kU8));
        // -1: none yet.
        Run(counts, inputs, chosen, [&](Expression& e, const std::vector<int>& nodes) {
          return nodes.empty() ? literal(e)
                               : e.Op(Micro::kSub, kSigned, nodes[0], e.Literal(1, kSigned));
        });
      } else {
        Stream keep = Buffer("keep", counts, Type::kPred);
        Run(counts, {best, candidate, chosen}, keep, [&](Expression& e, const std::vector<int>& n) {
          const int kept = AddRegion(keeps, {ValueNodes{n[0]}, ValueNodes{n[1]}}, e)[0].low;
          return e.Op(Micro::kAnd, kSigned, kept,
                      e.Op(Micro::kCmpGe, kSigned, n[2], e.Literal(0, kSigned)));
        });
        if (valid >= 0) {
          const Stream with = Buffer("keep", counts, Type::kPred);
          Run(counts, {keep, Tap(part, valid, tap, Type::kU8)}, with,
              [&](Expression& e, const std::vector<int>& n) {
                return e.Op(Micro::kOr, kSigned, n[0],
                            e.Op(Micro::kXor, kSigned, n[1], e.Literal(1, kSigned)));
              });
          keep = with;
        }
        const Stream next = Buffer("chosen", counts, Type::kS32),
                     better = Buffer("best", counts, type_);
        Run(counts, {keep, chosen}, next, [&](Expression& e, const std::vector<int>& n) {
          return e.Op(Micro::kSel, kSigned, n[0], n[1], literal(e));
        });
        Run(counts, {keep, best, candidate}, better, [&](Expression& e, const std::vector<int>& n) {
          return e.Op(Micro::kSel, arithmetic_, n[0], n[1], n[2]);
        });
        chosen = next;
        best = better;
      }
      ++number;
    });
    return chosen;
  }

  // 1 where the part has an element of the array, else 0.
  int LoadValid(const WindowPart& part) {
    const int valid = b_.AddBuffer("valid", part.elements());
    b_.Fill(TileBuilder::Spm(valid), part.elements(), 1, 0, 0);
    b_.FillBox(TileBuilder::Spm(valid, part.to), part.near, part.loaded, 1, 1, 0);
    return valid;
  }

  void Scatter(const WindowPart& part, const Dims& starts, const Dims& counts, const Stream& chosen,
               const View& source, Micro joins) {
    int64_t from = 0;
    for (std::size_t d = 0; d < starts.size(); ++d) from += starts[d] * source.strides[d];
    const Stream values = Buffer("source", counts, type_);
    b_.Load(values.at.place, values.at.strides, TileBuilder::Dram(source, from), source.strides,
            counts, TypeBytes(type_), 1);
    const Stream init = Scalar(k_.init);
    const int result = b_.AddBuffer("result", part.elements() * TypeBytes(word_));
    Stream whole{{TileBuilder::Spm(result), part.strides}, word_};
    Run(part.extents, {init}, whole, [](Expression&, const std::vector<int>& n) { return n[0]; });
    int32_t number = 0;
    ForEachTap([&](absl::Span<const int64_t> tap) {
      const Stream target = Tap(part, result, tap, word_);
      Run(counts, {chosen, target, values}, target, [&](Expression& e, const std::vector<int>& n) {
        const int here =
            e.Op(Micro::kCmpEq, kSigned, n[0], e.Literal(static_cast<uint32_t>(number), kSigned));
        return e.Op(Micro::kSel, arithmetic_, here, e.Op(joins, arithmetic_, n[1], n[2]), n[1]);
      });
      ++number;
    });
    Stream out = whole;
    if (word_ != type_) {
      out = {
          {TileBuilder::Spm(b_.AddBuffer("out", part.elements() * TypeBytes(type_))), part.strides},
          type_};
      Run(part.extents, {whole}, out, [](Expression&, const std::vector<int>& n) { return n[0]; });
    }
    int64_t to = 0;  // where the part's first element that there is lies
    for (std::size_t d = 0; d < starts.size(); ++d)
      to += std::max<int64_t>(0, starts[d] * k_.window[d].stride - k_.window[d].pad_low) *
            k_.result.strides[d];
    out.at.place.offset += part.to * TypeBytes(type_);
    b_.Store(TileBuilder::Dram(k_.result, to), k_.result.strides, out.at.place, part.near,
             part.loaded, TypeBytes(type_));
  }
};

}  // namespace

void EmitReduceWindow(const WindowKernel& kernel, Reduction reduction, uint32_t identity,
                      bool init_is_identity, TileBuilder& builder) {
  ReduceWindowEmitter(kernel, builder).Emit(reduction, identity, init_is_identity);
}

void EmitSelectAndScatter(const WindowKernel& kernel, const View& source,
                          const hlo::Computation& keeps, Micro joins, TileBuilder& builder) {
  ScatterEmitter(kernel, builder).Emit(source, keeps, joins);
}

bool SelectAndScatterFits(const hlo::Window& window, const Shape& windows, const Config& config) {
  bool fits = false;
  SeparateBoxes(window, Dims(windows.dims().begin(), windows.dims().end()), config.spm_bytes() / 3,
                kScatterBytes, &fits);
  return fits;
}

}  // namespace lazuli::npu
