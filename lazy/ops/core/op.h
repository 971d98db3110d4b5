// How an op is defined: one aggregate whose data members are its attributes, with Lower and, if it
// has a gradient, Vjp.
//
//   struct CumSumOp {
//     int64_t dim;
//     LAZULI_OP("cumsum", "aten::cumsum", dim);            // names and the only list of attributes
//     static constexpr OpDoc kDoc{"Running sum along `dim`.", {"x"}};
//     static constexpr Saves kSaves{};                     // inputs and outputs that Vjp reads
//     lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
//     Tensors Vjp(const Saved& s, const Tensor& dy) const;
//   };
//   Tensor y = Record(CumSumOp{.dim = 1}, x);
//
// From the struct derive the node with its cache key and text, shape inference (through Lower in
// shapes-only mode, unless the struct has Infer), the arity check, the gradient node, documentation
// and the test sweep. Lower may take a lowering::LoweringContext& instead of the builder (run-time
// checks, regions), end in a Span<const Op> (variadic), and return an array or vector of results.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/graph/key.h"
#include "ir/support/attrs.h"
#include "lazy/ops/core/record.h"
#include "lazy/tensor/tape.h"
#include "lowering/builder/lowering_context.h"

#define LAZULI_OP(name, dump_name, ...)                    \
  static constexpr std::string_view kName = name;          \
  static constexpr std::string_view kDumpName = dump_name; \
  LAZULI_ATTRS(__VA_ARGS__)

namespace lazuli::lazy {

struct OpDoc {
  std::string_view text;
  std::array<std::string_view, 6> operands;
};

namespace internal {

// Signature of Lower.
template <class T>
struct LowerTraits;
template <class R, class T, class First, class... A>
struct LowerTraits<R (T::*)(First&, A...) const> {
  using Result = R;
  static constexpr bool kTakesContext = std::is_same_v<First, lowering::LoweringContext>;
  static constexpr bool kVariadic = (std::is_same_v<A, absl::Span<const lowering::Op>> || ...);
  static constexpr std::size_t kArity =
      sizeof...(A) - (kVariadic ? 1 : 0);  // operands besides the span
};

template <class R>
inline constexpr bool kSingle = std::is_same_v<R, lowering::Op>;

}  // namespace internal

template <class T>
concept OpStruct = std::is_aggregate_v<T> && requires {
  { T::kName } -> std::convertible_to<std::string_view>;
  { T::kDoc } -> std::convertible_to<OpDoc>;
  T::kAttrCount;
  &T::Lower;
};

// --- text of attributes, as torch_xla prints them: dimensions=(0, 1), keepdim=1
std::string AttrValueText(int64_t v);
std::string AttrValueText(double v);
std::string AttrValueText(DType v);
std::string AttrValueText(absl::Span<const int64_t> v);
std::string AttrValueText(std::string_view v);
template <class T>
std::string AttrValueText(const std::optional<T>& v) {
  return v ? AttrValueText(*v) : "none";
}
template <class T>
  requires std::is_enum_v<T>
std::string AttrValueText(T v) {
  return AttrValueText(static_cast<int64_t>(v));
}

template <OpStruct T>
std::string AttrText(const T& op) {
  std::string text;
  op.VisitAttrs([&text](std::string_view name, const auto& v) {
    text += Str(", ", name, "=");
    if constexpr (std::is_integral_v<std::decay_t<decltype(v)>>)
      text += AttrValueText(static_cast<int64_t>(v));
    else
      text += AttrValueText(v);
  });
  return text;
}

// The results of lowering `op` on these operands.
template <OpStruct T>
void LowerOp(const T& op, lowering::LoweringContext& context, absl::Span<const lowering::Op> in,
             std::vector<lowering::Op>& out) {
  using Traits = internal::LowerTraits<decltype(&T::Lower)>;
  auto& first = [&]() -> auto& {
    if constexpr (Traits::kTakesContext)
      return context;
    else
      return context.builder;
  }();
  auto result = [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (Traits::kVariadic)
      return op.Lower(first, in[I]..., in.subspan(Traits::kArity));
    else
      return op.Lower(first, in[I]...);
  }(std::make_index_sequence<Traits::kArity>{});
  if constexpr (internal::kSingle<typename Traits::Result>)
    out.push_back(result);
  else
    out.insert(out.end(), result.begin(), result.end());
}

// What the inference of shapes by lowering needs, the thread's own.
struct ShapeScratch {
  lowering::Builder builder{lowering::Builder::Mode::kShapesOnly};
  std::vector<lowering::Op> results;

