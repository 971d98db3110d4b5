// Fields of HloInstructionProto for each family of attributes, for reading and writing alike.

#include "ir/hlo/attr_rows.h"
#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

// Words of PrecisionConfig, by number.
constexpr std::string_view kPrecisions[] = {"default", "high", "highest", "packed_nibble"};

// The rows of attr_rows.h as fields: Value reads or writes the field `tag` by the row's form and the
// member's type.

void Value(FieldReader& v, Tag tag, form::Plain, int64_t& value) { v.Int(tag, value); }
void Value(FieldWriter& v, Tag tag, form::Plain, int64_t value) { v.Int(tag, value); }
void Value(FieldReader& v, Tag tag, form::Plain, bool& value) { v.Bool(tag, value); }
void Value(FieldWriter& v, Tag tag, form::Plain, bool value) { v.Bool(tag, value); }
void Value(FieldReader& v, Tag tag, form::Plain, float& value) { v.Float(tag, value); }
void Value(FieldWriter& v, Tag tag, form::Plain, float value) { v.Float(tag, value); }

template <class V, class T>
void Value(V& v, Tag tag, form::Single, T& value) {
  v.Only(tag, value);
}
template <class V, class T>
void Value(V& v, Tag tag, form::InList, T& value) {
  v.Only(tag, value);
}
template <class V, class T>
void Value(V& v, Tag tag, form::Quoted, T& text) {
  v.Text(tag, text);
}
template <class V, class E>
  requires std::is_enum_v<E>
void Value(V& v, Tag tag, form::Plain, E& value) {
  v.Enum(tag, value, std::ssize(EnumWords<std::remove_const_t<E>>()));
}
template <class V, class E>
void Value(V& v, Tag tag, form::FromOne, E& value) {
  v.Enum(tag, value, std::ssize(EnumWords<std::remove_const_t<E>>()), 1);
}
template <class V, class E>
void Value(V& v, Tag tag, form::ByWord, E& value) {
  v.Word(tag, value, EnumWords<std::remove_const_t<E>>());
}

void Value(FieldReader& v, Tag tag, form::YesOrNo, bool& value) {
  int64_t number = value ? 1 : 2;
  v.Int(tag, number);
  value = number == 1;
}
void Value(FieldWriter& v, Tag tag, form::YesOrNo, bool value) { v.Int(tag, value ? 1 : 2); }

template <const auto& kWords, std::size_t kUnsaid>
void Value(FieldReader& v, Tag tag, form::WordOf<kWords, kUnsaid>, std::string& word) {
  std::size_t number = kUnsaid;
  v.Enum(tag, number, std::ssize(kWords));
  if (number != kUnsaid) word = kWords[number];
}
template <const auto& kWords, std::size_t kUnsaid>
void Value(FieldWriter& v, Tag tag, form::WordOf<kWords, kUnsaid>, const std::string& word) {
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i] == word) return v.Int(tag, static_cast<int64_t>(i == 0 ? kUnsaid : i));
  }
}

// All of them at their default is the empty text.
void Value(FieldReader& v, Tag tag, form::Precisions, std::string& text) {
  bool said = false;
  std::string words;
  v.ForEachInt(tag, [&](int64_t number) {
    if (number < 0 || number >= std::ssize(kPrecisions))
      return v.error().Note("there is no precision ", number);
    said = said || number != 0;
    words += Str(words.empty() ? "" : ",", kPrecisions[number]);
  });
  if (said) text = words;
}
void Value(FieldWriter& v, Tag tag, form::Precisions, const std::string& text) {
  Dims numbers;
  Cursor in(text);
  while (!in.AtEnd()) {
    const std::string_view word = in.Word();
    for (std::size_t i = 0; i < std::size(kPrecisions); ++i) {
      if (kPrecisions[i] == word) numbers.push_back(static_cast<int64_t>(i));
    }
    if (!in.Try(',')) break;
  }
  if (!numbers.empty()) v.Ints(tag, numbers);
}

