// Builder's contractions, reductions and control flow: the instructions that have windows or call
// computations.
#include <utility>

#include "ir/hlo/monoid.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {
namespace {

// What a computation of two numbers refuses is an error although shapes need no computation.
void CheckPair(Builder& b, Opcode opcode, DType dtype, const hlo::Attrs& attrs) {
  const Shape x(dtype);
  const Shape* const operands[] = {&x, &x};
  absl::StatusOr<Shape> shape = hlo::InferShape(opcode, operands, attrs, {}, nullptr);
  if (!shape.ok()) b.Error(std::move(shape).status());
}

}  // namespace

Op Builder::Convolution(Op x, Op kernel, hlo::ConvolutionAttrs attrs) {
  return Add(Opcode::kConvolution, {x, kernel}, std::move(attrs));
}

Op Builder::Scatter(Op x, Op indices, Op updates, hlo::ScatterAttrs attrs, Opcode combiner) {
  if (!status_.ok()) return Poisoned();
  hlo::Computation* const combine = ScalarComputation(combiner, x.dtype());
  return Add(Opcode::kScatter, {x, indices, updates}, std::move(attrs), Called({combine}));
}

Op Builder::Reduce(Opcode monoid, Op x, absl::Span<const int64_t> dimensions) {
  if (!status_.ok()) return Poisoned();
  const DType dtype = x.dtype();
  hlo::Computation* const reducer = ScalarComputation(monoid, dtype);
  if (!status_.ok()) return Poisoned();
  const Op identity = shapes_only() ? Scalar(dtype, 0) : Constant(hlo::IdentityOf(monoid, dtype));
  return Reduce({x}, {identity}, reducer, dimensions);
}

Op Builder::Reduce(absl::Span<const Op> xs, absl::Span<const Op> inits, hlo::Computation* reducer,
                   absl::Span<const int64_t> dimensions) {
  Ops operands(xs.begin(), xs.end());
  operands.insert(operands.end(), inits.begin(), inits.end());
  return Add(Opcode::kReduce, operands,
             hlo::DimensionsAttrs{Dims(dimensions.begin(), dimensions.end())}, Called({reducer}));
}

Op Builder::ReduceWindow(Opcode monoid, Op x, hlo::Window window) {
  if (!status_.ok()) return Poisoned();
  const DType dtype = x.dtype();
  hlo::Computation* const reducer = ScalarComputation(monoid, dtype);
  if (!status_.ok()) return Poisoned();
  const Op identity = shapes_only() ? Scalar(dtype, 0) : Constant(hlo::IdentityOf(monoid, dtype));
  return Add(Opcode::kReduceWindow, {x, identity}, hlo::WindowAttrs{std::move(window)},
             Called({reducer}));
}

Op Builder::SelectAndScatter(Op x, Op source, hlo::Window window) {
  if (!status_.ok()) return Poisoned();
  const DType dtype = x.dtype();
  // Of floats the last NaN is chosen, as it is the maximum.
  const auto keeps = [](Builder& b, absl::Span<const Op> p) {
    const Op larger = b.Compare(hlo::ComparisonDirection::kGt, p[1], p[0]);
    const Op number = b.Compare(hlo::ComparisonDirection::kEq, p[1], p[1]);
    return b.Binary(Opcode::kAnd, b.Unary(Opcode::kNot, larger), number);
  };
  const Shape value(dtype);
  hlo::Computation* const select =
      shapes_only() || !IsFloat(dtype)
          ? ComparisonComputation(hlo::ComparisonDirection::kGe, dtype)
          : Region(Str("keeps_", DTypeText(dtype)), {value, value}, keeps);
  hlo::Computation* const scatter = ScalarComputation(Opcode::kAdd, dtype);
  return Add(Opcode::kSelectAndScatter, {x, source, Scalar(dtype, 0)},
             hlo::WindowAttrs{std::move(window)}, Called({select, scatter}));
}

Op Builder::Sort(absl::Span<const Op> xs, int64_t dimension, bool stable,
                 hlo::Computation* comparator) {
  return Add(Opcode::kSort, xs, hlo::SortAttrs{.dimension = dimension, .is_stable = stable},
             Called({comparator}));
}

Op Builder::Tuple(absl::Span<const Op> xs) { return Add(Opcode::kTuple, xs); }

Op Builder::GetTupleElement(Op x, int64_t index) {
  return Add(Opcode::kGetTupleElement, {x}, hlo::TupleIndexAttrs{index});
}

Op Builder::While(Op init, hlo::Computation* condition, hlo::Computation* body) {
  return Add(Opcode::kWhile, {init}, hlo::NoAttrs{}, Called({condition, body}));
}

