// Attention, and the layers of transformers. Sequences are [L, N, E] - or [N, L, E] where batch_first
// says so - with L positions of N sequences. Parameters have PyTorch's names.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lazuli/nn/layers.h"

namespace lazuli::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  // of the weights, in training
  bool bias = true;
  bool batch_first = false;
};
// Attention of several heads, each to a part of what is projected (Vaswani et al., 2017).
class LAZULI_API MultiheadAttention : public Module {
 public:
  // Throws Error(kInvalidArgument) unless embed_dim divides by num_heads.
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                     const MultiheadAttentionOptions& options = {}, LAZULI_LOC);
  // What of value the query [L, N, E] asks for by key, both [S, N, E], and, if they are needed, the
  // weights: [N, L, S], or of each head [N, heads, L, S]. A mask of bools says what is not seen, one
  // of floats is added: key_padding_mask [N, S], attn_mask [L, S] or [N * heads, L, S].
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& key_padding_mask = {}, bool need_weights = true,
                                    const Tensor& attn_mask = {}, bool average_attn_weights = true,
                                    LAZULI_LOC) const;
  Parameter in_proj_weight;  // [3 E, E]: of query, key and value
  Parameter in_proj_bias;    // [3 E], or undefined
  Linear out_proj;

 private:
  std::int64_t heads_;
  MultiheadAttentionOptions options_;
};

struct TransformerLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  Tensor (*activation)(const Tensor& x, SourceLocation loc) = &relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  // normalises what goes into attention and network, not what comes out
};
// Attention of a sequence to itself, then a network of two layers for each position; both are added
// to what goes in.
class LAZULI_API TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                          const TransformerLayerOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, LAZULI_LOC) const;
  Tensor operator()(const Tensor& src, LAZULI_LOC) const { return forward(src, {}, {}, loc); }
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;

 private:
  TransformerLayerOptions options_;
};

// As TransformerEncoderLayer, with attention to what an encoder gave, the memory, in between.
class LAZULI_API TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                          const TransformerLayerOptions& options = {}, LAZULI_LOC);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, LAZULI_LOC) const;
  MultiheadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout, dropout1, dropout2, dropout3;

 private:
  TransformerLayerOptions options_;
};

// So many copies of a layer, one after the other.
class LAZULI_API TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, std::int64_t num_layers, LAZULI_LOC);
  Tensor forward(const Tensor& src, const Tensor& mask = {},
                 const Tensor& src_key_padding_mask = {}, LAZULI_LOC) const;
  Tensor operator()(const Tensor& src, LAZULI_LOC) const { return forward(src, {}, {}, loc); }
  std::vector<TransformerEncoderLayer> layers;
};
class LAZULI_API TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, std::int64_t num_layers, LAZULI_LOC);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, LAZULI_LOC) const;
  std::vector<TransformerDecoderLayer> layers;
};

}  // namespace lazuli::nn
