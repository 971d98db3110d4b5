"""The text of tensors, as PyTorch prints it, with the options of set_printoptions()."""

import contextlib
import dataclasses
import math
import numbers

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np


@dataclasses.dataclass
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_options = _Options()
_PROFILES = {"default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
             "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
             "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80}}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None,
                     sci_mode=None):
    """How tensors are printed from now on; what is None stays, but for sci_mode.

    precision: digits after the point. threshold: more elements than this are summarised by
    edgeitems at each end of a dim. linewidth: characters of a line. sci_mode: numbers as
    1.0000e-05, or not; None: where their range asks for it. profile: "default", "short" or "full"
    sets all the others, before they are taken.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth}
    for name, value in given.items():
        # math.inf: no limit.
        takes = numbers.Real if name in ("threshold", "linewidth") else numbers.Integral
        if value is not None and not isinstance(value, takes):
            raise _C.WrongArgumentError(
                f"set_printoptions: {name} must be a number, not {type(value).__name__}")
    chosen = {**_PROFILES.get(profile, {}),
              **{name: value for name, value in given.items() if value is not None}}
    for name, value in {**chosen, "sci_mode": sci_mode}.items():
        setattr(_options, name, value)


def get_printoptions():
    """The options as a dict, which set_printoptions() takes."""
    return dataclasses.asdict(_options)


@contextlib.contextmanager
def printoptions(**options):
    """set_printoptions() until the end of a `with`."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


class _Column:
    """The format of the elements of an array: all get the width of the widest."""

    def __init__(self, values):
        self.real = values.dtype.kind == "f"
        self.whole, self.scientific = True, False
        if not self.real:
            self.width = max((len(str(value)) for value in values.reshape(-1).tolist()), default=1)
            return
        finite = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if finite.size == 0:
            self.width = 1
            return
        self.whole = bool(np.all(finite == np.ceil(finite)))
        least, most = np.abs(finite).min(), np.abs(finite).max()
        self.scientific = _options.sci_mode
        if self.scientific is None:
            self.scientific = bool(most / least > 1000 or most > 1e8 or least < 1e-4)
        form = self._form()
        self.width = max(len(form.format(value)) for value in finite.tolist()) + (
            self.whole and not self.scientific)

    def _form(self):
        if self.scientific:
            return f"{{:.{_options.precision}e}}"
        return "{:.0f}" if self.whole else f"{{:.{_options.precision}f}}"

    def text(self, value):
        if not self.real:
            written = str(value)
        else:
            written = self._form().format(value)
            if self.whole and not self.scientific and math.isfinite(value):
                written += "."
        return written.rjust(self.width)


class Cells:
    """The format of elements of any dtype; the parts of complex numbers have one column each."""

    def __init__(self, values):
        self.columns = [_Column(part) for part in ((values.real, values.imag)
                                                   if values.dtype.kind == "c" else (values,))]
        # With ", ", and a "j".
        self.length = sum(column.width for column in self.columns) + 1 + len(self.columns)

    def text(self, value):
        if len(self.columns) == 1:
            return self.columns[0].text(value)
        real, imaginary = (self.columns[0].text(value.real),
                           (self.columns[1].text(value.imag) + "j").lstrip())
        return real + ("" if imaginary[0] in "+-" else "+") + imaginary


def edges(values):
    """The elements that a summary shows."""
    n = _options.edgeitems
    for dim in range(values.ndim):
        if values.shape[dim] > 2 * n:
            values = np.take(values, [*range(n), *range(values.shape[dim] - n, values.shape[dim])],
                             dim)
    return values


def _nested(values, cells, columns, summarised):
    """The elements in brackets; the first bracket is in this column."""
    n = _options.edgeitems
    cut = summarised and (values.shape[0] > 2 * n or (values.ndim == 1 and n == 0))
    if values.ndim > 1:
        rows = [*values[:n], None, *values[len(values) - n:]] if cut else values
        parts = ["..." if row is None else _nested(row, cells, columns + 1, summarised)
                 for row in rows]
        return "[" + ("," + "\n" * (values.ndim - 1) + " " * (columns + 1)).join(parts) + "]"
    if cut and n == 0:
        parts = ["..."]
    else:
        shown = [cells.text(value) for value in (edges(values) if cut else values).tolist()]
        parts = [*shown[:n], " ...", *shown[n:]] if cut else shown
    fits = max(1, (_options.linewidth - columns) // cells.length)
    lines = [", ".join(parts[i:i + fits]) for i in range(0, len(parts), fits)]
    return "[" + (",\n" + " " * (columns + 1)).join(lines) + "]"


def elements(tensor):
    """The elements as an array that Python can print: floats that NumPy lacks become f32."""
    tensor = tensor.detach()
    known = (not tensor.dtype.is_floating_point or
             tensor.dtype in (_C.float16, _C.float32, _C.float64))
    return (tensor if known else tensor.to(_C.float32)).numpy()


def _notes(tensor):
    """The notes after the elements, such as the dtype."""
    if tensor.device != _C.Device():
        yield f"device='{tensor.device}'"
    if tensor.numel() == 0:
        if tensor.ndim != 1:
            yield f"size={tuple(tensor.shape)}"
        if tensor.dtype != _C.get_default_dtype():
            yield f"dtype={tensor.dtype!r}"
    else:
        if not _options.edgeitems:
            yield f"size={tuple(tensor.shape)}"
        default = _C.get_default_dtype()
        if tensor.dtype not in (default, _C.complex128 if default == _C.float64 else _C.complex64,
                                _C.int64, _C.bool):
            yield f"dtype={tensor.dtype!r}"
    if not tensor.is_leaf:
        yield f"grad_fn=<{_C._grad_fn(tensor).name()}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"


def text_of(tensor):
    """tensor(...) as PyTorch prints it; computes the elements, which syncs."""
    prefix = "tensor("
    values = elements(tensor)
    if values.size == 0:
        text = prefix + "[]"
    else:
        summarised = values.size > _options.threshold
        cells = Cells(edges(values) if summarised else values)
        text = prefix + (cells.text(values.item()) if values.ndim == 0
                         else _nested(values, cells, len(prefix), summarised))
    length = len(text) - text.rfind("\n") + 1  # of the last line
    for note in _notes(tensor):
        if length + len(note) + 2 > _options.linewidth:
            text += ",\n" + " " * len(prefix) + note
            length = len(prefix) + len(note)
        else:
            text += ", " + note
            length += len(note) + 2
    return text + ")"


def _parameter(self):
    return "Parameter containing:\n" + text_of(self)


def _format(self, spec):
    if self.ndim == 0 and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


Tensor.__repr__ = text_of
Tensor.__format__ = _format
_C.nn.Parameter.__repr__ = _parameter
