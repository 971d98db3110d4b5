#include "lazy/ops/recurrent/recurrent.h"

#include <algorithm>

#include "lazy/ops/core/step_loop.h"
#include "lazy/ops/recurrent/operands.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Op;
using lowering::Opcode;
using Relation = hlo::ComparisonDirection;

// The formulas of a cell as HLO.
struct HloAlgebra {
  Builder& b;
  Op Plus(Op x, Op y) const { return b.Plus(x, y); }
  Op Minus(Op x, Op y) const { return b.Minus(x, y); }
  Op Times(Op x, Op y) const { return b.Times(x, y); }
  Op Sigmoid(Op x) const { return b.Unary(Opcode::kLogistic, x); }
  Op Tanh(Op x) const { return b.Unary(Opcode::kTanh, x); }
  Op Relu(Op x) const { return b.Maximum(x, b.ZerosLike(x)); }
  Op OneMinus(Op x) const { return b.Minus(b.Full(x.shape(), 1), x); }
  Op WherePositive(Op x, Op y) const {
    const Op zero = b.ZerosLike(x);
    return b.Select(b.Compare(Relation::kGt, x, zero), y, zero);
  }
};

// x [n, k] times a weight [m, k], or its transpose.
Op Product(Builder& b, Op x, Op weight, bool transposed) {
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {1};
  attrs.rhs_contracting_dims = {transposed ? 0 : 1};
  return b.Dot(x, weight, std::move(attrs));
}

// Part i of the columns of x [B, n H].
Op Part(Builder& b, Op x, std::size_t i, int64_t size) {
  const auto begin = static_cast<int64_t>(i) * size;
  return b.Slice(x, {0, begin}, {x.shape().dim(0), begin + size}, {1, 1});
}

// Whether the sequences [B] go on at the step, as a condition of the dims of x [B, n].
Op GoesOn(const LoopStep& step, Op lengths, Op x) {
  Builder& b = step.b;
  const Op number = b.Broadcast(step.number, lengths.shape().dims(), {});
  return b.Broadcast(b.Compare(Relation::kLt, number, lengths), x.shape().dims(), {0});
}

StepOrder OrderOf(bool reverse) { return reverse ? StepOrder::kBackward : StepOrder::kForward; }

class ForwardLoop {
 public:
  ForwardLoop(const RecurrentOp& op, absl::Span<const Op> in)
      : op_(op), in_(op, in), size_(in_.sums.shape().dim(2) / Gates(op.cell)) {}

  std::vector<Op> Run(Builder& b) const {
    const Shape& sums = in_.sums.shape();
    const int64_t steps = sums.dim(0), batch = sums.dim(1);
    std::vector<Op> carried{in_.hidden};
    if (in_.cell.valid()) carried.push_back(in_.cell);
    carried.push_back(b.Full(Shape(sums.dtype(), {steps, batch, in_.hidden.shape().dim(1)}), 0));
    for (std::size_t i = 0; i < Kept(); ++i)
      carried.push_back(b.Full(Shape(sums.dtype(), {steps, batch, size_}), 0));
    if (b.shapes_only()) return Ordered(std::move(carried));
    std::vector<Op> fixed;
    const Op weight = Transposes(batch) ? b.Transpose(in_.weight, {1, 0}) : in_.weight;
    for (const Op x : {in_.sums, weight, in_.bias, in_.projection, in_.lengths}) {
      if (x.valid()) fixed.push_back(x);
    }
    return Ordered(ForEachStep(b, steps, OrderOf(op_.reverse), carried, fixed,
                               [&](const LoopStep& step) { return Next(step); }));
  }

 private:
  // The hidden states of all steps first.
  std::vector<Op> Ordered(std::vector<Op> end) const {
    const auto states = end.begin() + static_cast<std::ptrdiff_t>(States());
    std::rotate(end.begin(), states, states + 1);
    return end;
  }
  // Libraries read a weight row by row in a product with several rows: transposed once for all steps,
  // it is read faster. Products with few rows read it as it lies.
  static bool Transposes(int64_t batch) { return batch > 4; }
  std::size_t States() const { return Facts(op_.cell).states; }
  // The sums of gate i at the step, cut out of those of all steps at once: a slice of a slice would be
  // copied.
  Op PartOf(const LoopStep& step, Op sums, std::size_t i) const {
    Builder& b = step.b;
    const auto zero = b.Scalar(step.number.dtype(), 0);
    const auto begin =
        b.Scalar(step.number.dtype(), static_cast<double>(i) * static_cast<double>(size_));
    const int64_t batch = sums.shape().dim(1);
    return b.Reshape(b.DynamicSlice(sums, {step.number, zero, begin}, {1, batch, size_}),
                     {batch, size_});
  }
  std::size_t Kept() const { return op_.keeps ? KeptArrays(op_.cell, op_.projected) : 0; }

