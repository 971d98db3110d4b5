// Reductions in the order of ir/evaluator/reduction_order.h: blocks of 1024, in each of them 8
// lanes that fold every eighth element, then a tree over the lanes; then a tree over the blocks.
//
// Rows (the reduced elements are neighbours in memory): the 8 lanes are one vector. Columns (the
// kept elements are): 8 accumulators, each a vector of kept elements. Where there are few results,
// tasks make the totals of single blocks and a second function combines those.
//
// The results of a body are reductions of one shape over the same dimensions, then elementwise
// values of the shape that is reduced, which are written as the reductions read them.
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
  ReduceKernel(llvm::Module& module, const KernelRequest& request)
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
  void Emit();
  void EmitItem(KernelBuilder& e, llvm::Value* item);
  void EmitColumns(KernelBuilder& e, llvm::Value* block, llvm::Value* kept);
  void EmitResult(KernelBuilder& e, llvm::Value* block, const Values& kept, int width);
  Values AllBlocks(KernelBuilder& e, const Values& kept, int width);
  Values Pairwise(KernelBuilder& e, int width, absl::FunctionRef<Values(llvm::Value*)> total_of);
  Values Block(KernelBuilder& e, const Values& kept, int width, llvm::Value* first,
               llvm::Value* last);
  Values RowBlock(KernelBuilder& e, const Values& kept, llvm::Value* first, llvm::Value* last);
  Values ColumnBlock(KernelBuilder& e, const Values& kept, int width, llvm::Value* first,
                     llvm::Value* last);
  void ColumnTail(KernelBuilder& e, const Values& kept, int width, const Memory& memory,
                  llvm::Value* first, llvm::Value* last);
  void EmitFinish();

  Values At(KernelBuilder& e, const Values& kept, llvm::Value* k);
  Values Elements(KernelBuilder& e, const Values& kept, llvm::Value* k, Lanes lanes);
  Values Identities(KernelBuilder& e, int width);
  int WideRow() const;
  Values AddLanes(KernelBuilder& e, absl::Span<llvm::Value* const> sums, const Values& elements,
                  int width);
  bool AnyOrder(std::size_t r) const;
  llvm::Value* Balanced(KernelBuilder& e, std::size_t r, Values parts);
  llvm::Value* Combine(KernelBuilder& e, std::size_t r, llvm::Value* x, llvm::Value* y) {
    return EmitBinary(e.b(), monoids_[r].opcode, monoids_[r].dtype, x, y);
  }
  llvm::Value* Tree(KernelBuilder& e, std::size_t r, llvm::Value* lanes);
  llvm::Value* WithInit(KernelBuilder& e, std::size_t r, llvm::Value* total, int width);
  int64_t ScratchOffset(std::size_t r) const;
  Affine ScratchForm(std::size_t r) const;

  int64_t LastKept() const { return kept_rank_ - 1; }
  int64_t KeptSize() const { return plan_.sizes[static_cast<std::size_t>(LastKept())]; }
  int64_t num_params() const { return static_cast<int64_t>(request_.body.parameters().size()); }

  llvm::Module& module_;
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
    width_ = KeptSize() >= request_.vector_width && neighbours ? request_.vector_width : 1;
    chunks_ = (KeptSize() + width_ - 1) / width_;
  }
  // Columns go block by block for the caches' sake: a block of all columns is read while it is
  // there.
  two_phases_ = blocks_ > 1 && (!rows_ || kept_count_ < kEnoughReduceItems);
}

absl::StatusOr<KernelShape> ReduceKernel::Run() {
  LAZULI_RETURN_IF_ERROR(Plan());
  ChooseForm();
  Emit();
  KernelShape shape;
  const int64_t kept_items = rows_ ? kept_count_ : kept_count_ / KeptSize() * chunks_;
  shape.items = kept_items * (two_phases_ ? blocks_ : 1);
  const int64_t points = (two_phases_ ? std::min(kReduceBlock, reduced_count_) : reduced_count_) *
                         (rows_ ? 1 : width_);
  shape.grain = GrainFor(CostOf(plan_) * points);
  shape.in_place = overwritten_;
  if (two_phases_) {
    EmitFinish();
    shape.finish_items = kept_count_;
    shape.scratch_bytes =
        static_cast<int64_t>(monoids_.size()) * blocks_ * kept_count_ * kScratchWidth;
  }
  shape.details = Str("reduce ", rows_ ? "rows" : "columns", " [", Join(plan_.sizes, ","),
                      "] kept ", kept_rank_, two_phases_ ? " in two phases" : "");
  if (!extras_.empty()) shape.details += Str(" and ", extras_.size(), " elementwise");
  return shape;
}

