#include "lazuli/nn/recurrent.h"

#include <cmath>
#include <utility>

#include "lazuli/internal/fail.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;

void CheckPositive(const std::string& kind, const char* name, std::int64_t value,
                   SourceLocation loc) {
  if (value > 0) return;
  Fail(ErrorCode::kInvalidArgument, kind + ": " + name + " must be greater than zero", loc);
}

void CheckNonlinearity(const char* kind, init::Nonlinearity nonlinearity, SourceLocation loc) {
  if (nonlinearity == init::Nonlinearity::kTanh || nonlinearity == init::Nonlinearity::kReLU)
    return;
  Fail(ErrorCode::kInvalidArgument, std::string(kind) + ": nonlinearity must be kTanh or kReLU",
       loc);
}

// A state of sequences in the order of the pack, or back in the order of the batch.
Tensor Ordered(const Tensor& state, const Tensor& order) {
  return state.defined() && order.defined() ? state.index_select(1, order) : state;
}
LSTM::State Ordered(const LSTM::State& state, const Tensor& order) {
  return {Ordered(std::get<0>(state), order), Ordered(std::get<1>(state), order)};
}

Tensor LengthsOf(const PackedSequence& x) {
  const std::vector<std::int64_t>& lengths = x.lengths();
  return from_data(lengths.data(), kInt64, {static_cast<std::int64_t>(lengths.size())},
                   x.padded().device());
}

// forward() of a layer for packed sequences.
template <class Layer, class State>
std::tuple<PackedSequence, State> ForwardPacked(const Layer& layer, bool batch_first,
                                                const PackedSequence& x, const State& hx,
                                                SourceLocation loc) {
  const SiteScope site(loc);
  const Tensor& padded = x.padded(loc);
  if (padded.dim() != 3) {
    Fail(ErrorCode::kInvalidArgument,
         "a recurrent layer: packed data must have 2 dims, elements and features, not " +
             std::to_string(padded.dim() - 1),
         loc);
  }
  // From the order of dims in the pack to the layer's, and back.
  const auto swapped = [&](const Tensor& steps) {
    return batch_first ? transpose(steps, 0, 1) : steps;
  };
  const auto [output, last] =
      layer.forward(swapped(padded), Ordered(hx, x.sorted_indices()), LengthsOf(x), loc);
  return {x.like(swapped(output)), Ordered(last, x.unsorted_indices())};
}

void DrawUniform(const Tensor& weight, std::int64_t hidden_size) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  init::uniform_(weight, -bound, bound);
}

}  // namespace

RecurrentLayer::RecurrentLayer(const char* kind, std::int64_t gates, std::int64_t input_size,
                               std::int64_t hidden_size, const RecurrentOptions& options,
                               std::int64_t proj_size, SourceLocation loc)
    : hidden_size_(hidden_size),
      state_size_(proj_size > 0 ? proj_size : hidden_size),
      options_(options) {
  const SiteScope site(loc);
  CheckPositive(kind, "hidden_size", hidden_size, loc);
  CheckPositive(kind, "num_layers", options.num_layers, loc);
  if (proj_size < 0 || proj_size >= hidden_size) {
    Fail(ErrorCode::kInvalidArgument,
         std::string(kind) + ": proj_size has to be smaller than hidden_size, and 0 or more", loc);
  }
  const std::int64_t rows = gates * hidden_size, directions = options.bidirectional ? 2 : 1;
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t columns = layer == 0 ? input_size : directions * state_size_;
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const auto add = [&](const std::string& name, const Dims& dims) {
        weights_.push_back(register_parameter(name + suffix, lazuli::empty(dims)));
      };
      add("weight_ih", {rows, columns});
      add("weight_hh", {rows, state_size_});
      if (options.bias) add("bias_ih", {rows});
      if (options.bias) add("bias_hh", {rows});
      if (proj_size > 0) add("weight_hr", {proj_size, hidden_size});
    }
  }
  reset_parameters(loc);
}

void RecurrentLayer::reset_parameters(SourceLocation loc) {
  const SiteScope site(loc);
  for (const Parameter& weight : weights_) DrawUniform(weight, hidden_size_);
}

Tensor RecurrentLayer::Batched(const Tensor& x) const {
  return x.dim() == 2 ? unsqueeze(x, options_.batch_first ? 0 : 1) : x;
}

Tensor RecurrentLayer::FirstState(const Tensor& x, const Tensor& given, std::int64_t size) const {
  if (given.defined()) return x.dim() == 2 ? unsqueeze(given, 1) : given;
  const std::int64_t batch = x.dim() == 2 ? 1 : x.size(options_.batch_first ? 0 : 1);
  const std::int64_t cells = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return zeros({cells, batch, size}, x.dtype(), x.device());
}

Tensor RecurrentLayer::Output(const Tensor& x, const Tensor& output) const {
  return x.dim() == 2 ? squeeze(output, options_.batch_first ? 0 : 1) : output;
}

Tensor RecurrentLayer::LastState(const Tensor& x, const Tensor& state) const {
  return x.dim() == 2 ? squeeze(state, 1) : state;
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options,
         SourceLocation loc)
    : RecurrentLayer("RNN", 1, input_size, hidden_size, options, 0, loc),
      nonlinearity_(options.nonlinearity) {
  CheckNonlinearity("RNN", nonlinearity_, loc);
}

