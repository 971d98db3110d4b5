#include "lazy/ops/program/collective.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "backend/client/client.h"
#include "lazy/ops/core/dims.h"

namespace lazuli::lazy {
namespace {

hlo::CollectiveAttrs Within(const Dims& devices, const Dims& dims = {}) {
  return {.replica_groups = hlo::ListedGroups{{devices}}, .dimensions = dims};
}

int64_t CountOf(const Dims& devices) { return static_cast<int64_t>(devices.size()); }

hlo::Opcode OpcodeOf(Joining joining) {
  switch (joining) {
    case Joining::kProduct:
      return hlo::Opcode::kMultiply;
    case Joining::kMax:
      return hlo::Opcode::kMaximum;
    case Joining::kMin:
      return hlo::Opcode::kMinimum;
    default:
      return hlo::Opcode::kAdd;
  }
}

lowering::Op Joined(lowering::Builder& b, hlo::Opcode opcode, Joining joining, lowering::Op x,
                    const Dims& devices, const Dims& dims, const Shape& shape) {
  hlo::Computation* const joins = b.ScalarComputation(OpcodeOf(joining), x.dtype());
  const auto called = joins == nullptr ? absl::Span<hlo::Computation* const>()
                                       : absl::Span<hlo::Computation* const>(&joins, 1);
  return b.Add(opcode, {x}, Within(devices, dims), called, &shape);
}

// The group, of all devices of x's platform if none is named; x's own is a member.
Dims GroupOf(std::string_view op, const Tensor& x, absl::Span<const int64_t> devices) {
  const auto count = static_cast<int64_t>(x.device().client->devices().size());
  Dims group(devices.begin(), devices.end());
  if (group.empty()) {
    group.resize(static_cast<std::size_t>(count));
    std::iota(group.begin(), group.end(), 0);
  }
  for (const int64_t device : group) {
    if (device < 0 || device >= count)
      ThrowRecordError(op, InvalidArgument("there is no device ", device, " of ",
                                           x.device().client->platform(), ", which has ", count));
    if (std::count(group.begin(), group.end(), device) > 1)
      ThrowRecordError(op, InvalidArgument("device ", device, " is in the group twice"));
  }
  if (std::find(group.begin(), group.end(), x.device().ordinal) == group.end())
    ThrowRecordError(op, InvalidArgument("x lies on ", x.device(), ", which is not in the group"));
  return group;
}

struct Way {
  Joining joining;
  bool averages;
};
Way WayOf(std::string_view op, std::string_view reduce, const Tensor& x) {
  const bool averages = reduce == "avg";
  const bool is_float = IsFloat(x.dtype()) || IsComplex(x.dtype());
  if (averages && !is_float)
    ThrowRecordError(op, InvalidArgument("avg takes floats, not ", x.shape()));
  if (x.dtype() == DType::kPred && reduce != "max" && reduce != "min")
    ThrowRecordError(op, InvalidArgument(reduce, " takes numbers, not ", x.shape(),
                                         "; of booleans there are max and min"));
  if (averages || reduce == "sum") return {Joining::kSum, averages};
  if (reduce == "product") return {Joining::kProduct, false};
  if (reduce == "max") return {Joining::kMax, false};
  if (reduce == "min") return {Joining::kMin, false};
  ThrowRecordError(op, InvalidArgument("reduce is sum, avg, product, max or min, not ", reduce));
}

Tensor Averaged(const Tensor& sum, const Way& way, const Dims& group) {
  return way.averages ? sum / static_cast<double>(group.size()) : sum;
}

bool WantsGradOf(const Tensor& x) {
  const Operand in(x);
  return WantsGrad(absl::MakeConstSpan(&in, 1));
}

// The same from all elements: with the gradients of products and extremes.
Tensor JoinedHere(const Tensor& x, Joining joining, const Dims& group) {
  const Tensor all = Record(AllGatherOp{0, group}, Unsqueeze(x, 0));
  const Dims first{0};
  if (joining == Joining::kProduct) return Prod(all, first);
  return joining == Joining::kMax ? Amax(all, first) : Amin(all, first);
}

// The dim, of a size that the group's members have equal parts of.
int64_t DividedDim(std::string_view op, const Tensor& x, int64_t dim, const Dims& group) {
  const int64_t d = NormalizeDim(op, dim, x.rank());
  if (x.dim(d) % CountOf(group) != 0)
    ThrowRecordError(op, InvalidArgument("dim ", d, " of ", x.shape(), " has no ", CountOf(group),
                                         " equal parts, one for each device"));
  return d;
}

}  // namespace

lowering::Op AllReduceOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return Joined(b, hlo::Opcode::kAllReduce, joining, x, devices, {}, x.shape());
}

Tensors AllReduceOp::Vjp(const Saved&, const Tensor& dy) const { return {Record(*this, dy)}; }

lowering::Op AllGatherOp::Lower(lowering::Builder& b, lowering::Op x) const {
  Dims dims = DimsOf(x.shape());
  dims[static_cast<std::size_t>(dim)] *= CountOf(devices);
  const Shape gathered(x.dtype(), dims);
  return b.Add(hlo::Opcode::kAllGather, {x}, Within(devices, {dim}), {}, &gathered);
}

Tensors AllGatherOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Record(ReduceScatterOp{Joining::kSum, dim, devices}, dy)};
}

