// Memory of the small objects that every step makes and drops: nodes, tensors, handles, the lists
// of a run. Each thread keeps blocks by size, and what one thread frees more than it makes goes to
// the others in batches, so a steady step asks the system for nothing. Memory of the pool is never
// given back.
//
//   class Node : public Pooled { ... };
//   std::allocate_shared<HostBuffer>(PoolAllocator<HostBuffer>(), ...);
//   std::vector<Value, PoolAllocator<Value>> operands;
//
// Builds with a sanitizer go to the system each time, so that it sees every object.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Throws std::bad_alloc. Aligned as operator new's; above 16 KiB it is operator new's.
void* PoolAllocate(std::size_t bytes);
void PoolFree(void* block, std::size_t bytes) noexcept;  // `bytes` as it was asked for

// A base that makes `new` and `delete` of a class use the pool. Deleting through a base needs a
// virtual destructor, which says the size.
class Pooled {
 public:
  static void* operator new(std::size_t bytes) { return PoolAllocate(bytes); }
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* block, std::size_t bytes) noexcept { PoolFree(block, bytes); }
};

template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) { return static_cast<T*>(PoolAllocate(n * kBytes)); }
  void deallocate(T* p, std::size_t n) noexcept { PoolFree(static_cast<void*>(p), n * kBytes); }
  bool operator==(const PoolAllocator&) const = default;

 private:
  static constexpr std::size_t kBytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T* too
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

}  // namespace lazuli::ir
