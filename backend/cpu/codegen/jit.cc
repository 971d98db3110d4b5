#include "backend/cpu/codegen/jit.h"

#include <mutex>
#include <optional>

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include "backend/cpu/codegen/kernel.h"
#include "ir/support/check.h"
#include "ir/support/fork.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::cpu {
namespace {

llvm::orc::JITTargetMachineBuilder HostBuilder() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
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

struct Listening {
  ir::ForkMutex mutex;
  std::shared_ptr<const KernelListener> listener;  // null: nobody
};
Listening& TheListening() {
  static auto* const listening = new Listening;
  return *listening;
}
std::shared_ptr<const KernelListener> Listener() {
  std::lock_guard lock(TheListening().mutex);
  return TheListening().listener;
}

// Shows the optimised module to whoever listens.
void Tell(const llvm::Module& module, llvm::TargetMachine& machine) {
  const auto listener = Listener();
  if (listener == nullptr) return;
  std::string text;
  llvm::raw_string_ostream text_stream(text);
  module.print(text_stream, nullptr);
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream assembly_stream(assembly);
  llvm::legacy::PassManager passes;
  const auto copy = llvm::CloneModule(module);
  if (!machine.addPassesToEmitFile(passes, assembly_stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    passes.run(*copy);
  (*listener)(text, assembly.str().str());
}

}  // namespace

absl::Status FromLlvm(llvm::Error error, std::string_view what) {
  return Internal(what, ": ", llvm::toString(std::move(error)));
}

void ListenToKernels(KernelListener listener) {
  auto next = listener ? std::make_shared<const KernelListener>(std::move(listener)) : nullptr;
  std::lock_guard lock(TheListening().mutex);
  TheListening().listener.swap(next);
}

bool SomebodyListensToKernels() { return Listener() != nullptr; }

struct Jit::State {
  State() : builder(HostBuilder()) {
    auto machine = builder.createTargetMachine();
    LAZULI_CHECK(static_cast<bool>(machine), "no code generator for this processor");
    layout = (*machine)->createDataLayout();
  }

  llvm::orc::JITTargetMachineBuilder builder;
  std::optional<llvm::DataLayout> layout;
};

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

absl::StatusOr<std::string> Jit::Compile(llvm::Module& module, bool dump) {
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream)) {
    return Internal("the kernel ", std::string(module.getName()),
                    " is not valid LLVM IR: ", problem);
  }
  auto machine = state_->builder.createTargetMachine();
  if (!machine) return FromLlvm(machine.takeError(), "no code generator for this processor");
  if (dump) module.print(llvm::errs(), nullptr);
  Optimise(module, **machine);
  if (dump) module.print(llvm::errs(), nullptr);
  Tell(module, **machine);
  auto object = llvm::orc::SimpleCompiler(**machine)(module);
  if (!object) return FromLlvm(object.takeError(), "compiling a kernel");
  return (*object)->getBuffer().str();
}

}  // namespace lazuli::cpu
