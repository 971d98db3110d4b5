#include "backend/cpu/emit_thunks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/cpu/attention_spec.h"
#include "backend/cpu/chain_thunks.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/convolution_spec.h"
#include "backend/cpu/dot_spec.h"
#include "backend/cpu/runtime/copy_thunk.h"
#include "backend/cpu/runtime/cumulative_thunk.h"
#include "backend/cpu/runtime/dynamic_slice_thunk.h"
#include "backend/cpu/runtime/fft_thunk.h"
#include "backend/cpu/runtime/gather_thunk.h"
#include "backend/cpu/runtime/index_check_thunk.h"
#include "backend/cpu/runtime/philox_thunk.h"
#include "backend/cpu/runtime/planned_call.h"
#include "backend/cpu/runtime/sort_thunk.h"
#include "backend/cpu/runtime/table_thunk.h"
#include "backend/cpu/runtime/topk_thunk.h"
#include "backend/runtime/assign_buffers.h"
#include "backend/runtime/control_thunks.h"
#include "backend/runtime/evaluator_thunk.h"
#include "backend/runtime/fallback.h"
#include "ir/evaluator/dynamic_sizes.h"
#include "ir/support/parallel_for.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/passes/scheduled.h"
#include "lowering/passes/structural_hash.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Leaves = std::vector<BufferId>;

// Packing a matrix costs about as much as four runs with the packed matrix save (oneDNN 2.6;
// Linear(9216, 128), 1024 x 1024 and 768 x 3072, each with 1 and with 64 rows). A matrix is packed
// once that many runs in a row had the same weights, so little is lost if they change soon after.
constexpr int64_t kRunsBeforePacking = 4;

// Equal element order in memory: layouts may differ in where dimensions of size 1 stand.
bool SameMemoryOrder(const Shape& a, const Shape& b) {
  const Dims x = a.strides(), y = b.strides();
  for (int64_t d = 0; d < a.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (a.dim(d) != 1 && x[i] != y[i]) return false;
  }
  return true;
}

// Why an instruction got no thunk of its own, so that the evaluator must run it: a sentence without
// its end. Empty if it got one.
using Reason = std::string;
const char kDone[] = "";

// For instructions that no kernel took in, and that move nothing.
Reason NoKernel(const Instruction& i) {
  return KernelsAvailable() ? Str("there is no code for ", i.shape())
                            : std::string("this build has no LLVM");
}
Reason NoCall(const Instruction& i) {
  return Str("there is no library call for ", i.operand(0)->shape(), " and ",
             i.operand(1)->shape());
}

// A fusion of which a kernel is not compiled but chosen.
bool IsCustom(const Instruction& fusion) {
  return fusion.to_apply()->IsFusion() &&
         fusion.attrs_as<hlo::FusionAttrs>().kind == hlo::FusionKind::kCustom;
}

// How an instruction runs a computation.
enum class CallRole : uint8_t {
  kBranch,  // or a loop's condition, or a call: the results go where the caller wants them
  kBody,    // of a loop: its results replace its parameters
};

class ThunkEmitter {
 public:
  ThunkEmitter(ThunkProgram& program, const OpFilter& filter)
      : program_(program),
        filter_(filter),
        scheduled_(*program.module),
        updates_of_entry_(UpdatesOfEntry()) {
    const lowering::ComputationClasses classes(*program.module);
    std::unordered_map<const hlo::Computation*, const hlo::Computation*> first;  // by class
    for (const hlo::Computation* c : scheduled_.callees_first())
      first_equal_[c] = first.try_emplace(classes.of(c), c).first->second;
  }
  absl::Status Run();

 private:
  BufferId NewBuffer(int64_t bytes) {
    program_.slots.push_back({.sequence = sequence_->index, .bytes = bytes});
    return static_cast<BufferId>(program_.slots.size()) - 1;
  }
  Leaves NewLeaves(const Shape& shape);
  Leaves OperandLeaves(const Instruction& i) const;
  const Leaves& leaves(const Instruction* i) const { return leaves_.at(i); }
  BufferId leaf(const Instruction* i) const { return leaves_.at(i)[0]; }
  void Emit(std::unique_ptr<Thunk> thunk) { sequence_->thunks.push_back(std::move(thunk)); }

