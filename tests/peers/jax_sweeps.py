"""Sweeps over JAX's functions: every element type with edge values, every distribution, transform, special function and
control structure, where jax_programs.py has one typical use of each.

A program returns a dict, so that a failure names the function; what JAX refuses for a type is left out of it.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import jax.scipy.optimize
import ml_dtypes
import numpy as np
from jax import lax
from jax_programs import c64, definite, f32, ints, positive, symmetric, unit

PROGRAMS = {}


def program(name, function, *arguments):
    assert name not in PROGRAMS, name
    PROGRAMS[name] = (function, arguments)


def accepted(functions, *arguments):
    """Those of {name: function} that JAX accepts for these arguments."""
    def accepts(function):
        try:
            jax.eval_shape(function, *arguments)
            return True
        except Exception:  # pylint: disable=broad-except
            return False
    return {name: function for name, function in functions.items() if accepts(function)}


def together(name, functions, *arguments):
    """One program of all the functions. JAX runs them one by one: compiling many at once takes it minutes."""
    functions = accepted(functions, *arguments)
    def all_of_them(*xs):
        return {n: f(*xs) for n, f in functions.items()}
    all_of_them.eager = True
    program(name, all_of_them, *arguments)


def each(family, functions, *arguments):
    for name, function in functions.items():
        program(f"{family}.{name}", function, *arguments)


FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
          "f8e5m2": ml_dtypes.float8_e5m2}
INTS = {"s8": np.int8, "s16": np.int16, "s32": np.int32, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32}
SMALL = {"s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "s2": ml_dtypes.int2, "u2": ml_dtypes.uint2}
MORE_FLOATS = {n: getattr(ml_dtypes, n) for n in ("float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
                                                  "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn")}
NUMBERS = {**FLOATS, **INTS, "pred": np.bool_, "c64": np.complex64}


def edges(dtype):
    """Values where an operation may go wrong; no subnormals, which XLA's CPU flushes."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.25], np.float32)
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, *range(max(info.min, -5), 9)}
        return np.array(sorted(values), dtype)
    if dtype.name.startswith(("int", "uint")):
        info = ml_dtypes.iinfo(dtype)
        return np.arange(int(info.min), int(info.max) + 1).astype(dtype)
    wide = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.75, 0.1, -0.3, 7.0, 10.0, -12.0, 100.0, np.inf,
                     -np.inf, np.nan], np.float32)
    return wide.astype(dtype)


