#include "backend/cpu/codegen/kernel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "llvm/Config/llvm-config.h"

#include "backend/cpu/codegen/compiled_kernel.h"
#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/generate_kernel.h"
#include "backend/cpu/codegen/interpret_kernel.h"
#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "backend/cpu/codegen/override.h"
#include "backend/cpu/runtime/persistent_cache.h"
#include "backend/runtime/thunk.h"
#include "ir/evaluator/cumulative.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/monoid.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/data_memory.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/on_threads.h"
#include "ir/support/parallel_for.h"
#include "ir/support/runtime.h"
#include "ir/support/slow_notice.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

struct KernelSpec {
  std::shared_ptr<const CompiledKernel> kernel;
  std::vector<BufferId> args;
  LAZULI_ATTRS(kernel, args);
};

class KernelThunk final : public SpecThunk<KernelSpec> {
 public:
  KernelThunk(ThunkInfo info, std::vector<BufferUse> uses, KernelSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)), kernel_(*spec_.kernel) {}

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kKernelRuns);
    return kernel_.Run(ArgsOf(run).data(), ran_);
  }
  bool CanSplit(int64_t parts) const override {
    const int64_t outermost = kernel_.shape().outermost;
    return outermost > 0 && outermost % parts == 0;
  }
  absl::StatusOr<bool> IsFinal() const override { return kernel_.IsFinal(); }
  bool RunsInParts() const override { return kernel_.has_code(); }
  absl::Status Prepare(const RunBuffers&) const override {
    Add(Counter::kKernelRuns);
    return absl::OkStatus();
  }
  absl::Status ExecutePart(const RunBuffers& run, Part part) const override {
    kernel_.RunPart(ArgsOf(run).data(), part);
    return absl::OkStatus();
  }
  std::string Details() const override { return kernel_.Details(); }

 private:
  // Parameters and results, then scratch memory and numbers if the kernel has them.
  using Args = std::array<std::byte*, kMaxKernelArgs + 2>;
  Args ArgsOf(const RunBuffers& run) const {
    Args args;  // the kernel reads no others
    for (std::size_t i = 0; i < spec_.args.size(); ++i) args[i] = run.at(spec_.args[i]);
    args[spec_.args.size()] = kernel_.numbers();
    return args;
  }

  const CompiledKernel& kernel_;
  mutable std::atomic<bool> ran_{false};
};

// Kernels that some executable still holds, by the text of their body.
class KernelCache {
 public:
  static KernelCache& Get() { return ir::Runtime::Get().Of<KernelCache>(); }
  std::shared_ptr<const CompiledKernel> Find(const std::string& body) {
    std::lock_guard lock(mutex_);
    const auto it = kernels_.find(body);
    return it == kernels_.end() ? nullptr : it->second.lock();
  }
  void Insert(const std::string& body, const std::shared_ptr<const CompiledKernel>& kernel) {
    std::lock_guard lock(mutex_);
    if (kernels_.size() > 2 * kTrimSize) {
      std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
    }
    kernels_[body] = kernel;
  }

 private:
  static constexpr std::size_t kTrimSize = 2048;
  ir::ForkMutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const CompiledKernel>> kernels_;
};

using CompiledKernelPtr = std::shared_ptr<const CompiledKernel>;

// A kernel that gets its code now: a new one or, without code so far, one of before.
struct CompileOne {
  KernelJob job;
  CompiledKernelPtr before;
  absl::StatusOr<CompiledKernelPtr> kernel = nullptr;

  void Run() {
    try {
      kernel = before == nullptr ? Make() : Complete();
    } catch (const ir::NoDataMemory& error) {  // thrown by our own literals
      kernel = error.status();
    }
  }

 private:
  absl::StatusOr<CompiledKernelPtr> Make() const {
    LAZULI_ASSIGN_OR_RETURN(StoredKernel generated, GenerateKernel(job));
    auto compiled = std::make_shared<CompiledKernel>(std::move(generated));
    LAZULI_RETURN_IF_ERROR(compiled->Load());
    return compiled;
  }
  absl::StatusOr<CompiledKernelPtr> Complete() const {
    LAZULI_RETURN_IF_ERROR(before->Compile());
    return before;
  }
};

