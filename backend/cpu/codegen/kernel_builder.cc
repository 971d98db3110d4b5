#include "backend/cpu/codegen/kernel_builder.h"

#include "llvm/IR/MDBuilder.h"

#include "backend/cpu/codegen/element_ops.h"
#include "ir/support/check.h"

namespace lazuli::cpu {

KernelBuilder::KernelBuilder(llvm::Module& module, const std::string& name, int64_t num_args,
                             const GenericForm* generic)
    : b_(module.getContext()), generic_(generic) {
  llvm::Type* pointer = b_.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b_.getVoidTy(), {pointer, b_.getInt64Ty(), b_.getInt64Ty()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function_));
  for (int64_t i = 0; i < num_args; ++i) {
    args_.push_back(b_.CreateLoad(
        pointer,
        b_.CreateConstInBoundsGEP1_64(pointer, function_->getArg(0), static_cast<uint64_t>(i))));
  }
  if (generic_ != nullptr) LoadNumbers(num_args);
  llvm::MDBuilder metadata(module.getContext());
  llvm::MDNode* scope =
      metadata.createAnonymousAliasScope(metadata.createAnonymousAliasScopeDomain(), "outputs");
  output_scope_ = llvm::MDNode::get(module.getContext(), {scope});
}

// They are the last argument.
void KernelBuilder::LoadNumbers(int64_t num_args) {
  llvm::Type* const i64 = b_.getInt64Ty();
  llvm::Value* const base = b_.CreateLoad(
      b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), function_->getArg(0),
                                                   static_cast<uint64_t>(num_args)));
  for (std::size_t k = 0; k < generic_->numbers().size(); ++k)
    numbers_.push_back(b_.CreateLoad(i64, b_.CreateConstInBoundsGEP1_64(i64, base, k)));
}

llvm::Value* KernelBuilder::Number(int64_t value) {
  if (generic_ == nullptr || (value >= -1 && value <= 1)) return Index(value);
  const std::optional<std::size_t> place = generic_->Find(value);
  LAZULI_CHECK(place.has_value(), "generic code asks for ", value,
               ", which its form does not have");
  return numbers_[*place];
}

llvm::Value* KernelBuilder::NumberAs(llvm::Type* type, int64_t value) {
  if (generic_ == nullptr) return llvm::ConstantInt::getSigned(type, value);
  llvm::Value* const scalar = b_.CreateTrunc(Number(value), type->getScalarType());
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? scalar : b_.CreateVectorSplat(vector->getNumElements(), scalar);
}

std::vector<llvm::Value*> KernelBuilder::LoopCarrying(
    llvm::Value* first, llvm::Value* last, int64_t step, absl::Span<llvm::Value* const> initial,
    absl::FunctionRef<std::vector<llvm::Value*>(llvm::Value*, absl::Span<llvm::Value* const>)>
        body) {
  State state{first};
  state.insert(state.end(), initial.begin(), initial.end());
  llvm::Value* next = nullptr;
  return While(
      state,
      [&](const State& now) {
        next = b_.CreateNSWAdd(now[0], Index(step));
        return b_.CreateICmpSLE(next, last);
      },
      [&](const State& now) {
        State after = body(now[0], absl::MakeConstSpan(now).subspan(1));
        after.insert(after.begin(), next);
        return after;
      });
}

llvm::Value* KernelBuilder::Loop(llvm::Value* first, llvm::Value* last, int64_t step,
                                 absl::FunctionRef<void(llvm::Value*)> body) {
  return LoopCarrying(first, last, step, {}, [&](llvm::Value* i, absl::Span<llvm::Value* const>) {
    body(i);
    return std::vector<llvm::Value*>();
  })[0];
}

