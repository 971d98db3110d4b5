#include "backend/cpu/codegen/generate_kernel.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <utility>

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "backend/cpu/codegen/override.h"
#include "backend/runtime/thunk.h"
#include "ir/support/flags.h"
#include "ir/support/hash.h"
#include "ir/support/metrics.h"
#include "ir/support/span.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"

namespace lazuli::cpu {
namespace {

using hlo::Opcode;

absl::StatusOr<KernelShape> EmitKernel(llvm::Module* module, const KernelRequest& request) {
  if (FindSelectAndScatter(request.body) != nullptr)
    return EmitSelectAndScatterKernel(module, request);
  if (FindLoop(request.body) != nullptr) return EmitWhileKernel(module, request);
  switch (Outputs(request.body)[0]->opcode()) {
    case Opcode::kReduce:
      return Outputs(request.body)[0]->shape().IsTuple() ? EmitFoldKernel(module, request)
                                                         : EmitReduceKernel(module, request);
    case Opcode::kReduceWindow:
      return EmitReduceWindowKernel(module, request);
    default:
      return EmitLoopKernel(module, request);
  }
}

// As XLA calls the files of a dump.
std::string FileOf(const std::string& kernel, Jit::Stage stage) {
  switch (stage) {
    case Jit::Stage::kWritten:
      return Str(kernel, "_kernel_module.ir-no-opt.ll");
    case Jit::Stage::kOptimised:
      return Str(kernel, "_kernel_module.ir-with-opt.ll");
    case Jit::Stage::kAssembly:
      return Str(kernel, ".s");
    case Jit::Stage::kObject:
      break;
  }
  return Str("obj-file.", kernel, ".o");
}

// Shows the kernel to those who asked for its code; empty if nobody did.
Jit::Show ShowFor(const KernelJob& job) {
  const bool print = PrintsKernels();
  if (!print && job.dump == nullptr) return {};
  const std::string name = Str(job.body->name(), "_", HashOfKernel(job.text));
  const auto show = [print, dump = job.dump, name](Jit::Stage stage, std::string_view contents) {
    const bool is_ir = stage == Jit::Stage::kWritten || stage == Jit::Stage::kOptimised;
    if (print && is_ir) ir::ShowDebug(contents);
    if (dump != nullptr) dump->File(FileOf(name, stage), contents);
  };
  return {show, /*assembly=*/job.dump != nullptr && job.dump->is_captured()};
}

// Its line is that of what the kernel computes last: no other says whose it is on a thread that helps.
const ir::SpanLabel& SpanLabelOf(const hlo::Computation& body) {
  const hlo::Instruction* result = body.root();
  if (result->opcode() == hlo::Opcode::kTuple && result->operand_count() > 0)
    result = result->operand(0);
  return ir::KeepLabel({.kind = ir::SpanKind::kCode,
                        .name = body.name(),
                        .source = backend::ThunkInfo::Of("kernel", *result).line()});
}

absl::StatusOr<StoredKernel> GenerateCode(Jit& jit, const KernelJob& job) {
  const hlo::Computation& body = *job.body;
  const ir::TraceSpan span([&]() -> const ir::SpanLabel& { return SpanLabelOf(body); });
  llvm::LLVMContext context;
  llvm::Module module(kKernelFunction, context);
  jit.Prepare(module);
  StoredKernel kernel;
  GenericForm form;
  LAZULI_ASSIGN_OR_RETURN(kernel.shape,
                          EmitKernel(&module, {body, kKernelFunction, jit.vector_width(),
                                               job.is_generic ? &form : nullptr}));
  if (!job.override_file.empty()) LAZULI_RETURN_IF_ERROR(ReadOverride(job.override_file, module));
  LAZULI_ASSIGN_OR_RETURN(kernel.object, jit.Compile(module, ShowFor(job)));
  return kernel;
}

// What FailNextKernel was given.
struct Fault {
  std::atomic<bool> set{false};
  std::mutex mutex;
  absl::Status error;
};
Fault& TheFault() {
  static auto* const fault = new Fault;
  return *fault;
}

absl::Status TakeFault() {
  Fault& fault = TheFault();
  if (!fault.set.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard lock(fault.mutex);
  if (!fault.set.exchange(false)) return absl::OkStatus();
  return fault.error;
}

}  // namespace

bool PrintsKernels() {
  constexpr int64_t kIr = 5;
  const int64_t own_level = ir::LevelOf("LAZULI_DEBUG", "kernels");
  return (own_level < 0 ? flags().debug() : own_level) >= kIr;
}

// Stands for what a kernel computes, from process to process.
std::string HashOfKernel(const std::string& text) {
  std::array<char, 20> hash;
  std::snprintf(hash.data(), hash.size(), "%016llx",
                static_cast<unsigned long long>(HashBytes(text.data(), text.size())));
  return hash.data();
}

absl::StatusOr<KernelShape> ShapeOfKernel(const hlo::Computation& body, GenericForm* generic) {
  LAZULI_ASSIGN_OR_RETURN(
      KernelShape shape,
      EmitKernel(nullptr, {body, kKernelFunction, Jit::Get().vector_width(), generic}));
  if (generic != nullptr) shape.numbers = generic->numbers();
  return shape;
}

absl::StatusOr<StoredKernel> GenerateKernel(const KernelJob& job) {
  LAZULI_RETURN_IF_ERROR(TakeFault());
  const bool own = job.override_file.empty();
  if (own && job.dump == nullptr) {
    if (std::optional<StoredKernel> kernel = FindStoredKernel(job.text)) return *std::move(kernel);
  }
  LAZULI_ASSIGN_OR_RETURN(StoredKernel kernel, GenerateCode(Jit::Get(), job));
  Add(Counter::kKernels);
  if (own) StoreKernel(job.text, kernel);
  return kernel;
}

absl::StatusOr<std::string> GenericIr(const hlo::Computation& body) {
  llvm::LLVMContext context;
  llvm::Module module(kKernelFunction, context);
  GenericForm form;
  LAZULI_RETURN_IF_ERROR(
      EmitKernel(&module, {body, kKernelFunction, Jit::Get().vector_width(), &form}).status());
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

void FailNextKernel(absl::Status error) {
  Fault& fault = TheFault();
  const std::lock_guard lock(fault.mutex);
  fault.error = std::move(error);
  fault.set.store(true, std::memory_order_release);
}

}  // namespace lazuli::cpu
