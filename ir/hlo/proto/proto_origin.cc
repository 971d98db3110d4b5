// What XLA's passes note about an instruction for people, as text and back: the value that it had
// in the program as written, and statistics.
//
//   origin={({"a"}, {"b" {1}})}     for a tuple, the instruction and the part of it, leaf by leaf
//   statistics={visualizing_index=0,a=1.5}

#include <charconv>

#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"

namespace lazuli::hlo::internal {
namespace {

constexpr std::size_t kMaxLevels = 64;

struct OriginLeaf {
  Dims path;
  std::string name;
  Dims part;
};

template <class V>
void LeafRows(V& v, typename V::template Ref<OriginLeaf> leaf) {
  v.Ints(1, leaf.path);
  v.Message(2, [&](V& w) {
    w.Text(1, leaf.name);
    w.Ints(2, leaf.part);
  });
}

std::string Text(const OriginLeaf& leaf) {
  if (leaf.name.empty()) return "{}";
  std::string text = "{";
  AppendQuoted(text, leaf.name);
  if (!leaf.part.empty()) text += Str(" {", Join(leaf.part, ","), "}");
  return text + "}";
}

// The part of the tree whose leaves, in order of their paths, are these; `depth` indices of the
// paths have been used.
std::string TreeText(absl::Span<const OriginLeaf> leaves, std::size_t depth) {
  if (leaves.size() == 1 && leaves[0].path.size() == depth) return Text(leaves[0]);
  std::string text = "(";
  while (!leaves.empty()) {
    const Dims& first = leaves[0].path;
    std::size_t count = 1;
    while (count < leaves.size() && first.size() > depth && leaves[count].path.size() > depth &&
           leaves[count].path[depth] == first[depth])
      ++count;
    const bool ends = first.size() <= depth;
    text += Str(text.size() > 1 ? ", " : "",
                ends ? Text(leaves[0]) : TreeText(leaves.first(count), depth + 1));
    leaves.remove_prefix(count);
  }
  return text + ")";
}

// A leaf, or a tuple of trees.
bool ParseTree(Cursor& in, const Dims& path, std::vector<OriginLeaf>* leaves) {
  if (path.size() > kMaxLevels) return in.Fail("tuples nest too deeply");
  if (in.Try('(')) {
    Dims inner = path;
    inner.push_back(0);
    while (!in.Try(')')) {
      if (!ParseTree(in, inner, leaves)) return false;
      ++inner.back();
      if (!in.Try(',') && in.Peek() != ')') return in.Expect(')');
    }
    return true;
  }
  OriginLeaf& leaf = leaves->emplace_back();
  leaf.path = path;
  if (!in.Expect('{')) return false;
  if (in.Try('}')) return true;
  if (!in.String(&leaf.name)) return false;
  if (in.Peek() == '{' && !ParseDims(in, &leaf.part)) return false;
  return in.Expect('}');
}

struct Statistic {
  std::string name;
  double value = 0;
};

}  // namespace

std::string ReadOrigin(protozero::pbf_reader in, ProtoError& error) {
  std::vector<OriginLeaf> leaves;
  bool synthetic = false;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Messages(1, leaves, [](FieldReader& w, OriginLeaf& leaf) { LeafRows(w, leaf); });
    v.Bool(2, synthetic);
  });
  for (const OriginLeaf& leaf : leaves) {
    if (leaf.path.size() > kMaxLevels) error.Note("an origin of more than ", kMaxLevels, " levels");
  }
  if (!error.ok() || (leaves.empty() && !synthetic)) return "";
  return synthetic ? "{[synthetic_call]}" : Str("{", TreeText(leaves, 0), "}");
}

void WriteOrigin(FieldWriter& v, std::string_view text) {
  Cursor in(text);
  std::vector<OriginLeaf> leaves;
  if (!in.Expect('{')) return;
  if (in.Try("[synthetic_call]")) return v.Bool(2, true);
  if (!ParseTree(in, {}, &leaves)) return;
  v.Messages(1, leaves, [](FieldWriter& w, const OriginLeaf& leaf) { LeafRows(w, leaf); });
}

std::string ReadStatistics(protozero::pbf_reader in, ProtoError& error) {
  int64_t shown = 0;
  std::vector<Statistic> statistics;
  FieldReader::ReadAll(in, error, [&](FieldReader& v) {
    v.Int(1, shown);
    v.Messages(2, statistics, [](FieldReader& w, Statistic& s) {
      w.Text(1, s.name);
      w.Double(2, s.value);
    });
  });
  if (statistics.empty()) return "";
  std::string text = Str("{visualizing_index=", shown);
  for (const Statistic& s : statistics) text += Str(",", s.name, "=", s.value);
  return text + "}";
}

void WriteStatistics(FieldWriter& v, std::string_view text) {
  if (text.size() < 2) return;
  for (const auto& [name, value] : SplitTextAttrs(text.substr(1, text.size() - 2))) {
    Statistic s{name, 0};
    std::from_chars(value.data(), value.data() + value.size(), s.value);
    if (name == "visualizing_index") {
      v.Int(1, static_cast<int64_t>(s.value));
    } else {
      v.Message(2, [&](FieldWriter& w) {
        w.Text(1, s.name);
        w.Double(2, s.value);
      });
    }
  }
}

}  // namespace lazuli::hlo::internal
