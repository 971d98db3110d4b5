"""Sums, products and reductions of sparse tensors."""

from lazuli import _C
from lazuli._numpy import np
from lazuli._tensor import tensor
from lazuli.sparse._tensor import (SparseTensor, add_at, elements_at, handles, merged, refuse,
                                   sparse_coo)


def _is_sparse(x):
    return isinstance(x, SparseTensor)


def _check_sizes(name, x, y):
    if tuple(x.shape) != tuple(y.shape):
        refuse(name, f"expected sizes of the operands to match, got {tuple(x.shape)} and "
               f"{tuple(y.shape)}")


def _sum_of_two(x, y, alpha):
    _check_sizes("add", x, y)
    a, b = x._in_layout(sparse_coo), y._in_layout(sparse_coo)
    values = b._elements if alpha == 1 else b._elements * alpha
    if np.array_equal(a._places, b._places):
        return a.with_values(a._elements + values)._in_layout(x.layout)
    dtype = _C.result_type(a._elements, values)
    places = np.concatenate([a._places, b._places], 1)
    values = _C.cat([a._elements.to(dtype), values.to(dtype)])
    if not (a._coalesced and b._coalesced):
        return SparseTensor(places, values, x.shape)
    return merged(places, values, x.shape)._in_layout(x.layout)


@handles("add", "__add__")
def add(x, y, *, alpha=1):
    """x + alpha y of two sparse tensors, or of a dense and a sparse one."""
    if _is_sparse(x) and _is_sparse(y):
        return _sum_of_two(x, y, alpha)
    if _is_sparse(x):
        if isinstance(y, _C.Tensor):
            refuse("add", "add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        refuse("add", "a number cannot be added to a sparse tensor: no element would be 0")
    _check_sizes("add", x, y)
    dtype = _C.result_type(x, y._elements)
    values = y._elements.to(dtype)
    return add_at(x.to(dtype), y, values if alpha == 1 else values * alpha)


@handles("sub", "subtract", "__sub__")
def sub(x, y, *, alpha=1):
    """x - alpha y."""
    return add(x, y, alpha=-alpha)


@handles("__radd__", method=True)
def _added_to(x, y):
    return add(y, x)


@handles("__rsub__", method=True)
def _subtracted_from(x, y):
    return add(y, x, alpha=-1)


@handles("mul", "multiply", "__mul__", "__rmul__")
def mul(x, y):
    """The elementwise product, which has the places of the sparse factor or of both."""
    if not _is_sparse(x):
        x, y = y, x
    if _is_sparse(y):
        _check_sizes("mul", x, y)
        a, b = x.in_order(), y.in_order()
        _, first, second = np.intersect1d(a.linear(), b.linear(), assume_unique=True,
                                          return_indices=True)
        both = a._picked(first, coalesced=True)
        return both.with_values(both._elements * b._picked(second)._elements)._in_layout(x.layout)
    if isinstance(y, _C.Tensor) and y.dim() > 0:
        return x.with_values(x._elements * elements_at(y.broadcast_to(x.shape), x))
    return x.with_values(x._elements * y)


@handles("div", "divide", "true_divide", "__truediv__")
def div(x, y, *, rounding_mode=None):
    """x / y of a sparse tensor and a number or a tensor of rank 0."""
    if not _is_sparse(x) or _is_sparse(y) or (isinstance(y, _C.Tensor) and y.dim() > 0):
        refuse("div", "Sparse division requires a scalar or zero-dim dense tensor divisor")
    return x.with_values(_C.div(x._elements, y, rounding_mode=rounding_mode))


@handles("pow", "__pow__")
def power(x, exponent):
    """Each element to the power of a number above 0."""
    if not isinstance(exponent, (int, float)) or exponent <= 0:
        refuse("pow", "a sparse tensor takes an exponent above 0: others change its zeros")
    x = x.coalesce()
    return x.with_values(x._elements ** exponent)


# --- products of matrices


def _check_product(x, y):
    if x.dim() != 2 or y.dim() not in (1, 2) or x.shape[1] != y.shape[0]:
        refuse("mm", f"a product of {tuple(x.shape)} and {tuple(y.shape)} is not there")
    for factor in (x, y):
        if _is_sparse(factor) and factor.dense_dim():
            refuse("mm", "a factor has dense dims; products take matrices of two sparse dims")


def _times_dense(x, y):
    """[n, k] sparse times [k, m] or [k]: each value times a row, added to a row of the result."""
    rows, columns = x._along(0), x._along(1)
    dtype = _C.result_type(x._elements, y)
    values = x._elements.to(dtype)
    values = values if y.dim() == 1 else values.unsqueeze(1)
    result = _C.zeros((x.shape[0], *y.shape[1:]), dtype=dtype, device=x.device)
    return result.index_add(0, rows, values * y.to(dtype).index_select(0, columns))


def _times_sparse(x, y):
    """Each value of x times all values in the row of y that its column selects."""
    a, b = x.in_order(), y.in_order()
    begins = np.searchsorted(b._places[0], np.arange(b.shape[0] + 1))
    counts = np.diff(begins)[a._places[1]]
    first = np.repeat(np.arange(a._nnz()), counts)
    inner = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    second = begins[a._places[1][first]] + inner
    values = (a._elements.index_select(0, tensor(first, device=a.device)) *
              b._elements.index_select(0, tensor(second, device=a.device)))
    places = np.stack([a._places[0][first], b._places[1][second]])
    return merged(places, values, (x.shape[0], y.shape[1]))._in_layout(x.layout)


@handles("mm", "matmul", "smm", "spmm", "hspmm", "mv", "dot", "__matmul__")
def mm(x, y):
    """The matrix product, which is sparse if both factors are."""
    if not _is_sparse(x) and not _is_sparse(y):
        return _C.mm(x, y)
    if not _is_sparse(x):
        if x.dim() == 1:
            return mm(y.t(), x)
        _check_product(y.t(), x.t())
        return _times_dense(y.t(), x.t()).t()
    _check_product(x, y)
    return _times_sparse(x, y) if _is_sparse(y) else _times_dense(x, y)


@handles("__rmatmul__", method=True)
def _times_from_left(x, y):
    return mm(y, x)


@handles("addmm", method=False)
def addmm(x, mat1, mat2, *, beta=1, alpha=1):
    """beta x + alpha mm(mat1, mat2)."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    x = x if beta == 1 else x * beta
    return add(x, product) if _is_sparse(product) or _is_sparse(x) else x + product


@handles("linear", method=False)
def linear(x, weight, bias=None):
    """x weight^T + bias of a sparse x [n, k] and a dense weight."""
    y = mm(x, weight.t())
    return y if bias is None else y + bias


def sampled_addmm(x, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta x + alpha mat1 mat2, computed only at the places of a sparse x (SDDMM)."""
    rows, columns = x._along(0), x._along(1)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, columns)).sum(1)
    return x.with_values(x._elements * beta + products * alpha)


