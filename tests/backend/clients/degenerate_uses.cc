#include "tests/backend/clients/degenerate_uses.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "ir/hlo/monoid.h"
#include "ir/hlo/shapes/shape_inference.h"

namespace lazuli {
namespace {

using namespace hlo;  // NOLINT(google-build-using-namespace): a page of opcodes and attributes
using ir::Dims;
using ir::DType;
using ir::Literal;
using ir::Shape;
using Use = DegenerateUse;
using Operand = Use::Operand;
using Region = Use::Region;
using Uses = std::vector<Use>;

const std::vector<Dims>& AllDims() {
  static const auto* all =
      new std::vector<Dims>{{}, {0}, {1}, {0, 3}, {3, 0}, {2, 0, 4}, {1, 1}, {2, 3}};
  return *all;
}

Dims Iota(int64_t n) {
  Dims dims(static_cast<std::size_t>(n));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

// No dimension, each one, all.
std::vector<Dims> SomeDims(const Shape& x) {
  std::vector<Dims> some{{}};
  for (int64_t d = 0; d < x.rank(); ++d) some.push_back({d});
  if (x.rank() > 1) some.push_back(Iota(x.rank()));
  return some;
}

Dims Same(const Shape& x, int64_t value) { return Dims(static_cast<std::size_t>(x.rank()), value); }
Dims DimsOf(const Shape& x) { return {x.dims().begin(), x.dims().end()}; }
Shape Word(const Dims& dims = {}) { return Shape(DType::kS32, dims); }

// (a, b) -> opcode(a, b), or whatever `root` makes of `count` scalars.
Region Scalars(std::vector<DType> types,
               std::function<Instruction*(Computation*, absl::Span<Instruction* const>)> root) {
  return [types = std::move(types), root = std::move(root)](Module& module) {
    Computation* const region = module.AddComputation("region");
    std::vector<Instruction*> parameters;
    for (DType type : types)
      parameters.push_back(
          region->AddParameter(static_cast<int64_t>(parameters.size()), Shape(type)));
    region->set_root(root(region, parameters));
    return region;
  };
}
Region Fold(Opcode opcode, DType dtype) {
  return Scalars({dtype, dtype}, [=](Computation* c, absl::Span<Instruction* const> p) {
    return c->Add(opcode, Shape(dtype), p);
  });
}
// (a, b, ...) -> a < b or another order.
Region Order(ComparisonDirection direction, std::vector<DType> types) {
  return Scalars(std::move(types), [=](Computation* c, absl::Span<Instruction* const> p) {
    return c->Add(Opcode::kCompare, Shape(DType::kPred), p.first(2),
                  CompareAttrs{direction, ComparisonType::kDefault});
  });
}
// What folds in order on every device: no monoid.
Region FirstMinusSecond(DType dtype) { return Fold(Opcode::kSubtract, dtype); }
// (a, i, b, j) -> the greater of a and b with its place.
Region ArgMax(DType dtype) {
  return Scalars({dtype, DType::kS32, dtype, DType::kS32}, [=](Computation* c,
                                                               absl::Span<Instruction* const> p) {
    Instruction* const greater =
        c->Add(Opcode::kCompare, Shape(DType::kPred), {p[0], p[2]},
               CompareAttrs{ComparisonDirection::kGe, ComparisonType::kDefault});
    Instruction* const value = c->Add(Opcode::kSelect, Shape(dtype), {greater, p[0], p[2]});
    Instruction* const place = c->Add(Opcode::kSelect, Word(), {greater, p[1], p[3]});
    return c->Add(Opcode::kTuple, Shape::Tuple({value->shape(), place->shape()}), {value, place});
  });
}
// x -> x, negated if there is such a thing.
Region Negated(const Shape& shape) {
  return [=](Module& module) {
    Computation* const region = module.AddComputation("region");
    Instruction* const x = region->AddParameter(0, shape);
    const bool negates = shape.IsArray() && Accepts(Opcode::kNegate, shape.dtype());
    region->set_root(negates ? region->Add(Opcode::kNegate, shape, {x}) : x);
    return region;
  };
}

// Initial values of folds: the identity, another constant, none that is known.
std::vector<Operand> Inits(Opcode monoid, DType dtype) {
  const Shape scalar(dtype);
  return {{scalar, IdentityOf(monoid, dtype).AsDouble(0)}, {scalar, 1}, {scalar}};
}

// --- candidates of one family each, over `x`

void Elementwise(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  std::vector<Attrs> attrs{NoAttrs{}};
  if (opcode == Opcode::kCompare) {
    attrs = {CompareAttrs{ComparisonDirection::kLt, ComparisonType::kDefault},
             CompareAttrs{ComparisonDirection::kNe, ComparisonType::kDefault}};
  } else if (opcode == Opcode::kReducePrecision) {
    attrs = {ReducePrecisionAttrs{5, 2}};
  }
  if (opcode == Opcode::kConvert) {
    for (DType to : {DType::kPred, DType::kS4, DType::kU8, DType::kF16, DType::kF32, DType::kC64})
      out.push_back({opcode, {{x}}, NoAttrs{}, {}, Shape(to, x.dims())});
    return;
  }
  if (opcode == Opcode::kStochasticConvert) {
    const DType bits = ir::Row(t).bits == 64 ? DType::kU64 : DType::kU32;
    for (DType to : {DType::kF16, DType::kBF16, DType::kS8})
      out.push_back({opcode, {{x}, {Shape(bits, x.dims())}}, NoAttrs{}, {}, Shape(to, x.dims())});
    return;
  }
  if (opcode == Opcode::kSelect) {
    out.push_back({opcode, {{Shape(DType::kPred, x.dims())}, {x}, {x}}});
    out.push_back({opcode, {{Shape(DType::kPred)}, {x}, {x}}});
    return;
  }
  if (opcode == Opcode::kClamp) {
    out.push_back({opcode, {{x}, {x}, {x}}});
    out.push_back({opcode, {{Shape(t)}, {x}, {Shape(t), 1}}});
    return;
  }
  for (const Attrs& a : attrs) {
    const std::vector<Operand> operands(static_cast<std::size_t>(Traits(opcode).arity), {x});
    out.push_back({opcode, operands, a});
    if (operands.size() == 2) out.push_back({opcode, {{x}, {x, 1}}, a});
  }
}

void BitcastConverts(Opcode opcode, const Shape& x, Uses& out) {
  for (DType to : {DType::kU8, DType::kS32, DType::kF32, DType::kF16}) {
    out.push_back({opcode, {{x}}, NoAttrs{}, {}, Shape(to, x.dims())});
    Dims wider = DimsOf(x);
    wider.push_back(std::max(1, ir::Row(x.dtype()).bits / ir::Row(to).bits));
    out.push_back({opcode, {{x}}, NoAttrs{}, {}, Shape(to, wider)});
  }
}

void Iotas(Opcode opcode, const Shape& x, Uses& out) {
  for (int64_t d = 0; d < x.rank(); ++d) out.push_back({opcode, {}, IotaAttrs{d}, {}, x});
}

void Broadcasts(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& to : AllDims()) {
    const Shape target(x.dtype(), to);
    out.push_back({opcode, {{Shape(x.dtype())}}, DimensionsAttrs{}, {}, target});
    if (target.rank() >= x.rank())
      out.push_back({opcode, {{x}}, DimensionsAttrs{Iota(x.rank())}, {}, target});
  }
  Dims after = DimsOf(x);
  after.push_back(0);
  out.push_back({opcode, {{x}}, DimensionsAttrs{Iota(x.rank())}, {}, Shape(x.dtype(), after)});
}

void Transposes(Opcode opcode, const Shape& x, Uses& out) {
  Dims reversed = Iota(x.rank());
  out.push_back({opcode, {{x}}, DimensionsAttrs{reversed}});
  std::reverse(reversed.begin(), reversed.end());
  if (x.rank() > 1) out.push_back({opcode, {{x}}, DimensionsAttrs{reversed}});
}

void OverSomeDims(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& dims : SomeDims(x)) out.push_back({opcode, {{x}}, DimensionsAttrs{dims}});
}

void Reshapes(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& to : AllDims())
    out.push_back({opcode, {{x}}, NoAttrs{}, {}, Shape(x.dtype(), to)});
}

