#include <algorithm>

#include "backend/cpu/codegen/emitter.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

// Outer indices that one task iterates are decomposed with divisions; more of them only where there
// are enough tasks.
constexpr int64_t kEnoughItems = 64;
// Small bodies run two vectors at a time to hide latencies.
constexpr std::size_t kSmallBody = 24;

class LoopKernel {
 public:
  LoopKernel(llvm::Module& module, const KernelRequest& request)
      : module_(module), request_(request) {}

  absl::StatusOr<KernelShape> Run() {
    outputs_ = Outputs(request_.body);
    LAZULI_RETURN_IF_ERROR(Plan());
    FindOverwritten();
    Emit();
    KernelShape shape;
    shape.items = items_;
    shape.grain = GrainFor(CostOf(plan_) * points_per_item_);
    shape.in_place = overwritten_;
    FindParts(shape, request_, {&plan_}, output_form_, outputs_[0]->shape().num_elements());
    shape.details = Str("loop [", Join(plan_.sizes, ","), "] x", width_);
    return shape;
  }

 private:
  absl::Status Plan();
  void FindOverwritten();
  void Emit();
  void EmitNest(Emitter& e, std::vector<llvm::Value*>& at);
  void EmitLine(Emitter& e, std::vector<llvm::Value*>& at, llvm::Value* first, llvm::Value* last);
  void EmitPoint(Emitter& e, absl::Span<llvm::Value* const> at, int width);

  llvm::Module& module_;
  const KernelRequest& request_;
  std::vector<const hlo::Instruction*> outputs_;
  BodyPlan plan_;
  std::vector<int32_t> wanted_;
  Affine output_form_;  // the same for every output
  std::vector<uint8_t> overwritten_;
  std::size_t range_rank_ = 0;  // variables that [begin, end) enumerates; 0: the only one, directly
  int64_t items_ = 1, points_per_item_ = 1;
  int width_ = 1;
};

absl::Status LoopKernel::Plan() {
  const Shape& shape = outputs_[0]->shape();
  const Dims variables = PhysicalVariables(shape, plan_.sizes);
  if (plan_.sizes.empty()) plan_.sizes.push_back(1);
  const auto rank = static_cast<int64_t>(plan_.sizes.size());
  const Point point = IdentityPoint(variables, rank);
  Planner planner(plan_);
  for (const hlo::Instruction* output : outputs_) {
    if (!SameDims(output->shape(), shape) || output->shape().strides() != shape.strides()) {
      return Internal("fused outputs differ in shape: ", shape, " and ", output->shape());
    }
    wanted_.push_back(planner.Add(output, point));
  }
  output_form_ = Offset(shape, point, rank);
  std::vector<Affine*> forms{&output_form_};
  MergeVariables(plan_, forms, 0, rank);
  const auto left = plan_.sizes.size();
  width_ = request_.vector_width * (plan_.nodes.size() <= kSmallBody ? 2 : 1);
  if (plan_.sizes.back() < width_) width_ = std::min(width_, request_.vector_width);
  if (left == 1) {
    items_ = plan_.sizes[0];
  } else {
    while (range_rank_ + 1 < left && (range_rank_ == 0 || items_ < kEnoughItems))
      items_ *= plan_.sizes[range_rank_++];
    for (std::size_t v = range_rank_; v < left; ++v) points_per_item_ *= plan_.sizes[v];
  }
  return absl::OkStatus();
}

// An output may take a parameter's memory if each element is read only where it is overwritten.
void LoopKernel::FindOverwritten() {
  overwritten_.assign(request_.body.parameters().size(), 1);
  for (const PlanNode& node : plan_.nodes) {
    if (node.kind != PlanNode::Kind::kLoad || node.form == output_form_) continue;
    overwritten_[static_cast<std::size_t>(node.instruction->parameter_number())] = 0;
  }
}

void LoopKernel::EmitPoint(Emitter& e, absl::Span<llvm::Value* const> at, int width) {
  const auto last = static_cast<int64_t>(plan_.sizes.size()) - 1;
  const Lanes lanes{last, width};
  // Every load comes before the first store: see FindOverwritten.
  const std::vector<Emitted> values = e.Nodes(plan_, wanted_, at, lanes, overwritten_);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    llvm::Value* base = e.arg(static_cast<int64_t>(overwritten_.size() + o));
    e.Store(outputs_[o]->shape().dtype(), base, output_form_, at, lanes, values[o]);
  }
}

void LoopKernel::EmitLine(Emitter& e, std::vector<llvm::Value*>& at, llvm::Value* first,
                          llvm::Value* last) {
  const auto point = [&](llvm::Value* i, int width) {
    at.push_back(i);
    EmitPoint(e, at, width);
    at.pop_back();
  };
  const bool long_enough = plan_.sizes.back() >= width_ && output_form_.coefficients.back() == 1;
  if (long_enough) first = e.Loop(first, last, width_, [&](llvm::Value* i) { point(i, width_); });
  if (!long_enough || range_rank_ == 0 || plan_.sizes.back() % width_ != 0) {
    e.Loop(first, last, 1, [&](llvm::Value* i) { point(i, 1); });
  }
}

void LoopKernel::EmitNest(Emitter& e, std::vector<llvm::Value*>& at) {
  const std::size_t variable = at.size();
  if (variable + 1 == plan_.sizes.size())
    return EmitLine(e, at, e.Index(0), e.Index(plan_.sizes.back()));
  e.Loop(e.Index(0), e.Index(plan_.sizes[variable]), 1, [&](llvm::Value* i) {
    at.push_back(i);
    EmitNest(e, at);
    at.pop_back();
  });
}

void LoopKernel::Emit() {
  Emitter e(module_, request_.name, static_cast<int64_t>(overwritten_.size() + outputs_.size()));
  std::vector<llvm::Value*> at;
  if (range_rank_ == 0) {
    EmitLine(e, at, e.begin(), e.end());
  } else {
    e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) {
      at = e.Unflatten(item, absl::Span<const int64_t>(plan_.sizes.data(), range_rank_));
      EmitNest(e, at);
    });
  }
  e.Finish();
}

}  // namespace

absl::StatusOr<KernelShape> EmitLoopKernel(llvm::Module& module, const KernelRequest& request) {
  return LoopKernel(module, request).Run();
}

}  // namespace lazuli::backend
