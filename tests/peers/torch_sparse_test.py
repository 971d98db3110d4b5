#!/usr/bin/env python3
"""Sparse tensors beside PyTorch's: what they are, functions, gradients, mistakes, and graph networks that train.

Every case makes the same tensors in both libraries. Results agree if their layout, their size, the places of a coalesced one and
their elements do. A graph convolution and graph attention train for 20 steps with equal losses.

Prints how many comparisons hold. Run as `torch_sparse_test.py FOLDER_OF_THE_PACKAGE`.
"""

import itertools
import sys
import warnings

import numpy as np
import torch
from cases import Comparisons

sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

rng = np.random.default_rng(0)
comparisons = Comparisons()


def elements(x):
    """The elements of a tensor of either library and layout."""
    if isinstance(x, (int, float, bool, str, tuple)):
        return np.asarray(x)
    return np.asarray((x.detach().to_dense() if str(x.layout) != "torch.strided" else x.detach()).numpy())


def check(what, ours, theirs):
    if isinstance(theirs, torch.Tensor):
        kinds = [" ".join(str(v).split(".")[-1] for v in (x.layout, x.dtype, tuple(x.shape))) for x in (ours, theirs)]
        if kinds[0] != kinds[1]:
            comparisons.expect(False, f"{what}: {kinds[0]}, not {kinds[1]}")
            return
    a, b = elements(ours), elements(theirs)
    comparisons.expect(a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-9), f"{what}: {a} is not {b}")


def both(what, function):
    """The function of the library, compared; errors by their kind."""
    results = []
    for lib in (lz, torch):
        try:
            results.append(function(lib))
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
            results.append(error)
    if isinstance(results[1], Exception):
        comparisons.expect(isinstance(results[0], Exception), f"{what}: torch says {results[1]}; no error here")
    elif isinstance(results[0], Exception):
        comparisons.expect(False, f"{what}: {type(results[0]).__name__} {results[0]}")
    elif isinstance(results[1], (list, tuple)) and not isinstance(results[1], torch.Size):
        for i, (a, b) in enumerate(zip(*results, strict=True)):
            check(f"{what}, value {i}", a, b)
    else:
        check(what, *results)


SIZE = (4, 5)
PLACES = np.array([[0, 1, 3, 1, 3], [4, 0, 2, 0, 3]])  # one of them twice
VALUES = np.array([1.5, -2.0, 0.5, 3.0, 4.0])
HYBRID = rng.standard_normal((5, 2))
DENSE, WIDE = rng.standard_normal(SIZE), rng.standard_normal((5, 3))


class Given:
    """The operands of a library."""

    def __init__(self, lib):
        self.lib = lib
        self.coo = lib.sparse_coo_tensor(PLACES, lib.tensor(VALUES), SIZE)
        self.whole = self.coo.coalesce()
        self.csr, self.other = self.whole.to_sparse_csr(), lib.tensor(DENSE * (DENSE > 0)).to_sparse()
        self.csc = self.whole.to_sparse_csc()
        self.hybrid = lib.sparse_coo_tensor(PLACES, lib.tensor(HYBRID), (*SIZE, 2))
        self.dense, self.wide, self.vector = lib.tensor(DENSE), lib.tensor(WIDE), lib.tensor(WIDE[:, 0].copy())


