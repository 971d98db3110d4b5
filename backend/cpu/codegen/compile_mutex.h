// The mutex of threads that compile.
#pragma once

#include <shared_mutex>

namespace lazuli::cpu {

// Held, shared, by threads that compile, because they share tables of LLVM and oneDNN. A process forks
// while nobody holds it.
std::shared_mutex& CompileMutex();

}  // namespace lazuli::cpu
