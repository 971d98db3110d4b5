// Ops that move elements.
#include <cstring>
#include <functional>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/program/barrier.h"
#include "lazy/ops/program/collective.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/ops/shape/strided.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

void AddReshape(Table& table) {
  table.Op<ReshapeOp>()
      .Add({{3, 2}}, {Random(DType::kF64, {2, 3})})
      .Add({{}}, {Random(DType::kF64, {1, 1})})
      .Add({{4, 1, 3}}, {Random(DType::kF32, {2, 6})})
      .AddEdge({{0, 5}}, {Random(DType::kS32, {5, 0})})
      .Reference([](const ReshapeOp& op, const Literals& in) { return in[0].Reshaped(op.dims); })
      .Error("reshape: f32[2,3] has 6 elements, which do not fit dims (4, -1)",
             {Random(DType::kF32, {2, 3})}, [](const Tensors& x) { (void)Reshape(x[0], {4, -1}); })
      .Error("reshape: dims (-1, -1) have more than one unknown", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Reshape(x[0], {-1, -1}); });
}

void AddBroadcastTo(Table& table) {
  table.Op<BroadcastToOp>()
      .Add({{2, 3}}, {Random(DType::kF64, {3})})
      .Add({{2, 3, 2}}, {Random(DType::kF64, {3, 1})})
      .Add({{2, 2}}, {Random(DType::kF64, {})})
      .AddEdge({{4, 33}}, {Random(DType::kS8, {1, 33})})
      .Reference([](const BroadcastToOp& op, const Literals& in) {
        const Shape& x = in[0].shape();
        return Build(Shape(x.dtype(), op.dims), [&](const Index& index) {
          Index from(index.end() - static_cast<std::ptrdiff_t>(x.rank()), index.end());
          for (std::size_t d = 0; d < from.size(); ++d)
            if (x.dims()[d] == 1) from[d] = 0;
          return At(in[0], from);
        });
      })
      .Error("broadcast_to: shape f32[3] does not broadcast to f32[2]", {Random(DType::kF32, {3})},
             [](const Tensors& x) { (void)BroadcastTo(x[0], {2}); });
}

void AddPermute(Table& table) {
  table.Op<PermuteOp>()
      .Add({{1, 0}}, {Random(DType::kF64, {2, 3})})
      .Add({{2, 0, 1}}, {Random(DType::kF64, {2, 3, 2})})
      .AddEdge({{0, 2, 3, 1}}, {Random(DType::kF32, {2, 3, 5, 4})})
      .AddEdge({{1, 0}}, {Random(DType::kF16, {17, 34})})
      .Reference([](const PermuteOp& op, const Literals& in) {
        Dims dims;
        for (int64_t d : op.dims) dims.push_back(in[0].shape().dim(d));
        return Build(Shape(in[0].shape().dtype(), dims), [&](const Index& index) {
          Index from(index.size());
          for (std::size_t d = 0; d < index.size(); ++d)
            from[static_cast<std::size_t>(op.dims[d])] = index[d];
          return At(in[0], from);
        });
      })
      .Error("permute: dims (0, 0) are not a permutation of f32[2,3]",
             {Random(DType::kF32, {2, 3})}, [](const Tensors& x) { (void)Permute(x[0], {0, 0}); });
}

void AddSlice(Table& table) {
  table.Op<SliceOp>()
      .Add({{0, 1}, {2, 3}, {1, 1}}, {Random(DType::kF64, {3, 3})})
      .Add({{1, 0}, {4, 3}, {2, 2}}, {Random(DType::kF64, {4, 3})})
      .AddEdge({{3}, {3}, {1}}, {Random(DType::kS32, {5})})
      .Reference([](const SliceOp& op, const Literals& in) {
        Dims dims;
        for (std::size_t d = 0; d < op.starts.size(); ++d)
          dims.push_back((op.limits[d] - op.starts[d] + op.strides[d] - 1) / op.strides[d]);
        return Build(Shape(in[0].shape().dtype(), dims), [&](Index index) {
          for (std::size_t d = 0; d < index.size(); ++d)
            index[d] = op.starts[d] + index[d] * op.strides[d];
          return At(in[0], index);
        });
      })
      .Error("narrow: [2, 4) is out of range for dim 1 of f32[2,3]", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Narrow(x[0], 1, 2, 2); });
}

