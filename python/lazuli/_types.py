"""Limits of dtypes, and PyTorch's other names of functions."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np
from lazuli._tensor import tensor

# Floats that NumPy lacks: bits, digits after the leading one, the least normal number, the largest
# one.
_NARROW = {"bfloat16": (16, 7, 2.0**-126, 2.0**127 * (2 - 2.0**-7)),
           "f8e5m2": (8, 2, 2.0**-14, 57344.0), "f8e4m3fn": (8, 3, 2.0**-6, 448.0),
           "f8e5m2fnuz": (8, 2, 2.0**-15, 57344.0), "f8e4m3fnuz": (8, 3, 2.0**-7, 240.0)}


class finfo:  # noqa: N801
    """Limits of a float dtype, or of the parts of a complex one: bits, eps, max, min, tiny,
    resolution."""

    def __init__(self, dtype=None):
        given = _C.get_default_dtype() if dtype is None else _C.dtype_of(dtype)
        dtype = given.to_real() if given.is_complex else given
        if not dtype.is_floating_point:
            raise _C.WrongTypeError(f"finfo: takes floats, not {dtype!r}; iinfo takes integers")
        self.dtype = dtype.name
        if dtype.name in _NARROW:
            self.bits, digits, self.tiny, self.max = _NARROW[dtype.name]
            self.eps = 2.0**-digits
            self.resolution = 10.0 ** -int(digits * np.log10(2))
        else:
            try:
                info = np.finfo(dtype.name)
            except TypeError:
                raise _C.UnimplementedError(f"finfo: knows no limits of {dtype!r}") from None
            self.bits, self.eps, self.tiny, self.max = (info.bits, float(info.eps),
                                                        float(info.tiny), float(info.max))
            self.resolution = float(str(info.resolution))
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self):
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
                f"dtype={self.dtype})")


class iinfo:  # noqa: N801
    """Limits of an integer dtype: bits, max, min."""

    def __init__(self, dtype):
        dtype = _C.dtype_of(dtype)
        if dtype.is_floating_point or dtype.is_complex or dtype == _C.bool:
            raise _C.WrongTypeError(f"iinfo: takes integers, not {dtype!r}; finfo takes floats")
        self.dtype, self.bits = dtype.name, 8 * dtype.itemsize
        self.min = -(2 ** (self.bits - 1)) if dtype.is_signed else 0
        self.max = 2 ** (self.bits - 1) - 1 if dtype.is_signed else 2**self.bits - 1

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def is_floating_point(input):
    """Whether the elements are floats."""
    return input.dtype.is_floating_point


def is_complex(input):
    """Whether the elements are complex numbers."""
    return input.dtype.is_complex


Tensor.is_floating_point, Tensor.is_complex = is_floating_point, is_complex
Tensor.is_signed = lambda self: self.dtype.is_signed
Tensor.is_signed.__doc__ = "Whether the dtype has negative numbers."


# PyTorch's second names of functions: (name, what it is).
OTHER_NAMES = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
               "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
               "clip": "clamp", "concatenate": "cat", "divide": "div", "fix": "trunc",
               "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le",
               "multiply": "mul", "negative": "neg", "not_equal": "ne", "subtract": "sub",
               "trapz": "trapezoid", "true_divide": "div"}


def _other_names(owner, suffix=""):
    """Gives functions of the owner their other names."""
    return {theirs + suffix: getattr(owner, ours + suffix)
            for theirs, ours in OTHER_NAMES.items() if hasattr(owner, ours + suffix)}


FUNCTIONS = _other_names(_C)
for _suffix in ("", "_"):
    for _name, _function in _other_names(Tensor, _suffix).items():
        setattr(Tensor, _name, _function)


class layout:  # noqa: N801
    """PyTorch's memory layouts. They have no effect here: the compiler chooses the layout."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"lazuli.{self.name}"


class memory_format(layout):  # noqa: N801
    """PyTorch's orders of dims in memory."""


strided = layout("strided")
contiguous_format, preserve_format, channels_last = (
    memory_format(n) for n in ("contiguous_format", "preserve_format", "channels_last"))


def _new(name, maker):
    def make(self, *size, dtype=None, device=None, requires_grad=False, **layout):
        if "size" in layout:
            size = (layout.pop("size"),)
        dims = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return maker(dims, dtype=self.dtype if dtype is None else dtype,
                     device=self.device if device is None else device, requires_grad=requires_grad,
                     **layout)

    make.__name__, make.__doc__ = (name, f"{maker.__name__}() with the dtype and device of the "
                                   "tensor, unless there are others.")
    setattr(Tensor, name, make)


for _name, _maker in (("new_zeros", _C.zeros), ("new_ones", _C.ones), ("new_empty", _C.empty)):
    _new(_name, _maker)


