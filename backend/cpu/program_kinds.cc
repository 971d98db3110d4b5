#include "backend/cpu/program_kinds.h"

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/runtime/attention.h"
#include "backend/cpu/runtime/bf16_tiles.h"
#include "backend/cpu/runtime/chain_thunk.h"
#include "backend/cpu/runtime/copy_thunk.h"
#include "backend/cpu/runtime/cumulative_thunk.h"
#include "backend/cpu/runtime/dynamic_slice_thunk.h"
#include "backend/cpu/runtime/fft_thunk.h"
#include "backend/cpu/runtime/gather_thunk.h"
#include "backend/cpu/runtime/index_check_thunk.h"
#include "backend/cpu/runtime/library.h"
#include "backend/cpu/runtime/philox_thunk.h"
#include "backend/cpu/runtime/planned_call.h"
#include "backend/cpu/runtime/sort_thunk.h"
#include "backend/cpu/runtime/table_thunk.h"
#include "backend/cpu/runtime/topk_thunk.h"
#include "backend/runtime/control_thunks.h"
#include "backend/runtime/evaluator_thunk.h"
#include "ir/support/str.h"

namespace lazuli::cpu {

namespace {

ProgramKinds MakeKinds() {
  return {.engine = Str(KernelEngineAndHost(), ", ", LibraryEngine(),
                        HasBf16Tiles() ? ", tiles of bf16" : ""),
          .thunks = {AttentionThunkKind(),   CallThunkKind(),         ChainThunkKind(),
                     ConditionalThunkKind(), ConvolutionThunkKind(),  CopyThunkKind(),
                     CumulativeThunkKind(),  DynamicSliceThunkKind(), DynamicUpdateSliceThunkKind(),
                     EvaluatorThunkKind(),   FftThunkKind(),          GatherThunkKind(),
                     IndexCheckThunkKind(),  KernelThunkKind(),       MatmulThunkKind(),
                     PackingThunkKind(),     PhiloxThunkKind(),       ScatterThunkKind(),
                     SortThunkKind(),        TableThunkKind(),        TopKThunkKind(),
                     WhileThunkKind()},
          .parts = {KernelPartKind(), PlannedCallKind()}};
}

}  // namespace

const ProgramKinds& CpuProgramKinds() {
  static const ProgramKinds* const kinds = new ProgramKinds(MakeKinds());
  return *kinds;
}

}  // namespace lazuli::cpu