  std::vector<Op> Next(const LoopStep& step) const {
    Builder& b = step.b;
    Taker<Op> take(step.fixed);
    const Op sums = take.Next(), weight = take.Next();
    const Op bias = take.NextIf(in_.bias.valid()), projection = take.NextIf(in_.projection.valid());
    const Op lengths = take.NextIf(in_.lengths.valid());

    const absl::Span<const Op> before = step.carried.first(States());
    const Op product = Product(b, before[0], weight, Transposes(before[0].shape().dim(0)));
    CellValues<Op> x, h;
    for (std::size_t i = 0; i < Facts(op_.cell).gates; ++i) {
      x.push_back(PartOf(step, sums, i));
      h.push_back(Part(b, product, i, size_));
    }
    if (bias.valid()) h[2] = b.Plus(h[2], b.BroadcastTo(bias, h[2].shape().dims()));
    CellStep<Op> now = StepOf<HloAlgebra, Op>({b}, op_.cell, x, h, before);
    if (projection.valid()) {
      now.kept.push_back(now.states[0]);
      now.states[0] = Product(b, now.states[0], projection, /*transposed=*/false);
    }
    Op result = now.states[0];
    if (lengths.valid()) {
      result = b.Select(GoesOn(step, lengths, result), result, b.ZerosLike(result));
      for (std::size_t i = 0; i < States(); ++i) {
        Op& state = now.states[i];
        state = b.Select(GoesOn(step, lengths, state), state, before[i]);
      }
    }
    std::vector<Op> next(now.states.begin(), now.states.end());
    next.push_back(step.With(step.carried[States()], result));
    for (std::size_t i = 0; i < Kept(); ++i)
      next.push_back(step.With(step.carried[States() + 1 + i], now.kept[i]));
    return next;
  }

  const RecurrentOp& op_;
  RecurrentOperands<Op> in_;
  int64_t size_;  // H
};

class BackwardLoop {
 public:
  BackwardLoop(const RecurrentGradOp& op, Op hidden, Op last, absl::Span<const Op> others)
      : op_(op), hidden_(hidden), last_(last) {
    Taker<Op> take(others);
    cell_ = take.NextIf(op.cell == Cell::kLstm);
    weight_ = take.Next();
    projection_ = take.NextIf(op.projected);
    lengths_ = take.NextIf(op.masked);
    kept_.assign(take.Rest().begin(), take.Rest().end());
  }

  // The gradients for the sums, those for the sums from the hidden state of a GRU, and those for the
  // hidden states where these are projected; then for the first states.
  std::vector<Op> Run(Builder& b) const {
    const int64_t steps = hidden_.shape().dim(0), batch = hidden_.shape().dim(1);
    const Dims sums{steps, batch, weight_.shape().dim(0)};
    std::vector<Op> carried{last_};
    if (cell_.valid()) carried.push_back(cell_);
    carried.push_back(b.Full(Shape(hidden_.dtype(), sums), 0));
    if (op_.cell == Cell::kGru) carried.push_back(b.Full(Shape(hidden_.dtype(), sums), 0));
    if (op_.projected) carried.push_back(b.ZerosLike(hidden_));
    if (b.shapes_only()) return Ordered(carried);
    std::vector<Op> fixed{hidden_, weight_};
    if (projection_.valid()) fixed.push_back(projection_);
    if (lengths_.valid()) fixed.push_back(lengths_);
    fixed.insert(fixed.end(), kept_.begin(), kept_.end());
    return Ordered(ForEachStep(b, steps, OrderOf(!op_.reverse), carried, fixed,
                               [&](const LoopStep& step) { return Next(step); }));
  }

 private:
  std::size_t States() const { return Facts(op_.cell).states; }
  std::vector<Op> Ordered(std::vector<Op> end) const {
    std::rotate(end.begin(), end.begin() + static_cast<std::ptrdiff_t>(States()), end.end());
    return end;
  }

