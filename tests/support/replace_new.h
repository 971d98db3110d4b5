// Replaces operator new and delete of a test program: memory comes from the program's own Allocate,
// null for none. Included by one source of it, after Allocate, outside of any namespace.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
void* AllocateOrThrow(std::size_t bytes) {
  if (void* block = Allocate(bytes)) return block;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new[](std::size_t bytes) { return AllocateOrThrow(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
