#include "backend/cpu/compiler.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/emit_thunks.h"
#include "backend/cpu/narrow_products.h"
#include "backend/cpu/passes/assign_layouts.h"
#include "backend/cpu/passes/fold_kernel_reverse.h"
#include "backend/cpu/passes/fuse_attention.h"
#include "backend/cpu/passes/read_narrow_factors.h"
#include "backend/cpu/runtime/library.h"
#include "ir/evaluator/dynamic_sizes.h"
#include "ir/support/float_mode.h"
#include "ir/support/parallel_for.h"
#include "ir/support/status.h"
#include "lowering/passes/fuse.h"
#include "lowering/passes/fuse_loops.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/reduce_vector_products.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/split_complex_products.h"
#include "lowering/passes/widen_products.h"

namespace lazuli::cpu {

namespace {

lowering::FusionTarget Target(const OpFilter& filter = {}) {
  lowering::FusionTarget target{.device = "cpu",
                                .supports = KernelSupports,
                                .supports_loop = KernelSupportsLoop,
                                .max_args = kMaxKernelArgs};
  if (filter.empty()) return target;
  target.supports = [filter](const hlo::Instruction& i) {
    return filter.WhyDenied(i.opcode()).empty() && KernelSupports(i);
  };
  target.supports_loop = [filter](const hlo::Computation& body) {
    const auto& all = body.instructions();
    return KernelSupportsLoop(body) && std::all_of(all.begin(), all.end(), [&](const auto& i) {
             return filter.WhyDenied(i->opcode()).empty();
           });
  };
  return target;
}

}  // namespace

void AddCpuPipeline(lowering::PassPipeline& pipeline, const OpFilter& filter, bool is_part) {
  const bool fuses_attention = filter.empty();
  lowering::AddSimplificationPipeline(pipeline, fuses_attention ? IsAttentionCall : nullptr);
  // Before all that changes products and layouts: small products of a loop's body are written out
  // as they stand. And before fusion: a loop takes in what would otherwise become kernels of their
  // own.
  if (KernelsAvailable()) pipeline.Add<lowering::FuseLoops>(Target(filter));
  // Before what changes products and softmax one by one.
  if (fuses_attention) pipeline.Add<FuseAttention>(/*is_whole_module=*/!is_part);
  pipeline.Add<lowering::SplitComplexProducts>();
  // Before layouts, which the widened products want, too.
  pipeline.Add<lowering::WidenProducts>(MultipliesNarrow);
  pipeline.Add<ReadNarrowFactors>(WidensAsItReads);
  // After widening: of f32 and f64 alone.
  pipeline.Add<lowering::ReduceVectorProducts>();
  // The library flips the kernel of a gradient convolution while it packs it.
  pipeline.Add<FoldKernelReverse>();
  // Before fusion, which takes the reorders in.
  pipeline.Add<AssignLayouts>();
  if (KernelsAvailable()) pipeline.Add<lowering::Fuse>(Target(filter));
}

void RegisterCpuPasses() {
  const auto add = [](std::string_view name, std::string_view doc, auto make) {
    // A second registration finds the names taken, by the same passes.
    lowering::AddPass({.name = std::string(name), .doc = std::string(doc), .make = make})
        .IgnoreError();
  };
  add("cpu_assign_layouts", "Choose layouts for the library's calls.",
      [] { return std::make_unique<AssignLayouts>(); });
  add("cpu_fold_kernel_reverse", "Let convolutions flip their kernels.",
      [] { return std::make_unique<FoldKernelReverse>(); });
  add("cpu_fuse_attention", "Make one kernel of attention, and one of its gradient.",
      [] { return std::make_unique<FuseAttention>(); });
  add("cpu_read_narrow_factors", "Let products with few rows read narrow factors.",
      [] { return std::make_unique<ReadNarrowFactors>(WidensAsItReads); });
  add("cpu_fuse_loops", "Make kernels of small loops.",
      [] { return std::make_unique<lowering::FuseLoops>(Target()); });
  add("cpu_fuse", "Group instructions into kernels.",
      [] { return std::make_unique<lowering::Fuse>(Target()); });
}

namespace {

// Kernels and library calls have fixed sizes: the evaluator runs the module as a whole.
void MakeOneCall(hlo::Module& module) {
  hlo::Computation* const all = module.entry();
  hlo::Computation* const entry = module.AddComputation("whole");
  std::vector<hlo::Instruction*> operands;
  for (const hlo::Instruction* p : all->parameters())
    operands.push_back(
        entry->AddParameter(p->parameter_number(), p->shape().WithDefaultLayout(), p->name()));
  entry->set_root(entry->Add(hlo::Opcode::kCall, all->root()->shape().WithDefaultLayout(), operands,
                             hlo::NoAttrs{}, {all}));
  module.set_entry(entry);
}

}  // namespace

absl::StatusOr<ThunkProgram> CompileModule(std::unique_ptr<hlo::Module> module,
                                           const CompileOptions& options) {
  const ir::ScopedFloatMode mode(options.flush_subnormals);  // of folded constants, as of a run
  if (hlo::HasDynamicSizes(*module)) MakeOneCall(*module);
  // Kernels are made of the fusions that our passes make. Others may hold anything.
  for (const auto& computation : module->computations()) computation->set_is_fusion(false);
  ThunkProgram program;
  program.module = std::move(module);
  program.options = options;
  if (options.num_threads <= 0) program.options.num_threads = NumThreads();
  lowering::PassPipeline pipeline("cpu", 1,
                                  {.disabled_passes = options.disabled_passes,
                                   .disabled_rules = options.disabled_rules,
                                   .program_passes = options.program_passes,
                                   .jitter = options.jitter,
                                   .jitter_seed = options.jitter_seed});
  OpFilter filter;
  LAZULI_RETURN_IF_ERROR(filter.Add(options));
  AddCpuPipeline(pipeline, filter, options.is_part);
  LAZULI_RETURN_IF_ERROR(pipeline.Run(*program.module).status());
  const ScopedLibraryThreads threads(program.options.num_threads);
  LAZULI_RETURN_IF_ERROR(EmitThunks(program, filter));
  return program;
}

}  // namespace lazuli::cpu
