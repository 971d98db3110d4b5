#include <algorithm>

#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"
#include "ir/support/status.h"

namespace lazuli::hlo::internal {

bool Parser::ParseAttributes(Computation* computation, PendingInstruction& i) {
  while (in_.Try(',')) {
    in_.Peek();
    const char* start = in_.position();
    const std::string_view name = in_.TryIdentifier();
    if (name.empty()) return in_.Fail("expected an attribute");
    if (!in_.Expect('=')) return false;
    if (std::find(i.seen.begin(), i.seen.end(), name) != i.seen.end()) {
      return in_.FailAt(start, "attribute '", name, "' is given twice");
    }
    i.seen.push_back(name);
    if (!ParseAttribute(computation, i, name)) return false;
  }
  return true;
}

namespace {

// Attributes of some opcodes from which nothing here is read.
bool IsKnown(std::string_view name) {
  if (IsCommonAttribute(name)) return true;
  constexpr std::string_view kNames[] = {"inferred_dimension",
                                         "is_composite",
                                         "schedule",
                                         "literal",
                                         "window",
                                         "dim_labels",
                                         "output_to_operand_aliasing",
                                         "operand_precision",
                                         "feature_group_count",
                                         "batch_group_count",
                                         "mode",
                                         "conv_kind",
                                         "convolution_kind",
                                         "sparsity_config",
                                         "slice_sizes",
                                         "async_execution_thread"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

enum class Role : uint8_t { kNone, kFirst, kSecond, kList };

Role CalleeRole(std::string_view name) {
  constexpr std::pair<std::string_view, Role> kRoles[] = {{"to_apply", Role::kFirst},
                                                          {"calls", Role::kFirst},
                                                          {"condition", Role::kFirst},
                                                          {"body", Role::kSecond},
                                                          {"select", Role::kFirst},
                                                          {"scatter", Role::kSecond},
                                                          {"true_computation", Role::kFirst},
                                                          {"false_computation", Role::kSecond},
                                                          {"branch_computations", Role::kList},
                                                          {"called_computations", Role::kList}};
  for (const auto& [known, role] : kRoles) {
    if (name == known) return role;
  }
  return Role::kNone;
}

}  // namespace

bool ParseSharding(Cursor& in, ShardingPtr* value) {
  Sharding sharding;
  if (!Parse(in, &sharding)) return false;
  *value = std::move(sharding);
  return true;
}

bool Parser::ParseAttribute(Computation* computation, PendingInstruction& i,
                            std::string_view name) {
  if (name == "metadata") return ParseMetadata(&i.metadata);
  if (name == "control-predecessors") return ParseControlPredecessors(computation, i);
  if (name == "sharding") return ParseSharding(in_, &i.sharding);
  bool known = false;
  if (!ParseFamilyAttribute(in_, name, &i.attrs, &known)) return false;
  if (known) return true;
  if (CalleeRole(name) != Role::kNone && Traits(i.opcode).regions != 0)
    return ParseCallees(name, i);
  std::string_view value;
  if (!in_.RawValue(&value)) return false;
  if (warnings_ != nullptr && !IsKnown(name))
    warnings_->push_back(
        Str(in_.Place(name.data()), ": unknown attribute '", name, "' is kept as it is"));
  i.extra.emplace_back(name, value);
  return true;
}

bool Parser::ParseCallees(std::string_view name, PendingInstruction& i) {
  const Role role = CalleeRole(name);
  if (role == Role::kList) {
    if (!in_.Expect('{')) return false;
    while (!in_.Try('}')) {
      if (!i.called.empty() && !in_.Expect(',')) return false;
      if (!ParseCallee(&i.called.emplace_back())) return false;
    }
    return true;
  }
  const std::size_t slot = role == Role::kSecond ? 1 : 0;
  if (i.called.size() <= slot) i.called.resize(slot + 1, nullptr);
  return ParseCallee(&i.called[slot]);
}

// A computation's name, or its body in braces.
bool Parser::ParseCallee(Computation** callee) {
  in_.Peek();
  const char* start = in_.position();
  if (in_.Peek() == '{') {
    if (inline_depth_ >= kMaxDepth)
      return in_.Fail("computations are nested deeper than ", kMaxDepth);
    ++inline_depth_;
    *callee = module_->AddComputation("inline");
    const bool done = ParseBody(*callee, start);
    --inline_depth_;
    return done;
  }
  std::string_view name;
  if (!in_.Name(&name)) return false;
  auto it = computations_.find(name);
  if (it == computations_.end())
    return in_.FailAt(start, "there is no computation '", name, "' before this");
  *callee = it->second;
  return true;
}

bool Parser::ParseControlPredecessors(Computation* computation, PendingInstruction& i) {
  if (!in_.Expect('{')) return false;
  while (!in_.Try('}')) {
    if (!i.control_predecessors.empty() && !in_.Expect(',')) return false;
    in_.Peek();
    const char* start = in_.position();
    std::string_view name;
    if (!in_.Name(&name)) return false;
    Instruction* predecessor = computation->Find(name);
    if (predecessor == nullptr) {
      return in_.FailAt(start, "computation '", computation->name(), "' has no instruction '", name,
                        "' before this");
    }
    i.control_predecessors.push_back(predecessor);
  }
  return true;
}

// {op_type="" op_name="" source_file="" source_line=1 ...}: separated by spaces, in any order.
bool Parser::ParseMetadata(Metadata* metadata) {
  if (!in_.Expect('{')) return false;
  while (!in_.Try('}')) {
    in_.Try(',');
    const std::string_view name = in_.TryIdentifier();
    if (name.empty()) return in_.Fail("expected a member of metadata");
    if (!in_.Expect('=') || !ParseMetadataMember(name, metadata)) return false;
  }
  return true;
}

bool Parser::ParseMetadataMember(std::string_view name, Metadata* metadata) {
  if (name == "op_type") return in_.String(&metadata->op_type);
  if (name == "op_name") return in_.String(&metadata->op_name);
  if (name == "source_file") return in_.String(&metadata->source_file);
  if (name != "source_line" && name != "stack_frame_id") {
    std::string_view ignored;
    return in_.RawValue(&ignored);
  }
  int64_t value = 0;
  if (!in_.Integer(&value)) return false;
  if (name == "source_line") {
    if (value >= 0 && value <= INT32_MAX) metadata->source_line = static_cast<int32_t>(value);
    return true;
  }
  module_->stack_frames().Resolve(value, metadata);
  return true;
}

// --- families

namespace {

// 3x3 or 1x2x3: numbers separated by 'x'; their count must be that of the window, which the first
// list sets.
template <class Set>
bool ParseWindowList(Cursor& in, Window* window, Set&& set) {
  in.Peek();
  const char* start = in.position();
  std::size_t n = 0;
  do {
    if (n == window->size()) window->emplace_back();
    if (!set((*window)[n++])) return false;
  } while (in.Try('x'));
  return n == window->size() ||
         in.FailAt(start, n, " values for a window of ", window->size(), " dimensions");
}

bool ParseWindow(Cursor& in, Window* window) {
  if (!in.Expect('{')) return false;
  window->clear();
  while (!in.Try('}')) {
    in.Peek();
    const char* start = in.position();
    const std::string_view name = in.TryIdentifier();
    if (!in.Expect('=')) return false;
    auto list = [&](int64_t WindowDim::* member) {
      return ParseWindowList(in, window, [&](WindowDim& d) { return in.Integer(&(d.*member)); });
    };
    bool done = false;
    if (name == "size") {
      done = list(&WindowDim::size);
    } else if (name == "stride") {
      done = list(&WindowDim::stride);
    } else if (name == "lhs_dilate") {
      done = list(&WindowDim::base_dilation);
    } else if (name == "rhs_dilate") {
      done = list(&WindowDim::window_dilation);
    } else if (name == "pad") {
      done = ParseWindowList(in, window, [&](WindowDim& d) {
        return in.Integer(&d.pad_low) && in.Expect('_') && in.Integer(&d.pad_high);
      });
    } else if (name == "rhs_reversal") {
      done = ParseWindowList(in, window, [&](WindowDim& d) {
        int64_t value = 0;
        if (!in.Integer(&value)) return false;
        d.reversal = value != 0;
        return true;
      });
    } else {
      return in.FailAt(start, "a window has no '", name, "'");
    }
    if (!done) return false;
  }
  return true;
}

// {[0:4], [1:8:2]}
bool ParseValue(Cursor& in, std::string_view, form::Ranges, Dims* starts, Dims* limits,
                Dims* strides) {
  if (!in.Expect('{')) return false;
  while (!in.Try('}')) {
    if (!starts->empty() && !in.Expect(',')) return false;
    int64_t start, limit, stride = 1;
    if (!in.Expect('[') || !in.Integer(&start) || !in.Expect(':') || !in.Integer(&limit))
      return false;
    if (in.Try(':') && !in.Integer(&stride)) return false;
    if (!in.Expect(']')) return false;
    starts->push_back(start);
    limits->push_back(limit);
    strides->push_back(stride);
  }
  return true;
}

// 1_1x0_2_1: low, high and optionally interior of each dimension. Nothing for scalars.
bool ParseValue(Cursor& in, std::string_view, form::Padding, Dims* low, Dims* high,
                Dims* interior) {
  if (in.Peek() != '-' && (in.Peek() < '0' || in.Peek() > '9')) return true;
  // Nothing may stand between the numbers: an x behind a space begins the next instruction's name.
  const auto next = [&in](char c) {
    return in.remaining() > 0 && *in.position() == c && in.Try(c);
  };
  do {
    if (!in.Integer(&low->emplace_back()) || !in.Expect('_') || !in.Integer(&high->emplace_back()))
      return false;
    interior->push_back(0);
    if (next('_') && !in.Integer(&interior->back())) return false;
  } while (next('x'));
  return true;
}

template <class Form>
bool ParseValue(Cursor& in, std::string_view, Form, int64_t* value) {
  return in.Integer(value);
}
template <class Form>
bool ParseValue(Cursor& in, std::string_view, Form, bool* value) {
  return in.Boolean(value);
}
bool ParseValue(Cursor& in, std::string_view, form::Plain, Dims* value) {
  return ParseDims(in, value);
}
bool ParseValue(Cursor& in, std::string_view, form::Plain, Window* value) {
  return ParseWindow(in, value);
}
bool ParseValue(Cursor& in, std::string_view, form::Plain, ConvDims* value) {
  std::string_view text;
  if (!in.RawValue(&text)) return false;
  const std::optional<ConvDims> parsed = ParseConvDims(text);
  if (!parsed)
    return in.FailAt(text.data(), "'", text, "' are not dimension labels such as b01f_01io->b01f");
  *value = *parsed;
  return true;
}
template <class T>
  requires requires(Cursor& in, T* value) { Parse(in, value); }
bool ParseValue(Cursor& in, std::string_view, form::Plain, T* value) {
  return Parse(in, value);
}
bool ParseValue(Cursor& in, std::string_view, form::Plain, Shape* value) {
  return ParseShape(in, value);
}
template <class T>
bool ParseValue(Cursor& in, std::string_view name, form::Plain, std::optional<T>* value) {
  return ParseValue(in, name, form::Plain{}, &value->emplace());
}
bool ParseValue(Cursor& in, std::string_view, form::Domain, ShardingPtr* entry, ShardingPtr* exit) {
  if (!in.Expect('{')) return false;
  do {
    in.Peek();
    const char* start = in.position();
    const std::string_view name = in.TryIdentifier();
    if (!in.Expect('=')) return false;
    if (name == "kind") {
      if (!in.Expect("\"sharding\"")) return false;
    } else if (name != "entry" && name != "exit") {
      return in.FailAt(start, "a domain has no '", name, "'");
    } else if (!ParseSharding(in, name == "entry" ? entry : exit)) {
      return false;
    }
  } while (in.Try(','));
  return in.Expect('}');
}
bool ParseValue(Cursor& in, std::string_view, form::Plain, float* value) {
  const std::string_view word = in.Word();
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *value);
  return (error == std::errc() && end == word.data() + word.size()) ||
         in.FailAt(word.data(), "expected a number, not '", word, "'");
}
bool ParseValue(Cursor& in, std::string_view, form::Single, int64_t* value) {
  Dims dims;
  in.Peek();
  const char* start = in.position();
  if (!ParseDims(in, &dims)) return false;
  if (dims.size() != 1) return in.FailAt(start, "expected one dimension, not ", dims.size());
  *value = dims[0];
  return true;
}
template <class Form, class E>
  requires std::is_enum_v<E>
bool ParseValue(Cursor& in, std::string_view name, Form, E* value) {
  const std::string_view word = in.Word();
  const std::optional<E> parsed = ParseEnum<E>(word);
  if (!parsed) return in.FailAt(word.data(), "'", word, "' is not a value of ", name);
  *value = *parsed;
  return true;
}
bool ParseValue(Cursor& in, std::string_view, form::Quoted, std::string* value) {
  return in.String(value);
}
template <const auto& kWords, std::size_t kUnsaid>
bool ParseValue(Cursor& in, std::string_view, form::WordOf<kWords, kUnsaid>, std::string* value) {
  *value = in.Word();
  return !value->empty() || in.Fail("expected a word");
}
// Other text is what stands between braces.
template <class Form>
bool ParseValue(Cursor& in, std::string_view, Form, std::string* text) {
  std::string_view value;
  if (in.Peek() != '{') return in.Fail("expected '{'");
  if (!in.Balanced(&value)) return false;
  *text = value.substr(1, value.size() - 2);
  return true;
}

template <std::size_t kIndex = 0>
Attrs MakeAttrs(std::size_t index) {
  if constexpr (kIndex + 1 < std::variant_size_v<Attrs>) {
    if (index != kIndex) return MakeAttrs<kIndex + 1>(index);
  }
  return Attrs(std::in_place_index<kIndex>);
}

}  // namespace

bool ParseFamilyAttribute(Cursor& in, std::string_view name, Attrs* attrs, bool* known) {
  bool ok = true;
  const auto parse = [&]<class A>(A& family) {
    ForEachTextRow<A>([&](const auto& row) {
      if (row.name != name) return;
      *known = true;
      row.Apply(family, [&](auto&... value) { ok = ParseValue(in, name, row.kForm, &value...); });
    });
  };
  std::visit(parse, *attrs);
  return ok;
}

Attrs DefaultAttrs(AttrsKind kind) { return MakeAttrs(static_cast<std::size_t>(kind)); }

std::string_view MissingAttribute(const Attrs& attrs, absl::Span<const std::string_view> seen) {
  std::string_view missing;
  const auto check = [&]<class A>(const A&) {
    ForEachTextRow<A>([&](const auto& row) {
      if (row.presence == Presence::kRequired && missing.empty() &&
          std::find(seen.begin(), seen.end(), row.name) == seen.end())
        missing = row.name;
    });
  };
  std::visit(check, attrs);
  return missing;
}

}  // namespace lazuli::hlo::internal

namespace lazuli::hlo {

std::vector<AttributeName> AttributesOf(Opcode opcode) {
  std::vector<AttributeName> names;
  const auto add = [&]<class A>(const A&) {
    ForEachTextRow<A>(
        [&](const auto& row) { names.push_back({row.name, row.presence == Presence::kRequired}); });
  };
  std::visit(add, internal::DefaultAttrs(Traits(opcode).attrs));
  return names;
}

absl::StatusOr<Attrs> ParseAttrs(Opcode opcode,
                                 absl::Span<const std::pair<std::string, std::string>> attributes) {
  Attrs attrs = internal::DefaultAttrs(Traits(opcode).attrs);
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : attributes) {
    Cursor in(value);
    bool known = false;
    const bool ok = internal::ParseFamilyAttribute(in, name, &attrs, &known);
    if (!known) {
      std::vector<std::string_view> names;
      for (const AttributeName& attribute : AttributesOf(opcode)) names.push_back(attribute.name);
      return InvalidArgument("it has no attribute ", name,
                             names.empty() ? "" : Str(", only ", Join(names, ", ")));
    }
    if (!ok || !in.AtEnd())
      return InvalidArgument("'", value, "' is not a value of its attribute ", name);
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return InvalidArgument("its attribute ", name, " is given twice");
    seen.push_back(name);
  }
  if (const std::string_view missing = internal::MissingAttribute(attrs, seen); !missing.empty())
    return InvalidArgument("its attribute ", missing, " is missing");
  return attrs;
}

}  // namespace lazuli::hlo
