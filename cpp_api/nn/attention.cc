#include "lazuli/nn/attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/nn.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;

Linear HeadsTogether(std::int64_t embed_dim, std::int64_t num_heads, bool bias,
                     SourceLocation loc) {
  if (embed_dim < 1 || num_heads < 1) {
    Fail(ErrorCode::kInvalidArgument,
         "MultiheadAttention: embed_dim and num_heads must be greater than 0, got embed_dim=" +
             std::to_string(embed_dim) + " and num_heads=" + std::to_string(num_heads) + " instead",
         loc);
  }
  if (embed_dim % num_heads == 0) return Linear(embed_dim, embed_dim, {.bias = bias}, loc);
  Fail(ErrorCode::kInvalidArgument,
       "MultiheadAttention: embed_dim " + std::to_string(embed_dim) +
           " must be divisible by num_heads " + std::to_string(num_heads),
       loc);
}

// What is added to how queries and keys fit.
Tensor Added(const Tensor& mask, DType dtype) {
  if (mask.dtype() != kBool) return mask.to(dtype);
  return masked_fill(zeros(mask.sizes(), dtype, mask.device()), mask,
                     -std::numeric_limits<double>::infinity());
}

// Both masks, [N or 1, heads or 1, L or 1, S]; undefined without.
Tensor MaskOf(const Tensor& attn_mask, const Tensor& key_padding_mask, std::int64_t heads,
              DType dtype) {
  Tensor total;
  if (attn_mask.defined()) {
    total = Added(attn_mask, dtype);
    if (total.dim() == 3) {
      total = reshape(total, {total.size(0) / heads, heads, total.size(1), total.size(2)});
    }
  }
  if (key_padding_mask.defined()) {
    const Tensor mask = unsqueeze(unsqueeze(Added(key_padding_mask, dtype), 1), 1);
    total = total.defined() ? total + mask : mask;
  }
  return total;
}

MultiheadAttentionOptions OfAttention(const TransformerLayerOptions& options) {
  return {.dropout = options.dropout, .batch_first = options.batch_first};
}
LayerNorm Norm(std::int64_t d_model, const TransformerLayerOptions& options, SourceLocation loc) {
  return LayerNorm({d_model}, {.eps = options.layer_norm_eps}, loc);
}

