#include "backend/cpu/compiler.h"

#include <utility>

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/emit_thunks.h"
#include "backend/cpu/passes/assign_layouts.h"
#include "backend/cpu/passes/fold_kernel_reverse.h"
#include "backend/cpu/passes/fuse.h"
#include "backend/cpu/runtime/library.h"
#include "ir/support/parallel_for.h"
#include "ir/support/status.h"
#include "lowering/passes/pipelines.h"

namespace lazuli::backend {
namespace {

lowering::PassPipeline MakePipeline() {
  lowering::PassPipeline pipeline("cpu");
  lowering::AddSimplificationPipeline(pipeline);
  pipeline
      .Add<FoldKernelReverse>();  // the kernel of a gradient convolution is flipped by the library
  pipeline.Add<AssignLayouts>();  // before fusion, which takes the reorders in
  if (KernelsAvailable()) pipeline.Add<Fuse>(KernelSupports, kMaxKernelArgs);
  return pipeline;
}

}  // namespace

absl::StatusOr<Program> CompileProgram(std::unique_ptr<hlo::Module> module,
                                       const CompileOptions& options) {
  return CompileCalleeProgram(std::move(module), options, 0, false);
}

absl::StatusOr<Program> CompileCalleeProgram(std::unique_ptr<hlo::Module> module,
                                             const CompileOptions& options, int depth,
                                             bool keeps_parameters) {
  Program program;
  program.depth = depth;
  program.keeps_parameters = keeps_parameters;
  program.module = std::move(module);
  program.num_threads = options.num_threads > 0 ? options.num_threads : NumThreads();
  program.flush_subnormals = options.flush_subnormals;
  LAZULI_RETURN_IF_ERROR(MakePipeline().Run(*program.module).status());
  const ScopedLibraryThreads threads(program.num_threads);
  LAZULI_RETURN_IF_ERROR(EmitThunks(program));
  AssignBuffers(program);
  return program;
}

}  // namespace lazuli::backend