  absl::Status CompileFusions();
  absl::Status EmitSequence(const hlo::Computation& computation, ThunkSequence& sequence,
                            absl::Span<const MayUpdate> updates);
  absl::Status EmitParameters(const hlo::Computation& computation);
  absl::Status EmitInstruction(const Instruction& i);
  absl::StatusOr<Reason> EmitThunk(const Instruction& i);
  bool IsForSortsOnly(const Instruction& i) const;
  bool EmitAlias(const Instruction& i);
  Reason EmitFusion(const Instruction& i);
  Reason EmitAttention(const Instruction& i);
  Reason EmitCopy(const Instruction& i);
  absl::StatusOr<Reason> EmitDot(const Instruction& i);
  // An equal one of before, or a new one.
  absl::StatusOr<std::shared_ptr<const PlannedCall>> Plan(LibraryCallSpec spec);
  absl::StatusOr<Reason> EmitConvolution(const Instruction& i);
  void EmitCall(std::string_view kind, const Instruction& i,
                const std::shared_ptr<const PlannedCall>& call, LibraryBufferIds ids);
  template <class Make>
  Reason EmitArray(const Instruction& i, Make&& make);
  template <class Make>
  Reason EmitRowMajor(const Instruction& i, Make&& make);
  template <class Make>
  Reason EmitWithScratch(const Instruction& i, Make&& make);
  Reason EmitControl(const Instruction& i);
  Reason EmitRandom(const Instruction& i);
  Reason EmitCustomCall(const Instruction& i);
  bool Stays(BufferId buffer) const;
  BufferId Packed(const Instruction& user, const std::shared_ptr<const PlannedCall>& call,
                  BufferId weights, int64_t runs_without = 0);
  void PlacePackings();
  absl::Status EmitEvaluator(const Instruction& i, std::string_view reason);
  Leaves RowMajorOperands(const Instruction& i);
  BufferId RowMajor(const Instruction& user, BufferId buffer, const Shape& shape);
  absl::Status EmitOutputs(const hlo::Computation& computation);
  std::vector<MayUpdate> UpdatesOfEntry() const;

  ThunkProgram& program_;
  const OpFilter& filter_;
  const lowering::ScheduledComputations scheduled_;
  const std::vector<MayUpdate> updates_of_entry_;
  // Equal computations are emitted once: branches that call the same would otherwise make 2^n
  // sequences n levels deep.
  std::unordered_map<const hlo::Computation*, const hlo::Computation*> first_equal_;
  using Callee = std::pair<const hlo::Computation*, CallRole>;
  std::vector<Callee> CalleesOf(const Instruction& i) const;
  std::map<Callee, const ThunkSequence*> sequences_;
  ThunkSequence* sequence_ = nullptr;                      // that is being emitted
  bool updates_parameters_ = false;                        // it is a body
  std::vector<std::shared_ptr<const PlannedCall>> calls_;  // layers of one shape share them
  std::vector<KeptPacking> packings_;                      // of the sequence's parameters
  std::unordered_map<const Instruction*, Leaves> leaves_;
  std::unordered_map<const Instruction*, std::shared_ptr<const Kernel>> kernels_;
};

Leaves ThunkEmitter::NewLeaves(const Shape& shape) {
  Leaves result;
  ForEachLeaf(shape, [&](const Shape& leaf) { result.push_back(NewBuffer(leaf.byte_size())); });
  return result;
}

Leaves ThunkEmitter::OperandLeaves(const Instruction& i) const {
  Leaves result;
  for (const Instruction* operand : i.operands()) {
    result.insert(result.end(), leaves(operand).begin(), leaves(operand).end());
  }
  return result;
}

// The roles of what a loop, a branch or a call calls, in order.
std::vector<ThunkEmitter::Callee> ThunkEmitter::CalleesOf(const Instruction& i) const {
  std::vector<Callee> callees;
  for (const hlo::Computation* callee : i.called())
    callees.emplace_back(first_equal_.at(callee), CallRole::kBranch);
  if (i.opcode() == Opcode::kWhile) callees[1].second = CallRole::kBody;
  return callees;
}

