// What devices and the host exchange: collectives, their asynchronous halves, transfers. How many
// devices take part is not known here, so a gathered dimension is any multiple of the operand's.

#include <algorithm>

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {
namespace {

// The operand, or the tuple of several.
Shape OperandsAsOne(const Inference& in) {
  if (in.operand_count() == 1) return WithoutLayout(in.operand(0));
  std::vector<Shape> shapes;
  for (const Shape* shape : in.operands) shapes.push_back(WithoutLayout(*shape));
  return Shape::Tuple(std::move(shapes));
}

absl::Status CheckToken(const Inference& in, std::size_t operand) {
  if (in.operand(operand).IsToken()) return absl::OkStatus();
  return in.Error("operand ", operand, " must be token[], not ", in.operand(operand));
}

// `whole` has the dimensions of `part`, of which one is a multiple: at least the part once.
bool IsMultiple(const Shape& whole, const Shape& part, int64_t dimension) {
  if (!whole.IsArray() || whole.dtype() != part.dtype() || whole.rank() != part.rank())
    return false;
  for (int64_t d = 0; d < part.rank(); ++d) {
    const int64_t big = whole.dim(d), small = part.dim(d);
    const bool fits = d != dimension ? big == small
                      : small == 0   ? big == 0
                                     : big > 0 && big % small == 0;
    if (!fits) return false;
  }
  return true;
}

// Whether `results` are the operands gathered (or, the other way round, scattered) along the
// dimension.
absl::Status CheckGathered(const Inference& in, const Shape& results, bool scattered) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Dims& dimensions = in.attrs_as<CollectiveAttrs>().dimensions;
  if (dimensions.size() != 1)
    return in.Error("needs one dimension, got {", Join(dimensions, ","), "}");
  const std::size_t count = results.IsTuple() ? results.tuple().size() : 1;
  if (count != in.operand_count())
    return in.Error(in.operand_count(), " operands for the result ", results);
  for (std::size_t i = 0; i < count; ++i) {
    const Shape& x = in.operand(i);
    const Shape& result = results.IsTuple() ? results.tuple()[i] : results;
    LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dimensions, x.rank()));
    const bool fits =
        scattered ? IsMultiple(x, result, dimensions[0]) : IsMultiple(result, x, dimensions[0]);
    if (!fits) {
      return in.Error("the result ", result, " is not a ", scattered ? "part" : "multiple", " of ",
                      x, " in dimension ", dimensions[0]);
    }
  }
  return absl::OkStatus();
}

// Of what exchanges whole arrays.
absl::Status CheckNoDimensions(const Inference& in) {
  const Dims& dimensions = in.attrs_as<CollectiveAttrs>().dimensions;
  if (dimensions.empty()) return absl::OkStatus();
  return in.Error("takes no dimensions, got {", Join(dimensions, ","), "}");
}

// A declared tuple of at least these elements; a null one may be anything.
absl::Status CheckDeclaredTuple(const Inference& in, std::initializer_list<const Shape*> elements) {
  if (in.declared == nullptr) return in.Error("the result's shape must be declared");
  const std::vector<Shape>& declared = in.declared->tuple();
  bool fits = in.declared->IsTuple() && declared.size() >= elements.size();
  std::string wanted;
  std::size_t i = 0;
  for (const Shape* element : elements) {
    fits = fits && (element == nullptr || Compatible(declared[i], *element));
    wanted += Str(i++ > 0 ? ", " : "", element == nullptr ? "..." : element->ToString());
  }
  if (fits) return absl::OkStatus();
  return in.Error("the result begins (", wanted, "), not the declared ", *in.declared);
}

}  // namespace

absl::StatusOr<Shape> InferAllReduce(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(CheckNoDimensions(in));
  return OperandsAsOne(in);
}

absl::StatusOr<Shape> InferAllGather(const Inference& in) {
  LAZULI_ASSIGN_OR_RETURN(Shape result, InferDeclared(in));
  LAZULI_RETURN_IF_ERROR(CheckGathered(in, result, in.opcode == Opcode::kReduceScatter));
  return result;
}

// Each device's parts: one array, cut along the dimension, or one operand for each device.
absl::StatusOr<Shape> InferAllToAll(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Dims& dimensions = in.attrs_as<CollectiveAttrs>().dimensions;
  LAZULI_RETURN_IF_ERROR(in.CheckDims("dimensions", dimensions, in.operand(0).rank()));
  const bool as_tuple = in.declared != nullptr && in.declared->IsTuple();
  if (as_tuple && in.operand_count() == 1) return Shape::Tuple({WithoutLayout(in.operand(0))});
  return OperandsAsOne(in);
}

