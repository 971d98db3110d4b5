#include <algorithm>

#include "absl/container/flat_hash_map.h"

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"
#include "ir/hlo/verifier.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace internal {
namespace {

// HloInstructionProto as it is read.
struct RawInstruction {
  std::string name, opcode;
  Shape shape;
  Metadata metadata;
  int64_t frame = 0;
  int64_t id = 0;
  Dims operands, control_predecessors, called;
  Attrs attrs;
  ShardingPtr sharding;
  TextAttrs text_attrs;
};

// Attributes that an absent field means: numbers are 0 and flags are false, but for the counts.
Attrs AbsentAttrs(AttrsKind kind) {
  Attrs attrs = DefaultAttrs(kind);
  if (auto* conv = std::get_if<ConvolutionAttrs>(&attrs))
    conv->dim_labels.input_feature = conv->dim_labels.kernel_input_feature =
        conv->dim_labels.output_feature = 0;
  if (auto* topk = std::get_if<TopKAttrs>(&attrs)) topk->largest = false;
  return attrs;
}

// The comparison that a type has anyway goes without saying, as in text.
void NormalizeComparison(const Shape& operand, CompareAttrs* attrs) {
  const DType dtype = operand.dtype();
  const ComparisonType plain = IsFloat(dtype) || IsComplex(dtype) ? ComparisonType::kFloat
                               : IsSigned(dtype)                  ? ComparisonType::kSigned
                                                                  : ComparisonType::kUnsigned;
  if (attrs->type == plain) attrs->type = ComparisonType::kDefault;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes.data(), bytes.size()) {}
  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  absl::Status ReadModule();
  absl::Status ReadHeader();
  void ReadProgramShape(protozero::pbf_reader in);
  absl::Status KeepEntryLayout();
  void ReadAlias(FieldReader& v);
  static void ReadDonor(FieldReader& v, std::string* donors);
  void ReadFrames(FieldReader& v);
  absl::Status ReadComputation(protozero::pbf_reader in);
  absl::Status ReadBody(protozero::pbf_reader in, int64_t root_id, Computation* computation);
  absl::Status ReadInstruction(protozero::pbf_reader in, RawInstruction* raw);
  void ReadInstructionField(FieldReader& v, RawInstruction* raw);
  absl::Status Resolve(const RawInstruction& raw, const Computation& computation,
                       std::vector<Instruction*>* operands, std::vector<Computation*>* called);
  absl::Status Build(RawInstruction raw, int64_t count, Computation* computation);
  absl::Status CheckConstant(const RawInstruction& raw);
  absl::Status Malformed() { return InvalidArgument(error_.message); }

  std::string_view bytes_;
  ProtoError error_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>("module");
  int64_t entry_id_ = 0;
  std::vector<Shape> parameters_;  // of the module as it is called, with their layouts
  Shape result_;
  bool has_program_ = false;
  absl::flat_hash_map<int64_t, Computation*> computations_;
  absl::flat_hash_map<int64_t, Instruction*> instructions_;  // of one computation
};

protozero::pbf_reader MessageOf(std::string_view bytes) {
  return protozero::pbf_reader(protozero::data_view(bytes.data(), bytes.size()));
}

absl::StatusOr<std::unique_ptr<Module>> Reader::Run() {
  try {
    LAZULI_RETURN_IF_ERROR(ReadModule());
  } catch (const protozero::exception& error) {
    return InvalidArgument("the bytes are not an HloModuleProto: ", error.what());
  }
  LAZULI_RETURN_IF_ERROR(Verify(*module_));
  return std::move(module_);
}

absl::Status Reader::ReadModule() {
  LAZULI_RETURN_IF_ERROR(ReadHeader());
  std::vector<protozero::data_view> computations;
  FieldReader::ReadAll(MessageOf(bytes_), error_, [&](FieldReader& v) {
    if (v.AtMessage(3)) computations.push_back(v.in().get_view());
  });
  if (computations.empty())
    return InvalidArgument("the bytes are not an HloModuleProto: they have no computation");
  for (const protozero::data_view& computation : computations)
    LAZULI_RETURN_IF_ERROR(ReadComputation(protozero::pbf_reader(computation)));
  const auto entry = computations_.find(entry_id_);
  if (entry == computations_.end())
    return InvalidArgument("the entry computation has id ", entry_id_, ", which none has");
  module_->set_entry(entry->second);
  return has_program_ ? KeepEntryLayout() : absl::OkStatus();
}

