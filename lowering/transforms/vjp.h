// Reverse-mode derivatives of modules: a forward module that keeps what the backward one needs.
//
// Made of other parts: the derivative by tangents (jvp.h), cut by what depends on them (split.h), and
// the linear half of it transposed (transpose.h).
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"
#include "lowering/transforms/jvp.h"

namespace lazuli::lowering {

struct VjpModules {
  // Takes the parameters of the module; its result is a flat tuple of the leaves of the module's result,
  // then the residuals.
  std::unique_ptr<hlo::Module> forward;
  // Takes the residuals, then a cotangent for each leaf of the result that is a float or complex number;
  // its result is a flat tuple of a cotangent for each active leaf of the parameters.
  std::unique_ptr<hlo::Module> backward;
  std::size_t residual_count = 0;
};

// Cotangents of complex numbers are torch's, the conjugates of JAX's: of real and imaginary parts as if
// these were numbers of their own. An error names an instruction that has no rule, or a loop whose
// number of steps is not known, with its line.
absl::StatusOr<VjpModules> Vjp(const hlo::Module& module, const ActiveLeaves& active = {});

// The same as one module without residuals, which computes the forward part again: it takes the parameters
// of the module, then the cotangents.
absl::StatusOr<std::unique_ptr<hlo::Module>> Gradient(const hlo::Module& module,
                                                      const ActiveLeaves& active = {});

// Of a module whose first result is one real number: a module of its parameters that gives the gradient of that
// number for each active leaf, in a flat tuple, behind the leaves of the module's result if `with_values`.
// Other results have no part in it. The last `trailing` leaves of the result stay behind everything
// else.
struct ScalarGradientOptions {
  ActiveLeaves active{};
  bool with_values = false;
  std::size_t trailing = 0;
};
absl::StatusOr<std::unique_ptr<hlo::Module>> ScalarGradient(const hlo::Module& module,
                                                            const ScalarGradientOptions& options);

}  // namespace lazuli::lowering