def pairs(dtype):
    x = edges(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def functions(module, names):
    return {name: getattr(module, name) for name in names.split() if hasattr(module, name)}


UNARY = functions(jnp, """abs negative positive sign ceil floor rint trunc round exp exp2 expm1 log log2 log10 log1p sqrt cbrt square
    reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh isnan isinf isfinite isneginf isposinf
    signbit sinc deg2rad rad2deg conj real imag nan_to_num invert logical_not bitwise_count i0 frexp modf spacing angle""")
SPECIAL = {f"lax.{n}": f for n, f in functions(lax, """population_count clz erf erfc erf_inv lgamma digamma bessel_i0e bessel_i1e
    logistic rsqrt is_finite round""").items()}
BINARY = functions(jnp, """add subtract multiply divide true_divide floor_divide remainder fmod mod divmod power maximum minimum
    fmax fmin arctan2 hypot copysign nextafter logaddexp logaddexp2 heaviside equal not_equal less less_equal greater
    greater_equal bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor left_shift right_shift ldexp
    isclose""")
BINARY.update({f"lax.{n}": f for n, f in functions(lax, """div rem pow max min shift_left shift_right_logical
    shift_right_arithmetic nextafter atan2""").items()})


# Without mean: of integers at the ends of their range its rounding is the order of the sum.
REDUCTIONS = "sum prod max min any all argmax argmin cumsum cumprod count_nonzero ptp"


def element_types():
    for name, dtype in NUMBERS.items():
        together(f"unary.{name}", UNARY, edges(dtype))
        if not name.startswith("f8"):  # XLA expands these in types of 16 bits and more
            together(f"special.{name}", SPECIAL, edges(dtype))
        # Complex powers of zero and angles on the branch cut have several right values.
        unlike = ("arctan2", "lax.atan2", "power", "lax.pow") if name == "c64" else ()
        together(f"binary.{name}", {n: f for n, f in BINARY.items() if n not in unlike}, *pairs(dtype))
        together(f"constant_exponent.{name}", {f"x**{k}": lambda x, k=k: x**k for k in (-2, -1, 0, 1, 2, 3, 5, 0.5)}, edges(dtype))
        x = np.resize(edges(dtype), (5, 24))
        # Sums of f8 that run on are rounded once by us and, for some lengths, at each step by XLA.
        reductions = functions(jnp, REDUCTIONS if name != "c64" else "sum prod mean any all cumsum cumprod")
        reductions = {n: f for n, f in reductions.items() if not (name.startswith("f8") and n.startswith("cum"))}
        together(f"reduce.{name}", reductions, x)
        together(f"reduce_rows.{name}", {n: functools.partial(f, axis=0) for n, f in reductions.items()}, x)
        if not name.startswith("f8"):
            together(f"cumulative.{name}", {f"{n}.{r}": lambda x, n=n, r=r: getattr(lax, n)(x, axis=1, reverse=r)
                                            for n in ("cumsum", "cumprod", "cummax", "cummin") for r in (False, True)}, x)
        together(f"order.{name}", {
            "sort": jnp.sort, "argsort": jnp.argsort, "descending": lambda x: jnp.sort(x, descending=True),
            "argsort0": lambda x: jnp.argsort(x, 0), "stable": lambda x: jnp.argsort(x, stable=True, descending=True),
            "top_k": lambda x: lax.top_k(x, 5), "unique": lambda x: jnp.unique(x.ravel(), size=20),
            "pair": lambda x: lax.sort((x, lax.broadcasted_iota(jnp.int32, x.shape, 1)), dimension=1, num_keys=1)}, x)
        together(f"select.{name}", {
            "where": lambda x: jnp.where(x > x[0, 0], x, x[::-1]), "clip": lambda x: jnp.clip(x, x[0, 1], x[0, 2]),
            "pad": lambda x: jnp.pad(x, 2), "gather": lambda x: x[np.array([1, 3, 0]), np.array([2, -1, 4])],
            "set": lambda x: x.at[1:3, ::5].set(x[0, 0]), "add": lambda x: x.at[np.array([1, 1, 4])].add(x[0]),
            "max": lambda x: x.at[np.array([1, 1, 4])].max(x[0]), "drop": lambda x: x.at[np.array([9, 1])].mul(x[0], mode="drop"),
            "roll": lambda x: jnp.roll(x, 3, 1), "eye": lambda x: jnp.eye(4, dtype=x.dtype), "concat": lambda x: jnp.concatenate([x, x], 1),
            "linspace": lambda x: jnp.arange(5).astype(x.dtype), "dynamic": lambda x: lax.dynamic_slice(x, (2, 30), (2, 5))}, x)
        small = np.resize(edges(np.int8)[2:10], (6, 4)).astype(dtype)
        together(f"contract.{name}", {
            "matmul": lambda a: a @ a.T, "vector": lambda a: a @ a[0], "outer": lambda a: jnp.outer(a[0], a[1]),
            "einsum": lambda a: jnp.einsum("ij,kj,j->ik", a, a, a[0]), "wide": lambda a: lax.dot(a, a.T, preferred_element_type=jnp.float32),
            "conv": lambda a: lax.conv_general_dilated(a[None, :, :, None], a[:2, :2, None, None], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            "pool": lambda a: lax.reduce_window(a, a.dtype.type(0), lax.add, (2, 2), (1, 1), "SAME")}, small)
    for name, dtype in {**NUMBERS, **SMALL, **MORE_FLOATS}.items():
        if name != "c64":
            # To integers XLA's f4e2m1fn saturates from its largest value on.
            targets = {**NUMBERS, **SMALL, **MORE_FLOATS} if name != "float4_e2m1fn" else {**FLOATS, **MORE_FLOATS}
            together(f"convert.{name}", {n: lambda x, d=d: x.astype(d) for n, d in targets.items()}, edges(dtype))
    for name, dtype in MORE_FLOATS.items():  # XLA's CPU compiles no arithmetic of s2 and s4
        if name == "float4_e2m1fn":
            continue
        x = edges(dtype)
        together(f"small.{name}", {
            "add": lambda x: x + x[::-1], "multiply": lambda x: x * x, "compare": lambda x: x < x[::-1], "where": lambda x: jnp.where(x == x, x, x[::-1]),
            "max": lambda x: jnp.maximum(x, x[::-1]), "sort": jnp.sort, "reshape": lambda x: x[:4].reshape(2, 2).T, "sum": lambda x: lax.reduce(x, x.dtype.type(0), lax.add, (0,)),
            "dot": lambda x: lax.dot(x, x, preferred_element_type=jnp.float32), "neg": lambda x: -x, "bits": lambda x: lax.bitcast_convert_type(x, jnp.uint8)}, x)
    together("bitcast.f32", {n: lambda x, d=d: lax.bitcast_convert_type(x, d) for n, d in NUMBERS.items()}, f32(4, 4))
    together("bitcast.u8", {n: lambda x, d=d: lax.bitcast_convert_type(x, d) for n, d in {**NUMBERS, **SMALL}.items()}, ints(0, 255, 4, 4, dtype=np.uint8))
    together("bitcast.s16", {n: lambda x, d=d: lax.bitcast_convert_type(x, d) for n, d in NUMBERS.items()}, ints(-9999, 9999, 4, 2, dtype=np.int16))
    together("reduce_precision", {f"{e}.{m}": lambda x, e=e, m=m: lax.reduce_precision(x, e, m) for e, m in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (2, 1), (3, 0))},
             np.concatenate([edges(np.float32), f32(40) * 10]))


def gradients():
    x = unit(9) * 0.9
    names = """abs sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2 expm1 log1p square cbrt sinc i0 cumsum
        cumprod sum prod max min mean var std sort median ptp logaddexp.accumulate nansum nanmean"""
    for name, f in functions(jnp, names).items():
        total = lambda x, f=f: jnp.sum(jnp.sin(f(x)))
        together(f"grad.{name}", {"first": jax.grad(total), "second": lambda x, t=total: jax.hessian(t)(x),
                                  "jvp": lambda x, f=f: jax.jvp(f, (x,), (x,)), "vmap": jax.vmap(jax.grad(lambda x, f=f: jnp.sum(f(x[None]))))}, x)
    for name, f in functions(lax, "lgamma digamma erf erfc erf_inv logistic rsqrt bessel_i0e bessel_i1e").items():
        program(f"grad.lax.{name}", jax.grad(lambda x, f=f: jnp.sum(f(x))), np.abs(x) + np.float32(0.02))
    for name, f in functions(jnp, "arctan2 hypot power logaddexp maximum minimum multiply divide remainder").items():
        program(f"grad.{name}", jax.grad(lambda x, y, f=f: jnp.sum(f(x, y) ** 2), (0, 1)), positive(9), positive(9) + 1)
    a, d = f32(4, 4), definite(4)
    linear = {"inv": jnp.linalg.inv, "det": jnp.linalg.det, "slogdet": lambda a: jnp.linalg.slogdet(a)[1], "solve": lambda a: jnp.linalg.solve(a, a[:, 0]),
              "expm": jsp.linalg.expm, "qr": lambda a: jnp.linalg.qr(a)[1] ** 2, "svdvals": lambda a: jnp.linalg.svd(a, compute_uv=False),
              "eigvalsh": lambda a: jnp.linalg.eigvalsh(a + a.T), "lu": lambda a: jsp.linalg.lu_factor(a)[0], "pinv": jnp.linalg.pinv,
              "norm": jnp.linalg.norm, "matrix_power": lambda a: jnp.linalg.matrix_power(a, 3)}
    for name, f in linear.items():
        program(f"grad.linalg.{name}", jax.grad(lambda a, f=f: jnp.sum(jnp.sin(f(a)))), a * 0.3 + np.eye(4, dtype=np.float32))
        program(f"vmap.linalg.{name}", jax.vmap(f), np.stack([d, d + 1, a + 3 * np.eye(4, dtype=np.float32)]) if name != "qr" else np.stack([d, d + 1]))
    program("grad.cholesky", jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a))), d)
    program("grad.complex", lambda z: jax.grad(lambda z: jnp.sum(jnp.abs(jnp.sin(z) * z**2)))(z), c64(6))
    program("grad.holomorphic", jax.grad(lambda z: jnp.sum(jnp.exp(z) / z), holomorphic=True), c64(6))
    for n in (7, 8):
        program(f"grad.fft.{n}", jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x) * jnp.arange(len(x))))), f32(n))
        program(f"grad.irfft.{n}", jax.grad(lambda x: jnp.sum(jnp.fft.irfft(x + 1j * x, n=11) ** 3)), f32(n))
    program("grad.gather", jax.grad(lambda x, i: jnp.sum(x[i] ** 2 * jnp.arange(5.0)[:, None])), f32(6, 3), ints(-6, 6, 5))
    program("grad.scatter", jax.grad(lambda x, v, i: jnp.sum(jnp.sin(x.at[i].multiply(v, unique_indices=True))), (0, 1)), f32(6), positive(4), np.array([0, 2, 3, 5], np.int32))
    program("grad.scatter_max", jax.grad(lambda x, v, i: jnp.sum(jnp.sin(x.at[i].max(v))), (0, 1)), f32(6), f32(4), ints(0, 6, 4))
    program("grad.segment_max", jax.grad(lambda x, i: jnp.sum(jax.ops.segment_max(x, i, 4))), f32(9), ints(0, 4, 9))
    program("grad.interp", jax.grad(lambda x, y: jnp.sum(jnp.interp(x, jnp.linspace(0, 1, 5), y)), (0, 1)), np.abs(unit(7)), f32(5))
    program("jvp.while", lambda x: jax.jvp(lambda x: lax.while_loop(lambda s: jnp.sum(s) < 50, lambda s: s * 1.5, x), (x,), (x,)), positive(4))
    program("linearize", lambda x: jax.linearize(jnp.tanh, x)[1](x), f32(5))
    program("vjp.multiple", lambda x, y: jax.vjp(lambda a, b: (a @ b, jnp.sum(a)), x, y)[1]((jnp.ones((3, 2)), 2.0)), f32(3, 4), f32(4, 2))
    program("custom_vjp", jax.grad(lambda x: jnp.sum(clipped(x * 3))), f32(6))
    program("custom_jvp", jax.grad(jax.grad(lambda x: softplus(x * 2))), np.float32(0.3))
    program("checkpoint.policy", jax.grad(jax.checkpoint(lambda x, w: jnp.sum(jnp.tanh(jnp.tanh(x @ w) @ w)), policy=jax.checkpoint_policies.dots_saveable)), f32(3, 4), f32(4, 4))


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, x), lambda x, g: (jnp.clip(g * x, -0.5, 0.5),))


@jax.custom_jvp
def softplus(x):
    return jnp.logaddexp(x, 0.0)


softplus.defjvp(lambda p, t: (softplus(p[0]), jax.nn.sigmoid(p[0]) * t[0]))


