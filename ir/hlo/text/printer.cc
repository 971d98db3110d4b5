#include "ir/hlo/text/printer.h"

#include <charconv>

#include "absl/container/flat_hash_map.h"

#include "ir/hlo/attr_rows.h"
#include "ir/hlo/dense_map.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/written_order.h"

namespace lazuli::hlo {
namespace {

constexpr int64_t kSmallConstant = 10;  // elements that are always printed

// Appends ", name=value" for each attribute.
class AttrPrinter {
 public:
  AttrPrinter(std::string& out, Opcode opcode) : out_(out), opcode_(opcode) {}

  template <class A>
  void operator()(const A& attrs) {
    Print(attrs, [](std::string_view) { return true; });
  }
  // XLA has the dimensions of a reduce-scatter last, those of others before the kind of ids.
  void operator()(const CollectiveAttrs& attrs) {
    const auto late = [this](std::string_view name) {
      return opcode_ == Opcode::kReduceScatter && name == "dimensions";
    };
    Print(attrs, [&](std::string_view name) { return !late(name); });
    Print(attrs, late);
  }

 private:
  template <class A, class F>
  void Print(const A& attrs, F&& now) {
    ForEachTextRow<A>([&](const auto& row) {
      if (!now(row.name)) return;
      if (row.presence == Presence::kUnlessDefault && row.AtDefault(attrs)) return;
      out_ += ", ";
      out_ += row.name;
      out_ += '=';
      row.Apply(attrs, [&](const auto&... value) { AppendValue(out_, row.kForm, value...); });
    });
  }

  std::string& out_;
  Opcode opcode_;
};

void AppendMetadata(std::string& out, const Metadata& metadata) {
  out += ", metadata={";
  const std::size_t first = out.size();
  auto begin = [&](std::string_view name) -> std::string& {
    if (out.size() > first) out += ' ';
    out += name;
    return out += '=';
  };
  if (!metadata.op_type.empty()) AppendQuoted(begin("op_type"), metadata.op_type);
  if (!metadata.op_name.empty()) AppendQuoted(begin("op_name"), metadata.op_name);
  if (!metadata.source_file.empty()) AppendQuoted(begin("source_file"), metadata.source_file);
  if (metadata.source_line != 0) AppendTo(begin("source_line"), metadata.source_line);
  if (metadata.stack_frame != 0) AppendTo(begin("stack_frame_id"), metadata.stack_frame);
  out += '}';
}

// The tables as XLA prints them: parents of frames count from 1, with 1 for none.
void AppendStackFrames(std::string& out, const StackFrames& tables) {
  const auto table = [&out](std::string_view title, const auto& rows, const auto& append) {
    out += Str("\n", title, "\n");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      AppendTo(out, i + 1);
      out += ' ';
      append(rows[i]);
      out += '\n';
    }
  };
  const auto quoted = [&out](const std::string& text) { AppendQuoted(out, text); };
  table("FileNames", tables.files, quoted);
  table("FunctionNames", tables.functions, quoted);
  table("FileLocations", tables.locations, [&out](const StackFrames::Location& l) {
    out += Str("{file_name_id=", l.file, " function_name_id=", l.function, " line=", l.line,
               " end_line=", l.line, " column=0 end_column=0}");  // which XLA's parser wants
  });
  table("StackFrames", tables.frames, [&out](const StackFrames::Frame& f) {
    out += Str("{file_location_id=", f.location, " parent_frame_id=", f.parent + 1, "}");
  });
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options)
      : options_(options),
        layouts_(options.layouts ? Shape::Layouts::kAll : Shape::Layouts::kOther) {}

  std::string TakeText() { return std::move(out_); }

  void Print(const Module& module) {
    out_.reserve(static_cast<std::size_t>(module.instruction_count()) * 96);
    Header(module);
    const std::vector<Computation*> order = WrittenOrder(module);
    for (std::size_t i = 0; i < order.size(); ++i)
      computation_number_[order[i]] = static_cast<int64_t>(i);
    for (const Computation* computation : order) {
      out_ += '\n';
      Print(*computation);
    }
  }

