// Reductions: one kernel for the reductions of a body and for the elementwise results that it
// computes on the way.
//
// Order. The order in which elements are combined depends on their number alone
// (ir/evaluator/reduction_order.h), so that a sum has the same bits on every device. The elements are
// cut into blocks of 1024. Within a block, element i goes to lane i % 8, and the 8 lanes are then
// combined as a tree. The totals of the blocks are combined as a tree, too. A sum of 20 numbers is
//
//   l0 = x0 + x8 + x16, ..., l3 = x3 + x11 + x19, l4 = x4 + x12, ..., l7 = x7 + x15
//   ((l0 + l4) + (l2 + l6)) + ((l1 + l5) + (l3 + l7))
//
// Rows and columns. In rows the reduced elements are neighbours in memory: the 8 lanes are one
// vector. In columns the kept elements are neighbours: each lane is a vector of kept elements, and 8
// such vectors are folded side by side.
//
// Phases. Where there are few results, there would be too few tasks. Then a task makes the totals of
// one block, in scratch memory, and a second function combines the blocks.
//
// The results of a body are reductions of one shape over the same dimensions, and behind them
// elementwise values of the shape that is reduced. Those are written where the reductions read.
//
// Names below: `r` counts the reductions of the body, `k` is a position among the reduced elements,
// and `kept` are the indices of the kept variables.
#include <algorithm>
#include <bit>
#include <complex>
#include <numeric>

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/kernel_builder.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/evaluator/reduction_order.h"
#include "ir/hlo/monoid.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

using hlo::kReduceBlock;
using hlo::kReduceLanes;
using Values = std::vector<llvm::Value*>;
using Memory = std::vector<llvm::AllocaInst*>;

// Beyond this, eight copies of the body are too much code.
constexpr std::size_t kUnrolledBody = 40;
// With this many tasks blocks need not be tasks of their own.
constexpr int64_t kEnoughReduceItems = 16;
// Bytes for one total of any type.
constexpr int64_t kScratchWidth = sizeof(std::complex<double>);

class ReduceKernel {
 public:
  ReduceKernel(llvm::Module* module, const KernelRequest& request)
      : module_(module), request_(request) {}
  absl::StatusOr<KernelShape> Run();

 private:
  struct Monoid {
    hlo::Opcode opcode;
    DType dtype;  // that it accumulates in: f32 for the 16-bit floats
    DType result;
    Literal identity;
    const hlo::Instruction* init;
  };

  absl::Status Plan();
  absl::Status PlanReduction(const hlo::Instruction& output, const Point& point, Planner& planner,
                             Planner& init_planner);
  void FindOverwritten();
  void ChooseForm();
  void Describe(GenericForm& form) const;
  bool is_generic() const { return request_.generic != nullptr; }
  KernelBuilder Start(const std::string& name) const;
  void Emit();
  void EmitItem(KernelBuilder& kernel, llvm::Value* item);
  void EmitColumns(KernelBuilder& kernel, llvm::Value* block, llvm::Value* kept);
  void EmitResult(KernelBuilder& kernel, llvm::Value* block, const Values& kept, int width);
  Values AllBlocks(KernelBuilder& kernel, const Values& kept, int width);
  Values Pairwise(KernelBuilder& kernel, int width,
                  absl::FunctionRef<Values(llvm::Value*)> total_of);
  Values Block(KernelBuilder& kernel, const Values& kept, int width, llvm::Value* first,
               llvm::Value* last);
  Values RowBlock(KernelBuilder& kernel, const Values& kept, llvm::Value* first, llvm::Value* last);
  Values ColumnBlock(KernelBuilder& kernel, const Values& kept, int width, llvm::Value* first,
                     llvm::Value* last);
  llvm::Value* ColumnEights(KernelBuilder& kernel, const Values& kept, int width,
                            llvm::Value* first, llvm::Value* last, Values& sums);
  void ColumnRest(KernelBuilder& kernel, const Values& kept, int width, llvm::Value* first,
                  llvm::Value* last, Values& sums);
  void ColumnTail(KernelBuilder& kernel, const Values& kept, int width, const Memory& memory,
                  llvm::Value* first, llvm::Value* last);
  void EmitFinish();

  Values At(KernelBuilder& kernel, const Values& kept, llvm::Value* k);
  Values Elements(KernelBuilder& kernel, const Values& kept, llvm::Value* k, Lanes lanes);
  Values Identities(KernelBuilder& kernel, int width);
  Values ElementsOfRows(KernelBuilder& kernel, const Values& kept, llvm::Value* k, Lanes lanes);
  std::vector<int> RowWidths() const;
  bool FoldsBits(int width) const;
  llvm::Value* FoldBits(KernelBuilder& kernel, const Values& kept, llvm::Value* first,
                        llvm::Value* last, int width, llvm::Value*& total);
  bool IsSimple() const;
  int RowsTogether() const;
  int ColumnWidth() const;
  Values AddLanes(KernelBuilder& kernel, absl::Span<llvm::Value* const> sums,
                  const Values& elements, int width);
  bool AnyOrder(std::size_t r) const;
  llvm::Value* Balanced(KernelBuilder& kernel, std::size_t r, Values parts);
  // Totals of several rows lie one after the other: total t is of reduction t modulo their number.
  const Monoid& ReductionOf(std::size_t t) const { return monoids_[t % monoids_.size()]; }
  llvm::Value* Combine(KernelBuilder& kernel, std::size_t t, llvm::Value* x, llvm::Value* y) {
    return EmitBinary(kernel.b(), ReductionOf(t).opcode, ReductionOf(t).dtype, x, y);
  }
  llvm::Value* Tree(KernelBuilder& kernel, std::size_t r, llvm::Value* lanes);
  llvm::Value* WithInit(KernelBuilder& kernel, std::size_t r, llvm::Value* total, int width);
  bool StartsAtIdentity(std::size_t r) const;
  int64_t ScratchOffset(std::size_t r) const;
  Affine ScratchForm(std::size_t r) const;

