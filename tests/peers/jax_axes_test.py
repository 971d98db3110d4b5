#!/usr/bin/env python3
"""Named axes of batches, JAX's words for vmap(), and derivatives of complex functions and beside integers are those of JAX, in f64.

    jax_axes_test.py FOLDER [PATTERN]      FOLDER holds the package lazuli, as build/PRESET/python does

A program is an expression of T, which is jax or lazuli.func, of lax, which is jax.lax or lazuli.control with the functions over axes, and
of lib, jax.numpy or lazuli. Where JAX raises an error lazuli does.
"""

import os
import re
import sys
import types

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
sys.path.insert(0, sys.argv[1])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import lazuli as lz  # noqa: E402

lz.set_default_dtype(lz.float64)

AXES = """
T.vmap(lambda x: lax.psum(x*x,'i'), axis_name='i')(X)
T.vmap(lambda x: x - lax.pmean(x,'i'), axis_name='i')(X)
T.vmap(lambda x: x / lax.pmax(x,'i') + lax.pmin(x, 'i'), axis_name='i')(X)
T.vmap(lambda x: x * lax.axis_index('i'), axis_name='i')(X)
T.vmap(lambda x: lax.psum(1,'i') * x, axis_name='i')(X)
T.vmap(lambda x: lax.psum(Y,'i') * x, axis_name='i')(X)
T.vmap(lambda x: lax.pmean(Y,'i') * x, axis_name='i')(X)
T.vmap(T.grad(lambda x: (lax.psum(x*x,'i')*x).sum()), axis_name='i')(X)
T.grad(lambda X: (T.vmap(lambda x: lax.psum(x*x,'i')*x, axis_name='i')(X)**2).sum())(X)
T.vmap(T.grad(lambda x: ((x-lax.pmean(x,'i'))**2).sum()), axis_name='i')(X)
T.grad(lambda X: T.grad(lambda X: (T.vmap(lambda x: lax.psum(x*x,'i')*x, axis_name='i')(X)**2).sum())(X).sum())(X)
T.jvp(lambda X: T.vmap(lambda x: lax.psum(x*x,'i')*x, axis_name='i')(X), (X,), (X,))
T.vmap(lambda a: T.vmap(lambda x: lax.psum(x,'i') + lax.psum(x, 'j')*lax.axis_index('i') + lax.psum(x, ('i','j'))*lax.axis_index('j'), axis_name='j')(a), axis_name='i')(XX)
T.vmap(T.vmap(lambda x: lax.psum(x*x, 'i')*lax.psum(x, 'j'), axis_name='j'), axis_name='i', in_axes=0, out_axes=1)(XX)
T.vmap(T.vmap(lambda x: x*lax.axis_index(('i','j')), axis_name='j'), axis_name='i')(XX)
T.vmap(lambda x: lax.scan(lambda c, v: (c*0.5 + lax.psum(v*c,'i'), c), x.sum(), x)[1], axis_name='i')(X)
T.grad(lambda X: T.vmap(lambda x: lax.scan(lambda c, v: (c*0.5 + lax.psum(v*c,'i'), c), x.sum(), x)[1], axis_name='i')(X).sum())(X)
T.vmap(T.grad(lambda x: lax.scan(lambda c, v: (c*0.5 + lax.psum(v*c,'i'), c), x.sum(), x)[1].sum()), axis_name='i')(X)
T.vmap(lambda i: lax.axis_index('i')*2.0*i, axis_name='i', in_axes=None, axis_size=5)(Y)
T.vmap(lambda: lax.axis_index('i')*2.0, axis_name='i', axis_size=5)()
T.vmap(lambda x, y: x*y, in_axes=[0, None])(X, Y)
T.vmap(lambda x, y: x*y, in_axes=(0, None), out_axes=1)(X, Y)
T.vmap(lambda x, k: (x*k), in_axes=0)(X, k=X)
T.vmap(lambda x: x*2, in_axes=None, axis_size=3)(Y)
T.vmap(lambda x: x*2, axis_size=4)(X)
T.vmap(lambda d: d['a']*d['b'], in_axes=({'a':0,'b':None},), axis_name='q')({'a':X,'b':Y})
T.vmap(lambda x: lax.psum({'a':x,'b':(x*x,)}, 'i'), axis_name='i')(X)
T.vmap(T.jacfwd(lambda x: lax.psum(x*x,'i')*x), axis_name='i')(X)
T.vmap(T.jacrev(lambda x: lax.psum(x*x,'i')*x), axis_name='i')(X)
T.vmap(T.remat(lambda x: lax.psum(x*x,'i')*x), axis_name='i')(X)
T.vmap(T.grad(T.remat(lambda x: (lax.psum(x*x,'i')*x).sum())), axis_name='i')(X)
T.jit(T.vmap(T.grad(lambda x: (lax.psum(x*x,'i')*x).sum()), axis_name='i'))(X)
T.vmap(lambda x: lax.cond(x.sum() > 0, lambda x: x, lambda x: x*2, lax.psum(x,'i')), axis_name='i')(X)
T.vmap(lambda x: x*lax.axis_size('i'), axis_name='i')(X)
T.vmap(lambda x: lax.fori_loop(0, 3, lambda i, c: c + lax.psum(c, 'i')*0.1, x), axis_name='i')(X)
T.vmap(lambda x: lax.psum(x > 0, 'i'), axis_name='i')(X)
T.vmap(lambda x: T.vmap(lambda y: lax.psum(x*y, 'i'))(x), axis_name='i')(X)
T.vmap(T.hessian(lambda x: (lax.psum(x*x,'i')*x).sum()), axis_name='i')(X)
T.vmap(lambda x: lax.psum(x, 'i'), axis_name='i', out_axes=None)(X)
"""

