#include "backend/cpu/passes/fuse.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/hlo/windows.h"
#include "ir/support/check.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Instructions of one kernel: LLVM's time grows faster than linearly (docs/architecture.md, 3b).
constexpr std::size_t kMaxMembers = 500;

// Reductions of one kernel: each keeps eight vectors in registers.
constexpr std::size_t kMaxSiblings = 4;

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

// A reduction of several arrays: a kernel without siblings.
bool IsFold(const Instruction* i) { return i->opcode() == Opcode::kReduce && i->shape().IsTuple(); }

bool IsScatter(const Instruction* i) { return i->opcode() == Opcode::kSelectAndScatter; }

bool IsGather(const Instruction* i) {
  return i->opcode() == Opcode::kGather || i->opcode() == Opcode::kDynamicSlice;
}

// The user reads any element of `i`, which therefore lies in memory.
bool ReadsAnywhere(const Instruction* user, const Instruction* i) {
  return IsGather(user) && user->operand(0) == i;
}

// The user reads each element of its operand at most once.
bool ReadsOnce(const Instruction* user) {
  return user->opcode() != Opcode::kBroadcast && user->opcode() != Opcode::kReduceWindow &&
         user->opcode() != Opcode::kSelectAndScatter;
}

bool SameOrder(const Shape& a, const Shape& b) {
  return SameDims(a, b) && a.strides() == b.strides();
}

// Elements that lie next to each other in memory along the innermost dimension.
int64_t LineLength(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.dim(shape.minor_to_major()[0]);
}
// Shorter lines are not worth vectors (of a reduction's lanes).
constexpr int64_t kVectorLine = 8;

// Whether the kernel that makes `first` can make `i`, too: elementwise values of one shape; sibling
// reductions, and elementwise values of the shape that they reduce.
bool ShareKernel(const Instruction* first, const Instruction* i) {
  if (IsFold(first) || IsFold(i)) return false;
  if (first->opcode() != Opcode::kReduce)
    return first->IsElementwise() && i->IsElementwise() && SameOrder(first->shape(), i->shape());
  const Shape& input = first->operand(0)->shape();
  if (i->IsElementwise()) return SameOrder(input, i->shape()) && LineLength(input) >= kVectorLine;
  return i->opcode() == Opcode::kReduce && SameOrder(input, i->operand(0)->shape()) &&
         SameOrder(first->shape(), i->shape()) &&
         first->attrs_as<hlo::DimensionsAttrs>() == i->attrs_as<hlo::DimensionsAttrs>();
}

// The points that the instruction's kernel visits.
const Shape& SpaceOf(const Instruction* i) {
  return i->opcode() == Opcode::kReduce ? i->operand(0)->shape() : i->shape();
}

struct Group {
  std::vector<Instruction*> members;  // users before producers
  std::vector<Instruction*> outputs;  // reductions first
  bool scatters = false;              // a member is a select-and-scatter
};

// The array that is reduced, and those that it is made of, elementwise, nearby.
std::vector<const Instruction*> SourcesOf(const Instruction* reduce) {
  constexpr std::size_t kNearby = 16;
  std::vector<const Instruction*> sources{reduce->operand(0)};
  for (std::size_t k = 0; k < sources.size() && sources.size() < kNearby; ++k) {
    if (!sources[k]->IsElementwise()) continue;
    for (const Instruction* operand : sources[k]->operands()) {
      if (!IsDuplicable(operand) && SameOrder(operand->shape(), reduce->operand(0)->shape()))
        sources.push_back(operand);
    }
  }
  return sources;
}

class Fuser {
 public:
  Fuser(hlo::Module& module, const std::function<bool(const Instruction&)>& supports,
        std::size_t max_args)
      : module_(module), supports_(supports), max_args_(max_args) {}

