#include "lazy/ops/optim/foreach.h"

#include "lazy/ops/core/wide.h"
#include "lazy/ops/optim/foreach_arithmetic.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Op;
using lowering::Opcode;
using Results = PooledVector<Op>;
using foreach_internal::Arithmetic;
using foreach_internal::AsComplex;
using foreach_internal::AsReals;
using foreach_internal::Concatenated;
using foreach_internal::IsRounded;
using foreach_internal::LowerOnReals;
using foreach_internal::LowerWide;
using foreach_internal::Operands;

std::size_t CountNumbers(const ForeachSgdOp& op) {
  return std::size_t{1} + op.weight_decay + op.momentum + op.dampening;
}
std::size_t CountNumbers(const ForeachAdamOp& op) { return op.decay == Decay::kNone ? 6 : 7; }
std::size_t CountNumbers(const ForeachRmspropOp& op) {
  return std::size_t{4} + op.momentum + op.weight_decay;
}
std::size_t CountNumbers(const ForeachAdagradOp& op) { return op.weight_decay ? 3 : 2; }

Dims EveryDim(Op x) {
  Dims all;
  for (int64_t d = 0; d < x.rank(); ++d) all.push_back(d);
  return all;
}

}  // namespace

Results foreach_internal::AsReals(Builder& b, absl::Span<const Op> in, std::size_t numbers) {
  Results reals;
  for (Op x : in) {
    const Op real = b.Unary(Opcode::kReal, x);
    if (reals.size() < numbers) {
      reals.push_back(real);
      continue;
    }
    const int64_t rank = x.rank();
    Dims dims(x.shape().dims().begin(), x.shape().dims().end());
    dims.push_back(1);
    const Op part = b.Reshape(real, dims);
    reals.push_back(b.Concatenate({part, b.Reshape(b.Unary(Opcode::kImag, x), dims)}, rank));
  }
  return reals;
}

Results foreach_internal::AsComplex(Builder& b, absl::Span<const Op> reals) {
  Results results;
  for (Op x : reals) {
    const Dims sizes(x.shape().dims().begin(), x.shape().dims().end());
    const std::size_t last = sizes.size() - 1;
    const Dims dims(sizes.begin(), sizes.end() - 1), strides(sizes.size(), 1);
    const auto part = [&](int64_t i) {
      Dims starts(sizes.size(), 0), limits = sizes;
      starts[last] = i;
      limits[last] = i + 1;
      return b.Reshape(b.Slice(x, starts, limits, strides), dims);
    };
    const Op real = part(0);
    results.push_back(b.Binary(Opcode::kComplex, real, part(1)));
  }
  return results;
}

bool foreach_internal::InferUpdate(absl::Span<const Value> in, std::size_t numbers,
                                   std::size_t states, std::size_t made, Shapes& out) {
  const std::size_t lists = 2 + states - made, length = (in.size() - numbers) / lists;
  if (length == 0) return false;
  for (const DType plain :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kC64, DType::kC128}) {
    if (in[numbers].shape().dtype() != plain) continue;
    const auto add = [&](std::size_t list) {
      for (std::size_t i = 0; i < length; ++i)
        out.push_back(in[numbers + list * length + i].shape());
    };
    out.reserve(length * (1 + states));
    add(0);
    for (std::size_t state = 0; state < states; ++state) add(state < states - made ? 2 + state : 0);
    return true;
  }
  return false;
}

bool ForeachSgdOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  return foreach_internal::InferUpdate(in, CountNumbers(*this), momentum, momentum && first, out);
}
bool ForeachAdamOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  return foreach_internal::InferUpdate(in, CountNumbers(*this), amsgrad ? 3 : 2, 0, out);
}
bool ForeachRmspropOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  return foreach_internal::InferUpdate(in, CountNumbers(*this),
                                       std::size_t{1} + centered + momentum, 0, out);
}
bool ForeachAdagradOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  return foreach_internal::InferUpdate(in, CountNumbers(*this), 1, 0, out);
}

