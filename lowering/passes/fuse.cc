#include "lowering/passes/fuse.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"

#include "ir/hlo/dense_map.h"
#include "ir/hlo/windows.h"
#include "ir/support/check.h"
#include "lowering/passes/block_order.h"
#include "lowering/passes/fusion_decision.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Groups that an instruction tries to become a further output of, for each value that they share:
// the nearest.
constexpr std::size_t kMaxTried = 64;

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

FusionDecision If(bool condition, std::string_view else_why_not) {
  return condition ? FusionDecision::Joins() : FusionDecision::No(else_why_not);
}

// Whether the kernel that makes `first` can make `i`, too: elementwise values of one shape; sibling
// reductions, and elementwise values of the shape that they reduce.
FusionDecision ShareKernel(const FusionTarget& target, const Instruction* first,
                           const Instruction* i) {
  if (IsFold(first) || IsFold(i))
    return FusionDecision::No("a reduction of several arrays shares its kernel with nothing");
  if (first->opcode() != Opcode::kReduce)
    return If(first->IsElementwise() && i->IsElementwise() && SameOrder(first->shape(), i->shape()),
              "the kernels loop over different shapes, or one is not elementwise");
  const Shape& input = first->operand(0)->shape();
  if (i->IsElementwise() && LineLength(input) < target.vector_line)
    return FusionDecision::No("the reduced lines are too short to be written in vectors");
  if (i->IsElementwise())
    return If(SameOrder(input, i->shape()), "it does not have the shape of what is reduced there");
  return If(i->opcode() == Opcode::kReduce && SameOrder(input, i->operand(0)->shape()) &&
                SameOrder(first->shape(), i->shape()) &&
                first->attrs_as<hlo::DimensionsAttrs>() == i->attrs_as<hlo::DimensionsAttrs>(),
            "the reductions there are of another shape or over other dimensions");
}

// The points that the instruction's kernel visits.
const Shape& SpaceOf(const Instruction* i) {
  return i->opcode() == Opcode::kReduce ? i->operand(0)->shape() : i->shape();
}

struct FusionGroup {
  BlockOrder::Block block = BlockOrder::kNone;  // its members, users before producers
  std::vector<Instruction*> outputs;            // reductions first; none: merged into another
  // What members read, other members included: as many could become parameters.
  absl::flat_hash_set<const Instruction*> operands;
  bool scatters = false;  // a member is a select-and-scatter
};
using GroupIndex = uint32_t;

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
  Fuser(hlo::Computation* computation, const FusionTarget& target)
      : computation_(computation),
        target_(target),
        blocks_(*computation),
        position_(*computation),
        readers_(*computation),
        reducing_(*computation) {}

  bool Run() {
    const std::vector<Instruction*> order = computation_->PostOrder();
    for (std::size_t k = 0; k < order.size(); ++k) position_[order[k]] = static_cast<uint32_t>(k);
    for (Instruction* i : std::ranges::reverse_view(order)) {
      Place(i);
      if (blocks_.of(i) == BlockOrder::kNone) blocks_.Add(i);
    }
    Rewriter rewriter(computation_);
    // Producers first, so that a group's operands are what earlier groups left behind.
    for (const FusionGroup& group : std::ranges::reverse_view(groups_))
      Materialise(group, rewriter);
    return rewriter.changed();
  }

 private:
  bool Fusible(const Instruction* i) const {
    return i->opcode() != Opcode::kConstant && i->opcode() != Opcode::kParameter && !IsFree(i) &&
           target_.supports(*i);
  }
  void Place(Instruction* i);
  bool NeedsOwnGroup(const Instruction* i);
  FusionDecision TryJoinUsers(Instruction* i);
  FusionDecision TryJoinScatter(Instruction* i);
  FusionDecision TryMergeUsers(Instruction* i);
  bool ReadsElements(const FusionGroup& group, const FusionGroup& by) const;
  FusionDecision MayMerge(const FusionGroup& a, const FusionGroup& b);
  void Merge(FusionGroup& from, FusionGroup& into);
  FusionDecision TryJoinAsOutput(Instruction* i);
  FusionDecision TryJoinOneOf(std::vector<GroupIndex>& groups, Instruction* i);
  bool IsFull(const FusionGroup& group) const;
  FusionDecision MayJoin(const Instruction* i, const FusionGroup& group, bool as_output) const;
  FusionDecision MayJoinAsOutput(const Instruction* i, const FusionGroup& group);
  void Join(Instruction* i, FusionGroup& group);
  void JoinAsOutput(Instruction* i, FusionGroup& group);
  bool IsIn(const Instruction* i, const FusionGroup& group) const {
    return blocks_.of(i) == group.block;
  }
  // Null for an instruction of no group.
  FusionGroup* GroupOf(const Instruction* i);
  void Note(const Instruction* i, FusionGroup& group);
  void Materialise(const FusionGroup& group, Rewriter& rewriter);

  hlo::Computation* computation_;
  const FusionTarget& target_;
  BlockOrder blocks_;
  hlo::DenseMap<uint32_t> position_;
  std::vector<GroupIndex> group_of_block_;  // + 1; 0 or missing: an instruction of no group
  // Groups by what they read, and by what they reduce or what that is made of; the newest last.
  hlo::DenseMap<std::vector<GroupIndex>> readers_, reducing_;
  std::vector<FusionGroup> groups_;
  FusionDecisions decisions_;
};

