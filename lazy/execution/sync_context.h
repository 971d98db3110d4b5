// The heart of a sync: one context's pending graphs become programs that are queued.
#pragma once

#include <optional>

#include "lazy/execution/sync_state.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

// Syncs a context, which nobody else syncs meanwhile. Called under the lock, which is given up while a
// program compiles: what others record then is synced, too, until nothing is pending.
absl::Status SyncContext(Context& context, std::optional<Context::Lock>& lock, SyncReason reason,
                         SyncState& state);

// A number in memory of the storage's device.
absl::StatusOr<backend::BufferPtr> NumberBuffer(const Node& number, const Storage& storage);

}  // namespace lazuli::lazy
