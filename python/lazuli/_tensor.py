"""Conversion of Python's values to tensors, and of tensors to NumPy's arrays and those of other
libraries."""

import copy
import string

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np


def _mixes(data):
    """Whether nested sequences mix numbers and sequences at one level."""
    rows = [isinstance(v, (list, tuple)) for v in data]
    return ((any(rows) and not all(rows)) or
            any(_mixes(v) for v, is_row in zip(data, rows, strict=True) if is_row))


def _of_large_integers(data, array, dtype):
    """The array of Python's numbers of which integers have more than 64 bits, or 64 without a
    sign."""
    numbers = np.asarray(data, dtype=object)
    kinds = {type(v) for v in numbers.flat}
    for kind in kinds:
        if hasattr(data, "__array__") or not issubclass(kind, (bool, int, float, complex)):
            raise _C.WrongTypeError(
                f"tensor: the data holds {kind.__name__}, which is not a number")
    if dtype is None:
        real = np.float64 if any(issubclass(kind, float) for kind in kinds) else None
        target = np.complex128 if any(issubclass(kind, complex) for kind in kinds) else real
    else:
        target = {"f": np.float64, "c": np.complex128, "b": np.bool_}.get(_kind(dtype))
    if target is not None:
        return numbers.astype(target)
    if dtype is not None and _C.dtype_of(dtype) == _C.uint64 and array.dtype != object:
        return array
    raise _C.InvalidArgumentError("tensor: overflow: an integer of the data does not fit 64 bits "
                                  "with a sign; dtype= may hold it")