// Callees first, so that a caller knows how large their frames are and what they leave in place.
absl::Status ThunkEmitter::Run() {
  LAZULI_RETURN_IF_ERROR(CompileFusions());
  std::set<Callee> called;
  for (const hlo::Computation* computation : scheduled_.callees_first()) {
    for (const auto& i : computation->instructions()) {
      if (!scheduled_.Runs(*i)) continue;
      for (const Callee& callee : CalleesOf(*i)) called.insert(callee);
    }
  }
  program_.sequences.push_back(std::make_unique<ThunkSequence>());
  for (const hlo::Computation* computation : scheduled_.callees_first()) {
    for (const CallRole role : {CallRole::kBranch, CallRole::kBody}) {
      if (!called.contains({computation, role})) continue;
      auto& sequence = *program_.sequences.emplace_back(std::make_unique<ThunkSequence>());
      sequence.index = static_cast<int32_t>(program_.sequences.size()) - 1;
      std::vector<MayUpdate> updates;
      if (role == CallRole::kBody) {
        for (int64_t k = 0; k < LeafCount(computation->root()->shape()); ++k)
          updates.push_back({.output = k, .parameter = k});
      }
      LAZULI_RETURN_IF_ERROR(EmitSequence(*computation, sequence, updates));
      sequences_[{computation, role}] = &sequence;
    }
  }
  return EmitSequence(*program_.module->entry(), *program_.sequences.front(), updates_of_entry_);
}

absl::Status ThunkEmitter::EmitSequence(const hlo::Computation& computation,
                                        ThunkSequence& sequence,
                                        absl::Span<const MayUpdate> updates) {
  sequence_ = &sequence;
  updates_parameters_ = sequence.index != 0 && !updates.empty();
  sequence.name = computation.name();
  sequence.first_slot = static_cast<BufferId>(program_.slots.size());
  LAZULI_RETURN_IF_ERROR(EmitParameters(computation));
  for (const Instruction* i : computation.PostOrder()) {
    if (i->opcode() == Opcode::kParameter) continue;
    const absl::Status status = EmitInstruction(*i);
    if (!status.ok()) return WithSite(status, ThunkInfo::Of("", *i));
  }
  PlacePackings();
  LAZULI_RETURN_IF_ERROR(EmitOutputs(computation));
  ChainThunks(sequence, program_.options.num_threads);
  AssignBuffers(program_, sequence, updates);
  return absl::OkStatus();
}

absl::Status ThunkEmitter::EmitParameters(const hlo::Computation& computation) {
  for (const Instruction* parameter : computation.parameters()) {
    Leaves& leaves = leaves_[parameter];
    leaves.clear();
    bool all_arrays = true;
    ForEachLeaf(parameter->shape(), [&](const Shape& leaf) {
      all_arrays &= leaf.IsArray();
      if (!leaf.IsArray()) return;
      const BufferId id = NewBuffer(leaf.byte_size());
      program_.slot(id).kind = BufferSlot::Kind::kParameter;
      program_.slot(id).index = static_cast<int64_t>(sequence_->parameters.size());
      sequence_->parameters.push_back(id);
      if (sequence_->index == 0) program_.parameters.push_back(leaf);
      leaves.push_back(id);
    });
    if (!all_arrays) {
      return Unimplemented("parameter ", parameter->name(), " of the entry is ", parameter->shape(),
                           ", not an array");
    }
  }
  return absl::OkStatus();
}

// The leaf among those of all parameters; none if it is a tuple.
std::optional<int64_t> ParameterLeaf(const hlo::Computation& entry, const hlo::Alias& alias) {
  int64_t before = 0;
  for (int64_t n = 0; n < alias.parameter_number; ++n)
    before += LeafCount(entry.parameters()[static_cast<std::size_t>(n)]->shape());
  const Instruction& parameter =
      *entry.parameters()[static_cast<std::size_t>(alias.parameter_number)];
  const std::optional<int64_t> leaf = LeafAt(parameter.shape(), alias.parameter_index);
  if (!leaf) return std::nullopt;
  return before + *leaf;
}

