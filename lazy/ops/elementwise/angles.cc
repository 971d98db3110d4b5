// Angles: degrees, radians, and sinc.
#include <numbers>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {

Tensor Deg2rad(const Tensor& x) { return Floating(x) * (std::numbers::pi / 180); }
Tensor Rad2deg(const Tensor& x) { return Floating(x) * (180 / std::numbers::pi); }

Tensor Sinc(const Tensor& in) {
  return InWide(Floating(in), [](const Tensor& wide) {
    const Tensor x = wide * std::numbers::pi;
    // Where the sine is x in all its digits, and squares of x in gradients would be none.
    const double small = x.dtype() == DType::kF64 || x.dtype() == DType::kC128 ? 1e-150 : 1e-18;
    const Tensor size = Abs(Detach(x)), none = Lt(size, Constant(small, size.dtype()));
    const Tensor safe = Where(none, Number1(x), x);
    return Where(none, Number1(x), Sin(safe) / safe);
  });
}

}  // namespace lazuli::lazy
