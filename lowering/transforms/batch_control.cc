// Batch rules of calls, loops and branches, and the loop over samples.
#include <algorithm>
#include <utility>

#include "ir/types/leaves.h"
#include "lowering/transforms/batch_rules.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;

std::vector<bool> FlagsOf(BatchValues values) {
  std::vector<bool> flags;
  for (const BatchValue& value : values) value.AppendFlags(flags);
  return flags;
}

// [B] conditions as an array of the dims.
Op Spread(BatchScope& s, Op conditions, const Shape& batched) {
  return s.FullAs(BatchScope::Array(conditions), batched);
}

// on_true where the condition of the sample holds, else on_false; leaf by leaf. What is batched in neither
// is equal in both.
BatchValue Choose(BatchScope& s, Op conditions, const BatchValue& on_true,
                  const BatchValue& on_false) {
  if (on_true.is_tuple) {
    BatchValue value{.is_tuple = true};
    for (std::size_t k = 0; k < on_true.elements.size(); ++k)
      value.elements.push_back(Choose(s, conditions, on_true.elements[k], on_false.elements[k]));
    return value;
  }
  if (!on_true.batched) return on_false;
  return BatchScope::Array(
      s.b.Select(Spread(s, conditions, on_true.op.shape()), on_true.op, s.Full(on_false)));
}

bool HasSideEffects(const Computation& computation) {
  return std::any_of(computation.instructions().begin(), computation.instructions().end(),
                     [](const auto& i) { return i->HasSideEffect(); });
}

absl::Status SideEffects(const hlo::Instruction& i) {
  return Unimplemented("vmap: ", hlo::OpcodeText(i.opcode()),
                       " that depends on the sample has side effects");
}

// Leaves of a loop's state that its body hands on unchanged.
std::vector<bool> ConstantLeaves(const Computation& body) {
  const hlo::Instruction *root = body.root(), *state = body.parameters()[0];
  std::vector<bool> constant;
  if (root == state || !root->shape().IsTuple()) {
    constant.assign(static_cast<std::size_t>(ir::LeafCount(root->shape())), root == state);
    return constant;
  }
  for (std::size_t k = 0; k < root->shape().tuple().size(); ++k) {
    const auto index = static_cast<int64_t>(k);
    bool same = false;
    if (root->opcode() == Opcode::kTuple) {
      const hlo::Instruction* element = root->operand(index);
      same = element->opcode() == Opcode::kGetTupleElement && element->operand(0) == state &&
             element->attrs_as<hlo::TupleIndexAttrs>().index == index;
    }
    const int64_t leaves = ir::LeafCount(root->shape().tuple()[k]);
    constant.insert(constant.end(), static_cast<std::size_t>(leaves), same);
  }
  return constant;
}

// A loop's state, once it is known what of it is batched.
struct LoopPlan {
  std::vector<bool> state;
  BatchModule::Body condition = {}, body = {};
  bool differs() const { return condition.results[0]; }  // samples leave the loop at their own time
};

absl::StatusOr<LoopPlan> Plan(BatchScope& s, const hlo::Instruction& i, std::vector<bool> state) {
  const Computation &condition = *i.called()[0], &body = *i.called()[1];
  const std::vector<bool> constant = ConstantLeaves(body);
  LoopPlan plan{.state = std::move(state)};
  while (true) {
    LAZULI_ASSIGN_OR_RETURN(plan.condition, s.shared().BodyOf(condition, plan.state, {false}));
    std::vector<bool> wanted = plan.state;
    for (std::size_t k = 0; k < wanted.size(); ++k)
      wanted[k] = wanted[k] || (plan.differs() && !constant[k]);
    if (wanted == plan.state) {
      LAZULI_ASSIGN_OR_RETURN(plan.body, s.shared().BodyOf(body, plan.state, plan.state));
      wanted = plan.body.results;
    }
    if (wanted == plan.state) return plan;
    plan.state = Union(std::move(plan.state), wanted);
  }
}

