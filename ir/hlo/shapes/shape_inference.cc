#include "ir/hlo/shapes/shape_inference.h"

#include <algorithm>

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo {
namespace internal {

std::string Inference::OperandText() const {
  std::string text;
  for (std::size_t i = 0; i < operands.size(); ++i) text += Str(i > 0 ? ", " : "", operand(i));
  return text;
}

absl::Status Inference::ArrayOperands() const {
  for (const Shape* shape : operands) {
    if (!shape->IsArray()) return Error("operand ", *shape, " is not an array");
  }
  return absl::OkStatus();
}

absl::Status Inference::DeclaredArray() const {
  if (declared == nullptr) return Error("the result's shape must be declared");
  if (!declared->IsArray()) return Error("the declared shape ", *declared, " is not an array");
  return Array(declared->dtype(), declared->dims()).status();
}

absl::Status Inference::CheckDims(std::string_view what, absl::Span<const int64_t> dims,
                                  int64_t rank) const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) {
      return Error("dimension ", dims[i], " of ", what, "={", Join(dims, ","),
                   "} is out of range for rank ", rank);
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (dims[k] == dims[i])
        return Error("dimension ", dims[i], " is twice in ", what, "={", Join(dims, ","), "}");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> Inference::Array(DType dtype, absl::Span<const int64_t> dims) const {
  absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) return Error("result ", Message(shape.status()));
  return shape;
}

absl::Status Inference::CheckCallee(std::size_t index, std::string_view role,
                                    absl::Span<const Shape* const> parameters,
                                    const Shape* result) const {
  const Computation* computation = callee(index);
  if (computation == nullptr || computation->root() == nullptr) return absl::OkStatus();
  const auto& actual = computation->parameters();
  if (actual.size() != parameters.size()) {
    return Error(role, " ", computation->name(), " has ", actual.size(), " parameters, not ",
                 parameters.size());
  }
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == nullptr) return Error(role, " ", computation->name(), " has no parameter ", i);
    if (!Compatible(actual[i]->shape(), *parameters[i])) {
      return Error("parameter ", i, " of ", role, " ", computation->name(), " is ",
                   actual[i]->shape(), ", not ", *parameters[i]);
    }
  }
  if (result != nullptr && !Compatible(computation->root()->shape(), *result)) {
    return Error(role, " ", computation->name(), " returns ", computation->root()->shape(),
                 ", not ", *result);
  }
  return absl::OkStatus();
}

namespace {

constexpr Rule* kRules[] = {
#define LAZULI_OPCODE(name, text, arity, flags, regions, attrs, infer, ...) infer,
#include "ir/hlo/opcode.def"
#undef LAZULI_OPCODE
};

// Whether a declared shape may stand for the inferred one.
bool Agrees(Opcode opcode, const Shape& inferred, const Shape& declared) {
  if (Compatible(inferred, declared)) return true;
  const bool may_widen = opcode == Opcode::kDot || opcode == Opcode::kConvolution;
  return may_widen && declared.IsArray() && SameDims(inferred, declared);
}

}  // namespace
}  // namespace internal

absl::StatusOr<Shape> InferShape(Opcode opcode, absl::Span<const Shape* const> operands,
                                 const Attrs& attrs, absl::Span<Computation* const> called,
                                 const Shape* declared) {
  const internal::Inference inference{opcode, operands, attrs, called, declared};
  const OpcodeTraits& traits = Traits(opcode);
  if (traits.arity >= 0 && operands.size() != static_cast<std::size_t>(traits.arity)) {
    return inference.Error("takes ", static_cast<int>(traits.arity),
                           traits.arity == 1 ? " operand" : " operands", ", not ", operands.size());
  }
  if (attrs.index() != static_cast<std::size_t>(traits.attrs)) {
    return inference.Error("has the attributes of another opcode");
  }
  absl::StatusOr<Shape> inferred = internal::kRules[static_cast<std::size_t>(opcode)](inference);
  if (!inferred.ok() || declared == nullptr) return inferred;
  if (!internal::Agrees(opcode, *inferred, *declared)) {
    return inference.Error("the result is ", *inferred, ", not the declared ", *declared,
                           " (operands ", inference.OperandText(), ")");
  }
  return *declared;
}

DType PartType(DType dtype) {
  if (dtype == DType::kC64) return DType::kF32;
  return dtype == DType::kC128 ? DType::kF64 : dtype;
}

int64_t WindowedSize(int64_t size, const WindowDim& window) {
  using Wide = __int128;  // attributes come from outside
  auto dilated = [](Wide n, Wide dilation) { return n == 0 ? Wide{0} : (n - 1) * dilation + 1; };
  const Wide room = dilated(size, window.base_dilation) + window.pad_low + window.pad_high -
                    dilated(window.size, window.window_dilation);
  if (room < 0) return 0;
  return static_cast<int64_t>(std::min<Wide>(room / window.stride + 1, int64_t{1} << 62));
}

}  // namespace lazuli::hlo
