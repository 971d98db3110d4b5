"""Cells of recurrent networks: one step, of a batch or of one sample.

The layers that run over sequences are not there yet.
"""

import math

from lazuli import _C
from lazuli._C.nn import Module, Parameter, init
from lazuli.nn import functional as F  # noqa: N812

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


class Cell(Module):
    """Weights of the input and the hidden state, of so many gates."""

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
        """Draws all weights anew."""
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

    def _sums(self, x, hidden):
        return (F.linear(x, self.weight_ih, self.bias_ih),
                F.linear(hidden, self.weight_hh, self.bias_hh))

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
        of_input, of_hidden = self._sums(x, self._checked(x, hx, "hidden"))
        return getattr(of_input + of_hidden, self.nonlinearity)()

    def extra_repr(self):
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}"
                                       if self.nonlinearity != "tanh" else "")


class GRUCell(Cell):
    """A gated recurrent unit."""

    _gates = 3

    def forward(self, x, hx=None):
        hx = self._checked(x, hx, "hidden")
        (reset, update,
         new), (h_reset, h_update, h_new) = (s.chunk(3, -1) for s in self._sums(x, hx))
        update = (update + h_update).sigmoid()
        new = (new + (reset + h_reset).sigmoid() * h_new).tanh()
        return new + update * (hx - new)


class LSTMCell(Cell):
    """Long short-term memory: takes and gives a hidden state and a cell's."""

    _gates = 4

    def forward(self, x, hx=None):
        hidden, cell = (None, None) if hx is None else hx
        hidden, cell = self._checked(x, hidden, "hx[0]"), self._checked(x, cell, "hx[1]")
        of_input, of_hidden = self._sums(x, hidden)
        into, forget, new, out = (of_input + of_hidden).chunk(4, -1)
        cell = forget.sigmoid() * cell + into.sigmoid() * new.tanh()
        return out.sigmoid() * cell.tanh(), cell
