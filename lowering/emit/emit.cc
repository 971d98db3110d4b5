#include "lowering/emit/emit.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "absl/container/flat_hash_set.h"

#include "ir/graph/stack.h"
#include "ir/hlo/verifier.h"
#include "ir/support/error_place.h"
#include "ir/support/status.h"
#include "lowering/emit/guard_updates.h"

namespace lazuli::lowering {
namespace {

using ir::Node;
using ir::NodeKind;
using ir::Trace;

// What was recorded, in the dtype that the program has it in.
Shape Emitted(const Narrowing& narrowing, const Shape& recorded) {
  return Shape(narrowing.Of(recorded.dtype()), recorded.dims());
}

// A module of the node with operands of these shapes.
absl::StatusOr<std::unique_ptr<hlo::Module>> LowerAlone(const Node& node,
                                                        absl::Span<const Shape> operands) {
  auto module = std::make_unique<hlo::Module>(std::string(node.name()));
  Builder builder(module.get(), std::string(node.name()));
  LoweringContext context(builder);
  std::vector<Op> parameters, results;
  for (const Shape& shape : operands)
    parameters.push_back(builder.Parameter(static_cast<int64_t>(parameters.size()), shape));
  node.Lower(context, parameters, results);
  LAZULI_RETURN_IF_ERROR(builder.status());
  if (results.size() != node.num_outputs())
    return Internal("recorded ", node.num_outputs(), " results, lowered ", results.size());
  for (const RuntimeCheck& check : context.checks) results.push_back(check.offender);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation * entry, builder.Finish(builder.Tuple(results)));
  module->set_entry(entry);
  return module;
}

// The node for narrow operands; null: it cannot be lowered for them.
std::unique_ptr<hlo::Module> LowerNarrow(const Node& node, absl::Span<const Shape> operands) {
  absl::StatusOr<std::unique_ptr<hlo::Module>> module = LowerAlone(node, operands);
  if (!module.ok() || !hlo::Verify(**module).ok()) return nullptr;
  const auto& results = (*module)->entry()->root()->shape().tuple();
  for (uint32_t i = 0; i < node.num_outputs(); ++i) {  // their dtypes are converted
    if (!Compatible(node.shape(i), Shape(node.shape(i).dtype(), results[i].dims()))) return nullptr;
  }
  return *std::move(module);
}

// Values of a trace's nodes under construction; nodes with several outputs have several ops in a
// row.
class TraceEmitter : public LoweringContext {
 public:
  TraceEmitter(Builder& builder, const Trace& trace, const Narrowing& narrowing,
               hlo::StackFrames& tables)
      : LoweringContext(builder), trace_(trace), narrowing_(narrowing), frames_(tables) {
    first_.reserve(trace.nodes.size());
    for (const Node* node : trace.nodes) {
      first_.push_back(static_cast<uint32_t>(ops_.size()));
      ops_.resize(ops_.size() + node->num_outputs());
    }
  }

  void Set(const Node& leaf, Op op) { ops_[first_[leaf.mark_index]] = Narrow(op, leaf.shape()); }
  Op Get(const ir::Value& v) const { return ops_[first_[v.node->mark_index] + v.index]; }

  absl::Status LowerNodes() {
    std::vector<Op> operands, results;
    for (const Node* node : trace_.nodes) {
      if (node->kind() != NodeKind::kOp) continue;
      operands.clear();
      results.clear();
      for (const ir::Value& v : node->operands()) operands.push_back(Get(v));
      {
        Builder::MetadataScope scope(builder, MetadataOf(*node));
        if (narrowing_.any() && !LowersNarrow(*node, operands)) {
          for (std::size_t i = 0; i < operands.size(); ++i)
            operands[i] = builder.Convert(operands[i], node->operands()[i].shape().dtype());
        }
        node->Lower(*this, operands, results);
        if (narrowing_.any()) {
          for (std::size_t i = 0; i < results.size() && i < node->num_outputs(); ++i)
            results[i] = Narrow(results[i], node->shape(static_cast<uint32_t>(i)));
        }
      }
      if (const absl::Status status = CheckResults(*node, results); !status.ok())
        return ir::AddPlace(status, node->name(), ir::GetSite(node->site()).ToString());
      std::copy(results.begin(), results.end(), ops_.begin() + first_[node->mark_index]);
      check_nodes_.resize(checks.size(), node->mark_index);
    }
    return absl::OkStatus();
  }