// Aliases of tuples, not of arrays in them, are dropped: that memory may be shared is no duty.
std::vector<MayUpdate> ThunkEmitter::UpdatesOfEntry() const {
  const hlo::Computation& entry = *program_.module->entry();
  std::vector<MayUpdate> updates;
  for (const hlo::Alias& alias : program_.module->aliases()) {
    const auto output = LeafAt(entry.root()->shape(), alias.output_index);
    const auto parameter = ParameterLeaf(entry, alias);
    if (output && parameter) updates.push_back({.output = *output, .parameter = *parameter});
  }
  return updates;
}

// Of all computations at once, so that the kernels compile side by side.
absl::Status ThunkEmitter::CompileFusions() {
  std::vector<const Instruction*> fusions;
  std::vector<const hlo::Computation*> bodies;
  for (const hlo::Computation* computation : scheduled_.callees_first()) {
    for (const Instruction* i : computation->PostOrder()) {
      if (i->opcode() != Opcode::kFusion || !i->to_apply()->IsFusion() || IsCustom(*i)) continue;
      if (IsForSortsOnly(*i)) continue;
      fusions.push_back(i);
      bodies.push_back(i->to_apply());
    }
  }
  if (fusions.empty()) return absl::OkStatus();
  LAZULI_ASSIGN_OR_RETURN(
      auto kernels, CompileKernels(bodies, {.override_dir = program_.options.override_kernel_dir,
                                            .interpreted_ops = program_.options.interpreted_ops,
                                            .generic_from = program_.options.generic_from}));
  for (std::size_t i = 0; i < fusions.size(); ++i) kernels_[fusions[i]] = kernels[i];
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  for (const auto& kernel : kernels) program_.stats.code_bytes += kernel->code_bytes();
  return absl::OkStatus();
}

// Whether nobody reads the array: it counts places, and all that use it are sorts, which know them.
bool ThunkEmitter::IsForSortsOnly(const Instruction& i) const {
  if (i.IsRoot() || i.users().empty() || i.shape().has_layout()) return false;
  return std::all_of(i.users().begin(), i.users().end(), [&](const Instruction* user) {
    if (user->opcode() != Opcode::kSort || !filter_.WhyDenied(Opcode::kSort).empty()) return false;
    bool row_major = true;
    ForEachLeaf(user->shape(), [&](const Shape& leaf) { row_major &= !leaf.has_layout(); });
    return row_major && SortKnowsPlaces(*user, i);
  });
}

absl::Status ThunkEmitter::EmitInstruction(const Instruction& i) {
  if (IsForSortsOnly(i)) {
    leaves_[&i] = {NewBuffer(0)};
    return absl::OkStatus();
  }
  if (EmitAlias(i)) return absl::OkStatus();
  if (i.opcode() != Opcode::kFusion) {
    if (const std::string why = filter_.WhyDenied(i.opcode()); !why.empty())
      return EmitEvaluator(i, why);
  }
  LAZULI_ASSIGN_OR_RETURN(const Reason why_not, EmitThunk(i));
  return why_not.empty() ? absl::OkStatus() : EmitEvaluator(i, why_not);
}

absl::StatusOr<Reason> ThunkEmitter::EmitThunk(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kFusion:
      return EmitFusion(i);
    case Opcode::kDot:
      return EmitDot(i);
    case Opcode::kConvolution:
      return EmitConvolution(i);
    case Opcode::kDynamicSlice:
    case Opcode::kDynamicUpdateSlice:
      return EmitArray(i, MakeDynamicSliceThunk);
    case Opcode::kGather:
      return EmitRowMajor(i, MakeGatherThunk);
    case Opcode::kScatter:
      return EmitRowMajor(i, MakeScatterThunk);
    case Opcode::kReduceWindow:
      return EmitRowMajor(i, MakeCumulativeThunk);
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
      return EmitControl(i);
    case Opcode::kRngBitGenerator:
      return EmitRandom(i);
    case Opcode::kConvert:
      return EmitRowMajor(i, MakeTableThunk);
    case Opcode::kFft:
      return EmitWithScratch(i, MakeFftThunk);
    case Opcode::kSort:
      return EmitWithScratch(i, MakeSortThunk);
    case Opcode::kTopk:
      return EmitWithScratch(i, MakeTopKThunk);
    case Opcode::kCustomCall:
      return EmitCustomCall(i);
    default:
      return EmitCopy(i);
  }
}

