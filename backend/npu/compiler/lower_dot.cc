// Dots: any dimension numbers become a[b, m, k] and b[b, k, n].

#include <algorithm>
#include <utility>

#include "backend/npu/compiler/dot_kernel.h"
#include "backend/npu/compiler/lowering.h"
#include "ir/hlo/dot_dims.h"

namespace lazuli::npu {

using hlo::Opcode;

namespace {

View Matrix(const View& view, int64_t batch) {
  View matrix{view.array,
              view.type,
              view.offset + batch * view.strides[0],
              {view.dims[1], view.dims[2]},
              {view.strides[1], view.strides[2]}};
  return matrix;
}

}  // namespace

// The view with dims in this order, joined to three of these sizes.
View Lowering::AsMatrices(const View& view, absl::Span<const int64_t> order,
                          absl::Span<const int64_t> sizes) {
  const View ordered = TransposeView(view, order);
  if (std::optional<View> joined = ReshapeView(ordered, sizes)) return *joined;
  return *ReshapeView(Dense(ordered), sizes);
}

View Lowering::Converted(const View& view, DType from, DType to) {
  if (from == to) return view;
  View result = Temporary(*TypeOf(to), view.dims);
  ConvertInto(view, from, result, to);
  return result;
}

void Lowering::ConvertInto(const View& view, DType from, const View& result, DType to) {
  KernelMaker maker(b_.program(), view.dims);
  maker.kernel.root = AddConvert(from, to, maker.Stream(view), maker.kernel.expression);
  maker.kernel.result = result;
  EmitVectorKernel(std::move(maker.kernel), b_);
}

void Lowering::FillWithZero(const View& target, DType dtype) {
  FillWith(ConstantView(Literal(Shape(dtype, absl::Span<const int64_t>())), b_), target);
}

// In accumulators' terms: the product into an array of what leaves them, converted behind it if the
// result is of another type. What is fused takes the blocks of sums, and there is no such array.
void Lowering::LowerProduct(const hlo::Instruction& i, BoxKernel* fused) {
  ProductTypes types = *TypesOf(i, b_.config());
  if (fused != nullptr) types.epilogue_bytes = fused->bytes();
  const DType dtype = i.shape().dtype();
  const int around = b_.origin();  // of what it is fused into, or of who needs it
  b_.SetOrigin(i);
  const View result =
      fused != nullptr ? DenseView(-1, types.out_type, i.shape().dims()) : NewArray(i);
  Set(i, result);
  if (i.operand(0)->shape().num_elements() == 0 || i.operand(1)->shape().num_elements() == 0) {
    FillWithZero(result, dtype);
  } else {
    const View sums = types.out == dtype ? result : Temporary(types.out_type, result.dims);
    i.opcode() == Opcode::kDot ? LowerDot(i, types, sums, fused)
                               : LowerConvolution(i, types, sums, fused);
    if (types.out != dtype) ConvertInto(sums, types.out, result, dtype);
  }
  b_.SetOrigin(around);
}

void Lowering::LowerDot(const hlo::Instruction& i, const ProductTypes& types, const View& sums,
                        BoxKernel* fused) {
  const auto& attrs = i.attrs_as<hlo::DotAttrs>();
  const Shape &left = i.operand(0)->shape(), &right = i.operand(1)->shape();
  const Dims rows = hlo::FreeDims(left, attrs.lhs_batch_dims, attrs.lhs_contracting_dims),
             columns = hlo::FreeDims(right, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  const int64_t batch = hlo::SizeOf(left, attrs.lhs_batch_dims), m = hlo::SizeOf(left, rows),
                n = hlo::SizeOf(right, columns), k = hlo::SizeOf(left, attrs.lhs_contracting_dims);
  const View a = AsMatrices(
      Converted(ValueOf(*i.operand(0)), left.dtype(), types.a),
      hlo::Concatenated(attrs.lhs_batch_dims, rows, attrs.lhs_contracting_dims), {batch, m, k});
  const View w = AsMatrices(
      Converted(ValueOf(*i.operand(1)), right.dtype(), types.w),
      hlo::Concatenated(attrs.rhs_batch_dims, attrs.rhs_contracting_dims, columns), {batch, k, n});
  const View c = *ReshapeView(sums, {batch, m, n});
  const DotBlocks blocks = SearchDot(b_.config(), types, m, n, k);
  for (int64_t b = 0; b < batch; ++b) {
    Epilogue epilogue;
    if (fused != nullptr)
      epilogue = [&](const Dims& starts, const Dims& extents, const TileBuilder::Stream& block) {
        Dims at(sums.dims.size(), 0), counts(sums.dims.size(), 1);
        TileBuilder::Stream stream{{block.at.place, Dims(sums.dims.size(), 0)}, block.type};
        int64_t rest = b;
        for (std::size_t d = sums.dims.size() - 2; d-- > 0;) {
          at[d] = rest % sums.dims[d];
          rest /= sums.dims[d];
        }
        for (std::size_t d = 0; d < 2; ++d) {
          const std::size_t to = sums.dims.size() - 2 + d;
          at[to] = starts[d];
          counts[to] = extents[d];
          stream.at.strides[to] = block.at.strides[d];
        }
        fused->Run(at, counts, stream);
      };
    EmitDot(Matrix(a, b), Matrix(w, b), Matrix(c, b), types, blocks, b_, epilogue);
  }
}

}  // namespace lazuli::npu