void Concatenates(Opcode opcode, const Shape& x, Uses& out) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    Shape other = x;
    other.set_dim(d, x.dim(d) == 0 ? 2 : 0);
    const DimensionsAttrs attrs{{d}};
    out.push_back({opcode, {{x}}, attrs});
    out.push_back({opcode, {{x}, {x}}, attrs});
    out.push_back({opcode, {{other}, {x}, {other}}, attrs});
  }
}

void Slices(Opcode opcode, const Shape& x, Uses& out) {
  const Dims zeros = Same(x, 0), ones = Same(x, 1);
  Dims last = zeros;
  for (std::size_t d = 0; d < last.size(); ++d) last[d] = std::max<int64_t>(x.dims()[d] - 1, 0);
  out.push_back({opcode, {{x}}, SliceAttrs{zeros, DimsOf(x), ones}});
  out.push_back({opcode, {{x}}, SliceAttrs{zeros, DimsOf(x), Same(x, 2)}});
  out.push_back({opcode, {{x}}, SliceAttrs{zeros, zeros, ones}});
  out.push_back({opcode, {{x}}, SliceAttrs{DimsOf(x), DimsOf(x), ones}});
  out.push_back({opcode, {{x}}, SliceAttrs{last, DimsOf(x), ones}});
}

// Sizes of a part of `x`: all of it, nothing, and one element where there is one.
std::vector<Dims> PartDims(const Shape& x) {
  Dims ones = DimsOf(x);
  for (int64_t& d : ones) d = std::min<int64_t>(d, 1);
  return {DimsOf(x), Same(x, 0), ones};
}

