// Recurrent layers and their cells. Sequences are [T, B, I] - or [B, T, I] where batch_first says so -
// with T steps of B sequences of I elements, or [T, I] for one sequence. Parameters have PyTorch's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "lazuli/nn/init.h"
#include "lazuli/nn/module.h"
#include "lazuli/nn/packed_sequence.h"

namespace lazuli::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // between the layers, in training
  bool bidirectional = false;
};
struct RNNOptions : RecurrentOptions {
  init::Nonlinearity nonlinearity = init::Nonlinearity::kTanh;  // or kReLU
};
struct LSTMOptions : RecurrentOptions {
  std::int64_t proj_size = 0;  // elements that the hidden state is projected to; 0: it is not
};

using utils::rnn::PackedSequence;

// What the layers have in common: their parameters, drawn from a uniform distribution.
class LAZULI_API RecurrentLayer : public Module {
 public:
  // Per layer and direction: weight_ih, weight_hh, with biases bias_ih and bias_hh, with a projection
  // weight_hr. These are also their names, followed by "_l0" or "_l0_reverse", "_l1", ...
  const std::vector<Parameter>& weights() const { return weights_; }
  // Draws all weights anew.
  void reset_parameters(LAZULI_LOC);

 protected:
  // Throws Error(kInvalidArgument) for sizes that are not positive.
  RecurrentLayer(const char* kind, std::int64_t gates, std::int64_t input_size,
                 std::int64_t hidden_size, const RecurrentOptions& options, std::int64_t proj_size,
                 SourceLocation loc);
  // x with a batch of one sequence if it has none.
  Tensor Batched(const Tensor& x) const;
  // The state before the first step: as given, with a batch of one if x has none; else zeros.
  Tensor FirstState(const Tensor& x, const Tensor& given, std::int64_t size) const;
  // As the layer gives its results for x: without a batch if x has none.
  Tensor Output(const Tensor& x, const Tensor& output) const;
  Tensor LastState(const Tensor& x, const Tensor& state) const;
  std::vector<Tensor> Flat() const { return {weights_.begin(), weights_.end()}; }

  std::int64_t hidden_size_, state_size_;
  RecurrentOptions options_;
  std::vector<Parameter> weights_;
};

// tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu (Elman, 1990).
class LAZULI_API RNN : public RecurrentLayer {
 public:
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options = {},
      LAZULI_LOC);
  // The hidden states [T, B, directions H] of the last layer, and the last ones of all layers [layers
  // directions, B, H]; hx are the first ones, 0 unless they are given. With lengths [B] a sequence ends
  // after so many steps: its state stays, and its hidden states are 0.
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& hx = {},
                                     const Tensor& lengths = {}, LAZULI_LOC) const;
  std::tuple<Tensor, Tensor> operator()(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const {
    return forward(x, hx, {}, loc);
  }
  // Of packed sequences. The states of hx and of the result are in the order of the batch.
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& x,
                                                               const Tensor& hx = {},
                                                               LAZULI_LOC) const;

 private:
  init::Nonlinearity nonlinearity_;
};

// Gated recurrent units (Cho et al., 2014).
class LAZULI_API GRU : public RecurrentLayer {
 public:
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {},
      LAZULI_LOC);
  // As RNN::forward().
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& hx = {},
                                     const Tensor& lengths = {}, LAZULI_LOC) const;
  std::tuple<Tensor, Tensor> operator()(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const {
    return forward(x, hx, {}, loc);
  }
  // As RNN::forward_with_packed_input().
  std::tuple<PackedSequence, Tensor> forward_with_packed_input(const PackedSequence& x,
                                                               const Tensor& hx = {},
                                                               LAZULI_LOC) const;
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997). Its state is (hidden state, cell state).
class LAZULI_API LSTM : public RecurrentLayer {
 public:
  using State = std::tuple<Tensor, Tensor>;
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options = {},
       LAZULI_LOC);
  // As RNN::forward().
  std::tuple<Tensor, State> forward(const Tensor& x, const std::optional<State>& hx = {},
                                    const Tensor& lengths = {}, LAZULI_LOC) const;
  std::tuple<Tensor, State> operator()(const Tensor& x, const std::optional<State>& hx = {},
                                       LAZULI_LOC) const {
    return forward(x, hx, {}, loc);
  }
  // As RNN::forward_with_packed_input().
  std::tuple<PackedSequence, State> forward_with_packed_input(const PackedSequence& x,
                                                              const std::optional<State>& hx = {},
                                                              LAZULI_LOC) const;
};

// The weights of a cell, which takes one step of a batch [B, I] or of one sequence [I].
class LAZULI_API RecurrentCell : public Module {
 public:
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;  // the biases may be undefined

 protected:
  RecurrentCell(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size, bool bias,
                SourceLocation loc);
  Tensor StateOr0(const Tensor& x, const Tensor& given) const;
};

struct RNNCellOptions {
  bool bias = true;
  init::Nonlinearity nonlinearity = init::Nonlinearity::kTanh;  // or kReLU
};
class LAZULI_API RNNCell : public RecurrentCell {
 public:
  RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options = {},
          LAZULI_LOC);
  Tensor forward(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const;
  Tensor operator()(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const {
    return forward(x, hx, loc);
  }

 private:
  init::Nonlinearity nonlinearity_;
};

struct CellOptions {
  bool bias = true;
};
class LAZULI_API GRUCell : public RecurrentCell {
 public:
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, const CellOptions& options = {},
          LAZULI_LOC);
  Tensor forward(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const;
  Tensor operator()(const Tensor& x, const Tensor& hx = {}, LAZULI_LOC) const {
    return forward(x, hx, loc);
  }
};

class LAZULI_API LSTMCell : public RecurrentCell {
 public:
  using State = LSTM::State;
  LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const CellOptions& options = {},
           LAZULI_LOC);
  State forward(const Tensor& x, const std::optional<State>& hx = {}, LAZULI_LOC) const;
  State operator()(const Tensor& x, const std::optional<State>& hx = {}, LAZULI_LOC) const {
    return forward(x, hx, loc);
  }
};

}  // namespace lazuli::nn