// Instructions whose value is memory that exists already.
bool ThunkEmitter::EmitAlias(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kConstant: {
      BufferId id = NewBuffer(i.shape().byte_size());
      program_.slot(id).kind = BufferSlot::Kind::kConstant;
      program_.constants.push_back({.buffer = id, .constant = &i});
      leaves_[&i] = {id};
      return i.shape().IsArray();
    }
    case Opcode::kTuple:
      leaves_[&i] = OperandLeaves(i);
      return true;
    case Opcode::kGetTupleElement: {
      const Instruction* tuple = i.operand(0);
      const int64_t index = i.attrs_as<hlo::TupleIndexAttrs>().index;
      const auto first = leaves(tuple).begin() + LeavesBefore(tuple->shape(), index);
      leaves_[&i] = Leaves(first, first + LeafCount(i.shape()));
      return true;
    }
    case Opcode::kOptBarrier:
    case Opcode::kAddDependency:
      leaves_[&i] = leaves(i.operand(0));
      return true;
    case Opcode::kReshape:
    case Opcode::kBitcast:
      if (i.shape().has_layout() || i.operand(0)->shape().has_layout()) return false;
      leaves_[&i] = leaves(i.operand(0));
      return true;
    case Opcode::kCopy:
      if (!SameMemoryOrder(i.shape(), i.operand(0)->shape())) return false;
      leaves_[&i] = leaves(i.operand(0));
      return true;
    default:
      return false;
  }
}

Reason ThunkEmitter::EmitFusion(const Instruction& i) {
  if (IsCustom(i)) return EmitAttention(i);
  const auto found = kernels_.find(&i);
  if (found == kernels_.end())
    return "the program that it came with orders it among other instructions";
  const auto& kernel = found->second;
  leaves_[&i] = NewLeaves(i.shape());
  const BufferId scratch = kernel->scratch_bytes() > 0 ? NewBuffer(kernel->scratch_bytes()) : -1;
  Emit(MakeKernelThunk(i, kernel, OperandLeaves(i), leaves(&i), scratch));
  ++program_.stats.kernels;
  for (const auto& inner : i.to_apply()->instructions()) {
    program_.stats.reorders += inner->opcode() == Opcode::kCopy &&
                               !SameMemoryOrder(inner->shape(), inner->operand(0)->shape());
  }
  return kDone;
}

Reason ThunkEmitter::EmitAttention(const Instruction& i) {
  const Leaves operands = RowMajorOperands(i);
  Leaves results = NewLeaves(i.shape());
  std::optional<AttentionSpec> spec = PlanAttention(
      i, operands, results, std::min<int64_t>(program_.options.num_threads, NumThreads()));
  if (!spec) return "its computation is not attention as the kernel knows it";
  spec->scratch = NewBuffer(AttentionScratch(*spec));
  Emit(MakeAttentionThunk(i, *std::move(spec)));
  leaves_[&i] = std::move(results);
  ++program_.stats.library_calls;
  return kDone;
}

Reason ThunkEmitter::EmitCopy(const Instruction& i) {
  const Leaves operands = OperandLeaves(i);
  auto pieces = PiecesOf(i, operands);
  if (!pieces) return NoKernel(i);
  leaves_[&i] = NewLeaves(i.shape());
  std::optional<BufferId> fill;
  if (i.opcode() == Opcode::kPad) fill = operands[1];
  Emit(MakeCopyThunk(i, leaf(&i), *std::move(pieces), fill));
  program_.stats.reorders += i.opcode() == Opcode::kCopy;
  return kDone;
}

