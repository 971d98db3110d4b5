#include "lazy/execution/observers.h"

#include <mutex>
#include <utility>
#include <vector>

#include "ir/support/fork.h"
#include "ir/support/runtime.h"

namespace lazuli::lazy {
namespace {

struct Observers {
  static Observers& Get() { return ir::Runtime::Get().Of<Observers>(); }
  ir::ForkMutex mutex;
  SyncObserver sync;
  CompileObserver compile;
  std::vector<SyncObserver> all_syncs;
  std::vector<CompileObserver> all_compiles;
};

}  // namespace

void SetSyncObserver(SyncObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().sync = std::move(o);
}

void SetCompileObserver(CompileObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().compile = std::move(o);
}

void AddSyncObserver(SyncObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().all_syncs.push_back(std::move(o));
}

void AddCompileObserver(CompileObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().all_compiles.push_back(std::move(o));
}

void Notify(const SyncEvent& event) {
  Observers& observers = Observers::Get();
  const std::lock_guard watching(observers.mutex);
  for (const SyncObserver& observer : observers.all_syncs) observer(event);
  if (observers.sync) observers.sync(event);
}

void Notify(const CompileEvent& event) {
  Observers& observers = Observers::Get();
  const std::lock_guard watching(observers.mutex);
  for (const CompileObserver& observer : observers.all_compiles) observer(event);
  if (observers.compile) observers.compile(event);
}

}  // namespace lazuli::lazy
