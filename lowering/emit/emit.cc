#include "lowering/emit/emit.h"

#include <algorithm>
#include <utility>

#include "ir/support/error_place.h"

namespace lazuli::lowering {
namespace {

using ir::Node;
using ir::NodeKind;
using ir::Trace;

// Values of a trace's nodes under construction; nodes with several outputs have several ops in a
// row.
class TraceEmitter : public LoweringContext {
 public:
  TraceEmitter(Builder& builder, const Trace& trace) : LoweringContext(builder), trace_(trace) {
    first_.reserve(trace.nodes.size());
    for (const Node* node : trace.nodes) {
      first_.push_back(static_cast<uint32_t>(ops_.size()));
      ops_.resize(ops_.size() + node->num_outputs());
    }
  }

  void Set(const Node& leaf, Op op) { ops_[first_[leaf.mark_index]] = op; }
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
        node->Lower(*this, operands, results);
      }
      if (const absl::Status status = CheckResults(*node, results); !status.ok())
        return ir::AddPlace(status, node->name(), ir::GetSite(node->site()).ToString());
      std::copy(results.begin(), results.end(), ops_.begin() + first_[node->mark_index]);
      check_nodes_.resize(checks.size(), node->mark_index);
    }
    return absl::OkStatus();
  }

  uint32_t check_node(std::size_t i) const { return check_nodes_[i]; }

 private:
  static hlo::Metadata MetadataOf(const Node& node) {
    hlo::Metadata metadata;
    metadata.op_type = node.dump_name();
    std::replace(metadata.op_type.begin(), metadata.op_type.end(), ':', '_');
    metadata.op_name = metadata.op_type;
    const ir::Site& site = ir::GetSite(node.site());
    metadata.source_file = site.file;
    metadata.source_line = static_cast<int32_t>(site.line);
    return metadata;
  }

  // What recording promised is what lowering yields: the shape and number of results.
  absl::Status CheckResults(const Node& node, const std::vector<Op>& results) const {
    LAZULI_RETURN_IF_ERROR(builder.status());
    if (results.size() != node.num_outputs()) {
      return Internal("recorded ", node.num_outputs(), " results, lowered ", results.size());
    }
    for (uint32_t i = 0; i < node.num_outputs(); ++i) {
      if (!Compatible(node.shape(i), results[i].shape()))
        return Internal("recorded as ", node.shape(i), ", lowered to ", results[i].shape());
    }
    return absl::OkStatus();
  }

  const Trace& trace_;
  std::vector<uint32_t> first_;  // of ops_, by position of the node
  std::vector<Op> ops_;
  std::vector<uint32_t> check_nodes_;
};

void AddParameters(const Trace& trace, const EmitOptions& options, Builder& builder,
                   TraceEmitter& emitter) {
  int64_t number = 0;
  for (const Node* leaf : trace.data) {
    const auto slot = static_cast<std::size_t>(number);
    hlo::Metadata metadata;
    if (slot < options.parameter_names.size()) metadata.op_name = options.parameter_names[slot];
    builder.SetOneShotMetadata(std::move(metadata));
    emitter.Set(*leaf, builder.Parameter(number, leaf->shape(), Str("p", number, ".", number + 1)));
    ++number;
  }
  for (const Node* leaf : trace.scalars) {
    emitter.Set(*leaf, builder.Parameter(number, leaf->shape(), Str("p", number, ".", number + 1)));
    ++number;
  }
}

}  // namespace

absl::StatusOr<EmittedModule> EmitModule(const Trace& trace, const EmitOptions& options) {
  EmittedModule result;
  result.module = std::make_unique<hlo::Module>(options.name);
  Builder builder(result.module.get(), options.name);
  TraceEmitter emitter(builder, trace);
  AddParameters(trace, options, builder, emitter);
  LAZULI_RETURN_IF_ERROR(emitter.LowerNodes());

  std::vector<Op> outputs;
  for (const ir::Value& root : trace.roots) outputs.push_back(emitter.Get(root));
  for (std::size_t i = 0; i < emitter.checks.size(); ++i) {
    RuntimeCheck& check = emitter.checks[i];
    outputs.push_back(check.offender);
    result.checks.push_back({emitter.check_node(i), std::move(check.message)});
  }
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation * entry, builder.Finish(builder.Tuple(outputs)));
  if (!trace.checked.empty()) entry->RemoveDead();  // all of them but their checks, perhaps
  result.module->set_entry(entry);
  result.module->aliases() = options.aliases;
  return result;
}

}  // namespace lazuli::lowering
