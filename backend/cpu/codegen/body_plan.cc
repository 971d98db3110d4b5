#include "backend/cpu/codegen/body_plan.h"

#include <algorithm>

#include "absl/algorithm/container.h"

#include "ir/support/check.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

Affine Constant(int64_t value, std::size_t variables) { return {value, Dims(variables, 0)}; }

Affine Scaled(const Affine& x, int64_t factor, int64_t shift) {
  Affine result{x.constant * factor + shift, x.coefficients};
  for (int64_t& c : result.coefficients) c *= factor;
  return result;
}

Point Permuted(const Point& point, const Dims& dimensions) {
  Point result;
  for (int64_t d : dimensions) result.push_back(point[static_cast<std::size_t>(d)]);
  return result;
}

Point TransposedPoint(const Instruction& i, const Point& point) {
  const Dims& permutation = i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  Point result(point.size());
  for (std::size_t d = 0; d < point.size(); ++d)
    result[static_cast<std::size_t>(permutation[d])] = point[d];
  return result;
}

Point SlicedPoint(const Instruction& i, const Point& point) {
  const auto& attrs = i.attrs_as<hlo::SliceAttrs>();
  Point result;
  for (std::size_t d = 0; d < point.size(); ++d) {
    result.push_back(
        Scaled(point[d], attrs.strides.empty() ? 1 : attrs.strides[d], attrs.starts[d]));
  }
  return result;
}

Point ReversedPoint(const Instruction& i, const Point& point) {
  Point result = point;
  for (int64_t d : i.attrs_as<hlo::DimensionsAttrs>().dimensions) {
    auto& at = result[static_cast<std::size_t>(d)];
    at = Scaled(at, -1, i.shape().dim(d) - 1);
  }
  return result;
}

// The reshape only adds or drops dimensions of size 1: the others correspond in order.
Point ReshapedPoint(const Instruction& i, const Point& point, std::size_t variables) {
  const Shape& from = i.operand(0)->shape();
  Point result;
  std::size_t next = 0;
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (from.dim(d) == 1) {
      result.push_back(Constant(0, variables));
      continue;
    }
    while (i.shape().dim(static_cast<int64_t>(next)) == 1) ++next;
    result.push_back(point[next++]);
  }
  return result;
}

// Where an operand is wanted if `i` is wanted at `point`.
Point OperandPoint(const Instruction& i, int64_t operand, const Point& point,
                   std::size_t variables) {
  switch (i.opcode()) {
    case Opcode::kBroadcast:
      return Permuted(point, i.attrs_as<hlo::DimensionsAttrs>().dimensions);
    case Opcode::kTranspose:
      return TransposedPoint(i, point);
    case Opcode::kSlice:
      return SlicedPoint(i, point);
    case Opcode::kReverse:
      return ReversedPoint(i, point);
    case Opcode::kReshape:
    case Opcode::kBitcast:
      return ReshapedPoint(i, point, variables);
    default:  // elementwise; select and clamp also take scalars
      return i.operand(operand)->shape().rank() == 0 ? Point{} : point;
  }
}

// Where a gather or a dynamic-slice reads: at which points the components of its index lie, and at
// which point of the operand the element lies, before the components are added.
struct GatherPoints {
  std::vector<std::pair<const Instruction*, Point>> indices;
  Point operand;
};

GatherPoints PointsOf(const Instruction& gather, const Point& point, std::size_t variables) {
  if (gather.opcode() == Opcode::kDynamicSlice) {
    GatherPoints points{{}, point};
    for (const Instruction* start : gather.operands().subspan(1))
      points.indices.emplace_back(start, Point{});
    return points;
  }
  const auto& attrs = gather.attrs_as<hlo::GatherAttrs>();
  const Shape& indices = gather.operand(1)->shape();
  Point index;
  std::size_t batch = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == attrs.index_vector_dim) {
      index.push_back(Constant(0, variables));
      continue;
    }
    while (absl::c_linear_search(attrs.offset_dims, static_cast<int64_t>(batch))) ++batch;
    index.push_back(point[batch++]);
  }
  GatherPoints points;
  for (std::size_t k = 0; k < attrs.start_index_map.size(); ++k) {
    points.indices.emplace_back(gather.operand(1), index);
    if (attrs.index_vector_dim < indices.rank())
      points.indices.back().second[static_cast<std::size_t>(attrs.index_vector_dim)].constant =
          static_cast<int64_t>(k);
  }
  std::size_t window = 0;
  const Dims &batching = attrs.operand_batching_dims, &with = attrs.start_indices_batching_dims;
  for (int64_t d = 0; d < gather.operand(0)->shape().rank(); ++d) {
    const auto pair = std::find(batching.begin(), batching.end(), d) - batching.begin();
    if (absl::c_linear_search(batching, d)) {
      const int64_t dim = with[static_cast<std::size_t>(pair)];
      points.operand.push_back(index[static_cast<std::size_t>(dim)]);
    } else if (absl::c_linear_search(attrs.collapsed_slice_dims, d)) {
      points.operand.push_back(Constant(0, variables));
    } else {
      points.operand.push_back(point[static_cast<std::size_t>(attrs.offset_dims[window++])]);
    }
  }
  return points;
}

}  // namespace

