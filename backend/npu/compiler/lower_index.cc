// Gather and scatter: windows at places that data says, as rows of dma.gat and dma.sct.
//
// The starts of a window become one number, the distance of its first element from the array's; the
// window is a row of the copy, whose dims are the descriptor's other levels.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "backend/npu/compiler/index_form.h"
#include "backend/npu/compiler/lowering.h"
#include "ir/hlo/monoid.h"

namespace lazuli::npu {
namespace {

bool Has(const Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

// Strides of the dims of an array that run over windows, and of those inside of them.
struct Split {
  Dims outer_dims, outer_strides, inner_dims, inner_strides;
};
Split SplitOf(const View& array, const Dims& window_dims) {
  Split split;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    const bool inner = Has(window_dims, static_cast<int64_t>(d));
    (inner ? split.inner_dims : split.outer_dims).push_back(array.dims[d]);
    (inner ? split.inner_strides : split.outer_strides).push_back(array.strides[d]);
  }
  return split;
}

}  // namespace

IndexForm FormOf(const hlo::GatherAttrs& a) {
  return {a.start_index_map,       a.collapsed_slice_dims,
          a.operand_batching_dims, a.start_indices_batching_dims,
          a.offset_dims,           a.index_vector_dim};
}
IndexForm FormOf(const hlo::ScatterAttrs& a) {
  return {a.scatter_dims_to_operand_dims,  a.inserted_window_dims, a.input_batching_dims,
          a.scatter_indices_batching_dims, a.update_window_dims,   a.index_vector_dim};
}

Dims WindowOf(const IndexForm& form, const Shape& operand, const Shape& windows) {
  Dims sizes(static_cast<std::size_t>(operand.rank()), 1);
  std::size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (Has(form.absent_dims, d) || Has(form.batching_dims, d)) continue;
    sizes[static_cast<std::size_t>(d)] = windows.dim(form.window_dims[next++]);
  }
  return sizes;
}

// A row for each window: s32 distances in elements. Windows that do not fit: moved, or at `outside`.
View Lowering::Distances(const IndexForm& form, const View& indices, DType dtype,
                         const View& operand, const Dims& window, int64_t outside) {
  Dims batch, batch_strides;
  const auto vector = static_cast<std::size_t>(form.vector_dim);
  const int64_t step = vector < indices.dims.size() ? indices.strides[vector] : 0;
  std::vector<std::size_t> place(indices.dims.size() + 1,
                                 0);  // of the dims of indices among those of the batch
  for (std::size_t d = 0; d < indices.dims.size(); ++d) {
    if (d == vector) continue;
    place[d] = batch.size();
    batch.push_back(indices.dims[d]);
    batch_strides.push_back(indices.strides[d]);
  }
  KernelMaker maker(b_.program(), batch);
  Expression& e = maker.kernel.expression;
  auto number = [&e](int64_t value) { return e.Literal(static_cast<uint32_t>(value), kSigned); };
  int distance = number(0), inside = number(1);
  for (std::size_t k = 0; k < form.index_map.size(); ++k) {
    const auto d = static_cast<std::size_t>(form.index_map[k]);
    View part{indices.array, indices.type, indices.offset + static_cast<int64_t>(k) * step, batch,
              batch_strides};
    const ValueNodes start = maker.Stream(part);
    const int64_t last = operand.dims[d] - window[d];
    const ValueNodes bounded = ClampIndex(dtype, start, last, e);
    inside = e.Op(Micro::kAnd, kSigned, inside, EqualIndex(dtype, start, bounded, e));
    distance = e.Op(Micro::kAdd, kSigned, distance,
                    e.Op(Micro::kMul, kSigned, bounded.low, number(operand.strides[d])));
  }
  for (std::size_t k = 0; k < form.batching_dims.size(); ++k) {
    const auto at = place[static_cast<std::size_t>(form.index_batching_dims[k])];
    const ValueNodes line = maker.Stream(CountingView(batch[at], batch, static_cast<int64_t>(at)));
    const int64_t stride = operand.strides[static_cast<std::size_t>(form.batching_dims[k])];
    distance =
        e.Op(Micro::kAdd, kSigned, distance, e.Op(Micro::kMul, kSigned, line.low, number(stride)));
  }
  if (outside >= 0) distance = e.Op(Micro::kSel, kSigned, inside, distance, number(outside));
  maker.kernel.root = {distance};
  maker.kernel.result = Temporary(Type::kS32, batch);
  const View result = maker.kernel.result;
  EmitVectorKernel(std::move(maker.kernel), b_);
  return result;
}

