// Batches programs: what a program computes for one sample becomes a program for many.
//
// Batch dims are new leading dims. Results that depend on no batched parameter stay as they are. Each
// opcode has a rule (rules.def); an opcode without one is an error that names it and its source line,
// unless nothing that it depends on is batched.
//
//   x = f32[4] parameter(0)                     x = f32[8,4] parameter(0)
//   w = f32[4,2] parameter(1)             =>    w = f32[4,2] parameter(1)
//   ROOT y = f32[2] dot(x, w)                   ROOT y = f32[8,2] dot(x, w)      x batched, size 8
//
// A loop or a branch that samples take differently becomes one that all take, with a choice of the
// values for each sample. Layouts are dropped, and pairs of asynchronous instructions joined.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"

namespace lazuli::lowering {

enum class BatchRandom : uint8_t {
  kSame,       // each sample draws what it would draw alone
  kDifferent,  // generators whose state is not batched draw numbers for each sample
};

struct BatchOptions {
  BatchRandom random = BatchRandom::kSame;
  // Results that depend on no batched parameter are broadcast, so that all are batched.
  bool broadcast_results = false;
  // How many leaves at the end of the root are checks (RuntimeCheck): they get no batch dim, and are the
  // greatest of the samples', which is no offender only where no sample has one.
  int64_t checks = 0;
};

struct BatchedModule {
  std::unique_ptr<hlo::Module> module;
  std::vector<bool> results = {};  // which leaves of the root have a batch dim
  std::vector<bool> depends = {};  // and which would have one without broadcast_results
};

// The module for `size` samples. `parameters` say which leaves of the entry's parameters, elements of
// tuples one by one, have a batch dim.
absl::StatusOr<BatchedModule> Batch(const hlo::Module& module, const std::vector<bool>& parameters,
                                    int64_t size, const BatchOptions& options = {});

}  // namespace lazuli::lowering