void RunJobs(std::vector<CompileOne>& jobs) {
  // Those of a capture are made in the program's order.
  const bool in_order =
      jobs.size() > 0 && jobs[0].job.dump != nullptr && jobs[0].job.dump->is_captured();
  ir::OnThreads(jobs.size(), in_order ? 1 : NumThreads(), [&](std::size_t i) {
    ir::SlowNotice::Check(Str("kernel ", i + 1, " of ", jobs.size()));
    jobs[i].Run();
  });
}

// What a kernel may cost that is interpreted at first: nothing where somebody wants all code now, to look
// at it or to keep it.
int64_t MostInterpreted(const KernelOptions& options) {
  const bool all_now = hlo::ModuleDump::Current() != nullptr || !options.override_dir.empty() ||
                       HasPersistentCache() || PrintsKernels();
  return all_now ? 0 : options.interpreted_ops;
}

// Whether somebody looks at the code of each kernel, or gives it: then each has its own.
bool ShowsCode(const KernelOptions& options) {
  return hlo::ModuleDump::Current() != nullptr || !options.override_dir.empty() || PrintsKernels();
}

// A body that has no kernel so far.
struct NewBody {
  const hlo::Computation* body;
  const std::string* text;
  std::string override_file;
  KernelShape shape{};
  std::shared_ptr<GenericKernel> generic = nullptr;

  // Finds the kernel's shape and, if there may be one, its generic kernel, which counts the sizes.
  absl::Status Describe(const KernelOptions& options) {
    GenericForm form;
    LAZULI_ASSIGN_OR_RETURN(shape, ShapeOfKernel(*body, &form));
    if (options.generic_from > 0 && !ShowsCode(options) && !form.structure().empty()) {
      generic = GenericKernel::Of(form.structure());
      generic->Count(form.numbers(), options.generic_from);
    }
    return absl::OkStatus();
  }

  // A kernel without code for now, or with generic code that is there. Null if it is to be compiled at
  // once and has code of its own.
  CompiledKernelPtr Start(const KernelOptions& options, int64_t most) {
    const std::optional<int64_t> cost = most > 0 ? InterpretationCost(*body) : std::nullopt;
    const bool may_wait = cost && *cost <= most;
    if (generic == nullptr || generic->count() < options.generic_from) {
      generic = nullptr;
      shape.numbers.clear();
      if (!may_wait) return nullptr;
    }
    auto kernel = std::make_shared<const CompiledKernel>(*body, *text, std::move(shape), generic);
    waits = may_wait || kernel->has_code();
    if (waits && !kernel->has_code()) Add(Counter::kInterpretedKernels);
    return kernel;
  }

  bool waits = false;  // nobody has to compile it now
};

// Of the body and, because it says nothing of them but their number, of what it calls.
std::string CanonicalText(const hlo::Computation& body) {
  std::string text = hlo::ToString(body, {.metadata = false, .canonical_names = true});
  for (const Instruction* i : body.PostOrder()) {
    for (const hlo::Computation* callee : i->called()) text += CanonicalText(*callee);
  }
  return text;
}

bool SupportsMonoid(const hlo::Computation& reducer, DType dtype) {
  const auto monoid = hlo::MonoidOf(reducer);
  if (!monoid || !SupportsRegister(dtype)) return false;
  return !IsFloat(dtype) ||
         (*monoid != Opcode::kAnd && *monoid != Opcode::kOr && *monoid != Opcode::kXor);
}

bool SupportsReduce(const Instruction& i) {
  return i.operand_count() == 2 && i.operand(0)->shape().num_elements() > 0 &&
         i.shape().dtype() == i.operand(0)->shape().dtype() &&
         SupportsMonoid(*i.to_apply(), i.shape().dtype());
}

