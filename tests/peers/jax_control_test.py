#!/usr/bin/env python3
"""lazuli.control is jax.lax, and lazuli's torch names are torch's: values and gradients of loops and branches in f64.

    jax_control_test.py FOLDER [PATTERN]      FOLDER holds the package lazuli, as build/PRESET/python does

A function is an expression of x, y, w and n; lax is jax.lax or lazuli.control, lib is jax.numpy or lazuli. The gradient is that of the sum
of squares of all results of floats. One with "forward" before it has no gradient: nobody knows the number of its steps.
"""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch._higher_order_ops import associative_scan, scan, while_loop

jax.config.update("jax_enable_x64", True)
sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402

X, Y, W = (5, 3), (3,), (3, 3)  # the shapes of x, y and w; n is an integer, 3

FUNCTIONS = """
lax.scan(lambda c, v: (c + v, c * v), y, x)
lax.scan(lambda c, v: (lib.tanh(w @ c + v), c.sum()), y, x)
lax.scan(lambda c, v: (lib.tanh(w @ c + v), None), y, x)
lax.scan(lambda c, v: (c * v, c), y, x, reverse=True)
lax.scan(lambda c, _: (lib.sin(w @ c), c), y, None, length=4)
lax.scan(lambda c, v: ({"a": c["a"] + v["p"], "b": c["b"] * v["q"][0]}, (v["p"], c["a"])), {"a": y, "b": y * 2}, {"p": x, "q": (x * x,)})
lax.scan(lambda c, v: ((c[0] + 1, c[1] * v), c[0] * 2), (n, y), x)
lax.scan(lambda c, v: (c, lib.exp(v) * y), y.sum(), x)
lax.scan(lambda c, v: (lib.where(v > 0, c + v, c * 0.5), lib.maximum(c, v)), y, x)
lax.scan(lambda c, v: (c + lax.scan(lambda d, u: (d * u + w[0], d), c, x)[0], v), y, x[:2])
lax.scan(lambda c, v: (c + lax.cond(v.sum() > 0, lambda t: t * v, lambda t: lib.sin(t), c), c), y, x)
lax.scan(lambda c, v: (lax.fori_loop(0, 3, lambda i, d: d * 0.5 + v, c), c), y, x)
lax.scan(lambda c, v: (v, lib.stack([c, v]).sum(0)), y, x)
lax.scan(lambda c, v: (c @ w, c), x[:2], x)
lax.scan(lambda c, v: (c + v[0], c), y.sum(), (x.sum(1),))
lax.scan(lambda c, v: (c / (1 + c * c) + v, c), y, x * x)
lax.scan(lambda c, v: (lib.tanh(w @ c + v), c.sum()), y, x, None, True, 2)
lax.fori_loop(0, 4, lambda i, c: lib.cos(w @ c) + i, y)
lax.fori_loop(2, 5, lambda i, c: c * x[i] + y, y)
lax.fori_loop(3, 1, lambda i, c: c * 2, y)
lax.fori_loop(0, 3, lambda i, c: (c[0] @ w, c[1] + c[0].sum()), (x, y.sum()))
forward lax.fori_loop(0, n, lambda i, c: c * 2 + i, y)
forward lax.fori_loop(n, 7, lambda i, c: lax.cond(i > 4, lambda t: t + 1, lambda t: t * i, c), y)
forward lax.while_loop(lambda c: (c * c).sum() < 100, lambda c: c * 1.5 + 1, y)
forward lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, w @ c[1]), (0, y))
forward lax.while_loop(lambda c: c["i"] < 6, lambda c: {"i": c["i"] + 2, "v": lax.scan(lambda d, u: (d + u, None), c["v"], x)[0]}, {"i": n - n, "v": y})
forward lax.while_loop(lambda c: c[1] > 0.01, lambda c: (0.5 * (c[0] + 7 / c[0]), lib.abs(c[0] * c[0] - 7)), (y[0] * y[0] + 1, y[0] * 0 + 1))
lax.map(lambda v: lib.tanh(w @ v) * y, x)
lax.map(lambda v: (v[0] * v[1], v[0].sum()), (x, x * 2))
lax.map(lambda v: lib.tanh(w @ v) * y, x, batch_size=2)
lax.map(lambda v: lax.map(lambda s: s * s * y.sum(), v), x)
lax.cond(y.sum() > 0, lambda a, b: a @ b, lambda a, b: a * 2, y, w)
lax.cond(y.sum() > 100, lambda a: a * w[0], lambda a: lib.sin(a) + w[1], y)
lax.cond(True, lambda: x * 2, lambda: x * 3)
lax.cond(n > 2, lambda a: {"r": a, "s": (a * y, n)}, lambda a: {"r": a * a, "s": (w[0], n + 1)}, y)
lax.cond(n > 5, lambda a: lax.cond(n > 1, lambda b: b * y, lambda b: b, a), lambda a: lax.cond(n > 1, lambda b: b * b * y, lambda b: b, a), y)
lax.switch(n - 2, [lambda a: a * 2, lambda a: a * w[0], lambda a: lib.exp(a)], y)
lax.switch(n + 9, [lambda a: a * 2, lambda a: a * w[0], lambda a: lib.exp(a)], y)
lax.switch(n - 9, [lambda a: a * y, lambda a: a * w[0]], y)
lax.associative_scan(lambda a, b: a * b, x * 0.5 + 1)
lax.associative_scan(lambda a, b: a + b, x, reverse=True)
lax.associative_scan(lambda a, b: a @ b, lib.stack([w, w * 2, w + 1, w * 0.5, w - 1, w, w * 3]))
lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (x, x * 2 + 1))
lax.associative_scan(lambda a, b: lib.maximum(a, b), w, axis=1)
""".strip().split("\n")

