#include "cpp_api/src/inplace.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "cpp_api/src/operands.h"
#include "lazuli/ops.h"
#include "lazuli/tensor.h"
#include "lazy/ops/program/to_device.h"
#include "lazy/ops/shape/strided.h"
#include "lazy/tensor/tape.h"

namespace lazuli {
namespace {

using Locs = SourceLocation;

// What an in-place op asks before anything is recorded: that the target may change, that dims
// stretch to its dims, and that its dtype holds the result.
lazy::Tensor Target(std::string_view op, const Tensor& target) {
  if (!target.defined())
    throw lazy::StatusError(ir::InvalidArgument(op, ": the tensor is undefined"));
  lazy::Tensor t = TensorAccess::Unwrap(target);
  lazy::CheckAssignable(op, t);
  return t;
}
// Whether a write to the target changes no history.
bool HasNoHistory(const lazy::Tensor& target) {
  if (!lazy::GradEnabled()) return true;
  const lazy::TensorImpl* const base = target.impl()->base();
  return !target.requires_grad() && (base == nullptr || base->autograd() == nullptr);
}

// The target of one value for all: places that are several of its elements may get it, unless that
// is part of a history.
lazy::Tensor TargetOfOne(std::string_view op, const Tensor& target) {
  const lazy::Tensor t = TensorAccess::Unwrap(target);
  const lazy::View* const view = t.defined() ? t.storage().view() : nullptr;
  if (view == nullptr || !view->IsExpanded(t.shape()) || !HasNoHistory(t))
    return Target(op, target);
  ir::Shape places = t.shape();
  for (std::int64_t d = 0; d < t.rank(); ++d) {
    if (view->strides()[static_cast<std::size_t>(d)] == 0) places.set_dim(d, 1);
  }
  return Target(op, TensorAccess::Wrap(lazy::MakeUnreadView(t, places, lazy::GeometryOf(t))));
}
void CheckStretches(std::string_view op, const ir::Shape& source, const lazy::Tensor& target) {
  bool fits = source.rank() <= target.rank();
  for (std::int64_t i = 1; fits && i <= source.rank(); ++i) {
    const std::int64_t n = source.dim(source.rank() - i);
    fits = n == 1 || n == target.dim(target.rank() - i);
  }
  if (!fits) {
    lazy::ThrowRecordError(op, ir::InvalidArgument(source, " does not broadcast to ",
                                                   target.shape(), ", which is changed in place"));
  }
}
// Only copy_() converts down.
void CheckKeepsType(std::string_view op, const lazy::Tensor& target, ir::DType result) {
  if (target.dtype() == result || ir::IsComplex(target.dtype()) ||
      (ir::IsFloat(target.dtype()) && !ir::IsComplex(result)) ||
      (ir::IsIntegral(target.dtype()) && !ir::IsFloat(result) && !ir::IsComplex(result)))
    return;
  lazy::ThrowRecordError(
      op, ir::InvalidArgument("the result ", ir::DTypeText(result), " would be cut to ",
                              target.shape(), ", which is changed in place"));
}
void CheckResult(std::string_view op, const lazy::Tensor& target,
                 const absl::StatusOr<ir::Shape>& result) {
  if (!result.ok()) lazy::ThrowRecordError(op, result.status());
  CheckStretches(op, *result, target);
  CheckKeepsType(op, target, result->dtype());
}

void CheckStaysComplex(std::string_view op, const lazy::Tensor& target, hlo::Opcode opcode) {
  if (opcode != hlo::Opcode::kAbs || !ir::IsComplex(target.dtype())) return;
  lazy::ThrowRecordError(op, ir::InvalidArgument("the result is real, the tensor ", target.shape(),
                                                 ", which is changed in place, complex"));
}

// The value, converted to target's dtype and stretched to its dims.
lazy::Tensor AsTarget(const lazy::Tensor& target, lazy::Tensor value) {
  if (value.shape() == target.shape()) return value;
  return lazy::BroadcastTo(lazy::To(value, target.dtype()), target.shape().dims());
}
// target := value.
void AssignTo(std::string_view op, const lazy::Tensor& target, const lazy::Tensor& value) {
  lazy::Assign(op, target, AsTarget(target, value));
}
// target := function(), which reads it.
template <class F>
void UpdateTo(std::string_view op, const lazy::Tensor& target, F function) {
  lazy::Update(op, target, [&] { return AsTarget(target, function()); });
}

// The target for its function to read. A history saves what it is now, which the write leaves as it
// is.
lazy::Tensor AsItWas(const lazy::Tensor& target, bool history) {
  return history && lazy::GradEnabled() ? lazy::Snapshot(target) : target;
}

// Whether the result of an op has the target's shape whatever else it is of: of floats, and of
// operands of the same dtype and dims, or numbers.
bool KeepsShape(lazy::Accepts accepts, const lazy::Tensor& target) {
  using enum lazy::Accepts;
  return ir::IsFloat(target.dtype()) &&
         (accepts == kFloat || accepts == kReal || accepts == kWhole);
}
bool KeepsShape(lazy::Accepts accepts, const lazy::Tensor& target, const ir::Shape& other) {
  return KeepsShape(accepts, target) && other.dtype() == target.dtype() &&
         (other.rank() == 0 || other.dims() == target.shape().dims());
}
// target := function(target, alpha * y).
void Scaled(std::string_view op, BinaryFunction function, const Tensor& target, const Tensor& y,
            const Scalar& alpha, const Locs& loc) {
  Call(loc, [&] {
    const lazy::Tensor t = Target(op, target), o = In(y, op, 1, "y");
    CheckStretches(op, o.shape(), t);
    const Scalar factor = FactorIn(op, Operand(target, loc), Operand(y, loc), alpha);
    // No common type is the function's error to report.
    const absl::StatusOr<ir::DType> common = lazy::CommonType(t.shape(), o.shape());
    CheckKeepsType(op, t, common.ok() ? *common : t.dtype());
    UpdateTo(op, t, [&] { return function(t, o * In(factor)); });
  });
}

}  // namespace

Tensor& InPlace(lazy::FunctionName op, Tensor& target, const Locs& loc,
                absl::FunctionRef<Tensor(const Tensor&)> function) {
  Call(loc, [&] {
    const lazy::FunctionScope scope(op);
    const lazy::Tensor t = Target(op, target);
    UpdateTo(op, t, [&] {
      lazy::Tensor value =
          TensorAccess::Unwrap(function(TensorAccess::Wrap(AsItWas(t, /*history=*/true))));
      CheckResult(op, t, value.shape());
      return value;
    });
  });
  return target;
}

Tensor& BecomeView(lazy::FunctionName op, Tensor& target, const Locs& loc,
                   absl::FunctionRef<Tensor(const Tensor&)> function) {
  Call(loc, [&] {
    const lazy::FunctionScope scope(op);
    const lazy::Tensor t = TensorAccess::Unwrap(target);
    if (!t.defined()) throw lazy::StatusError(ir::InvalidArgument(op, ": the tensor is undefined"));
    lazy::CheckNoLeaf(op, t);
    lazy::BecomeView(op, t, TensorAccess::Unwrap(function(target)));
  });
  return target;
}

namespace {
enum class Overlap { kNone, kPart, kWhole };
// Of tensors without gaps; what strides others leave is not looked at.
Overlap OverlapOf(const lazy::Tensor& x, const lazy::Tensor& y) {
  if (x.impl() == y.impl()) return Overlap::kWhole;
  const std::int64_t n = x.shape().num_elements(), m = y.shape().num_elements();
  if (n == 0 || m == 0 || &x.storage().written() != &y.storage().written()) return Overlap::kNone;
  const lazy::Geometry a = lazy::GeometryOf(x), b = lazy::GeometryOf(y);
  if (!lazy::IsContiguous(x.shape().dims(), a.strides) ||
      !lazy::IsContiguous(y.shape().dims(), b.strides))
    return Overlap::kNone;
  if (a.offset == b.offset && n == m) return Overlap::kWhole;
  return a.offset < b.offset + m && b.offset < a.offset + n ? Overlap::kPart : Overlap::kNone;
}
}  // namespace

void CheckOutApart(std::string_view op, const Tensor& out, const Tensor& operand, bool apart) {
  const Overlap overlap = OverlapOf(TensorAccess::Unwrap(out), TensorAccess::Unwrap(operand));
  if (overlap == Overlap::kNone || (overlap == Overlap::kWhole && !apart)) return;
  lazy::ThrowRecordError(
      op, ir::InvalidArgument("unsupported operation: out= and an operand share ",
                              overlap == Overlap::kPart ? "part of their" : "their", " memory"));
}

bool AssignOut(std::string_view op, const Tensor& out, const Tensor& result, bool casts) {
  const lazy::Tensor to = TensorAccess::Unwrap(out), from = TensorAccess::Unwrap(result);
  if (lazy::GradEnabled() && (to.requires_grad() || from.requires_grad())) {
    lazy::ThrowRecordError(
        op, ir::FailedPrecondition("keeps no history where out= is given, but a tensor requires a "
                                   "gradient; detach() it or use NoGrad"));
  }
  if (!(to.device() == from.device())) {
    lazy::ThrowRecordError(op, ir::InvalidArgument("out= is on ", to.device().ToString(),
                                                   ", the result on ", from.device().ToString()));
  }
  if (!casts && to.dtype() != from.dtype()) {
    lazy::ThrowRecordError(op, ir::InvalidArgument("out= must have the dtype of the result, ",
                                                   ir::DTypeText(from.dtype()), ", but has ",
                                                   ir::DTypeText(to.dtype())));
  }
  CheckKeepsType(op, to, from.dtype());
  lazy::CheckAssignable(op, to);
  if (to.shape().dims() == from.shape().dims()) {
    AssignTo(op, to, from);
    return true;
  }
  to.impl()->set_storage(lazy::Context::Current().Snapshot(lazy::To(from, to.dtype()).storage()));
  return false;
}

Tensor& BinaryInPlace(std::string_view op, const BinaryRow& row, NumberUse use, Tensor& target,
                      const Operand& y) {
  Call(y.loc(), [&] {
    const lazy::Tensor t = Target(op, target);
    const OperandHolder holder = Hold(op, 1, y, Operand(target), use);
    const lazy::Operand other = holder.get();
    const bool from_history = other.tensor() != nullptr && other.tensor()->requires_grad();
    // As pow() has it: a number is part of the program.
    const bool power = row.function == &lazy::Pow && y.scalar() != nullptr;
    if (!power && KeepsShape(use.accepts, t, other.shape()) && HasNoHistory(t) &&
        !(from_history && lazy::GradEnabled())) {
      const std::array<lazy::Operand, 2> in{lazy::Operand(t), other};
      if (row.over != nullptr && row.over(in, t)) return;
    }
    CheckStretches(op, other.shape(), t);
    CheckResult(op, t, row.infer(t.shape(), other.shape()));
    const bool history = t.requires_grad() || from_history;
    const bool itself = other.tensor() != nullptr && other.tensor()->impl() == t.impl();
    UpdateTo(op, t, [&] {
      const lazy::Tensor x = AsItWas(t, history);
      return power ? lazy::PowNumber(x, TensorAccess::ToNumber(*y.scalar()))
                   : row.function(x, itself ? lazy::Operand(x) : other);
    });
  });
  return target;
}

// --- from the rows of lazy/ops
#define LAZULI_UNARY(struct_name, function, public_name, opcode, accepts, ...) \
  Tensor& Tensor::public_name##_(SourceLocation loc) {                         \
    Call(loc, [&] {                                                            \
      const lazy::Tensor t = Target(#public_name "_", *this);                  \
      const lazy::Operand in(t);                                               \
      if (KeepsShape(lazy::Accepts::accepts, t) && HasNoHistory(t) &&          \
          lazy::RecordOver(lazy::struct_name{}, {&in, 1}, t))                  \
        return;                                                                \
      CheckResult(#public_name "_", t, lazy::struct_name{}.Infer(t.shape()));  \
      CheckStaysComplex(#public_name "_", t, hlo::Opcode::opcode);             \
      UpdateTo(#public_name "_", t,                                            \
               [&] { return lazy::function(AsItWas(t, t.requires_grad())); }); \
    });                                                                        \
    return *this;                                                              \
  }
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, ...)                  \
  Tensor& Tensor::public_name##_(const Operand& y) {                                             \
    return BinaryInPlace<lazy::struct_name>(#public_name "_", lazy::function, *this, y,          \
                                            UseOf(lazy::Accepts::accepts, hlo::Opcode::opcode)); \
  }
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, public_name, ...)                              \
  Tensor& Tensor::public_name##_(const Operand& y) {                                         \
    return BinaryInPlace<lazy::struct_name>(#public_name "_", lazy::function, *this, y,      \
                                            {lazy::Accepts::kReal, lazy::Overflow::kRefuse}, \
                                            /*same_dtype=*/false);                           \
  }
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE

