#include "backend/npu/compiler/update_in_place.h"

#include <algorithm>
#include <string>

#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

int ArrayNamed(const TileProgram& program, SymbolKind kind, const std::string& name) {
  for (std::size_t a = 0; a < program.arrays.size(); ++a) {
    if (program.arrays[a].kind == kind && program.arrays[a].name == name)
      return static_cast<int>(a);
  }
  return -1;
}

template <class Operation, class F>
void ForEachFarPlace(Operation& op, F f) {
  for (auto* place :
       {&op.to, &op.from[0], &op.from[1], &op.from[2], &op.table, &op.updates, &op.remote}) {
    if (place->space == Space::kDram) f(*place);
  }
}

// Whether some operation from the first one that writes `result` on reads bytes of `parameter` that
// have been written by then, or could, because the program jumps.
bool ReadsBehindUpdate(const TileProgram& program, int parameter, int result) {
  std::vector<const Place*> written;
  for (const TileOp& op : program.ops) {
    if (!written.empty() && op.label >= 0) return true;
    bool writes = false, reads = false;
    ForEachFarPlace(op, [&](const Place& place) {
      if (place.object == result) writes = true;
      if (place.object == parameter) reads = true;
    });
    if (writes && op.to.space == Space::kDram && op.to.object == result) written.push_back(&op.to);
    if (!reads || written.empty()) continue;
    bool behind = false;
    ForEachFarPlace(op, [&](const Place& place) {
      if (place.object != parameter) return;
      behind = behind || std::any_of(written.begin(), written.end(), [&](const Place* update) {
                 return update->low < place.high && place.low < update->high;
               });
    });
    if (behind) return true;
  }
  return false;
}

}  // namespace

std::vector<MayReplace> UpdateInPlace(TileProgram& program, absl::Span<const MayReplace> pairs) {
  std::vector<MayReplace> done;
  for (const MayReplace& pair : pairs) {
    const int parameter = ArrayNamed(program, SymbolKind::kIn, Str("p", pair.parameter)),
              result = ArrayNamed(program, SymbolKind::kOut, Str("r", pair.result));
    if (parameter < 0 || result < 0) continue;
    TileArray& kept = program.arrays[static_cast<std::size_t>(parameter)];
    TileArray& replaced = program.arrays[static_cast<std::size_t>(result)];
    if (kept.type != replaced.type || kept.dims != replaced.dims) continue;
    if (ReadsBehindUpdate(program, parameter, result)) continue;
    for (TileOp& op : program.ops) {
      ForEachFarPlace(op, [&](Place& place) {
        if (place.object == result) place.object = parameter;
      });
    }
    kept.kind = SymbolKind::kInOut;
    replaced.kind = SymbolKind::kBss;  // nobody names it
    done.push_back(pair);
  }
  return done;
}

}  // namespace lazuli::npu
