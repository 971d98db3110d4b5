// Positions that are data, and orders along a dim.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lazy/ops/index/index.h"
#include "lazy/ops/index/sort.h"
#include "lazy/ops/reduce/cumulative.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

// Calls f with the index of the first element of every row along dim.
void ForEachRow(const Shape& shape, int64_t dim, const std::function<void(const Index&)>& f) {
  Dims dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<std::size_t>(dim)] = 1;
  ForEachIndex(dims, f);
}

void AddGathers(Table& table) {
  table.Op<GatherOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}),
                 Literal::FromValues<int64_t>({4, 2}, {2, 0, 0, 1, 2, 2, 1, 0})})
      .Add({1}, {Random(DType::kF64, {2, 3}), Literal::FromValues<int32_t>({1, 2}, {2, 2})})
      .Add({0}, {Random(DType::kF64, {5}), Indices({4, 4, 0})})
      .AddEdge({2}, {Random(DType::kS8, {2, 1, 300}),
                     Literal::FromValues<uint8_t>({2, 1, 2}, {255, 3, 0, 7})})
      .Reference([](const GatherOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        const Shape shape(in[0].shape().dtype(), in[1].shape().dims());
        return Build(shape, [&](Index index) {
          index[d] = static_cast<int64_t>(At(in[1], index));
          return At(in[0], index);
        });
      })
      .Error("gather: index must be of integers, is f32[2]",
             {Random(DType::kF32, {2}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Gather(x[0], 0, x[1]); })
      .Error("gather: index s64[3] must have the rank of f32[2,3] and be no larger but along dim 1",
             {Random(DType::kF32, {2, 3}), Indices({0, 1, 2})},
             [](const Tensors& x) { (void)Gather(x[0], 1, x[1]); });
  table.Op<ScatterAddOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}),
                 Literal::FromValues<int64_t>({4, 2}, {2, 0, 0, 1, 2, 2, 1, 0}),
                 Random(DType::kF64, {4, 2}, 1)})
      .Add({1}, {Random(DType::kF64, {2, 3}), Literal::FromValues<int64_t>({1, 2}, {2, 2}),
                 Random(DType::kF64, {1, 2}, 1)})
      .AddEdge({0}, {Random(DType::kS32, {5}), Indices({4, 4, 0}), Random(DType::kS32, {3}, 1)})
      .Reference([](const ScatterAddOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        Literal result = in[0].Clone();
        ForEachIndex(in[2].shape().dims(), [&](Index index) {
          const double y = At(in[2], index);
          index[d] = static_cast<int64_t>(At(in[1], index));
          const int64_t to = Offset(result.shape().dims(), index);
          result.SetFromDouble(to, result.AsDouble(to) + y);
        });
        return result;
      })
      .Error(
          "scatter_add: source f32[2] must have the dims of index s64[3] and the dtype of x "
          "f32[4]",
          {Random(DType::kF32, {4}), Indices({0, 1, 2}), Random(DType::kF32, {2})},
          [](const Tensors& x) { (void)ScatterAdd(x[0], 0, x[1], x[2]); });
}

void AddScatterReduce(Table& table) {
  using enum ScatterCombiner;
  Row<ScatterReduceOp> row = table.Op<ScatterReduceOp>();
  const Literal columns = Literal::FromValues<int64_t>({4, 2}, {2, 0, 0, 1, 2, 2, 1, 0});
  for (const ScatterCombiner combiner : {kProduct, kLargest, kSmallest}) {
    for (const bool include_self : {true, false}) {
      row.Add({0, combiner, include_self},
              {Random(DType::kF64, {4, 2}), columns, Random(DType::kF64, {4, 2}, 1)});
      row.AddEdge({0, combiner, include_self},
                  {Random(DType::kS32, {5}), Indices({4, 4, 0}), Random(DType::kS32, {3}, 1)});
    }
  }
  row.Reference([](const ScatterReduceOp& op, const Literals& in) {
    const auto d = static_cast<std::size_t>(op.dim);
    Literal result = in[0].Clone();
    std::vector<bool> counts(static_cast<std::size_t>(result.shape().num_elements()),
                             op.include_self);
    ForEachIndex(in[2].shape().dims(), [&](Index index) {
      const double y = At(in[2], index);
      index[d] = static_cast<int64_t>(At(in[1], index));
      const int64_t to = Offset(result.shape().dims(), index);
      const double x = result.AsDouble(to);
      const double both = op.combiner == kProduct   ? x * y
                          : op.combiner == kLargest ? std::max(x, y)
                                                    : std::min(x, y);
      result.SetFromDouble(to, counts[static_cast<std::size_t>(to)] ? both : y);
      counts[static_cast<std::size_t>(to)] = true;
    });
    return result;
  });
}

