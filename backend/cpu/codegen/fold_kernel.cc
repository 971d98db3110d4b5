// Reductions of several arrays at once by a region of scalars (argmax, ...): strictly in order, as
// the evaluator has them, for neighbouring results in vectors.
#include <algorithm>

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/kernel_builder.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<llvm::Value*>;

class FoldKernel {
 public:
  FoldKernel(llvm::Module* module, const KernelRequest& request)
      : module_(module),
        request_(request),
        fold_(*request.body.root()),
        count_(static_cast<std::size_t>(fold_.operand_count()) / 2),
        params_(request.body.parameters().size()) {}

  KernelShape Run();

 private:
  void Plan();
  void PlanRegion();
  void EmitItem(KernelBuilder& e, llvm::Value* item);
  Values Elements(KernelBuilder& e, const BodyPlan& plan, const std::vector<int32_t>& wanted,
                  absl::Span<llvm::Value* const> at, Lanes lanes) const;
  Values Combined(KernelBuilder& e, const Values& totals, const Values& elements) const;

  llvm::Module* module_;
  const KernelRequest& request_;
  const Instruction& fold_;
  std::size_t count_;  // of arrays
  std::size_t params_;
  BodyPlan plan_;  // variables: kept, then reduced
  BodyPlan init_plan_, region_plan_;
  std::vector<int32_t> wanted_, wanted_inits_, wanted_results_;
  Affine output_form_;
  int64_t kept_rank_ = 0;
  Dims chunk_sizes_;  // kept variables, the last one in chunks of width_
  int width_ = 1;
};

void FoldKernel::Plan() {
  const Shape& result = fold_.shape().tuple()[0];
  const Shape& input = fold_.operand(0)->shape();
  const Dims& reduced = fold_.attrs_as<hlo::DimensionsAttrs>().dimensions;
  const Dims kept_variables = PhysicalVariables(result, plan_.sizes);
  if (plan_.sizes.empty()) plan_.sizes.push_back(1);
  kept_rank_ = static_cast<int64_t>(plan_.sizes.size());
  Dims variables;
  for (int64_t d = 0, kept = 0; d < input.rank(); ++d) {
    const bool goes = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    variables.push_back(goes ? static_cast<int64_t>(plan_.sizes.size())
                             : kept_variables[static_cast<std::size_t>(kept++)]);
    if (goes) plan_.sizes.push_back(input.dim(d));
  }
  const auto rank = static_cast<int64_t>(plan_.sizes.size());
  init_plan_.sizes.push_back(1);
  Planner planner(plan_), init_planner(init_plan_);
  for (std::size_t k = 0; k < count_; ++k) {
    const auto operand = static_cast<int64_t>(k);
    wanted_.push_back(planner.Add(fold_.operand(operand), IdentityPoint(variables, rank)));
    wanted_inits_.push_back(
        init_planner.Add(fold_.operand(operand + static_cast<int64_t>(count_)), Point{}));
  }
  output_form_ = Offset(result, IdentityPoint(kept_variables, rank), rank);
  std::vector<Affine*> forms{&output_form_};
  kept_rank_ = MergeVariables(plan_, forms, 0, kept_rank_);
  MergeVariables(plan_, forms, kept_rank_, static_cast<int64_t>(plan_.sizes.size()));
  chunk_sizes_.assign(plan_.sizes.begin(), plan_.sizes.begin() + kept_rank_);
  const int64_t last = chunk_sizes_.back();
  if (last >= request_.vector_width) width_ = request_.vector_width;
  chunk_sizes_.back() = (last + width_ - 1) / width_;
}

// Its parameters are what the kernel has in registers.
void FoldKernel::PlanRegion() {
  region_plan_.sizes.push_back(1);
  Planner planner(region_plan_);
  for (const Instruction* result : fold_.to_apply()->root()->operands())
    wanted_results_.push_back(planner.Add(result, Point{}));
  for (PlanNode& node : region_plan_.nodes) {
    if (node.kind == PlanNode::Kind::kLoad) node.kind = PlanNode::Kind::kGiven;
  }
}

KernelShape FoldKernel::Run() {
  Plan();
  PlanRegion();
  if (module_ != nullptr) {
    KernelBuilder e(*module_, request_.name, static_cast<int64_t>(params_ + count_));
    e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) { EmitItem(e, item); });
    e.Finish();
  }
  KernelShape shape;
  int64_t points = width_;
  for (int64_t size : chunk_sizes_) shape.items *= size;
  for (std::size_t v = static_cast<std::size_t>(kept_rank_); v < plan_.sizes.size(); ++v)
    points *= plan_.sizes[v];
  shape.grain = GrainFor((CostOf(plan_) + CostOf(region_plan_)) * points);
  shape.in_place.assign(params_, 0);
  shape.details = Str("fold [", Join(plan_.sizes, ","), "] kept ", kept_rank_, " x", width_);
  return shape;
}

