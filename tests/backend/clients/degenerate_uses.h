// Uses of every opcode at the ends of its domain: arrays of rank 0, of no elements and of one,
// attributes that name no dimension, some or all, initial values that are known or not.
//
// They are made from the opcode table: candidates are proposed liberally, and those count that
// shape inference accepts.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli {

struct DegenerateUse {
  using Region = std::function<hlo::Computation*(hlo::Module&)>;
  struct Operand {
    ir::Shape shape;                                // a token is an after-all
    std::optional<double> constant = std::nullopt;  // every element; else a parameter
  };
  hlo::Opcode opcode{};
  std::vector<Operand> operands = {};
  hlo::Attrs attrs = hlo::NoAttrs{};
  std::vector<Region> regions = {};
  std::optional<ir::Shape> declared = std::nullopt;
};

// The uses of an opcode over arrays of a type that shape inference accepts.
std::vector<DegenerateUse> DegenerateUses(hlo::Opcode opcode, ir::DType dtype);

// Uses of an opcode over `x` and what suits it, whatever shape inference says of them.
std::vector<DegenerateUse> ProposedUses(hlo::Opcode opcode, const ir::Shape& x);

// OK if shape inference accepts the use.
absl::Status WhyRefused(const DegenerateUse& use);

// Opcodes that one process cannot run for a value, or that only compilers write.
bool IsLeftOut(hlo::Opcode opcode);

// A module whose entry returns the value of each use, in a tuple where there are several. `lines`
// gets the text of each.
std::unique_ptr<hlo::Module> ModuleOf(absl::Span<const DegenerateUse> uses,
                                      std::vector<std::string>* lines = nullptr);

}  // namespace lazuli