absl::StatusOr<std::shared_ptr<const PlannedCall>> ThunkEmitter::Plan(LibraryCallSpec spec) {
  for (const auto& call : calls_) {
    if (call->spec() == spec) return call;
  }
  LAZULI_ASSIGN_OR_RETURN(auto call,
                          PlannedCall::Make(std::move(spec), program_.options.num_threads));
  return calls_.emplace_back(std::move(call));
}

absl::StatusOr<Reason> ThunkEmitter::EmitDot(const Instruction& i) {
  std::optional<DotPlan> plan = PlanDot(i);
  if (!plan) return NoCall(i);
  // Packing for speed only is no use of memory that is short.
  plan->spec.b_stays = !plan->pack[1] && Stays(leaf(i.operand(1))) && program_.options.keeps_copies;
  LAZULI_ASSIGN_OR_RETURN(const auto call, Plan({.matmul = plan->spec}));
  if (!call->has_call()) return NoCall(i);
  BufferId inputs[2];
  for (int64_t k = 0; k < 2; ++k) {
    inputs[k] = leaf(i.operand(k));
    if (const auto& pack = plan->pack[static_cast<std::size_t>(k)]) {
      const BufferId packed = NewBuffer(i.operand(k)->shape().byte_size());
      Emit(MakeCopyThunk(*i.operand(k), packed, {{inputs[k], 0, 0, *pack}}));
      inputs[k] = packed;
    }
  }
  leaves_[&i] = NewLeaves(i.shape());
  LibraryBufferIds ids{.a = inputs[0], .b = inputs[1], .result = leaf(&i)};
  if (call->packing() != nullptr) ids.packed = Packed(i, call, ids.b, kRunsBeforePacking);
  EmitCall("matmul", i, call, ids);
  return kDone;
}

absl::StatusOr<Reason> ThunkEmitter::EmitConvolution(const Instruction& i) {
  LAZULI_ASSIGN_OR_RETURN(const auto call,
                          Plan({.library = MatchConvolution(i), .own = AnyConvolution(i)}));
  if (!call->has_call()) return NoCall(i);
  LibraryBufferIds ids{.a = leaf(i.operand(0)), .b = leaf(i.operand(1))};
  if (call->swapped()) std::swap(ids.a, ids.b);
  if (call->packing() != nullptr) {
    BufferId& weights = call->swapped() ? ids.a : ids.b;
    weights = Packed(i, call, weights);
  }
  leaves_[&i] = NewLeaves(i.shape());
  ids.result = leaf(&i);
  EmitCall("convolution", i, call, ids);
  return kDone;
}

void ThunkEmitter::EmitCall(std::string_view kind, const Instruction& i,
                            const std::shared_ptr<const PlannedCall>& call, LibraryBufferIds ids) {
  const int64_t scratch = call->call().scratch_bytes();
  if (scratch > 0) ids.scratch = NewBuffer(scratch);
  Emit(MakeLibraryThunk(kind, i, call, ids));
  ++program_.stats.library_calls;
}

// Whether it is a parameter of which the next run is likely to have the same: no output updates it.
bool ThunkEmitter::Stays(BufferId buffer) const {
  const BufferSlot& slot = program_.slot(buffer);
  if (slot.kind != BufferSlot::Kind::kParameter || slot.sequence != 0) return false;
  return std::none_of(updates_of_entry_.begin(), updates_of_entry_.end(),
                      [&](const MayUpdate& update) { return update.parameter == slot.index; });
}

BufferId ThunkEmitter::Packed(const Instruction& user,
                              const std::shared_ptr<const PlannedCall>& call, BufferId weights,
                              int64_t runs_without) {
  const BufferId packed = NewBuffer(call->packing()->bytes());
  auto thunk = MakePackingThunk(user, call, weights, packed);
  const BufferSlot& slot = program_.slot(weights);
  if (slot.kind == BufferSlot::Kind::kParameter) {
    packings_.push_back({slot.index, std::move(thunk), runs_without});
  } else {
    Emit(std::move(thunk));
  }
  return packed;
}