  static ShapeScratch& Cleared();
};

// Shapes of the results: the op's Infer if it has one, or its InferAll for operands that it knows,
// else what its Lower yields. Throws StatusError.
template <OpStruct T>
void InferShapes(const T& op, absl::Span<const Value> in, Shapes& out) {
  using Traits = internal::LowerTraits<decltype(&T::Lower)>;
  if constexpr (requires { &T::InferAll; }) {
    if (op.InferAll(in, out)) return;
  }
  if constexpr (requires { &T::Infer; }) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      absl::StatusOr<Shape> shape = op.Infer(in[I].shape()...);
      if (!shape.ok()) [[unlikely]]
        ThrowRecordError(T::kName, shape.status());
      out.push_back(*std::move(shape));
    }(std::make_index_sequence<Traits::kArity>{});
  } else {
    auto& [builder, results] = ShapeScratch::Cleared();
    lowering::LoweringContext context(builder);
    absl::InlinedVector<lowering::Op, 4, PoolAllocator<lowering::Op>> operands;
    for (std::size_t i = 0; i < in.size(); ++i)
      operands.push_back(builder.Parameter(static_cast<int64_t>(i), in[i].shape()));
    LowerOp(op, context, operands, results);
    if (!builder.status().ok()) [[unlikely]]
      ThrowRecordError(T::kName, builder.status());
    for (lowering::Op r : results) out.push_back(r.shape());
  }
}

template <OpStruct T>
class OpNode final : public Node {
  static_assert(AllFieldsListed<T>, "every data member of an op must be listed in LAZULI_OP");
  using Traits = internal::LowerTraits<decltype(&T::Lower)>;
  using Operands =
      std::conditional_t<Traits::kVariadic, PooledVector<Value>, std::array<Value, Traits::kArity>>;

 public:
  // Takes the operands. Throws StatusError if they do not fit.
  OpNode(T op, absl::Span<Value> operands, SiteId site)
      : Node(NodeKind::kOp, site), op_(std::move(op)) {
    InferShapes(op_, operands, shapes_);
    if constexpr (Traits::kVariadic) operands_.resize(operands.size());
    std::move(operands.begin(), operands.end(), operands_.begin());
    SetOperands(operands_.data(), operands_.size());
  }
  // With one result, whose shape the caller knows.
  OpNode(T op, absl::Span<Value> operands, Shape shape, SiteId site)
      : Node(NodeKind::kOp, site), op_(std::move(op)) {
    shapes_.push_back(std::move(shape));
    std::move(operands.begin(), operands.end(), operands_.begin());
    SetOperands(operands_.data(), operands_.size());
  }
  // Without operands, of shapes that are known.
  OpNode(T op, Shapes shapes, SiteId site) : Node(NodeKind::kOp, site), op_(std::move(op)) {
    shapes_ = std::move(shapes);
  }
  const T& op() const { return op_; }
  std::string_view name() const override { return T::kName; }
  std::string_view dump_name() const override {
    if constexpr (requires { op_.DumpName(); })
      return op_.DumpName();
    else
      return T::kDumpName;
  }
  std::size_t num_before() const override {
    if constexpr (requires { op_.NumBefore(); })
      return op_.NumBefore();
    else
      return 0;
  }
  void AppendKey(KeyWriter& key) const override {
    constexpr uint64_t kId = ir::StableTypeId<T>();
    key.Long(kId);
    op_.VisitAttrs([&key](std::string_view, const auto& v) { key.Append(v); });
  }
  std::string AttrText() const override {
    if constexpr (requires { op_.AttrText(); })
      return op_.AttrText();
    else
      return lazy::AttrText(op_);
  }
  NodePtr CopyWithoutOperands() const override {
    if (!operands().empty()) return nullptr;
    return MakeIntrusive<OpNode>(op_, shapes_, site());
  }
  void Lower(lowering::LoweringContext& context, absl::Span<const lowering::Op> operands,
             std::vector<lowering::Op>& results) const override {
    LowerOp(op_, context, operands, results);
  }

