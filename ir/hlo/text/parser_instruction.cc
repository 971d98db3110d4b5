#include <algorithm>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {

// [ROOT] [%]name =
bool Parser::ParseName(Computation* computation, PendingInstruction& i, bool* is_root) {
  const bool percent = in_.Peek() == '%';
  i.start = in_.position();
  if (lone_ && !percent) {  // the name may be missing: f32[4] add(f32[4] %x, f32[4] %y)
    i.name = in_.TryIdentifier();
    if (in_.Try('=')) return true;
    i.name = {};
    in_.set_position(i.start);
    return true;
  }
  if (!in_.Name(&i.name)) return false;
  if (!percent && i.name == "ROOT" && in_.Peek() != '=') {
    *is_root = true;
    i.start = in_.position();
    if (!in_.Name(&i.name)) return false;
  }
  if (computation->Find(i.name) != nullptr) {
    return in_.FailAt(i.start, "two instructions of computation '", computation->name(),
                      "' are named '", i.name, "'");
  }
  return in_.Expect('=');
}

bool Parser::ParseInstruction(Computation* computation, Instruction** result, bool* is_root) {
  PendingInstruction i;
  if (!ParseName(computation, i, is_root)) return false;
  if (!ParseOpcode(i)) return false;
  i.attrs = DefaultAttrs(Traits(i.opcode).attrs);
  if (!in_.Expect('(') || !ParseOperands(computation, i, 0) || !ParseAttributes(computation, i))
    return false;
  if (!CheckComplete(i)) return false;
  if (!i.sugar.empty() && !WrapAsync(i)) return false;
  *result = Build(computation, i);
  return *result != nullptr;
}

// [shape] opcode
bool Parser::ParseOpcode(PendingInstruction& i) {
  in_.Peek();
  const char* start = in_.position();
  std::string_view word;
  if (in_.Peek() != '(') {
    word = in_.TryIdentifier();
    if (word.empty()) return in_.Fail("expected a shape or an opcode");
  }
  if (word.empty() || in_.Peek() == '[' || word == "b") {
    in_.set_position(start);
    if (!ParseShape(in_, &i.shape)) return false;
    i.has_shape = true;
    in_.Peek();
    start = in_.position();
    word = in_.TryIdentifier();
    if (word.empty()) return in_.Fail("expected an opcode");
  }
  std::optional<Opcode> opcode = hlo::ParseOpcode(word);
  if (!opcode) {
    // negate-start(x): the opcode of what runs asynchronously, and which half of the pair this is.
    for (std::string_view suffix : {"-start", "-update", "-done"}) {
      if (word.ends_with(suffix)) {
        opcode = hlo::ParseOpcode(word.substr(0, word.size() - suffix.size()));
        i.sugar = suffix;
        break;
      }
    }
    if (!opcode) return in_.FailAt(start, "unknown opcode '", word, "'");
    if (i.sugar != "-start") {
      opcode = i.sugar == "-done" ? Opcode::kAsyncDone : Opcode::kAsyncUpdate;
      i.sugar = {};
    }
  }
  i.opcode = *opcode;
  return true;
}

bool Parser::ParseOperands(Computation* computation, PendingInstruction& i, int depth) {
  if (i.opcode == Opcode::kParameter) return ParseParameter(computation, i);
  if (i.opcode == Opcode::kConstant) return ParseConstant(i);
  if (in_.Try(')')) return true;
  do {
    if (!ParseOperand(computation, i, depth)) return false;
  } while (in_.Try(','));
  return in_.Expect(')');
}

// [shape] [%]name, or an instruction without attributes in its place: [shape] opcode(operands)
bool Parser::ParseOperand(Computation* computation, PendingInstruction& i, int depth) {
  in_.Peek();
  const char* start = in_.position();
  Shape shape;
  bool has_shape = false;
  std::string_view name;
  if (in_.Peek() != '(' && in_.Peek() != '%') {
    name = in_.TryIdentifier();
    if (name.empty()) return in_.Fail("expected an operand");
  }
  if (in_.Peek() == (name.empty() ? '(' : '[')) {
    in_.set_position(start);
    if (!ParseShape(in_, &shape)) return false;
    has_shape = true;
    name = {};
    in_.Peek();
    start = in_.position();
  }
  Instruction* operand = nullptr;
  const bool unnamed = lone_ && name.empty() && (in_.Peek() == ',' || in_.Peek() == ')');
  if (name.empty() && !unnamed && !in_.Name(&name)) return false;
  if (!unnamed && in_.Peek() == '(') {
    if (!ParseNestedOperand(computation, start, name, has_shape ? &shape : nullptr, depth,
                            &operand))
      return false;
  } else {
    operand = unnamed ? nullptr : computation->Find(name);
    if (operand == nullptr && lone_ && has_shape) {
      operand = computation->AddParameter(static_cast<int64_t>(computation->parameters().size()),
                                          shape, name);
    }
    if (operand == nullptr) {
      return in_.FailAt(start, "computation '", computation->name(), "' has no instruction '", name,
                        "' before this");
    }
  }
  if (has_shape && !Compatible(shape, operand->shape())) {
    return in_.FailAt(start, "operand '", operand->name(), "' is ", operand->shape(), ", not ",
                      shape);
  }
  i.operands.push_back(operand);
  return true;
}

