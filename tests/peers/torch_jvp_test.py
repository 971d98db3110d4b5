#!/usr/bin/env python3
"""lazuli.func.jvp on PyTorch's operator database.

    torch_jvp_test.py FOLDER [--whole] [--show] [NAME...]     FOLDER holds the package lazuli, as build/PRESET/python does

Of each sample of an entry all tensors of floats get a tangent: jvp() gives torch's values and tangents, and a batch of three of them,
jvp() under vmap(), what torch gives for one after the other. The gradient of the tangents is torch's where torch has one. A part of the
entries is tried, with --whole all of them, with more samples and dtypes; --show prints each failure.
"""

import argparse
import os
import sys
import warnings

os.environ.setdefault("PJRT_DEVICE", "interpreter")

import torch_opinfo_test as opinfo
import torch_vmap_test as batches

EVERY = 8  # of the entries, in the sample
# Entries that differ, and why. Where torch is said to be wrong, lazuli has what finite differences give.
TORCH_IS_WRONG = "torch's rule of forward mode is not the derivative"
DIFFERENT = {
    "linalg.solve": "torch's gradient of its tangents is wrong; lazuli's is JAX's",
    "logcumsumexp": "torch's formula loses digits",
    "logdet": "torch's gradient of its tangents is 0",
    "native_layer_norm": "torch gives mean and deviation no tangents",
    "nn.functional.embedding": "a row for padding has no tangent, as it has no gradient",
    "nn.functional.layer_norm": "torch's second derivatives for the weight are wrong",
    "nn.functional.linear_cross_entropy/chunked": TORCH_IS_WRONG,
    "nn.functional.linear_cross_entropy/chunked_none": TORCH_IS_WRONG,
    "nn.functional.nll_loss": "torch gives the weights no tangents",
    "nn.functional.triplet_margin_with_distance_loss": "the distance is a function of torch",
    "repeat_interleave": "counts that are tensors are read",
    "scatter_reduce/prod": TORCH_IS_WRONG,
    "triangular_solve": TORCH_IS_WRONG,
    "var/unbiased": "torch's tangent of what is not a number is 0",
    "var_mean/unbiased": "torch's tangent of what is not a number is 0",
}


def is_smooth(value):
    return value.is_floating_point() or value.is_complex()


class Function:
    """A sample's function of its tensors of floats, for torch or lazuli."""

    def __init__(self, function, tree, library, tensors, chosen):
        self.function, self.tree, self.library, self.tensors, self.chosen = function, tree, library, tensors, chosen

    def __call__(self, *given):
        tensors = list(self.tensors)
        for i, x in zip(self.chosen, given, strict=True):
            tensors[i] = x
        value, arguments, keywords = batches.replaced(self.tree, iter(tensors)) if self.library is not sys.modules["torch"] else \
            rebuilt(self.tree, iter(tensors))
        results = opinfo.leaves(self.function(value, *arguments, **keywords), self.library.Tensor)
        return tuple(r for r in results if is_smooth(r))


