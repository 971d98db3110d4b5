// Draws from distributions that are made of uniform and normal numbers: bernoulli, multinomial, normal of
// given means, those in place, and gumbel_softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/require.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {
namespace {

// Uniform in [0, 1) as f64 where the result may be an integer, else in x's dtype.
Tensor UnitLike(const Tensor& x, DType dtype, Generator& generator) {
  return Rand(x.shape().dims(), dtype, x.device(), generator);
}
Tensor UnitLike(std::string_view op, const Tensor& x, Generator& generator) {
  if (!IsFloat(x.dtype()))
    ThrowRecordError(op, Unimplemented("is not implemented for ", DTypeText(x.dtype())));
  return UnitLike(x, x.dtype(), generator);
}
Value SlotBeside(double v, const Tensor& x) { return Number(v).Slot(x.dtype()); }

void CheckNotNegative(std::string_view op, std::string_view what, double v) {
  if (v >= 0) return;
  ThrowRecordError(op, FailedPrecondition("expects ", what, " >= 0, but found ", what, " ", v));
}
void CheckPositive(std::string_view op, std::string_view what, double v) {
  if (v > 0) return;
  ThrowRecordError(op, FailedPrecondition("expects ", what, " > 0, but found ", what, "=", v));
}

Tensor Checked(FunctionName function, const Tensor& x, double most, int64_t at_least) {
  const FunctionScope scope(function);
  return Record(ProbabilitiesOp{most, at_least}, Detach(x));
}

Shape Broadcast(std::string_view op, const Shape& x, const Shape& y) {
  const int64_t rank = std::max(x.rank(), y.rank());
  Dims dims(static_cast<std::size_t>(rank));
  for (int64_t i = 1; i <= rank; ++i) {
    const int64_t a = i <= x.rank() ? x.dim(x.rank() - i) : 1;
    const int64_t b = i <= y.rank() ? y.dim(y.rank() - i) : 1;
    if (a != b && a != 1 && b != 1)
      ThrowRecordError(op, InvalidArgument(x, " and ", y, " do not broadcast to each other"));
    dims[static_cast<std::size_t>(rank - i)] = a == 1 ? b : a;
  }
  return Shape(x.dtype(), dims);
}

Tensor DrawUniform(const Tensor& x, double low, double high, Generator& generator) {
  if (!(low <= high) || !std::isfinite(high - low)) {
    ThrowRecordError(
        "uniform_", FailedPrecondition("expects to return a [from, to) range, but found from=", low,
                                       " > to=", high));
  }
  if (IsComplex(x.dtype())) {
    const Tensor part = Real(Detach(x));
    const Tensor real = DrawUniform(part, low, high, generator);
    return Complex(real, DrawUniform(part, low, high, generator));
  }
  const Tensor u = UnitLike("uniform_", x, generator);
  return Add(Mul(u, SlotBeside(high - low, u)), SlotBeside(low, u));
}

Tensor DrawNormal(std::string_view op, const Tensor& x, double mean, double std,
                  Generator& generator) {
  CheckNotNegative(op, "std", std);
  if (IsComplex(x.dtype())) {  // half of the variance each
    const Tensor part = Real(Detach(x));
    const double spread = std * std::numbers::sqrt2 / 2;
    const Tensor real = DrawNormal(op, part, mean, spread, generator);
    return Complex(real, DrawNormal(op, part, 0, spread, generator));
  }
  if (!IsFloat(x.dtype()))
    ThrowRecordError(op, Unimplemented("is not implemented for ", DTypeText(x.dtype())));
  const Tensor z = Randn(x.shape().dims(), x.dtype(), x.device(), generator);
  return Add(Mul(z, SlotBeside(std, z)), SlotBeside(mean, z));
}

Tensor DrawLogNormal(const Tensor& x, double mean, double std, Generator& generator) {
  CheckPositive("log_normal_", "std", std);
  return Exp(DrawNormal("log_normal_", x, mean, std, generator));
}

Tensor DrawExponential(const Tensor& x, double lambd, Generator& generator) {
  CheckPositive("exponential_", "lambda", lambd);
  const Tensor u = UnitLike("exponential_", x, generator);
  // Of 0 the smallest number in its place, so that none is 0.
  const Tensor some =
      Where(Eq(u, Constant(0, u.dtype())), FullConstant(u.shape(), 0x1p-25, u.device()), u);
  return Div(-Log1p(-some), SlotBeside(lambd, u));
}

Tensor DrawCauchy(const Tensor& x, double median, double sigma, Generator& generator) {
  CheckPositive("cauchy_", "sigma", sigma);
  const Tensor u = UnitLike("cauchy_", x, generator);
  const Tensor angle = (u - 0.5) * 3.141592653589793;
  return Add(Mul(Sin(angle) / Cos(angle), SlotBeside(sigma, u)), SlotBeside(median, u));
}

Tensor DrawGeometric(const Tensor& x, double p, Generator& generator) {
  if (!(p > 0 && p < 1)) {
    ThrowRecordError("geometric_", FailedPrecondition("expects p to be in (0, 1), but got p=", p));
  }
  if (x.dtype() == DType::kPred || IsComplex(x.dtype()))
    ThrowRecordError("geometric_", Unimplemented("is not implemented for ", DTypeText(x.dtype())));
  const Tensor u = UnitLike(x, DType::kF64, generator);
  const Tensor trials = Ceil(Div(Log1p(-u), SlotBeside(std::log1p(-p), u)));
  return To(Maximum(trials, Constant(1, trials.dtype())), x.dtype());
}

Tensor DrawInteger(const Tensor& x, int64_t low, std::optional<int64_t> high,
                   Generator& generator) {
  const DType dtype = x.dtype();
  if (high) return Randint(low, *high, x.shape().dims(), dtype, x.device(), generator);
  int64_t last = std::numeric_limits<int64_t>::max();
  if (IsFloat(dtype)) {
    last = int64_t{1} << (dtype == DType::kF64   ? 53
                          : dtype == DType::kF32 ? 24
                          : dtype == DType::kF16 ? 11
                                                 : 8);
  } else if (dtype == DType::kPred) {
    last = 1;
  } else if (const int bits = Row(dtype).bits; bits < 64) {
    last = (int64_t{1} << (IsUnsigned(dtype) ? bits : bits - 1)) - 1;
  }
  // Up to `last` itself, of 64 bits up to the one before.
  const int64_t end = last == std::numeric_limits<int64_t>::max() ? last : last + 1;
  return Randint(low, end, x.shape().dims(), dtype, x.device(), generator);
}

// x := what `draw` makes of its shape, dtype and device; refused before anything is drawn.
template <class F>
Tensor DrawOver(std::string_view op, const Tensor& x, F draw) {
  CheckAssignable(op, x);
  Assign(op, x, draw(x));
  return x;
}

}  // namespace