  // The HLO calls that these nodes became.
  absl::flat_hash_set<hlo::Instruction*> CallsOf(absl::Span<const Node* const> nodes) const {
    absl::flat_hash_set<hlo::Instruction*> calls;
    for (const Node* node : nodes) {
      const bool is_here = node->mark_index < trace_.nodes.size() &&
                           trace_.nodes[node->mark_index] == node && node->num_outputs() > 0;
      if (!is_here) continue;
      hlo::Instruction* i = ops_[first_[node->mark_index]].instruction();
      while (i->opcode() == Opcode::kGetTupleElement) i = i->operand(0);
      if (i->opcode() == Opcode::kCall) calls.insert(i);
    }
    return calls;
  }

  uint32_t check_node(std::size_t i) const { return check_nodes_[i]; }

  // A flag for each value of floats, in the order of the trace.
  std::vector<EmittedNaN> FindNaNs(std::vector<Op>& outputs) {
    std::vector<EmittedNaN> nans;
    std::vector<int64_t> positions(ops_.size(), -1);
    const auto place = [&](const Node& node, uint32_t output) -> int64_t& {
      return positions[first_[node.mark_index] + output];
    };
    for (const Node* node : trace_.nodes) {
      std::vector<uint32_t> operands;
      for (const ir::Value& v : node->operands()) {
        if (const int64_t at = place(*v.node, v.index); at >= 0)
          operands.push_back(static_cast<uint32_t>(at));
      }
      for (uint32_t i = 0; i < node->num_outputs(); ++i) {
        const Op value = ops_[first_[node->mark_index] + i];
        const Shape shape = value.shape();  // NOLINT: a copy, for the original moves
        if (!(ir::IsFloat(shape.dtype()) || ir::IsComplex(shape.dtype())) ||
            shape.num_elements() == 0)
          continue;
        place(*node, i) = static_cast<int64_t>(nans.size());
        const bool leaf = node->kind() != NodeKind::kOp;
        nans.push_back(
            {node->mark_index, leaf ? std::string() : std::string(node->name()), shape, operands});
        const Op flags = builder.Convert(
            builder.Compare(hlo::ComparisonDirection::kNe, value, value), DType::kS64);
        Dims all(static_cast<std::size_t>(shape.rank()));
        for (std::size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
        outputs.push_back(builder.Reduce(Opcode::kMaximum, flags, all));
      }
    }
    return nans;
  }

 private:
  hlo::Metadata MetadataOf(const Node& node) {
    hlo::Metadata metadata;
    metadata.op_type = node.dump_name();
    std::replace(metadata.op_type.begin(), metadata.op_type.end(), ':', '_');
    const ir::Site& site = ir::GetSite(node.site());
    for (const std::string& part : {site.note, ir::ScopeText(site.scope)})
      metadata.op_name += part.empty() ? "" : part + "/";
    metadata.op_name += metadata.op_type;
    if (keeps_frames_) metadata.stack_frame = FrameOf(node.site());
    metadata.source_file = site.file;
    metadata.source_line = static_cast<int32_t>(site.line);
    return metadata;
  }

  // The innermost frame of the site in the module's tables.
  int32_t FrameOf(ir::SiteId site) {
    const auto [it, added] = frame_of_.try_emplace(site, 0);
    if (!added) return it->second;
    int64_t frame = 0;
    const std::vector<ir::Site> frames = ir::FramesOf(site);
    for (const ir::Site& caller : frames | std::views::reverse)
      frame = frames_.Add(caller.file, ir::ShortFunctionName(caller.function), caller.line, frame);
    return it->second = static_cast<int32_t>(frame);
  }

  // The op in the dtype that the program has for what was recorded so.
  Op Narrow(Op op, const Shape& recorded) const {
    if (!narrowing_.any() || op.builder() == nullptr) return op;
    return op.builder()->Convert(op, narrowing_.Of(recorded.dtype()));
  }

  // Whether the node can be lowered for narrow operands: tried in a module of its own.
  static bool LowersNarrow(const Node& node, const std::vector<Op>& operands) {
    std::vector<Shape> shapes;
    for (const Op& operand : operands) shapes.push_back(operand.shape());
    return LowerNarrow(node, shapes) != nullptr;
  }

  // What recording promised is what lowering yields: the shape and number of results.
  absl::Status CheckResults(const Node& node, const std::vector<Op>& results) const {
    LAZULI_RETURN_IF_ERROR(builder.status());
    if (results.size() != node.num_outputs()) {
      return Internal("recorded ", node.num_outputs(), " results, lowered ", results.size());
    }
    for (uint32_t i = 0; i < node.num_outputs(); ++i) {
      if (!Compatible(Emitted(narrowing_, node.shape(i)), results[i].shape()))
        return Internal("recorded as ", node.shape(i), ", lowered to ", results[i].shape());
    }
    return absl::OkStatus();
  }

  const Trace& trace_;
  const Narrowing narrowing_;
  std::vector<uint32_t> first_;  // of ops_, by position of the node
  std::vector<Op> ops_;
  std::vector<uint32_t> check_nodes_;
  const bool keeps_frames_ = ir::ShowsStacks();
  hlo::StackFramesBuilder frames_;
  absl::flat_hash_map<ir::SiteId, int32_t> frame_of_;
};

// Those of the data leaves; numbers come behind them.
std::vector<Op> AddParameters(const Trace& trace, const EmitOptions& options, Builder& builder,
                              TraceEmitter& emitter) {
  std::vector<Op> parameters;
  int64_t number = 0;
  for (const Node* leaf : trace.data) {
    const auto slot = static_cast<std::size_t>(number);
    hlo::Metadata metadata;
    if (slot < options.parameter_names.size()) metadata.op_name = options.parameter_names[slot];
    builder.SetOneShotMetadata(std::move(metadata));
    parameters.push_back(
        builder.Parameter(number, leaf->shape(), Str("p", number, ".", number + 1)));
    emitter.Set(*leaf, parameters.back());
    ++number;
  }
  for (const Node* leaf : trace.scalars) {
    emitter.Set(*leaf, builder.Parameter(number, leaf->shape(), Str("p", number, ".", number + 1)));
    ++number;
  }
  return parameters;
}

std::vector<Op> AddSigned(const Trace& trace, const EmitSignature& signature, Builder& builder,
                          TraceEmitter& emitter) {
  std::vector<Op> parameters;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    parameters.push_back(builder.Parameter(static_cast<int64_t>(i), signature.parameters[i],
                                           Str("p", i, ".", i + 1)));
  }
  std::size_t next = 0;
  const auto set = [&](const Node& leaf) {
    const auto& source = signature.leaves[next++];
    const int64_t* const parameter = std::get_if<int64_t>(&source);
    emitter.Set(leaf, parameter != nullptr ? parameters[static_cast<std::size_t>(*parameter)]
                                           : builder.Constant(std::get<ir::Literal>(source)));
  };
  for (const Node* leaf : trace.data) set(*leaf);
  for (const Node* leaf : trace.scalars) set(*leaf);
  return parameters;
}

// Calls in the computation and in all that it calls have no effects if nobody uses their results.
void RemoveEffects(hlo::Computation* computation) {
  std::vector<hlo::Computation*> pending{computation};
  absl::flat_hash_set<hlo::Computation*> seen{computation};
  while (!pending.empty()) {
    hlo::Computation* const next = pending.back();
    pending.pop_back();
    for (const auto& i : next->instructions()) {
      for (hlo::Computation* callee : i->called()) {
        if (seen.insert(callee).second) pending.push_back(callee);
      }
      if (i->opcode() != Opcode::kCustomCall || !i->users().empty() || i->IsRoot()) continue;
      std::get<hlo::CustomCallAttrs>(i->mutable_attrs()).custom_call_has_side_effect = false;
    }
    next->RemoveDead();
  }
}

// Removes the effects of programs that only `repeated` calls call.
void RemoveRepeatedEffects(const hlo::Module& module,
                           const absl::flat_hash_set<hlo::Instruction*>& repeated) {
  absl::flat_hash_set<hlo::Computation*> kept;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (!repeated.contains(i.get())) kept.insert(i->called().begin(), i->called().end());
    }
  }
  for (const hlo::Instruction* call : repeated) {
    if (!kept.contains(call->to_apply())) RemoveEffects(call->to_apply());
  }
}

}  // namespace