// Where several elements meet, the last one stays.
Literal Replaced(const Literals& in, int64_t dim) {
  const auto d = static_cast<std::size_t>(dim);
  const bool slices = in[1].shape().rank() != in[0].shape().rank() || in[0].shape().rank() == 1;
  Literal result = in[0].Clone();
  ForEachIndex(in[2].shape().dims(), [&](Index index) {
    const double y = At(in[2], index);
    index[d] = static_cast<int64_t>(slices ? At(in[1], {index[d]}) : At(in[1], index));
    result.SetFromDouble(Offset(result.shape().dims(), index), y);
  });
  return result;
}

void AddReplacements(Table& table) {
  table.Op<ScatterOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}),
                 Literal::FromValues<int64_t>({4, 2}, {2, 0, 0, 1, 2, 2, 1, 0}),
                 Random(DType::kF64, {4, 2}, 1)})
      .Add({1}, {Random(DType::kF64, {2, 3}), Literal::FromValues<int32_t>({1, 2}, {2, 0}),
                 Random(DType::kF64, {1, 2}, 1)})
      .AddEdge({0}, {Random(DType::kS32, {5}), Indices({4, 4, 0}), Random(DType::kS32, {3}, 1)})
      .Reference([](const ScatterOp& op, const Literals& in) { return Replaced(in, op.dim); })
      .Error("scatter: source f32[2] must have the dims of index s64[3] and the dtype of x f32[4]",
             {Random(DType::kF32, {4}), Indices({0, 1, 2}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Scatter(x[0], 0, x[1], x[2]); });
  table.Op<IndexSelectOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}), Indices({2, 0, 2, 1})})
      .Add({1}, {Random(DType::kF64, {2, 3}), Indices({1})})
      .AddEdge({1}, {Random(DType::kS8, {2, 300, 3}), Literal::FromValues<uint8_t>({2}, {255, 3})})
      .Reference([](const IndexSelectOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        Dims dims(in[0].shape().dims().begin(), in[0].shape().dims().end());
        dims[d] = in[1].shape().dim(0);
        return Build(Shape(in[0].shape().dtype(), dims), [&](Index index) {
          index[d] = static_cast<int64_t>(At(in[1], {index[d]}));
          return At(in[0], index);
        });
      })
      .Error("index_select: index must be rank-1 integers, is f32[2]",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)IndexSelect(x[0], 0, x[1]); });
  table.Op<IndexAddOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}), Indices({2, 0, 2}), Random(DType::kF64, {3, 2}, 1)})
      .Add({1},
           {Random(DType::kF64, {2, 3, 2}), Indices({1, 2}), Random(DType::kF64, {2, 2, 2}, 1)})
      .AddEdge({0}, {Random(DType::kS32, {5}), Indices({4, 4, 0}), Random(DType::kS32, {3}, 1)})
      .Reference([](const IndexAddOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        Literal result = in[0].Clone();
        ForEachIndex(in[2].shape().dims(), [&](Index index) {
          const double y = At(in[2], index);
          index[d] = static_cast<int64_t>(At(in[1], {index[d]}));
          const int64_t to = Offset(result.shape().dims(), index);
          result.SetFromDouble(to, result.AsDouble(to) + y);
        });
        return result;
      })
      .Error(
          "index_add: source f32[2,2] must be f32[1,2] for index s64[1] along dim 0 of x f32[3,2]",
          {Random(DType::kF32, {3, 2}), Indices({0}), Random(DType::kF32, {2, 2})},
          [](const Tensors& x) { (void)IndexAdd(x[0], 0, x[1], x[2]); });
  table.Op<IndexCopyOp>()
      .Add({0}, {Random(DType::kF64, {3, 2}), Indices({2, 0, 2}), Random(DType::kF64, {3, 2}, 1)})
      .Add({1},
           {Random(DType::kF64, {2, 3, 2}), Indices({1, 2}), Random(DType::kF64, {2, 2, 2}, 1)})
      .Add({0}, {Random(DType::kF64, {5}), Indices({4, 4, 0}), Random(DType::kF64, {3}, 1)})
      .AddEdge({0}, {Random(DType::kU8, {4, 33}), Indices({3}), Random(DType::kU8, {1, 33}, 1)})
      .Reference([](const IndexCopyOp& op, const Literals& in) { return Replaced(in, op.dim); })
      .Error("index_copy: index must be rank-1 integers, is f32[2]",
             {Random(DType::kF32, {3}), Random(DType::kF32, {2}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)IndexCopy(x[0], 0, x[1], x[2]); })
      .Error(
          "index_copy: source f32[2,2] must be f32[1,2] for index s64[1] along dim 0 of x f32[3,2]",
          {Random(DType::kF32, {3, 2}), Indices({0}), Random(DType::kF32, {2, 2})},
          [](const Tensors& x) { (void)IndexCopy(x[0], 0, x[1], x[2]); });
  table.Op<MaskPositionsOp>()
      .Add({3}, {Literal::FromValues<bool>({2, 3}, {false, true, true, false, false, true})})
      .Add({0}, {Literal::FromValues<bool>({2}, {false, false})})
      .Add({1}, {Literal::FromValues<bool>({}, {true})})
      .Add({0}, {Literal::FromValues<bool>({0}, {})})
      .Reference([](const MaskPositionsOp&, const Literals& in) {
        int64_t count = 0;
        return Build(Shape(DType::kS64, in[0].shape().dims()), [&](const Index& index) {
          return At(in[0], index) != 0 ? static_cast<double>(count++) : 0.0;
        });
      })
      .Error("mask_positions: takes a mask of pred, not f32[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)MaskPositions(x[0], 1); });
}

