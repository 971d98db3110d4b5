#include "backend/npu/compiler/lowering.h"

#include <algorithm>
#include <utility>

#include "backend/npu/compiler/compile.h"
#include "backend/npu/compiler/reductions.h"
#include "backend/npu/sim/numerics.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

// Computed by whoever reads it: its only reader computes with the same elements.
bool InlinedInto(const hlo::Instruction& i) {
  if (!i.IsElementwise() || i.IsRoot() || i.users().size() != 1) return false;
  const hlo::Instruction& user = *i.users()[0];
  if (user.opcode() == Opcode::kReduce) return user.operand(0) == &i && !WhyNoReduction(user);
  return user.IsElementwise() && SameDims(user.shape(), i.shape());
}

bool HasElements(const Shape& shape) {
  bool has = false;
  ForEachLeaf(shape, [&](const Shape& leaf) { has = has || leaf.num_elements() > 0; });
  return has;
}

// A product whose only reader computes with its elements, which may be while they are in the scratchpad.
bool MayBeFused(const hlo::Instruction& i) {
  if (i.opcode() != Opcode::kDot && i.opcode() != Opcode::kConvolution) return false;
  if (i.IsRoot() || i.users().size() != 1 || i.shape().num_elements() == 0) return false;
  if (i.operand(0)->shape().num_elements() == 0 || i.operand(1)->shape().num_elements() == 0)
    return false;
  const hlo::Instruction& user = *i.users()[0];
  if (!user.IsElementwise() || user.opcode() == Opcode::kCopy || !SameDims(user.shape(), i.shape()))
    return false;
  if (i.opcode() == Opcode::kConvolution)
    return !i.attrs_as<hlo::ConvolutionAttrs>().window.empty() && i.shape().rank() <= 4;
  const auto& attrs = i.attrs_as<hlo::DotAttrs>();
  const auto batch = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  const auto contracted = static_cast<int64_t>(attrs.lhs_contracting_dims.size());
  return i.operand(0)->shape().rank() == batch + contracted + 1 &&
         i.operand(1)->shape().rank() == batch + contracted + 1;
}

// A product is done together with the elementwise instructions that read it.
std::unordered_set<const hlo::Instruction*> ReadersOfProducts(const hlo::Computation& computation) {
  std::unordered_set<const hlo::Instruction*> readers;
  for (const auto& i : computation.instructions()) {
    if (!MayBeFused(*i)) continue;
    const hlo::Instruction* reader = i->users()[0];
    while (readers.insert(reader).second && InlinedInto(*reader) &&
           reader->users()[0]->IsElementwise())
      reader = reader->users()[0];
  }
  return readers;
}

}  // namespace

std::string OriginOf(const hlo::Instruction& i) {
  const hlo::Metadata& m = i.metadata();
  std::string name = Str(OpcodeText(i.opcode()), " ", i.name());
  if (!m.op_name.empty()) name += Str(" ", m.op_name);
  if (const std::string place = m.place(); !place.empty()) name += Str(" (", place, ")");
  return name;
}

View ConstantView(const Literal& literal, TileBuilder& builder) {
  const Type type = *TypeOf(literal.shape().dtype());
  const int array =
      builder.AddConstant(type, literal.shape().dims(),
                          {literal.raw(), static_cast<std::size_t>(literal.shape().byte_size())});
  return DenseView(array, type, literal.shape().dims());
}

ValueNodes KernelMaker::Stream(const View& view) {
  const TileArray& array = program_.arrays[static_cast<std::size_t>(view.array)];
  Expression& e = kernel.expression;
  bool repeats = true;
  for (std::size_t i = 0; i < view.dims.size(); ++i)
    repeats = repeats && (view.dims[i] == 1 || view.strides[i] == 0);
  if (repeats && array.kind == SymbolKind::kConst) {  // a number of the program
    const std::byte* at = array.data.data() + view.offset * TypeBytes(view.type);
    const uint64_t bits = LoadBits(view.type, at);
    if (view.type == Type::kS64)
      return {e.Literal(static_cast<uint32_t>(bits), kUnsigned),
              e.Literal(static_cast<uint32_t>(bits >> 32), kUnsigned)};
    if (view.type == Type::kBf16) return {e.Literal(static_cast<uint32_t>(bits << 16), kFloats)};
    const int type = view.type == Type::kF32   ? kFloats
                     : view.type == Type::kU32 ? kUnsigned
                                               : kSigned;
    return {e.Literal(static_cast<uint32_t>(NumberOf(view.type, bits)), type)};
  }
  if (view.type != Type::kS64) return {e.Load(Load(view, -1), view.type)};
  const int low = Load(view, 0), high = Load(view, 1);
  return {e.Load(low, Type::kU32), e.Load(high, Type::kU32)};
}

