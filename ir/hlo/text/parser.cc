#include "ir/hlo/text/parser.h"

#include <algorithm>

#include "ir/hlo/text/parser_internal.h"
#include "ir/hlo/verifier.h"
#include "ir/support/float_mode.h"

namespace lazuli::hlo {
namespace internal {

absl::StatusOr<std::unique_ptr<Module>> Parser::Run() {
  if (!ParseModule()) return in_.Error();
  if (in_.failed()) return in_.Error();  // an unclosed comment at the end
  LAZULI_RETURN_IF_ERROR(Verify(*module_));
  return std::move(module_);
}

bool Parser::ParseModule() {
  module_ = std::make_unique<Module>("module");
  const char* start = in_.position();
  const bool header = in_.TryIdentifier() == "HloModule";
  if (!header) in_.set_position(start);
  if (header && !ParseHeader()) return false;
  bool any = false;
  while (!in_.AtEnd()) {
    const char* at = in_.position();
    if (in_.Peek() == '(') return ParseLoneInstruction();
    const bool percent = in_.Peek() == '%';
    std::string_view word;
    if (!in_.Name(&word)) return false;
    if (!percent && (word == "FileNames" || word == "FunctionNames" || word == "FileLocations" ||
                     word == "StackFrames")) {
      if (!ParseTable(word)) return false;
      continue;
    }
    const bool entry = !percent && word == "ENTRY";
    if (entry && !in_.Name(&word)) return false;
    if (in_.Peek() != '{' && in_.Peek() != '(' && !any && !entry && !header) {
      in_.set_position(at);
      return ParseLoneInstruction();
    }
    if (!ParseComputation(entry, word)) return false;
    any = true;
  }
  if (!any) return in_.Fail("the text has no computation");
  if (module_->entry() == nullptr) module_->set_entry(module_->computations().back().get());
  if (!header) module_->set_name(Str("module_", module_->entry()->name()));
  return Finish();
}

bool Parser::ParseHeader() {
  std::string_view name;
  if (!in_.Name(&name)) return false;
  module_->set_name(std::string(name));
  absl::InlinedVector<std::string_view, 8> seen;
  while (in_.Try(',')) {
    in_.Peek();
    const char* start = in_.position();
    std::string_view attribute;
    if (!in_.Name(&attribute) || !in_.Expect('=')) return false;
    if (std::find(seen.begin(), seen.end(), attribute) != seen.end()) {
      return in_.FailAt(start, "attribute '", attribute, "' is given twice");
    }
    seen.push_back(attribute);
    if (!ParseHeaderAttribute(attribute)) return false;
  }
  return true;
}

bool Parser::ParseHeaderAttribute(std::string_view name) {
  if (name == "is_scheduled") {
    bool value = false;
    if (!in_.Boolean(&value)) return false;
    module_->set_is_scheduled(value);
    return true;
  }
  std::string_view value;
  if (name == "replica_count") return ParseCount(&replica_count_);
  if (name == "num_partitions") return ParseCount(&num_partitions_);
  if (name == "input_output_alias") {
    return ParseAliases();
  } else if (name == "entry_computation_layout") {
    return ParseEntryLayout();
  }
  if (!in_.RawValue(&value)) return false;
  module_->extra_attrs().emplace_back(name, value);
  return true;
}

// Of replicas or of partitions: together they are as many devices as there may be.
bool Parser::ParseCount(int64_t* count) {
  in_.Peek();
  const char* start = in_.position();
  if (!in_.Integer(count)) return false;
  if (*count < 1) return in_.FailAt(start, "expected a count of 1 or more, not ", *count);
  if (*count > kMostDevices / (count == &replica_count_ ? num_partitions_ : replica_count_))
    return in_.FailAt(start, "a module is for ", kMostDevices, " devices at most");
  module_->set_device_counts(replica_count_, num_partitions_);
  return true;
}

// { {0}: (1, {}, may-alias), {1,2}: (0, {3}) }
bool Parser::ParseAliases() {
  std::vector<Alias>& aliases = module_->aliases();
  if (!in_.Expect('{')) return false;
  while (!in_.Try('}')) {
    if (!aliases.empty() && !in_.Expect(',')) return false;
    Alias& alias = aliases.emplace_back();
    if (!ParseDims(in_, &alias.output_index) || !in_.Expect(':') || !in_.Expect('(') ||
        !in_.Integer(&alias.parameter_number) || !in_.Expect(',') ||
        !ParseDims(in_, &alias.parameter_index))
      return false;
    if (in_.Try(',')) {
      in_.Peek();
      const char* start = in_.position();
      const std::string_view kind = in_.Word();
      if (kind != "may-alias" && kind != "must-alias")
        return in_.FailAt(start, "expected may-alias or must-alias, got '", kind, "'");
      alias.must = kind == "must-alias";
    }
    if (!in_.Expect(')')) return false;
  }
  return true;
}

// {(shape, ...)->shape}
bool Parser::ParseEntryLayout() {
  in_.Peek();
  const char* start = in_.position();
  if (!in_.Expect('{') || !in_.Expect('(')) return false;
  while (!in_.Try(')')) {
    if (!entry_layout_.empty() && !in_.Expect(',')) return false;
    if (!ParseShape(in_, &entry_layout_.emplace_back())) return false;
  }
  if (!in_.Expect("->") || !ParseShape(in_, &entry_layout_.emplace_back()) || !in_.Expect('}'))
    return false;
  has_entry_layout_ = true;
  entry_layout_text_ = {start, static_cast<std::size_t>(in_.position() - start)};
  return true;
}

// Lines of one table, up to the next word: 1 "path", or 1 {file_name_id=1 line=4}.
bool Parser::ParseTable(std::string_view table) {
  StackFrames& frames = module_->stack_frames();
  while (in_.Peek() >= '0' && in_.Peek() <= '9') {
    int64_t id;
    if (!in_.Integer(&id)) return false;
    if (table == "FileNames" || table == "FunctionNames") {
      std::string text;
      if (!in_.String(&text)) return false;
      (table == "FileNames" ? frames.files : frames.functions).push_back(std::move(text));
      continue;
    }
    absl::flat_hash_map<std::string_view, int64_t> row;
    if (!ParseRow(&row)) return false;
    if (table == "FileLocations") {
      frames.locations.push_back({row["file_name_id"], row["function_name_id"], row["line"]});
    } else {  // the text counts parents from 1, with 1 for none
      frames.frames.push_back(
          {row["file_location_id"], std::max<int64_t>(row["parent_frame_id"] - 1, 0)});
    }
  }
  return true;
}

bool Parser::ParseRow(absl::flat_hash_map<std::string_view, int64_t>* row) {
  if (!in_.Expect('{')) return false;
  while (!in_.Try('}')) {
    std::string_view name;
    in_.Try(',');
    if (!in_.Name(&name) || !in_.Expect('=') || !in_.Integer(&(*row)[name])) return false;
  }
  return true;
}

bool Parser::ParseComputation(bool entry, std::string_view name) {
  const char* start = name.data();
  if (entry && module_->entry() != nullptr)
    return in_.FailAt(start, "two computations are marked ENTRY");
  if (computations_.contains(name))
    return in_.FailAt(start, "two computations are named '", name, "'");
  // The signature repeats what the body says; only its result is compared.
  Shape result;
  bool has_result = false;
  if (in_.Peek() == '(') {
    std::string_view ignored;
    if (!in_.Balanced(&ignored) || !in_.Expect("->") || !ParseShape(in_, &result)) return false;
    has_result = true;
  }
  Computation* computation = module_->AddComputation(name);
  if (!ParseBody(computation, start)) return false;
  if (has_result && !Compatible(result, computation->root()->shape())) {
    return in_.FailAt(start, "computation '", name, "' declares the result ", result,
                      ", its root is ", computation->root()->shape());
  }
  computations_[name] = computation;
  if (entry) module_->set_entry(computation);
  while (in_.Try(',')) {  // execution_thread="main": one thread runs everything here
    std::string_view attribute, ignored;
    if (!in_.Name(&attribute) || !in_.Expect('=') || !in_.RawValue(&ignored)) return false;
  }
  return true;
}

bool Parser::ParseBody(Computation* computation, const char* start) {
  if (!in_.Expect('{')) return false;
  Instruction* root = nullptr;
  while (!in_.Try('}')) {
    if (in_.AtEnd()) return in_.Fail("expected '}' after computation '", computation->name(), "'");
    const char* at = in_.position();
    Instruction* instruction = nullptr;
    bool is_root = false;
    if (!ParseInstruction(computation, &instruction, &is_root)) return false;
    if (is_root && root != nullptr) {
      return in_.FailAt(at, "computation '", computation->name(),
                        "' has two instructions marked ROOT");
    }
    if (is_root) root = instruction;
  }
  if (computation->root() == nullptr)
    return in_.FailAt(start, "computation '", computation->name(), "' is empty");
  computation->set_root(root != nullptr ? root : computation->instructions().back().get());
  const auto& parameters = computation->parameters();
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    if (parameters[n] != nullptr) continue;
    return in_.FailAt(start, "computation '", computation->name(), "' has parameter ",
                      parameters.size() - 1, " but no parameter ", n);
  }
  return true;
}

bool Parser::ParseLoneInstruction() {
  lone_ = true;
  Computation* computation = module_->AddComputation("entry");
  Instruction* instruction = nullptr;
  bool is_root = false;
  if (!ParseInstruction(computation, &instruction, &is_root)) return false;
  if (!in_.AtEnd()) return in_.Fail("expected nothing after the instruction");
  computation->set_root(instruction);
  module_->set_entry(computation);
  return Finish();
}

// Keeps an entry layout that the parameters and the root do not already say.
bool Parser::Finish() {
  if (!has_entry_layout_) return true;
  const Computation& entry = *module_->entry();
  const std::size_t count = entry.parameters().size();
  bool fits = entry_layout_.size() == count + 1;
  bool same = fits;
  for (std::size_t i = 0; fits && i <= count; ++i) {
    const Shape& actual = i < count ? entry.parameters()[i]->shape() : entry.root()->shape();
    fits = Compatible(entry_layout_[i], actual);
    same = same && entry_layout_[i] == actual;
  }
  if (!fits) {
    return in_.FailAt(entry_layout_text_.data(),
                      "entry_computation_layout does not fit computation '", entry.name(), "'");
  }
  if (!same) module_->extra_attrs().emplace_back("entry_computation_layout", entry_layout_text_);
  return true;
}

}  // namespace internal

absl::StatusOr<std::unique_ptr<Module>> ParseModule(std::string_view text,
                                                    std::vector<std::string>* warnings) {
  const ir::ScopedFloatMode mode;
  return internal::Parser(text, warnings).Run();
}

}  // namespace lazuli::hlo
