#include "backend/cpu/passes/fuse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/support/check.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Instructions of one kernel: LLVM's time grows faster than linearly (docs/architecture.md, 3b).
constexpr std::size_t kMaxMembers = 500;

bool IsIndexing(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kReverse:
    case Opcode::kReshape:
    case Opcode::kBitcast:
      return true;
    default:
      return false;
  }
}

bool IsDuplicable(const Instruction* i) {
  return IsIndexing(i) || i->opcode() == Opcode::kIota || i->opcode() == Opcode::kConstant;
}

// A second name for its operand's memory.
bool IsFree(const Instruction* i) {
  const auto same_order = [](const Shape& a, const Shape& b) {
    const Dims x = a.strides(), y = b.strides();
    for (std::size_t d = 0; d < x.size(); ++d) {
      if (a.dim(static_cast<int64_t>(d)) != 1 && x[d] != y[d]) return false;
    }
    return true;
  };
  switch (i->opcode()) {
    case Opcode::kReshape:
    case Opcode::kBitcast:
      return !i->shape().has_layout() && !i->operand(0)->shape().has_layout();
    case Opcode::kCopy:
      return same_order(i->shape(), i->operand(0)->shape());
    default:
      return false;
  }
}

// The root of a group of its own, which takes its producers in or not (ReadsOnce) but joins
// nothing.
bool IsRootOnly(const Instruction* i) {
  return i->opcode() == Opcode::kReduce || i->opcode() == Opcode::kReduceWindow ||
         i->opcode() == Opcode::kSelectAndScatter;
}

// The user reads each element of its operand at most once.
bool ReadsOnce(const Instruction* user) {
  return user->opcode() != Opcode::kBroadcast && user->opcode() != Opcode::kReduceWindow &&
         user->opcode() != Opcode::kSelectAndScatter;
}

struct Group {
  std::vector<Instruction*> members;  // users before producers
  std::vector<Instruction*> outputs;
};

class Fuser {
 public:
  Fuser(hlo::Module& module, const std::function<bool(const Instruction&)>& supports,
        std::size_t max_args)
      : module_(module), supports_(supports), max_args_(max_args) {}

  bool Run() {
    const std::vector<Instruction*> order = module_.entry()->PostOrder();
    for (std::size_t k = 0; k < order.size(); ++k) position_[order[k]] = k;
    for (auto i = order.rbegin(); i != order.rend(); ++i) Place(*i);
    // Producers first, so that a group's operands are what earlier groups left behind.
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group)
      ordered_.push_back(&*group);
    lowering::Rewriter rewriter(module_.entry());
    for (Group* group : ordered_) Materialise(*group, rewriter);
    return rewriter.changed();
  }

 private:
  bool Fusible(const Instruction* i) const {
    return i->opcode() != Opcode::kConstant && i->opcode() != Opcode::kParameter && !IsFree(i) &&
           supports_(*i);
  }
  void Place(Instruction* i);
  bool NeedsOwnGroup(const Instruction* i) const;
  bool TryJoinUsers(Instruction* i);
  bool TryJoinAsOutput(Instruction* i);
  bool MayJoin(const Instruction* i, std::size_t group, bool as_output) const;
  bool Reaches(const Instruction* i, std::size_t group) const;
  int64_t GroupOf(const Instruction* i) const {
    const auto it = group_of_.find(i);
    return it == group_of_.end() ? -1 : static_cast<int64_t>(it->second);
  }
  void Join(Instruction* i, std::size_t group) {
    groups_[group].members.push_back(i);
    group_of_[i] = group;
  }
  void Materialise(const Group& group, lowering::Rewriter& rewriter);

  hlo::Module& module_;
  const std::function<bool(const Instruction&)>& supports_;
  std::size_t max_args_;
  std::unordered_map<const Instruction*, std::size_t> position_;
  std::unordered_map<const Instruction*, std::size_t> group_of_;
  std::vector<Group> groups_;
  std::vector<Group*> ordered_;
};

// A duplicable instruction that only groups read needs no kernel of its own. Users have been placed
// already, so a duplicable user without a group is read by groups alone.
bool Fuser::NeedsOwnGroup(const Instruction* i) const {
  return i->IsRoot() ||
         std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
           return GroupOf(user) < 0 && !(IsDuplicable(user) && Fusible(user));
         });
}