int KernelMaker::Load(const View& view, int part) {
  for (std::size_t l = 0; l < kernel.loads.size(); ++l) {
    const View& other = kernel.loads[l].view;
    if (kernel.loads[l].part == part && other.array == view.array && other.offset == view.offset &&
        other.strides == view.strides && other.type == view.type)
      return static_cast<int>(l);
  }
  kernel.loads.push_back({view, part});
  return static_cast<int>(kernel.loads.size()) - 1;
}

View Lowering::Temporary(Type type, absl::Span<const int64_t> dims) {
  return DenseView(b_.AddTemporary(type, dims), type, dims);
}

View Lowering::NewArray(const hlo::Instruction& i) {
  if (const auto at = results_.find(&i); at != results_.end()) return at->second;
  return Temporary(*TypeOf(i.shape().dtype()), i.shape().dims());
}

View Lowering::Dense(const View& view) {
  if (view.Dense()) return view;
  View copy = Temporary(view.type, view.dims);
  EmitMove(view, copy, b_);
  return copy;
}

absl::Status Lowering::LowerEntry(const hlo::Computation& entry) {
  int number = 0;
  for (const hlo::Instruction* parameter : entry.parameters()) {
    Views& views = values_[parameter];
    ForEachLeaf(parameter->shape(), [&](const Shape& leaf) {
      const Type type = *TypeOf(leaf.dtype());
      const int array = HasElements(leaf)
                            ? b_.AddArray(Str("p", number), SymbolKind::kIn, type, leaf.dims())
                            : -1;
      views.push_back(DenseView(array, type, leaf.dims()));
      ++number;
    });
  }
  std::vector<int> arrays;
  ForEachLeaf(entry.root()->shape(), [&](const Shape& leaf) {
    arrays.push_back(HasElements(leaf) ? b_.AddArray(Str("r", arrays.size()), SymbolKind::kOut,
                                                     *TypeOf(leaf.dtype()), leaf.dims())
                                       : -1);
  });
  // What is made for the result is made in its place.
  const hlo::Instruction& root = *entry.root();
  const auto made_in = [&](const hlo::Instruction& i, int array) {
    results_.emplace(&i, DenseView(array, *TypeOf(i.shape().dtype()), i.shape().dims()));
  };
  if (root.shape().IsArray()) made_in(root, arrays[0]);
  if (root.opcode() == Opcode::kTuple) {
    int leaf = 0;
    for (const hlo::Instruction* part : root.operands()) {
      if (part->shape().IsArray() && arrays[static_cast<std::size_t>(leaf)] >= 0)
        made_in(*part, arrays[static_cast<std::size_t>(leaf)]);
      leaf += static_cast<int>(LeafCount(part->shape()));
    }
  }
  LAZULI_RETURN_IF_ERROR(LowerBody(entry));
  b_.SetOrigin(root);
  const Views& views = values_.at(&root);
  for (std::size_t l = 0; l < arrays.size(); ++l) {
    const View target = DenseView(arrays[l], views[l].type, views[l].dims);
    if (arrays[l] >= 0 && (views[l].array != arrays[l] || !views[l].Dense()))
      EmitMove(views[l], target, b_);
  }
  if (link_flags_ >= 0) {
    // From the first operation to the last, so that nobody else lies there.
    b_.NextStage();
    const int64_t bytes = b_.program().buffers[static_cast<std::size_t>(link_flags_)].size;
    b_.Reserve(TileBuilder::Spm(link_flags_), bytes);
    std::vector<TileOp>& ops = b_.program().ops;
    ops.insert(ops.begin(), ops.back());
    ops.front().stage = ops[1].stage;
  }
  return absl::OkStatus();
}

// How many instructions follow each other in the tree of one that is inlined; 0: it is not. A tree
// that is too deep is cut.
int Lowering::InliningDepth(const hlo::Instruction& i) const {
  constexpr int kMostDepth = 100;
  if (!InlinedInto(i)) return 0;
  int depth = 1;
  for (const hlo::Instruction* operand : i.operands()) {
    const auto at = inlined_.find(operand);
    if (at != inlined_.end()) depth = std::max(depth, at->second + 1);
  }
  return depth <= kMostDepth ? depth : 0;
}

absl::Status Lowering::LowerBody(const hlo::Computation& computation) {
  const auto fused = ReadersOfProducts(computation);
  const std::vector<RowUnit> units = RowUnitsOf(
      computation, b_.config(), [&](const hlo::Instruction& i) { return fused.contains(&i); },
      InlinedInto);
  for (const RowUnit& unit : units) {
    for (const hlo::Instruction* i : unit.members) {
      if (!unit.is_group()) break;
      for (const hlo::Instruction* o : i->operands()) {
        if (!unit.dims.contains(o)) read_by_rows_.insert(o);
      }
    }
  }
  for (const RowUnit& unit : units)
    LAZULI_RETURN_IF_ERROR(unit.is_group() ? LowerRows(unit) : LowerOne(*unit.members[0]));
  return absl::OkStatus();
}