// input, output, and of each device's slice of rows: start and size in the input, target in the
// receiver's output and size there.
absl::StatusOr<Shape> InferRaggedAllToAll(const Inference& in) {
  if (in.operand_count() != 6) return in.Error("takes 6 operands, not ", in.operand_count());
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape &input = in.operand(0), &output = in.operand(1);
  const bool rows_agree = input.rank() >= 1 && output.rank() == input.rank() &&
                          output.dtype() == input.dtype() &&
                          output.dims().subspan(1) == input.dims().subspan(1);
  if (!rows_agree) return in.Error("rows of ", input, " and ", output, " differ");
  for (std::size_t i = 2; i < 6; ++i) {
    const Shape& index = in.operand(i);
    if (!IsIntegral(index.dtype()) || index.rank() != 1 || !SameDims(index, in.operand(2)))
      return in.Error("operand ", i, " must hold an integer for each slice, as ", in.operand(2),
                      " does, not ", index);
  }
  return WithoutLayout(output);
}

absl::StatusOr<Shape> InferCollectivePermute(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  // input, output, and where slices of them begin: into the output.
  const bool in_place = in.operand_count() == 4;
  return in_place ? WithoutLayout(in.operand(1)) : OperandsAsOne(in);
}

absl::StatusOr<Shape> InferStart(const Inference& in) {
  if (in.operands.empty()) return in.Error("has no operand");
  const Shape given = OperandsAsOne(in);
  if (in.opcode == Opcode::kCopyStart) {
    LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {&given, &given, nullptr}));
  } else if (in.opcode == Opcode::kAllGatherStart) {
    LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {&given, nullptr}));
    LAZULI_RETURN_IF_ERROR(CheckGathered(in, in.declared->tuple()[1], /*scattered=*/false));
  } else {
    const Shape result = in.operand_count() == 4 ? WithoutLayout(in.operand(1)) : given;
    const Shape& first = in.operand_count() == 4 ? in.operand(0) : given;
    LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {&first, &result}));
  }
  return InferDeclared(in);
}

// ((operands), what the callee returns, context).
absl::StatusOr<Shape> InferAsyncStart(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.CheckCallee(0, "callee", in.operands, nullptr));
  std::vector<Shape> operands;
  for (const Shape* shape : in.operands) operands.push_back(WithoutLayout(*shape));
  const Shape given = Shape::Tuple(std::move(operands));
  const Computation* callee = in.callee(0);
  const Shape* result =
      callee != nullptr && callee->root() != nullptr ? &callee->root()->shape() : nullptr;
  LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {&given, result}));
  return InferDeclared(in);
}

// The done half of an asynchronous pair: what it returns is a part of its operand, a tuple.
absl::StatusOr<Shape> InferAsyncDone(const Inference& in) {
  const Shape& state = in.operand(0);
  if (!state.IsTuple() || state.tuple().size() < 2)
    return in.Error("operand ", state, " is not what a start returns");
  if (in.opcode == Opcode::kCopyDone) return state.tuple()[0];
  return state.tuple()[1];
}

// Between the program and its host or another device, in the order of tokens.
absl::StatusOr<Shape> InferTransfer(const Inference& in) {
  const Shape token = Shape::Token(), word(DType::kU32);
  switch (in.opcode) {
    case Opcode::kInfeed:
      LAZULI_RETURN_IF_ERROR(CheckToken(in, 0));
      LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {nullptr, &token}));
      return InferDeclared(in);
    case Opcode::kOutfeed:
      LAZULI_RETURN_IF_ERROR(CheckToken(in, 1));
      return Shape::Token();
    case Opcode::kSend:
      LAZULI_RETURN_IF_ERROR(CheckToken(in, 1));
      return Shape::Tuple({WithoutLayout(in.operand(0)), word, token});
    case Opcode::kRecv:
      LAZULI_RETURN_IF_ERROR(CheckToken(in, 0));
      LAZULI_RETURN_IF_ERROR(CheckDeclaredTuple(in, {nullptr, &word, &token}));
      return InferDeclared(in);
    default:
      break;
  }
  const Shape& state = in.operand(0);  // of send-done and recv-done
  if (!state.IsTuple() || state.tuple().size() != 3)
    return in.Error("operand ", state, " is not what a start returns");
  return in.opcode == Opcode::kSendDone ? token : Shape::Tuple({state.tuple()[0], token});
}

}  // namespace lazuli::hlo::internal
