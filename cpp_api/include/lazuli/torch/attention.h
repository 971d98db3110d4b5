// Attention and transformers, in LibTorch's words.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "lazuli/torch/nn.h"

namespace lazuli::torch_names::nn {

class MultiheadAttentionOptions {
 public:
  MultiheadAttentionOptions(std::int64_t embed_dim, std::int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}
  MultiheadAttentionOptions& dropout(double v) { return options_.dropout = v, *this; }
  MultiheadAttentionOptions& bias(bool v) { return options_.bias = v, *this; }

 private:
  friend class MultiheadAttention;
  std::int64_t embed_dim_, num_heads_;
  lazuli::nn::MultiheadAttentionOptions options_;
};
using MultiheadAttentionImpl = lazuli::nn::MultiheadAttention;
class MultiheadAttention : public ModuleHolder<MultiheadAttentionImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  MultiheadAttention(const MultiheadAttentionOptions& o, LAZULI_LOC)  // NOLINT: implicit
      : ModuleHolder(std::make_shared<MultiheadAttentionImpl>(o.embed_dim_, o.num_heads_,
                                                              o.options_, loc)) {}
};
// Of an encoder's and a decoder's layer.
class TransformerLayerOptions {
 public:
  TransformerLayerOptions(std::int64_t d_model, std::int64_t nhead)
      : d_model_(d_model), nhead_(nhead) {}
  TransformerLayerOptions& dim_feedforward(std::int64_t v) {
    return options_.dim_feedforward = v, *this;
  }
  TransformerLayerOptions& dropout(double v) { return options_.dropout = v, *this; }
  TransformerLayerOptions& activation(lazuli::nn::init::Nonlinearity) { return *this; }  // kReLU
  TransformerLayerOptions& activation(GELUName) {
    options_.activation = [](const Tensor& x, SourceLocation loc) { return gelu(x, "none", loc); };
    return *this;
  }

