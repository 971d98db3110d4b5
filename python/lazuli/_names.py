"""Functions of PyTorch in forms that exist only in Python: tensors as separate arguments, shapes,
lists of numbers, properties."""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._tensor import tensor


def _each(function):
    """A function of one tensor that also takes several tensors and then returns a tuple."""

    def call(*tensors):
        return function(tensors[0] if len(tensors) == 1 else tensors)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


atleast_1d, atleast_2d, atleast_3d = map(_each, (_C.atleast_1d, _C.atleast_2d, _C.atleast_3d))


def cartesian_prod(*tensors):
    """All combinations of one element from each tensor, as rows; the last tensor's element changes
    fastest. For a single tensor, the tensor itself."""
    return _C.cartesian_prod(tensors)


def chain_matmul(*matrices):
    """linalg.multi_dot() with the matrices as separate arguments."""
    return matrices[0] if len(matrices) == 1 else _C.linalg.multi_dot(list(matrices))


def vander(x, N=None, increasing=False):  # noqa: N803
    """Powers of the elements of x [n], one row per element: [n, N], from x^(N - 1) down to 1, or
    increasing."""
    count = x.shape[-1] if N is None and x.ndim else N
    if count is None or count > 1:
        powers = _C.linalg.vander(x.long() if x.dtype == _C.bool else x, N=count)
    elif count >= 0:
        powers = vander(x, 2, increasing=True)[..., :count]
    else:
        raise _C.InvalidArgumentError(f"vander: N must be 0 or more, is {count}")
    return powers if increasing else powers.flip(-1)


def typename(x):
    """The name of a tensor's type, such as "torch.FloatTensor", or of another object's class."""
    return x.type() if isinstance(x, Tensor) else type(x).__name__


def broadcast_shapes(*shapes):
    """The common shape to which shapes, tuples or single sizes, are broadcast."""
    result = []
    for shape in shapes:
        dims = [shape] if isinstance(shape, int) else list(shape)
        if any(n < 0 for n in dims):
            raise _C.InvalidArgumentError(f"broadcast_shapes: a size is negative in {tuple(dims)}")
        result = [1] * (len(dims) - len(result)) + result
        for i in range(1, len(dims) + 1):
            if dims[-i] == 1 or dims[-i] == result[-i]:
                continue
            if result[-i] != 1:
                raise _C.InvalidArgumentError(f"broadcast_shapes: {tuple(dims)} and "
                                              f"{tuple(result)} do not broadcast to each other")
            result[-i] = dims[-i]
    return tuple(result)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The slopes of input along dims, as a tuple. spacing is a number, one number per dim, or one
    tensor of coordinates per dim."""
    if spacing is None:
        spacing = 1
    if isinstance(dim, (tuple, list)) and not dim:
        return ()
    if not isinstance(spacing, (tuple, list)):
        return _C.gradient(input, [spacing] if isinstance(spacing, Tensor) else spacing, dim=dim,
                           edge_order=edge_order)
    if all(isinstance(s, Tensor) for s in spacing):
        return _C.gradient(input, spacing, dim=dim, edge_order=edge_order)
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if len(dims) != len(spacing):
        raise _C.InvalidArgumentError("gradient: expected as many numbers as there are dims, "
                                      f"{len(dims)}, got {len(spacing)}")
    return tuple(_C.gradient(input, s, dim=[d], edge_order=edge_order)[0]
                 for s, d in zip(spacing, dims, strict=True))


def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """The given number of pieces along dim, or pieces that start at positions, which may be a
    tensor."""
    given = [i for i in (indices_or_sections, indices, sections) if i is not None]
    if len(given) != 1:
        raise TypeError("tensor_split: takes either sections or indices")
    parts = given[0]
    if isinstance(parts, Tensor):
        if parts.ndim > 1 or parts.dtype != _C.int64:
            raise _C.InvalidArgumentError("tensor_split: indices must be of int64 and at most one "
                                          f"dim, are {parts.dtype!r} of {tuple(parts.shape)}")
        parts = parts.tolist()
    return _C.tensor_split(input, parts, dim)


def index_put(input, indices, values, accumulate=False):
    """input with values at positions, or added there; None among the indices selects a whole
    dim."""
    if not isinstance(input, Tensor):
        raise _C.WrongTypeError(f"index_put: input must be Tensor, not {type(input).__name__}")
    made = input.clone()
    made.index_put_(indices, values, accumulate)
    return made


_index_put = Tensor.index_put_


def index_put_(self, indices, values, accumulate=False):
    """x[indices] = values in place. With accumulate, values are added, repeatedly at positions that
    occur several times."""
    if not isinstance(self, Tensor):
        raise _C.WrongTypeError(f"index_put_: x must be Tensor, not {type(self).__name__}")
    if not isinstance(indices, (tuple, list)):
        raise _C.WrongTypeError(
            f"index_put_: indices must be a tuple of tensors, not {type(indices).__name__}")
    return _index_put(self, tuple(slice(None) if i is None else i for i in indices), values,
                      accumulate)


def chunk_cat(tensors, dim, num_chunks):
    """Flattens each tensor from `dim` on, splits it into chunks, padded with zeros, and
    concatenates the chunks of all tensors."""
    parts = []
    if not tensors or num_chunks < 1 or not -tensors[0].ndim <= dim < tensors[0].ndim:
        raise _C.InvalidArgumentError("_chunk_cat: takes tensors, a dim of theirs and a number of "
                                      f"chunks above 0, not {dim} and {num_chunks}")
    dim %= tensors[0].ndim
    if {x.shape[:dim] for x in tensors} != {tensors[0].shape[:dim]}:
        raise _C.InvalidArgumentError(f"_chunk_cat: the dims of the tensors before {dim} differ")
    if not all(x.numel() for x in tensors):
        raise _C.InvalidArgumentError("_chunk_cat: takes no tensor without elements")
    for x in tensors:
        size = -(-x.shape[dim] // num_chunks)
        rest = x.new_zeros((*x.shape[:dim], size * num_chunks - x.shape[dim], *x.shape[dim + 1:]))
        parts.append(_C.cat([x, rest], dim).reshape(*x.shape[:dim], num_chunks, -1))
    return _C.cat(parts, -1)


def softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax(), computed from its result."""
    return (output * (grad_output - (grad_output * output).sum(dim, True))).to(input_dtype)


