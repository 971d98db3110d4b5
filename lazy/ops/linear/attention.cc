// Attention: what each query gives of the values, by how its keys fit.
#include "lazy/ops/linear/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/functional/function_ref.h"

#include "ir/hlo/composite.h"
#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/activation/softmax.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/reduce/reduce.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Op;
using Ops = std::vector<Op>;

// Which gradients are wanted, by operand.
constexpr int64_t kQuery = 1, kKey = 2, kValue = 4, kMask = 8;

// --- as instructions

// Products of matrices, with equal batch dims in front, along a dim of each: 1 for the last one, 2
// for the one before. The other dims remain, x's first.
Op ProductAlong(Builder& b, int64_t x_dim, Op x, int64_t y_dim, Op y) {
  hlo::DotAttrs attrs;
  for (int64_t d = 0; d < x.rank() - 2; ++d) {
    attrs.lhs_batch_dims.push_back(d);
    attrs.rhs_batch_dims.push_back(d);
  }
  attrs.lhs_contracting_dims = {x.rank() - x_dim};
  attrs.rhs_contracting_dims = {y.rank() - y_dim};
  return b.Dot(x, y, std::move(attrs));
}
Op TimesNumber(Builder& b, Op x, double factor) { return b.Times(x, b.Full(x.shape(), factor)); }

// Scores are products of query and key that were both multiplied by about the square root of the
// scale, so that those of f16 do not overflow. 16-bit floats hold few numbers: of these the key has
// a power of 2, so that one factor is rounded, and neither for 16, 64 or 256 columns.
struct Factors {
  Factors(double scale, DType dtype) {
    const double root = std::sqrt(std::abs(scale));
    const bool is_narrow = dtype != hlo::AccumulationType(dtype);
    key = is_narrow && root > 0 && std::isfinite(root) ? std::exp2(std::round(std::log2(root)))
                                                       : root;
    query = key != root ? scale / key : scale < 0 ? -root : root;
  }
  double key, query;
};

// Of how queries and keys fit, what takes part in softmax.
struct Scores {
  Op query, key;  // scaled
  Op seen;        // if has_seen: where scores are not -infinity
  bool has_seen;
  Op scores;
};
Scores ScoresOf(Builder& b, Op query, Op key, absl::Span<const Op> mask, bool causal,
                double scale) {
  const Factors factors(scale, query.dtype());
  Scores s{.query = TimesNumber(b, query, factors.query),
           .key = TimesNumber(b, key, factors.key),
           .seen = query,
           .has_seen = causal || (!mask.empty() && mask[0].dtype() == DType::kPred),
           .scores = query};
  s.scores = ProductAlong(b, 1, s.query, 1, s.key);
  const Shape shape = s.scores.shape();  // NOLINT: a copy, for the original moves
  if (causal) {
    const Shape plane(DType::kS64, shape.dims().last(2));
    s.seen = b.Compare(hlo::ComparisonDirection::kLe, b.Iota(plane, 1), b.Iota(plane, 0));
  } else if (s.has_seen) {
    s.seen = mask[0];
  } else if (!mask.empty()) {
    s.scores = b.Plus(s.scores, b.BroadcastTo(b.Convert(mask[0], shape.dtype()), shape.dims()));
  }
  if (!s.has_seen) return s;
  s.seen = b.BroadcastTo(s.seen, shape.dims());
  s.scores = b.Select(s.seen, s.scores, b.Full(shape, -std::numeric_limits<double>::infinity()));
  return s;
}

// The instructions as the body of a composite.
Ops AsComposite(Builder& b, std::string_view name, const Ops& operands,
                absl::FunctionRef<Ops(Builder&, absl::Span<const Op>)> body) {
  if (b.shapes_only()) return body(b, operands);
  std::vector<Shape> shapes;
  for (const Op& operand : operands) shapes.push_back(operand.shape());
  std::size_t count = 0;
  hlo::Computation* const callee =
      b.Region("attention", shapes, [&](Builder& r, absl::Span<const Op> in) {
        const Ops results = body(r, in);
        count = results.size();
        return r.Tuple(results);
      });
  const Op call = b.Call(callee, operands);
  if (call.instruction() != nullptr) hlo::MarkComposite(*call.instruction(), name);
  Ops results;
  for (std::size_t i = 0; i < count; ++i)
    results.push_back(b.GetTupleElement(call, static_cast<int64_t>(i)));
  return results;
}

Ops WithMask(Ops operands, absl::Span<const Op> mask) {
  operands.insert(operands.end(), mask.begin(), mask.end());
  return operands;
}

}  // namespace

