#!/usr/bin/env python3
"""Loops, branches and transforms of functions on two threads: JAX and lazuli in turns.

    control.py [CASE...]      run by `./lz bench control`; CASE is a part of a case's name

turns.py says what is measured. The functions of both are compiled once (jit).
"""

import numpy as np
from turns import Cases, run


def weights(of, *shapes):
    random = np.random.default_rng(1)
    make = of.numpy.asarray if hasattr(of, "jit") and hasattr(of, "lax") else of.tensor
    return [make((random.standard_normal(shape) * 0.1).astype(np.float32)) for shape in shapes]


def both(function):
    """One function for JAX and lazuli, whose names differ: `function(of, np, loops, transforms)` gives the function of the arrays."""
    return (lambda lz: lz.jit(function(lz, lz, lz.control, lz.func))), (lambda jax: function(jax, jax.numpy, jax.lax, jax))


def recurrence(hidden, train):
    def make(of, np_, loops, transforms):
        w_in, w_hidden = weights(of, (hidden, hidden), (hidden, hidden))

        def outputs(w_hidden, x):
            def step(h, z):
                h = np_.tanh(z + h @ w_hidden)
                return h, h

            return loops.scan(step, np_.zeros(x.shape[1:]), x @ w_in)[1]

        if train:
            return lambda x: transforms.grad(lambda w: (outputs(w, x) ** 2).sum())(w_hidden)
        return lambda x: outputs(w_hidden, x)

    return make


def tiny_steps(count):
    def make(of, np_, loops, transforms):
        return lambda x: loops.fori_loop(0, count, lambda i, y: y * 0.999 + 0.5, x)

    return make


def until_small(of, np_, loops, transforms):
    return lambda x: loops.while_loop(lambda y: y.sum() > 1e-3, lambda y: y * 0.9999, abs(x))


def search(of, np_, loops, transforms):
    """A branch per step."""
    def step(i, x):
        return loops.cond(x.sum() > 0, lambda x: x * 0.99 - 0.01, lambda x: x * 1.01 + 0.02, x)

    return lambda x: loops.fori_loop(0, 1000, step, x)


def mlp(w, x):
    return (((x @ w[0]).clip(0) @ w[1]).clip(0) @ w[2]).sum()


def per_sample(of, np_, loops, transforms):
    w = weights(of, (64, 128), (128, 128), (128, 10))
    return lambda x: transforms.vmap(transforms.grad(mlp), in_dims=(None, 0))(w, x)[0] if hasattr(of, "func") else \
        transforms.vmap(transforms.grad(mlp), in_axes=(None, 0))(w, x)[0]


def hessian(of, np_, loops, transforms):
    (a,) = weights(of, (50, 50))
    return transforms.hessian(lambda x: np_.exp(np_.sin(a @ x) * x).sum())


def product_with_hessian(of, np_, loops, transforms):
    w = weights(of, (64, 128), (128, 128), (128, 10))

    def loss(x):
        return np_.tanh(np_.tanh(x @ w[0]) @ w[1]).sum()

    return lambda x: transforms.jvp(transforms.grad(loss), (x,), (x,))[1]


def cases():
    table = Cases()

    def add(name, shapes, function):
        ours, jax = both(function)
        table.add(name, shapes, None, jax)
        table[name][2]["lazuli"] = ours

    for steps, batch, hidden in ((100, 16, 64), (500, 4, 32), (50, 64, 256), (1000, 1, 16)):
        for train in (False, True):
            add(f"{'gradient through ' if train else ''}scan of {steps}x{batch}x{hidden}", [(steps, batch, hidden)],
                recurrence(hidden, train))
    add("1,000,000 steps on 1 element", [(1,)], tiny_steps(1_000_000))
    add("1,000,000 steps on 8 elements", [(8,)], tiny_steps(1_000_000))
    add("10,000 steps on 1,000 elements", [(1000,)], tiny_steps(10_000))
    add("while_loop of ~100,000 steps on 16 elements", [(16,)], until_small)
    add("1,000 branches on 64 elements", [(64,)], search)
    add("gradients per sample, 64 of an MLP", [(64, 64)], per_sample)
    add("hessian of 50 numbers", [(50,)], hessian)
    add("product with a hessian, MLP of 64 samples", [(64, 64)], product_with_hessian)
    return table


if __name__ == "__main__":
    run(cases())