void AddPad(Table& table) {
  table.Op<PadOp>()
      .Add({{1, 0}, {0, 2}, {0, 1}}, {Random(DType::kF64, {2, 3})})
      .Add({{-1, 2}, {1, -1}, {0, 0}}, {Random(DType::kF64, {3, 3})})
      .AddEdge({{2}, {3}, {2}}, {Random(DType::kS16, {4})})
      .Reference([](const PadOp& op, const Literals& in) {
        const Shape& x = in[0].shape();
        Dims dims;
        for (std::size_t d = 0; d < op.low.size(); ++d)
          dims.push_back(op.low[d] + op.high[d] + x.dims()[d] + (x.dims()[d] - 1) * op.interior[d]);
        return Build(Shape(x.dtype(), dims), [&](Index index) {
          for (std::size_t d = 0; d < index.size(); ++d) {
            const int64_t i = index[d] - op.low[d], step = op.interior[d] + 1;
            if (i < 0 || i % step != 0 || i / step >= x.dims()[d]) return 0.0;
            index[d] = i / step;
          }
          return At(in[0], index);
        });
      });
}

void AddFlip(Table& table) {
  table.Op<FlipOp>()
      .Add({{0}}, {Random(DType::kF64, {3, 2})})
      .Add({{0, 1}}, {Random(DType::kF64, {3, 2})})
      .AddEdge({{1}}, {Random(DType::kPred, {2, 9})})
      .Reference([](const FlipOp& op, const Literals& in) {
        return Build(in[0].shape(), [&](Index index) {
          for (int64_t d : op.dims) {
            int64_t& i = index[static_cast<std::size_t>(d)];
            i = in[0].shape().dim(d) - 1 - i;
          }
          return At(in[0], index);
        });
      })
      .Error("flip: dim 2 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Flip(x[0], {2}); });
}

constexpr char kScale[] =
    "HloModule scale\nENTRY e { x = f64[2] parameter(0) ROOT y = f64[2] add(x, x) }\n";

void AddCat(Table& table) {
  table.Op<BarrierOp>()
      .Add({2},
           {Random(DType::kF64, {2, 3}), Random(DType::kS32, {2}, 1), Random(DType::kF64, {}, 2)})
      .Reference([](const BarrierOp&, const Literals& in) { return Literals{in[0], in[1]}; });
  // Of two arguments and two results, one of integers, with a gradient that says that it was called.
  table.Op<CallOp>()
      .Add({{*ProgramOf("HloModule scale\n"
                        "ENTRY e { x = f64[2] parameter(0) p = (f64[], s32[2]) parameter(1)\n"
                        "  a = f64[] get-tuple-element(p), index=0\n"
                        "  n = s32[2] get-tuple-element(p), index=1\n"
                        "  s = f64[2] broadcast(a), dimensions={} y = f64[2] multiply(x, s)\n"
                        "  ROOT r = (f64[2], s32[2]) tuple(y, n) }\n")
                  ->WithGradient(ProgramOf(
                      "HloModule gradient\n"
                      "add { a = f64[] parameter(0) b = f64[] parameter(1)\n"
                      "  ROOT c = f64[] add(a, b) }\n"
                      "ENTRY e { x = f64[2] parameter(0) a = f64[] parameter(1)\n"
                      "  n = s32[2] parameter(2) dy = f64[2] parameter(3)\n"
                      "  s = f64[2] broadcast(a), dimensions={} dx = f64[2] multiply(dy, s)\n"
                      "  xdy = f64[2] multiply(x, dy) zero = f64[] constant(0)\n"
                      "  da = f64[] reduce(xdy, zero), dimensions={0}, to_apply=add\n"
                      "  ROOT r = (f64[2], f64[]) tuple(dx, da) }\n"))}},
           {Random(DType::kF64, {2}), Random(DType::kF64, {}, 1), Random(DType::kS32, {2}, 2)})
      .NoSecondGradients()
      .Reference([](const CallOp&, const Literals& in) {
        return Literals{
            Build(in[0].shape(), [&](Index index) { return At(in[0], index) * At(in[1], {}); }),
            in[2]};
      })
      .Error("call of scale: it takes 1 arguments, not 2",
             {Random(DType::kF64, {2}), Random(DType::kF64, {})},
             [](const Tensors& x) { (void)Call(ProgramOf(kScale), x); })
      .Error("call of scale: argument 0 is f32[2], not f64[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Call(ProgramOf(kScale), x); });
  table.Op<CatOp>()
      .Add({0}, {Random(DType::kF64, {1, 2}), Random(DType::kF64, {2, 2}, 1)})
      .Add({1}, {Random(DType::kF64, {2, 1}), Random(DType::kF64, {2, 2}, 1),
                 Random(DType::kF64, {2, 1}, 2)})
      .AddEdge({0}, {Random(DType::kS32, {3})})
      .AddEdge({0}, {Random(DType::kS32, {0}), Random(DType::kS32, {2}, 1)})
      .Reference([](const CatOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        Dims dims(in[0].shape().dims().begin(), in[0].shape().dims().end());
        dims[d] = 0;
        for (const Literal& x : in) dims[d] += x.shape().dim(op.dim);
        return Build(Shape(in[0].shape().dtype(), dims), [&](Index index) {
          std::size_t k = 0;
          for (; index[d] >= in[k].shape().dim(op.dim); ++k) index[d] -= in[k].shape().dim(op.dim);
          return At(in[k], index);
        });
      })
      .Error("cat: needs at least one tensor", {}, [](const Tensors&) { (void)Cat({}, 0); })
      .Error("cat: f32[2,3] and f32[2] differ in more than dim 0",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Cat(x, 0); });
}

void AddSelect(Table& table) {
  table.Op<SelectOp>()
      .Add({0, 1}, {Random(DType::kF64, {3, 2})})
      .Add({1, 0}, {Random(DType::kF64, {3, 2})})
      .AddEdge({0, 4}, {Random(DType::kS32, {5})})
      .Reference([](const SelectOp& op, const Literals& in) {
        Dims dims(in[0].shape().dims().begin(), in[0].shape().dims().end());
        dims.erase(dims.begin() + op.dim);
        return Build(Shape(in[0].shape().dtype(), dims), [&](Index index) {
          index.insert(index.begin() + op.dim, op.index);
          return At(in[0], index);
        });
      })
      .Error("select: index 3 is out of range for dim 1 of f32[2,3]", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Select(x[0], 1, 3); });
}