void DynamicSlices(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& sizes : PartDims(x)) {
    for (const std::optional<double> start : {std::optional<double>(), std::optional<double>(1)}) {
      std::vector<Operand> operands{{x}};
      Attrs attrs = NoAttrs{};
      if (opcode == Opcode::kDynamicSlice) {
        attrs = DynamicSliceAttrs{sizes};
      } else {
        operands.push_back({Shape(x.dtype(), sizes)});
      }
      for (int64_t d = 0; d < x.rank(); ++d) operands.push_back({Word(), start});
      out.push_back({opcode, operands, attrs});
    }
  }
}

void Pads(Opcode opcode, const Shape& x, Uses& out) {
  const Dims zeros = Same(x, 0), ones = Same(x, 1);
  for (const std::optional<double> value : {std::optional<double>(), std::optional<double>(0)}) {
    const Operand padding{Shape(x.dtype()), value};
    for (const PadAttrs& attrs :
         {PadAttrs{zeros, zeros, zeros}, PadAttrs{ones, ones, zeros}, PadAttrs{zeros, ones, ones},
          PadAttrs{Same(x, -1), zeros, zeros}, PadAttrs{Same(x, 2), Same(x, -1), zeros}}) {
      out.push_back({opcode, {{x}, padding}, attrs});
    }
  }
}

// One row each, elements of none, whole arrays; indices of one place, of none, of a scalar.
void Gathers(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& places : {Dims{}, Dims{0}, Dims{2}, Dims{0, 2}}) {
    Dims with_vector = places;
    with_vector.push_back(x.rank());
    for (const bool windows : {false, true}) {
      GatherAttrs attrs;
      attrs.index_vector_dim = static_cast<int64_t>(places.size());
      attrs.start_index_map = Iota(x.rank());
      attrs.slice_sizes = Same(x, 1);
      if (windows) {
        attrs.slice_sizes = DimsOf(x);
        attrs.offset_dims = Iota(x.rank());
      } else {
        attrs.collapsed_slice_dims = Iota(x.rank());
      }
      out.push_back({opcode, {{x}, {Word(with_vector)}}, attrs});
      if (x.rank() != 1) continue;
      out.push_back({opcode, {{x}, {Word(places)}}, attrs});  // the vector of one is left out
    }
  }
}

void Scatters(Opcode opcode, const Shape& x, Uses& out) {
  for (const Dims& places : {Dims{}, Dims{0}, Dims{2}, Dims{0, 2}}) {
    Dims with_vector = places;
    with_vector.push_back(x.rank());
    for (const bool windows : {false, true}) {
      ScatterAttrs attrs;
      attrs.index_vector_dim = static_cast<int64_t>(places.size());
      attrs.scatter_dims_to_operand_dims = Iota(x.rank());
      Dims updates = places;
      if (windows) {
        for (int64_t d = 0; d < x.rank(); ++d)
          attrs.update_window_dims.push_back(static_cast<int64_t>(places.size()) + d);
        updates.insert(updates.end(), x.dims().begin(), x.dims().end());
      } else {
        attrs.inserted_window_dims = Iota(x.rank());
      }
      out.push_back({opcode,
                     {{x}, {Word(with_vector)}, {Shape(x.dtype(), updates)}},
                     attrs,
                     {Fold(Opcode::kAdd, x.dtype())}});
    }
  }
}

