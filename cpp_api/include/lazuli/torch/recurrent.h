// Recurrent layers, in LibTorch's words.
#pragma once

#include <cstdint>
#include <memory>

#include "lazuli/nn/recurrent.h"
#include "lazuli/torch/nn.h"

namespace lazuli::torch_names::nn {

// The options of a cell; each setter returns the options.
template <class Self, class Options>
class CellOptionsOf {
 public:
  CellOptionsOf(std::int64_t input_size, std::int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  Self& bias(bool v) { return options_.bias = v, self(); }
  std::int64_t input_size() const { return input_size_; }
  std::int64_t hidden_size() const { return hidden_size_; }
  const Options& options() const { return options_; }

 protected:
  Self& self() { return static_cast<Self&>(*this); }
  std::int64_t input_size_, hidden_size_;
  Options options_;
};
// The options of a layer.
template <class Self, class Options>
class RecurrentOptionsOf : public CellOptionsOf<Self, Options> {
 public:
  using CellOptionsOf<Self, Options>::CellOptionsOf;
  Self& num_layers(std::int64_t v) { return this->options_.num_layers = v, this->self(); }
  Self& batch_first(bool v) { return this->options_.batch_first = v, this->self(); }
  Self& dropout(double v) { return this->options_.dropout = v, this->self(); }
  Self& bidirectional(bool v) { return this->options_.bidirectional = v, this->self(); }
};
class RNNOptions : public RecurrentOptionsOf<RNNOptions, lazuli::nn::RNNOptions> {
 public:
  using RecurrentOptionsOf::RecurrentOptionsOf;
  RNNOptions& nonlinearity(lazuli::nn::init::Nonlinearity v) {
    return options_.nonlinearity = v, *this;
  }
};
class GRUOptions : public RecurrentOptionsOf<GRUOptions, lazuli::nn::RecurrentOptions> {
 public:
  using RecurrentOptionsOf::RecurrentOptionsOf;
};
class LSTMOptions : public RecurrentOptionsOf<LSTMOptions, lazuli::nn::LSTMOptions> {
 public:
  using RecurrentOptionsOf::RecurrentOptionsOf;
  LSTMOptions& proj_size(std::int64_t v) { return options_.proj_size = v, *this; }
};

class RNNCellOptions : public CellOptionsOf<RNNCellOptions, lazuli::nn::RNNCellOptions> {
 public:
  using CellOptionsOf::CellOptionsOf;
  RNNCellOptions& nonlinearity(lazuli::nn::init::Nonlinearity v) {
    return options_.nonlinearity = v, *this;
  }
};
class GRUCellOptions : public CellOptionsOf<GRUCellOptions, lazuli::nn::CellOptions> {
 public:
  using CellOptionsOf::CellOptionsOf;
};
class LSTMCellOptions : public CellOptionsOf<LSTMCellOptions, lazuli::nn::CellOptions> {
 public:
  using CellOptionsOf::CellOptionsOf;
};

template <class Impl, class Options>
class RecurrentHolder : public ModuleHolder<Impl> {
 public:
  using ModuleHolder<Impl>::ModuleHolder;
  RecurrentHolder(const Options& o, LAZULI_LOC)  // NOLINT(google-explicit-constructor)
      : ModuleHolder<Impl>(
            std::make_shared<Impl>(o.input_size(), o.hidden_size(), o.options(), loc)) {}
};
using RNNImpl = lazuli::nn::RNN;
using GRUImpl = lazuli::nn::GRU;
using LSTMImpl = lazuli::nn::LSTM;
using RNNCellImpl = lazuli::nn::RNNCell;
using GRUCellImpl = lazuli::nn::GRUCell;
using LSTMCellImpl = lazuli::nn::LSTMCell;
using RNN = RecurrentHolder<RNNImpl, RNNOptions>;
using GRU = RecurrentHolder<GRUImpl, GRUOptions>;
using LSTM = RecurrentHolder<LSTMImpl, LSTMOptions>;
using RNNCell = RecurrentHolder<RNNCellImpl, RNNCellOptions>;
using GRUCell = RecurrentHolder<GRUCellImpl, GRUCellOptions>;
using LSTMCell = RecurrentHolder<LSTMCellImpl, LSTMCellOptions>;

}  // namespace lazuli::torch_names::nn
