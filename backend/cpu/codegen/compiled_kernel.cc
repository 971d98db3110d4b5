#include "backend/cpu/codegen/compiled_kernel.h"

#include <chrono>
#include <shared_mutex>
#include <utility>

#include "backend/cpu/codegen/background_compiler.h"
#include "backend/cpu/codegen/compile_mutex.h"
#include "backend/cpu/codegen/generate_kernel.h"
#include "backend/cpu/codegen/interpret_kernel.h"
#include "ir/hlo/clone.h"
#include "ir/support/data_memory.h"
#include "ir/support/float_mode.h"
#include "ir/support/metrics.h"
#include "ir/support/parallel_for.h"
#include "ir/support/process_end.h"
#include "ir/support/span.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

// More than LLVM takes for most kernels (benchmarks/start.py).
constexpr int64_t kCompileNs = 20'000'000;
// After so much time with the evaluator a kernel of many sizes gets its code in the background.
constexpr int64_t kSharedNs = 3'000'000;
// What the memory of a kernel without code is taken for: its body.
constexpr int64_t kSourceBytes = 8192;

}  // namespace

// What the code is made from: a copy of the body, since the program that it came with may go first.
struct CompiledKernel::KernelSource {
  KernelSource(const hlo::Computation& original, std::string body_text)
      : text(std::move(body_text)), body(*hlo::AddClones({&original}, module).at(&original)) {}

  std::string text;
  hlo::Module module{"kernel"};
  const hlo::Computation& body;
};

CompiledKernel::CompiledKernel(StoredKernel stored)
    : shape_(std::move(stored.shape)), object_(std::move(stored.object)) {}
CompiledKernel::CompiledKernel(const hlo::Computation& body, std::string text, KernelShape shape,
                               std::shared_ptr<const GenericKernel> generic)
    : shape_(std::move(shape)),
      generic_(std::move(generic)),
      source_(std::make_unique<KernelSource>(body, std::move(text))) {
  TakesGenericCode();
}
CompiledKernel::~CompiledKernel() = default;

absl::Status CompiledKernel::Load() {
  LAZULI_ASSIGN_OR_RETURN(owned_, KernelCode::Link({shape_, std::move(object_)},
                                                   /*is_generic=*/!shape_.numbers.empty()));
  code_.store(owned_.get(), std::memory_order_release);
  return absl::OkStatus();
}

// Whether that is its code now.
bool CompiledKernel::TakesGenericCode() const {
  const KernelCode* const code = generic_ == nullptr ? nullptr : generic_->code();
  if (code != nullptr) code_.store(code, std::memory_order_release);
  return code != nullptr;
}