Tensor& Tensor::add_(const Operand& y, const Scalar& alpha) {
  if (y.tensor() == nullptr)
    return add_(Operand(Product(*y.scalar(), FactorIn("add_", *this, y, alpha)), y.loc()));
  Scaled("add_", lazy::Add, *this, *y.tensor(), alpha, y.loc());
  return *this;
}
Tensor& Tensor::sub_(const Operand& y, const Scalar& alpha) {
  if (y.tensor() == nullptr)
    return sub_(Operand(Product(*y.scalar(), FactorIn("sub_", *this, y, alpha)), y.loc()));
  Scaled("sub_", lazy::Sub, *this, *y.tensor(), alpha, y.loc());
  return *this;
}

Tensor& Tensor::t_(Locs loc) {
  return BecomeView("t_", *this, loc, [](const Tensor& x) { return x.t(); });
}

Tensor& Tensor::detach_(Locs loc) {
  Call(loc, [&] {
    const Borrowed x = In(*this, "detach_");
    lazy::TensorImpl& impl = *x.get().impl();
    if (impl.base() != nullptr) {
      lazy::ThrowRecordError("detach_",
                             ir::FailedPrecondition("a view has the history of what it is a view "
                                                    "of; use detach()"));
    }
    if (lazy::AutogradMeta* meta = impl.autograd()) {
      meta->grad_fn = nullptr;
      meta->output = 0;
      meta->requires_grad = meta->retains_grad = false;
    }
  });
  return *this;
}

