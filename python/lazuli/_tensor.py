"""Making tensors of Python's values, and showing them."""

import numpy as np

from lazuli import _C
from lazuli._C import Tensor


def tensor(data, dtype=None, device=None, requires_grad=False):
    """A tensor of numbers, nested sequences of them, or an array; the data is copied.

    Python's floats become float32, integers int64; an array keeps its dtype.
    """
    if isinstance(data, Tensor):
        made = data.detach().clone()
        if device is not None:
            made = made.to(device)
    else:
        array = np.asarray(data)
        if array.dtype == object:
            raise ValueError("tensor: the data is no array of numbers; do its rows differ in length?")
        if not isinstance(data, (np.ndarray, np.generic)):
            array = array.astype({"f": np.float32, "c": np.complex64}.get(array.dtype.kind, array.dtype))
        made = _C._from_numpy(array, device, True)
    if dtype is not None:
        made = made.to(_C.dtype_of(dtype))
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(array, device=None):
    """A tensor that shares the array's memory where the device can use it: do not change the array afterwards.

    Where it cannot (another device, strided or foreign byte order), the elements are copied.
    """
    return _C._from_numpy(array, device, False)


def _repr(self):
    """As torch writes it; computes the elements, which syncs."""
    notes = []
    if self.dtype == _C.bfloat16 or "float8" in repr(self.dtype):
        values = self.detach().to(_C.float32).numpy()
    else:
        values = self.numpy()
    whole = values.dtype.kind == "f" and np.all(np.isfinite(values)) and np.all(values == np.trunc(values))
    style = {"precision": 4, "floatmode": "maxprec_equal" if whole else "fixed", "threshold": 1000, "edgeitems": 3}
    with np.printoptions(**style):
        text = np.array2string(values, separator=", ", prefix="tensor(")
    if values.dtype.kind == "b":
        text = text.replace(" True", "True") if values.ndim == 0 else text
    if self.dtype not in (_C.float32, _C.int64, _C.bool) or values.size == 0:
        notes.append(f"dtype={self.dtype!r}")
    if self.device != _C.Device():
        notes.append(f"device='{self.device}'")
    if values.size == 0 and values.ndim != 1:
        notes.insert(0, f"size={tuple(self.shape)}")
    if self.requires_grad:
        notes.append("requires_grad=True")
    return f"tensor({', '.join([text] + notes)})"


def _iterate(self):
    if self.ndim == 0:
        raise TypeError("iteration over a tensor of rank 0")
    return (self[i] for i in range(len(self)))


def _format(self, spec):
    return format(self.item(), spec) if spec and self.numel() == 1 else format(repr(self), spec)


def _array(self, dtype=None, copy=None):
    """NumPy's protocol: np.asarray(t) shares memory, np.array(t) copies."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"{self.dtype!r} to {dtype} needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _reduce(self):
    """Pickled and copied by value: elements, dtype, whether it wants a gradient."""
    array = self.detach().to(_C.float32).numpy() if self.dtype == _C.bfloat16 else self.numpy()
    return _restore, (np.array(array), self.dtype, self.requires_grad and type(self) is _C.nn.Parameter)


def _restore(array, dtype, parameter):
    made = tensor(array, dtype=dtype)
    return _C.nn.Parameter(made) if parameter else made


def _dtype(name):
    return _C.dtype_of(name)


_C.DType.__reduce__ = lambda self: (_dtype, (self.name,))
Tensor.__repr__ = _repr
Tensor.__iter__ = _iterate
Tensor.__format__ = _format
Tensor.__array__ = _array
Tensor.__reduce__ = _reduce
Tensor.tolist = lambda self: self.numpy().tolist()
Tensor.tolist.__doc__ = "The elements as nested lists of Python's numbers; syncs."
