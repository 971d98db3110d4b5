// scan: a computation along one dimension, with values carried from each position to the next.

#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

// The place of one position's slice in a scanned array.
struct SlicePlace {
  Shape slice;
  Dims strides;    // of the slice's dimensions in the array, in bytes
  int64_t offset;  // bytes
};

SlicePlace PlaceOf(const Shape& array, int64_t dimension, int64_t position) {
  Dims dims(array.dims().begin(), array.dims().end()), strides = ByteStrides(array);
  const int64_t offset = position * strides[static_cast<std::size_t>(dimension)];
  dims.erase(dims.begin() + dimension);
  strides.erase(strides.begin() + dimension);
  return {Shape(array.dtype(), dims), std::move(strides), offset};
}

Literal ReadSlice(const Literal& array, int64_t dimension, int64_t position) {
  const SlicePlace place = PlaceOf(array.shape(), dimension, position);
  Literal slice = Literal::Uninitialized(place.slice);
  CopyStrided(ByteWidth(place.slice.dtype()), place.slice.dims(), array.raw() + place.offset,
              place.strides, slice.mutable_raw(), ByteStrides(place.slice));
  return slice;
}

void WriteSlice(const Literal& slice, int64_t dimension, int64_t position, Literal& array) {
  const SlicePlace place = PlaceOf(array.shape(), dimension, position);
  CopyStrided(ByteWidth(place.slice.dtype()), place.slice.dims(), slice.raw(),
              ByteStrides(place.slice), array.mutable_raw() + place.offset, place.strides);
}

}  // namespace

absl::StatusOr<Literal> EvaluateScan(const Instruction& instruction, Operands operands,
                                     Evaluation& evaluation) {
  const auto& attrs = instruction.attrs_as<ScanAttrs>();
  const std::vector<Shape>& shapes = instruction.shape().tuple();
  const auto carries = static_cast<std::size_t>(attrs.num_carries);
  const std::size_t inputs = operands.size() - carries, outputs = shapes.size() - carries;
  std::vector<Literal> results, state;
  for (std::size_t o = 0; o < outputs; ++o) results.emplace_back(shapes[o]);
  for (const Literal* carry : operands.subspan(inputs)) state.push_back(*carry);
  const bool has_length = inputs + outputs > 0;
  const Shape& longest = inputs > 0 ? operands[0]->shape() : shapes[0];
  const int64_t length = has_length ? longest.dim(attrs.dimension) : 0;
  for (int64_t step = 0; step < length; ++step) {
    const int64_t position = attrs.is_reverse ? length - 1 - step : step;
    std::vector<Literal> slices;
    for (const Literal* input : operands.first(inputs))
      slices.push_back(ReadSlice(*input, attrs.dimension, position));
    std::vector<const Literal*> arguments;
    for (const Literal& slice : slices) arguments.push_back(&slice);
    for (const Literal& carry : state) arguments.push_back(&carry);
    LAZULI_ASSIGN_OR_RETURN(Literal values, evaluation.Run(*instruction.to_apply(), arguments));
    for (std::size_t o = 0; o < outputs; ++o)
      WriteSlice(values.tuple()[o], attrs.dimension, position, results[o]);
    for (std::size_t c = 0; c < carries; ++c) state[c] = values.tuple()[outputs + c];
  }
  for (Literal& carry : state) results.push_back(std::move(carry));
  return Literal::Tuple(std::move(results));
}

}  // namespace lazuli::hlo