# The same for torch.cond and others, with their signatures.
TORCH = """
cond((y.sum() > 0), lambda a, b: (a @ b,), lambda a, b: (a * 2,), (y, w))
cond((y.sum() > 100), lambda a: (a * 2,), lambda a: (a.sin(),), (y,))
scan(lambda c, v: (c + v, c * v), y, x, dim=0)
scan(lambda c, v: ((w @ c + v).tanh(), c * 1.0), y, x, dim=0, reverse=True)
scan(lambda c, v: (c + v, c * v), x[:, 0] * 1.0, x, dim=1)
forward while_loop(lambda i, c: i < 4, lambda i, c: (i + 1, c * 2), (n - n, y))
forward associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic")
forward associative_scan(lambda a, b: a + b, x, 1, reverse=True, combine_mode="generic")
""".strip().split("\n")


def arrays():
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape) * 0.7 for shape in (X, Y, W)]


def leaves(tree):
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in leaves(item)]
    return [] if tree is None else [tree]


def squares(tree, is_float):
    return sum((leaf * leaf).sum() for leaf in leaves(tree) if is_float(leaf))


def of_jax(text, differentiable):
    def f(x, y, w):
        return eval(text, {"lax": jax.lax, "lib": jnp, "x": x, "y": y, "w": w, "n": jnp.asarray(3)})

    given = [jnp.asarray(a) for a in arrays()]
    values = [np.asarray(leaf) for leaf in leaves(f(*given))]
    if not differentiable:
        return values, []
    gradients = jax.grad(lambda *a: squares(f(*a), lambda v: jnp.issubdtype(v.dtype, jnp.floating)), (0, 1, 2))(*given)
    return values, [np.asarray(g) for g in gradients]


def of_lazuli(text, differentiable, names):
    x, y, w = (lz.from_numpy(a.copy()).requires_grad_(differentiable) for a in arrays())
    results = leaves(eval(text, names | {"x": x, "y": y, "w": w, "n": lz.tensor(3)}))
    values = [r.detach().numpy() for r in results]
    if not differentiable:
        return values, []
    squares(results, lambda v: v.is_floating_point()).backward()
    return values, [np.zeros(a.shape) if a.grad is None else a.grad.numpy() for a in (x, y, w)]


def of_torch(text, differentiable):
    x, y, w = (torch.from_numpy(a.copy()).requires_grad_(differentiable) for a in arrays())
    names = {"cond": torch.cond, "scan": scan, "while_loop": while_loop, "associative_scan": associative_scan}
    results = leaves(eval(text, names | {"x": x, "y": y, "w": w, "n": torch.tensor(3)}))
    values = [r.detach().numpy() for r in results]
    if not differentiable:
        return values, []
    squares(results, lambda v: v.is_floating_point()).backward()
    return values, [np.zeros(a.shape) if a.grad is None else a.grad.numpy() for a in (x, y, w)]


def difference(found, wanted):
    if len(found) != len(wanted):
        return f"{len(found)} arrays instead of {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"array {i} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        if not np.allclose(a, b, rtol=1e-10, atol=1e-12):
            return f"array {i} differs by {np.abs(a - b).max()}"
    return ""


def main():
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    ours = {"lax": lz.control, "lib": lz}
    torchs = {name: getattr(lz, name) for name in ("cond", "scan", "while_loop", "associative_scan")}
    compared = failed = 0
    for peer, names, texts in ((of_jax, ours, FUNCTIONS), (of_torch, torchs, TORCH)):
        for text in texts:
            if not pattern.search(text):
                continue
            forward = text.startswith("forward ")
            text = text.removeprefix("forward ")
            wanted = peer(text, not forward)
            try:
                found = of_lazuli(text, not forward, names)
                wrong = [f"{what}: {d}" for what, a, b in zip(("values", "gradients"), found, wanted) if (d := difference(a, b))]
            except Exception as error:  # noqa: BLE001
                wrong = [f"{type(error).__name__}: {error}"]
            compared += 1 if forward else 2
            if wrong:
                failed += 1
                print(f"{text}\n    " + "\n    ".join(wrong))
    print(f"{compared} comparisons of values or gradients, {failed} functions differ")
    sys.exit(failed > 0)


main()
