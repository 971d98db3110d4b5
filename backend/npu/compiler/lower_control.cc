// Loops, branches and calls: scalar code of the sequencer around the operations of bodies. What is
// carried lies in arrays; everything is idle where control flow divides or joins.

#include <algorithm>

#include "backend/npu/compiler/compile.h"
#include "backend/npu/compiler/emit.h"
#include "backend/npu/compiler/lowering.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {
namespace {

constexpr int kPredicate = 1, kNumber = 2;  // registers

}  // namespace

Lowering::Views Lowering::LowerCalled(const hlo::Computation& computation,
                                      absl::Span<const Views> arguments, absl::Status& status) {
  for (const hlo::Instruction* parameter : computation.parameters())
    values_[parameter] = arguments[static_cast<std::size_t>(parameter->parameter_number())];
  status.Update(LowerBody(computation));
  return status.ok() ? values_.at(computation.root()) : Views{};
}

Lowering::Views Lowering::NewArrays(const Shape& shape) {
  Views views;
  ForEachLeaf(shape, [&](const Shape& leaf) {
    const Type type = TypeOf(leaf.dtype()).value_or(Type::kU8);
    views.push_back(leaf.num_elements() > 0 ? Temporary(type, leaf.dims())
                                            : DenseView(-1, type, leaf.dims()));
  });
  return views;
}

// `from` may be views of `to`: what would be overwritten before it is read is copied first.
void Lowering::Assign(Views from, const Views& to) {
  auto same = [&](std::size_t l) { return from[l].array == to[l].array && from[l].Dense(); };
  for (std::size_t l = 0; l < from.size(); ++l) {
    bool other = false;
    for (const View& target : to)
      other = other || (target.array >= 0 && target.array == from[l].array);
    if (!other || same(l) || to[l].array < 0) continue;
    const View copy = Temporary(from[l].type, from[l].dims);
    EmitMove(from[l], copy, b_);
    from[l] = copy;
  }
  for (std::size_t l = 0; l < from.size(); ++l) {
    if (to[l].array >= 0 && !same(l)) EmitMove(from[l], to[l], b_);
  }
}

void Lowering::LoadScalars(absl::Span<const View> scalars, absl::Span<const int> registers) {
  b_.NextStage();
  std::vector<int> buffers;
  for (const View& scalar : scalars) {
    buffers.push_back(b_.AddBuffer("scalar", TypeBytes(scalar.type)));
    b_.Load(TileBuilder::Spm(buffers.back()), {1}, TileBuilder::Dram(scalar, 0), {1}, {1},
            TypeBytes(scalar.type));
  }
  b_.Barrier();
  for (std::size_t s = 0; s < scalars.size(); ++s) {
    TileOp load{Op::kLds, Queue::kSq, scalars[s].type};
    load.from[0] = b_.Reaching(TileBuilder::Spm(buffers[s]), {1}, {1}, TypeBytes(scalars[s].type));
    load.rd = registers[s];
    b_.Add(load);
  }
  b_.NextStage();
}

absl::Status Lowering::LowerWhile(const hlo::Instruction& i) {
  const Views state = NewArrays(i.shape());
  Assign(values_.at(i.operand(0)), state);
  const int again = b_.NewLabel(), done = b_.NewLabel();
  absl::Status status;
  b_.Label(again);
  const Views predicate = LowerCalled(*i.called()[0], {{state}}, status);
  LAZULI_RETURN_IF_ERROR(status);
  b_.SetOrigin(i);
  LoadScalars(predicate, {kPredicate});
  b_.Branch(Op::kBeq, kPredicate, 0, done);
  const Views next = LowerCalled(*i.called()[1], {{state}}, status);
  LAZULI_RETURN_IF_ERROR(status);
  b_.SetOrigin(i);
  Assign(next, state);
  b_.Barrier();
  b_.Branch(Op::kJmp, 0, 0, again);
  b_.Label(done);
  values_[&i] = state;
  return absl::OkStatus();
}

absl::Status Lowering::LowerConditional(const hlo::Instruction& i) {
  const Views result = NewArrays(i.shape());
  const auto branches = static_cast<int>(i.called().size());
  const bool by_pred = i.operand(0)->shape().dtype() == DType::kPred;
  const int end = b_.NewLabel();
  std::vector<int> labels;
  LoadScalars({ValueOf(*i.operand(0))}, {kPredicate});
  // The last one is also for numbers of none. Of a predicate the first one is for true.
  for (int b = 0; b + 1 < branches; ++b) {
    labels.push_back(b_.NewLabel());
    b_.Scalar(Op::kMovi, kNumber, 0, by_pred ? 1 : b);
    b_.Branch(Op::kBeq, kPredicate, kNumber, labels.back());
  }
  absl::Status status;
  for (int b = branches - 1; b >= 0; --b) {
    if (b + 1 < branches) b_.Label(labels[static_cast<std::size_t>(b)]);
    const Views value = LowerCalled(*i.called()[static_cast<std::size_t>(b)],
                                    {values_.at(i.operand(b + 1))}, status);
    LAZULI_RETURN_IF_ERROR(status);
    b_.SetOrigin(i);
    Assign(value, result);
    b_.Barrier();
    if (b > 0) b_.Branch(Op::kJmp, 0, 0, end);
  }
  b_.Label(end);
  values_[&i] = result;
  return absl::OkStatus();
}