Tensor Bernoulli(const Tensor& x, Generator& generator) {
  if (!IsFloat(x.dtype()))
    ThrowRecordError("bernoulli",
                     Unimplemented("takes probabilities, which are floats, not ", x.shape()));
  const DType dtype = ByteWidth(x.dtype()) < 4 ? DType::kF32 : x.dtype();
  const Tensor p = Checked("bernoulli", x, 1, 0);
  return To(Lt(UnitLike(x, dtype, generator), To(p, dtype)), x.dtype());
}

Tensor Bernoulli(const Tensor& x, double p, Generator& generator) {
  if (!(p >= 0 && p <= 1)) {
    ThrowRecordError("bernoulli", FailedPrecondition("expects p to be in [0, 1], but got p=", p));
  }
  return To(Lt(UnitLike(x, DType::kF32, generator), Number(p).Slot(DType::kF32)), x.dtype());
}

Tensor Multinomial(const Tensor& x, int64_t num_samples, bool replacement, Generator& generator) {
  if (!IsFloat(x.dtype()) || x.rank() < 1 || x.rank() > 2) {
    ThrowRecordError("multinomial",
                     FailedPrecondition("takes weights, floats of rank 1 or 2, not ", x.shape()));
  }
  const int64_t categories = x.dim(x.rank() - 1);
  if (num_samples <= 0)
    ThrowRecordError("multinomial", FailedPrecondition("cannot sample n_sample <= 0 samples"));
  if (!replacement && num_samples > categories) {
    ThrowRecordError("multinomial",
                     FailedPrecondition("cannot sample ", num_samples, " of ", categories,
                                        " categories without replacement"));
  }
  const Tensor weights = To(Checked("multinomial", x, std::numeric_limits<double>::infinity(),
                                    replacement ? 1 : num_samples),
                            DType::kF64);
  if (!replacement) {
    // Those that come first where each arrives at a rate that is its weight (Efraimidis and Spirakis,
    // 2006).
    const Tensor key = Div(weights, DrawExponential(weights, 1, generator));
    return Narrow(Argsort(key, -1, /*descending=*/true), key.rank() - 1, 0, num_samples);
  }
  const Tensor until = Cumsum(weights, -1);
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.back() = num_samples;
  const Tensor total = Narrow(until, until.rank() - 1, categories - 1, 1);
  const Tensor drawn = Mul(Rand(dims, DType::kF64, x.device(), generator), total);
  // The first category whose sum of weights is above what was drawn.
  const Tensor below = Le(Unsqueeze(until, -2), Unsqueeze(drawn, -1));
  return Sum(To(below, DType::kS64), {-1}, false);
}

