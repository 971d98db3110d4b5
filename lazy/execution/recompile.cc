#include "lazy/execution/recompile.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "ir/support/str.h"

namespace lazuli::lazy {
namespace {

using ir::GetSite;
using ir::Shape;
using ir::Str;
using OutlineNode = GraphOutline::Node;

std::string At(SiteId site) {
  const std::string text = GetSite(site).ToString();
  return text.empty() ? text : Str(" at ", text);
}

// "aten::mul at train.cc:41".
std::string Called(const OutlineNode& node) { return Str(node.name, At(node.site)); }

// The name and value of ", name=value, ..." that `text` starts with, which it leaves behind.
std::pair<std::string_view, std::string_view> TakeAttr(std::string_view& text) {
  if (text.substr(0, 2) == ", ") text.remove_prefix(2);
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (depth == 0 && text.substr(end, 2) == ", ") break;
  }
  const std::string_view attr = text.substr(0, end);
  text.remove_prefix(end);
  const std::size_t equals = attr.find('=');
  if (equals == std::string_view::npos) return {attr, {}};
  return {attr.substr(0, equals), attr.substr(equals + 1)};
}

// One pair of graphs whose difference is looked for.
class Comparison {
 public:
  Comparison(const GraphOutline& before, const GraphOutline& after) : a_(before), b_(after) {}

  Recompile Find() {
    const auto a = a_.nodes(), b = b_.nodes();
    const bool same_names =
        std::equal(a.begin(), a.end(), b.begin(), b.end(),
                   [](const OutlineNode& x, const OutlineNode& y) { return x.name == y.name; });
    if (!same_names) {
      FindOtherNodes();
    } else if (!FindOtherLeaf() && !FindOtherAttribute() && !FindOtherWiring() &&
               !FindOtherResults()) {
      out_.cause = RecompileCause::kUnknown;
      out_.what = "something that has no text";
    }
    return std::move(out_);
  }

 private:
  static constexpr char kStateAdvice[] =
      "a sync or read falls at another place, or state is made in the first step; it is one "
      "compile more unless it alternates";

  static bool IsLeaf(const OutlineNode& node) { return node.kind != NodeKind::kOp; }

  void Set(RecompileCause cause, const OutlineNode& node, std::string what, std::string before,
           std::string after, std::string advice) {
    out_.cause = cause;
    out_.site = node.site;
    if (!IsLeaf(node)) out_.op = node.name;
    out_.what = std::move(what);
    out_.before = std::move(before);
    out_.after = std::move(after);
    out_.advice = std::move(advice);
  }

  // --- of graphs with the same names of nodes

  // What came in decides what shapes, sizes and counts within the graph are, so it goes first; and
  // a batch that has a rank says more than its labels.
  bool FindOtherLeaf() {
    std::size_t best = a_.nodes().size();
    const auto rank = [&](std::size_t i) { return b_.shape(i).rank(); };
    for (std::size_t i = 0; i < a_.nodes().size(); ++i) {
      if (!IsLeaf(b_.nodes()[i]) || a_.shape(i) == b_.shape(i)) continue;
      if (best == a_.nodes().size() || (rank(best) < 2 && rank(i) >= 2)) best = i;
    }
    if (best == a_.nodes().size()) return false;
    CompareShapes(b_.nodes()[best], a_.shape(best), b_.shape(best));
    return true;
  }

  void CompareShapes(const OutlineNode& leaf, const Shape& before, const Shape& after) {
    if (before.dtype() != after.dtype()) {
      Set(RecompileCause::kDType, leaf,
          leaf.kind == NodeKind::kScalar ? "dtype of a number" : "dtype", DTypeText(before),
          DTypeText(after), "convert it once, before the loop");
      return;
    }
    const std::string whole = after.ToString();
    if (before.rank() != after.rank()) {
      Set(RecompileCause::kShape, leaf, "shape", before.ToString(), whole,
          "give it one shape, by reshape or unsqueeze");
      return;
    }
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < after.dims().size(); ++d) {
      if (before.dims()[d] != after.dims()[d]) dims.push_back(d);
    }
    const std::size_t d = dims.front();
    const std::string from = Str(before.dims()[d]), to = Str(after.dims()[d]);
    if (dims.size() > 1) {
      Set(RecompileCause::kShape, leaf, "shape", before.ToString(), whole,
          "pad it to one shape, or to a few");
    } else if (d > 0 || after.rank() == 1) {
      Set(RecompileCause::kShape, leaf, Str("dimension ", d, " of ", whole), from, to,
          "lengths differ; pad them to one, or to a few");
    } else if (after.dims()[0] < before.dims()[0]) {
      Set(RecompileCause::kBatch, leaf, "batch", from, to,
          Str("the last batch is smaller; drop_last or pad it to ", from));
    } else {
      Set(RecompileCause::kBatch, leaf, "batch", from, to,
          "batches differ; pad them to one size, or to a few");
    }
  }

