// rng-bit-generator: the transposer's rng, the same bits as everywhere.

#include <algorithm>

#include "backend/npu/compiler/lowering.h"

namespace lazuli::npu {
namespace {

constexpr int64_t kStateWords = 6;  // key, counter, upper half of the counter: two each

// ThreeFry's two words of a counter are neighbours along one dimension: the first even one, else the
// largest.
struct Pairs {
  int64_t outer = 1, size = 1, inner = 1;
};
Pairs PairsOf(absl::Span<const int64_t> dims) {
  std::size_t split = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] % 2 == 0) {
      split = d;
      break;
    }
    if (dims[d] > dims[split]) split = d;
  }
  Pairs pairs;
  for (std::size_t d = 0; d < dims.size(); ++d)
    (d < split ? pairs.outer : d == split ? pairs.size : pairs.inner) *= dims[d];
  return pairs;
}

}  // namespace

// `count` words to an array, and the state that is left.
void Lowering::EmitRandomWords(const View& state, const View& next, const View& words,
                               int64_t count, bool threefry) {
  const int64_t held = state.dims[0];  // of two or three words of 64 bits
  const int buffer = b_.AddBuffer("state", kStateWords * 4);
  b_.NextStage();
  b_.Load(TileBuilder::Spm(buffer), {1}, TileBuilder::Dram(state, 0), {state.strides[0]}, {held}, 8,
          0);
  // Of two words the key is the upper half of the counter, too.
  if (held == 2)
    b_.Load(TileBuilder::Spm(buffer, 16), {1}, TileBuilder::Dram(state, 0), {1}, {1}, 8, 0);
  const int64_t most = std::max<int64_t>(4, b_.config().spm_bytes() / 128 * 4);  // whole counters
  for (int64_t first = 0; first < count; first += most) {
    const int64_t part = std::min(most, count - first);
    const int out = b_.AddBuffer("bits", part * 4);
    TileOp op{Op::kRng, Queue::kXl};
    op.to = b_.Reaching(TileBuilder::Spm(out), {part}, {1}, 4);
    op.updates = b_.Reaching(TileBuilder::Spm(buffer), {threefry ? 4 : kStateWords}, {1}, 4);
    op.imm = part;
    op.aux = threefry ? 1 : 0;
    b_.Add(op);
    b_.Store(TileBuilder::Dram(words, first), {1}, TileBuilder::Spm(out), {1}, {part}, 4);
  }
  b_.Store(TileBuilder::Dram(next, 0), {1}, TileBuilder::Spm(buffer), {1}, {held}, 8);
}

void Lowering::LowerRandomBits(const hlo::Instruction& i) {
  const Shape& shape = i.shape().tuple()[1];
  const bool threefry =
      i.attrs_as<hlo::RngBitGeneratorAttrs>().algorithm == hlo::RngAlgorithm::kThreeFry;
  const Views results = NewArrays(i.shape());
  values_[&i] = results;
  const View &state = ValueOf(*i.operand(0)), &bits = results[1];
  const int64_t elements = shape.num_elements(), width = ByteWidth(shape.dtype());
  if (elements == 0) return EmitMove(state, results[0], b_);
  const Pairs pairs = PairsOf(shape.dims());
  const bool paired = threefry && width < 8;
  const int64_t halves = (pairs.size + 1) / 2;
  const int64_t count = width == 8 ? 2 * elements
                        : paired   ? pairs.outer * halves * pairs.inner * 2
                                   : elements;
  View words = Temporary(Type::kU32, {count});
  if (width == 8) words = {bits.array, Type::kU32, 0, {count}, {1}};
  EmitRandomWords(state, results[0], words, count, threefry);
  if (width == 8) return;
  const DType narrow = width == 1 ? DType::kU8 : width == 2 ? DType::kS16 : DType::kU32;
  View target{bits.array, *TypeOf(narrow), 0, {elements}, {1}};
  if (!paired) return ConvertInto(words, DType::kU32, target, narrow);
  // The first words of all pairs, then the second ones, of which the last may be left over.
  for (int64_t word = 0; word < 2; ++word) {
    const int64_t count_here = (pairs.size + 1 - word) / 2;
    if (count_here == 0) continue;
    const View from{words.array,
                    Type::kU32,
                    word,
                    {pairs.outer, count_here, pairs.inner},
                    {halves * pairs.inner * 2, pairs.inner * 2, 2}};
    const View to{target.array,
                  target.type,
                  word * pairs.inner,
                  from.dims,
                  {pairs.size * pairs.inner, 2 * pairs.inner, 1}};
    ConvertInto(from, DType::kU32, to, narrow);
  }
}

}  // namespace lazuli::npu
