"""What dtypes hold, and other names of functions, as PyTorch has them."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np

# Floats that NumPy lacks: bits, digits after the leading one, the least normal number, the largest one.
_NARROW = {"bfloat16": (16, 7, 2.0**-126, 2.0**127 * (2 - 2.0**-7)), "f8e5m2": (8, 2, 2.0**-14, 57344.0),
           "f8e4m3fn": (8, 3, 2.0**-6, 448.0), "f8e5m2fnuz": (8, 2, 2.0**-15, 57344.0), "f8e4m3fnuz": (8, 3, 2.0**-7, 240.0)}


class finfo:  # noqa: N801
    """Limits of a float dtype, of complex numbers those of their parts: bits, eps, max, min, tiny, resolution."""

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
            self.bits, self.eps, self.tiny, self.max = info.bits, float(info.eps), float(info.tiny), float(info.max)
            self.resolution = float(str(info.resolution))
        self.min, self.smallest_normal = -self.max, self.tiny

    def __repr__(self):
        return f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, " \
               f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"


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


def is_floating_point(x):
    """Whether the elements are floats."""
    return x.dtype.is_floating_point


def is_complex(x):
    """Whether the elements are complex numbers."""
    return x.dtype.is_complex


Tensor.is_floating_point, Tensor.is_complex = is_floating_point, is_complex
Tensor.is_signed = lambda self: self.dtype.is_signed
Tensor.is_signed.__doc__ = "Whether the dtype has negative numbers."


# PyTorch's second names of functions: (name, what it is).
OTHER_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "concatenate": "cat", "divide": "div",
    "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "multiply": "mul",
    "negative": "neg", "not_equal": "ne", "subtract": "sub", "trapz": "trapezoid", "true_divide": "div"}


def _other_names(owner, suffix=""):
    """The other names of what the owner has."""
    return {theirs + suffix: getattr(owner, ours + suffix) for theirs, ours in OTHER_NAMES.items() if hasattr(owner, ours + suffix)}


FUNCTIONS = _other_names(_C)
for _suffix in ("", "_"):
    for _name, _function in _other_names(Tensor, _suffix).items():
        setattr(Tensor, _name, _function)


class layout:  # noqa: N801
    """How PyTorch lays out elements. The compiler decides that here, so that these name nothing else."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"lazuli.{self.name}"


class memory_format(layout):  # noqa: N801
    """In which order PyTorch lays out dims."""


strided = layout("strided")
contiguous_format, preserve_format, channels_last = (memory_format(n) for n in ("contiguous_format", "preserve_format", "channels_last"))


def _new(name, maker):
    def make(self, *size, dtype=None, device=None, requires_grad=False, **layout):
        if "size" in layout:
            size = (layout.pop("size"),)
        dims = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return maker(dims, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device,
                     requires_grad=requires_grad, **layout)

    make.__name__, make.__doc__ = name, f"{maker.__name__}() with the dtype and device of the tensor, unless there are others."
    setattr(Tensor, name, make)


for _name, _maker in (("new_zeros", _C.zeros), ("new_ones", _C.ones), ("new_empty", _C.empty)):
    _new(_name, _maker)


def new_full(self, size, fill_value, dtype=None, device=None, requires_grad=False, **layout):
    """full() with the dtype and device of the tensor, unless there are others."""
    return _C.full(size, fill_value, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device,
                   requires_grad=requires_grad, **layout)


def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    """tensor() with the dtype and device of the tensor, unless there are others."""
    from lazuli._tensor import tensor
    return tensor(data, dtype=self.dtype if dtype is None else dtype, device=self.device if device is None else device,
                  requires_grad=requires_grad)


Tensor.new_full, Tensor.new_tensor = new_full, new_tensor
Tensor.polygamma = lambda self, n: _C.polygamma(n, self)
Tensor.polygamma.__doc__ = "The n-th derivative of digamma."


def polygamma_(self, n):
    """In place: the n-th derivative of digamma."""
    value = _C.polygamma(n, self)
    if value.dtype != self.dtype:
        raise _C.InvalidArgumentError(f"polygamma_: the result {value.dtype!r} would be cut to {self.dtype!r}, which is changed in place")
    return self.copy_(value)


Tensor.polygamma_ = polygamma_

# Methods in place that PyTorch has as functions, too.
IN_PLACE = ("abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil celu clamp clamp_max clamp_min clip "
            "conj_physical cos cosh deg2rad detach dropout elu erf erfc exp exp2 expm1 fill fix floor frac i0 index_put ldexp log log10 log1p "
            "log2 logit nan_to_num neg negative rad2deg reciprocal relu round rsqrt selu sgn sigmoid sin sinc sinh sqrt square tan tanh "
            "threshold trunc xlogy zero").split()
FUNCTIONS |= {f"{_name}_": getattr(Tensor, f"{_name}_") for _name in IN_PLACE if hasattr(Tensor, f"{_name}_")}
