#include "backend/npu/compiler/prefetch.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace lazuli::npu {
namespace {

bool IsLoad(const TileOp& op) {
  return op.op == Op::kDmaLd || op.op == Op::kDmaFill || op.op == Op::kDmaGat;
}

// What operations touch: buffers, and parts of arrays that they write.
class Footprint {
 public:
  void Add(const TileOp& op) {
    for (const Place* place :
         {&op.to, &op.from[0], &op.from[1], &op.from[2], &op.table, &op.updates}) {
      if (place->space == Space::kSpm) buffers_.insert(place->object);
    }
    if (op.to.space == Space::kDram) stores_.push_back(op.to);
  }
  // Whether a load must stay behind these operations.
  bool Holds(const TileOp& load) const {
    for (const Place* place : {&load.to, &load.from[0], &load.table}) {
      if (place->space == Space::kSpm && buffers_.contains(place->object)) return true;
    }
    const Place& from = load.from[0];
    return from.space == Space::kDram &&
           std::any_of(stores_.begin(), stores_.end(), [&](const Place& store) {
             return store.object == from.object && store.low < from.high && from.low < store.high;
           });
  }

 private:
  std::set<int> buffers_;
  std::vector<Place> stores_;
};

}  // namespace

void PrefetchLoads(TileProgram& program) {
  std::vector<TileOp> done;
  std::vector<TileOp> before;  // the stage before, without what was moved
  auto flush = [&] {
    for (TileOp& op : before) done.push_back(op);
    before.clear();
  };
  for (std::size_t i = 0; i < program.ops.size();) {
    std::vector<TileOp> stage;
    const int number = program.ops[i].stage;
    Footprint footprint, earlier;
    for (const TileOp& op : before) earlier.Add(op);
    // Nothing moves over scalar code.
    const bool movable = !before.empty() && !IsControl(before.back()) && !IsControl(program.ops[i]);
    for (; i < program.ops.size() && program.ops[i].stage == number; ++i) {
      TileOp& op = program.ops[i];
      if (movable && IsLoad(op) && op.far_register == 0 && !footprint.Holds(op) &&
          !earlier.Holds(op)) {
        done.push_back(op);
        continue;
      }
      footprint.Add(op);
      stage.push_back(op);
    }
    flush();
    before = std::move(stage);
  }
  flush();
  program.ops = std::move(done);
}

}  // namespace lazuli::npu
