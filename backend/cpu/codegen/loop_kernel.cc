// Elementwise results. Loads that run along another variable than the results do would be gathers
// of single elements; where there are such, square tiles are transposed in registers first.
#include <algorithm>
#include <cstdlib>

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/kernel_builder.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

// Outer indices that one task iterates are decomposed with divisions; more of them only where there
// are enough tasks.
constexpr int64_t kEnoughLoopItems = 64;
// Small bodies run two vectors at a time to hide latencies.
constexpr std::size_t kSmallBody = 24;

class LoopKernel {
 public:
  LoopKernel(llvm::Module* module, const KernelRequest& request)
      : module_(module), request_(request) {}

  absl::StatusOr<KernelShape> Run() {
    outputs_ = Outputs(request_.body);
    LAZULI_RETURN_IF_ERROR(Plan());
    FindOverwritten();
    FindTiles();
    if (request_.generic != nullptr) Describe(*request_.generic);
    if (module_ != nullptr) tile_variable_ >= 0 ? EmitTiles() : Emit();
    KernelShape shape;
    shape.items = items_;
    shape.grain = GrainFor(CostOf(plan_) * points_per_item_);
    shape.in_place = overwritten_;
    if (tile_variable_ < 0)
      FindParts(shape, request_, {&plan_}, output_form_, outputs_[0]->shape().num_elements());
    shape.details =
        Str("loop [", Join(plan_.sizes, ","), "] x", width_, tile_variable_ < 0 ? "" : " in tiles");
    return shape;
  }

 private:
  absl::Status Plan();
  void FindOverwritten();
  void FindTiles();
  void Describe(GenericForm& form) const;
  int64_t TilesAlong(std::size_t variable) const;
  bool FitsVectors() const;
  void EmitTiles();
  void EmitTile(KernelBuilder& e, std::vector<llvm::Value*> at, llvm::Value* first_line);
  void Transpose(KernelBuilder& e, std::vector<llvm::Value*>& rows) const;
  void Emit();
  void EmitNest(KernelBuilder& e, std::vector<llvm::Value*>& at);
  void EmitLine(KernelBuilder& e, std::vector<llvm::Value*>& at, llvm::Value* first,
                llvm::Value* last);
  void EmitPoint(KernelBuilder& e, absl::Span<llvm::Value* const> at, int width);

  llvm::Module* module_;
  const KernelRequest& request_;
  std::vector<const hlo::Instruction*> outputs_;
  BodyPlan plan_;
  std::vector<int32_t> wanted_;
  Affine output_form_;  // the same for every output
  std::vector<uint8_t> overwritten_;
  std::size_t range_rank_ = 0;  // variables that [begin, end) enumerates; 0: the only one, directly
  int64_t items_ = 1, points_per_item_ = 1;
  int width_ = 1;
  int64_t tile_variable_ = -1;      // that the loads of tiles run along; -1: no tiles
  std::vector<std::size_t> tiles_;  // nodes
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
    while (range_rank_ + 1 < left && (range_rank_ == 0 || items_ < kEnoughLoopItems))
      items_ *= plan_.sizes[range_rank_++];
    for (std::size_t v = range_rank_; v < left; ++v) points_per_item_ *= plan_.sizes[v];
  }
  return absl::OkStatus();
}

// An output may take a parameter's memory if each element is read only where it is overwritten.
void LoopKernel::FindOverwritten() {
  overwritten_.assign(request_.body.parameters().size(), 1);
  for (const PlanNode& node : plan_.nodes) {
    if (node.parameter() == nullptr || node.LoadsAt(output_form_)) continue;
    overwritten_[static_cast<std::size_t>(node.parameter()->parameter_number())] = 0;
  }
}