KernelBuilder::State KernelBuilder::While(const State& initial,
                                          absl::FunctionRef<llvm::Value*(const State&)> condition,
                                          absl::FunctionRef<State(const State&)> body) {
  llvm::LLVMContext& context = b_.getContext();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* header = llvm::BasicBlock::Create(context, "while", function_);
  auto* inside = llvm::BasicBlock::Create(context, "body", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  State state;
  for (llvm::Value* value : initial) {
    llvm::PHINode* phi = b_.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, before);
    state.push_back(phi);
  }
  b_.CreateCondBr(condition(state), inside, after);
  b_.SetInsertPoint(inside);
  const State next = body(state);
  for (std::size_t k = 0; k < next.size(); ++k)
    llvm::cast<llvm::PHINode>(state[k])->addIncoming(next[k], b_.GetInsertBlock());
  b_.CreateBr(header);
  b_.SetInsertPoint(after);
  return state;
}

llvm::AllocaInst* KernelBuilder::Memory(llvm::Type* type, int64_t count) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  IrBuilder at_entry(&entry, entry.begin());
  return at_entry.CreateAlloca(type, Index(count));
}

void KernelBuilder::If(llvm::Value* condition, absl::FunctionRef<void()> body) {
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "then", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function_);
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  body();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

std::vector<llvm::Value*> KernelBuilder::Unflatten(llvm::Value* index,
                                                   absl::Span<const int64_t> sizes) {
  std::vector<llvm::Value*> result(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (d == 0) {
      result[d] = index;
    } else {
      result[d] = b_.CreateURem(index, Number(sizes[d]));
      index = b_.CreateUDiv(index, Number(sizes[d]));
    }
  }
  return result;
}

llvm::Value* KernelBuilder::Evaluate(const Affine& form, absl::Span<llvm::Value* const> at) {
  llvm::Value* sum = form.constant == 0 ? nullptr : Number(form.constant);
  for (std::size_t d = 0; d < at.size(); ++d) {
    const int64_t c = form.coefficients[d];
    if (c == 0) continue;
    llvm::Value* term = c == 1 ? at[d] : b_.CreateNSWMul(at[d], Number(c));
    sum = sum == nullptr ? term : b_.CreateNSWAdd(sum, term);
  }
  return sum == nullptr ? Index(0) : sum;
}

llvm::Value* KernelBuilder::LaneNumbers(llvm::Type* element, int width, int64_t factor) {
  const bool is_constant = generic_ == nullptr || (factor >= -1 && factor <= 1);
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < width; ++i)
    lanes.push_back(llvm::ConstantInt::getSigned(element, is_constant ? i * factor : i));
  llvm::Constant* const numbers = llvm::ConstantVector::get(lanes);
  return is_constant ? numbers : b_.CreateMul(numbers, NumberAs(numbers->getType(), factor));
}

Emitted KernelBuilder::Load(DType dtype, llvm::Value* base, const Affine& form,
                            absl::Span<llvm::Value* const> at, Lanes lanes, bool overwritten) {
  const int64_t step =
      lanes.width == 1 ? 0 : form.coefficients[static_cast<std::size_t>(lanes.variable)];
  if (IsComplex(dtype) && (step > 1 || step < -1))
    return GatherComplex(dtype, base, form, at, lanes, overwritten);
  llvm::Type* element = MemoryType(b_, dtype);
  const llvm::Align align = MemoryAlign(dtype);
  llvm::Value* offset = Evaluate(form, at);
  if (step == -1) offset = b_.CreateNSWSub(offset, Index(lanes.width - 1));
  llvm::Instruction* loaded;
  if (step == 0 || step == 1 || step == -1) {
    llvm::Type* type = MemoryType(b_, dtype, step == 0 ? 1 : lanes.width);
    loaded = b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(element, base, offset), align);
  } else {
    loaded = Gather(element, base, offset, lanes.width, step, align);
  }
  if (!overwritten) loaded->setMetadata(llvm::LLVMContext::MD_noalias, output_scope_);
  llvm::Value* value = FromMemory(b_, dtype, loaded);
  if (step == -1) {
    value = ForEachPart(b_, {value}, [&](absl::Span<llvm::Value* const> part) {
      return b_.CreateVectorReverse(part[0]);
    });
  }
  return {value, step == 0};
}