COMPLEX = """
T.grad(lambda z: (z*z*z).sum(), holomorphic=True)(Z)
T.grad(lambda z: (lib.exp(z)*z).sum(), holomorphic=True)(Z)
T.value_and_grad(lambda z: (lib.sin(z)*z).sum(), holomorphic=True)(Z)
T.grad(lambda z: T.grad(lambda z: (lib.sin(z)*z).sum(), holomorphic=True)(z).sum(), holomorphic=True)(Z)
T.jacrev(lambda z: lib.sin(z)*z.sum(), holomorphic=True)(Z)
T.jacfwd(lambda z: lib.sin(z)*z.sum(), holomorphic=True)(Z)
T.hessian(lambda z: (lib.sin(z)*z.sum()).sum(), holomorphic=True)(Z)
T.hessian(lambda z: (lib.sin(z)*z.sum()), holomorphic=True)(Z)
T.jacfwd(T.jacrev(lambda z: (lib.exp(z)*z.sum()), holomorphic=True), holomorphic=True)(Z)
T.jacrev(T.jacfwd(lambda z: (lib.exp(z)*z.sum()), holomorphic=True), holomorphic=True)(Z)
T.vmap(T.grad(lambda z: lib.exp(z)*z, holomorphic=True))(Z)
T.grad(lambda z: (z*z).sum(), holomorphic=True)(X)
T.grad(lambda x: (x*x).sum(), holomorphic=True)(X)
T.grad(lambda z: (z*z).sum().real, holomorphic=True)(Z)
T.jacrev(lambda z: z.real, holomorphic=True)(Z)
T.grad(lambda z, w: (z*w).sum(), (0,1), holomorphic=True)(Z, Z*2)
T.grad(lambda z, w: ((z*w).sum(), z), (0,1), True, True)(Z, Z*2)
T.grad(lambda x, i: (x*i).sum(), (0,), allow_int=True)(Y, I)
T.grad(lambda x, i: (x*i).sum(), 0, allow_int=True)(Y, I)
T.value_and_grad(lambda x, i: (x*i).sum(), 0, allow_int=True)(Y, I)
T.jacrev(lambda x, i: (x*i), 0, False, False, True)(Y, I)
T.jacrev(lambda x, *, k: (x*k))(Y, k=Y)
T.jacfwd(lambda x, *, k: (x*k*x))(Y, k=Y)
T.hessian(lambda x, *, k: (x*k*x).sum())(Y, k=Y)
T.jacrev(lambda z: z*z.conj(), holomorphic=True)(Z)
"""

ARRAYS = {"X": np.linspace(-1, 2, 12).reshape(4, 3), "Y": np.linspace(0.3, 1, 3), "XX": np.linspace(-1, 1, 24).reshape(4, 2, 3),
          "Z": np.linspace(-1, 2, 3) + 1j * np.linspace(0.4, -1, 3), "I": np.arange(3)}
OVER = ["psum", "pmean", "pmax", "pmin", "axis_index", "axis_size"]
LAX = types.SimpleNamespace(**{name: getattr(lz.control, name) for name in ["scan", "cond", "fori_loop"]},
                            **{name: getattr(lz.func, name) for name in OVER})


def outcome(text, array, **names):
    """The results of a program, flat, or its error."""
    try:
        return [np.asarray(leaf) for leaf in flat(eval(text, {**names, **{name: array(value) for name, value in ARRAYS.items()}}))]
    except Exception as error:  # noqa: BLE001
        return error


def flat(tree):
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    return [leaf for item in tree for leaf in flat(item)] if isinstance(tree, (tuple, list)) else [tree]


def is_same(ours, theirs):
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return isinstance(ours, Exception) and isinstance(theirs, Exception)
    return len(ours) == len(theirs) and all(a.shape == b.shape and np.allclose(a, b, 1e-9, 1e-9) for a, b in zip(ours, theirs, strict=True))


def main():
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    programs = [p for p in (AXES + COMPLEX).strip().split("\n") if p and pattern.search(p)]
    different = 0
    for text in programs:
        theirs = outcome(text, jnp.array, T=jax, lax=jax.lax, lib=jnp)
        ours = outcome(text, lz.tensor, T=lz.func, lax=LAX, lib=lz)
        if not is_same(ours, theirs):
            different += 1
            print(f"{text}\n  lazuli: {ours}\n  JAX: {theirs}")
    print(f"{len(programs)} programs, {different} differ")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