// Loads whose neighbours lie along one and the same other variable become nodes that are given.
void LoopKernel::FindTiles() {
  const auto last = static_cast<int64_t>(plan_.sizes.size()) - 1;
  const int64_t tile = request_.vector_width;
  const auto size = [&](int64_t v) { return plan_.sizes[static_cast<std::size_t>(v)]; };
  if (output_form_.coefficients.back() != 1 || size(last) < tile) return;
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    PlanNode& node = plan_.nodes[n];
    const DType dtype = node.instruction->shape().dtype();
    if (node.kind != PlanNode::Kind::kLoad || std::abs(node.form.coefficients.back()) <= 1 ||
        dtype == DType::kPred || IsComplex(dtype))
      continue;
    const auto& c = node.form.coefficients;
    const auto along = std::find(c.begin(), c.end(), 1) - c.begin();
    if (along >= last || size(along) < tile || (tile_variable_ >= 0 && tile_variable_ != along))
      continue;
    tile_variable_ = along;
    tiles_.push_back(n);
    node.kind = PlanNode::Kind::kGiven;
  }
  if (tile_variable_ < 0) return;
  width_ = static_cast<int>(tile);
  items_ = 1;
  for (int64_t v = 0; v < last; ++v)
    items_ *= v == tile_variable_ ? TilesAlong(static_cast<std::size_t>(v)) : size(v);
  points_per_item_ = tile * size(last);
  // The last tiles start where they still fit and make some elements for the second time.
  if (size(last) % tile != 0 || size(tile_variable_) % tile != 0)
    std::fill(overwritten_.begin(), overwritten_.end(), 0);
}

int64_t LoopKernel::TilesAlong(std::size_t variable) const {
  return (plan_.sizes[variable] + width_ - 1) / width_;
}

// Whether a line has room for a vector, whose elements are neighbours.
bool LoopKernel::FitsVectors() const {
  return plan_.sizes.back() >= width_ && output_form_.coefficients.back() == 1;
}

void LoopKernel::Describe(GenericForm& form) const {
  form.Structure("loop", width_, range_rank_, FitsVectors(), tile_variable_, Join(tiles_, ","),
                 Join(wanted_, ","), overwritten_.size());
  for (const uint8_t may : overwritten_) form.Structure(may != 0);
  for (const hlo::Instruction* output : outputs_)
    form.Structure(DTypeText(output->shape().dtype()));
  form.Plan(plan_);
  form.Number(output_form_);
  if (tile_variable_ < 0) return;
  for (const std::size_t v : {static_cast<std::size_t>(tile_variable_), plan_.sizes.size() - 1}) {
    form.Number(TilesAlong(v));
    form.Number(plan_.sizes[v] - width_);
  }
}

void LoopKernel::EmitTiles() {
  KernelBuilder e(*module_, request_.name,
                  static_cast<int64_t>(overwritten_.size() + outputs_.size()), request_.generic);
  const auto v = static_cast<std::size_t>(tile_variable_);
  Dims sizes(plan_.sizes.begin(), plan_.sizes.end() - 1);
  sizes[v] = TilesAlong(v);
  const auto start = [&](llvm::Value* number, int64_t size) {
    return e.b().CreateBinaryIntrinsic(llvm::Intrinsic::smin,
                                       e.b().CreateNSWMul(number, e.Index(width_)),
                                       e.Number(size - width_));
  };
  e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) {
    std::vector<llvm::Value*> at = e.Unflatten(item, sizes);
    at[v] = start(at[v], plan_.sizes[v]);
    const int64_t tiles = TilesAlong(plan_.sizes.size() - 1);
    e.Loop(e.Index(0), e.Number(tiles), 1,
           [&](llvm::Value* number) { EmitTile(e, at, start(number, plan_.sizes.back())); });
  });
  e.Finish();
}