ATTRIBUTES = ("shape", "is_sparse", "is_sparse_csr", "ndim", "requires_grad", "is_leaf")
FUNCTIONS = {
    "parts": lambda g: [g.whole.indices(), g.whole.values(), g.csr.crow_indices(), g.csr.col_indices(), g.csr.values(), g.csc.ccol_indices(),
                        g.csc.row_indices(), g.csc.values(), g.coo._indices(), g.coo._values()],
    "counts": lambda g: [g.coo._nnz(), g.whole._nnz(), g.coo.sparse_dim(), g.hybrid.dense_dim(), g.coo.numel(), len(g.coo), g.coo.dim(),
                         g.coo.is_coalesced(), g.whole.is_coalesced(), g.coo.size(1)],
    "forms": lambda g: [g.coo.to_dense(), g.coo.coalesce(), g.hybrid.coalesce(), g.hybrid.to_dense(), g.csr.to_dense(), g.csr.to_sparse(), g.csc,
                        g.csc.to_sparse_csr(), g.csr.to_sparse_csc(), g.dense.to_sparse(), g.dense.to_sparse(1), g.dense.to_sparse_csr(),
                        g.dense.to_sparse_csc()],
    "conversions": lambda g: [g.coo.float(), g.coo.to(g.lib.float32), g.csr.to(g.lib.float32), g.coo.cpu(), g.coo.detach(), g.coo.clone()],
    "turned": lambda g: [g.coo.t(), g.coo.T, g.coo.transpose(0, 1), g.hybrid.transpose(1, 0), g.csr.t(), g.csc.t(), g.coo.permute(1, 0)],
    "slices": lambda g: [g.coo[1], g.coo[-1], g.hybrid[1], g.coo.select(1, 0), g.coo.index_select(0, g.lib.tensor([3, 1, 1])),
                         g.coo.index_select(1, g.lib.tensor([2]))],
    "sums": lambda g: [g.coo + g.coo, g.coo + g.other, g.whole + g.other, g.coo - g.other, g.lib.add(g.coo, g.other, alpha=2), g.dense + g.coo,
                       g.lib.add(g.dense, g.coo, alpha=-3), g.dense - g.coo, g.csr + g.csr, -g.coo, g.coo.neg()],
    "factors": lambda g: [g.coo * 2, 2 * g.coo, g.coo / 4, g.csr * 2, g.coo * g.other, g.lib.mul(g.whole, g.other), g.whole * g.dense, g.coo.pow(2),
                          g.whole ** 2],
    "products": lambda g: [g.coo @ g.wide, g.lib.mm(g.coo, g.wide), g.lib.matmul(g.coo, g.wide), g.lib.sparse.mm(g.coo, g.wide), g.csr @ g.wide,
                           g.csr.matmul(g.vector), g.coo @ g.vector, g.lib.mv(g.coo, g.vector), g.lib.spmm(g.coo, g.wide), g.coo.mm(g.wide),
                           g.csc @ g.wide, g.lib.sparse.mm(g.coo, g.other.t()), g.coo.t() @ g.coo, g.wide.t() @ g.coo.t(), g.dense.t() @ g.coo],
    "addmm": lambda g: [g.lib.sparse.addmm(g.dense[:, :3], g.coo, g.wide), g.lib.addmm(g.dense[:, :3], g.coo, g.wide, beta=2, alpha=3),
                        g.lib.sparse.sampled_addmm(g.csr, g.dense[:, :3], g.wide.t(), beta=0.5, alpha=2)],
    "along": lambda g: [g.lib.sparse.sum(g.coo), g.coo.sum(), g.lib.sparse.sum(g.coo, 0), g.lib.sparse.sum(g.coo, [1]), g.lib.sparse.sum(g.coo, (0, 1)),
                        g.lib.sparse.sum(g.hybrid, 2), g.lib.sparse.sum(g.hybrid, [0, 2]), g.lib.sparse.sum(g.hybrid, 1), g.coo.norm(),
                        g.lib.sparse.softmax(g.coo, 1), g.lib.sparse.softmax(g.coo, 0), g.lib.sparse.log_softmax(g.coo, 1),
                        g.lib.sparse.softmax(g.hybrid, 1), g.lib.sparse.softmax(g.hybrid, 2), g.lib.sparse.softmax(g.coo.float(), 1, dtype=g.lib.float64)],
    "elements": lambda g: [getattr(g.lib, name)(x) for name, x in itertools.product(
        ("sin", "tanh", "abs", "relu", "sqrt", "sign", "expm1", "floor", "isnan", "erf", "log1p", "square"), (g.whole, g.coo))],
    "methods": lambda g: [g.coo.sin(), g.coo.abs(), g.csr.relu(), g.csr.sin()],
    "several": lambda g: [g.lib.cat([g.coo, g.other]), g.lib.cat([g.coo, g.other], 1), g.lib.stack([g.coo, g.other]), g.lib.stack([g.coo, g.other], 1),
                          g.lib.zeros_like(g.coo)],
    "mask": lambda g: [g.dense.sparse_mask(g.whole)],
    "made": lambda g: [g.lib.sparse_coo_tensor(PLACES, VALUES), g.lib.sparse_coo_tensor(SIZE), g.lib.sparse_csr_tensor([0, 1, 1, 3], [2, 0, 1], [1.0, 2, 3]),
                       g.lib.sparse_csc_tensor([0, 1, 1, 3], [2, 0, 1], [1.0, 2, 3]), g.lib.sparse_csr_tensor([0, 2], [1, 0], [1, 2], (1, 4)),
                       g.lib.sparse_compressed_tensor([0, 2], [1, 0], [1, 2], (1, 4), layout=g.lib.sparse_csr),
                       g.lib.sparse.spdiags(g.wide.t()[:2], g.lib.tensor([0, -1]), (5, 5))],
}
MISTAKES = {
    "values": lambda lib: lib.sparse_coo_tensor(PLACES, VALUES[:2], SIZE), "indices": lambda lib: Given(lib).coo.indices(),
    "places": lambda lib: lib.sparse_coo_tensor(lib.tensor(PLACES), lib.tensor(VALUES), (2, 2), check_invariants=True),
    "sum": lambda lib: Given(lib).coo + Given(lib).dense, "sizes": lambda lib: Given(lib).coo + Given(lib).coo.t(),
    "exp": lambda lib: lib.exp(Given(lib).coo), "numpy": lambda lib: Given(lib).coo.numpy(), "product": lambda lib: Given(lib).coo @ Given(lib).dense,
    "index": lambda lib: Given(lib).coo[4], "crow": lambda lib: Given(lib).coo.crow_indices(), "divisor": lambda lib: Given(lib).coo / Given(lib).dense,
    "offsets": lambda lib: lib.sparse_csr_tensor([0, 3], [1, 0], [1, 2], (1, 4), check_invariants=True), "t": lambda lib: Given(lib).hybrid.t(),
}


