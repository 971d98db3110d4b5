// The shape rule of every opcode: the only implementation, used by builder, verifier and parser.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Shape of the result. `declared` is what the text or the caller says and is required for opcodes
// whose result does not follow from their operands (parameter, constant, iota, broadcast's dims,
// reshape, convert, custom-call, ...); where the result does follow, `declared` is checked against
// it if given (layouts ignored; dot and convolution may declare a wider dtype). Allocates nothing
// for ranks up to 6 when it succeeds. The error names opcode, rule and the offending shapes.
absl::StatusOr<Shape> InferShape(Opcode opcode, absl::Span<const Shape* const> operands,
                                 const Attrs& attrs, absl::Span<Computation* const> called = {},
                                 const Shape* declared = nullptr);

// The type of a complex number's parts; any other type itself.
DType PartType(DType dtype);

// How many complex numbers RFFT makes of a real signal of this length.
inline int64_t SpectrumSize(int64_t length) { return length == 0 ? 0 : length / 2 + 1; }

// Size of a window's output along one dimension: base dilated and padded, window dilated, strided.
int64_t WindowedSize(int64_t size, const WindowDim& window);

}  // namespace lazuli::hlo
