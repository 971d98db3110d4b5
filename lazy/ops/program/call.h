// A call of a program, as an op: the one node that holds a graph.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lazy/ops/core/op.h"
#include "lazy/program/program.h"

namespace lazuli::lazy {

// A program as an attribute: its fingerprint is the key.
struct CalledProgram {
  ProgramPtr program;
  const Program* operator->() const { return program.get(); }
  const Program& operator*() const { return *program; }
  template <class F>
  void VisitAttrs(F&& visit) const {
    visit("low", program->fingerprint().low);
    visit("high", program->fingerprint().high);
  }
  static constexpr std::size_t kAttrCount = 2;
};
std::string AttrValueText(const CalledProgram& called);

struct CallOp {
  CalledProgram program;
  LAZULI_OP("call", "xla::call", program);
  static constexpr OpDoc kDoc{"The results of a program for these arguments.", {"arguments"}};
  static constexpr Saves kSaves{.inputs = ~0u};
  bool MayFail() const { return !program->checks().empty(); }
  std::vector<lowering::Op> Lower(lowering::LoweringContext& context,
                                  absl::Span<const lowering::Op> arguments) const;
  // By a call of the program's gradient.
  Tensors Vjp(const Saved& s, absl::Span<const Tensor> dys) const;
};

// The results of the program, pending. Throws StatusError where the arguments do not fit, where the
// program is for several devices, and where a gradient is wanted and there is none: the program was given
// none, and has an instruction without a rule.
// `device` is used only by a program without arguments. A gradient that the program was not given is derived
// when an argument first wants one.
Tensors Call(const ProgramPtr& program, absl::Span<const Tensor> arguments,
             backend::Device device = {});

}  // namespace lazuli::lazy
