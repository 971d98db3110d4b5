#!/usr/bin/env python3
"""Training loops that never call mark_step(), next to the same loops that do, a process each.

    loop_without_sync.py [--steps N]      run by `./lz bench loop_without_sync`

A small MLP that reads nothing until the end, a small GPT that reads its loss every 20 steps, and a loop without an
optimiser. Goal: at most 1.3 times the time, and the same bits.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import time


def mlp(lz, steps, end_of_step):
    net = lz.nn.Sequential(lz.nn.Linear(16, 64), lz.nn.ReLU(), lz.nn.Linear(64, 10))
    opt = lz.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    x, y = lz.randn(32, 16), lz.zeros(32, dtype=lz.int64)
    for _ in range(steps):
        opt.zero_grad()
        lz.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        end_of_step()
    return [p.numpy() for p in net.parameters()]


def small_gpt(lz, width=64, heads=4, layers=3, vocabulary=65, length=32):
    nn, each = lz.nn, width // heads

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm([width]), nn.LayerNorm([width])
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, mask):
            b, t, _ = x.shape
            qkv = self.qkv(self.ln1(x)).reshape(b, t, 3, heads, each).permute(2, 0, 3, 1, 4)
            q, k, v = (qkv.select(0, i) for i in range(3))
            weights = lz.softmax(q.matmul(k.transpose(2, 3)) * each**-0.5 + mask, -1)
            x = x + self.out(weights.matmul(v).permute(0, 2, 1, 3).reshape(b, t, width))
            return x + self.down(lz.gelu(self.up(self.ln2(x))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm([width]), nn.Linear(width, vocabulary)

        def forward(self, x, place, mask):
            h = self.tokens(x) + self.places(place)
            for block in self.blocks:
                h = block(h, mask)
            return self.head(self.norm(h))

    return Gpt()


def gpt(lz, steps, end_of_step):
    net, batch, length = small_gpt(lz), 8, 32
    opt = lz.optim.AdamW(net.parameters(), lr=1e-3)
    text = lz.randint(0, 65, [batch, length + 1])
    x, y = text[:, :-1], text[:, 1:].reshape(batch * length)
    place = lz.arange(length)
    mask = lz.where(place.unsqueeze(1) < place, -1e9, 0.0)
    losses = []
    for step in range(steps):
        opt.zero_grad()
        loss = lz.nn.functional.cross_entropy(net(x, place, mask).reshape(batch * length, 65), y)
        loss.backward()
        opt.step()
        end_of_step()
        if step % 20 == 19:
            losses.append(loss.item())
    return losses + [p.numpy() for p in net.parameters()]


def power(lz, steps, end_of_step):
    """Power iteration: no optimiser, nothing read."""
    a, x = lz.randn(32, 32), lz.ones(32, 1)
    for _ in range(steps):
        x = a.matmul(x)
        x = x / x.abs().amax()
        x = lz.tanh(x) * 0.5 + x * 0.5
        end_of_step()
    return [x.numpy()]


LOOPS = {"mlp": (mlp, 3000), "gpt": (gpt, 200), "power": (power, 5000)}


def one(loop, steps, synced):
    import lazuli as lz

    lz.manual_seed(0)
    lz.ones(1).numpy()
    start = time.perf_counter()
    values = LOOPS[loop][0](lz, steps, lz.mark_step if synced else lambda: None)
    seconds = time.perf_counter() - start
    digest = hashlib.sha256(b"".join(v.tobytes() if hasattr(v, "tobytes") else repr(v).encode() for v in values))
    print(seconds, lz.metrics.counter("UncachedCompile"), lz.metrics.counter("CachedCompile"), digest.hexdigest())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loops", nargs="*", help=", ".join(LOOPS))
    parser.add_argument("--steps", type=int, help="the same for all")
    parser.add_argument("--one", choices=("with", "without"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(args.loops[0], args.steps, args.one == "with")
        return
    print(f"  {'loop':6} {'steps':>6} {'with':>9} {'without':>9} {'ratio':>6} {'compiles':>9} {'runs':>6}  bits")
    for loop in args.loops or LOOPS:
        steps = args.steps or LOOPS[loop][1]
        results = {}
        for kind in ("with", "without"):
            command = [sys.executable, __file__, "--one", kind, "--steps", str(steps), loop]
            out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ).stdout.split()
            results[kind] = float(out[0]), int(out[1]), int(out[2]), out[3]
        with_, without = results["with"], results["without"]
        same = "same" if with_[3] == without[3] else "different"
        print(f"  {loop:6} {steps:6} {with_[0]:7.2f} s {without[0]:7.2f} s {without[0] / with_[0]:6.2f} "
              f"{with_[1]:4}/{without[1]:4} {without[1] + without[2]:6}  {same}", flush=True)


if __name__ == "__main__":
    main()