namespace {

void CheckDeviation(const Tensor& std) {
  if (IsFloat(std.dtype())) return;
  ThrowRecordError("normal",
                   FailedPrecondition("takes deviations that are floats, not ", std.shape()));
}

}  // namespace

Tensor Normal(const Tensor& mean, const Tensor& std, Generator& generator) {
  CheckDeviation(std);
  const Shape shape = Broadcast("normal", mean.shape(), std.shape());
  if (!IsFloat(shape.dtype()))
    ThrowRecordError("normal", FailedPrecondition("takes floats, not ", mean.shape()));
  const Tensor spread = Checked("normal", std, std::numeric_limits<double>::infinity(), 0);
  const Tensor z = Randn(shape.dims(), shape.dtype(), mean.device(), generator);
  return Add(Detach(mean), Mul(z, To(spread, shape.dtype())));
}
Tensor Normal(const Tensor& mean, double std, Generator& generator) {
  CheckNotNegative("normal", "std", std);
  const Tensor z = Randn(mean.shape().dims(), mean.dtype(), mean.device(), generator);
  return Add(Detach(mean), Mul(z, SlotBeside(std, z)));
}
Tensor Normal(double mean, const Tensor& std, Generator& generator) {
  CheckDeviation(std);
  const Tensor z = Randn(std.shape().dims(), std.dtype(), std.device(), generator);
  const Tensor spread = Checked("normal", std, std::numeric_limits<double>::infinity(), 0);
  return Add(Mul(z, spread), SlotBeside(mean, z));
}
Tensor Normal(double mean, double std, absl::Span<const int64_t> dims, std::optional<DType> dtype,
              backend::Device device, Generator& generator) {
  CheckNotNegative("normal", "std", std);
  const Tensor z = Randn(dims, dtype, device, generator);
  return Add(Mul(z, SlotBeside(std, z)), SlotBeside(mean, z));
}

Tensor UniformInPlace(const Tensor& x, double low, double to, Generator& generator) {
  return DrawOver("uniform_", x,
                  [&](const Tensor& t) { return DrawUniform(t, low, to, generator); });
}
Tensor NormalInPlace(const Tensor& x, double mean, double std, Generator& generator) {
  return DrawOver("normal_", x,
                  [&](const Tensor& t) { return DrawNormal("normal_", t, mean, std, generator); });
}
Tensor LogNormalInPlace(const Tensor& x, double mean, double std, Generator& generator) {
  return DrawOver("log_normal_", x,
                  [&](const Tensor& t) { return DrawLogNormal(t, mean, std, generator); });
}
Tensor ExponentialInPlace(const Tensor& x, double lambd, Generator& generator) {
  return DrawOver("exponential_", x,
                  [&](const Tensor& t) { return DrawExponential(t, lambd, generator); });
}
Tensor CauchyInPlace(const Tensor& x, double median, double sigma, Generator& generator) {
  return DrawOver("cauchy_", x,
                  [&](const Tensor& t) { return DrawCauchy(t, median, sigma, generator); });
}
Tensor GeometricInPlace(const Tensor& x, double p, Generator& generator) {
  return DrawOver("geometric_", x, [&](const Tensor& t) { return DrawGeometric(t, p, generator); });
}
Tensor BernoulliInPlace(const Tensor& x, const Tensor& p, Generator& generator) {
  return DrawOver("bernoulli_", x, [&](const Tensor& t) {
    return To(Bernoulli(BroadcastTo(p, t.shape().dims()), generator), t.dtype());
  });
}
Tensor BernoulliInPlace(const Tensor& x, double p, Generator& generator) {
  return DrawOver("bernoulli_", x, [&](const Tensor& t) { return Bernoulli(t, p, generator); });
}
Tensor RandomInPlace(const Tensor& x, Generator& generator) {
  return RandomInPlace(x, 0, std::nullopt, generator);
}
Tensor RandomInPlace(const Tensor& x, int64_t to, Generator& generator) {
  return RandomInPlace(x, 0, to, generator);
}
Tensor RandomInPlace(const Tensor& x, int64_t low, std::optional<int64_t> to,
                     Generator& generator) {
  return DrawOver("random_", x,
                  [&](const Tensor& t) { return DrawInteger(t, low, to, generator); });
}

Tensor GumbelSoftmax(const Tensor& logits, const Number& tau, bool hard, double /*eps*/,
                     int64_t dim) {
  const Tensor noisy = logits - Log(DrawExponential(logits, 1, DefaultGenerator()));
  Tensor soft = Softmax(Div(noisy, tau.Beside(noisy)), dim);
  if (!hard) return soft;
  const Tensor largest = Argmax(soft, dim, /*keepdim=*/true);
  return Scatter(ZerosLike(logits), dim, largest, Number(1.0)) - Detach(soft) + soft;
}

}  // namespace lazuli::lazy
