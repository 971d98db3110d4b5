#include "backend/npu/compiler/product.h"

#include <algorithm>

#include "backend/npu/compiler/expression.h"
#include "backend/npu/sim/cost.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

bool IsByte(DType dtype) { return dtype == DType::kS8 || dtype == DType::kU8; }
bool IsMultiplied(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF32; }

// HLO's precision of a product of f32: the configuration's, or more.
F32Mode ModeOf(std::string_view precision, const Config& config) {
  if (precision.find("highest") != std::string_view::npos) return F32Mode::kNative;
  if (precision.find("high") != std::string_view::npos)
    return config.mxu.f32 == F32Mode::kX1 ? F32Mode::kX3 : config.mxu.f32;
  return config.mxu.f32;
}

std::string_view PrecisionOf(const hlo::Instruction& product) {
  return product.opcode() == hlo::Opcode::kDot
             ? product.attrs_as<hlo::DotAttrs>().operand_precision
             : product.attrs_as<hlo::ConvolutionAttrs>().operand_precision;
}

}  // namespace

std::optional<ProductTypes> TypesOf(const hlo::Instruction& product, const Config& config,
                                    std::string* why_not) {
  const DType a = product.operand(0)->shape().dtype(), w = product.operand(1)->shape().dtype(),
              out = product.shape().dtype();
  ProductTypes types{};
  if (IsByte(a) && IsByte(w) && IsIntegral(out) && Computes(out)) {
    types = {a, w, out == DType::kU32 ? out : DType::kS32, {}, {}, Type::kS32};
  } else if (IsMultiplied(a) && IsMultiplied(w) && IsMultiplied(out)) {
    const DType both = a == w ? a : DType::kF32;
    types = {both, both, out, {}, {}, *TypeOf(out)};
    if (both == DType::kF32) {
      const F32Mode mode = ModeOf(PrecisionOf(product), config);
      types.mode = static_cast<uint32_t>(mode);
      types.clocks_per_row = ClocksPerRow(config, true, mode);
    }
  } else {
    if (why_not != nullptr)
      *why_not = Str("the matrix unit does not multiply ", DTypeText(a), " by ", DTypeText(w),
                     " to ", DTypeText(out));
    return std::nullopt;
  }
  types.a_type = *TypeOf(types.a);
  types.w_type = *TypeOf(types.w);
  return types;
}

void ProductEmitter::Weights(Place weights, int64_t k, int64_t n, int64_t pitch) {
  TileOp load{Op::kMxLdw, Queue::kMx, t_.w_type};
  load.from[0] = b_.Reaching(weights, {k, n}, {pitch, 1}, TypeBytes(t_.w_type));
  load.imm = k | n << 16;
  load.aux = static_cast<uint32_t>(pitch == n ? 0 : pitch << 1);
  b_.Add(load);
  b_.Add(TileOp{Op::kMxSwp, Queue::kMx});
}

void ProductEmitter::Multiply(Place a, absl::Span<const int64_t> dims,
                              absl::Span<const int64_t> strides, int64_t k, int acc,
                              bool accumulate, Place table, Reach offsets, int64_t row) {
  const int elem = TypeBytes(t_.a_type);
  Dims levels(dims.begin(), dims.end()), steps(strides.begin(), strides.end());
  Dims* const both[] = {&steps};
  CollapseLevels(levels, both);
  if (levels.empty()) levels = {1}, steps = {0};
  constexpr std::size_t kLevels = 3;
  if (levels.size() > kLevels) {  // the outermost level, one by one
    int64_t inner = 1;
    for (std::size_t i = 1; i < levels.size(); ++i) inner *= levels[i];
    for (int64_t i = 0; i < levels[0]; ++i) {
      Place part = a;
      part.offset += i * steps[0] * elem;
      Multiply(part, absl::MakeConstSpan(levels).subspan(1), absl::MakeConstSpan(steps).subspan(1),
               k, acc, accumulate, table, offsets, row + i * inner);
    }
    return;
  }
  Descriptor d;
  int64_t rows = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    d.dim[i] = static_cast<uint32_t>(levels[i]);
    d.src[i] = static_cast<int32_t>(steps[i]);
    rows *= levels[i];
  }
  d.flags = static_cast<uint32_t>(elem) | static_cast<uint32_t>(levels.size()) << 4;
  TileOp multiply{Op::kMxMm, Queue::kMx, t_.a_type};
  multiply.from[0] = b_.Reaching(a, levels, steps, elem);
  multiply.from[0].low += offsets.low;
  multiply.from[0].high += offsets.high - elem;
  if (table) {
    multiply.table = table;
    multiply.table.low = table.offset;
    multiply.table.high = table.offset + 4 * k;
  }
  multiply.to = {Space::kAcc, acc, row, row, row + rows};
  multiply.accumulate = accumulate;
  multiply.descriptor = b_.AddDescriptor(d);
  multiply.aux = t_.mode;
  b_.Add(multiply);
}

void ProductEmitter::Out(int acc, int64_t rows, int64_t n, Place to, int64_t pitch) {
  Descriptor d;
  const int elem = TypeBytes(t_.out_type);
  d.dim = {static_cast<uint32_t>(rows), static_cast<uint32_t>(n)};
  d.dst = {static_cast<int32_t>(pitch), 1};
  d.flags = static_cast<uint32_t>(elem) | 2u << 4;
  TileOp out{Op::kMxOut, Queue::kMx, t_.out_type};
  out.to = b_.Reaching(to, {rows, n}, {pitch, 1}, elem);
  out.from[0] = {Space::kAcc, acc, 0, 0, rows};
  out.descriptor = b_.AddDescriptor(d);
  b_.Add(out);
}

std::vector<int> ProductEmitter::AddSums(int64_t rows, int64_t columns) {
  std::vector<int> sums;
  for (int64_t c = 0; c < columns; c += b_.config().mxu.cols)
    sums.push_back(b_.AddRows("sum", rows));
  return sums;
}

void ProductEmitter::Finish(absl::Span<const int> sums, const Dims& starts, const Dims& extents,
                            const View& array, const Epilogue& epilogue) {
  const int elem = TypeBytes(t_.out_type);
  const int64_t columns = extents.back(), width = b_.config().mxu.cols;
  const View near = DenseView(0, t_.out_type, extents);
  const int64_t rows = near.elements() / columns;
  const int out = b_.AddBuffer("out", rows * columns * elem);
  for (std::size_t s = 0; s < sums.size(); ++s) {
    const int64_t at = static_cast<int64_t>(s) * width;
    Out(sums[s], rows, std::min(width, columns - at), TileBuilder::Spm(out, at * elem), columns);
  }
  if (epilogue)
    return epilogue(starts, extents, {{TileBuilder::Spm(out), near.strides}, t_.out_type});
  int64_t to = 0;
  for (std::size_t d = 0; d < starts.size(); ++d) to += starts[d] * array.strides[d];
  b_.Store(TileBuilder::Dram(array, to), array.strides, TileBuilder::Spm(out), near.strides,
           extents, elem);
}

double DramBytesPerCycle(const Config& config) { return config.dram.gbs * 1000 / config.clock_mhz; }

}  // namespace lazuli::npu