def indexing():
    x, wide = f32(5, 7), np.array([-9, -1, 0, 3, 4, 5, 6, 2147483647, -2147483648], np.int32)
    for mode in ("fill", "clip", "wrap", "promise_in_bounds"):
        i = ints(0, 5, 6) if mode == "promise_in_bounds" else wide
        together(f"gather.{mode}", {
            "take": lambda x, i, m=mode: jnp.take(x, i, 0, mode=m) if m != "promise_in_bounds" else x.at[i].get(mode=m),
            "get": lambda x, i, m=mode: x.at[i].get(mode=m if m != "wrap" else "clip"), "two": lambda x, i, m=mode: x.at[i, i].get(mode=m if m != "wrap" else "fill")}, x, i)
    for mode in ("drop", "clip", "promise_in_bounds"):
        i = ints(0, 5, 9) if mode == "promise_in_bounds" else wide
        for op in ("add", "multiply", "min", "max", "set"):
            if op == "set":
                i = np.array([0, 4, 2], np.int32) if mode == "promise_in_bounds" else np.array([0, 9, 2], np.int32)
            program(f"scatter.{op}.{mode}", lambda x, i, v, o=op, m=mode: {
                "rows": getattr(x.at[i], o)(v[:len(i)], mode=m), "cells": getattr(x.at[i, i], o)(v[:len(i), 0], mode=m),
                "sorted": getattr(x.at[jnp.sort(i)], o)(v[0], mode=m, indices_are_sorted=True),
                "columns": getattr(x.at[:, i], o)(v[0, 0], mode=m)}, x, i, f32(9, 7))
    together("scatter.more", {
        "subtract": lambda x: x.at[1].subtract(2.0), "power": lambda x: jnp.abs(x).at[1].power(2.0), "apply": lambda x: x.at[jnp.array([1, 3])].apply(jnp.tanh),
        "mask": lambda x: x.at[x > 0].set(0), "slice": lambda x: x.at[1:4:2, ::-3].set(9), "bool_rows": lambda x: x.at[np.array([True, False, True, False, True])].add(1)}, x)
    for name in "segment_sum segment_prod segment_min segment_max".split():
        program(f"{name}", lambda x, i, n=name: (getattr(jax.ops, n)(x, i, 4), getattr(jax.ops, n)(x, jnp.sort(i), 6, indices_are_sorted=True)), f32(20, 2), ints(-1, 5, 20))
    together("batched", {
        "dynamic_slice2": jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), (None, 0)), "index": jax.vmap(lambda x, i: x[i, i], (None, 0)),
        "scatter": jax.vmap(lambda x, i: x.at[i].set(i.astype(x.dtype)), (None, 0)), "take_along": lambda x, i: jnp.take_along_axis(x, i[None, :5], 1)}, x, ints(0, 5, 9))
    program("vmap_gather2", jax.vmap(jax.vmap(lambda x, i: x[i])), f32(2, 3, 8), ints(0, 8, 2, 3, 4))
    program("vmap_scatter2", jax.vmap(jax.vmap(lambda x, i, v: x.at[i].add(v))), f32(2, 3, 8), ints(0, 8, 2, 3, 4), f32(2, 3, 4))
    program("vmap_scatter_axes", jax.vmap(lambda x, i, v: x.at[i, :, i].max(v), (1, 0, 1), 2), f32(4, 3, 5, 6), ints(0, 4, 3), f32(5, 3))
    program("dynamic_update.vmap", jax.vmap(lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), (None, 0, 0, 0)), x, f32(3, 2, 2), ints(-3, 9, 3), ints(-3, 9, 3))
    together("jnp.index", {
        "unravel": lambda x: jnp.unravel_index(jnp.arange(12) * 3, (5, 7)), "argwhere": lambda x: jnp.argwhere(x > 0, size=12), "flatnonzero": lambda x: jnp.flatnonzero(x > 0, size=40, fill_value=-7),
        "compress": lambda x: jnp.compress(x[:, 0] > 0, x, axis=0, size=3), "extract": lambda x: jnp.extract(x > 0, x, size=10), "choose": lambda x: jnp.choose(jnp.array([0, 1, 2, 4]), [x[i, :4] for i in range(5)], mode="clip"),
        "fill_diagonal": lambda x: jnp.fill_diagonal(x, 3.0, inplace=False), "delete": lambda x: jnp.delete(x, 2, 1), "insert": lambda x: jnp.insert(x, 2, 5.0, axis=1),
        "place": lambda x: jnp.place(x, x > 0, jnp.arange(3.0), inplace=False), "put": lambda x: jnp.put(x, jnp.array([0, 3, 40]), 1.0, inplace=False), "diag": lambda x: (jnp.diag(x[0]), jnp.diagflat(x[0], 1), jnp.diagonal(x, -1)),
        "moveaxis": lambda x: jnp.moveaxis(x[None], 0, 2), "rollaxis": lambda x: jnp.rollaxis(x, 1), "block": lambda x: jnp.block([[x, x], [x, x]]), "resize": lambda x: jnp.resize(x, (3, 20)),
        "tril": lambda x: (jnp.tril(x, 1), jnp.triu(x, -2), jnp.tril_indices(4, 1)), "repeat": lambda x: jnp.repeat(x, jnp.array([1, 0, 2, 3, 1]), axis=0, total_repeat_length=8),
        "pack": lambda x: (jnp.packbits(x > 0, axis=1), jnp.unpackbits(jnp.arange(9).astype(jnp.uint8), bitorder="little")), "apply_along": lambda x: jnp.apply_along_axis(lambda r: jnp.sort(r)[::-1], 1, x)}, x)


def numeric():
    x = f32(12)
    together("jnp.calculus", {
        "diff": lambda x: (jnp.diff(x), jnp.diff(x, 2), jnp.ediff1d(x)), "gradient": lambda x: (jnp.gradient(x), jnp.gradient(x.reshape(3, 4))), "trapezoid": lambda x: jsp.integrate.trapezoid(x, dx=0.1),
        "unwrap": lambda x: jnp.unwrap(x * 4), "cross": lambda x: jnp.cross(x[:3], x[3:6]), "polyfit": lambda x: jnp.polyfit(jnp.arange(12.0), x, 2), "poly": lambda x: jnp.poly(x[:4]), "polymul": lambda x: jnp.polymul(x, x[:3]),
        "polydiv": lambda x: jnp.polydiv(x, x[:3]), "polyadd": lambda x: jnp.polyadd(x, x[:5]), "interp": lambda x: jnp.interp(x, jnp.arange(5.0), x[:5], period=4.0), "convolve": lambda x: [jnp.convolve(x, x[:4], m) for m in ("full", "same", "valid")],
        "round": lambda x: (jnp.round(x, 2), jnp.fix(x), jnp.around(x * 100, -1)), "nan_to_num": lambda x: jnp.nan_to_num(x / jnp.where(x > 0, x, 0)), "vander": lambda x: jnp.vander(x[:4], 3, increasing=True),
        "correlate": lambda x: [jnp.correlate(x, x[:4], m) for m in ("full", "same", "valid")], "piecewise": lambda x: jnp.piecewise(x, [x < 0, x > 1], [-1.0, lambda v: v * 2, 0.5]), "vectorize": lambda x: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x.reshape(3, 4), x[:4])}, x)
    nans = np.where(ints(0, 4, 6, 5) == 0, np.nan, f32(6, 5)).astype(np.float32)
    together("jnp.nan", {n: functools.partial(f, axis=0) for n, f in functions(jnp, "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian nancumsum nancumprod nanargmax nanargmin").items()}, nans)
    together("jnp.quantiles", {m: lambda x, m=m: jnp.quantile(x, jnp.array([0.0, 0.25, 0.6, 1.0]), axis=1, method=m) for m in ("linear", "lower", "higher", "midpoint", "nearest")}, f32(4, 9))
    together("jnp.statistics", {
        "histogram": lambda x: jnp.histogram(x, 5), "histogram.weights": lambda x: jnp.histogram(x, 5, weights=x, density=True), "histogram2d": lambda x: jnp.histogram2d(x, x[::-1], 4), "edges": lambda x: jnp.histogram_bin_edges(x, 7),
        "bincount": lambda x: jnp.bincount(jnp.abs(x * 3).astype(int), weights=x, length=8), "digitize": lambda x: jnp.digitize(x, jnp.array([1.0, 0.0, -1.0]), right=True), "cov": lambda x: jnp.cov(x.reshape(3, 4), ddof=0), "corrcoef": lambda x: jnp.corrcoef(x.reshape(3, 4)),
        "average": lambda x: jnp.average(x.reshape(3, 4), axis=1, weights=jnp.abs(x[:4]), returned=True), "percentile": lambda x: jnp.percentile(x, jnp.array([5.0, 95.0])), "var": lambda x: jnp.var(x, ddof=1), "searchsorted": lambda x: [jnp.searchsorted(jnp.sort(x), x * 1.1, side=s, method=m) for s in ("left", "right") for m in ("scan", "scan_unrolled", "sort", "compare_all")]}, x)
    together("jnp.sets", {
        "unique": lambda a, b: jnp.unique(a, size=12, return_index=True, return_inverse=True, return_counts=True, fill_value=-1), "unique.axis": lambda a, b: jnp.unique(a.reshape(8, 2) % 2, axis=0, size=5), "setdiff": lambda a, b: jnp.setdiff1d(a, b, size=9, fill_value=-1),
        "setxor": lambda a, b: jnp.setxor1d(a, b, size=20, fill_value=-1), "intersect": lambda a, b: jnp.intersect1d(a, b, size=9, return_indices=True), "isin": lambda a, b: jnp.isin(a, b, invert=True), "lexsort": lambda a, b: jnp.lexsort((a, b)), "partition": lambda a, b: (jnp.partition(a, 5), jnp.argpartition(a, 5))}, ints(0, 12, 16), ints(0, 12, 16))
    together("jnp.creation", {
        "spaces": lambda x: (jnp.linspace(x[0], x[1], 7), jnp.logspace(0.0, 2.0, 5), jnp.geomspace(1.0, 100.0, 5)), "windows": lambda x: (jnp.blackman(7), jnp.hamming(7), jnp.hanning(7), jnp.bartlett(7), jnp.kaiser(7, 8.6)), "indices": lambda x: jnp.indices((2, 3), sparse=True), "mask": lambda x: jnp.mask_indices(4, jnp.triu), "tri": lambda x: jnp.tri(3, 5, 1)}, x)
    for spec in ("ij,jk", "ij->ji", "ii->i", "ii", "i,j->ij", "ijk,ikl->ijl", "bij,bjk->bik", "ij,ij->", "ijk->k", "abc,cd,de->abe", "...ij,...jk->...ik", "ij,kj->ik", "bhqd,bhkd->bhqk"):
        sizes = dict(zip("abcdehijklqz", (2, 3, 4, 5, 2, 3, 4, 4, 4, 3, 5, 2)))
        arguments = [f32(*[sizes[c] for c in part.replace("...", "z")]) for part in spec.split("->")[0].split(",")]
        program(f"einsum.{spec.replace(',', '_').replace('->', '-').replace('...', 'x')}", functools.partial(jnp.einsum, spec), *arguments)
    together("isclose", {"all": lambda x: (jnp.allclose(x, x + 1e-9), jnp.array_equal(x, x), jnp.array_equiv(x[:1], x))}, x)
    together("dots", {
        "general": lambda x: lax.dot_general(x.reshape(2, 3, 2), x.reshape(2, 3, 2), (((1,), (1,)), ((0,), (0,)))), "general2": lambda x: lax.dot_general(x.reshape(2, 3, 2), x.reshape(3, 2, 2), (((0, 2), (1, 2)), ((1,), (0,)))),
        "vdot": lambda x: (jnp.vdot(x, x), jnp.inner(x.reshape(3, 4), x.reshape(3, 4)), jnp.vecdot(x.reshape(3, 4), x[:4])), "kron": lambda x: jnp.kron(x.reshape(3, 4), x[:2]), "tensordot": lambda x: jnp.tensordot(x.reshape(3, 4), x.reshape(4, 3), ((0, 1), (1, 0))), "matvec": lambda x: (jnp.matvec(x.reshape(3, 4), x[:4]), jnp.vecmat(x[:3], x.reshape(3, 4)))}, x)


