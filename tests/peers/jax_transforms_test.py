#!/usr/bin/env python3
"""Transforms of functions, nested to depth three, are those of JAX.

    jax_transforms_test.py FOLDER [--show] [PATTERN]     FOLDER holds the package lazuli, as build/PRESET/python does

Each function of transform_functions.py goes through random chains of grad, value_and_grad, jvp, linearize, jacfwd, vjp, jacrev, hessian,
vmap, remat and loops that call it. A chain is a program, one line for each transform, that both libraries run on the same arrays; one that
fails is printed. LAZULI_FUZZ_TRANSFORMS=12 makes so many chains of each function instead of one of every third, LAZULI_FUZZ_SEED others, and a
PATTERN chooses functions. Programs run on the CPU, and a part of them on the interpreter and, in single precision, on the NPU, too. --show
prints what JAX refuses.
"""

import ast
import collections
import os
import random
import re
import sys
import traceback
import warnings
import zlib

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_X64"] = "1"
sys.path.insert(0, sys.argv[1])
warnings.filterwarnings("ignore")

import lazuli as lz  # noqa: E402

lz.set_default_dtype(lz.float64)
lz.sync()  # it has read XLA_FLAGS
# JAX compiles for seconds otherwise.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.scipy.linalg as jsl  # noqa: E402
import jax.scipy.special as jsp  # noqa: E402
import numpy as np  # noqa: E402
from transform_functions import ARGUMENTS, FAMILIES, OPS  # noqa: E402

CHAINS = int(os.environ.get("LAZULI_FUZZ_TRANSFORMS", "0"))
SEED = os.environ.get("LAZULI_FUZZ_SEED", "0")
EVERY = 3  # of the functions, in the sample
LARGEST = 3000  # elements of a result
DEVICES = {"interpreter:0": (7, "float64"), "npu:0": (13, "float32")}  # every how many programs run there, too, and in which precision
# Relative to the largest element of an array.
TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float32": 1e-2, "complex64": 1e-2}
FLOATING = ("real", "complex")

# What both libraries' programs begin with. u() are weights of a sum, d() directions, both fixed by the shape.
HEAD = '''
def leaves(tree):
    if isinstance(tree, dict): return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (tuple, list)): return [leaf for item in tree for leaf in leaves(item)]
    return [] if tree is None else [tree]
def flat(*trees): return tuple(leaves(trees))
def u(p): return fixed(p, 0.3)
def d(p): return fixed(p, 1.9)
def total(results): return sum(lib.sum(lib.real(leaf * u(leaf))) for leaf in results)
def pulled(out, back): return flat(out, back(tuple(u(leaf) for leaf in out)))
'''  # fmt: skip


def numbers(shape, phase, is_complex):
    count = np.arange(1, int(np.prod(shape)) + 1, dtype=np.float64).reshape(shape)
    return np.cos(count * 1.7 + phase) + (1j * np.sin(count * 0.9 + phase) if is_complex else 0)


class Jax:
    """JAX's names. Cotangents and gradients of complex numbers are conjugated, as PyTorch has them."""

    class T:
        jvp, linearize, jacfwd, jacrev, hessian, remat = jax.jvp, jax.linearize, jax.jacfwd, jax.jacrev, jax.hessian, jax.checkpoint

        @staticmethod
        def grad(f, argnums=0):
            return lambda *a: conjugate(jax.grad(f, argnums)(*a))

        @staticmethod
        def value_and_grad(f, argnums=0):
            return lambda *a: (lambda value, g: (value, conjugate(g)))(*jax.value_and_grad(f, argnums)(*a))

        @staticmethod
        def vjp(f, *primals):
            out, back = jax.vjp(f, *primals)
            return out, lambda c: conjugate(back(conjugate(c)))

        @staticmethod
        def vmap(f, in_dims=0, out_dims=0):
            return jax.vmap(f, in_dims, out_dims)

    def __init__(self):
        self.names = {"lib": jnp, "lax": jax.lax, "T": self.T, "jax": jax, "jnp": jnp, "jsp": jsp, "jsl": jsl, "fixed": self.fixed}
        exec(SERIES, self.names)
        define(self.names, 1)

    @staticmethod
    def fixed(p, phase):
        return jnp.asarray(numbers(p.shape, phase, jnp.iscomplexobj(p)), p.dtype)


