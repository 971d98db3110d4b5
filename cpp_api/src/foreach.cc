#include "lazuli/foreach.h"

#include <cmath>
#include <memory>
#include <string_view>

#include "cpp_api/src/operands.h"
#include "ir/support/pool.h"
#include "lazy/ops/core/accepts.h"
#include "lazy/ops/optim/foreach.h"
#include "lazy/tensor/watch.h"

namespace lazuli {
namespace {

using Locs = SourceLocation;

// The operands of an update: numbers, then lists.
class Update {
 public:
  using Tensors = absl::Span<const lazy::Tensor>;

  Update(std::string_view op, const TensorList& parameters)
      : op_(op), parameters_(In(parameters, op)) {
    if (parameters.empty())
      lazy::ThrowRecordError(op_, ir::InvalidArgument("there are no tensors"));
  }
  void Number(const Scalar& number) {
    const lazy::Tensor& first = parameters_.get()[0];
    numbers_.push_back(lazy::IsNarrow(first.dtype()) ? In(number).As(ir::DType::kF32)
                                                     : In(number).Beside(first));
  }
  bool Number(const std::optional<Scalar>& number) {
    if (number) Number(*number);
    return number.has_value();
  }
  // A list, whose elements become results in place if it is a target.
  void List(std::string_view what, const TensorList& list, bool target) {
    const Tensors tensors = OfAnyDims(what, list, target), parameters = parameters_;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].shape() == parameters[i].shape() &&
          tensors[i].dtype() == parameters[0].dtype())
        continue;
      lazy::ThrowRecordError(
          op_, ir::InvalidArgument(what, " ", i, " is ", tensors[i].shape(), ", its parameter ",
                                   parameters[i].shape(), " and the first one ",
                                   parameters[0].shape(), ": dims and dtypes must agree"));
    }
  }
  // The same for Adafactor's variances of rows or columns: `dim`, from the end, has size 1.
  void Variances(const TensorList& list, std::size_t dim) {
    const Tensors tensors = OfAnyDims("state", list, /*target=*/true), parameters = parameters_;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const ir::Shape& of = parameters[i].shape();
      ir::Dims dims(of.dims().begin(), of.dims().end());
      dims[dims.size() - dim] = 1;
      if (const ir::Shape wanted(of.dtype(), dims); !(tensors[i].shape() == wanted)) {
        lazy::ThrowRecordError(op_, ir::InvalidArgument("state ", i, " is ", tensors[i].shape(),
                                                        " and must be ", wanted));
      }
    }
  }
  // A list of tensors that may have other dims than their parameters; its elements, until the next
  // list.
  Tensors OfAnyDims(std::string_view what, const TensorList& list, bool target) {
    const std::size_t before = tensors_.get().size(), count = parameters_.get().size();
    if (list.size() != count) {
      lazy::ThrowRecordError(op_, ir::InvalidArgument("there are ", list.size(), " ", what, " for ",
                                                      count, " parameters"));
    }
    tensors_.reserve(count);
    if (target) targets_.reserve(count);
    for (const Tensor& tensor : list) {
      const Borrowed borrowed = In(tensor, op_);
      tensors_.push_back(borrowed);
      if (target) targets_.push_back(borrowed);
    }
    return Tensors(tensors_).subspan(before);
  }
  template <class Op>
  lazy::Tensors Record(Op op) {
    const lazy::GradModeGuard no_grad(false);
    if (lazy::NumbersOnly* const only = lazy::NumbersOnly::Current()) [[unlikely]]
      return TakeNumbers(op, *only);
    if (lazy::Watch* const watch = lazy::Watch::Current()) [[unlikely]]
      watch->Numbers(numbers_, HashOf(op));
    ir::PooledVector<lazy::Operand> in(numbers_.begin(), numbers_.end());
    in.insert(in.end(), tensors_.get().begin(), tensors_.get().end());
    return lazy::RecordInto(op, in, targets_);
  }

 private:
  template <class Op>
  static uint64_t HashOf(const Op& op) {
    ir::KeyWriter key;
    key.Text(Op::kName);
    op.VisitAttrs([&](std::string_view, const auto& value) { key.Append(value); });
    return key.Hash();
  }
  // Of an update that is replayed: nothing is recorded.
  template <class Op>
  lazy::Tensors TakeNumbers(const Op& op, lazy::NumbersOnly& only) const {
    only.Mix(HashOf(op));
    for (const ir::Value& number : numbers_) {
      const bool is_cell = number.node->kind() == ir::NodeKind::kScalar;
      only.Mix(is_cell ? 1 : 0);
      if (is_cell) only.Add(static_cast<const lazy::ScalarNode&>(*number.node).cell());
    }
    return {};
  }

  std::string_view op_;
  BorrowedList parameters_, tensors_, targets_;  // tensors_: of all lists, in order
  ir::PooledVector<ir::Value> numbers_;
};

}  // namespace

class ForeachTransaction::Deferred : public lazy::DeferredWrites, public ir::Pooled {};

ForeachTransaction::ForeachTransaction() : deferred_(std::make_unique<Deferred>()) {}
ForeachTransaction::~ForeachTransaction() = default;
void ForeachTransaction::commit() { deferred_->Commit(); }