  int64_t LastKept() const { return kept_rank_ - 1; }
  int64_t KeptSize() const { return plan_.sizes[static_cast<std::size_t>(LastKept())]; }
  int64_t num_params() const { return static_cast<int64_t>(request_.body.parameters().size()); }
  // Of columns.
  int64_t FullChunks() const { return KeptSize() / width_; }
  // Items that make the totals of one block.
  int64_t ItemsOfBlock() const { return rows_ ? kept_count_ : kept_count_ / KeptSize() * chunks_; }

  llvm::Module* module_;
  const KernelRequest& request_;
  std::vector<Monoid> monoids_;
  std::vector<const hlo::Instruction*> outputs_;
  BodyPlan plan_;  // variables: kept, then reduced
  BodyPlan init_plan_;
  std::vector<int32_t> wanted_, wanted_inits_;
  std::vector<const hlo::Instruction*> extras_;  // elementwise results
  std::vector<int32_t> wanted_extras_;
  Affine output_form_;  // over the kept variables
  Affine extra_form_;   // over all of them
  int64_t kept_rank_ = 0, kept_count_ = 1, reduced_count_ = 1, blocks_ = 1;
  Dims reduced_sizes_;
  bool rows_ = false, two_phases_ = false;
  int rows_together_ = 1;
  int width_ = 1;       // of columns
  int64_t chunks_ = 1;  // of the last kept variable, columns only
  std::vector<uint8_t> overwritten_;
};

absl::Status ReduceKernel::Plan() {
  outputs_ = Outputs(request_.body);
  const auto is_extra = [](const hlo::Instruction* i) {
    return i->opcode() != hlo::Opcode::kReduce;
  };
  const auto extras = std::find_if(outputs_.begin(), outputs_.end(), is_extra);
  extras_.assign(extras, outputs_.end());
  const hlo::Instruction& first = *outputs_[0];
  const Shape& input = first.operand(0)->shape();
  const Dims& reduced = first.attrs_as<hlo::DimensionsAttrs>().dimensions;
  const Dims kept_variables = PhysicalVariables(first.shape(), plan_.sizes);
  if (plan_.sizes.empty()) plan_.sizes.push_back(1);
  kept_rank_ = static_cast<int64_t>(plan_.sizes.size());
  Dims variables;
  for (int64_t d = 0, kept = 0; d < input.rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
      variables.push_back(kept_variables[static_cast<std::size_t>(kept++)]);
    } else {
      variables.push_back(static_cast<int64_t>(plan_.sizes.size()));
      plan_.sizes.push_back(input.dim(d));
    }
  }
  if (reduced.empty()) plan_.sizes.push_back(1);  // each result is of one element
  const auto rank = static_cast<int64_t>(plan_.sizes.size());
  const Point point = IdentityPoint(variables, rank);
  init_plan_.sizes.push_back(1);
  Planner planner(plan_), init_planner(init_plan_);
  for (auto output = outputs_.begin(); output != extras; ++output)
    LAZULI_RETURN_IF_ERROR(PlanReduction(**output, point, planner, init_planner));
  for (const hlo::Instruction* extra : extras_) {
    if (!SameDims(extra->shape(), input) || extra->shape().strides() != input.strides())
      return Internal("fused outputs differ in shape: ", input, " and ", extra->shape());
    wanted_extras_.push_back(planner.Add(extra, point));
  }
  output_form_ = Offset(first.shape(), IdentityPoint(kept_variables, rank), rank);
  extra_form_ = Offset(input, point, rank);
  std::vector<Affine*> forms{&output_form_, &extra_form_};
  kept_rank_ = MergeVariables(plan_, forms, 0, kept_rank_);
  MergeVariables(plan_, forms, kept_rank_, static_cast<int64_t>(plan_.sizes.size()));
  FindOverwritten();
  return absl::OkStatus();
}

absl::Status ReduceKernel::PlanReduction(const hlo::Instruction& output, const Point& point,
                                         Planner& planner, Planner& init_planner) {
  const hlo::Instruction& first = *outputs_[0];
  const auto monoid = hlo::MonoidOf(*output.to_apply());
  if (!monoid || output.operand_count() != 2 ||
      !SameDims(output.operand(0)->shape(), first.operand(0)->shape()) ||
      output.attrs_as<hlo::DimensionsAttrs>().dimensions !=
          first.attrs_as<hlo::DimensionsAttrs>().dimensions) {
    return Internal("cannot compile the reduction ", output.name());
  }
  const DType result = output.shape().dtype();
  const DType dtype = hlo::AccumulationType(result);
  monoids_.push_back({*monoid, dtype, result, hlo::IdentityOf(*monoid, dtype), output.operand(1)});
  wanted_.push_back(planner.Add(output.operand(0), point));
  wanted_inits_.push_back(init_planner.Add(output.operand(1), Point{}));
  return absl::OkStatus();
}

// An elementwise result may take a parameter's memory if each element is read only where it is
// overwritten; reductions, whose results may be as large, must not.
void ReduceKernel::FindOverwritten() {
  overwritten_.assign(static_cast<std::size_t>(num_params()), extras_.empty() ? 0 : 1);
  for (const hlo::Instruction* parameter : request_.body.parameters()) {
    const auto same_size = [&](const hlo::Instruction* output) {
      return output->opcode() == hlo::Opcode::kReduce &&
             output->shape().byte_size() == parameter->shape().byte_size();
    };
    if (std::any_of(outputs_.begin(), outputs_.end(), same_size))
      overwritten_[static_cast<std::size_t>(parameter->parameter_number())] = 0;
  }
  const auto clear = [&](const BodyPlan& plan, bool inits) {
    for (const PlanNode& node : plan.nodes) {
      if (node.parameter() != nullptr && (inits || !node.LoadsAt(extra_form_)))
        overwritten_[static_cast<std::size_t>(node.parameter()->parameter_number())] = 0;
    }
  };
  clear(plan_, false);
  clear(init_plan_, true);
}