  static std::string DTypeText(const Shape& shape) {
    const std::string text = shape.ToString();
    return text.substr(0, text.find('['));
  }

  bool FindOtherAttribute() {
    for (std::size_t i = 0; i < a_.nodes().size(); ++i) {
      if (a_.attrs(i) == b_.attrs(i)) continue;
      const OutlineNode& node = b_.nodes()[i];
      Recompile attr;
      CompareAttrs(a_.attrs(i), b_.attrs(i), attr);
      Set(RecompileCause::kAttribute, node, Str(attr.what, " of ", node.name), attr.before,
          attr.after, AttributeAdvice(node.name, attr.what));
      return true;
    }
    return false;
  }

  static std::string AttributeAdvice(std::string_view op, std::string_view attr) {
    if (attr == "dtype" || attr == "to") return "convert to one dtype in every step";
    if (op == "prim::Constant")
      return "constants are part of the program; a plain number or a tensor is an input";
    if (attr == "exponent")
      return "an exponent is part of the program; a tensor of one element is an input";
    if (attr == "starts" || attr == "limits" || attr == "index" || attr == "start")
      return "a position is part of the program; index_select with a tensor of positions is not";
    if (attr == "dims" || attr == "size" || attr == "sizes" || attr == "shape")
      return "sizes are part of the program; use one size, or a few";
    return "attributes are part of the program; use one value, or a few";
  }

  bool FindOtherWiring() {
    for (std::size_t i = 0; i < a_.nodes().size(); ++i) {
      const auto before = a_.operands(i), after = b_.operands(i);
      const OutlineNode& node = b_.nodes()[i];
      for (std::size_t k = 0; k < std::min(before.size(), after.size()); ++k) {
        if (before[k] == after[k]) continue;
        Set(RecompileCause::kWiring, node, Str("operand ", k, " of ", node.name),
            OperandText(a_, before[k]), OperandText(b_, after[k]),
            "the same operations on other operands are another program");
        return true;
      }
      if (before.size() != after.size()) {
        Set(RecompileCause::kWiring, node, Str("number of operands of ", node.name),
            Str(before.size()), Str(after.size()), "a list of another length is another program");
        return true;
      }
    }
    return false;
  }

  static std::string OperandText(const GraphOutline& graph, GraphOutline::Operand operand) {
    const OutlineNode& node = graph.nodes()[operand.node];
    return Str("%", operand.node, operand.output == 0 ? "" : Str(".", operand.output), " ",
               Called(node));
  }

  bool FindOtherResults() {
    const auto a = a_.roots(), b = b_.roots();
    if (std::equal(a.begin(), a.end(), b.begin(), b.end())) return false;
    const auto missing_in = [](absl::Span<const GraphOutline::Operand> these,
                               absl::Span<const GraphOutline::Operand> those) {
      for (const GraphOutline::Operand& root : these) {
        if (std::find(those.begin(), those.end(), root) == those.end()) return &root;
      }
      return static_cast<const GraphOutline::Operand*>(nullptr);
    };
    const GraphOutline::Operand* gone = missing_in(a, b);
    const GraphOutline::Operand* added = missing_in(b, a);
    const GraphOutline::Operand& shown = added ? *added : gone ? *gone : b.front();
    const OutlineNode& node = b_.nodes()[shown.node];
    Set(RecompileCause::kResults, node, "number of results", Str(a.size()), Str(b.size()),
        added  ? Str("the result of ", node.name,
                     " is kept now; drop it before the sync, or keep it always")
        : gone ? Str("the result of ", node.name, " is kept no longer; keep it always or never")
               : "the order in which they are kept is another");
    return true;
  }

  // --- of graphs with other nodes

  // The line of a leaf is where it was used first, which another node may move.
  static bool Matches(const OutlineNode& x, const OutlineNode& y) {
    return x.name == y.name && (x.site == y.site || IsLeaf(x));
  }

