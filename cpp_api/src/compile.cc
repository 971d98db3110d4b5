#include "lazuli/compile.h"

#include <utility>

#include "cpp_api/src/autocast.h"
#include "cpp_api/src/facade.h"
#include "cpp_api/src/tensor_lists.h"
#include "ir/support/flags.h"
#include "lazuli/internal/host_action.h"
#include "lazy/execution/replay_cache.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/shape/strided.h"

namespace lazuli {
namespace {

uint64_t FlagBits() {
  const auto& f = ir::flags();
  uint64_t bits = 0;
  for (const bool on :
       {f.use_32bit_long(), f.use_bf16(), f.downcast_bf16(), f.param_aliasing(), f.debug_nans()})
    bits = 2 * bits + (on ? 1 : 0);
  return bits;
}

std::unique_ptr<lazy::View> MakeViewOfRecipe(const lazy::Tensor& base, const ir::Dims& strides,
                                             int64_t offset) {
  return lazy::MakeView(base, lazy::Geometry{strides, offset});
}

// What is switched on in this thread, as guards of recipes (lazy::Recipe::Mode), in front of `more`.
std::vector<std::uint64_t> ModesNow(absl::Span<const std::uint64_t> more) {
  const backend::Device device = DeviceAccess::Unwrap(Device());
  std::vector<std::uint64_t> modes(lazy::Recipe::kModes);
  modes.reserve(modes.size() + more.size());
  modes[lazy::Recipe::kGrad] = lazy::GradEnabled() ? 1 : 0;
  modes[lazy::Recipe::kInference] = lazy::InferenceMode() ? 1 : 0;
  modes[lazy::Recipe::kFloat] = static_cast<std::uint64_t>(lazy::DefaultFloat());
  modes[lazy::Recipe::kAutocast] =
      autocast_to ? 1 + static_cast<std::uint64_t>(*autocast_to) : std::uint64_t{0};
  modes[lazy::Recipe::kDevice] =
      reinterpret_cast<std::uintptr_t>(device.client) + static_cast<std::uint64_t>(device.ordinal);
  modes[lazy::Recipe::kFlags] = FlagBits();
  modes.insert(modes.end(), more.begin(), more.end());
  return modes;
}

}  // namespace

namespace internal {

struct CallCache::Impl {
  Impl(std::string name, ir::SiteId at) : cache(std::move(name)), site(at) {}
  lazy::ReplayCache cache;
  ir::SiteId site;
};

CallCache::CallCache(std::string name, SourceLocation loc)
    : impl_(std::make_shared<Impl>(std::move(name), Intern(loc))) {}

std::vector<Tensor> CallCache::Call(const std::vector<Tensor>& arguments,
                                    std::vector<std::uint64_t> key,
                                    const std::vector<std::int64_t>& donated,
                                    const std::function<std::vector<Tensor>()>& function) const {
  Initialize();
  const lazy::SiteScope scope(impl_->site);
  const std::vector<std::uint64_t> modes = ModesNow(key);
  std::vector<std::int32_t> positions;
  for (const std::int64_t argument : donated) {
    if (argument < 0 || argument >= static_cast<std::int64_t>(arguments.size())) {
      Rethrow(ir::InvalidArgument("compile: argument ", argument, " is given up, but there are ",
                                  arguments.size(), " tensors"),
              impl_->site);
    }
    positions.push_back(static_cast<std::int32_t>(argument));
  }
  BorrowedList borrowed;
  for (const Tensor& argument : arguments) borrowed.push_back(TensorAccess::Borrow(argument));
  std::vector<Tensor> given;
  const auto call = [&] {
    given = function();
    return Unwrapped(given);
  };
  lazy::Tensors results;
  try {
    if (!lazy::ValueOrThrow(
            impl_->cache.TryReplay(borrowed.get(), modes, MakeViewOfRecipe, results)))
      lazy::ThrowIfError(impl_->cache.Call(borrowed.get(), modes, positions, call, results));
  } catch (const lazy::StatusError& error) {
    Rethrow(error.status(), impl_->site);
  }
  return Wrapped(std::move(results));
}

std::string CallCache::Explain() const {
  const lazy::ReplayCache::Report report = impl_->cache.report();
  std::string text =
      ir::Str(report.replays, " calls were replayed, ", report.recordings, " recorded");
  if (!report.refused.empty()) return ir::Str(text, "; calls are made: it ", report.refused);
  return report.last.empty() ? text : ir::Str(text, "; the last because ", report.last);
}

void CallCache::Refuse(const std::string& why) const { impl_->cache.Refuse(why, impl_->site); }
void CallCache::Forget() const { impl_->cache.Forget(); }
std::int64_t CallCache::replays() const { return impl_->cache.report().replays; }

// --- what counts on the host

namespace {

class HostActionOf final : public lazy::HostAction {
 public:
  explicit HostActionOf(std::shared_ptr<internal::HostAction> action)
      : action_(std::move(action)) {}
  void TakeNumbers() override { action_->TakeNumbers(); }
  void Commit() override { action_->Commit(); }
  const void* actor() const override { return action_->actor(); }

 private:
  const std::shared_ptr<internal::HostAction> action_;
};

}  // namespace

HostAction::~HostAction() = default;

bool HostActionScope::IsWatched() { return lazy::Watch::Current() != nullptr; }

HostActionScope::HostActionScope(std::shared_ptr<HostAction> action) {
  lazy::Watch* const watch = lazy::Watch::Current();
  if (watch == nullptr || action == nullptr) return;
  watch->Open(std::make_shared<HostActionOf>(std::move(action)));
  is_open_ = true;
}

HostActionScope::~HostActionScope() {
  lazy::Watch* const watch = lazy::Watch::Current();
  if (is_open_ && watch != nullptr) watch->Close();
}

void RefuseReplay(const char* does) {
  if (lazy::Watch* const watch = lazy::Watch::Current(); watch != nullptr) watch->Refuse(does);
}

}  // namespace internal
}  // namespace lazuli