// Where in memory an element lies.
int64_t Place(const Index& index, const Dims& strides, int64_t offset) {
  for (std::size_t d = 0; d < strides.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

// Rectangles: rows, columns, every second of them, transposed, diagonals, parts of a dim; a dim that
// repeats; and what is no rectangle, windows that overlap and rows that run on into the next.
void AddAsStrided(Table& table) {
  table.Op<AsStridedOp>()
      .Add({{2, 3}, {3, 1}, 3, DType::kF64}, {Random(DType::kF64, {4, 3})})
      .Add({{3, 2}, {1, 6}, 0, DType::kF64}, {Random(DType::kF64, {4, 3})})
      .Add({{2, 2}, {6, 2}, 1, DType::kF64}, {Random(DType::kF64, {4, 3})})
      .Add({{3}, {4}, 0, DType::kF64}, {Random(DType::kF64, {3, 3})})
      .Add({{2, 1, 2}, {3, 5, 1}, 4, DType::kF64}, {Random(DType::kF64, {3, 3})})
      .Add({{2, 3}, {0, 2}, 1, DType::kF64}, {Random(DType::kF64, {6})})
      .Add({{4, 3}, {1, 1}, 0, DType::kF64}, {Random(DType::kF64, {6})})
      .Add({{2, 3}, {4, 2}, 1, DType::kF64}, {Random(DType::kF64, {3, 4})})
      .AddEdge({{}, {}, 2, DType::kS32}, {Random(DType::kS32, {3})})
      .AddEdge({{0, 2}, {2, 1}, 0, DType::kF32}, {Random(DType::kF32, {3})})
      .AddEdge({{3, 2, 2}, {2, 12, 1}, 5, DType::kS64}, {Random(DType::kS64, {4, 6})})
      .AddEdge({{2, 2, 2}, {4, 2, 1}, 0, DType::kF32}, {Random(DType::kC64, {2, 2})})
      .AddEdge({{2}, {2}, 1, DType::kF64}, {Random(DType::kC128, {2})})
      .AddEdge({{2, 4}, {4, 1}, 4, DType::kU8}, {Random(DType::kS32, {3})})
      .AddEdge({{2}, {1}, 0, DType::kS64}, {Random(DType::kS16, {2, 4})})
      .AddEdge({{4}, {1}, 0, DType::kU8}, {Random(DType::kPred, {4})})
      .Reference([](const AsStridedOp& op, const Literals& in) {
        const Shape row(op.dtype, {in[0].shape().byte_size() / ByteWidth(op.dtype)});
        Literal memory(row);
        std::memcpy(memory.mutable_raw(), in[0].raw(), static_cast<std::size_t>(row.byte_size()));
        return Build(Shape(op.dtype, op.dims), [&](const Index& index) {
          return At(memory, Index{Place(index, op.strides, op.offset)});
        });
      });
  table.Op<AsStridedScatterOp>()
      .Add({{3, 1}, 3}, {Random(DType::kF64, {4, 3}), Random(DType::kF64, {2, 3}, 1)})
      .Add({{1, 6}, 0}, {Random(DType::kF64, {4, 3}), Random(DType::kF64, {3, 2}, 1)})
      .Add({{6, 2}, 1}, {Random(DType::kF64, {4, 3}), Random(DType::kF64, {2, 2}, 1)})
      .Add({{4}, 0}, {Random(DType::kF64, {3, 3}), Random(DType::kF64, {3}, 1)})
      .Add({{1, 3}, 0}, {Random(DType::kF64, {2, 3}), Random(DType::kF64, {3, 2}, 1)})
      .Add({{4, 3}, 1}, {Random(DType::kF64, {3, 4}), Random(DType::kF64, {2, 3}, 1)})
      .AddEdge({{}, 2}, {Random(DType::kS32, {3}), Random(DType::kS32, {}, 1)})
      .AddEdge({{2, 12, 1}, 5}, {Random(DType::kS64, {4, 6}), Random(DType::kS64, {3, 2, 2}, 1)})
      .Reference([](const AsStridedScatterOp& op, const Literals& in) {
        const Literal memory = in[0].Reshaped({in[0].shape().num_elements()});
        const Shape& flat = memory.shape();
        const Literal put = Build(flat, [&](const Index& at) {
          auto value = At(memory, at);
          ForEachIndex(in[1].shape().dims(), [&](absl::Span<const int64_t> index) {
            const Index i(index.begin(), index.end());
            if (Place(i, op.strides, op.offset) == at[0]) value = At(in[1], i);
          });
          return value;
        });
        return put.Reshaped(in[0].shape().dims());
      });
}

// A group of one device: what each op does with several is in tests/python/distributed_test.py.
void AddCollectives(Table& table) {
  const auto itself = [](const auto&, const Literals& in) { return in[0]; };
  table.Op<AllReduceOp>()
      .Add({Joining::kSum, {0}}, {Random(DType::kF64, {2, 3})})
      .AddEdge({Joining::kMax, {0}}, {Random(DType::kS32, {5})})
      .AddEdge({Joining::kMin, {0}}, {Random(DType::kPred, {3})})
      .AddEdge({Joining::kProduct, {0}}, {Random(DType::kF32, {})})
      .Reference(std::function<Literal(const AllReduceOp&, const Literals&)>(itself))
      .Error("all_reduce: reduce is sum, avg, product, max or min, not mean",
             {Random(DType::kF32, {2})}, [](const Tensors& x) { (void)AllReduce(x[0], "mean"); })
      .Error("all_reduce: avg takes floats, not s32[2]", {Random(DType::kS32, {2})},
             [](const Tensors& x) { (void)AllReduce(x[0], "avg"); })
      .Error("all_reduce: sum takes numbers, not pred[2]; of booleans there are max and min",
             {Random(DType::kPred, {2})}, [](const Tensors& x) { (void)AllReduce(x[0], "sum"); })
      .Error("all_reduce: device 0 is in the group twice", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)AllReduce(x[0], "sum", {0, 0}); });
  table.Op<AllGatherOp>()
      .Add({1, {0}}, {Random(DType::kF64, {2, 3})})
      .AddEdge({0, {0}}, {Random(DType::kS8, {2, 3})})
      .Reference(std::function<Literal(const AllGatherOp&, const Literals&)>(itself))
      .Error("all_gather: dim 2 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)AllGather(x[0], 2); });
  table.Op<ReduceScatterOp>()
      .Add({Joining::kSum, 1, {0}}, {Random(DType::kF64, {2, 3})})
      .AddEdge({Joining::kMax, 0, {0}}, {Random(DType::kS32, {2, 3})})
      .Reference(std::function<Literal(const ReduceScatterOp&, const Literals&)>(itself));
  table.Op<AllToAllOp>()
      .Add({1, {0}}, {Random(DType::kF64, {2, 3})})
      .AddEdge({0, {0}}, {Random(DType::kU8, {4})})
      .Reference(std::function<Literal(const AllToAllOp&, const Literals&)>(itself));
  table.Op<CollectivePermuteOp>()
      .Add({{0}, {0}}, {Random(DType::kF64, {2, 3})})
      .AddEdge({{}, {}}, {Random(DType::kS32, {2})})
      .Reference(std::function<Literal(const CollectivePermuteOp&, const Literals&)>(
          [](const CollectivePermuteOp& op, const Literals& in) {
            return op.sources.empty() ? Literal(in[0].shape()) : in[0];
          }))
      .Error("collective_permute: 1 sources and 0 targets are not pairs",
             {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)CollectivePermute(x[0], {0}, {}); })
      .Error("collective_permute: device 0 is twice among the sources", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)CollectivePermute(x[0], {0, 0}, {0, 0}); });
}

}  // namespace

void AddShapeSamples(Table& table) {
  AddReshape(table);
  AddBroadcastTo(table);
  AddPermute(table);
  AddSlice(table);
  AddSelect(table);
  AddAsStrided(table);
  AddPad(table);
  AddFlip(table);
  AddCat(table);
  AddCollectives(table);
}

}  // namespace lazuli::lazy::test