def special():
    x, y, u = positive(14), positive(14) + 0.5, np.abs(unit(14))
    each("special", functions(jsp.special, """digamma entr erf erfc erfinv exp1 expi expit factorial gamma gammaln gammasgn i0 i0e i1 i1e
        log_ndtr log_softmax ndtr spence softmax fresnel"""), x)
    each("special", functions(jsp.special, "logit ndtri sici ellipk"), u)
    for name in "betaln gammainc gammaincc kl_div rel_entr xlog1py xlogy zeta poch beta".split():
        if hasattr(jsp.special, name):
            program(f"special.{name}.2", getattr(jsp.special, name), x, y + 1 if name == "zeta" else y)
    program("special.zeta.2b", jsp.special.zeta, y + 1, x)
    program("special.betainc", jsp.special.betainc, x, y, u)
    program("special.betainc.grad", jax.grad(lambda x, y, u: jnp.sum(jsp.special.betainc(x, y, u)), 2), x, y, u)
    program("special.gammainc.grad", jax.grad(lambda x, y: jnp.sum(jsp.special.gammainc(x, y)), (0, 1)), x, y)
    program("special.polygamma", lambda x: [jsp.special.polygamma(n, x) for n in (0, 1, 2, 5)], y)
    program("special.multigammaln", lambda x: jsp.special.multigammaln(x + 3, 3), x)
    program("special.bessel_jn", lambda x: jsp.special.bessel_jn(x, v=4, n_iter=30), x)
    program("special.expn", lambda x: [jsp.special.expn(n, x) for n in (1, 2, 5)], x)
    program("special.hyp1f1", jsp.special.hyp1f1, x[:5], y[:5], u[:5])
    program("special.bernoulli", lambda: jsp.special.bernoulli(8))
    program("special.sph_harm", lambda t, p: jsp.special.sph_harm_y(jnp.array([2]), jnp.array([1]), t[:1], p[:1], n_max=3) if hasattr(jsp.special, "sph_harm_y") else t, u, u)
    program("special.lgamma.negative", lambda x: (jsp.special.gammaln(-x), jsp.special.digamma(-x), jsp.special.gamma(-x)), np.array([0.3, 1.7, 2.5, 9.25], np.float32))
    program("special.random_gamma_grad", lax.random_gamma_grad, x, y)
    stats = {"norm": (), "beta": (2.0, 3.0), "cauchy": (), "chi2": (3.0,), "expon": (), "gamma": (2.0,), "laplace": (), "logistic": (), "pareto": (1.5,), "t": (4.0,), "uniform": (), "gumbel_l": (), "gumbel_r": ()}
    for name, arguments in stats.items():
        module = getattr(jsp.stats, name, None)
        if module:
            together(f"stats.{name}", {f: lambda x, m=module, f=f, a=arguments: getattr(m, f)(x, *a) for f in "pdf logpdf cdf logcdf sf logsf ppf isf".split() if hasattr(module, f)}, u)
    for name, arguments in {"poisson": (2.5,), "bernoulli": (0.3,), "geom": (0.3,), "nbinom": (4, 0.3), "binom": (6, 0.3), "betabinom": (6, 1.5, 2.0)}.items():
        module = getattr(jsp.stats, name, None)
        if module:
            together(f"stats.{name}", {f: lambda k, m=module, f=f, a=arguments: getattr(m, f)(k, *a) for f in "pmf logpmf cdf".split() if hasattr(module, f)}, ints(0, 7, 9))
    program("stats.kde", lambda x: jsp.stats.gaussian_kde(x)(jnp.linspace(0.0, 1.0, 5)), x)
    program("stats.multivariate", lambda x: jsp.stats.multivariate_normal.logpdf(x[:3], jnp.zeros(3), 2 * jnp.eye(3)), x)
    program("stats.more", lambda x: (jsp.stats.rankdata(x), jsp.stats.mode(jnp.round(x)), jsp.stats.sem(x), jsp.stats.dirichlet.logpdf(jax.nn.softmax(x[:3]), jnp.ones(3))), x)


