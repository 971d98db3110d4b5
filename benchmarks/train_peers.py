#!/usr/bin/env python3
"""A training step of an MLP and of LeNet, batch 64, 2 threads: lazuli, PyTorch's CPU eager mode and JAX in turns.

    train_peers.py PROGRAM [--busy] [MODEL...]      PROGRAM is build/release/benchmarks/train_steps; run by `./lz bench --peers`

Each peer is a process of its own that trains on one random batch with SGD and momentum. They take turns of some steps, so that
what else the machine does meets all of them alike; the median of the turns is reported, and what lazuli takes of each other
peer's time. JAX's step is jitted and donates the parameters; its convolutions are NHWC, which XLA likes best on a CPU.
--busy keeps one more process spinning all the time.
"""

import argparse
import importlib.metadata
import math
import os
import statistics
import subprocess
import sys
import time

THREADS, BATCH, ROUNDS, SECONDS = 2, 64, 15, 0.3
LR, MOMENTUM = 0.02, 0.9


def torch_training(model):
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    nets = {
        "lenet": lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                       nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)),
        "mlp": lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)),
    }
    net = nets[model]()
    opt = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)
    x = torch.randn(BATCH, 1, 28, 28) if model == "lenet" else torch.randn(BATCH, 784)
    y = torch.zeros(BATCH, dtype=torch.int64)

    def steps(n):
        for _ in range(n):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
        return lambda: loss.item()

    return steps


def jax_training(model):
    import jax
    from jax import lax, nn
    from jax import numpy as jnp

    def dense(p, x):
        return x @ p["w"] + p["b"]

    def conv(p, x):
        return lax.conv_general_dilated(x, p["w"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]

    def lenet(p, x):
        h = nn.relu(conv(p[1], nn.relu(conv(p[0], x))))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return dense(p[3], nn.relu(dense(p[2], h.reshape(BATCH, -1))))

    def mlp(p, x):
        return dense(p[2], nn.relu(dense(p[1], nn.relu(dense(p[0], x)))))

    net, shapes, shape = {
        "lenet": (lenet, [(3, 3, 1, 32), (3, 3, 32, 64), (9216, 128), (128, 10)], (BATCH, 28, 28, 1)),
        "mlp": (mlp, [(784, 512), (512, 512), (512, 10)], (BATCH, 784)),
    }[model]
    keys = jax.random.split(jax.random.key(1), len(shapes) + 1)
    uniform = lambda key, s: jax.random.uniform(key, s, minval=-1, maxval=1) / math.sqrt(math.prod(s[:-1]))
    params = [{"w": uniform(key, s), "b": jnp.zeros(s[-1])} for key, s in zip(keys, shapes)]
    x, y = jax.random.normal(keys[-1], shape), jnp.zeros(BATCH, jnp.int32)

    def loss_of(p):
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(net(p, x)), y[:, None], 1))

    def step(p, velocity):
        loss, g = jax.value_and_grad(loss_of)(p)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocity, g)
        return jax.tree.map(lambda p, v: p - LR * v, p, velocity), velocity, loss

    step = jax.jit(step, donate_argnums=(0, 1))
    state = params, jax.tree.map(jnp.zeros_like, params)

    def steps(n):
        nonlocal state
        for _ in range(n):
            *state, loss = step(*state)
        jax.block_until_ready(state)
        return lambda: float(loss)

    return steps


TRAININGS = {"torch": torch_training, "jax": jax_training}


def serve(peer, model):
    """The side of a peer: what train_steps.cc does for lazuli."""
    steps = TRAININGS[peer](model)
    steps(2)
    for line in sys.stdin:
        start = time.perf_counter()
        loss = steps(int(line))
        print(time.perf_counter() - start, loss(), flush=True)


class Peer:
    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"LAZULI_NUM_THREADS": str(THREADS)})

    def run(self, steps):
        """Seconds a step, and the loss after the last one."""
        print(steps, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            sys.exit(f"train_peers: {' '.join(self.command)} ended early")
        return float(answer[0]) / steps, float(answer[1])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(model, commands):
    peers = {name: Peer([*command, model]) for name, command in commands.items()}
    turn = {name: max(1, round(SECONDS / peer.run(5)[0])) for name, peer in peers.items()}
    times = {name: [] for name in peers}
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            seconds, loss = peer.run(turn[name])
            times[name].append(seconds * 1e3)
            if not loss < math.log(10):  # it began about there
                sys.exit(f"train_peers: {name} does not learn: its loss is {loss}")
    for peer in peers.values():
        peer.close()

    ours = statistics.median(times["lazuli"])
    print(f"{model:8} {'median':>10} {'fastest':>11} {'lazuli takes':>15}")
    for name, ms in times.items():
        share = f"{ours / statistics.median(ms):.2f} of it" if name != "lazuli" else ""
        print(f"  {name:14} {statistics.median(ms):6.2f} ms {min(ms):8.2f} ms {share:>13}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage="train_peers.py PROGRAM [--busy] [mlp] [lenet]")
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_args()
    unknown = set(args.models) - {"mlp", "lenet"}
    if unknown:
        sys.exit(f"train_peers: no model {', '.join(sorted(unknown))}; there are mlp and lenet")

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # JAX takes its threads from it
    version = importlib.metadata.version
    commands = {"lazuli": [args.program]} | {
        f"{peer} {version(peer).split('+')[0]}": [sys.executable, __file__, "--serve", peer] for peer in TRAININGS}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if args.busy else None
    print(f"training step, batch {BATCH}, {THREADS} threads, {ROUNDS} turns of about {SECONDS} s"
          + (", beside a busy process" if busy else ""))
    try:
        for model in args.models or ["mlp", "lenet"]:
            compare(model, commands)
    finally:
        if busy:
            busy.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
