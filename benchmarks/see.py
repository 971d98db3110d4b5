#!/usr/bin/env python3
"""What looking inside costs: sites, scopes and whole stacks on recording, saved text, explained misses, profiles.

    PYTHONPATH=build/release/python benchmarks/see.py [PART ...]

Each pair is measured in turns and the fastest of each is reported, since others use the machine. Goals: a Python site 100 ns, a whole
stack 1 us, the text of 2,600 nodes 5 ms, a miss explained among 2,048 programs 20 ms, a profile 2 % of a transformer's step.
C++: record_bench, BM_Site and BM_Stack.
"""

import os
import statistics
import subprocess
import sys
import time
import timeit

os.environ.setdefault("LAZULI_MAX_GRAPH_NODES", "100000")  # before lazuli reads it

import lazuli as lz  # noqa: E402
from lazuli import nn  # noqa: E402

TURNS = 15


def fastest_of_each(*measured, turns=TURNS):
    """The least that each gives, of turns that alternate."""
    least = [float("inf")] * len(measured)
    for _ in range(turns):
        for i, measure in enumerate(measured):
            least[i] = min(least[i], measure())
    return least


def say(what, value, unit, goal):
    print(f"{what:58} {value:8.1f} {unit:3} (goal {goal})", flush=True)


def recording():
    x, y = lz.ones(8, 8), lz.ones(8, 8)
    lz.sync(wait=True)
    number = 5000
    timed = timeit.Timer("x + y", globals={"x": x, "y": y})

    def at_depth(depth, stacks):
        def measure():
            lz.debug.set_ir_debug(stacks)
            return below(depth) / number * 1e9
        return measure

    def below(depth):
        if depth > 0:
            return below(depth - 1)
        return timed.timeit(number)

    def scoped():
        lz.debug.set_ir_debug(False)
        with lz.NameScope("a"), lz.NameScope("b"):
            return timed.timeit(number) / number * 1e9

    plain, named, shallow, deep = fastest_of_each(at_depth(10, False), scoped, at_depth(0, True), at_depth(20, True))
    lz.debug.set_ir_debug(False)
    print(f"x + y: {plain:.0f} ns, in a scope {named:.0f} ns, with stacks of some 6 frames {shallow:.0f} ns, of 26 {deep:.0f} ns")
    say("a scope, on recording", named - plain, "ns", "no more")
    say("a whole stack of some 6 frames", shallow - plain, "ns", "1000 ns")
    say("a whole stack of some 26 frames", deep - plain, "ns", "1000 ns")


def text():
    x = lz.ones(8, 8)
    lz.sync(wait=True)
    for _ in range(1299):
        x = (x + 1.5).relu()
    nodes = lz.debug.graph_text([x]).count("\n") - 2
    times = fastest_of_each(*({format: lambda call=call: timed(lambda: call([x])) for format, call in
                               {"text": lz.debug.graph_text, "hlo": lz.debug.graph_hlo}.items()}).values())
    say(f"text of {nodes} nodes", times[0] * 1e3, "ms", "5 ms")
    print(f"HLO of them: {times[1] * 1e3:.1f} ms")


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


MISSES = """
import time
import lazuli as lz
x = lz.ones(8, 8)
lz.sync(wait=True)
for i in range(2048 + 32):
    y = x
    for j in range(40):
        y = (y + x).relu() if i >> (j % 12) & 1 else (y * x).tanh()
    y = y.sum() if i & 1 else y.mean()
    start = time.perf_counter()
    lz.sync(wait=True)
    print(time.perf_counter() - start)
    del y
"""


def misses():
    """A miss with few programs in the cache and with 2,048, which it is compared with."""
    environment = {**os.environ, "PJRT_DEVICE": "interpreter", "LAZULI_RECOMPILE_WARNING": "0"}
    output = subprocess.run([sys.executable, "-c", MISSES], capture_output=True, text=True, check=True, env=environment).stdout
    times = [float(line) for line in output.split()]
    first, last = statistics.median(times[8:40]), statistics.median(times[-32:])
    print(f"a miss of 82 nodes: {first * 1e3:.2f} ms among 8 to 40 programs, {last * 1e3:.2f} ms among 2,048")
    say("a whole miss among 2,048 programs, explained", last * 1e3, "ms", "20 ms for its explanation")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(self.up(self.norm2(x)).gelu())


def profiles():
    model = nn.Sequential(*[Block(128, 4) for _ in range(2)])
    optimizer = lz.optim.AdamW(model.parameters(), lr=1e-3)
    x = lz.randn(8, 64, 128)

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        lz.sync(wait=True)

    for _ in range(5):
        step()

    def off():
        return timed(step)

    def on():
        lz.profiler.start()
        step()
        took = timed(step)
        lz.profiler.stop()
        return took

    pairs = [(off(), on()) for _ in range(60)]
    plain, profiled = min(p[0] for p in pairs), min(p[1] for p in pairs)
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"a transformer's step: {plain * 1e3:.2f} ms, profiled {profiled * 1e3:.2f} ms; the median ratio of pairs is {ratio:.3f}")
    say("a profile of a transformer's step", 100 * (profiled / plain - 1), "%", "2 %")


PARTS = {"recording": recording, "text": text, "misses": misses, "profiles": profiles}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