def linear_algebra():
    for kind, make in {"f32": f32, "c64": c64}.items():
        a, d = make(4, 4), make(5, 5)
        d = (d @ d.conj().T + 5 * np.eye(5)).astype(d.dtype)
        tall, wide = make(6, 4), make(3, 5)
        batch = make(2, 3, 4, 4)
        together(f"linalg.{kind}", {
            "det": jnp.linalg.det, "slogdet": jnp.linalg.slogdet, "inv": jnp.linalg.inv, "solve": lambda a: jnp.linalg.solve(a, a[0]), "lu": jsp.linalg.lu, "lu_solve": lambda a: jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), a), "lu_solve.t": lambda a: jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), a, trans=1),
            "cond": jnp.linalg.cond, "expm": lambda a: jsp.linalg.expm(a * 0.2), "matrix_power": lambda a: jnp.linalg.matrix_power(a, -2), "norms": lambda a: [jnp.linalg.norm(a, o) for o in (None, "fro", "nuc", 1, 2, -1, -2, np.inf)], "pinv": jnp.linalg.pinv, "rank": jnp.linalg.matrix_rank,
            "tensorinv": lambda a: jnp.linalg.tensorinv(a.reshape(2, 2, 4), 2), "tensorsolve": lambda a: jnp.linalg.tensorsolve(a.reshape(4, 2, 2), a[0]), "svdvals": jnp.linalg.svdvals, "trace": jnp.trace, "block_diag": lambda a: jsp.linalg.block_diag(a, a[:2]), "toeplitz": lambda a: jsp.linalg.toeplitz(a[0], a[:, 0])}, a)
        together(f"linalg.definite.{kind}", {
            "cholesky": jnp.linalg.cholesky, "upper": lambda d: jnp.linalg.cholesky(d, upper=True), "cho_solve": lambda d: jsp.linalg.cho_solve(jsp.linalg.cho_factor(d, lower=True), d[0]), "eigvalsh": lambda d: jnp.linalg.eigvalsh(d), "eigh": lambda d: (lambda w, v: (w, (v * w) @ v.conj().T))(*jnp.linalg.eigh(d, UPLO="U")),
            "eigh.range": lambda d: jsp.linalg.eigh(d, eigvals_only=True), "solve": lambda d: jsp.linalg.solve(d, d[0], assume_a="pos"), "sqrtm": jsp.linalg.sqrtm, "inv": jsp.linalg.inv}, d)
        for name, m in {"tall": tall, "wide": wide}.items():
            together(f"linalg.{name}.{kind}", {
                "qr": lambda m: (lambda q, r: (q @ r, jnp.abs(r)))(*jnp.linalg.qr(m)), "qr.r": lambda m: jnp.abs(jnp.linalg.qr(m, "r")), "qr.complete": lambda m: (lambda q, r: (q @ r, q.conj().T @ q))(*jnp.linalg.qr(m, "complete")), "svd": lambda m: (lambda u, s, v: ((u * s) @ v, s))(*jnp.linalg.svd(m, full_matrices=False)),
                "svd.full": lambda m: (lambda u, s, v: (u.conj().T @ u, s, v @ v.conj().T))(*jnp.linalg.svd(m)), "lstsq": lambda m: jnp.linalg.lstsq(m, m[:, 0])[0], "pinv": jnp.linalg.pinv, "lu": jsp.linalg.lu, "polar": lambda m: jsp.linalg.polar(m)[1], "householder": lambda m: jnp.abs(lax.linalg.householder_product(*lax.linalg.geqrf(m))) if m.shape[0] >= m.shape[1] else m}, m)
        together(f"linalg.batch.{kind}", {"inv": jnp.linalg.inv, "det": jnp.linalg.det, "qr": lambda b: (lambda q, r: q @ r)(*jnp.linalg.qr(b)), "svd": lambda b: jnp.linalg.svd(b, compute_uv=False), "lu": jsp.linalg.lu, "eigvalsh": lambda b: jnp.linalg.eigvalsh(b + jnp.conj(jnp.swapaxes(b, -1, -2))), "solve": lambda b: jnp.linalg.solve(b, b[..., :2])}, batch)
        together(f"linalg.eig.{kind}", {"vals": lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))), "vectors": lambda a: (lambda w, v: jnp.abs(a.astype(w.dtype) @ v - v * w))(*jnp.linalg.eig(a)), "left": lambda a: jnp.sort(jnp.abs(lax.linalg.eig(a, compute_right_eigenvectors=False)[0]))}, a)
        for side, lower, transpose, diagonal in itertools.product((True, False), (True, False), (False, True), (False, True)):
            program(f"triangular.{kind}.{side:d}{lower:d}{transpose:d}{diagonal:d}", lambda d, b, s=side, l=lower, t=transpose, u=diagonal: lax.linalg.triangular_solve(
                d, b if s else b.T, left_side=s, lower=l, transpose_a=t, conjugate_a=t, unit_diagonal=u), d / 5, make(5, 3))
    together("linalg.empty", {"det": lambda a: jnp.linalg.det(a[:0, :0]), "matmul": lambda a: a[:, :0] @ a[:0], "cholesky": lambda a: jnp.linalg.cholesky(a[:0, :0]), "solve": lambda a: jnp.linalg.solve(a, a[:, :0])}, f32(4, 4))
    together("linalg.one", {"svd": lambda a: jnp.linalg.svd(a, compute_uv=False), "eigh": jnp.linalg.eigvalsh, "qr": lambda a: jnp.abs(jnp.linalg.qr(a)[1]), "inv": jnp.linalg.inv}, positive(1, 1))
    program("linalg.svd.qdwh", lambda a: lax.linalg.svd(a, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR), f32(5, 4))
    program("linalg.eigh.jacobi", lambda a: jnp.linalg.eigvalsh(a), symmetric(9))
    program("linalg.cholesky.not_definite", jnp.linalg.cholesky, -definite(4))
    program("linalg.singular", lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a), jsp.linalg.lu_factor(a)), np.ones((3, 3), np.float32))
    program("linalg.lu_permutation", lambda a: lax.linalg.lu(a), f32(3, 5, 4))
    program("linalg.cholesky_update", lambda d, v: lax.linalg.cholesky_update(jnp.linalg.cholesky(d).T, v), definite(4), f32(4))
    program("linalg.symmetric_product", lambda a, c: lax.linalg.symmetric_product(a, c, symmetrize_output=True), f32(4, 3), symmetric(4))
    program("linalg.funm", lambda a: jsp.linalg.expm_frechet(a * 0.1, a), f32(3, 3))
    program("linalg.rsf2csf", lambda a: (lambda t, z: jnp.abs(z @ t @ z.conj().T))(*jsp.linalg.rsf2csf(*jsp.linalg.schur(a))), f32(4, 4))
    program("linalg.eigh_tridiagonal", lambda d, e: jsp.linalg.eigh_tridiagonal(d, e, eigvals_only=True), f32(6), f32(5))
    program("linalg.hilbert", lambda: (jsp.linalg.hilbert(4), jsp.linalg.pascal(4), jsp.linalg.hadamard(4)) if hasattr(jsp.linalg, "pascal") else jsp.linalg.hilbert(4))
    program("linalg.ordqz", lambda a, b: (jnp.linalg.outer(a[0], b[0]), jnp.linalg.vector_norm(a, axis=1, ord=3), jnp.linalg.matrix_norm(b), jnp.linalg.matmul(a, b), jnp.linalg.vecdot(a, b)), f32(3, 3), f32(3, 3))
    for solver in ("cg", "gmres", "bicgstab"):
        program(f"sparse.{solver}", lambda d, b, s=solver: getattr(jsp.sparse.linalg, s)(d, b)[0], definite(5), f32(5))


def fourier():
    for n in (1, 2, 3, 5, 7, 9, 10, 13, 16, 21, 24, 30, 31, 49, 60, 97, 100, 128, 210):
        together(f"fft.{n}", {"fft": jnp.fft.fft, "ifft": jnp.fft.ifft, "rfft": lambda z: jnp.fft.rfft(z.real), "irfft": lambda z, n=n: jnp.fft.irfft(z, n=max(1, 2 * n - 1)), "irfft.even": lambda z, n=n: jnp.fft.irfft(z, n=2 * n), "hfft": lambda z: jnp.fft.hfft(z) if z.shape[-1] > 1 else z, "ihfft": lambda z: jnp.fft.ihfft(z.real)}, c64(2, n))
    together("fft.norms", {f"{f}.{m}": lambda z, f=f, m=m: getattr(jnp.fft, f)(z, norm=m) for f in ("fft", "ifft", "irfft", "fft2", "ifftn") for m in ("ortho", "forward", "backward")}, c64(6, 9))
    together("fft.axes", {"axis": lambda z: jnp.fft.fft(z, axis=0), "n": lambda z: (jnp.fft.fft(z, n=4, axis=1), jnp.fft.fft(z, n=12)), "fftn": lambda z: jnp.fft.fftn(z, axes=(0, 2)), "rfftn": lambda z: jnp.fft.rfftn(z.real), "irfftn": lambda z: jnp.fft.irfftn(z, s=(3, 5, 7)), "three": jnp.fft.fftn, "rfft2": lambda z: jnp.fft.rfft2(z.real, axes=(2, 0))}, c64(3, 5, 6))
    together("fft.dct", {"dct": lambda x: jsp.fft.dct(x), "idct": lambda x: jsp.fft.idct(x, norm="ortho"), "dctn": lambda x: jsp.fft.dctn(x)}, f32(4, 9))
    together("signal", {"fftconvolve": lambda x: jsp.signal.fftconvolve(x, x[:7]), "convolve": lambda x: jsp.signal.convolve(x, x[:7], "same"), "convolve2d": lambda x: jsp.signal.convolve2d(x.reshape(8, 8), x[:9].reshape(3, 3)), "correlate": lambda x: jsp.signal.correlate(x, x[:7]),
                        "detrend": lambda x: jsp.signal.detrend(x), "stft": lambda x: jsp.signal.stft(x, nperseg=16), "welch": lambda x: jsp.signal.welch(x, nperseg=16), "istft": lambda x: jsp.signal.istft(jsp.signal.stft(x, nperseg=16)[2], nperseg=16)}, f32(64))