// Beside the shapes there is a field that says that there are some.
void Value(FieldReader& v, Tag tag, form::ShapeList, std::string& text) {
  bool constrained = false;
  v.Bool(kConstrained, constrained);
  if (!v.AtMessage(tag)) return;
  Shape shape;
  ReadShape(v.in().get_message(), v.error(), &shape);
  text += Str(text.empty() ? "" : ", ", shape.ToString(true));
}
void Value(FieldWriter& v, Tag tag, form::ShapeList, const std::string& text) {
  if (text.empty()) return;
  Cursor in(text);
  v.Bool(kConstrained, true);
  do {
    Shape shape;
    if (!ParseShape(in, &shape)) return;
    v.Message(tag, [&](FieldWriter& w) { WriteShape(w.out(), shape); });
  } while (in.Try(','));
}

void Value(FieldReader& v, Tag tag, form::OutputAliasing, std::string& text) {
  if (!v.AtMessage(tag)) return;
  Dims output, operand;
  int64_t index = 0;
  FieldReader::ReadAll(v.in().get_message(), v.error(), [&](FieldReader& pair) {
    pair.Ints(1, output);
    pair.Int(2, index);
    pair.Ints(3, operand);
  });
  text += Str(text.empty() ? "" : ", ", "{", Join(output, ","), "}: (", index, ", {",
              Join(operand, ","), "})");
}
void Value(FieldWriter& v, Tag tag, form::OutputAliasing, const std::string& text) {
  Cursor in(text);
  while (!in.AtEnd()) {
    Dims output, operand;
    int64_t index = 0;
    if (!ParseDims(in, &output) || !in.Expect(':') || !in.Expect('(') || !in.Integer(&index) ||
        !in.Expect(',') || !ParseDims(in, &operand) || !in.Expect(')'))
      return;
    v.Message(tag, [&](FieldWriter& pair) {
      pair.Ints(1, output);
      pair.Int(2, index);
      pair.Ints(3, operand);
    });
    in.Try(',');
  }
}

template <class V>
void Value(V& v, Tag tag, form::Operand, typename V::template Ref<int64_t> value) {
  v.Int(tag, value);
}
void Value(FieldReader& v, Tag tag, form::Operand, std::shared_ptr<const Literal>& value) {
  if (!v.AtMessage(tag)) return;
  Literal literal;
  ReadLiteral(v.in().get_message(), v.error(), &literal);
  value = std::make_shared<const Literal>(std::move(literal));
}
void Value(FieldWriter& v, Tag tag, form::Operand, const std::shared_ptr<const Literal>& value) {
  v.Message(tag, [&](FieldWriter& w) { WriteLiteral(w.out(), *value); });
}

template <class V>
void Value(V& v, Tag tag, form::Plain, typename V::template Ref<Dims> dims) {
  v.Ints(tag, dims);
}
// Ranges and padding.
template <class V, class Form, class... Column>
  requires(sizeof...(Column) > 2)
void Value(V& v, Tag tag, Form, Column&... columns) {
  v.Columns(tag, std::array{&columns...});
}

