"""Recurrent networks: layers over sequences, and their cells, which take one step."""

import math
import warnings

from lazuli import _C
from lazuli._C.nn import Module, Parameter, init
from lazuli.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class Cell(Module):
    """The base of cells: weights for the input and the hidden state, for each gate."""

    _gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        if hidden_size <= 0:
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: hidden_size must be greater than zero")
        self.input_size, self.hidden_size, made = (input_size, hidden_size,
                                                   {"device": device, "dtype": dtype})
        rows = self._gates * hidden_size
        self.weight_ih, self.weight_hh = (Parameter(_C.empty((rows, columns), **made))
                                          for columns in (input_size, hidden_size))
        self.bias_ih, self.bias_hh = (Parameter(_C.empty(rows, **made)) if bias else None
                                      for _ in range(2))
        self.bias = bias
        self.reset_parameters()

    def reset_parameters(self):
        """Draws new values for all weights."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _checked(self, x, hidden, name):
        if x.dim() not in (1, 2):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {x.dim()}D instead")
        if hidden is not None and hidden.dim() not in (1, 2):
            raise _C.InvalidArgumentError(f"{type(self).__name__}: Expected {name} to be 1D or 2D, "
                                          f"got {hidden.dim()}D instead")
        if x.shape[-1] != self.input_size:
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: input has inconsistent input_size: got {x.shape[-1]}, "
                f"expected {self.input_size}")
        rows = x.shape[0] if x.dim() == 2 else None
        if hidden is None:
            return _C.zeros((self.hidden_size,) if rows is None else (rows, self.hidden_size),
                            dtype=x.dtype)
        if (hidden.shape[-1] != self.hidden_size or
                (hidden.dim() == 2 and rows is not None and hidden.shape[0] != rows)):
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: {name} {tuple(hidden.shape)} does not go with input "
                f"{tuple(x.shape)} and hidden_size {self.hidden_size}")
        return hidden

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(Cell):
    """tanh or relu of a linear function of input and hidden state."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None,
                 dtype=None):
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, x, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise _C.InvalidArgumentError(f"RNNCell: Unknown nonlinearity: {self.nonlinearity}")
        step = _C.rnn_tanh_cell if self.nonlinearity == "tanh" else _C.rnn_relu_cell
        return step(x, self._checked(x, hx, "hidden"), *self._weights())

    def extra_repr(self):
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}"
                                       if self.nonlinearity != "tanh" else "")


class GRUCell(Cell):
    """A gated recurrent unit."""

    _gates = 3

    def forward(self, x, hx=None):
        return _C.gru_cell(x, self._checked(x, hx, "hidden"), *self._weights())


class LSTMCell(Cell):
    """Long short-term memory: takes and returns a hidden state and a cell state."""

    _gates = 4

    def forward(self, x, hx=None):
        hidden, cell = (None, None) if hx is None else hx
        states = [self._checked(x, hidden, "hx[0]"), self._checked(x, cell, "hx[1]")]
        return tuple(_C.lstm_cell(x, states, *self._weights()))


