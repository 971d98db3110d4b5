#include "backend/npu/compiler/supported.h"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "backend/npu/compiler/expression.h"
#include "backend/npu/compiler/index_form.h"
#include "backend/npu/compiler/lower_collective.h"
#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/product.h"
#include "backend/npu/compiler/reductions.h"
#include "backend/npu/compiler/region.h"
#include "backend/npu/compiler/runs.h"
#include "backend/npu/compiler/window_kernel.h"
#include "ir/hlo/monoid.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

Refusal Op(std::string reason) { return {"unsupported-op", std::move(reason)}; }
Refusal DtypeOf(const Shape& shape, std::string_view unit) {
  return {"unsupported-dtype", Str(unit, " does not compute with ", DTypeText(shape.dtype()))};
}

// Everything can be stored that has elements of at most 8 bytes, and whose size is known and no more
// than the DRAM.
std::optional<Refusal> WhyNotStored(const Shape& shape, const Config& config) {
  std::optional<Refusal> refusal;
  if (!shape.IsArray() && !shape.IsTuple())
    return Refusal{"unsupported-dtype", "the device holds arrays only"};
  ForEachLeaf(shape, [&](const Shape& leaf) {
    if (!TypeOf(leaf.dtype()))
      refusal = {"unsupported-dtype", Str("the device does not store ", DTypeText(leaf.dtype()))};
    if (leaf.dynamic_dims() != 0)
      refusal = {"unsupported-shape", "the size is known only when the program runs"};
    else if (leaf.byte_size() > config.dram_bytes())
      refusal = {"unsupported-shape",
                 Str("an array of ", leaf.byte_size(), " bytes is larger than the DRAM (dram.mb)")};
  });
  return refusal;
}

std::optional<Refusal> WhyNotComputed(const hlo::Instruction& i, bool wide_too = false) {
  auto computes = [wide_too](const Shape& shape) {
    return Computes(shape.dtype()) || (wide_too && IsWide(shape.dtype()));
  };
  for (const hlo::Instruction* operand : i.operands()) {
    if (!computes(operand->shape())) return DtypeOf(operand->shape(), "the vector unit");
  }
  if (!computes(i.shape())) return DtypeOf(i.shape(), "the vector unit");
  return std::nullopt;
}

// What is no reduction of the vector unit is folded by expressions: in groups, if the order allows that.
std::optional<Refusal> WhyNotReduce(const hlo::Instruction& i) {
  if (!WhyNoReduction(i)) return WhyNotComputed(i);
  for (const hlo::Instruction* operand : i.operands()) {
    if (!Computes(operand->shape().dtype()) && !IsWide(operand->shape().dtype()))
      return DtypeOf(operand->shape(), "the vector unit");
  }
  if (auto reason = WhyNoExpression(*i.to_apply())) return Op(*std::move(reason));
  int64_t count = 1;
  for (int64_t d : i.attrs_as<hlo::DimensionsAttrs>().dimensions)
    count *= i.operand(0)->shape().dim(d);
  constexpr int64_t kMostInOrder = 32;
  if (count > kMostInOrder && FoldOrderOf(i) == FoldOrder::kStrict)
    return Op(Str("a reduction of ", count, " elements strictly in order"));
  return std::nullopt;
}

// Taps are operations of the program, one by one.
std::optional<Refusal> WhyNotWindow(const hlo::Window& window) {
  constexpr int64_t kMostTaps = 1024;
  int64_t taps = 1;
  for (const hlo::WindowDim& w : window) taps = std::min(kMostTaps + 1, taps * w.size);
  if (taps > kMostTaps)
    return Refusal{"unsupported-shape", Str("a window of more than ", kMostTaps, " elements")};
  return std::nullopt;
}

