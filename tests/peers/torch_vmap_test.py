#!/usr/bin/env python3
"""lazuli.vmap on PyTorch's operator database, and HloModule.vmap on programs of JAX.

    torch_vmap_test.py FOLDER [--whole] [--show] [NAME...]     FOLDER holds the package lazuli, as build/PRESET/python does

A sample of an entry becomes a batch of three: vmap() of the function gives what torch gives for each of them, whether all of its tensors
are batched or the first one alone. A program that JAX lowers for one sample, batched by HloModule.vmap(), gives what jax.vmap() gives. A
part of the entries is tried, with --whole all of them, with more samples and dtypes; --show prints each failure.
"""

import argparse
import os
import re
import sys
import warnings

os.environ.setdefault("PJRT_DEVICE", "interpreter")

import torch_opinfo_test as opinfo

SIZE = 3
# What is left out, and why.
REASONS = {
    "shapes or choices depend on elements": re.compile(
        r"masked_select|tensor_split|unique(_consecutive)?|nonzero|argwhere|item|equal|allclose|narrow|combinations|is_nonzero"),
    "draws random numbers": re.compile(
        r"svd_lowrank|pca_lowrank|nn\.functional\.(.*dropout.*|fractional_max_pool.*|rrelu|gumbel_softmax)|rand.*|normal.*|bernoulli|cauchy|"
        r"exponential|geometric|log_normal|uniform|multinomial|.*rand(int|n)?(_like)?|nn\.functional\.(scaled_dot_product|multi_head).*"),
    "writes to statistics that samples share": re.compile(r"(native|_native)_batch_norm.*|nn\.functional\.(batch|instance)_norm|_batch_norm.*"),
    "torch's loop over samples sees the memory of the batch": re.compile(r"as_strided.*|resize_.*|set_.*"),
    "elements are not defined, or no tensor is taken": re.compile(r"empty.*|new_empty.*|jiterator.*|torch\.ops\..*|to_sparse.*|sparse\..*"),
}


def batch_of(value):
    """A batch of like samples."""
    import torch

    if not (value.is_floating_point() or value.is_complex()):
        return torch.stack([value.detach()] * SIZE)
    return torch.stack([value.detach() * (1 - k / 16) for k in range(SIZE)])


def replaced(tree, values):
    """The tree with its tensors replaced, in order."""
    import torch

    if isinstance(tree, torch.Tensor):
        return next(values)
    if isinstance(tree, dict):
        return {key: replaced(item, values) for key, item in tree.items()}
    if isinstance(tree, (tuple, list)):
        made = [replaced(item, values) for item in tree]
        return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)
    return opinfo.to_lazuli(tree) if isinstance(tree, (torch.dtype, torch.device, torch.layout, torch.memory_format)) else tree


def looped(op, tree, batches):
    """torch's results for each sample, stacked; None where it refuses one."""
    import torch

    def at(values):
        tree_of = lambda t: (next(values) if isinstance(t, torch.Tensor) else {k: tree_of(v) for k, v in t.items()} if isinstance(t, dict)  # noqa: E731
                             else type(t)(*map(tree_of, t)) if hasattr(t, "_fields") else type(t)(map(tree_of, t)) if isinstance(t, (tuple, list)) else t)
        value, arguments, keywords = tree_of(tree)
        return opinfo.leaves(op.op(value, *arguments, **keywords), torch.Tensor)

    try:
        each = [at(iter([b[k] for b in batches])) for k in range(SIZE)]
        return [torch.stack(list(column)) for column in zip(*each, strict=True)]
    except Exception:
        return None


