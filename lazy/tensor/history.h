// History: what a context has recorded since its last sync, and where a graph that nobody syncs is
// best cut.
//
// A loop without a sync would grow for ever, and cut after a fixed number of nodes it would be cut
// at another place of its iteration each time: another program to compile. So when the graph has
// grown past the limit and repeats, it is cut where it has the fewest pending tensors, which is
// where an iteration ends, and the same place comes again after the same number of nodes. A graph
// that does not repeat is looked at again when it is twice as long, and cut anywhere at last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lazuli::lazy {

// Guarded by the context's lock.
class History {
 public:
  // `limit` (LAZULI_MAX_GRAPH_NODES): nodes that are recorded without a look. kEndless: the graph is
  // never cut, nor are its ops run one by one.
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();
  explicit History(int64_t limit);

  // A node was recorded: `what` is the same for the same op on the same line, and of views for the
  // same place, too. `pending` tensors are there now. Costs two stores.
  void Add(uint32_t what, int64_t pending) {
    if (count_ < static_cast<int64_t>(nodes_.size()))
      nodes_[static_cast<std::size_t>(count_)] = {what, static_cast<uint32_t>(pending)};
    ++count_;
  }
  int64_t count() const { return count_; }
  // Whether CutHere() wants to be asked.
  bool due() const { return count_ > next_look_; }
  // Whether the graph is to be synced now, before anything else is recorded.
  bool CutHere();
  // A sync begins.
  void Clear();
  // From the next sync of a context on every node is cut off as soon as it is recorded: each op runs
  // by itself. For all contexts.
  static void SetEager(bool eager);
  static bool eager();
  // Syncs so far: whether one happened since is whether this has changed.
  uint64_t syncs() const { return syncs_; }

 private:
  struct RecordedNode {
    uint32_t what, pending;
  };
  int64_t Period() const;
  bool RepeatsEvery(int64_t period) const;
  bool Repeats(int64_t period, int64_t length) const;
  int64_t CutAfter(int64_t period) const;
  void LookAgainAfter(int64_t count);
  bool cuts_each() const { return eager() && limit_ != kEndless; }

  const int64_t limit_;
  const int64_t last_limit_;  // from here on the graph is cut wherever it is
  int64_t count_ = 0;
  int64_t next_look_ = 0;
  int64_t planned_ = 0;  // the count at which to cut; 0: none is known
  int64_t period_ = 0;   // that the last look found, perhaps in an earlier graph; 0: none
  uint64_t syncs_ = 0;
  std::vector<RecordedNode> nodes_;
};

}  // namespace lazuli::lazy