PooledVector<Op> ForeachSgdOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const std::size_t numbers = CountNumbers(*this);
  if (IsComplex(in.back().dtype())) return LowerOnReals(*this, b, in, numbers);
  if (IsRounded(in)) return LowerWide(*this, b, in);
  const Arithmetic a(b);
  const bool reads_momenta = momentum && !first;
  Operands operands(in, numbers, reads_momenta ? 3 : 2);
  const Op lr = operands.Number();
  const Op decay = weight_decay ? operands.Number() : Op();
  const Op keep = momentum ? operands.Number() : Op();
  const Op undamped = dampening ? operands.Number() : Op();
  const auto parameters = operands.List(), gradients = operands.List();
  const auto momenta = reads_momenta ? operands.List() : absl::Span<const Op>();
  Results moved, velocities;
  for (std::size_t i = 0; i < operands.length(); ++i) {
    const Op p = parameters[i];
    Op move = a.Descent(gradients[i], maximize);
    if (weight_decay) move = b.Plus(move, a.Times(p, decay));
    if (momentum) {
      Op v = move;
      if (!first) v = b.Plus(a.Times(momenta[i], keep), dampening ? a.Times(move, undamped) : move);
      velocities.push_back(v);
      move = nesterov ? b.Plus(move, a.Times(v, keep)) : v;
    }
    moved.push_back(b.Minus(p, a.Times(move, lr)));
  }
  return Concatenated({&moved, &velocities});
}

PooledVector<Op> ForeachAdamOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const std::size_t numbers = CountNumbers(*this);
  if (IsComplex(in.back().dtype())) return LowerOnReals(*this, b, in, numbers);
  if (IsRounded(in)) return LowerWide(*this, b, in);
  const Arithmetic a(b);
  Operands operands(in, numbers, amsgrad ? 5 : 4);
  const Op step_size = operands.Number(), root = operands.Number(), eps = operands.Number();
  const Op beta2 = operands.Number(), share1 = operands.Number(), share2 = operands.Number();
  const Op weight = decay == Decay::kNone ? Op() : operands.Number();
  const auto parameters = operands.List(), gradients = operands.List();
  const auto means = operands.List(), squares = operands.List();
  const auto maxima = amsgrad ? operands.List() : absl::Span<const Op>();
  Results moved, new_means, new_squares, new_maxima;
  for (std::size_t i = 0; i < operands.length(); ++i) {
    Op p = parameters[i], g = a.Descent(gradients[i], maximize);
    if (decay == Decay::kL2) g = b.Plus(g, a.Times(p, weight));
    if (decay == Decay::kDecoupled) p = a.Times(p, weight);
    const Op mean = a.Toward(means[i], g, share1);
    const Op square = a.DecayedSquares(squares[i], beta2, g, share2);
    Op largest = square;
    if (amsgrad) new_maxima.push_back(largest = b.Maximum(maxima[i], square));
    const Op spread = a.Plus(a.DividedBy(a.Sqrt(largest), root), eps);
    moved.push_back(b.Minus(p, b.DividedBy(a.Times(mean, step_size), spread)));
    new_means.push_back(mean);
    new_squares.push_back(square);
  }
  return Concatenated({&moved, &new_means, &new_squares, &new_maxima});
}

