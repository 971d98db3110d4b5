#!/usr/bin/env python3
"""Random functions with views, overlapping arguments and writes, compiled with torch.compile(backend="lazuli"), do what they do in eager.

    torch_compile_views_test.py FOLDER [--seed=N] [--backend=NAME]      FOLDER holds the package lazuli

A function takes tensors and writes to some of what it makes of them. It is compiled once and called with several layouts of its
arguments: each its own memory, parts of one memory that overlap or not, transposed, in strides, one object twice. Results, arguments,
all memory behind them, which results share memory with what, strides and gradients must be eager's. LAZULI_FUZZ_VIEWS says how many
functions, 60 by default; what fails is printed as a program. --backend=aot_eager shows what is torch's own.
"""

import argparse
import itertools
import logging
import os
import random
import sys
import traceback
import warnings

import torch

ROWS, COLUMNS, MEMORY = 3, 4, 40


# --- the arguments of a call: how each lies in which memory

LAYOUTS = {
    "row-major": lambda m, at: m.as_strided((ROWS, COLUMNS), (COLUMNS, 1), at),
    "transposed": lambda m, at: m.as_strided((ROWS, COLUMNS), (1, ROWS), at),
    "in strides": lambda m, at: m.as_strided((ROWS, COLUMNS), (2 * COLUMNS, 2), at),
    "rows apart": lambda m, at: m.as_strided((ROWS, COLUMNS), (COLUMNS + 2, 1), at),
}


def arrangement(r, count):
    """For each argument (memory, layout, place in it), or the number of an argument that it is, too."""
    made = []
    for i in range(count):
        if i > 0 and r.random() < 0.15:
            made.append(r.randrange(i))
        else:
            made.append((i if r.random() < 0.5 else 0, r.choice(list(LAYOUTS)), r.choice([0, 0, 4, 12, 16])))
    return made


def arguments(arranged, differentiable):
    """(what memory has as its first elements, memory, arguments)."""
    leaves, memory, made = [], {}, []
    for a in arranged:
        if isinstance(a, int):
            made.append(made[a])
            continue
        number, layout, at = a
        if number not in memory:
            leaves.append((torch.linspace(-1, 1, MEMORY, dtype=torch.float64) + number).requires_grad_(differentiable))
            memory[number] = leaves[-1].clone()
        made.append(LAYOUTS[layout](memory[number], at))
    return leaves, memory, made


# --- functions