FusionGroup* Fuser::GroupOf(const Instruction* i) {
  const BlockOrder::Block block = blocks_.of(i);
  if (block >= group_of_block_.size() || group_of_block_[block] == 0) return nullptr;
  return &groups_[group_of_block_[block] - 1];
}

// Remembers what a new member of the group reads.
void Fuser::Note(const Instruction* i, FusionGroup& group) {
  const auto index = static_cast<GroupIndex>(&group - groups_.data());
  for (const Instruction* operand : i->operands()) {
    group.operands.insert(operand);
    std::vector<GroupIndex>& readers = readers_[operand];
    if (readers.empty() || readers.back() != index) readers.push_back(index);
  }
  if (i->opcode() != Opcode::kReduce || IsFold(i)) return;
  for (const Instruction* source : SourcesOf(i)) reducing_[source].push_back(index);
}

void Fuser::Join(Instruction* i, FusionGroup& group) {
  blocks_.Join(i, group.block);
  Note(i, group);
}

void Fuser::JoinAsOutput(Instruction* i, FusionGroup& group) {
  std::vector<Instruction*>& outputs = group.outputs;
  const auto is_elementwise = [](const Instruction* output) { return output->IsElementwise(); };
  const bool reduces = i->opcode() == Opcode::kReduce;
  outputs.insert(
      reduces ? std::find_if(outputs.begin(), outputs.end(), is_elementwise) : outputs.end(), i);
  Join(i, group);
}

// A duplicable instruction that only groups read needs no kernel of its own. Users have been placed
// already, so a duplicable user without a group is read by groups alone.
bool Fuser::NeedsOwnGroup(const Instruction* i) {
  return i->IsRoot() ||
         std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
           return ReadsAnywhere(user, i) ||
                  (GroupOf(user) == nullptr && !(IsDuplicable(user) && Fusible(user)));
         });
}

// Windows so wide that copying each is best.
bool MovesLines(const FusionTarget& target, const Instruction* gather) {
  if (gather->opcode() == Opcode::kDynamicSlice) return true;
  const Dims& sizes = gather->attrs_as<hlo::GatherAttrs>().slice_sizes;
  return !sizes.empty() &&
         sizes.back() * ByteWidth(gather->shape().dtype()) >= target.copied_line_bytes;
}

// Pure movement of data that lies in memory: a strided copy does it better than a kernel.
bool IsPlainMovement(const FusionTarget& target, absl::Span<Instruction* const> members) {
  if (members.size() != 1) return false;
  const Instruction* i = members[0];
  if (IsGather(i)) return MovesLines(target, i);
  const bool moves =
      i->opcode() == Opcode::kCopy || (IsIndexing(i) && i->opcode() != Opcode::kBroadcast);
  return moves && !IsDuplicable(i->operand(0));
}