void LoopKernel::EmitTile(KernelBuilder& e, std::vector<llvm::Value*> at, llvm::Value* first) {
  const auto v = static_cast<std::size_t>(tile_variable_);
  llvm::Value* first_line = at[v];
  std::vector<llvm::AllocaInst*> memory;
  for (std::size_t n : tiles_) {
    const hlo::Instruction& parameter = *plan_.nodes[n].instruction;
    std::vector<llvm::Value*> rows;
    at.push_back(nullptr);
    for (int64_t i = 0; i < width_; ++i) {
      at.back() = e.b().CreateNSWAdd(first, e.Index(i));
      rows.push_back(e.Load(parameter.shape().dtype(), e.arg(parameter.parameter_number()),
                            plan_.nodes[n].form, at, {tile_variable_, width_}, false)
                         .value);
    }
    at.pop_back();
    Transpose(e, rows);
    memory.push_back(e.Memory(rows[0]->getType(), width_));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      e.b().CreateStore(rows[i],
                        e.b().CreateConstInBoundsGEP1_64(rows[0]->getType(), memory.back(), i));
    }
  }
  e.Loop(e.Index(0), e.Index(width_), 1, [&](llvm::Value* line) {
    e.set_given([&](const PlanNode& node) {
      const auto n = static_cast<std::size_t>(&node - plan_.nodes.data());
      const auto tile = std::find(tiles_.begin(), tiles_.end(), n) - tiles_.begin();
      llvm::AllocaInst* from = memory[static_cast<std::size_t>(tile)];
      llvm::Type* type = from->getAllocatedType();
      return Emitted{e.b().CreateLoad(type, e.b().CreateInBoundsGEP(type, from, line)), false};
    });
    at[v] = e.b().CreateNSWAdd(first_line, line);
    at.push_back(first);
    EmitPoint(e, at, width_);
    at.pop_back();
  });
}

// rows[i][j] and rows[j][i] change places, bit after bit of their numbers.
void LoopKernel::Transpose(KernelBuilder& e, std::vector<llvm::Value*>& rows) const {
  for (int step = width_ / 2; step >= 1; step /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < width_; ++lane) {
      const bool second = (lane & step) != 0;
      low.push_back(second ? width_ + lane - step : lane);
      high.push_back(second ? width_ + lane : lane + step);
    }
    for (int i = 0; i < width_; ++i) {
      if ((i & step) != 0) continue;
      const auto line = static_cast<std::size_t>(i),
                 partner = line + static_cast<std::size_t>(step);
      llvm::Value *&a = rows[line], *&b = rows[partner];
      llvm::Value* upper = e.b().CreateShuffleVector(a, b, low);
      b = e.b().CreateShuffleVector(a, b, high);
      a = upper;
    }
  }
}

void LoopKernel::EmitPoint(KernelBuilder& e, absl::Span<llvm::Value* const> at, int width) {
  const auto last = static_cast<int64_t>(plan_.sizes.size()) - 1;
  const Lanes lanes{last, width};
  // Every load comes before the first store: see FindOverwritten.
  const std::vector<Emitted> values = e.Nodes(plan_, wanted_, at, lanes, overwritten_);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    llvm::Value* base = e.arg(static_cast<int64_t>(overwritten_.size() + o));
    e.Store(outputs_[o]->shape().dtype(), base, output_form_, at, lanes, values[o]);
  }
}

void LoopKernel::EmitLine(KernelBuilder& e, std::vector<llvm::Value*>& at, llvm::Value* first,
                          llvm::Value* last) {
  const auto point = [&](llvm::Value* i, int width) {
    at.push_back(i);
    EmitPoint(e, at, width);
    at.pop_back();
  };
  if (FitsVectors()) first = e.Loop(first, last, width_, [&](llvm::Value* i) { point(i, width_); });
  if (!FitsVectors() || range_rank_ == 0 || request_.generic != nullptr ||
      plan_.sizes.back() % width_ != 0) {
    e.Loop(first, last, 1, [&](llvm::Value* i) { point(i, 1); });
  }
}

void LoopKernel::EmitNest(KernelBuilder& e, std::vector<llvm::Value*>& at) {
  const std::size_t variable = at.size();
  if (variable + 1 == plan_.sizes.size())
    return EmitLine(e, at, e.Index(0), e.Number(plan_.sizes.back()));
  e.Loop(e.Index(0), e.Number(plan_.sizes[variable]), 1, [&](llvm::Value* i) {
    at.push_back(i);
    EmitNest(e, at);
    at.pop_back();
  });
}

void LoopKernel::Emit() {
  KernelBuilder e(*module_, request_.name,
                  static_cast<int64_t>(overwritten_.size() + outputs_.size()), request_.generic);
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

absl::StatusOr<KernelShape> EmitLoopKernel(llvm::Module* module, const KernelRequest& request) {
  return LoopKernel(module, request).Run();
}

}  // namespace lazuli::cpu
