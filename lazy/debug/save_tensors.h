// XLA_SAVE_TENSORS_FILE: appends every synced graph to <path>.<device ordinal>, in torch_xla's
// record layout.
//
// [ScheduleSyncTensorsGraph]
// TensorsGraphInfo:
//   step (/home/u/train.cc:41)
//   main (/home/u/train.cc:60)
//
// Root Hashes: (1f..)
//
// ## BEGIN_GRAPH
// ...
// Graph Hash: 2a..
//
// ## END_GRAPH
//
// A record is written with one call, so a crash does not leave a torn one; it is written before
// anything is compiled.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "lazy/execution/sync.h"

namespace lazuli::lazy {

// Installs the observer if the flag is set; idempotent.
void InitializeSaveTensors();

// One record; the format is that of XLA_SAVE_TENSORS_FMT: text, dot or hlo.
absl::StatusOr<std::string> SaveTensorsRecord(const SyncEvent& event, const std::string& format);

}  // namespace lazuli::lazy