void Reader::ReadProgramShape(protozero::pbf_reader in) {
  has_program_ = true;
  FieldReader::ReadAll(in, error_, [this](FieldReader& v) {
    if (v.AtMessage(1)) ReadShape(v.in().get_message(), error_, &parameters_.emplace_back());
    if (v.AtMessage(2)) ReadShape(v.in().get_message(), error_, &result_);
  });
}

// Notes the layouts of parameters and result where the instructions have others.
absl::Status Reader::KeepEntryLayout() {
  const Computation& entry = *module_->entry();
  const Shape& root = entry.root()->shape();
  bool fits = parameters_.size() == entry.parameters().size() && Compatible(result_, root);
  bool same = fits && result_ == root;
  for (std::size_t i = 0; fits && i < parameters_.size(); ++i) {
    fits = Compatible(parameters_[i], entry.parameters()[i]->shape());
    same = same && parameters_[i] == entry.parameters()[i]->shape();
  }
  if (!fits) return InvalidArgument("host_program_shape does not fit computation ", entry.name());
  if (same) return absl::OkStatus();
  std::string text = "{(";
  for (const Shape& parameter : parameters_)
    text += Str(text.size() > 2 ? ", " : "", parameter.ToString(true));
  module_->extra_attrs().emplace_back("entry_computation_layout",
                                      Str(text, ")->", result_.ToString(true), "}"));
  return absl::OkStatus();
}

// Everything but the computations, which come before some of it.
absl::Status Reader::ReadHeader() {
  std::string name, attributes, donors;
  FieldReader::ReadAll(MessageOf(bytes_), error_, [&](FieldReader& v) {
    v.Text(1, name);
    if (v.AtMessage(4)) ReadProgramShape(v.in().get_message());
    v.Int(6, entry_id_);
    v.Message(7, [this](FieldReader&) { module_->set_is_scheduled(true); });
    v.Message(8, [this](FieldReader& aliases) { ReadAlias(aliases); });
    v.Message(17, [this](FieldReader& tables) { ReadFrames(tables); });
    v.Message(18, [&donors](FieldReader& list) { ReadDonor(list, &donors); });
    if (v.AtMessage(19)) attributes = ReadFrontendAttributes(v.in().get_message(), error_);
  });
  if (!error_.ok()) return Malformed();
  if (!name.empty()) module_->set_name(name);
  if (!donors.empty()) module_->extra_attrs().emplace_back("buffer_donor", Str("{ ", donors, " }"));
  if (attributes.size() > 2) module_->extra_attrs().emplace_back("frontend_attributes", attributes);
  return absl::OkStatus();
}

// Appends (0, {1}).
void Reader::ReadDonor(FieldReader& v, std::string* donors) {
  if (!v.AtMessage(1)) return;
  int64_t parameter = 0;
  Dims index;
  FieldReader::ReadAll(v.in().get_message(), v.error(), [&](FieldReader& donor) {
    donor.Int(1, parameter);
    donor.Ints(2, index);
  });
  *donors += Str(donors->empty() ? "(" : ", (", parameter, ", {", Join(index, ","), "})");
}

void Reader::ReadAlias(FieldReader& v) {
  if (!v.AtMessage(1)) return;
  Alias alias;
  int64_t kind = 0;
  FieldReader::ReadAll(v.in().get_message(), error_, [&](FieldReader& entry) {
    entry.Ints(1, alias.output_index);
    entry.Int(2, alias.parameter_number);
    entry.Ints(3, alias.parameter_index);
    entry.Int(4, kind);
  });
  alias.must = kind == 2;
  module_->aliases().push_back(std::move(alias));
}