absl::Status Lowering::LowerOne(const hlo::Instruction& i) {
  if (i.opcode() == Opcode::kParameter) return absl::OkStatus();
  if (const int depth = InliningDepth(i); depth > 0 && !read_by_rows_.contains(&i)) {
    inlined_[&i] = depth;
    return absl::OkStatus();
  }
  if (MayBeFused(i) && TypesOf(i, b_.config())->out == i.shape().dtype()) {
    deferred_.insert(&i);
    return absl::OkStatus();
  }
  if (!HasElements(i.shape())) {  // of none of its leaves, if it has several
    values_[&i] = NewArrays(i.shape());
    return absl::OkStatus();
  }
  const auto original = originals_.find(&i);
  b_.SetOrigin(original == originals_.end() ? i : *original->second);
  return Lower(i);
}

absl::Status Lowering::LowerRows(const RowUnit& group) {
  RowStrip strip;
  for (int64_t start = 0; start < group.rows; start += group.strip) {
    const int64_t rows = std::min(group.strip, group.rows - start);
    if (start == 0 || rows != group.strip) strip = MakeRowStrip(group, rows, InlinedInto);
    if (start == 0) {
      for (const hlo::Instruction* i : strip.outputs) Set(*i, NewArray(*i));
    }
    LAZULI_RETURN_IF_ERROR(LowerStrip(group, strip, start, rows));
  }
  for (const hlo::Instruction* i : strip.views) LAZULI_RETURN_IF_ERROR(LowerOne(*i));
  return absl::OkStatus();
}

absl::Status Lowering::LowerStrip(const RowUnit& group, RowStrip& strip, int64_t start,
                                  int64_t rows) {
  const auto rows_of = [&](const View& view, int64_t dim) {
    Dims starts(view.dims.size(), 0), limits = view.dims;
    if (dim >= 0) {
      starts[static_cast<std::size_t>(dim)] = start;
      limits[static_cast<std::size_t>(dim)] = start + rows;
    }
    return SliceView(view, starts, limits, Dims(view.dims.size(), 1));
  };
  originals_ = {strip.originals.begin(), strip.originals.end()};
  b_.SetOrigin(*group.members[0]);
  for (std::size_t n = 0; n < strip.inputs.size(); ++n) {
    const RowStrip::Input& in = strip.inputs[n];
    View view = rows_of(ValueOf(*in.value), in.dim);
    // What several kernels read is read from DRAM once.
    if (in.dim >= 0 && in.readers > 1 && !view.Repeats()) {
      const View copy = Temporary(view.type, view.dims);
      EmitMove(view, copy, b_);
      view = copy;
    }
    Set(*strip.computation->parameters()[n], std::move(view));
  }
  const hlo::Instruction& root = *strip.computation->root();
  std::vector<View> targets;
  for (std::size_t n = 0; n < strip.outputs.size(); ++n) {
    const hlo::Instruction* const i = strip.outputs[n];
    targets.push_back(rows_of(ValueOf(*i), group.dims.at(i)));
    const hlo::Instruction* const own = root.operand(static_cast<int64_t>(n));
    if (own->users().size() == 1) results_.emplace(own, targets[n]);
  }
  for (const hlo::Instruction* i : strip.computation->PostOrder())
    LAZULI_RETURN_IF_ERROR(LowerOne(*i));
  for (std::size_t n = 0; n < targets.size(); ++n) {
    const hlo::Instruction* const own = root.operand(static_cast<int64_t>(n));
    b_.SetOrigin(*strip.outputs[n]);
    const View& made = ValueOf(*own);
    if (made.array != targets[n].array) EmitMove(made, targets[n], b_);
  }
  for (const auto& i : strip.computation->instructions()) {
    values_.erase(i.get());
    results_.erase(i.get());
    inlined_.erase(i.get());
  }
  originals_.clear();
  return absl::OkStatus();
}

void Lowering::LowerTuple(const hlo::Instruction& i) {
  Views views;
  for (const hlo::Instruction* part : i.operands()) {
    const Views& of = values_.at(part);
    views.insert(views.end(), of.begin(), of.end());
  }
  values_[&i] = std::move(views);
}

void Lowering::LowerTupleElement(const hlo::Instruction& i) {
  const int64_t index = i.attrs_as<hlo::TupleIndexAttrs>().index;
  const auto from = values_.at(i.operand(0)).begin() + LeavesBefore(i.operand(0)->shape(), index);
  values_[&i] = Views(from, from + LeafCount(i.shape()));
}

void Lowering::LowerView(const hlo::Instruction& i) { Set(i, *ViewOf(i, ValueOf(*i.operand(0)))); }

// A change of layout alone, or elements that are computed where they are.
void Lowering::LowerCopy(const hlo::Instruction& i) {
  if (std::optional<View> view = ViewOf(i, ValueOf(*i.operand(0))))
    Set(i, *std::move(view));
  else
    LowerElementwise(i);
}

}  // namespace lazuli::npu