// The state is (the loop's own, which samples go on); a sample that has left keeps its values.
BatchValue LoopWhileAny(BatchScope& s, const LoopPlan& plan, const BatchValue& init) {
  hlo::Module& module = s.shared().module();
  const Op first = s.Join(init);
  const Op start = s.b.Tuple({first, s.b.Call(plan.condition.computation, {first})});
  const Shape state = start.shape();  // NOLINT: a copy, for the original moves
  Builder c(&module, "any_sample_goes_on");
  const Op going = c.GetTupleElement(c.Parameter(0, state), 1);
  const auto condition = c.Finish(c.Reduce(Opcode::kOr, going, {0}));
  Builder b(&module, "step_of_samples");
  BatchScope inner(s.shared(), b);
  const Op both = b.Parameter(0, state);
  const Op before = b.GetTupleElement(both, 0), goes_on = b.GetTupleElement(both, 1);
  const Op after = b.Call(plan.body.computation, {before});
  const BatchValue chosen =
      Choose(inner, goes_on, inner.Split(after, plan.state), inner.Split(before, plan.state));
  const Op next = inner.Join(chosen);
  const Op again = b.Binary(Opcode::kAnd, goes_on, b.Call(plan.condition.computation, {next}));
  const auto body = b.Finish(b.Tuple({next, again}));
  if (!condition.ok()) return s.Error(condition.status());
  if (!body.ok()) return s.Error(body.status());
  return s.Split(s.b.GetTupleElement(s.b.While(start, *condition, *body), 0), plan.state);
}

}  // namespace

BatchValue BatchCall(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const auto body = s.shared().BodyOf(*i.to_apply(), FlagsOf(operands), {});
  if (!body.ok()) return s.Error(body.status());
  std::vector<Op> arguments;
  for (const BatchValue& operand : operands) arguments.push_back(s.Join(operand));
  return s.Split(s.b.Call(body->computation, arguments), body->results);
}

BatchValue BatchWhile(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const auto plan = Plan(s, i, FlagsOf(operands));
  if (!plan.ok()) return s.Error(plan.status());
  const BatchValue init = s.Broadcast(operands[0], plan->state);
  if (plan->differs()) {
    if (HasSideEffects(*i.called()[0]) || HasSideEffects(*i.called()[1]))
      return s.Error(SideEffects(i));
    return LoopWhileAny(s, *plan, init);
  }
  const Op loop = s.b.While(s.Join(init), plan->condition.computation, plan->body.computation);
  if (loop.instruction() != nullptr) loop.instruction()->mutable_extra_attrs() = i.extra_attrs();
  return s.Split(loop, plan->state);
}

// Which branch a sample takes is a choice of the results of all branches.
BatchValue BatchConditional(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  Builder& b = s.b;
  const std::size_t count = i.called().size();
  std::vector<bool> wanted;
  std::vector<BatchModule::Body> branches(count);
  for (int round = 0; round < 2; ++round) {  // what is batched in one branch is so in all
    for (std::size_t k = 0; k < count; ++k) {
      const auto body =
          s.shared().BodyOf(*i.called()[k], FlagsOf(operands.subspan(k + 1, 1)), wanted);
      if (!body.ok()) return s.Error(body.status());
      branches[k] = *body;
      wanted = Union(body->results, wanted);
    }
    if (operands[0].batched) wanted.assign(wanted.size(), true);
  }
  std::vector<Op> arguments{operands[0].op};
  for (const BatchValue& operand : operands.subspan(1)) arguments.push_back(s.Join(operand));
  if (!operands[0].batched) {
    std::vector<Computation*> called;
    for (const BatchModule::Body& branch : branches) called.push_back(branch.computation);
    return s.Split(b.Add(Opcode::kConditional, arguments, i.attrs(), called), wanted);
  }
  if (std::any_of(i.called().begin(), i.called().end(),
                  [](const Computation* branch) { return HasSideEffects(*branch); }))
    return s.Error(SideEffects(i));
  std::vector<BatchValue> results;
  for (std::size_t k = 0; k < count; ++k)
    results.push_back(s.Split(b.Call(branches[k].computation, {arguments[k + 1]}), wanted));
  const Op index = arguments[0];
  if (index.dtype() == DType::kPred) return Choose(s, index, results[0], results[1]);
  BatchValue chosen = results[count - 1];  // of an index that is out of range, too
  for (std::size_t k = 0; k + 1 < count; ++k) {
    const Op here = b.Compare(hlo::ComparisonDirection::kEq, index,
                              b.Full(index.shape(), static_cast<double>(k)));
    chosen = Choose(s, here, results[k], chosen);
  }
  return chosen;
}

BatchValue BatchScan(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const std::vector<bool> inputs(operands.size(), true), results(i.shape().tuple().size(), true);
  const auto body = s.shared().BodyOf(*i.to_apply(), inputs, results);
  if (!body.ok()) return s.Error(body.status());
  hlo::ScanAttrs attrs = i.attrs_as<hlo::ScanAttrs>();
  ++attrs.dimension;
  const Shape shape = s.Batched(i.shape());
  return s.Split(s.b.Add(i.opcode(), s.FullOperands(operands), attrs, {body->computation}, &shape),
                 true);
}