def rebuilt(tree, values):
    import torch

    if isinstance(tree, torch.Tensor):
        return next(values)
    if isinstance(tree, dict):
        return {key: rebuilt(item, values) for key, item in tree.items()}
    if isinstance(tree, (tuple, list)):
        made = [rebuilt(item, values) for item in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return tree


def directions(tensors, seed):
    return [opinfo.cotangent(t, seed + i).to(t.dtype) for i, t in enumerate(tensors)]


def try_sample(op, function, sample):
    """The number of checks that were made; raises Unlike."""
    import lazuli as lz
    import torch

    tree = opinfo.fresh((sample.input, tuple(sample.args), dict(sample.kwargs)))
    tensors = [t.detach() for t in opinfo.leaves(tree, torch.Tensor)]
    chosen = [i for i, t in enumerate(tensors) if is_smooth(t)]
    if not chosen or any(t.layout != torch.strided for t in tensors):
        return 0
    theirs = Function(op.op, tree, torch, tensors, chosen)
    ours = Function(function, tree, lz, opinfo.to_lazuli(tensors), chosen)
    primals = [tensors[i] for i in chosen]
    tangents = directions(primals, 1)
    try:
        expected = torch.func.jvp(theirs, tuple(primals), tuple(tangents))
    except Exception:
        return 0
    if not expected[0]:
        return 0
    mine, directed = tuple(opinfo.to_lazuli(primals)), tuple(opinfo.to_lazuli(tangents))
    judged("jvp", lambda: lz.func.jvp(ours, mine, directed), expected)
    return 1 + try_batch(theirs, ours, primals) + try_gradient(theirs, ours, primals, tangents)


def judged(kind, got, expected):
    import lazuli as lz

    try:
        found = got()
        lz.sync(True)
    except Exception as error:
        raise opinfo.Unlike(f"{kind} refused", f"{type(error).__name__}: {error}") from error
    try:
        opinfo.compare(tuple(map(tuple, found)), tuple(map(tuple, expected)), "gradient")
    except opinfo.Unlike as unlike:
        raise opinfo.Unlike(kind, str(unlike)) from unlike


def try_batch(theirs, ours, primals):
    import lazuli as lz
    import torch

    rows = [batches.batch_of(p) for p in primals]
    pushes = [torch.stack(column) for column in zip(*(directions(primals, 10 * k) for k in range(batches.SIZE)), strict=True)]
    try:
        each = [torch.func.jvp(theirs, tuple(r[k] for r in rows), tuple(p[k] for p in pushes)) for k in range(batches.SIZE)]
        expected = [[torch.stack(column) for column in zip(*part, strict=True)] for part in zip(*each, strict=True)]
    except Exception:
        return 0
    count = len(primals)
    batched = lz.vmap(lambda *a: lz.func.jvp(ours, a[:count], a[count:]))
    given = opinfo.to_lazuli(rows + pushes)
    judged("batch", lambda: batched(*given), expected)
    return 1


def try_gradient(theirs, ours, primals, tangents):
    """Of the sum of the tangents, each times other weights."""
    import lazuli as lz
    import torch

    def total(library, results, weights):
        parts = [(library.real(r * w) if r.is_complex() else r * w).sum() for r, w in zip(results, weights, strict=True)]
        return sum(parts[1:], parts[0])

    try:
        weights = directions([t for t in torch.func.jvp(theirs, tuple(primals), tuple(tangents))[1]], 5)
        of_theirs = lambda *p: total(torch, torch.func.jvp(theirs, p, tuple(tangents))[1], weights)  # noqa: E731
        expected = torch.func.grad(of_theirs, tuple(range(len(primals))))(*primals)
    except Exception:
        return 0
    mine, directed, scale = tuple(opinfo.to_lazuli(primals)), tuple(opinfo.to_lazuli(tangents)), opinfo.to_lazuli(weights)
    of_ours = lambda *p: total(lz, lz.func.jvp(ours, p, directed)[1], scale)  # noqa: E731
    judged("gradient of jvp", lambda: [lz.func.grad(of_ours, tuple(range(len(mine))))(*mine)], [expected])
    return 1


def checks_of(op, function, whole):
    import torch

    function = next(opinfo.variants(op, function))[2]
    for name in ("float64", "complex128") if whole else ("float64",):
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        for i, sample in enumerate(op.sample_inputs("cpu", dtype)):
            if i >= (6 if whole else 2):
                break
            yield f"{name} sample {i}", lambda a=(op, function, sample): try_sample(*a)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_intermixed_args()
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    checks = entries = 0
    failed = []
    for k, (op, function) in enumerate(batches.entries(options.names, options.whole)):
        if not (options.whole or options.names or k % (EVERY // 4) == 0) or not op.supports_autograd:
            continue
        entries += 1
        result = opinfo.run_checks(opinfo.title(op), checks_of(op, function, options.whole), options.show)
        checks += result["checks"]
        if result["failures"] and opinfo.title(op) not in DIFFERENT:
            failed.append(f"{opinfo.title(op)}: {result['failures']}")
    for line in failed:
        print(line)
    print(f"{checks} checks of tangents of {entries} operators, {len(failed)} entries failed")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