lowering::Op ReduceScatterOp::Lower(lowering::Builder& b, lowering::Op x) const {
  Dims dims = DimsOf(x.shape());
  dims[static_cast<std::size_t>(dim)] /= CountOf(devices);
  return Joined(b, hlo::Opcode::kReduceScatter, joining, x, devices, {dim}, Shape(x.dtype(), dims));
}

Tensors ReduceScatterOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Record(AllGatherOp{dim, devices}, dy)};
}

lowering::Op AllToAllOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return b.Add(hlo::Opcode::kAllToAll, {x}, Within(devices, {dim}));
}

Tensors AllToAllOp::Vjp(const Saved&, const Tensor& dy) const { return {Record(*this, dy)}; }

lowering::Op CollectivePermuteOp::Lower(lowering::Builder& b, lowering::Op x) const {
  hlo::PermuteAttrs attrs;
  for (std::size_t i = 0; i < sources.size(); ++i)
    attrs.source_target_pairs.emplace_back(sources[i], targets[i]);
  return b.Add(hlo::Opcode::kCollectivePermute, {x}, std::move(attrs));
}

Tensors CollectivePermuteOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Record(CollectivePermuteOp{targets, sources}, dy)};
}

Tensor AllReduce(const Tensor& x, std::string_view reduce, absl::Span<const int64_t> devices) {
  constexpr std::string_view kOp = "all_reduce";
  const Dims group = GroupOf(kOp, x, devices);
  const Way way = WayOf(kOp, reduce, x);
  if (way.joining != Joining::kSum && WantsGradOf(x)) return JoinedHere(x, way.joining, group);
  return Averaged(Record(AllReduceOp{way.joining, group}, x), way, group);
}

Tensor AllGather(const Tensor& x, int64_t dim, absl::Span<const int64_t> devices) {
  constexpr std::string_view kOp = "all_gather";
  const Tensor in = WithDim(x);
  const Dims group = GroupOf(kOp, in, devices);
  return Record(AllGatherOp{NormalizeDim(kOp, dim, in.rank()), group}, in);
}

Tensor ReduceScatter(const Tensor& x, std::string_view reduce, int64_t dim,
                     absl::Span<const int64_t> devices) {
  constexpr std::string_view kOp = "reduce_scatter";
  const Dims group = GroupOf(kOp, x, devices);
  const Way way = WayOf(kOp, reduce, x);
  const int64_t d = DividedDim(kOp, x, dim, group);
  if (way.joining != Joining::kSum && WantsGradOf(x)) {
    const int64_t part = x.dim(d) / CountOf(group),
                  rank = std::find(group.begin(), group.end(), x.device().ordinal) - group.begin();
    return Narrow(JoinedHere(x, way.joining, group), d, rank * part, part);
  }
  return Averaged(Record(ReduceScatterOp{way.joining, d, group}, x), way, group);
}

Tensor AllToAll(const Tensor& x, int64_t split_dim, int64_t concat_dim,
                absl::Span<const int64_t> devices) {
  constexpr std::string_view kOp = "all_to_all";
  const Dims group = GroupOf(kOp, x, devices);
  const int64_t from = DividedDim(kOp, x, split_dim, group),
                to = NormalizeDim(kOp, concat_dim, x.rank());
  if (from == to) return Record(AllToAllOp{from, group}, x);
  // The parts as a dim of their own, in front; then beside the dim along which they are to lie.
  const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
  Dims parted = DimsOf(x.shape()), order, joined = parted;
  parted[f] /= CountOf(group);
  parted.insert(parted.begin() + from, CountOf(group));
  for (int64_t d = 0; d <= x.rank(); ++d) {
    if (d != from) order.push_back(d);
  }
  order.insert(order.begin(), from);
  const Tensor parts = Record(AllToAllOp{0, group}, Permute(Reshape(x, parted), order));
  Dims back(static_cast<std::size_t>(x.rank()));
  std::iota(back.begin(), back.end(), 1);
  back.insert(back.begin() + to, 0);
  joined[f] /= CountOf(group);
  joined[t] *= CountOf(group);
  return Reshape(Permute(parts, back), joined);
}

Tensor CollectivePermute(const Tensor& x, absl::Span<const int64_t> sources,
                         absl::Span<const int64_t> targets) {
  constexpr std::string_view kOp = "collective_permute";
  const auto count = static_cast<int64_t>(x.device().client->devices().size());
  if (sources.size() != targets.size())
    ThrowRecordError(kOp, InvalidArgument(sources.size(), " sources and ", targets.size(),
                                          " targets are not pairs"));
  for (const absl::Span<const int64_t> ends : {sources, targets}) {
    for (const int64_t device : ends) {
      if (device < 0 || device >= count)
        ThrowRecordError(kOp,
                         InvalidArgument("there is no device ", device, " of ",
                                         x.device().client->platform(), ", which has ", count));
      if (std::count(ends.begin(), ends.end(), device) > 1)
        ThrowRecordError(kOp, InvalidArgument("device ", device, " is twice among the ",
                                              ends == sources ? "sources" : "targets"));
    }
  }
  return Record(CollectivePermuteOp{Dims(sources.begin(), sources.end()),
                                    Dims(targets.begin(), targets.end())},
                x);
}

}  // namespace lazuli::lazy