void Fuser::Place(Instruction* i) {
  if (IsFree(i) && target_.supports(*i)) {  // costs nothing where it is, but lets its producer in
    TryJoinUsers(i);
    return;
  }
  if (!Fusible(i)) return;
  if (IsDuplicable(i)) {
    if (!NeedsOwnGroup(i)) return;
  } else {
    FusionDecision with_users = TryJoinUsers(i);
    if (!with_users.joins() && IsScatter(i)) with_users = TryJoinScatter(i);
    if (with_users.joins()) return;
    const FusionDecision merged = TryMergeUsers(i);
    if (merged.joins()) return;
    const FusionDecision beside = TryJoinAsOutput(i);
    if (beside.joins()) return;
    decisions_.Begins(*i, {{"not in the kernel of its users", with_users},
                           {"its users' kernels do not become one", merged},
                           {"not beside another result", beside}});
  }
  const BlockOrder::Block block = blocks_.Add(i);
  group_of_block_.resize(block + 1);
  group_of_block_[block] = static_cast<GroupIndex>(groups_.size()) + 1;
  groups_.push_back({.block = block, .outputs = {i}, .operands = {}, .scatters = IsScatter(i)});
  Note(i, groups_.back());
}

// Of members or of parameters, so that nothing becomes a further output.
bool Fuser::IsFull(const FusionGroup& group) const {
  return blocks_.members(group.block).size() >= target_.max_members ||
         group.outputs.size() + 1 + group.operands.size() > target_.max_args;
}

FusionDecision Fuser::MayJoin(const Instruction* i, const FusionGroup& group,
                              bool as_output) const {
  constexpr std::string_view kTooManyArrays = "that kernel would read and write too many arrays";
  if (blocks_.members(group.block).size() >= target_.max_members)
    return FusionDecision::No("that kernel has as many instructions as a kernel may have");
  std::size_t args = group.outputs.size() + (as_output ? 1 : 0) + group.operands.size();
  absl::InlinedVector<const Instruction*, 4> added;
  for (const Instruction* operand : i->operands()) {
    if (args + added.size() > target_.max_args) return FusionDecision::No(kTooManyArrays);
    if (!group.operands.contains(operand) &&
        std::find(added.begin(), added.end(), operand) == added.end())
      added.push_back(operand);
  }
  return If(args + added.size() <= target_.max_args, kTooManyArrays);
}

FusionDecision Fuser::MayJoinAsOutput(const Instruction* i, const FusionGroup& group) {
  const FusionDecision fits = MayJoin(i, group, /*as_output=*/true);
  if (!fits.joins()) return fits;
  const auto reads_it = [&](const Instruction* user) {
    return IsIn(user, group) && (ReadsAnywhere(user, i) || i->opcode() == Opcode::kReduce);
  };  // a reduction as the init of another
  if (std::any_of(i->users().begin(), i->users().end(), reads_it))
    return FusionDecision::No("the kernel reads it whole, so it must be known before");
  if (i->opcode() == Opcode::kReduce && group.outputs.size() >= target_.max_siblings)
    return FusionDecision::No("the kernel has as many reductions as registers hold");
  if (group.scatters)
    return FusionDecision::No("the kernel scatters, which leaves no room for another result");
  const FusionDecision shares = ShareKernel(target_, group.outputs[0], i);
  if (!shares.joins()) return shares;
  return If(!blocks_.LeadsInto(i, group.block),
            "the kernel reads something that is computed from it elsewhere");
}

// Joins the group that all users are in.
FusionDecision Fuser::TryJoinUsers(Instruction* i) {
  if (i->IsRoot() || i->users().empty()) return FusionDecision::No("it is a result of the program");
  if (IsRootOnly(i)) return FusionDecision::No("a reduction is known only when its loop has ended");
  FusionGroup* const group = GroupOf(i->users()[0]);
  if (group == nullptr)
    return FusionDecision::No("a user is not in a kernel, but a library call, a copy or a result");
  for (const Instruction* user : i->users()) {
    const bool is_init =
        user->opcode() == Opcode::kReduce &&
        std::find(user->operands().begin(), user->operands().begin() + user->operand_count() / 2,
                  i) == user->operands().begin() + user->operand_count() / 2;
    if (!IsIn(user, *group)) return FusionDecision::No("users are in several kernels, or in none");
    if (!ReadsOnce(user))
      return FusionDecision::No(
          "a user reads each element several times, and would make it as often");
    if (ReadsAnywhere(user, i) || is_init)
      return FusionDecision::No("a user reads any of its elements, which must lie in memory");
  }
  const FusionDecision fits = MayJoin(i, *group, /*as_output=*/false);
  if (!fits.joins()) return fits;
  if (IsGather(i) && group->scatters)
    return FusionDecision::No("a kernel with a select-and-scatter cannot gather, too");
  Join(i, *group);
  return FusionDecision::Joins();
}

