// Hash tables that stay whole when memory cannot be had. Abseil's flat ones are faster, but once an
// insertion throws not even to be destroyed.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/hash/hash.h"

#include "ir/support/namespaces.h"
#include "ir/support/pool.h"

namespace lazuli::ir {

template <class K, class V>
using HashMap =
    std::unordered_map<K, V, absl::Hash<K>, std::equal_to<K>, PoolAllocator<std::pair<const K, V>>>;
template <class K>
using HashSet = std::unordered_set<K, absl::Hash<K>, std::equal_to<K>, PoolAllocator<K>>;

}  // namespace lazuli::ir
