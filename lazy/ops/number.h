// Numbers in operand positions: slots of the program's scalar parameters, never constants of it.
#pragma once

#include <cstdint>
#include <memory>

#include "lazy/ops/record.h"
#include "lazy/tensor/leaves.h"

namespace lazuli::lazy {

// A number of the host language, with its kind: a float makes an integer tensor float, an integer
// does not.
class Number {
 public:
  Number(bool v) : kind_(Kind::kBool), int_(v) {}        // NOLINT(google-explicit-constructor)
  Number(int64_t v) : kind_(Kind::kInt), int_(v) {}      // NOLINT(google-explicit-constructor)
  Number(int v) : Number(static_cast<int64_t>(v)) {}     // NOLINT(google-explicit-constructor)
  Number(double v) : kind_(Kind::kFloat), double_(v) {}  // NOLINT(google-explicit-constructor)

  // The dtype the number takes beside a tensor of this dtype.
  DType TypeBeside(DType tensor) const;
  DType DefaultType() const;  // f32, s64 or pred
  double as_double() const { return kind_ == Kind::kFloat ? double_ : static_cast<double>(int_); }
  // A fresh slot holding the number as this dtype. Throws StatusError if it does not fit an integer
  // dtype.
  Value Slot(DType dtype) const;

 private:
  uint64_t CellAs(DType dtype) const;
  std::string Text() const;

  enum class Kind : uint8_t { kBool, kInt, kFloat };
  Kind kind_;
  int64_t int_ = 0;
  double double_ = 0;
};

}  // namespace lazuli::lazy
