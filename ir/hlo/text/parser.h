// HLO text in: the dialect of reference jaxlib 0.4 to 0.10, old and new operand styles; see
// docs/hlo.md.
//
// Never aborts and never recurses without bound; an error reads "3:14: unknown opcode 'ad'"
// followed by the line and a caret. The result is verified.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Shapes whose tuples nest deeper are refused, in text and in protobuf.
inline constexpr int kMaxTupleDepth = 64;

// Attributes that no version of HLO is known to have are kept as they are written, with a warning:
// "3:14: unknown attribute 'shine' is kept as it is".
absl::StatusOr<std::unique_ptr<Module>> ParseModule(std::string_view text,
                                                    std::vector<std::string>* warnings = nullptr);

// An attribute that text has for the instructions of an opcode.
struct AttributeName {
  std::string_view name;
  bool required;
};
std::vector<AttributeName> AttributesOf(Opcode opcode);
// Attributes of an instruction, from names and what text has behind the "=". An error names one
// that is missing, that there is not, or whose value does not read.
absl::StatusOr<Attrs> ParseAttrs(Opcode opcode,
                                 absl::Span<const std::pair<std::string, std::string>> attributes);

absl::StatusOr<Shape> ParseShape(std::string_view text);
absl::StatusOr<Literal> ParseLiteral(std::string_view text, const Shape& shape);

}  // namespace lazuli::hlo