// Parameters are packed before all else, where that keeps no chain from forming.
void ThunkEmitter::PlacePackings() {
  std::vector<std::unique_ptr<Thunk>> first;
  for (KeptPacking& packing : packings_) {
    if (!Stays(packing.thunk->uses().front().buffer)) {
      first.push_back(std::move(packing.thunk));
      continue;
    }
    const BufferId packed = packing.thunk->uses().back().buffer;
    BufferSlot& slot = program_.slot(packed);
    slot.kind = BufferSlot::Kind::kKept;
    slot.index = static_cast<int64_t>(program_.packings.size());
    program_.kept_bytes += slot.bytes;
    program_.packings.push_back(std::move(packing));
  }
  packings_.clear();
  sequence_->thunks.insert(sequence_->thunks.begin(), std::make_move_iterator(first.begin()),
                           std::make_move_iterator(first.end()));
}

// A thunk whose result is one array.
template <class Make>
Reason ThunkEmitter::EmitArray(const Instruction& i, Make&& make) {
  const BufferId result = NewBuffer(i.shape().byte_size());
  auto thunk = make(i, OperandLeaves(i), result);
  if (!thunk.ok()) return Reason(thunk.reason());
  Emit(thunk.Take());
  leaves_[&i] = {result};
  return kDone;
}

// The same, for what knows no other layouts.
template <class Make>
Reason ThunkEmitter::EmitRowMajor(const Instruction& i, Make&& make) {
  const auto has_layout = [](const Instruction* x) { return x->shape().has_layout(); };
  if (!i.shape().IsArray() || has_layout(&i) ||
      std::any_of(i.operands().begin(), i.operands().end(), has_layout)) {
    return "an array is not row-major";
  }
  return EmitArray(i, make);
}

// A thunk of one result or several that needs scratch memory.
template <class Make>
Reason ThunkEmitter::EmitWithScratch(const Instruction& i, Make&& make) {
  bool row_major = true;
  ForEachLeaf(i.shape(), [&](const Shape& leaf) { row_major &= !leaf.has_layout(); });
  if (!row_major) return "an array is not row-major";
  Leaves results = NewLeaves(i.shape());
  auto thunk =
      make(i, RowMajorOperands(i), results, [this](int64_t bytes) { return NewBuffer(bytes); });
  if (!thunk.ok()) return Reason(thunk.reason());
  Emit(thunk.Take());
  leaves_[&i] = std::move(results);
  return kDone;
}

Reason ThunkEmitter::EmitControl(const Instruction& i) {
  if (!scheduled_.Runs(i))
    return i.opcode() == Opcode::kCall && hlo::HasDynamicSizes(*program_.module)
               ? "some sizes are known only when the program runs"
               : "it has side effects or tokens, or lies below too many levels of others";
  const auto new_buffer = [this](int64_t bytes) { return NewBuffer(bytes); };
  const Leaves operands = RowMajorOperands(i);
  Leaves results = NewLeaves(i.shape());
  std::vector<CalledSequence> called;
  for (const Callee& callee : CalleesOf(i))
    called.push_back(Call(*sequences_.at(callee), new_buffer));
  if (i.opcode() == Opcode::kWhile)
    Emit(MakeWhileThunk(i, program_, called[0], called[1], operands, results, new_buffer));
  else if (i.opcode() == Opcode::kCall)
    Emit(MakeCallThunk(i, called[0], operands, results));
  else
    Emit(MakeConditionalThunk(i, std::move(called), operands, results));
  leaves_[&i] = std::move(results);
  return kDone;
}

Reason ThunkEmitter::EmitRandom(const Instruction& i) {
  if (!i.shape().IsTuple() || i.shape().tuple().size() != 2)
    return "its results are not a state and random bits";
  Leaves results = NewLeaves(i.shape());
  auto thunk = MakePhiloxThunk(i, leaf(i.operand(0)), results[0], results[1]);
  if (!thunk.ok()) return Reason(thunk.reason());
  Emit(thunk.Take());
  leaves_[&i] = std::move(results);
  return kDone;
}

