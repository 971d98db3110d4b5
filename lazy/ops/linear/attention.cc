// Attention: what each query gives of the values, by how its keys fit.
#include <cmath>
#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/activation/softmax.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
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
  // The square root on both sides, so that products of f16 do not overflow.
  const double root = std::sqrt(std::abs(factor));
  Tensor fit = Matmul(query * (factor < 0 ? -root : root), Transpose(key, -1, -2) * root);
  const int64_t rows = query.dim(query.rank() - 2), columns = key.dim(key.rank() - 2);
  const auto hidden = [&] {
    return Constant(-std::numeric_limits<double>::infinity(), fit.dtype());
  };
  Tensor seen;
  if (is_causal) {
    const Dims plane{rows, columns};
    seen = Le(Positions(plane, 1, query.device()), Positions(plane, 0, query.device()));
  } else if (attn_mask.defined() && attn_mask.dtype() == DType::kPred) {
    seen = attn_mask;
  } else if (attn_mask.defined()) {
    fit = fit + To(attn_mask, fit.dtype());
  }
  if (seen.defined()) fit = Where(seen, fit, hidden());
  // A query that sees nothing gives nothing, and passes no gradient on.
  Tensor weights = SafeSoftmax(fit, -1);
  if (dropout_p > 0) weights = Dropout(weights, dropout_p);
  return Matmul(weights, value);
}

}  // namespace lazuli::lazy
