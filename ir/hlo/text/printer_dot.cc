
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/printer.h"

namespace lazuli::hlo {
namespace {

constexpr int64_t kShownConstant = 8;  // elements of a constant that fit into a node

std::string_view Color(const Instruction& instruction) {
  if (instruction.opcode() == Opcode::kParameter) return "orange";
  if (instruction.IsConstant()) return "lightgray";
  if (!instruction.called().empty()) return "lightblue";
  return instruction.IsElementwise() ? "lightyellow" : "white";
}

void AppendNode(std::string& out, const Instruction& instruction) {
  std::string label = Str(OpcodeText(instruction.opcode()));
  if (instruction.opcode() == Opcode::kParameter) label += Str(" ", instruction.parameter_number());
  if (instruction.IsConstant() && instruction.literal().shape().num_elements() <= kShownConstant &&
      !instruction.shape().IsTuple()) {
    label += Str(" ", EscapedLabel(instruction.literal().ToString()));
  }
  label += Str("\\n", instruction.name(), "\\n", instruction.shape());
  const Metadata& metadata = instruction.metadata();
  if (!metadata.source_file.empty())
    label += Str("\\n", EscapedLabel(metadata.source_file), ":", metadata.source_line);
  out += Str("    n", instruction.id(), " [label=\"", label, "\", fillcolor=", Color(instruction),
             instruction.IsRoot() ? ", penwidth=2" : "", "];\n");
}

void AppendCluster(std::string& out, const Computation& computation, bool entry) {
  out += Str("  subgraph \"cluster_", computation.name(), "\" {\n    label=\"",
             entry ? "ENTRY " : "", computation.name(), "\";\n");
  for (const auto& instruction : computation.instructions()) AppendNode(out, *instruction);
  for (const auto& instruction : computation.instructions()) {
    for (int64_t i = 0; i < instruction->operand_count(); ++i) {
      out += Str("    n", instruction->operand(i)->id(), " -> n", instruction->id());
      if (instruction->operand_count() > 1) out += Str(" [headlabel=\"", i, "\"]");
      out += ";\n";
    }
    for (const Instruction* predecessor : instruction->control_predecessors()) {
      out += Str("    n", predecessor->id(), " -> n", instruction->id(), " [style=dotted];\n");
    }
  }
  out += "  }\n";
}

}  // namespace

std::string ToDot(const Module& module) {
  std::string out =
      Str("digraph \"", module.name(), "\" {\n  rankdir=TB;\n  node [shape=box, style=filled];\n");
  const auto order = module.PostOrder();
  for (const Computation* computation : order)
    AppendCluster(out, *computation, computation->IsEntry());
  for (const Computation* computation : order) {
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* callee : instruction->called()) {
        if (callee->root() == nullptr) continue;
        out += Str("  n", callee->root()->id(), " -> n", instruction->id(), " [style=dashed];\n");
      }
    }
  }
  return out + "}\n";
}

}  // namespace lazuli::hlo