void ReduceKernel::ChooseForm() {
  for (int64_t v = 0; v < kept_rank_; ++v) kept_count_ *= plan_.sizes[static_cast<std::size_t>(v)];
  for (std::size_t v = static_cast<std::size_t>(kept_rank_); v < plan_.sizes.size(); ++v) {
    reduced_sizes_.push_back(plan_.sizes[v]);
    reduced_count_ *= plan_.sizes[v];
  }
  blocks_ = (reduced_count_ + kReduceBlock - 1) / kReduceBlock;
  int row_loads = 0, column_loads = 0;
  for (const PlanNode& node : plan_.nodes) {
    if (node.kind != PlanNode::Kind::kLoad) continue;
    row_loads += node.form.coefficients.back() == 1;
    column_loads += node.form.coefficients[static_cast<std::size_t>(LastKept())] == 1;
  }
  // A vector of lanes must not straddle the end of the last reduced dimension, and what is written
  // along it must be neighbours.
  const bool rows_possible =
      (reduced_sizes_.size() == 1 || reduced_sizes_.back() % kReduceLanes == 0) &&
      (extras_.empty() || extra_form_.coefficients.back() == 1);
  rows_ = rows_possible && (row_loads >= column_loads || kept_count_ == 1);
  if (!rows_) {
    const bool neighbours =
        extras_.empty() ? column_loads > 0
                        : extra_form_.coefficients[static_cast<std::size_t>(LastKept())] == 1;
    width_ = KeptSize() >= request_.vector_width && neighbours ? ColumnWidth() : 1;
    chunks_ = (KeptSize() + width_ - 1) / width_;
  }
  // Columns go block by block for the caches' sake: a block of all columns is read while it is
  // there.
  two_phases_ = blocks_ > 1 && (!rows_ || kept_count_ < kEnoughReduceItems);
  rows_together_ = RowsTogether();
}

// One reduction of elements that are cheap to compute: folding them takes most of the time.
bool ReduceKernel::IsSimple() const {
  constexpr std::size_t kSimpleBody = 6;
  return extras_.empty() && monoids_.size() == 1 && plan_.nodes.size() <= kSimpleBody;
}

// How many rows are folded side by side: a sum of one row must wait for the sum before it. Long rows go
// one by one, because the processor reads ahead best along a single row.
int ReduceKernel::RowsTogether() const {
  constexpr int kRows = 4;
  constexpr int64_t kLongRow = 512;
  static_assert(kLongRow <= kReduceBlock);  // so Pairwise() has one row
  return rows_ && !two_phases_ && IsSimple() && !AnyOrder(0) && reduced_count_ <= kLongRow &&
                 kept_rank_ > 0 && KeptSize() % kRows == 0 &&
                 kept_count_ / kRows >= kEnoughReduceItems
             ? kRows
             : 1;
}

// Neighbouring columns that are folded together. Of simple bodies several vectors: the memory of a row
// is then read in longer runs. Not where that would leave too few tasks.
int ReduceKernel::ColumnWidth() const {
  constexpr int kVectors = 4;
  const int wide = kVectors * request_.vector_width;
  const int64_t tasks = kept_count_ / wide * blocks_;
  return IsSimple() && KeptSize() >= wide && tasks >= kEnoughReduceItems ? wide
                                                                         : request_.vector_width;
}

absl::StatusOr<KernelShape> ReduceKernel::Run() {
  LAZULI_RETURN_IF_ERROR(Plan());
  ChooseForm();
  if (is_generic()) Describe(*request_.generic);
  if (module_ != nullptr) Emit();
  KernelShape shape;
  const int64_t kept_items =
      rows_ ? kept_count_ / rows_together_ : kept_count_ / KeptSize() * chunks_;
  shape.items = kept_items * (two_phases_ ? blocks_ : 1);
  const int64_t points = (two_phases_ ? std::min(kReduceBlock, reduced_count_) : reduced_count_) *
                         (rows_ ? rows_together_ : width_);
  shape.grain = GrainFor(CostOf(plan_) * points);
  shape.in_place = overwritten_;
  if (two_phases_) {
    if (module_ != nullptr) EmitFinish();
    shape.finish_items = kept_count_;
    shape.scratch_bytes =
        static_cast<int64_t>(monoids_.size()) * blocks_ * kept_count_ * kScratchWidth;
  }
  shape.details = Str("reduce ", rows_ ? "rows" : "columns", " [", Join(plan_.sizes, ","),
                      "] kept ", kept_rank_, two_phases_ ? " in two phases" : "");
  if (!extras_.empty()) shape.details += Str(" and ", extras_.size(), " elementwise");
  return shape;
}

void ReduceKernel::Describe(GenericForm& form) const {
  form.Structure("reduce", rows_, two_phases_, blocks_, width_, rows_together_, kept_rank_,
                 rows_ ? Join(RowWidths(), ",") : "", Join(wanted_, ","), Join(wanted_inits_, ","),
                 Join(wanted_extras_, ","), overwritten_.size());
  for (const uint8_t may : overwritten_) form.Structure(may != 0);
  for (std::size_t r = 0; r < monoids_.size(); ++r) {
    const Monoid& monoid = monoids_[r];
    form.Structure(hlo::OpcodeText(monoid.opcode), DTypeText(monoid.dtype),
                   DTypeText(monoid.result), StartsAtIdentity(r));
    if (!two_phases_) continue;
    form.Number(ScratchOffset(r));
    form.Number(ScratchForm(r));
  }
  for (const hlo::Instruction* extra : extras_) form.Structure(DTypeText(extra->shape().dtype()));
  form.Plan(plan_);
  form.Plan(init_plan_);
  form.Number(output_form_);
  if (!extras_.empty()) form.Number(extra_form_);
  for (const int64_t number : {kept_count_, reduced_count_, ItemsOfBlock()}) form.Number(number);
  if (rows_) return form.Number(KeptSize() / rows_together_);
  form.Structure(FullChunks() > 0, FullChunks() == chunks_);
  for (const int64_t number : {chunks_, FullChunks(), FullChunks() * width_}) form.Number(number);
}