// Pure movement of data that lies in memory: a strided copy does it better than a kernel.
bool IsPlainMovement(const Group& group) {
  if (group.members.size() != 1) return false;
  const Instruction* i = group.members[0];
  const bool moves =
      i->opcode() == Opcode::kCopy || (IsIndexing(i) && i->opcode() != Opcode::kBroadcast);
  return moves && !IsDuplicable(i->operand(0));
}

void Fuser::Place(Instruction* i) {
  if (IsFree(i) && supports_(*i)) {  // costs nothing where it is, but lets its producer in
    TryJoinUsers(i);
    return;
  }
  if (!Fusible(i)) return;
  if (IsDuplicable(i)) {
    if (!NeedsOwnGroup(i)) return;
  } else if (TryJoinUsers(i) || TryJoinAsOutput(i)) {
    return;
  }
  groups_.push_back({.members = {}, .outputs = {i}});
  Join(i, groups_.size() - 1);
}

bool Fuser::MayJoin(const Instruction* i, std::size_t g, bool as_output) const {
  const Group& group = groups_[g];
  if (group.members.size() >= kMaxMembers) return false;
  // Every member could bring as many parameters as it has operands.
  std::size_t args = group.outputs.size() + (as_output ? 1 : 0);
  std::unordered_set<const Instruction*> parameters;
  const auto count = [&](const Instruction* member) {
    for (const Instruction* operand : member->operands()) parameters.insert(operand);
  };
  for (const Instruction* member : group.members) count(member);
  count(i);
  args += parameters.size();
  if (args > max_args_) return false;
  if (!as_output) return true;
  const Instruction* output = group.outputs[0];
  if (!output->IsElementwise()) return false;
  return SameDims(output->shape(), i->shape()) &&
         output->shape().strides() == i->shape().strides() && !Reaches(i, g);
}

// Whether a path from `i` through instructions outside the group leads into it. Groups count as
// one: what enters leaves everywhere.
bool Fuser::Reaches(const Instruction* i, std::size_t group) const {
  std::vector<const Instruction*> stack;
  std::unordered_set<const Instruction*> seen;
  const auto push_users = [&](const Instruction* from) {
    for (const Instruction* user : from->users()) {
      if (seen.insert(user).second) stack.push_back(user);
    }
  };
  for (const Instruction* user : i->users()) {
    if (GroupOf(user) != static_cast<int64_t>(group) && seen.insert(user).second)
      stack.push_back(user);
  }
  while (!stack.empty()) {
    const Instruction* at = stack.back();
    stack.pop_back();
    const int64_t other = GroupOf(at);
    if (other == static_cast<int64_t>(group)) return true;
    push_users(at);
    if (other < 0) continue;
    for (const Instruction* member : groups_[static_cast<std::size_t>(other)].members) {
      if (seen.insert(member).second) stack.push_back(member);
    }
  }
  return false;
}

// Joins the group that all users are in.
bool Fuser::TryJoinUsers(Instruction* i) {
  if (IsRootOnly(i) || i->IsRoot() || i->users().empty()) return false;
  const int64_t group = GroupOf(i->users()[0]);
  for (const Instruction* user : i->users()) {
    const bool is_init = user->opcode() == Opcode::kReduce && user->operand(0) != i;
    if (GroupOf(user) != group || !ReadsOnce(user) || is_init) return false;
  }
  if (group < 0 || !MayJoin(i, static_cast<std::size_t>(group), /*as_output=*/false)) return false;
  Join(i, static_cast<std::size_t>(group));
  return true;
}

// Becomes a further output of a group that reads it, or that reads the same arrays.
bool Fuser::TryJoinAsOutput(Instruction* i) {
  if (IsRootOnly(i)) return false;
  const auto try_groups = [&](const Instruction* value) {
    for (const Instruction* user : value->users()) {
      const int64_t group = GroupOf(user);
      if (group < 0 || !MayJoin(i, static_cast<std::size_t>(group), /*as_output=*/true)) continue;
      groups_[static_cast<std::size_t>(group)].outputs.push_back(i);
      Join(i, static_cast<std::size_t>(group));
      return true;
    }
    return false;
  };
  if (try_groups(i)) return true;
  return std::any_of(i->operands().begin(), i->operands().end(), [&](const Instruction* operand) {
    return !IsDuplicable(operand) && SameDims(operand->shape(), i->shape()) && try_groups(operand);
  });
}