PooledVector<Op> ForeachRmspropOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const std::size_t numbers = CountNumbers(*this);
  if (IsComplex(in.back().dtype())) return LowerOnReals(*this, b, in, numbers);
  if (IsRounded(in)) return LowerWide(*this, b, in);
  const Arithmetic a(b);
  Operands operands(in, numbers, std::size_t{3} + centered + momentum);
  const Op lr = operands.Number(), alpha = operands.Number(), share = operands.Number();
  const Op eps = operands.Number();
  const Op keep = momentum ? operands.Number() : Op();
  const Op decay = weight_decay ? operands.Number() : Op();
  const auto parameters = operands.List(), gradients = operands.List(), squares = operands.List();
  const auto means = centered ? operands.List() : absl::Span<const Op>();
  const auto momenta = momentum ? operands.List() : absl::Span<const Op>();
  Results moved, new_squares, new_means, velocities;
  for (std::size_t i = 0; i < operands.length(); ++i) {
    const Op p = parameters[i];
    Op g = a.Descent(gradients[i], maximize);
    if (weight_decay) g = b.Plus(g, a.Times(p, decay));
    const Op square = a.DecayedSquares(squares[i], alpha, g, share);
    new_squares.push_back(square);
    Op variance = square;
    if (centered) {
      const Op mean = a.Toward(means[i], g, share);
      new_means.push_back(mean);
      variance = b.Minus(square, b.Times(mean, mean));
    }
    const Op spread = a.Plus(a.Sqrt(variance), eps);
    if (momentum) {
      const Op v = b.Plus(a.Times(momenta[i], keep), b.DividedBy(g, spread));
      velocities.push_back(v);
      moved.push_back(b.Minus(p, a.Times(v, lr)));
    } else {
      moved.push_back(b.Minus(p, b.DividedBy(a.Times(g, lr), spread)));
    }
  }
  return Concatenated({&moved, &new_squares, &new_means, &velocities});
}

PooledVector<Op> ForeachAdagradOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const std::size_t numbers = CountNumbers(*this);
  if (IsComplex(in.back().dtype())) return LowerOnReals(*this, b, in, numbers);
  if (IsRounded(in)) return LowerWide(*this, b, in);
  const Arithmetic a(b);
  Operands operands(in, numbers, 3);
  const Op lr = operands.Number(), eps = operands.Number();
  const Op decay = weight_decay ? operands.Number() : Op();
  const auto parameters = operands.List(), gradients = operands.List(), sums = operands.List();
  Results moved, new_sums;
  for (std::size_t i = 0; i < operands.length(); ++i) {
    Op g = a.Descent(gradients[i], maximize);
    if (weight_decay) g = b.Plus(g, a.Times(parameters[i], decay));
    const Op sum = b.Plus(sums[i], b.Times(g, g));
    const Op spread = a.Plus(a.Sqrt(sum), eps);
    moved.push_back(b.Minus(parameters[i], b.DividedBy(a.Times(g, lr), spread)));
    new_sums.push_back(sum);
  }
  return Concatenated({&moved, &new_sums});
}

// Powers of the elements, their sums and the scale are wide: the squares of gradients in f16 pass
// its range, or vanish, where the gradients do not.
PooledVector<Op> ForeachClipNormOp::Lower(Builder& b, absl::Span<const Op> in) const {
  const Arithmetic a(b);
  const bool is_complex = IsComplex(in.back().dtype());
  const Results reals = is_complex ? AsReals(b, in, 1) : Results(in.begin(), in.end());
  const Op limit = Wide(reals[0]);
  const auto tensors = absl::MakeConstSpan(reals).subspan(1);
  const Opcode join = order == 0 ? Opcode::kMaximum : Opcode::kAdd;
  const bool is_power = order != 1 && order != 0;
  Op total;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Op power;
    if (order == 2) {
      const Op x = Wide(tensors[i]);
      power = b.Times(x, x);
    } else {
      power = b.Unary(Opcode::kAbs, Wide(in[1 + i]));  // of a complex number: its size
      if (is_power) power = b.Binary(Opcode::kPower, power, b.Full(power.shape(), order));
    }
    const Op part = b.Reduce(join, power, EveryDim(power));
    total = total.valid() ? b.Binary(join, total, part) : part;
  }
  Op norm = total;
  if (order == 2)
    norm = a.Sqrt(total);
  else if (is_power)
    norm = b.Binary(Opcode::kPower, total, b.Full(total.shape(), 1 / order));
  // torch's guard against a norm of 0.
  const Op scale = b.Minimum(b.DividedBy(limit, b.Plus(norm, b.Full(norm.shape(), 1e-6))),
                             b.Full(norm.shape(), 1));
  Results results;
  for (Op x : tensors) results.push_back(b.Convert(a.Times(Wide(x), scale), x.dtype()));
  if (is_complex) results = AsComplex(b, results);
  results.push_back(b.Convert(norm, tensors[0].dtype()));
  return results;
}

}  // namespace lazuli::lazy