 private:
  T op_;
  Operands operands_;
};

// --- gradients

// Which inputs and outputs of an op backward needs, as bit masks; and which of the inputs only the
// gradients of the others read, so that they are saved only if one of those is wanted.
struct Saves {
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  uint32_t for_others = 0;
};
inline constexpr Saves kSaveNothing{};
inline constexpr Saves kSaveX{.inputs = 1};
inline constexpr Saves kSaveXY{.inputs = 3};
inline constexpr Saves kSaveOther{.inputs = 3, .for_others = 3};
inline constexpr Saves kSaveDivisor{.inputs = 3, .for_others = 1};
inline constexpr Saves kSaveXYZ{.inputs = 3, .outputs = 1};
inline constexpr Saves kSaveResult{.outputs = 1};

// What an op's Vjp sees of the forward pass.
class Saved {
 public:
  // Operand i, if kSaves names it; undefined if only gradients would read it that are not wanted.
  Tensor x(std::size_t i = 0) const {
    return inputs_[i].defined() ? inputs_[i].Get(*self_, 0) : Tensor();
  }
  // Result i, if kSaves names it.
  Tensor y(std::size_t i = 0) const { return outputs_[i].Get(*self_, static_cast<uint32_t>(i)); }
  const Shape& shape(std::size_t i = 0) const { return shapes_[i]; }  // of operand i, always there
  // Whether the gradient of operand i is wanted.
  bool needs(std::size_t i) const { return static_cast<bool>(self_->edges()[i]); }
  std::size_t size() const { return shapes_.size(); }

 private:
  template <OpStruct T>
  friend class OpGradNode;
  const GradNode* self_ = nullptr;
  absl::InlinedVector<SavedTensor, 2> inputs_;
  absl::InlinedVector<SavedTensor, 1> outputs_;
  absl::InlinedVector<Shape, 2> shapes_;
};

// Whether a run may find out that an op failed, because lowering adds checks to the context. Of a
// family of ops that lower alike, kChecks says which do.
template <OpStruct T>
inline constexpr bool kMayFail = [] {
  if constexpr (requires { T::kChecks; }) {
    return T::kChecks;
  } else {
    return internal::LowerTraits<decltype(&T::Lower)>::kTakesContext;
  }
}();

// The same of one op; those of which only some fail say so themselves.
template <OpStruct T>
bool MayFail(const T& op) {
  if constexpr (requires { op.MayFail(); })
    return op.MayFail();
  else
    return kMayFail<T>;
}

// Whether an op does something outside of the graph, for which it runs.
template <OpStruct T>
bool IsEffect(const T& op) {
  if constexpr (requires { op.IsEffect(); })
    return op.IsEffect();
  else
    return false;
}

template <OpStruct T>
inline constexpr bool kDifferentiable = requires { &T::Vjp; };

