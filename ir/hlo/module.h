// HLO modules: Module owns Computations, a Computation owns Instructions; everything else points.
//
// One Instruction class serves all opcodes: opcode, shape, operands, attributes (a variant,
// attrs.h), called computations and metadata. Operand and user lists are kept consistent by the
// members here; passes edit through lowering::Rewriter, which also keeps names and metadata right.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/attrs.h"
#include "ir/hlo/opcode.h"
#include "ir/hlo/stack_frames.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/types/shape.h"

namespace lazuli::hlo {

class Computation;
class Module;

// Where an instruction comes from; printed as metadata={...}. Never part of equality or of a cache
// key.
struct Metadata {
  std::string op_type;  // "aten__mm"
  std::string op_name;  // scope and op, or the name of a parameter: "conv1.weight"
  std::string source_file;
  int32_t source_line = 0;
  int32_t stack_frame = 0;  // of the module's stack_frames(); 0 for none
  // "/home/me/train.py:41", or empty.
  std::string place() const {
    return source_file.empty() ? std::string() : Str(source_file, ":", source_line);
  }
  bool empty() const {
    return op_type.empty() && op_name.empty() && source_file.empty() && source_line == 0 &&
           stack_frame == 0;
  }
};

class Instruction {
 public:
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  Shape* mutable_shape() { return &shape_; }  // layout assignment only
  const std::string& name() const { return name_; }
  int64_t id() const { return id_; }  // unique in the module, increases with creation
  Computation* parent() const { return parent_; }

  absl::Span<Instruction* const> operands() const { return operands_; }
  Instruction* operand(int64_t i) const { return operands_[static_cast<std::size_t>(i)]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  // Each user once, in order of first use.
  absl::Span<Instruction* const> users() const { return users_; }

  const Attrs& attrs() const { return attrs_ != nullptr ? *attrs_ : kNoAttrs; }
  Attrs& mutable_attrs();
  // The attributes of an opcode that the caller knows.
  template <class T>
  const T& attrs_as() const {
    return std::get<T>(attrs());
  }
  const Literal& literal() const { return *attrs_as<ConstantAttrs>().value; }
  int64_t parameter_number() const { return attrs_as<ParameterAttrs>().number; }

  // Regions: reduce's to_apply, while's {condition, body}, conditional's branches, fusion's body.
  absl::Span<Computation* const> called() const { return called_; }
  Computation* to_apply() const { return called_.at(0); }

  const Metadata& metadata() const { return metadata_; }
  void set_metadata(Metadata metadata) { metadata_ = std::move(metadata); }
  const ShardingPtr& sharding() const { return sharding_; }
  void set_sharding(ShardingPtr sharding) { sharding_ = std::move(sharding); }
  // Attributes of the text that we do not interpret (frontend_attributes, backend_config, ...),
  // printed back verbatim.
  const std::vector<std::pair<std::string, std::string>>& extra_attrs() const { return extra_; }
  std::vector<std::pair<std::string, std::string>>& mutable_extra_attrs() { return extra_; }
  const std::vector<Instruction*>& control_predecessors() const { return control_predecessors_; }
  void AddControlPredecessor(Instruction* i) { control_predecessors_.push_back(i); }

  bool IsRoot() const;
  bool IsElementwise() const { return Traits(opcode_).elementwise; }
  bool IsConstant() const { return opcode_ == Opcode::kConstant; }
  bool HasSideEffect() const;  // the opcode's, or a custom call that says so, or a callee's

  void ReplaceOperand(int64_t i, Instruction* with);
  void ReplaceAllUsesWith(Instruction* with);  // root included
  std::string ToString() const;                // one line of text

 private:
  friend class Computation;
  friend class Module;
  Instruction() = default;
  void AddUser(Instruction* user);
  void RemoveUser(Instruction* user);

  Opcode opcode_{};
  Shape shape_;
  std::string name_;
  int64_t id_ = 0;
  Computation* parent_ = nullptr;
  absl::InlinedVector<Instruction*, 2> operands_;
  absl::InlinedVector<Instruction*, 2> users_;
  static const Attrs kNoAttrs;
  std::unique_ptr<Attrs>
      attrs_;  // null: NoAttrs, which most instructions have; the others are large
  absl::InlinedVector<Computation*, 1> called_;
  Metadata metadata_;
  ShardingPtr sharding_;
  std::vector<std::pair<std::string, std::string>> extra_;
  std::vector<Instruction*> control_predecessors_;
};

class Computation {
 public:
  ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  const std::string& name() const { return name_; }
  Module* parent() const { return parent_; }
  bool IsEntry() const;
  bool IsFusion() const { return is_fusion_; }  // body of a fusion instruction
  void set_is_fusion(bool value) { is_fusion_ = value; }

