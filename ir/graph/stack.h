// Call stacks of sites: the frames that called the line of a site, interned as a whole.
//
// They are kept where somebody will show them: with XLA_IR_DEBUG or XLA_HLO_DEBUG, and where graphs
// are saved or analysed. A frame of C++ is a return address, which is looked up in the debug
// information of the program only when it is shown; a frame of Python is a site.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "ir/graph/site.h"

namespace lazuli::ir {

namespace internal {
enum Stacks : int { kUnknown, kNone, kKept, kShown };
inline std::atomic<Stacks> keeps_stacks{kUnknown};
bool ReadKeepsStacks();
}  // namespace internal

inline bool KeepsStacks() {
  const internal::Stacks kept = internal::keeps_stacks.load(std::memory_order_relaxed);
  return kept > internal::kNone || (kept == internal::kUnknown && internal::ReadKeepsStacks());
}
// Whether HLO has tables of them.
inline bool ShowsStacks() {
  return KeepsStacks() &&
         internal::keeps_stacks.load(std::memory_order_relaxed) == internal::kShown;
}
// As XLA_IR_DEBUG=1, or as the environment has it.
void SetIrDebug(bool on);

// A frame as a number: a site, or a return address.
using FrameWord = uint64_t;
inline constexpr FrameWord kAddressBit = FrameWord{1} << 63;
inline constexpr std::size_t kMostFrames = 64;

// `frames`: those around the site's own, the innermost first.
StackId InternStack(absl::Span<const FrameWord> frames);

// The site, called by the C++ functions that this thread is in. The unwinder's frames of lazuli's
// own functions are left out when they are shown.
SiteId WithNativeStack(SiteId site);

// The site's frame and those that called it, the innermost first.
std::vector<Site> FramesOf(SiteId site);

// "Net::forward" of "lazuli::Tensor Net::forward(const lazuli::Tensor&)": what the compiler calls a
// function has spaces and commas.
std::string_view ShortFunctionName(std::string_view signature);

}  // namespace lazuli::ir
