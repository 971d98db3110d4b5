"""Sparse tensors, and the functions of torch.sparse.

    adjacency = lz.sparse_coo_tensor(edges, weights, (nodes, nodes))
    hidden = lz.sparse.mm(adjacency, features)     # gradients for weights and features
"""

from lazuli import _C
from lazuli._C import Tensor
from lazuli._numpy import np
from lazuli._tensor import tensor
from lazuli.sparse._functions import (addmm, log_softmax, mm, sampled_addmm, softmax,
                                      sum)  # noqa: A004
from lazuli.sparse._tensor import (COMPRESSED, SparseTensor, host, refuse, sparse_coo, sparse_csc,
                                   sparse_csr)

__all__ = ["SparseTensor", "addmm", "check_sparse_tensor_invariants", "log_softmax", "mm",
           "sampled_addmm", "softmax", "spdiags", "sum"]


def _values_of(values, dtype, device, requires_grad):
    made = values if isinstance(values, Tensor) else tensor(values, dtype=dtype, device=device)
    if dtype is not None or device is not None:
        made = made.to(dtype=dtype or made.dtype, device=device or made.device)
    if requires_grad:
        return made.detach().requires_grad_()
    # A later requires_grad_() of the caller's values does not count for this tensor.
    return made if made.requires_grad else made.detach()


def sparse_coo_tensor(indices, values=None, size=None, *, dtype=None, device=None,
                      requires_grad=False, check_invariants=None, is_coalesced=False):
    """The tensor with the values [n, *dense dims] at the places `indices` [sparse dims, n], and 0
    elsewhere.

    Values of one place are added. Without a size, it is the smallest one that has all places. If
    only a size is given, the tensor has no values. Raises InvalidArgumentError if a place lies
    outside of the size.
    """
    if values is None:
        size = size if size is not None else indices
        return SparseTensor(np.zeros((len(size), 0), np.int64), _C.zeros(
            0, dtype=dtype, device=device), size, coalesced=True)
    places, made = host(indices), _values_of(values, dtype, device, requires_grad)
    if places.ndim != 2:
        refuse("sparse_coo_tensor", f"indices must be a matrix, have {places.ndim} dims")
    made = made.reshape(1) if made.dim() == 0 else made
    if size is None:
        size = [*(int(n) + 1 for n in places.max(1, initial=-1)), *made.shape[1:]]
    return SparseTensor(places, made, size, coalesced=bool(is_coalesced))


def _compressed(kind, begins, others, values, size, layout, dtype=None, device=None,
                requires_grad=False, pin_memory=False, check_invariants=None):
    begins, others = host(begins), host(others)
    if begins.ndim != 1 or others.ndim != 1 or not len(begins):
        refuse(kind, "takes vectors of indices; batches of matrices are not supported")
    if begins[0] != 0 or begins[-1] != len(others) or (np.diff(begins) < 0).any():
        refuse(kind, f"compressed indices must go from 0 to {len(others)} without a step down, are "
               f"{begins.tolist()}")
    along = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    dim = COMPRESSED[layout]
    places = np.stack([others, along] if dim else [along, others])
    made = _values_of(values, dtype, device, requires_grad)
    if size is None:
        free = int(others.max(initial=-1)) + 1
        size = (free, len(begins) - 1) if dim else (len(begins) - 1, free)
    if size[dim] != len(begins) - 1:
        refuse(kind, f"{len(begins)} compressed indices do not go with size {tuple(size)}")
    return SparseTensor(places, made, size, layout, coalesced=True)


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, **keywords):
    """A matrix by rows: row i has the values from crow_indices[i] up to crow_indices[i + 1], in the
    columns col_indices."""
    return _compressed("sparse_csr_tensor", crow_indices, col_indices, values, size, sparse_csr,
                       **keywords)


def sparse_csc_tensor(ccol_indices, row_indices, values, size=None, **keywords):
    """A matrix by columns, as sparse_csr_tensor() by rows."""
    return _compressed("sparse_csc_tensor", ccol_indices, row_indices, values, size, sparse_csc,
                       **keywords)


def sparse_compressed_tensor(compressed_indices, plain_indices, values, size=None, *, layout,
                             **keywords):
    """sparse_csr_tensor() or sparse_csc_tensor(), by the layout."""
    if layout not in COMPRESSED:
        refuse("sparse_compressed_tensor", f"there is no layout {layout!r}")
    return _compressed("sparse_compressed_tensor", compressed_indices, plain_indices, values, size,
                       layout, **keywords)


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix whose diagonals at these offsets are the rows of `diagonals`."""
    rows = diagonals if diagonals.dim() == 2 else diagonals.unsqueeze(0)
    places, chosen = [], []
    for i, offset in enumerate(host(offsets).reshape(-1)):
        column = np.arange(rows.shape[1])
        inside = (column - offset >= 0) & (column - offset < shape[0]) & (column < shape[1])
        places.append(np.stack([column - offset, column])[:, inside])
        chosen.append(i * rows.shape[1] + column[inside])
    at = tensor(np.concatenate(chosen), device=rows.device)
    made = SparseTensor(np.concatenate(places, 1), rows.reshape(-1).index_select(0, at), shape)
    return made if layout is None else made.to_sparse(layout=layout)


class check_sparse_tensor_invariants:  # noqa: N801
    """As PyTorch's, but without an effect: places are always checked."""

    def __init__(self, enable=True):
        pass

    @staticmethod
    def is_enabled():
        return True

    @staticmethod
    def enable():
        pass

    @staticmethod
    def disable():
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def __call__(self, function):
        return function