def random_numbers():
    key = np.array([7, 21], np.uint32)
    draws = {
        "loggamma": lambda k: jax.random.loggamma(k, jnp.array([0.1, 1.0, 5.0]), (4, 3)), "gamma.small": lambda k: jax.random.gamma(k, 0.3, (8,)), "poisson.large": lambda k: jax.random.poisson(k, jnp.array([0.5, 20.0, 300.0]), (4, 3)), "chisquare": lambda k: jax.random.chisquare(k, 3.0, shape=(5,)),
        "f": lambda k: jax.random.f(k, 3.0, 4.0, shape=(5,)), "geometric": lambda k: jax.random.geometric(k, 0.3, (7,)), "generalized_normal": lambda k: jax.random.generalized_normal(k, 1.5, (5,)), "lognormal": lambda k: jax.random.lognormal(k, 0.5, (5,)), "maxwell": lambda k: jax.random.maxwell(k, (5,)),
        "double_sided_maxwell": lambda k: jax.random.double_sided_maxwell(k, 0.0, 1.0, (5,)), "weibull": lambda k: jax.random.weibull_min(k, 1.0, 2.0, (5,)), "pareto": lambda k: jax.random.pareto(k, 2.0, (5,)), "rayleigh": lambda k: jax.random.rayleigh(k, 1.0, (5,)), "triangular": lambda k: jax.random.triangular(k, 0.0, 0.3, 1.0, (5,)),
        "wald": lambda k: jax.random.wald(k, 1.0, (5,)), "multinomial": lambda k: jax.random.multinomial(k, 20.0, jnp.array([0.2, 0.3, 0.5])), "choice.p": lambda k: jax.random.choice(k, 5, (9,), p=jnp.array([0.1, 0.2, 0.3, 0.2, 0.2])), "choice.weighted": lambda k: jax.random.choice(k, 6, (3,), replace=False, p=jnp.arange(6.0) / 15),
        "categorical.axis": lambda k: jax.random.categorical(k, jnp.arange(12.0).reshape(3, 4) * 0.1, axis=0), "categorical.batch": lambda k: jax.random.categorical(k, jnp.zeros((5, 4))), "permutation.independent": lambda k: jax.random.permutation(k, jnp.arange(12).reshape(3, 4), axis=1, independent=True), "randint.wide": lambda k: jax.random.randint(k, (9,), -2147483648, 2147483647),
        "randint.u8": lambda k: jax.random.randint(k, (9,), 0, 200, jnp.uint8), "randint.s16": lambda k: jax.random.randint(k, (9,), -300, 300, jnp.int16), "bits16": lambda k: jax.random.bits(k, (9,), jnp.uint16), "uniform.range": lambda k: jax.random.uniform(k, (9,), minval=-3.0, maxval=5.0), "uniform.f16": lambda k: jax.random.uniform(k, (9,), jnp.float16),
        "normal.complex": lambda k: jax.random.normal(k, (5,), jnp.complex64), "normal.f16": lambda k: jax.random.normal(k, (5,), jnp.float16), "split.many": lambda k: jax.random.key_data(jax.random.split(k, (2, 3))), "vmap": lambda k: jax.vmap(lambda k: jax.random.normal(k, (3,)))(jax.random.split(k, 4)), "truncated": lambda k: jax.random.truncated_normal(k, jnp.array([-2.0, 0.0, 1.0]), 2.0),
        "odd": lambda k: jax.random.bits(k, (2, 3, 5)), "one": lambda k: jax.random.bits(k), "none": lambda k: jax.random.uniform(k, (0, 3)), "beta.batch": lambda k: jax.random.beta(k, jnp.array([0.5, 2.0]), jnp.array([3.0, 0.5])), "dirichlet": lambda k: jax.random.dirichlet(k, jnp.array([0.3, 1.0, 4.0]), (2,)), "binomial.large": lambda k: jax.random.binomial(k, 200, 0.6, (4,)),
        "chain": lambda k: functools.reduce(lambda s, i: (jax.random.split(s[0])[0], s[1] + jax.random.uniform(s[0], (3,))), range(4), (k, jnp.zeros(3)))[1], "dropout": lambda k: jnp.where(jax.random.bernoulli(k, 0.8, (4, 33)), 1.25, 0.0), "scan": lambda k: lax.scan(lambda k, _: (jax.random.split(k)[0], jax.random.normal(k, (2,))), k, None, length=5)[1],
    }
    for name, draw in draws.items():
        program(f"random.{name}", lambda k, d=draw: d(jax.random.wrap_key_data(k, impl="threefry2x32")), key)
    for name in ("randint.wide", "normal.f16", "vmap", "odd", "split.many", "scan"):
        program(f"random.rbg.{name}", lambda k, d=draws[name]: d(jax.random.wrap_key_data(k, impl="rbg")), np.array([3, 14, 15, 92], np.uint32))