void Sizes(Opcode opcode, const Shape& x, Uses& out) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    Use use{opcode, {{x}}, DimensionsAttrs{{d}}};
    if (opcode == Opcode::kSetDimensionSize)
      use.operands.push_back({Word(), static_cast<double>(x.dim(d))});
    out.push_back(use);
  }
}

void Tuples(Opcode opcode, const Shape& x, Uses& out) {
  const Shape pair = Shape::Tuple({x, Word()});
  if (opcode == Opcode::kTuple) {
    out.push_back({opcode, {{x}, {x}}});
  } else if (opcode == Opcode::kGetTupleElement) {
    out.push_back({opcode, {{pair}}, TupleIndexAttrs{0}});
  } else if (opcode == Opcode::kAddDependency) {
    out.push_back({opcode, {{x}, {Shape::Token()}}});
  } else {
    out.push_back({opcode, {{x}}});
    out.push_back({opcode, {{pair}}});
  }
}

void Dots(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  out.push_back({opcode, {{x}, {x}}, DotAttrs{}});
  out.push_back({opcode, {{x}, {x}}, DotAttrs{{}, Iota(x.rank()), {}, Iota(x.rank()), "", ""}});
  out.push_back({opcode, {{x}, {x}}, DotAttrs{Iota(x.rank()), {}, Iota(x.rank()), {}, "", ""}});
  if (x.rank() == 0) return;
  const int64_t last = x.rank() - 1;
  for (const int64_t columns : {0, 1, 3}) {
    const Shape y(t, {x.dim(last), columns});
    out.push_back({opcode, {{x}, {y}}, DotAttrs{{}, {last}, {}, {0}, "", ""}});
  }
  Shape y = x;
  out.push_back({opcode, {{x}, {y}}, DotAttrs{{}, {last}, {}, {last}, "", ""}});
  if (last > 0) out.push_back({opcode, {{x}, {y}}, DotAttrs{{0}, {last}, {0}, {last}, "", ""}});
}

// Batch, feature and one, two or no spatial dimensions of the sizes of `x`.
void Convolutions(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  for (const int64_t batch : {0, 1, 2}) {
    for (const int64_t features : {0, 1, 3}) {
      for (const int64_t outputs : {0, 2}) {
        Dims input{batch, features}, kernel{outputs, features};
        ConvolutionAttrs attrs;
        for (int64_t d = 0; d < x.rank(); ++d) {
          input.push_back(x.dim(d));
          kernel.push_back(2);
          attrs.window.push_back({.size = 2, .stride = 1, .pad_low = 1, .pad_high = d});
          attrs.dim_labels.input_spatial.push_back(2 + d);
          attrs.dim_labels.kernel_spatial.push_back(2 + d);
          attrs.dim_labels.output_spatial.push_back(2 + d);
        }
        out.push_back({opcode, {{Shape(t, input)}, {Shape(t, kernel)}}, attrs});
      }
    }
  }
}

void RaggedDots(Opcode opcode, const Shape& x, Uses& out) {
  if (x.rank() != 2) return;
  for (const int64_t groups : {0, 1, 2}) {
    const Shape y(x.dtype(), {groups, x.dim(1), 3});
    const auto half =
        static_cast<double>(x.dim(0) / 2);  // NOLINT(bugprone-integer-division): rows, whole
    out.push_back({opcode,
                   {{x}, {y}, {Word({groups}), half}},
                   RaggedDotAttrs{{}, {1}, {}, {1}, {0}, {0}, ""}});
  }
}

void Ffts(Opcode opcode, const Shape& x, Uses& out) {
  if (x.rank() == 0) return;
  for (FftType type : {FftType::kFft, FftType::kIfft, FftType::kRfft, FftType::kIrfft})
    out.push_back({opcode, {{x}}, FftAttrs{type, {x.dim(x.rank() - 1)}}});
}