KernelBuilder ReduceKernel::Start(const std::string& name) const {
  const auto outputs = static_cast<int64_t>(outputs_.size());
  return KernelBuilder(*module_, name, num_params() + outputs + (two_phases_ ? 1 : 0),
                       request_.generic);
}

void ReduceKernel::Emit() {
  KernelBuilder kernel = Start(request_.name);
  kernel.Loop(kernel.begin(), kernel.end(), 1, [&](llvm::Value* item) { EmitItem(kernel, item); });
  kernel.Finish();
}

void ReduceKernel::EmitItem(KernelBuilder& kernel, llvm::Value* item) {
  llvm::Value* block = nullptr;
  llvm::Value* kept = item;
  if (two_phases_) {
    block = kernel.b().CreateUDiv(item, kernel.Number(ItemsOfBlock()));
    kept = kernel.b().CreateURem(item, kernel.Number(ItemsOfBlock()));
  }
  if (rows_) {
    Dims sizes(plan_.sizes.begin(), plan_.sizes.begin() + kept_rank_);
    if (rows_together_ > 1) sizes.back() /= rows_together_;
    Values at = kernel.Unflatten(kept, sizes);
    if (rows_together_ > 1)
      at.back() = kernel.b().CreateNSWMul(at.back(), kernel.Index(rows_together_));
    EmitResult(kernel, block, at, 1);
  } else {
    EmitColumns(kernel, block, kept);
  }
}

// `kept` enumerates the outer kept indices and chunks of `width_` columns; what is left of the last
// chunk goes one by one.
void ReduceKernel::EmitColumns(KernelBuilder& kernel, llvm::Value* block, llvm::Value* kept) {
  Dims sizes(plan_.sizes.begin(), plan_.sizes.begin() + LastKept());
  sizes.push_back(chunks_);
  Values at = kernel.Unflatten(kept, sizes);
  llvm::Value* chunk = at.back();
  at.pop_back();
  const int64_t full = FullChunks();
  const auto columns = [&](llvm::Value* column, int width) {
    Values here = at;
    here.push_back(column);
    EmitResult(kernel, block, here, width);
  };
  if (full > 0) {
    const auto vector = [&] {
      columns(kernel.b().CreateNSWMul(chunk, kernel.Index(width_)), width_);
    };
    if (full == chunks_) {
      vector();
    } else {
      kernel.If(kernel.b().CreateICmpSLT(chunk, kernel.Number(full)), vector);
    }
  }
  if (full == chunks_) return;
  kernel.If(kernel.b().CreateICmpEQ(chunk, kernel.Number(full)), [&] {
    llvm::Value* rest = kernel.Number(full * width_);
    if (width_ > request_.vector_width) {
      rest = kernel.Loop(rest, kernel.Number(KeptSize()), request_.vector_width,
                         [&](llvm::Value* column) { columns(column, request_.vector_width); });
    }
    kernel.Loop(rest, kernel.Number(KeptSize()), 1,
                [&](llvm::Value* column) { columns(column, 1); });
  });
}

// Where reduction r's totals begin, in elements of its own type: all have room for the widest.
int64_t ReduceKernel::ScratchOffset(std::size_t r) const {
  return static_cast<int64_t>(r) * blocks_ * kept_count_ * kScratchWidth /
         ByteWidth(monoids_[r].dtype);
}

Affine ReduceKernel::ScratchForm(std::size_t r) const {
  Affine form = output_form_;
  form.constant += ScratchOffset(r);
  form.coefficients.push_back(kept_count_);  // of the block
  return form;
}

void ReduceKernel::EmitResult(KernelBuilder& kernel, llvm::Value* block, const Values& kept,
                              int width) {
  Values totals;
  if (two_phases_) {
    llvm::Value* first = kernel.b().CreateNSWMul(block, kernel.Index(kReduceBlock));
    llvm::Value* last = kernel.b().CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, kernel.b().CreateNSWAdd(first, kernel.Index(kReduceBlock)),
        kernel.Number(reduced_count_));
    totals = Block(kernel, kept, width, first, last);
  } else {
    totals = AllBlocks(kernel, kept, width);
  }
  Values at = kept;
  at.resize(plan_.sizes.size(), kernel.Index(0));
  if (two_phases_) at.push_back(block);
  for (std::size_t t = 0; t < totals.size(); ++t) {
    const std::size_t r = t % monoids_.size();
    if (t > 0 && r == 0)  // the next row
      at[static_cast<std::size_t>(LastKept())] =
          kernel.b().CreateNSWAdd(at[static_cast<std::size_t>(LastKept())], kernel.Index(1));
    const DType dtype = two_phases_ ? monoids_[r].dtype : monoids_[r].result;
    const Emitted value{two_phases_ ? totals[t] : WithInit(kernel, r, totals[t], width),
                        width == 1};
    const auto output = static_cast<int64_t>(two_phases_ ? outputs_.size() : r);
    kernel.Store(dtype, kernel.arg(num_params() + output),
                 two_phases_ ? ScratchForm(r) : output_form_, at, {LastKept(), width}, value);
  }
}

