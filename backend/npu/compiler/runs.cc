#include "backend/npu/compiler/runs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/support/check.h"

namespace lazuli::npu {
namespace {

constexpr std::size_t kStreams = 3, kMostMicros = 64;
constexpr int kResult = 3, kVectorRegisters = 32;

// What a node needs: streams, and nodes to be computed.
struct Need {
  std::set<RunInput> sources;
  std::set<int> nodes;
};

class Divider {
 public:
  explicit Divider(const Expression& expression) : e_(expression) {}

  std::vector<VectorRun> Divide(absl::Span<const int> roots) {
    std::map<int, Need> needs;
    Mark({roots.begin(), roots.end()});
    for (int n : reached_) needs[n] = NeedOf(n, needs);
    for (int root : roots) Finish(root, needs.at(root));
    return std::move(runs_);
  }

 private:
  void Mark(std::vector<int> todo) {
    while (!todo.empty()) {
      const int n = todo.back();
      todo.pop_back();
      if (!reached_.insert(n).second) continue;
      const Node& node = e_.at(n);
      for (int operand : {node.a, node.b, node.c}) {
        if (operand >= 0) todo.push_back(operand);
      }
    }
  }

  Need NeedOf(int n, std::map<int, Need>& needs) {
    const Node& node = e_.at(n);
    Need need;
    if (node.kind == Node::Kind::kLoad) {
      need.sources.insert({false, node.load});
      need.nodes.insert(n);
      return need;
    }
    while (true) {
      need = {};
      int heaviest = -1;
      for (int operand : {node.a, node.b, node.c}) {
        if (operand < 0) continue;
        const Need& of = needs.at(operand);
        need.sources.insert(of.sources.begin(), of.sources.end());
        need.nodes.insert(of.nodes.begin(), of.nodes.end());
        const bool plain =
            of.nodes.size() == 1 && of.sources.size() <= 1 &&
            (e_.at(operand).kind != Node::Kind::kOp || temporaries_.contains(operand));
        if (plain) continue;
        if (heaviest < 0 || Weight(of) > Weight(needs.at(heaviest))) heaviest = operand;
      }
      need.nodes.insert(n);
      if (need.sources.size() <= kStreams && need.nodes.size() <= kMostMicros && Assemble(n, need))
        return need;
      LAZULI_CHECK(heaviest >= 0, "an operation on three streams is a program");
      // Computed by a run of its own, it is a stream.
      Finish(heaviest, needs.at(heaviest));
      const int temporary = static_cast<int>(runs_.size()) - 1;
      temporaries_[heaviest] = temporary;
      needs[heaviest] = {{{true, temporary}}, {heaviest}};
    }
  }

  static std::size_t Weight(const Need& need) {
    return need.sources.size() * 1000 + need.nodes.size();
  }

  void Finish(int n, const Need& need) {
    std::optional<VectorRun> run = Assemble(n, need);
    LAZULI_CHECK(run, "it was a program before");
    runs_.push_back(*std::move(run));
  }

  // A node that another program has made since is one that this program makes itself.
  bool IsStream(int n, const Need& need) const {
    if (e_.at(n).kind == Node::Kind::kLoad) return true;
    const auto at = temporaries_.find(n);
    return at != temporaries_.end() && need.sources.contains({true, at->second});
  }

  // The program of node n, if registers suffice.
  std::optional<VectorRun> Assemble(int n, const Need& need) const {
    VectorRun run;
    run.type = e_.at(n).type;
    if (e_.at(n).kind == Node::Kind::kOp && IsComparison(e_.at(n).op)) run.type = kSigned;
    run.inputs.assign(need.sources.begin(), need.sources.end());
    std::map<int, int> registers, last;
    for (int node : need.nodes) {
      if (IsStream(node, need)) {
        const auto temporary = temporaries_.find(node);
        const RunInput source = temporary != temporaries_.end() ? RunInput{true, temporary->second}
                                                                : RunInput{false, e_.at(node).load};
        registers[node] = static_cast<int>(
            std::lower_bound(run.inputs.begin(), run.inputs.end(), source) - run.inputs.begin());
        continue;
      }
      for (int operand : {e_.at(node).a, e_.at(node).b, e_.at(node).c}) {
        if (operand >= 0) last[operand] = node;
      }
    }
    std::set<int> free;
    for (int r = kResult + 1; r < kVectorRegisters; ++r) free.insert(r);
    for (int node : need.nodes) {
      if (registers.contains(node) && node != n) continue;
      if (node != n && free.empty()) return std::nullopt;
      MicroInstruction micro = MicroOf(node, IsStream(node, need), registers);
      ++run.micros;
      for (int operand : {e_.at(node).a, e_.at(node).b, e_.at(node).c}) {
        if (operand < 0 || IsStream(operand, need) || last[operand] != node) continue;
        if (const int r = registers[operand]; r > kResult) free.insert(r);
      }
      micro.d = kResult;
      if (node != n) {
        if (free.empty()) return std::nullopt;
        micro.d = *free.begin();
        free.erase(free.begin());
      }
      registers[node] = micro.d;
      EncodeVector(micro, run.words);
    }
    return run;
  }

  static bool IsComparison(Micro op) { return op >= Micro::kCmpEq && op <= Micro::kCmpGe; }

  // A stream that is a result itself is moved.
  MicroInstruction MicroOf(int n, bool stream, const std::map<int, int>& registers) const {
    const Node& node = e_.at(n);
    MicroInstruction micro{Micro::kMov, 0, 0, 0, 0, node.type, 0};
    if (stream) {
      micro.a = registers.at(n);
      micro.type = 0;
      return micro;
    }
    if (node.kind == Node::Kind::kLiteral) {
      micro.op = Micro::kLit;
      micro.literal = node.literal;
      micro.type = 0;
      return micro;
    }
    micro.op = node.op;
    micro.a = registers.at(node.a);
    if (node.b >= 0) micro.b = registers.at(node.b);
    if (node.c >= 0) micro.c = registers.at(node.c);
    return micro;
  }

  const Expression& e_;
  std::vector<VectorRun> runs_;
  std::map<int, int> temporaries_;  // nodes that runs have computed
  std::set<int> reached_;
};

}  // namespace

std::vector<VectorRun> DivideIntoRuns(const Expression& expression, absl::Span<const int> roots) {
  return Divider(expression).Divide(roots);
}

}  // namespace lazuli::npu