// Whether what `by` reads of the group's outputs it reads element by element: it need not lie in
// memory then.
bool Fuser::ReadsElements(const FusionGroup& group, const FusionGroup& by) const {
  return std::all_of(group.outputs.begin(), group.outputs.end(), [&](const Instruction* output) {
    return std::all_of(output->users().begin(), output->users().end(), [&](const auto* user) {
      return !IsIn(user, by) ||
             (user->IsElementwise() && SameOrder(user->shape(), output->shape()));
    });
  });
}

FusionDecision Fuser::MayMerge(const FusionGroup& a, const FusionGroup& b) {
  if (!ReadsElements(a, b) || !ReadsElements(b, a))
    return FusionDecision::No("one reads the other's results in another order");
  const auto members = [&](const FusionGroup& group) {
    return blocks_.members(group.block).size();
  };
  if (members(a) + members(b) >= target_.max_members)
    return FusionDecision::No("together they have more instructions than a kernel may have");
  std::size_t args = a.outputs.size() + b.outputs.size() + a.operands.size();
  for (const Instruction* operand : b.operands) args += a.operands.contains(operand) ? 0 : 1;
  if (args > target_.max_args)
    return FusionDecision::No("together they read and write too many arrays");
  return If(blocks_.MayMerge(a.block, b.block), "something outside of both lies between them");
}

void Fuser::Merge(FusionGroup& from, FusionGroup& into) {
  into.block = blocks_.Merge(from.block, into.block);
  const auto index = static_cast<GroupIndex>(&into - groups_.data());
  group_of_block_[into.block] = index + 1;
  for (const Instruction* operand : from.operands) readers_[operand].push_back(index);
  into.operands.merge(from.operands);
  into.outputs.insert(into.outputs.end(), from.outputs.begin(), from.outputs.end());
  std::erase_if(into.outputs, [&](const Instruction* output) {
    return !output->IsRoot() &&
           std::all_of(output->users().begin(), output->users().end(),
                       [&](const Instruction* user) { return IsIn(user, into); });
  });
  from = {};
}

// Makes one group of those that its users are in, loops over the same points, so that its result
// never reaches memory.
FusionDecision Fuser::TryMergeUsers(Instruction* i) {
  if (!i->IsElementwise() || i->IsRoot() || i->users().size() < 2)
    return FusionDecision::No("only elementwise values with several users make their kernels one");
  const auto is_loop_here = [&](const Instruction* output) {
    return output->IsElementwise() && SameOrder(output->shape(), i->shape());
  };
  for (const Instruction* user : i->users()) {
    const FusionGroup* const group = GroupOf(user);
    if (group == nullptr || group->scatters || !is_loop_here(user) ||
        !is_loop_here(group->outputs[0]))
      return FusionDecision::No("a user is not elementwise in a kernel of this shape");
  }
  FusionGroup* const into = GroupOf(i->users()[0]);
  for (const Instruction* user : i->users()) {
    if (IsIn(user, *into)) continue;
    FusionGroup* const from = GroupOf(user);
    const FusionDecision merge = MayMerge(*from, *into);
    if (!merge.joins()) return merge;
    Merge(*from, *into);
  }
  const FusionDecision fits = MayJoin(i, *into, /*as_output=*/false);
  if (!fits.joins()) return fits;
  Join(i, *into);
  return FusionDecision::Joins();
}

// Each element of the result is written once, by the one window that it lies in.
bool WindowsTile(const Instruction* scatter) {
  const auto& window = scatter->attrs_as<hlo::WindowAttrs>().window;
  return !hlo::WindowsOverlap(window) &&
         hlo::WindowsCover(window, scatter->shape(), scatter->operand(1)->shape());
}