Values FoldKernel::Elements(KernelBuilder& e, const BodyPlan& plan,
                            const std::vector<int32_t>& wanted, absl::Span<llvm::Value* const> at,
                            Lanes lanes) const {
  const std::vector<uint8_t> overwritten(params_, 0);
  Values values;
  for (const Emitted& value : e.Nodes(plan, wanted, at, lanes, overwritten))
    values.push_back(e.Widen(value, width_));
  return values;
}

Values FoldKernel::Combined(KernelBuilder& e, const Values& totals, const Values& elements) const {
  e.set_given([&](const PlanNode& node) {
    const auto k = static_cast<std::size_t>(node.instruction->parameter_number());
    return Emitted{k < count_ ? totals[k] : elements[k - count_], width_ == 1};
  });
  llvm::Value* const origin[] = {e.Index(0)};
  return Elements(e, region_plan_, wanted_results_, origin, {0, width_});
}

// The last chunk starts where it still fits.
void FoldKernel::EmitItem(KernelBuilder& e, llvm::Value* item) {
  Values at = e.Unflatten(item, chunk_sizes_);
  const int64_t last = plan_.sizes[static_cast<std::size_t>(kept_rank_ - 1)];
  at.back() = e.b().CreateBinaryIntrinsic(llvm::Intrinsic::smin,
                                          e.b().CreateNSWMul(at.back(), e.Index(width_)),
                                          e.Index(last - width_));
  const Lanes lanes{kept_rank_ - 1, width_};
  llvm::Value* const origin[] = {e.Index(0)};
  const absl::Span<const int64_t> reduced(
      plan_.sizes.data() + kept_rank_, plan_.sizes.size() - static_cast<std::size_t>(kept_rank_));
  int64_t steps = 1;
  for (int64_t size : reduced) steps *= size;
  Values totals = e.LoopCarrying(e.Index(0), e.Index(steps), 1,
                                 Elements(e, init_plan_, wanted_inits_, origin, {}),
                                 [&](llvm::Value* step, absl::Span<llvm::Value* const> so_far) {
                                   Values here = at;
                                   const Values inner = e.Unflatten(step, reduced);
                                   here.insert(here.end(), inner.begin(), inner.end());
                                   return Combined(e, Values(so_far.begin(), so_far.end()),
                                                   Elements(e, plan_, wanted_, here, lanes));
                                 });
  totals.erase(totals.begin());
  at.resize(plan_.sizes.size(), e.Index(0));
  for (std::size_t k = 0; k < count_; ++k) {
    e.Store(fold_.shape().tuple()[k].dtype(), e.arg(static_cast<int64_t>(params_ + k)),
            output_form_, at, lanes, {totals[k], width_ == 1});
  }
}

bool InRegion(const Instruction& i) {
  const bool named = i.opcode() == Opcode::kParameter || i.IsRoot();
  return named || (i.shape().IsArray() && i.shape().rank() == 0 &&
                   (i.opcode() == Opcode::kConstant ? SupportsRegister(i.shape().dtype())
                                                    : SupportsElement(i)));
}

}  // namespace

bool SupportsFold(const Instruction& reduce) {
  if (!reduce.shape().IsTuple() || reduce.operand(0)->shape().num_elements() == 0) return false;
  const auto& region = *reduce.to_apply();
  const auto& results = reduce.shape().tuple();
  const auto plain = [](const Shape& shape) {
    return shape.IsArray() && SupportsRegister(shape.dtype());
  };
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Instruction* x = reduce.operand(static_cast<int64_t>(k));
    if (!plain(results[k]) || results[k].dtype() != x->shape().dtype() ||
        results[k].strides() != results[0].strides() ||
        x->shape().strides() != reduce.operand(0)->shape().strides())
      return false;
  }
  return region.root()->opcode() == Opcode::kTuple &&
         std::all_of(region.instructions().begin(), region.instructions().end(),
                     [](const auto& i) { return InRegion(*i); });
}

absl::StatusOr<KernelShape> EmitFoldKernel(llvm::Module* module, const KernelRequest& request) {
  return FoldKernel(module, request).Run();
}

}  // namespace lazuli::cpu
