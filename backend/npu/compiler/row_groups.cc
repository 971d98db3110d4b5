#include "backend/npu/compiler/row_groups.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_set>
#include <utility>

#include "backend/npu/compiler/expression.h"
#include "backend/npu/compiler/reductions.h"
#include "ir/hlo/clone.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

constexpr std::size_t kMostMembers = 64;

// Dims of more than one element.
std::vector<int64_t> LongDims(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dims()[static_cast<std::size_t>(d)] != 1) dims.push_back(d);
  }
  return dims;
}

// Where a dim of one of them is in the other, if no more than dims of 1 come and go.
std::optional<int64_t> SameDim(const Shape& from, const Shape& to, int64_t dim) {
  const std::vector<int64_t> before = LongDims(from), after = LongDims(to);
  if (before.size() != after.size()) return std::nullopt;
  std::optional<int64_t> found;
  for (std::size_t k = 0; k < before.size(); ++k) {
    if (from.dims()[static_cast<std::size_t>(before[k])] !=
        to.dims()[static_cast<std::size_t>(after[k])])
      return std::nullopt;
    if (before[k] == dim) found = after[k];
  }
  return found;
}

template <class D>
bool Has(const D& dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// Whether its rows may be its own at all.
bool MayJoin(const hlo::Instruction& i) {
  if (!i.shape().IsArray() || i.shape().num_elements() == 0 || i.HasSideEffect()) return false;
  if (!i.control_predecessors().empty()) return false;
  if (i.opcode() == Opcode::kReduce) return !WhyNoReduction(i) && i.operand(1)->IsConstant();
  if (i.opcode() == Opcode::kBroadcast || i.opcode() == Opcode::kReshape) return true;
  return i.IsElementwise() && i.opcode() != Opcode::kCopy;
}

// Where the rows of `user` are if those of its operand `i` are at `dim`.
std::optional<int64_t> DimOfUser(const hlo::Instruction& i, int64_t dim,
                                 const hlo::Instruction& user) {
  switch (user.opcode()) {
    case Opcode::kReduce: {
      const auto& reduced = user.attrs_as<hlo::DimensionsAttrs>().dimensions;
      if (user.operand(0) != &i || Has(reduced, dim)) return std::nullopt;
      return dim -
             std::count_if(reduced.begin(), reduced.end(), [&](int64_t d) { return d < dim; });
    }
    case Opcode::kBroadcast:
      return user.attrs_as<hlo::DimensionsAttrs>().dimensions[static_cast<std::size_t>(dim)];
    case Opcode::kReshape:
      return SameDim(i.shape(), user.shape(), dim);
    default:
      return SameDims(user.shape(), i.shape()) ? std::optional(dim) : std::nullopt;
  }
}

// The other way round, for an operand that is an array of rows.
std::optional<int64_t> DimOfOperand(const hlo::Instruction& i, int64_t dim,
                                    const hlo::Instruction& operand) {
  switch (i.opcode()) {
    case Opcode::kReduce: {
      if (i.operand(0) != &operand) return std::nullopt;
      const auto& reduced = i.attrs_as<hlo::DimensionsAttrs>().dimensions;
      for (int64_t d = 0, kept = 0; d < operand.shape().rank(); ++d) {
        if (!Has(reduced, d) && kept++ == dim) return d;
      }
      return std::nullopt;
    }
    case Opcode::kBroadcast: {
      const auto& dimensions = i.attrs_as<hlo::DimensionsAttrs>().dimensions;
      const auto at = std::find(dimensions.begin(), dimensions.end(), dim);
      if (at == dimensions.end()) return std::nullopt;
      return at - dimensions.begin();
    }
    case Opcode::kReshape:
      return SameDim(i.shape(), operand.shape(), dim);
    default:
      return SameDims(operand.shape(), i.shape()) ? std::optional(dim) : std::nullopt;
  }
}

// Its elements are somebody else's.
bool IsView(const hlo::Instruction& i) {
  return i.opcode() == Opcode::kBroadcast || i.opcode() == Opcode::kReshape;
}

// Who makes the array that `reader` is computed for.
const hlo::Instruction& KernelOf(const hlo::Instruction& reader, const InstructionTest& inlined) {
  const hlo::Instruction* i = &reader;
  while ((inlined(*i) || IsView(*i)) && i->users().size() == 1) i = i->users()[0];
  return *i;
}

class Grouping {
 public:
  Grouping(const hlo::Computation& computation, const Config& config,
           const InstructionTest& elsewhere, const InstructionTest& inlined)
      : room_(config.spm_bytes() / 8), elsewhere_(elsewhere), inlined_(inlined) {
    for (const hlo::Instruction* i : computation.PostOrder()) units_.push_back({{i}, {}, 0, 0});
    for (std::size_t u = 0; u < units_.size(); ++u) at_[units_[u].members[0]] = u;
  }

  std::vector<RowUnit> Run() {
    std::vector<const hlo::Instruction*> seeds;
    for (const RowUnit& unit : units_) {
      if (unit.members[0]->opcode() == Opcode::kReduce) seeds.push_back(unit.members[0]);
    }
    for (const hlo::Instruction* seed : seeds) {
      if (seed->operand(0)->shape().byte_size() <= room_ / 4) continue;
      if (!Joins(*seed) || units_[at_.at(seed)].is_group()) continue;
      for (const int64_t dim : Cuts(*seed)) {
        if (Grow(*seed, dim)) break;
      }
    }
    return std::move(units_);
  }

 private:
  bool Joins(const hlo::Instruction& i) const { return MayJoin(i) && !elsewhere_(i); }

  // Dims of the result along which it may be cut, the outermost first: rows that lie in memory as
  // whole bursts.
  static std::vector<int64_t> Cuts(const hlo::Instruction& reduce) {
    constexpr int64_t kLeast = 64;
    const Shape& shape = reduce.operand(0)->shape();
    const auto& reduced = reduce.attrs_as<hlo::DimensionsAttrs>().dimensions;
    std::vector<int64_t> cuts;
    int64_t bytes = shape.byte_size();
    for (int64_t d = 0, kept = 0; d < shape.rank(); ++d) {
      const int64_t size = shape.dims()[static_cast<std::size_t>(d)];
      bytes /= size;
      if (Has(reduced, d)) continue;
      if (size > 1 && bytes >= kLeast) cuts.push_back(kept);
      ++kept;
    }
    return cuts;
  }

  bool InGroup(const hlo::Instruction& i) const { return group_.dims.contains(&i); }

  // Marks the units that `i`, a new member, leads to, or that lead to it.
  void Reach(const hlo::Instruction& i, bool up, std::vector<bool>& reached) {
    reached[at_.at(&i)] = false;
    std::vector<const hlo::Instruction*> todo{&i};
    while (!todo.empty()) {
      const hlo::Instruction& from = *todo.back();
      todo.pop_back();
      const auto visit = [&](const hlo::Instruction* o) {
        const std::size_t unit = at_.at(o);
        if (InGroup(*o) || reached[unit]) return;
        reached[unit] = true;
        todo.insert(todo.end(), units_[unit].members.begin(), units_[unit].members.end());
      };
      for (const hlo::Instruction* o : up ? from.operands() : from.users()) visit(o);
    }
  }

  // Whether its rows are where those of its neighbours in the group expect them.
  bool Agrees(const hlo::Instruction& i, int64_t dim) const {
    return std::all_of(i.operands().begin(), i.operands().end(),
                       [&](const hlo::Instruction* o) {
                         const auto at = group_.dims.find(o);
                         return at == group_.dims.end() || DimOfOperand(i, dim, *o) == at->second;
                       }) &&
           std::all_of(i.users().begin(), i.users().end(), [&](const hlo::Instruction* o) {
             const auto at = group_.dims.find(o);
             return at == group_.dims.end() || DimOfUser(i, dim, *o) == at->second;
           });
  }

  // Whether no way leads from the group out and back in if this one is in it.
  bool StaysWhole(const hlo::Instruction& i) const {
    const auto apart = [&](const hlo::Instruction* o, const std::vector<bool>& reach) {
      return InGroup(*o) || !reach[at_.at(o)];
    };
    return std::all_of(i.operands().begin(), i.operands().end(),
                       [&](const hlo::Instruction* o) { return apart(o, below_); }) &&
           std::all_of(i.users().begin(), i.users().end(),
                       [&](const hlo::Instruction* o) { return apart(o, above_); });
  }

  // False: there is no group, or a strip of one row does not fit.
  bool Grow(const hlo::Instruction& seed, int64_t dim) {
    group_ = {};
    below_.assign(units_.size(), false);
    above_.assign(units_.size(), false);
    group_.rows = seed.shape().dims()[static_cast<std::size_t>(dim)];
    std::deque<const hlo::Instruction*> todo;
    const auto take = [&](const hlo::Instruction& i, int64_t at) {
      group_.dims[&i] = at;
      todo.push_back(&i);
      Reach(i, /*up=*/false, below_);
      Reach(i, /*up=*/true, above_);
    };
    const auto consider = [&](const hlo::Instruction& i, std::optional<int64_t> at) {
      if (!at || InGroup(i) || group_.dims.size() >= kMostMembers) return;
      if (units_[at_.at(&i)].is_group() || !Joins(i) || !Agrees(i, *at) || !StaysWhole(i)) return;
      take(i, *at);
    };
    take(seed, dim);
    while (!todo.empty()) {
      const hlo::Instruction& i = *todo.front();
      todo.pop_front();
      const int64_t at = group_.dims.at(&i);
      for (const hlo::Instruction* o : i.operands()) consider(*o, DimOfOperand(i, at, *o));
      for (const hlo::Instruction* o : i.users()) consider(*o, DimOfUser(i, at, *o));
    }
    if (!IsWorthIt()) return false;
    Keep();
    return true;
  }

  // Bytes of a row that are computed by one member for another, and of what several read.
  int64_t BytesBetween() const {
    int64_t bytes = 0;
    std::unordered_map<const hlo::Instruction*, const hlo::Instruction*> reader;
    for (const auto& [i, dim] : group_.dims) {
      const bool read = std::any_of(i->users().begin(), i->users().end(),
                                    [&](const hlo::Instruction* user) { return InGroup(*user); });
      if (read && !IsView(*i) && !inlined_(*i)) bytes += i->shape().byte_size() / group_.rows;
      for (const hlo::Instruction* o : i->operands()) {
        if (InGroup(*o) || !DimOfOperand(*i, dim, *o) || IsView(*o)) continue;
        const hlo::Instruction* const kernel = &KernelOf(*i, inlined_);
        const auto [at, first] = reader.try_emplace(o, kernel);
        if (first || at->second == nullptr || at->second == kernel) continue;
        bytes += o->shape().byte_size() / group_.rows;
        at->second = nullptr;
      }
    }
    return bytes;
  }

  bool IsWorthIt() {
    const bool spreads = std::any_of(group_.dims.begin(), group_.dims.end(), [&](const auto& m) {
      return m.first->opcode() == Opcode::kBroadcast && InGroup(*m.first->operand(0));
    });
    if (!spreads) return false;
    const int64_t bytes = BytesBetween();
    if (bytes == 0 || bytes * group_.rows <= room_) return false;
    group_.strip = room_ / bytes;
    return group_.strip >= 1;
  }

  // The members become one unit. Of the units between the first and the last, those that need it
  // come behind, the others before.
  void Keep() {
    std::size_t first = units_.size(), last = 0;
    for (const auto& [i, dim] : group_.dims) {
      first = std::min(first, at_.at(i));
      last = std::max(last, at_.at(i));
    }
    std::vector<RowUnit> before, behind;
    for (std::size_t u = first; u <= last; ++u) {
      if (InGroup(*units_[u].members[0]))
        group_.members.push_back(units_[u].members[0]);
      else
        (below_[u] ? behind : before).push_back(std::move(units_[u]));
    }
    before.push_back(std::move(group_));
    before.insert(before.end(), std::make_move_iterator(behind.begin()),
                  std::make_move_iterator(behind.end()));
    const auto from = units_.begin() + static_cast<std::ptrdiff_t>(first);
    units_.erase(from, units_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    units_.insert(units_.begin() + static_cast<std::ptrdiff_t>(first),
                  std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
    for (std::size_t u = first; u < units_.size(); ++u) {
      for (const hlo::Instruction* i : units_[u].members) at_[i] = u;
    }
  }

  const int64_t room_;
  const InstructionTest &elsewhere_, &inlined_;
  std::vector<RowUnit> units_;
  std::unordered_map<const hlo::Instruction*, std::size_t> at_;  // places in units_
  RowUnit group_;                                                // that grows
  std::vector<bool> below_, above_;                              // by unit
};

Shape WithRows(const Shape& shape, int64_t dim, int64_t rows) {
  Dims dims(shape.dims().begin(), shape.dims().end());
  if (dim >= 0) dims[static_cast<std::size_t>(dim)] = rows;
  return Shape(shape.dtype(), dims);
}

void FindOutputs(const RowUnit& group, RowStrip& strip) {
  std::unordered_set<const hlo::Instruction*> viewed;
  for (const hlo::Instruction* i : group.members | std::views::reverse) {
    const bool read = i->IsRoot() || viewed.contains(i) ||
                      std::any_of(i->users().begin(), i->users().end(),
                                  [&](const auto* user) { return !group.dims.contains(user); });
    if (!read) continue;
    (IsView(*i) ? strip.views : strip.outputs).push_back(i);
    if (IsView(*i)) viewed.insert(i->operand(0));
  }
  std::reverse(strip.outputs.begin(), strip.outputs.end());
  std::reverse(strip.views.begin(), strip.views.end());
}

}  // namespace

std::vector<RowUnit> RowUnitsOf(const hlo::Computation& computation, const Config& config,
                                const InstructionTest& computed_elsewhere,
                                const InstructionTest& inlined) {
  return Grouping(computation, config, computed_elsewhere, inlined).Run();
}

RowStrip MakeRowStrip(const RowUnit& group, int64_t rows, const InstructionTest& inlined) {
  RowStrip strip;
  strip.module = std::make_unique<hlo::Module>("rows");
  strip.computation = strip.module->AddComputation("rows");
  std::unordered_map<const hlo::Instruction*, hlo::Instruction*> copies;
  std::vector<std::set<const hlo::Instruction*>> readers;  // of the inputs
  // One value may be read with its rows and as a whole.
  const auto input = [&](const hlo::Instruction& o, int64_t dim, const hlo::Instruction& reader) {
    const auto at = std::find_if(strip.inputs.begin(), strip.inputs.end(),
                                 [&](const auto& in) { return in.value == &o && in.dim == dim; });
    const auto number = at - strip.inputs.begin();
    if (at == strip.inputs.end()) {
      strip.inputs.push_back({&o, dim, 0});
      readers.emplace_back();
      strip.computation->AddParameter(number, WithRows(o.shape(), dim, rows));
    }
    readers[static_cast<std::size_t>(number)].insert(&KernelOf(reader, inlined));
    return strip.computation->parameters()[static_cast<std::size_t>(number)];
  };
  for (const hlo::Instruction* i : group.members) {
    const int64_t dim = group.dims.at(i);
    std::vector<hlo::Instruction*> operands;
    for (const hlo::Instruction* o : i->operands()) {
      if (o->IsConstant() && o->shape().rank() == 0 && !copies.contains(o))
        copies[o] = strip.computation->AddConstant(o->literal().Clone());
      operands.push_back(group.dims.contains(o) || copies.contains(o)
                             ? copies.at(o)
                             : input(*o, DimOfOperand(*i, dim, *o).value_or(-1), *i));
    }
    const hlo::Clones callees = hlo::AddClones(i->called(), *strip.module);
    std::vector<hlo::Computation*> called;
    for (const hlo::Computation* c : i->called()) called.push_back(callees.at(c));
    copies[i] = strip.computation->Add(i->opcode(), WithRows(i->shape(), dim, rows), operands,
                                       i->attrs(), called);
    strip.originals.emplace_back(copies[i], i);
  }
  for (std::size_t n = 0; n < readers.size(); ++n)
    strip.inputs[n].readers = static_cast<int>(readers[n].size());
  FindOutputs(group, strip);
  std::vector<hlo::Instruction*> outputs;
  std::vector<Shape> shapes;
  for (const hlo::Instruction* i : strip.outputs) {
    outputs.push_back(copies.at(i));
    shapes.push_back(copies.at(i)->shape());
  }
  strip.computation->set_root(
      strip.computation->Add(Opcode::kTuple, Shape::Tuple(shapes), outputs));
  strip.module->set_entry(strip.computation);
  return strip;
}

}  // namespace lazuli::npu
