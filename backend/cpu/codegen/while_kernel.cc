// Loops over state that fits registers: elementwise in one array space, with scalars beside it that
// decide how long it goes on.
//
// The body holds one `while` over a flat tuple, elementwise work that makes its first state and
// elementwise work on its last. Leaves of the state with the dims of the space are vectors, leaves
// of few elements one scalar register for each; these may depend on each other only, so that every
// piece of the space counts its iterations alike. Pieces are whole vectors: the last one starts
// where it still fits, and makes some elements for the second time.
#include <algorithm>
#include <bit>

#include "backend/cpu/codegen/element_ops.h"
#include "backend/cpu/codegen/kernel_builder.h"
#include "backend/cpu/codegen/kernel_emitters.h"
#include "ir/support/check.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Elements that a leaf beside the space may have, and all of them together.
constexpr int64_t kSmallLeaf = 16, kSmallState = 64;
// Iterations that the cost of a piece is estimated with.
constexpr int64_t kTypicalTrips = 16;
// Vector registers for the state; the rest is for what is computed.
constexpr int64_t kStateRegisters = 12;

class WhileKernel {
 public:
  WhileKernel(const KernelRequest& request, const Instruction& loop)
      : request_(request),
        loop_(loop),
        outputs_(Outputs(request.body)),
        params_(request.body.parameters().size()) {}

  bool Plan();
  KernelShape Emit(llvm::Module* module);

 private:
  // One register of the state: an element of a leaf, or (-1) the leaf's part of the space.
  struct StateSlot {
    int64_t leaf;
    int64_t element;
    bool is_space() const { return element < 0; }
    DType dtype = DType::kF32;
    int32_t first = -1, next = -1;  // nodes
  };

  bool ChooseSpace();
  bool PlanInto(bool all_small);
  bool Resolve();
  bool UniformWhereNeeded() const;
  bool IsSpace(const Shape& shape) const { return !all_small_ && SameDims(shape, space_); }
  Point PointOf(const Shape& shape, int64_t element) const;
  int64_t SlotOf(int64_t leaf, int64_t element) const;
  void ChooseWidth();
  void EmitPiece(KernelBuilder& e, llvm::Value* item);
  void StoreOutputs(KernelBuilder& e, llvm::Value* item, absl::Span<llvm::Value* const> at,
                    Lanes lanes, const std::vector<Emitted>& values);

  const KernelRequest& request_;
  const Instruction& loop_;
  std::vector<const Instruction*> outputs_;
  std::size_t params_;
  Shape space_;
  bool all_small_ = false;
  BodyPlan plan_;
  Affine space_form_;
  std::vector<StateSlot> slots_;
  std::vector<int64_t> given_slots_;          // by node: the slot that it is
  std::vector<std::vector<int32_t>> wanted_;  // by output: its node, or one for each element
  int32_t condition_ = -1;
  std::size_t inits_end_ = 0, condition_end_ = 0, body_end_ = 0;
  int width_ = 1;
  std::vector<uint8_t> overwritten_;
};

// The indices of one element, or of the whole space.
Point WhileKernel::PointOf(const Shape& shape, int64_t element) const {
  const std::size_t rank = plan_.sizes.size();
  if (element < 0) {
    Dims variables;
    for (int64_t d = 0; d < shape.rank(); ++d) variables.push_back(d);
    return IdentityPoint(variables, static_cast<int64_t>(rank));
  }
  Point point(static_cast<std::size_t>(shape.rank()));
  for (int64_t d = shape.rank(); d-- > 0;) {
    point[static_cast<std::size_t>(d)] = {element % shape.dim(d), Dims(rank, 0)};
    element /= shape.dim(d);
  }
  return point;
}

int64_t WhileKernel::SlotOf(int64_t leaf, int64_t element) const {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].leaf == leaf && slots_[s].element == element) return static_cast<int64_t>(s);
  }
  return -1;
}

bool WhileKernel::ChooseSpace() {
  space_ = loop_.shape().tuple()[0];
  for (const Shape& leaf : loop_.shape().tuple()) {
    if (!leaf.IsArray() || leaf.has_layout() || leaf.num_elements() == 0 ||
        !SupportsRegister(leaf.dtype()))
      return false;
    if (leaf.num_elements() > space_.num_elements()) space_ = leaf;
  }
  return true;
}