  void Print(const Computation& computation) {
    const std::vector<Instruction*> order = computation.PostOrder();
    if (options_.canonical_names) {
      number_ = DenseMap<int64_t>(computation);
      for (std::size_t i = 0; i < order.size(); ++i) number_[order[i]] = static_cast<int64_t>(i);
    }
    if (computation.IsEntry()) out_ += "ENTRY ";
    Name(computation);
    if (options_.program_shapes && computation.root() != nullptr) Signature(computation);
    out_ += " {\n";
    for (const Instruction* instruction : order) {
      out_ += instruction->IsRoot() ? "  ROOT " : "  ";
      Print(*instruction);
      out_ += '\n';
    }
    out_ += "}\n";
  }

  void Print(const Instruction& instruction) {
    Name(instruction);
    out_ += " = ";
    instruction.shape().AppendTo(out_, layouts_);
    out_ += ' ';
    out_ += OpcodeText(instruction.opcode());
    out_ += '(';
    Operands(instruction);
    out_ += ')';
    std::visit(AttrPrinter(out_, instruction.opcode()), instruction.attrs());
    Callees(instruction);
    ExtraAttrs(instruction);
  }

 private:
  void Header(const Module& module) {
    out_ += "HloModule ";
    out_ += options_.canonical_names ? "m" : module.name();
    if (module.is_scheduled()) out_ += ", is_scheduled=true";
    Aliases(module);
    bool has_layout = false;
    for (const auto& [name, value] : module.extra_attrs())
      has_layout = has_layout || name == "entry_computation_layout";
    if (options_.layouts && !has_layout && module.entry() != nullptr &&
        module.entry()->root() != nullptr) {
      out_ += ", entry_computation_layout={(";
      for (const Instruction* parameter : module.entry()->parameters()) {
        if (parameter->parameter_number() > 0) out_ += ", ";
        parameter->shape().AppendTo(out_, Shape::Layouts::kAll);
      }
      out_ += ")->";
      module.entry()->root()->shape().AppendTo(out_, Shape::Layouts::kAll);
      out_ += '}';
    }
    bool counted = false;
    const auto counts = [&] {
      if (!std::exchange(counted, true)) DeviceCounts(module);
    };
    for (const auto& [name, value] : module.extra_attrs()) {
      if (name == "frontend_attributes" || name == "origin_recovery_table") counts();
      out_ += Str(", ", name, "=", value);
    }
    counts();
    out_ += '\n';
    if (options_.metadata && !module.stack_frames().empty())
      AppendStackFrames(out_, module.stack_frames());
  }

  void DeviceCounts(const Module& module) {
    if (module.replica_count() != 1) out_ += Str(", replica_count=", module.replica_count());
    if (module.num_partitions() != 1) out_ += Str(", num_partitions=", module.num_partitions());
  }

  void Aliases(const Module& module) {
    if (module.aliases().empty()) return;
    out_ += ", input_output_alias={";
    bool first = true;
    for (const Alias& alias : module.aliases()) {
      out_ += Str(first ? " {" : ", {", Join(alias.output_index, ","), "}: (",
                  alias.parameter_number, ", {", Join(alias.parameter_index, ","), "}, ",
                  alias.must ? "must-alias" : "may-alias", ")");
      first = false;
    }
    out_ += " }";
  }

  void Signature(const Computation& computation) {
    out_ += " (";
    bool first = true;
    for (const Instruction* parameter : computation.parameters()) {
      if (parameter == nullptr) continue;
      if (!first) out_ += ", ";
      first = false;
      PlainName(*parameter);
      out_ += ": ";
      parameter->shape().AppendTo(out_, Shape::Layouts::kNone);
    }
    out_ += ") -> ";
    computation.root()->shape().AppendTo(out_, Shape::Layouts::kNone);
  }

  void PlainName(const Instruction& instruction) {
    if (options_.canonical_names) {
      out_ += 'v';
      AppendTo(out_, number_[&instruction]);
    } else {
      out_ += instruction.name();
    }
  }
  void Name(const Instruction& instruction) {
    if (options_.percent) out_ += '%';
    PlainName(instruction);
  }
  void Name(const Computation& computation) {
    if (options_.percent) out_ += '%';
    if (options_.canonical_names) {
      auto it = computation_number_.find(&computation);
      out_ += 'c';
      AppendTo(out_, it == computation_number_.end() ? 0 : it->second);
    } else {
      out_ += computation.name();
    }
  }

