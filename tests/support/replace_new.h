// Replaces operator new and delete of a test program: memory comes from the program's own Allocate,
// null for none, which is asked again as long as the process's std::new_handler wants it. Included
// by one source of it, after Allocate, outside of any namespace.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
void* AllocateOrThrow(std::size_t bytes) {
  while (true) {
    if (void* block = Allocate(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* AllocateOrNull(std::size_t bytes) noexcept try {
  return AllocateOrThrow(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
}  // namespace

void* operator new(std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new[](std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return AllocateOrNull(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return AllocateOrNull(bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
