// What the families of shape rules share: the instruction to be, and errors that begin with its
// opcode.
#pragma once

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/status.h"

namespace lazuli::hlo::internal {

struct Inference {
  Opcode opcode;
  absl::Span<const Shape* const> operands;
  const Attrs& attrs;
  absl::Span<Computation* const> called;
  const Shape* declared;

  const Shape& operand(std::size_t i) const { return *operands[i]; }
  std::size_t operand_count() const { return operands.size(); }
  // Callees may be unknown (null, or none given): then what they would say is not checked.
  const Computation* callee(std::size_t i) const { return i < called.size() ? called[i] : nullptr; }
  template <class T>
  const T& attrs_as() const {
    return std::get<T>(attrs);
  }

  template <class... T>
  absl::Status Error(const T&... parts) const {
    return InvalidArgument(OpcodeText(opcode), ": ", parts...);
  }
  // "f32[2], f32[3]"
  std::string OperandText() const;

  absl::Status ArrayOperands() const;
  absl::Status DeclaredArray() const;
  // `dims` are different and in [0, rank).
  absl::Status CheckDims(std::string_view what, absl::Span<const int64_t> dims, int64_t rank) const;
  // An array with this dtype and these dims, unless it would be too large.
  absl::StatusOr<Shape> Array(DType dtype, absl::Span<const int64_t> dims) const;
  // The callee's parameters have these shapes and its root that one (null: any); layouts do not
  // count.
  absl::Status CheckCallee(std::size_t index, std::string_view role,
                           absl::Span<const Shape* const> parameters, const Shape* result) const;
};

// `a` up to layouts, without one.
inline Shape WithoutLayout(const Shape& a) {
  return a.IsArray() && !a.has_layout() ? a : a.WithDefaultLayout();
}

// The callee is (types..., types...) -> types, on scalars.
absl::Status CheckReducer(const Inference& in, std::string_view role,
                          absl::Span<const Shape* const> types);
// Positive strides and dilations, nothing absurdly large.
absl::Status CheckWindow(const Inference& in, const Window& window);

// The rules, by the names that opcode.def gives them.
using Rule = absl::StatusOr<Shape>(const Inference&);
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, ...) Rule infer;
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE

}  // namespace lazuli::hlo::internal