  void Operands(const Instruction& instruction) {
    if (instruction.opcode() == Opcode::kParameter)
      return AppendTo(out_, instruction.parameter_number());
    if (instruction.opcode() == Opcode::kConstant) return Constant(instruction.literal());
    for (int64_t i = 0; i < instruction.operand_count(); ++i) {
      if (i > 0) out_ += ", ";
      if (options_.operand_shapes) {
        instruction.operand(i)->shape().AppendTo(out_, layouts_);
        out_ += ' ';
      }
      Name(*instruction.operand(i));
    }
  }

  void Constant(const Literal& literal) {
    const bool large = literal.shape().IsTuple() || literal.shape().num_elements() > kSmallConstant;
    if (large && !options_.large_constants) {
      out_ += "{...}";
    } else {
      literal.AppendTo(out_);
    }
  }

  void Callee(std::string_view attribute, const Computation& computation) {
    out_ += Str(", ", attribute, "=");
    Name(computation);
  }
  void Callees(const Instruction& instruction) {
    const auto called = instruction.called();
    if (called.empty()) return;
    const bool by_pred = instruction.opcode() == Opcode::kConditional && called.size() == 2 &&
                         instruction.operand_count() > 0 &&
                         instruction.operand(0)->shape().dtype() == DType::kPred;
    std::string_view names[2] = {"to_apply", ""};
    if (instruction.opcode() == Opcode::kWhile) names[0] = "condition", names[1] = "body";
    if (instruction.opcode() == Opcode::kSelectAndScatter)
      names[0] = "select", names[1] = "scatter";
    if (instruction.opcode() == Opcode::kFusion || instruction.opcode() == Opcode::kAsyncStart)
      names[0] = "calls";
    if (by_pred) names[0] = "true_computation", names[1] = "false_computation";
    const bool list = instruction.opcode() == Opcode::kCustomCall ||
                      (instruction.opcode() == Opcode::kConditional && !by_pred);
    if (!list) {
      for (std::size_t i = 0; i < called.size() && i < 2; ++i) Callee(names[i], *called[i]);
      return;
    }
    out_ += instruction.opcode() == Opcode::kCustomCall ? ", called_computations={"
                                                        : ", branch_computations={";
    for (std::size_t i = 0; i < called.size(); ++i) {
      if (i > 0) out_ += ", ";
      Name(*called[i]);
    }
    out_ += '}';
  }

  void ExtraAttrs(const Instruction& instruction) {
    const bool metadata = options_.metadata && !instruction.metadata().empty();
    const auto& extra = instruction.extra_attrs();
    if (extra.empty() && !instruction.sharding() && !metadata &&
        instruction.control_predecessors().empty())
      return;
    for (int rank = 0; rank <= 8; ++rank) {
      for (const auto& [name, value] : extra) {
        if (InstructionAttrRank(name) == rank) out_ += Str(", ", name, "=", value);
      }
      if (rank == kShardingRank && instruction.sharding())
        out_ += Str(", sharding=", hlo::ToString(*instruction.sharding()));
      if (rank == kControlPredecessorsRank && !instruction.control_predecessors().empty()) {
        out_ += ", control-predecessors={";
        for (std::size_t i = 0; i < instruction.control_predecessors().size(); ++i) {
          if (i > 0) out_ += ", ";
          Name(*instruction.control_predecessors()[i]);
        }
        out_ += '}';
      }
      if (rank == kMetadataRank && metadata) AppendMetadata(out_, instruction.metadata());
    }
  }

  const PrintOptions& options_;
  const Shape::Layouts layouts_;
  std::string out_;
  absl::flat_hash_map<const Computation*, int64_t> computation_number_;
  DenseMap<int64_t> number_;
};

template <class T>
std::string Print(const T& printed, const PrintOptions& options) {
  Printer printer(options);
  printer.Print(printed);
  return printer.TakeText();
}

}  // namespace

std::string ToString(const Module& module, const PrintOptions& options) {
  return Print(module, options);
}
std::string ToString(const Computation& computation, const PrintOptions& options) {
  return Print(computation, options);
}
std::string ToString(const Instruction& instruction, const PrintOptions& options) {
  PrintOptions named = options;
  named.canonical_names = false;  // a number means nothing without the computation
  return Print(instruction, named);
}

}  // namespace lazuli::hlo
