#include "lazy/ops/core/number.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/accepts.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

[[noreturn]] void ThrowDoesNotFit(const std::string& number, DType dtype) {
  throw StatusError(InvalidArgument("the number ", number, " does not fit ", DTypeText(dtype)));
}

}  // namespace

double FiniteMax(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

DType Number::TypeBeside(DType tensor) const {
  switch (kind_) {
    case Kind::kBool:
      return tensor;
    case Kind::kInt:
    case Kind::kHuge:
      return tensor == DType::kPred ? DType::kS64 : tensor;
    case Kind::kFloat:
      return IsFloat(tensor) || IsComplex(tensor) ? tensor : DefaultFloat();
    case Kind::kComplex:
      if (IsComplex(tensor)) return tensor;
      if (IsFloat(tensor)) return tensor == DType::kF64 ? DType::kC128 : DType::kC64;
      return DefaultComplex();
  }
  return tensor;
}

DType Number::DefaultType() const {
  switch (kind_) {
    case Kind::kBool:
      return DType::kPred;
    case Kind::kInt:
    case Kind::kHuge:
      return DType::kS64;
    case Kind::kFloat:
      return DefaultFloat();
    case Kind::kComplex:
      return DefaultComplex();
  }
  return DefaultFloat();
}

Value Number::Beside(const Tensor& x) const {
  const bool unrounded = IsNarrow(x.dtype()) && x.rank() > 0 && !is_complex();
  return As(unrounded ? DType::kF32 : TypeBeside(x.dtype()));
}

double Number::as_double() const {
  if (kind_ == Kind::kFloat || kind_ == Kind::kComplex) return double_;
  return kind_ == Kind::kHuge ? static_cast<double>(static_cast<uint64_t>(int_))
                              : static_cast<double>(int_);
}

std::optional<int64_t> Number::as_integer() const {
  if (kind_ == Kind::kBool || kind_ == Kind::kInt) return int_;
  return std::nullopt;
}

std::string Number::Text() const {
  if (kind_ == Kind::kComplex) return Str("(", double_, imag_ < 0 ? "" : "+", imag_, "j)");
  if (kind_ == Kind::kFloat) return Str(double_);
  return kind_ == Kind::kHuge ? Str(static_cast<uint64_t>(int_)) : Str(int_);
}

Value Number::Complex(DType dtype, bool constant) const {
  const DType part = hlo::PartType(dtype);
  const auto value = [&](double v) { return constant ? Constant(v, part) : Number(v).Slot(part); };
  const Value real = value(as_double());
  return ComplexOf(real, value(imag_));
}

Value Number::Slot(DType dtype, Overflow overflow) const {
  if (dtype == DType::kC128 || (dtype == DType::kC64 && is_complex()))
    return Complex(dtype, /*constant=*/false);
  return {MakeIntrusive<ScalarNode>(dtype, CellAs(dtype, overflow), CurrentSite()), 0};
}

Value Number::As(DType dtype, Overflow overflow) const {
  if (slots_ != nullptr) return slots_->Get(*this, dtype, overflow);
  CheckReal(dtype);
  return is_complex() && IsComplex(dtype) ? Complex(dtype, /*constant=*/true)
                                          : Constant(as_double(), dtype);
}

void Number::CheckElement(DType dtype) const {
  if (IsFloat(dtype) || IsComplex(dtype)) {
    const double most = FiniteMax(IsComplex(dtype) ? hlo::PartType(dtype) : dtype);
    const auto overflows = [most](double v) { return std::isfinite(v) && std::abs(v) > most; };
    if (overflows(as_double()) || overflows(imag_)) ThrowDoesNotFit(Text(), dtype);
  }
}

// A complex number is no element of a real dtype, unless it is a real one.
void Number::CheckReal(DType dtype) const {
  if (is_complex() && !IsComplex(dtype) && imag_ != 0)
    throw StatusError(WrongType("the number ", Text(), " does not fit ", DTypeText(dtype)));
}

Value NumberSlots::Get(const Number& number, DType dtype, Overflow overflow) {
  const uint64_t context = Context::Current().id();
  const std::lock_guard lock(mu_);
  if (!uses_.empty() && uses_[0].context != context) uses_.clear();
  for (const Use& use : uses_) {
    if (use.dtype == dtype && use.overflow == overflow) return use.value;
  }
  uses_.push_back({context, dtype, overflow, number.Slot(dtype, overflow)});
  return uses_.back().value;
}

// Of an integer dtype.
bool Number::Fits(DType dtype, Overflow overflow) const {
  const int bits = Row(dtype).bits;
  if (kind_ == Kind::kHuge) return overflow == Overflow::kWrap || (bits == 64 && IsUnsigned(dtype));
  const bool real = kind_ == Kind::kFloat || kind_ == Kind::kComplex;
  if (real && !(double_ > -0x1p63 && double_ < 0x1p63)) return false;
  const int64_t value = real ? static_cast<int64_t>(double_) : int_;
  if (overflow == Overflow::kWrap && !real) return true;
  if (overflow == Overflow::kRefuseAny && IsUnsigned(dtype) && value < 0) return false;
  if (bits == 64) return true;
  const int64_t high = (int64_t{1} << (IsSigned(dtype) ? bits - 1 : bits)) - 1;
  const int64_t low = IsSigned(dtype) ? -high - 1 : -high;
  return value >= low && value <= high;
}

uint64_t Number::CellAs(DType dtype, Overflow overflow) const {
  uint64_t cell = 0;
  CheckReal(dtype);
  if (!IsIntegral(dtype)) {
    StoreAs(dtype, as_double(), &cell);
    return cell;
  }
  // Integers are stored exactly, not by way of double.
  if (!Fits(dtype, overflow)) ThrowDoesNotFit(Text(), dtype);
  const int64_t value =
      kind_ == Kind::kFloat || kind_ == Kind::kComplex ? static_cast<int64_t>(double_) : int_;
  VisitDType(dtype, [&]<DType kType>() {
    if constexpr (std::is_integral_v<HostType<kType>>) {
      auto element = static_cast<HostType<kType>>(value);
      const int bits = Row(dtype).bits;
      if (bits < 8)
        element = static_cast<HostType<kType>>(IsSigned(dtype) ? value : value & ((1 << bits) - 1));
      std::memcpy(&cell, &element, sizeof element);
    }
  });
  return cell;
}

absl::Status CheckAlpha(const Number& alpha, DType sum) {
  const auto refused = [&](std::string_view needed) {
    return WrongType("alpha is ", alpha.Text(), "; the sum of ", DTypeText(sum), " takes ", needed);
  };
  if (alpha.is_bool() && sum != DType::kPred) return refused("a number, no bool");
  if (alpha.is_complex() && !IsComplex(sum)) return refused("a real number");
  const bool whole = sum == DType::kPred || IsIntegral(sum);
  return whole && !alpha.is_whole() ? refused("an integer") : absl::OkStatus();
}

}  // namespace lazuli::lazy
