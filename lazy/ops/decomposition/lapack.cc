#include "lazy/ops/decomposition/lapack.h"

#include <algorithm>
#include <limits>

#include "ir/support/wrong_type.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

char LetterOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 's';
    case DType::kF64:
      return 'd';
    case DType::kC64:
      return 'c';
    default:
      return 'z';
  }
}

// Columns first, then rows, then the batch from its last dim on.
Shape ColumnByColumn(const Shape& shape, bool matrices) {
  if (!matrices) return shape;
  Dims order{shape.rank() - 2, shape.rank() - 1};
  for (int64_t d = shape.rank() - 3; d >= 0; --d) order.push_back(d);
  return shape.WithLayout(order);
}

lowering::Op Triangle(lowering::Op x, ComparisonDirection kept) {
  lowering::Builder& b = *x.builder();
  const Shape places(DType::kS32, x.shape().dims());
  const lowering::Op row = b.Iota(places, x.rank() - 2), column = b.Iota(places, x.rank() - 1);
  return b.Select(b.Compare(kept, row, column), x, b.ZerosLike(x));
}

}  // namespace

std::vector<lowering::Op> LapackCall(const LapackRoutine& routine,
                                     absl::Span<const LapackOperand> operands,
                                     absl::Span<const LapackArray> results, std::string_view config,
                                     int aliased) {
  lowering::Builder& b = *operands[0].value.builder();
  if (!b.status().ok()) return std::vector(results.size(), b.Error(b.status()));
  const DType dtype = operands[0].value.dtype();
  hlo::CustomCallAttrs attrs;
  attrs.custom_call_target = Str("lapack_", std::string(1, LetterOf(dtype)),
                                 ir::IsComplex(dtype) ? routine.complex : routine.real, "_ffi");
  attrs.api_version = "API_VERSION_TYPED_FFI";
  lowering::Ops values;
  std::vector<std::string> layouts;
  for (const LapackOperand& operand : operands) {
    values.push_back(operand.value);
    layouts.push_back(
        ColumnByColumn(operand.value.shape(), operand.matrices).ToString(/*with_layout=*/true));
  }
  attrs.operand_layout_constraints = Join(layouts, ", ");
  const bool single = results.size() == 1;
  if (aliased >= 0)
    attrs.output_to_operand_aliasing = Str("{", single ? "" : "0", "}: (", aliased, ", {})");
  std::vector<Shape> shapes;
  for (const LapackArray& result : results)
    shapes.push_back(ColumnByColumn(result.shape, result.matrices));
  const Shape shape = single ? shapes[0] : Shape::Tuple(shapes);
  const lowering::Op call = b.Add(Opcode::kCustomCall, values, std::move(attrs), {}, &shape);
  if (hlo::Instruction* const instruction = call.instruction())
    instruction->mutable_extra_attrs().emplace_back("backend_config", config);
  std::vector<lowering::Op> made;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const lowering::Op one = single ? call : b.GetTupleElement(call, static_cast<int64_t>(i));
    made.push_back(results[i].matrices ? b.Unary(Opcode::kCopy, one) : one);
  }
  return made;
}

bool IsOfLapack(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kC64 ||
         dtype == DType::kC128;
}

double EpsilonOf(DType dtype) {
  return hlo::PartType(dtype) == DType::kF32 ? std::numeric_limits<float>::epsilon()
                                             : std::numeric_limits<double>::epsilon();
}

absl::Status CheckMatrices(const Shape& x, bool square) {
  if (!IsOfLapack(x.dtype()))
    return WrongType("takes floats or complex numbers of 32 bits or more, not ", x);
  if (x.rank() < 2) return InvalidArgument("takes matrices, not ", x);
  if (square && RowsOf(x) != ColumnsOf(x)) return InvalidArgument("takes square matrices, not ", x);
  return absl::OkStatus();
}

Dims BatchOf(const Shape& x) { return Dims(x.dims().begin(), x.dims().end() - 2); }

Shape MatrixShape(const Shape& x, int64_t rows, int64_t columns) {
  Shape shape = x.WithDefaultLayout();
  shape.set_dim(x.rank() - 2, rows);
  shape.set_dim(x.rank() - 1, columns);
  return shape;
}

Shape VectorShape(DType dtype, const Shape& x, int64_t size) {
  Dims dims = BatchOf(x);
  dims.push_back(size);
  return Shape(dtype, dims);
}

Shape InfoShape(const Shape& x) { return Shape(DType::kS32, BatchOf(x)); }

lowering::Op Identity(lowering::Builder& b, const Shape& matrices) {
  const Shape places(DType::kS32, matrices.dims());
  const lowering::Op row = b.Iota(places, matrices.rank() - 2),
                     column = b.Iota(places, matrices.rank() - 1);
  return b.Convert(b.Compare(ComparisonDirection::kEq, row, column), matrices.dtype());
}

lowering::Op LowerTriangle(lowering::Op x) { return Triangle(x, ComparisonDirection::kGe); }
lowering::Op UpperTriangle(lowering::Op x) { return Triangle(x, ComparisonDirection::kLe); }

lowering::Op WithSize(lowering::Op x, int64_t rows, int64_t columns) {
  lowering::Builder& b = *x.builder();
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  const std::size_t row = static_cast<std::size_t>(shape.rank()) - 2, column = row + 1;
  Dims low(static_cast<std::size_t>(shape.rank()), 0),
      limits = Dims(shape.dims().begin(), shape.dims().end());
  const Dims steps(low.size(), 1), none = low;
  limits[row] = std::min(limits[row], rows);
  limits[column] = std::min(limits[column], columns);
  Dims high = low;
  high[row] = rows - limits[row];
  high[column] = columns - limits[column];
  if (limits[row] != RowsOf(shape) || limits[column] != ColumnsOf(shape))
    x = b.Slice(x, low, limits, steps);
  if (high == none) return x;
  return b.Pad(x, b.Scalar(shape.dtype(), 0), low, high, none);
}

}  // namespace lazuli::lazy