namespace {

// The operand of sample `k`.
BatchValue SampleOf(BatchScope& s, Op k, const BatchValue& value) {
  Builder& b = s.b;
  if (value.is_tuple) {
    BatchValue sample{.is_tuple = true};
    for (const BatchValue& element : value.elements)
      sample.elements.push_back(SampleOf(s, k, element));
    return sample;
  }
  if (!value.batched) return value;
  Dims sizes(value.op.shape().dims().begin(), value.op.shape().dims().end());
  std::vector<Op> starts(sizes.size(), b.Scalar(DType::kS32, 0));
  starts[0] = k;
  sizes[0] = 1;
  const Op slice = b.DynamicSlice(value.op, starts, sizes);
  sizes.erase(sizes.begin());
  return BatchScope::Array(b.Reshape(slice, sizes), false);
}

// The results so far with those of sample `k`.
BatchValue WithSample(BatchScope& s, Op k, const BatchValue& all, const BatchValue& sample) {
  Builder& b = s.b;
  if (all.is_tuple) {
    BatchValue value{.is_tuple = true};
    for (std::size_t e = 0; e < all.elements.size(); ++e)
      value.elements.push_back(WithSample(s, k, all.elements[e], sample.elements[e]));
    return value;
  }
  const Shape shape = all.op.shape();  // NOLINT: a copy, for the original moves
  std::vector<Op> starts(static_cast<std::size_t>(shape.rank()), b.Scalar(DType::kS32, 0));
  starts[0] = k;
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[0] = 1;
  return BatchScope::Array(b.DynamicUpdateSlice(all.op, b.Reshape(sample.op, dims), starts));
}

BatchValue ZerosOf(BatchScope& s, const Shape& shape) {
  if (!shape.IsTuple()) return BatchScope::Array(s.b.Full(s.Batched(shape), 0));
  BatchValue value{.is_tuple = true};
  for (const Shape& element : shape.tuple()) value.elements.push_back(ZerosOf(s, element));
  return value;
}

bool HasToken(const Shape& shape) {
  return shape.IsToken() || std::any_of(shape.tuple().begin(), shape.tuple().end(), HasToken);
}

}  // namespace

BatchValue LoopOverSamples(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  if (HasToken(i.shape()))
    return s.Error(Unimplemented("vmap: ", hlo::OpcodeText(i.opcode()), " gives a token"));
  BatchValue arguments{.is_tuple = true,
                       .elements = std::vector<BatchValue>(operands.begin(), operands.end())};
  const BatchValue results = ZerosOf(s, i.shape());
  if (s.size() == 0) return results;
  const Op start = s.b.Tuple({s.b.Scalar(DType::kS32, 0), s.Join(results), s.Join(arguments)});
  const Shape state = start.shape();  // NOLINT: a copy, for the original moves
  hlo::Module& module = s.shared().module();
  Builder c(&module, "samples_left");
  const auto condition =
      c.Finish(c.Compare(hlo::ComparisonDirection::kLt, c.GetTupleElement(c.Parameter(0, state), 0),
                         c.Scalar(DType::kS32, static_cast<double>(s.size()))));
  Builder b(&module, "sample");
  BatchScope inner(s.shared(), b);
  const Builder::MetadataScope metadata(b, i.metadata());
  const Op all = b.Parameter(0, state);
  const Op k = b.GetTupleElement(all, 0), kept = b.GetTupleElement(all, 2);
  std::vector<bool> flags;
  arguments.AppendFlags(flags);
  std::vector<Op> sample;
  for (const BatchValue& element : inner.Split(kept, flags).elements)
    sample.push_back(inner.Join(SampleOf(inner, k, element)));
  const BatchValue next =
      WithSample(inner, k, inner.Split(b.GetTupleElement(all, 1), true), inner.AddPlain(i, sample));
  const auto body =
      b.Finish(b.Tuple({b.Plus(k, b.Scalar(DType::kS32, 1)), inner.Join(next), kept}));
  if (!condition.ok()) return s.Error(condition.status());
  if (!body.ok()) return s.Error(body.status());
  return s.Split(s.b.GetTupleElement(s.b.While(start, *condition, *body), 1), true);
}

}  // namespace lazuli::lowering