bool AttentionOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  const Shape &query = in[0].shape(), &value = in[2].shape();
  Dims dims(query.dims().begin(), query.dims().end());
  dims.back() = value.dim(value.rank() - 1);
  out.emplace_back(query.dtype(), dims);
  dims.pop_back();
  const Shape rows(hlo::AccumulationType(query.dtype()), dims);
  out.push_back(rows);
  out.push_back(rows);
  return true;
}

Ops AttentionOp::Lower(Builder& builder, Op query, Op key, Op value,
                       absl::Span<const Op> mask) const {
  const auto body = [&](Builder& b, absl::Span<const Op> in) {
    const Op scores = Wide(ScoresOf(b, in[0], in[1], in.subspan(3), causal, scale).scores);
    const int64_t keys = scores.rank() - 1;
    // A query that sees nothing gives nothing.
    const Op most = b.Reduce(lowering::Opcode::kMaximum, scores, {keys});
    const Op some = b.Compare(hlo::ComparisonDirection::kNe, most,
                              b.Full(most.shape(), -std::numeric_limits<double>::infinity()));
    const Op largest = b.Select(some, most, b.ZerosLike(most));
    const Op shifted = b.Minus(scores, SpreadAlong(b, largest, scores.shape(), keys));
    const Op e = b.Unary(lowering::Opcode::kExponential, shifted);
    const Op sum = b.Reduce(lowering::Opcode::kAdd, e, {keys});
    const Op divisor = b.Select(some, sum, b.Full(sum.shape(), 1));
    const Op weights = b.DividedBy(e, SpreadAlong(b, divisor, scores.shape(), keys));
    return Ops{ProductAlong(b, 1, b.Convert(weights, in[2].dtype()), 2, in[2]), largest, divisor};
  };
  return AsComposite(builder, kDumpName, WithMask({query, key, value}, mask), body);
}

Tensors AttentionOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  Tensors grads(s.size());
  int64_t wanted = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s.needs(i) && IsFloat(s.shape(i).dtype())) wanted |= int64_t{1} << i;
  }
  if (wanted == 0 || !dys[0].defined()) return grads;
  Tensors in{s.x(0), s.x(1), s.x(2), s.y(1), s.y(2), dys[0]};
  if (s.size() > 3) in.push_back(s.x(3));
  Tensors given = RecordAll(AttentionGradientOp{causal, scale, wanted},
                            std::vector<Operand>(in.begin(), in.end()));
  std::size_t next = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if ((wanted >> i & 1) != 0) grads[i] = std::move(given[next++]);
  }
  return grads;
}

bool AttentionGradientOp::InferAll(absl::Span<const Value> in, Shapes& out) const {
  for (std::size_t i = 0; i < 4; ++i) {
    if ((wanted >> i & 1) != 0) out.push_back(in[i == 3 ? 6 : i].shape().WithDefaultLayout());
  }
  return true;
}

Ops AttentionGradientOp::Lower(Builder& builder, Op query, Op key, Op value, Op largest, Op divisor,
                               Op dresult, absl::Span<const Op> mask) const {
  const auto body = [&](Builder& b, absl::Span<const Op> in) {
    const Scores s = ScoresOf(b, in[0], in[1], in.subspan(6), causal, scale);
    const DType dtype = in[0].dtype();
    const Factors factors(scale, dtype);
    const Op scores = Wide(s.scores);
    const int64_t keys = scores.rank() - 1;
    const auto of_rows = [&](Op x) { return SpreadAlong(b, x, scores.shape(), keys); };
    const Op shifted = b.Minus(scores, of_rows(in[3]));
    const Op all = b.DividedBy(b.Unary(lowering::Opcode::kExponential, shifted), of_rows(in[4]));
    const Op narrow = b.Convert(all, dtype), weights = Wide(narrow);
    Ops results;
    Op slopes = weights;  // of the scores
    if ((wanted & ~kValue) != 0) {
      const Op dweights = Wide(ProductAlong(b, 1, in[5], 1, in[2]));
      const Op mean = b.Reduce(lowering::Opcode::kAdd, b.Times(dweights, weights), {keys});
      slopes = b.Convert(b.Times(weights, b.Minus(dweights, of_rows(mean))), dtype);
      if (s.has_seen) slopes = b.Select(s.seen, slopes, b.ZerosLike(slopes));
    }
    if ((wanted & kQuery) != 0)
      results.push_back(TimesNumber(b, ProductAlong(b, 1, slopes, 2, s.key), factors.query));
    if ((wanted & kKey) != 0)
      results.push_back(TimesNumber(b, ProductAlong(b, 2, slopes, 2, s.query), factors.key));
    if ((wanted & kValue) != 0) results.push_back(ProductAlong(b, 2, narrow, 2, in[5]));
    if ((wanted & kMask) != 0) results.push_back(b.Convert(slopes, in[6].dtype()));
    return results;
  };
  return AsComposite(builder, kDumpName,
                     WithMask({query, key, value, largest, divisor, dresult}, mask), body);
}

