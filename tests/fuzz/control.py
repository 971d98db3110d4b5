"""Random programs with loops and branches in each other, and three ways to run one.

The state of a program is two vectors of 3 floats and an integer. A statement replaces one of them; a body is a list of
statements. Device runs loops and branches as operations of lazuli.control, Host as those of Python, on the same tensors, and
Numpy as those of Python on arrays.
"""

import random

import numpy as np

import lazuli as lz
from lazuli import control

ROWS = 4  # of what scans and maps walk over

# Of vectors: each keeps numbers below 2, so that what is computed a thousand times stays finite.
OPS = {
    "mean": lambda t, a, b: (a + b) * 0.5,
    "product": lambda t, a, b: a * b * 0.5,
    "difference": lambda t, a, b: (a - b) * 0.5,
    "larger": lambda t, a, b: t.maximum(a, b),
    "sine": lambda t, a, b: t.sin(a * 2 + b),
    "chosen": lambda t, a, b: t.where(a > b, a * a * 0.5, b),
    "turned": lambda t, a, b: t.flip(a, (0,)) - b * 0.25,
    "sum": lambda t, a, b: t.tanh(a.sum() + b),
    "running": lambda t, a, b: t.tanh(t.cumsum(a, 0) - b),
    "weighted": lambda t, a, b: t.tanh(t.matmul(t.w, a) + b),
}


class Program:
    """A program of a seed; str() is its text."""

    def __init__(self, seed, depth=3, can_while=True):
        self._draw = random.Random(seed)
        self._can_while = can_while
        self.body = self._body(depth)
        rng = np.random.default_rng(seed)
        self.state = [rng.uniform(-1, 1, 3).astype("float32") for _ in range(2)] + [np.int64(rng.integers(0, 5))]
        self.w = rng.uniform(-1, 1, (3, 3)).astype("float32")
        self.xs = rng.uniform(-1, 1, (ROWS, 3)).astype("float32")

    def _body(self, depth):
        return [self._statement(depth) for _ in range(self._draw.randint(1, 3))]

    def _statement(self, depth):
        draw = self._draw
        if depth == 0 or draw.random() < 0.3:
            if draw.random() < 0.15:
                return ("count", draw.randint(1, 5))
            return ("op", draw.randint(0, 1), draw.choice(list(OPS)), draw.randint(0, 1), draw.randint(0, 1))
        kinds = ["for", "scan", "cond", "switch", "map", "prefixes"] + ["while"] * self._can_while
        kind = draw.choice(kinds)
        if kind == "for":
            return (kind, draw.choice([0, 1, 2, 5]), self._body(depth - 1))
        if kind == "scan":
            return (kind, draw.random() < 0.5, draw.randint(1, ROWS), draw.randint(0, 1), self._body(depth - 1))
        if kind == "while":
            return (kind, draw.randint(0, 6), draw.choice([-0.5, 0.5, 9]), self._body(depth - 1))
        if kind == "switch":
            return (kind, *(self._body(depth - 1) for _ in range(draw.randint(1, 3))))
        if kind == "cond":
            return (kind, self._body(depth - 1), self._body(depth - 1))
        if kind == "map":
            return (kind, draw.randint(0, 1), self._body(depth - 1))
        return (kind, draw.randint(0, 1), draw.choice(["mean of both", "larger"]), draw.random() < 0.5)

    def __str__(self):
        lines = [f"state = {[x.tolist() for x in self.state]}", f"w = {self.w.tolist()}", f"xs = {self.xs.tolist()}"]
        return "\n".join(lines + list(_lines(self.body, 0)))


def _lines(body, indent):
    for kind, *rest in body:
        plain = [repr(x) for x in rest if not isinstance(x, list)]
        yield "    " * indent + " ".join([kind, *plain])
        for inner in rest:
            if isinstance(inner, list):
                yield from _lines(inner, indent + 1)
                yield "    " * indent + "end"