// Nodes in the order in which they run: first state, condition, next state, outputs.
bool WhileKernel::PlanInto(bool all_small) {
  all_small_ = all_small;
  plan_ = {};
  slots_.clear();
  wanted_.clear();
  const Dims one{1};
  const absl::Span<const int64_t> sizes = all_small ? one : space_.dims();
  plan_.sizes.assign(sizes.begin(), sizes.end());
  if (plan_.sizes.empty()) plan_.sizes.push_back(1);
  const auto& leaves = loop_.shape().tuple();
  int64_t small_elements = 0;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const auto leaf = static_cast<int64_t>(k);
    if (IsSpace(leaves[k])) {
      slots_.push_back({.leaf = leaf, .element = -1, .dtype = leaves[k].dtype()});
      continue;
    }
    const int64_t count = leaves[k].num_elements();
    small_elements += count;
    if (count > kSmallLeaf || small_elements > kSmallState) return false;
    for (int64_t e = 0; e < count; ++e)
      slots_.push_back({.leaf = leaf, .element = e, .dtype = leaves[k].dtype()});
  }
  Planner planner(plan_);
  const auto add = [&](const Instruction* value, int64_t element) {
    return planner.Add(value, PointOf(value->shape(), element));
  };
  for (StateSlot& slot : slots_)
    slot.first = add(loop_.operand(0)->operand(slot.leaf), slot.element);
  inits_end_ = plan_.nodes.size();
  condition_ = add(loop_.called()[0]->root(), 0);
  condition_end_ = plan_.nodes.size();
  for (StateSlot& slot : slots_)
    slot.next = add(loop_.called()[1]->root()->operand(slot.leaf), slot.element);
  body_end_ = plan_.nodes.size();
  for (const Instruction* output : outputs_) {
    std::vector<int32_t> nodes;
    const int64_t count = IsSpace(output->shape()) ? 1 : output->shape().num_elements();
    if (count > kSmallLeaf) return false;
    for (int64_t e = 0; e < count; ++e)
      nodes.push_back(add(output, IsSpace(output->shape()) ? -1 : e));
    wanted_.push_back(std::move(nodes));
  }
  space_form_ =
      Offset(Shape(DType::kF32, plan_.sizes), PointOf(Shape(DType::kF32, plan_.sizes), -1),
             static_cast<int64_t>(plan_.sizes.size()));
  return Resolve() && UniformWhereNeeded();
}

// Which register each element of the state is that the plan reads.
bool WhileKernel::Resolve() {
  given_slots_.assign(plan_.nodes.size(), -1);
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    const PlanNode& node = plan_.nodes[n];
    if (node.kind != PlanNode::Kind::kGiven) continue;
    const auto leaf = node.instruction->attrs_as<hlo::TupleIndexAttrs>().index;
    const bool is_constant =
        std::all_of(node.form.coefficients.begin(), node.form.coefficients.end(),
                    [](int64_t c) { return c == 0; });
    if (IsSpace(node.instruction->shape())) {
      if (!(node.form == space_form_)) return false;
      given_slots_[n] = SlotOf(leaf, -1);
    } else {
      if (!is_constant) return false;
      given_slots_[n] = SlotOf(leaf, node.form.constant);
    }
    if (given_slots_[n] < 0) return false;
  }
  return true;
}

// Scalars must not depend on where in the space they are computed.
bool WhileKernel::UniformWhereNeeded() const {
  std::vector<bool> varies(plan_.nodes.size());
  for (std::size_t n = 0; n < plan_.nodes.size(); ++n) {
    const PlanNode& node = plan_.nodes[n];
    varies[n] =
        std::any_of(node.form.coefficients.begin(), node.form.coefficients.end(),
                    [](int64_t c) { return c != 0; }) ||
        (given_slots_[n] >= 0 && slots_[static_cast<std::size_t>(given_slots_[n])].is_space());
    for (int32_t operand : node.operands)
      varies[n] = varies[n] || varies[static_cast<std::size_t>(operand)];
  }
  const auto uniform = [&](int32_t node) { return !varies[static_cast<std::size_t>(node)]; };
  for (const StateSlot& slot : slots_) {
    if (!slot.is_space() && !(uniform(slot.first) && uniform(slot.next))) return false;
  }
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (!IsSpace(outputs_[o]->shape()) &&
        !std::all_of(wanted_[o].begin(), wanted_[o].end(), uniform))
      return false;
  }
  return uniform(condition_);
}

bool WhileKernel::Plan() {
  if (!ChooseSpace()) return false;
  const bool only_small = space_.num_elements() == 1;
  if ((only_small || !PlanInto(false)) && !PlanInto(true)) return false;
  std::vector<Affine*> forms{&space_form_};
  return MergeVariables(plan_, forms, 0, static_cast<int64_t>(plan_.sizes.size())) == 1;
}

void WhileKernel::ChooseWidth() {
  int64_t registers = 0;
  for (const StateSlot& slot : slots_) {
    if (slot.is_space()) registers += std::max(1, ir::ByteWidth(slot.dtype) / 4);
  }
  int64_t vectors = 4;
  while (vectors > 1 && vectors * registers > kStateRegisters) vectors /= 2;
  const int64_t most = std::min<int64_t>(request_.vector_width * vectors, plan_.sizes[0]);
  width_ = static_cast<int>(std::bit_floor(static_cast<uint64_t>(most)));
}

