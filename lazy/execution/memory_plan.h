// What a run of a program occupies, known when it was compiled, and whether that fits.
//
// Leaves are there before the run; results that update a leaf take its memory over, the others and
// the scratch are obtained when the run starts, all of it before the first kernel. A program that
// would exceed LAZULI_MEMORY_LIMIT is refused before anything changes: its graph stays pending, so
// that the caller can drop something and sync again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "backend/client/client.h"
#include "ir/graph/post_order.h"
#include "lazy/tensor/data_handle.h"

namespace lazuli::lazy {

// Whether a run took the memory of a leaf over for the result that updates it, and if not, why.
enum class Donation : uint8_t {
  kNoRun,  // no run yet, or nothing updates it
  kTaken,
  kHeld,    // a tensor, or the graph of another context, has the elements, too
  kRead,    // a reader or an export does
  kFailed,  // it has none: an earlier run failed
};
// A clause for people: "a tensor or another graph holds its elements, too".
std::string_view DonationText(Donation donation);

struct MemoryPlan {
  enum class Role : uint8_t {
    kUpdated,  // a leaf that a result updates: a weight, the state of an optimiser
    kInput,    // any other leaf
    kResult,   // a result that updates nothing
  };
  struct Array {
    Role role;
    Shape shape;
    std::string name;  // "conv1.weight", or else the line that recorded it
  };
  std::vector<Array> arrays;
  // Results with memory of their own, if every leaf that a result updates can be taken over.
  int64_t output_bytes = 0;
  int64_t temp_bytes = 0;       // scratch
  int64_t live_temp_bytes = 0;  // the part of it that holds values at one time, at most

  int64_t bytes(Role role) const;
  int64_t count(Role role) const;
  int64_t argument_bytes() const { return bytes(Role::kUpdated) + bytes(Role::kInput); }
  int64_t peak_bytes() const { return argument_bytes() + output_bytes + temp_bytes; }
};

// `updated_by`: by data leaf, the result that updates it, or -1.
MemoryPlan PlanMemory(const Trace& trace, absl::Span<const int32_t> updated_by,
                      absl::Span<const hlo::Alias> aliases, const backend::ExecutableStats& stats);

// Bytes that a run of the plan obtains when it starts: leaves with a second owner stay. `replaced`: by
// root, the data that it is written over, or null.
int64_t BytesToObtain(const MemoryPlan& plan, const Trace& trace,
                      absl::Span<const int32_t> updated_by,
                      absl::Span<const DataHandle* const> replaced);

// OK if `bytes` more, and those that runs in flight have yet to obtain, are within the limit, which
// is set.
absl::Status CheckMemoryLimit(const MemoryPlan& plan, int64_t bytes, int64_t in_flight,
                              backend::Device device);

}  // namespace lazuli::lazy