# --- along dims


@handles("sum")
def sum(x, dim=None, dtype=None):  # noqa: A001
    """The sum of all elements, or along dims. It is sparse if a sparse dim is left."""
    values = x._elements if dtype is None else x._elements.to(dtype)
    if dim is None:
        return values.sum()
    count = x.sparse_dim()
    dims = {d % x.dim() for d in ((dim,) if isinstance(dim, int) else dim)}
    dense = [d - count + 1 for d in dims if d >= count]
    values = values.sum(dense) if dense else values
    left = [d for d in range(count) if d not in dims]
    if not left:
        return values.sum(0)
    size = [x.shape[d] for d in range(x.dim()) if d not in dims]
    if len(left) == count:
        return SparseTensor(x._places, values, size, coalesced=x._coalesced)
    return merged(x._places[left], values, size)


@handles("norm")
def norm(x, p=2):
    """The norm of the vector of all elements."""
    return _C.norm(x.in_order()._elements, p)


def _softmax(x, dim, log, dtype):
    whole = x.in_order()
    whole = whole if dtype is None else whole.to(dtype)
    dim, count, values = dim % x.dim(), x.sparse_dim(), whole._elements
    if dim >= count:
        function = _C.log_softmax if log else _C.softmax
        return whole.with_values(function(values, dim - count + 1))._in_layout(x.layout)
    groups = np.unique(whole.linear([d for d in range(count) if d != dim]), return_inverse=True)[1]
    at = tensor(groups.reshape(-1), device=x.device)
    dims = (int(groups.max(initial=-1)) + 1, *values.shape[1:])
    most = _C.full(dims, -np.inf, dtype=values.dtype, device=x.device)
    shifted = values - most.index_reduce(0, at, values.detach(), "amax").index_select(0, at)
    total = _C.zeros(dims, dtype=values.dtype, device=x.device).index_add(0, at, shifted.exp())
    if log:
        return whole.with_values(shifted - total.log().index_select(0, at))._in_layout(x.layout)
    return whole.with_values(shifted.exp() / total.index_select(0, at))._in_layout(x.layout)


@handles("softmax")
def softmax(x, dim, *, dtype=None):
    """softmax() along a dim of the elements at the places; others count as -inf."""
    return _softmax(x, dim, False, dtype)


@handles("log_softmax")
def log_softmax(x, dim, *, dtype=None):
    """The logarithm of softmax()."""
    return _softmax(x, dim, True, dtype)


# --- several


@handles("cat", "concat", "concatenate", method=False)
def cat(tensors, dim=0):
    """Sparse tensors one after the other along a sparse dim."""
    parts = [x._in_layout(sparse_coo) for x in tensors]
    dim, offset, places = dim % parts[0].dim(), 0, []
    for part in parts:
        if any(d != dim and part.shape[d] != parts[0].shape[d] for d in range(part.dim())):
            refuse("cat", f"sizes {tuple(part.shape)} and {tuple(parts[0].shape)} differ in "
                   f"another dim than {dim}")
        moved = part._places.copy()
        moved[dim] += offset
        offset += part.shape[dim]
        places.append(moved)
    size = list(parts[0].shape)
    size[dim] = offset
    values = _C.cat([part._elements for part in parts])
    return SparseTensor(np.concatenate(places, 1), values, size)


@handles("stack", method=False)
def stack(tensors, dim=0):
    """Sparse tensors of one size along a new sparse dim."""
    parts = [x._in_layout(sparse_coo) for x in tensors]
    numbers = np.repeat(np.arange(len(parts)), [part._nnz() for part in parts])
    places = np.insert(np.concatenate([part._places for part in parts], 1), dim, numbers, 0)
    size = list(parts[0].shape)
    size.insert(dim, len(parts))
    return SparseTensor(places, _C.cat([part._elements for part in parts]), size)


@handles("zeros_like", method=False)
def zeros_like(x, **_):
    """A sparse tensor of the same size without values."""
    none = x._elements.detach()[:0]
    return SparseTensor(x._places[:, :0], none, x.shape, x.layout, coalesced=True)


@handles("is_same_size", method=False)
def is_same_size(x, y):
    return tuple(x.shape) == tuple(y.shape)


for _name in ("transpose", "permute", "t", "index_select", "select", "clone", "detach"):
    handles(_name)(getattr(SparseTensor, _name))
SparseTensor.sampled_addmm = sampled_addmm
