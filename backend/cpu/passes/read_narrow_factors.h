// Lets products read factors as they were before they were widened.
//
//   b = f32[k,n] convert(s8[k,n] w)
//   c = f32[1,n] dot(a, b)   =>   c = f32[1,n] dot(a, w)
//
// A product with few rows takes the time of reading its large factor, and a narrow one is read faster.
// Widening is exact, so the values stay.
#pragma once

#include <functional>

#include "lowering/passes/pass.h"

namespace lazuli::cpu {

class ReadNarrowFactors final : public lowering::Pass {
 public:
  // `widens` says of which dtype a dot may read a factor.
  explicit ReadNarrowFactors(std::function<bool(const hlo::Instruction& dot, DType factor)> widens)
      : widens_(std::move(widens)) {}

  std::string_view name() const override { return "cpu_read_narrow_factors"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  std::function<bool(const hlo::Instruction& dot, DType factor)> widens_;
};

}  // namespace lazuli::cpu
