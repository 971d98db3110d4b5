// Makes large products of complex numbers of four real ones, which the library runs several times
// faster.
//
//   d = c64[m,n] dot(a, b)  =>  d = complex(ar br - ai bi, ar bi + ai br), with ar = real(a), ...
//
// Products of c64 alone: the library's real ones are f32.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class SplitComplexProducts final : public Pass {
 public:
  std::string_view name() const override { return "split_complex_products"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
};

}  // namespace lazuli::lowering
