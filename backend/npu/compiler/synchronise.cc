#include "backend/npu/compiler/synchronise.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "backend/npu/compiler/touched.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using PortClock = UnitClock<kPorts>;  // operations that are known to be done
using TouchedByPorts = Touched<kPorts>;

struct DependencyEdge {
  int from, to;  // operations
};

class Synchroniser {
 public:
  explicit Synchroniser(TileProgram& program) : program_(program) {}

  absl::Status Run() {
    while (true) {
      FindEdges();
      const int crowded = CrowdedAt();
      if (crowded < 0) break;
      fences_.insert(crowded);
    }
    return Emit();
  }

 private:
  static constexpr int kMostTokens = 160;  // a semaphore holds 255; queues may hold further waits

  // Everything is done before it.
  bool Fenced(int op) const {
    return IsBarrier(program_.ops[static_cast<std::size_t>(op)]) || fences_.contains(op);
  }

  template <class F>
  void ForEachPlace(const TileOp& op, F f) {
    auto visit = [&](const Place& place, bool writes) {
      if (place.space == Space::kNone || place.space == Space::kAcc) return;
      const bool spm = place.space == Space::kSpm;
      const int64_t base =
          spm ? program_.buffers[static_cast<std::size_t>(place.object)].address : 0;
      f(memories_[spm ? -1 : place.object], base + place.low, base + place.high, writes);
    };
    for (const Place& place : op.from) visit(place, false);
    visit(op.table, false);
    visit(op.updates, false);
    visit(op.updates, true);
    if (op.reads_to) visit(op.to, false);
    visit(op.to, true);
  }

  void Restart() {
    memories_.clear();
    known_.fill(PortClock());
  }

  void FindEdges() {
    edges_.clear();
    Restart();
    starts_.assign(program_.ops.size(), PortClock());
    for (int i = 0; i < static_cast<int>(program_.ops.size()); ++i) {
      if (Fenced(i)) Restart();
      const TileOp& op = program_.ops[static_cast<std::size_t>(i)];
      if (IsControl(op)) continue;
      const int port = PortOf(op);
      PortClock needed;
      ForEachPlace(op, [&](TouchedByPorts& memory, int64_t low, int64_t high, bool writes) {
        memory.ForEach(low, high, [&](const TouchedByPorts::TouchedRange& range) {
          Need(range.writer, needed);
          if (!writes) return;
          for (int reader : range.readers) Need(reader, needed);
        });
      });
      AddEdges(i, port, needed);
      starts_[static_cast<std::size_t>(i)] = known_[static_cast<std::size_t>(port)];
      starts_[static_cast<std::size_t>(i)][static_cast<std::size_t>(port)] = i;
      ForEachPlace(op, [&](TouchedByPorts& memory, int64_t low, int64_t high, bool writes) {
        writes ? memory.Write(low, high, i) : memory.Read(low, high, i, port);
      });
    }
  }

  void Need(int op, PortClock& needed) const {
    if (op < 0) return;
    int& last =
        needed[static_cast<std::size_t>(PortOf(program_.ops[static_cast<std::size_t>(op)]))];
    last = std::max(last, op);
  }

  // The latest first: it may know the others.
  void AddEdges(int op, int port, PortClock needed) {
    PortClock& known = known_[static_cast<std::size_t>(port)];
    needed[static_cast<std::size_t>(port)] = -1;
    std::sort(needed.begin(), needed.end(), std::greater<>());
    for (int from : needed) {
      if (from < 0) break;
      const auto other =
          static_cast<std::size_t>(PortOf(program_.ops[static_cast<std::size_t>(from)]));
      if (known[other] >= from) continue;
      const PortClock& start = starts_[static_cast<std::size_t>(from)];
      for (std::size_t p = 0; p < known.size(); ++p) known[p] = std::max(known[p], start[p]);
      edges_.push_back({from, op});
    }
  }

  // An operation before which a pair of ports would hold too many tokens; -1: none.
  int CrowdedAt() const {
    std::map<std::pair<int, int>, std::vector<int>> waiting;  // ends of edges, by pair
    std::vector<DependencyEdge> by_start = edges_;
    std::sort(by_start.begin(), by_start.end(),
              [](const DependencyEdge& a, const DependencyEdge& b) { return a.from < b.from; });
    for (const DependencyEdge& edge : by_start) {
      std::vector<int>& ends = waiting[{PortOf(program_.ops[static_cast<std::size_t>(edge.from)]),
                                        PortOf(program_.ops[static_cast<std::size_t>(edge.to)])}];
      std::erase_if(ends, [&](int end) { return end <= edge.from; });
      ends.push_back(edge.to);
      if (static_cast<int>(ends.size()) > kMostTokens) return edge.from;
    }
    return -1;
  }