 private:
  template <class L>
  friend class TransformerLayerHolder;
  friend class TransformerImpl;
  std::int64_t d_model_, nhead_;
  lazuli::nn::TransformerLayerOptions options_;
};
template <class L>
class TransformerLayerHolder : public ModuleHolder<L> {
 public:
  using ModuleHolder<L>::ModuleHolder;
  TransformerLayerHolder(const TransformerLayerOptions& o, LAZULI_LOC)  // NOLINT: implicit
      : ModuleHolder<L>(std::make_shared<L>(o.d_model_, o.nhead_, o.options_, loc)) {}
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;
using TransformerEncoderLayerImpl = lazuli::nn::TransformerEncoderLayer;
using TransformerDecoderLayerImpl = lazuli::nn::TransformerDecoderLayer;
using TransformerEncoderLayer = TransformerLayerHolder<TransformerEncoderLayerImpl>;
using TransformerDecoderLayer = TransformerLayerHolder<TransformerDecoderLayerImpl>;
// A layer's options, and how many there are.
struct TransformerStackOptions {
  TransformerStackOptions(const TransformerLayerOptions& options, std::int64_t layers)
      : layer(options), num_layers(layers) {}
  TransformerLayerOptions layer;
  std::int64_t num_layers;
};
using TransformerEncoderOptions = TransformerStackOptions;
using TransformerDecoderOptions = TransformerStackOptions;
// A stack of so many copies of a layer.
template <class Stack, class LayerHolder>
class TransformerStackHolder : public ModuleHolder<Stack> {
 public:
  using ModuleHolder<Stack>::ModuleHolder;
  TransformerStackHolder(const LayerHolder& layer, std::int64_t num_layers, LAZULI_LOC)
      : ModuleHolder<Stack>(std::make_shared<Stack>(*layer, num_layers, loc)) {}
  explicit TransformerStackHolder(const TransformerStackOptions& o, LAZULI_LOC)
      : TransformerStackHolder(LayerHolder(o.layer, loc), o.num_layers, loc) {}
};
using TransformerEncoderImpl = lazuli::nn::TransformerEncoder;
using TransformerDecoderImpl = lazuli::nn::TransformerDecoder;
using TransformerEncoder = TransformerStackHolder<TransformerEncoderImpl, TransformerEncoderLayer>;
using TransformerDecoder = TransformerStackHolder<TransformerDecoderImpl, TransformerDecoderLayer>;

class TransformerOptions {
 public:
  explicit TransformerOptions(std::int64_t d_model = 512, std::int64_t nhead = 8)
      : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(std::int64_t d_model, std::int64_t nhead, std::int64_t num_encoder_layers,
                     std::int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  TransformerOptions& d_model(std::int64_t v) { return d_model_ = v, *this; }
  TransformerOptions& nhead(std::int64_t v) { return nhead_ = v, *this; }
  TransformerOptions& num_encoder_layers(std::int64_t v) { return num_encoder_layers_ = v, *this; }
  TransformerOptions& num_decoder_layers(std::int64_t v) { return num_decoder_layers_ = v, *this; }
  TransformerOptions& dim_feedforward(std::int64_t v) { return layer_.dim_feedforward(v), *this; }
  TransformerOptions& dropout(double v) { return layer_.dropout(v), *this; }
  template <class A>
  TransformerOptions& activation(A v) {
    return layer_.activation(v), *this;
  }
  std::int64_t d_model() const { return d_model_; }
  std::int64_t nhead() const { return nhead_; }
  std::int64_t num_encoder_layers() const { return num_encoder_layers_; }
  std::int64_t num_decoder_layers() const { return num_decoder_layers_; }

 private:
  friend class TransformerImpl;
  TransformerLayerOptions layer_{0, 0};  // whose sizes are those here
  std::int64_t d_model_, nhead_, num_encoder_layers_ = 6, num_decoder_layers_ = 6;
};
// An encoder, and a decoder that attends to what it gives; both end with a LayerNorm.
class TransformerImpl : public Module {
 public:
  explicit TransformerImpl(const TransformerOptions& o = TransformerOptions(), LAZULI_LOC)
      : options(o),
        encoder(EncoderLayerImpl(o.d_model_, o.nhead_, o.layer_.options_, loc),
                o.num_encoder_layers_, loc),
        decoder(DecoderLayerImpl(o.d_model_, o.nhead_, o.layer_.options_, loc),
                o.num_decoder_layers_, loc),
        encoder_norm(Dims{o.d_model_}, {}, loc),
        decoder_norm(Dims{o.d_model_}, {}, loc) {
    encoder.register_module("norm", encoder_norm, loc);
    decoder.register_module("norm", decoder_norm, loc);
    Base::register_module("encoder", encoder, loc);
    Base::register_module("decoder", decoder, loc);
    for (const Tensor& p : parameters()) {
      if (p.dim() > 1) lazuli::nn::init::xavier_uniform_(p, 1, {}, loc);
    }
  }
  TransformerImpl(std::int64_t d_model, std::int64_t nhead, LAZULI_LOC)
      : TransformerImpl(TransformerOptions(d_model, nhead), loc) {}
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, LAZULI_LOC) const {
    const Tensor memory =
        encoder_norm(encoder.forward(src, src_mask, src_key_padding_mask, loc), loc);
    return decoder_norm(decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                        memory_key_padding_mask, loc),
                        loc);
  }
  // -infinity above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(std::int64_t size, LAZULI_LOC) {
    return triu(full({size, size}, -std::numeric_limits<double>::infinity(), default_dtype(),
                     Device(), loc),
                1, loc);
  }
  const TransformerOptions options;
  lazuli::nn::TransformerEncoder encoder;
  lazuli::nn::TransformerDecoder decoder;
  lazuli::nn::LayerNorm encoder_norm, decoder_norm;

 private:
  using Base = lazuli::nn::Module;
  using EncoderLayerImpl = lazuli::nn::TransformerEncoderLayer;
  using DecoderLayerImpl = lazuli::nn::TransformerDecoderLayer;
};
class Transformer : public LayerHolder<TransformerImpl> {
 public:
  using LayerHolder::LayerHolder;
  explicit Transformer(const TransformerOptions& o, LAZULI_LOC)
      : LayerHolder(std::make_shared<TransformerImpl>(o, loc)) {}
  Transformer(std::int64_t d_model, std::int64_t nhead, LAZULI_LOC)
      : Transformer(TransformerOptions(d_model, nhead), loc) {}
};

}  // namespace lazuli::torch_names::nn
