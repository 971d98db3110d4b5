"""Products of groups of rows, each with a matrix of its own, as mixtures of experts have them: how
many rows a group has, a run decides.

A program has fixed sizes, so rows lie in blocks that are of one group each, as long as a group is
on average. There are at most twice as many blocks as groups, whatever their sizes, so at most twice
the rows are multiplied; each group with each matrix would be more.
"""

import lazuli as lz


class _Blocks:
    """Where `count` rows lie, whose groups end at `ends`; rows behind the last end are of no
    group."""

    def __init__(self, ends, count):
        ends = ends.to(lz.int64)
        self.count, self.groups = count, ends.shape[0]
        self.size = max(1, -(-count // self.groups))
        self.number = count // self.size + self.groups
        starts = lz.cat([lz.zeros((1,), dtype=lz.int64), ends[:-1]])
        blocks = lz.floor_divide(ends - starts + (self.size - 1), self.size)
        behind = lz.cumsum(blocks, 0)
        before = behind - blocks
        of, self.group = self._groups(self.number, behind)  # a block's
        rows = (starts[self.group] + (lz.arange(self.number) - before[self.group]) *
                self.size).unsqueeze(1) + lz.arange(self.size)
        self.filled = (rows < ends[self.group].unsqueeze(1)) & (of < self.groups).unsqueeze(1)
        self.rows = lz.where(self.filled, rows, 0)
        of, group = self._groups(count, ends)  # a row's
        self.has_group = (of < self.groups).unsqueeze(1)
        self.places = lz.where(of < self.groups,
                               before[group] * self.size + lz.arange(count) - starts[group], 0)

    def _groups(self, count, ends):
        of = lz.sum((lz.arange(count).unsqueeze(1) >= ends.unsqueeze(0)).to(lz.int64), 1)
        return of, lz.clamp(of, max=self.groups - 1)

    def of(self, x):
        """The rows of x in blocks, zeros where a group has no more."""
        return lz.where(self.filled.unsqueeze(2), x[self.rows], lz.zeros((), dtype=x.dtype))

    def product(self, x, matrices):
        made = lz.matmul(self.of(x),
                         matrices[self.group]).reshape([self.number * self.size, matrices.shape[2]])
        return lz.where(self.has_group, made[self.places], lz.zeros((), dtype=made.dtype))

    def products_of_columns(self, x, y):
        """The transpose of each group of x times that group of y."""
        made = lz.matmul(self.of(x).transpose(1, 2), self.of(y))
        return lz.index_add(lz.zeros((self.groups, *made.shape[1:]), dtype=made.dtype), 0,
                            self.group, made)


def product(x, matrices, ends):
    """Rows of x times the matrix of their group."""
    return _Blocks(ends, x.shape[0]).product(x, matrices)


def product_backward(x, matrices, ends, gradient):
    blocks = _Blocks(ends, x.shape[0])
    return (blocks.product(gradient, matrices.transpose(1, 2)),
            blocks.products_of_columns(x, gradient))


def grouped_mm(a, b, ends=None, bias=None, dtype=None):
    """torch._grouped_mm: groups of rows of a, or of columns of a and rows of b, or of columns of b,
    or none."""
    if bias is not None or dtype not in (None, a.dtype):
        raise lz.UnimplementedError("lazuli's product of groups has no bias and no dtype")
    if a.ndim == 3 and b.ndim == 3:
        return lz.matmul(a, b)
    if a.ndim == 2 and b.ndim == 3:
        return product(a, b, ends)
    if a.ndim == 2:
        return _Blocks(ends, b.shape[0]).products_of_columns(a.transpose(0, 1), b)
    return product(b.transpose(0, 1), a.transpose(1, 2), ends).transpose(0, 1)
