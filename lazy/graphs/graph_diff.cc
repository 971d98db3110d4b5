#include "lazy/graphs/graph_diff.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/support/str.h"

namespace lazuli::lazy {
namespace {

using ir::Str;
constexpr int64_t kNone = NodeDifference::kNone;

// What brings two nodes together, as a number for each distinct one.
std::vector<uint32_t> Kinds(const SavedGraph& graph,
                            std::unordered_map<std::string, uint32_t>& known) {
  std::vector<uint32_t> kinds;
  for (const SavedNode& node : graph.nodes) {
    const std::string kind = Str(node.op, "|", node.scope, "|", node.place.file, ":",
                                 node.place.line, "|", node.op == "parameter" ? node.label : "");
    kinds.push_back(known.try_emplace(kind, static_cast<uint32_t>(known.size())).first->second);
  }
  return kinds;
}

// The longest common subsequence by Myers' greedy algorithm, or, where the two have too little in
// common for it, what a forward search finds.
class Matcher {
 public:
  Matcher(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) : a_(a), b_(b) {}

  std::vector<int64_t> Run() {
    std::vector<int64_t> match(a_.size(), kNone);
    int64_t begin = 0, a_end = Size(a_), b_end = Size(b_);
    for (; begin < a_end && begin < b_end && A(begin) == B(begin); ++begin)
      match[At(begin)] = begin;
    while (a_end > begin && b_end > begin && A(a_end - 1) == B(b_end - 1))
      match[At(--a_end)] = --b_end;
    if (!Shortest(begin, a_end, b_end, match)) Forward(begin, a_end, b_end, match);
    return match;
  }

 private:
  static constexpr int64_t kMaxEdits = 1500;
  static constexpr int64_t kLook = 200;
  static int64_t Size(const std::vector<uint32_t>& v) { return static_cast<int64_t>(v.size()); }
  static std::size_t At(int64_t i) { return static_cast<std::size_t>(i); }
  uint32_t A(int64_t i) const { return a_[At(i)]; }
  uint32_t B(int64_t i) const { return b_[At(i)]; }

  bool Shortest(int64_t begin, int64_t a_end, int64_t b_end, std::vector<int64_t>& match) const {
    const int64_t n = a_end - begin, m = b_end - begin;
    std::vector<std::vector<int64_t>>
        rounds;  // of each number of edits, how far each diagonal goes
    std::vector<int64_t> reach(At(2 * kMaxEdits + 3));
    const auto at = [&](int64_t k) -> int64_t& { return reach[At(k + kMaxEdits + 1)]; };
    for (int64_t d = 0; d <= std::min(n + m, kMaxEdits); ++d) {
      for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < n && x - k < m && A(begin + x) == B(begin + x - k)) ++x;
        at(k) = x;
        if (x >= n && x - k >= m) return WalkBack(rounds, begin, n, m, d, match), true;
      }
      std::vector<int64_t>& kept = rounds.emplace_back();
      for (int64_t k = -d; k <= d; ++k) kept.push_back(at(k));
    }
    return false;
  }

  void WalkBack(const std::vector<std::vector<int64_t>>& rounds, int64_t begin, int64_t x,
                int64_t y, int64_t d, std::vector<int64_t>& match) const {
    for (; d > 0; --d) {
      const std::vector<int64_t>& before = rounds[At(d - 1)];
      const auto at = [&](int64_t k) {
        return k < -(d - 1) || k > d - 1 ? int64_t{-1} : before[At(k + d - 1)];
      };
      const int64_t k = x - y;
      const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      const int64_t from = down ? at(k + 1) : at(k - 1) + 1;
      for (; x > from; --x, --y) match[At(begin + x - 1)] = begin + y - 1;
      (down ? y : x) -= 1;
    }
    for (; x > 0 && y > 0; --x, --y) match[At(begin + x - 1)] = begin + y - 1;
  }

  void Forward(int64_t begin, int64_t a_end, int64_t b_end, std::vector<int64_t>& match) const {
    for (int64_t i = begin, next = begin; i < a_end; ++i) {
      for (int64_t j = next; j < std::min(b_end, next + kLook); ++j) {
        if (A(i) != B(j)) continue;
        match[At(i)] = j;
        next = j + 1;
        break;
      }
    }
  }

  const std::vector<uint32_t>&a_, &b_;
};

std::string Operands(const SavedGraph& graph, const SavedNode& node) {
  std::vector<std::string> names;
  for (const SavedNode::Operand& operand : node.operands)
    names.push_back(Str(graph.nodes[operand.node].name, " ", graph.nodes[operand.node].op));
  return ir::Join(names, ", ");
}

// How two nodes that are together differ, or "".
std::string Compare(const SavedGraph& a, const SavedNode& x, const SavedGraph& b,
                    const SavedNode& y, const std::vector<int64_t>& match) {
  std::vector<std::string> what;
  if (x.shape != y.shape) what.push_back(Str("shape ", x.shape, " -> ", y.shape));
  if (x.label != y.label) what.push_back(Str("name ", x.label, " -> ", y.label));
  for (std::size_t i = 0; i < std::max(x.attrs.size(), y.attrs.size()); ++i) {
    if (i >= x.attrs.size())
      what.push_back(Str("new attribute ", y.attrs[i].first, "=", y.attrs[i].second));
    else if (i >= y.attrs.size())
      what.push_back(Str("attribute ", x.attrs[i].first, "=", x.attrs[i].second, " is gone"));
    else if (x.attrs[i] != y.attrs[i])
      what.push_back(Str(x.attrs[i].first, "=", x.attrs[i].second, " -> ", y.attrs[i].first, "=",
                         y.attrs[i].second));
  }
  const auto wired = [&](const SavedNode::Operand& p, const SavedNode::Operand& q) {
    return match[p.node] == static_cast<int64_t>(q.node) && p.output == q.output;
  };
  if (!std::equal(x.operands.begin(), x.operands.end(), y.operands.begin(), y.operands.end(),
                  wired))
    what.push_back(Str("operands (", Operands(a, x), ") -> (", Operands(b, y), ")"));
  const auto same_root = [](const SavedNode::Root& p, const SavedNode::Root& q) {
    return p.position == q.position && p.output == q.output;
  };
  if (!std::equal(x.roots.begin(), x.roots.end(), y.roots.begin(), y.roots.end(), same_root))
    what.emplace_back("other results");
  return ir::Join(what, "; ");
}

}  // namespace

GraphDifference Diff(const SavedGraph& a, const SavedGraph& b) {
  std::unordered_map<std::string, uint32_t> known;
  const std::vector<uint32_t> a_kinds = Kinds(a, known), b_kinds = Kinds(b, known);
  GraphDifference difference;
  difference.match = Matcher(a_kinds, b_kinds).Run();
  const auto only_in_b = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) difference.differs.push_back({kNone, j, "only in B"});
  };
  int64_t next = 0;  // of B
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const int64_t j = difference.match[i];
    if (j == kNone) {
      difference.differs.push_back({static_cast<int64_t>(i), kNone, "only in A"});
      continue;
    }
    only_in_b(next, j);
    next = j + 1;
    std::string what =
        Compare(a, a.nodes[i], b, b.nodes[static_cast<std::size_t>(j)], difference.match);
    if (!what.empty()) difference.differs.push_back({static_cast<int64_t>(i), j, std::move(what)});
  }
  only_in_b(next, static_cast<int64_t>(b.nodes.size()));
  return difference;
}

}  // namespace lazuli::lazy