def windows():
    rng = np.random.default_rng(11)
    pick = lambda *options: options[rng.integers(len(options))]
    for n in range(36):
        spatial = pick(1, 2, 2, 2, 3)
        groups, batch_groups = pick((1, 1), (1, 1), (2, 1), (3, 1), (1, 2))
        channels, features = groups * pick(1, 2), groups * batch_groups * pick(1, 2)
        kernel = tuple(int(rng.integers(1, 4)) for _ in range(spatial))
        size = tuple(int(rng.integers(5, 9)) for _ in range(spatial))
        settings = dict(window_strides=tuple(int(rng.integers(1, 3)) for _ in range(spatial)), padding=tuple((int(rng.integers(-1, 3)), int(rng.integers(-1, 3))) for _ in range(spatial)),
                        lhs_dilation=tuple(pick(1, 1, 2) for _ in range(spatial)), rhs_dilation=tuple(pick(1, 1, 2) for _ in range(spatial)), feature_group_count=groups, batch_group_count=batch_groups)
        convolve = lambda x, k, s=settings: lax.conv_general_dilated(x, k, **s)
        x, k = f32(2 * batch_groups, channels, *size), f32(features, channels // groups, *kernel)
        program(f"conv.{n}", convolve, x, k)
        if n % 3 == 0:
            program(f"conv.{n}.grad", jax.grad(lambda x, k, c=convolve: jnp.sum(jnp.sin(c(x, k))), (0, 1)), x, k)
    reducers = {"add": (0.0, lax.add), "max": (-np.inf, lax.max), "min": (np.inf, lax.min), "mul": (1.0, lax.mul), "generic": (0.5, lambda a, b: a * 0.5 + b)}
    for n in range(24):
        name = pick(*reducers)
        init, reducer = reducers[name]
        rank = pick(1, 2, 3)
        size = tuple(int(rng.integers(4, 9)) for _ in range(rank))
        window, stride, base, dilation = (tuple(int(rng.integers(1, limit)) for _ in range(rank)) for limit in (4, 3, 3, 3))
        if name == "generic":
            base = (1,) * rank
        padding = tuple((int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(rank))
        if name == "generic":  # no monoid: whether padding counts is nobody's promise
            padding = ((0, 0),) * rank
        program(f"reduce_window.{name}.{n}", lambda x, i=init, r=reducer, a=(window, stride, padding, base, dilation): lax.reduce_window(x, np.float32(i), r, *a), f32(*size))
    for n in range(10):
        size, window, stride = (int(rng.integers(5, 10)), int(rng.integers(5, 10))), (pick(1, 2, 3), pick(1, 2, 3)), (pick(1, 2, 3), pick(1, 2))
        for name, init in {"max": -np.inf, "min": np.inf}.items():
            pool = lambda x, n=name, i=init, w=window, s=stride, p=pick("SAME", "VALID"): lax.reduce_window(x, np.float32(i), getattr(lax, n), (1, *w, 1), (1, *s, 1), p)
            program(f"pool.grad.{name}.{n}", jax.grad(lambda x, p=pool: jnp.sum(jnp.sin(p(x)))), f32(2, *size, 3))
    program("pool.second_derivative", jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum(jnp.sin(lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"))))(x) ** 2)), f32(6, 6))
    program("reduce_window.pair", lambda x, y: lax.reduce_window((x, y), (np.float32(0), np.float32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2, 2), (1, 1), "SAME"), f32(4, 5), f32(4, 5))
    program("reduce_window.int", lambda x: (lax.reduce_window(x, np.int32(-99), lax.max, (3,), (2,), "SAME"), lax.reduce_window(x, np.int32(0), lax.bitwise_or, (3,), (1,), "VALID")), ints(-9, 9, 11))
    program("conv.transpose", lambda x, k: [lax.conv_transpose(x, k, (s, s), p) for s in (1, 2, 3) for p in ("SAME", "VALID")], f32(1, 4, 5, 2), f32(3, 2, 2, 3))
    program("conv.patches", lambda x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME"), f32(1, 2, 6, 7))
    program("conv.local", lambda x, k: lax.conv_general_dilated_local(x, k, (1, 1), "VALID", (2, 2)), f32(1, 2, 4, 4), f32(3, 8, 3, 3))
    program("conv.f16", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), f32(1, 2, 6, 6).astype(np.float16), f32(3, 2, 3, 3).astype(np.float16))
    program("conv.c64", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME"), c64(1, 2, 5, 5), c64(3, 2, 3, 3))
    program("conv.s8_s32", lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", preferred_element_type=jnp.int32), ints(-99, 99, 1, 2, 5, 5, dtype=np.int8), ints(-99, 99, 3, 2, 3, 3, dtype=np.int8))
    program("conv.empty", lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID"), f32(2, 3, 2), f32(4, 3, 3))
    program("conv.0d", lambda x, k: lax.conv_general_dilated(x, k, (), ()), f32(2, 3), f32(4, 3))


def control():
    x = f32(6)
    together("loops", {
        "nested": lambda x: lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(0, i + 1, lambda j, t: t * 0.5 + j, s), x), "while.tuple": lambda x: lax.while_loop(lambda s: (s[0] < 20) & jnp.all(s[1]["a"] < 99), lambda s: (s[0] + 3, {"a": s[1]["a"] + 1, "b": s[1]["a"]}), (0, {"a": x, "b": x})),
        "never": lambda x: lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1,), (0,)), "scan.none": lambda x: lax.scan(lambda c, _: (c * 1.1, c[0]), x, None, length=4), "scan.pytree": lambda x: lax.scan(lambda c, y: ({"s": c["s"] + y["a"]}, (y["b"], c["s"])), {"s": 0.0}, {"a": x, "b": x * 2}),
        "scan.empty": lambda x: lax.scan(lambda c, y: (c + y, y), 0.0, x[:0]), "scan.cond": lambda x: lax.scan(lambda c, y: (lax.cond(y > 0, lambda v: v + y, lambda v: v * 0.5, c), c), 0.0, x), "scan.of_scan": lambda x: lax.scan(lambda c, y: (c + lax.scan(lambda d, z: (d + z * y, None), 0.0, x)[0], None), 0.0, x)[0],
        "scan.array_state": lambda x: lax.scan(lambda c, i: (c.at[i].set(c[i - 1] + 1), c.sum()), x, jnp.arange(5)), "scan.int": lambda x: lax.scan(lambda c, i: ((c * 1103515245 + 12345) % 65536, c), 7, jnp.arange(9)), "map.batch": lambda x: lax.map(lambda v: v**2, x, batch_size=4), "fori.reverse": lambda x: lax.fori_loop(-3, 2, lambda i, s: s + i, x),
        "assoc.max": lambda x: lax.associative_scan(jnp.maximum, x, reverse=True), "assoc.matmul": lambda x: lax.associative_scan(jnp.matmul, x[:, None, None] * jnp.eye(2)), "assoc.pair": lambda x: lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x)), "switch": lambda x: [lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x) for i in (-1, 0, 2, 9)],
        "switch.vmap": lambda x: jax.vmap(lambda i, v: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], v))(jnp.arange(6) % 4, x), "cond.pytree": lambda x: lax.cond(x[0] > 0, lambda v: {"a": v, "b": (v[0], v.sum())}, lambda v: {"a": -v, "b": (v[1], v.max())}, x), "cond.nested": lambda x: lax.cond(x[0] > 0, lambda v: lax.cond(v[1] > 0, jnp.sin, jnp.cos, v), lambda v: v, x),
        "cond.none": lambda x: lax.cond(x[0] > 0, lambda: 1.0, lambda: 2.0), "reduce.custom": lambda x: lax.reduce(x, np.float32(2), lambda a, b: jnp.hypot(a, b), (0,)), "collatz": lambda x: lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (27, 0))}, x)
    each("scan_grad", {
        "rnn": jax.grad(lambda x: jnp.sum(lax.scan(lambda h, v: (jnp.tanh(h * 0.5 + v), h**2), 0.0, x)[1])), "carry_matrix": jax.grad(lambda x: jnp.sum(lax.scan(lambda m, v: (m @ m * 0.1 + v, None), jnp.eye(3), x)[0])), "cumsum": jax.grad(lambda x: jnp.sum(jnp.cumsum(x) ** 2)), "cummax": jax.grad(lambda x: jnp.sum(lax.cummax(x) ** 2)),
        "cumprod": jax.grad(lambda x: jnp.sum(jnp.cumprod(x))), "fori": jax.grad(lambda x: jnp.sum(lax.fori_loop(0, 5, lambda i, s: jnp.sin(s) * 1.1, x))), "remat": jax.grad(lambda x: jnp.sum(lax.scan(jax.checkpoint(lambda h, v: (jnp.tanh(h + v), h)), 0.0, x)[1])), "assoc": jax.grad(lambda x: jnp.sum(lax.associative_scan(jnp.multiply, x))),
        "cond": jax.grad(lambda x: lax.cond(x[0] > 0, lambda v: jnp.sum(v**2), lambda v: jnp.sum(v**3), x)), "custom_root": jax.grad(lambda x: lax.custom_root(lambda y: y**3 - jnp.abs(x[0]) - 1, 1.5, lambda f, y: lax.fori_loop(0, 20, lambda _, y: y - f(y) / (3 * y**2), y), lambda g, y: y / g(1.0))),
        "linear_solve": jax.grad(lambda x: jnp.sum(lax.custom_linear_solve(lambda v: v * 3, x, lambda mv, b: b / 3, symmetric=True)))}, x)
    program("vmap.scan", jax.vmap(lambda x: lax.scan(lambda c, y: (c * 0.9 + y, c), 0.0, x)), f32(3, 7))
    program("vmap.while", jax.vmap(lambda n, x: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, jnp.sin(s[1])), (0, x))), ints(0, 6, 5), f32(5))
    program("vmap.fori.matrix", jax.vmap(lambda a: lax.fori_loop(0, 4, lambda i, m: m @ m * 0.3, a)), f32(3, 4, 4) * 0.5)
    program("pmap_like", jax.vmap(lambda x: (lax.psum(x, "i"), lax.pmax(x, "i"), lax.all_gather(x, "i"), lax.axis_index("i"), lax.pmean(x, "i")), axis_name="i"), f32(4, 3))
    program("jacobians", lambda x: (jax.jacfwd(lambda v: jnp.cumsum(v**2))(x), jax.jacrev(jax.nn.softmax)(x), jax.jvp(jax.grad(lambda v: jnp.sum(v**4)), (x,), (x,))), f32(5))
    program("optimize.bfgs", lambda x: jax.scipy.optimize.minimize(lambda v: jnp.sum((v - jnp.arange(3.0)) ** 2), x, method="BFGS").x, f32(3))
    program("image.scale", lambda x: [jax.image.resize(x, (7, 4, 3), m, antialias=a) for m in ("nearest", "linear", "cubic", "lanczos3") for a in (True, False)], f32(5, 6, 3))
    program("image.translate", lambda x: jax.image.scale_and_translate(x, (8, 8), (0, 1), jnp.array([1.5, 1.2]), jnp.array([0.3, -0.4]), "linear"), f32(5, 6))
    program("ndimage", lambda x, c: [jsp.ndimage.map_coordinates(x, c, o, mode=m) for o in (0, 1) for m in ("constant", "nearest", "wrap", "mirror", "reflect")], f32(5, 6), positive(2, 9) * 3)
    program("interpolate", lambda v, p: jsp.interpolate.RegularGridInterpolator((jnp.arange(4.0), jnp.arange(5.0)), v, method="linear")(p), f32(4, 5), np.abs(unit(6, 2)) * 3)
    program("cluster.vq", lambda x, c: jsp.cluster.vq.vq(x, c), f32(9, 2), f32(3, 2))
    program("fixed_point.newton_sqrt", lambda x: lax.while_loop(lambda s: jnp.max(jnp.abs(s * s - x)) > 1e-3, lambda s: 0.5 * (s + x / s), x), positive(6))
    program("string_match", lambda t, p: jnp.sum(jnp.all(t[jnp.arange(20)[:, None] + jnp.arange(3)] == p, 1)), ints(0, 2, 22), ints(0, 2, 3))
    def distance(a, b):
        def row(i, above):
            step = lambda left, j: (jnp.minimum(jnp.minimum(left, above[j + 1]) + 1, above[j] + (a[i] != b[j])),) * 2
            return jnp.concatenate([jnp.array([i + 1]), lax.scan(step, i + 1, jnp.arange(6))[1]])
        return lax.fori_loop(0, 6, row, jnp.arange(7))
    program("levenshtein", distance, ints(0, 3, 6), ints(0, 3, 6))
    program("sieve", lambda: lax.fori_loop(2, 8, lambda i, s: jnp.where((jnp.arange(50) % i == 0) & (jnp.arange(50) > i), False, s), jnp.ones(50, bool).at[:2].set(False)))
    program("kmeans", lambda x: lax.fori_loop(0, 5, lambda _, c: jnp.stack([jnp.sum(jnp.where((jnp.argmin(jnp.sum((x[:, None] - c) ** 2, -1), 1) == k)[:, None], x, 0), 0) / 3 for k in range(3)]), x[:3]), f32(12, 2))


