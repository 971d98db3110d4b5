#!/usr/bin/env python3
"""LeNet's training step, batch 64, 2 threads: lazuli and PyTorch's CPU eager mode in turns, and their ratio.

    lenet_peers.py PROGRAM      PROGRAM is build/release/benchmarks/lenet_steps; run by `./lz bench --peers`

Both train on one random batch. They take turns of some steps, so that what else the machine does meets both; the median of the
turns is reported.
"""

import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional

THREADS, ROUNDS, STEPS = 2, 15, 20


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        h = functional.relu(self.conv2(functional.relu(self.conv1(x))))
        return self.fc2(functional.relu(self.fc1(torch.flatten(functional.max_pool2d(h, 2), 1))))


class Torch:
    def __init__(self):
        torch.set_num_threads(THREADS)
        self.net = LeNet()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9)
        self.x, self.y = torch.randn(64, 1, 28, 28), torch.zeros(64, dtype=torch.int64)

    def seconds(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.opt.zero_grad()
            functional.cross_entropy(self.net(self.x), self.y).backward()
            self.opt.step()
        return time.perf_counter() - start


class Lazuli:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"LAZULI_NUM_THREADS": str(THREADS)})

    def seconds(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit("lenet_peers: lazuli's side ended early")
        return float(line)


def main(program):
    peers = {"lazuli": Lazuli(program), f"torch {torch.__version__.split('+')[0]}": Torch()}
    times = {name: [] for name in peers}
    for peer in peers.values():
        peer.seconds(STEPS)
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            times[name].append(peer.seconds(STEPS) / STEPS * 1e3)

    print(f"LeNet training step, batch 64, {THREADS} threads; {ROUNDS} turns of {STEPS} steps")
    print(f"  {'':14} {'median':>9} {'fastest':>9}")
    for name, ms in times.items():
        print(f"  {name:14} {statistics.median(ms):6.1f} ms {min(ms):6.1f} ms")
    ours, theirs = (statistics.median(ms) for ms in times.values())
    print(f"  lazuli takes {ours / theirs:.2f} of PyTorch's time")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