Values ReduceKernel::AllBlocks(KernelBuilder& kernel, const Values& kept, int width) {
  if (blocks_ == 1)
    return Block(kernel, kept, width, kernel.Index(0), kernel.Number(reduced_count_));
  return Pairwise(kernel, width, [&](llvm::Value* block) {
    llvm::Value* first = kernel.b().CreateNSWMul(block, kernel.Index(kReduceBlock));
    llvm::Value* last = kernel.b().CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, kernel.b().CreateNSWAdd(first, kernel.Index(kReduceBlock)),
        kernel.Number(reduced_count_));
    return Block(kernel, kept, width, first, last);
  });
}

// The tree over all blocks, whose totals are made in order: as a binary counter has its digits,
// memory holds one total of 2^level blocks for each bit that is set in the number of those done.
Values ReduceKernel::Pairwise(KernelBuilder& kernel, int width,
                              absl::FunctionRef<Values(llvm::Value*)> total_of) {
  const auto blocks = static_cast<uint64_t>(blocks_);
  Memory memory;
  for (const Monoid& monoid : monoids_)
    memory.push_back(
        kernel.Memory(MemoryType(kernel.b(), monoid.dtype, width), std::bit_width(blocks)));
  const auto address = [&](std::size_t r, llvm::Value* level) {
    return kernel.b().CreateInBoundsGEP(memory[r]->getAllocatedType(), memory[r], level);
  };
  const auto load = [&](std::size_t r, llvm::Value* level) {
    return FromMemory(kernel.b(), monoids_[r].dtype,
                      kernel.b().CreateLoad(memory[r]->getAllocatedType(), address(r, level)));
  };
  kernel.Loop(kernel.Index(0), kernel.Index(blocks_), 1, [&](llvm::Value* block) {
    Values state = total_of(block);
    state.push_back(kernel.Index(0));
    state = kernel.While(
        state,
        [&](const Values& now) {
          return kernel.b().CreateTrunc(kernel.b().CreateLShr(block, now.back()),
                                        kernel.b().getInt1Ty());
        },
        [&](const Values& now) {
          Values next;
          for (std::size_t r = 0; r < monoids_.size(); ++r)
            next.push_back(Combine(kernel, r, load(r, now.back()), now[r]));
          next.push_back(kernel.b().CreateAdd(now.back(), kernel.Index(1)));
          return next;
        });
    for (std::size_t r = 0; r < monoids_.size(); ++r)
      kernel.b().CreateStore(ToMemory(kernel.b(), monoids_[r].dtype, state[r]),
                             address(r, state.back()));
  });
  Values totals;
  for (std::size_t r = 0; r < monoids_.size(); ++r) {
    int level = std::countr_zero(blocks);
    llvm::Value* total = load(r, kernel.Index(level));
    while (blocks >> ++level != 0) {
      if (blocks >> level & 1) total = Combine(kernel, r, load(r, kernel.Index(level)), total);
    }
    totals.push_back(total);
  }
  return totals;
}

Values ReduceKernel::Block(KernelBuilder& kernel, const Values& kept, int width, llvm::Value* first,
                           llvm::Value* last) {
  return rows_ ? RowBlock(kernel, kept, first, last)
               : ColumnBlock(kernel, kept, width, first, last);
}

Values ReduceKernel::At(KernelBuilder& kernel, const Values& kept, llvm::Value* k) {
  Values at = kept;
  const Values reduced = kernel.Unflatten(k, reduced_sizes_);
  at.insert(at.end(), reduced.begin(), reduced.end());
  return at;
}

// What the reductions read at one point, or at `lanes` of them; writes the elementwise results
// there.
Values ReduceKernel::Elements(KernelBuilder& kernel, const Values& kept, llvm::Value* k,
                              Lanes lanes) {
  const Values at = At(kernel, kept, k);
  std::vector<int32_t> wanted = wanted_;
  wanted.insert(wanted.end(), wanted_extras_.begin(), wanted_extras_.end());
  const std::vector<Emitted> values = kernel.Nodes(plan_, wanted, at, lanes, overwritten_);
  const std::size_t reductions = monoids_.size();
  for (std::size_t x = 0; x < extras_.size(); ++x) {
    kernel.Store(extras_[x]->shape().dtype(),
                 kernel.arg(num_params() + static_cast<int64_t>(reductions + x)), extra_form_, at,
                 lanes, values[reductions + x]);
  }
  Values result;
  for (std::size_t r = 0; r < reductions; ++r)
    result.push_back(kernel.Widen(values[r], lanes.width));
  return result;
}

// The same of the rows that are folded together, which begin at `kept`.
Values ReduceKernel::ElementsOfRows(KernelBuilder& kernel, const Values& kept, llvm::Value* k,
                                    Lanes lanes) {
  Values row = kept, all;
  for (int i = 0; i < rows_together_; ++i) {
    if (i > 0) row.back() = kernel.b().CreateNSWAdd(row.back(), kernel.Index(1));
    const Values elements = Elements(kernel, row, k, lanes);
    all.insert(all.end(), elements.begin(), elements.end());
  }
  return all;
}

Values ReduceKernel::Identities(KernelBuilder& kernel, int width) {
  Values result;
  for (const Monoid& monoid : monoids_)
    result.push_back(kernel.Widen({ScalarConstant(kernel.b(), monoid.identity), true}, width));
  return result;
}

llvm::Value* ReduceKernel::Tree(KernelBuilder& kernel, std::size_t r, llvm::Value* lanes) {
  for (int half = static_cast<int>(kReduceLanes) / 2; half >= 1; half /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half);
    }
    const auto pick = [&](const std::vector<int>& some) {
      return ForEachPart(kernel.b(), {lanes}, [&](absl::Span<llvm::Value* const> part) {
        return kernel.b().CreateShuffleVector(part[0], some);
      });
    };
    llvm::Value* left = pick(low);
    lanes = Combine(kernel, r, left, pick(high));
  }
  return ForEachPart(kernel.b(), {lanes}, [&](absl::Span<llvm::Value* const> part) {
    return kernel.b().CreateExtractElement(part[0], uint64_t{0});
  });
}