void Reader::ReadFrames(FieldReader& v) {
  StackFrames& tables = module_->stack_frames();
  if (v.AtMessage(1)) tables.files.push_back(v.in().get_string());
  if (v.AtMessage(2)) tables.functions.push_back(v.in().get_string());
  v.Messages(3, tables.locations, [](FieldReader& entry, StackFrames::Location& location) {
    entry.Int(1, location.file);
    entry.Int(2, location.function);
    entry.Int(3, location.line);
  });
  v.Messages(4, tables.frames, [](FieldReader& entry, StackFrames::Frame& frame) {
    entry.Int(1, frame.location);
    entry.Int(2, frame.parent);
  });
}

absl::Status Reader::ReadComputation(protozero::pbf_reader in) {
  std::string name;
  int64_t id = 0, root_id = 0;
  bool is_fusion = false;
  FieldReader::ReadAll(in, error_, [&](FieldReader& v) {
    v.Text(1, name);
    v.Int(5, id);
    v.Int(6, root_id);
    v.Bool(7, is_fusion);
  });
  if (!error_.ok()) return Malformed();
  Computation* computation = module_->AddComputation(name);
  computation->set_is_fusion(is_fusion);
  if (absl::Status body = ReadBody(in, root_id, computation); !body.ok())
    return Prefixed(body, Str(computation->name(), ": "));
  if (!computations_.emplace(id, computation).second)
    return InvalidArgument("two computations have id ", id);
  return absl::OkStatus();
}