class Writer:
    """Writes a function, statement by statement, while torch runs it."""

    def __init__(self, seed):
        self.random = r = random.Random(seed)
        self.count = r.randint(1, 3)
        self.differentiable = r.random() < 0.3
        self.arranged = [arrangement(r, self.count) for _ in range(3)]
        self.parameters = [f"x{i}" for i in range(self.count)]
        self.statements, self.tensors = [], list(self.parameters)
        given = arguments([(i, "row-major", 0) for i in range(self.count)], False)[2]
        self.names = {"torch": torch} | dict(zip(self.parameters, given, strict=True))
        while len(self.statements) < 8:
            name = r.choice(self.tensors)
            shape = tuple(self.names[name].shape)
            kind = r.random()
            self.attempt((self.view if kind < 0.45 else self.write if kind < 0.85 else self.change)(name, shape))
        results = sorted(set(r.sample(self.tensors, min(len(self.tensors), 3))))
        lines = [f"def function({', '.join(self.parameters)}):", *self.statements, f"return {', '.join(results)},"]
        self.text = "\n    ".join(lines) + "\n"

    def attempt(self, statement):
        """Takes what torch takes."""
        before = {k: v.clone() for k, v in self.names.items() if isinstance(v, torch.Tensor)}
        try:
            exec(statement, self.names)
        except (RuntimeError, IndexError):
            for k, v in before.items():
                self.names.setdefault(k, v)
            return
        self.statements.append(statement)
        made = statement.split(" = ")[0]
        if made.isidentifier() and made not in self.tensors and isinstance(self.names.get(made), torch.Tensor):
            self.tensors.append(made)

    def view(self, x, shape):
        r, rank = self.random, len(shape)
        d = r.randrange(rank) if rank else 0
        choices = [f"{x}.view(-1)", f"{x}.reshape(-1)", f"{x}.unsqueeze({r.randint(0, rank)})", f"{x}[:]", f"{x}.detach()", f"{x} * 2",
                   f"{x}.clone()", f"{x}.expand(2, {', '.join(['-1'] * rank)})" if rank else f"{x}.expand(2)"]
        if rank and 0 not in shape:
            size = r.randint(1, shape[d])
            choices += [f"{x}.select({d}, {r.randrange(shape[d])})", f"{x}.narrow({d}, {r.randint(0, shape[d] - size)}, {size})", f"{x}[::2]",
                        f"{x}[..., 1:]", f"{x}.transpose({d}, {r.randrange(rank)})", f"{x}.split(2, {d})[-1]", f"{x}.unbind({d})[0]",
                        f"{x}.permute({', '.join(map(str, r.sample(range(rank), rank)))})", f"{x}.diagonal()" if rank > 1 else f"{x}[None]",
                        f"{x}.unfold({d}, {r.randint(1, min(3, shape[d]))}, {r.randint(1, 4)})",
                        f"{x}.view_as({x})", f"{x}.view(torch.int64).view(torch.float64)"]
            if x in self.parameters:  # of others the order in memory is not promised
                choices += [f"{x}.as_strided((2, 2), ({r.randint(1, 3)}, {r.randint(1, 3)}), {r.randint(0, 2)})",
                            f"torch.as_strided_copy({x}, (2, 2), (2, 1), {r.randint(0, 2)})"]
        return f"y{len(self.tensors)} = {r.choice(choices)}"

    def write(self, x, shape):
        r = self.random
        if torch._debug_has_internal_overlap(self.names[x]) != 0 or "unfold" in " ".join(self.statements):
            return f"{x}.fill_({r.randint(0, 3)})"  # of which it does not matter how often an element gets it
        choices = [f"{x}.mul_(1.5)", f"{x}.add_(1)", f"{x}.sin_()", f"{x}.zero_()", f"{x} += 0.5", f"{x}.fill_(0.25)", f"{x}.copy_({x} * 3)"]
        same = [y for y in self.tensors if tuple(self.names[y].shape) == shape and y != x]
        if same:
            y = r.choice(same)
            choices += [f"{x}.mul_({y})", f"{x}.copy_({y})", f"{x} += {y}", f"{x}[...] = {y} * 3", f"torch.add({x}, {y}, out={x})"] * 2
        if shape and 0 not in shape:
            choices += [f"{x}[0] = 3.0", f"{x}[:1] += {x}[-1:] * 0.5", f"{x}[-1] *= 2", f"{x}[torch.tensor([0])] = 1.0", f"{x}[{x} > 0] = 0.5",
                        f"{x}.index_add_(0, torch.tensor([0]), {x}[-1:] * 2)", f"{x}.masked_fill_({x} > 1, 0.5)"]
        return r.choice(choices)

    def change(self, x, shape):
        """In place, of what x is: its dims or its memory."""
        r, rank = self.random, len(shape)
        choices = [f"{x}.unsqueeze_({r.randint(0, rank)})", f"{x}.squeeze_()"]
        if rank:
            choices += [f"{x}.transpose_({r.randrange(rank)}, {r.randrange(rank)})", f"{x}.t_()"]
        if not self.differentiable:
            same = [y for y in self.tensors if tuple(self.names[y].shape) == shape and y != x]
            choices += [f"{x}.data = torch.ones({list(shape)}, dtype=torch.float64)"] + [f"{x}.data = {y}" for y in same[:1]]
        return r.choice(choices)


def storage(tensor):
    return tensor.untyped_storage()._cdata