def _kind(dtype):
    """NumPy's letter for the kind of a dtype: "f", "c", "b" or "i"."""
    dtype = _C.dtype_of(dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return "f" if dtype.is_floating_point else "c"
    return "b" if dtype == _C.bool else "i"


def _array_of(data, dtype):
    """NumPy's array for an argument of tensor()."""
    if isinstance(data, bytearray):
        data = list(data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        wrong = (_C.WrongTypeError if isinstance(data, (list, tuple)) and _mixes(data)
                 else _C.InvalidArgumentError)
        raise wrong(f"tensor: the rows of the data differ in length: {error}") from None
    if array.dtype == object or (array.dtype == np.uint64 and isinstance(data, (int, list, tuple))):
        only_numpy = array.dtype != object and not any(isinstance(v, int)
                                                       for v in np.asarray(data, dtype=object).flat)
        return array if only_numpy else _of_large_integers(data, array, dtype)
    return array


def _has_dtype(data):
    """Whether the argument is an array, possibly of another library, or a list of arrays."""
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return hasattr(data, "__array__") and not isinstance(data, np.generic)


def _numpy_scalars(data):
    """The types of the floats and complex numbers in nested sequences if some of them are NumPy's,
    which keep their dtypes; otherwise nothing."""
    types = set(map(type, np.asarray(data, dtype=object).flat))
    types = {t for t in types if not issubclass(t, (int, np.integer, np.bool_))}
    return types if any(issubclass(t, np.generic) for t in types) else ()


def given_dtype(function, dtype):
    """The argument as a DType; names of dtypes are refused."""
    if isinstance(dtype, str):
        raise _C.WrongTypeError(f"{function}: dtype must be DType, not str")
    return _C.dtype_of(dtype)


def _check_fits(array, dtype):
    """Refuses numbers that the dtype does not hold. As in PyTorch, integers of an unsigned dtype
    may have the sign of what they wrap from."""
    kind, given = _kind(dtype), array.dtype.kind
    if given == "c" and kind in "fi":
        raise _C.WrongTypeError(f"tensor: complex numbers do not fit {dtype.name}")
    if kind != "i" or given not in "iuf" or not array.size:
        return
    bounds = np.iinfo(dtype.name)
    low = -bounds.max if bounds.min == 0 and given == "i" else bounds.min
    fits = (array >= low) & (array <= bounds.max)
    if not fits.all():
        number = array.flat[np.argmin(fits)]
        raise _C.InvalidArgumentError(f"tensor: the number {number} does not fit {dtype.name}")


def _as_integers(array, dtype):
    """The array converted to an integer dtype that holds all of its elements, or unchanged if there
    is none. Converting on the host makes positions out of range known at the call, and saves the
    conversion in programs."""
    if _kind(dtype) != "i" or array.dtype.kind not in "biu":
        return array
    bounds = np.iinfo(dtype.name)
    fits = array.size == 0 or (bounds.min <= array.min() and array.max() <= bounds.max)
    return array.astype(dtype.name) if fits else array


def tensor(data, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with the elements of a number, nested sequences of numbers, or an array; the data is
    copied. Python's floats become float32 and its integers int64; arrays and scalars of NumPy keep
    their dtype. pin_memory has no effect."""
    if isinstance(data, Tensor):
        made = data.detach().clone()
        if device is not None:
            made = made.to(device)
    else:
        dtype = None if dtype is None else given_dtype("tensor", dtype)
        array = _array_of(data, dtype)
        if dtype is not None:
            if not _has_dtype(data):
                _check_fits(array, dtype)
            array = _as_integers(array, dtype)
        elif not _has_dtype(data):
            scalars = _numpy_scalars(data) if array.dtype.kind in "fc" else ()
            default = _C.get_default_dtype()
            kinds = {"f": np.float64 if default == _C.float64 else np.float32,
                     "c": default.to_complex().name}
            if scalars:  # beside which a float of Python is of the default dtype
                array = array.astype(np.result_type(*(
                    s if issubclass(s, np.generic) else kinds["c" if s is complex else "f"]
                    for s in scalars)))
            else:
                array = array.astype(kinds.get(array.dtype.kind, array.dtype))
                if array.dtype.kind == "f":
                    dtype = default
        made = _C._from_numpy(array, device, True)
    if dtype is not None:
        made = made.to(given_dtype("tensor", dtype))
    if requires_grad:
        made.requires_grad = True
    return made


def from_numpy(array, device=None):
    """A tensor that shares the array's memory if the device can use it; then do not change the
    array afterwards. Otherwise (another device, strides, foreign byte order), the elements are
    copied."""
    return _C._from_numpy(array, device, False)


class _Capsule:
    """An object that returns a capsule of the host's memory."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor of what another library exports through DLPack, or of its capsule; shares memory as
    from_numpy() does, unless it is to be copied or moved. bfloat16 is copied: NumPy, which reads
    the others, has none."""
    if not hasattr(ext_tensor, "__dlpack__"):
        ext_tensor = _Capsule(ext_tensor)
    try:
        made = from_numpy(np.from_dlpack(ext_tensor))
    except (RuntimeError, BufferError, ValueError) as error:
        if "dtype" not in str(error) and "apsule" not in str(error):
            raise
        made = _C._from_dlpack(ext_tensor.__dlpack__())  # which says what is wrong with the capsule
    return made.clone().to(device=device) if copy or device is not None else made


def _method(function):
    setattr(Tensor, function.__name__, function)
    return function


def to_arguments(targets, dtype, device):
    """The dtype and device among the arguments of to(), in any order; another tensor gives both."""
    for target in targets:
        if isinstance(target, Tensor):
            dtype, device = target.dtype, target.device
        elif isinstance(target, _C.Device):
            device = target
        elif isinstance(target, str):
            device = target
        else:
            dtype = _C.dtype_of(target)
    return dtype, device


@_method
def to(self, *targets, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None,
       other=None):
    """The tensor converted to a dtype, moved to a device, or both; another tensor gives both. With
    copy=True, the result is never the tensor itself."""
    if other is not None:
        targets = (other, *targets)
    if len(targets) > 1 and isinstance(targets[-1], bool):  # non_blocking, and copy, by position
        flags = [target for target in targets if isinstance(target, bool)]
        targets, copy = targets[:-len(flags)], copy or (len(flags) > 1 and flags[1])
    made = self._to(*to_arguments(targets, dtype, device))
    return made.clone() if copy and made is self else made


@_method
def where(self, condition, other):
    """The elements where the condition holds, otherwise other."""
    return _C.where(condition, self, other)


@_method
def cpu(self):
    """to("cpu")."""
    return self.to(device="cpu")


# The types that PyTorch has short names for: functions of Tensor, and dtypes of the package.
SHORT_NAMES = {"bfloat16": _C.bfloat16, "bool": _C.bool, "cdouble": _C.complex128,
               "cfloat": _C.complex64, "double": _C.float64, "float": _C.float32,
               "half": _C.float16, "int": _C.int32, "long": _C.int64, "short": _C.int16}


def _conversion(name, dtype):
    def convert(self, memory_format=None):
        return self._to(dtype, None)

    convert.__name__, convert.__doc__ = name, f"to({dtype!r})."
    return convert


for _name, _type in {**SHORT_NAMES, "byte": _C.uint8, "char": _C.int8}.items():
    _method(_conversion(_name, _type))


@_method
def type_as(self, other):
    """to(other.dtype)."""
    return self._to(other.dtype, None)


@_method
def __reversed__(self):
    """The tensor reversed along the first dim."""
    return self.flip(0) if self.ndim else self


@_method
def __complex__(self):
    """The only element as a number."""
    return complex(self.item())


@_method
def view_as(self, other):
    """view(other.shape)."""
    return self.view(other.shape)


@_method
def reshape_as(self, other):
    """reshape(other.shape)."""
    return self.reshape(other.shape)


@_method
def equal(self, other):
    """Whether shapes and elements are the same; syncs."""
    for x in (self, other):
        if not isinstance(x, Tensor):
            raise _C.WrongTypeError(f"equal: takes tensors, not {type(x).__name__}")
    return self.shape == other.shape and (self == other).all().item()


@_method
def allclose(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether |x - y| <= atol + rtol * |y| or x == y everywhere. With equal_nan, NaN equals NaN.
    Syncs."""
    return _C.isclose(self, other, rtol, atol, equal_nan).all().item()


@_method
def nonzero(self, *, as_tuple=False):
    """The positions of the nonzero elements: [n, rank], or with as_tuple one tensor [n] per dim;
    reads the elements."""
    return _C.where(self) if as_tuple else _C.nonzero(self)


Tensor.mT = property(lambda self: self.transpose(-2, -1), doc="The last two dims exchanged.")
Tensor.real = property(lambda self: _C.real(self), lambda self, value: _C.real(self).copy_(value),
                       doc="The real parts of complex numbers, a view; real ones as they are.")
Tensor.imag = property(lambda self: _C.imag(self), lambda self, value: _C.imag(self).copy_(value),
                       doc="The imaginary parts of complex numbers, a view.")
@_method
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Makes the tensor another name for the memory of source, either all of it or elements at
    strides from an offset. Without a source, it becomes empty."""
    if self.requires_grad and _C.grad_enabled():
        raise _C.Error(
            "set_: a tensor that requires a gradient is changed in place; do it under no_grad()")
    if source is None:
        return self.set_data(self.new_empty(0))
    if not isinstance(source, Tensor):
        raise _C.WrongTypeError(f"set_: source must be Tensor, not {type(source).__name__}")
    if source.dtype != self.dtype:
        raise _C.InvalidArgumentError(
            f"set_: the source is of {source.dtype}, the tensor of {self.dtype}")
    if size is not None:
        step, strides = 1, []
        for n in reversed(size):
            strides.insert(0, step)
            step *= max(n, 1)
        source = source.detach().as_strided(size, stride or strides, storage_offset)
    return self.set_data(source)


Tensor.data = property(lambda self: self.detach(), lambda self, value: self.set_data(value),
                       doc="detach(); assigning is set_data().")


def _gathered(function):
    """A function of a list of tensors that also takes them as separate arguments."""

    def call(*tensors, **named):
        return function(tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor)
                        else tensors, **named)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


block_diag, broadcast_tensors, meshgrid = map(_gathered,
                                              (_C.block_diag, _C.broadcast_tensors, _C.meshgrid))


def einsum(*arguments):
    """Sums of products in Einstein's notation: einsum("ij,jk", x, y), or with numbers instead of
    letters einsum(x, [0, 1], y, [1, 2])."""
    if not arguments or not isinstance(arguments[0], Tensor):
        return _C.einsum(*arguments)
    terms = [_letters(labels) for labels in arguments[1:2 * (len(arguments) // 2):2]]
    result = f"->{_letters(arguments[-1])}" if len(arguments) % 2 else ""
    return _C.einsum(",".join(terms) + result, list(arguments[:2 * len(terms):2]))


def _letters(labels):
    try:
        return "".join("..." if label is Ellipsis else string.ascii_letters.swapcase()[label]
                       for label in labels)
    except (IndexError, TypeError):
        raise _C.InvalidArgumentError(
            f"einsum: labels are ... and the integers below 52, not {labels}") from None


def tensordot(a, b, dims=2):
    """Sums of products over the last `dims` dims of a and the first `dims` of b, or over two lists
    of dims."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        return _C.tensordot(a, b, dims)
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _C.tensordot(a, b, first, second)


@_method
def contiguous(self, memory_format=None):
    """The tensor itself if its elements lie in memory in row-major order without gaps, otherwise a
    copy."""
    return self if self.is_contiguous() else self.clone()


@_method
def nelement(self):
    """numel()."""
    return self.numel()


@_method
def element_size(self):
    """The size of an element in bytes."""
    return self.dtype.itemsize


@_method
def __contains__(self, value):
    return (self == value).sum().item() > 0


@_method
def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A copy, which the library that takes it may write to.

    copy=False shares the memory where it is the host's, marked as read-only, which needs DLPack
    1.0; not every library looks at the mark, and what writes nevertheless changes the tensor.
    """
    if stream is not None:
        raise BufferError("__dlpack__: memory of the host has no stream")
    if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
        device = tuple(n if isinstance(n, int) else type(n).__name__ for n in dl_device)
        raise BufferError(
            f"__dlpack__: exports to device {self.__dlpack_device__()}, the host, not to {device}")
    if copy is False and (max_version is None or tuple(max_version) < (1, 0)):
        raise BufferError(
            "__dlpack__: only DLPack 1.0 can say that memory is read-only; let it be copied")
    if self.dtype == _C.bfloat16:
        return _C._to_dlpack(self.detach())  # a copy, which NumPy could not make
    array = self.numpy() if copy is False else np.array(self.numpy())
    return array.__dlpack__() if max_version is None else array.__dlpack__(max_version=max_version)


@_method
def __dlpack_device__(self):
    return 1, 0  # the host's memory


def _iterate(self):
    if self.ndim == 0:
        raise TypeError("iteration over a tensor of rank 0")
    return (self[i] for i in range(len(self)))


def _array(self, dtype=None, copy=None):
    """NumPy's protocol: np.asarray(t) shares memory, np.array(t) copies."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"{self.dtype!r} to {dtype} needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _reduce(self):
    """Pickles by value: elements, dtype, whether the tensor requires a gradient, and its
    attributes."""
    array = self.detach().to(_C.float32).numpy() if self.dtype == _C.bfloat16 else self.numpy()
    return (_restore,
            (np.array(array), self.dtype, type(self) is _C.nn.Parameter, self.requires_grad),
            vars(self) or None)


def _like(self, made):
    """A tensor without a history as a parameter if self is one, and requiring a gradient if self
    does."""
    if isinstance(self, _C.nn.Parameter):
        return _C.nn.Parameter(made, self.requires_grad)
    if self.requires_grad:
        made.requires_grad = True
    return made


@_method
def __copy__(self):
    """A leaf that shares the elements."""
    made = _like(self, self.detach())
    vars(made).update(vars(self))
    return made


@_method
def __deepcopy__(self, memo):
    """A leaf with its own memory on the same device, which it shares with the copies of its views,
    and its gradient; a parameter's copy has none."""
    if not self.is_leaf:
        raise _C.Error(
            "deepcopy: only leaves are copied, and this tensor has a history; detach() it")
    base = self._base
    if base is not None and base.is_leaf and base.dtype == self.dtype:
        made = copy.deepcopy(base, memo).detach().as_strided(self.shape, self.stride(),
                                                             self.storage_offset())
    else:
        made = self.detach().clone()
    made = memo[id(self)] = _like(self, made)
    if not isinstance(self, _C.nn.Parameter) and self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    vars(made).update(copy.deepcopy(vars(self), memo))
    return made


def _restore(array, dtype, parameter, requires_grad=True, device=None):
    if parameter:
        return _C.nn.Parameter(tensor(array, dtype=dtype, device=device), requires_grad)
    return tensor(array, dtype=dtype, requires_grad=requires_grad, device=device)


def _dtype(name):
    return _C.dtype_of(name)


def _device(name):
    return _C.Device(name)


_C.DType.__reduce__ = lambda self: (_dtype, (self.name,))
_C.Device.__reduce__ = lambda self: (_device, (str(self),))
Tensor.__iter__ = _iterate
Tensor.__array__ = _array
Tensor.__reduce__ = _reduce
Tensor.tolist = lambda self: (self.detach().float() if self.dtype == _C.bfloat16
                              else self).numpy().tolist()
Tensor.tolist.__doc__ = "The elements as nested lists of Python's numbers; syncs."
