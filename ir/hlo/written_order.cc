#include "ir/hlo/written_order.h"

#include "absl/container/flat_hash_set.h"

namespace lazuli::hlo {

std::vector<Computation*> WrittenOrder(const Module& module) {
  std::vector<Computation*> order = module.PostOrder();
  if (order.size() == module.computations().size()) return order;
  if (!order.empty()) order.pop_back();
  absl::flat_hash_set<const Computation*> placed(order.begin(), order.end());
  absl::flat_hash_set<const Computation*> open;
  for (const auto& computation : module.computations()) {
    std::vector<Computation*> stack = {computation.get()};
    while (!stack.empty()) {
      Computation* const at = stack.back();
      if (at == module.entry() || placed.contains(at) || !open.insert(at).second) {
        stack.pop_back();
        if (at != module.entry() && placed.insert(at).second) order.push_back(at);
        continue;
      }
      for (const auto& i : at->instructions())
        for (Computation* callee : i->called())
          if (!placed.contains(callee) && !open.contains(callee)) stack.push_back(callee);
    }
  }
  if (module.entry() != nullptr) order.push_back(module.entry());
  return order;
}

}  // namespace lazuli::hlo