Reason ThunkEmitter::EmitCustomCall(const Instruction& i) {
  const std::string& target = i.attrs_as<hlo::CustomCallAttrs>().custom_call_target;
  if (target == "TopK") return EmitWithScratch(i, MakeTopKThunk);
  if (target != kCheckIndexRange || i.operand_count() != 2)
    return Str("there is no code for the custom call '", target, "'");
  ThunkOrReason thunk = MakeIndexCheckThunk(i, leaf(i.operand(0)), leaf(i.operand(1)));
  if (!thunk.ok()) return Reason(thunk.reason());
  Emit(thunk.Take());
  leaves_[&i] = leaves(i.operand(0));
  return kDone;
}

BufferId ThunkEmitter::RowMajor(const Instruction& user, BufferId buffer, const Shape& shape) {
  if (!shape.has_layout()) return buffer;
  const BufferId result = NewBuffer(shape.byte_size());
  Emit(MakeCopyThunk(user, result, {WholeArray(buffer, shape, shape.WithDefaultLayout())}));
  ++program_.stats.reorders;
  return result;
}

Leaves ThunkEmitter::RowMajorOperands(const Instruction& i) {
  Leaves operands;
  for (const Instruction* operand : i.operands()) {
    std::size_t next = 0;
    ForEachLeaf(operand->shape(), [&](const Shape& shape) {
      operands.push_back(RowMajor(i, leaves(operand)[next++], shape));
    });
  }
  return operands;
}

absl::Status ThunkEmitter::EmitEvaluator(const Instruction& i, std::string_view reason) {
  LAZULI_RETURN_IF_ERROR(ReportFallback(i, "cpu", reason, program_.options.fallback));
  const Leaves operands = RowMajorOperands(i);
  leaves_[&i] = NewLeaves(i.shape());
  std::vector<Shape> shapes;
  ForEachLeaf(i.shape(), [&](const Shape& shape) { shapes.push_back(shape); });
  Leaves results = leaves(&i);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (shapes[r].has_layout()) results[r] = NewBuffer(shapes[r].byte_size());
  }
  Emit(MakeEvaluatorThunk(i, operands, results));
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (!shapes[r].has_layout()) continue;
    Emit(MakeCopyThunk(i, leaves(&i)[r],
                       {WholeArray(results[r], shapes[r].WithDefaultLayout(), shapes[r])}));
    ++program_.stats.reorders;
  }
  ++program_.stats.evaluator_thunks;
  return absl::OkStatus();
}

absl::Status ThunkEmitter::EmitOutputs(const hlo::Computation& computation) {
  const Instruction& root = *computation.root();
  std::vector<Shape> shapes;
  ForEachLeaf(root.shape(),
              [&](const Shape& shape) { shapes.emplace_back(shape.dtype(), shape.dims()); });
  const Leaves& values = leaves(&root);
  if (values.size() != shapes.size())
    return Internal("the root ", root.name(), " has an unsupported shape ", root.shape());
  for (std::size_t o = 0; o < shapes.size(); ++o) {
    BufferId id = values[o];
    if (updates_parameters_ && id == sequence_->parameters[o]) {
      sequence_->outputs.push_back({.shape = shapes[o], .buffer = id});
      continue;
    }
    if (program_.slot(id).kind != BufferSlot::Kind::kTemporary) {
      const BufferId copy = NewBuffer(
          shapes[o].byte_size());  // a parameter, a constant, or an output for the second time
      if (shapes[o].num_elements() > 0)
        Emit(MakeCopyThunk(root, copy, {WholeArray(id, shapes[o], shapes[o])}));
      id = copy;
    }
    BufferSlot& slot = program_.slot(id);
    slot.kind = BufferSlot::Kind::kOutput;
    slot.index = static_cast<int64_t>(o);
    sequence_->outputs.push_back({.shape = shapes[o], .buffer = id});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EmitThunks(ThunkProgram& program, const OpFilter& filter) {
  return ThunkEmitter(program, filter).Run();
}

}  // namespace lazuli::cpu
