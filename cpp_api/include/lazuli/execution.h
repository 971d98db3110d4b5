// When recorded work runs.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>

#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli {

// Runs everything this thread has recorded, as one compiled program; returns once it is on its way.
// Call it at the end of a step. Reading a value first is fine: that already ran the step, and
// mark_step finds nothing to do.
LAZULI_API void mark_step(SourceLocation loc = SourceLocation::current());
// The same; with `wait` it returns when the device is done.
LAZULI_API void sync(bool wait = false, SourceLocation loc = SourceLocation::current());

// While alive, everything this thread records gets the line `loc`: what layers, optimisers and
// losses open with their caller's line. The outermost scope wins.
class LAZULI_API SiteScope {
 public:
  explicit SiteScope(SourceLocation loc);
  ~SiteScope();
  // The line that errors of this thread name: "train.cc:41" of the outermost scope, else of `loc`.
  static std::string place(SourceLocation loc = SourceLocation::current());
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;

 private:
  std::uint32_t saved_;
};

// A set of pending tensors that syncs together; each thread has one of its own. Making another one
// current for a while keeps two half-built programs apart on one thread, or lets threads share one.
class LAZULI_API Context {
 public:
  Context();
  Context(const Context&) noexcept;
  Context& operator=(const Context&) noexcept;
  ~Context();
  static Context current();
  void make_current() const;

 private:
  explicit Context(void* impl) : impl_(impl) {}
  void* impl_;
};

}  // namespace lazuli