std::optional<Refusal> WhyNotSelectAndScatter(const hlo::Instruction& i, const Config& config) {
  const hlo::Window& window = i.attrs_as<hlo::WindowAttrs>().window;
  if (auto refusal = WhyNotComputed(i)) return refusal;
  if (auto refusal = WhyNotWindow(window)) return refusal;
  if (!ScatterJoinOf(i)) return Op("a select-and-scatter by other than a sum or the like");
  if (auto reason = WhyNoExpression(*i.called()[0])) return Op(*std::move(reason));
  // Of equal elements the first is selected, in the order of the window.
  if (std::any_of(window.begin(), window.end(), [](const auto& w) { return w.reversal; }))
    return Op("a select-and-scatter over a reversed window");
  // With a third stream beside it, as window_kernel.cc has it.
  Expression e;
  const Type type = *TypeOf(i.shape().dtype());
  const ValueNodes both[] = {ValueNodes{e.Load(0, type)}, ValueNodes{e.Load(1, type)}};
  const int keeps = AddRegion(*i.called()[0], both, e)[0].low;
  if (DivideIntoRuns(e, e.Op(Micro::kAnd, kSigned, keeps, e.Load(2, Type::kS32))).size() != 1)
    return Op("a select-and-scatter whose selection is more than one vector program");
  if (!SelectAndScatterFits(window, i.operand(1)->shape(), config))
    return Refusal{"unsupported-shape", "windows that overlap do not fit the scratchpad together"};
  return std::nullopt;
}

std::optional<Refusal> WhyNotProduct(const hlo::Instruction& i, const Config& config) {
  std::string why_not;
  if (TypesOf(i, config, &why_not)) return std::nullopt;
  return Refusal{"unsupported-dtype", std::move(why_not)};
}

// Numbers that the sequencer loads.
std::optional<Refusal> WhyNotScalars(absl::Span<hlo::Instruction* const> scalars) {
  for (const hlo::Instruction* scalar : scalars) {
    const DType dtype = scalar->shape().dtype();
    if (dtype != DType::kPred && dtype != DType::kS64 && (!Computes(dtype) || IsFloat(dtype)))
      return Refusal{"unsupported-dtype", Str("the sequencer does not load ", DTypeText(dtype))};
  }
  return std::nullopt;
}

std::optional<Refusal> WhyNotIndexed(const hlo::Instruction& i, const IndexForm& form,
                                     const Shape& windows) {
  const Shape &operand = i.operand(0)->shape(), &indices = i.operand(1)->shape();
  const DType dtype = indices.dtype();
  if (!IsIntegral(dtype) || !(Computes(dtype) || IsWide(dtype)))
    return Refusal{"unsupported-dtype",
                   Str("the vector unit does not compute with ", DTypeText(dtype))};
  if (operand.num_elements() > (int64_t{1} << 30))
    return Refusal{"unsupported-shape", "an index has 32 bits"};
  int levels = 0;
  for (int64_t d : WindowOf(form, operand, windows)) levels += d > 1 ? 1 : 0;
  if (levels > 4) return Refusal{"unsupported-shape", "a window of more than four dims"};
  return std::nullopt;
}

std::optional<Refusal> WhyNotScatter(const hlo::Instruction& i) {
  if (i.operand_count() != 3) return Op("a scatter of several arrays at once");
  if (!JoinOf(i)) return Op("a scatter by other than replacing, or sum or maximum of f32 or s32");
  return WhyNotIndexed(i, FormOf(i.attrs_as<hlo::ScatterAttrs>()), i.operand(2)->shape());
}

std::optional<Refusal> WhyNotConditional(const hlo::Instruction& i) {
  return WhyNotScalars(i.operands().subspan(0, 1));
}

std::optional<Refusal> WhyNotRandomBits(const hlo::Instruction& i) {
  const Shape& state = i.operand(0)->shape();
  if (state.dtype() == DType::kU64 && (state.num_elements() == 2 || state.num_elements() == 3))
    return std::nullopt;
  return Refusal{"unsupported-shape", "a state of random numbers that is not u64[2] or u64[3]"};
}

std::optional<Refusal> WhyNotReduceWindow(const hlo::Instruction& i) {
  if (auto reason = WhyNoReduction(i)) return Op(*std::move(reason));
  if (auto refusal = WhyNotComputed(i)) return refusal;
  return WhyNotWindow(i.attrs_as<hlo::WindowAttrs>().window);
}

std::optional<Refusal> WhyNotElementwise(const hlo::Instruction& i) {
  if (!i.IsElementwise()) return Op(Str("no unit has ", OpcodeText(i.opcode())));
  if (auto refusal = WhyNotComputed(i, true)) return refusal;
  if (auto reason = WhyNoNodes(i)) return Op(*std::move(reason));
  return std::nullopt;
}

}  // namespace