class RNNBase(Module):
    """Recurrent layers over sequences of I elements per step, with a hidden state of H elements.

    forward(input, hx=None) takes [T, B, I] ([B, T, I] with batch_first), [T, I] of one sequence, or
    a PackedSequence, and gives the last layer's hidden states in the same form, and the last states
    of all layers and directions. Without hx the first states are 0. mode: "LSTM", "GRU", "RNN_TANH"
    or "RNN_RELU".
    """

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        self._check_arguments(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                              proj_size)
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        if dropout > 0 and num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so "
                          f"non-zero dropout expects num_layers greater than 1, but got dropout="
                          f"{dropout} and num_layers={num_layers}", stacklevel=3)
        rows, directions = _GATES[mode] * hidden_size, 2 if bidirectional else 1
        hidden = proj_size or hidden_size
        self._all_weights = []
        for layer in range(num_layers):
            columns = input_size if layer == 0 else directions * hidden
            shapes = {"weight_ih": (rows, columns), "weight_hh": (rows, hidden)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:directions]:
                names = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                self._all_weights.append(list(names))
                for name, shape in names.items():
                    setattr(self, name, Parameter(_C.empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @staticmethod
    def _check_arguments(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         proj_size):
        kind = mode.split("_", maxsplit=1)[0]

        def refuse(text):
            raise _C.InvalidArgumentError(f"{kind}: {text}")

        if mode not in _GATES:
            refuse(f"Unrecognized RNN mode: {mode}")
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        for given, wanted in (({"bias": bias, "batch_first": batch_first}, bool), (sizes, int)):
            for name, value in given.items():
                if not isinstance(value, wanted):
                    raise TypeError(f"{kind}: {name} should be of type {wanted.__name__}, got: "
                                    f"{type(value).__name__}")
        if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not (
                0 <= dropout <= 1):
            refuse("dropout should be a number in range [0, 1] representing the probability of an "
                   "element being zeroed")
        for name, size in sizes.items():
            if size <= 0:
                refuse(f"{name} must be greater than zero")
        if proj_size < 0:
            refuse("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            refuse("proj_size has to be smaller than hidden_size")

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Does nothing: weights need not lie beside each other."""

    reset_parameters = Cell.reset_parameters

    @property
    def _kind(self):
        """The mode, which LSTM and GRU do not read."""
        if self.mode not in _GATES:
            raise _C.InvalidArgumentError(
                f"{type(self).__name__}: Unrecognized RNN mode: {self.mode}")
        return self.mode

    def _states(self):
        """The name and number of elements of each state."""
        hidden = self.proj_size if self.proj_size > 0 else self.hidden_size
        if self._kind != "LSTM":
            return [("hidden", hidden)]
        return [("hidden[0]", hidden), ("hidden[1]", self.hidden_size)]

    def _cells(self):
        return self.num_layers * (2 if self.bidirectional else 1)

    def get_expected_hidden_size(self, input, batch_sizes=None):  # noqa: A002
        """The dims of the hidden state for the input, or for a packed one of these batch sizes."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.shape[
            0 if self.batch_first else 1]
        return (self._cells(), batch, self._states()[0][1])

    def _checked_input(self, x):
        kind = type(self).__name__
        if x.dim() not in (2, 3):
            raise _C.InvalidArgumentError(
                f"{kind}: Expected input to be 2D or 3D, got {x.dim()}D instead")
        weight = self.weight_ih_l0
        if x.dtype != weight.dtype:
            raise _C.InvalidArgumentError(
                f"{kind}: RNN input dtype ({x.dtype}) does not match weight dtype "
                f"({weight.dtype}). Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({x.dtype})")
        return x

    def _first_states(self, x, batch, hx, batched):
        """The states [layers and directions, batch, size] before the first step."""
        kind, wanted = type(self).__name__, self._states()
        dims = [(self._cells(), batch, size) for _, size in wanted]
        if hx is None:
            return [_C.zeros(d, dtype=x.dtype, device=x.device) for d in dims]
        states = [hx] if self._kind != "LSTM" else list(hx)
        if len(states) != len(wanted):
            raise _C.InvalidArgumentError(f"{kind}: expected {len(wanted)} hidden states, got "
                                          f"{len(states)}")
        ranks = [f"{state.dim()}-D" for state in states]
        if any(state.dim() != (3 if batched else 2) for state in states):
            what = "hx" if len(states) == 1 else "hx and cx"
            got = ranks[0] + " tensor" if len(ranks) == 1 else f"({', '.join(ranks)}) tensors"
            raise _C.InvalidArgumentError(
                f"{kind}: For {'batched 3' if batched else 'unbatched 2'}-D input, {what} should "
                f"also be {3 if batched else 2}-D but got {got}")
        if not batched:
            states = [state.unsqueeze(1) for state in states]
        for state, (name, _), d in zip(states, wanted, dims, strict=True):
            if tuple(state.shape) != d:
                raise _C.InvalidArgumentError(
                    f"{kind}: Expected {name} size {d}, got {list(state.shape)}")
        return states

    def _run(self, x, states, batch_first, lengths=None):
        hx = states if self._kind == "LSTM" else states[0]
        output, *last = getattr(_C, self._kind.lower())(
            x, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional, batch_first, lengths=lengths)
        return output, last

    def _given(self, last):
        return tuple(last) if self._kind == "LSTM" else last[0]

    def forward(self, input, hx=None):  # noqa: A002
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        x = self._checked_input(input)
        batched, batch_dim = x.dim() == 3, 0 if self.batch_first else 1
        x = x if batched else x.unsqueeze(batch_dim)
        states = self._first_states(x, x.shape[0 if self.batch_first else 1], hx, batched)
        output, last = self._run(x, states, self.batch_first)
        if not batched:
            output, last = output.squeeze(batch_dim), [state.squeeze(1) for state in last]
        return output, self._given(last)

    def _forward_packed(self, packed, hx):
        x, lengths = packed.padded()
        self._checked_input(x)
        if packed.sorted_indices is not None and hx is not None:
            order = packed.sorted_indices
            hx = (tuple(h.index_select(1, order) for h in hx) if self._kind == "LSTM" else
                  hx.index_select(1, order))
        states = self._first_states(x, x.shape[1], hx, batched=True)
        output, last = self._run(x, states, False, lengths)
        if packed.unsorted_indices is not None:
            last = [state.index_select(1, packed.unsorted_indices) for state in last]
        return packed.like(output), self._given(last)

    def extra_repr(self):
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False,
                    "dropout": 0, "bidirectional": False}
        changed = [f"{name}={getattr(self, name)}" for name, value in defaults.items()
                   if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *changed])


class RNN(RNNBase):
    """Layers of tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu (Elman, 1990)."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
                 batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise _C.InvalidArgumentError(f"RNN: Unknown nonlinearity '{nonlinearity}'. Select "
                                          "from 'tanh' or 'relu'.")
        super().__init__(modes[nonlinearity], input_size, hidden_size, num_layers, bias,
                         batch_first, dropout, bidirectional, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Layers of long short-term memory (Hochreiter and Schmidhuber, 1997): two states, (h, c).

    With proj_size the hidden state is a projection to that many elements (Sak et al., 2014).
    """

    _kind = "LSTM"

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, proj_size, device, dtype)


class GRU(RNNBase):
    """Layers of gated recurrent units (Cho et al., 2014)."""

    _kind = "GRU"

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
                 dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout,
                         bidirectional, device=device, dtype=dtype)
