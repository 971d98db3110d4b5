// Recurrent layers as functions: several layers, both directions, dropout between layers; and their
// cells, one step each.
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/recurrent/recurrent.h"
#include "lazy/ops/recurrent/tensor_algebra.h"

namespace lazuli::lazy {
namespace {

// How a layer's function was called.
struct LayerCall {
  Cell cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;

  std::string_view name() const { return Facts(cell).name; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
};

template <class... T>
[[noreturn]] void Refuse(std::string_view name, const T&... text) {
  ThrowRecordError(name, InvalidArgument(text...));
}

// The parameters of one layer in one direction; undefined are those that it lacks.
struct LayerWeights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};

void CheckDims(std::string_view name, std::string_view what, const Tensor& t,
               absl::Span<const int64_t> dims) {
  if (t.shape().dims() == dims) return;
  Refuse(name, "expected ", what, " of the dims [", Join(dims, ", "), "], not ", t.shape());
}

// The next weights in the order of PyTorch's flat list, checked against the layer's input [T, B, n].
LayerWeights TakeWeights(const LayerCall& call, const Tensor& input, bool projected,
                         absl::Span<const Tensor>& params) {
  const auto next = [&](bool wanted) {
    if (!wanted) return Tensor();
    const Tensor t = params.front();
    params.remove_prefix(1);
    return t;
  };
  LayerWeights w;
  w.input = next(true), w.hidden = next(true);
  w.input_bias = next(call.has_biases), w.hidden_bias = next(call.has_biases);
  w.projection = next(projected);
  if (w.input.rank() != 2 || w.input.dim(0) % Gates(call.cell) != 0)
    Refuse(call.name(), "weight_ih must be a matrix of ", Gates(call.cell),
           " rows per element of the hidden state, is ", w.input.shape());
  const int64_t rows = w.input.dim(0), size = rows / Gates(call.cell);
  const int64_t hidden = projected ? w.projection.dim(0) : size;
  if (w.input.dim(1) != input.dim(2))
    Refuse(call.name(), "input.size(-1) must be equal to input_size. Expected ", w.input.dim(1),
           ", got ", input.dim(2));
  CheckDims(call.name(), "weight_hh", w.hidden, {rows, hidden});
  if (call.has_biases) {
    CheckDims(call.name(), "bias_ih", w.input_bias, {rows});
    CheckDims(call.name(), "bias_hh", w.hidden_bias, {rows});
  }
  if (projected) CheckDims(call.name(), "weight_hr", w.projection, {hidden, size});
  for (const Tensor* t : {&w.input, &w.hidden, &w.input_bias, &w.hidden_bias, &w.projection}) {
    if (t->defined() && t->dtype() != input.dtype())
      ThrowRecordError(call.name(), WrongType("input is ", input.shape(), ", a parameter ",
                                              t->shape(), ": convert one with to()"));
  }
  return w;
}

// Both biases of sums that are added are added to those from the input. The hidden bias of a GRU's
// new gate, which the reset gate scales, is apart.
Tensor BiasOfSums(Cell cell, const LayerWeights& w) {
  if (!w.input_bias.defined()) return Tensor();
  if (cell != Cell::kGru) return w.input_bias + w.hidden_bias;
  const int64_t size = w.hidden_bias.dim(0) / 3;
  const Tensor zero = FullConstant(Shape(w.input_bias.dtype(), {size}), 0, w.input_bias.device());
  return w.input_bias + Cat(Tensors{Narrow(w.hidden_bias, 0, 0, 2 * size), zero}, 0);
}

// One layer in one direction, from its first states: its hidden states and its last states.
Tensors Direction(const LayerCall& call, const Tensor& input, const LayerWeights& w,
                  absl::Span<const Tensor> states, const Tensor& lengths, bool reverse) {
  RecurrentOp op{call.cell, reverse, w.projection.defined(), lengths.defined(), false};
  Tensors in{Linear(input, w.input, BiasOfSums(call.cell, w)), w.hidden};
  in.insert(in.end(), states.begin(), states.end());
  if (call.cell == Cell::kGru) {
    const int64_t size = states[0].dim(1);
    in.push_back(w.hidden_bias.defined()
                     ? Narrow(w.hidden_bias, 0, 2 * size, size)
                     : FullConstant(Shape(input.dtype(), {size}), 0, input.device()));
  }
  if (op.projected) in.push_back(w.projection);
  if (op.masked) in.push_back(lengths);
  const std::vector<Operand> operands(in.begin(), in.end());
  op.keeps = WantsGrad(operands);
  Tensors results = RecordAll(op, operands);
  results.resize(1 + Facts(call.cell).states);
  return results;
}

void CheckCall(const LayerCall& call, const Tensor& input, absl::Span<const Tensor> states,
               absl::Span<const Tensor> params, const Tensor& lengths) {
  const std::string_view name = call.name();
  if (input.rank() != 3)
    Refuse(name, "input must have 3 dimensions, got ", input.rank(), ": ", input.shape());
  if (!IsFloat(input.dtype()))
    ThrowRecordError(name, WrongType("expected a floating point input, not ", input.shape()));
  const int64_t steps = input.dim(call.batch_first ? 1 : 0);
  const int64_t batch = input.dim(call.batch_first ? 0 : 1);
  if (steps == 0) Refuse(name, "Expected sequence length to be larger than 0 in RNN");
  if (call.num_layers < 1) Refuse(name, "num_layers must be 1 or more, is ", call.num_layers);
  if (states.size() != Facts(call.cell).states)
    Refuse(name, "expects ", Facts(call.cell).states, " hidden states, got ", states.size());
  const auto cells = static_cast<std::size_t>(call.num_layers * call.directions());
  const std::size_t each = params.size() / cells, least = call.has_biases ? 4 : 2;
  const std::size_t most = call.cell == Cell::kLstm ? least + 1 : least;
  if (params.size() % cells != 0 || each < least || each > most)
    Refuse(name, "got ", params.size(), " parameters for ", cells, " layers and directions of ",
           least, " each");
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].rank() != 3 || states[i].dim(0) != static_cast<int64_t>(cells) ||
        states[i].dim(1) != batch)
      Refuse(name, "expected hidden[", i, "] of the dims [", cells, ", ", batch,
             ", hidden size], got ", states[i].shape());
    if (states[i].dtype() != input.dtype())
      ThrowRecordError(name, WrongType("input is ", input.shape(), ", hidden[", i, "] ",
                                       states[i].shape(), ": convert one with to()"));
  }
  if (!lengths.defined()) return;
  if (!IsIntegral(lengths.dtype()))
    ThrowRecordError(name, WrongType("lengths must be integers, are ", lengths.shape()));
  CheckDims(name, "lengths", lengths, {batch});
}