absl::Status Reader::ReadBody(protozero::pbf_reader in, int64_t root_id, Computation* computation) {
  std::vector<protozero::data_view> instructions;
  FieldReader::ReadAll(in, error_, [&](FieldReader& v) {
    if (v.AtMessage(2)) instructions.push_back(v.in().get_view());
  });
  instructions_.clear();
  for (const protozero::data_view& bytes : instructions) {
    RawInstruction raw;
    absl::Status status = ReadInstruction(protozero::pbf_reader(bytes), &raw);
    const std::string place = Str(raw.name.empty() ? "an instruction" : raw.name, ": ");
    if (status.ok())
      status = Build(std::move(raw), static_cast<int64_t>(instructions.size()), computation);
    if (!status.ok()) return Prefixed(status, place);
  }
  const auto root = instructions_.find(root_id);
  if (root == instructions_.end())
    return InvalidArgument("the root has id ", root_id, ", which no instruction has");
  computation->set_root(root->second);
  const auto& parameters = computation->parameters();
  for (std::size_t n = 0; n < parameters.size(); ++n) {
    if (parameters[n] == nullptr) return InvalidArgument("there is no parameter ", n);
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadInstruction(protozero::pbf_reader in, RawInstruction* raw) {
  // The opcode, which decides what the other fields are, may come behind them.
  FieldReader::ReadAll(in, error_, [&](FieldReader& v) {
    v.Text(1, raw->name);
    v.Text(2, raw->opcode);
  });
  const std::optional<Opcode> opcode = ParseOpcode(raw->opcode);
  if (!opcode) return InvalidArgument("unknown opcode '", raw->opcode, "'");
  raw->attrs = AbsentAttrs(Traits(*opcode).attrs);
  FieldReader::ReadAll(in, error_, [&](FieldReader& v) {
    ReadAttrsField(v, &raw->attrs);
    if (!v.taken()) ReadInstructionField(v, raw);
    if (!v.taken()) ReadTextAttr(v, &raw->text_attrs);
  });
  if (!error_.ok()) return Malformed();
  module_->stack_frames().Resolve(raw->frame, &raw->metadata);
  SortTextAttrs(&raw->text_attrs);
  return absl::OkStatus();
}

void Reader::ReadInstructionField(FieldReader& v, RawInstruction* raw) {
  if (v.AtMessage(3)) ReadShape(v.in().get_message(), error_, &raw->shape);
  v.Message(7, [raw](FieldReader& m) {
    int64_t line = 0;
    m.Text(1, raw->metadata.op_type);
    m.Text(2, raw->metadata.op_name);
    m.Text(3, raw->metadata.source_file);
    m.Int(4, line);
    if (line > 0 && line <= INT32_MAX) raw->metadata.source_line = static_cast<int32_t>(line);
    m.Int(15, raw->frame);
  });
  v.Int(35, raw->id);
  if (v.AtMessage(40)) raw->sharding = ReadSharding(v.in().get_message(), error_);
  v.Ints(36, raw->operands);
  v.Ints(37, raw->control_predecessors);
  v.Ints(38, raw->called);
}

absl::Status Reader::Resolve(const RawInstruction& raw, const Computation& computation,
                             std::vector<Instruction*>* operands,
                             std::vector<Computation*>* called) {
  for (int64_t id : raw.operands) {
    const auto operand = instructions_.find(id);
    if (operand == instructions_.end()) {
      return InvalidArgument("computation ", computation.name(), " has no instruction of id ", id,
                             " before this");
    }
    operands->push_back(operand->second);
  }
  for (int64_t id : raw.called) {
    const auto callee = computations_.find(id);
    if (callee == computations_.end())
      return InvalidArgument("there is no computation of id ", id, " before this");
    called->push_back(callee->second);
  }
  const Opcode opcode = *ParseOpcode(raw.opcode);
  if (opcode == Opcode::kWhile && called->size() == 2)  // the body comes first
    std::swap((*called)[0], (*called)[1]);
  const int regions = Traits(opcode).regions;
  if (regions >= 0 && called->size() != static_cast<std::size_t>(regions))
    return InvalidArgument(raw.opcode, ": calls ", regions, " computations, not ", called->size());
  return absl::OkStatus();
}

absl::Status Reader::CheckConstant(const RawInstruction& raw) {
  const auto* constant = std::get_if<ConstantAttrs>(&raw.attrs);
  if (constant == nullptr) return absl::OkStatus();
  if (constant->value == nullptr) return InvalidArgument("the constant has no value");
  if (!Compatible(constant->value->shape(), raw.shape))
    return InvalidArgument("the constant is ", raw.shape, ", its value ", constant->value->shape());
  return absl::OkStatus();
}

absl::Status Reader::Build(RawInstruction raw, int64_t count, Computation* computation) {
  const Opcode opcode = *ParseOpcode(raw.opcode);
  std::vector<Instruction*> operands;
  std::vector<Computation*> called;
  LAZULI_RETURN_IF_ERROR(CheckConstant(raw));
  LAZULI_RETURN_IF_ERROR(Resolve(raw, *computation, &operands, &called));
  if (const auto* parameter = std::get_if<ParameterAttrs>(&raw.attrs)) {
    const auto& parameters = computation->parameters();
    const auto number = static_cast<std::size_t>(parameter->number);
    if (parameter->number < 0 || parameter->number >= count)
      return InvalidArgument("parameter number ", parameter->number, " is out of range");
    if (number < parameters.size() && parameters[number] != nullptr)
      return InvalidArgument("there are two parameters ", number);
  }
  absl::InlinedVector<const Shape*, 8> shapes;
  for (const Instruction* operand : operands) shapes.push_back(&operand->shape());
  if (auto* compare = std::get_if<CompareAttrs>(&raw.attrs); compare != nullptr && !shapes.empty())
    NormalizeComparison(*shapes[0], compare);
  LAZULI_ASSIGN_OR_RETURN(Shape shape, InferShape(opcode, shapes, raw.attrs, called, &raw.shape));
  if (opcode == Opcode::kFusion) called[0]->set_is_fusion(true);
  Instruction* made =
      computation->Add(opcode, std::move(shape), operands, std::move(raw.attrs), called, raw.name);
  made->set_metadata(std::move(raw.metadata));
  made->set_sharding(std::move(raw.sharding));
  made->mutable_extra_attrs() = std::move(raw.text_attrs);
  for (int64_t id : raw.control_predecessors) {
    const auto predecessor = instructions_.find(id);
    if (predecessor == instructions_.end())
      return InvalidArgument("there is no instruction of id ", id, " before this");
    made->AddControlPredecessor(predecessor->second);
  }
  if (!instructions_.emplace(raw.id, made).second)
    return InvalidArgument("two instructions have id ", raw.id);
  return absl::OkStatus();
}

}  // namespace
}  // namespace internal

absl::StatusOr<std::unique_ptr<Module>> ParseModuleProto(std::string_view bytes) {
  return internal::Reader(bytes).Run();
}

}  // namespace lazuli::hlo
