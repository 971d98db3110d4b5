#include "backend/cpu/codegen/jit.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include "ir/support/check.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::backend {
namespace {

absl::Status FromLlvm(llvm::Error error, std::string_view what) {
  return Internal(what, ": ", llvm::toString(std::move(error)));
}

llvm::orc::JITTargetMachineBuilder HostBuilder() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  LAZULI_CHECK(static_cast<bool>(builder), "LLVM does not know this processor");
  builder->setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
  llvm::TargetOptions& options = builder->getOptions();
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // an fma only where a recipe says so
  return std::move(*builder);
}

int VectorWidth(const llvm::orc::JITTargetMachineBuilder& builder) {
  const std::string features = builder.getFeatures().getString();
  if (features.find("+avx512vl") != std::string::npos) return 16;
  if (features.find("+avx2") != std::string::npos) return 8;
  return 4;
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;  // kernels are written with vectors
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder passes(&machine, tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graphs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graphs, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

void MaybeDump(const llvm::Module& module) {
  if (flags().debug() < 5) return;
  module.print(llvm::errs(), nullptr);
}

}  // namespace

struct Jit::State {
  State() : builder(HostBuilder()) {
    auto made = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(builder).create();
    LAZULI_CHECK(static_cast<bool>(made), "LLVM's JIT does not start");
    jit = std::move(*made);
    auto machine = builder.createTargetMachine();
    LAZULI_CHECK(static_cast<bool>(machine), "no code generator for this processor");
    layout = (*machine)->createDataLayout();
  }

  llvm::orc::JITTargetMachineBuilder builder;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::optional<llvm::DataLayout> layout;
  std::mutex mutex;  // of linking
};

namespace {

class LoadedCode final : public JitCode {
 public:
  LoadedCode(llvm::orc::LLJIT& jit, llvm::orc::ResourceTrackerSP tracker, int64_t bytes)
      : jit_(jit), tracker_(std::move(tracker)), bytes_(bytes) {}
  ~LoadedCode() override { llvm::consumeError(tracker_->remove()); }

  void* Lookup(const std::string& function) const override {
    auto address = jit_.lookup(function);
    LAZULI_CHECK(static_cast<bool>(address), "no function ", function);
    return address->toPtr<void*>();
  }
  int64_t bytes() const override { return bytes_; }

 private:
  llvm::orc::LLJIT& jit_;
  llvm::orc::ResourceTrackerSP tracker_;
  int64_t bytes_;
};

}  // namespace

Jit::Jit() : state_(std::make_shared<State>()) {
  vector_width_ = VectorWidth(state_->builder);
  host_ = Str(std::string_view(state_->builder.getCPU()), " ",
              state_->builder.getFeatures().getString());
}

// Never destroyed: code of executables that are still alive at exit stays valid.
Jit& Jit::Get() {
  static Jit* const jit = new Jit;
  return *jit;
}

void Jit::Prepare(llvm::Module& module) const {
  module.setDataLayout(*state_->layout);
  module.setTargetTriple(state_->builder.getTargetTriple().str());
}

absl::StatusOr<std::shared_ptr<const JitCode>> Jit::Compile(
    std::unique_ptr<llvm::LLVMContext> context, std::unique_ptr<llvm::Module> module) {
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(*module, &problem_stream)) {
    return Internal("the kernel ", std::string(module->getName()),
                    " is not valid LLVM IR: ", problem);
  }
  auto machine = state_->builder.createTargetMachine();
  if (!machine) return FromLlvm(machine.takeError(), "no code generator for this processor");
  MaybeDump(*module);
  Optimise(*module, **machine);
  MaybeDump(*module);
  auto object = llvm::orc::SimpleCompiler(**machine)(*module);
  if (!object) return FromLlvm(object.takeError(), "compiling a kernel");
  const auto bytes = static_cast<int64_t>((*object)->getBufferSize());
  module.reset();
  context.reset();

  std::lock_guard lock(state_->mutex);
  llvm::orc::LLJIT& jit = *state_->jit;
  auto tracker = jit.getMainJITDylib().createResourceTracker();
  if (auto error = jit.addObjectFile(tracker, std::move(*object)))
    return FromLlvm(std::move(error), "loading a kernel");
  return std::make_shared<LoadedCode>(jit, std::move(tracker), bytes);
}

std::string Jit::UniqueName(const std::string& stem) {
  static std::atomic<int64_t> next{0};
  return Str(stem, "_", next.fetch_add(1));
}

}  // namespace lazuli::backend