// How many elements are computed at a time, the most first: a register of them, of which eight after eight
// are folded. If the order does not matter, four registers come first, which are folded side by side.
std::vector<int> ReduceKernel::RowWidths() const {
  constexpr int kRegisters = 4;
  const auto lanes = static_cast<int>(kReduceLanes);
  const auto fits = [&](int width) {
    return width > lanes && (is_generic() || reduced_count_ >= width) &&
           (reduced_sizes_.size() == 1 || reduced_sizes_.back() % width == 0);
  };
  std::vector<int> widths;
  if (IsSimple() && AnyOrder(0) && fits(kRegisters * request_.vector_width))
    widths.push_back(kRegisters * request_.vector_width);
  if (fits(request_.vector_width)) widths.push_back(request_.vector_width);
  widths.push_back(lanes);
  // A width that leaves no rest makes the smaller ones useless.
  while (!is_generic() && widths.size() > 1 && reduced_count_ % widths[widths.size() - 2] == 0)
    widths.pop_back();
  return widths;
}

// A vector as vectors of `piece` lanes.
Values PiecesOf(KernelBuilder& kernel, llvm::Value* vector, int width, int piece) {
  Values pieces;
  for (int begin = 0; begin < width; begin += piece) {
    std::vector<int> lanes(static_cast<std::size_t>(piece));
    std::iota(lanes.begin(), lanes.end(), begin);
    pieces.push_back(ForEachPart(kernel.b(), {vector}, [&](absl::Span<llvm::Value* const> x) {
      return kernel.b().CreateShuffleVector(x[0], lanes);
    }));
  }
  return pieces;
}

Values ReduceKernel::AddLanes(KernelBuilder& kernel, absl::Span<llvm::Value* const> sums,
                              const Values& elements, int width) {
  Values next(sums.begin(), sums.end());
  for (std::size_t t = 0; t < next.size(); ++t) {
    Values parts{elements[t]};
    int lanes = width;
    const int in_register = std::max(request_.vector_width, static_cast<int>(kReduceLanes));
    if (AnyOrder(t) && width > in_register) {
      lanes = in_register;
      parts = {Balanced(kernel, t, PiecesOf(kernel, elements[t], width, lanes))};
    }
    parts = PiecesOf(kernel, parts[0], lanes, static_cast<int>(kReduceLanes));
    if (AnyOrder(t)) parts = {Balanced(kernel, t, std::move(parts))};
    for (llvm::Value* part : parts) next[t] = Combine(kernel, t, next[t], part);
  }
  return next;
}

// Whether the result does not depend on the order: the next sum then need not wait for this one.
bool ReduceKernel::AnyOrder(std::size_t r) const {
  const Monoid& monoid = ReductionOf(r);
  return monoid.opcode == hlo::Opcode::kMaximum || monoid.opcode == hlo::Opcode::kMinimum ||
         !(IsFloat(monoid.dtype) || IsComplex(monoid.dtype));
}

llvm::Value* ReduceKernel::Balanced(KernelBuilder& kernel, std::size_t r, Values parts) {
  while (parts.size() > 1) {
    Values pairs;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      pairs.push_back(Combine(kernel, r, parts[i], parts[i + 1]));
    if (parts.size() % 2 != 0) pairs.push_back(parts.back());
    parts = std::move(pairs);
  }
  return parts[0];
}

// Whether maxima and minima of f32 are found by comparing bits as integers. A step with floats takes five
// instructions, because NaN and the signs of zeros count; the three steps with integers take three.
bool ReduceKernel::FoldsBits(int width) const {
  return IsSimple() && rows_together_ == 1 && monoids_[0].dtype == DType::kF32 &&
         width > request_.vector_width && AnyOrder(0);
}

// Folds the elements of [first, last) into the eight lanes of `total`, `width` at a time, and returns the
// position behind the last one that it folded.
//
// It finds the largest bits as signed integers, the least as unsigned ones and the largest as unsigned
// ones. The bits of floats without a sign bit are ordered as the floats are, and the bits of those with one
// the other way round. So the maximum has the largest signed bits, unless all floats have a sign bit: then
// it has the least unsigned bits. The minimum has the largest unsigned bits if some float has a sign bit,
// else the least. A NaN has larger bits than the infinity of its sign.
llvm::Value* ReduceKernel::FoldBits(KernelBuilder& kernel, const Values& kept, llvm::Value* first,
                                    llvm::Value* last, int width, llvm::Value*& total) {
  llvm::IRBuilder<>& b = kernel.b();
  constexpr llvm::Intrinsic::ID kFolds[] = {llvm::Intrinsic::smax, llvm::Intrinsic::umin,
                                            llvm::Intrinsic::umax};
  const int lanes = std::max(request_.vector_width, static_cast<int>(kReduceLanes));
  const auto variable = static_cast<int64_t>(plan_.sizes.size()) - 1;
  const bool largest = monoids_[0].opcode == hlo::Opcode::kMaximum;
  const uint32_t infinity = largest ? 0xff800000 : 0x7f800000;  // the identity
  llvm::Value* start = b.CreateVectorSplat(static_cast<unsigned>(lanes), b.getInt32(infinity));
  Values state = kernel.LoopCarrying(
      first, last, width, {start, start, start},
      [&](llvm::Value* k, absl::Span<llvm::Value* const> found) {
        llvm::Value* bits = b.CreateBitCast(
            Elements(kernel, kept, k, {variable, width})[0],
            llvm::FixedVectorType::get(b.getInt32Ty(), static_cast<unsigned>(width)));
        const Values pieces = PiecesOf(kernel, bits, width, lanes);
        Values next(found.begin(), found.end());
        for (std::size_t f = 0; f < next.size(); ++f) {
          for (llvm::Value* piece : pieces)
            next[f] = b.CreateBinaryIntrinsic(kFolds[f], next[f], piece);
        }
        return next;
      });
  llvm::Value* zero = llvm::Constant::getNullValue(start->getType());
  llvm::Value *signed_max = state[1], *unsigned_min = state[2], *unsigned_max = state[3];
  llvm::Value* found =
      largest ? b.CreateSelect(b.CreateICmpSGE(signed_max, zero), signed_max, unsigned_min)
              : b.CreateSelect(b.CreateICmpSLT(unsigned_max, zero), unsigned_max, unsigned_min);
  // A NaN with the other sign bit than the result; one with the same sign bit is the result already.
  llvm::Value* has_nan =
      largest ? b.CreateICmpUGT(unsigned_max, start) : b.CreateICmpSGT(signed_max, start);
  llvm::Value* nan = b.CreateVectorSplat(static_cast<unsigned>(lanes), b.getInt32(0x7fc00000));
  llvm::Value* floats =
      b.CreateBitCast(b.CreateSelect(has_nan, nan, found),
                      llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(lanes)));
  for (llvm::Value* part : PiecesOf(kernel, floats, lanes, static_cast<int>(kReduceLanes)))
    total = Combine(kernel, 0, total, part);
  return state[0];
}

