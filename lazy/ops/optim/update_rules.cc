// The rules of foreach_update, each with torch's order of operations.
#include <array>
#include <cmath>

#include "ir/support/wrong_type.h"
#include "lazy/ops/optim/foreach.h"
#include "lazy/ops/optim/foreach_arithmetic.h"

namespace lazuli::lazy {
namespace {

using foreach_internal::Arithmetic;
using foreach_internal::Results;
using hlo::ComparisonDirection;
using lowering::Builder;
using lowering::Op;
using lowering::Opcode;

using RuleNumbers = absl::Span<const Op>;
// A parameter with its gradient and states, which a rule replaces.
struct Moved {
  Op p, g;
  std::array<Op, 2> states;
};

Op SquareOf(const Arithmetic& a, Op x) { return a.b.Times(x, x); }

// Numbers: eps, beta2, 1 - beta1, 1 - beta2, the second correction, the weights of the gradient and
// of the mean in the move. States: mean, mean square.
void MoveNadam(const Arithmetic& a, RuleNumbers n, Moved& x) {
  auto& [mean, square] = x.states;
  mean = a.Toward(mean, x.g, n[2]);
  square = a.DecayedSquares(square, n[1], x.g, n[3]);
  const Op spread = a.Plus(a.Sqrt(a.DividedBy(square, n[4])), n[0]);
  x.p = a.b.Minus(x.p, a.b.DividedBy(a.Times(x.g, n[5]), spread));
  x.p = a.b.Minus(x.p, a.b.DividedBy(a.Times(mean, n[6]), spread));
}

// Numbers: eps, beta2, 1 - beta1, 1 - beta2, the first correction, lr, root of the second correction
// times the rectification. States: mean, mean square.
void MoveRadam(const Arithmetic& a, RuleNumbers n, Moved& x) {
  auto& [mean, square] = x.states;
  mean = a.Toward(mean, x.g, n[2]);
  square = a.DecayedSquares(square, n[1], x.g, n[3]);
  const Op step = a.Times(a.DividedBy(mean, n[4]), n[5]);
  const Op spread = a.Plus(a.Sqrt(square), n[0]);
  x.p = a.b.Minus(x.p, a.b.DividedBy(a.Times(step, n[6]), spread));
}
// Numbers: beta2, 1 - beta1, 1 - beta2, the first correction, lr.
void MoveRadamPlain(const Arithmetic& a, RuleNumbers n, Moved& x) {
  auto& [mean, square] = x.states;
  mean = a.Toward(mean, x.g, n[1]);
  square = a.DecayedSquares(square, n[0], x.g, n[2]);
  x.p = a.b.Minus(x.p, a.Times(a.DividedBy(mean, n[3]), n[4]));
}

// Numbers: eps, beta2, 1 - beta1, step size. States: mean, largest gradient.
void MoveAdamax(const Arithmetic& a, RuleNumbers n, Moved& x) {
  auto& [mean, largest] = x.states;
  mean = a.Toward(mean, x.g, n[2]);
  largest = a.b.Maximum(a.Times(largest, n[1]), a.Plus(a.b.Unary(Opcode::kAbs, x.g), n[0]));
  x.p = a.b.Minus(x.p, a.b.DividedBy(a.Times(mean, n[3]), largest));
}

// Numbers: lr, rho, 1 - rho, eps. States: mean squares of gradients and of moves.
void MoveAdadelta(const Arithmetic& a, RuleNumbers n, Moved& x) {
  auto& [squares, moves] = x.states;
  squares = a.DecayedSquares(squares, n[1], x.g, n[2]);
  const Op spread = a.Sqrt(a.Plus(squares, n[3]));
  const Op move = a.b.Times(a.b.DividedBy(a.Sqrt(a.Plus(moves, n[3])), spread), x.g);
  moves = a.DecayedSquares(moves, n[1], move, n[2]);
  x.p = a.b.Minus(x.p, a.Times(move, n[0]));
}

// Numbers: step size, 1 - lambd * step size, weight in the average. State: the average.
void MoveAsgd(const Arithmetic& a, RuleNumbers n, Moved& x) {
  Op& average = x.states[0];
  x.p = a.b.Minus(a.Times(x.p, n[1]), a.Times(x.g, n[0]));
  average = a.Toward(average, x.p, n[2]);
}

// Numbers: the factors of a step that is smaller and larger, the smallest and largest step. States:
// the gradient before, the step of each element.
void MoveRprop(const Arithmetic& a, RuleNumbers n, Moved& x) {
  Builder& b = a.b;
  auto& [before, step] = x.states;
  const Op agreement = b.Times(x.g, before);
  const Op zero = b.ZerosLike(agreement);
  const Op opposite = b.Compare(ComparisonDirection::kLt, agreement, zero);
  const Op factor = b.Select(opposite, a.Spread(n[0], x.g),
                             b.Select(b.Compare(ComparisonDirection::kGt, agreement, zero),
                                      a.Spread(n[1], x.g), b.Full(x.g.shape(), 1)));
  step = b.Minimum(b.Maximum(b.Times(step, factor), a.Spread(n[2], x.g)), a.Spread(n[3], x.g));
  before = b.Select(opposite, zero, x.g);
  x.p = b.Minus(x.p, b.Times(b.Unary(Opcode::kSign, before), step));
}

// Numbers: lr, beta1, 1 - beta1, 1 - beta2. State: mean.
void MoveLion(const Arithmetic& a, RuleNumbers n, Moved& x) {
  Op& mean = x.states[0];
  const Op direction = a.b.Plus(a.Times(mean, n[1]), a.Times(x.g, n[2]));
  x.p = a.b.Minus(x.p, a.Times(a.b.Unary(Opcode::kSign, direction), n[0]));
  mean = a.Toward(mean, x.g, n[3]);
}

Op RootMean(const Arithmetic& a, Op x,
            double share_of) {  // of the sum of squares, divided by a number
  Dims all;
  for (int64_t d = 0; d < x.rank(); ++d) all.push_back(d);
  const Op norm = a.Sqrt(a.b.Reduce(Opcode::kAdd, SquareOf(a, x), all));
  return a.b.DividedBy(norm, a.b.Full(norm.shape(), share_of));
}
// Moves by g / sqrt(variance), as far as the threshold lets it. Numbers from n[1]: smallest variance,
// smallest scale, lr of the step, threshold.
void MoveAdafactor(const Arithmetic& a, RuleNumbers n, Op scale_of, Op variance, Moved& x) {
  Builder& b = a.b;
  const double root = std::sqrt(static_cast<double>(x.p.shape().num_elements()));
  const Op step = b.Times(b.Maximum(RootMean(a, scale_of, root), n[2]), n[3]);
  const Op bounded = b.Maximum(variance, a.Spread(n[1], variance));
  const Op move = b.Times(b.Unary(Opcode::kRsqrt, bounded), x.g);
  const Op excess = b.DividedBy(RootMean(a, move, root), n[4]);
  const Op shrink = b.Maximum(excess, b.Full(excess.shape(), 1));
  x.p = b.Minus(x.p, a.Times(move, b.DividedBy(step, shrink)));
}
// Numbers: the share of what is new, and those above. State: the variance.
void MoveAdafactorElements(const Arithmetic& a, RuleNumbers n, Moved& x, Op before) {
  x.states[0] = a.Toward(x.states[0], SquareOf(a, x.g), n[0]);
  MoveAdafactor(a, n, before, x.states[0], x);
}
// Numbers: the same, and the smallest mean of the rows. States: variances of rows and columns.
void MoveAdafactorMatrix(const Arithmetic& a, RuleNumbers n, Moved& x, Op before) {
  Builder& b = a.b;
  auto& [rows, columns] = x.states;
  const int64_t rank = x.g.rank();
  const auto mean = [&](Op of, int64_t dim) {
    Dims dims(of.shape().dims().begin(), of.shape().dims().end());
    const auto length = static_cast<double>(dims[static_cast<std::size_t>(dim)]);
    dims[static_cast<std::size_t>(dim)] = 1;
    const Op sum = b.Reshape(b.Reduce(Opcode::kAdd, of, {dim}), dims);
    return b.DividedBy(sum, b.Full(sum.shape(), length));
  };
  const Op squares = SquareOf(a, x.g);
  rows = a.Toward(rows, mean(squares, rank - 1), n[0]);
  columns = a.Toward(columns, mean(squares, rank - 2), n[0]);
  const auto spread = [&](Op of) { return b.BroadcastTo(of, x.g.shape().dims()); };
  const Op over = mean(rows, rank - 2);
  const Op variance = b.DividedBy(b.Times(spread(rows), spread(columns)),
                                  spread(b.Maximum(over, a.Spread(n[5], over))));
  MoveAdafactor(a, n, before, variance, x);
}

struct RuleRow {
  int64_t numbers, states;
  void (*move)(const Arithmetic&, RuleNumbers, Moved&);
  void (*move_scaled)(const Arithmetic&, RuleNumbers, Moved&, Op before) = nullptr;
};
const RuleRow& RuleOf(UpdateRule rule) {
  static constexpr std::array<RuleRow, 10> kRules = {{
      {7, 2, &MoveNadam},
      {7, 2, &MoveRadam},
      {5, 2, &MoveRadamPlain},
      {4, 2, &MoveAdamax},
      {4, 2, &MoveAdadelta},
      {3, 1, &MoveAsgd},
      {4, 2, &MoveRprop},
      {4, 1, &MoveLion},
      {5, 1, nullptr, &MoveAdafactorElements},
      {6, 2, nullptr, &MoveAdafactorMatrix},
  }};
  return kRules[static_cast<std::size_t>(rule)];
}

}  // namespace

int64_t NumbersOf(UpdateRule rule) { return RuleOf(rule).numbers; }
int64_t StatesOf(UpdateRule rule) { return RuleOf(rule).states; }

bool ForeachUpdateOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  const RuleRow& row = RuleOf(rule);
  if (row.move_scaled != nullptr && IsComplex(in.back().shape().dtype())) return false;
  return foreach_internal::InferUpdate(
      in, static_cast<std::size_t>(row.numbers) + (decay != Decay::kNone),
      static_cast<std::size_t>(row.states), 0, out);
}