void ReduceKernel::Emit() {
  KernelBuilder e(module_, request_.name,
                  num_params() + static_cast<int64_t>(outputs_.size()) + (two_phases_ ? 1 : 0));
  e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) { EmitItem(e, item); });
  e.Finish();
}

void ReduceKernel::EmitItem(KernelBuilder& e, llvm::Value* item) {
  const int64_t per_block = rows_ ? kept_count_ : kept_count_ / KeptSize() * chunks_;
  llvm::Value* block = nullptr;
  llvm::Value* kept = item;
  if (two_phases_) {
    block = e.b().CreateUDiv(item, e.Index(per_block));
    kept = e.b().CreateURem(item, e.Index(per_block));
  }
  if (rows_) {
    const absl::Span<const int64_t> sizes(plan_.sizes.data(), static_cast<std::size_t>(kept_rank_));
    EmitResult(e, block, e.Unflatten(kept, sizes), 1);
  } else {
    EmitColumns(e, block, kept);
  }
}

// `kept` enumerates the outer kept indices and chunks of `width_` columns; what is left of the last
// chunk goes one by one.
void ReduceKernel::EmitColumns(KernelBuilder& e, llvm::Value* block, llvm::Value* kept) {
  Dims sizes(plan_.sizes.begin(), plan_.sizes.begin() + LastKept());
  sizes.push_back(chunks_);
  Values at = e.Unflatten(kept, sizes);
  llvm::Value* chunk = at.back();
  at.pop_back();
  const int64_t full = KeptSize() / width_;
  const auto columns = [&](llvm::Value* column, int width) {
    Values here = at;
    here.push_back(column);
    EmitResult(e, block, here, width);
  };
  if (full > 0) {
    const auto vector = [&] { columns(e.b().CreateNSWMul(chunk, e.Index(width_)), width_); };
    if (full == chunks_) {
      vector();
    } else {
      e.If(e.b().CreateICmpSLT(chunk, e.Index(full)), vector);
    }
  }
  if (full == chunks_) return;
  e.If(e.b().CreateICmpEQ(chunk, e.Index(full)), [&] {
    e.Loop(e.Index(full * width_), e.Index(KeptSize()), 1,
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

void ReduceKernel::EmitResult(KernelBuilder& e, llvm::Value* block, const Values& kept, int width) {
  Values totals;
  if (two_phases_) {
    llvm::Value* first = e.b().CreateNSWMul(block, e.Index(kReduceBlock));
    llvm::Value* last = e.b().CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, e.b().CreateNSWAdd(first, e.Index(kReduceBlock)),
        e.Index(reduced_count_));
    totals = Block(e, kept, width, first, last);
  } else {
    totals = AllBlocks(e, kept, width);
  }
  Values at = kept;
  at.resize(plan_.sizes.size(), e.Index(0));
  if (two_phases_) at.push_back(block);
  for (std::size_t r = 0; r < monoids_.size(); ++r) {
    const DType dtype = two_phases_ ? monoids_[r].dtype : monoids_[r].result;
    const Emitted value{two_phases_ ? totals[r] : WithInit(e, r, totals[r], width), width == 1};
    const auto output = static_cast<int64_t>(two_phases_ ? outputs_.size() : r);
    e.Store(dtype, e.arg(num_params() + output), two_phases_ ? ScratchForm(r) : output_form_, at,
            {LastKept(), width}, value);
  }
}

Values ReduceKernel::AllBlocks(KernelBuilder& e, const Values& kept, int width) {
  if (blocks_ == 1) return Block(e, kept, width, e.Index(0), e.Index(reduced_count_));
  return Pairwise(e, width, [&](llvm::Value* block) {
    llvm::Value* first = e.b().CreateNSWMul(block, e.Index(kReduceBlock));
    llvm::Value* last = e.b().CreateBinaryIntrinsic(
        llvm::Intrinsic::smin, e.b().CreateNSWAdd(first, e.Index(kReduceBlock)),
        e.Index(reduced_count_));
    return Block(e, kept, width, first, last);
  });
}

// The tree over all blocks, whose totals are made in order: as a binary counter has its digits,
// memory holds one total of 2^level blocks for each bit that is set in the number of those done.
Values ReduceKernel::Pairwise(KernelBuilder& e, int width,
                              absl::FunctionRef<Values(llvm::Value*)> total_of) {
  const auto blocks = static_cast<uint64_t>(blocks_);
  Memory memory;
  for (const Monoid& monoid : monoids_)
    memory.push_back(e.Memory(MemoryType(e.b(), monoid.dtype, width), std::bit_width(blocks)));
  const auto address = [&](std::size_t r, llvm::Value* level) {
    return e.b().CreateInBoundsGEP(memory[r]->getAllocatedType(), memory[r], level);
  };
  const auto load = [&](std::size_t r, llvm::Value* level) {
    return FromMemory(e.b(), monoids_[r].dtype,
                      e.b().CreateLoad(memory[r]->getAllocatedType(), address(r, level)));
  };
  e.Loop(e.Index(0), e.Index(blocks_), 1, [&](llvm::Value* block) {
    Values state = total_of(block);
    state.push_back(e.Index(0));
    state = e.While(
        state,
        [&](const Values& now) {
          return e.b().CreateTrunc(e.b().CreateLShr(block, now.back()), e.b().getInt1Ty());
        },
        [&](const Values& now) {
          Values next;
          for (std::size_t r = 0; r < monoids_.size(); ++r)
            next.push_back(Combine(e, r, load(r, now.back()), now[r]));
          next.push_back(e.b().CreateAdd(now.back(), e.Index(1)));
          return next;
        });
    for (std::size_t r = 0; r < monoids_.size(); ++r)
      e.b().CreateStore(ToMemory(e.b(), monoids_[r].dtype, state[r]), address(r, state.back()));
  });
  Values totals;
  for (std::size_t r = 0; r < monoids_.size(); ++r) {
    int level = std::countr_zero(blocks);
    llvm::Value* total = load(r, e.Index(level));
    while (blocks >> ++level != 0) {
      if (blocks >> level & 1) total = Combine(e, r, load(r, e.Index(level)), total);
    }
    totals.push_back(total);
  }
  return totals;
}

Values ReduceKernel::Block(KernelBuilder& e, const Values& kept, int width, llvm::Value* first,
                           llvm::Value* last) {
  return rows_ ? RowBlock(e, kept, first, last) : ColumnBlock(e, kept, width, first, last);
}

Values ReduceKernel::At(KernelBuilder& e, const Values& kept, llvm::Value* k) {
  Values at = kept;
  const Values reduced = e.Unflatten(k, reduced_sizes_);
  at.insert(at.end(), reduced.begin(), reduced.end());
  return at;
}

// What the reductions read at one point, or at `lanes` of them; writes the elementwise results
// there.
Values ReduceKernel::Elements(KernelBuilder& e, const Values& kept, llvm::Value* k, Lanes lanes) {
  const Values at = At(e, kept, k);
  std::vector<int32_t> wanted = wanted_;
  wanted.insert(wanted.end(), wanted_extras_.begin(), wanted_extras_.end());
  const std::vector<Emitted> values = e.Nodes(plan_, wanted, at, lanes, overwritten_);
  const std::size_t reductions = monoids_.size();
  for (std::size_t x = 0; x < extras_.size(); ++x) {
    e.Store(extras_[x]->shape().dtype(), e.arg(num_params() + static_cast<int64_t>(reductions + x)),
            extra_form_, at, lanes, values[reductions + x]);
  }
  Values result;
  for (std::size_t r = 0; r < reductions; ++r) result.push_back(e.Widen(values[r], lanes.width));
  return result;
}

Values ReduceKernel::Identities(KernelBuilder& e, int width) {
  Values result;
  for (const Monoid& monoid : monoids_)
    result.push_back(e.Widen({ScalarConstant(e.b(), monoid.identity), true}, width));
  return result;
}

llvm::Value* ReduceKernel::Tree(KernelBuilder& e, std::size_t r, llvm::Value* lanes) {
  for (int half = static_cast<int>(kReduceLanes) / 2; half >= 1; half /= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < half; ++i) {
      low.push_back(i);
      high.push_back(i + half);
    }
    const auto pick = [&](const std::vector<int>& some) {
      return ForEachPart(e.b(), {lanes}, [&](absl::Span<llvm::Value* const> part) {
        return e.b().CreateShuffleVector(part[0], some);
      });
    };
    llvm::Value* left = pick(low);
    lanes = Combine(e, r, left, pick(high));
  }
  return ForEachPart(e.b(), {lanes}, [&](absl::Span<llvm::Value* const> part) {
    return e.b().CreateExtractElement(part[0], uint64_t{0});
  });
}

// Elements computed at a time: a whole register of them, folded eight after eight.
int ReduceKernel::WideRow() const {
  const auto lanes = static_cast<int>(kReduceLanes);
  const bool fits =
      reduced_sizes_.size() == 1 || reduced_sizes_.back() % request_.vector_width == 0;
  return fits && reduced_count_ >= request_.vector_width ? std::max(lanes, request_.vector_width)
                                                         : lanes;
}

Values ReduceKernel::AddLanes(KernelBuilder& e, absl::Span<llvm::Value* const> sums,
                              const Values& elements, int width) {
  const auto lanes = static_cast<int>(kReduceLanes);
  Values next(sums.begin(), sums.end());
  for (std::size_t r = 0; r < next.size(); ++r) {
    Values parts;
    for (int begin = 0; begin < width; begin += lanes) {
      std::vector<int> eight(kReduceLanes);
      std::iota(eight.begin(), eight.end(), begin);
      parts.push_back(ForEachPart(e.b(), {elements[r]}, [&](absl::Span<llvm::Value* const> x) {
        return e.b().CreateShuffleVector(x[0], eight);
      }));
    }
    if (AnyOrder(r)) parts = {Balanced(e, r, std::move(parts))};
    for (llvm::Value* part : parts) next[r] = Combine(e, r, next[r], part);
  }
  return next;
}

// Whether the result does not depend on the order: the next sum then need not wait for this one.
bool ReduceKernel::AnyOrder(std::size_t r) const {
  const Monoid& monoid = monoids_[r];
  return monoid.opcode == hlo::Opcode::kMaximum || monoid.opcode == hlo::Opcode::kMinimum ||
         !(IsFloat(monoid.dtype) || IsComplex(monoid.dtype));
}

llvm::Value* ReduceKernel::Balanced(KernelBuilder& e, std::size_t r, Values parts) {
  while (parts.size() > 1) {
    Values pairs;
    for (std::size_t i = 0; i + 1 < parts.size(); i += 2)
      pairs.push_back(Combine(e, r, parts[i], parts[i + 1]));
    if (parts.size() % 2 != 0) pairs.push_back(parts.back());
    parts = std::move(pairs);
  }
  return parts[0];
}

Values ReduceKernel::RowBlock(KernelBuilder& e, const Values& kept, llvm::Value* first,
                              llvm::Value* last) {
  const auto lanes = static_cast<int>(kReduceLanes);
  const auto variable = static_cast<int64_t>(plan_.sizes.size()) - 1;
  Values state = Identities(e, lanes);
  llvm::Value* stopped = first;
  const int wide = WideRow();
  std::vector<int> widths{wide};
  if (reduced_count_ % wide != 0 && wide != lanes) widths.push_back(lanes);
  for (const int width : widths) {
    state = e.LoopCarrying(
        stopped, last, width, state, [&](llvm::Value* k, absl::Span<llvm::Value* const> sums) {
          return AddLanes(e, sums, Elements(e, kept, k, {variable, width}), width);
        });
    stopped = state[0];
    state.erase(state.begin());
  }
  if (reduced_count_ % kReduceLanes != 0) {
    Memory memory;
    for (std::size_t r = 0; r < state.size(); ++r) {
      llvm::Value* bits = ToMemory(e.b(), monoids_[r].dtype, state[r]);
      memory.push_back(e.Memory(bits->getType(), 1));
      e.b().CreateStore(bits, memory[r]);
    }
    e.Loop(stopped, last, 1, [&](llvm::Value* k) {
      const Values element = Elements(e, kept, k, {variable, 1});
      for (std::size_t r = 0; r < element.size(); ++r) {
        llvm::Type* type = MemoryType(e.b(), monoids_[r].dtype);
        llvm::Value* lane = e.b().CreateInBoundsGEP(type, memory[r], e.b().CreateSub(k, stopped));
        llvm::Value* sum = FromMemory(e.b(), monoids_[r].dtype, e.b().CreateLoad(type, lane));
        e.b().CreateStore(ToMemory(e.b(), monoids_[r].dtype, Combine(e, r, sum, element[r])), lane);
      }
    });
    for (std::size_t r = 0; r < state.size(); ++r) {
      llvm::Value* loaded = e.b().CreateLoad(memory[r]->getAllocatedType(), memory[r]);
      state[r] = FromMemory(e.b(), monoids_[r].dtype, loaded);
    }
  }
  for (std::size_t r = 0; r < state.size(); ++r) state[r] = Tree(e, r, state[r]);
  return state;
}

// Folds elements [first, last) into lanes 0, 1, ... in memory, starting again after eight.
void ReduceKernel::ColumnTail(KernelBuilder& e, const Values& kept, int width, const Memory& memory,
                              llvm::Value* first, llvm::Value* last) {
  e.Loop(first, last, 1, [&](llvm::Value* k) {
    const Values element = Elements(e, kept, k, {LastKept(), width});
    llvm::Value* lane = e.b().CreateAnd(k, e.Index(kReduceLanes - 1));
    for (std::size_t r = 0; r < element.size(); ++r) {
      const DType dtype = monoids_[r].dtype;
      llvm::Type* type = memory[r]->getAllocatedType();
      llvm::Value* address = e.b().CreateInBoundsGEP(type, memory[r], lane);
      llvm::Value* sum = FromMemory(e.b(), dtype, e.b().CreateLoad(type, address));
      e.b().CreateStore(ToMemory(e.b(), dtype, Combine(e, r, sum, element[r])), address);
    }
  });
}

Values ReduceKernel::ColumnBlock(KernelBuilder& e, const Values& kept, int width,
                                 llvm::Value* first, llvm::Value* last) {
  const auto count = static_cast<std::size_t>(kReduceLanes);
  const std::size_t reducers = monoids_.size();
  Values sums;  // lane-major: sums[lane * reducers + r]
  for (std::size_t lane = 0; lane < count; ++lane) {
    for (llvm::Value* identity : Identities(e, width)) sums.push_back(identity);
  }
  const bool unrolled = plan_.nodes.size() <= kUnrolledBody;
  if (unrolled) {
    sums = e.LoopCarrying(
        first, last, kReduceLanes, sums, [&](llvm::Value* k, absl::Span<llvm::Value* const> old) {
          Values next;
          for (std::size_t lane = 0; lane < count; ++lane) {
            const Values element =
                Elements(e, kept, e.b().CreateNSWAdd(k, e.Index(static_cast<int64_t>(lane))),
                         {LastKept(), width});
            for (std::size_t r = 0; r < reducers; ++r)
              next.push_back(Combine(e, r, old[lane * reducers + r], element[r]));
          }
          return next;
        });
    first = sums[0];
    sums.erase(sums.begin());
  }
  if (!unrolled || reduced_count_ % kReduceLanes != 0) {
    Memory memory;
    for (std::size_t r = 0; r < reducers; ++r) {
      llvm::Type* type = MemoryType(e.b(), monoids_[r].dtype, width);
      memory.push_back(e.Memory(type, kReduceLanes));
      for (std::size_t lane = 0; lane < count; ++lane) {
        e.b().CreateStore(ToMemory(e.b(), monoids_[r].dtype, sums[lane * reducers + r]),
                          e.b().CreateConstInBoundsGEP1_64(type, memory[r], lane));
      }
    }
    ColumnTail(e, kept, width, memory, first, last);
    for (std::size_t r = 0; r < reducers; ++r) {
      llvm::Type* type = memory[r]->getAllocatedType();
      for (std::size_t lane = 0; lane < count; ++lane) {
        llvm::Value* loaded =
            e.b().CreateLoad(type, e.b().CreateConstInBoundsGEP1_64(type, memory[r], lane));
        sums[lane * reducers + r] = FromMemory(e.b(), monoids_[r].dtype, loaded);
      }
    }
  }
  for (std::size_t half = count / 2; half >= 1; half /= 2) {
    for (std::size_t i = 0; i < half * reducers; ++i)
      sums[i] = Combine(e, i % reducers, sums[i], sums[i + half * reducers]);
  }
  sums.resize(reducers);
  return sums;
}

// f(init, total), unless init is the identity itself.
llvm::Value* ReduceKernel::WithInit(KernelBuilder& e, std::size_t r, llvm::Value* total,
                                    int width) {
  const Monoid& monoid = monoids_[r];
  if (monoid.init->IsConstant() &&
      monoid.init->literal().Converted(monoid.dtype).BitsEqual(monoid.identity)) {
    return RoundToNarrow(e.b(), monoid.result, total);
  }
  const std::vector<uint8_t> overwritten(static_cast<std::size_t>(num_params()), 0);
  llvm::Value* const origin[] = {e.Index(0)};
  llvm::Value* init = e.Nodes(init_plan_, {wanted_inits_[r]}, origin, {}, overwritten)[0].value;
  llvm::Value* identity = ScalarConstant(e.b(), monoid.identity);
  llvm::Value* same = SameBits(e.b(), init, identity);
  llvm::Value* combined = Combine(e, r, e.Widen({init, true}, width), total);
  return RoundToNarrow(e.b(), monoid.result, e.b().CreateSelect(same, total, combined));
}

// Combines the blocks' totals, for neighbouring results in vectors: results and totals are ordered
// alike.
void ReduceKernel::EmitFinish() {
  KernelBuilder e(module_, request_.name + "_finish",
                  num_params() + static_cast<int64_t>(outputs_.size()) + 1);
  llvm::Value* scratch = e.arg(num_params() + static_cast<int64_t>(outputs_.size()));
  const auto combine = [&](llvm::Value* i, int width) {
    const Values totals = Pairwise(e, width, [&](llvm::Value* block) {
      llvm::Value* const at[] = {i, block};
      Values here;
      for (std::size_t r = 0; r < monoids_.size(); ++r) {
        const Affine form{ScratchOffset(r), {1, kept_count_}};
        here.push_back(
            e.Widen(e.Load(monoids_[r].dtype, scratch, form, at, {0, width}, true), width));
      }
      return here;
    });
    llvm::Value* const at[] = {i, e.Index(0)};
    for (std::size_t r = 0; r < monoids_.size(); ++r) {
      e.Store(monoids_[r].result, e.arg(num_params() + static_cast<int64_t>(r)), {0, {1, 0}}, at,
              {0, width}, {WithInit(e, r, totals[r], width), width == 1});
    }
  };
  llvm::Value* stopped = e.Loop(e.begin(), e.end(), request_.vector_width,
                                [&](llvm::Value* i) { combine(i, request_.vector_width); });
  e.Loop(stopped, e.end(), 1, [&](llvm::Value* i) { combine(i, 1); });
  e.Finish();
}

}  // namespace

absl::StatusOr<KernelShape> EmitReduceKernel(llvm::Module& module, const KernelRequest& request) {
  return ReduceKernel(module, request).Run();
}

}  // namespace lazuli::cpu