View Lowering::CountingView(int64_t count, const Dims& dims, int64_t dimension) {
  std::vector<int32_t> numbers(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = static_cast<int32_t>(n);
  const int array = b_.AddConstant(Type::kS32, {count}, std::as_bytes(std::span(numbers)));
  return BroadcastView(DenseView(array, Type::kS32, {count}), dims, {dimension});
}

// Rows between an array, at these distances, and another one's windows.
void Lowering::MoveRows(bool gather, const View& array, const Dims& window, const View& distances,
                        const View& windows, const Dims& window_dims, uint32_t joining, Type type) {
  const Split split = SplitOf(windows, window_dims);
  Dims near_dims, far_strides;
  for (std::size_t d = 0; d < window.size(); ++d) {
    if (window[d] == 1) continue;
    near_dims.push_back(window[d]);
    far_strides.push_back(array.strides[d]);
  }
  Dims row_dims = near_dims, rows_near = DenseView(0, array.type, near_dims).strides;
  Dims* const both[] = {&far_strides, &rows_near};
  CollapseLevels(row_dims, both);
  int64_t row = 1;
  for (int64_t d : near_dims) row *= d;
  const int elem = TypeBytes(array.type);
  const int64_t count = distances.elements();
  const int64_t most =
      std::max<int64_t>(1, std::min<int64_t>(4096, b_.config().spm_bytes() / 4 / (row * elem + 4)));
  // The windows as rows one behind the other.
  View dense = gather ? Temporary(array.type, {count, row}) : View{};
  View ordered{windows.array, windows.type, windows.offset, split.outer_dims, split.outer_strides};
  ordered.dims.insert(ordered.dims.end(), split.inner_dims.begin(), split.inner_dims.end());
  ordered.strides.insert(ordered.strides.end(), split.inner_strides.begin(),
                         split.inner_strides.end());
  if (!gather) dense = *ReshapeView(Dense(ordered), {count, row});
  for (int64_t first = 0; first < count; first += most) {
    const int64_t rows = std::min(most, count - first);
    b_.NextStage();
    const int table = b_.AddBuffer("rows", 4 * rows),
              buffer = b_.AddBuffer("windows", rows * row * elem);
    b_.Load(TileBuilder::Spm(table), {1}, TileBuilder::Dram(distances, first), {1}, {rows}, 4, 0);
    if (!gather)
      b_.Load(TileBuilder::Spm(buffer), {1}, TileBuilder::Dram(dense, first * row), {1},
              {rows * row}, elem, 0);
    b_.Indexed(gather, TileBuilder::Spm(buffer), TileBuilder::Dram(array, 0),
               TileBuilder::Spm(table), rows, row, row_dims, rows_near, far_strides, elem, joining,
               type);
    if (gather)
      b_.Store(TileBuilder::Dram(dense, first * row), {1}, TileBuilder::Spm(buffer), {1},
               {rows * row}, elem);
  }
  if (gather) EmitMove(*ReshapeView(dense, ordered.dims), ordered, b_);
}

void Lowering::LowerGather(const hlo::Instruction& i) {
  const IndexForm form = FormOf(i.attrs_as<hlo::GatherAttrs>());
  const View array = Dense(ValueOf(*i.operand(0))), result = NewArray(i);
  Set(i, result);
  const Dims window = WindowOf(form, i.operand(0)->shape(), i.shape());
  const View distances =
      Distances(form, ValueOf(*i.operand(1)), i.operand(1)->shape().dtype(), array, window, -1);
  MoveRows(true, array, window, distances, result, form.window_dims, 0, Type::kNone);
}

void Lowering::LowerScatter(const hlo::Instruction& i) {
  const IndexForm form = FormOf(i.attrs_as<hlo::ScatterAttrs>());
  const hlo::Instruction& updates = *i.operand(2);
  const View operand = ValueOf(*i.operand(0)), result = NewArray(i);
  Set(i, result);
  if (updates.shape().num_elements() == 0) return EmitMove(operand, result, b_);
  const Dims window = WindowOf(form, i.operand(0)->shape(), updates.shape());
  // Windows that do not fit go behind the array, where nobody looks.
  int64_t reach = 1, elements = operand.elements();
  View array = DenseView(0, operand.type, operand.dims);
  for (std::size_t d = 0; d < window.size(); ++d) reach += (window[d] - 1) * array.strides[d];
  array.array = Temporary(operand.type, {elements + reach}).array;
  EmitMove(operand, array, b_);
  View rest{array.array, array.type, elements, {reach}, {1}};
  FillWithZero(rest, i.shape().dtype());
  const View distances = Distances(form, ValueOf(*i.operand(1)), i.operand(1)->shape().dtype(),
                                   array, window, elements);
  const ScatterJoin join = *JoinOf(i);
  MoveRows(false, array, window, distances, ValueOf(updates), form.window_dims, join.joining,
           join.type);
  EmitMove(array, result, b_);
}

std::optional<ScatterJoin> JoinOf(const hlo::Instruction& scatter) {
  const hlo::Instruction& root = *scatter.to_apply()->root();
  if (root.opcode() == hlo::Opcode::kParameter && root.parameter_number() == 1)
    return ScatterJoin{0, Type::kNone};
  const DType dtype = scatter.shape().IsArray() ? scatter.shape().dtype() : DType::kTuple;
  const std::optional<hlo::Opcode> monoid = hlo::MonoidOf(*scatter.to_apply());
  if (!monoid || (dtype != DType::kF32 && dtype != DType::kS32)) return std::nullopt;
  const Type type = *TypeOf(dtype);
  if (*monoid == hlo::Opcode::kAdd) return ScatterJoin{1, type};
  if (*monoid == hlo::Opcode::kMaximum) return ScatterJoin{2, type};
  return std::nullopt;
}

}  // namespace lazuli::npu
