#include "backend/runtime/partition.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "backend/runtime/thunk.h"
#include "ir/hlo/clone.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::backend {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr int kNever = -1;

// A value as what it is a part of: leaves of an instruction that is no get-tuple-element, and no
// tuple that is taken apart again.
struct ValueOrigin {
  const Instruction* from = nullptr;
  int64_t leaf = 0;
};

// As devices hold it: row major, of the bound's size.
Shape ArrayOf(const Shape& leaf) {
  Shape array = leaf.WithDefaultLayout();
  array.set_dynamic_dims(0);
  return array;
}

class Partitioner {
 public:
  Partitioner(const Placement& placement, const AloneFunction& alone)
      : placement_(placement),
        alone_(alone),
        entry_(*placement.module().entry()),
        order_(entry_.PostOrder()) {}

  Partition Make() {
    FindOrigins();
    FindRoots();
    FindRegions();
    AddParameters();
    for (const ValueOrigin& root : roots_) partition_.results.push_back(Value(root));
    // All that it gives, whether or not it is read here: others who run its program read it.
    for (const Region& region : partition_.regions) {
      if (!region.alone) continue;
      const Instruction* const i = region.instructions[0];
      for (int64_t leaf = 0; leaf < LeafCount(i->shape()); ++leaf) Value({i, leaf});
    }
    // Users first: what a region gives is known when those behind it are made.
    // NOLINTNEXTLINE(modernize-loop-convert): <ranges> takes long to compile
    for (auto region = partition_.regions.rbegin(); region != partition_.regions.rend(); ++region)
      MakeModule(*region);
    return std::move(partition_);
  }

 private:
  // --- what values are

  void FindOrigins() {
    for (const Instruction* i : order_) {
      ValueOrigin origin{i, 0};
      if (i->opcode() == Opcode::kGetTupleElement) {
        const int64_t index = i->attrs_as<hlo::TupleIndexAttrs>().index;
        const ValueOrigin& whole = origins_.at(i->operand(0));
        const bool is_tuple = whole.from->opcode() == Opcode::kTuple && whole.leaf == 0 &&
                              whole.from->shape() == i->operand(0)->shape();
        origin = is_tuple ? origins_.at(whole.from->operand(index))
                          : ValueOrigin{whole.from,
                                        whole.leaf + LeavesBefore(i->operand(0)->shape(), index)};
      }
      origins_.emplace(i, origin);
    }
  }

  bool IsAlone(const Instruction& i) const {
    return alone_ != nullptr && !GoesWithItsUsers(i) && placement_.OnDevice(i) && alone_(i);
  }

  // The arrays of the entry's result.
  void AddRoots(const ValueOrigin& origin, const Shape& shape) {
    if (origin.from->opcode() == Opcode::kTuple) {
      for (const Instruction* operand : origin.from->operands())
        AddRoots(origins_.at(operand), operand->shape());
      return;
    }
    for (int64_t leaf = 0; leaf < LeafCount(shape); ++leaf)
      roots_.push_back({origin.from, origin.leaf + leaf});
  }

  void FindRoots() {
    AddRoots(origins_.at(entry_.root()), entry_.root()->shape());
    for (const ValueOrigin& root : roots_) {
      if (root.from->IsConstant()) given_constants_.emplace(root.from, kNever);
    }
    // Who meets runs one program, so the constants of some are parameters like the others' values.
    for (const Instruction* i : order_) {
      if (!IsAlone(*i)) continue;
      for (const Instruction* operand : i->operands()) {
        if (operand->IsConstant()) given_constants_.emplace(operand, kNever);
      }
    }
  }

  // --- regions

  struct LatestStages {  // stages of what a value is computed from, by side
    int host = kNever, device = kNever;
    void Join(const LatestStages& other) {
      host = std::max(host, other.host);
      device = std::max(device, other.device);
    }
  };

  bool Belongs(const Instruction& i) const {
    return !GoesWithItsUsers(i) || given_constants_.contains(&i);
  }