namespace {

// --- as recorded ops

Tensor Turned(const Tensor& x) { return Transpose(x, -1, -2); }

Tensor AttentionWeights(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal,
                        double scale) {
  const Factors factors(scale, query.dtype());
  Tensor fit = Matmul(query * factors.query, Turned(key) * factors.key);
  const Dims plane{fit.dim(fit.rank() - 2), fit.dim(fit.rank() - 1)};
  Tensor seen;
  if (causal) {
    seen = Le(Positions(plane, 1, query.device()), Positions(plane, 0, query.device()));
  } else if (mask.defined() && mask.dtype() == DType::kPred) {
    seen = mask;
  } else if (mask.defined()) {
    fit = fit + To(mask, fit.dtype());
  }
  if (seen.defined())
    fit = Where(seen, fit, Constant(-std::numeric_limits<double>::infinity(), fit.dtype()));
  return SafeSoftmax(fit, -1);
}

// The sum of the products that there are.
class SumOfProducts {
 public:
  void Add(const Tensor& x, const Tensor& y) {
    if (!x.defined() || !y.defined()) return;
    Add(Matmul(x, y));
  }
  void Add(const Tensor& x) { sum_ = sum_.defined() ? sum_ + x : x; }
  void AddTimes(double factor, const Tensor& x, const Tensor& y) {
    if (x.defined() && y.defined()) Add(Matmul(x, y) * factor);
  }
  const Tensor& sum() const { return sum_; }

 private:
  Tensor sum_;
};

}  // namespace

// With weights w, slopes dw = dresult value^T of them and ds = w (dw - sum(w dw)) of scores, the
// gradients are dq = scale ds key, dk = scale ds^T query, dv = w^T dresult and ds itself. This is
// the gradient of these with respect to all that w, dw and ds are made of.
Tensors AttentionGradientOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  const Tensor q = s.x(0), k = s.x(1), v = s.x(2), dy = s.x(5);
  const Tensor mask = s.size() > 6 ? s.x(6) : Tensor();
  std::size_t next = 0;
  const auto given = [&](int64_t bit) { return (wanted & bit) != 0 ? dys[next++] : Tensor(); };
  const Tensor of_dq = given(kQuery), of_dk = given(kKey), of_dv = given(kValue),
               of_ds = given(kMask);
  const auto along = [](const Tensor& x) { return Sum(x, {-1}, /*keepdim=*/true); };
  const Tensor w = AttentionWeights(q, k, mask, causal, scale), dw = Matmul(dy, Turned(v));
  const Tensor sloped = dw - along(w * dw), ds = w * sloped;
  SumOfProducts to_ds, to_w, to_dw, to_q, to_k, to_v, to_dy;
  if (of_dq.defined()) to_ds.AddTimes(scale, of_dq, Turned(k));
  if (of_dk.defined()) to_ds.AddTimes(scale, q, Turned(of_dk));
  if (of_ds.defined()) to_ds.Add(To(of_ds, w.dtype()));
  if (of_dv.defined()) to_w.Add(dy, Turned(of_dv));
  if (const Tensor a = to_ds.sum(); a.defined()) {
    const Tensor mean = along(w * a);
    to_w.Add(a * sloped - dw * mean);
    to_dw.Add(w * (a - mean));
  }
  Tensor to_scores;
  if (const Tensor a = to_w.sum(); a.defined()) to_scores = w * (a - along(w * a));
  Tensors grads(s.size());
  if (s.needs(0)) {
    to_q.AddTimes(scale, to_scores, k);
    to_q.AddTimes(scale, ds, of_dk);
    grads[0] = to_q.sum();
  }
  if (s.needs(1)) {
    if (to_scores.defined()) to_k.AddTimes(scale, Turned(to_scores), q);
    if (of_dq.defined()) to_k.AddTimes(scale, Turned(ds), of_dq);
    grads[1] = to_k.sum();
  }
  if (s.needs(2) && to_dw.sum().defined()) grads[2] = Matmul(Turned(to_dw.sum()), dy);
  if (s.needs(5)) {
    to_dy.Add(to_dw.sum(), v);
    to_dy.Add(w, of_dv);
    grads[5] = to_dy.sum();
  }
  if (mask.defined() && s.needs(6) && to_scores.defined() && IsFloat(mask.dtype()))
    grads[6] = SumToShape(to_scores, s.shape(6));
  return grads;
}