// What the compiler knows of an opcode: how it is lowered, and what may be against it.
class Opcodes {
 public:
  using Instruction = hlo::Instruction;
  struct LoweringRow {
    Opcode opcode;
    absl::Status (*lower)(Lowering& lowering, const Instruction& i);
    std::optional<Refusal> (*why_not)(const Instruction& i, const Config& config);
  };

  // Null: it has no row, and is elementwise or none of the device's.
  static const LoweringRow* Of(Opcode opcode);
  static absl::Status Elementwise(Lowering& lowering, const Instruction& i) {
    return Do<&Lowering::LowerElementwise>(lowering, i);
  }

 private:
  template <auto method>
  static absl::Status Do(Lowering& lowering, const Instruction& i) {
    if constexpr (std::is_void_v<decltype((lowering.*method)(i))>) {
      (lowering.*method)(i);
      return absl::OkStatus();
    } else {
      return (lowering.*method)(i);
    }
  }
  static absl::Status Reduce(Lowering& lowering, const Instruction& i) {
    return WhyNoReduction(i) ? Do<&Lowering::LowerFold>(lowering, i)
                             : Do<&Lowering::LowerReduce>(lowering, i);
  }
  static absl::Status Given(Lowering&, const Instruction&) { return absl::OkStatus(); }

  static std::optional<Refusal> Never(const Instruction&, const Config&) { return std::nullopt; }
  template <auto why_not>
  static std::optional<Refusal> Only(const Instruction& i, const Config&) {
    return why_not(i);
  }
  // Operands from this one on are numbers for the sequencer.
  template <std::size_t first>
  static std::optional<Refusal> Scalars(const Instruction& i, const Config&) {
    return WhyNotScalars(i.operands().subspan(first));
  }
  static std::optional<Refusal> Gather(const Instruction& i, const Config&) {
    return WhyNotIndexed(i, FormOf(i.attrs_as<hlo::GatherAttrs>()), i.shape());
  }

  static const LoweringRow kRows[];
};

const Opcodes::LoweringRow Opcodes::kRows[] = {
    {Opcode::kParameter, Given, Never},
    {Opcode::kConstant, Do<&Lowering::LowerConstant>, Never},
    {Opcode::kIota, Do<&Lowering::LowerIota>, Never},
    {Opcode::kTuple, Do<&Lowering::LowerTuple>, Never},
    {Opcode::kGetTupleElement, Do<&Lowering::LowerTupleElement>, Never},
    {Opcode::kOptBarrier, Do<&Lowering::LowerBarrier>, Never},
    {Opcode::kBroadcast, Do<&Lowering::LowerView>, Never},
    {Opcode::kTranspose, Do<&Lowering::LowerView>, Never},
    {Opcode::kReverse, Do<&Lowering::LowerView>, Never},
    {Opcode::kSlice, Do<&Lowering::LowerView>, Never},
    {Opcode::kReshape, Do<&Lowering::LowerReshape>, Never},
    {Opcode::kBitcast, Do<&Lowering::LowerReshape>, Never},
    {Opcode::kCopy, Do<&Lowering::LowerCopy>, Never},
    {Opcode::kConcatenate, Do<&Lowering::LowerConcatenate>, Never},
    {Opcode::kPad, Do<&Lowering::LowerPad>, Never},
    {Opcode::kDot, Do<&Lowering::LowerProductAlone>, WhyNotProduct},
    {Opcode::kConvolution, Do<&Lowering::LowerProductAlone>, WhyNotProduct},
    {Opcode::kReduce, Reduce, Only<WhyNotReduce>},
    {Opcode::kReduceWindow, Do<&Lowering::LowerReduceWindow>, Only<WhyNotReduceWindow>},
    {Opcode::kSelectAndScatter, Do<&Lowering::LowerSelectAndScatter>, WhyNotSelectAndScatter},
    {Opcode::kGather, Do<&Lowering::LowerGather>, Gather},
    {Opcode::kScatter, Do<&Lowering::LowerScatter>, Only<WhyNotScatter>},
    {Opcode::kDynamicSlice, Do<&Lowering::LowerDynamicSlice>, Scalars<1>},
    {Opcode::kDynamicUpdateSlice, Do<&Lowering::LowerDynamicUpdateSlice>, Scalars<2>},
    {Opcode::kRngBitGenerator, Do<&Lowering::LowerRandomBits>, Only<WhyNotRandomBits>},
    {Opcode::kWhile, Do<&Lowering::LowerWhile>, Never},
    {Opcode::kConditional, Do<&Lowering::LowerConditional>, Only<WhyNotConditional>},
    {Opcode::kCall, Do<&Lowering::LowerCall>, Never},
    {Opcode::kAllReduce, Do<&Lowering::LowerCollective>, WhyNotCollective},
    {Opcode::kReduceScatter, Do<&Lowering::LowerCollective>, WhyNotCollective},
    {Opcode::kAllGather, Do<&Lowering::LowerCollective>, WhyNotCollective},
    {Opcode::kAllToAll, Do<&Lowering::LowerCollective>, WhyNotCollective},
    {Opcode::kCollectivePermute, Do<&Lowering::LowerCollective>, WhyNotCollective},
    {Opcode::kCollectiveBroadcast, Do<&Lowering::LowerCollective>, WhyNotCollective},
};

