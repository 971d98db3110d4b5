#!/usr/bin/env python3
"""Recurrent layers, linear algebra, Fourier transforms and sparse products on two threads: PyTorch, JAX and lazuli in turns.

    maths.py [CASE...]        run by `./lz bench maths`; CASE is a part of a case's name

turns.py says what is measured. JAX has no recurrent layers: its LSTM is a scan with one product for all inputs.
"""

import numpy as np
from turns import Cases, run


def recurrent(kind, inputs, hidden, train):
    """A layer of PyTorch or lazuli; the gradient of its weights, or its hidden states."""
    def of_library(of):
        layer = getattr(of.nn, kind)(inputs, hidden)

        def step(x):
            layer.zero_grad()
            (layer(x)[0] ** 2).sum().backward()
            return layer.weight_hh_l0.grad

        def infer(x):
            with of.no_grad():
                return layer(x)[0]

        return step if train else infer

    return of_library


def scanned_lstm(hidden, inputs, train):
    def of_jax(jax):
        random = np.random.default_rng(0)
        weights = [jax.numpy.asarray(random.standard_normal((4 * hidden, n)).astype(np.float32) * 0.05) for n in (inputs, hidden)]

        def layer(weights, x):
            def step(state, z):
                h, c = state
                i, f, g, o = jax.numpy.split(z + h @ weights[1].T, 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
                h = jax.nn.sigmoid(o) * jax.numpy.tanh(c)
                return (h, c), h

            zero = jax.numpy.zeros((x.shape[1], hidden))
            return jax.lax.scan(step, (zero, zero), x @ weights[0].T)[1]

        if train:
            return lambda x: jax.grad(lambda w: (layer(w, x) ** 2).sum())(weights)
        return lambda x: layer(weights, x)

    return of_jax


def sparse_product(rows, degree):
    """A matrix with so many values per row times a dense one."""
    def of_library(of):
        random = np.random.default_rng(0)
        places = np.stack([np.repeat(np.arange(rows), degree), random.integers(0, rows, rows * degree)])
        matrix = of.sparse_coo_tensor(places, random.standard_normal(rows * degree).astype(np.float32), (rows, rows)).coalesce()
        return lambda x: of.sparse.mm(matrix, x)

    return of_library


def cases():
    table = Cases()
    for steps, batch, inputs, hidden in ((64, 32, 128, 256), (35, 20, 200, 200), (28, 128, 28, 128), (100, 1, 64, 128)):
        for train in (False, True):
            name = f"{'step' if train else 'inference'} of {steps}x{batch}x{inputs}, hidden {hidden}"
            table.add(f"LSTM {name}", [(steps, batch, inputs)], recurrent("LSTM", inputs, hidden, train),
                      scanned_lstm(hidden, inputs, train))
    for kind in ("GRU", "RNN"):
        for train in (False, True):
            table.add(f"{kind} {'step' if train else 'inference'} of 35x20x200, hidden 200", [(35, 20, 200)],
                      recurrent(kind, 200, 200, train), None)
    for dims in ((512, 512), (64, 64), (1000, 8, 8), (100, 64, 64)):
        size = "x".join(map(str, dims))
        for name in ("inv", "det", "qr", "svd", "eigh"):
            if name in ("svd", "eigh") and dims == (512, 512):
                continue
            table.add(f"{name} of {size}", [dims], lambda t, name=name: getattr(t.linalg, name),
                      lambda j, name=name: getattr(j.numpy.linalg, name))
        table.add(f"solve of {size}", [dims, (*dims[:-1], 4)], lambda t: t.linalg.solve, lambda j: j.numpy.linalg.solve)
        table.add(f"cholesky of {size}", [dims], lambda t: lambda x: t.linalg.cholesky(x @ x.mT + 1000 * t.eye(x.shape[-1])),
                  lambda j: lambda x: j.numpy.linalg.cholesky(x @ x.mT + 1000 * j.numpy.eye(x.shape[-1])))
    for dims in ((1024,), (1_048_576,), (100_003,), (512, 1024), (1000, 100), (64, 3000)):
        size = "x".join(map(str, dims))
        for name in ("rfft", "fft"):
            table.add(f"{name} of {size}", [dims], lambda t, name=name: getattr(t.fft, name),
                      lambda j, name=name: getattr(j.numpy.fft, name))
    table.add("irfft of rfft of 512x1024", [(512, 1024)], lambda t: lambda x: t.fft.irfft(t.fft.rfft(x)),
              lambda j: lambda x: j.numpy.fft.irfft(j.numpy.fft.rfft(x)))
    table.add("fft2 of 512x512", [(512, 512)], lambda t: t.fft.fft2, lambda j: j.numpy.fft.fft2)
    table.add("sparse mm of 20,000, 10 per row, by 64", [(20_000, 64)], sparse_product(20_000, 10), None)
    return table


if __name__ == "__main__":
    run(cases())