  void FindRegions() {
    std::unordered_map<const Instruction*, LatestStages> latest;
    // By stage and side; what is alone has a number behind them.
    std::map<std::tuple<int, bool, int>, std::vector<const Instruction*>> by_stage;
    int loners = 0;
    LatestStages effects;  // those with side effects stay in order
    for (const Instruction* i : order_) {
      LatestStages before;
      for (const Instruction* operand : i->operands()) before.Join(latest.at(operand));
      for (const Instruction* operand : i->control_predecessors()) before.Join(latest.at(operand));
      const bool belongs = Belongs(*i);
      const bool has_effect = belongs && i->HasSideEffect();
      if (has_effect) before.Join(effects);
      if (belongs) {
        const bool device = !GoesWithItsUsers(*i) && placement_.OnDevice(*i);
        const int stage = device ? std::max({before.device, before.host + 1, 0})
                                 : std::max({before.host, before.device + 1, 0});
        if (IsAlone(*i)) {
          const int own = 1 + std::max({before.device, before.host, -1});
          by_stage[{own, true, ++loners}].push_back(i);
          before = {own, own};
        } else {
          by_stage[{stage, device, 0}].push_back(i);
          // What a value of this side needs of the other side has been waited for.
          before = device ? LatestStages{kNever, stage} : LatestStages{stage, kNever};
        }
        if (has_effect) effects.Join(before);
      }
      latest.emplace(i, before);
    }
    for (auto& [key, instructions] : by_stage) {
      Region region;
      region.on_device = std::get<1>(key);
      region.alone = std::get<2>(key) > 0;
      for (const Instruction* i : instructions) {
        region_of_[i] = static_cast<int>(partition_.regions.size());
        region.work += WorkOf(*i);
      }
      region.instructions = std::move(instructions);
      partition_.regions.push_back(std::move(region));
    }
  }

  // --- values between regions

  void AddParameters() {
    for (const Instruction* parameter : entry_.parameters()) {
      for (int64_t leaf = 0; leaf < LeafCount(parameter->shape()); ++leaf) Value({parameter, leaf});
    }
    partition_.parameters = static_cast<int32_t>(partition_.values.size());
  }

  int32_t Value(const ValueOrigin& origin) {
    const auto [at, is_new] =
        numbers_.try_emplace({origin.from, origin.leaf}, static_cast<int32_t>(numbers_.size()));
    if (!is_new) return at->second;
    partition_.values.push_back(
        ArrayOf(LeavesOf(origin.from->shape())[static_cast<std::size_t>(origin.leaf)]));
    partition_.names.push_back(origin.from->name());
    if (origin.from->opcode() != Opcode::kParameter)
      given_[region_of_.at(origin.from)].push_back({origin, at->second});
    return at->second;
  }

  // --- modules

  // A region's program, with copies of the computations that it calls.
  struct Build {
    Computation* computation;
    std::unordered_map<const Instruction*, Instruction*> copies;
    std::map<int32_t, Instruction*> inputs;  // by value
    Region* region;
    int number;
  };

  Instruction* Input(Build& build, const ValueOrigin& origin) {
    const int32_t value = Value(origin);
    Instruction*& parameter = build.inputs[value];
    if (parameter == nullptr) {
      parameter =
          build.computation->AddParameter(static_cast<int64_t>(build.region->inputs.size()),
                                          partition_.values[static_cast<std::size_t>(value)],
                                          Str("in", build.region->inputs.size()));
      hlo::Metadata metadata;
      metadata.op_name = origin.from->metadata().op_name;
      parameter->set_metadata(std::move(metadata));
      build.region->inputs.push_back(value);
    }
    return parameter;
  }

  // Leaves of a copy, as a value of this shape.
  static Instruction* PartOf(Build& build, Instruction* whole, int64_t leaf, const Shape& shape) {
    while (whole->shape().IsTuple() && (leaf > 0 || !(whole->shape() == shape))) {
      int64_t index = 0;
      const std::vector<Shape>& parts = whole->shape().tuple();
      for (; index + 1 < static_cast<int64_t>(parts.size()); ++index) {
        const int64_t count = LeafCount(parts[static_cast<std::size_t>(index)]);
        if (leaf < count) break;
        leaf -= count;
      }
      Instruction* const operand = whole;
      whole =
          build.computation->Add(Opcode::kGetTupleElement, parts[static_cast<std::size_t>(index)],
                                 {operand}, hlo::TupleIndexAttrs{index});
    }
    return whole;
  }

  Instruction* InputsAs(Build& build, const Instruction* from, int64_t leaf, const Shape& shape) {
    if (!shape.IsTuple()) return Input(build, {from, leaf});
    std::vector<Instruction*> parts;
    for (const Shape& part : shape.tuple()) {
      parts.push_back(InputsAs(build, from, leaf, part));
      leaf += LeafCount(part);
    }
    return build.computation->Add(Opcode::kTuple, shape, parts);
  }

  Instruction* Copy(Build& build, const Instruction* value) {
    if (const auto known = build.copies.find(value); known != build.copies.end())
      return known->second;
    const ValueOrigin origin = origins_.at(value);
    const Instruction& from = *origin.from;
    Instruction* copy = nullptr;
    if (from.IsConstant() && !(build.region->alone && given_constants_.contains(&from))) {
      copy = build.computation->AddClone(from, {});
    } else if (from.opcode() == Opcode::kTuple) {
      std::vector<Instruction*> parts;
      for (const Instruction* operand : from.operands()) parts.push_back(Copy(build, operand));
      copy = build.computation->Add(Opcode::kTuple, from.shape(), parts);
    } else if (const auto region = region_of_.find(&from);
               region != region_of_.end() && region->second == build.number) {
      copy = PartOf(build, build.copies.at(&from), origin.leaf, value->shape());
    } else {
      copy = InputsAs(build, &from, origin.leaf, value->shape());
    }
    build.copies.emplace(value, copy);
    return copy;
  }

