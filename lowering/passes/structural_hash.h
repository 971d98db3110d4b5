// Hashes and classes of what an instruction computes, names and metadata aside. Equality decides; a
// hash only finds.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "ir/hlo/module.h"

namespace lazuli::lowering {

uint64_t HashOf(const Shape& shape);
uint64_t HashOf(const hlo::Attrs& attrs);

// Which computations of a module are equal: `of(c)` is the first one equal to c. Computations made
// later are their own class.
class ComputationClasses {
 public:
  explicit ComputationClasses(const hlo::Module& module);
  const hlo::Computation* of(const hlo::Computation* computation) const;

 private:
  std::unordered_map<const hlo::Computation*, const hlo::Computation*> classes_;
};

}  // namespace lazuli::lowering
