// Lets products of narrow floats run in f32, for which there is a library.
//
//   d = bf16[m,n] dot(a, b)
//   =>  d = bf16[m,n] convert(f32[m,n] dot(f32[m,k] convert(a), f32[k,n] convert(b)))
//
// Sums are kept in f32 either way and rounded once; the conversions join the kernels around. Dots
// and convolutions of f16, bf16 and narrower, also where operands and result are of several types;
// and dots of s8 with so few terms that f32 holds every sum. A product whose narrow operands a library
// multiplies keeps them, and only its result is widened.
#pragma once

#include <functional>

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class WidenProducts final : public Pass {
 public:
  // `multiplies` says which products of narrow operands a library multiplies to f32; by default none.
  explicit WidenProducts(std::function<bool(const hlo::Instruction&)> multiplies = {})
      : multiplies_(std::move(multiplies)) {}

  std::string_view name() const override { return "widen_products"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;

 private:
  std::function<bool(const hlo::Instruction&)> multiplies_;
};

}  // namespace lazuli::lowering
