#include "backend/cpu/codegen/jit.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
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

struct Listener {
  std::mutex mutex;
  KernelListener call;
};
Listener& TheListener() {
  static Listener* const listener = new Listener;
  return *listener;
}

// Shows the optimised module to whoever listens.
void Tell(const llvm::Module& module, llvm::TargetMachine& machine) {
  std::lock_guard lock(TheListener().mutex);
  if (!TheListener().call) return;
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
  TheListener().call(text, assembly.str().str());
}

}  // namespace

void ListenToKernels(KernelListener listener) {
  std::lock_guard lock(TheListener().mutex);
  TheListener().call = std::move(listener);
}

bool SomebodyListensToKernels() {
  std::lock_guard lock(TheListener().mutex);
  return static_cast<bool>(TheListener().call);
}

struct Jit::State {
  State() : builder(HostBuilder()) {
    auto made = llvm::orc::LLJITBuilder()
                    .setJITTargetMachineBuilder(builder)
                    .setPlatformSetUp(llvm::orc::setUpInactivePlatform)  // kernels have no globals
                    .create();
    LAZULI_CHECK(static_cast<bool>(made), "LLVM's JIT does not start");
    jit = std::move(*made);
    auto machine = builder.createTargetMachine();
    LAZULI_CHECK(static_cast<bool>(machine), "no code generator for this processor");
    layout = (*machine)->createDataLayout();
  }

  llvm::orc::JITTargetMachineBuilder builder;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::optional<llvm::DataLayout> layout;
};

namespace {

// A library of its own for each object file: names need not differ.
class LoadedCode final : public JitCode {
 public:
  LoadedCode(llvm::orc::LLJIT& jit, llvm::orc::JITDylib& library, int64_t bytes)
      : jit_(jit), library_(&library), bytes_(bytes) {}
  ~LoadedCode() override {
    llvm::consumeError(jit_.getExecutionSession().removeJITDylib(*library_));
  }

  void* Lookup(const std::string& function) const override {
    auto address = jit_.lookup(*library_, function);
    LAZULI_CHECK(static_cast<bool>(address), "no function ", function);
    return address->toPtr<void*>();
  }
  int64_t bytes() const override { return bytes_; }

 private:
  llvm::orc::LLJIT& jit_;
  llvm::orc::JITDylibSP library_;
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

absl::StatusOr<std::string> Jit::Compile(std::unique_ptr<llvm::LLVMContext> context,
                                         std::unique_ptr<llvm::Module> module) {
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
  Tell(*module, **machine);
  auto object = llvm::orc::SimpleCompiler(**machine)(*module);
  if (!object) return FromLlvm(object.takeError(), "compiling a kernel");
  std::string bytes = (*object)->getBuffer().str();
  module.reset();
  context.reset();
  return bytes;
}

absl::StatusOr<std::shared_ptr<const JitCode>> Jit::Load(std::string_view object) {
  static std::atomic<int64_t> next{0};
  llvm::orc::LLJIT& jit = *state_->jit;
  auto library = jit.createJITDylib(Str("kernel_", next++));
  if (!library) return FromLlvm(library.takeError(), "loading a kernel");
  const auto bytes = static_cast<int64_t>(object.size());
  auto code = std::make_shared<LoadedCode>(jit, *library, bytes);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()));
  if (auto error = jit.addObjectFile(*library, std::move(buffer)))
    return FromLlvm(std::move(error), "loading a kernel");
  return code;
}

}  // namespace lazuli::backend
