// One step of a recurrent layer: the formulas of its cell, forward and backward.
//
// They are written once, over an algebra A of values V: as HLO inside a loop over time (recurrent.cc)
// and as recorded ops, step by step, where the gradient must be differentiable (unrolled.cc).
//
//   A a;  a.Plus(x, y)  a.Minus(x, y)  a.Times(x, y)  a.Sigmoid(x)  a.Tanh(x)
//         a.Relu(x)  a.WherePositive(x, y)  a.OneMinus(x)
//
// PyTorch orders the gates of a weight's rows: input, forget, new, output (LSTM, Hochreiter and
// Schmidhuber, 1997); reset, update, new (GRU, Cho et al., 2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace lazuli::lazy {

enum class Cell : uint8_t { kRnnTanh, kRnnRelu, kLstm, kGru };

struct CellFacts {
  std::string_view name;
  std::size_t gates, states;
  std::size_t kept;  // arrays per step that the backward formulas read
};
inline constexpr CellFacts kCells[] = {
    {"rnn_tanh", 1, 1, 1}, {"rnn_relu", 1, 1, 1}, {"lstm", 4, 2, 5}, {"gru", 3, 1, 5}};
constexpr const CellFacts& Facts(Cell cell) { return kCells[static_cast<std::size_t>(cell)]; }
// The arrays [T, B, H] that the gradient of all steps reads: the hidden states before their projection,
// too.
constexpr std::size_t KeptArrays(Cell cell, bool projected) {
  return Facts(cell).kept + (projected ? 1 : 0);
}
constexpr int64_t Gates(Cell cell) { return static_cast<int64_t>(Facts(cell).gates); }

template <class V>
using CellValues = absl::InlinedVector<V, 6>;

// What a step makes: its states (hidden, and the cell of an LSTM), and what its gradient reads.
template <class V>
struct CellStep {
  CellValues<V> states, kept;
};

// The gradients of a step: for the sums of the gates that come from the input and from the hidden
// state, and for the states before the step without the part that goes through the gates (undefined: 0).
template <class V>
struct CellGradient {
  CellValues<V> input, hidden, states;
};

// The gradient for x from that for y = sigmoid(x), or y = tanh(x).
template <class A, class V>
V AtSigmoid(const A& a, const V& dy, const V& y) {
  return a.Times(a.Times(dy, y), a.OneMinus(y));
}
template <class A, class V>
V AtTanh(const A& a, const V& dy, const V& y) {
  return a.Times(dy, a.OneMinus(a.Times(y, y)));
}

// x and h: the sums per gate that come from the input and from the hidden state.
template <class A, class V>
CellStep<V> LstmStep(const A& a, absl::Span<const V> x, absl::Span<const V> h, const V& cell) {
  const auto sum = [&](std::size_t gate) { return a.Plus(x[gate], h[gate]); };
  const V in = a.Sigmoid(sum(0)), forget = a.Sigmoid(sum(1));
  const V fresh = a.Tanh(sum(2)), out = a.Sigmoid(sum(3));
  const V next = a.Plus(a.Times(forget, cell), a.Times(in, fresh));
  const V hidden = a.Times(out, a.Tanh(next));
  return {{hidden, next}, {in, forget, fresh, out, cell}};
}

template <class A, class V>
CellGradient<V> LstmGradient(const A& a, absl::Span<const V> kept, absl::Span<const V> grads) {
  const V &in = kept[0], &forget = kept[1], &fresh = kept[2], &out = kept[3], &cell = kept[4];
  const V bent = a.Tanh(a.Plus(a.Times(forget, cell), a.Times(in, fresh)));
  const V next = a.Plus(grads[1], AtTanh<A, V>(a, a.Times(grads[0], out), bent));
  const CellValues<V> sums{
      AtSigmoid<A, V>(a, a.Times(next, fresh), in), AtSigmoid<A, V>(a, a.Times(next, cell), forget),
      AtTanh<A, V>(a, a.Times(next, in), fresh), AtSigmoid<A, V>(a, a.Times(grads[0], bent), out)};
  return {sums, sums, {V(), a.Times(next, forget)}};
}

template <class A, class V>
CellStep<V> GruStep(const A& a, absl::Span<const V> x, absl::Span<const V> h, const V& hidden) {
  const V reset = a.Sigmoid(a.Plus(x[0], h[0])), update = a.Sigmoid(a.Plus(x[1], h[1]));
  const V fresh = a.Tanh(a.Plus(x[2], a.Times(reset, h[2])));
  const V next = a.Plus(fresh, a.Times(update, a.Minus(hidden, fresh)));
  return {{next}, {reset, update, fresh, h[2], hidden}};
}

template <class A, class V>
CellGradient<V> GruGradient(const A& a, absl::Span<const V> kept, absl::Span<const V> grads) {
  const V &reset = kept[0], &update = kept[1], &fresh = kept[2], &sum = kept[3], &hidden = kept[4];
  const V at_fresh = AtTanh<A, V>(a, a.Times(grads[0], a.OneMinus(update)), fresh);
  const V at_update = AtSigmoid<A, V>(a, a.Times(grads[0], a.Minus(hidden, fresh)), update);
  const V at_reset = AtSigmoid<A, V>(a, a.Times(at_fresh, sum), reset);
  return {{at_reset, at_update, at_fresh},
          {at_reset, at_update, a.Times(at_fresh, reset)},
          {a.Times(grads[0], update)}};
}

template <class A, class V>
CellStep<V> RnnStep(const A& a, Cell cell, const V& x, const V& h) {
  const V sum = a.Plus(x, h);
  const V hidden = cell == Cell::kRnnTanh ? a.Tanh(sum) : a.Relu(sum);
  return {{hidden}, {hidden}};
}

template <class A, class V>
CellGradient<V> RnnGradient(const A& a, Cell cell, const V& hidden, const V& grad) {
  const V sum =
      cell == Cell::kRnnTanh ? AtTanh<A, V>(a, grad, hidden) : a.WherePositive(hidden, grad);
  return {{sum}, {sum}, {V()}};
}

template <class A, class V>
CellStep<V> StepOf(const A& a, Cell cell, absl::Span<const V> x, absl::Span<const V> h,
                   absl::Span<const V> states) {
  switch (cell) {
    case Cell::kLstm:
      return LstmStep(a, x, h, states[1]);
    case Cell::kGru:
      return GruStep(a, x, h, states[0]);
    default:
      return RnnStep(a, cell, x[0], h[0]);
  }
}

// `kept` is that of the step, `grads` are the gradients for its states.
template <class A, class V>
CellGradient<V> GradientOf(const A& a, Cell cell, absl::Span<const V> kept,
                           absl::Span<const V> grads) {
  switch (cell) {
    case Cell::kLstm:
      return LstmGradient(a, kept, grads);
    case Cell::kGru:
      return GruGradient(a, kept, grads);
    default:
      return RnnGradient(a, cell, kept[0], grads[0]);
  }
}

}  // namespace lazuli::lazy
