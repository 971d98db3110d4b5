#include "lazuli/ops.h"

#include "cpp_api/src/autocast.h"
#include "cpp_api/src/inplace.h"
#include "cpp_api/src/operands.h"
#include "ir/support/wrong_type.h"
#include "lazuli/linalg.h"
#include "lazuli/special.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/tensor/random.h"

namespace lazuli {
namespace {

using Locs = SourceLocation;

template <class F>
Tensor OfOperands(std::string_view op, const Operand& x, const Operand& y, F f) {
  // The line of a mixed expression is where its tensor stands.
  return CallTensor(x.tensor() != nullptr ? x.loc() : y.loc(), [&] {
    if (x.tensor() == nullptr && y.tensor() == nullptr) {
      lazy::ThrowRecordError(op, ir::WrongType("takes at least one tensor, not two numbers"));
    }
    return f();
  });
}

// Arithmetic is of two numbers, too; the result is a tensor.
bool TakesTwoNumbers(std::string_view op) {
  return op == "add" || op == "sub" || op == "mul" || op == "div" || op == "floor_divide";
}

// Whether x is of integers that a number may be too large for.
bool IsNarrowInteger(const Operand& x) {
  if (x.tensor() == nullptr || !x.tensor()->defined()) return false;
  const ir::DType dtype = Unwrap(x.tensor()->dtype());
  return ir::IsIntegral(dtype) && ir::Row(dtype).bits < 64;
}
bool IsInteger(const Operand& x) {
  return x.scalar() != nullptr && TensorAccess::ToNumber(*x.scalar()).is_integer();
}

// Whether the number was taken in f32 beside a tensor of floats of 16 bits and rank 0, which says
// the dtype all the same.
bool IsUnroundedBesideRankZero(NumberUse use, const Operand& x, const Operand& y) {
  if (!use.unrounded || (x.tensor() == nullptr) == (y.tensor() == nullptr)) return false;
  if ((x.tensor() != nullptr ? y : x).scalar()->is_complex()) return false;
  const Tensor& tensor = x.tensor() != nullptr ? *x.tensor() : *y.tensor();
  return lazy::IsNarrow(Unwrap(tensor.dtype())) && tensor.dim() == 0;
}

}  // namespace

Tensor Binary(std::string_view op, BinaryFunction f, NumberUse use, const Operand& x,
              const Operand& y) {
  if (x.tensor() == nullptr && y.tensor() == nullptr && TakesTwoNumbers(op))
    return Binary(op, f, use, Operand(full({}, *x.scalar()), x.loc()), y);
  return OfOperands(op, x, y, [&] {
    // The exponent of a tensor is part of the program where it is a number.
    if (f == &lazy::Pow && x.tensor() != nullptr && y.scalar() != nullptr)
      return lazy::PowNumber(In(*x.tensor(), op), TensorAccess::ToNumber(*y.scalar()));
    const OperandHolder l = Hold(op, 0, x, y, use), r = Hold(op, 1, y, x, use);
    if (IsUnroundedBesideRankZero(use, x, y)) [[unlikely]]
      return lazy::To(f(l.get(), r.get()),
                      Unwrap((x.tensor() != nullptr ? x : y).tensor()->dtype()));
    return f(l.get(), r.get());
  });
}

namespace {
// Integers and a whole number are compared as such, also where the dtype does not hold the number.
Tensor Compare(std::string_view op, BinaryFunction f, const Operand& x, const Operand& y) {
  constexpr NumberUse kExact{lazy::Accepts::kReal, lazy::Overflow::kRefuseAny};
  if (!(IsNarrowInteger(x) && IsInteger(y)) && !(IsInteger(x) && IsNarrowInteger(y)))
    return Binary(op, f, kExact, x, y);
  return OfOperands(op, x, y, [&] {
    const auto number = [](const Operand& o) {
      return TensorAccess::OperandSlot(o, ir::DType::kS64, lazy::Overflow::kRefuseAny);
    };
    const auto tensor = [&](const Operand& o) {
      return lazy::To(In(*o.tensor(), op), ir::DType::kS64);
    };
    return x.tensor() != nullptr ? f(tensor(x), number(y)) : f(number(x), tensor(y));
  });
}

}  // namespace

// --- from the rows of lazy/ops
#define LAZULI_UNARY(struct_name, function, public_name, ...)                    \
  Tensor public_name(const Tensor& x, SourceLocation loc) {                      \
    return CallTensor(loc, [&] { return lazy::function(In(x, #public_name)); }); \
  }
#include "lazy/ops/functions/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, ...) \
  Tensor public_name(const Operand& x, const Operand& y) {                      \
    return Binary(#public_name, lazy::function,                                 \
                  UseOf(lazy::Accepts::accepts, hlo::Opcode::opcode), x, y);    \
  }
#include "lazy/ops/functions/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, public_name, ...) \
  Tensor public_name(const Operand& x, const Operand& y) {      \
    return Compare(#public_name, lazy::function, x, y);         \
  }
#include "lazy/ops/functions/compare.def"
#undef LAZULI_COMPARE

// --- those whose operands have rules of their own
Tensor pow(const Tensor& x, const Scalar& exponent, Locs loc) {
  return CallTensor(
      loc, [&] { return lazy::PowNumber(In(x, "pow"), TensorAccess::ToNumber(exponent)); });
}
namespace {

// The dtype of a sum of x and y; that of y where they have none, which the sum itself reports.
ir::DType SumType(std::string_view op, const Operand& x, const Operand& y) {
  if (x.tensor() == nullptr && y.tensor() == nullptr) return ir::DType::kF32;
  if (x.tensor() == nullptr) return SumType(op, y, x);
  const lazy::Tensor first = In(*x.tensor(), op);
  if (y.tensor() == nullptr) return TensorAccess::ToNumber(*y.scalar()).TypeBeside(first.dtype());
  const lazy::Tensor second = In(*y.tensor(), op, 1);
  return lazy::CommonType(first.shape(), second.shape()).value_or(second.dtype());
}

// add or sub of x and alpha * y.
Tensor Scaled(std::string_view op, Tensor (*sum)(const Operand&, const Operand&), const Operand& x,
              const Operand& y, const Scalar& alpha) {
  const Scalar factor = FactorIn(op, x, y, alpha);
  if (y.tensor() == nullptr) return sum(x, Operand(Product(*y.scalar(), factor), y.loc()));
  // A difference refuses pred, also where a factor would make it an integer.
  if (op != "add" && y.tensor()->dtype() == kBool) return sum(x, y);
  return sum(x, mul(y, Operand(factor, y.loc())));
}

}  // namespace

Scalar FactorIn(std::string_view op, const Operand& x, const Operand& y, const Scalar& alpha) {
  ir::DType sum;
  Call(y.loc(), [&] {
    sum = SumType(op, x, y);
    const absl::Status right = lazy::CheckAlpha(TensorAccess::ToNumber(alpha), sum);
    if (!right.ok()) lazy::ThrowRecordError(op, right);
  });
  return sum == ir::DType::kPred ? Scalar(alpha.value() != 0) : alpha;
}
Scalar Product(const Scalar& x, const Scalar& y) {
  const lazy::Number a = TensorAccess::ToNumber(x), b = TensorAccess::ToNumber(y);
  if (a.is_complex() || b.is_complex()) return a.as_complex() * b.as_complex();
  const double product = a.as_double() * b.as_double();
  if (a.is_bool() && b.is_bool()) return product != 0;
  return a.is_whole() && b.is_whole() ? Scalar(static_cast<std::int64_t>(product))
                                      : Scalar(product);
}

Tensor add(const Operand& x, const Operand& y, const Scalar& alpha) {
  return Scaled("add", add, x, y, alpha);
}
Tensor sub(const Operand& x, const Operand& y, const Scalar& alpha) {
  return Scaled("sub", sub, x, y, alpha);
}
Tensor rsub(const Tensor& x, const Operand& y, const Scalar& alpha) {
  return Scaled("rsub", sub, y, Operand(x, y.loc()), alpha);
}
Tensor div(const Operand& x, const Operand& y, const std::optional<std::string>& rounding_mode) {
  if (!rounding_mode) return div(x, y);
  if (*rounding_mode == "floor") return floor_divide(x, y);
  return CallTensor(y.loc(), [&] {
    if (*rounding_mode != "trunc") {
      lazy::ThrowRecordError(
          "div", ir::InvalidArgument("rounding_mode must be trunc or floor, is ", *rounding_mode));
    }
    // Of integers the quotient without the remainder, which is exact.
    const auto is_float = [](const Operand& o) {
      if (o.tensor() == nullptr) return !TensorAccess::ToNumber(*o.scalar()).is_whole();
      return o.tensor()->defined() && !ir::IsIntegral(Unwrap(o.tensor()->dtype())) &&
             o.tensor()->dtype() != DType::kPred;
    };
    if (is_float(x) || is_float(y)) return lazy::Trunc(In(div(x, y), "div"));
    const Tensor rest = fmod(x, y);
    const bool is_bool = x.tensor() != nullptr && x.tensor()->dtype() == DType::kPred;
    const Tensor whole = is_bool ? x.tensor()->to(rest.dtype()) : rest;
    return lazy::Tensor(
        In(floor_divide(sub(is_bool ? Operand(whole, x.loc()) : x, rest), y), "div"));
  });
}
namespace linalg {
Tensor matmul(const Tensor& x, const Tensor& y, SourceLocation loc) {
  return lazuli::matmul(x, y, loc);
}
}  // namespace linalg
namespace special {
Tensor expit(const Tensor& x, SourceLocation loc) { return sigmoid(x, loc); }
Tensor gammainc(const Tensor& x, const Tensor& y, SourceLocation loc) { return igamma(x, y, loc); }
Tensor gammaincc(const Tensor& x, const Tensor& y, SourceLocation loc) {
  return igammac(x, y, loc);
}
Tensor gammaln(const Tensor& x, SourceLocation loc) { return lgamma(x, loc); }
Tensor multigammaln(const Tensor& x, std::int64_t p, SourceLocation loc) {
  return mvlgamma(x, p, loc);
}
Tensor psi(const Tensor& x, SourceLocation loc) { return digamma(x, loc); }
}  // namespace special

Tensor where(const Tensor& condition, const Operand& on_true, const Operand& on_false) {
  return CallTensor(on_true.loc(), [&] {
    const lazy::Tensor c = In(condition, "where");
    const OperandHolder l = Hold("where", 1, on_true, on_false, {}),
                        r = Hold("where", 2, on_false, on_true, {});
    return lazy::Where(c, l.get(), r.get());
  });
}

Tensor trace(const Tensor& x, Locs loc) {
  if (autocast_to) [[unlikely]] {
    const CastArguments cast(Precision::kFloat32, loc, x);
    return trace(cast(x), loc);
  }
  return CallTensor(loc, [&] { return lazy::TraceOf(In(x, "trace")); });
}

Padding::Padding(const char* mode) : Size2(0), same(std::string_view(mode) == "same") {
  if (!same && std::string_view(mode) != "valid") {
    throw Error(ErrorCode::kInvalidArgument, "padding: '" + std::string(mode) +
                                                 "' is not a choice; there are 'same' and 'valid'");
  }
}

bool equal(const Tensor& x, const Tensor& y, Locs loc) {
  return x.sizes() == y.sizes() && eq({x, loc}, {y, loc}).all({}, false, loc).item<bool>(loc);
}
bool allclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan,
              Locs loc) {
  return isclose(x, y, rtol, atol, equal_nan, loc).all({}, false, loc).item<bool>(loc);
}

void manual_seed(std::uint64_t seed) { lazy::ManualSeed(seed); }
std::uint64_t random_seed() { return lazy::RandomSeed(); }

}  // namespace lazuli