  void MakeModule(Region& region) {
    const hlo::Module& whole = placement_.module();
    const auto number = static_cast<int>(&region - partition_.regions.data());
    region.module = std::make_unique<hlo::Module>(
        Str(whole.name(), ".", region.on_device ? "device" : "host", number));
    hlo::Module& module = *region.module;
    module.set_device_counts(whole.replica_count(), whole.num_partitions());
    module.extra_attrs() = whole.extra_attrs();
    module.stack_frames() = whole.stack_frames();
    std::vector<const Computation*> called;
    for (const Instruction* i : region.instructions)
      called.insert(called.end(), i->called().begin(), i->called().end());
    const auto callees = hlo::AddClones(called, module);
    Build build{module.AddComputation(Str("region", number)), {}, {}, &region, number};
    for (const Instruction* i : region.instructions) {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : i->operands()) operands.push_back(Copy(build, operand));
      Instruction* const copy = hlo::AddClone(*i, operands, callees, *build.computation);
      for (const Instruction* predecessor : i->control_predecessors()) {
        const auto there = build.copies.find(predecessor);
        if (there != build.copies.end()) copy->AddControlPredecessor(there->second);
      }
      build.copies.emplace(i, copy);
    }
    std::vector<Instruction*> outputs;
    std::vector<Shape> shapes;
    for (const auto& [origin, value] : given_[number]) {
      outputs.push_back(
          PartOf(build, build.copies.at(origin.from), origin.leaf,
                 LeavesOf(origin.from->shape())[static_cast<std::size_t>(origin.leaf)]));
      shapes.push_back(outputs.back()->shape());
      region.outputs.push_back(value);
    }
    build.computation->set_root(
        build.computation->Add(Opcode::kTuple, Shape::Tuple(std::move(shapes)), outputs));
    module.set_entry(build.computation);
  }

  const Placement& placement_;
  const AloneFunction& alone_;
  const Computation& entry_;
  const std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, ValueOrigin> origins_;
  std::vector<ValueOrigin> roots_;
  std::unordered_map<const Instruction*, int> given_constants_;
  std::unordered_map<const Instruction*, int> region_of_;
  std::map<std::pair<const Instruction*, int64_t>, int32_t> numbers_;
  std::map<int, std::vector<std::pair<ValueOrigin, int32_t>>> given_;  // by region
  Partition partition_;
};

}  // namespace

Partition MakePartition(const Placement& placement, const AloneFunction& alone) {
  return Partitioner(placement, alone).Make();
}

Partition WholeOnHost(const hlo::Module& module) {
  Partition partition;
  Region region;
  const Computation& entry = *module.entry();
  for (const Instruction* parameter : entry.parameters()) {
    ForEachLeaf(parameter->shape(), [&](const Shape& leaf) {
      region.inputs.push_back(static_cast<int32_t>(partition.values.size()));
      partition.values.push_back(ArrayOf(leaf));
      partition.names.push_back(parameter->name());
    });
  }
  partition.parameters = static_cast<int32_t>(partition.values.size());
  ForEachLeaf(entry.root()->shape(), [&](const Shape& leaf) {
    region.outputs.push_back(static_cast<int32_t>(partition.values.size()));
    partition.values.push_back(ArrayOf(leaf));
    partition.names.push_back(entry.root()->name());
  });
  partition.results = region.outputs;
  for (const auto& i : entry.instructions()) {
    if (GoesWithItsUsers(*i)) continue;
    region.instructions.push_back(i.get());
    region.work += WorkOf(*i);
  }
  region.module = module.Clone();
  region.module->aliases().clear();
  partition.regions.push_back(std::move(region));
  return partition;
}

std::string PlacementText(const Placement& placement, const Partition& partition,
                          std::string_view device) {
  std::string text;
  for (std::size_t r = 0; r < partition.regions.size(); ++r) {
    const Region& region = partition.regions[r];
    for (const Instruction* i : region.instructions) {
      const ThunkInfo info = ThunkInfo::Of("place", *i);
      text += Str("  ", region.on_device ? device : "host", " region ", r, "  ", i->name(), " = ",
                  i->shape(), " ", info.op, info.source.empty() ? "" : " (", info.source,
                  info.source.empty() ? "" : ")");
      if (const Refusal* refusal = placement.RefusalOf(*i))
        text += Str("  ", refusal->code, ": ", refusal->sentence);
      text += "\n";
    }
  }
  return text;
}

}  // namespace lazuli::backend