def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False, **layout):
    """full() with the dtype and device of the tensor unless others are given."""
    return _C.full(size, fill_value, dtype=self.dtype if dtype is None else dtype,
                   device=self.device if device is None else device, requires_grad=requires_grad,
                   **layout)


def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    """tensor() with the dtype and device of the tensor unless others are given."""
    return tensor(data, dtype=self.dtype if dtype is None else dtype,
                  device=self.device if device is None else device, requires_grad=requires_grad)


Tensor.new_full, Tensor.new_tensor = new_full, new_tensor
Tensor.polygamma = lambda self, n: _C.polygamma(n, self)
Tensor.polygamma.__doc__ = "The n-th derivative of digamma."


def polygamma_(self, n):
    """In place: the n-th derivative of digamma."""
    value = _C.polygamma(n, self)
    if value.dtype != self.dtype:
        raise _C.InvalidArgumentError(f"polygamma_: the result {value.dtype!r} would be cut to "
                                      f"{self.dtype!r}, which is changed in place")
    return self.copy_(value)


Tensor.polygamma_ = polygamma_

# Methods in place that PyTorch has as functions, too.
IN_PLACE = ("abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh "
            "ceil celu clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach "
            "dropout elu erf erfc exp exp2 expm1 fill fix floor frac i0 ldexp log log10 "
            "log1p log2 logit nan_to_num neg negative rad2deg reciprocal relu round rsqrt selu sgn "
            "sigmoid sin sinc sinh sqrt square tan tanh threshold trunc xlogy zero").split()
FUNCTIONS |= {f"{_name}_": getattr(Tensor, f"{_name}_")
              for _name in IN_PLACE if hasattr(Tensor, f"{_name}_")}


# --- what PyTorch asks of a tensor: where it lies and how. There are dense tensors of the host and
# of devices that PyTorch does not know.


def _constant(name, value, doc):
    setattr(Tensor, name, property(lambda self: value, doc=doc))


for _name in ("is_cuda", "is_meta", "is_mkldnn", "is_mps", "is_nested", "is_quantized", "is_sparse",
              "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"):
    _constant(_name, False, "False.")
_constant("layout", strided, "lazuli.strided.")
Tensor.is_cpu = property(lambda self: self.device.name.startswith("cpu"),
                         doc="Whether the tensor lies on a CPU.")
Tensor.itemsize = property(lambda self: self.dtype.itemsize, doc="The bytes of an element.")
Tensor.nbytes = property(lambda self: self.numel() * self.dtype.itemsize,
                         doc="The bytes of all elements.")


def _unchanged(name, doc):
    def method(self, *arguments, **named):
        return self

    method.__name__, method.__doc__ = name, doc
    setattr(Tensor, name, method)


_unchanged("pin_memory", "The tensor itself: all memory of the host is the same.")
_unchanged("share_memory_", "The tensor itself: workers get copies.")


def get_device(self):
    """-1, because the tensor is not on a GPU."""
    return -1


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Raises an error."""
    raise _C.UnimplementedError("cuda: there is no GPU; PJRT_DEVICE says what runs tensors")


def is_pinned(self, device=None):
    """False."""
    return False


def is_same_size(self, other):
    """Whether the shapes are the same."""
    return self.shape == other.shape


def is_nonzero(self):
    """Whether the only element is nonzero; syncs."""
    if self.numel() != 1:
        raise _C.InvalidArgumentError(f"is_nonzero: takes one element, not {self.numel()}")
    return bool(self)


def apply_(self, function):
    """Replaces each element by function(element), in Python; syncs."""
    return self.copy_(_C._from_numpy(
        np.vectorize(function, otypes=[self.numpy().dtype])(self.numpy()), self.device, True))


def map_(self, other, function):
    """Replaces each element by function(element, the other tensor's element), in Python; syncs."""
    mine, others = self.numpy(), other.expand_as(self).numpy()
    return self.copy_(_C._from_numpy(np.vectorize(function, otypes=[mine.dtype])(mine, others),
                                     self.device, True))


for _method in (get_device, cuda, is_pinned, is_same_size, is_nonzero, apply_, map_):
    setattr(Tensor, _method.__name__, _method)
Tensor.ndimension = lambda self: self.ndim
Tensor.ndimension.__doc__ = "The number of dims."

# Methods that PyTorch has as functions, too, and functions of nn that it has beside the others.
FUNCTIONS |= {_name: getattr(Tensor, _name)
              for _name in ("clone", "detach", "get_device", "is_nonzero", "is_same_size",
                            "is_signed", "t")}


def numel(input):
    """The number of elements."""
    return input.numel()


FUNCTIONS["numel"] = numel
