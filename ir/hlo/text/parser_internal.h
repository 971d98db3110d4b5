// The parser of HLO text, in parts: parser.cc (modules, computations), parser_instruction.cc,
// parser_attributes.cc, parser_shape.cc, parser_literal.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "ir/hlo/module.h"
#include "ir/hlo/text/cursor.h"

namespace lazuli::hlo::internal {

// Functions return whether they succeeded; an error is in the cursor.
bool ParseShape(Cursor& in, Shape* shape, int depth = 0);
bool ParseLiteral(Cursor& in, const Shape& shape, Literal* literal);
// {1,2}
bool ParseDims(Cursor& in, Dims* dims);
bool ParseSharding(Cursor& in, ShardingPtr* value);
// Reads the value of `name` if that is an attribute of this family: *known tells.
bool ParseFamilyAttribute(Cursor& in, std::string_view name, Attrs* attrs, bool* known);
// The first of the attributes that the family requires and that was not seen; empty if none is.
std::string_view MissingAttribute(const Attrs& attrs, absl::Span<const std::string_view> seen);
// Attributes of the kind's family at their defaults.
Attrs DefaultAttrs(AttrsKind kind);

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>* warnings)
      : in_(text), text_size_(static_cast<int64_t>(text.size())), warnings_(warnings) {}
  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  // Nested operands, inline computations and tuples of tuples: deeper text is refused.
  static constexpr int kMaxDepth = 100;

  // An instruction while it is read.
  struct PendingInstruction {
    const char* start = nullptr;
    std::string_view name;
    Opcode opcode{};
    std::string_view sugar;  // "-start" of negate-start, else empty
    bool has_shape = false;
    Shape shape;
    absl::InlinedVector<Instruction*, 8> operands;
    Attrs attrs;
    absl::InlinedVector<Computation*, 2> called;
    absl::InlinedVector<std::string_view, 16> seen;  // names of attributes
    Metadata metadata;
    ShardingPtr sharding;
    std::vector<std::pair<std::string, std::string>> extra;
    std::vector<Instruction*> control_predecessors;
  };

  // parser.cc
  bool ParseModule();
  bool ParseHeader();
  bool ParseHeaderAttribute(std::string_view name);
  bool ParseCount(int64_t* count);
  bool ParseAliases();
  bool ParseEntryLayout();
  bool ParseTable(std::string_view table);
  bool ParseRow(absl::flat_hash_map<std::string_view, int64_t>* row);  // {a=1 b=2}
  bool ParseComputation(bool entry, std::string_view name);
  bool ParseBody(Computation* computation, const char* start);
  bool ParseLoneInstruction();
  bool Finish();

  // parser_instruction.cc
  bool ParseInstruction(Computation* computation, Instruction** result, bool* is_root);
  bool ParseName(Computation* computation, PendingInstruction& i, bool* is_root);
  bool ParseOpcode(PendingInstruction& i);
  bool ParseOperands(Computation* computation, PendingInstruction& i, int depth);
  bool ParseOperand(Computation* computation, PendingInstruction& i, int depth);
  bool ParseNestedOperand(Computation* computation, const char* start, std::string_view opcode,
                          const Shape* shape, int depth, Instruction** result);
  bool ParseParameter(Computation* computation, PendingInstruction& i);
  bool ParseConstant(PendingInstruction& i);
  bool CheckComplete(const PendingInstruction& i);
  bool WrapAsync(PendingInstruction& i);
  Instruction* Build(Computation* computation, PendingInstruction& i);

  // parser_attributes.cc
  bool ParseAttributes(Computation* computation, PendingInstruction& i);
  bool ParseAttribute(Computation* computation, PendingInstruction& i, std::string_view name);
  bool ParseCallees(std::string_view name, PendingInstruction& i);
  bool ParseCallee(Computation** callee);
  bool ParseMetadata(Metadata* metadata);
  bool ParseMetadataMember(std::string_view name, Metadata* metadata);
  bool ParseControlPredecessors(Computation* computation, PendingInstruction& i);

  Cursor in_;
  int64_t text_size_;
  std::vector<std::string>* warnings_;  // may be null
  std::unique_ptr<Module> module_;
  absl::flat_hash_map<std::string_view, Computation*> computations_;
  int inline_depth_ = 0;
  bool lone_ = false;  // the text is one instruction: its operands become parameters
  int64_t replica_count_ = 1, num_partitions_ = 1;
  bool has_entry_layout_ = false;
  std::string_view entry_layout_text_;
  std::vector<Shape> entry_layout_;  // parameters, then the result
};

}  // namespace lazuli::hlo::internal
