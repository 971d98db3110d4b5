// Numbers in operand positions: slots of the program's scalar parameters, never constants of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lazy/ops/record.h"
#include "lazy/tensor/leaves.h"

namespace lazuli::lazy {

// What becomes of an integer that an integer dtype does not hold.
enum class Overflow : uint8_t {
  kRefuse,    // an error, as for an element; but a negative one may stand for an unsigned one
  kWrap,      // its low bits, as integer arithmetic has it
  kRefuseAny  // an error, also where it is negative and the dtype unsigned
};

// A number of the host language, with its kind: a float makes an integer tensor float, an integer
// does not.
class Number {
 public:
  Number(bool v) : kind_(Kind::kBool), int_(v) {}     // NOLINT(google-explicit-constructor)
  Number(int64_t v) : kind_(Kind::kInt), int_(v) {}   // NOLINT(google-explicit-constructor)
  Number(int v) : Number(static_cast<int64_t>(v)) {}  // NOLINT(google-explicit-constructor)
  Number(uint64_t v)                                  // NOLINT(google-explicit-constructor)
      : kind_(v >> 63 != 0 ? Kind::kHuge : Kind::kInt), int_(static_cast<int64_t>(v)) {}
  Number(double v) : kind_(Kind::kFloat), double_(v) {}  // NOLINT(google-explicit-constructor)

  // The dtype the number takes beside a tensor of this dtype.
  DType TypeBeside(DType tensor) const;
  DType DefaultType() const;  // f32, s64 or pred
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kHuge; }
  double as_double() const;
  // None of a float, or of what an s64 does not hold.
  std::optional<int64_t> as_integer() const;
  // A fresh slot holding the number as this dtype. Throws StatusError if it does not fit an integer
  // dtype.
  Value Slot(DType dtype, Overflow overflow = Overflow::kRefuse) const;
  std::string Text() const;

 private:
  enum class Kind : uint8_t { kBool, kInt, kHuge, kFloat };

  uint64_t CellAs(DType dtype, Overflow overflow) const;
  bool Fits(DType dtype, Overflow overflow) const;

  Kind kind_;
  int64_t int_ = 0;  // of kHuge, which is 2^63 or more, the bits
  double double_ = 0;
};

}  // namespace lazuli::lazy