void Factorizations(Opcode opcode, const Shape& x, Uses& out) {
  for (const int64_t n : {0, 1, 2}) {
    Dims square = DimsOf(x);
    square.insert(square.end(), {n, n});
    const Operand a{Shape(x.dtype(), square)};
    if (opcode == Opcode::kCholesky) {
      out.push_back({opcode, {a}, CholeskyAttrs{true}});
      continue;
    }
    for (const int64_t columns : {0, 2}) {
      Dims right = DimsOf(x);
      right.insert(right.end(), {n, columns});
      out.push_back({opcode,
                     {a, {Shape(x.dtype(), right)}},
                     TriangularSolveAttrs{true, true, true, TransposeKind::kNoTranspose}});
    }
  }
}

void Reduces(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  for (const Dims& dims : SomeDims(x)) {
    const DimensionsAttrs attrs{dims};
    for (Opcode monoid : {Opcode::kAdd, Opcode::kMultiply, Opcode::kMaximum, Opcode::kMinimum,
                          Opcode::kAnd, Opcode::kOr, Opcode::kXor}) {
      if (!Accepts(monoid, t)) continue;
      for (const Operand& init : Inits(monoid, t))
        out.push_back({opcode, {{x}, init}, attrs, {Fold(monoid, t)}});
    }
    if (Accepts(Opcode::kSubtract, t))
      out.push_back({opcode, {{x}, {Shape(t)}}, attrs, {FirstMinusSecond(t)}});
    if (!ir::IsComplex(t))
      out.push_back(
          {opcode, {{x}, {Word(DimsOf(x))}, {Shape(t)}, {Word(), 0}}, attrs, {ArgMax(t)}});
  }
}

void ReduceWindows(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  const Window one(static_cast<std::size_t>(x.rank()));
  Window two = one, strided = one;
  for (WindowDim& w : two) w = {.size = 2, .pad_low = 1};
  for (WindowDim& w : strided) w = {.size = 3, .stride = 2, .pad_low = 1, .pad_high = 2};
  for (const Window& window : {one, two, strided}) {
    for (Opcode monoid : {Opcode::kAdd, Opcode::kMaximum, Opcode::kAnd}) {
      if (!Accepts(monoid, t)) continue;
      for (const Operand& init : Inits(monoid, t))
        out.push_back({opcode, {{x}, init}, WindowAttrs{window}, {Fold(monoid, t)}});
    }
  }
}

void SelectAndScatters(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  if (ir::IsComplex(t)) return;
  const Window one(static_cast<std::size_t>(x.rank()));
  Window two = one;
  for (WindowDim& w : two) w = {.size = 2, .stride = 2, .pad_high = 1};
  for (const Window& window : {one, two}) {
    Dims source;
    for (int64_t d = 0; d < x.rank(); ++d)
      source.push_back(WindowedSize(x.dim(d), window[static_cast<std::size_t>(d)]));
    for (const Operand& init : Inits(Opcode::kAdd, t)) {
      out.push_back({opcode,
                     {{x}, {Shape(t, source)}, init},
                     WindowAttrs{window},
                     {Order(ComparisonDirection::kGe, {t, t}), Fold(Opcode::kAdd, t)}});
    }
  }
}

void Maps(Opcode opcode, const Shape& x, Uses& out) {
  out.push_back({opcode, {{x}}, DimensionsAttrs{Iota(x.rank())}, {Negated(Shape(x.dtype()))}});
  out.push_back(
      {opcode, {{x}, {x}}, DimensionsAttrs{Iota(x.rank())}, {Fold(Opcode::kAdd, x.dtype())}});
}

void Sorts(Opcode opcode, const Shape& x, Uses& out) {
  const DType t = x.dtype();
  if (ir::IsComplex(t)) return;  // have no order
  const Operand places{Word(DimsOf(x))};
  for (int64_t d = 0; d < x.rank(); ++d) {
    out.push_back({opcode, {{x}}, SortAttrs{d, true}, {Order(ComparisonDirection::kLt, {t, t})}});
    out.push_back({opcode,
                   {{x}, places},
                   SortAttrs{d, true},
                   {Order(ComparisonDirection::kGt, {t, t, DType::kS32, DType::kS32})}});
  }
}

