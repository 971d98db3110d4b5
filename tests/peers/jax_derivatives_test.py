"""Derivatives of JAX's programs, which HloModule.jvp() and vjp() make of their HLO, are those of jax.jvp and jax.vjp.

usage: jax_derivatives_test.py PYTHONPATH [--all] [NAME...]

The programs are those of jax_programs.py in double precision: a sample, all with --all, or those whose names match
patterns. For some, gradients of gradients are compared, too.
"""
import collections
import fnmatch
import os
import sys
import warnings

sys.path.insert(0, sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
warnings.filterwarnings("ignore")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax_programs import PROGRAMS  # noqa: E402

import lazuli as lz  # noqa: E402

EVERY = 5  # of the sample
# Of results, and of what a program computes in types that its HLO names.
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 2e-3, "complex64": 2e-3, "bfloat16": 6e-2, "float16": 2e-2}
INSIDE = {"bf16[": 6e-2, " f16[": 2e-2, " f32[": 2e-3, " c64[": 2e-3, "f8e": 0.5}
# What Lazuli has no derivative of: a part of the error, and why.
REFUSED = {
    "no derivative of custom-call": "general eigenvalues, the Schur form and others have no rules",
    "singular vectors of full matrices": "as in JAX",
    "while loop whose number of steps is not known": "as in JAX, reverse mode needs the number",
    "no derivative of scatter by multiply": "as in JAX, indices must be unique",
}
# Programs whose derivatives differ, and why.
DIFFERENT = {
    "cho_solve": "JAX's derivative of cho_factor holds for symmetric directions; its HLO reads one triangle, as finite differences show",
    "lax.erf_inv": "JAX has a rule for the function; its HLO selects between formulas, one with an infinite derivative",
}
RNG = np.random.default_rng(11)


def wide(x):
    types = {"float32": np.float64, "complex64": np.complex128, "int32": np.int64}
    return np.asarray(x).astype(types.get(np.asarray(x).dtype.name, np.asarray(x).dtype))


def is_smooth(x):
    return np.issubdtype(x.dtype, np.inexact) or x.dtype.name in TOLERANCE


def direction(x):
    values = RNG.standard_normal(x.shape)
    if np.iscomplexobj(x):
        values = values + 1j * RNG.standard_normal(x.shape)
    return np.asarray(values).astype(x.dtype)


def tensor(x):
    x = np.ascontiguousarray(x).reshape(np.shape(x))
    if x.dtype.name == "bfloat16":
        return lz.tensor(x.astype(np.float32)).to(lz.bfloat16)
    return lz.from_numpy(x.copy())


def evaluated(module, arguments):
    return [np.asarray(t.float().numpy() if t.dtype == lz.bfloat16 else t.numpy())
            for t in module.evaluate([tensor(x) for x in arguments])]


def difference(expected, actual, program):
    """None, or how a derivative differs."""
    expected = np.asarray(expected)
    if expected.shape != actual.shape:
        return f"is {actual.shape}, expected {expected.shape}"
    tolerance = max(TOLERANCE[expected.dtype.name], program.tolerance)
    kind = np.complex128 if np.iscomplexobj(expected) else np.float64
    x, y = expected.astype(kind), actual.astype(kind)
    size = np.abs(x[np.isfinite(x)]).max(initial=0)
    with np.errstate(all="ignore"):
        wrong = ~((np.abs(x - y) <= tolerance * (np.abs(x) + max(size, 1))) | (x == y) | (np.isnan(x) & np.isnan(y)))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, at {at}: {y[at]}, expected {x[at]}"


class Program:
    """A function of the leaves of its arguments that have derivatives, and its module."""

    def __init__(self, function, arguments):
        arguments = jax.tree.map(wide, arguments)
        self.leaves, tree = jax.tree.flatten(arguments)
        self.smooth = [k for k, x in enumerate(self.leaves) if is_smooth(x)]
        self.primals = [jnp.asarray(self.leaves[k]) for k in self.smooth]

        def of_smooth(*given):
            leaves = [jnp.asarray(x) for x in self.leaves]
            for k, x in zip(self.smooth, given):
                leaves[k] = x
            results = jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves)))
            return [r for r in results if is_smooth(np.empty(0, jnp.asarray(r).dtype))]

        self.function = of_smooth
        text = jax.jit(function, keep_unused=True).lower(*arguments).compiler_ir("hlo").as_hlo_text(
            print_large_constants=True)
        self.tolerance = max([bound for part, bound in INSIDE.items() if part in text], default=0)
        self.module = lz.hlo.HloModule.parse(text)


def compare_jvp(program):
    v = [direction(np.asarray(x)) for x in program.primals]
    _, expected = jax.jvp(program.function, program.primals, [jnp.asarray(x) for x in v])
    actual = evaluated(program.module.jvp(), program.leaves + v)[-len(expected):] if expected else []
    return [("jvp", difference(x, y, program)) for x, y in zip(expected, actual)]


def compare_vjp(program):
    results, pull = jax.vjp(program.function, *program.primals)
    u = [direction(np.asarray(x)) for x in results]
    expected = [np.conj(x) for x in pull([jnp.asarray(np.conj(x)) for x in u])]
    actual = evaluated(program.module.vjp(), program.leaves + u)
    return [("vjp", difference(x, y, program)) for x, y in zip(expected, actual)]


def compare_second(program):
    """The derivative of the cotangents in a direction."""
    results = program.function(*program.primals)
    u = [direction(np.asarray(x)) for x in results]
    v = [direction(np.asarray(x)) for x in program.primals]

    def cotangents(*primals):
        return jax.vjp(program.function, *primals)[1]([jnp.asarray(x) for x in u])

    _, expected = jax.jvp(cotangents, program.primals, [jnp.asarray(x) for x in v])
    module = program.module.vjp()
    module = module.jvp(program.smooth) if program.smooth else module
    actual = evaluated(module, program.leaves + u + v)[-len(expected):]
    return [("second order", difference(x, y, program)) for x, y in zip(expected, actual)]


def compare(program, name, counts):
    """What is wrong with the derivatives of a program."""
    problems = []
    is_real = not any(np.iscomplexobj(x) for x in program.leaves)
    for mode in (compare_jvp, compare_vjp) + ((compare_second,) if is_real and counts["second order"] < 40 else ()):
        try:
            compared = mode(program)
        except lz.Error as error:
            reason = next((part for part in REFUSED if part in str(error)), None)
            counts[f"refused ({reason})" if reason else "errors"] += 1
            if reason is None:
                problems.append(f"{mode.__name__}: {error}")
        except Exception as error:  # JAX has none, either
            if "jax" not in type(error).__module__ and not isinstance(error, (TypeError, NotImplementedError, ValueError)):
                raise
            counts["not in JAX"] += 1
        else:
            for what, problem in compared:
                counts[what] += 1
                if problem is not None and name not in DIFFERENT:
                    problems.append(f"{what}: {problem}")
    return problems


def main():
    patterns = [a for a in sys.argv[2:] if not a.startswith("--")]
    names = sorted(PROGRAMS)
    if patterns:
        names = [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns)]
    elif "--all" not in sys.argv:
        names = names[::EVERY]
    counts = collections.Counter()
    failed = 0
    for name in names:
        try:
            program = Program(*PROGRAMS[name])
        except TypeError:  # it names types of single precision
            counts["not in double precision"] += 1
            continue
        if not program.smooth:
            continue
        counts["programs"] += 1
        for problem in compare(program, name, counts):
            print(f"{name}: {problem}"[:600], flush=True)
            failed += 1
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    sys.exit(failed > 0)


main()
