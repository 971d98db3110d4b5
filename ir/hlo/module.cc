#include "ir/hlo/module.h"

#include <algorithm>
#include <charconv>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "ir/hlo/dense_map.h"
#include "ir/hlo/names.h"
#include "ir/hlo/text/printer.h"

namespace lazuli::hlo {
namespace {

bool Contains(absl::Span<Instruction* const> list, const Instruction* instruction) {
  return std::find(list.begin(), list.end(), instruction) != list.end();
}

bool ById(const std::unique_ptr<Instruction>& a, int64_t id) { return a->id() < id; }

// Where each operand of an instruction stands.
using OperandIndex = absl::flat_hash_map<const Instruction*, std::vector<std::size_t>>;
using OperandIndices = absl::flat_hash_map<const Instruction*, OperandIndex>;

// Instructions with more operands have an index. A program of n results ends in a tuple of n, which
// are replaced one by one.
constexpr std::size_t kManyOperands = 64;

// Null for one without.
OperandIndex* IndexOf(const Instruction* i, OperandIndices& indices) {
  return i->operands().size() > kManyOperands ? &indices[i] : nullptr;
}

bool Reads(const Instruction* i, const Instruction* operand, const OperandIndex* index) {
  return index != nullptr ? index->contains(operand) : Contains(i->operands(), operand);
}

}  // namespace

struct Module::Names {
  absl::flat_hash_set<std::string> used;  // by computations
  OperandIndices operand_indices;
  // Whether an instruction that may have a side effect was ever added: mostly none was, and then
  // nobody has to look through what is called, which may be nested deeply.
  bool may_have_side_effects = false;
};

// --- Instruction

const Attrs Instruction::kNoAttrs;

Attrs& Instruction::mutable_attrs() {
  if (attrs_ == nullptr) attrs_ = std::make_unique<Attrs>();
  return *attrs_;
}

bool Instruction::IsRoot() const { return parent_->root() == this; }

bool Instruction::HasSideEffect() const {
  auto own = [](const Instruction& i) {
    if (Traits(i.opcode()).side_effects) return true;
    return i.opcode() == Opcode::kCustomCall &&
           i.attrs_as<CustomCallAttrs>().custom_call_has_side_effect;
  };
  if (own(*this)) return true;
  if (called_.empty() || !parent_->parent()->names_->may_have_side_effects) return false;
  // A callee may be reached along many paths, and call chains may be long.
  std::vector<const Computation*> pending(called_.begin(), called_.end());
  absl::flat_hash_set<const Computation*> seen(pending.begin(), pending.end());
  while (!pending.empty()) {
    const Computation* computation = pending.back();
    pending.pop_back();
    for (const auto& instruction : computation->instructions()) {
      if (own(*instruction)) return true;
      for (const Computation* callee : instruction->called()) {
        if (seen.insert(callee).second) pending.push_back(callee);
      }
    }
  }
  return false;
}

void Instruction::AddUser(Instruction* user) { users_.push_back(user); }

void Instruction::RemoveUser(Instruction* user) {
  // Mostly the newest users go, so search from the end.
  for (std::size_t i = users_.size(); i-- > 0;) {
    if (users_[i] == user) {
      users_.erase(users_.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  }
}

void Instruction::ReplaceOperand(int64_t i, Instruction* with) {
  const auto position = static_cast<std::size_t>(i);
  Instruction* const old = operands_[position];
  if (old == with) return;
  OperandIndex* const index = IndexOf(this, parent_->parent()->names_->operand_indices);
  // Looking in the operands tells whether this is a user already; users may be very many.
  if (!Reads(this, with, index)) with->AddUser(this);
  operands_[position] = with;
  if (index != nullptr) {
    (*index)[with].push_back(position);
    std::vector<std::size_t>& positions = (*index)[old];
    std::erase(positions, position);
    if (positions.empty()) index->erase(old);
  }
  if (!Reads(this, old, index)) old->RemoveUser(this);
}

void Instruction::ReplaceAllUsesWith(Instruction* with) {
  if (with == this) return;
  const auto users = std::move(users_);
  users_.clear();
  OperandIndices& indices = parent_->parent()->names_->operand_indices;
  for (Instruction* user : users) {
    if (user == with) {  // the replacement may be computed from this
      users_.push_back(user);
      continue;
    }
    OperandIndex* const index = IndexOf(user, indices);
    if (!Reads(user, with, index)) with->AddUser(user);
    if (index == nullptr) {
      std::replace(user->operands_.begin(), user->operands_.end(), this, with);
      continue;
    }
    std::vector<std::size_t>& positions = (*index)[with];
    for (const std::size_t position : (*index)[this]) {
      user->operands_[position] = with;
      positions.push_back(position);
    }
    index->erase(this);
  }
  if (IsRoot()) parent_->set_root(with);
}

std::string Instruction::ToString() const { return hlo::ToString(*this); }

// --- Computation

// Names given by somebody are in this map. Names made here, "<opcode>.<id>", are not: their id
// finds them, and most instructions never pay for a map entry.
struct Computation::Names {
  absl::flat_hash_map<std::string_view, Instruction*> map;
};

Computation::Computation(Module* parent, std::string name)
    : parent_(parent), name_(std::move(name)), names_(std::make_unique<Names>()) {}

Computation::~Computation() = default;

bool Computation::IsEntry() const { return parent_->entry() == this; }

Instruction* Computation::Find(std::string_view name) const {
  if (auto it = names_->map.find(name); it != names_->map.end()) return it->second;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return nullptr;
  int64_t id = 0;
  const char* end = name.data() + name.size();
  if (std::from_chars(name.data() + dot + 1, end, id).ptr != end) return nullptr;
  auto it = std::lower_bound(instructions_.begin(), instructions_.end(), id, ById);
  return it != instructions_.end() && (*it)->id() == id && (*it)->name() == name ? it->get()
                                                                                 : nullptr;
}

void Computation::SetName(Instruction* instruction, std::string_view wanted) {
  if (wanted.empty()) {
    const std::string_view opcode = OpcodeText(instruction->opcode_);
    std::string& name = instruction->name_;
    name.reserve(opcode.size() + 8);
    name = opcode;
    name += '.';
    AppendTo(name, instruction->id_);
    if (names_->map.empty() || !names_->map.contains(name)) return;
  } else {
    instruction->name_ = CleanName(wanted);
  }
  if (Find(instruction->name_) != nullptr) {
    const std::string base = instruction->name_ + ".";
    for (int64_t suffix = instruction->id_; Find(instruction->name_) != nullptr; ++suffix) {
      instruction->name_ = Str(base, suffix);
    }
  }
  names_->map.emplace(instruction->name_, instruction);
}

Instruction* Computation::Add(Opcode opcode, Shape shape, absl::Span<Instruction* const> operands,
                              Attrs attrs, absl::Span<Computation* const> called,
                              std::string_view name) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<Instruction> owned(new Instruction);
  Instruction* instruction = owned.get();
  instruction->opcode_ = opcode;
  instruction->shape_ = std::move(shape);
  instruction->parent_ = this;
  instruction->id_ = parent_->NextId();
  if (attrs.index() != 0) instruction->attrs_ = std::make_unique<Attrs>(std::move(attrs));
  instruction->called_.assign(called.begin(), called.end());
  instruction->operands_.assign(operands.begin(), operands.end());
  for (Instruction* operand : operands) {
    // Only this instruction can be the newest user: it is new.
    if (operand->users_.empty() || operand->users_.back() != instruction)
      operand->AddUser(instruction);
  }
  if (operands.size() > kManyOperands) {
    OperandIndex& index = parent_->names_->operand_indices[instruction];
    index.clear();  // of an instruction that was removed
    for (std::size_t k = 0; k < operands.size(); ++k) index[operands[k]].push_back(k);
  }
  if (opcode == Opcode::kParameter) RegisterParameter(instruction);
  if (Traits(opcode).side_effects || opcode == Opcode::kCustomCall)
    parent_->names_->may_have_side_effects = true;
  SetName(instruction, name);
  instructions_.push_back(std::move(owned));
  if (!root_is_set_) root_ = instruction;
  return instruction;
}

Instruction* Computation::AddParameter(int64_t number, Shape shape, std::string_view name) {
  return Add(Opcode::kParameter, std::move(shape), {}, ParameterAttrs{.number = number}, {}, name);
}

void Computation::RegisterParameter(Instruction* parameter) {
  const int64_t number = parameter->parameter_number();
  LAZULI_CHECK(number >= 0, "parameter number ", number);
  const auto slot = static_cast<std::size_t>(number);
  if (parameters_.size() <= slot) parameters_.resize(slot + 1, nullptr);
  LAZULI_CHECK(parameters_[slot] == nullptr, "two parameters ", number, " in ", name_);
  parameters_[slot] = parameter;
}

Instruction* Computation::AddConstant(Literal value, std::string_view name) {
  auto shared = std::make_shared<const Literal>(std::move(value));
  Shape shape = shared->shape();
  return Add(Opcode::kConstant, std::move(shape), {}, ConstantAttrs{std::move(shared)}, {}, name);
}

Instruction* Computation::AddClone(const Instruction& source,
                                   absl::Span<Instruction* const> operands) {
  Instruction* clone = Add(source.opcode(), source.shape(), operands, source.attrs(),
                           source.called(), source.name());
  clone->metadata_ = source.metadata_;
  clone->sharding_ = source.sharding_;
  clone->extra_ = source.extra_;
  return clone;
}

void Computation::Forget(Instruction* instruction) {
  auto it = names_->map.find(instruction->name_);
  if (it != names_->map.end() && it->second == instruction) names_->map.erase(it);
}

void Computation::Remove(Instruction* instruction) {
  LAZULI_CHECK(instruction->parent_ == this && instruction->users_.empty() &&
                   instruction != root_ && instruction->opcode_ != Opcode::kParameter,
               "removing ", instruction->name_, ", which is used");
  for (Instruction* operand : instruction->operands_) operand->RemoveUser(instruction);
  Forget(instruction);
  auto it = std::lower_bound(instructions_.begin(), instructions_.end(), instruction->id_, ById);
  instructions_.erase(it);
}

void Computation::Detach(Instruction* instruction) {
  LAZULI_CHECK(instruction->parent_ == this && instruction->users_.empty() &&
                   instruction != root_ && instruction->opcode_ != Opcode::kParameter,
               "detaching ", instruction->name_, ", which is used");
  // Finding one user among very many, for each of them, would be quadratic; RemoveDead filters them
  // all at once.
  constexpr std::size_t kManyUsers = 64;
  const auto operands = std::move(instruction->operands_);
  instruction->operands_.clear();
  for (Instruction* operand : operands) {
    if (operand->users_.size() <= kManyUsers) operand->RemoveUser(instruction);
  }
}

int64_t Computation::RemoveDead() {
  DenseMap<uint8_t> live(*this);
  std::vector<Instruction*> pending;
  auto mark = [&](Instruction* i) {
    if (live[i] != 0) return;
    live[i] = 1;
    pending.push_back(i);
  };
  if (root_ != nullptr) mark(root_);
  for (const auto& i : instructions_) {
    if (i->opcode_ == Opcode::kParameter || i->HasSideEffect()) mark(i.get());
  }
  while (!pending.empty()) {
    Instruction* i = pending.back();
    pending.pop_back();
    for (Instruction* operand : i->operands_) mark(operand);
    for (Instruction* predecessor : i->control_predecessors_) mark(predecessor);
  }
  auto is_dead = [&](const Instruction* i) { return live[i] == 0; };
  const int64_t before = instruction_count();
  for (const auto& i : instructions_) {
    if (is_dead(i.get())) {
      Forget(i.get());
    } else {
      auto& users = i->users_;
      users.erase(std::remove_if(users.begin(), users.end(), is_dead), users.end());
    }
  }
  std::erase_if(instructions_, [&](const auto& i) { return is_dead(i.get()); });
  return before - instruction_count();
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  bool sorted = true;
  for (const auto& i : instructions_) {
    order.push_back(i.get());
    for (const Instruction* operand : i->operands_) sorted = sorted && operand->id_ < i->id_;
    for (const Instruction* predecessor : i->control_predecessors_)
      sorted = sorted && predecessor->id_ < i->id_;
  }
  if (sorted) return order;

  order.clear();
  enum : uint8_t { kNew, kOpen, kDone };
  DenseMap<uint8_t> state(*this);
  std::vector<Instruction*> stack;
  for (const auto& start : instructions_) {
    if (state[start.get()] == kNew) stack.push_back(start.get());
    while (!stack.empty()) {
      Instruction* i = stack.back();
      if (state[i] != kNew) {
        stack.pop_back();
        if (state[i] == kOpen) order.push_back(i);
        state[i] = kDone;
        continue;
      }
      state[i] = kOpen;
      // In reverse, so that the first operand comes first. An open one closes a cycle, which the
      // verifier reports.
      auto visit = [&](Instruction* needed) {
        if (state[needed] == kNew) stack.push_back(needed);
      };
      for (std::size_t k = i->control_predecessors_.size(); k-- > 0;)
        visit(i->control_predecessors_[k]);
      for (std::size_t k = i->operands_.size(); k-- > 0;) visit(i->operands_[k]);
    }
  }
  return order;
}

// --- Module

Module::Module(std::string name) : name_(std::move(name)), names_(std::make_unique<Names>()) {}
Module::~Module() = default;

std::string Module::UniqueName(std::string_view wanted) {
  const std::string base = CleanName(wanted.empty() ? "computation" : wanted);
  std::string name = base;
  for (int64_t suffix = static_cast<int64_t>(computations_.size());
       !names_->used.insert(name).second; ++suffix) {
    name = Str(base, ".", suffix);
  }
  return name;
}

Computation* Module::AddComputation(std::string_view name) {
  computations_.push_back(std::unique_ptr<Computation>(new Computation(this, UniqueName(name))));
  return computations_.back().get();
}

void Module::RemoveComputation(Computation* computation) {
  names_->used.erase(computation->name());
  if (entry_ == computation) entry_ = nullptr;
  std::erase_if(computations_, [&](const auto& c) { return c.get() == computation; });
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  if (entry_ == nullptr) return order;
  enum : uint8_t { kNew, kOpen, kDone };
  absl::flat_hash_map<const Computation*, uint8_t> state;
  std::vector<Computation*> stack = {entry_};
  while (!stack.empty()) {
    Computation* computation = stack.back();
    uint8_t& now = state[computation];
    if (now != kNew) {
      stack.pop_back();
      if (now == kOpen) order.push_back(computation);
      now = kDone;
      continue;
    }
    now = kOpen;
    for (const auto& instruction : computation->instructions()) {
      for (Computation* callee : instruction->called()) {
        if (!state.contains(callee)) stack.push_back(callee);
      }
    }
  }
  // The order in which they were made is kept where it is one already.
  absl::flat_hash_map<const Computation*, int64_t> made;
  for (const auto& computation : computations_)
    made[computation.get()] = static_cast<int64_t>(made.size());
  for (const Computation* computation : order) {
    for (const auto& instruction : computation->instructions()) {
      for (const Computation* callee : instruction->called()) {
        if (made[callee] >= made[computation]) return order;
      }
    }
  }
  std::sort(order.begin(), order.end(),
            [&](Computation* a, Computation* b) { return made[a] < made[b]; });
  return order;
}

std::unique_ptr<Module> Module::Clone() const {
  auto clone = std::make_unique<Module>(name_);
  clone->aliases_ = aliases_;
  clone->extra_ = extra_;
  clone->stack_frames_ = stack_frames_;
  clone->is_scheduled_ = is_scheduled_;
  clone->set_device_counts(replica_count_, num_partitions_);
  absl::flat_hash_map<const Computation*, Computation*> computations;
  for (const auto& computation : computations_) {
    computations[computation.get()] = clone->AddComputation(computation->name());
  }
  for (const auto& computation : computations_) {
    Computation* target = computations[computation.get()];
    target->is_fusion_ = computation->is_fusion_;
    DenseMap<Instruction*> copies(*computation);
    std::vector<Instruction*> operands;
    for (Instruction* source : computation->PostOrder()) {
      operands.clear();
      for (Instruction* operand : source->operands()) operands.push_back(copies[operand]);
      Instruction* copy = target->AddClone(*source, operands);
      for (Computation*& callee : copy->called_) callee = computations[callee];
      for (Instruction* predecessor : source->control_predecessors()) {
        copy->AddControlPredecessor(copies[predecessor]);
      }
      copies[source] = copy;
    }
    if (computation->root_ != nullptr) target->root_ = copies[computation->root_];
    target->root_is_set_ = computation->root_is_set_;
  }
  if (entry_ != nullptr) clone->entry_ = computations[entry_];
  return clone;
}

int64_t Module::instruction_count() const {
  int64_t count = 0;
  for (const auto& computation : computations_) count += computation->instruction_count();
  return count;
}

std::string Module::ToString() const { return hlo::ToString(*this); }

// --- equality

namespace {

using ComputationPairs = std::vector<std::pair<const Computation*, const Computation*>>;

bool EqualInstructions(const Instruction& a, const Instruction& b,
                       const DenseMap<int64_t>& position_a, const DenseMap<int64_t>& position_b) {
  if (a.opcode() != b.opcode() || a.shape() != b.shape() || a.attrs() != b.attrs() ||
      a.operand_count() != b.operand_count() || a.called().size() != b.called().size() ||
      a.sharding() != b.sharding() || a.extra_attrs() != b.extra_attrs() ||
      a.IsRoot() != b.IsRoot() ||
      a.control_predecessors().size() != b.control_predecessors().size()) {
    return false;
  }
  for (int64_t i = 0; i < a.operand_count(); ++i) {
    if (position_a[a.operand(i)] != position_b[b.operand(i)]) return false;
  }
  for (std::size_t i = 0; i < a.control_predecessors().size(); ++i) {
    if (position_a[a.control_predecessors()[i]] != position_b[b.control_predecessors()[i]])
      return false;
  }
  return true;
}

// Compares two computations and notes the pairs of callees that must be equal too.
bool EqualBodies(const Computation& a, const Computation& b, ComputationPairs& callees) {
  if (a.instruction_count() != b.instruction_count()) return false;
  DenseMap<int64_t> position_a(a), position_b(b);
  const auto order_a = a.PostOrder(), order_b = b.PostOrder();
  for (std::size_t i = 0; i < order_a.size(); ++i) {
    position_a[order_a[i]] = position_b[order_b[i]] = static_cast<int64_t>(i);
  }
  for (std::size_t i = 0; i < order_a.size(); ++i) {
    if (!EqualInstructions(*order_a[i], *order_b[i], position_a, position_b)) return false;
    for (std::size_t k = 0; k < order_a[i]->called().size(); ++k) {
      callees.emplace_back(order_a[i]->called()[k], order_b[i]->called()[k]);
    }
  }
  return true;
}

}  // namespace

bool Equal(const Computation& a, const Computation& b) {
  ComputationPairs pending = {{&a, &b}};
  absl::flat_hash_set<std::pair<const Computation*, const Computation*>> seen;
  while (!pending.empty()) {
    const auto pair = pending.back();
    pending.pop_back();
    if (!seen.insert(pair).second) continue;
    if (!EqualBodies(*pair.first, *pair.second, pending)) return false;
  }
  return true;
}

bool Equal(const Module& a, const Module& b) {
  if (a.aliases() != b.aliases() || a.extra_attrs() != b.extra_attrs() ||
      a.is_scheduled() != b.is_scheduled() || a.replica_count() != b.replica_count() ||
      a.num_partitions() != b.num_partitions() ||
      (a.entry() == nullptr) != (b.entry() == nullptr)) {
    return false;
  }
  return a.entry() == nullptr || Equal(*a.entry(), *b.entry());
}

}  // namespace lazuli::hlo