// --- filled
Tensor& Tensor::fill_diagonal_(const Scalar& value, bool wrap, Locs loc) {
  Call(loc, [&] {
    constexpr char kOp[] = "fill_diagonal_";
    const Borrowed borrowed = In(*this, kOp);
    const ir::Shape& x = borrowed.get().shape();
    if (x.rank() < 2)
      lazy::ThrowRecordError(kOp, ir::InvalidArgument("takes two dims or more, not ", x));
    const auto [least, largest] = std::minmax_element(x.dims().begin(), x.dims().end());
    if (x.rank() > 2 && *least != *largest)
      lazy::ThrowRecordError(kOp, ir::InvalidArgument("more than two dims must be equal, are ", x));
    const lazy::Geometry memory = lazy::GeometryOf(borrowed);
    const std::int64_t step =
        std::accumulate(memory.strides.begin(), memory.strides.end(), std::int64_t{0});
    // Of a matrix the rows that hold one diagonal, and the gap after them.
    const std::int64_t rows = x.dim(0), block = x.dim(1) + 1;
    for (std::int64_t row = 0; row < rows; row += block) {
      const std::int64_t count = std::min(rows - row, *least);
      as_strided({count}, {step}, memory.offset + row * memory.strides[0], loc).fill_(value, loc);
      if (!wrap || x.rank() > 2) break;
    }
  });
  return *this;
}