PooledVector<Op> ForeachUpdateOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const Arithmetic a(b);
  const RuleRow& move = RuleOf(rule);
  const auto count = static_cast<std::size_t>(move.numbers);
  if (IsComplex(in.back().dtype())) {
    if (move.move_scaled != nullptr)
      return {b.Error(WrongType("Adafactor takes no complex parameters"))};
    return foreach_internal::LowerOnReals(*this, b, in, count + (decay != Decay::kNone));
  }
  if (foreach_internal::IsRounded(in)) return foreach_internal::LowerWide(*this, b, in);
  const auto states = static_cast<std::size_t>(move.states);
  foreach_internal::Operands operands(in, count + (decay != Decay::kNone), 2 + states);
  Results numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(operands.Number());
  const Op weight = decay == Decay::kNone ? Op() : operands.Number();
  const auto parameters = operands.List(), gradients = operands.List();
  std::array<absl::Span<const Op>, 2> lists;
  for (std::size_t s = 0; s < states; ++s) lists[s] = operands.List();
  std::array<Results, 3> results;
  for (std::size_t i = 0; i < operands.length(); ++i) {
    Moved x{.p = parameters[i], .g = a.Descent(gradients[i], maximize), .states = {}};
    for (std::size_t s = 0; s < states; ++s) x.states[s] = lists[s][i];
    if (decay == Decay::kL2) x.g = b.Plus(x.g, a.Times(x.p, weight));
    if (decay == Decay::kDecoupled) x.p = a.Times(x.p, weight);
    if (move.move != nullptr)
      move.move(a, numbers, x);
    else
      move.move_scaled(a, numbers, x, parameters[i]);
    results[0].push_back(x.p);
    for (std::size_t s = 0; s < states; ++s) results[s + 1].push_back(x.states[s]);
  }
  return foreach_internal::Concatenated({&results[0], &results[1], &results[2]});
}

}  // namespace lazuli::lazy
