#include "backend/cpu/codegen/kernel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LLVMContext.h"

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "backend/cpu/codegen/kernel_store.h"
#include "backend/cpu/codegen/machine_code.h"
#include "backend/cpu/codegen/override.h"
#include "backend/runtime/thunk.h"
#include "ir/evaluator/cumulative.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/monoid.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/data_memory.h"
#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/hash.h"
#include "ir/support/metrics.h"
#include "ir/support/on_threads.h"
#include "ir/support/parallel_for.h"
#include "ir/support/runtime.h"
#include "ir/support/slow_notice.h"
#include "ir/support/span.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "ir/types/leaves.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using KernelFunction = void (*)(std::byte* const* args, int64_t begin, int64_t end);

constexpr char kFunction[] = "kernel", kFinishFunction[] = "kernel_finish";

class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(StoredKernel stored) : stored_(std::move(stored)) {}
  absl::Status Load() override {
    LAZULI_ASSIGN_OR_RETURN(code_, MachineCode::Load(stored_.object));
    run_ = reinterpret_cast<KernelFunction>(code_->Lookup(kFunction));
    if (shape().finish_items > 0)
      finish_ = reinterpret_cast<KernelFunction>(code_->Lookup(kFinishFunction));
    return absl::OkStatus();
  }

  int64_t scratch_bytes() const override { return shape().scratch_bytes; }
  int64_t code_bytes() const override {
    return code_->bytes() + static_cast<int64_t>(stored_.object.size());
  }
  std::string Details() const override {
    return Str(shape().details, " items ", shape().items, " grain ", shape().grain);
  }
  const KernelShape& shape() const { return stored_.shape; }
  std::string_view part_kind() const override { return "kernel"; }
  void WritePart(ProgramWriter& out) const override { Write(out, stored_); }

  void Run(std::byte* const* args) const {
    if (shape().items <= shape().grain) {
      run_(args, 0, shape().items);
    } else {
      ParallelFor(shape().items, shape().grain,
                  [&](int64_t begin, int64_t end) { run_(args, begin, end); });
    }
    if (finish_ != nullptr) finish_(args, 0, shape().finish_items);
  }
  void RunPart(std::byte* const* args, Part part) const {
    const int64_t items = shape().items / part.count;
    run_(args, part.index * items, (part.index + 1) * items);
  }

 private:
  const StoredKernel stored_;
  std::unique_ptr<const MachineCode> code_;
  KernelFunction run_ = nullptr, finish_ = nullptr;
};

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
    kernel_.Run(ArgsOf(run).data());
    return absl::OkStatus();
  }
  bool CanSplit(int64_t parts) const override {
    const int64_t outermost = kernel_.shape().outermost;
    return outermost > 0 && outermost % parts == 0;
  }
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
  std::array<std::byte*, kMaxKernelArgs> ArgsOf(const RunBuffers& run) const {
    std::array<std::byte*, kMaxKernelArgs> args;  // the kernel reads no others
    for (std::size_t i = 0; i < spec_.args.size(); ++i) args[i] = run.at(spec_.args[i]);
    return args;
  }

  const CompiledKernel& kernel_;
};

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

struct KernelJob {
  const hlo::Computation* body;
  std::string text;  // the body's
  hlo::ModuleDump* dump = nullptr;
  std::string override_file{};  // what takes its code's place
  absl::StatusOr<std::shared_ptr<const CompiledKernel>> kernel = nullptr;
};

// Stands for what a kernel computes, from process to process.
std::string HashOfKernel(const std::string& text) {
  std::array<char, 20> hash;
  std::snprintf(hash.data(), hash.size(), "%016llx",
                static_cast<unsigned long long>(HashBytes(text.data(), text.size())));
  return hash.data();
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
  constexpr int64_t kIr = 5;
  const int64_t own_level = ir::LevelOf("LAZULI_DEBUG", "kernels");
  const bool print = (own_level < 0 ? flags().debug() : own_level) >= kIr;
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
  llvm::Module module(kFunction, context);
  jit.Prepare(module);
  StoredKernel kernel;
  LAZULI_ASSIGN_OR_RETURN(kernel.shape, EmitKernel(&module, {body, kFunction, jit.vector_width()}));
  if (!job.override_file.empty()) LAZULI_RETURN_IF_ERROR(ReadOverride(job.override_file, module));
  LAZULI_ASSIGN_OR_RETURN(kernel.object, jit.Compile(module, ShowFor(job)));
  return kernel;
}

// Code that is to be seen, or that is somebody's own, is made anew.
absl::StatusOr<std::shared_ptr<const CompiledKernel>> CompileOne(const KernelJob& job) {
  std::optional<StoredKernel> kernel;
  const bool own = job.override_file.empty();
  if (own && job.dump == nullptr) kernel = FindStoredKernel(job.text);
  if (!kernel) {
    LAZULI_ASSIGN_OR_RETURN(kernel, GenerateCode(Jit::Get(), job));
    Add(Counter::kKernels);
    if (own) StoreKernel(job.text, *kernel);
  }
  auto compiled = std::make_shared<CompiledKernel>(*std::move(kernel));
  LAZULI_RETURN_IF_ERROR(compiled->Load());
  return compiled;
}

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

void RunJobs(std::vector<KernelJob>& jobs) {
  // Those of a capture are made in the program's order.
  const bool in_order = jobs.size() > 0 && jobs[0].dump != nullptr && jobs[0].dump->is_captured();
  ir::OnThreads(jobs.size(), in_order ? 1 : NumThreads(), [&](std::size_t i) {
    ir::SlowNotice::Check(Str("kernel ", i + 1, " of ", jobs.size()));
    try {
      jobs[i].kernel = CompileOne(jobs[i]);
    } catch (const ir::NoDataMemory& error) {  // thrown by our own literals
      jobs[i].kernel = error.status();
    }
  });
}

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
    absl::Span<const hlo::Computation* const> bodies, const std::string& override_dir) {
  std::vector<std::string> texts;
  std::unordered_map<std::string, std::shared_ptr<const CompiledKernel>> known;
  std::vector<KernelJob> jobs;
  hlo::ModuleDump* const dump = hlo::ModuleDump::Current();
  for (const hlo::Computation* body : bodies) {
    texts.push_back(CanonicalText(*body));
    const auto [it, is_new] = known.try_emplace(texts.back(), nullptr);
    if (!is_new) continue;
    LAZULI_ASSIGN_OR_RETURN(const std::string override_file,
                            override_dir.empty()
                                ? std::string()
                                : FindOverride(override_dir, HashOfKernel(texts.back())));
    if (dump == nullptr && override_file.empty())
      it->second = KernelCache::Get().Find(texts.back());
    if (it->second == nullptr) jobs.push_back({body, texts.back(), dump, override_file});
  }
  RunJobs(jobs);
  for (KernelJob& job : jobs) {
    if (!job.kernel.ok()) return job.kernel.status();
    if (job.override_file.empty()) KernelCache::Get().Insert(job.text, *job.kernel);
    known[job.text] = *job.kernel;
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
