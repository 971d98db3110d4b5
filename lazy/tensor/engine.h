// The calls that go up from tensors to the executor. lazy/execution implements them and
// installs itself.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/graph/node.h"
#include "ir/types/literal.h"

namespace lazuli::lazy {

class Context;
class Storage;

// Why a sync happens: shown in dumps and counted.
enum class SyncReason : uint8_t { kUser, kRead, kForeignContext, kGraphLimit, kUpdate, kSize };

class Engine {
 public:
  virtual ~Engine() = default;
  // Runs what is pending in the context; returns after dispatch, or with `wait` when the device is
  // done. `then` is called under the context's lock once nothing is pending, before anybody can
  // record again; not if the sync fails.
  virtual absl::Status Sync(Context& context, bool wait, SyncReason reason,
                            absl::FunctionRef<void()> then) = 0;
  absl::Status Sync(Context& context, bool wait, SyncReason reason) {
    return Sync(context, wait, reason, [] {});
  }
  // An error if the device lacks what the node is lowered to, unless the host may run it then
  // (LAZULI_SOFT_PLACEMENT).
  virtual absl::Status CheckPlacement(const Node& node, backend::Device device) = 0;
  // Syncs the whole context, waits for this storage and returns its elements.
  virtual absl::StatusOr<Literal> Read(Context& context, Storage& storage) = 0;
  // The same without the copy: the device's own memory. Whoever holds the buffer is an owner, so no
  // run reuses it meanwhile.
  virtual absl::StatusOr<backend::BufferPtr> ReadBuffer(Context& context, Storage& storage) = 0;
  // Returns when what has been submitted, by any context, has run.
  virtual void WaitForRuns() = 0;
  // On the thread of a device, in a function that a run calls: runs what was submitted there.
  virtual void RunNested() = 0;
};

Engine& GetEngine();                 // checks that one is installed
void InstallEngine(Engine* engine);  // not owned; lives as long as the process

}  // namespace lazuli::lazy
