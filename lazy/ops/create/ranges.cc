// Ranges of numbers: arange, linspace, logspace.
#include <algorithm>
#include <cmath>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/create/create.h"

namespace lazuli::lazy {
namespace {

void CheckCounts(DType dtype) {
  if (dtype == DType::kPred)
    ThrowRecordError("arange", WrongType("counts in numbers, not in pred"));
}

}  // namespace

Tensor Arange(int64_t count, DType dtype, backend::Device device) {
  CheckCounts(dtype);
  return RecordOne(PositionsOp{Dims{count}, 0, dtype}, {}, device);
}

Tensor Arange(const Number& end, std::optional<DType> dtype, backend::Device device) {
  if (dtype && IsIntegral(*dtype) && !end.is_whole()) return Arange(0, end, 1, dtype, device);
  const double count = std::ceil(end.as_double());
  if (!(count >= 0 && count < 0x1p53)) {
    ThrowRecordError("arange",
                     InvalidArgument("end must be at least 0 and finite, is ", end.as_double()));
  }
  return Arange(static_cast<int64_t>(count),
                dtype.value_or(end.is_whole() ? DType::kS64 : DefaultFloat()), device);
}

Tensor Arange(const Number& start, const Number& end, const Number& step,
              std::optional<DType> dtype, backend::Device device) {
  const bool all_whole = start.is_whole() && end.is_whole() && step.is_whole();
  const DType type = dtype.value_or(all_whole ? DType::kS64 : DefaultFloat());
  CheckCounts(type);
  const bool is_whole = IsIntegral(type);
  // An array of whole numbers counts in them. Of integers a long double has all bits.
  const auto whole = [](const Number& n) {
    return n.is_whole() ? n : Number(static_cast<int64_t>(n.as_double()));
  };
  const Number first = is_whole ? whole(start) : start, by = is_whole ? whole(step) : step;
  const auto value = [](const Number& n) {
    const auto integer = n.as_integer();
    return integer ? static_cast<long double>(*integer) : static_cast<long double>(n.as_double());
  };
  const bool exact = type == DType::kS64;
  const long double length = value(exact ? whole(end) : end) - value(exact ? first : start);
  const long double each = value(exact ? by : step);
  if (!std::isfinite(length)) {
    ThrowRecordError(
        "arange", InvalidArgument(start.Text(), " to ", end.Text(), " is not a range of numbers"));
  }
  if (each == 0) ThrowRecordError("arange", InvalidArgument("step is 0"));
  if (length * each < 0) {
    ThrowRecordError("arange", InvalidArgument("steps of ", step.Text(), " lead from ",
                                               start.Text(), " away from ", end.Text()));
  }
  const long double count = std::ceil(
      all_whole || exact ? length / each : static_cast<double>(length) / static_cast<double>(each));
  if (!(count < 0x1p53L)) {
    ThrowRecordError(
        "arange", InvalidArgument(start.Text(), " to ", end.Text(), " is not a range of numbers"));
  }
  const DType wide = is_whole ? DType::kS64 : DType::kF64;
  const Tensor positions = Arange(static_cast<int64_t>(count), wide, device);
  return To(Add(Mul(positions, by.As(wide)), first.As(wide)), type);
}

namespace {

// From both ends, so that each is exact.
Tensor Between(const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype) {
  if (steps < 0)
    ThrowRecordError("linspace", InvalidArgument("steps must not be negative, is ", steps));
  if (dtype == DType::kPred)
    ThrowRecordError("linspace", WrongType("counts in numbers, not in ", DTypeText(*dtype)));
  if (start.rank() != 0 || end.rank() != 0) {
    ThrowRecordError("linspace", InvalidArgument("start and end must be numbers or of rank 0, are ",
                                                 start.shape(), " and ", end.shape()));
  }
  const bool is_complex = IsComplex(start.dtype()) || IsComplex(end.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  const auto widened = [&](const Tensor& t) {  // of integers whole numbers
    return To(dtype && IsIntegral(*dtype) ? To(Detach(t), *dtype) : Detach(t), wide);
  };
  const Tensor first = widened(start), last = widened(end);
  const Tensor step = (last - first) / static_cast<double>(std::max<int64_t>(steps - 1, 1));
  const Tensor i = Arange(steps, DType::kS64, start.device());
  const Tensor before = To(i, wide), after = To(static_cast<double>(steps - 1) - i, wide);
  const int64_t half = std::max<int64_t>(steps / 2, 1);
  const Tensor is_early = Lt(i, Constant(static_cast<double>(half), DType::kS64));
  return To(Where(is_early, first + before * step, last - after * step),
            dtype.value_or(is_complex ? DefaultComplex() : DefaultFloat()));
}
Tensor RankZero(const Number& number, backend::Device device) {
  return Full({}, number.As(number.is_complex() ? DType::kC128 : DType::kF64), device);
}

}  // namespace

Tensor Linspace(const Number& start, const Number& end, int64_t steps, std::optional<DType> dtype,
                backend::Device device) {
  return Between(RankZero(start, device), RankZero(end, device), steps, dtype);
}
Tensor Linspace(const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(start, end, steps, dtype);
}
Tensor Linspace(const Tensor& start, const Number& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(start, RankZero(end, start.device()), steps, dtype);
}
Tensor Linspace(const Number& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(RankZero(start, end.device()), end, steps, dtype);
}

namespace {

Tensor Powers(const Tensor& start, const Tensor& end, int64_t steps, double base,
              std::optional<DType> dtype) {
  if (dtype == DType::kPred)
    ThrowRecordError("logspace", WrongType("counts in numbers, not in ", DTypeText(*dtype)));
  const bool is_complex = IsComplex(start.dtype()) || IsComplex(end.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  const auto whole = [&](const Tensor& t) {
    return dtype && IsIntegral(*dtype) ? To(Detach(t), *dtype) : t;
  };
  return To(Pow(Constant(base, wide), Between(whole(start), whole(end), steps, wide)),
            dtype.value_or(is_complex ? DefaultComplex() : DefaultFloat()));
}

}  // namespace

Tensor Logspace(const Number& start, const Number& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device device) {
  return Powers(RankZero(start, device), RankZero(end, device), steps, base, dtype);
}
Tensor Logspace(const Tensor& start, const Tensor& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(start, end, steps, base, dtype);
}
Tensor Logspace(const Tensor& start, const Number& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(start, RankZero(end, start.device()), steps, base, dtype);
}
Tensor Logspace(const Number& start, const Tensor& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(RankZero(start, end.device()), end, steps, base, dtype);
}

}  // namespace lazuli::lazy