void TopKs(Opcode opcode, const Shape& x, Uses& out) {
  if (x.rank() == 0) return;
  for (const int64_t k : {int64_t{0}, int64_t{1}, x.dim(x.rank() - 1)})
    out.push_back({opcode, {{x}}, TopKAttrs{k, k != 1}});
}

// Twice around a loop with an array in its state; a branch; a call.
void Whiles(Opcode opcode, const Shape& x, Uses& out) {
  const Shape state = Shape::Tuple({Word(), x});
  const Region condition = [=](Module& module) {
    Computation* const c = module.AddComputation("condition");
    Instruction* const p = c->AddParameter(0, state);
    Instruction* const i = c->Add(Opcode::kGetTupleElement, Word(), {p}, TupleIndexAttrs{0});
    Instruction* const n = c->AddConstant(Literal::Full(Word(), 2));
    c->set_root(c->Add(Opcode::kCompare, Shape(DType::kPred), {i, n},
                       CompareAttrs{ComparisonDirection::kLt, ComparisonType::kDefault}));
    return c;
  };
  const Region body = [=](Module& module) {
    Computation* const c = module.AddComputation("body");
    Instruction* const p = c->AddParameter(0, state);
    Instruction* const i = c->Add(Opcode::kGetTupleElement, Word(), {p}, TupleIndexAttrs{0});
    Instruction* const one = c->AddConstant(Literal::Full(Word(), 1));
    Instruction* const next = c->Add(Opcode::kAdd, Word(), {i, one});
    Instruction* const y = c->Add(Opcode::kGetTupleElement, x, {p}, TupleIndexAttrs{1});
    const bool adds = Accepts(Opcode::kAdd, x.dtype());
    c->set_root(c->Add(Opcode::kTuple, state, {next, adds ? c->Add(Opcode::kAdd, x, {y, y}) : y}));
    return c;
  };
  out.push_back({opcode, {{state}}, NoAttrs{}, {condition, body}});
}

void Conditionals(Opcode opcode, const Shape& x, Uses& out) {
  const std::vector<Region> branches{Negated(x), Negated(x)};
  for (const std::optional<double> choice : {std::optional<double>(), std::optional<double>(1)}) {
    out.push_back({opcode, {{Shape(DType::kPred), choice}, {x}, {x}}, NoAttrs{}, branches});
    out.push_back({opcode, {{Word(), choice}, {x}, {x}}, NoAttrs{}, branches});
  }
}

void Calls(Opcode opcode, const Shape& x, Uses& out) {
  out.push_back({opcode, {{x}}, NoAttrs{}, {Negated(x)}});
}

// Running sums along each dimension: (element, carry) -> (sum, sum).
void Scans(Opcode opcode, const Shape& x, Uses& out) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    Dims slice;
    for (int64_t k = 0; k < x.rank(); ++k) {
      if (k != d) slice.push_back(x.dim(k));
    }
    const Shape carry(x.dtype(), slice);
    const Region body = [=](Module& module) {
      Computation* const c = module.AddComputation("body");
      Instruction *const a = c->AddParameter(0, carry), *const b = c->AddParameter(1, carry);
      Instruction* const sum = c->Add(Opcode::kAdd, carry, {a, b});
      c->set_root(c->Add(Opcode::kTuple, Shape::Tuple({carry, carry}), {sum, sum}));
      return c;
    };
    out.push_back({opcode, {{x}, {carry}}, ScanAttrs{d, 1}, {body}, Shape::Tuple({x, carry})});
  }
}

void RandomBits(Opcode opcode, const Shape& x, Uses& out) {
  for (RngAlgorithm algorithm : {RngAlgorithm::kPhilox, RngAlgorithm::kThreeFry}) {
    const Shape state(DType::kU64, {algorithm == RngAlgorithm::kPhilox ? 3 : 2});
    out.push_back(
        {opcode, {{state}}, RngBitGeneratorAttrs{algorithm}, {}, Shape::Tuple({state, x})});
  }
}

void BatchNorms(Opcode opcode, const Shape& x, Uses& out) {
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Shape feature(x.dtype(), {x.dim(d)});
    std::vector<Operand> operands{{x}, {feature}, {feature}};
    // Variances are positive.
    if (opcode == Opcode::kBatchNormInference)
      operands.insert(operands.end(), {{feature}, {feature, 1}});
    if (opcode == Opcode::kBatchNormGrad) operands = {{x}, {feature}, {feature}, {feature, 1}, {x}};
    out.push_back({opcode, operands, BatchNormAttrs{0.001f, d}});
  }
}

