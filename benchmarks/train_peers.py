#!/usr/bin/env python3
"""A training step of MLPs, LeNet and a CNN for CIFAR-10, 2 threads: lazuli, PyTorch's CPU eager mode and JAX in turns.

    train_peers.py PROGRAM [--busy] [MODEL...]      PROGRAM is build/release/benchmarks/train_steps; run by `./lz bench --peers`

Each peer is a process of its own that trains on one random batch, by SGD with momentum or, the CNN, by RMSprop. They take turns of
some steps, so that what else the machine does meets all of them alike; the median of the turns is reported, and what lazuli takes
of each other peer's time. JAX's step is jitted and donates the parameters; its convolutions are NHWC, which XLA likes best on a
CPU. --busy keeps one more process spinning all the time.
"""

import argparse
import importlib.metadata
import math
import os
import statistics
import subprocess
import sys
import time

THREADS, ROUNDS, SECONDS = 2, 15, 0.3
LR, MOMENTUM = 0.02, 0.9
RMS_LR, RMS_ALPHA, RMS_EPS = 1e-4, 0.99, 1e-8
BATCH = {"mlp": 64, "wide_mlp": 128, "lenet": 64, "cnn": 32}  # benchmarks/models.h has the same networks


def torch_training(model):
    import torch
    from torch import nn

    torch.set_num_threads(THREADS)
    mlp = lambda width: nn.Sequential(nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    net, shape = {
        "mlp": lambda: (mlp(512), (784,)),
        "wide_mlp": lambda: (mlp(1024), (784,)),
        "lenet": lambda: (nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10)), (1, 28, 28)),
        "cnn": lambda: (nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Dropout(0.25), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3),
                                      nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(2304, 512), nn.ReLU(),
                                      nn.Dropout(0.5), nn.Linear(512, 10)), (3, 32, 32)),
    }[model]()
    if model == "cnn":
        opt = torch.optim.RMSprop(net.parameters(), lr=RMS_LR, alpha=RMS_ALPHA, eps=RMS_EPS)
    else:
        opt = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)
    x, y = torch.randn(BATCH[model], *shape), torch.zeros(BATCH[model], dtype=torch.int64)

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

    batch = BATCH[model]

    def dense(p, x):
        return x @ p["w"] + p["b"]

    def conv(p, x, padding="VALID"):
        return lax.conv_general_dilated(x, p["w"], (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def drop(key, x, rate):
        return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)

    def lenet(p, x, key):
        h = pool(nn.relu(conv(p[1], nn.relu(conv(p[0], x)))))
        return dense(p[3], nn.relu(dense(p[2], h.reshape(batch, -1))))

    def mlp(p, x, key):
        return dense(p[2], nn.relu(dense(p[1], nn.relu(dense(p[0], x)))))

    def cnn(p, x, key):
        keys = jax.random.split(key, 3)
        h = drop(keys[0], pool(nn.relu(conv(p[1], nn.relu(conv(p[0], x, "SAME"))))), 0.25)
        h = drop(keys[1], pool(nn.relu(conv(p[3], nn.relu(conv(p[2], h, "SAME"))))), 0.25)
        return dense(p[5], drop(keys[2], nn.relu(dense(p[4], h.reshape(batch, -1))), 0.5))

    net, shapes, shape = {
        "mlp": (mlp, [(784, 512), (512, 512), (512, 10)], (784,)),
        "wide_mlp": (mlp, [(784, 1024), (1024, 1024), (1024, 10)], (784,)),
        "lenet": (lenet, [(3, 3, 1, 32), (3, 3, 32, 64), (9216, 128), (128, 10)], (28, 28, 1)),
        "cnn": (cnn, [(3, 3, 3, 32), (3, 3, 32, 32), (3, 3, 32, 64), (3, 3, 64, 64), (2304, 512), (512, 10)], (32, 32, 3)),
    }[model]
    keys = jax.random.split(jax.random.key(1), len(shapes) + 1)
    uniform = lambda key, s: jax.random.uniform(key, s, minval=-1, maxval=1) / math.sqrt(math.prod(s[:-1]))
    params = [{"w": uniform(key, s), "b": jnp.zeros(s[-1])} for key, s in zip(keys, shapes)]
    x, y = jax.random.normal(keys[-1], (batch, *shape)), jnp.zeros(batch, jnp.int32)

    def loss_of(p, key):
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(net(p, x, key)), y[:, None], 1))

    def sgd(p, v, g):
        v = jax.tree.map(lambda v, g: MOMENTUM * v + g, v, g)
        return jax.tree.map(lambda p, v: p - LR * v, p, v), v

    def rmsprop(p, v, g):
        v = jax.tree.map(lambda v, g: RMS_ALPHA * v + (1 - RMS_ALPHA) * g * g, v, g)
        return jax.tree.map(lambda p, v, g: p - RMS_LR * g / (jnp.sqrt(v) + RMS_EPS), p, v, g), v

    def step(p, v, key):
        key, now = jax.random.split(key)
        loss, g = jax.value_and_grad(loss_of)(p, now)
        return *(rmsprop if model == "cnn" else sgd)(p, v, g), key, loss

    step = jax.jit(step, donate_argnums=(0, 1, 2))
    state = params, jax.tree.map(jnp.zeros_like, params), jax.random.key(2)

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
    print(f"{model:8} {'median':>10} {'fastest':>11} {'lazuli takes':>15}   batch {BATCH[model]}")
    for name, ms in times.items():
        share = f"{ours / statistics.median(ms):.2f} of it" if name != "lazuli" else ""
        print(f"  {name:14} {statistics.median(ms):6.2f} ms {min(ms):8.2f} ms {share:>13}", flush=True)


def main():
    parser = argparse.ArgumentParser(usage="train_peers.py PROGRAM [--busy] [MODEL...]")
    parser.add_argument("program")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--busy", action="store_true")
    args = parser.parse_intermixed_args()  # --busy stands between the two
    unknown = set(args.models) - set(BATCH)
    if unknown:
        sys.exit(f"train_peers: no model {', '.join(sorted(unknown))}; there are {', '.join(BATCH)}")

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])  # JAX takes its threads from it
    version = importlib.metadata.version
    commands = {"lazuli": [args.program]} | {
        f"{peer} {version(peer).split('+')[0]}": [sys.executable, __file__, "--serve", peer] for peer in TRAININGS}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if args.busy else None
    print(f"training step, {THREADS} threads, {ROUNDS} turns of about {SECONDS} s"
          + (", beside a busy process" if busy else ""))
    try:
        for model in args.models or BATCH:
            compare(model, commands)
    finally:
        if busy:
            busy.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
