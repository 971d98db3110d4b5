// When recorded work runs.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "lazuli/export.h"
#include "lazuli/tensor.h"

namespace lazuli {

// Runs everything this thread has recorded, as one compiled program; returns once it is on its way.
// Call it at the end of a step. Reading a value first is fine: that already ran the step, and
// mark_step finds nothing to do.
LAZULI_API void mark_step(SourceLocation loc = SourceLocation::current());
// The same; with `wait` it returns when the device is done.
LAZULI_API void sync(bool wait = false, SourceLocation loc = SourceLocation::current());

// Each op runs as soon as it is recorded, until it is switched off again: slow, but an error is
// raised where it is made and a debugger sees values. Runs first what this thread has recorded; other
// threads follow at their next sync. XLA_USE_EAGER_DEBUG_MODE sets it from outside.
LAZULI_API void set_eager(bool eager, SourceLocation loc = SourceLocation::current());
LAZULI_API bool is_eager();
// Forgets all compiled programs: the next sync of each graph compiles anew. Those in flight end.
LAZULI_API void clear_cache();

// A number that is still to be computed: Tensor::item_async() made it, the next sync computes it
// along with everything else, get() waits for it. A loop that reads the loss of the step before
// keeps the device busy:
//
//   DeferredItem last;
//   for (...) { ...; DeferredItem loss = batch_loss.item_async(); mark_step();
//               if (last.defined()) total += last.get(); last = loss; }
class LAZULI_API DeferredItem {
 public:
  DeferredItem() = default;
  bool defined() const { return value_.defined(); }
  bool ready() const;  // whether get() returns at once
  // As Tensor::item(): throws what the run failed with; syncs if nobody has since.
  template <class T = double>
  T get(SourceLocation loc = SourceLocation::current()) const {
    return value_.item<T>(loc);
  }

 private:
  friend class Tensor;
  explicit DeferredItem(Tensor value) : value_(std::move(value)) {}
  Tensor value_;
};

// A line to record by elsewhere: that of the outermost SiteScope of this thread, else `loc`.
class LAZULI_API Site {
 public:
  explicit Site(SourceLocation loc);

 private:
  friend class SiteScope;
  std::uint32_t id_;
};

// While alive, everything this thread records gets the line `loc`: what layers, optimisers and
// losses open with their caller's line. The outermost scope wins.
class LAZULI_API SiteScope {
 public:
  explicit SiteScope(SourceLocation loc);
  explicit SiteScope(const Site& site);
  ~SiteScope();
  // The line that errors of this thread name: "train.cc:41" of the outermost scope, else of `loc`.
  static std::string place(SourceLocation loc = SourceLocation::current());
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;

 private:
  std::uint32_t saved_;
};

namespace lazy {
struct OuterScope;
}
namespace nn {
class Module;
}

// While alive, what this thread records is part of something with a name: "decoder/attention" in the
// text of graphs, in HLO (op_name) and in profiles. Names nest. Modules that are called have one by
// themselves, that under which they are registered; the outermost has that of its class.
class LAZULI_API NameScope {
 public:
  explicit NameScope(std::string_view name);
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  // "net/conv1"; empty outside of all.
  static std::string current();

 private:
  friend class nn::Module;
  explicit NameScope(const lazy::OuterScope& outer);
  static NameScope OfModule(std::uint32_t path);
  static std::uint32_t Path(std::string_view text);
  std::uint32_t scope_, module_, site_;
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