  bool Run() {
    const std::vector<Instruction*> order = module_.entry()->PostOrder();
    for (std::size_t k = 0; k < order.size(); ++k) position_[order[k]] = k;
    for (Instruction* i : std::ranges::reverse_view(order)) Place(i);
    // Producers first, so that a group's operands are what earlier groups left behind.
    for (Group& group : std::ranges::reverse_view(groups_)) ordered_.push_back(&group);
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
  bool TryJoinScatter(Instruction* i);
  bool TryJoinAsOutput(Instruction* i);
  bool MayJoin(const Instruction* i, std::size_t group, bool as_output) const;
  bool Reaches(const Instruction* i, std::size_t group) const;
  int64_t GroupOf(const Instruction* i) const {
    const auto it = group_of_.find(i);
    return it == group_of_.end() ? -1 : static_cast<int64_t>(it->second);
  }
  void Join(Instruction* i, std::size_t group);
  void JoinAsOutput(Instruction* i, std::size_t group);
  void Materialise(const Group& group, lowering::Rewriter& rewriter);

  hlo::Module& module_;
  const std::function<bool(const Instruction&)>& supports_;
  std::size_t max_args_;
  std::unordered_map<const Instruction*, std::size_t> position_;
  std::unordered_map<const Instruction*, std::size_t> group_of_;
  // Groups that reduce an array or what is made of it.
  std::unordered_map<const Instruction*, std::vector<std::size_t>> reducing_;
  std::vector<Group> groups_;
  std::vector<Group*> ordered_;
};

void Fuser::Join(Instruction* i, std::size_t group) {
  groups_[group].members.push_back(i);
  group_of_[i] = group;
  if (i->opcode() != Opcode::kReduce || IsFold(i)) return;
  for (const Instruction* source : SourcesOf(i)) reducing_[source].push_back(group);
}

void Fuser::JoinAsOutput(Instruction* i, std::size_t group) {
  std::vector<Instruction*>& outputs = groups_[group].outputs;
  const auto is_elementwise = [](const Instruction* output) { return output->IsElementwise(); };
  const bool reduces = i->opcode() == Opcode::kReduce;
  outputs.insert(
      reduces ? std::find_if(outputs.begin(), outputs.end(), is_elementwise) : outputs.end(), i);
  Join(i, group);
}

// A duplicable instruction that only groups read needs no kernel of its own. Users have been placed
// already, so a duplicable user without a group is read by groups alone.
bool Fuser::NeedsOwnGroup(const Instruction* i) const {
  return i->IsRoot() ||
         std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
           return ReadsAnywhere(user, i) ||
                  (GroupOf(user) < 0 && !(IsDuplicable(user) && Fusible(user)));
         });
}

// Windows so wide that copying each is best.
bool MovesLines(const Instruction* gather) {
  if (gather->opcode() == Opcode::kDynamicSlice) return true;
  constexpr int64_t kLineBytes = 128;
  const Dims& sizes = gather->attrs_as<hlo::GatherAttrs>().slice_sizes;
  return !sizes.empty() && sizes.back() * ByteWidth(gather->shape().dtype()) >= kLineBytes;
}

// Pure movement of data that lies in memory: a strided copy does it better than a kernel.
bool IsPlainMovement(const Group& group) {
  if (group.members.size() != 1) return false;
  const Instruction* i = group.members[0];
  if (IsGather(i)) return MovesLines(i);
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
  } else if (TryJoinUsers(i) || TryJoinScatter(i) || TryJoinAsOutput(i)) {
    return;
  }
  groups_.push_back({.members = {}, .outputs = {i}, .scatters = IsScatter(i)});
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
  if (std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
        return ReadsAnywhere(user, i) && GroupOf(user) == static_cast<int64_t>(g);
      }))
    return false;
  if (i->opcode() == Opcode::kReduce) {
    const auto here = [&](const Instruction* user) {  // as the init of another reduction
      return GroupOf(user) == static_cast<int64_t>(g);
    };
    if (group.outputs.size() >= kMaxSiblings ||
        std::any_of(i->users().begin(), i->users().end(), here))
      return false;
  }
  return !group.scatters && ShareKernel(group.outputs[0], i) && !Reaches(i, g);
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
    const bool is_init =
        user->opcode() == Opcode::kReduce &&
        std::find(user->operands().begin(), user->operands().begin() + user->operand_count() / 2,
                  i) == user->operands().begin() + user->operand_count() / 2;
    if (GroupOf(user) != group || !ReadsOnce(user) || ReadsAnywhere(user, i) || is_init)
      return false;
  }
  if (group < 0 || !MayJoin(i, static_cast<std::size_t>(group), /*as_output=*/false)) return false;
  if (IsGather(i) && groups_[static_cast<std::size_t>(group)].scatters) return false;
  Join(i, static_cast<std::size_t>(group));
  return true;
}