  std::vector<Op> Next(const LoopStep& step) const {
    Builder& b = step.b;
    Taker<Op> take(step.fixed);
    const Op given = step.Of(take.Next()), weight = take.Next();
    const Op projection = take.NextIf(projection_.valid());
    const Op lengths = take.NextIf(lengths_.valid());
    CellValues<Op> kept;
    for (const Op x : take.Rest()) kept.push_back(step.Of(x));

    const absl::Span<const Op> after = step.carried.first(States());
    CellValues<Op> grads(after.begin(), after.end());
    grads[0] = b.Plus(grads[0], given);
    if (lengths.valid()) {
      for (Op& grad : grads) grad = b.Select(GoesOn(step, lengths, grad), grad, b.ZerosLike(grad));
    }
    const Op projected = grads[0];
    if (projection.valid()) grads[0] = Product(b, grads[0], projection, /*transposed=*/true);
    const CellGradient<Op> sums = GradientOf<HloAlgebra, Op>({b}, op_.cell, kept, grads);
    const Op from_hidden = b.Concatenate(sums.hidden, 1);
    CellValues<Op> states = sums.states;
    const Op through = Product(b, from_hidden, weight, /*transposed=*/true);
    states[0] = states[0].valid() ? b.Plus(states[0], through) : through;
    if (lengths.valid()) {
      for (std::size_t i = 0; i < States(); ++i)
        states[i] = b.Select(GoesOn(step, lengths, states[i]), states[i], after[i]);
    }
    std::vector<Op> next(states.begin(), states.end());
    std::size_t array = States();
    const bool apart = op_.cell == Cell::kGru;
    next.push_back(
        step.With(step.carried[array++], apart ? b.Concatenate(sums.input, 1) : from_hidden));
    if (apart) next.push_back(step.With(step.carried[array++], from_hidden));
    if (op_.projected) next.push_back(step.With(step.carried[array++], projected));
    return next;
  }

  const RecurrentGradOp& op_;
  Op hidden_, last_, cell_, weight_, projection_, lengths_;
  std::vector<Op> kept_;
};

}  // namespace

std::vector<Op> RecurrentOp::Lower(Builder& b, Op sums, Op weight, Op hidden,
                                   absl::Span<const Op> others) const {
  std::vector<Op> in{sums, weight, hidden};
  in.insert(in.end(), others.begin(), others.end());
  return ForwardLoop(*this, in).Run(b);
}

std::vector<Op> RecurrentGradOp::Lower(Builder& b, Op hidden, Op last,
                                       absl::Span<const Op> others) const {
  return BackwardLoop(*this, hidden, last, others).Run(b);
}

namespace {

// dy, or zeros where none came.
Tensor Given(const Tensor& dy, const Tensor& like) {
  return dy.defined() ? dy : FullConstant(like.shape(), 0, like.device());
}

// The hidden states [T, B, P] before each step.
Tensor HiddenBefore(const RecurrentOp& op, const RecurrentOperands<Tensor>& in, const Tensor& y) {
  const int64_t steps = y.dim(0);
  const Tensor first = Unsqueeze(in.hidden, 0);
  if (!op.reverse) return Cat(Tensors{first, Narrow(y, 0, 0, steps - 1)}, 0);
  const Tensor before = Cat(Tensors{Narrow(y, 0, 1, steps - 1), first}, 0);
  if (!op.masked) return before;
  // The last step of a sequence comes first.
  const Tensor next = Positions({steps, y.dim(1), 1}, 0, y.device()) + 1.0;
  return Where(Lt(next, Reshape(in.lengths, {1, -1, 1})), before, first);
}

// The sum over steps and batch of the products of x [T, B, n] and y [T, B, m]: [n, m].
Tensor ProductOfSteps(const Tensor& x, const Tensor& y) {
  const auto rows = [](const Tensor& t) { return Reshape(t, {t.dim(0) * t.dim(1), t.dim(2)}); };
  return Matmul(Transpose(rows(x), 0, 1), rows(y));
}

}  // namespace

Tensors RecurrentOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!keeps || GradEnabled()) return UnrolledGradient(*this, s, dys);
  Tensors operands;
  for (std::size_t i = 0; i < s.size(); ++i) operands.push_back(s.x(i));
  const RecurrentOperands<Tensor> in(*this, operands);
  const Tensor y = s.y(0);
  std::size_t results = 2;
  Tensors given{Given(dys[0], y), Given(dys[1], in.hidden)};
  if (in.cell.defined()) given.push_back(Given(dys[results++], in.cell));
  given.push_back(in.weight);
  if (projected) given.push_back(in.projection);
  if (masked) given.push_back(in.lengths);
  const std::size_t kept = KeptArrays(cell, projected);
  for (std::size_t i = 0; i < kept; ++i) given.push_back(s.y(results + i));
  const std::vector<Operand> in_loop(given.begin(), given.end());
  const Tensors grads = RecordAll(RecurrentGradOp{cell, reverse, projected, masked}, in_loop);

  Taker<Tensor> take(grads);
  const Tensor sums = take.Next();
  const Tensor from_hidden = cell == Cell::kGru ? take.Next() : sums;
  const Tensor hidden = take.NextIf(projected);
  Tensors result{sums, ProductOfSteps(from_hidden, HiddenBefore(*this, in, y)), take.Next()};
  if (in.cell.defined()) result.push_back(take.Next());
  if (in.bias.defined()) {
    const int64_t size = in.bias.dim(0);
    result.push_back(Sum(Narrow(from_hidden, 2, 2 * size, size), {0, 1}));
  }
  if (projected) result.push_back(ProductOfSteps(hidden, given.back()));
  result.resize(s.size());
  return result;
}

}  // namespace lazuli::lazy
