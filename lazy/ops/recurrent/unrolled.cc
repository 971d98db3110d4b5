// The gradient of a recurrent layer by recorded ops, so that it has gradients itself.
#include "lazy/ops/recurrent/operands.h"
#include "lazy/ops/recurrent/tensor_algebra.h"

namespace lazuli::lazy {
namespace {

void AddTo(Tensor& sum, const Tensor& x) { sum = sum.defined() ? sum + x : x; }

class Unrolled {
 public:
  Unrolled(const RecurrentOp& op, const RecurrentOperands<Tensor>& in)
      : op_(op), in_(in), steps_(in.sums.dim(0)), size_(in.sums.dim(2) / Gates(op.cell)) {}

  // The gradients for the operands, in their order.
  Tensors Gradients(absl::Span<const Tensor> dys) {
    CellValues<Tensor> states{in_.hidden};
    if (in_.cell.defined()) states.push_back(in_.cell);
    for (int64_t i = 0; i < steps_; ++i) states = Forward(Step(i), states);

    CellValues<Tensor> grads;
    for (std::size_t i = 0; i < states.size(); ++i)
      grads.push_back(dys[i + 1].defined() ? dys[i + 1] : Zeros(states[i]));
    for (int64_t i = steps_ - 1; i >= 0; --i) {
      if (dys[0].defined()) grads[0] = grads[0] + Where(Select(dys[0], 0, Step(i)), Step(i));
      grads = Backward(Step(i), grads);
    }
    Tensors result{Stack(sums_, 0), weight_, grads[0]};
    if (in_.cell.defined()) result.push_back(grads[1]);
    if (in_.bias.defined()) result.push_back(bias_);
    if (op_.projected) result.push_back(projection_);
    if (op_.masked) result.emplace_back();
    return result;
  }

 private:
  struct Kept {
    CellValues<Tensor> cell;
    Tensor hidden_before, unprojected;
  };

  int64_t Step(int64_t i) const { return op_.reverse ? steps_ - 1 - i : i; }
  static Tensor Zeros(const Tensor& like) { return FullConstant(like.shape(), 0, like.device()); }
  // x where the sequences go on, else other, or 0.
  Tensor Where(const Tensor& x, int64_t step, const Tensor& other = Tensor()) const {
    if (!op_.masked) return x;
    const Tensor on =
        Unsqueeze(Gt(in_.lengths, Constant(static_cast<double>(step), in_.lengths.dtype())), 1);
    if (other.defined()) return lazy::Where(on, x, other);
    return lazy::Where(on, x, Constant(0, x.dtype()));
  }

  CellValues<Tensor> Forward(int64_t step, const CellValues<Tensor>& before) {
    const Tensor sums = Select(in_.sums, 0, step);
    Tensor from_hidden = Linear(before[0], in_.weight, Tensor());
    if (in_.bias.defined())
      from_hidden = from_hidden + Cat(Tensors{Zeros(in_.bias), Zeros(in_.bias), in_.bias}, 0);
    CellStep<Tensor> now = StepOfSums(op_.cell, sums, from_hidden, before);
    kept_.push_back({now.kept, before[0], now.states[0]});
    if (op_.projected) now.states[0] = Linear(now.states[0], in_.projection, Tensor());
    for (std::size_t i = 0; i < before.size(); ++i)
      now.states[i] = Where(now.states[i], step, before[i]);
    return now.states;
  }

  CellValues<Tensor> Backward(int64_t step, const CellValues<Tensor>& after) {
    const Kept kept = std::move(kept_.back());
    kept_.pop_back();
    CellValues<Tensor> grads;
    for (const Tensor& grad : after) grads.push_back(Where(grad, step));
    if (op_.projected) {
      AddTo(projection_, Matmul(Transpose(grads[0], 0, 1), kept.unprojected));
      grads[0] = Matmul(grads[0], in_.projection);
    }
    CellGradient<Tensor> now = GradientOf<TensorAlgebra, Tensor>({}, op_.cell, kept.cell, grads);
    const Tensor from_hidden = Cat(now.hidden, 1);
    sums_.insert(op_.reverse ? sums_.end() : sums_.begin(), Cat(now.input, 1));
    AddTo(weight_, Matmul(Transpose(from_hidden, 0, 1), kept.hidden_before));
    if (in_.bias.defined()) AddTo(bias_, Sum(now.hidden[2], {0}));
    AddTo(now.states[0], Matmul(from_hidden, in_.weight));
    for (std::size_t i = 0; i < after.size(); ++i)
      now.states[i] = Where(now.states[i], step, after[i]);
    return now.states;
  }

  const RecurrentOp& op_;
  const RecurrentOperands<Tensor>& in_;
  int64_t steps_, size_;
  std::vector<Kept> kept_;
  Tensors sums_;
  Tensor weight_, bias_, projection_;
};

}  // namespace

Tensors UnrolledGradient(const RecurrentOp& op, const Saved& s, absl::Span<const Tensor> dys) {
  Tensors operands;
  for (std::size_t i = 0; i < s.size(); ++i) operands.push_back(s.x(i));
  const RecurrentOperands<Tensor> in(op, operands);
  return Unrolled(op, in).Gradients(dys);
}

}  // namespace lazuli::lazy
