// Numbers in operand positions. A user's is a slot of the program's scalar parameters, never a constant
// of it; one that a gradient or a composite writes is a constant.
#pragma once

#include <complex>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "lazy/ops/core/record.h"
#include "lazy/tensor/leaves.h"

namespace lazuli::lazy {

// What becomes of an integer that an integer dtype does not hold.
enum class Overflow : uint8_t {
  kRefuse,    // an error, as for an element; but a negative one may stand for an unsigned one
  kWrap,      // its low bits, as integer arithmetic has it
  kRefuseAny  // an error, also where it is negative and the dtype unsigned
};

class Number;

// The nodes that one number of a user has become so far: one per context and dtype, which it is used
// with at a time, so that all its uses are one slot.
class NumberSlots {
 public:
  Value Get(const Number& number, DType dtype, Overflow overflow);

 private:
  struct Use {
    uint64_t context;
    DType dtype;
    Overflow overflow;
    Value value;
  };
  std::mutex mu_;  // copies of a scalar may be used by several threads
  PooledVector<Use> uses_;
};

// The largest finite number of a float dtype that tensors compute in.
double FiniteMax(DType dtype);

// A number of the host language, with its kind: a float makes an integer tensor float, an integer
// does not. Functions take their numbers as this; gradients and composites write 0.5.
class Number {
 public:
  Number(bool v) : kind_(Kind::kBool), int_(v) {}     // NOLINT(google-explicit-constructor)
  Number(int64_t v) : kind_(Kind::kInt), int_(v) {}   // NOLINT(google-explicit-constructor)
  Number(int v) : Number(static_cast<int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  Number(uint64_t v)                                  // NOLINT(google-explicit-constructor)
      : kind_(v >> 63 != 0 ? Kind::kHuge : Kind::kInt), int_(static_cast<int64_t>(v)) {}
  Number(double v) : kind_(Kind::kFloat), double_(v) {}  // NOLINT(google-explicit-constructor)
  explicit Number(std::complex<double> v)
      : kind_(Kind::kComplex), double_(v.real()), imag_(v.imag()) {}

  // The same number of a user, with its slots, which outlive it.
  Number OfUser(NumberSlots& slots) const {
    Number number = *this;
    number.slots_ = &slots;
    return number;
  }

  // The number as an operand of this dtype: a user's slot, else a constant of the program. Throws
  // StatusError if it does not fit an integer dtype.
  Value As(DType dtype, Overflow overflow = Overflow::kRefuse) const;
  // The same as an element of a tensor.
  Value AsElement(DType dtype) const {
    CheckElement(dtype);
    return As(dtype);
  }
  // Throws StatusError for a finite number that would be an infinite element of a float dtype.
  void CheckElement(DType dtype) const;
  // The same as arithmetic takes it beside the tensor: beside floats of 16 bits that have dims not
  // rounded to them.
  Value Beside(const Tensor& x) const;
  // The dtype the number takes beside a tensor of this dtype.
  DType TypeBeside(DType tensor) const;
  DType DefaultType() const;  // of a tensor made of it alone: pred, s64, DefaultFloat(), ...
  bool is_whole() const { return kind_ != Kind::kFloat && kind_ != Kind::kComplex; }
  bool is_complex() const { return kind_ == Kind::kComplex; }
  bool is_bool() const { return kind_ == Kind::kBool; }
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kHuge; }
  double as_double() const;  // of a complex number the real part
  std::complex<double> as_complex() const { return {as_double(), imag_}; }
  // None of a float, or of what an s64 does not hold.
  std::optional<int64_t> as_integer() const;
  // A fresh slot holding the number as this dtype. Throws StatusError if it does not fit an integer
  // dtype.
  Value Slot(DType dtype, Overflow overflow = Overflow::kRefuse) const;
  std::string Text() const;

 private:
  enum class Kind : uint8_t { kBool, kInt, kHuge, kFloat, kComplex };

  void CheckReal(DType dtype) const;
  // Of a complex dtype: what is no cell of its own.
  Value Complex(DType dtype, bool constant) const;
  uint64_t CellAs(DType dtype, Overflow overflow) const;
  bool Fits(DType dtype, Overflow overflow) const;

  Kind kind_;
  int64_t int_ = 0;  // of kHuge, which is 2^63 or more, the bits
  double double_ = 0, imag_ = 0;
  NumberSlots* slots_ = nullptr;  // of a user's number
};

// Whether alpha scales an operand of a sum of this dtype as PyTorch has it: no float beside integers,
// no complex number beside real ones, a bool in a sum of bools alone.
absl::Status CheckAlpha(const Number& alpha, DType sum);

}  // namespace lazuli::lazy