def gradients(lib):
    """Of values and dense factors, through what graph networks use; and of leaves that are sparse."""
    values, x = lib.tensor(VALUES, requires_grad=True), lib.tensor(WIDE, requires_grad=True)
    s = lib.sparse_coo_tensor(PLACES, values, SIZE)
    total = ((s @ x) ** 2).sum() + lib.sparse.softmax(s, 1).to_dense().pow(3).sum() + (s.coalesce() * 2).to_dense().exp().sum()
    total = total + lib.sparse.sum(s, 0).to_dense().pow(2).sum() + (x.t() @ s.t()).sin().sum() + ((s + s).to_dense() ** 2).sum()
    first = lib.autograd.grad(total, [values, x])
    leaf = lib.sparse_coo_tensor(PLACES, lib.tensor(VALUES), SIZE, requires_grad=True)
    (lib.sparse.mm(leaf, x.detach()) ** 2).sum().backward()
    dense = lib.tensor(DENSE, requires_grad=True)
    (dense.to_sparse().to_dense() ** 3).sum().backward()
    return [*first, leaf.grad.to_dense(), dense.grad]


def convolution(lib, edges, x):
    """A graph convolution with a fixed adjacency (Kipf and Welling, 2017)."""
    n = x.shape[0]
    degree = np.bincount(edges[0], minlength=n)
    weight = 1 / np.sqrt(degree[edges[0]] * np.maximum(np.bincount(edges[1], minlength=n)[edges[1]], 1))
    adjacency = lib.sparse_coo_tensor(lib.tensor(edges), lib.tensor(weight), (n, n))
    net = lib.nn.ModuleList([lib.nn.Linear(6, 8), lib.nn.Linear(8, 3)])

    def forward(x):
        x = lib.nn.functional.relu(lib.spmm(adjacency, net[0](x)))
        return lib.sparse.mm(adjacency, net[1](x))

    return net, forward


def attention(lib, edges, x):
    """Graph attention: a softmax over each node's edges (Velickovic et al., 2018)."""
    n, at = x.shape[0], lib.tensor(edges)
    net = lib.nn.ModuleList([lib.nn.Linear(6, 3, bias=False), lib.nn.Linear(6, 1)])

    def forward(x):
        h = net[0](x)
        scores = net[1](lib.cat([h[at[0]], h[at[1]]], 1)).squeeze(1)
        scores = lib.sparse_coo_tensor(at, lib.nn.functional.leaky_relu(scores, 0.2), (n, n))
        return lib.sparse.mm(lib.sparse.softmax(scores, 1), h)

    return net, forward


def training():
    n = 12
    edges = np.stack(np.nonzero(rng.random((n, n)) < 0.3))
    x, classes = rng.standard_normal((n, 6)), rng.integers(0, 3, n)
    for build in (convolution, attention):
        losses, start = [], None
        for lib in (torch, lz):
            given, goal = lib.tensor(x), lib.tensor(classes)
            net, forward = build(lib, edges, given)
            net.double()
            start = start or {name: value.numpy().copy() for name, value in net.state_dict().items()}
            net.load_state_dict({name: lib.tensor(value) for name, value in start.items()})
            optimizer, seen = lib.optim.Adam(net.parameters(), 0.05), []
            for _ in range(20):
                optimizer.zero_grad()
                loss = lib.nn.functional.cross_entropy(forward(given), goal)
                loss.backward()
                optimizer.step()
                seen.append(float(loss))
            losses.append(tuple(seen))
        check(f"losses of {build.__name__}", losses[1], losses[0])


def main():
    warnings.simplefilter("ignore")
    for name, function in FUNCTIONS.items():
        both(name, lambda lib, function=function: function(Given(lib)))
    for name in ATTRIBUTES:
        both(name, lambda lib, name=name: [tuple(v) if isinstance(v := getattr(x, name), tuple) else v for x in (Given(lib).coo, Given(lib).csr)])
    for name, call in MISTAKES.items():
        both(f"mistake '{name}'", call)
    both("gradients", gradients)
    training()
    sys.exit(comparisons.finish())


if __name__ == "__main__":
    main()
