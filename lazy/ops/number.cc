#include "lazy/ops/number.h"

#include <cstring>

#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

[[noreturn]] void ThrowDoesNotFit(const std::string& number, DType dtype) {
  throw StatusError(InvalidArgument("the number ", number, " does not fit ", DTypeText(dtype)));
}

}  // namespace

DType Number::TypeBeside(DType tensor) const {
  switch (kind_) {
    case Kind::kBool:
      return tensor;
    case Kind::kInt:
      return tensor == DType::kPred ? DType::kS64 : tensor;
    case Kind::kFloat:
      return IsFloat(tensor) || IsComplex(tensor) ? tensor : DType::kF32;
  }
  return tensor;
}

DType Number::DefaultType() const {
  switch (kind_) {
    case Kind::kBool:
      return DType::kPred;
    case Kind::kInt:
      return DType::kS64;
    case Kind::kFloat:
      return DType::kF32;
  }
  return DType::kF32;
}

std::string Number::Text() const { return kind_ == Kind::kFloat ? Str(double_) : Str(int_); }

Value Number::Slot(DType dtype) const {
  return {MakeIntrusive<ScalarNode>(dtype, CellAs(dtype), CurrentSite()), 0};
}

uint64_t Number::CellAs(DType dtype) const {
  uint64_t cell = 0;
  if (ByteWidth(dtype) > static_cast<int>(sizeof cell)) {
    throw StatusError(Unimplemented("a number beside a tensor of ", DTypeText(dtype),
                                    "; make it a tensor of that dtype"));
  }
  if (!IsIntegral(dtype)) {
    StoreAs(dtype, as_double(), &cell);
    return cell;
  }
  // Integers are stored exactly, not by way of double. Negative numbers may stand for unsigned
  // ones, as in torch.
  if (kind_ == Kind::kFloat && !(double_ > -0x1p63 && double_ < 0x1p63))
    ThrowDoesNotFit(Text(), dtype);
  const int64_t value = kind_ == Kind::kFloat ? static_cast<int64_t>(double_) : int_;
  const int bits = Row(dtype).bits;
  if (bits < 64) {
    const int64_t high = (int64_t{1} << (IsSigned(dtype) ? bits - 1 : bits)) - 1;
    const int64_t low = IsSigned(dtype) ? -high - 1 : -high;
    if (value < low || value > high) ThrowDoesNotFit(Text(), dtype);
  }
  VisitDType(dtype, [&]<DType kType>() {
    if constexpr (std::is_integral_v<HostType<kType>>) {
      auto element = static_cast<HostType<kType>>(value);
      if (bits < 8)
        element = static_cast<HostType<kType>>(IsSigned(dtype) ? value : value & ((1 << bits) - 1));
      std::memcpy(&cell, &element, sizeof element);
    }
  });
  return cell;
}

}  // namespace lazuli::lazy