bool SupportsWindow(const Instruction& i) {
  const DType dtype = i.shape().dtype();
  if (!i.shape().IsArray() || i.shape().num_elements() == 0 || dtype == DType::kF16 ||
      dtype == DType::kBF16 || IsComplex(dtype))
    return false;
  for (const hlo::WindowDim& w : i.attrs_as<hlo::WindowAttrs>().window) {
    if (w.base_dilation != 1 || w.reversal || w.pad_low < 0) return false;
  }
  return i.operand(0)->shape().num_elements() > 0 && i.operand(0)->shape().dtype() == dtype;
}

bool SupportsReduceWindow(const Instruction& i) {
  if (hlo::MatchCumulative(i)) return false;  // one pass over the elements has a thunk of its own
  return i.operand_count() == 2 && SupportsWindow(i) &&
         SupportsMonoid(*i.to_apply(), i.shape().dtype());
}

// Elements or windows of an array by indices that fit 64 bits with a sign.
bool SupportsGather(const Instruction& i) {
  if (i.operand_count() < 2) return false;
  const Shape &operand = i.operand(0)->shape(), &indices = i.operand(1)->shape();
  return SupportsRegister(i.shape().dtype()) && !IsComplex(i.shape().dtype()) &&
         SupportsRegister(indices.dtype()) && IsIntegral(indices.dtype()) &&
         indices.dtype() != DType::kU64 && operand.num_elements() > 0 &&
         i.shape().num_elements() > 0 &&
         (i.opcode() == Opcode::kDynamicSlice
              ? indices.rank() == 0 && i.operand_count() == i.shape().rank() + 1
              : !i.attrs_as<hlo::GatherAttrs>().start_index_map.empty());
}

// The selection is elementwise work on its two parameters.
bool SupportsSelectAndScatter(const Instruction& i) {
  if (!SupportsWindow(i) || i.operand(1)->shape().num_elements() == 0) return false;
  for (const auto& element : i.called()[0]->instructions()) {
    if (element->opcode() != Opcode::kParameter && !SupportsElement(*element)) return false;
  }
  return SupportsMonoid(*i.called()[1], i.shape().dtype());
}

}  // namespace

bool KernelsAvailable() { return true; }

std::string KernelEngine() {
  const Jit& jit = Jit::Get();
  return Str("LLVM ", LLVM_VERSION_STRING, " for ", jit.host().substr(0, jit.host().find(' ')),
             ", ", jit.vector_width(), " floats a vector");
}

std::string KernelEngineAndHost() { return Str(KernelEngine(), " (", Jit::Get().host(), ")"); }

bool KernelSupports(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kReduce:
      return i.shape().IsTuple() ? SupportsFold(i) : SupportsReduce(i);
    case Opcode::kReduceWindow:
      return SupportsReduceWindow(i);
    case Opcode::kSelectAndScatter:
      return SupportsSelectAndScatter(i);
    case Opcode::kGather:
    case Opcode::kDynamicSlice:
      return SupportsGather(i);
    case Opcode::kIota:
      return SupportsRegister(i.shape().dtype()) && !IsComplex(i.shape().dtype());
    case Opcode::kConstant:
      return i.shape().IsArray() && i.shape().num_elements() == 1 &&
             SupportsRegister(i.shape().dtype());
    default:
      return IsIndexChange(i) ? SupportsRegister(i.shape().dtype()) : SupportsElement(i);
  }
}

bool KernelSupportsLoop(const hlo::Computation& body) { return SupportsWhile(body); }