  void FindOtherNodes() {
    if (FindState()) return;
    const auto a = a_.nodes(), b = b_.nodes();
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t head = 0, tail = 0;
    while (head < shorter && Matches(a[head], b[head])) ++head;
    while (tail < shorter - head && Matches(a[a.size() - 1 - tail], b[b.size() - 1 - tail])) ++tail;
    const auto gone = a.subspan(head, a.size() - tail - head);
    const auto added = b.subspan(head, b.size() - tail - head);
    if (gone.empty()) {
      Extra(added, head, a, b, RecompileCause::kMoreNodes);
    } else if (added.empty()) {
      Extra(gone, head, b, a, RecompileCause::kFewerNodes);
    } else {
      Replaced(gone, added);
    }
  }

  // The second graph has fewer ops and more inputs: what was made in the first, as weights and an
  // optimiser's state are in a first step, is there. Where that is in the graphs says nothing.
  bool FindState() {
    const auto a = a_.nodes(), b = b_.nodes();
    const auto is_data = [](const OutlineNode& n) { return n.kind == NodeKind::kData; };
    if (std::count_if(b.begin(), b.end(), is_data) <= std::count_if(a.begin(), a.end(), is_data))
      return false;
    absl::flat_hash_map<std::pair<std::string_view, SiteId>, std::ptrdiff_t>
        surplus;  // of the first
    for (const OutlineNode& n : a) {
      if (!IsLeaf(n)) ++surplus[{n.name, n.site}];
    }
    for (const OutlineNode& n : b) {
      if (!IsLeaf(n) && --surplus[{n.name, n.site}] < 0) return false;
    }
    std::vector<bool> gone(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      gone[i] = !IsLeaf(a[i]) && surplus[{a[i].name, a[i].site}]-- > 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (const GraphOutline::Operand& operand : a_.operands(i)) {
        if (gone[i] || !gone[operand.node]) continue;
        BecameData(a[operand.node]);
        return true;
      }
    }
    return FindOtherLists();
  }

  void BecameData(const OutlineNode& op) {
    Set(RecompileCause::kLeaf, op, Str("what ", op.name, " gives"), "computed in the graph",
        "data that was there", kStateAdvice);
  }

  // Of graphs with the same ops: one that takes a list and has a longer one.
  bool FindOtherLists() {
    std::size_t i = 0, j = 0;
    for (;; ++i, ++j) {
      while (i < a_.nodes().size() && IsLeaf(a_.nodes()[i])) ++i;
      while (j < b_.nodes().size() && IsLeaf(b_.nodes()[j])) ++j;
      if (i == a_.nodes().size() || j == b_.nodes().size()) return false;
      const OutlineNode& node = b_.nodes()[j];
      const std::size_t before = a_.operands(i).size(), after = b_.operands(j).size();
      if (node.name != a_.nodes()[i].name || before > after) return false;
      if (before == after) continue;
      Set(RecompileCause::kWiring, node, Str("number of operands of ", node.name), Str(before),
          Str(after),
          "state that the first step makes is an operand of the next; it is one compile more "
          "unless "
          "it alternates");
      return true;
    }
  }

  // One of the graphs, `more`, has nodes that the other lacks.
  void Extra(absl::Span<const OutlineNode> extra, std::size_t at,
             absl::Span<const OutlineNode> fewer, absl::Span<const OutlineNode> more,
             RecompileCause cause) {
    const bool added = cause == RecompileCause::kMoreNodes;
    const auto op = std::find_if_not(extra.begin(), extra.end(), IsLeaf);
    if (op == extra.end()) {  // a tensor that stood in two places, or the other way round
      const OutlineNode& user = more[std::min(at + extra.size(), more.size() - 1)];
      Set(RecompileCause::kWiring, user, Str("number of inputs of the program"),
          Str(Inputs(a_.nodes())), Str(Inputs(b_.nodes())),
          Str("one tensor in two places is one input, two tensors are two (", user.name, ")"));
      return;
    }
    const auto count = [&](absl::Span<const OutlineNode> nodes) {
      return std::count_if(nodes.begin(), nodes.end(),
                           [&](const OutlineNode& n) { return Matches(n, *op); });
    };
    const auto few = count(fewer), many = count(more);
    const std::string before = Str(added ? few : many), after = Str(added ? many : few);
    // An input that is used first elsewhere: what the nodes give may be that input.
    if (at > 0 && IsLeaf(fewer[at - 1]) && fewer[at - 1].site != more[at - 1].site) {
      Set(cause, *op, Str("number of ", op->name), before, after,
          added
              ? "code that did not run before, or a sync that made its result an input comes later"
              : "code that runs no longer, or a sync comes after it and makes its result an input");
    } else if (few > 0) {
      Set(cause, *op, Str("number of ", op->name), before, after,
          "a loop is unrolled into the program; run it equally often, or sync in it");
    } else {
      Set(cause, *op, Str("number of ", op->name), before, after,
          added ? "code that did not run before; compute both branches and choose by where"
                : "code that runs no longer; compute both branches and choose by where");
    }
  }