def try_sample(op, function, sample, alone):
    """1 for a check that was made; raises Unlike."""
    import lazuli as lz
    import torch

    tree = opinfo.fresh((sample.input, tuple(sample.args), dict(sample.kwargs)))
    tensors = opinfo.leaves(tree, torch.Tensor)
    if not tensors or any(t.layout != torch.strided for t in tensors):
        return 0
    batches = [batch_of(t) if i == 0 or not alone else torch.stack([t.detach()] * SIZE) for i, t in enumerate(tensors)]
    expected = looped(op, tree, batches)
    if not expected:
        return 0
    mine = [opinfo.to_lazuli(b if i == 0 or not alone else b[0]) for i, b in enumerate(batches)]

    def run(*values):
        given = iter(values)
        value, arguments, keywords = replaced(tree, given)
        return tuple(opinfo.leaves(function(value, *arguments, **keywords), lz.Tensor))

    try:
        got = lz.vmap(run, tuple(None if alone and i else 0 for i in range(len(mine))))(*mine)
        lz.sync(True)
    except Exception as error:
        raise opinfo.Unlike("refused", f"{type(error).__name__}: {error}") from error
    opinfo.compare(list(got), expected, "values")
    return 1


def checks_of(op, function, whole):
    import torch

    function = next(opinfo.variants(op, function))[2]
    for name in opinfo.usable_dtypes(op, whole) if whole else ["float32"]:
        dtype = getattr(torch, name)
        if dtype not in op.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        for i, sample in enumerate(op.sample_inputs("cpu", dtype)):
            if i >= (6 if whole else 2):
                break
            for alone in (False, True):
                yield f"{name} sample {i}{' alone' if alone else ''}", lambda a=(op, function, sample, alone): try_sample(*a)


def entries(names, whole):
    from torch.testing._internal.common_methods_invocations import op_db

    for k, op in enumerate(op_db):
        function = opinfo.find(op.name)
        left_out = any(pattern.fullmatch(op.name) for pattern in REASONS.values())
        wanted = opinfo.title(op) in names if names else (whole or k % 4 == 0) and not left_out
        if wanted and callable(function):
            yield op, function


def jax_programs():
    """(name, a function of jax.numpy, a sample's shapes, which of them are batched)."""
    import jax
    import jax.numpy as jnp

    scan = lambda x: jax.lax.scan(lambda c, v: (c * 0.9 + v, jnp.sin(c)), 0.0, x)  # noqa: E731
    loop = lambda x: jax.lax.while_loop(lambda s: s[0].sum() < 10, lambda s: (s[0] * s[0] + 1, s[1] + 1), (x, 0))  # noqa: E731
    conv = lambda x, k: jax.lax.conv_general_dilated(x, k, (1, 1), "SAME")  # noqa: E731
    image, kernel = (2, 3, 6, 6), (4, 3, 3, 3)
    yield "dot", lambda x, w: jnp.tanh(x @ w), [(5,), (5, 3)], (1, 0)
    yield "dot of weights", lambda x, w: x @ w, [(4, 5), (5, 3)], (0, 1)
    yield "einsum", lambda x, y: jnp.einsum("bij,bjk->bki", x, y), [(2, 3, 4), (2, 4, 5)], (1, 1)
    yield "einsum of one", lambda x, y: jnp.einsum("bij,bjk->bki", x, y), [(2, 3, 4), (2, 4, 5)], (0, 1)
    yield "convolution", conv, [image, kernel], (1, 0)
    yield "convolution of kernels", conv, [image, kernel], (0, 1)
    yield "convolutions", conv, [image, kernel], (1, 1)
    yield "gradient of a convolution", jax.grad(lambda x, k: (conv(x, k)**2).sum(), 1), [image, kernel], (1, 0)
    yield "scan", scan, [(7,)], (1,)
    yield "while", loop, [(4,)], (1,)
    yield "cond", lambda x, y: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, y), [(4,), (3,)], (1, 0)
    yield "switch", lambda x, y: jax.lax.switch((x.sum() * 3).astype(int), [jnp.sin, jnp.cos, lambda v: v * 2], y), [(4,), (3,)], (1, 1)
    yield "dynamic slice", lambda x, i: jax.lax.dynamic_slice(x, (jnp.abs(i[0] * 4).astype(int), 1), (2, 2)), [(6, 4), (1,)], (0, 1)
    yield "update", lambda x, i: x.at[jnp.abs(i[0] * 4).astype(int)].set(i[0]), [(6, 4), (1,)], (1, 1)
    yield "scatter", lambda x, i: x.at[jnp.abs(i * 3).astype(int)].add(i), [(6,), (4,)], (0, 1)
    yield "gather", lambda x, i: x[jnp.abs(i * 3).astype(int)], [(6, 2), (4,)], (1, 1)
    yield "sort", lambda x: (jnp.sort(x), jnp.argsort(-x)), [(3, 7)], (1,)
    yield "top k", lambda x: jax.lax.top_k(x, 3), [(7,)], (1,)
    yield "cumulative", lambda x: (jnp.cumsum(x), jnp.cumprod(x), jax.lax.cummax(x)), [(9,)], (1,)
    yield "pooling", lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID"), [(6, 6)], (1,)
    yield "gradient of pooling", jax.grad(lambda x: (jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID")**2).sum()), [(6, 6)], (1,)
    yield "attention", lambda q, k, v: jax.nn.softmax(q @ k.T) @ v, [(4, 8), (6, 8), (6, 5)], (1, 1, 1)
    yield "fft", lambda x: jnp.abs(jnp.fft.rfft(x)), [(2, 12)], (1,)
    yield "cholesky", lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)), [(4, 4)], (1,)
    yield "solve", lambda x, y: jnp.linalg.solve(x + 6 * jnp.eye(4), y), [(4, 4), (4,)], (1, 0)
    yield "triangular solve", lambda x, y: jax.scipy.linalg.solve_triangular(jnp.tril(x) + 3 * jnp.eye(4), y, lower=True), [(4, 4), (4, 2)], (0, 1)
    yield "eigenvalues", lambda x: jnp.linalg.eigvalsh(x + x.T), [(4, 4)], (1,)
    yield "singular values", lambda x: jnp.linalg.svd(x, compute_uv=False), [(4, 3)], (1,)
    yield "hessian", jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[0])), [(4,)], (1,)
    yield "random", lambda x: x + jax.random.normal(jax.random.PRNGKey(3), (4,)), [(4,)], (1,)
    yield "map", lambda x: jax.lax.map(lambda v: jnp.sort(v)[0] * v, x), [(3, 4)], (1,)
    yield "associative scan", lambda x: jax.lax.associative_scan(jnp.multiply, x), [(8,)], (1,)


