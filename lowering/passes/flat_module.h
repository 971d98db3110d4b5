// FlatModule: a computation as a module of its own that takes and gives arrays.
//
//   body (s: (f32[4], s32[])) -> (f32[4], s32[])
//   =>  ENTRY (s.0: f32[4], s.1: s32[]) -> (f32[4], s32[]) { calls a copy of body }
//
// What a backend needs to compile loops and branches like entries, and to run entries whose
// parameters are tuples.
#pragma once

#include <memory>

#include "ir/hlo/module.h"

namespace lazuli::lowering {

// Whether all leaves of the computation's parameters and root are arrays, as FlatModule requires.
bool CanFlatten(const hlo::Computation& computation);

// Whether a module's entry takes a tuple.
bool TakesTuples(const hlo::Module& module);
// The module with an entry like that, which has its name and aliases. Aliases of tuples, not of
// arrays in them, are dropped: that memory may be shared is no duty.
std::unique_ptr<hlo::Module> FlatEntry(const hlo::Module& module);

// The entry's parameters are the leaves of the computation's parameters in order, its root a tuple
// of the leaves of the root.
std::unique_ptr<hlo::Module> FlatModule(const hlo::Computation& computation);

}  // namespace lazuli::lowering