DType Narrowing::Of(DType dtype) const {
  using enum DType;
  if (longs && (dtype == kS64 || dtype == kU64)) return dtype == kS64 ? kS32 : kU32;
  if (floats != kKept && dtype == kF32) return kBF16;
  if (floats != kKept && dtype == kF64) return floats == kAllBf16 ? kBF16 : kF32;
  return dtype;
}

absl::StatusOr<EmittedModule> EmitModule(const Trace& trace, const EmitOptions& options) {
  EmittedModule result;
  result.module = std::make_unique<hlo::Module>(options.name);
  Builder builder(result.module.get(), options.name);
  TraceEmitter emitter(builder, trace, options.narrowing, result.module->stack_frames());
  const std::vector<Op> parameters = options.signature
                                         ? AddSigned(trace, *options.signature, builder, emitter)
                                         : AddParameters(trace, options, builder, emitter);
  LAZULI_RETURN_IF_ERROR(emitter.LowerNodes());
  const auto repeated =
      emitter.CallsOf(options.signature ? options.signature->repeated : std::vector<const Node*>());

  std::vector<Op> outputs;
  for (const ir::Value& root : trace.roots) {
    const Op value = emitter.Get(root);
    outputs.push_back(options.narrowing.any() ? builder.Convert(value, root.shape().dtype())
                                              : value);
  }
  result.after_guard = GuardUpdates(emitter.checks, options.aliases, parameters, builder, outputs);
  for (std::size_t i = 0; i < emitter.checks.size(); ++i) {
    RuntimeCheck& check = emitter.checks[i];
    outputs.push_back(check.offender);
    result.checks.push_back({emitter.check_node(i), std::move(check.message)});
  }
  if (options.find_nans) result.nans = emitter.FindNaNs(outputs);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation * entry, builder.Finish(builder.Tuple(outputs)));
  if (!repeated.empty()) RemoveRepeatedEffects(*result.module, repeated);
  if (!trace.checked.empty() || !trace.effects.empty())
    entry->RemoveDead();  // all of them but their checks, perhaps
  result.module->set_entry(entry);
  result.module->aliases() = options.aliases;
  return result;
}

absl::StatusOr<std::unique_ptr<hlo::Module>> EmitNode(const Node& node,
                                                      const Narrowing& narrowing) {
  std::vector<Shape> recorded, narrow;
  for (const ir::Value& v : node.operands()) {
    recorded.push_back(v.shape());
    narrow.push_back(Emitted(narrowing, v.shape()));
  }
  if (narrowing.any()) {
    if (auto module = LowerNarrow(node, narrow)) return module;
  }
  return LowerAlone(node, recorded);
}

}  // namespace lazuli::lowering
