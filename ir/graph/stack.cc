#include "ir/graph/stack.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include <unwind.h>

#include "ir/graph/seen_origins.h"
#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/hash.h"
#include "ir/support/symbols.h"

namespace lazuli::ir {
namespace {

using Frames = std::vector<FrameWord>;

class StackTable {
 public:
  static StackTable& Get() {
    static auto* table = new StackTable;
    return *table;
  }

  StackId Intern(absl::Span<const FrameWord> frames) {
    Frames key(frames.begin(), frames.end());
    std::lock_guard lock(mu_);
    const auto [it, added] = ids_.try_emplace(std::move(key), static_cast<StackId>(stacks_.size()));
    if (added) stacks_.push_back(it->first);
    return it->second;
  }

  Frames Lookup(StackId id) {
    std::lock_guard lock(mu_);
    return id < stacks_.size() ? stacks_[id] : Frames();
  }

 private:
  StackTable() {
    stacks_.emplace_back();
    ids_.emplace(Frames(), kNoStack);
  }
  ForkMutex mu_;
  std::deque<Frames> stacks_;
  absl::flat_hash_map<Frames, StackId> ids_;
};

// Called by the unwinder for each frame, from the innermost on. The stack holds the address that a function
// returns to right below the frame that it returns to. The first address lies in this file: nothing returned
// to it, and its slot is never looked at.
_Unwind_Reason_Code AddFrame(_Unwind_Context* context, void* state) {
  auto& stack = *static_cast<UnwoundStack*>(state);
  const uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || stack.count == kMostFrames) return _URC_END_OF_STACK;
  stack.addresses[stack.count] = address;
  stack.slots[stack.count++] = reinterpret_cast<const uintptr_t*>(_Unwind_GetCFA(context)) - 1;
  return _URC_NO_REASON;
}

// Whether the stack is the one that was unwound. Sanitizers must not look: the slots are no variables.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] bool IsAsUnwound(const UnwoundStack& stack) {
  for (std::size_t i = 1; i < stack.count; ++i)
    if (*stack.slots[i] != stack.addresses[i]) return false;
  return stack.count > 1;
}

StackId StackOf(const UnwoundStack& stack) {
  std::array<FrameWord, kMostFrames> frames;
  // The call is before the address where it returns to.
  for (std::size_t i = 0; i < stack.count; ++i) frames[i] = kAddressBit | (stack.addresses[i] - 1);
  return InternStack(absl::MakeConstSpan(frames).first(stack.count));
}

// Frames of C++ around the site's own: those outside of the function that the site is in, which the
// library's own functions lie inside of.
std::vector<Site> Callers(std::vector<Site> frames, const Site& site) {
  const std::string_view function = ShortFunctionName(site.function);
  auto own = std::find_if(frames.begin(), frames.end(), [&](const Site& frame) {
    return ShortFunctionName(frame.function) == function;
  });
  if (own != frames.end()) return {own + 1, frames.end()};
  const auto outside = std::find_if_not(frames.begin(), frames.end(), [](const Site& frame) {
    return ShortFunctionName(frame.function).starts_with("lazuli::");
  });
  return {outside, frames.end()};
}

}  // namespace

bool internal::ReadKeepsStacks() {
  const bool show = flags().ir_debug() || flags().hlo_debug();
  const bool keep = show || flags().pt_xla_debug() || flags().pt_xla_debug_level() > 0 ||
                    !flags().save_tensors_file().empty();
  keeps_stacks.store(show ? kShown : keep ? kKept : kNone, std::memory_order_relaxed);
  return keep;
}

void SetIrDebug(bool on) {
  using namespace internal;  // NOLINT(google-build-using-namespace)
  keeps_stacks.store(on ? kShown : kUnknown, std::memory_order_relaxed);
}

StackId InternStack(absl::Span<const FrameWord> frames) {
  frames = frames.first(std::min(frames.size(), kMostFrames));
  const uint64_t hash = HashBytes(frames.data(), frames.size() * sizeof(FrameWord));
  std::unique_ptr<StackCache>& stacks = SeenOrigins::Get().stacks;
  if (stacks == nullptr) stacks = std::make_unique<StackCache>();
  CachedStack& cached = (*stacks)[hash % std::tuple_size_v<StackCache>];
  if (cached.count != frames.size() ||
      !std::equal(frames.begin(), frames.end(), cached.frames.begin())) {
    cached.id = StackTable::Get().Intern(frames);
    cached.count = frames.size();
    std::copy(frames.begin(), frames.end(), cached.frames.begin());
  }
  return cached.id;
}

SiteId WithNativeStack(SiteId site) {
  const void* const frame = __builtin_frame_address(0);
  std::unique_ptr<UnwoundStacks>& unwound = SeenOrigins::Get().unwound;
  if (unwound == nullptr) unwound = std::make_unique<UnwoundStacks>();
  constexpr std::size_t kAlignment = 16;  // of frames
  UnwoundStack& stack = (*unwound)[reinterpret_cast<uintptr_t>(frame) / kAlignment %
                                   std::tuple_size_v<UnwoundStacks>];
  if (stack.frame == frame && IsAsUnwound(stack)) return WithStack(site, stack.id);
  stack.count = 0;
  _Unwind_Backtrace(AddFrame, &stack);
  // Where slots are elsewhere, on another kind of machine, every stack is unwound.
  stack.frame = IsAsUnwound(stack) ? frame : nullptr;
  stack.id = StackOf(stack);
  return WithStack(site, stack.id);
}

std::vector<Site> FramesOf(SiteId id) {
  if (id == kNoSite) return {};
  const Site& site = GetSite(id);
  std::vector<Site> frames = {site}, native;
  for (const FrameWord word : StackTable::Get().Lookup(site.stack)) {
    if ((word & kAddressBit) == 0) {
      frames.push_back(GetSite(static_cast<SiteId>(word)));
      continue;
    }
    for (Symbol& symbol : SymbolsOf(static_cast<uintptr_t>(word & ~kAddressBit)))
      native.push_back({.file = std::move(symbol.file),
                        .function = std::move(symbol.function),
                        .line = symbol.line});
  }
  for (Site& frame : Callers(std::move(native), site)) frames.push_back(std::move(frame));
  return frames;
}

std::string_view ShortFunctionName(std::string_view signature) {
  int depth = 0;  // of <>: their commas and spaces belong to the name
  std::size_t begin = 0, end = signature.size();
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const char c = signature[i];
    if (c == '<')
      ++depth;
    else if (c == '>')
      --depth;
    else if (depth == 0 && c == ' ')
      begin = i + 1;
    else if (depth == 0 && c == '(') {
      end = i;
      break;
    }
  }
  std::string_view name = signature.substr(begin, end - begin);
  while (!name.empty() && (name.front() == '*' || name.front() == '&')) name.remove_prefix(1);
  return name.find(' ') == std::string_view::npos && name.find(',') == std::string_view::npos
             ? name
             : name.substr(0, name.find('<'));
}

}  // namespace lazuli::ir