// Of one participant.
void Collectives(Opcode opcode, const Shape& x, Uses& out) {
  CollectiveAttrs attrs{.replica_groups = ListedGroups{{{0}}}};
  Use use{opcode, {{x}}, attrs};
  if (opcode == Opcode::kAllReduce || opcode == Opcode::kCollectiveReduce) {
    use.regions = {Fold(Opcode::kAdd, x.dtype())};
  } else if (opcode == Opcode::kCollectivePermute) {
    use.attrs = PermuteAttrs{.source_target_pairs = {{0, 0}}};
    out.push_back(use);
    use.attrs = PermuteAttrs{};
  } else if (opcode != Opcode::kCollectiveBroadcast) {
    if (x.rank() == 0) return;
    attrs.dimensions = {x.rank() - 1};
    use.attrs = attrs;
    if (opcode == Opcode::kReduceScatter) use.regions = {Fold(Opcode::kAdd, x.dtype())};
    use.declared = x;
  }
  out.push_back(use);
}

void NoOperands(Opcode opcode, const Shape& x, Uses& out) {
  if (x.rank() == 0) out.push_back({opcode});
}

struct Family {
  Opcode opcode;
  void (*propose)(Opcode opcode, const Shape& x, Uses& out);
};

constexpr Family kFamilies[] = {
    {Opcode::kBitcastConvert, BitcastConverts},
    {Opcode::kIota, Iotas},
    {Opcode::kBroadcast, Broadcasts},
    {Opcode::kTranspose, Transposes},
    {Opcode::kReverse, OverSomeDims},
    {Opcode::kReshape, Reshapes},
    {Opcode::kConcatenate, Concatenates},
    {Opcode::kSlice, Slices},
    {Opcode::kDynamicSlice, DynamicSlices},
    {Opcode::kDynamicUpdateSlice, DynamicSlices},
    {Opcode::kPad, Pads},
    {Opcode::kGather, Gathers},
    {Opcode::kScatter, Scatters},
    {Opcode::kTuple, Tuples},
    {Opcode::kGetTupleElement, Tuples},
    {Opcode::kOptBarrier, Tuples},
    {Opcode::kAddDependency, Tuples},
    {Opcode::kGetDimensionSize, Sizes},
    {Opcode::kSetDimensionSize, Sizes},
    {Opcode::kDot, Dots},
    {Opcode::kConvolution, Convolutions},
    {Opcode::kRaggedDot, RaggedDots},
    {Opcode::kFft, Ffts},
    {Opcode::kCholesky, Factorizations},
    {Opcode::kTriangularSolve, Factorizations},
    {Opcode::kReduce, Reduces},
    {Opcode::kReduceWindow, ReduceWindows},
    {Opcode::kSelectAndScatter, SelectAndScatters},
    {Opcode::kMap, Maps},
    {Opcode::kSort, Sorts},
    {Opcode::kTopk, TopKs},
    {Opcode::kWhile, Whiles},
    {Opcode::kConditional, Conditionals},
    {Opcode::kCall, Calls},
    {Opcode::kScan, Scans},
    {Opcode::kRngBitGenerator, RandomBits},
    {Opcode::kBatchNormTraining, BatchNorms},
    {Opcode::kBatchNormInference, BatchNorms},
    {Opcode::kBatchNormGrad, BatchNorms},
    {Opcode::kAllReduce, Collectives},
    {Opcode::kAllGather, Collectives},
    {Opcode::kAllToAll, Collectives},
    {Opcode::kCollectivePermute, Collectives},
    {Opcode::kCollectiveBroadcast, Collectives},
    {Opcode::kReduceScatter, Collectives},
    {Opcode::kCollectiveReduce, Collectives},
    {Opcode::kReplicaId, NoOperands},
    {Opcode::kPartitionId, NoOperands},
};

// Puts uses into a computation. Uses share parameters, so that there are few.
class Writer {
 public:
  explicit Writer(Module* module) : module_(module), entry_(module->AddComputation("main")) {
    module->set_entry(entry_);
  }
  Computation* entry() { return entry_; }