KernelShape WhileKernel::Emit(llvm::Module* module) {
  ChooseWidth();
  const int64_t size = plan_.sizes[0];
  KernelShape shape;
  shape.items = (size + width_ - 1) / width_;
  shape.grain = GrainFor(CostOf(plan_) * width_ * kTypicalTrips / 4);
  overwritten_.assign(params_, size % width_ == 0 ? 1 : 0);
  for (const PlanNode& node : plan_.nodes) {
    if (node.kind == PlanNode::Kind::kLoad && shape.items > 1 && !(node.form == space_form_))
      overwritten_[static_cast<std::size_t>(node.instruction->parameter_number())] = 0;
  }
  shape.in_place = overwritten_;
  shape.details = Str("while [", size, "] x", width_, " over ", slots_.size(), " values");
  if (module == nullptr) return shape;
  KernelBuilder e(*module, request_.name, static_cast<int64_t>(params_ + outputs_.size()));
  e.Loop(e.begin(), e.end(), 1, [&](llvm::Value* item) { EmitPiece(e, item); });
  e.Finish();
  return shape;
}

void WhileKernel::EmitPiece(KernelBuilder& e, llvm::Value* item) {
  const Lanes lanes{0, width_};
  llvm::Value* start =
      e.b().CreateBinaryIntrinsic(llvm::Intrinsic::smin, e.b().CreateNSWMul(item, e.Index(width_)),
                                  e.Index(plan_.sizes[0] - width_));
  const std::vector<llvm::Value*> at{start};
  std::vector<Emitted> values;
  values.reserve(plan_.nodes.size());
  const auto up_to = [&](std::size_t end) {
    e.NodesUpTo(end, plan_, values, at, lanes, overwritten_);
  };
  const auto registers = [&](int32_t StateSlot::* node) {
    KernelBuilder::State state;
    for (const StateSlot& slot : slots_) {
      const Emitted& value = values[static_cast<std::size_t>(slot.*node)];
      state.push_back(slot.is_space() ? e.Widen(value, width_) : value.value);
    }
    return state;
  };
  KernelBuilder::State now;
  e.set_given([&](const PlanNode& node) {
    const auto slot = static_cast<std::size_t>(given_slots_[values.size()]);
    LAZULI_CHECK(&node == &plan_.nodes[values.size()], "a node out of order");
    return Emitted{now[slot], !slots_[slot].is_space() || width_ == 1};
  });
  up_to(inits_end_);
  now = e.While(
      registers(&StateSlot::first),
      [&](const KernelBuilder::State& state) {
        now = state;
        up_to(condition_end_);
        return values[static_cast<std::size_t>(condition_)].value;
      },
      [&](const KernelBuilder::State& state) {
        now = state;
        up_to(body_end_);
        return registers(&StateSlot::next);
      });
  up_to(plan_.nodes.size());
  StoreOutputs(e, item, at, lanes, values);
}

void WhileKernel::StoreOutputs(KernelBuilder& e, llvm::Value* item,
                               absl::Span<llvm::Value* const> at, Lanes lanes,
                               const std::vector<Emitted>& values) {
  const auto store = [&](std::size_t o, std::size_t n, const Affine& form, Lanes here) {
    e.Store(outputs_[o]->shape().dtype(), e.arg(static_cast<int64_t>(params_ + o)), form, at, here,
            values[static_cast<std::size_t>(wanted_[o][n])]);
  };
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (IsSpace(outputs_[o]->shape())) store(o, 0, space_form_, lanes);
  }
  e.If(e.b().CreateICmpEQ(item, e.Index(0)), [&] {
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      if (IsSpace(outputs_[o]->shape())) continue;
      for (std::size_t n = 0; n < wanted_[o].size(); ++n)
        store(o, n, {static_cast<int64_t>(n), {0}}, {});
    }
  });
}

}  // namespace

const Instruction* FindLoop(const hlo::Computation& body) {
  for (const auto& i : body.instructions()) {
    if (i->opcode() == Opcode::kWhile) return i.get();
  }
  return nullptr;
}

bool SupportsWhile(const hlo::Computation& body) {
  return WhileKernel({body, "", 1}, *FindLoop(body)).Plan();
}

absl::StatusOr<KernelShape> EmitWhileKernel(llvm::Module* module, const KernelRequest& request) {
  WhileKernel kernel(request, *FindLoop(request.body));
  if (!kernel.Plan()) return Internal("cannot compile the loop ", FindLoop(request.body)->name());
  return kernel.Emit(module);
}

}  // namespace lazuli::cpu
