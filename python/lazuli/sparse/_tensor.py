"""SparseTensor: a tensor that keeps the elements that are not 0, and their places.

The places are integers on the host, from which products and sums take their indices. The values are
a tensor like any other, and gradients are those of the values. Functions that change the set of
places (coalesce(), sums and products of two sparse tensors) compute the new places on the host. A
program is compiled again for another number of places.
"""

import math

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np
from lazuli._tensor import tensor
from lazuli._types import layout
from lazuli.autograd.grad_mode import inference_mode

sparse_coo, sparse_csr, sparse_csc = (layout(f"sparse_{name}") for name in ("coo", "csr", "csc"))
# The dim by whose positions a compressed layout is sorted.
COMPRESSED = {sparse_csr: 0, sparse_csc: 1}

# Functions that return 0 for 0, so that a sparse tensor's values are enough.
UNARY = ("abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv "
         "expm1 floor frac log1p neg negative positive rad2deg relu round sgn sign sin sinh sqrt "
         "square tan tanh trunc nan_to_num isnan isinf").split()


def refuse(function, text):
    raise _C.InvalidArgumentError(f"{function}: {text}")


def host(values):
    """Integers of a tensor or a sequence as an array of NumPy."""
    given = values.detach().cpu().numpy() if isinstance(values, Tensor) else values
    array = np.asarray(given)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        refuse("sparse tensor", f"indices must be integers, are {array.dtype}")
    return array.astype(np.int64)


