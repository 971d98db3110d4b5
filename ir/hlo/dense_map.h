// DenseMap<V>: a value for each instruction of one computation, found by id: an array while ids are
// dense, else a hash map.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"

#include "ir/hlo/module.h"

namespace lazuli::hlo {

// Values start value-initialised, those of instructions added later too.
template <class V>
class DenseMap {
 public:
  DenseMap() = default;
  explicit DenseMap(const Computation& computation) {
    const auto& instructions = computation.instructions();
    if (instructions.empty()) return;
    first_ = instructions.front()->id();
    const int64_t range = instructions.back()->id() - first_ + 1;
    if (range <= 4 * computation.instruction_count() + 64)
      dense_.resize(static_cast<std::size_t>(range));
  }

  V& operator[](const Instruction* i) {
    if (Contains(i)) return dense_[static_cast<std::size_t>(i->id() - first_)];
    return sparse_[i->id()];
  }
  const V& operator[](const Instruction* i) const {
    if (Contains(i)) return dense_[static_cast<std::size_t>(i->id() - first_)];
    static const V none{};
    auto it = sparse_.find(i->id());
    return it == sparse_.end() ? none : it->second;
  }

 private:
  bool Contains(const Instruction* i) const {
    return i->id() >= first_ && i->id() - first_ < static_cast<int64_t>(dense_.size());
  }

  int64_t first_ = 0;
  std::vector<V> dense_;
  absl::flat_hash_map<int64_t, V> sparse_;
};

}  // namespace lazuli::hlo