def try_program(function, shapes, batched):
    import jax
    import lazuli as lz
    import numpy as np

    rng = np.random.default_rng(3)
    arrays = [jax.numpy.asarray(rng.normal(size=((SIZE,) if b else ()) + shape), np.float32) for shape, b in zip(shapes, batched, strict=True)]
    samples = [a[0] if b else a for a, b in zip(arrays, batched, strict=True)]
    text = jax.jit(function, keep_unused=True).lower(*samples).compiler_ir("hlo").as_hlo_text()
    expected = jax.tree_util.tree_leaves(jax.vmap(function, tuple(0 if b else None for b in batched))(*arrays))
    module = lz.hlo.HloModule.parse(text).vmap(SIZE, [0 if b else None for b in batched])
    got = module.evaluate([lz.tensor(np.asarray(a)) for a in arrays])
    for mine, other in zip(got, expected, strict=True):
        other = np.asarray(other)
        if tuple(mine.shape) != other.shape or not np.allclose(mine.numpy(), other, rtol=2e-4, atol=2e-4):
            raise opinfo.Unlike("values", f"{mine.numpy().ravel()[:6]} instead of {other.ravel()[:6]}")
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    warnings.simplefilter("ignore")
    checks, failed = 0, []
    for op, function in entries(options.names, options.whole):
        result = opinfo.run_checks(opinfo.title(op), checks_of(op, function, options.whole), options.show)
        checks += result["checks"]
        if result["failures"]:
            failed.append(f"{opinfo.title(op)}: {result['failures']}")
    programs = [] if options.names else list(jax_programs())
    for name, function, shapes, batched in programs:
        try:
            checks += try_program(function, shapes, batched)
        except Exception as error:
            failed.append(f"jax: {name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    for line in failed:
        print(line)
    print(f"{checks} checks of operators and programs in batches, {len(failed)} entries failed")
    return 1 if failed or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