// Elements at offset, offset + step, ...
llvm::Instruction* KernelBuilder::Gather(llvm::Type* element, llvm::Value* base,
                                         llvm::Value* offset, int width, int64_t step,
                                         llvm::Align align) {
  const auto lanes = static_cast<unsigned>(width);
  llvm::Value* offsets =
      b_.CreateAdd(b_.CreateVectorSplat(lanes, offset), LaneNumbers(b_.getInt64Ty(), width, step));
  return b_.CreateMaskedGather(llvm::FixedVectorType::get(element, lanes),
                               b_.CreateInBoundsGEP(element, base, offsets), align);
}

Emitted KernelBuilder::GatherComplex(DType dtype, llvm::Value* base, const Affine& form,
                                     absl::Span<llvm::Value* const> at, Lanes lanes,
                                     bool overwritten) {
  const DType part = hlo::PartType(dtype);
  Affine doubled = form;
  doubled.constant *= 2;
  for (int64_t& c : doubled.coefficients) c *= 2;
  llvm::Value* re = Load(part, base, doubled, at, lanes, overwritten).value;
  ++doubled.constant;
  return {MakeComplex(b_, re, Load(part, base, doubled, at, lanes, overwritten).value), false};
}

void KernelBuilder::Store(DType dtype, llvm::Value* base, const Affine& form,
                          absl::Span<llvm::Value* const> at, Lanes lanes, Emitted value) {
  llvm::Value* address = b_.CreateInBoundsGEP(MemoryType(b_, dtype), base, Evaluate(form, at));
  llvm::Value* memory = ToMemory(b_, dtype, Widen(value, lanes.width));
  llvm::Instruction* store = b_.CreateAlignedStore(memory, address, MemoryAlign(dtype));
  store->setMetadata(llvm::LLVMContext::MD_alias_scope, output_scope_);
}

llvm::Value* KernelBuilder::Widen(Emitted value, int width) {
  if (!value.uniform || width == 1) return value.value;
  return ForEachPart(b_, {value.value}, [&](absl::Span<llvm::Value* const> part) {
    return b_.CreateVectorSplat(static_cast<unsigned>(width), part[0]);
  });
}

Emitted KernelBuilder::IndexOffset(const PlanNode& node, const std::vector<Emitted>& values,
                                   Lanes lanes) {
  const bool is_signed = IsSigned(node.instruction->operand(1)->shape().dtype());
  bool uniform = true;
  for (int32_t index : node.operands) uniform &= values[static_cast<std::size_t>(index)].uniform;
  llvm::Type* type = b_.getInt64Ty();
  if (!uniform && HasNarrowOffsets(*node.instruction)) type = b_.getInt32Ty();
  const std::vector<IndexComponent> components = IndexComponents(*node.instruction);
  llvm::Value* sum = nullptr;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const Emitted& index = values[static_cast<std::size_t>(node.operands[k])];
    llvm::Value* start = uniform ? index.value : Widen(index, lanes.width);
    const auto number = [&](int64_t n) { return NumberAs(start->getType(), n); };
    if (start->getType()->getScalarSizeInBits() < 64)
      start = b_.CreateIntCast(start, WithElement(start->getType(), b_.getInt64Ty()), is_signed);
    start = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, start, number(0));
    start = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, start, number(components[k].last));
    start = b_.CreateIntCast(start, WithElement(start->getType(), type), true);
    start = b_.CreateNSWMul(start, number(components[k].stride));
    sum = sum == nullptr ? start : b_.CreateNSWAdd(sum, start);
  }
  return {sum, uniform};
}

Emitted KernelBuilder::GatherNode(const PlanNode& node, const std::vector<Emitted>& values,
                                  absl::Span<llvm::Value* const> at, Lanes lanes,
                                  bool overwritten) {
  const DType dtype = node.instruction->shape().dtype();
  llvm::Type* element = MemoryType(b_, dtype);
  llvm::Value* base = arg(node.instruction->operand(0)->parameter_number());
  const Emitted start = IndexOffset(node, values, lanes);
  if (start.uniform) {
    return Load(dtype, b_.CreateInBoundsGEP(element, base, start.value), node.form, at, lanes,
                overwritten);
  }
  const int64_t step = node.form.coefficients[static_cast<std::size_t>(lanes.variable)];
  llvm::Type* index = start.value->getType()->getScalarType();
  base = b_.CreateInBoundsGEP(element, base, Evaluate(node.form, at));
  llvm::Value* offsets = b_.CreateNSWAdd(start.value, LaneNumbers(index, lanes.width, step));
  llvm::Instruction* loaded =
      b_.CreateMaskedGather(llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes.width)),
                            b_.CreateInBoundsGEP(element, base, offsets), MemoryAlign(dtype));
  if (!overwritten) loaded->setMetadata(llvm::LLVMContext::MD_noalias, output_scope_);
  return {FromMemory(b_, dtype, loaded), false};
}