  static std::ptrdiff_t Inputs(absl::Span<const OutlineNode> nodes) {
    return std::count_if(nodes.begin(), nodes.end(), IsLeaf);
  }

  void Replaced(absl::Span<const OutlineNode> gone, absl::Span<const OutlineNode> added) {
    const auto scalars = [](absl::Span<const OutlineNode> nodes) {
      return std::count_if(nodes.begin(), nodes.end(),
                           [](const OutlineNode& n) { return n.kind == NodeKind::kScalar; });
    };
    const OutlineNode &x = gone.front(), &y = added.front();
    const auto had = scalars(gone), has = scalars(added);
    const bool to_data = x.kind == NodeKind::kScalar && y.kind == NodeKind::kData;
    const bool from_data = x.kind == NodeKind::kData && y.kind == NodeKind::kScalar;
    if (to_data || from_data) {
      Set(RecompileCause::kNumber, y, "an input", to_data ? "a number" : "a tensor",
          to_data ? "a tensor" : "a number", "give the same kind in every step");
    } else if (had > has && !IsLeaf(y)) {
      Set(RecompileCause::kNumber, y, Str("a number of ", y.name), "an input", "an attribute",
          "a number that is part of the program makes a program for each value; give a tensor");
    } else if (has > had && !IsLeaf(x)) {
      const auto op = std::find_if_not(added.begin(), added.end(), IsLeaf);
      const OutlineNode& user = op == added.end() ? y : *op;
      Set(RecompileCause::kNumber, user, Str("a number of ", user.name), "an attribute", "an input",
          "give the same kind in every step");
    } else if (IsLeaf(x) != IsLeaf(y)) {
      const bool became = IsLeaf(y);
      const OutlineNode& op = became ? x : y;
      Set(RecompileCause::kLeaf, op, Str("what ", op.name, " gives"),
          became ? "computed in the graph" : "data that was there",
          became ? "data that was there" : "computed in the graph", kStateAdvice);
      out_.site = op.site;
    } else if (x.site == y.site) {
      Set(RecompileCause::kOp, y, "operation", std::string(x.name), std::string(y.name),
          "the line records another operation; where() chooses without another program");
    } else {
      Set(RecompileCause::kOp, y, "operation", Called(x), std::string(y.name),
          "another branch of the code ran; where() chooses without another program");
    }
  }

  const GraphOutline &a_, &b_;
  Recompile out_;
};

}  // namespace

std::string_view CauseName(RecompileCause cause) {
  switch (cause) {
    case RecompileCause::kFirst:
      return "first";
    case RecompileCause::kEvicted:
      return "evicted";
    case RecompileCause::kOptions:
      return "options";
    case RecompileCause::kBatch:
      return "batch";
    case RecompileCause::kShape:
      return "shape";
    case RecompileCause::kDType:
      return "dtype";
    case RecompileCause::kAttribute:
      return "attribute";
    case RecompileCause::kNumber:
      return "number";
    case RecompileCause::kLeaf:
      return "leaf";
    case RecompileCause::kOp:
      return "operation";
    case RecompileCause::kMoreNodes:
      return "more nodes";
    case RecompileCause::kFewerNodes:
      return "fewer nodes";
    case RecompileCause::kWiring:
      return "wiring";
    case RecompileCause::kResults:
      return "results";
    case RecompileCause::kUnknown:
      return "unknown";
  }
  return "";
}

std::string Recompile::Sentence() const {
  std::string text = what;
  if (!before.empty() || !after.empty()) text += Str(" ", before, " -> ", after);
  text += At(site);
  if (!advice.empty()) text += Str(": ", advice);
  return text;
}

bool CompareAttrs(std::string_view before, std::string_view after, Recompile& out) {
  while (!before.empty() || !after.empty()) {
    const auto [name, x] = TakeAttr(before);
    const auto [name_after, y] = TakeAttr(after);
    if (name == name_after && x == y) continue;
    out.what = name.empty() ? name_after : name;
    out.before = x;
    out.after = y;
    return true;
  }
  return false;
}

Recompile Compare(const GraphOutline& before, const GraphOutline& after) {
  return Comparison(before, after).Find();
}

}  // namespace lazuli::lazy