void Value(FieldReader& v, Tag tag, form::Plain, std::optional<int64_t>& value) {
  int64_t number = 0;
  v.Int(tag, number);
  if (number > 0) value = number;
}
void Value(FieldWriter& v, Tag tag, form::Plain, const std::optional<int64_t>& value) {
  if (value) v.Int(tag, *value);
}
void Value(FieldReader& v, Tag tag, form::Plain, std::optional<Shape>& shape) {
  if (v.AtMessage(tag)) ReadShape(v.in().get_message(), v.error(), &shape.emplace());
}
void Value(FieldWriter& v, Tag tag, form::Plain, const std::optional<Shape>& shape) {
  if (shape) v.Message(tag, [&](FieldWriter& w) { WriteShape(w.out(), *shape); });
}
void Value(FieldReader& v, Tag tag, form::Plain, ReplicaGroups& groups) {
  ReadReplicaGroups(v, tag, groups);
}
void Value(FieldWriter& v, Tag tag, form::Plain, const ReplicaGroups& groups) {
  WriteReplicaGroups(v, tag, groups);
}
template <class V>
void Value(V& v, Tag tag, form::Plain, typename V::template Ref<DevicePairs> pairs) {
  v.Messages(tag, pairs, [](V& w, auto& pair) {
    w.Int(1, pair.first);
    w.Int(2, pair.second);
  });
}
// Two fields in a row.
void Value(FieldReader& v, Tag tag, form::Domain, ShardingPtr& entry, ShardingPtr& exit) {
  if (v.AtMessage(tag)) entry = ReadSharding(v.in().get_message(), v.error());
  if (v.AtMessage(tag + 1)) exit = ReadSharding(v.in().get_message(), v.error());
}
void Value(FieldWriter& v, Tag tag, form::Domain, const ShardingPtr& entry,
           const ShardingPtr& exit) {
  if (entry) v.Message(tag, [&](FieldWriter& w) { WriteSharding(w, *entry); });
  if (exit) v.Message(tag + 1, [&](FieldWriter& w) { WriteSharding(w, *exit); });
}

template <class V>
void Value(V& v, Tag tag, form::Plain, typename V::template Ref<Window> window) {
  v.Message(tag, [&](V& w) {
    w.Messages(1, window, [](V& d, auto& dim) {
      d.Int(1, dim.size);
      d.Int(2, dim.stride);
      d.Int(3, dim.pad_low);
      d.Int(4, dim.pad_high);
      d.Int(5, dim.window_dilation);
      d.Int(6, dim.base_dilation);
      d.Bool(7, dim.reversal);
    });
  });
}
template <class V>
void Value(V& v, Tag tag, form::Plain, typename V::template Ref<ConvDims> labels) {
  v.Message(tag, [&](V& d) {
    d.Int(3, labels.kernel_input_feature);
    d.Int(4, labels.kernel_output_feature);
    d.Ints(6, labels.kernel_spatial);
    d.Int(7, labels.input_batch);
    d.Int(8, labels.input_feature);
    d.Int(9, labels.output_batch);
    d.Int(10, labels.output_feature);
    d.Ints(11, labels.input_spatial);
    d.Ints(12, labels.output_spatial);
  });
}

// The rows of a family whose paths begin with `message`, in which v is.
template <class A>
void AttrRows(FieldReader& v, A& attrs, const ProtoPath& message = {}) {
  ForEachRow<A>([&](const auto& row) {
    if (v.taken() || !row.path.StartsWith(message)) return;
    const ProtoPath next = message.Next(row.path);
    if (next.depth == row.path.depth) {
      row.Apply(attrs, [&](auto&... value) { Value(v, row.path.last(), row.kForm, value...); });
    } else if (v.AtMessage(next.last())) {
      FieldReader::ReadAll(v.in().get_message(), v.error(),
                           [&](FieldReader& inner) { AttrRows(inner, attrs, next); });
    }
  });
}
template <class A>
void AttrRows(FieldWriter& v, const A& attrs, const ProtoPath& message = {}) {
  Tag written = 0;  // the nested message of the rows before
  ForEachRow<A>([&](const auto& row) {
    if (!row.path.StartsWith(message)) return;
    const ProtoPath next = message.Next(row.path);
    if (next.depth == row.path.depth) {
      row.Apply(attrs,
                [&](const auto&... value) { Value(v, row.path.last(), row.kForm, value...); });
    } else if (next.last() != written) {
      written = next.last();
      v.Message(written, [&](FieldWriter& inner) { AttrRows(inner, attrs, next); });
    }
  });
}

}  // namespace

void ReadAttrsField(FieldReader& field, Attrs* attrs) {
  std::visit([&](auto& a) { AttrRows(field, a); }, *attrs);
}

void WriteAttrs(protozero::pbf_writer& out, const Attrs& attrs) {
  FieldWriter v(out);
  std::visit([&](const auto& a) { AttrRows(v, a); }, attrs);
}

}  // namespace lazuli::hlo::internal