def outcome(function, arranged, differentiable):
    """What a call does, as lists: values, strides, and which tensors share memory."""
    leaves, memory, given = arguments(arranged, differentiable)
    before = [storage(t) for t in memory.values()]
    gradients = []
    try:
        results = function(*given)
        total = sum((t * (i + 1)).sum() for i, t in enumerate(results) if t.requires_grad)
        if isinstance(total, torch.Tensor):
            gradients = [torch.zeros(MEMORY).tolist() if g is None else g.tolist() for g in torch.autograd.grad(total, leaves, allow_unused=True)]
    except Exception as error:
        return f"{type(error).__name__} in {traceback.extract_tb(error.__traceback__)[-1].filename.split('site-packages/')[-1]}: {str(error)[:400]}"
    tensors = [*memory.values(), *given, *results]
    held = {storage(t) for t in memory.values()}  # what is new lies as it likes
    shapes = [[(n, s if n > 1 and storage(t) in held else 1) for n, s in zip(t.shape, t.stride(), strict=True)] for t in tensors]
    return {"values": [t.detach().tolist() for t in tensors], "shapes": shapes, "gradients": gradients,
            "shared": [storage(a) == storage(b) for a, b in itertools.combinations(tensors, 2)],
            "memory": [storage(t) for t in memory.values()] == before}


def equal(a, b):
    """Within rounding; lists of numbers, and what else there is."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(1, abs(b)) or a != a and b != b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return all(equal(a[k], b[k]) for k in a)
    return a == b


def difference(program, backend):
    """What a call does otherwise than in eager, as text; None if nothing."""
    names = {"torch": torch}
    exec(program.text, names)
    torch._dynamo.reset()
    compiled = torch.compile(names["function"], backend=backend)
    for i, arranged in enumerate(program.arranged):
        theirs = outcome(names["function"], arranged, program.differentiable)
        ours = outcome(compiled, arranged, program.differentiable)
        if isinstance(theirs, str) or equal(ours, theirs):  # what torch refuses is not looked into
            continue
        lines = [f"call {i} with {arranged}{', with gradients' if program.differentiable else ''}:", program.text]
        if isinstance(ours, str):
            return "\n".join([*lines, f"  {ours}"])
        return "\n".join([*lines, *(f"  {k}: {ours[k]}\n  eager: {theirs[k]}" for k in theirs if not equal(ours[k], theirs[k]))])
    return None


def guarded_aot_eager(gm, examples):
    """torch's backend aot_eager for the graphs that lazuli takes; the others are run as lazuli has them run."""
    from torch._dynamo.backends.debugging import aot_eager

    from lazuli.torch._aliases import guarded
    return guarded(gm, examples, aot_eager)


def is_torchs(program, found):
    """Whether dynamo alone makes something else of a function, too, or cannot make the guards of its graphs, whoever compiles these."""
    if difference(program, "eager") is not None:
        return True
    return "in torch/fx/experimental/symbolic_shapes.py" in found and difference(program, guarded_aot_eager) == found


def check(seed, backend):
    """Whether a function does what it does in eager, or what torch itself does wrong; prints it if not."""
    program = Writer(seed)
    found = difference(program, backend)
    if found is None or (backend == "lazuli" and is_torchs(program, found)):
        return True
    print(f"seed {seed}, {found}")
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--backend", default="lazuli")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()  # of what torch cannot do
    if options.backend == "lazuli":
        sys.path.insert(0, options.folder)
        import lazuli.torch  # noqa: F401
    count = int(os.environ.get("LAZULI_FUZZ_VIEWS", 60))
    first = int(os.environ.get("LAZULI_FUZZ_SEED", 0))
    seeds = [options.seed] if options.seed is not None else range(first, first + count)
    failed = [seed for seed in seeds if not check(seed, options.backend)]
    print(f"{len(seeds) - len(failed)} of {len(seeds)} functions do what eager does{f', not {failed}' if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