namespace {

// Each head of keys, or values, once for each head of queries that shares it.
Tensor SharedHeads(const Tensor& x, int64_t heads) {
  const int64_t d = x.rank() - 3, own = x.dim(d);
  if (own == heads) return x;
  if (own == 0 || heads % own != 0) {
    ThrowRecordError("scaled_dot_product_attention",
                     InvalidArgument(heads, " heads of queries share no ", own, " of ", x.shape()));
  }
  return RepeatInterleave(x, heads / own, d);
}

void CheckAttention(const Tensor& query, const Tensor& key, const Tensor& value,
                    bool has_two_masks) {
  constexpr char kOp[] = "scaled_dot_product_attention";
  for (const Tensor* t : {&query, &key, &value}) {
    if (t->rank() < 2 || t->dtype() != query.dtype() || !IsFloat(query.dtype())) {
      ThrowRecordError(kOp,
                       InvalidArgument("takes floats of one dtype and two dims or more, not ",
                                       query.shape(), ", ", key.shape(), " and ", value.shape()));
    }
  }
  if (has_two_masks)
    ThrowRecordError(kOp, InvalidArgument("attn_mask should not be set when is_causal=True"));
}

// The batch dims of all, which broadcast. Throws for operands that do not fit.
Dims BatchOf(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  const auto refuse = [&](std::string_view why) {
    ThrowRecordError(
        "scaled_dot_product_attention",
        InvalidArgument(why, ": query ", query.shape(), ", key ", key.shape(), ", value ",
                        value.shape(), mask.defined() ? Str(", mask ", mask.shape()) : ""));
  };
  if (query.dim(query.rank() - 1) != key.dim(key.rank() - 1))
    refuse("the last dims of query and key differ");
  if (key.dim(key.rank() - 2) != value.dim(value.rank() - 2))
    refuse("key and value have different lengths");
  const auto batch_of = [](const Tensor& x) {
    return Shape(x.dtype(), x.shape().dims().first(static_cast<std::size_t>(x.rank() - 2)));
  };
  Dims batch;
  const auto join = [&](const Shape& shape) {
    absl::StatusOr<Dims> joined = BroadcastDims(Shape(query.dtype(), batch), shape);
    if (!joined.ok()) refuse("batch dims do not broadcast");
    batch = *std::move(joined);
  };
  for (const Tensor* x : {&query, &key, &value}) join(batch_of(*x));
  if (!mask.defined()) return batch;
  const Dims plane{query.dim(query.rank() - 2), key.dim(key.rank() - 2)};
  for (int64_t d = 1; d <= std::min<int64_t>(2, mask.rank()); ++d) {
    const int64_t size = mask.dim(mask.rank() - d);
    if (size != 1 && size != plane[static_cast<std::size_t>(2 - d)])
      refuse("the mask does not broadcast to the scores");
  }
  if (mask.rank() > 2) join(batch_of(mask));
  return batch;
}
Tensor WithBatchDims(const Tensor& x, const Dims& batch) {
  Dims dims = batch;
  dims.insert(dims.end(), {x.dim(x.rank() - 2), x.dim(x.rank() - 1)});
  return BroadcastTo(x, dims);
}

}  // namespace

Tensor ScaledDotProductAttention(const Tensor& query, const Tensor& in_key, const Tensor& in_value,
                                 const Tensor& attn_mask, double dropout_p, bool is_causal,
                                 std::optional<double> scale, bool enable_gqa) {
  CheckAttention(query, in_key, in_value, is_causal && attn_mask.defined());
  const bool shared = enable_gqa && query.rank() >= 3 && in_key.rank() >= 3;
  const int64_t heads = shared ? query.dim(query.rank() - 3) : 0;
  const Tensor key = shared ? SharedHeads(in_key, heads) : in_key;
  const Tensor value = shared ? SharedHeads(in_value, heads) : in_value;
  const int64_t d = query.dim(query.rank() - 1);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(d, 1))));
  if (dropout_p > 0) {
    const Tensor weights = AttentionWeights(query, key, attn_mask, is_causal, factor);
    return Matmul(Dropout(weights, dropout_p), value);
  }
  const Dims batch = BatchOf(query, key, value, attn_mask);
  Tensors in;
  for (const Tensor* x : {&query, &key, &value}) in.push_back(WithBatchDims(*x, batch));
  if (attn_mask.defined()) {
    Dims dims = batch;
    dims.insert(dims.end(), {query.dim(query.rank() - 2), key.dim(key.rank() - 2)});
    const Operand mask(attn_mask);
    const bool wants_grad = WantsGrad(absl::MakeConstSpan(&mask, 1));
    // Its gradient is that of scores, which is summed outside.
    in.push_back(wants_grad ? BroadcastTo(attn_mask, dims) : attn_mask);
  }
  return RecordAll(AttentionOp{is_causal, factor}, std::vector<Operand>(in.begin(), in.end()))[0];
}

}  // namespace lazuli::lazy