void AddCumulativeArg(Table& table) {
  table.Op<CumulativeArgOp>()
      .Add({0, true}, {Random(DType::kF64, {3, 2})})
      .Add({1, false}, {Random(DType::kF64, {2, 4})})
      .Add({0, true}, {Literal::FromValues<float>({9}, {1, 0, -0.0F, 1, NAN, 2, NAN, INFINITY, 3})})
      .Add({0, false}, {Literal::FromValues<float>({6}, {0, -0.0F, 0, -INFINITY, 5, -INFINITY})})
      .AddEdge({1, true}, {Random(DType::kS8, {2, 200})})
      .AddEdge({1, false}, {Random(DType::kPred, {2, 7})})
      .AddEdge({0, true}, {Random(DType::kF32, {0, 3})})
      .Reference([](const CumulativeArgOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        return Build(Shape(DType::kS64, in[0].shape().dims()), [&](Index index) {
          const int64_t last = std::exchange(index[d], 0);
          double best = At(in[0], index);
          int64_t at = 0;
          for (; index[d] <= last; ++index[d]) {
            const double value = At(in[0], index);
            if (!std::isnan(value) &&
                (std::isnan(best) || (op.largest ? value < best : value > best)))
              continue;
            best = value;
            at = index[d];
          }
          return static_cast<double>(at);
        });
      });
}

void AddCumSum(Table& table) {
  table.Op<CumSumOp>()
      .Add({0}, {Random(DType::kF64, {3, 2})})
      .Add({1}, {Random(DType::kF64, {2, 4})})
      .Add({0}, {Random(DType::kF64, {1})})
      .AddEdge({1}, {Random(DType::kS8, {2, 200})})
      .AddEdge({0}, {Random(DType::kF32, {65, 3})})
      .AddEdge({0}, {Random(DType::kF32, {0, 3})})
      .Reference([](const CumSumOp& op, const Literals& in) {
        const auto d = static_cast<std::size_t>(op.dim);
        const Shape& x = in[0].shape();
        const Shape shape(IsFloat(x.dtype()) ? x.dtype() : DType::kS64, x.dims());
        return Build(shape, [&](Index index) {
          double sum = 0;
          for (const int64_t last = std::exchange(index[d], 0); index[d] <= last; ++index[d])
            sum += At(in[0], index);
          return sum;
        });
      })
      .Error("cumsum: dim 2 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Cumsum(x[0], 2); });
}

Literals SortReference(const SortOp& op, const Literals& in) {
  const auto d = static_cast<std::size_t>(op.dim);
  const Shape& shape = in[0].shape();
  Literal values(shape), positions(Shape(DType::kS64, shape.dims()));
  ForEachRow(shape, op.dim, [&](Index index) {
    std::vector<int64_t> order(static_cast<std::size_t>(shape.dim(op.dim)));
    std::iota(order.begin(), order.end(), 0);
    const auto at = [&](int64_t i) {
      index[d] = i;
      const double v = At(in[0], index);
      return std::isnan(v) ? std::pair(1, 0.0) : std::pair(0, v);
    };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return op.descending ? at(b) < at(a) : at(a) < at(b);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      index[d] = order[i];
      const double v = At(in[0], index);
      index[d] = static_cast<int64_t>(i);
      values.SetFromDouble(Offset(shape.dims(), index), v);
      positions.SetFromDouble(Offset(shape.dims(), index), static_cast<double>(order[i]));
    }
  });
  Literals results;
  results.push_back(std::move(values));
  results.push_back(std::move(positions));
  return results;
}

void AddSort(Table& table) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  table.Op<SortOp>()
      .Add({0, false}, {Random(DType::kF64, {5})})
      .Add({1, true}, {Random(DType::kF64, {2, 4})})
      .Add({0, false}, {Random(DType::kF64, {3, 2})})
      .AddEdge({0, false}, {Floats({6}, {1, kNan, -kInf, 1, kInf, 0})})
      .AddEdge({0, true}, {Floats({6}, {1, kNan, -kInf, 1, kNan, 0})})
      .AddEdge({1, true}, {Random(DType::kU8, {3, 70})})
      .Reference(SortReference)
      .Error("sort: dim 1 is out of range for rank 1", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Sort(x[0], 1, false); })
      .Error("topk: k is 4, dim 0 of f32[3] has 3 elements", {Random(DType::kF32, {3})},
             [](const Tensors& x) { (void)Topk(x[0], 4, 0, true); });
}

}  // namespace

void AddIndexSamples(Table& table) {
  AddGathers(table);
  AddScatterReduce(table);
  AddReplacements(table);
  AddCumSum(table);
  AddCumulativeArg(table);
  AddSort(table);
}

}  // namespace lazuli::lazy::test