void foreach_sgd_(const TensorList& parameters, const TensorList& gradients, TensorList& momenta,
                  const SgdStep& step, Locs loc) {
  Call(loc, [&] {
    Update update("foreach_sgd", parameters);
    lazy::ForeachSgdOp op{};
    op.nesterov = step.nesterov;
    op.maximize = step.maximize;
    update.Number(step.lr);
    op.weight_decay = update.Number(step.weight_decay);
    op.momentum = update.Number(step.momentum);
    op.dampening = update.Number(step.undamped);
    op.first = op.momentum && (momenta.empty() || !momenta[0].defined());
    update.List("parameter", parameters, /*target=*/true);
    update.List("gradient", gradients, /*target=*/false);
    if (op.momentum && !op.first) update.List("momentum", momenta, /*target=*/true);
    const lazy::Tensors made = update.Record(op);
    if (!op.first) return;
    momenta.clear();
    for (const lazy::Tensor& v : made) momenta.push_back(TensorAccess::Wrap(v));
  });
}

void foreach_adam_(const TensorList& parameters, const TensorList& gradients,
                   const TensorList& means, const TensorList& squares, const TensorList& maxima,
                   const AdamStep& step, Locs loc) {
  Call(loc, [&] {
    Update update("foreach_adam", parameters);
    for (const Scalar* number :
         {&step.step_size, &step.root, &step.eps, &step.beta2, &step.share1, &step.share2})
      update.Number(*number);
    lazy::ForeachAdamOp op{};
    op.amsgrad = !maxima.empty();
    op.maximize = step.maximize;
    if (update.Number(step.weight_decay))
      op.decay = lazy::Decay::kL2;
    else if (update.Number(step.shrink))
      op.decay = lazy::Decay::kDecoupled;
    update.List("parameter", parameters, /*target=*/true);
    update.List("gradient", gradients, /*target=*/false);
    update.List("mean", means, /*target=*/true);
    update.List("square", squares, /*target=*/true);
    if (op.amsgrad) update.List("maximum", maxima, /*target=*/true);
    update.Record(op);
  });
}

void foreach_rmsprop_(const TensorList& parameters, const TensorList& gradients,
                      const TensorList& squares, const TensorList& means, const TensorList& momenta,
                      const RmspropStep& step, Locs loc) {
  Call(loc, [&] {
    Update update("foreach_rmsprop", parameters);
    for (const Scalar* number : {&step.lr, &step.alpha, &step.share, &step.eps})
      update.Number(*number);
    lazy::ForeachRmspropOp op{};
    op.momentum = update.Number(step.momentum);
    op.weight_decay = update.Number(step.weight_decay);
    op.centered = !means.empty();
    op.maximize = step.maximize;
    update.List("parameter", parameters, /*target=*/true);
    update.List("gradient", gradients, /*target=*/false);
    update.List("square", squares, /*target=*/true);
    if (op.centered) update.List("mean", means, /*target=*/true);
    if (op.momentum) update.List("momentum", momenta, /*target=*/true);
    update.Record(op);
  });
}

void foreach_adagrad_(const TensorList& parameters, const TensorList& gradients,
                      const TensorList& sums, const AdagradStep& step, Locs loc) {
  Call(loc, [&] {
    Update update("foreach_adagrad", parameters);
    update.Number(step.lr);
    update.Number(step.eps);
    lazy::ForeachAdagradOp op{};
    op.maximize = step.maximize;
    op.weight_decay = update.Number(step.weight_decay);
    update.List("parameter", parameters, /*target=*/true);
    update.List("gradient", gradients, /*target=*/false);
    update.List("sum", sums, /*target=*/true);
    update.Record(op);
  });
}

void foreach_update_(const TensorList& parameters, const TensorList& gradients,
                     const std::vector<TensorList>& states, const UpdateStep& step, Locs loc) {
  Call(loc, [&] {
    Update update("foreach_update", parameters);
    lazy::ForeachUpdateOp op{};
    op.rule = static_cast<lazy::UpdateRule>(step.rule);
    op.maximize = step.maximize;
    const auto numbers = static_cast<std::size_t>(lazy::NumbersOf(op.rule));
    const auto lists = static_cast<std::size_t>(lazy::StatesOf(op.rule));
    if (step.numbers.size() != numbers || states.size() != lists) {
      lazy::ThrowRecordError(
          "foreach_update",
          ir::InvalidArgument("the rule takes ", numbers, " numbers and ", lists, " states, not ",
                              step.numbers.size(), " and ", states.size()));
    }
    for (const Scalar& number : step.numbers) update.Number(number);
    if (update.Number(step.weight_decay))
      op.decay = lazy::Decay::kL2;
    else if (update.Number(step.shrink))
      op.decay = lazy::Decay::kDecoupled;
    update.List("parameter", parameters, /*target=*/true);
    update.List("gradient", gradients, /*target=*/false);
    if (op.rule == lazy::UpdateRule::kAdafactorMatrix) {
      update.Variances(states[0], 1);
      update.Variances(states[1], 2);
    } else {
      for (const TensorList& state : states) update.List("state", state, /*target=*/true);
    }
    update.Record(op);
  });
}

Tensor foreach_clip_norm_(const TensorList& tensors, const Scalar& max_norm, double order,
                          Locs loc) {
  return CallTensor(loc, [&] {
    if (!(order > 0)) {
      lazy::ThrowRecordError(
          "foreach_clip_norm",
          ir::InvalidArgument("the order of the norm must be above 0, is ", order));
    }
    Update update("foreach_clip_norm", tensors);
    update.Number(max_norm);
    update.List("tensor", tensors, /*target=*/true);
    if (lazy::NumbersOnly::Current() != nullptr)
      lazy::ThrowRecordError("foreach_clip_norm",
                             ir::Internal("only an optimiser's update is replayed"));
    return update.Record(lazy::ForeachClipNormOp{std::isinf(order) ? 0 : order})[0];
  });
}

}  // namespace lazuli