absl::Status CompiledKernel::MakeCode() const {
  if (generic_ != nullptr) {
    LAZULI_RETURN_IF_ERROR(generic_->Compile(source_->body));
    TakesGenericCode();
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(StoredKernel made,
                          GenerateKernel({.body = &source_->body, .text = source_->text}));
  LAZULI_ASSIGN_OR_RETURN(owned_, KernelCode::Link(std::move(made), /*is_generic=*/false));
  code_.store(owned_.get(), std::memory_order_release);
  return absl::OkStatus();
}

// The float mode of the caller, whatever it runs, is none of the code's.
absl::Status CompiledKernel::Compile() const noexcept {
  const std::lock_guard lock(compiling_);
  if (has_code()) return absl::OkStatus();
  if (failed_.load(std::memory_order_relaxed)) return failure_;
  const ir::ScopedFloatMode mode(/*flush_subnormals=*/false);
  const auto make = [this]() -> absl::Status {
    try {
      return MakeCode();
    } catch (const ir::NoDataMemory& error) {  // thrown by our own literals
      return error.status();
    }
  };
  const absl::Status made = make();
  if (absl::IsResourceExhausted(made)) {  // that may be otherwise next time
    waiting().asked.store(false);
  } else if (!made.ok()) {
    failure_ = made;
    failed_.store(true, std::memory_order_release);
  }
  return made;
}

absl::Status CompiledKernel::Complete() const {
  if (has_code()) return absl::OkStatus();
  const std::shared_lock compiling(CompileMutex());
  return Compile();
}

int64_t CompiledKernel::code_bytes() const {
  const KernelCode* const code = code_.load(std::memory_order_acquire);
  return code == nullptr || code->is_generic ? kSourceBytes : code->bytes();
}

std::string CompiledKernel::Details() const {
  return Str(shape_.details, " items ", shape_.items, " grain ", shape_.grain,
             has_code() ? "" : " interpreted", shape_.numbers.empty() ? "" : " of any size");
}

void CompiledKernel::WritePart(ProgramWriter& out) const {
  Write(out, StoredKernel{shape_, code_.load(std::memory_order_acquire)->object});
}

void CompiledKernel::RunCode(const KernelCode& code, std::byte* const* args) const {
  if (shape_.items <= shape_.grain) {
    code.run(args, 0, shape_.items);
  } else {
    ir::ParallelFor(shape_.items, shape_.grain,
                    [&](int64_t begin, int64_t end) { code.run(args, begin, end); });
  }
  if (code.finish != nullptr) code.finish(args, 0, shape_.finish_items);
}

// Whether the background compiler has it now. It holds no kernel that nobody else does, but for one whose
// code other sizes will want.
bool CompiledKernel::AskForCode() const {
  if (waiting().asked.exchange(true)) return true;
  const auto kept = generic_ == nullptr ? nullptr : shared_from_this();
  const bool taken = DoInBackground([kernel = weak_from_this(), kept] {
    const auto self = kernel.lock();
    if (self == nullptr || self->has_code()) return;
    self->Compile().IgnoreError();  // the next run says it
    Add(ir::Counter::kBackgroundKernels);
  });
  if (!taken) waiting().asked.store(false);
  return taken;
}

absl::StatusOr<bool> CompiledKernel::IsFinal() const {
  if (has_code()) return true;
  if (failed_.load(std::memory_order_acquire)) return failure_;
  return false;
}

// Whether there is code now. Once the process ends nothing is compiled any more.
bool CompiledKernel::CompileNow() const {
  if (failed_.load(std::memory_order_acquire)) return false;
  const ir::EndWaits end_waits;
  if (!end_waits.may_begin()) return false;
  const std::shared_lock compiling(CompileMutex());
  return Compile().ok();
}

absl::Status CompiledKernel::Interpret(std::byte* const* args) const {
  const ir::TraceSpan span(ir::SpanKind::kInterpret, "interpret");
  Add(ir::Counter::kKernelInterpretations);
  const auto start = std::chrono::steady_clock::now();
  const absl::Status done = InterpretKernel(source_->body, args);
  const auto time = std::chrono::steady_clock::now() - start;
  waiting().spent.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count(),
                            std::memory_order_relaxed);
  return done;
}

absl::Status CompiledKernel::RunWithoutCode(std::byte* const* args, std::atomic<bool>& ran) const {
  if (TakesGenericCode()) {
    RunCode(*code_.load(std::memory_order_acquire), args);
    return absl::OkStatus();
  }
  const int64_t spent = waiting().spent.load(std::memory_order_relaxed);
  if (ran.exchange(true, std::memory_order_relaxed) || (generic_ != nullptr && spent > kSharedNs))
    runs_again_.store(true, std::memory_order_relaxed);
  const bool compile =
      runs_again_.load(std::memory_order_relaxed) && (spent > kCompileNs || !AskForCode());
  if (!compile || !CompileNow()) {
    const absl::Status done = Interpret(args);
    // Code needs no memory that the run does not have already.
    if (!absl::IsResourceExhausted(done) || !CompileNow()) return done;
  }
  RunCode(*code_.load(std::memory_order_acquire), args);
  return absl::OkStatus();
}

}  // namespace lazuli::cpu
