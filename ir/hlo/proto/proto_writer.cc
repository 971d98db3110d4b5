#include "absl/container/flat_hash_map.h"

#include "ir/hlo/dense_map.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/proto/proto_internal.h"
#include "ir/hlo/text/attr_text.h"
#include "ir/hlo/text/parser_internal.h"
#include "ir/hlo/written_order.h"

namespace lazuli::hlo {
namespace internal {
namespace {

// The message as it is written into the module's, and what refers to what by number.
class Writer {
 public:
  explicit Writer(const Module& module) : module_(module) {}
  std::string Run();

 private:
  void Number();
  void WriteComputation(FieldWriter& v, const Computation& computation);
  void WriteInstruction(FieldWriter& v, const Instruction& i);
  void WriteFrom(FieldWriter& v, const Instruction& i);
  void WriteFrames(FieldWriter& v);
  void WriteProgramShape(FieldWriter& v, const Computation& computation);
  void WriteSchedule(FieldWriter& v);
  static void WriteDonors(FieldWriter& v, std::string_view text);
  void WriteAliases(FieldWriter& v);

  const Module& module_;
  std::vector<Computation*> order_;
  absl::flat_hash_map<const Computation*, int64_t> computation_ids_;
  absl::flat_hash_map<const Instruction*, int64_t> ids_;
};

// Ids count through the module: readers want those of instructions to be unique in all of it.
void Writer::Number() {
  order_ = WrittenOrder(module_);
  for (const Computation* computation : order_) {
    computation_ids_.emplace(computation, static_cast<int64_t>(computation_ids_.size()) + 1);
    for (const Instruction* i : computation->PostOrder())
      ids_.emplace(i, static_cast<int64_t>(ids_.size()) + 1);
  }
}

std::string Writer::Run() {
  Number();
  std::string bytes;
  protozero::pbf_writer out(bytes);
  FieldWriter v(out);
  v.Text(1, module_.name());
  v.Text(2, module_.entry()->name());
  v.Messages(3, order_, [this](FieldWriter& w, const Computation* c) { WriteComputation(w, *c); });
  v.Message(4, [this](FieldWriter& w) { WriteProgramShape(w, *module_.entry()); });
  v.Int(5, 1);
  v.Int(6, computation_ids_[module_.entry()]);
  if (module_.is_scheduled()) v.Message(7, [this](FieldWriter& w) { WriteSchedule(w); });
  if (!module_.aliases().empty()) v.Message(8, [this](FieldWriter& w) { WriteAliases(w); });
  if (!module_.stack_frames().empty()) v.Message(17, [this](FieldWriter& w) { WriteFrames(w); });
  for (const auto& [name, value] : module_.extra_attrs()) {
    const std::string& text = value;
    if (name == "frontend_attributes")
      v.Message(19, [&text](FieldWriter& w) { WriteFrontendAttributes(w.out(), text); });
    if (name == "buffer_donor") v.Message(18, [&text](FieldWriter& w) { WriteDonors(w, text); });
  }
  return bytes;
}

void Writer::WriteProgramShape(FieldWriter& v, const Computation& computation) {
  const auto shape_of = [](FieldWriter& w, const Instruction* i) {
    WriteShape(w.out(), i->shape());
  };
  v.Messages(1, computation.parameters(), shape_of);
  v.Message(2, [&](FieldWriter& w) { shape_of(w, computation.root()); });
  for (const Instruction* parameter : computation.parameters()) v.Text(3, parameter->name());
}

void Writer::WriteComputation(FieldWriter& v, const Computation& computation) {
  v.Text(1, computation.name());
  v.Messages(2, computation.PostOrder(),
             [this](FieldWriter& w, const Instruction* i) { WriteInstruction(w, *i); });
  v.Message(4, [&](FieldWriter& w) { WriteProgramShape(w, computation); });
  v.Int(5, computation_ids_[&computation]);
  v.Int(6, ids_[computation.root()]);
  v.Bool(7, computation.IsFusion());
}

void Writer::WriteInstruction(FieldWriter& v, const Instruction& i) {
  v.Text(1, i.name());
  v.Text(2, std::string(OpcodeText(i.opcode())));
  v.Message(3, [&](FieldWriter& w) { WriteShape(w.out(), i.shape()); });
  if (!i.metadata().empty()) WriteFrom(v, i);
  WriteAttrs(v.out(), i.attrs());
  v.Int(35, ids_[&i]);
  const auto ids_of = [this](const auto& instructions) {
    Dims ids;
    for (const Instruction* other : instructions) ids.push_back(ids_[other]);
    return ids;
  };
  v.Ints(36, ids_of(i.operands()));
  v.Ints(37, ids_of(i.control_predecessors()));
  Dims called;
  for (const Computation* callee : i.called()) called.push_back(computation_ids_[callee]);
  if (i.opcode() == Opcode::kWhile) std::swap(called[0], called[1]);  // the body comes first
  v.Ints(38, called);
  if (i.sharding()) v.Message(40, [&](FieldWriter& w) { WriteSharding(w, *i.sharding()); });
  for (const auto& [name, value] : i.extra_attrs()) WriteTextAttr(v.out(), name, value);
}

void Writer::WriteFrom(FieldWriter& v, const Instruction& i) {
  v.Message(7, [&](FieldWriter& m) {
    m.Text(1, i.metadata().op_type);
    m.Text(2, i.metadata().op_name);
    m.Text(3, i.metadata().source_file);
    if (i.metadata().source_line != 0) m.Int(4, i.metadata().source_line);
    if (i.metadata().stack_frame != 0) m.Int(15, i.metadata().stack_frame);
  });
}

void Writer::WriteFrames(FieldWriter& v) {
  const StackFrames& tables = module_.stack_frames();
  for (const std::string& file : tables.files) v.out().add_string(1, file);
  for (const std::string& function : tables.functions) v.out().add_string(2, function);
  v.Messages(3, tables.locations, [](FieldWriter& w, const StackFrames::Location& location) {
    w.Int(1, location.file);
    w.Int(2, location.function);
    w.Int(3, location.line);
    w.Int(5, location.line);  // the last
  });
  v.Messages(4, tables.frames, [](FieldWriter& w, const StackFrames::Frame& frame) {
    w.Int(1, frame.location);
    if (frame.parent != 0) w.Int(2, frame.parent);
  });
}

// The order of each computation's instructions is the one they are written in.
void Writer::WriteSchedule(FieldWriter& v) {
  for (const Computation* computation : order_) {
    if (computation->IsFusion()) continue;
    Dims ids;
    for (const Instruction* i : computation->PostOrder()) ids.push_back(ids_[i]);
    v.Message(1, [&](FieldWriter& entry) {
      entry.Int(1, computation_ids_[computation]);
      entry.Message(2, [&](FieldWriter& sequence) { sequence.Ints(1, ids); });
    });
  }
}

// { (0, {}), (1, {2}) }
void Writer::WriteDonors(FieldWriter& v, std::string_view text) {
  Cursor in(text);
  in.Expect('{');
  while (in.Try('(')) {
    int64_t parameter = 0;
    Dims index;
    if (!in.Integer(&parameter) || !in.Expect(',') || !ParseDims(in, &index) || !in.Expect(')'))
      return;
    v.Message(1, [&](FieldWriter& donor) {
      donor.Int(1, parameter);
      donor.Ints(2, index);
    });
    in.Try(',');
  }
}

void Writer::WriteAliases(FieldWriter& v) {
  v.Messages(1, module_.aliases(), [](FieldWriter& entry, const Alias& alias) {
    entry.Ints(1, alias.output_index);
    entry.Int(2, alias.parameter_number);
    entry.Ints(3, alias.parameter_index);
    entry.Int(4, alias.must ? 2 : 1);
  });
}

}  // namespace
}  // namespace internal

std::string SerializeModuleProto(const Module& module) { return internal::Writer(module).Run(); }

}  // namespace lazuli::hlo