bool IsDegenerateReshape(const Shape& from, const Shape& to) {
  Dims a, b;
  for (int64_t d : from.dims())
    if (d != 1) a.push_back(d);
  for (int64_t d : to.dims())
    if (d != 1) b.push_back(d);
  return a == b;
}

bool IsIndexChange(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kBroadcast:
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kReverse:
      return true;
    case Opcode::kReshape:
    case Opcode::kBitcast:
      return i.shape().dtype() == i.operand(0)->shape().dtype() &&
             IsDegenerateReshape(i.operand(0)->shape(), i.shape());
    default:
      return false;
  }
}

int32_t Planner::Find(const InstructionPoint& key) const {
  for (const auto& [done, node] : done_) {
    if (done.instruction == key.instruction && done.point == key.point) return node;
  }
  return -1;
}

// Makes the value of `key` an operand of the node. False if the plan does not have it yet: then it is
// put on the stack, to be planned first.
bool Planner::Operand(InstructionPoint key, PlanNode& node,
                      std::vector<InstructionPoint>& pending) const {
  const int32_t found = Find(key);
  if (found < 0) pending.push_back(std::move(key));
  node.operands.push_back(found);
  return found >= 0;
}

bool Planner::ExpandGather(const InstructionPoint& key, PlanNode& node,
                           std::vector<InstructionPoint>& pending) const {
  const Instruction& from = *key.instruction->operand(0);
  LAZULI_CHECK(from.opcode() == Opcode::kParameter, "fused gather of ", from.name());
  const GatherPoints points = PointsOf(*key.instruction, key.point, plan_.sizes.size());
  node.kind = PlanNode::Kind::kGather;
  node.form = Offset(from.shape(), points.operand, static_cast<int64_t>(plan_.sizes.size()));
  bool ready = true;
  for (const auto& [index, point] : points.indices) ready &= Operand({index, point}, node, pending);
  return ready;
}

// Plans the value of `key` if the plan has its operands. Otherwise returns false and puts those that
// are missing on the stack. The stack stands for a recursion, whose depth would be that of the body.
bool Planner::Expand(const InstructionPoint& key, std::vector<InstructionPoint>& pending) {
  const Instruction& i = *key.instruction;
  PlanNode node;
  node.instruction = &i;
  if (i.opcode() == Opcode::kParameter) {
    node.kind = PlanNode::Kind::kLoad;
    node.form = Offset(i.shape(), key.point, static_cast<int64_t>(plan_.sizes.size()));
  } else if (i.opcode() == Opcode::kConstant) {
    LAZULI_CHECK(i.shape().num_elements() == 1, "fused constant ", i.shape());
    node.kind = PlanNode::Kind::kConstant;
  } else if (i.opcode() == Opcode::kSelectAndScatter) {
    node.kind = PlanNode::Kind::kGiven;
  } else if (i.opcode() == Opcode::kGetTupleElement) {
    node.kind = PlanNode::Kind::kGiven;
    node.form = Offset(i.shape(), key.point, static_cast<int64_t>(plan_.sizes.size()));
  } else if (i.opcode() == Opcode::kIota) {
    node.kind = PlanNode::Kind::kIota;
    node.form = key.point[static_cast<std::size_t>(i.attrs_as<hlo::IotaAttrs>().iota_dimension)];
  } else if (i.opcode() == Opcode::kGather || i.opcode() == Opcode::kDynamicSlice) {
    if (!ExpandGather(key, node, pending)) return false;
  } else {
    bool ready = true;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      ready &=
          Operand({i.operand(k), OperandPoint(i, k, key.point, plan_.sizes.size())}, node, pending);
    }
    if (!ready) return false;
    if (IsIndexChange(i)) {  // the value is the operand's
      done_.emplace_back(key, node.operands[0]);
      return true;
    }
  }
  done_.emplace_back(key, static_cast<int32_t>(plan_.nodes.size()));
  plan_.nodes.push_back(std::move(node));
  return true;
}