// The results of all layers: output, and the last states of each layer and direction.
Tensors Layers(const LayerCall& call, const Tensor& in, absl::Span<const Tensor> states,
               absl::Span<const Tensor> params, const Tensor& given_lengths) {
  CheckCall(call, in, states, params, given_lengths);
  const auto cells = static_cast<std::size_t>(call.num_layers * call.directions());
  const bool projected = params.size() / cells > (call.has_biases ? 4u : 2u);
  const Tensor lengths =
      given_lengths.defined() ? To(Detach(given_lengths), DType::kS64) : given_lengths;
  Tensor x = call.batch_first ? Transpose(in, 0, 1) : in;
  std::vector<Tensors> last(states.size());
  for (int64_t layer = 0; layer < call.num_layers; ++layer) {
    Tensors outputs;
    for (int64_t direction = 0; direction < call.directions(); ++direction) {
      const LayerWeights w = TakeWeights(call, x, projected, params);
      Tensors first;
      for (const Tensor& state : states)
        first.push_back(Select(state, 0, layer * call.directions() + direction));
      const int64_t size = w.input.dim(0) / Gates(call.cell);
      CheckDims(call.name(), "hidden[0] of a layer", first[0], {x.dim(1), w.hidden.dim(1)});
      if (first.size() == 2)
        CheckDims(call.name(), "hidden[1] of a layer", first[1], {x.dim(1), size});
      const Tensors results = Direction(call, x, w, first, lengths, direction == 1);
      outputs.push_back(results[0]);
      for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(results[i + 1]);
    }
    x = outputs.size() == 1 ? outputs[0] : Cat(outputs, 2);
    if (call.train && call.dropout > 0 && layer + 1 < call.num_layers) x = Dropout(x, call.dropout);
  }
  Tensors results{call.batch_first ? Transpose(x, 0, 1) : x};
  for (const Tensors& state : last) results.push_back(Stack(state, 0));
  return results;
}

// The layers of a cell with one state.
std::pair<Tensor, Tensor> OneState(const LayerCall& call, const Tensor& input, const Tensor& hx,
                                   absl::Span<const Tensor> params, const Tensor& lengths) {
  Tensors results = Layers(call, input, absl::MakeConstSpan(&hx, 1), params, lengths);
  return {std::move(results[0]), std::move(results[1])};
}