Tensor& Tensor::copy_(const Tensor& source, Locs loc) {
  Call(loc, [&] {
    const lazy::Tensor target = Target("copy_", *this);
    lazy::Tensor value = In(source, "copy_", 1, "source");
    CheckStretches("copy_", value.shape(), target);
    if (!(value.device() == target.device())) value = lazy::ToDevice(value, target.device());
    AssignTo("copy_", target, value);
  });
  return *this;
}
Tensor& Tensor::fill_(const Scalar& value, Locs loc) {
  Call(loc, [&] {
    const lazy::Tensor t = TargetOfOne("fill_", *this);
    AssignTo("fill_", t, lazy::Full(t.shape().dims(), In(value).AsElement(t.dtype()), t.device()));
  });
  return *this;
}
Tensor& Tensor::fill_(const Tensor& value, Locs loc) {
  Call(loc, [&] {
    const lazy::Tensor number = In(value, "fill_", 1, "value");
    if (number.rank() != 0) {
      lazy::ThrowRecordError(
          "fill_",
          ir::FailedPrecondition("takes a number or a tensor of rank 0, not ", number.shape()));
    }
    copy_(value, loc);
  });
  return *this;
}
Tensor& Tensor::zero_(Locs loc) {
  Call(loc, [&] {
    const lazy::Tensor t = TargetOfOne("zero_", *this);
    AssignTo("zero_", t, lazy::FullConstant(t.shape(), 0, t.device()));
  });
  return *this;
}

}  // namespace lazuli