template <OpStruct T>
class OpGradNode final : public GradNode {
 public:
  // `versions`: of the operands before their values were recorded.
  OpGradNode(T op, absl::Span<const Operand> in, absl::Span<const Tensor> out, uint64_t versions,
             SiteId site)
      : GradNode(site), op_(std::move(op)) {
    constexpr Saves saves = [] {
      if constexpr (requires { T::kSaves; })
        return T::kSaves;
      else
        return kSaveNothing;
    }();
    num_outputs = static_cast<uint32_t>(out.size());
    saved_.self_ = this;
    saved_.inputs_.resize(in.size());
    std::size_t wanted = 0;
    for (const Operand& x : in) {
      edges_.push_back(x.tensor() != nullptr ? GradEdge(*x.tensor()) : Edge());
      saved_.shapes_.push_back(x.shape());
      wanted += edges_.back() ? 1 : 0;
    }
    for (std::size_t i = 0; saves.inputs != 0 && i < in.size(); ++i) {
      const std::size_t bit = std::min<std::size_t>(i, 31);
      if ((saves.inputs >> bit & 1) == 0) continue;
      if ((saves.for_others >> bit & 1) != 0 && wanted == (edges_[i] ? 1 : 0)) continue;
      saved_.inputs_[i] = in[i].tensor() != nullptr ? SavedTensor(*in[i].tensor(), false)
                                                    : SavedTensor(in[i].number(), out[0].device());
    }
    // Another thread wrote to one in the meantime: what is saved is not what was recorded.
    if (VersionsOf(in) != versions) [[unlikely]] {
      for (SavedTensor& t : saved_.inputs_) t.MarkChanged();
    }
    saved_.outputs_.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (saves.outputs >> i & 1) saved_.outputs_[i] = SavedTensor(out[i], true);
    }
  }
  std::string_view name() const override { return T::kName; }
  Tensors Backward(absl::Span<const Tensor> dys) override {
    if constexpr (requires { op_.Vjp(saved_, dys[0]); })
      return op_.Vjp(saved_, dys[0]);
    else
      return op_.Vjp(saved_, dys);
  }
  bool Bends() const override {
    if constexpr (requires { T::kSaves; }) return T::kSaves.inputs != 0 || T::kSaves.outputs != 0;
    return false;
  }
  void ReleaseSaved() override {
    for (SavedTensor& t : saved_.inputs_) Free(t);
    for (SavedTensor& t : saved_.outputs_) Free(t);
  }

 private:
  void Free(SavedTensor& t) {
    released = released || t.defined();  // what saved nothing may run again
    t.Reset();
  }

  T op_;
  Saved saved_;
};

// --- recording

// Records `op` and returns its results, pending. Throws StatusError, with nothing recorded, if the
// operands do not fit. `device` is used only by ops without tensor operands.
template <OpStruct T>
Tensors RecordAll(T op,  // NOLINT: moved by those with gradients
                  absl::Span<const Operand> in, backend::Device device = {}) {
  const bool history = kDifferentiable<T> && WantsGrad(in);
  const uint64_t versions = history ? VersionsOf(in) : 0;
  Recorder recorder(in, device, T::kName);
  if (MayFail(op)) recorder.WillCheck();
  if (IsEffect(op)) recorder.WillAct();
  Tensors results;
  recorder.Finish(MakeIntrusive<OpNode<T>>(op, recorder.values(), recorder.site()), results);
  if constexpr (kDifferentiable<T>) {
    if (history)
      AttachGrad(
          MakeIntrusive<OpGradNode<T>>(std::move(op), in, results, versions, recorder.site()),
          absl::MakeSpan(results));
  }
  recorder.CutLongGraph();
  return results;
}

