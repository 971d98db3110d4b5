// Dots: any dimension numbers become a[b, m, k] and b[b, k, n].

#include <algorithm>
#include <utility>

#include "backend/npu/compiler/dot_kernel.h"
#include "backend/npu/compiler/lowering.h"

namespace lazuli::npu {
namespace {

Dims FreeDimensions(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      free.push_back(d);
  }
  return free;
}

int64_t Product(const Shape& shape, const Dims& dimensions) {
  int64_t n = 1;
  for (int64_t d : dimensions) n *= shape.dim(d);
  return n;
}

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
  KernelMaker maker(b_.program(), view.dims);
  maker.kernel.root = AddConvert(from, to, maker.Stream(view), maker.kernel.expression);
  maker.kernel.result = Temporary(*TypeOf(to), view.dims);
  View result = maker.kernel.result;
  EmitVectorKernel(std::move(maker.kernel), b_);
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

void Lowering::LowerDot(const hlo::Instruction& i, BoxKernel* fused) {
  const auto& attrs = i.attrs_as<hlo::DotAttrs>();
  const Shape &left = i.operand(0)->shape(), &right = i.operand(1)->shape();
  ProductTypes types = *TypesOf(i, b_.config());
  if (fused != nullptr) types.epilogue_bytes = fused->bytes();
  const View result =
      fused != nullptr ? DenseView(-1, types.out_type, i.shape().dims()) : NewArray(i);
  Set(i, result);
  const Dims rows = FreeDimensions(left, attrs.lhs_batch_dims, attrs.lhs_contracting_dims),
             columns = FreeDimensions(right, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  const int64_t batch = Product(left, attrs.lhs_batch_dims), m = Product(left, rows),
                n = Product(right, columns), k = Product(left, attrs.lhs_contracting_dims);
  if (k == 0) return FillWithZero(result, i.shape().dtype());

  auto order = [](const Dims& x, const Dims& y, const Dims& z) {
    Dims all = x;
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), z.begin(), z.end());
    return all;
  };
  const View a =
      AsMatrices(Converted(ValueOf(*i.operand(0)), left.dtype(), types.a),
                 order(attrs.lhs_batch_dims, rows, attrs.lhs_contracting_dims), {batch, m, k});
  const View w =
      AsMatrices(Converted(ValueOf(*i.operand(1)), right.dtype(), types.w),
                 order(attrs.rhs_batch_dims, attrs.rhs_contracting_dims, columns), {batch, k, n});
  const bool converts = types.out != i.shape().dtype();
  const View sums = converts ? Temporary(types.out_type, result.dims) : result;
  const View c = *ReshapeView(sums, {batch, m, n});
  const DotBlocks blocks = SearchDot(b_.config(), types, m, n, k);
  for (int64_t b = 0; b < batch; ++b) {
    Epilogue epilogue;
    if (fused != nullptr)
      epilogue = [&](const Dims& starts, const Dims& extents, const TileBuilder::Stream& block) {
        Dims at(result.dims.size(), 0), counts(result.dims.size(), 1);
        TileBuilder::Stream stream{{block.at.place, Dims(result.dims.size(), 0)}, block.type};
        int64_t rest = b;
        for (std::size_t d = result.dims.size() - 2; d-- > 0;) {
          at[d] = rest % result.dims[d];
          rest /= result.dims[d];
        }
        for (std::size_t d = 0; d < 2; ++d) {
          const std::size_t to = result.dims.size() - 2 + d;
          at[to] = starts[d];
          counts[to] = extents[d];
          stream.at.strides[to] = block.at.strides[d];
        }
        fused->Run(at, counts, stream);
      };
    EmitDot(Matrix(a, b), Matrix(w, b), Matrix(c, b), types, blocks, b_, epilogue);
  }
  if (converts) ConvertInto(sums, types.out, result, i.shape().dtype());
}

}  // namespace lazuli::npu