bool Parser::ParseNestedOperand(Computation* computation, const char* start,
                                std::string_view opcode, const Shape* shape, int depth,
                                Instruction** result) {
  if (depth + inline_depth_ >= kMaxDepth)
    return in_.FailAt(start, "operands are nested deeper than ", kMaxDepth);
  PendingInstruction i;
  i.start = start;
  const std::optional<Opcode> known = hlo::ParseOpcode(opcode);
  if (!known) return in_.FailAt(start, "unknown opcode '", opcode, "'");
  i.opcode = *known;
  i.attrs = DefaultAttrs(Traits(i.opcode).attrs);
  if (shape != nullptr) {
    i.shape = *shape;
    i.has_shape = true;
  }
  const std::string name = Str(opcode, ".anon");
  i.name = name;
  if (!in_.Expect('(') || !ParseOperands(computation, i, depth + 1) || !CheckComplete(i))
    return false;
  *result = Build(computation, i);
  return *result != nullptr;
}

bool Parser::ParseParameter(Computation* computation, PendingInstruction& i) {
  in_.Peek();
  const char* start = in_.position();
  int64_t number = 0;
  if (!in_.Integer(&number)) return false;
  // As many other parameters must be in the text, at this many characters at least; so text bounds
  // the memory.
  constexpr int64_t kShortest = 16;
  if (number < 0 || number > text_size_ / kShortest) {
    return in_.FailAt(start, "parameter number ", number, " is out of range");
  }
  const auto& parameters = computation->parameters();
  if (number < static_cast<int64_t>(parameters.size()) &&
      parameters[static_cast<std::size_t>(number)] != nullptr) {
    return in_.FailAt(start, "computation '", computation->name(), "' has two parameters ", number);
  }
  std::get<ParameterAttrs>(i.attrs).number = number;
  return in_.Expect(')');
}

bool Parser::ParseConstant(PendingInstruction& i) {
  if (!i.has_shape) return in_.FailAt(i.start, "constant: the result's shape must be declared");
  Literal literal;
  if (!ParseLiteral(in_, i.shape, &literal)) return false;
  std::get<ConstantAttrs>(i.attrs).value = std::make_shared<const Literal>(std::move(literal));
  return in_.Expect(')');
}

bool Parser::CheckComplete(const PendingInstruction& i) {
  if (const std::string_view name = MissingAttribute(i.attrs, i.seen); !name.empty())
    return in_.FailAt(i.start, OpcodeText(i.opcode), ": attribute '", name, "' is missing");
  const int regions = Traits(i.opcode).regions;
  const bool complete = std::find(i.called.begin(), i.called.end(), nullptr) == i.called.end();
  if (!complete || (regions >= 0 && i.called.size() != static_cast<std::size_t>(regions))) {
    return in_.FailAt(i.start, OpcodeText(i.opcode), ": calls ", regions, " computations, not ",
                      complete ? i.called.size() : 1);
  }
  return true;
}

// Makes async-start of what was read as the opcode itself: ((operands), result, u32[])
// async-start(...), calls={opcode}.
bool Parser::WrapAsync(PendingInstruction& i) {
  if (!i.has_shape || i.shape.tuple().size() < 2) {
    return in_.FailAt(i.start, OpcodeText(i.opcode), i.sugar,
                      ": declares no tuple of operands and result");
  }
  Computation* wrapped = module_->AddComputation(Str("wrapped_", OpcodeText(i.opcode)));
  PendingInstruction body;
  body.start = i.start;
  body.opcode = i.opcode;
  body.has_shape = true;
  body.shape = i.shape.tuple()[1];
  body.attrs = std::move(i.attrs);
  body.called = std::move(i.called);
  for (const Instruction* operand : i.operands) {
    body.operands.push_back(wrapped->AddParameter(static_cast<int64_t>(body.operands.size()),
                                                  operand->shape(), operand->name()));
  }
  Instruction* root = Build(wrapped, body);
  if (root == nullptr) return false;
  wrapped->set_root(root);
  i.opcode = Opcode::kAsyncStart;
  AsyncAttrs attrs;
  std::erase_if(i.extra, [&](const auto& attr) {
    return attr.first == "async_execution_thread" &&
           Cursor(attr.second).String(&attrs.async_execution_thread);
  });
  i.attrs = std::move(attrs);
  i.called = {wrapped};
  return true;
}

Instruction* Parser::Build(Computation* computation, PendingInstruction& i) {
  absl::InlinedVector<const Shape*, 8> shapes;
  for (const Instruction* operand : i.operands) shapes.push_back(&operand->shape());
  absl::StatusOr<Shape> shape =
      InferShape(i.opcode, shapes, i.attrs, i.called, i.has_shape ? &i.shape : nullptr);
  if (!shape.ok()) {
    in_.FailAt(i.start, Message(shape.status()));
    return nullptr;
  }
  if (i.opcode == Opcode::kFusion) i.called[0]->set_is_fusion(true);
  Instruction* instruction = computation->Add(i.opcode, *std::move(shape), i.operands,
                                              std::move(i.attrs), i.called, i.name);
  instruction->set_metadata(std::move(i.metadata));
  // In the order in which they are printed, so that equal modules have them in the same order.
  std::stable_sort(i.extra.begin(), i.extra.end(), [](const auto& a, const auto& b) {
    return InstructionAttrRank(a.first) < InstructionAttrRank(b.first);
  });
  instruction->set_sharding(std::move(i.sharding));
  instruction->mutable_extra_attrs() = std::move(i.extra);
  for (Instruction* predecessor : i.control_predecessors)
    instruction->AddControlPredecessor(predecessor);
  return instruction;
}

}  // namespace lazuli::hlo::internal