class SparseTensor:
    """A tensor of the layout sparse_coo, sparse_csr or sparse_csc.

    `places` [sparse dims, n] of NumPy has the position of each of the n values [n, *dense dims]
    along the sparse dims, which come first.
    """

    def __init__(self, places, values, size, layout=sparse_coo, coalesced=False):
        size = _C.Size(size)
        if places.ndim != 2:
            refuse("sparse tensor", f"indices must be a matrix, have {places.ndim} dims")
        if places.shape[1] != values.shape[0]:
            refuse("sparse tensor", "indices and values must have same nnz, but got nnz from "
                   f"indices: {places.shape[1]}, nnz from values: {values.shape[0]}")
        sparse_dims = len(places)
        if len(size) != sparse_dims + values.dim() - 1 or tuple(size[sparse_dims:]) != tuple(
                values.shape[1:]):
            refuse("sparse tensor", f"size {tuple(size)} does not go with {sparse_dims} sparse "
                   f"dims and values {tuple(values.shape)}")
        for dim, at in enumerate(places):
            if at.size and (at.min() < 0 or at.max() >= size[dim]):
                found = at.min() if at.min() < 0 else at.max()
                refuse("sparse tensor", f"size is inconsistent with indices: for dim {dim}, size "
                       f"is {size[dim]} but found index {found}")
        self._places, self._elements, self.shape = places, values, size
        self.layout, self._coalesced = layout, coalesced or places.shape[1] < 2
        self._positions = {}

    # --- what it is

    dtype = property(lambda self: self._elements.dtype)
    device = property(lambda self: self._elements.device)
    ndim = property(lambda self: len(self.shape))
    is_sparse = property(lambda self: self.layout is sparse_coo)
    is_sparse_csr = property(lambda self: self.layout is sparse_csr)
    is_leaf = property(lambda self: self._elements.is_leaf)
    is_cuda = property(lambda self: False)
    grad_fn = property(lambda self: self._elements.grad_fn)
    T = property(lambda self: self.t())

    @property
    def requires_grad(self):
        return self._elements.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted):
        self._elements.requires_grad_(wanted)

    def requires_grad_(self, requires_grad=True):
        """Sets whether the values collect a gradient, which .grad has at the same places."""
        self._elements.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        grad = self._elements.grad
        if grad is None or self._coalesced:
            return None if grad is None else self.with_values(grad)
        # All values of one place have the same gradient.
        first = np.unique(self.linear(), return_index=True)[1]
        return self.with_values(grad)._picked(first, coalesced=True)

    @grad.setter
    def grad(self, grad):
        self._elements.grad = grad if grad is None else grad._elements

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return len(self.shape)

    def numel(self):
        return math.prod(self.shape)

    def sparse_dim(self):
        return len(self._places)

    def dense_dim(self):
        return self._elements.dim() - 1

    def _nnz(self):
        return self._places.shape[1]

    def is_coalesced(self):
        """Whether the places are in order and without repeats."""
        return self._coalesced

    def __len__(self):
        return self.shape[0]

    # --- parts

    def _of_layout(self, name, *layouts):
        if self.layout not in layouts:
            refuse(name, f"expected a tensor of {' or '.join(map(repr, layouts))}, got "
                   f"{self.layout!r}")

    def _along(self, dim, device=None):
        """The positions along a sparse dim, or with None the results of linear(), as a tensor that
        is made once."""
        key = dim, self.device if device is None else device
        if key not in self._positions:
            places = self.linear() if dim is None else np.ascontiguousarray(self._places[dim])
            with inference_mode(False):  # a later call may save it for backward
                self._positions[key] = tensor(places, device=key[1])
        return self._positions[key]

    def _indices(self):
        return tensor(self._places, device=self.device)

    def indices(self):
        """The places [sparse dims, n] of a coalesced tensor."""
        self._of_layout("indices", sparse_coo)
        if not self._coalesced:
            refuse("indices", "Cannot get indices on an uncoalesced tensor, please call "
                   ".coalesce() first")
        return self._indices()

    def values(self):
        """The values [n, *dense dims] of a coalesced tensor."""
        if self.layout is sparse_coo and not self._coalesced:
            refuse("values", "Cannot get values on an uncoalesced tensor, please call .coalesce() "
                   "first")
        return self._elements

    def _values(self):
        return self._elements

    def _compressed(self, name, wanted):
        self._of_layout(name, wanted)
        dim = COMPRESSED[wanted]
        counts = np.bincount(self._places[dim], minlength=self.shape[dim])
        return tensor(np.concatenate([[0], np.cumsum(counts)]), device=self.device)

    def crow_indices(self):
        """Where the values of each row begin, and where the last ones end."""
        return self._compressed("crow_indices", sparse_csr)

    def ccol_indices(self):
        """Where the values of each column begin, and where the last ones end."""
        return self._compressed("ccol_indices", sparse_csc)

    def col_indices(self):
        self._of_layout("col_indices", sparse_csr)
        return self._along(1)

    def row_indices(self):
        self._of_layout("row_indices", sparse_csc)
        return self._along(0)

    # --- other forms

    def with_values(self, values):
        """Other values at the same places."""
        size = (*self.shape[:self.sparse_dim()], *values.shape[1:])
        return SparseTensor(self._places, values, size, self.layout, self._coalesced)

    def linear(self, keep=None):
        """The positions in the sparse dims, or in the dims `keep`, as one number per place."""
        dims = range(self.sparse_dim()) if keep is None else keep
        number = np.zeros(self._nnz(), np.int64)
        for dim in dims:
            number = number * self.shape[dim] + self._places[dim]
        return number

    def _picked(self, order, places=None, coalesced=False, size=None, layout=None):
        """The values with the indices `order`, at their places or at others."""
        values = self._elements.index_select(0, tensor(order, device=self.device))
        return SparseTensor(self._places[:, order] if places is None else places, values,
                            self.shape if size is None else size, layout or self.layout, coalesced)

    def coalesce(self):
        """The same tensor with each place once, in order; values of one place are added."""
        self._of_layout("coalesce", sparse_coo)
        if self._coalesced:
            return self
        return merged(self._places, self._elements, self.shape)

    def in_order(self):
        """The tensor in sparse_coo, coalesced."""
        return self._in_layout(sparse_coo).coalesce()

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The tensor with its zeros."""
        values = self._elements if dtype is None else self._elements.to(dtype)
        return add_at(_C.zeros(self.shape, dtype=values.dtype, device=self.device), self, values)

    def to_sparse(self, sparse_dim=None, *, layout=None, **_):
        return self._in_layout(layout or sparse_coo)

    def to_sparse_coo(self):
        return self._in_layout(sparse_coo)

    def to_sparse_csr(self, dense_dim=None):
        return self._in_layout(sparse_csr)

    def to_sparse_csc(self, dense_dim=None):
        return self._in_layout(sparse_csc)

    def _in_layout(self, wanted):
        if self.layout is wanted:
            return self
        if wanted is sparse_coo:
            if self.layout is sparse_csr:
                return SparseTensor(self._places, self._elements, self.shape,
                                    coalesced=_is_sorted(self.linear()))
            return merged(self._places, self._elements, self.shape)
        if wanted not in COMPRESSED:
            refuse("to_sparse", f"there is no layout {wanted!r}")
        if self.dim() != 2:
            refuse("to_sparse", f"a tensor of {wanted!r} must have 2 dims, has {self.dim()}")
        whole = self.in_order()
        order = np.lexsort((whole._places[0], whole._places[1])) if wanted is sparse_csc else (
            np.arange(whole._nnz()))
        return whole._picked(order, coalesced=True, layout=wanted)

    def detach(self):
        return self.with_values(self._elements.detach())

    def clone(self, **_):
        return self.with_values(self._elements.clone())

    def to(self, *arguments, **named):
        values = self._elements.to(*arguments, **named)
        return self if values is self._elements else self.with_values(values)

    def cpu(self):
        return self.to("cpu")

    def type(self, dtype):
        return self.to(dtype)

    def numpy(self):
        raise _C.WrongArgumentError("numpy: can't convert Sparse layout tensor to numpy. Use "
                                    "Tensor.to_dense() first.")

    def permute(self, *dims):
        dims = [d % self.dim() for d in (dims[0] if len(dims) == 1 and not isinstance(
            dims[0], int) else dims)]
        count = self.sparse_dim()
        if sorted(dims) != list(range(self.dim())) or any(
                (d < count) != (i < count) for i, d in enumerate(dims)):
            refuse("permute", "dims must be a permutation that keeps sparse and dense dims apart, "
                   f"are {tuple(dims)}")
        values = self._elements.permute(0, *(d - count + 1 for d in dims[count:]))
        turned = SparseTensor(self._places[dims[:count]], values, [self.shape[d] for d in dims])
        return turned._in_layout(self.layout)

    def transpose(self, dim0, dim1):
        dims = list(range(self.dim()))
        dims[dim0], dims[dim1] = dims[dim1], dims[dim0]
        return self.permute(dims)

    def t(self):
        """The transpose of a matrix; a layout by rows becomes one by columns."""
        if self.dim() > 2:
            refuse("t", f"expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
        if self.dim() < 2:
            return self
        turned = {sparse_csr: sparse_csc, sparse_csc: sparse_csr}.get(self.layout)
        if turned is None:
            return self.transpose(0, 1)
        return SparseTensor(self._places[::-1], self._elements, self.shape[::-1], turned, True)

    def select(self, dim, index):
        """The slice at a position of a sparse dim."""
        dim = dim % self.dim()
        if dim >= self.sparse_dim():
            return self.with_values(self._elements.select(dim - self.sparse_dim() + 1, index))
        size = self.shape[dim]
        if not -size <= index < size:
            raise _C.OutOfRangeError(f"select: index {index} out of range for size {size}")
        chosen = np.flatnonzero(self._places[dim] == index % size)
        if self.sparse_dim() == 1:
            return self._elements.index_select(0, tensor(chosen, device=self.device)).sum(0)
        places = np.delete(self._places[:, chosen], dim, 0)
        return self._picked(chosen, places, self._coalesced, np.delete(self.shape, dim).tolist(),
                            sparse_coo)

    def __getitem__(self, index):
        if not isinstance(index, (int, np.integer)):
            raise NotImplementedError("a sparse tensor takes a whole number as an index; use "
                                      "index_select() or to_dense()")
        return self.select(0, int(index))

    def index_select(self, dim, index):
        """The slices at these positions of a sparse dim."""
        dim, wanted = dim % self.dim(), host(index)
        if dim >= self.sparse_dim():
            return self.with_values(self._elements.index_select(dim - self.sparse_dim() + 1, index))
        new, old = np.nonzero(wanted[:, None] == self._places[dim])
        places = self._places[:, old]
        places[dim] = new
        size = list(self.shape)
        size[dim] = len(wanted)
        return self._picked(old, places, False, size, sparse_coo)

    def __repr__(self):
        def part(name, value, indent):
            return f"{name}=" + repr(value).replace("\n", "\n" + " " * (indent + len(name) + 1))

        shown = {sparse_coo: [("indices", self._indices)],
                 sparse_csr: [("crow_indices", self.crow_indices),
                              ("col_indices", self.col_indices)],
                 sparse_csc: [("ccol_indices", self.ccol_indices),
                              ("row_indices", self.row_indices)]}[self.layout]
        parts = [part(name, value(), 7) for name, value in shown]
        values = part("values", self._elements.detach(), 7)
        end = f"size={tuple(self.shape)}, nnz={self._nnz()}, layout={self.layout!r}"
        if self.requires_grad:
            end += ", requires_grad=True"
        between = ",\n       " if self.layout is sparse_coo else ", "
        return "tensor(" + ",\n       ".join([*parts, values + between + end]) + ")"

    # --- functions of lazuli with a sparse argument

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        handler = HANDLERS.get(getattr(function, "__name__", None))
        if handler is None:
            name = getattr(function, "__name__", function)
            raise NotImplementedError(f"{name}: there is no form for sparse tensors; convert with "
                                      "to_dense()")
        return handler(*args, **(kwargs or {}))


HANDLERS = {}  # by the function's name


def handles(*names, method=True):
    """A decorator for the function that lazuli's functions with these names call for a sparse
    argument; it becomes a method, too."""
    def register(function):
        for name in names:
            HANDLERS[name] = function
            if method:
                setattr(SparseTensor, name, function)
        return function

    return register


def _is_sorted(numbers):
    return bool((np.diff(numbers) > 0).all())


def merged(places, values, size):
    """A coalesced tensor; values of one place are added."""
    made = SparseTensor(places, values, size)
    numbers, first, group = np.unique(made.linear(), return_index=True, return_inverse=True)
    if len(numbers) == len(group):
        return made._picked(first, coalesced=True)
    total = _C.zeros((len(numbers), *values.shape[1:]), dtype=values.dtype, device=values.device)
    total = total.index_add(0, tensor(group.reshape(-1), device=values.device), values)
    return SparseTensor(places[:, first], total, size, coalesced=True)


def _rows(dense, sparse):
    """A dense tensor of the same size with the sparse dims as one, which linear() numbers."""
    count = sparse.sparse_dim()
    return dense.reshape(math.prod(sparse.shape[:count]), *sparse.shape[count:])


def add_at(dense, sparse, values):
    """dense with the values added at the places."""
    rows, at = _rows(dense, sparse), sparse._along(None)
    if values.dtype == _C.bool:
        return rows.index_put((at,), values).reshape(dense.shape)
    return rows.index_add(0, at, values).reshape(dense.shape)


def elements_at(dense, sparse):
    """The elements [n, *dense dims] of a dense tensor of the same size at the places."""
    return _rows(dense, sparse).index_select(0, sparse._along(None, dense.device))


def from_dense(x, sparse_dim=None, *, layout=None, **_):
    """A sparse tensor of the elements that are not 0. Reads x."""
    count = x.dim() if sparse_dim is None else sparse_dim
    if not 0 < count <= max(x.dim(), 1):
        refuse("to_sparse", f"sparse_dim must be from 1 to {x.dim()}, is {count}")
    if layout is not None and layout not in (sparse_coo, *COMPRESSED):
        refuse("to_sparse", f"there is no layout {layout!r}")
    there = x.detach().cpu().numpy() != 0
    there = there.reshape(*there.shape[:count], -1).any(-1)
    places = np.stack(np.nonzero(there)).astype(np.int64)
    at = tensor(np.flatnonzero(there), device=x.device)
    values = x.reshape(there.size, *x.shape[count:]).index_select(0, at)
    made = SparseTensor(places, values, x.shape, coalesced=True)
    return made if layout is None else made._in_layout(layout)


def sparse_mask(x, mask):
    """The elements of x at the places of a sparse tensor."""
    return mask.with_values(elements_at(x, mask))


Tensor.to_sparse, Tensor.sparse_mask = from_dense, sparse_mask
Tensor.to_sparse_coo = lambda self: from_dense(self)
Tensor.to_sparse_csr = lambda self, dense_dim=None: from_dense(self, layout=sparse_csr)
Tensor.to_sparse_csc = lambda self, dense_dim=None: from_dense(self, layout=sparse_csc)
Tensor.to_dense = lambda self, dtype=None, **_: self if dtype is None else self.to(dtype)


def _of_values(name):
    function = getattr(_C, name)

    def apply(x):
        if x.layout is sparse_coo:
            x = x.coalesce()
        return x.with_values(function(x._elements))

    apply.__name__, apply.__doc__ = name, f"{name}() of each element."
    return apply


for _name in UNARY:
    if hasattr(_C, _name):
        handles(_name)(_of_values(_name))
SparseTensor.__neg__, SparseTensor.__abs__ = HANDLERS["neg"], HANDLERS["abs"]


def _conversion(name):
    def convert(self):
        return self.with_values(getattr(self._elements, name)())

    convert.__name__, convert.__doc__ = name, f"The same tensor, as {name}() of a dense one."
    return convert


for _name in ("bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half",
              "int", "long", "short"):
    setattr(SparseTensor, _name, _conversion(_name))