// Registers copies of a layer as "layers.0", "layers.1", ...
template <class L>
std::vector<L> Copies(Module& module, const L& layer, std::int64_t count, SourceLocation loc) {
  std::vector<L> layers;
  const Module list;
  module.register_module("layers", list, loc);
  Module handle = list;
  for (std::int64_t i = 0; i < count; ++i) {
    layers.push_back(nn::clone(layer, loc));
    handle.register_module(std::to_string(i), layers.back(), loc);
  }
  return layers;
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiheadAttentionOptions& options, SourceLocation loc)
    : out_proj(HeadsTogether(embed_dim, num_heads, options.bias, loc)),
      heads_(num_heads),
      options_(options) {
  const SiteScope site(loc);
  in_proj_weight = register_parameter("in_proj_weight", empty({3 * embed_dim, embed_dim}));
  init::xavier_uniform_(in_proj_weight);
  if (options.bias) {
    in_proj_bias = register_parameter("in_proj_bias", zeros({3 * embed_dim}));
    init::zeros_(out_proj.bias);
  }
  register_module("out_proj", out_proj);
}

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                      const Tensor& value,
                                                      const Tensor& key_padding_mask,
                                                      bool need_weights, const Tensor& attn_mask,
                                                      bool average_attn_weights,
                                                      SourceLocation loc) const {
  const SiteScope site(loc);
  const std::array<const Tensor*, 3> given{&query, &key, &value};
  const std::vector<Tensor> weights = chunk(in_proj_weight, 3);
  const std::vector<Tensor> biases =
      options_.bias ? chunk(in_proj_bias, 3) : std::vector<Tensor>(3);
  const std::int64_t width = in_proj_weight.size(1) / heads_;
  std::array<Tensor, 3> heads;  // each [N, heads, L or S, E / heads]
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor x = options_.batch_first ? *given[i] : transpose(*given[i], 0, 1);
    const Tensor projected = linear(x, weights[i], biases[i]);
    heads[i] = transpose(reshape(projected, {x.size(0), x.size(1), heads_, width}), 1, 2);
  }
  const Tensor mask = MaskOf(attn_mask, key_padding_mask, heads_, heads[0].dtype());
  const double rate = is_training() ? options_.dropout : 0;
  Tensor mixed, seen;
  if (need_weights) {
    const double scale = 1 / std::sqrt(static_cast<double>(heads[0].size(-1)));
    Tensor fit = matmul(heads[0] * scale, transpose(heads[1], -2, -1));
    if (mask.defined()) fit = fit + mask;
    seen = softmax(fit, -1);
    if (rate > 0) seen = lazuli::dropout(seen, rate);
    mixed = matmul(seen, heads[2]);
    if (average_attn_weights) seen = mean(seen, 1);
  } else {
    mixed = functional::scaled_dot_product_attention(heads[0], heads[1], heads[2], mask, rate);
  }
  const Tensor joined = transpose(mixed, 1, 2);
  const Tensor y = out_proj(reshape(joined, {joined.size(0), joined.size(1), heads_ * width}));
  return {options_.batch_first ? y : transpose(y, 0, 1), seen};
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options,
                                                 SourceLocation loc)
    : self_attn(d_model, nhead, OfAttention(options), loc),
      linear1(d_model, options.dim_feedforward, {}, loc),
      linear2(options.dim_feedforward, d_model, {}, loc),
      norm1(Norm(d_model, options, loc)),
      norm2(Norm(d_model, options, loc)),
      dropout(options.dropout),
      dropout1(options.dropout),
      dropout2(options.dropout),
      options_(options) {
  register_modules({{"self_attn", self_attn},
                    {"linear1", linear1},
                    {"dropout", dropout},
                    {"linear2", linear2},
                    {"norm1", norm1},
                    {"norm2", norm2},
                    {"dropout1", dropout1},
                    {"dropout2", dropout2}});
}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const Tensor& src_mask,
                                        const Tensor& src_key_padding_mask,
                                        SourceLocation loc) const {
  const SiteScope site(loc);
  const auto attend = [&](const Tensor& x) {
    return dropout1(
        self_attn.forward(x, x, x, src_key_padding_mask, /*need_weights=*/false, src_mask).first);
  };
  const auto feed = [&](const Tensor& x) {
    return dropout2(linear2(dropout(options_.activation(linear1(x), loc))));
  };
  if (!options_.norm_first) {
    const Tensor x = norm1(src + attend(src));
    return norm2(x + feed(x));
  }
  const Tensor x = src + attend(norm1(src));
  return x + feed(norm2(x));
}

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerLayerOptions& options,
                                                 SourceLocation loc)
    : self_attn(d_model, nhead, OfAttention(options), loc),
      multihead_attn(d_model, nhead, OfAttention(options), loc),
      linear1(d_model, options.dim_feedforward, {}, loc),
      linear2(options.dim_feedforward, d_model, {}, loc),
      norm1(Norm(d_model, options, loc)),
      norm2(Norm(d_model, options, loc)),
      norm3(Norm(d_model, options, loc)),
      dropout(options.dropout),
      dropout1(options.dropout),
      dropout2(options.dropout),
      dropout3(options.dropout),
      options_(options) {
  register_modules({{"self_attn", self_attn},
                    {"multihead_attn", multihead_attn},
                    {"linear1", linear1},
                    {"dropout", dropout},
                    {"linear2", linear2},
                    {"norm1", norm1},
                    {"norm2", norm2},
                    {"norm3", norm3},
                    {"dropout1", dropout1},
                    {"dropout2", dropout2},
                    {"dropout3", dropout3}});
}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const Tensor& tgt_mask, const Tensor& memory_mask,
                                        const Tensor& tgt_key_padding_mask,
                                        const Tensor& memory_key_padding_mask,
                                        SourceLocation loc) const {
  const SiteScope site(loc);
  const auto attend = [&](const Tensor& x) {
    return dropout1(
        self_attn.forward(x, x, x, tgt_key_padding_mask, /*need_weights=*/false, tgt_mask).first);
  };
  const auto look = [&](const Tensor& x) {
    return dropout2(multihead_attn
                        .forward(x, memory, memory, memory_key_padding_mask,
                                 /*need_weights=*/false, memory_mask)
                        .first);
  };
  const auto feed = [&](const Tensor& x) {
    return dropout3(linear2(dropout(options_.activation(linear1(x), loc))));
  };
  if (!options_.norm_first) {
    Tensor x = norm1(tgt + attend(tgt));
    x = norm2(x + look(x));
    return norm3(x + feed(x));
  }
  Tensor x = tgt + attend(norm1(tgt));
  x = x + look(norm2(x));
  return x + feed(norm3(x));
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer,
                                       std::int64_t num_layers, SourceLocation loc)
    : layers(Copies(*this, layer, num_layers, loc)) {}

Tensor TransformerEncoder::forward(const Tensor& src, const Tensor& mask,
                                   const Tensor& src_key_padding_mask, SourceLocation loc) const {
  Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers)
    x = layer.forward(x, mask, src_key_padding_mask, loc);
  return x;
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer,
                                       std::int64_t num_layers, SourceLocation loc)
    : layers(Copies(*this, layer, num_layers, loc)) {}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                   const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                   const Tensor& memory_key_padding_mask,
                                   SourceLocation loc) const {
  Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers) {
    x = layer.forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                      memory_key_padding_mask, loc);
  }
  return x;
}

}  // namespace lazuli::nn