// A cell's next states; x [B, n] or [n].
CellValues<Tensor> NextStates(Cell cell, const Tensor& x, absl::Span<const Tensor> states,
                              const LayerWeights& w) {
  const std::string name = Str(Facts(cell).name, "_cell");
  if (x.rank() != 1 && x.rank() != 2)
    Refuse(name, "expected input to be 1D or 2D, got ", x.rank(), "D instead");
  if (states.size() != Facts(cell).states)
    Refuse(name, "expects ", Facts(cell).states, " hidden states, got ", states.size());
  if (w.input.rank() != 2 || w.input.dim(0) % Gates(cell) != 0)
    Refuse(name, "w_ih must be a matrix of ", Gates(cell),
           " rows per element of the hidden state, is ", w.input.shape());
  if (x.dim(x.rank() - 1) != w.input.dim(1))
    Refuse(name, "input has inconsistent input_size: got ", x.dim(x.rank() - 1), " expected ",
           w.input.dim(1));
  const int64_t size = w.input.dim(0) / Gates(cell);
  for (const Tensor& state : states) {
    Dims dims = DimsOf(x.shape());
    dims.back() = size;
    CheckDims(name, "a hidden state", state, dims);
  }
  CheckDims(name, "w_hh", w.hidden, {Gates(cell) * size, size});
  return StepOfSums(cell, Linear(x, w.input, w.input_bias),
                    Linear(states[0], w.hidden, w.hidden_bias), states)
      .states;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> Lstm(const Tensor& input, absl::Span<const Tensor> hx,
                                        absl::Span<const Tensor> params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first,
                                        const Tensor& lengths) {
  Tensors results =
      Layers({Cell::kLstm, has_biases, num_layers, dropout, train, bidirectional, batch_first},
             input, hx, params, lengths);
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}

std::pair<Tensor, Tensor> Gru(const Tensor& input, const Tensor& hx,
                              absl::Span<const Tensor> params, bool has_biases, int64_t num_layers,
                              double dropout, bool train, bool bidirectional, bool batch_first,
                              const Tensor& lengths) {
  return OneState({Cell::kGru, has_biases, num_layers, dropout, train, bidirectional, batch_first},
                  input, hx, params, lengths);
}

std::pair<Tensor, Tensor> RnnTanh(const Tensor& input, const Tensor& hx,
                                  absl::Span<const Tensor> params, bool has_biases,
                                  int64_t num_layers, double dropout, bool train,
                                  bool bidirectional, bool batch_first, const Tensor& lengths) {
  return OneState(
      {Cell::kRnnTanh, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input,
      hx, params, lengths);
}

std::pair<Tensor, Tensor> RnnRelu(const Tensor& input, const Tensor& hx,
                                  absl::Span<const Tensor> params, bool has_biases,
                                  int64_t num_layers, double dropout, bool train,
                                  bool bidirectional, bool batch_first, const Tensor& lengths) {
  return OneState(
      {Cell::kRnnRelu, has_biases, num_layers, dropout, train, bidirectional, batch_first}, input,
      hx, params, lengths);
}

Tensor GruCell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
               const Tensor& b_ih, const Tensor& b_hh) {
  return NextStates(Cell::kGru, input, absl::MakeConstSpan(&hx, 1),
                    {w_ih, w_hh, b_ih, b_hh, Tensor()})[0];
}

Tensor RnnTanhCell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   const Tensor& b_ih, const Tensor& b_hh) {
  return NextStates(Cell::kRnnTanh, input, absl::MakeConstSpan(&hx, 1),
                    {w_ih, w_hh, b_ih, b_hh, Tensor()})[0];
}

Tensor RnnReluCell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                   const Tensor& b_ih, const Tensor& b_hh) {
  return NextStates(Cell::kRnnRelu, input, absl::MakeConstSpan(&hx, 1),
                    {w_ih, w_hh, b_ih, b_hh, Tensor()})[0];
}

std::pair<Tensor, Tensor> LstmCell(const Tensor& input, absl::Span<const Tensor> hx,
                                   const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                                   const Tensor& b_hh) {
  const CellValues<Tensor> states =
      NextStates(Cell::kLstm, input, hx, {w_ih, w_hh, b_ih, b_hh, Tensor()});
  return {states[0], states[1]};
}

}  // namespace lazuli::lazy