def networks():
    x = f32(4, 9)
    each("nn", {
        "attention.mask": lambda x: jax.nn.dot_product_attention(*(x.reshape(1, 6, 2, 3),) * 3, mask=jnp.tril(jnp.ones((1, 1, 6, 6), bool))), "attention.grad": jax.grad(lambda x: jnp.sum(jax.nn.dot_product_attention(*(x.reshape(1, 6, 2, 3),) * 3) ** 2)),
        "logmeanexp": lambda x: jax.nn.logmeanexp(x) if hasattr(jax.nn, "logmeanexp") else jax.nn.logsumexp(x), "logsumexp.signed": lambda x: jax.nn.logsumexp(x.reshape(4, 9), axis=1, b=x.reshape(4, 9), return_sign=True), "softmax.where": lambda x: jax.nn.softmax(x, where=x > 0), "sparse_sigmoid": jax.nn.sparse_sigmoid, "log1mexp": lambda x: jax.nn.log1mexp(jnp.abs(x)) if hasattr(jax.nn, "log1mexp") else x,
        "gelu.exact": lambda x: jax.nn.gelu(x, approximate=False), "standardize": lambda x: jax.nn.standardize(x, axis=0), "silu.grad2": lambda x: jax.vmap(jax.grad(jax.grad(jax.nn.silu)))(x.ravel()), "one_hot": lambda x: jax.nn.one_hot(jnp.arange(5) - 1, 4, axis=0)}, f32(36))
    for name in "glorot_uniform he_normal lecun_normal orthogonal truncated_normal variance_scaling delta_orthogonal".split():
        make = getattr(jax.nn.initializers, name)
        make = make(1.0, "fan_avg", "uniform") if name == "variance_scaling" else make()
        shape = (3, 3, 2, 4) if name == "delta_orthogonal" else (4, 6)
        program(f"initializer.{name}", lambda k, m=make, s=shape: jnp.abs(m(jax.random.wrap_key_data(k), s, jnp.float32)), np.array([1, 2], np.uint32))
    def batch_norm(x, g, b):
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(var + 1e-5) * g + b
    program("batch_norm.grad", jax.grad(lambda *a: jnp.sum(jnp.sin(batch_norm(*a))), (0, 1, 2)), f32(3, 4, 4, 5), positive(5), f32(5))
    program("layer_norm.bf16", lambda x: ((lambda h: (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5))(x.astype(jnp.float32))).astype(jnp.bfloat16), f32(4, 32).astype(ml_dtypes.bfloat16))
    def gru(p, xs):
        def step(h, x):
            z, r = jnp.split(jax.nn.sigmoid(x @ p["w"] + h @ p["u"]), 2, -1)
            n = jnp.tanh(x @ p["wn"] + (r * h) @ p["un"])
            return (1 - z) * h + z * n, h
        return jnp.sum(lax.scan(step, jnp.zeros((2, 4)), xs)[1] ** 2)
    program("gru.grad", jax.value_and_grad(gru), {"w": f32(3, 8), "u": f32(4, 8), "wn": f32(3, 4), "un": f32(4, 4)}, f32(6, 2, 3))
    def mixture(p, x):
        gates = jax.nn.softmax(x @ p["gate"])
        values, which = lax.top_k(gates, 2)
        experts = jnp.einsum("td,edf->tef", x, p["experts"])
        return jnp.sum(jnp.take_along_axis(experts, which[..., None], 1) * values[..., None], 1)
    program("mixture_of_experts.grad", jax.grad(lambda p, x: jnp.sum(mixture(p, x) ** 2)), {"gate": f32(6, 4), "experts": f32(4, 6, 5)}, f32(7, 6))
    program("ragged_dot", lambda a, b, g: lax.ragged_dot(a, b, g), f32(9, 4), f32(3, 4, 5), np.array([2, 0, 5], np.int32))
    program("ragged_dot.grad", jax.grad(lambda a, b, g: jnp.sum(lax.ragged_dot(a, b, g) ** 2), (0, 1)), f32(9, 4), f32(3, 4, 5), np.array([2, 3, 4], np.int32))
    program("embedding_bag", lambda t, i: jax.ops.segment_sum(t[i], jnp.array([0, 0, 1, 2, 2, 2]), 3), f32(9, 4), ints(0, 9, 6))
    program("rotary", lambda x: (lambda a, b, t: jnp.concatenate([a * jnp.cos(t) - b * jnp.sin(t), a * jnp.sin(t) + b * jnp.cos(t)], -1))(*jnp.split(x, 2, -1), jnp.arange(6.0)[:, None] / 10 ** jnp.arange(4.0)), f32(2, 6, 8))
    program("quantized", lambda x, w: (lambda s: (lax.dot(jnp.round(x / s).astype(jnp.int8), w, preferred_element_type=jnp.int32) * s))(jnp.max(jnp.abs(x)) / 127), f32(4, 8), ints(-127, 127, 8, 5, dtype=np.int8))
    program("beam", lambda s: lax.fori_loop(0, 4, lambda i, c: lax.top_k((c[:, None] + s).ravel(), 3)[0], jnp.zeros(3)), f32(3, 7))


for family in (element_types, gradients, indexing, numeric, special, linear_algebra, fourier, random_numbers, windows, control, networks):
    family()