int32_t Planner::Add(const Instruction* instruction, const Point& point) {
  const InstructionPoint root{instruction, point};
  std::vector<InstructionPoint> pending{root};
  while (!pending.empty()) {
    const InstructionPoint key = pending.back();
    if (Find(key) >= 0 || Expand(key, pending)) {
      if (Find(pending.back()) >= 0) pending.pop_back();
    }
  }
  return Find(root);
}

Point IdentityPoint(absl::Span<const int64_t> variables, int64_t rank) {
  Point point;
  for (int64_t variable : variables) {
    Affine at{0, Dims(static_cast<std::size_t>(rank), 0)};
    at.coefficients[static_cast<std::size_t>(variable)] = 1;
    point.push_back(std::move(at));
  }
  return point;
}

Affine Offset(const Shape& shape, const Point& point, int64_t rank) {
  Affine offset{0, Dims(static_cast<std::size_t>(rank), 0)};
  const Dims strides = shape.strides();
  for (std::size_t d = 0; d < point.size(); ++d) {
    if (shape.dim(static_cast<int64_t>(d)) == 1) continue;
    offset.constant += strides[d] * point[d].constant;
    for (std::size_t v = 0; v < offset.coefficients.size(); ++v) {
      offset.coefficients[v] += strides[d] * point[d].coefficients[v];
    }
  }
  return offset;
}

namespace {

// The dimension of the operand that component k of an index counts, and a window's size there.
std::pair<int64_t, int64_t> DimOf(const Instruction& gather, std::size_t k) {
  if (gather.opcode() == Opcode::kDynamicSlice)
    return {static_cast<int64_t>(k), gather.shape().dim(static_cast<int64_t>(k))};
  const auto& attrs = gather.attrs_as<hlo::GatherAttrs>();
  const int64_t d = attrs.start_index_map[k];
  return {d, attrs.slice_sizes[static_cast<std::size_t>(d)]};
}

}  // namespace

std::vector<IndexComponent> IndexComponents(const Instruction& gather) {
  const Shape& operand = gather.operand(0)->shape();
  const Dims strides = operand.strides();
  const std::size_t count = gather.opcode() == Opcode::kDynamicSlice
                                ? static_cast<std::size_t>(gather.operand_count() - 1)
                                : gather.attrs_as<hlo::GatherAttrs>().start_index_map.size();
  std::vector<IndexComponent> components;
  for (std::size_t k = 0; k < count; ++k) {
    const auto [d, size] = DimOf(gather, k);
    components.push_back({operand.dim(d) - size, strides[static_cast<std::size_t>(d)]});
  }
  return components;
}

bool HasNarrowOffsets(const Instruction& gather) {
  return gather.operand(0)->shape().num_elements() < (int64_t{1} << 31);
}

bool HasNarrowIota(const Instruction& iota) {
  return iota.shape().dim(iota.attrs_as<hlo::IotaAttrs>().iota_dimension) <= (int64_t{1} << 31);
}

int64_t MergeVariables(BodyPlan& plan, std::vector<Affine*>& forms, int64_t first, int64_t last) {
  std::vector<Affine*> all = forms;
  for (PlanNode& node : plan.nodes) {
    if (!node.form.coefficients.empty()) all.push_back(&node.form);
  }
  const auto erase = [&](int64_t v) {
    plan.sizes.erase(plan.sizes.begin() + v);
    for (Affine* form : all) form->coefficients.erase(form->coefficients.begin() + v);
    --last;
  };
  for (int64_t v = last; v-- > first && last - first > 1;) {
    if (plan.sizes[static_cast<std::size_t>(v)] == 1) erase(v);
  }
  for (int64_t v = last - 1; v-- > first;) {
    const auto outer = static_cast<std::size_t>(v), inner = outer + 1;
    const bool merges = std::all_of(all.begin(), all.end(), [&](const Affine* form) {
      return form->coefficients[outer] == form->coefficients[inner] * plan.sizes[inner];
    });
    if (!merges) continue;
    plan.sizes[inner] *= plan.sizes[outer];
    erase(v);
  }
  return last - first;
}

}  // namespace lazuli::cpu