// Clones a group into a fused computation, member after member in post-order.
class BodyBuilder {
 public:
  BodyBuilder(hlo::Module& module, const std::function<bool(const Instruction&)>& supports)
      : body_(module.AddComputation("fused_computation")), supports_(supports) {
    body_->set_is_fusion(true);
  }

  void AddMember(Instruction* i) { clones_[i] = Clone(i); }
  void SetRoot(const std::vector<Instruction*>& outputs) {
    if (outputs.size() == 1) return body_->set_root(clones_.at(outputs[0]));
    std::vector<Instruction*> roots;
    std::vector<Shape> shapes;
    for (Instruction* output : outputs) {
      roots.push_back(clones_.at(output));
      shapes.push_back(output->shape());
    }
    body_->set_root(body_->Add(Opcode::kTuple, Shape::Tuple(std::move(shapes)), roots));
  }
  hlo::Computation* body() { return body_; }
  const std::vector<Instruction*>& parameters() const { return parameters_; }

 private:
  Instruction* Clone(const Instruction* i) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) operands.push_back(Value(operand));
    return body_->AddClone(*i, operands);
  }

  // Inside the body: a member's clone, a copy of what is cheap, or a parameter. Chains of
  // duplicables are as long as the program writes them, and are walked without recursion.
  Instruction* Value(Instruction* wanted) {
    std::vector<Instruction*> stack{wanted};
    while (!stack.empty()) {
      Instruction* i = stack.back();
      if (clones_.contains(i)) {
        stack.pop_back();
      } else if (!IsDuplicable(i) || !supports_(*i) || IsFree(i)) {
        clones_[i] = body_->AddParameter(static_cast<int64_t>(parameters_.size()), i->shape());
        parameters_.push_back(i);
      } else {
        bool ready = true;
        for (Instruction* operand : i->operands()) {
          if (clones_.contains(operand)) continue;
          stack.push_back(operand);
          ready = false;
        }
        if (ready) clones_[i] = Clone(i);
      }
    }
    return clones_.at(wanted);
  }

  hlo::Computation* body_;
  const std::function<bool(const Instruction&)>& supports_;
  std::unordered_map<const Instruction*, Instruction*> clones_;
  std::vector<Instruction*> parameters_;  // outside
};

void Fuser::Materialise(const Group& group, lowering::Rewriter& rewriter) {
  if (IsPlainMovement(group)) return;
  std::vector<Instruction*> members = group.members;
  std::sort(members.begin(), members.end(), [&](const Instruction* a, const Instruction* b) {
    return position_.at(a) < position_.at(b);
  });
  BodyBuilder builder(module_, supports_);
  for (Instruction* member : members) builder.AddMember(member);
  builder.SetRoot(group.outputs);
  const Instruction* first = group.outputs[0];
  const auto kind = IsRootOnly(first) ? hlo::FusionKind::kInput : hlo::FusionKind::kLoop;
  rewriter.set_origin(first);
  Instruction* fusion =
      rewriter.Add(Opcode::kFusion, builder.body()->root()->shape(), builder.parameters(),
                   hlo::FusionAttrs{kind}, {builder.body()});
  if (group.outputs.size() == 1) return rewriter.Replace(group.outputs[0], fusion);
  for (std::size_t o = 0; o < group.outputs.size(); ++o) {
    Instruction* element = rewriter.Add(Opcode::kGetTupleElement, group.outputs[o]->shape(),
                                        {fusion}, hlo::TupleIndexAttrs{static_cast<int64_t>(o)});
    rewriter.Replace(group.outputs[o], element);
  }
}

}  // namespace

absl::StatusOr<bool> Fuse::Run(hlo::Module& module) {
  return Fuser(module, supports_, max_args_).Run();
}

}  // namespace lazuli::backend