// A select-and-scatter joins its users if all they do is elementwise work on its result.
FusionDecision Fuser::TryJoinScatter(Instruction* i) {
  if (i->IsRoot() || i->users().empty()) return FusionDecision::No("it is a result of the program");
  if (!WindowsTile(i))
    return FusionDecision::No(
        "its windows overlap or leave gaps, so a window does not finish its elements");
  FusionGroup* const group = GroupOf(i->users()[0]);
  if (group == nullptr) return FusionDecision::No("a user is not in a kernel");
  const auto here = [&](const Instruction* user) { return IsIn(user, *group); };
  const auto elementwise = [&](const Instruction* member) {
    return member->IsElementwise() && SameOrder(member->shape(), i->shape());
  };
  const auto members = blocks_.members(group->block);
  if (group->scatters || group->outputs.size() > 1 ||
      !std::all_of(i->users().begin(), i->users().end(), here) ||
      !std::all_of(members.begin(), members.end(), elementwise))
    return FusionDecision::No("its users are not one elementwise kernel with one result");
  const FusionDecision fits = MayJoin(i, *group, /*as_output=*/false);
  if (!fits.joins()) return fits;
  group->scatters = true;
  Join(i, *group);
  return FusionDecision::Joins();
}

// Becomes a further output of a group that reads it, or that reads the same arrays.
FusionDecision Fuser::TryJoinAsOutput(Instruction* i) {
  const bool reduces = i->opcode() == Opcode::kReduce;
  if (IsFold(i) || (IsRootOnly(i) && !reduces))
    return FusionDecision::No("its kernel does not have room for another result");
  // A select-and-scatter that could join `i` saves more than a reduction of `i` that does.
  const auto tiles = [](const Instruction* operand) {
    return IsScatter(operand) && WindowsTile(operand);
  };
  if (std::any_of(i->operands().begin(), i->operands().end(), tiles))
    return FusionDecision::No("the select-and-scatter that it reads will join its kernel");
  FusionDecision best = FusionDecision::No("no kernel reads it or what it reads");
  // Keeps the reason of the last kernel that was tried.
  const auto joins_one_of = [&](std::vector<GroupIndex>& groups) {
    if (groups.empty()) return false;
    best = TryJoinOneOf(groups, i);
    return best.joins();
  };
  if (!reduces && joins_one_of(readers_[i])) return best;
  const std::vector<const Instruction*> sources =
      reduces ? SourcesOf(i)
              : std::vector<const Instruction*>(i->operands().begin(), i->operands().end());
  for (const Instruction* source : sources) {
    if (IsDuplicable(source) || !SameDims(source->shape(), SpaceOf(i))) continue;
    if (joins_one_of(readers_[source]) || joins_one_of(reducing_[source])) break;
  }
  return best;
}

// Joins the nearest group that takes the instruction as a further output. Full ones are dropped, so
// that nobody looks at them again.
FusionDecision Fuser::TryJoinOneOf(std::vector<GroupIndex>& groups, Instruction* i) {
  FusionDecision decision = FusionDecision::No("the kernels that read the same are full");
  std::size_t tried = 0;
  for (std::size_t k = groups.size(); k-- > 0 && tried < kMaxTried;) {
    FusionGroup& group = groups_[groups[k]];
    if (group.outputs.empty() || IsFull(group)) {
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    ++tried;
    decision = MayJoinAsOutput(i, group);
    if (!decision.joins()) continue;
    JoinAsOutput(i, group);
    break;
  }
  return decision;
}

// Clones a group into a fused computation, member after member in post-order.
class BodyBuilder {
 public:
  BodyBuilder(hlo::Module& module, const FusionTarget& target)
      : body_(module.AddComputation("fused_computation")), target_(target) {
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
      } else if (!IsDuplicable(i) || !target_.supports(*i) || IsFree(i)) {
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
  const FusionTarget& target_;
  std::unordered_map<const Instruction*, Instruction*> clones_, parameter_of_;
  std::vector<Instruction*> parameters_;  // outside
};

void Fuser::Materialise(const FusionGroup& group, Rewriter& rewriter) {
  if (group.outputs.empty()) return;  // merged into another
  const auto placed = blocks_.members(group.block);
  if (IsPlainMovement(target_, placed)) return;
  std::vector<Instruction*> members(placed.begin(), placed.end());
  std::sort(members.begin(), members.end(), [&](const Instruction* a, const Instruction* b) {
    return position_[a] < position_[b];
  });
  BodyBuilder builder(*computation_->parent(), target_);
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
  return RewriteScheduled(
      module, [&](hlo::Computation* computation) { return Fuser(computation, target_).Run(); });
}

}  // namespace lazuli::lowering