class Run:
    """What all ways have in common: the order of statements and what each computes around its bodies."""

    def __init__(self, w, xs):
        self.w, self.xs = w, xs

    def body(self, statements, state):
        for kind, *rest in statements:
            state = getattr(self, "run_" + kind)(list(state), *rest)
        return state

    def run_count(self, state, by):
        return [*state[:2], (state[2] * 3 + by) % 7]

    def run_op(self, state, target, name, a, b):
        state[target] = OPS[name](self, state[a], state[b])
        return state

    def run_for(self, state, steps, body):
        def step(i, state):
            state = self.body(body, state)
            return [state[0] + i * 0.01, *state[1:]]
        return self.fori(steps, step, state)

    def run_scan(self, state, reverse, every, target, body):
        def step(state, x):
            state[0] = (state[0] + x) * 0.5
            state = self.body(body, state)
            return state, state[1] - x
        state, results = self.scan(step, state, reverse, every)
        state[target] = (state[target] + results.sum(0)) * 0.2
        return state

    def run_while(self, state, steps, bound, body):
        def goes_on(loop):
            return (loop[0] < steps) & (loop[1][0].sum() < bound)
        return self.loop(goes_on, lambda loop: (loop[0] + 1, self.body(body, loop[1])), (0, state))[1]

    def run_cond(self, state, then, other):
        return self.branch(state[0].sum() > 0, then, other, state)

    def run_switch(self, state, *bodies):
        return self.switch(state[2], bodies, state)

    def run_map(self, state, target, body):
        def each(x):
            inner = self.body(body, [x, *state[1:]])
            return inner[0] + inner[1]
        state[target] = (state[target] + self.map(each).sum(0)) * 0.2
        return state

    def run_prefixes(self, state, target, name, reverse):
        function = {"larger": OPS["larger"], "mean of both": lambda t, a, b: a + b}[name]
        found = self.prefixes(lambda a, b: function(self, a, b), reverse)
        state[target] = self.tanh(found.sum(0) * 0.1 + state[target])
        return state


class Tensors(Run):
    """On lazuli's tensors."""

    def __getattr__(self, name):
        return getattr(lz, name)


class Device(Tensors):
    """Loops and branches are operations."""

    def fori(self, steps, step, state):
        return control.fori_loop(0, steps, step, state)

    def scan(self, step, state, reverse, every):
        return control.scan(step, state, self.xs, reverse=reverse, every=every)

    def loop(self, goes_on, step, loop):
        return control.while_loop(goes_on, step, loop)

    def branch(self, pred, then, other, state):
        return control.cond(pred, lambda s: self.body(then, s), lambda s: self.body(other, s), state)

    def switch(self, index, bodies, state):
        return control.switch(index, [lambda s, body=body: self.body(body, s) for body in bodies], state)

    def map(self, each):
        return control.map(each, self.xs)

    def prefixes(self, function, reverse):
        return control.associative_scan(function, self.xs, reverse=reverse)


class InPython:
    """Loops and branches of Python."""

    def fori(self, steps, step, state):
        for i in range(steps):
            state = step(i, state)
        return state

    def scan(self, step, state, reverse, every):
        results = [None] * ROWS
        for i in reversed(range(ROWS)) if reverse else range(ROWS):
            state, results[i] = step(list(state), self.xs[i])
        return state, self.stack(results)

    def loop(self, goes_on, step, loop):
        while goes_on(loop):
            loop = step(loop)
        return loop

    def branch(self, pred, then, other, state):
        return self.body(then if pred else other, state)

    def switch(self, index, bodies, state):
        return self.body(bodies[min(max(int(index), 0), len(bodies) - 1)], state)

    def map(self, each):
        return self.stack([each(self.xs[i]) for i in range(ROWS)])

    def prefixes(self, function, reverse):
        order = list(reversed(range(ROWS))) if reverse else list(range(ROWS))
        found = {order[0]: self.xs[order[0]]}
        for before, i in zip(order, order[1:], strict=False):
            found[i] = function(found[before], self.xs[i])
        return self.stack([found[i] for i in range(ROWS)])


class Host(InPython, Tensors):
    """On lazuli's tensors."""


class Numpy(InPython, Run):
    """On arrays. `closest` is how close a number came to where a branch or a loop decides."""

    def __init__(self, w, xs):
        super().__init__(w, xs)
        self.closest = np.inf

    def __getattr__(self, name):
        return getattr(np, name)

    def loop(self, goes_on, step, loop):
        def close(loop):
            self.closest = min(self.closest, *(abs(loop[1][0].sum() - bound) for bound in (-0.5, 0.5, 9)))
            return goes_on(loop)
        return super().loop(close, step, loop)

    def branch(self, pred, then, other, state):
        self.closest = min(self.closest, abs(state[0].sum()))
        return super().branch(pred, then, other, state)
