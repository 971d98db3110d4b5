#!/usr/bin/env python3
"""Programs that start: the first steps of a process, and steps of which each has shapes of its own.

    start.py [NAME...]      run by `./lz bench start`; needs torch, and lazuli's build in PYTHONPATH

Each measurement is a process of its own that computes with one thread; PyTorch's and lazuli's take turns. Reported is the best of all
turns in ms, without imports and without making the model, and lazuli's part of PyTorch's time. `--cpu` reports what the process took of
the processor, lazuli's background compiler included, in place of the time that passed: other load on the machine changes it less.
"""

import os
import subprocess
import sys
import time

from turns import table

LIBRARIES, RUNS = ("torch", "lazuli"), 3


def decode(of, tokens=200, dim=128, heads=4, layers=2):
    """Greedy decoding by a small transformer whose cache grows by `cat`: each step has shapes of its own."""
    F = of.nn.functional
    of.manual_seed(0)
    weight = lambda *shape: of.randn(*shape) * 0.1
    blocks = [
        {"q": weight(dim, dim), "k": weight(dim, dim), "v": weight(dim, dim), "o": weight(dim, dim), "up": weight(dim, 4 * dim),
         "down": weight(4 * dim, dim), "norm1": weight(dim), "norm2": weight(dim)}
        for _ in range(layers)
    ]
    table = weight(1000, dim)
    split = lambda x: x.view(1, heads, dim // heads)

    def step(token, caches):
        x, grown = table[token].unsqueeze(0), []
        for w, cache in zip(blocks, caches):
            h = F.layer_norm(x, (dim,), w["norm1"])
            q, k, v = split(h @ w["q"]), split(h @ w["k"]), split(h @ w["v"])
            if cache:
                k, v = of.cat([cache[0], k], 0), of.cat([cache[1], v], 0)
            grown.append((k, v))
            scores = q.transpose(0, 1) @ k.transpose(0, 1).transpose(1, 2) * (dim // heads) ** -0.5
            x = x + (F.softmax(scores, -1) @ v.transpose(0, 1)).transpose(0, 1).reshape(1, dim) @ w["o"]
            x = x + F.gelu(F.layer_norm(x, (dim,), w["norm2"]) @ w["up"]) @ w["down"]
        return int((x @ table.T).argmax(-1)), grown

    def run():
        token, caches = 5, [()] * layers
        with of.no_grad():
            for _ in range(tokens):
                token, caches = step(token, caches)

    return run


def batch_sizes(of):
    """The first pass of an MLP over 28 batch sizes."""
    net = mlp(of)[0]
    inputs = [of.randn(n, 784) for n in range(4, 32)]

    def run():
        with of.no_grad():
            for x in inputs:
                net(x).sum().item()

    return run


def mlp(of):
    nn = of.nn
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)), (32, 784)


def lenet(of):
    nn = of.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)), (16, 1, 28, 28)


def resnet18(of):
    nn = of.nn

    class Block(nn.Module):
        def __init__(self, before, planes, stride):
            super().__init__()
            conv = lambda a, b, size, step: nn.Conv2d(a, b, size, stride=step, padding=size // 2, bias=False)
            self.body = nn.Sequential(conv(before, planes, 3, stride), nn.BatchNorm2d(planes), nn.ReLU(),
                                      conv(planes, planes, 3, 1), nn.BatchNorm2d(planes))
            plain = stride == 1 and before == planes
            self.short = nn.Identity() if plain else nn.Sequential(conv(before, planes, 1, stride), nn.BatchNorm2d(planes))

        def forward(self, x):
            return of.relu(self.body(x) + self.short(x))

    blocks = [Block(a, b, s) for a, b, s in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1),
                                             (256, 512, 2), (512, 512, 1))]
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)), (4, 3, 32, 32)


def encoder(of):
    nn = of.nn

    class Last(nn.Module):
        def forward(self, x):
            return x[:, 0]

    layers = [nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True) for _ in range(4)]
    return nn.Sequential(*layers, Last(), nn.Linear(128, 10)), (8, 32, 128)


def unet(of):
    nn = of.nn
    pair = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1),
                                      nn.BatchNorm2d(b), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = pair(3, 8), pair(8, 16), pair(16, 32)
            self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.join2, self.join1 = pair(32, 16), pair(16, 8)
            self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(8, 10, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(self.pool(a))
            c = self.join2(of.cat([self.up2(self.bottom(self.pool(b))), b], 1))
            return self.last(self.join1(of.cat([self.up1(c), a], 1))).mean((2, 3))

    return UNet(), (2, 3, 32, 32)


def first_steps(make):
    def prepare(of, steps=3):
        net, shape = make(of)
        optimizer = of.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
        x, y = of.randn(*shape), of.zeros(shape[0], dtype=of.int64)

        def run():
            for _ in range(steps):
                optimizer.zero_grad()
                loss = of.nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
                loss.item()

        return run

    return prepare


CASES = {"decode 200 tokens": decode, "28 batch sizes": batch_sizes} | {
    f"first steps {make.__name__}": first_steps(make) for make in (mlp, lenet, resnet18, encoder, unet)
}


def worker(library, name, clock):
    if library == "torch":
        import torch as of

        of.set_num_threads(1)
    else:
        os.environ["LAZULI_NUM_THREADS"] = "1"
        import lazuli as of

    run = CASES[name](of)
    if library == "lazuli":
        of.sync(wait=True)
    now = time.process_time if clock == "--cpu" else time.perf_counter
    start = now()
    run()
    print(1e3 * (now() - start))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:5])
    else:
        words = [word for word in sys.argv[1:] if word != "--cpu"]
        clock = "--cpu" if "--cpu" in sys.argv else "--wall"
        chosen = [name for name in CASES if not words or any(word in name for word in words)]
        table(chosen, LIBRARIES, turns=RUNS, turn=lambda name, library: float(
            subprocess.run([sys.executable, sys.argv[0], "--worker", library, name, clock], stdout=subprocess.PIPE, text=True,
                           check=True).stdout))