  // What shape inference says of it.
  absl::StatusOr<Shape> ShapeOf(const Use& use) {
    std::vector<const Shape*> shapes;
    for (const Operand& operand : use.operands) shapes.push_back(&operand.shape);
    regions_.clear();
    for (const Region& region : use.regions) regions_.push_back(region(*module_));
    return InferShape(use.opcode, shapes, use.attrs, regions_,
                      use.declared ? &*use.declared : nullptr);
  }

  // Null if shape inference refuses it.
  Instruction* Write(const Use& use) {
    const auto shape = ShapeOf(use);
    if (!shape.ok()) return nullptr;
    std::vector<Instruction*> operands;
    std::map<std::string, int> seen;
    for (const Operand& operand : use.operands) operands.push_back(Value(operand, seen));
    return entry_->Add(use.opcode, *shape, operands, use.attrs, regions_);
  }

 private:
  Instruction* Value(const Operand& operand, std::map<std::string, int>& seen) {
    if (operand.shape.IsToken()) return entry_->Add(Opcode::kAfterAll, operand.shape, {});
    if (operand.constant)
      return entry_->AddConstant(Literal::Full(operand.shape, *operand.constant));
    const std::string name = operand.shape.ToString();
    Instruction*& parameter = parameters_[{name, seen[name]++}];
    if (parameter == nullptr)
      parameter =
          entry_->AddParameter(static_cast<int64_t>(entry_->parameters().size()), operand.shape);
    return parameter;
  }

  Module* module_;
  Computation* entry_;
  std::vector<Computation*> regions_;  // of the last use
  std::map<std::pair<std::string, int>, Instruction*> parameters_;
};

}  // namespace

bool IsLeftOut(Opcode opcode) {
  switch (opcode) {
    case Opcode::kParameter:  // operands of the others
    case Opcode::kConstant:
    case Opcode::kAfterAll:
    case Opcode::kBitcast:  // written by compilers
    case Opcode::kFusion:
    case Opcode::kDynamicReshape:  // of sizes that are known when it runs
    case Opcode::kScaledDot:       // of types of its own
    case Opcode::kRng:             // of other values in each run
    case Opcode::kRngGetAndUpdateState:
    case Opcode::kCustomCall:
    case Opcode::kDomain:
    case Opcode::kRaggedAllToAll:
      return true;
    default:
      // Halves of asynchronous operations, and transfers.
      return opcode >= Opcode::kAllReduceStart && opcode <= Opcode::kRecvDone &&
             opcode != Opcode::kReplicaId && opcode != Opcode::kPartitionId;
  }
}

std::vector<DegenerateUse> ProposedUses(Opcode opcode, const Shape& x) {
  Uses proposed;
  const auto family = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const Family& f) { return f.opcode == opcode; });
  if (family != std::end(kFamilies)) {
    family->propose(opcode, x, proposed);
  } else if (Traits(opcode).elementwise) {
    Elementwise(opcode, x, proposed);
  }
  return proposed;
}

absl::Status WhyRefused(const DegenerateUse& use) {
  Module scratch("scratch");
  return Writer(&scratch).ShapeOf(use).status();
}

std::vector<DegenerateUse> DegenerateUses(Opcode opcode, DType dtype) {
  Uses accepted;
  Module scratch("scratch");
  Writer writer(&scratch);
  for (const Dims& dims : AllDims()) {
    for (Use& use : ProposedUses(opcode, Shape(dtype, dims))) {
      if (writer.Write(use) != nullptr) accepted.push_back(std::move(use));
    }
  }
  return accepted;
}

std::unique_ptr<Module> ModuleOf(absl::Span<const DegenerateUse> uses,
                                 std::vector<std::string>* lines) {
  auto module = std::make_unique<Module>("degenerate");
  Writer writer(module.get());
  std::vector<Instruction*> values;
  std::vector<Shape> shapes;
  for (const Use& use : uses) {
    values.push_back(writer.Write(use));
    shapes.push_back(values.back()->shape());
    if (lines != nullptr) lines->push_back(values.back()->ToString());
  }
  Computation* const entry = writer.entry();
  entry->set_root(values.size() == 1 ? values[0]
                                     : entry->Add(Opcode::kTuple, Shape::Tuple(shapes), values));
  return module;
}

}  // namespace lazuli