  // What a semaphore is for. Relayed tokens have semaphores of their own: whoever takes those of one
  // semaphore is one port, in the order in which they are given.
  enum class Use : uint8_t {
    kEdge,      // from one port to the other
    kSpread,    // from a port to the relay, which gives it to several
    kGathered,  // from one port to the relay, on behalf of the other, which waits for several
    kJoined     // from the relay to a port
  };
  absl::StatusOr<int> SemaphoreOf(Use use, int from, int to) {
    const auto [at, added] =
        semaphores_.emplace(std::array{static_cast<int>(use), from, to}, semaphores_.size());
    if (at->second >= kSemaphores - program_.link_semaphores)
      return Internal("more pairs of units than semaphores");
    return at->second;
  }

  // The matrix unit's ports share a queue, whose sem.wait and sem.sig belong to one of them.
  static constexpr bool Shares(int port) {
    return port == kWeightsPort || port == kResultsPort || port == static_cast<int>(Queue::kMx);
  }

  static TileOp Token(Queue queue, int wait, int signal, int origin) {
    TileOp op{wait != kNoToken ? Op::kSemWait : Op::kSemSig, queue};
    op.wait = wait;
    op.signal = signal;
    op.origin = origin;
    return op;
  }

  // Tokens from the ports `sources`, in front of `op`; the last is its own.
  absl::Status EmitWaits(const std::vector<int>& sources, TileOp& op, std::vector<TileOp>& out) {
    const int port = PortOf(op);
    const bool relayed = Shares(port) && sources.size() > 1;
    const bool waits = op.wait != kNoToken;  // for another device
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const bool last = s + 1 == sources.size();
      LAZULI_ASSIGN_OR_RETURN(const int semaphore,
                              SemaphoreOf(relayed ? Use::kGathered : Use::kEdge, sources[s], port));
      if (relayed) {
        TileOp token = Token(Queue::kHd, semaphore, kNoToken, op.origin);
        if (last) {
          LAZULI_ASSIGN_OR_RETURN(token.signal, SemaphoreOf(Use::kJoined, 0, port));
          op.wait = token.signal;
        }
        out.push_back(token);
      } else if (last && !waits) {
        op.wait = semaphore;
      } else {
        out.push_back(Token(op.queue, semaphore, kNoToken, op.origin));
      }
    }
    return absl::OkStatus();
  }

  // The last operation of `out` gives these tokens.
  absl::Status EmitSignals(const std::vector<int>& tokens, std::vector<TileOp>& out) {
    if (tokens.empty()) return absl::OkStatus();
    const std::size_t at = out.size() - 1;
    const TileOp op = out[at];
    if (Shares(PortOf(op)) && tokens.size() > 1) {
      LAZULI_ASSIGN_OR_RETURN(const int spread, SemaphoreOf(Use::kSpread, PortOf(op), 0));
      out[at].signal = spread;
      for (std::size_t t = 0; t < tokens.size(); ++t)
        out.push_back(Token(Queue::kHd, t == 0 ? spread : kNoToken, tokens[t], op.origin));
      return absl::OkStatus();
    }
    out[at].signal = tokens[0];
    for (std::size_t t = 1; t < tokens.size(); ++t)
      out.push_back(Token(op.queue, kNoToken, tokens[t], op.origin));
    return absl::OkStatus();
  }

  absl::Status Emit() {
    // Of each operation: the ports that it waits for, and the tokens that it gives.
    const std::size_t n = program_.ops.size();
    std::vector<std::vector<int>> sources(n), tokens(n);
    auto port_of = [&](int op) { return PortOf(program_.ops[static_cast<std::size_t>(op)]); };
    for (const DependencyEdge& edge : edges_)
      sources[static_cast<std::size_t>(edge.to)].push_back(port_of(edge.from));
    for (const DependencyEdge& edge : edges_) {
      const int to = port_of(edge.to);
      const bool gathered = Shares(to) && sources[static_cast<std::size_t>(edge.to)].size() > 1;
      LAZULI_ASSIGN_OR_RETURN(const int token, SemaphoreOf(gathered ? Use::kGathered : Use::kEdge,
                                                           port_of(edge.from), to));
      tokens[static_cast<std::size_t>(edge.from)].push_back(token);
    }
    std::vector<TileOp> out;
    out.reserve(n + edges_.size());
    for (std::size_t i = 0; i < n; ++i) {
      TileOp op = program_.ops[i];
      if (!IsControl(op) && Fenced(static_cast<int>(i))) {
        TileOp fence{Op::kFence, Queue::kSq};
        fence.origin = op.origin;
        out.push_back(fence);
      }
      LAZULI_RETURN_IF_ERROR(EmitWaits(sources[i], op, out));
      out.push_back(op);
      LAZULI_RETURN_IF_ERROR(EmitSignals(tokens[i], out));
    }
    program_.ops = std::move(out);
    return absl::OkStatus();
  }

  TileProgram& program_;
  std::map<int, TouchedByPorts> memories_;  // -1: the scratchpad, else arrays
  std::array<PortClock, kPorts> known_;
  std::vector<PortClock> starts_;
  std::vector<DependencyEdge> edges_;
  std::set<int> fences_;
  std::map<std::array<int, 3>, int> semaphores_;  // by Use and ports
};

}  // namespace

absl::Status Synchronise(TileProgram& program) { return Synchroniser(program).Run(); }

}  // namespace lazuli::npu