Values ReduceKernel::RowBlock(KernelBuilder& kernel, const Values& kept, llvm::Value* first,
                              llvm::Value* last) {
  const auto lanes = static_cast<int>(kReduceLanes);
  const auto variable = static_cast<int64_t>(plan_.sizes.size()) - 1;
  Values state;
  for (int i = 0; i < rows_together_; ++i) {
    for (llvm::Value* identity : Identities(kernel, lanes)) state.push_back(identity);
  }
  llvm::Value* stopped = first;
  std::vector<int> widths = RowWidths();
  if (FoldsBits(widths[0])) {
    stopped = FoldBits(kernel, kept, first, last, widths[0], state[0]);
    widths.erase(widths.begin());
  }
  for (const int width : widths) {
    state = kernel.LoopCarrying(
        stopped, last, width, state, [&](llvm::Value* k, absl::Span<llvm::Value* const> sums) {
          return AddLanes(kernel, sums, ElementsOfRows(kernel, kept, k, {variable, width}), width);
        });
    stopped = state[0];
    state.erase(state.begin());
  }
  if (is_generic() || reduced_count_ % kReduceLanes != 0) {
    Memory memory;
    for (std::size_t r = 0; r < state.size(); ++r) {
      llvm::Value* bits = ToMemory(kernel.b(), ReductionOf(r).dtype, state[r]);
      memory.push_back(kernel.Memory(bits->getType(), 1));
      kernel.b().CreateStore(bits, memory[r]);
    }
    kernel.Loop(stopped, last, 1, [&](llvm::Value* k) {
      const Values element = ElementsOfRows(kernel, kept, k, {variable, 1});
      for (std::size_t r = 0; r < element.size(); ++r) {
        const DType dtype = ReductionOf(r).dtype;
        llvm::Type* type = MemoryType(kernel.b(), dtype);
        llvm::Value* lane =
            kernel.b().CreateInBoundsGEP(type, memory[r], kernel.b().CreateSub(k, stopped));
        llvm::Value* sum = FromMemory(kernel.b(), dtype, kernel.b().CreateLoad(type, lane));
        kernel.b().CreateStore(ToMemory(kernel.b(), dtype, Combine(kernel, r, sum, element[r])),
                               lane);
      }
    });
    for (std::size_t r = 0; r < state.size(); ++r) {
      llvm::Value* loaded = kernel.b().CreateLoad(memory[r]->getAllocatedType(), memory[r]);
      state[r] = FromMemory(kernel.b(), ReductionOf(r).dtype, loaded);
    }
  }
  for (std::size_t r = 0; r < state.size(); ++r) state[r] = Tree(kernel, r, state[r]);
  return state;
}

// Folds elements [first, last) into lanes 0, 1, ... in memory, starting again after eight.
void ReduceKernel::ColumnTail(KernelBuilder& kernel, const Values& kept, int width,
                              const Memory& memory, llvm::Value* first, llvm::Value* last) {
  kernel.Loop(first, last, 1, [&](llvm::Value* k) {
    const Values element = Elements(kernel, kept, k, {LastKept(), width});
    llvm::Value* lane = kernel.b().CreateAnd(k, kernel.Index(kReduceLanes - 1));
    for (std::size_t r = 0; r < element.size(); ++r) {
      const DType dtype = monoids_[r].dtype;
      llvm::Type* type = memory[r]->getAllocatedType();
      llvm::Value* address = kernel.b().CreateInBoundsGEP(type, memory[r], lane);
      llvm::Value* sum = FromMemory(kernel.b(), dtype, kernel.b().CreateLoad(type, address));
      kernel.b().CreateStore(ToMemory(kernel.b(), dtype, Combine(kernel, r, sum, element[r])),
                             address);
    }
  });
}

// Folds eight elements after eight; returns where it stopped. `sums` has one value for each lane and
// reduction: sums[lane * reductions + r].
llvm::Value* ReduceKernel::ColumnEights(KernelBuilder& kernel, const Values& kept, int width,
                                        llvm::Value* first, llvm::Value* last, Values& sums) {
  const std::size_t reductions = monoids_.size();
  sums = kernel.LoopCarrying(
      first, last, kReduceLanes, sums, [&](llvm::Value* k, absl::Span<llvm::Value* const> old) {
        Values next;
        for (int64_t lane = 0; lane < kReduceLanes; ++lane) {
          const Values element = Elements(
              kernel, kept, kernel.b().CreateNSWAdd(k, kernel.Index(lane)), {LastKept(), width});
          for (std::size_t r = 0; r < reductions; ++r)
            next.push_back(Combine(kernel, r, old[next.size()], element[r]));
        }
        return next;
      });
  llvm::Value* const stopped = sums[0];
  sums.erase(sums.begin());
  return stopped;
}