class Lazuli:
    """Lazuli's names. Programs are those that a failure prints."""

    def __init__(self):
        self.names = {"lib": lz, "lax": lz.control, "T": lz.func, "lz": lz, "F": lz.nn.functional, "fixed": self.fixed}
        exec(WRITTEN, self.names)
        define(self.names, 2)

    @staticmethod
    def fixed(p, phase):
        return lz.from_numpy(np.array(numbers(p.shape, phase, p.is_complex()))).to(p.dtype).to(p.device)


WRITTEN = """
def written_in_place(p, e):
    p = p.clone()
    p[0] = e
    p[1:] *= 2
    return p
"""


# JAX's own takes seconds to compile.
SERIES = """
def expm_by_series(p):
    p, result = p / 16, jnp.eye(3, dtype=p.dtype)
    for n in range(12, 0, -1): result = jnp.eye(3, dtype=p.dtype) + p @ result / n
    for n in range(4): result = result @ result
    return result
"""


def conjugate(tree):
    return jax.tree.map(jnp.conj, tree)


def spelled():
    for line in OPS.strip().split("\n"):
        yield line.split(" | ")


def define(names, column):
    exec(HEAD, names)
    for parts in spelled():
        exec(f"def {parts[0]}: return {parts[column]}", names)


def free_names(text):
    tree = ast.parse(text, mode="eval")
    bound = {a.arg for node in ast.walk(tree) if isinstance(node, ast.Lambda) for a in node.args.args}
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound


class Array:
    """An argument or a result of a function: its name, shape and kind."""

    def __init__(self, name, shape, kind):
        self.name, self.shape, self.kind = name, tuple(shape), kind

    def size(self):
        return int(np.prod(self.shape))