std::tuple<Tensor, Tensor> RNN::forward(const Tensor& x, const Tensor& hx, const Tensor& lengths,
                                        SourceLocation loc) const {
  const SiteScope site(loc);
  auto* run = nonlinearity_ == init::Nonlinearity::kReLU ? &rnn_relu : &rnn_tanh;
  const auto [output, last] = run(Batched(x), FirstState(x, hx, state_size_), Flat(), options_.bias,
                                  options_.num_layers, options_.dropout, is_training(),
                                  options_.bidirectional, options_.batch_first, lengths, loc);
  return {Output(x, output), LastState(x, last)};
}

std::tuple<PackedSequence, Tensor> RNN::forward_with_packed_input(const PackedSequence& x,
                                                                  const Tensor& hx,
                                                                  SourceLocation loc) const {
  return ForwardPacked(*this, options_.batch_first, x, hx, loc);
}

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options,
         SourceLocation loc)
    : RecurrentLayer("GRU", 3, input_size, hidden_size, options, 0, loc) {}

std::tuple<Tensor, Tensor> GRU::forward(const Tensor& x, const Tensor& hx, const Tensor& lengths,
                                        SourceLocation loc) const {
  const SiteScope site(loc);
  const auto [output, last] = gru(Batched(x), FirstState(x, hx, state_size_), Flat(), options_.bias,
                                  options_.num_layers, options_.dropout, is_training(),
                                  options_.bidirectional, options_.batch_first, lengths, loc);
  return {Output(x, output), LastState(x, last)};
}

std::tuple<PackedSequence, Tensor> GRU::forward_with_packed_input(const PackedSequence& x,
                                                                  const Tensor& hx,
                                                                  SourceLocation loc) const {
  return ForwardPacked(*this, options_.batch_first, x, hx, loc);
}

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const LSTMOptions& options,
           SourceLocation loc)
    : RecurrentLayer("LSTM", 4, input_size, hidden_size, options, options.proj_size, loc) {}

std::tuple<Tensor, LSTM::State> LSTM::forward(const Tensor& x, const std::optional<State>& hx,
                                              const Tensor& lengths, SourceLocation loc) const {
  const SiteScope site(loc);
  const State given = hx.value_or(State());
  const auto [output, hidden, cell] =
      lstm(Batched(x),
           {FirstState(x, std::get<0>(given), state_size_),
            FirstState(x, std::get<1>(given), hidden_size_)},
           Flat(), options_.bias, options_.num_layers, options_.dropout, is_training(),
           options_.bidirectional, options_.batch_first, lengths, loc);
  return {Output(x, output), {LastState(x, hidden), LastState(x, cell)}};
}

std::tuple<PackedSequence, LSTM::State> LSTM::forward_with_packed_input(
    const PackedSequence& x, const std::optional<State>& hx, SourceLocation loc) const {
  return ForwardPacked(*this, options_.batch_first, x, hx.value_or(State()), loc);
}

RecurrentCell::RecurrentCell(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size,
                             bool bias, SourceLocation loc) {
  const SiteScope site(loc);
  CheckPositive("a recurrent cell", "hidden_size", hidden_size, loc);
  const std::int64_t rows = gates * hidden_size;
  weight_ih = register_parameter("weight_ih", empty({rows, input_size}));
  weight_hh = register_parameter("weight_hh", empty({rows, hidden_size}));
  if (bias) bias_ih = register_parameter("bias_ih", empty({rows}));
  if (bias) bias_hh = register_parameter("bias_hh", empty({rows}));
  for (const Tensor& weight : parameters()) DrawUniform(weight, hidden_size);
}

Tensor RecurrentCell::StateOr0(const Tensor& x, const Tensor& given) const {
  if (given.defined()) return given;
  const std::int64_t size = weight_hh.size(1);
  const Dims dims = x.dim() == 1 ? Dims{size} : Dims{x.size(0), size};
  return zeros(dims, x.dtype(), x.device());
}

RNNCell::RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options,
                 SourceLocation loc)
    : RecurrentCell(1, input_size, hidden_size, options.bias, loc),
      nonlinearity_(options.nonlinearity) {
  CheckNonlinearity("RNNCell", nonlinearity_, loc);
}

Tensor RNNCell::forward(const Tensor& x, const Tensor& hx, SourceLocation loc) const {
  const SiteScope site(loc);
  auto* step = nonlinearity_ == init::Nonlinearity::kReLU ? &rnn_relu_cell : &rnn_tanh_cell;
  return step(x, StateOr0(x, hx), weight_ih, weight_hh, bias_ih, bias_hh, loc);
}

GRUCell::GRUCell(std::int64_t input_size, std::int64_t hidden_size, const CellOptions& options,
                 SourceLocation loc)
    : RecurrentCell(3, input_size, hidden_size, options.bias, loc) {}

Tensor GRUCell::forward(const Tensor& x, const Tensor& hx, SourceLocation loc) const {
  const SiteScope site(loc);
  return gru_cell(x, StateOr0(x, hx), weight_ih, weight_hh, bias_ih, bias_hh, loc);
}

LSTMCell::LSTMCell(std::int64_t input_size, std::int64_t hidden_size, const CellOptions& options,
                   SourceLocation loc)
    : RecurrentCell(4, input_size, hidden_size, options.bias, loc) {}

LSTMCell::State LSTMCell::forward(const Tensor& x, const std::optional<State>& hx,
                                  SourceLocation loc) const {
  const SiteScope site(loc);
  const State given = hx.value_or(State());
  return lstm_cell(x, {StateOr0(x, std::get<0>(given)), StateOr0(x, std::get<1>(given))}, weight_ih,
                   weight_hh, bias_ih, bias_hh, loc);
}

}  // namespace lazuli::nn
