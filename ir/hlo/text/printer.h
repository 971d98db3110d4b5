// HLO text out. The default form is the stable core that jaxlib 0.4 to 0.10 parse, with every
// constant in full.
#pragma once

#include <string>

#include "ir/hlo/module.h"

namespace lazuli::hlo {

struct PrintOptions {
  bool operand_shapes = false;  // add(f32[2]{0} %x, ...)
  bool percent = true;          // %name
  bool layouts = true;          // f32[2,3]{1,0}; false: only layouts that are not row major
  bool metadata = true;
  bool large_constants =
      true;  // false: more than 10 elements print as {...}, which does not read back
  bool program_shapes = true;  // (p: f32[2]) -> f32[2] after computation names
  // Numbers in place of all names, the module's included: for fingerprints.
  bool canonical_names = false;
  static PrintOptions Short() {
    return {.percent = false, .layouts = false, .metadata = false, .program_shapes = false};
  }
};

std::string ToString(const Module& module, const PrintOptions& options = {});
std::string ToString(const Computation& computation, const PrintOptions& options = {});
std::string ToString(const Instruction& instruction, const PrintOptions& options = {});

// GraphViz digraph of the entry computation, callees as clusters.
std::string ToDot(const Module& module);

}  // namespace lazuli::hlo