  // Adds an instruction with a shape that the caller vouches for (use lowering::Builder for
  // inferred shapes). An empty name becomes "<opcode>.<id>"; a name in use gets a suffix. The
  // newest instruction is the root until set_root is called.
  Instruction* Add(Opcode opcode, Shape shape, absl::Span<Instruction* const> operands,
                   Attrs attrs = NoAttrs{}, absl::Span<Computation* const> called = {},
                   std::string_view name = {});
  Instruction* AddParameter(int64_t number, Shape shape, std::string_view name = {});
  Instruction* AddConstant(Literal value, std::string_view name = {});
  // A copy of `source` (attributes, metadata, callees) with these operands; `source` may live in
  // another computation of this module.
  Instruction* AddClone(const Instruction& source, absl::Span<Instruction* const> operands);

  // Removes an instruction without users that is neither the root nor a parameter.
  void Remove(Instruction* instruction);
  // Lets go of the operands of an instruction that Remove could take, so that they count it no more
  // (an operand with many users may do so later). The instruction stays, dead, until RemoveDead:
  // for removing many in linear time.
  void Detach(Instruction* instruction);
  // Removes every instruction that the root, instructions with side effects and their control
  // predecessors do not need (parameters stay); returns their number. Linear, where removing one by
  // one is not.
  int64_t RemoveDead();

  // The instruction of this name, or null. Names are unique in their computation.
  Instruction* Find(std::string_view name) const;

  Instruction* root() const { return root_; }
  void set_root(Instruction* root) {
    root_ = root;
    root_is_set_ = true;
  }
  const std::vector<Instruction*>& parameters() const { return parameters_; }  // by number
  int64_t instruction_count() const { return static_cast<int64_t>(instructions_.size()); }

  // Every instruction, operands and control predecessors before users; iterative, stable. Dead ones
  // are included.
  std::vector<Instruction*> PostOrder() const;
  // Insertion order (operands always precede users unless a pass replaced operands).
  const std::vector<std::unique_ptr<Instruction>>& instructions() const { return instructions_; }

 private:
  friend class Module;
  Computation(Module* parent, std::string name);
  void SetName(Instruction* instruction, std::string_view wanted);
  void Forget(Instruction* instruction);  // its name
  void RegisterParameter(Instruction* parameter);

  Module* parent_;
  std::string name_;
  bool is_fusion_ = false;
  bool root_is_set_ = false;
  struct Names;  // names that somebody gave
  std::unique_ptr<Names> names_;
  std::vector<std::unique_ptr<Instruction>> instructions_;
  std::vector<Instruction*> parameters_;
  Instruction* root_ = nullptr;
};

// Part of the result that may reuse the memory of a part of a parameter; parts are paths of tuple
// indices, empty for the whole.
struct Alias {
  Dims output_index;
  int64_t parameter_number = 0;
  Dims parameter_index;
  bool must = false;  // must-alias; otherwise may-alias
  bool operator==(const Alias&) const = default;
};

class Module {
 public:
  explicit Module(std::string name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Computation* AddComputation(std::string_view name);  // a name in use gets a suffix
  void RemoveComputation(Computation* computation);    // that nothing calls
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  std::vector<Computation*> PostOrder()
      const;  // callees before callers, only what the entry reaches

  std::vector<Alias>& aliases() { return aliases_; }
  const std::vector<Alias>& aliases() const { return aliases_; }
  // Copies of the program that run together, and the parts of each; as many devices as both make.
  int64_t replica_count() const { return replica_count_; }
  int64_t num_partitions() const { return num_partitions_; }
  void set_device_counts(int64_t replicas, int64_t partitions) {
    replica_count_ = replicas;
    num_partitions_ = partitions;
  }
  // Header attributes kept verbatim.
  std::vector<std::pair<std::string, std::string>>& extra_attrs() { return extra_; }
  const std::vector<std::pair<std::string, std::string>>& extra_attrs() const { return extra_; }
  StackFrames& stack_frames() { return stack_frames_; }
  const StackFrames& stack_frames() const { return stack_frames_; }
  bool is_scheduled() const { return is_scheduled_; }
  void set_is_scheduled(bool value) { is_scheduled_ = value; }

  std::unique_ptr<Module> Clone() const;
  int64_t instruction_count() const;
  std::string ToString() const;  // printer.h with default options

 private:
  friend class Computation;
  friend class Instruction;
  int64_t NextId() { return next_id_++; }
  std::string UniqueName(std::string_view wanted);

  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  std::vector<Alias> aliases_;
  std::vector<std::pair<std::string, std::string>> extra_;
  StackFrames stack_frames_;
  bool is_scheduled_ = false;
  int64_t replica_count_ = 1, num_partitions_ = 1;
  int64_t next_id_ = 1;
  struct Names;  // names of computations
  std::unique_ptr<Names> names_;
};

// Structural equality: same opcodes, shapes, attributes, wiring and regions; names, ids and
// metadata do not count.
bool Equal(const Module& a, const Module& b);
bool Equal(const Computation& a, const Computation& b);

}  // namespace lazuli::hlo