// Folds what is left, or all of a body that is too long to be there eight times: one by one, with
// the lanes in memory.
void ReduceKernel::ColumnRest(KernelBuilder& kernel, const Values& kept, int width,
                              llvm::Value* first, llvm::Value* last, Values& sums) {
  const std::size_t reductions = monoids_.size();
  const auto lanes = static_cast<std::size_t>(kReduceLanes);
  Memory memory;
  for (const Monoid& monoid : monoids_)
    memory.push_back(kernel.Memory(MemoryType(kernel.b(), monoid.dtype, width), kReduceLanes));
  const auto address = [&](std::size_t i) {
    llvm::AllocaInst* const of = memory[i % reductions];
    return kernel.b().CreateConstInBoundsGEP1_64(of->getAllocatedType(), of, i / reductions);
  };
  for (std::size_t i = 0; i < lanes * reductions; ++i)
    kernel.b().CreateStore(ToMemory(kernel.b(), monoids_[i % reductions].dtype, sums[i]),
                           address(i));
  ColumnTail(kernel, kept, width, memory, first, last);
  for (std::size_t i = 0; i < lanes * reductions; ++i) {
    llvm::Type* const type = memory[i % reductions]->getAllocatedType();
    sums[i] = FromMemory(kernel.b(), monoids_[i % reductions].dtype,
                         kernel.b().CreateLoad(type, address(i)));
  }
}

Values ReduceKernel::ColumnBlock(KernelBuilder& kernel, const Values& kept, int width,
                                 llvm::Value* first, llvm::Value* last) {
  const std::size_t reductions = monoids_.size();
  Values sums;
  for (int64_t lane = 0; lane < kReduceLanes; ++lane) {
    for (llvm::Value* identity : Identities(kernel, width)) sums.push_back(identity);
  }
  const bool unrolled = plan_.nodes.size() <= kUnrolledBody;
  if (unrolled) first = ColumnEights(kernel, kept, width, first, last, sums);
  if (!unrolled || is_generic() || reduced_count_ % kReduceLanes != 0)
    ColumnRest(kernel, kept, width, first, last, sums);
  for (std::size_t half = kReduceLanes / 2; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half * reductions; ++i)
      sums[i] = Combine(kernel, i % reductions, sums[i], sums[i + half * reductions]);
  }
  sums.resize(reductions);
  return sums;
}

bool ReduceKernel::StartsAtIdentity(std::size_t r) const {
  const Monoid& monoid = monoids_[r];
  return monoid.init->IsConstant() &&
         monoid.init->literal().Converted(monoid.dtype).BitsEqual(monoid.identity);
}

// f(init, total), unless init is the identity itself.
llvm::Value* ReduceKernel::WithInit(KernelBuilder& kernel, std::size_t r, llvm::Value* total,
                                    int width) {
  const Monoid& monoid = monoids_[r];
  if (StartsAtIdentity(r)) return RoundToNarrow(kernel.b(), monoid.result, total);
  const std::vector<uint8_t> overwritten(static_cast<std::size_t>(num_params()), 0);
  llvm::Value* const origin[] = {kernel.Index(0)};
  llvm::Value* init =
      kernel.Nodes(init_plan_, {wanted_inits_[r]}, origin, {}, overwritten)[0].value;
  llvm::Value* identity = ScalarConstant(kernel.b(), monoid.identity);
  llvm::Value* same = SameBits(kernel.b(), init, identity);
  llvm::Value* combined = Combine(kernel, r, kernel.Widen({init, true}, width), total);
  return RoundToNarrow(kernel.b(), monoid.result, kernel.b().CreateSelect(same, total, combined));
}

// Combines the blocks' totals, for neighbouring results in vectors: results and totals are ordered
// alike.
void ReduceKernel::EmitFinish() {
  KernelBuilder kernel = Start(request_.name + "_finish");
  llvm::Value* scratch = kernel.arg(num_params() + static_cast<int64_t>(outputs_.size()));
  const auto combine = [&](llvm::Value* i, int width) {
    const Values totals = Pairwise(kernel, width, [&](llvm::Value* block) {
      llvm::Value* const at[] = {i, block};
      Values here;
      for (std::size_t r = 0; r < monoids_.size(); ++r) {
        const Affine form{ScratchOffset(r), {1, kept_count_}};
        here.push_back(kernel.Widen(
            kernel.Load(monoids_[r].dtype, scratch, form, at, {0, width}, true), width));
      }
      return here;
    });
    llvm::Value* const at[] = {i, kernel.Index(0)};
    for (std::size_t r = 0; r < monoids_.size(); ++r) {
      kernel.Store(monoids_[r].result, kernel.arg(num_params() + static_cast<int64_t>(r)),
                   {0, {1, 0}}, at, {0, width},
                   {WithInit(kernel, r, totals[r], width), width == 1});
    }
  };
  llvm::Value* stopped = kernel.Loop(kernel.begin(), kernel.end(), request_.vector_width,
                                     [&](llvm::Value* i) { combine(i, request_.vector_width); });
  kernel.Loop(stopped, kernel.end(), 1, [&](llvm::Value* i) { combine(i, 1); });
  kernel.Finish();
}

}  // namespace

absl::StatusOr<KernelShape> EmitReduceKernel(llvm::Module* module, const KernelRequest& request) {
  return ReduceKernel(module, request).Run();
}

}  // namespace lazuli::cpu
