#include "backend/cpu/codegen/jit.h"

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
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include "ir/support/check.h"
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

// In a build with AddressSanitizer kernels check their loads and stores as the rest does, by the
// functions of the process.
constexpr bool kChecksAccesses =
#ifdef __SANITIZE_ADDRESS__
    true;
#else
    false;
#endif

void CheckAccesses(llvm::Module& module, llvm::ModulePassManager& passes) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) function.addFnAttr(llvm::Attribute::SanitizeAddress);
  }
  passes.addPass(llvm::AddressSanitizerPass({}, /*UseGlobalGC=*/false, /*UseOdrIndicator=*/false,
                                            llvm::AsanDtorKind::None, llvm::AsanCtorKind::None));
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
  llvm::ModulePassManager pipeline =
      passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
  if (kChecksAccesses) CheckAccesses(module, pipeline);
  pipeline.run(module, modules);
}

std::string TextOf(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

std::string AssemblyOf(const llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallString<0> assembly;
  llvm::raw_svector_ostream stream(assembly);
  llvm::legacy::PassManager passes;
  const auto copy = llvm::CloneModule(module);
  if (!machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    passes.run(*copy);
  return assembly.str().str();
}

}  // namespace

absl::Status FromLlvm(llvm::Error error, std::string_view what) {
  return Internal(what, ": ", llvm::toString(std::move(error)));
}

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

absl::StatusOr<std::string> Jit::Compile(llvm::Module& module, const Show& show) {
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream)) {
    return Internal("the kernel ", std::string(module.getName()),
                    " is not valid LLVM IR: ", problem);
  }
  auto machine = state_->builder.createTargetMachine();
  if (!machine) return FromLlvm(machine.takeError(), "no code generator for this processor");
  if (show.call) show.call(Stage::kWritten, TextOf(module));
  Optimise(module, **machine);
  if (show.call) show.call(Stage::kOptimised, TextOf(module));
  if (show.call && show.assembly) show.call(Stage::kAssembly, AssemblyOf(module, **machine));
  auto object = llvm::orc::SimpleCompiler(**machine)(module);
  if (!object) return FromLlvm(object.takeError(), "compiling a kernel");
  std::string bytes = (*object)->getBuffer().str();
  if (show.call) show.call(Stage::kObject, bytes);
  return bytes;
}

}  // namespace lazuli::cpu
