#include "lazuli/execution.h"

#include <atomic>
#include <cstdio>

#include "cpp_api/src/facade.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "lazuli/internal/pending_update.h"
#include "lazy/execution/sync.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/watch.h"

namespace lazuli {

void mark_step(SourceLocation loc) { sync(/*wait=*/false, loc); }

void sync(bool wait, SourceLocation loc) {
  Initialize();
  Call(loc, [&] {
    ir::Add(ir::Counter::kMarkStep);
    lazy::ThrowIfError(lazy::GetEngine().Sync(
        lazy::Context::Current(), wait || ir::flags().sync_wait(), lazy::SyncReason::kUser));
  });
}

void set_eager(bool eager, SourceLocation loc) {
  lazy::History::SetEager(eager);
  sync(/*wait=*/false, loc);
}
bool is_eager() { return lazy::History::eager(); }
void clear_cache() { lazy::GetProgramCache().Clear(); }

bool DeferredItem::ready() const {
  if (!defined()) return false;
  const auto contents = lazy::Context::Peek(*TensorAccess::Impl(value_)->storage());
  return contents.data && contents.data->ready();
}

Site::Site(SourceLocation loc)
    : id_(lazy::CurrentSite() == ir::kNoSite ? Intern(loc) : lazy::CurrentSite()) {}

SiteScope::SiteScope(SourceLocation loc) : saved_(lazy::CurrentSite()) {
  if (saved_ == ir::kNoSite) lazy::internal::current_site = lazy::Here(Intern(loc));
}
SiteScope::SiteScope(const Site& site) : saved_(lazy::CurrentSite()) {
  if (saved_ == ir::kNoSite) lazy::internal::current_site = site.id_;
}
std::string SiteScope::place(SourceLocation loc) {
  const ir::SiteId outermost = lazy::CurrentSite();
  return ir::GetSite(outermost == ir::kNoSite ? Intern(loc) : outermost).ToString();
}
SiteScope::~SiteScope() { lazy::internal::current_site = saved_; }

NameScope::NameScope(std::string_view name)
    : NameScope(lazy::EnterScope(ir::InternScope(lazy::internal::current_scope, name),
                                 lazy::internal::current_module)) {}
NameScope::NameScope(const lazy::OuterScope& outer)
    : scope_(outer.scope), module_(outer.module), site_(outer.site) {}
NameScope::~NameScope() { lazy::LeaveScope({scope_, module_, site_}); }
NameScope NameScope::OfModule(std::uint32_t path) { return NameScope(lazy::EnterModule(path)); }
std::uint32_t NameScope::Path(std::string_view text) { return ir::InternScope(ir::kNoScope, text); }
std::string NameScope::current() { return ir::ScopeText(lazy::internal::current_scope); }

namespace {
ir::IntrusivePtr<lazy::Context> Pointer(void* impl) {
  return ir::IntrusivePtr<lazy::Context>(static_cast<lazy::Context*>(impl));
}
}  // namespace

Context::Context() : impl_(lazy::Context::Create().Detach()) {}
Context::Context(const Context& other) noexcept : impl_(Pointer(other.impl_).Detach()) {}
Context& Context::operator=(const Context& other) noexcept {
  Context copy(other);
  std::swap(impl_, copy.impl_);
  return *this;
}
Context::~Context() { static_cast<lazy::Context*>(impl_)->Release(); }
Context Context::current() {
  return Context(ir::IntrusivePtr<lazy::Context>(&lazy::Context::Current()).Detach());
}
void Context::make_current() const { lazy::Context::Exchange(Pointer(impl_)); }

namespace internal {

UpdateOutcome::~UpdateOutcome() {
  if (impl_ != nullptr) static_cast<lazy::GraphOutcome*>(impl_)->Release();
}

UpdateOutcome UpdateOutcome::OfRecording() {
  if (lazy::Watch* const watch = lazy::Watch::Current();
      watch != nullptr && !watch->has_open_action()) [[unlikely]]
    watch->Refuse("counts on the host what a failed run takes back");
  lazy::Context& context = lazy::Context::Current();
  UpdateOutcome outcome;
  const lazy::Context::Lock lock(context);
  outcome.impl_ = lazy::GraphOutcomePtr(context.outcome()).Detach();
  return outcome;
}

UpdateOutcome::State UpdateOutcome::state() const {
  if (impl_ == nullptr) return State::kTaken;
  switch (static_cast<const lazy::GraphOutcome*>(impl_)->state()) {
    case lazy::GraphOutcome::State::kTaken:
      return State::kTaken;
    case lazy::GraphOutcome::State::kNotTaken:
      return State::kNotTaken;
    default:
      return State::kUnknown;
  }
}

void PendingUpdate::RunFirst(const char* who, SourceLocation loc) {
  lazy::Context& context = lazy::Context::Current();
  {
    const lazy::Context::Lock lock(context);
    if (context_ != context.id() || syncs_ != context.history.syncs()) return;
  }
  ir::Add(ir::Counter::kSyncForUpdate);
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    std::fprintf(stderr,
                 "lazuli: %s steps at %s while its last update is still pending: what is recorded "
                 "runs first. mark_step() after each step does the same at a place of your choice. "
                 "Said once; the counter sync.update counts.\n",
                 who, SiteScope::place(loc).c_str());
  }
  Call(loc, [&] {
    lazy::ThrowIfError(lazy::GetEngine().Sync(context, /*wait=*/false, lazy::SyncReason::kUpdate));
  });
}

void PendingUpdate::Set() {
  lazy::Context& context = lazy::Context::Current();
  const lazy::Context::Lock lock(context);
  context_ = context.id();
  syncs_ = context.history.syncs();
}

}  // namespace internal

}  // namespace lazuli