class Program:
    """A function under a chain of transforms; str() is its text. `draw` makes the choices."""

    def __init__(self, text, draw):
        self.draw = draw
        self.forward = text.startswith("forward ")
        self.text = text = text.removeprefix("forward ")
        self.arguments = [Array(name, *ARGUMENTS[name]) for name in sorted(free_names(text) & set(ARGUMENTS), key=list(ARGUMENTS).index)]
        self.lines, self.chain, self.depth = [], [], 0
        self._define(f"lambda {self._names()}: flat({text})")
        self.given = {a.name: a for a in self.arguments}

    def _names(self, arrays=None):
        return ", ".join(a.name for a in (self.arguments if arrays is None else arrays))

    def _tuple(self, arrays):
        return f"({self._names(arrays)},)"

    def _define(self, text):
        self.lines.append(f"f{len(self.lines)} = {text}")
        self.f = f"f{len(self.lines) - 1}"

    def _of(self, chosen):
        """The function of the chosen arguments."""
        return f"lambda {self._names(chosen)}: {self.f}({self._names()})"

    def _sum(self):
        return f"lambda {self._names()}: total({self.f}({self._names()}))"

    def _chosen(self):
        """Some of the arguments that can be differentiated for."""
        smooth = [a for a in self.arguments if a.kind in FLOATING]
        return sorted(self.draw.sample(smooth, self.draw.randint(1, min(2, len(smooth)))), key=self.arguments.index)

    def _added(self, prefix, arrays):
        """Arguments like these arrays."""
        made = [Array(f"{prefix}{len(self.arguments) + n}", a.shape, a.kind) for n, a in enumerate(arrays)]
        self.arguments = self.arguments + made
        return made

    def can(self, kind):
        """Whether this transform is possible here, and not too large."""
        is_real = all(a.kind == "real" for a in self.results)
        if kind in ("vmap", "map"):
            return bool(self.arguments) and sum(r.size() for r in self.results) <= LARGEST / 3
        if not any(a.kind in FLOATING for a in self.arguments) or not self.results:
            return False
        if kind in ("jvp", "linearize", "remat", "cond"):
            return True
        if self.forward and kind != "jacfwd":
            return False
        if kind in ("jacfwd", "jacrev", "hessian"):
            return is_real and all(a.kind != "complex" for a in self.arguments) and self._jacobian_size(kind) <= LARGEST
        return True

    def _jacobian_size(self, kind):
        inputs = max(a.size() for a in self.arguments if a.kind in FLOATING)
        return 4 * inputs * (inputs if kind == "hessian" else sum(r.size() for r in self.results))

    def apply(self, kind):
        getattr(self, f"_{kind}")()
        self.chain.append(kind)

    def _grad(self):
        chosen = self._chosen()
        self._define(f"lambda {self._names()}: flat(T.grad({self._sum()}, {self._positions(chosen)})({self._names()}))")
        self.results = [Array("", a.shape, a.kind) for a in chosen]

    def _value_and_grad(self):
        chosen = self._chosen()
        self._define(f"lambda {self._names()}: flat(T.value_and_grad({self._sum()}, {self._positions(chosen)})({self._names()}))")
        self.results = [Array("", (), "real")] + [Array("", a.shape, a.kind) for a in chosen]

    def _positions(self, arrays):
        return "(" + ", ".join(str(self.arguments.index(a)) for a in arrays) + ",)"

    def _jvp(self):
        chosen = self._chosen()
        of = self._of(chosen)
        if self.draw.random() < 0.5:
            tangents = "(" + ", ".join(f"d({a.name})" for a in chosen) + ",)"
        else:
            tangents = self._tuple(self._added("d", chosen))
        self._define(f"lambda {self._names()}: flat(T.jvp({of}, {self._tuple(chosen)}, {tangents}))")
        self.results = self.results * 2

    def _linearize(self):
        chosen = self._chosen()
        tangents = ", ".join(f"d({a.name})" for a in chosen)
        self._define(f"lambda {self._names()}: flat(T.linearize({self._of(chosen)}, {self._names(chosen)})[1]({tangents}))")

    def _vjp(self):
        chosen = self._chosen()
        pull = f"T.vjp({self._of(chosen)}, {self._names(chosen)})"
        if self.draw.random() < 0.5 or len(self.results) > 3:
            self._define(f"lambda {self._names()}: pulled(*{pull})")
            self.results = self.results + [Array("", a.shape, a.kind) for a in chosen]
            return
        cotangents = self._tuple(self._added("c", self.results))
        self._define(f"lambda {self._names()}: flat({pull}[1]({cotangents}))")
        self.results = [Array("", a.shape, a.kind) for a in chosen]

    def _jacobian(self, name):
        chosen = self._chosen()
        self._define(f"lambda {self._names()}: flat(T.{name}({self.f}, {self._positions(chosen)})({self._names()}))")
        self.results = [Array("", r.shape + a.shape, "real") for r in self.results for a in chosen]

    def _jacfwd(self):
        self._jacobian("jacfwd")

    def _jacrev(self):
        self._jacobian("jacrev")

    def _hessian(self):
        chosen = self._chosen()
        self._define(f"lambda {self._names()}: flat(T.hessian({self._sum()}, {self._positions(chosen)})({self._names()}))")
        self.results = [Array("", a.shape + b.shape, "real") for a in chosen for b in chosen]

    def _some(self):
        """Whether each argument is batched: at least one is, and one that can be differentiated for if there is one."""
        batched = [self.draw.random() < 0.7 for _ in self.arguments]
        if not any(batched):
            batched[self.draw.randrange(len(batched))] = True
        return batched

    def _vmap(self):
        size = self.draw.choice([2, 3])
        inputs = [self.draw.randint(0, len(a.shape)) if batched else None for a, batched in zip(self.arguments, self._some(), strict=True)]
        outputs = [self.draw.randint(0, len(r.shape)) for r in self.results]
        at = lambda a, n: Array(a.name, a.shape if n is None else (*a.shape[:n], size, *a.shape[n:]), a.kind)  # noqa: E731
        self._define(f"T.vmap({self.f}, {tuple(inputs)}, {tuple(outputs)})")
        self.arguments = [at(a, n) for a, n in zip(self.arguments, inputs, strict=True)]
        self.results = [at(r, n) for r, n in zip(self.results, outputs, strict=True)]

    def _map(self):
        batched = self._some()
        mapped = [a for a, chosen in zip(self.arguments, batched, strict=True) if chosen]
        self._define(f"lambda {self._names()}: flat(lax.map(lambda p: (lambda {self._names(mapped)}: {self.f}({self._names()}))(*p), "
                     f"{self._tuple(mapped)}))")
        grown = lambda a: Array(a.name, (2, *a.shape), a.kind)  # noqa: E731
        self.arguments = [grown(a) if chosen else a for a, chosen in zip(self.arguments, batched, strict=True)]
        self.results = [grown(r) for r in self.results]

    def _remat(self):
        self._define(f"T.remat({self.f})")

    def _cond(self):
        smooth = next(a for a in self.arguments if a.kind in FLOATING)
        self._define(f"lambda {self._names()}: lax.cond(lib.real({smooth.name}).sum() > 0.2, {self.f}, "
                     f"lambda *p: tuple(-q for q in {self.f}(*p)), {self._names()})")

    def __str__(self):
        return "\n".join([*self.lines, f"r = {self.f}({self._names()})"])

    def arrays(self, dtype):
        """Numbers for the arguments, from a seed of the text."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        return [self._array(a, rng, dtype) for a in self.arguments]

    @staticmethod
    def _array(a, rng, dtype):
        if a.kind == "int":
            return rng.integers(0, 3, a.shape)
        if a.kind == "bool":
            return rng.integers(0, 2, a.shape) > 0
        values = rng.normal(size=a.shape) * 0.7
        if a.kind == "complex":
            return np.asarray(values + 1j * rng.normal(size=a.shape) * 0.7, np.result_type(dtype, np.complex64))
        return np.asarray(values, dtype)


# How often each transform is chosen.
WEIGHTS = {"vmap": 8, "grad": 4, "value_and_grad": 2, "jvp": 5, "linearize": 1, "vjp": 3, "jacfwd": 2, "jacrev": 2, "hessian": 1, "map": 1, "cond": 1,
           "remat": 1}  # fmt: skip


def run(names, program, given):
    """The results of the program as tensors or arrays."""
    names = dict(names)
    names.update(zip((a.name for a in program.arguments), given, strict=True))
    exec(str(program), names)
    return names["leaves"](names["r"])


def of_jax(jaxs, program, arrays):
    function = lambda *given: run(jaxs.names, program, given)  # noqa: E731
    return [np.asarray(r) for r in jax.jit(function)(*map(jnp.asarray, arrays))]


def of_lazuli(ours, program, arrays, device):
    lz.set_default_device(device)
    given = [lz.from_numpy(x.copy()).to(device) for x in arrays]
    results = run(ours.names, program, given)
    lz.sync()
    return [np.asarray(r.detach().cpu().numpy()) if isinstance(r, lz.Tensor) else np.asarray(r) for r in results]


def difference(found, wanted):
    """How results differ, or nothing."""
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"result {i} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
        bound = TOLERANCE.get(b.dtype.name, 0)
        size = np.abs(b[np.isfinite(b)]).max(initial=0)
        with np.errstate(all="ignore"):
            wrong = ~((np.abs(a - b) <= bound * max(size, 1)) | (a == b) | (np.isnan(a) & np.isnan(b)))
        if wrong.any():
            at = tuple(int(n) for n in np.argwhere(wrong)[0])
            return f"result {i} at {at} is {a[at]} instead of {b[at]}; {wrong.sum()} of {wrong.size} differ"
    return ""


def shown(program, arrays):
    """The program with all that it needs, but for the definitions of HEAD."""
    used = set(re.findall(r"\w+", str(program)))
    definitions = [f"def {parts[0]}: return {parts[2]}" for parts in spelled() if parts[0].split("(")[0] in used]
    given = [f"{a.name} = lib.tensor({x.tolist()}, dtype=lib.{x.dtype})" for a, x in zip(program.arguments, arrays, strict=True)]
    return "\n".join("    " + line for line in [*definitions, *given, *str(program).split("\n")])


class Test:
    def __init__(self):
        self.jax, self.lazuli = Jax(), Lazuli()
        self.counts, self.failed = collections.Counter(), 0
        self.transforms = collections.Counter()

    def start(self, text, draw):
        """The function's program without transforms; None if it has no results."""
        program = Program(text, draw)
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in program.arrays(np.float64)]
        made = jax.eval_shape(lambda *given: run(self.jax.names, program, given), *shapes)
        kinds = lambda dtype: "complex" if jnp.issubdtype(dtype, jnp.complexfloating) else "real" if jnp.issubdtype(dtype, jnp.floating) else "int"  # noqa: E731
        program.results = [Array("", m.shape, kinds(m.dtype)) for m in made]
        return program

    def make(self, text, number):
        draw = random.Random(f"{text} {number} {SEED}")
        program = self.start(text, draw)
        for _ in range(draw.choice([1, 2, 2, 3, 3, 3])):
            possible = [kind for kind in WEIGHTS if program.can(kind)]
            if not possible:
                break
            program.apply(draw.choices(possible, [WEIGHTS[kind] for kind in possible])[0])
        return program

    def compare(self, text, number):
        program = self.make(text, number)
        self.counts["programs"] += 1
        self.transforms.update(program.chain)
        self.compare_on(["cpu:0"] + self._devices("float64"), program, "float64")
        if on := self._devices("float32"):
            self.compare_on(["cpu:0", *on], program, "float32")

    def _devices(self, dtype):
        return [device for device, (every, name) in DEVICES.items() if name == dtype and self.counts["programs"] % every == 0]

    def compare_on(self, devices, program, dtype):
        arrays = program.arrays(dtype)
        try:
            wanted = of_jax(self.jax, program, arrays)
        except Exception as error:  # noqa: BLE001
            self.counts["not in JAX"] += 1
            if "--show" in sys.argv:
                print(f"JAX: {type(error).__name__}: {str(error)[:300]}\n{shown(program, arrays)}", flush=True)
            return
        for device in devices:
            self.counts[f"on {device} in {dtype}"] += 1
            try:
                problem = difference(of_lazuli(self.lazuli, program, arrays, device), wanted)
            except Exception as error:  # noqa: BLE001
                at = traceback.extract_tb(error.__traceback__)[-1]
                problem = f"{type(error).__name__}: {str(error)[:600]} ({os.path.basename(at.filename)}:{at.lineno})"
            if problem:
                self.failed += 1
                print(f"{device}, {dtype}: {problem}\n{shown(program, arrays)}\n", flush=True)


def main():
    patterns = [a for a in sys.argv[2:] if not a.startswith("--")]
    texts = [line for family in FAMILIES.values() for line in family.strip().split("\n")]
    if patterns:
        texts = [t for t in texts if any(re.search(p, t) for p in patterns)]
    test = Test()
    for n, text in enumerate(texts):
        if CHAINS or patterns or n % EVERY == 0:
            for number in range(CHAINS or 1):
                test.compare(text, number)
    print(", ".join(f"{count} {kind}" for kind, count in test.transforms.items()))
    print(f"{len(texts)} functions: " + ", ".join(f"{count} {what}" for what, count in test.counts.items()) + f"; {test.failed} differ")
    sys.exit(test.failed > 0)


if __name__ == "__main__":
    main()