// Records `op`, whose first results become the elements of `targets` in place: tensors that are
// among the operands, want no gradient and fit. Returns the further results. No history is kept.
// An op that infers what the targets have, of which its caller makes sure, says kResultsFit.
template <OpStruct T>
Tensors RecordInto(T op, absl::Span<const Operand> in, absl::Span<const Tensor> targets) {
  static_assert(!kDifferentiable<T>, "the history of a write is Assign's business");
  Context::Movers movers;  // while targets of other contexts are being written to
  Recorder recorder(in, targets, movers, T::kName);
  if (MayFail(op)) recorder.WillCheck();
  const NodePtr node = MakeIntrusive<OpNode<T>>(std::move(op), recorder.values(), recorder.site());
  if constexpr (!requires { T::kResultsFit; }) {
    for (uint32_t i = 0; i < targets.size(); ++i) CheckFits(T::kName, targets[i], node->shape(i));
  }
  Tensors results;
  recorder.Finish(node, targets, results);
  movers = {};
  recorder.CutLongGraph();
  return results;
}

// Records `op`, whose result has target's shape, and makes it the elements of `target`: one step,
// in which nobody else writes to it, and no history is kept. False, with nothing changed, if the
// target is another context's.
template <OpStruct T>
bool RecordOver(T op, absl::Span<const Operand> in, const Tensor& target) {
  if (!Context::Current().Owns(target.storage().written())) return false;
  Recorder recorder(in, {}, T::kName);
  if (!recorder.Has(target)) return false;
  if (MayFail(op)) recorder.WillCheck();
  recorder.FinishOver(
      MakeIntrusive<OpNode<T>>(std::move(op), recorder.values(), target.shape(), recorder.site()),
      target);
  recorder.CutLongGraph();
  return true;
}

// Records `op`, whose result has the shape and is the view.
template <OpStruct T>
Tensor RecordViewOf(T op, const Operand& operand, Shape shape, NewView view) {
  const absl::Span<const Operand> in = absl::MakeConstSpan(&operand, 1);
  const bool history = WantsGrad(in);
  const uint64_t versions = history ? VersionsOf(in) : 0;
  Recorder recorder(in, {}, T::kName);
  Tensor result = recorder.Finish(
      MakeIntrusive<OpNode<T>>(history ? T(op) : T(std::move(op)), recorder.values(),
                               std::move(shape), recorder.site()),
      std::move(view));
  if (history) {
    // NOLINTNEXTLINE(bugprone-use-after-move): with a history the node has a copy
    AttachGrad(MakeIntrusive<OpGradNode<T>>(std::move(op), in, absl::MakeConstSpan(&result, 1),
                                            versions, recorder.site()),
               absl::MakeSpan(&result, 1));
  }
  recorder.CutLongGraph();
  return result;
}

// The common case of one result: as RecordAll, without a vector.
template <OpStruct T>
Tensor RecordOne(T op,  // NOLINT: moved by those with gradients
                 absl::Span<const Operand> in, backend::Device device = {}) {
  const bool history = kDifferentiable<T> && WantsGrad(in);
  const uint64_t versions = history ? VersionsOf(in) : 0;
  Recorder recorder(in, device, T::kName);
  if (MayFail(op)) recorder.WillCheck();
  NodePtr node = MakeIntrusive<OpNode<T>>(history ? T(op) : T(std::move(op)), recorder.values(),
                                          recorder.site());
  if constexpr (!kDifferentiable<T>) RefuseGrad(T::kName, in, node->shape());
  Tensor result = recorder.Finish(std::move(node));
  if constexpr (kDifferentiable<T>) {
    if (history) {
      // NOLINTNEXTLINE(bugprone-use-after-move): with a history the node has a copy
      AttachGrad(MakeIntrusive<OpGradNode<T>>(std::move(op), in, absl::MakeConstSpan(&result, 1),
                                              versions, recorder.site()),
                 absl::MakeSpan(&result, 1));
    }
  }
  recorder.CutLongGraph();
  return result;
}

template <OpStruct T, class... X>
Tensor Record(T op, const X&... xs) {
  static_assert(internal::kSingle<typename internal::LowerTraits<decltype(&T::Lower)>::Result>,
                "use RecordAll");
  const std::array<Operand, sizeof...(X)> in{Operand(xs)...};
  return RecordOne(std::move(op), in);
}

}  // namespace lazuli::lazy