absl::StatusOr<std::vector<std::shared_ptr<const Kernel>>> CompileKernels(
    absl::Span<const hlo::Computation* const> bodies, const KernelOptions& options) {
  std::vector<std::string> texts;
  texts.reserve(bodies.size());
  std::unordered_map<std::string, CompiledKernelPtr> known;
  std::vector<CompileOne> jobs;
  std::vector<NewBody> added;
  hlo::ModuleDump* const dump = hlo::ModuleDump::Current();
  const int64_t most = MostInterpreted(options);
  for (const hlo::Computation* body : bodies) {
    const std::string& text =
        texts.emplace_back(CanonicalText(*body) + (options.generic_from == 1 ? " generic" : ""));
    const auto [it, is_new] = known.try_emplace(text, nullptr);
    CompiledKernelPtr& kernel = it->second;
    if (!is_new) continue;
    std::string override_file;
    if (!options.override_dir.empty()) {
      LAZULI_ASSIGN_OR_RETURN(override_file,
                              FindOverride(options.override_dir, HashOfKernel(text)));
    }
    if (dump == nullptr && override_file.empty()) kernel = KernelCache::Get().Find(text);
    if (kernel == nullptr) {
      added.push_back({body, &text, std::move(override_file)});
      LAZULI_RETURN_IF_ERROR(added.back().Describe(options));
      continue;
    }
    kernel->Share();
    if (most == 0 && !kernel->has_code()) jobs.push_back({{body, text, dump}, kernel});
  }
  for (NewBody& body : added) {
    CompiledKernelPtr kernel = body.Start(options, most);
    if (body.waits) {
      KernelCache::Get().Insert(*body.text, kernel);
      known[*body.text] = std::move(kernel);
    } else {
      jobs.push_back({{body.body, *body.text, dump, std::move(body.override_file)}, kernel});
    }
  }
  RunJobs(jobs);
  for (CompileOne& done : jobs) {
    LAZULI_RETURN_IF_ERROR(done.kernel.status());
    if (done.job.override_file.empty()) KernelCache::Get().Insert(done.job.text, *done.kernel);
    known[done.job.text] = *done.kernel;
  }
  std::vector<std::shared_ptr<const Kernel>> result;
  for (const std::string& text : texts) result.push_back(known[text]);
  return result;
}

namespace {

// Of the elements of the shape's leaves, in bytes.
void AppendWidths(const Shape& shape, std::vector<int64_t>& widths) {
  ForEachLeaf(shape, [&](const Shape& leaf) { widths.push_back(ByteWidth(leaf.dtype())); });
}

}  // namespace

std::unique_ptr<Thunk> MakeKernelThunk(const Instruction& fusion,
                                       std::shared_ptr<const Kernel> kernel,
                                       std::vector<BufferId> operands,
                                       std::vector<BufferId> results, BufferId scratch) {
  auto compiled = std::static_pointer_cast<const CompiledKernel>(std::move(kernel));
  const KernelShape& shape = compiled->shape();
  std::vector<int64_t> widths;
  for (const Instruction* operand : fusion.operands()) AppendWidths(operand->shape(), widths);
  AppendWidths(fusion.shape(), widths);
  std::vector<BufferUse> uses;
  for (std::size_t i = 0; i < operands.size(); ++i)
    uses.push_back({.buffer = operands[i],
                    .in_place = shape.in_place[i] != 0 ? widths[i] : 0,
                    .by_part = shape.outermost > 0 && shape.by_part[i] != 0});
  for (std::size_t r = 0; r < results.size(); ++r)
    uses.push_back({.buffer = results[r],
                    .write = true,
                    .in_place = widths[operands.size() + r],
                    .by_part = shape.outermost > 0});
  if (scratch >= 0) uses.push_back({.buffer = scratch, .write = true});
  std::vector<BufferId> args = std::move(operands);
  args.insert(args.end(), results.begin(), results.end());
  if (scratch >= 0) args.push_back(scratch);
  return std::make_unique<KernelThunk>(ThunkInfo::Of("kernel", fusion), std::move(uses),
                                       KernelSpec{std::move(compiled), std::move(args)});
}

ThunkKind KernelThunkKind() { return ThunkKind::Of<KernelThunk>("kernel"); }

PartKind KernelPartKind() {
  return {"kernel", [](ProgramReader& in) -> absl::StatusOr<std::shared_ptr<ProgramPart>> {
            StoredKernel stored;
            Read(in, stored);
            if (!in.ok()) return InvalidArgument("a kernel is cut off");
            return std::make_shared<CompiledKernel>(std::move(stored));
          }};
}

}  // namespace lazuli::cpu