absl::Status Lowering::LowerCall(const hlo::Instruction& i) {
  std::vector<Views> arguments;
  for (const hlo::Instruction* operand : i.operands()) arguments.push_back(values_.at(operand));
  absl::Status status;
  values_[&i] = LowerCalled(*i.to_apply(), arguments, status);
  return status;
}

// Leaves in kOffset the bytes from an array's beginning to the slice of `sizes` at these starts,
// which are moved so that it fits.
void Lowering::ComputeOffset(const View& array, absl::Span<hlo::Instruction* const> starts,
                             absl::Span<const int64_t> sizes) {
  constexpr int kFirst = kOffset + 1;
  b_.NextStage();
  b_.Scalar(Op::kMovi, kOffset, 0, array.offset * TypeBytes(array.type));
  std::vector<std::size_t> moving;  // dims that the slice does not fill
  for (std::size_t d = 0; d < starts.size(); ++d) {
    if (array.dims[d] != sizes[d]) moving.push_back(d);
  }
  constexpr std::size_t kAtOnce = kScalarRegisters - kFirst + 1;
  for (std::size_t first = 0; first < moving.size(); first += kAtOnce) {
    std::vector<View> scalars;
    std::vector<int> registers;
    for (std::size_t m = first; m < std::min(moving.size(), first + kAtOnce); ++m) {
      scalars.push_back(ValueOf(*starts[moving[m]]));
      registers.push_back(kFirst + static_cast<int>(m - first));
    }
    LoadScalars(scalars, registers);
    for (std::size_t s = 0; s < scalars.size(); ++s) {
      const std::size_t d = moving[first + s];
      b_.Scalar(Op::kMax, registers[s], registers[s], 0);
      b_.Scalar(Op::kMin, registers[s], registers[s], array.dims[d] - sizes[d]);
      b_.Scalar(Op::kMul, registers[s], registers[s], array.strides[d] * TypeBytes(array.type));
      b_.AddRegisters(kOffset, kOffset, registers[s]);
    }
  }
  b_.NextStage();
}

void Lowering::LowerDynamicSlice(const hlo::Instruction& i) {
  View from = Dense(ValueOf(*i.operand(0)));
  const View result = NewArray(i);
  Set(i, result);
  ComputeOffset(from, i.operands().subspan(1), i.shape().dims());
  from.dims = result.dims;
  from.offset = 0;
  EmitMove(from, result, b_, kOffset, 0);
}

// Whether nobody reads the array behind `by` that is its operand: then it may be changed in place.
bool Lowering::MayOverwrite(const View& view, const hlo::Instruction& by) const {
  if (view.array < 0 || !view.Dense() ||
      b_.program().arrays[static_cast<std::size_t>(view.array)].kind != SymbolKind::kBss)
    return false;
  // A part of a tuple is read by those who take it out.
  const auto reads = [&](const hlo::Instruction& user, const Views& views) {
    if (user.opcode() != hlo::Opcode::kGetTupleElement) return true;
    const auto first =
        LeavesBefore(user.operand(0)->shape(), user.attrs_as<hlo::TupleIndexAttrs>().index);
    for (int64_t leaf = first; leaf < first + LeafCount(user.shape()); ++leaf) {
      if (views[static_cast<std::size_t>(leaf)].array == view.array) return true;
    }
    return false;
  };
  for (const auto& [instruction, views] : values_) {
    const bool here = std::any_of(views.begin(), views.end(),
                                  [&](const View& other) { return other.array == view.array; });
    if (!here) continue;
    if (instruction->IsRoot()) return false;
    for (const hlo::Instruction* user : instruction->users()) {
      if (user == &by ? by.operand(0) != instruction || by.operand(1) == instruction
                      : !values_.contains(user) && reads(*user, views))
        return false;
    }
  }
  return true;
}

void Lowering::LowerDynamicUpdateSlice(const hlo::Instruction& i) {
  const View update = ValueOf(*i.operand(1)), old = ValueOf(*i.operand(0));
  const bool in_place = !results_.contains(&i) && MayOverwrite(old, i);
  View result = in_place ? old : NewArray(i);
  if (!in_place) EmitMove(old, result, b_);
  Set(i, result);
  if (update.elements() == 0) return;
  ComputeOffset(result, i.operands().subspan(2), update.dims);
  result.dims = update.dims;
  result.offset = 0;
  EmitMove(update, result, b_, 0, kOffset);
}

}  // namespace lazuli::npu