def safe_softmax(x, dim, dtype=None):
    """softmax(), but 0 where a row contains only -infinity."""
    none = (x == -float("inf")).all(dim, True)
    return x.masked_fill(none, 0).softmax(dim, dtype=dtype).masked_fill(none, 0)


def unsafe_masked_index(x, mask, indices, fill):
    """x[indices] where the mask is true, otherwise the number."""
    at = tuple(slice(None) if i is None else i.clamp(0, n - 1)
               for i, n in zip(indices, x.shape, strict=False))
    return x[at].masked_fill(~mask, fill)


def unsafe_masked_index_put_accumulate(x, mask, indices, values):
    """x with the values added at the positions where the mask is true."""
    at = tuple(i if i is None else i.clamp(-n, n - 1)
               for i, n in zip(indices, x.shape, strict=False))
    return index_put(x, at, values.masked_fill(~mask, 0), accumulate=True)


def new_empty_strided(self, size, stride, dtype=None, device=None, requires_grad=False, **layout):
    """empty_strided() with the dtype and device of the tensor unless others are given."""
    return _C.empty_strided(size, stride, dtype=self.dtype if dtype is None else dtype,
                            device=self.device if device is None else device,
                            requires_grad=requires_grad, **layout)


def construct(*data, dtype=None, device=None, size=None):
    """The behaviour of PyTorch's constructors: Tensor([1, 2]) takes elements, Tensor(2, 3) takes
    sizes, and Tensor(x) is x. Without a dtype, the result has the default one."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if size is not None or not data or isinstance(data[0], int):
        return _C.empty((data or (0,)) if size is None else size, dtype=dtype, device=device)
    if len(data) > 1:
        raise _C.WrongTypeError("Tensor: takes a row of elements, or sizes")
    if isinstance(data[0], _C.Size):
        return _C.empty(data[0], dtype=dtype, device=device)
    if isinstance(data[0], Tensor):
        if data[0].dtype != dtype:
            raise _C.WrongTypeError(
                f"Tensor: of {dtype!r} is expected, the data is {data[0].dtype!r}")
        return data[0].detach()
    return tensor(data[0], dtype=dtype, device=device)


def new(self, *data, device=None):
    """What the class of the tensor's dtype makes of sizes or elements: x.new(2, 3)."""
    return construct(*data, dtype=self.dtype, device=self.device if device is None else device)