Op Builder::Call(hlo::Computation* callee, absl::Span<const Op> operands) {
  if (!status_.ok()) return Poisoned();
  if (callee == nullptr) {
    return Error(Unimplemented("call: the shape of a callee is not known in shapes-only mode"));
  }
  return Add(Opcode::kCall, operands, hlo::NoAttrs{}, {callee});
}

std::pair<Op, Op> Builder::RngBitGenerator(hlo::RngAlgorithm algorithm, Op state,
                                           const Shape& bits) {
  if (!status_.ok()) return {Poisoned(), Poisoned()};
  if (!bits.IsArray() || !IsUnsigned(bits.dtype())) {
    const Op error =
        Error(InvalidArgument("rng-bit-generator: bits of an unsigned type, not ", bits));
    return {error, error};
  }
  if (shapes_only())  // as two values: a tuple's shape would be allocated
    return {state, Push(bits, nullptr)};
  const Shape declared = Shape::Tuple({state.shape(), bits});
  const Op both =
      Add(Opcode::kRngBitGenerator, {state}, hlo::RngBitGeneratorAttrs{algorithm}, {}, &declared);
  return {GetTupleElement(both, 0), GetTupleElement(both, 1)};
}

// A computation of this name made earlier for the same purpose is shared: names are ours to give,
// and the root is checked.
hlo::Computation* Builder::BinaryComputation(std::string_view name, Opcode opcode, DType dtype,
                                             hlo::Attrs attrs) {
  if (shapes_only() || !status_.ok()) return nullptr;
  for (const auto& existing : module_->computations()) {
    const hlo::Instruction* root = existing->root();
    if (existing->name() != name || root == nullptr || existing->parameters().size() != 2) continue;
    const bool second = opcode == Opcode::kCopy && root == existing->parameters()[1];
    const bool same = root->opcode() == opcode && root->attrs() == attrs &&
                      root->operand(0) == existing->parameters()[0] &&
                      root->operand(1) == existing->parameters()[1];
    if ((second || same) && existing->parameters()[0]->shape() == Shape(dtype))
      return existing.get();
  }
  Builder b(module_, name);
  const Op x = b.Parameter(0, Shape(dtype));
  const Op y = b.Parameter(1, Shape(dtype));
  absl::StatusOr<hlo::Computation*> made =
      b.Finish(opcode == Opcode::kCopy ? y : b.Add(opcode, {x, y}, std::move(attrs)));
  if (made.ok()) return *made;
  Error(std::move(made).status());
  return nullptr;
}

hlo::Computation* Builder::ScalarComputation(Opcode opcode, DType dtype) {
  if (opcode != Opcode::kCopy && !hlo::Accepts(opcode, dtype))
    CheckPair(*this, opcode, dtype, hlo::NoAttrs{});
  if (shapes_only()) return nullptr;
  const std::string_view text = opcode == Opcode::kCopy ? "second" : hlo::OpcodeText(opcode);
  return BinaryComputation(Str(text, "_", DTypeText(dtype)), opcode, dtype, hlo::NoAttrs{});
}

hlo::Computation* Builder::ComparisonComputation(hlo::ComparisonDirection direction, DType dtype) {
  if (IsComplex(dtype))
    CheckPair(*this, Opcode::kCompare, dtype, hlo::CompareAttrs{.direction = direction});
  if (shapes_only()) return nullptr;
  static constexpr std::string_view kText[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  return BinaryComputation(Str(kText[static_cast<std::size_t>(direction)], "_", DTypeText(dtype)),
                           Opcode::kCompare, dtype, hlo::CompareAttrs{.direction = direction});
}

hlo::Computation* Builder::Region(std::string_view name, absl::Span<const Shape> parameters,
                                  absl::FunctionRef<Op(Builder&, absl::Span<const Op>)> body) {
  if (!status_.ok()) return nullptr;
  std::unique_ptr<Builder> built;
  if (shapes_only()) {
    if (nested_ == nullptr) nested_ = std::make_unique<Builder>(Mode::kShapesOnly);
    nested_->Reset();
  } else {
    built = std::make_unique<Builder>(module_, name);
  }
  Builder& b = shapes_only() ? *nested_ : *built;
  Ops inputs;
  for (const Shape& shape : parameters) {
    inputs.push_back(b.Parameter(static_cast<int64_t>(inputs.size()), shape));
  }
  const Op root = body(b, inputs);
  absl::StatusOr<hlo::Computation*> made = b.Finish(root);
  if (made.ok()) return *made;
  Error(std::move(made).status());
  return nullptr;
}

}  // namespace lazuli::lowering
