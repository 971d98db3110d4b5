#!/usr/bin/env python3
"""Random programs of views and writes under autograd give torch's values, gradients, strides and errors, with syncs anywhere.

    torch_views_test.py FOLDER [PROGRAMS [SEED]]    FOLDER holds the package lazuli, as build/PRESET/python does
"""

import random
import sys

import numpy as np
import torch
from cases import report

sys.path.insert(0, sys.argv[1])
import lazuli  # noqa: E402

PROGRAMS = int(sys.argv[2]) if len(sys.argv) > 2 else 300
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 0
LEAVES = {"a": np.linspace(0.5, 2.0, 12).reshape(3, 4), "b": np.linspace(-1.0, 1.0, 8).reshape(2, 2, 2)}

# What torch refuses where there is nothing wrong, and a part of programs that do it: a view that was made before its base had a
# history is written to, and what backward needs was changed that only elements which were overwritten were computed from.
REFUSED = [("a leaf Variable that requires grad", "zeros"), ("modified by an inplace operation", "copy_"),
           ("modified by an inplace operation", "[...] ="), ("modified by an inplace operation", "squeeze_("), ("function that returns multiple views", "")]


class Writer:
    """Writes a program, statement by statement, while torch runs it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {"t": torch, **{name: torch.tensor(v, requires_grad=True) for name, v in LEAVES.items()}}
        self.statements, self.error = [], None
        self.tensors = []
        self.make("a * 1")
        self.make("b * 2")
        self.make("t.zeros(3, 4, dtype=t.float64)")
        while len(self.statements) < 16 and self.error is None:
            name = self.random.choice(self.tensors)
            x = self.names[name]
            kind = self.random.random()
            (self.view if kind < 0.45 else self.write if kind < 0.9 else self.change_dims)(name, tuple(x.shape))

    def run(self, statement):
        self.statements.append(statement)
        try:
            exec(statement, self.names)
        except (RuntimeError, IndexError) as error:
            self.error = error

    def make(self, expression):
        name = f"x{len(self.tensors)}"
        self.run(f"{name} = {expression}")
        if self.error is None:
            self.tensors.append(name)

    def view(self, x, shape):
        r, rank = self.random, len(shape)
        d = r.randrange(rank) if rank else 0
        choices = [f"{x}.reshape(-1)", f"{x}.unsqueeze({r.randint(0, rank)})", f"{x}.squeeze()", f"{x}[None]", f"{x}.detach()",
                   f"{x}.expand(2, {', '.join(['-1'] * rank)})" if rank else f"{x}.expand(2)", f"({x} * {x}).contiguous()",
                   f"{x}.exp().contiguous()"]
        if rank and 0 not in shape:
            n = r.randint(1, shape[d])
            choices += [f"{x}.select({d}, {r.randrange(shape[d])})", f"{x}.narrow({d}, {r.randint(0, shape[d] - n)}, {n})",
                        f"{x}[::2]", f"{x}[-1]", f"{x}[..., 1:]", f"{x}.transpose({d}, {r.randrange(rank)})",
                        f"{x}.unbind({d})[0]", f"{x}.split(2, {d})[-1]", f"{x}.chunk(2, {d})[0]", f"{x}.flatten()",
                        f"{x}.permute({', '.join(map(str, r.sample(range(rank), rank)))})"]
        self.make(r.choice(choices))

    def change_dims(self, x, shape):
        """In place: x becomes a view of what it was."""
        r, rank = self.random, len(shape)
        choices = [f"{x}.unsqueeze_({r.randint(0, rank)})", f"{x}.squeeze_()"]
        if rank:
            d, e = r.randrange(rank), r.randrange(rank)
            choices += [f"{x}.transpose_({d}, {e})", f"{x}.swapdims_({d}, {e})", f"{x}.squeeze_({d})"]
        if rank <= 2:
            choices.append(f"{x}.t_()")
        self.run(r.choice(choices))

    def write(self, x, shape):
        r = self.random
        choices = [f"{x}.mul_(1.5)", f"{x}.add_(1)", f"{x}.sin_()", f"{x}.zero_()", f"{x}.neg_()", f"{x} /= 2",
                   f"with t.no_grad(): {x}.mul_(0.5)", f"{x}.fill_(0.25)"]
        same = [y for y in self.tensors if tuple(self.names[y].shape) == shape and y != x]
        if same:
            y = r.choice(same)
            choices += [f"{x}.mul_({y}.exp())", f"{x}.copy_({y} * 2)", f"{x} += {y} * 0.5", f"{x}[...] = {y} * 3"] * 2
        if shape:
            choices += [f"{x}[0] = 3.0", f"{x}[:1] += {x}[-1:] * 0.5", f"{x}[-1] *= 2"]
            if 0 not in self.names[x].stride():  # there torch warns
                choices += [f"{x}[t.tensor([0, 0])] = 1.0", f"{x}[{x} > 1] = 0.5"]
        self.run(r.choice(choices))


def outcome(t, program, between=lambda: None):
    names = {"t": t, **{name: t.tensor(v, requires_grad=True) for name, v in LEAVES.items()}}
    try:
        for statement in program.statements:
            exec(statement, names)
            between()
        loss = 0
        for i, x in enumerate(program.tensors):
            loss = loss + (names[x] * (i + 1)).sum()
        loss.backward()
    except (RuntimeError, IndexError) as error:
        return type(error).__mro__, str(error)
    values = [names[x].detach().numpy() for x in program.tensors]
    facts = [(x, names[x].requires_grad, names[x].stride(), names[x].storage_offset()) for x in program.tensors]
    gradients = [names[x].grad for x in LEAVES]
    return facts, [None if g is None else g.numpy() for g in gradients], values


def check(seed):
    program = Writer(seed)
    rng = random.Random(seed)

    def sync():
        if rng.random() < 0.3:
            lazuli.mark_step()

    want, got = outcome(torch, program), outcome(lazuli, program, sync)
    try:
        if isinstance(want[1], str):
            if not isinstance(got[1], str) and any(text in want[1] and part in " ".join(program.statements) for text, part in REFUSED):
                return
            assert isinstance(got[1], str) and RuntimeError in got[0], f"torch raises {want[1]}"
            return
        if isinstance(got[1], str) and "is not contiguous itself" in got[1]:  # as docs/differences.md says
            return
        assert not isinstance(got[1], str), f"torch does not raise {got[1]}"
        assert got[0] == want[0], f"{got[0]}, not {want[0]}"
        for g, w in zip(got[1] + got[2], want[1] + want[2], strict=True):
            assert (g is None) == (w is None)
            if w is not None:
                np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)
    except AssertionError as error:
        raise AssertionError("\n  ".join([*program.statements, str(error)])) from None


if __name__ == "__main__":
    sys.exit(report({f"program {seed}": lambda seed=seed: check(seed) for seed in range(SEED, SEED + PROGRAMS)}, "programs"))