Emitted KernelBuilder::Iota(const PlanNode& node, absl::Span<llvm::Value* const> at, Lanes lanes) {
  const Shape& shape = node.instruction->shape();
  // 32 bits convert to floats in vectors; 64 do not everywhere.
  llvm::Type* type = HasNarrowIota(*node.instruction) ? b_.getInt32Ty() : b_.getInt64Ty();
  llvm::Value* index = b_.CreateTrunc(Evaluate(node.form, at), type);
  const int64_t step =
      lanes.width == 1 ? 0 : node.form.coefficients[static_cast<std::size_t>(lanes.variable)];
  if (step != 0) {
    index = b_.CreateAdd(b_.CreateVectorSplat(static_cast<unsigned>(lanes.width), index),
                         LaneNumbers(type, lanes.width, step));
  }
  const DType dtype = shape.dtype();
  llvm::Type* target = WithElement(index->getType(), RegisterType(b_, dtype));
  if (!IsFloat(dtype)) return {b_.CreateIntCast(index, target, true), step == 0};
  return {RoundToNarrow(b_, dtype, b_.CreateSIToFP(index, target)), step == 0};
}

Emitted KernelBuilder::Node(const PlanNode& node, const std::vector<Emitted>& values,
                            absl::Span<llvm::Value* const> at, Lanes lanes,
                            absl::Span<const uint8_t> overwritten) {
  const hlo::Instruction& i = *node.instruction;
  switch (node.kind) {
    case PlanNode::Kind::kLoad: {
      const int64_t number = i.parameter_number();
      return Load(i.shape().dtype(), arg(number), node.form, at, lanes,
                  overwritten[static_cast<std::size_t>(number)] != 0);
    }
    case PlanNode::Kind::kGather:
      return GatherNode(
          node, values, at, lanes,
          overwritten[static_cast<std::size_t>(node.parameter()->parameter_number())] != 0);
    case PlanNode::Kind::kConstant:
      return {ScalarConstant(b_, i.literal()), true};
    case PlanNode::Kind::kIota:
      return Iota(node, at, lanes);
    case PlanNode::Kind::kGiven:
      return given_(node);
    case PlanNode::Kind::kOp:
      break;
  }
  bool uniform = true;
  for (int32_t operand : node.operands)
    uniform &= values[static_cast<std::size_t>(operand)].uniform;
  std::vector<llvm::Value*> operands;
  for (int32_t operand : node.operands) {
    const Emitted& value = values[static_cast<std::size_t>(operand)];
    operands.push_back(uniform ? value.value : Widen(value, lanes.width));
  }
  return {EmitElement(b_, i, operands), uniform};
}

void KernelBuilder::NodesUpTo(std::size_t end, const BodyPlan& plan, std::vector<Emitted>& values,
                              absl::Span<llvm::Value* const> at, Lanes lanes,
                              absl::Span<const uint8_t> overwritten) {
  for (std::size_t k = values.size(); k < end; ++k)
    values.push_back(Node(plan.nodes[k], values, at, lanes, overwritten));
}

std::vector<Emitted> KernelBuilder::Nodes(const BodyPlan& plan, absl::Span<const int32_t> wanted,
                                          absl::Span<llvm::Value* const> at, Lanes lanes,
                                          absl::Span<const uint8_t> overwritten) {
  std::vector<Emitted> values;
  values.reserve(plan.nodes.size());
  NodesUpTo(plan.nodes.size(), plan, values, at, lanes, overwritten);
  std::vector<Emitted> result;
  for (int32_t node : wanted) result.push_back(values[static_cast<std::size_t>(node)]);
  return result;
}

}  // namespace lazuli::cpu
