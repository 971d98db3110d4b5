// A program as a value: an HLO module with its signature. It can be held, called by a graph
// (lazy/ops/program/call.h), compiled and run (launcher.h); it never changes.
//
// The outputs are the leaves of the module's root: the results, then an s64[] per check
// (lowering::RuntimeCheck), then flags that only the maker of the program reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/graph/site.h"
#include "ir/hlo/module.h"
#include "lowering/builder/lowering_context.h"

namespace lazuli::lazy {

// What a run finds out about its arguments.
struct ProgramCheck {
  lowering::CheckMessage message;
  std::string function;       // that the user called; empty: the op of the message
  SiteId site = ir::kNoSite;  // of the op
};

// The error of a check that found `value`: "cross_entropy: label 12 is out of range [0, 10)
// (train.cc:41)". An empty function is the op of the message.
absl::Status ErrorOfCheck(const lowering::CheckMessage& message, std::string_view function,
                          SiteId site, int64_t value);

// Two programs with one fingerprint compute the same; it is the same in every process. Names and
// source lines are not part of it.
struct Fingerprint {
  uint64_t low = 0, high = 0;
  bool operator==(const Fingerprint&) const = default;
  std::string ToString() const;  // 32 hexadecimal digits
};

class Program;
using ProgramPtr = std::shared_ptr<const Program>;

class Program {
 public:
  explicit Program(std::shared_ptr<const hlo::Module> module, std::vector<ProgramCheck> checks = {},
                   std::size_t num_flags = 0);

  const std::string& name() const { return module_->name(); }
  const hlo::Module& module() const { return *module_; }
  const std::shared_ptr<const hlo::Module>& shared_module() const { return module_; }
  // Arrays; elements of tuples one by one.
  const std::vector<Shape>& parameters() const { return parameters_; }
  const std::vector<Shape>& results() const { return results_; }
  const std::vector<ProgramCheck>& checks() const { return checks_; }
  std::size_t num_outputs() const { return results_.size() + checks_.size() + num_flags_; }
  // Whether it calls functions for what they do: a call runs even if nobody wants its results.
  bool has_effects() const { return has_effects_; }
  const Fingerprint& fingerprint() const;  // computed when first asked for

  // The program that calls differentiate with. Its parameters are those of this program, then a cotangent
  // per differentiable result; its results are a cotangent per differentiable parameter. Differentiable are
  // floats and complex numbers. It is the one that this program was given, else it is derived
  // (lowering/transforms/vjp.h) when first asked for: an error names the instruction that has no rule.
  const absl::StatusOr<ProgramPtr>& gradient() const;
  // This program with a gradient of its own. An error names what does not fit.
  absl::StatusOr<ProgramPtr> WithGradient(ProgramPtr gradient) const;

 private:
  std::shared_ptr<const hlo::Module> module_;
  std::vector<ProgramCheck> checks_;
  std::size_t num_flags_;
  std::vector<Shape> parameters_, results_;
  bool has_effects_ = false;
  ProgramPtr given_gradient_;
  mutable std::mutex deriving_;
  mutable std::optional<absl::StatusOr<ProgramPtr>> gradient_;
  mutable std::once_flag fingerprinted_;
  mutable Fingerprint fingerprint_;
};

// Whether arrays of the dtype have gradients.
bool IsDifferentiable(const Shape& shape);

}  // namespace lazuli::lazy