// Each element of the result is written once, by the one window that it lies in.
bool WindowsTile(const Instruction* scatter) {
  const auto& window = scatter->attrs_as<hlo::WindowAttrs>().window;
  return !hlo::WindowsOverlap(window) &&
         hlo::WindowsCover(window, scatter->shape(), scatter->operand(1)->shape());
}

// A select-and-scatter joins its users if all they do is elementwise work on its result.
bool Fuser::TryJoinScatter(Instruction* i) {
  if (!IsScatter(i) || i->IsRoot() || i->users().empty() || !WindowsTile(i)) return false;
  const int64_t g = GroupOf(i->users()[0]);
  if (g < 0) return false;
  Group& group = groups_[static_cast<std::size_t>(g)];
  const auto here = [&](const Instruction* user) { return GroupOf(user) == g; };
  const auto elementwise = [&](const Instruction* member) {
    return member->IsElementwise() && SameOrder(member->shape(), i->shape());
  };
  if (group.scatters || group.outputs.size() > 1 ||
      !std::all_of(i->users().begin(), i->users().end(), here) ||
      !std::all_of(group.members.begin(), group.members.end(), elementwise) ||
      !MayJoin(i, static_cast<std::size_t>(g), /*as_output=*/false))
    return false;
  group.scatters = true;
  Join(i, static_cast<std::size_t>(g));
  return true;
}

// Becomes a further output of a group that reads it, or that reads the same arrays.
bool Fuser::TryJoinAsOutput(Instruction* i) {
  const bool reduces = i->opcode() == Opcode::kReduce;
  if (IsFold(i) || (IsRootOnly(i) && !reduces)) return false;
  const auto try_group = [&](std::size_t group) {
    if (!MayJoin(i, group, /*as_output=*/true)) return false;
    JoinAsOutput(i, group);
    return true;
  };
  const auto try_users = [&](const Instruction* value) {
    return std::any_of(value->users().begin(), value->users().end(), [&](const Instruction* user) {
      return GroupOf(user) >= 0 && try_group(static_cast<std::size_t>(GroupOf(user)));
    });
  };
  // A select-and-scatter that could join `i` saves more than a reduction of `i` that does.
  const auto tiles = [](const Instruction* operand) {
    return IsScatter(operand) && WindowsTile(operand);
  };
  if (std::any_of(i->operands().begin(), i->operands().end(), tiles)) return false;
  if (!reduces && try_users(i)) return true;
  const std::vector<const Instruction*> sources =
      reduces ? SourcesOf(i)
              : std::vector<const Instruction*>(i->operands().begin(), i->operands().end());
  return std::any_of(sources.begin(), sources.end(), [&](const Instruction* source) {
    if (IsDuplicable(source) || !SameDims(source->shape(), SpaceOf(i))) return false;
    if (try_users(source)) return true;
    const auto reducing = reducing_.find(source);
    if (reducing == reducing_.end()) return false;
    const std::vector<std::size_t> groups = reducing->second;  // joining one adds to them
    return std::any_of(groups.begin(), groups.end(), try_group);
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
    for (Instruction* operand : i->operands())
      operands.push_back(ReadsAnywhere(i, operand) ? Parameter(operand) : Value(operand));
    return body_->AddClone(*i, operands);
  }

  Instruction* Parameter(Instruction* outside) {
    Instruction*& parameter = parameter_of_[outside];
    if (parameter == nullptr) {
      parameter = body_->AddParameter(static_cast<int64_t>(parameters_.size()), outside->shape());
      parameters_.push_back(outside);
    }
    return parameter;
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
        clones_[i] = Parameter(i);
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
  std::unordered_map<const Instruction*, Instruction*> clones_, parameter_of_;
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
  const auto kind =
      IsRootOnly(first) || group.scatters ? hlo::FusionKind::kInput : hlo::FusionKind::kLoop;
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