const Opcodes::LoweringRow* Opcodes::Of(Opcode opcode) {
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows),
                   [opcode](const LoweringRow& r) { return r.opcode == opcode; });
  return row == std::end(kRows) ? nullptr : row;
}

absl::Status Lowering::Lower(const hlo::Instruction& i) {
  const Opcodes::LoweringRow* const row = Opcodes::Of(i.opcode());
  return row != nullptr ? row->lower(*this, i) : Opcodes::Elementwise(*this, i);
}

namespace {

std::optional<Refusal> WhyNotAlone(const hlo::Instruction& instruction, const Config& config) {
  if (auto refusal = WhyNotStored(instruction.shape(), config)) return refusal;
  for (const hlo::Instruction* operand : instruction.operands()) {
    if (auto refusal = WhyNotStored(operand->shape(), config)) return refusal;
  }
  const Opcodes::LoweringRow* const row = Opcodes::Of(instruction.opcode());
  return row != nullptr ? row->why_not(instruction, config) : WhyNotElementwise(instruction);
}

// An instruction with all that it calls, which is written out wherever it is called. Each
// computation is looked at once.
class WithCallees {
 public:
  explicit WithCallees(const Config& config) : config_(config) {}

  std::optional<Refusal> WhyNot(const hlo::Instruction& i) {
    if (auto refusal = WhyNotAlone(i, config_)) return refusal;
    double instructions = 0;
    for (const hlo::Computation* computation : CalleesOf(i)) {
      const Called& called = Of(*computation);
      if (called.refusal)
        return Refusal{called.refusal->code,
                       Str("in ", computation->name(), ": ", called.refusal->sentence)};
      instructions += called.instructions;
    }
    if (instructions > kMostInstructions)
      return Op(Str("calls that write out to more than ", kMostInstructions, " instructions"));
    return std::nullopt;
  }

 private:
  static constexpr int64_t kMostInstructions = 100'000;

  struct Called {
    std::optional<Refusal> refusal;
    double instructions = 0;  // written out
  };

  static absl::Span<hlo::Computation* const> CalleesOf(const hlo::Instruction& i) {
    const bool runs_them = i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
                           i.opcode() == Opcode::kCall;
    return runs_them ? i.called() : absl::Span<hlo::Computation* const>();
  }

  const Called& Of(const hlo::Computation& computation) {
    if (const auto known = known_.find(&computation); known != known_.end()) return known->second;
    Called called;
    for (const hlo::Instruction* i : computation.PostOrder()) {
      if ((called.refusal = WhyNot(*i))) break;
      ++called.instructions;
      for (const hlo::Computation* callee : CalleesOf(*i))
        called.instructions += Of(*callee).instructions;
    }
    return known_[&computation] = std::move(called);
  }

  const Config& config_;
  std::unordered_map<const hlo::Computation*, Called> known_;
};

}  // namespace

std::optional<Refusal> WhyNot(const hlo::Instruction& instruction, const Config& config) {
  return WithCallees(config).WhyNot(instruction);
}

}  // namespace lazuli::npu
