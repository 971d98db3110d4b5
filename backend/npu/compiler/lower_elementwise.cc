// Elementwise instructions, and reductions of them: trees of instructions as one expression.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/reductions.h"
#include "ir/hlo/monoid.h"

namespace lazuli::npu {

using hlo::Opcode;

// Makes the nodes of an instruction and of what is inlined into it.
class ExpressionOf {
 public:
  ExpressionOf(Lowering& lowering, KernelMaker& maker) : lowering_(lowering), maker_(maker) {}

  ValueNodes Node(const hlo::Instruction& i) {
    if (const auto at = nodes_.find(&i); at != nodes_.end()) return at->second;
    if (lowering_.deferred_.contains(&i)) lowering_.LowerDeferred(i);
    const ValueNodes node =
        lowering_.inlined_.contains(&i) ? Computed(i) : maker_.Stream(Shaped(i));
    nodes_[&i] = node;
    return node;
  }
  void Give(const hlo::Instruction& i, ValueNodes node) { nodes_[&i] = node; }
  ValueNodes Computed(const hlo::Instruction& i) {
    std::vector<ValueNodes> operands;
    for (const hlo::Instruction* operand : i.operands()) operands.push_back(Node(*operand));
    return AddElementwise(i, operands, maker_.kernel.expression);
  }

 private:
  // Scalars of select and clamp stand for arrays.
  View Shaped(const hlo::Instruction& i) {
    const View& view = lowering_.ValueOf(i);
    if (view.dims.size() == maker_.kernel.dims.size()) return view;
    return BroadcastView(view, maker_.kernel.dims, {});
  }

  Lowering& lowering_;
  KernelMaker& maker_;
  std::unordered_map<const hlo::Instruction*, ValueNodes> nodes_;
};

// A product in the tree of `root` that is not made yet.
const hlo::Instruction* Lowering::FusedProduct(const hlo::Instruction& root) const {
  std::vector<const hlo::Instruction*> todo{&root};
  std::unordered_set<const hlo::Instruction*> seen;  // a square has one operand twice
  while (!todo.empty()) {
    const hlo::Instruction* i = todo.back();
    todo.pop_back();
    for (const hlo::Instruction* operand : i->operands()) {
      if (deferred_.contains(operand) && SameDims(operand->shape(), root.shape())) return operand;
      if (inlined_.contains(operand) && seen.insert(operand).second) todo.push_back(operand);
    }
  }
  return nullptr;
}

void Lowering::LowerDeferred(const hlo::Instruction& i) {
  deferred_.erase(&i);
  LowerProduct(i, nullptr);
}

void Lowering::LowerElementwise(const hlo::Instruction& i) {
  KernelMaker maker(b_.program(), i.shape().dims());
  ExpressionOf expression(*this, maker);
  const hlo::Instruction* const product = IsWide(i.shape().dtype()) ? nullptr : FusedProduct(i);
  if (product != nullptr) {
    View sums = DenseView(-1, *TypeOf(product->shape().dtype()), i.shape().dims());
    maker.kernel.loads.push_back({sums, -1});
    deferred_.erase(product);
    expression.Give(*product, {maker.kernel.expression.Load(0, sums.type)});
  }
  maker.kernel.root = expression.Computed(i);
  maker.kernel.result = NewArray(i);
  Set(i, maker.kernel.result);
  if (product == nullptr) return EmitVectorKernel(std::move(maker.kernel), b_);
  BoxKernel kernel(std::move(maker.kernel), b_);
  LowerProduct(*product, &kernel);
}

Reduction ReductionOf(Opcode monoid, DType dtype) {
  const bool pred = dtype == DType::kPred;
  switch (monoid) {
    case Opcode::kAdd:
      return pred ? Reduction::kOr : Reduction::kSum;
    case Opcode::kMultiply:
      return pred ? Reduction::kAnd : Reduction::kProd;
    case Opcode::kMaximum:
      return pred ? Reduction::kOr : Reduction::kMax;
    case Opcode::kMinimum:
      return pred ? Reduction::kAnd : Reduction::kMin;
    case Opcode::kAnd:
      return Reduction::kAnd;
    default:
      return Reduction::kOr;
  }
}

std::optional<std::string> WhyNoReduction(const hlo::Instruction& reduce) {
  if (reduce.operand_count() != 2) return "a reduction of several arrays at once";
  if (!Computes(reduce.shape().dtype())) return "a reduction of other types";
  const std::optional<Opcode> monoid = hlo::MonoidOf(*reduce.to_apply());
  if (!monoid || *monoid == Opcode::kXor)
    return "a reduction by other than sum, product, maximum, minimum, and, or";
  return std::nullopt;
}

bool IsIdentity(const hlo::Instruction& init, Opcode monoid) {
  return init.IsConstant() &&
         init.literal().BitsEqual(hlo::IdentityOf(monoid, init.shape().dtype()));
}

namespace {

// The reducer's operation on two nodes of this type.
int Joined(Opcode monoid, DType dtype, int x, int y, Expression& e) {
  const Reduction reduction = ReductionOf(monoid, dtype);
  return e.Op(JoiningMicro(reduction), ArithmeticOf(dtype), x, y);
}

}  // namespace

void Lowering::LowerReduce(const hlo::Instruction& i) {
  const hlo::Instruction &operand = *i.operand(0), &init = *i.operand(1);
  const DType dtype = i.shape().dtype();
  const Opcode monoid = *hlo::MonoidOf(*i.to_apply());
  View result = NewArray(i);
  Set(i, result);
  if (operand.shape().num_elements() == 0)
    return EmitMove(BroadcastView(ValueOf(init), i.shape().dims(), {}), result, b_);

  KernelMaker maker(b_.program(), operand.shape().dims());
  int root = ExpressionOf(*this, maker).Node(operand).low;
  Expression& e = maker.kernel.expression;
  // The unit compares signed numbers: those without a sign are turned about the middle.
  const bool turned =
      dtype == DType::kU32 && (monoid == Opcode::kMaximum || monoid == Opcode::kMinimum);
  if (turned) root = e.Op(Micro::kXor, kSigned, root, e.Literal(0x80000000, kSigned));
  const bool has_init = !IsIdentity(init, monoid);
  // Floats of 16 bits are rounded once, behind all of it.
  Type partial_type = result.type;
  if (has_init && partial_type == Type::kBf16) partial_type = Type::kF32;
  View partial = has_init || turned ? Temporary(partial_type, i.shape().dims()) : result;

  maker.kernel.root = {root};
  maker.kernel.reduction = ReductionOf(monoid, dtype);
  View spread{partial.array, partial.type, partial.offset, maker.kernel.dims,
              Dims(maker.kernel.dims.size(), 0)};
  const auto& reduced = i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  for (std::size_t d = 0, kept = 0; d < spread.dims.size(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) == reduced.end())
      spread.strides[d] = partial.strides[kept++];
  }
  maker.kernel.result = spread;
  EmitVectorKernel(std::move(maker.kernel), b_);
  if (!has_init && !turned) return;

  KernelMaker last(b_.program(), i.shape().dims());
  Expression& f = last.kernel.expression;
  int total = last.Stream(partial).low;
  if (turned) total = f.Op(Micro::kXor, kUnsigned, total, f.Literal(0x80000000, kUnsigned));
  if (has_init) {
    const View start = BroadcastView(ValueOf(init), i.shape().dims(), {});
    total = Joined(monoid, dtype, last.Stream(start).low, total, f);
  }
  last.kernel.root = {total};
  last.kernel.result = result;
  EmitVectorKernel(std::move(last.kernel), b_);
}

}  // namespace lazuli::npu