Tensor.new = new


class _OfDtype(type):
    """The metaclass of LongTensor and similar classes, whose instances are the tensors of a
    dtype."""

    def __call__(cls, *data, **named):
        return construct(*data, dtype=cls.dtype, **named)

    def __instancecheck__(cls, x):
        return isinstance(x, Tensor) and x.dtype == cls.dtype


_OLD_DTYPES = {"BFloat16": _C.bfloat16, "Bool": _C.bool, "Byte": _C.uint8, "Char": _C.int8,
               "Double": _C.float64, "Float": _C.float32, "Half": _C.float16, "Int": _C.int32,
               "Long": _C.int64, "Short": _C.int16}
OLD_CONSTRUCTORS = {f"{name}Tensor": _OfDtype(f"{name}Tensor", (), {
    "__module__": "lazuli", "dtype": dtype, "__doc__": f"Makes a tensor of {dtype!r}, of these "
    "elements or, if integers are given, of these sizes; what isinstance() says of such."})
                    for name, dtype in _OLD_DTYPES.items()}


def type_(self, dtype=None, non_blocking=False):
    """to(dtype); the dtype may be a class or its name, such as "torch.DoubleTensor". Without a
    dtype, the name of the class."""
    if dtype is None:
        return next((f"torch.{name}Tensor" for name, known in _OLD_DTYPES.items()
                     if known == self.dtype), f"torch.{self.dtype.name}")
    if (dtype.startswith("torch.cuda.") if isinstance(dtype, str)
            else getattr(dtype, "__module__", "") == "lazuli.cuda"):
        return self.cuda()  # which says that there is no GPU
    if isinstance(dtype, str) and dtype.split(".")[-1] in OLD_CONSTRUCTORS:
        dtype = OLD_CONSTRUCTORS[dtype.split(".")[-1]]
    if isinstance(dtype, str):
        raise _C.InvalidArgumentError(f"type: invalid type: {dtype!r}")
    return self.to(dtype.dtype if isinstance(dtype, _OfDtype) else _C.dtype_of(dtype))


Tensor.type = type_

# By the names that PyTorch's compiler calls them.
INTERNAL = {f"_{f.__name__}": f for f in (chunk_cat, softmax_backward_data, safe_softmax,
                                          unsafe_masked_index, unsafe_masked_index_put_accumulate)}
INTERNAL |= {f"_{name}": getattr(_C, name)
             for name in ("dirichlet_grad", "sample_dirichlet", "standard_gamma",
                          "standard_gamma_grad")}


def assert_async(condition, message="the condition is to hold"):
    """Fails the run that finds an element of the condition that is 0."""
    _C.assert_async(condition != 0, "assert_async", message)


def native_batch_norm_legit(input, weight, bias, *rest):  # noqa: A002
    """native_batch_norm() with all arguments by position, or without the running mean and
    variance."""
    running = rest[:-3] or (None, None)
    return _C.native_batch_norm(input, weight, bias, *running, *rest[-3:])


INTERNAL |= {"_assert_async": assert_async, "_native_batch_norm_legit": native_batch_norm_legit}

Tensor.index_put, Tensor.index_put_ = index_put, index_put_
Tensor.tensor_split, Tensor.new_empty_strided = tensor_split, new_empty_strided
Tensor.is_conj = lambda self: False
Tensor.is_conj.__doc__ = "Whether the conjugates are still to be computed, which is never so."
Tensor.is_neg = lambda self: False
Tensor.is_neg.__doc__ = "Whether the negatives are still to be computed, which is never so."
Tensor.__rdiv__ = Tensor.__rtruediv__
ger, matrix_power = _C.outer, _C.linalg.matrix_power
Tensor.ger, Tensor.matrix_power = Tensor.outer, lambda self, n: matrix_power(self, n)
Tensor.matrix_power.__doc__ = matrix_power.__doc__


def _conjugated(name):
    def adjoint(self):
        if self.ndim not in (0, 2) and name == "H":
            raise _C.InvalidArgumentError(f"H: takes a matrix, not a tensor of rank {self.ndim}; "
                                          "mH takes the last two dims of any")
        return self.adjoint()

    return adjoint


Tensor.H = property(_conjugated("H"), doc="The conjugate of a matrix with its dims exchanged.")
Tensor.mH = property(_conjugated("mH"),
                     doc="The last two dims exchanged, of complex numbers the conjugates.")
